"""Inversion on a hyperbola, for transforms that decay too slowly on a vertical line; an estimate.

For few steps or rare large steps the transform decays slowly.  Because Y = L - log(1 - p) >= 0, the
path of integration may bend to the right, where exp(-lambda c') decays.  There E exp(lambda Y) =
integral of g(w) exp(lambda e^w) dw, w = log Y, is taken along Im w = psi, with psi chosen for each
lambda so that the integrand neither grows nor oscillates; psi stays below pi/4, where the Gaussian
factor of g stops decaying.

Nothing bounds the errors of the discretisation.  The error of an answer is ten times the difference
of two runs in which contour, spacings, depth and precision all differ, and their rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from pyengine.reference.balls import precision, spread
from pyengine.reference.cumulants import Cumulants, away_from_poles, log_odds
from pyengine.reference.gaussian import Phase, offset
from pyengine.reference.line import NotFeasibleError
from pyengine.reference.six import Six

__all__ = ["Hyperbola"]

MOST_NODES = 4000
BLOCK = 24
MOST_LOST = 170.0
LINES_PER_STRIP = 2
CALM, STAGE = 6.0, 2.0
MOST_STRETCH = 15.0
LEAST_DEPTH = 46.0  # what the variants reach as they are


@dataclass(frozen=True)
class Variant:
    """The free choices of a run.

    Parameters
    ----------
    pole_distance : float
        Smallest distance of the vertex from a pole, in units of 1/sd.
    scale : float
        Scale of the hyperbola, in units of 1/sd.
    angle : float
        Angle between its asymptote and the vertical.
    spacing : float
        Step of the trapezoidal rule along the hyperbola.
    offset : float
        0 puts a node on the vertex, 0.5 half a step beside it.
    strip : float
        Half width of the strip of analyticity used for the rule in w.
    depth : float
        Natural log of the relative error aimed at.
    extra_bits : int
        Added to the working precision.
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
    Variant(1.0, 4.0, 0.35, 0.027, 0.0, 0.20, 50.0, 0),
    Variant(1.2, 6.0, 0.31, 0.023, 0.5, 0.17, 53.0, 24),
    Variant(0.8, 10.0, 0.30, 0.013, 0.0, 0.21, 54.0, 40),
    Variant(1.1, 13.0, 0.34, 0.010, 0.5, 0.19, 52.0, 64),
    Variant(0.9, 22.0, 0.29, 0.0055, 0.0, 0.22, 54.0, 80),
    Variant(1.1, 28.0, 0.33, 0.0042, 0.5, 0.18, 56.0, 90),
)


@dataclass(frozen=True)
class _Plan:
    """Vertex, scale, depth and precision of a run."""

    vertex: float
    scale: float
    spacing: float
    depth: float
    bits: int
    variant: Variant
    cumulants: Cumulants


class Hyperbola:
    """Two runs that share no discretisation, near a threshold.

    Parameters
    ----------
    phases : tuple of Phase
        The composition.
    c : float
        The threshold of the total loss.
    depth : float
        Natural logarithm of the relative precision aimed at.

    Raises
    ------
    NotFeasibleError
        If the terms cancel too much, or too many nodes would be needed.
    """

    certified = False

    def __init__(self, phases: tuple[Phase, ...], c: float, depth: float) -> None:
        cumulants = Cumulants(phases)
        reason = NotFeasibleError("no hyperbola")
        for first in range(0, len(VARIANTS), 2):
            try:
                self.runs = [
                    _Run(phases, c, cumulants, _deepened(variant, depth))
                    for variant in VARIANTS[first : first + 2]
                ]
            except NotFeasibleError as error:
                reason = error
                continue
            self.bits = max(run.bits for run in self.runs)
            return
        raise reason

    def at(self, c: arb) -> Six:
        """Return both runs' values as balls; sharp near the threshold of the plan."""
        one, two = (run.at(c) for run in self.runs)
        with precision(self.bits):
            return Six(
                *(
                    getattr(two, name) + spread(10 * (getattr(one, name) - getattr(two, name)))
                    for name in Six.__dataclass_fields__
                )
            )


def _deepened(variant: Variant, depth: float) -> Variant:
    deep = variant.depth + max(0.0, depth - LEAST_DEPTH)
    return replace(variant, depth=deep, spacing=variant.spacing * variant.depth / deep)


def _plan(phases: tuple[Phase, ...], c: float, cumulants: Cumulants, variant: Variant) -> _Plan:
    """Choose vertex and scale of a run."""
    threshold = float(arb(c) - offset(phases))
    saddle = cumulants.saddle(threshold)
    quiet = cumulants.quiet_tilt(saddle, threshold)
    sd = math.sqrt(cumulants.mean_variance(quiet)[1])
    if sd == 0:
        raise NotFeasibleError("degenerate saddle point")
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
        raise NotFeasibleError(f"cancellation by exp({lost:.0f})")
    depth = variant.depth + max(0.0, lost - 10)
    spacing = min(spacing, 1.1 * variant.spacing * variant.depth / depth)
    steps = sum(phase.steps for phase in phases)
    magnitude = math.log2(1 + abs(vertex * threshold)) + math.log2(steps)
    bits = int(1.45 * depth + magnitude) + 50 + variant.extra_bits
    return _Plan(vertex, scale, spacing, depth, bits, variant, cumulants)


