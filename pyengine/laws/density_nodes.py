"""Two densities on the line as a discrete measure of their loss, for the spectral engine.

Gauss-Legendre rules on panels between quantiles of both laws, divided where the loss changes much.
Sums of e^{(λ + it) L} over the nodes are integrals of the densities to the accuracy at which a rule
of fewer points agrees; that is checked at some tilts and arguments, and is an estimate.  The engine
ends its sums over t where transforms have fallen, but the transform of a loss that is concentrated
at few values rises again: nodes are returned only if no such return, up to the last argument,
matters for the number of steps.
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

ORDERS = (16, 12)  # points of the two rules on a panel
STEP = 0.5  # largest change of the loss on a panel, in its standard deviations
TURN = 3.0  # half of the largest change of t L on a panel, in radians
MOST_PANELS = 6144
AGREE = 1e-12  # largest difference of the two rules, relative to the transform at t = 0
NOTHING = -2000.0  # log of a weight that counts as 0
TILTS = (-8.0, -2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 9.0)  # at which transforms are checked
NEGLIGIBLE = 1e-17  # weight of nodes that are ignored in the search for returns
ARGUMENTS = 1024  # equidistant ones, up to the last, at which returns are looked for
FALLEN = 41.0  # -log of the modulus of a transform at which the engine's sum may end,
RETURN = 36.0  # and of the largest modulus allowed beyond that
RUN = 0.5  # length of fallen arguments at which it may end, times the deviation of all steps


class DensityNodes(NamedTuple):
    """Nodes, and for each tilt the logs of the transform's modulus at equidistant arguments."""

    nodes: LossNodes
    moduli: FloatArray
    deviations: FloatArray

    def serving(self, number: int) -> LossNodes | None:
        """The nodes, unless a transform of ``number`` steps rises again after it has fallen.

        The engine itself refuses transforms that do not fall up to the last argument.
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
        Logarithms of the densities, finite and smooth between edges.
    edges : ndarray of shape (n,)
        Increasing; both densities change by moderate factors between two of them.

    Returns
    -------
    DensityNodes or None
        None if densities are not finite, panels are too many, or the rules disagree.
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
    """Losses and log weights (under p) of the nodes of a rule on every panel."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)
    x = ((edges[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
    with np.errstate(invalid="ignore"):
        of_p, of_q = log_p(x), log_q(x)
        return of_q - of_p, of_p + fn.log(half[:, None] * weights).ravel()


def _changes(loss: FloatArray) -> FloatArray:
    """Change of the loss on each panel."""
    return np.asarray(np.ptp(loss.reshape(-1, ORDERS[0]), axis=1))


def _divided(edges: FloatArray, parts: npt.NDArray[np.int64]) -> FloatArray:
    """Edges of panels that are each divided into equal parts."""
    widths = np.repeat(np.diff(edges) / parts, parts)
    index = np.concatenate([np.arange(count) for count in parts])
    return np.append(np.repeat(edges[:-1], parts) + index * widths, edges[-1])


def _served(loss: FloatArray, log_weight: FloatArray) -> list[float]:
    """Tilts whose laws do not peak on an outermost panel, where the nodes would cut them."""
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
    """Sorted nodes; beyond an extremum of the loss, a node of no weight marks the law's end.

    An outermost node with weight tells the engine that the law goes on.
    """
    losses, weights = loss[order], log_weight[order]
    first, last = ORDERS[0], loss.size - ORDERS[0]
    if first <= order[0] < last:
        losses, weights = np.append(losses[0] - beyond, losses), np.append(NOTHING, weights)
    if first <= order[-1] < last:
        losses, weights = np.append(losses, losses[-1] + beyond), np.append(weights, NOTHING)
    return losses, weights
