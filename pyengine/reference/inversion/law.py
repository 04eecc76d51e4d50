"""The total loss of steps that are known by their transform: which contour answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.sums import FiniteSource
from pyengine.reference.balls import exact, key_of, log_magnitude, precision
from pyengine.reference.cumulants import Cumulants
from pyengine.reference.inversion.anchors import Anchors
from pyengine.reference.inversion.finite import FinitePart
from pyengine.reference.inversion.line import (
    Line,
    LinePlan,
    NotFeasibleError,
    Part,
    lower_tilt,
    make_plan,
)
from pyengine.reference.recent import Recent
from pyengine.reference.solve import Local
from pyengine.reference.tails import BallTails

__all__ = ["InvertedLaw"]

FEW_BITS, SHARE, NEARLY = 10, 0.5, 0.9
MARGIN = 8.0  # what a contour loses, as a logarithm, between an anchor and the ends of its cell
MOST_KEPT = 4
SPAN = 45.0
STRETCHES = (1.0, 1.15, 1.35, 1.6)  # a cut further out lowers the weight at it


class InvertedLaw:
    """The total loss of different independent steps; see `pyengine.reference.solve.AtomlessLaw`.

    Some of them may be ``finite``, if others make the total loss smooth.
    """

    def __init__(
        self, parts: tuple[tuple[Part, int], ...], finite: FiniteSource | None = None
    ) -> None:
        self._finite = finite or FiniteSource([])
        self.parts = (*parts, *((FinitePart(make), n) for make, n in self._finite.parts))
        self.steps = sum(number for _, number in parts)
        self._lower = min(part.highest for part, _ in parts) <= 1
        self._largest = max(getattr(part, "largest", 0.0) for part, _ in parts)
        self._shared: Recent[Local | None] = Recent(MOST_KEPT)
        self._own: Recent[Local] = Recent(MOST_KEPT)

    def measured(self, cut: float = SPAN, span: float = SPAN) -> Cumulants:
        """Return double-precision cumulants of the loss less its offset, of normal laws cut off."""
        rows = [(part.measure(cut, span), number) for part, number in self.parts]
        with precision(100):
            return Cumulants(rows, float(self.offset()))

    @cached_property
    def cumulants(self) -> Cumulants:
        """Double-precision cumulants that plan."""
        return self.measured()

    def offset(self) -> arb:
        """Return what the total loss exceeds the sum of Y by."""
        return sum((n * exact(part.ratio - 1).log1p() for part, n in self.parts), arb(0))

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""
        rows = [(part.ends(), n) for part, n in self.parts]
        low, high = (sum((n * ends[k] for ends, n in rows), arb(0)) for k in (0, 1))
        return low, high

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        low = self.ends()[0]
        return low if low.is_finite() and not self.infinite()[0] > 0 else None

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return self._finite.infinite()

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            log_target = min(log_target, -1e-3)
        if self._lower:
            return self._searched(name, log_target)
        if name.startswith("h_"):
            name = "q_above" if name == "h_qp" else "p_below"
        # Beyond the cut is little of the tail; without it, rare large steps mislead.
        cut = math.sqrt(2 * (9 - log_target + math.log(self.steps))) + self._largest
        return (self.offset() + self.measured(cut).threshold(name, log_target)).mid()

    def _searched(self, name: str, log_target: float) -> arb:
        """Return the same from rough answers, where there are no tilts above 0."""
        rising, depth = name in ("p_below", "q_below", "h_pq"), max(12 - log_target, 8.0)

        def above(c: float) -> bool:
            local = self._inversion(arb(c), depth, rough=True)
            with precision(local.bits):
                value = getattr(local.at(arb(c)), name)
                return (log_magnitude(value) if value > 0 else -math.inf) > log_target

        mean, variance = self.cumulants.mean_variance(-2e-3)
        low, high = mean - math.sqrt(variance), mean + math.sqrt(variance)
        for _ in range(60):  # a bracket, then halves
            if above(low) == rising:
                low -= high - low
            elif above(high) != rising:
                high += high - low
            else:
                break
        for _ in range(9):
            middle = (low + high) / 2
            low, high = (low, middle) if above(middle) == rising else (middle, high)
        return arb((low + high) / 2)

    def near(self, c: arb, depth: float) -> Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        if self._past(c):
            return _Beyond(self, int(depth / math.log(2)) + 64)
        place = None if self._lower else self._anchors.of(float(c - self.offset()))
        if place is not None:
            local = self._shared.get((place, depth), lambda: self._at_anchor(place, depth))
            if local is not None and min(_bits(local, c)) > NEARLY * depth / math.log(2):
                return local
        return self._own.get((key_of(c), depth), lambda: self._inversion(c, depth))

    @cached_property
    def _anchors(self) -> Anchors:
        return Anchors(self.cumulants, narrow=False)

    def _at_anchor(self, place: float, depth: float) -> Local | None:
        """Return what serves the neighbourhood of an anchor; None where nothing does."""
        with precision(int(2 * depth) + 200):
            c = (arb(place) + self.offset()).mid()
            try:
                return self._inversion(c, depth + MARGIN)
            except AccuracyError:
                return None

    def _past(self, c: arb) -> bool:
        """Whether no finite loss is larger."""
        return bool(c > self.ends()[1])

    def _inversion(self, c: arb, depth: float, *, rough: bool = False) -> Local:
        """Return what the first method with sharp bounds gives, or else the sharpest."""
        threshold = float(c - self.offset())
        best: tuple[float, Local] | None = None
        reason = NotFeasibleError("no method")
        for method in self._methods(threshold, float(c), depth):
            try:
                local = method()
            except NotFeasibleError as error:
                reason = error
                continue
            above, below, *_ = _bits(local, c)
            if rough or min(above, below) > SHARE * depth / math.log(2):
                return local
            if max(above, below) > FEW_BITS and (best is None or min(above, below) > best[0]):
                best = min(above, below), local
                if not self._few:
                    break
            reason = NotFeasibleError("the bounds are too wide")
        if best is not None:
            return best[1]
        raise AccuracyError(
            f"no ground truth for {self._named()} at a loss of {float(c):g}: {reason}; more "
            "steps or more noise make the loss smoother"
        )

    _few = False  # whether another contour may be quicker than a line

    def _named(self) -> str:
        return "the composition"

    def _methods(self, threshold: float, c: float, depth: float) -> Iterator[Callable[[], Local]]:
        """Yield ways of inversion, the quick ones first."""
        plan = self._planner(threshold, c, depth)
        for stretch in STRETCHES:
            yield partial(self._line, plan, stretch)

    def _planner(self, threshold: float, c: float, depth: float) -> Callable[[float], LinePlan]:
        """Return what plans a line for a cut that is stretched by a factor."""
        span = max(SPAN, 2 * math.sqrt(2 * depth))
        cut = self._cut(c, threshold, depth)
        return lambda stretch: make_plan(self.parts, threshold, depth, stretch * cut, span)

    def _line(self, planner: Callable[[float], LinePlan], stretch: float) -> Line:
        plan = planner(stretch)
        with precision(plan.bits):
            return Line(plan, self.offset(), self.infinite())

    def _cut(self, c: float, threshold: float, depth: float) -> float:
        """Return where normal laws may be cut off, from an estimate of the tail."""
        low, high = 8.0, SPAN + math.sqrt(2 * depth)
        for _ in range(9):
            cut = (low + high) / 2
            cumulants = self.measured(cut)
            if self._lower:
                tilt = lower_tilt(cumulants, threshold, depth)
                estimate = min(0.0, cumulants.value(tilt) - tilt * threshold)
            else:
                estimate = cumulants.chernoff(threshold)
            estimate += min(c, 0.0) - 6
            needed = math.sqrt(2 * max(depth + math.log(self.steps) - estimate, 0.0))
            low, high = (cut, high) if needed > cut else (low, cut)
        return 1.02 * high + self._largest


class _Beyond:
    """Where no finite loss is larger than the threshold."""

    certified = True

    def __init__(self, law: InvertedLaw, bits: int) -> None:
        self.law, self.bits = law, bits

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold; NaN where there are larger losses."""
        if not c > self.law.ends()[1]:
            return BallTails(*[arb("nan")] * 6)
        only_q = self.law.infinite()[1]
        rest = 1 - only_q
        return BallTails(arb(0), arb(1), only_q, rest, only_q, 1 - (-c).exp() * rest)


def _bits(local: Local, c: arb) -> list[int]:
    """Return how many bits of each quantity of `BallTails` are known at a threshold."""
    six = local.at(c)
    return [getattr(six, name).rel_accuracy_bits() for name in BallTails.__dataclass_fields__]
