"""Method 1: inversion on a vertical line, trapezoidal in both variables.

The node choices are double-precision estimates; whether they were right is decided by comparing
two runs in which every one of them differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import acb, acb_mat, arb, ctx

from .model import Phase, Point, six_quantities
from .saddle import TAPER, Cumulants, away_from_poles, log_odds

MAX_PRODUCTS = 1.2e8
MAX_EXPONENTIALS = 2.2e6
MAX_PHASE_RATE = 5.0e3


class NotFeasibleError(Exception):
    """A method cannot serve the point at a bearable cost."""


@dataclass(frozen=True)
class LineVariant:
    """The free choices of a run; distances from poles and from the saddle point in units of 1/sd.

    The depth is the natural log of the relative error aimed at by truncation and aliasing, the
    offset that of the z nodes as a share of their spacing.  A cut that is not 0 cuts the normal
    density off smoothly where the mass beyond is a negligible part of the tails; its value moves
    the cut.
    """

    pole_distance: float
    shift: float
    depth: float
    offset: float
    extra_bits: int
    cut: float = 0.0


VARIANTS = (
    LineVariant(1.0, 0.0, 74.0, 0.0, 0),
    LineVariant(1.27, 0.17, 81.0, 0.41, 24),
    LineVariant(1.0, 0.0, 74.0, 0.0, 0, 0.3),
    LineVariant(1.31, 0.13, 80.0, 0.37, 24, 0.9),
    LineVariant(1.0, 0.0, 150.0, 0.0, 0, 0.2),
    LineVariant(1.31, 0.13, 156.0, 0.37, 24, 0.5),
)


@dataclass(frozen=True)
class LinePlan:
    """Discretisation of a run: position, spacing and number of t nodes, z nodes by phase."""

    position: float
    spacing: float
    count: int
    grids: tuple[tuple[float, float, int], ...]
    bits: int
    cut: float | None = None


def plan(point: Point, cumulants: Cumulants, variant: LineVariant) -> LinePlan:
    """Choose the discretisation of a run; `NotFeasibleError` if the transform decays too slowly."""
    threshold = float(point.offset_threshold())
    cut = None
    if variant.cut:
        cut = _cut(point, threshold) + variant.cut
        cumulants = Cumulants(point.phases, cut)
    saddle = cumulants.saddle(threshold)
    sd = math.sqrt(cumulants.mean_variance(saddle)[1])
    if sd == 0:
        raise NotFeasibleError("line: degenerate saddle point")
    tilt = away_from_poles(saddle + variant.shift / sd, variant.pole_distance / sd)
    if cumulants.runs_off(tilt):
        raise NotFeasibleError("line: the tilted weight has a mode beyond the nodes")
    period = _period(cumulants, tilt, threshold, variant.depth + 4)
    reach = _reach(point.total_steps, cumulants, tilt, sd, variant.depth)
    count = math.ceil(reach * period / (2 * math.pi)) + 1
    log_steps = math.log(point.total_steps)
    grids = tuple(
        _grid(cumulants, i, phase, tilt, reach, variant.depth + log_steps, variant.offset)
        for i, phase in enumerate(point.phases)
    )
    nodes = sum(n for _, _, n in grids)
    result = LinePlan(tilt, 2 * math.pi / period, count, grids, 0)
    if nodes * count > MAX_PRODUCTS or 2 * nodes * math.sqrt(count) > MAX_EXPONENTIALS:
        raise NotFeasibleError(f"line: {count} t nodes, {nodes} z nodes")
    magnitude = math.log2(1 + abs(tilt * threshold)) + log_steps / math.log(2)
    bits = int(variant.depth / math.log(2) + magnitude) + 30 + variant.extra_bits
    return LinePlan(result.position, result.spacing, count, grids, bits, cut)


def evaluate(points: list[Point], chosen: LinePlan) -> list[dict[str, arb]]:
    """Return the six quantities at every threshold; the radii cover rounding only.

    The plan serves the first of thresholds near to each other; `NotFeasibleError` if the density
    was cut off too near for it.
    """
    before, ctx.prec = ctx.prec, chosen.bits
    try:
        # Short positions keep every product with them exact and cheap.
        tilt, step = arb(chosen.position), arb(chosen.spacing)
        giant = math.isqrt(chosen.count - 1) + 1
        powers = [acb(1)] * (giant * giant)
        for phase, grid in zip(points[0].phases, chosen.grids, strict=True):
            moments = _moments(phase, grid, tilt, step, giant, chosen.cut)
            powers = [a * b**phase.steps for a, b in zip(powers, moments, strict=True)]
        places = [acb(tilt, k * step) for k in range(len(powers))]
        powers[0] /= 2
        results = []
        for point in points:
            result = _invert(point, chosen, places, powers)
            if chosen.cut is None or _cut_is_far(point, chosen.cut, result):
                results.append(result)
            elif not results:
                raise NotFeasibleError("line: the cut is too near")
            else:
                results.append({})
        return results
    finally:
        ctx.prec = before


def _invert(point: Point, chosen: LinePlan, places: list[acb], powers: list[acb]) -> dict[str, arb]:
    """Sum over the nodes of the line."""
    threshold = point.offset_threshold()
    sums = [arb(0)] * 3
    for place, power in zip(places, powers, strict=True):
        term = power * (-place * threshold).exp()
        for i, kernel in enumerate((place, place - 1, place * (place - 1))):
            sums[i] += (term / kernel).real
    scale = arb(chosen.spacing) / arb.pi()
    three = (sums[0] * scale, sums[1] * scale, sums[2] * scale)
    return six_quantities(three, chosen.position, point.threshold)


def _moments(
    phase: Phase,
    grid: tuple[float, float, int],
    tilt: arb,
    step: arb,
    giant: int,
    cut: float | None,
) -> list[acb]:
    """Return E exp((tilt + i k step) Y) for k < giant^2 as one product of two matrices."""
    start, spacing, nodes = grid
    mu = phase.mu()
    losses, weights = [], []
    for k in range(nodes):
        z = arb(start) + k * arb(spacing)
        loss = mu * z - mu**2 / 2
        if not phase.full_batch:
            loss = (loss.exp() * phase.odds()).log1p()
        weight = (tilt * loss - z**2 / 2).exp() * arb(spacing) / (2 * arb.pi()).sqrt()
        if cut is not None:
            weight *= ((z - arb(cut)) / arb(TAPER)).erfc() / 2
        losses.append(loss)
        weights.append(weight)
    small = [acb(0, b * step * loss).exp() for loss in losses for b in range(giant)]
    large = [
        weight * acb(0, a * giant * step * loss).exp()
        for a in range(giant)
        for loss, weight in zip(losses, weights, strict=True)
    ]
    product = acb_mat(giant, nodes, large) * acb_mat(nodes, giant, small)
    return list(product.entries())


def _cut(point: Point, threshold: float) -> float:
    """Return where the density may be cut, from an estimate of the tail."""
    log_steps = math.log(point.total_steps)
    low, high = 8.0, 40.0
    for _ in range(9):
        cut = (low + high) / 2
        estimate = Cumulants(point.phases, cut).chernoff(threshold) - 6
        needed = math.sqrt(2 * (60 + log_steps - max(estimate, -705.0)))
        low, high = (cut, high) if needed > cut else (low, cut)
    return 1.04 * high + max(1 / float(phase.noise) for phase in point.phases)


def _cut_is_far(point: Point, cut: float, values: dict[str, arb]) -> bool:
    """Whether the mass cut off is negligible in every quantity."""
    narrowed = arb(cut) / (1 + TAPER**2 / 4)
    lost = {"p": arb(0), "q": arb(0)}
    for phase in point.phases:
        under_p = phase.steps * (narrowed / arb(2).sqrt()).erfc()
        shifted = ((narrowed - phase.mu()) / arb(2).sqrt()).erfc()
        lost["p"] += under_p
        lost["q"] += under_p + phase.steps * phase.exact_probability() * shifted
    for name, value in values.items():
        part = lost["p"] if name in ("p_above", "p_below", "h_pq") else lost["q"]
        if abs(value.mid()) > 1e-305 and part > abs(value.mid()) * 1e-22:
            return False
    return True


def _period(cumulants: Cumulants, tilt: float, threshold: float, depth: float) -> float:
    """Return a period whose aliases are below exp(-depth) of exp(K(tilt) - tilt c)."""
    base = cumulants.value(tilt) - tilt * threshold
    sd = math.sqrt(cumulants.mean_variance(tilt)[1])
    # Relative to the tail that belongs to the pole; tails below 1e-305 do not matter.
    bases = {0.0: base, 1.0: base + threshold + cumulants.shift}
    pole_depth = {p: depth - b if -720 < b < 0 else depth for p, b in bases.items()}
    sides = []
    for sign in (1.0, -1.0):
        poles = [p for p in (0.0, 1.0) if (p - tilt) * sign > 0]
        bounds = [pole_depth[p] / abs(p - tilt) for p in poles]
        if len(poles) < 2:
            trials = [tilt + sign * g / sd for g in np.geomspace(0.1, 60.0, 40)]
            values = [cumulants.value(x) - x * threshold - base for x in trials]
            bounds.append(
                min((depth + v) / abs(x - tilt) for x, v in zip(trials, values, strict=True))
            )
        sides.append(max(bounds))
    return max(sides)


def _reach(point_steps: int, cumulants: Cumulants, tilt: float, sd: float, depth: float) -> float:
    """Return t beyond which the transform stays below exp(-depth) as far as one looks.

    A double shows a modulus of one step down to about exp(-27) only; for one and two steps the
    rest is extrapolated.
    """
    visible = min(depth, 27.0 * point_steps)
    slopes = [
        _slope(phase, cumulants.window(i, tilt, 45.0)[1])
        for i, phase in enumerate(cumulants.phases)
    ]
    block = np.geomspace(2.0, 20.0, 24) / sd
    limit = MAX_PHASE_RATE / max(slopes) / (5 if cumulants.cut is None else 1)
    below = 0.0
    while block[-1] < limit:
        size = np.zeros_like(block)
        for i, (phase, slope) in enumerate(zip(cumulants.phases, slopes, strict=True)):
            spacing = min(0.025, 1 / (block[-1] * slope))
            size += phase.steps * cumulants.log_modulus(i, tilt, block, spacing)
        for t, value in zip(block, size, strict=True):
            if value > -visible:
                below = 0.0
            elif below == 0.0:
                below = float(t)
        if below and block[-1] > 1.5 * below:
            return below * (depth / visible) ** 1.3
        block = block * 10.0 ** (24 / 23)
    raise NotFeasibleError("line: the transform does not decay")


def _slope(phase: Phase, z: float) -> float:
    """Return dY/dz."""
    mu = 1 / float(phase.noise)
    if phase.full_batch:
        return mu
    exponent = mu * z - mu**2 / 2 + log_odds(phase)
    return mu / (1 + math.exp(min(-exponent, 700.0)))


def _grid(
    cumulants: Cumulants,
    index: int,
    phase: Phase,
    tilt: float,
    reach: float,
    depth: float,
    offset: float,
) -> tuple[float, float, int]:
    """Return start, spacing and number of the z nodes of a phase."""
    low, high = cumulants.window(index, tilt, depth + 8)
    slope = _slope(phase, high)
    stiffness = 1.0 if cumulants.cut is None else 1 + 2 / TAPER**2
    strip = math.sqrt(2 * depth / stiffness)
    if not phase.full_batch:
        strip = min(strip, 0.6 * math.pi * float(phase.noise))
    growth = 0.6 * abs(min(tilt, 0.0)) * slope
    spacing = 2 * math.pi / (reach * slope + growth + depth / strip + stiffness * strip / 2)
    spacing = float(np.float32(spacing))
    start = low - offset * spacing
    return start, spacing, math.ceil((high - start) / spacing) + 2
