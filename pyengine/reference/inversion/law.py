"""The total loss of steps that are known by their transform, and the choice of a contour."""

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

# a contour with at most FEW_BITS in both tails of P is of no use, one with SHARE of the bits asked
# for in both is taken at once, and that of an anchor is used if all answers have NEARLY all bits
FEW_BITS, SHARE, NEARLY = 10, 0.5, 0.9
MARGIN = 8.0  # natural log of the accuracy lost between an anchor and the ends of its cell
MOST_KEPT = 4  # contours, shared and own
SPAN = 45.0  # standard deviations at which planning truncates normal laws
STRETCHES = (1.0, 1.15, 1.35, 1.6)  # factors of the cut: farther out the tilted weight is less


class InvertedLaw:
    """The total loss of independent steps; see `pyengine.reference.solve.AtomlessLaw`.

    ``parts`` are steps and their numbers; ``finite`` are steps with atoms, which need others that
    make the total loss smooth.
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
        """Return cumulants of the sum of Y in doubles, with normal laws truncated."""
        rows = [(part.measure(cut, span), number) for part, number in self.parts]
        with precision(100):
            return Cumulants(rows, float(self.offset()))

    @cached_property
    def cumulants(self) -> Cumulants:
        """Cumulants of the sum of Y in doubles, for planning."""
        return self.measured()

    def offset(self) -> arb:
        """Return the total loss less the sum of Y."""
        return sum((n * exact(part.ratio - 1).log1p() for part, n in self.parts), arb(0))

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""
        rows = [(part.ends(), n) for part, n in self.parts]
        low, high = (sum((n * ends[k] for ends, n in rows), arb(0)) for k in (0, 1))
        return low, high

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if it is -inf."""
        low = self.ends()[0]
        return low if low.is_finite() and not self.infinite()[0] > 0 else None

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return self._finite.infinite()

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity of `BallTails` has about the given logarithm."""
        if name.startswith("h_"):
            log_target = min(log_target, -1e-3)
        if self._lower:
            return self._searched(name, log_target)
        if name.startswith("h_"):
            name = "q_above" if name == "h_qp" else "p_below"
        # little of the tail is beyond the cut; without it, rare large losses spoil the estimate
        cut = math.sqrt(2 * (9 - log_target + math.log(self.steps))) + self._largest
        return (self.offset() + self.measured(cut).threshold(name, log_target)).mid()

    def _searched(self, name: str, log_target: float) -> arb:
        """Return `guess` by bisection on rough answers, for laws without tilts above 0."""
        rising, depth = name in ("p_below", "q_below", "h_pq"), max(12 - log_target, 8.0)

        def above(c: float) -> bool:
            local = self._inversion(arb(c), depth, rough=True)
            with precision(local.bits):
                value = getattr(local.at(arb(c)), name)
                return (log_magnitude(value) if value > 0 else -math.inf) > log_target

        mean, variance = self.cumulants.mean_variance(-2e-3)
        low, high = mean - math.sqrt(variance), mean + math.sqrt(variance)
        for _ in range(60):  # find a bracket, then bisect
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
        """Prepare evaluation near a threshold with relative errors of about exp(-depth)."""
        if self._is_above_all(c):
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
        """Return the contour made for an anchor; None if there is none."""
        with precision(int(2 * depth) + 200):
            c = (arb(place) + self.offset()).mid()
            try:
                return self._inversion(c, depth + MARGIN)
            except AccuracyError:
                return None

    def _is_above_all(self, c: arb) -> bool:
        """Whether no finite loss is above c."""
        return bool(c > self.ends()[1])

    def _inversion(self, c: arb, depth: float, *, rough: bool = False) -> Local:
        """Return the first method whose bounds are sharp enough, or else the sharpest."""
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
            f"no ground truth at a loss of {float(c):g}: {reason}; more "
            "steps or more noise make the loss smoother"
        )

    _few = False  # whether a contour other than a line may do better

    def _methods(self, threshold: float, c: float, depth: float) -> Iterator[Callable[[], Local]]:
        """Yield functions that make an inversion, the quick ones first."""
        plan = self._planner(threshold, c, depth)
        for stretch in STRETCHES:
            yield partial(self._line, plan, stretch)

    def _planner(self, threshold: float, c: float, depth: float) -> Callable[[float], LinePlan]:
        """Return a function that plans a line for the cut times a factor."""
        span = max(SPAN, 2 * math.sqrt(2 * depth))
        cut = self._cut(c, threshold, depth)
        return lambda stretch: make_plan(self.parts, threshold, depth, stretch * cut, span)

    def _line(self, planner: Callable[[float], LinePlan], stretch: float) -> Line:
        plan = planner(stretch)
        with precision(plan.bits):
            return Line(plan, self.offset(), self.infinite())

    def _cut(self, c: float, threshold: float, depth: float) -> float:
        """Return where to truncate normal laws: the mass lost is negligible beside the tail."""
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
    """Tails at thresholds above all finite losses."""

    certified = True

    def __init__(self, law: InvertedLaw, bits: int) -> None:
        self.law, self.bits = law, bits

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold; NaN if finite losses may be above it."""
        if not c > self.law.ends()[1]:
            return BallTails(*[arb("nan")] * 6)
        only_q = self.law.infinite()[1]
        rest = 1 - only_q
        return BallTails(arb(0), arb(1), only_q, rest, only_q, 1 - (-c).exp() * rest)


def _bits(local: Local, c: arb) -> list[int]:
    """Return the relative accuracy in bits of each quantity of `BallTails` at a threshold."""
    six = local.at(c)
    return [getattr(six, name).rel_accuracy_bits() for name in BallTails.__dataclass_fields__]
