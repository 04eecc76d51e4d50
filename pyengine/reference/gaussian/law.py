"""Which method answers for a composition of subsampled Gaussian steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.balls import key_of, precision
from pyengine.reference.cumulants import Cumulants, place_of, single_threshold
from pyengine.reference.gaussian import closed_form
from pyengine.reference.gaussian.anchors import Anchors
from pyengine.reference.gaussian.hyperbola import Hyperbola
from pyengine.reference.gaussian.line_inversion import Line
from pyengine.reference.gaussian.plan_hyperbola import make_bend
from pyengine.reference.gaussian.plan_line import LinePlan, NotFeasibleError, make_plan
from pyengine.reference.gaussian.steps import EqualSteps, offset
from pyengine.reference.recent import Recent
from pyengine.reference.solve import Local
from pyengine.reference.tails import BallTails

__all__ = ["SampledGaussianLaw"]

FEW_BITS, SHARE, NEARLY = 10, 0.5, 0.9
MARGIN = 8.0  # what a contour loses, as a logarithm, between an anchor and the ends of its cell
MOST_KEPT = 4
ALONE = 100  # steps, of which one alone may make a tail
MOST_FEW, MOST_KINDS = 1000, 10
QUICK = 1.5e6  # products of nodes in z and in t; some 0.5 s
STRETCHES = (1.0, 1.15, 1.35, 1.6)  # a cut further out lowers the weight at it


class SampledGaussianLaw:
    """The total loss of a composition of subsampled Gaussian steps.

    Parameters
    ----------
    phases : tuple of Phase
        At least one, all different.
    """

    def __init__(self, phases: tuple[EqualSteps, ...]) -> None:
        self.phases = phases
        self.steps = sum(phase.steps for phase in phases)
        self._shared: Recent[Local | None] = Recent(MOST_KEPT)
        self._own: Recent[Local] = Recent(MOST_KEPT)

    @cached_property
    def cumulants(self) -> Cumulants:
        """Double-precision cumulants that plan."""
        return Cumulants(self.phases)

    @property
    def _few(self) -> bool:
        """Whether the hyperbola may be quicker than a line."""
        return self.steps <= MOST_FEW and len(self.phases) <= MOST_KINDS

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        if any(phase.full_batch for phase in self.phases):
            return None
        return offset(self.phases)

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            name = "q_above" if name == "h_qp" else "p_below"
            log_target = min(log_target, -1e-3)
        # Beyond the cut is little of the tail; without it, rare large steps mislead.
        cut = math.sqrt(2 * (9 - log_target + math.log(self.steps)))
        cut += max(1 / float(phase.noise) for phase in self.phases)
        cumulants = Cumulants(self.phases, cut)
        threshold = cumulants.threshold(name, log_target)
        if name.endswith("above") and self.steps <= ALONE and self.lowest() is not None:
            alone = single_threshold(self.phases, name, log_target)
            smaller = Cumulants(self.phases, max(place_of(x, alone) for x in self.phases))
            rest = smaller.mean_variance(0.0)[0] * (1 - 1 / self.steps)
            threshold = min(threshold, 1.15 * (alone + rest))
        return (offset(self.phases) + threshold).mid()

    def near(self, c: arb, depth: float) -> Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        if closed_form.applies(self.phases):
            return closed_form.ClosedGaussian(self.phases, int(depth / math.log(2)) + 64)
        place = self._anchors.of(float(c - offset(self.phases)))
        if place is not None:
            local = self._shared.get((place, depth), lambda: self._at_anchor(place, depth))
            if local is not None and min(_bits(local, c)) > NEARLY * depth / math.log(2):
                return local
        key = key_of(c), depth
        return self._own.get(key, lambda: self._inversion(c, depth, self._few))

    @cached_property
    def _anchors(self) -> Anchors:
        return Anchors(self.cumulants, narrow=self._few and self.lowest() is not None)

    def _at_anchor(self, place: float, depth: float) -> Local | None:
        """Return what serves the neighbourhood of an anchor; None where nothing does."""
        with precision(int(2 * depth) + 200):
            c = (arb(place) + offset(self.phases)).mid()
            try:
                return self._inversion(c, depth + MARGIN, self._few)
            except AccuracyError:
                return None

    def around(self, c: arb, depth: float) -> Local:
        """Prepare evaluation over a wide range of thresholds, which a vertical line does best."""
        if closed_form.applies(self.phases):
            return self.near(c, depth)
        return self._inversion(c, depth, few=False)

    def _inversion(self, c: arb, depth: float, few: bool) -> Local:
        """Return what the first method with sharp bounds gives, or else the sharpest."""
        threshold = float(c - offset(self.phases))
        best: tuple[float, Local] | None = None
        reason = NotFeasibleError("no method")
        for method in self._methods(threshold, float(c), depth, few):
            try:
                local = method()
            except NotFeasibleError as error:
                reason = error
                continue
            above, below, *_ = _bits(local, c)
            if min(above, below) > SHARE * depth / math.log(2):
                return local
            if max(above, below) > FEW_BITS and (best is None or min(above, below) > best[0]):
                best = min(above, below), local
                if not few:
                    break
            reason = NotFeasibleError("the bounds are too wide")
        if best is not None:
            return best[1]
        raise AccuracyError(
            f"no ground truth for {self.phases[0]!r} at a loss of {float(c):g}: {reason}; more "
            "steps or more noise make the loss smoother"
        )

    def _methods(
        self, threshold: float, c: float, depth: float, few: bool
    ) -> Iterator[Callable[[], Local]]:
        """Yield ways of inversion, the quick ones first."""
        span = max(45.0, 2 * math.sqrt(2 * depth))
        cut = self._cut(c, threshold, depth)

        def plan(stretch: float) -> LinePlan:
            cumulants = Cumulants(self.phases, stretch * cut, span)
            return make_plan(cumulants, threshold, depth)

        def line(stretch: float) -> Line:
            return Line(self.phases, plan(stretch))

        quick = False
        with suppress(NotFeasibleError):
            quick = plan(1.0).products < QUICK
        if quick:
            yield partial(line, 1.0)
        if few:
            yield lambda: Hyperbola(self.phases, make_bend(self.phases, threshold, depth))
        for stretch in STRETCHES[1:] if quick else STRETCHES:
            yield partial(line, stretch)
        if not few:
            yield lambda: Hyperbola(self.phases, make_bend(self.phases, threshold, depth))

    def _cut(self, c: float, threshold: float, depth: float) -> float:
        """Return where the normal law may be cut off, from an estimate of the tail."""
        low, high = 8.0, 45.0 + math.sqrt(2 * depth)
        for _ in range(9):
            cut = (low + high) / 2
            estimate = Cumulants(self.phases, cut).chernoff(threshold) - 6 + min(c, 0.0)
            needed = math.sqrt(2 * max(depth + math.log(self.steps) - estimate, 0.0))
            low, high = (cut, high) if needed > cut else (low, cut)
        return 1.02 * high + max(1 / float(phase.noise) for phase in self.phases)


def _bits(local: Local, c: arb) -> list[int]:
    """Return how many bits of each quantity of `BallTails` are known at a threshold."""
    six = local.at(c)
    return [getattr(six, name).rel_accuracy_bits() for name in BallTails.__dataclass_fields__]
