"""Nodes of one Laplace step: its transform as a short sum, with a bound on what that leaves out.

The density of v between both atoms and the losses at v, the logarithms of q' + p' e^v, are analytic
where |Im v| < π, however near the singularity of the density of losses is; so Gauss's rule in v
has next to no error, and the sum is that of a law with finitely many losses
(docs/theory/laplace_lines).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.panels.legendre import EXTENDED, Extended, ExtendedArray, gauss_nodes
from pyengine.engines.panels.shape import StepShape, extended
from pyengine.numerics.exact_numbers import as_decimal

__all__ = ["StepNodes", "chosen_nodes", "remainder", "step_nodes"]

FloatArray = npt.NDArray[np.float64]

SIZES = np.array([10, 14, 18, 24, 32, 40, 56])
PANELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
HEIGHTS = 0.5 * math.pi * np.array([0.12, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0])  # of ellipses
SLACK = 1.0 + 1e-6  # for the rounding of bounds


class StepNodes(NamedTuple):
    """Losses and A's masses that stand for a step, the atoms first.

    Parameters
    ----------
    loss, mass : ndarray
        In extended precision.
    loss_error, mass_error : float
        Bounds on absolute errors of the losses, and on relative ones of the masses.
    panels, size : int
        Panels of v, and nodes on each.
    """

    loss: ExtendedArray
    mass: ExtendedArray
    loss_error: float
    mass_error: float
    panels: int
    size: int


@kept(128)
def step_nodes(shape: StepShape, panels: int, size: int) -> StepNodes:
    """Return the nodes of Gauss's rules on panels of v."""
    nodes, span = gauss_nodes(size), 2 * extended(as_decimal(shape.distance))
    v = (span * (np.arange(panels, dtype=Extended)[:, None] + nodes.place) / panels).ravel()
    weight = np.tile(nodes.weight, panels) * span / (4 * panels)
    away = np.log1p(np.expm1(v) / shape.slope)
    loss, mass = [np.array([extended(end) for end in shape.ends])], [shape.atoms]
    for origin, sign, falling, rising in shape.branches:
        loss.append(origin + sign * away)
        mass.append(weight * (falling * np.exp(-v / 2) + rising * np.exp(v / 2)))
    mu, d, slope = float(shape.distance), float(shape.length), float(shape.slope)
    steepest = min(1.0, d + 1.0 / slope)  # of losses as functions of v
    largest = max(abs(float(end)) for end in shape.ends)
    loss_error = EXTENDED * (64.0 * (largest + d) + 16.0 * mu * steepest)
    mass_error = nodes.error + EXTENDED * (48.0 + 8.0 * mu)
    return StepNodes(
        np.concatenate(loss), np.concatenate(mass), loss_error, mass_error, panels, size
    )


def remainder(
    shape: StepShape,
    tilt: float,
    log_mean: float,
    frequency: float,
    panels: int,
    sizes: npt.NDArray[np.intp],
) -> FloatArray:
    """Return bounds on what the rules leave out of the mean of e^(s loss), relative.

    Parameters
    ----------
    shape : StepShape
        The step.
    tilt, frequency : float
        The real part of s, and the largest modulus of its imaginary part.
    log_mean : float
        The logarithm of what the bounds are relative to.
    panels : int
        Of v, for the rules of so many nodes each: ``sizes``.
    """
    mu, small = float(shape.distance), 1.0 / float(shape.slope)
    half = mu / panels
    middle = (half * (2.0 * np.arange(panels) + 1.0))[:, None]
    height = np.minimum(HEIGHTS, 40.0 * half)  # ellipses of a parameter up to some 80
    across = np.hypot(height, half)  # the other half-axis
    log_rho = np.log((height + across) / half)
    with np.errstate(over="ignore"):
        near, far = small * np.exp(middle - across), small * np.exp(middle + across)
    rest = max(1.0 - small, 0.0)
    top, bottom = np.log(rest + far), 0.5 * np.log(rest * rest + near * near)
    turn = np.arctan2(far * np.sin(height), rest + far * np.cos(height))
    total = np.zeros(sizes.size)
    for origin, sign, falling, rising in shape.branches:
        weight = float(falling) * np.exp(0.5 * (across - middle))
        weight = weight + float(rising) * np.exp(0.5 * (across + middle))
        log = np.maximum(tilt * sign * top, tilt * sign * bottom) + tilt * float(origin)
        log = log + np.log(0.25 * weight) + frequency * turn - log_mean
        rule = 2.0 * sizes[:, None, None] * log_rho + np.log(-np.expm1(-log_rho))
        with np.errstate(over="ignore"):
            total += np.exp((log - rule).min(axis=2)).sum(axis=1)
    return np.asarray(8.0 * half * total * SLACK)


def chosen_nodes(
    shape: StepShape, tilt: float, log_mean: float, frequency: float, enough: float
) -> tuple[StepNodes, float] | None:
    """Return the fewest nodes whose `remainder` is small enough, and that; None where none is."""
    best: tuple[int, int, int, float] | None = None
    for panels in PANELS:
        if best is not None and panels * SIZES[0] >= best[0]:
            break
        found = remainder(shape, tilt, log_mean, frequency, panels, SIZES)
        good = np.flatnonzero(found <= enough)
        if good.size:
            size, left = int(SIZES[good[0]]), float(found[good[0]])
            if best is None or panels * size < best[0]:
                best = (panels * size, panels, size, left)
    if best is None:
        return None
    return step_nodes(shape, best[1], best[2]), best[3]
