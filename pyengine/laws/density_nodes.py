"""Two densities on the line as a discrete measure of their loss, for the spectral engine.

Gauss-Legendre rules between quantiles of both laws, which are cut where the loss changes by much:
sums of e^{(λ + it) L} over such nodes are integrals of the densities as far as a rule of fewer
points agrees, which is asked at some tilts and arguments, and is an estimate.  The engine ends its
sums over t where transforms have fallen, and those of losses that lie about few places come back:
there are nodes only for so many steps that no return, up to the last argument, matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.laws.normals import LossNodes
from pyengine.numerics import functions as fn

__all__ = ["DensityNodes", "density_nodes"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

ORDERS = (16, 12)
STEP = 0.5  # change of the loss on a panel, in its standard deviations
TURN = 3.0  # half of what t L may change on a panel
MOST_PANELS = 6144
AGREE = 1e-12  # of the two rules, relative to t = 0
NOTHING = -2000.0  # log of a weight
TILTS = (-8.0, -2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 9.0)
NEGLIGIBLE = 1e-17  # weight of nodes that returns are judged without
ARGUMENTS = 1024  # up to the last one, at which returns are looked for
FALLEN = 41.0  # -log of what is left of a transform where the engine's sum may end,
RETURN = 36.0  # and of what may come back beyond that
RUN = 0.5  # of arguments, times the deviation of all steps: it needs more


class DensityNodes(NamedTuple):
    """Nodes, and for each tilt the logs of the transform's modulus at equidistant arguments."""

    nodes: LossNodes
    moduli: FloatArray
    deviations: FloatArray

    def serving(self, number: int) -> LossNodes | None:
        """The nodes, if transforms of so many steps do not come back where they have fallen.

        Where they do not fall up to the last argument the engine refuses.
        """
        spacing = self.nodes.t_max / ARGUMENTS
        for log_modulus, deviation in zip(self.moduli, self.deviations, strict=True):
            width = max(1, int(RUN / (deviation * math.sqrt(number) * spacing)))
            below = np.append(0, np.cumsum(number * log_modulus <= -FALLEN))
            runs = np.flatnonzero(below[width:] - below[:-width] == width)
            if runs.size and number * log_modulus[runs[0] :].max() > -RETURN:
                return None
        return self.nodes


def density_nodes(log_p: Function, log_q: Function, edges: FloatArray) -> DensityNodes | None:
    """Return nodes of the loss log q/p with the probabilities under p.

    Parameters
    ----------
    log_p, log_q : callable
        Logarithms of the densities, which are finite and smooth between edges.
    edges : ndarray of shape (n,)
        Increasing; between two of them either density changes by a moderate factor.

    Returns
    -------
    DensityNodes or None
        None where densities are not finite, panels are too many, or the rules disagree.
    """
    loss, log_weight = _rule(log_p, log_q, edges, ORDERS[0])
    if not (np.isfinite(loss).all() and np.isfinite(log_weight).all()):
        return None
    weight = fn.exp(log_weight)
    mean = float((weight * loss).sum())
    deviation = math.sqrt(float((weight * (loss - mean) ** 2).sum()))
    if not deviation > 0.0:
        return None
    parts = np.ceil(_changes(loss) / (STEP * deviation)).clip(1.0)
    if not parts.sum() <= MOST_PANELS:
        return None
    edges = _divided(edges, parts.astype(np.int64))
    loss, log_weight = _rule(log_p, log_q, edges, ORDERS[0])
    t_max = 2.0 * TURN / float(_changes(loss).max())
    other = _rule(log_p, log_q, edges, ORDERS[1])
    tilts = _served(loss, log_weight)
    if not all(_agree((loss, log_weight), other, tilt, t_max) for tilt in tilts):
        return None
    found_at = [_transform(loss, log_weight, tilt, t_max) for tilt in tilts]
    order = np.argsort(loss, kind="stable")
    nodes = LossNodes(*_ended(loss, log_weight, order, 1e-3 * deviation), t_max)
    return DensityNodes(nodes, *map(np.array, zip(*found_at, strict=True)))


def _rule(
    log_p: Function, log_q: Function, edges: FloatArray, order: int
) -> tuple[FloatArray, FloatArray]:
    """Losses and logs of weights of a rule on every panel."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)
    x = ((edges[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
    with np.errstate(invalid="ignore"):
        of_p, of_q = log_p(x), log_q(x)
        return of_q - of_p, of_p + fn.log(half[:, None] * weights).ravel()


def _changes(loss: FloatArray) -> FloatArray:
    """By how much losses change on each panel."""
    return np.asarray(np.ptp(loss.reshape(-1, ORDERS[0]), axis=1))


def _divided(edges: FloatArray, parts: npt.NDArray[np.int64]) -> FloatArray:
    """Panels cut into equal parts."""
    widths = np.repeat(np.diff(edges) / parts, parts)
    index = np.concatenate([np.arange(count) for count in parts])
    return np.append(np.repeat(edges[:-1], parts) + index * widths, edges[-1])


def _served(loss: FloatArray, log_weight: FloatArray) -> list[float]:
    """Tilts that do not move the law to an outermost panel, where no sum serves."""
    at = [int((log_weight + tilt * loss).argmax()) for tilt in TILTS]
    last = loss.size - ORDERS[0]
    return [tilt for tilt, j in zip(TILTS, at, strict=True) if ORDERS[0] <= j < last]


def _agree(
    one: tuple[FloatArray, FloatArray],
    other: tuple[FloatArray, FloatArray],
    tilt: float,
    t_max: float,
) -> bool:
    """Whether both rules have the same transform, relative to its value on the real line."""
    top = (one[1] + tilt * one[0]).max()
    sums = []
    for loss, log_weight in (one, other):
        weight = fn.exp(log_weight + tilt * loss - top)
        turned = [np.sum(weight * fn.turn(t * loss)) for t in (0.0, 0.4 * t_max, t_max)]
        sums.append(np.array(turned))
    return bool(np.abs(sums[0] - sums[1]).max() <= AGREE * abs(sums[0][0]))


def _transform(
    loss: FloatArray, log_weight: FloatArray, tilt: float, t_max: float
) -> tuple[FloatArray, float]:
    """Logs of the tilted law's transform at equidistant arguments, and its deviation."""
    exponent = log_weight + tilt * loss
    weight = fn.exp(exponent - exponent.max())
    weight /= weight.sum()
    mean = (weight * loss).sum()
    deviation = math.sqrt((weight * (loss - mean) ** 2).sum())
    keep = weight > NEGLIGIBLE
    now = weight[keep].astype(np.complex128)
    turn = fn.turn((t_max / ARGUMENTS) * loss[keep])
    sums = np.empty(ARGUMENTS + 1)
    for k in range(ARGUMENTS + 1):
        sums[k] = abs(now.sum())
        now *= turn
    return fn.log(np.maximum(sums, NEGLIGIBLE)), deviation


def _ended(
    loss: FloatArray, log_weight: FloatArray, order: npt.NDArray[np.int64], beyond: float
) -> tuple[FloatArray, FloatArray]:
    """Nodes in order, with one of no weight beyond a loss that turns: the law ends there.

    Where the outermost node has weight the engine takes it that the law goes on.
    """
    losses, weights = loss[order], log_weight[order]
    first, last = ORDERS[0], loss.size - ORDERS[0]
    if first <= order[0] < last:
        losses, weights = np.append(losses[0] - beyond, losses), np.append(NOTHING, weights)
    if first <= order[-1] < last:
        losses, weights = np.append(losses, losses[-1] + beyond), np.append(weights, NOTHING)
    return losses, weights
