"""Inversion on a vertical line, proven for every law that bounds its own transform.

S = log dQ/dP is the sum of independent losses, M(lambda) = E_P exp(lambda S).  With F(lambda) =
M(lambda) exp(-lambda c), the tails of S and both divergences at c are 1/(2 pi i) times integrals of
F divided by lambda, lambda - 1 or their product along Re lambda = tilt.  The errors (derived in
docs/theory/ground_truth.md):

aliasing
    The trapezoidal rule in t gives the answer plus positive terms (Poisson summation), bounded by
    Chernoff bounds at the tilts ``plan.beyond`` or by the residue at a pole.
values
    Each part encloses its own transform at the nodes.
truncation in t
    Each part bounds its modulus from the last node on.
truncation of the laws
    Masses that parts leave out widen the answer.
rounding
    Ball arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from flint import acb, acb_mat, arb

from pyengine.reference.balls import exact, precision, spread
from pyengine.reference.cumulants import (
    Cumulants,
    NormalGrid,
    StepCumulants,
    WeightedLosses,
    away_from_poles,
    normal_places,
)
from pyengine.reference.tails import BallTails, integrated

__all__ = [
    "Line",
    "LineNodes",
    "LinePlan",
    "Modulus",
    "NotFeasibleError",
    "Part",
    "PlacedPart",
    "PlainGaussian",
    "make_plan",
    "turned_sums",
]

MOST_PRODUCTS = 4.0e8  # of nodes in t and in z, which limits the time
MOST_EXPONENTIALS = 4.0e6  # which limits time and memory
MOST_NODES = 60_000  # in t
MOST_EXPONENT = 1e12  # |tilt| times the largest loss, which doubles still resolve
Parts = tuple[tuple["Part", int], ...]


class NotFeasibleError(Exception):
    """A method cannot answer the question, or only at too great a cost."""


@dataclass(frozen=True)
class Modulus:
    """Bounds on |M(tilt + i t)| for all t >= T: ``largest``, and ``far``/t."""

    largest: arb
    far: arb


@dataclass(frozen=True)
class LineNodes:
    """Nodes t = 0, spacing, 2 spacing, ... of the line Re lambda = tilt.

    The values of M should have errors below exp(-depth) M(tilt).
    """

    tilt: arb
    spacing: arb
    count: int
    depth: float

    @property
    def reach(self) -> arb:
        """The first t that is not a node."""
        return self.count * self.spacing


class PlacedPart(Protocol):
    """The transform of one step on a line, at the working precision."""

    @property
    def lost(self) -> tuple[arb, arb]:
        """Bounds on the masses of P and of Q that it leaves out."""

    def values(self) -> list[acb]:
        """Return balls that enclose M at the nodes."""

    def log_above(self, theta: arb) -> arb:
        """Return a ball whose upper end is at least log M at a real theta."""

    def modulus(self, log_goal: float) -> Modulus:
        """Return bounds on |M| beyond the nodes, sharp to a relative error of exp(log_goal)."""


class LineSizes(Protocol):
    """Sizes of a transform on a line in double precision, for planning."""

    def best(self, t: float) -> tuple[float, Any]:
        """Return about the log of the best bound on |M(tilt + i t)| / M(tilt), and its path."""

    def placed(self, nodes: Any, line: LineNodes) -> PlacedPart:
        """Return the transform at the nodes of a line, at the working precision."""


class Part(Protocol):
    """One step of loss Y + log(ratio), known by the transform M(lambda) = E_P exp(lambda Y)."""

    @property
    def highest(self) -> float:
        """M is computed for Re lambda below it."""

    @property
    def ratio(self) -> Fraction:
        """Exponential of the offset of the loss."""

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""

    def measure(self, cut: float, span: float) -> StepCumulants:
        """Return the law of Y in doubles, with the normal law truncated to [-span, cut]."""

    def sizes(self, measure: Any, tilt: float) -> LineSizes:
        """Return sizes on a line, in doubles."""

    def nodes(
        self, measure: Any, tilts: list[float], reach: float, depth: float, cut: float
    ) -> Any:
        """Choose how the transform is computed: None, or nodes with their number ``count``.

        ``tilts`` are the line's and those of the bounds on aliases; ``reach`` is the largest t,
        ``depth`` is as in `LineNodes`, and ``cut`` is where the normal law may be truncated.
        """


class PlainGaussian:
    """N(0, 1) against N(mu, 1), mu = 1/noise: M = exp(mu^2 lambda (lambda - 1)/2); see `Part`."""

    highest, ratio = math.inf, Fraction(1)

    def __init__(self, noise: float | Fraction) -> None:
        self.noise = noise

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        return -arb("inf"), arb("inf")

    def measure(self, cut: float, span: float) -> WeightedLosses:
        """Return the law of the loss in doubles."""
        mu = 1 / float(self.noise)
        z, log_mass = normal_places(max(cut, span), span, mu)
        return WeightedLosses(log_mass, mu * z - mu**2 / 2)

    def sizes(self, measure: Any, tilt: float) -> PlainGaussian:  # noqa: ARG002
        """Return itself: the sizes are the same on every line."""
        return self

    def nodes(self, *_: Any) -> None:
        """Return None: a closed form has no nodes."""

    def best(self, t: float) -> tuple[float, None]:
        """Return the log of |M(tilt + i t)| / M(tilt)."""
        return -((t / float(self.noise)) ** 2) / 2, None

    def placed(self, nodes: None, line: LineNodes) -> _PlacedGaussian:  # noqa: ARG002
        """Return the transform at the nodes of a line."""
        return _PlacedGaussian(1 / exact(self.noise), line)


@dataclass(frozen=True)
class _PlacedGaussian:
    mu: arb
    line: LineNodes

    @property
    def lost(self) -> tuple[arb, arb]:
        return arb(0), arb(0)

    def values(self) -> list[acb]:
        half, line = self.mu**2 / 2, self.line
        places = (acb(line.tilt, k * line.spacing) for k in range(line.count))
        return [(half * s * (s - 1)).exp() for s in places]

    def log_above(self, theta: arb) -> arb:
        return self.mu**2 * theta * (theta - 1) / 2

    def modulus(self, log_goal: float) -> Modulus:  # noqa: ARG002 - it is exact
        """Return |M|; t exp(-mu^2 t^2/2) is at most 1/(mu sqrt(e))."""
        size = self.log_above(self.line.tilt).exp()
        fall = (-((self.mu * self.line.reach) ** 2) / 2).exp()
        return Modulus(size * fall, size / self.mu * arb(-0.5).exp())


@dataclass(frozen=True)
class LinePlan:
    """Discretisation of an inversion.

    - ``tilt``, ``spacing``, ``count``: the line, not through 0 or 1, and its nodes in t; aliases
      are 2 pi / spacing apart in the loss
    - ``depth``: values of M have relative errors of about exp(-depth)
    - ``parts``: sizes and nodes of each step, and the number of equal steps
    - ``beyond``: tilts below and above the line whose Chernoff bounds limit the aliases, or None
    - ``bits``: working precision
    """

    tilt: float
    spacing: float
    count: int
    depth: float
    parts: list[tuple[LineSizes, Any, int]]
    beyond: tuple[float | None, float | None]
    bits: int

    @property
    def products(self) -> int:
        """Number of nodes in t times the number of nodes of all transforms."""
        return self.count * _nodes(self.parts)


def make_plan(parts: Parts, threshold: float, depth: float, cut: float, span: float) -> LinePlan:
    """Choose the discretisation, in double precision; nothing here needs a proof.

    ``threshold`` is that of the sum of Y, exp(-``depth``) the relative accuracy aimed at; normal
    laws are truncated to [-span, cut].  NotFeasibleError if the tilted weight has a second mode
    beyond the cut, or too many nodes would be needed.
    """
    measures = [part.measure(cut, span) for part, _ in parts]
    numbers = [number for _, number in parts]
    cumulants = Cumulants(list(zip(measures, numbers, strict=True)))
    highest = min(part.highest for part, _ in parts)
    grids = [measure for measure in measures if isinstance(measure, NormalGrid)]
    if highest > 1:
        saddle = cumulants.saddle(threshold)
        sd = math.sqrt(cumulants.mean_variance(saddle)[1])
        if sd == 0:
            raise NotFeasibleError("degenerate saddle point")
        tilt = away_from_poles(saddle, 1 / sd)
        if any(grid.runs_off(tilt, depth) for grid in grids):
            tilt = away_from_poles(_negligible_at_ends(grids, tilt, depth), 1 / sd)
    else:
        tilt = lower_tilt(cumulants, threshold, depth)
    # where the tilt is far from the saddle point, terms are larger than the answer
    excess = max(0.0, cumulants.value(tilt) - tilt * threshold)
    depth += excess
    period, beyond = _period(cumulants, tilt, threshold, depth + 4, highest)
    steps = sum(numbers)
    deep = depth + math.log(steps) + 3
    all_sizes = [
        part.sizes(measure, tilt) for (part, _), measure in zip(parts, measures, strict=True)
    ]
    sd = math.sqrt(cumulants.mean_variance(tilt)[1])
    reach = _reach(all_sizes, numbers, depth, 1 / sd)
    nodes = reach * period / (2 * math.pi)
    if not nodes < MOST_NODES:
        raise NotFeasibleError(
            f"an inversion would take {nodes:,.0f} nodes, at most {MOST_NODES:,} are feasible"
        )
    count = math.ceil(nodes) + 1
    tilts = [tilt, *(x for x in beyond if x is not None)]
    if grids and max(map(abs, tilts)) * max(float(g.loss[-1]) for g in grids) > MOST_EXPONENT:
        raise NotFeasibleError("a second mode")
    rows = [
        (sizes, part.nodes(measure, tilts, reach, deep, cut), number)
        for sizes, (part, number), measure in zip(all_sizes, parts, measures, strict=True)
    ]
    total = _nodes(rows)
    if total * count > MOST_PRODUCTS or 2 * total * math.sqrt(count) > MOST_EXPONENTIALS:
        raise NotFeasibleError(f"{count} nodes in t and {total} in z would be needed")
    size = 1 + (abs(tilt) + reach) * (1 + abs(threshold))
    bits = int((depth + math.log(steps) + math.log(size)) / math.log(2)) + 40
    return LinePlan(tilt, 2 * math.pi / period, count, deep, rows, beyond, bits)


def _nodes(parts: list[tuple[LineSizes, Any, int]]) -> int:
    return sum(nodes.count for _, nodes, _ in parts if nodes is not None)


def lower_tilt(cumulants: Cumulants, threshold: float, depth: float) -> float:
    """Return a tilt below 0, for laws whose transform is computed there only."""
    mean, variance = cumulants.mean_variance(-2e-3)
    tilt = -math.sqrt(depth) / 2 / math.sqrt(variance)
    if threshold < mean:
        low, high = -1.0, -2e-3
        while cumulants.mean_variance(low)[0] > threshold and low > -1e6:
            low *= 2
        for _ in range(40):
            middle = (low + high) / 2
            above = cumulants.mean_variance(middle)[0] > threshold
            low, high = (low, middle) if above else (middle, high)
        tilt = min(tilt, high)
    return max(min(tilt, -0.05), -1e5)


def _negligible_at_ends(grids: list[NormalGrid], tilt: float, depth: float) -> float:
    """Return the largest tilt in [0, tilt] whose weight is negligible at the ends of the grids."""
    low, high = 0.0, tilt
    for _ in range(40):
        middle = (low + high) / 2
        off = any(grid.runs_off(middle, depth) for grid in grids)
        low, high = (low, middle) if off else (middle, high)
    return low


def _period(
    cumulants: Cumulants, tilt: float, threshold: float, depth: float, highest: float
) -> tuple[float, tuple[float | None, float | None]]:
    """Return a period of the loss with aliases below exp(-depth), relatively, and the tilts."""
    base = cumulants.value(tilt) - tilt * threshold
    sd = math.sqrt(cumulants.mean_variance(tilt)[1])
    if not sd > 1e-300:
        raise NotFeasibleError("degenerate saddle point")
    # by pole: relative to the tail of P (0) or Q (1)
    bases = {0.0: base, 1.0: base + threshold + cumulants.shift}
    pole_depth = {p: depth - min(b, 0.0) for p, b in bases.items()}
    sides, chosen = [], []
    for sign in (-1.0, 1.0):
        poles = [p for p in (0.0, 1.0) if (p - tilt) * sign > 0]
        bounds = [pole_depth[p] / abs(p - tilt) for p in poles]
        best = None
        if len(poles) < 2:
            trials = [tilt + sign * g / sd for g in np.geomspace(0.1, 60.0, 24)]
            trials = [x for x in trials if x < highest]
            values = [cumulants.value(x) - x * threshold - base for x in trials]
            periods = [(depth + v) / abs(x - tilt) for x, v in zip(trials, values, strict=True)]
            best = trials[int(np.argmin(periods))]
            bounds.append(min(periods))
        sides.append(max(bounds))
        chosen.append(best)
    return max(sides), (chosen[0], chosen[1])


def _reach(all_sizes: list[LineSizes], numbers: list[int], depth: float, unit: float) -> float:
    """Return a t beyond which |M| is below exp(-depth) M(tilt) for the whole composition."""

    def total(t: float) -> float:
        return sum(n * one.best(t)[0] for one, n in zip(all_sizes, numbers, strict=True))

    high = unit
    while total(high) > -depth:
        high *= 2
        if high > 1e7 * unit:
            raise NotFeasibleError("the transform falls too slowly")
    low = high / 2
    while high / low > 1.03:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if total(middle) <= -depth else (middle, high)
    return high


class Line:
    """A transform on a line, for inversion at any threshold; see `pyengine.reference.solve.Local`.

    Answers are valid everywhere and sharp near the threshold of the plan.  ``offset`` is the total
    loss less the sum of Y; ``infinite`` are the masses that only P, and only Q, has.
    """

    certified = True

    def __init__(self, plan: LinePlan, offset: arb, infinite: tuple[arb, arb]) -> None:
        self.plan, self.bits, self.offset, self.infinite = plan, plan.bits, offset, infinite
        with precision(plan.bits):
            self._prepare()

    def _prepare(self) -> None:
        plan = self.plan
        self.line = line = LineNodes(arb(plan.tilt), arb(plan.spacing), plan.count, plan.depth)
        places = [acb(line.tilt, k * line.spacing) for k in range(plan.count)]
        power = [acb(1)] * plan.count
        self.lost_p, self.lost_q = arb(0), arb(0)
        self.log_beyond = [arb(0), arb(0)]
        bounds = []
        for sizes, nodes, number in plan.parts:
            one = sizes.placed(nodes, line)
            power = [x * _power(y, number) for x, y in zip(power, one.values(), strict=True)]
            bounds.append((one.modulus(-math.log(1e3 * number)), number))
            for side, theta in enumerate(plan.beyond):
                if theta is not None:
                    self.log_beyond[side] += number * one.log_above(arb(theta))
            lost_p, lost_q = one.lost
            self.lost_p += number * lost_p
            self.lost_q += number * lost_q
        self.rest = _rest(bounds, line)
        power[0] /= 2
        rows = [a / s for a, s in zip(power, places, strict=True)]
        rows += [a / (s - 1) for a, s in zip(power, places, strict=True)]
        rows += [a / (s * (s - 1)) for a, s in zip(power, places, strict=True)]
        self._kernels = acb_mat(3, plan.count, rows)

    def at(self, c: arb) -> BallTails:
        """Return enclosures of tails and divergences at a threshold.

        Parameters
        ----------
        c : arb
            The threshold of the total loss.
        """
        with precision(self.bits):
            return self._at(c)

    def _at(self, c: arb) -> BallTails:
        line, tilt = self.line, self.line.tilt
        threshold = c - self.offset
        sums = self._kernels * acb_mat(line.count, 1, _turns(line, threshold))
        scale = (-tilt * threshold).exp() / arb.pi()
        tail = spread(scale * self.rest)
        scale *= line.spacing
        zero, one, both = self._aliases(threshold, c)
        over_zero = sums[0, 0].real * scale + tail + zero
        over_one = sums[1, 0].real * scale + tail + one
        over_both = sums[2, 0].real * scale + tail / line.reach + both
        lost = self.lost_p, self.lost_q
        return integrated(tilt, over_zero, over_one, over_both, c, lost, self.infinite)

    def _aliases(self, threshold: arb, c: arb) -> tuple[arb, arb, arb]:
        """Bound the aliases of the three integrals."""
        period = 2 * arb.pi() / self.line.spacing
        tilt = self.line.tilt
        chernoff = []
        for theta, log_moment in zip(self.plan.beyond, self.log_beyond, strict=True):
            if theta is None:
                chernoff.append(arb("inf"))
            else:
                gap = abs(arb(theta) - tilt)
                size = (log_moment - arb(theta) * threshold).exp()
                chernoff.append(size * _geometric(gap * period))
        below, above = chernoff
        # on the side of a pole the integral at a shifted threshold is a tail, at most 1 in modulus
        at_zero = _geometric(abs(tilt) * period)
        at_one = (-c).exp() * _geometric(abs(tilt - 1) * period)
        if tilt < 0:
            p, q = below + at_zero, below + at_one
            both = below + at_zero
        elif tilt < 1:
            p, q = at_zero + above, below + at_one
            both = at_zero + at_one
        else:
            p, q = at_zero + above, at_one + above
            both = at_one + above
        return spread(p), spread(q), spread(both)


def _turns(line: LineNodes, threshold: arb) -> list[acb]:
    """Return exp(-i t c') at the nodes, each as a product of two, so that radii do not pile up."""
    giant = math.isqrt(line.count - 1) + 1
    steps = [acb(0, -k * line.spacing * threshold).exp() for k in range(giant)]
    leaps = [acb(0, -k * giant * line.spacing * threshold).exp() for k in range(giant)]
    return [a * b for a in leaps for b in steps][: line.count]


def _rest(bounds: list[tuple[Modulus, int]], line: LineNodes) -> arb:
    """Bound the sum of spacing |M|/t over the t >= T that are left out.

    With X the largest far/largest of all parts, the modulus of a part is at most ``largest``, and
    from X on at most largest X/t.  The sum of spacing/t up to X is at most log(X/T) + spacing/T,
    and the sum of spacing X^n/t^(n+1) beyond it at most 1/n.
    """
    near, place, steps = arb(1), line.reach, 0
    for one, number in bounds:
        near *= one.largest**number
        if one.far.is_finite():
            place = place.max(one.far / one.largest)
            steps += number
    if steps == 0:
        return arb("inf")
    return near * ((place / line.reach).log() + 1 / arb(line.count) + 1 / arb(steps))


def _geometric(rate: arb) -> arb:
    """Return the sum of exp(-j rate) over j >= 1."""
    return 1 / rate.expm1() if rate > 0 else arb("inf")


def _power(base: acb, exponent: int) -> acb:
    result = base**exponent
    if result.is_finite():
        return result
    return acb(spread(abs(base) ** exponent), spread(abs(base) ** exponent))


def turned_sums(losses: list[arb], weights: list[arb], spacing: arb, count: int) -> list[acb]:
    """Return the sums of weight exp(i t loss) at t = 0, spacing, ..., by a product of matrices.

    t = (j giant + k) spacing with j, k < giant, where giant is about the root of the count.
    """
    giant = math.isqrt(count - 1) + 1
    small: list[acb] = []
    columns = []
    for loss, weight in zip(losses, weights, strict=True):
        small.extend(acb(0, j * spacing * loss).exp() for j in range(giant))
        leap = giant * spacing * loss
        columns.append([weight * acb(0, j * leap).exp() for j in range(giant)])
    large = [column[j] for j in range(giant) for column in columns]
    nodes = len(losses)
    product = acb_mat(giant, nodes, large) * acb_mat(nodes, giant, small)
    return list(product.entries())[:count]