class _Run:
    """One run: the nodes of the contour with the transform at each."""

    def __init__(
        self, phases: tuple[Phase, ...], c: float, cumulants: Cumulants, variant: Variant
    ) -> None:
        chosen = _plan(phases, c, cumulants, variant)
        lost = 0.0
        for _ in range(4):
            with precision(chosen.bits):
                self._integrate(phases, arb(c), chosen)
                lost = self._cancellation(arb(c))
            allowed = chosen.depth - chosen.variant.depth
            if lost < allowed + 12:
                return
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
        raise NotFeasibleError(f"cancellation by exp({lost:.0f})")

    def _integrate(self, phases: tuple[Phase, ...], c: arb, chosen: _Plan) -> None:
        """Take nodes along the contour until their terms are negligible at a threshold."""
        self.chosen, self.bits = chosen, chosen.bits
        variant = chosen.variant
        self.offset = offset(phases)
        threshold = c - self.offset
        transforms = [_transform(phases, i, chosen) for i in range(len(phases))]
        angle, scale = arb(variant.angle), arb(chosen.scale)
        corner = arb(chosen.vertex) - scale * angle.sin()
        self.places, self.terms = list[acb](), list[acb]()
        sums, limit, quiet = [arb(0)] * 3, arb(math.exp(-variant.depth)), 0
        for first in range(0, MOST_NODES, BLOCK):
            turned = [
                acb(angle, (k + arb(variant.offset)) * arb(chosen.spacing))
                for k in range(first, first + BLOCK)
            ]
            places = [corner + scale * x.sin() for x in turned]
            moments = [transform.values(places) for transform in transforms]
            for j, (x, place) in enumerate(zip(turned, places, strict=True)):
                term = acb(0, 1) * scale * x.cos()
                for phase, values in zip(phases, moments, strict=True):
                    term *= values[j] ** phase.steps
                if first + j == 0 and variant.offset == 0.0:
                    term /= 2
                self.places.append(place)
                self.terms.append(term)
                grown = term * (-place * threshold).exp()
                small = True
                for i, kernel in enumerate(_kernels(place)):
                    part = grown / kernel
                    sums[i] += part.imag
                    small = small and bool(abs(part).mid() < limit * abs(sums[i].mid()))
                quiet = quiet + 1 if small else 0
            if quiet >= BLOCK:
                return
        raise NotFeasibleError("too many nodes on a hyperbola")

    def _parts(self, c: arb) -> list[list[acb]]:
        threshold = c - self.offset
        grown = [
            term * (-place * threshold).exp()
            for place, term in zip(self.places, self.terms, strict=True)
        ]
        rows = [_kernels(place) for place in self.places]
        return [[x / row[i] for x, row in zip(grown, rows, strict=True)] for i in range(3)]

    def at(self, c: arb) -> Six:
        """Return tails and divergences; the radii cover rounding only."""
        with precision(self.bits):
            factor = arb(self.chosen.spacing) / arb.pi()
            zero, one, both = (
                factor * sum((x.imag for x in parts), arb(0)) for parts in self._parts(c)
            )
            return _six(zero, one, both, self.chosen.vertex, c)

    def _cancellation(self, c: arb) -> float:
        """Return the log of the largest term over the sum, where the quantity is not tiny."""
        grow = c.exp()
        losses = [0.0]
        for parts, unit in zip(self._parts(c), (arb(1), grow, grow), strict=True):
            size = abs(sum((x.imag for x in parts), arb(0)).mid())
            peak = max((abs(x).mid() for x in parts), key=lambda x: x)
            if size * unit > 1e-305 and size > 0:
                losses.append(float((peak / size).mid().log().mid()))
        return max(losses)


def _kernels(place: acb) -> tuple[acb, acb, acb]:
    return place, place - 1, place * (place - 1)


def _six(zero: arb, one: arb, both: arb, position: float, c: arb) -> Six:
    """Turn the three contour integrals into tails and divergences, adding residues."""
    scale = c.exp()
    one = one * scale
    p_above, p_below = (1 + zero, -zero) if position < 0 else (zero, 1 - zero)
    q_above, q_below = (1 + one, -one) if position < 1 else (one, 1 - one)
    if position > 1:
        h_qp, h_pq = scale * both, both - (-c).expm1()
    elif position > 0:
        h_qp, h_pq = scale * both + 1, both + 1
    else:
        h_qp, h_pq = scale * both - c.expm1(), both
    return Six(p_above, p_below, q_above, q_below, h_qp, h_pq)


def _transform(phases: tuple[Phase, ...], index: int, chosen: _Plan) -> _Rotated | _Gaussian:
    phase = phases[index]
    if phase.full_batch:
        return _Gaussian(phase)
    depth = chosen.depth + math.log(sum(phase.steps for phase in phases))
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
            raise NotFeasibleError(f"{self.nodes} nodes in w")
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
            raise NotFeasibleError("a mode beyond the nodes")
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
