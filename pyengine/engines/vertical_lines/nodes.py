"""Quadrature of one Laplace step: a law of finitely many losses with nearly the same transform.

The density of v between both atoms and the loss log(q' + p' e^v) at v are analytic for |Im v| < π,
however near the singularity of the density of losses is.  So Gauss's rules in v converge fast, and
ellipses bound their remainder (docs/theory/laplace, Lemma 1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.caches import kept
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.gauss import EXTENDED, gauss_nodes
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import as_decimal, two_doubles

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.laplace_shapes import StepShape

__all__ = [
    "PanelRule",
    "StepNodes",
    "chosen_nodes",
    "edges_of",
    "largest_loss",
    "loss_error",
    "remainder",
    "step_nodes",
]

FloatArray = npt.NDArray[np.float64]

SIZES = np.array([10, 14, 18, 24, 32, 40, 56, 80])  # nodes on a panel
PANELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
HEIGHTS = 0.5 * math.pi * np.array([0.12, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0])  # half-axes in Im v
SLACK = 1.0 + 1e-6  # covers the rounding of a bound
PLACES = 1025  # points of the table of losses by which panels are placed
RADIANS_PER_UNIT = 19.0  # radians of the angle t loss that need as many nodes as a unit of v
LEAST_STEEP = 0.25  # below it panels are equal in v
NODES_PER_RADIAN = 0.5  # per radian of the angle t loss: fewer cannot serve


class PanelRule(NamedTuple):
    """Gauss's rules of ``size`` nodes on ``panels`` of v; `edges_of` says what ``steep`` is."""

    panels: int
    size: int
    steep: float


class StepNodes(NamedTuple):
    """The finite law that replaces a step: losses and A's masses, the step's atoms first.

    Parameters
    ----------
    loss, mass : ndarray of shape (2, n)
        Sums of two doubles; a mass is ``mass`` 2^``power``.
    power : ndarray of shape (n,)
        Integers.
    loss_error : float
        Bound of the absolute errors of the losses.
    mass_error : float or ndarray
        Bound of the relative errors of the masses: of all, or one each.
    rule : PanelRule
        The quadrature.
    """

    loss: FloatArray
    mass: FloatArray
    power: FloatArray
    loss_error: float
    mass_error: float | FloatArray
    rule: PanelRule


@kept(128)
def edges_of(shape: StepShape, rule: PanelRule) -> FloatArray:
    """Return the edges of the panels of v, from 0 to 2 μ as a double.

    Panels are equal in v/(2 μ) + ``steep`` (loss - least loss)/length.
    """
    span = 2.0 * float(shape.distance)
    if not rule.steep:
        return span * np.arange(rule.panels + 1.0) / rule.panels
    v = np.linspace(0.0, span, PLACES)
    away = fn.log1p(fn.expm1(v) / float(shape.slope))
    way = v / span + rule.steep * away / away[-1]
    inner = np.interp(np.arange(1.0, rule.panels) / rule.panels, way / way[-1], v)
    return np.concatenate([[0.0], inner, [span]])


@kept(128)
def step_nodes(shape: StepShape, rule: PanelRule) -> StepNodes:
    """Return the atoms and the nodes of Gauss's rules on panels of v."""
    gauss, edges = gauss_nodes(rule.size), edges_of(shape, rule)
    span = two_doubles(as_decimal(2 * shape.distance))
    size = rule.panels * rule.size
    loss = np.empty((2, 2 + size * len(shape.branches)))
    mass = np.empty(loss.shape)
    for i, (end, atom) in enumerate(zip(shape.ends, shape.atoms, strict=True)):
        loss[:, i], mass[:, i] = two_doubles(end), (atom.high, atom.low)
    made = np.empty((2, 2, size))
    for i, (origin, sign, *parts) in enumerate(shape.branches):
        numbers = [(x.high, x.low) for x in (shape.slope, origin, *parts)]
        lib.pe_laplace_nodes(
            ((span, *numbers, sign),),
            rule.panels,
            array(edges),
            rule.size,
            array(gauss.place),
            array(gauss.weight),
            *(array(each, writable=True) for each in made),
        )
        at = slice(2 + i * size, 2 + (i + 1) * size)
        loss[:, at], mass[:, at] = made
    mass_error = gauss.error + EXTENDED * (48.0 + 8.0 * float(shape.distance))
    return StepNodes(loss, mass, np.zeros(loss.shape[1]), loss_error(shape), mass_error, rule)


