"""Method 2: inversion on a hyperbola, with the one-step transform on rotated lines in log Y.

For few steps or rare large steps the transform decays too slowly for a vertical line. Because
Y = L - log(1 - p) >= 0, the path of integration may bend to the right, where exp(-lambda c')
decays. There E exp(lambda Y) = integral of g(w) exp(lambda e^w) dw, w = log Y, is taken along
Im w = psi, with psi chosen for each lambda so that the integrand neither grows nor oscillates;
psi stays below pi/4, where the Gaussian factor of g stops decaying.

The node choices are double-precision estimates; whether they were right is decided by comparing
two runs in which every one of them differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from .line import NotFeasibleError
from .model import Phase, Point, six_quantities
from .saddle import Cumulants, away_from_poles, log_odds

MOST_NODES = 4000
BLOCK = 24
MOST_LOST = 170.0
LINES_PER_STRIP = 2
CALM, STAGE = 6.0, 2.0
MOST_STRETCH = 15.0


@dataclass(frozen=True)
class HyperbolaVariant:
    """The free choices of a run; distances and scale are in units of 1/sd.

    The vertex is so far from a pole at least; the angle is that between asymptote and vertical,
    the spacing that of the trapezoidal rule, with a node on the vertex or half a step beside it
    (offset 0.5).  The strip is half the width that is used for the rule in w, the depth the
    natural log of the relative error aimed at.
    """

    pole_distance: float
    scale: float
    angle: float
    spacing: float
    offset: float
    strip: float
    depth: float
    extra_bits: int


VARIANTS = (
    HyperbolaVariant(1.0, 4.0, 0.35, 0.027, 0.0, 0.20, 50.0, 0),
    HyperbolaVariant(1.2, 6.0, 0.31, 0.023, 0.5, 0.17, 53.0, 24),
    HyperbolaVariant(0.8, 10.0, 0.30, 0.013, 0.0, 0.21, 54.0, 40),
    HyperbolaVariant(1.1, 13.0, 0.34, 0.010, 0.5, 0.19, 52.0, 64),
    HyperbolaVariant(0.9, 22.0, 0.29, 0.0055, 0.0, 0.22, 54.0, 80),
    HyperbolaVariant(1.1, 28.0, 0.33, 0.0042, 0.5, 0.18, 56.0, 90),
)


@dataclass(frozen=True)
class HyperbolaPlan:
    """Vertex, scale, depth and precision of a run."""

    vertex: float
    scale: float
    spacing: float
    depth: float
    bits: int
    variant: HyperbolaVariant
    cumulants: Cumulants


def plan(point: Point, cumulants: Cumulants, variant: HyperbolaVariant) -> HyperbolaPlan:
    """Choose vertex and scale of a run."""
    threshold = float(point.offset_threshold())
    saddle = cumulants.saddle(threshold)
    quiet = cumulants.quiet_tilt(saddle, threshold)
    sd = math.sqrt(cumulants.mean_variance(quiet)[1])
    if sd == 0:
        raise NotFeasibleError("hyperbola: degenerate saddle point")
    vertex = away_from_poles(quiet, variant.pole_distance / sd)
    if vertex > quiet and not cumulants.is_quiet(1.3 * vertex):
        vertex = quiet * variant.pole_distance / 1.2 if quiet > 2 else -variant.pole_distance / sd
    pole = min(abs(vertex), abs(vertex - 1))
    # Well below the vertex, a far mode would grow along the contour before it dies.
    scale = min(max(variant.scale / sd, 1.1 * vertex), 2.5 * pole)
    spacing = min(variant.spacing, 0.4 * variant.spacing / 0.027 / (scale * sd))
    spacing = max(spacing, variant.spacing / 8)
    lost = cumulants.value(vertex) - vertex * threshold - cumulants.chernoff(threshold)
    if lost > MOST_LOST:
        raise NotFeasibleError(f"hyperbola: cancellation by exp({lost:.0f})")
    depth = variant.depth + max(0.0, lost - 10)
    spacing = min(spacing, 1.1 * variant.spacing * variant.depth / depth)
    magnitude = math.log2(1 + abs(vertex * threshold)) + math.log2(point.total_steps)
    bits = int(1.45 * depth + magnitude) + 50 + variant.extra_bits
    return HyperbolaPlan(vertex, scale, spacing, depth, bits, variant, cumulants)


def evaluate(points: list[Point], chosen: HyperbolaPlan) -> list[dict[str, arb]]:
    """Return the six quantities at every threshold; the radii cover rounding only.

    The plan serves the first of thresholds near to each other, and is refined if terms cancel by
    more than it allows for; `NotFeasibleError` if they cancel too much, or need too many nodes.
    """
    before = ctx.prec
    try:
        for _ in range(4):
            ctx.prec = chosen.bits
            sums = _integrate(points, chosen)
            lost = sums[0].cancellation()
            allowed = chosen.depth - chosen.variant.depth
            if lost < allowed + 12:
                return [one.quantities(chosen) for one in sums]
            deeper = lost + 5 - allowed
            if lost > chosen.depth - 20:  # The sum itself is noise: the loss is larger.
                deeper += chosen.depth
            if lost > MOST_LOST:
                break
            chosen = replace(
                chosen,
                depth=chosen.depth + deeper,
                bits=chosen.bits + int(1.5 * deeper),
                spacing=chosen.spacing * chosen.depth / (chosen.depth + deeper),
            )
        raise NotFeasibleError(f"hyperbola: cancellation by exp({lost:.0f})")
    finally:
        ctx.prec = before


def _integrate(points: list[Point], chosen: HyperbolaPlan) -> list[_Sums]:
    """Sum along the contour until the terms are negligible at every threshold."""
    variant = chosen.variant
    phases = points[0].phases
    transforms = [_transform(points[0], i, chosen) for i in range(len(phases))]
    angle, scale = arb(variant.angle), arb(chosen.scale)
    corner = arb(chosen.vertex) - scale * angle.sin()
    sums = [_Sums(point, math.exp(-variant.depth)) for point in points]
    quiet = 0
    for first in range(0, MOST_NODES, BLOCK):
        places, slopes = [], []
        for k in range(first, first + BLOCK):
            turned = acb(angle, (k + arb(variant.offset)) * arb(chosen.spacing))
            places.append(corner + scale * turned.sin())
            slopes.append(acb(0, 1) * scale * turned.cos())
        moments = [transform.values(places) for transform in transforms]
        for j, (place, slope) in enumerate(zip(places, slopes, strict=True)):
            term = slope
            for phase, values in zip(phases, moments, strict=True):
                term *= values[j] ** phase.steps
            if first + j == 0 and variant.offset == 0.0:
                term /= 2
            small = [one.add(place, term) for one in sums]
            quiet = quiet + 1 if all(small) else 0
        if quiet >= BLOCK:
            return sums
    raise NotFeasibleError("hyperbola: too many nodes")


class _Sums:
    """The three contour integrals at one threshold as they grow."""

    def __init__(self, point: Point, limit: float) -> None:
        self.threshold = point.threshold
        self.offset = point.offset_threshold()
        self.limit = arb(limit)
        self.sums, self.peaks = [arb(0)] * 3, [arb(0)] * 3

    def add(self, place: acb, power: acb) -> bool:
        """Add a node; return whether its terms are negligible."""
        term = power * (-place * self.offset).exp()
        small = True
        for i, kernel in enumerate((place, place - 1, place * (place - 1))):
            part = term / kernel
            self.sums[i] += part.imag
            size = abs(part).mid()
            if size > self.peaks[i]:
                self.peaks[i] = size
            small = small and bool(size < self.limit * abs(self.sums[i].mid()))
        return small

    def quantities(self, chosen: HyperbolaPlan) -> dict[str, arb]:
        """Return the six quantities."""
        factor = arb(chosen.spacing) / arb.pi()
        three = (self.sums[0] * factor, self.sums[1] * factor, self.sums[2] * factor)
        return six_quantities(three, chosen.vertex, self.threshold)

    def cancellation(self) -> float:
        """Return the log of the largest term over the sum, where the quantity is not tiny."""
        scale = arb(self.threshold).exp()
        losses = [0.0]
        for value, peak, unit in zip(self.sums, self.peaks, (arb(1), scale, scale), strict=True):
            size = abs(value.mid())
            if size * unit > 1e-305 and size > 0:
                losses.append(float((peak / size).mid().log().mid()))
        return max(losses)


def _transform(point: Point, index: int, chosen: HyperbolaPlan) -> _Rotated | _Gaussian:
    phase = point.phases[index]
    if phase.full_batch:
        return _Gaussian(phase)
    depth = chosen.depth + math.log(point.total_steps)
    window = chosen.cumulants.window(index, chosen.vertex, depth + 10)
    return _Rotated(phase, window, chosen.variant.strip, depth)


class _Gaussian:
    """E exp(lambda L) of a step with p = 1."""

    def __init__(self, phase: Phase) -> None:
        self.square = phase.mu() ** 2

    def values(self, places: list[acb]) -> list[acb]:
        """Return the transform at each place."""
        return [(self.square * place * (place - 1) / 2).exp() for place in places]


class _Rotated:
    """E exp(lambda Y) of a step with p < 1, on nodes along Im w = psi made as they are needed."""

    def __init__(
        self, phase: Phase, window: tuple[float, float], strip: float, depth: float
    ) -> None:
        self.phase = phase
        self.depth = depth
        self.mu, self.log_odds = phase.mu(), phase.odds().log()
        reach = math.sqrt(2 * (depth + 10))
        low = min(window[0] - 6.0, -reach)
        high = max(window[1] + 2.0, reach, 45.0)
        mu = 1 / float(phase.noise)
        self.start = _log_loss(phase, low)
        stop = _log_loss(phase, high)
        # A tilt narrows the integrand, and more so off the real axis.
        narrowing = (window[1] - window[0]) / (2 * math.sqrt(2 * (depth + 10)))
        spread = mu * _log_slope(phase, max(window[1] + 2.0, reach)) * min(1.0, 0.75 * narrowing)
        strip = min(strip, math.sqrt(2 * depth) * spread)
        self.spacing = 2 * math.pi * strip / (depth + 6 + strip**2 / spread**2 / 2)
        self.nodes = math.ceil((stop - self.start) / self.spacing)
        if self.nodes > 60000:
            raise NotFeasibleError(f"hyperbola: {self.nodes} nodes in w")
        angle_step = strip / LINES_PER_STRIP
        lines = min(int((math.pi / 4 - 0.02) / angle_step) - LINES_PER_STRIP, 40)
        self.angles = angle_step * np.arange(-LINES_PER_STRIP, lines + LINES_PER_STRIP + 1)
        self.tables: dict[tuple[int, int], dict[int, tuple[acb, acb]]] = {}
        widest = 0.35 * math.sqrt(2 * depth) * mu / strip
        self.stretch = int(min(MOST_STRETCH, max(0.0, widest - 1)))
        self.constant = arb(self.spacing) / (self.mu * (2 * arb.pi()).sqrt())
        self._survey()

    def _survey(self) -> None:
        """Tabulate log g on a coarse grid of every line, and beyond it, in double precision."""
        self.every = max(1, min(8, self.nodes // 400))
        grid = self.start + self.spacing * self.every * np.arange(self.nodes // self.every + 1)
        self.coarse_w = np.concatenate([grid, grid[-1] + np.linspace(0.1, 7.0, 60)])
        self.inner = len(grid)
        self.coarse_y, self.coarse_log = [], []
        for psi in self.angles:
            w = self.coarse_w + 1j * psi
            self.coarse_y.append(np.exp(w))
            self.coarse_log.append(_log_density(self.phase, np.exp(w), w).real)

    def values(self, places: list[acb]) -> list[acb]:
        """Return the transform at each place."""
        rough = np.array([complex(place) for place in places])
        sizes = np.array(
            [
                [np.max(log_g + (lam * y).real) for lam in rough]
                for y, log_g in zip(self.coarse_y, self.coarse_log, strict=True)
            ]
        )
        side = LINES_PER_STRIP
        worst = np.maximum(sizes[: -2 * side], sizes[2 * side :])
        lines = side + np.argmin(worst, axis=0)
        return [
            self._value(place, lam, int(line))
            for place, lam, line in zip(places, rough, lines, strict=True)
        ]

    def _value(self, place: acb, rough: complex, line: int) -> acb:
        exponent = self.coarse_log[line] + (rough * self.coarse_y[line]).real
        inside = np.nonzero(exponent > exponent.max() - self.depth - 12)[0]
        step = self.every * self.spacing
        if inside[-1] >= self.inner:
            raise NotFeasibleError("hyperbola: a mode beyond the nodes")
        low, high = self.coarse_w[inside[0]] - step, self.coarse_w[inside[-1]] + step
        stage = max(math.floor((-math.log(abs(rough)) - CALM - self.start) / STAGE), -8)
        pivot = self.start + STAGE * stage
        table = self.tables.setdefault((line, stage), {})
        total = acb(0)
        for i in range(self._index(low, pivot) - 2, self._index(high, pivot) + 3):
            node = table.get(i)
            if node is None:
                node = table[i] = self._node(line, pivot, i)
            total += node[1] * (place * node[0]).exp()
        return total

    def _index(self, w: float, pivot: float) -> int:
        """Return the number of the node nearest to w from below."""
        low, high = min(w - pivot, 0.0), max(w - pivot, 0.0) + self.stretch
        while high - low > self.spacing / 2:
            middle = (low + high) / 2
            if middle - self.stretch * float(np.logaddexp(0.0, -middle)) > w - pivot:
                high = middle
            else:
                low = middle
        return math.floor(low / self.spacing)

    def _node(self, line: int, pivot: float, i: int) -> tuple[acb, acb]:
        """Return Y and the weight of a node.

        w = pivot + s - stretch * log(1 + e^-s): nodes lie wider apart below the pivot, where
        lambda Y is small and only the Gaussian factor of g varies.
        """
        s = i * arb(self.spacing)
        falling = (-s).exp()
        real = arb(pivot) + s - self.stretch * falling.log1p()
        slope = 1 + self.stretch * falling / (1 + falling)
        w = acb(real, float(self.angles[line]))
        y = w.exp()
        missing = -(-y).expm1()
        z = (y + missing.log() - self.log_odds) / self.mu + self.mu / 2
        density = (w - z * z / 2).exp() / missing
        return y, density * (slope * self.constant)


def _log_loss(phase: Phase, z: float) -> float:
    """Return w = log Y(z)."""
    mu = 1 / float(phase.noise)
    exponent = mu * z - mu**2 / 2 + log_odds(phase)
    if exponent < -30:
        return exponent
    return math.log(float(np.logaddexp(0.0, exponent)))


def _log_slope(phase: Phase, z: float) -> float:
    """Return dw / d(mu z), decreasing in z."""
    y = math.exp(_log_loss(phase, z))
    return 1.0 if y < 1e-9 else -math.expm1(-y) / y


def _log_density(
    phase: Phase, y: NDArray[np.complex128], w: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """Return log g(w) up to a constant."""
    mu = 1 / float(phase.noise)
    log_falling = np.log(-np.expm1(-y))
    z = (y + log_falling - log_odds(phase)) / mu + mu / 2
    return w - z * z / 2 - log_falling