def loss_error(shape: StepShape) -> float:
    """Bound of the absolute errors of the losses of all nodes, atoms included."""
    mu, d, slope = float(shape.distance), float(shape.length), float(shape.slope)
    steepest = min(1.0, d + 1.0 / slope)  # largest d loss/dv
    return EXTENDED * (64.0 * (largest_loss(shape) + d) + 16.0 * mu * steepest)


def largest_loss(shape: StepShape) -> float:
    """The largest modulus of a loss."""
    return max(abs(float(end)) for end in shape.ends)


def remainder(
    shape: StepShape,
    tilt: float,
    log_mean: float,
    frequency: float,
    edges: FloatArray,
    sizes: npt.NDArray[np.intp],
) -> FloatArray:
    """Return bounds of the quadrature error of E_A e^(s loss), relative to e^``log_mean``.

    Parameters
    ----------
    shape : StepShape
        The step.
    tilt, frequency : float
        The real part of s, and the largest modulus of its imaginary part.
    log_mean : float
        About log E_A e^(``tilt`` loss).
    edges, sizes : ndarray
        Edges of the panels of v, and numbers of nodes on each: one bound for each number.
    """
    small = 1.0 / float(shape.slope)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    height = np.minimum(HEIGHTS, 40.0 * half)  # ρ up to some 80
    across = fn.hypot(height, half)  # the other half-axis
    log_rho = fn.log((height + across) / half)
    with np.errstate(over="ignore"):
        near, far = small * fn.exp(middle - across), small * fn.exp(middle + across)
    rest = max(1.0 - small, 0.0)
    top, bottom = fn.log(rest + far), 0.5 * fn.log(rest * rest + near * near)
    turn = fn.arctan2(far * fn.sin(height), rest + far * fn.cos(height))
    total = np.zeros(sizes.size)
    for origin, sign, falling, rising in shape.branches:
        weight = float(falling) * fn.exp(0.5 * (across - middle))
        weight = weight + float(rising) * fn.exp(0.5 * (across + middle))
        log = np.maximum(tilt * sign * top, tilt * sign * bottom) + tilt * float(origin)
        log = log + fn.log(0.25 * weight) + frequency * turn - log_mean
        rule = 2.0 * sizes[:, None, None] * log_rho + fn.log(-fn.expm1(-log_rho))
        with np.errstate(over="ignore"):
            total += fn.exp((log - rule).min(axis=2)) @ half[:, 0]
    with np.errstate(over="ignore"):
        return np.asarray(8.0 * total * SLACK)


def chosen_nodes(
    shape: StepShape, tilt: float, log_mean: float, frequency: float, enough: float
) -> tuple[StepNodes, float] | None:
    """Return the fewest nodes with a `remainder` up to ``enough``, and it; None without any."""
    # nodes that the oscillation of e^(i t loss) needs, over those that the density needs
    turns = frequency * float(shape.length) / (RADIANS_PER_UNIT * 2.0 * float(shape.distance))
    steep = 2.0 ** round(fn.log2(turns)) if turns > LEAST_STEEP else 0.0
    least = NODES_PER_RADIAN * frequency * float(shape.length) / shape.pieces
    best: tuple[int, PanelRule, float] | None = None
    for panels in PANELS:
        if panels * SIZES[-1] < least and panels < PANELS[-1]:
            continue
        if best is not None and panels * SIZES[0] >= best[0]:
            break
        edges = edges_of(shape, PanelRule(panels, 0, steep))
        found = remainder(shape, tilt, log_mean, frequency, edges, SIZES)
        good = np.flatnonzero(found <= enough)
        if good.size:
            size, left = int(SIZES[good[0]]), float(found[good[0]])
            if best is None or panels * size < best[0]:
                best = (panels * size, PanelRule(panels, size, steep), left)
    return None if best is None else (step_nodes(shape, best[1]), best[2])
