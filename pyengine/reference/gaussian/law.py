"""Compositions of sampled Gaussian steps, by inversion on a line or on a hyperbola."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.reference.gaussian.hyperbola import Hyperbola
from pyengine.reference.gaussian.plan_hyperbola import make_bend
from pyengine.reference.gaussian.steps import EqualSteps, place_of, single_threshold
from pyengine.reference.inversion.anchors import Anchors
from pyengine.reference.inversion.law import STRETCHES, InvertedLaw
from pyengine.reference.inversion.line import NotFeasibleError
from pyengine.reference.solve import Local

__all__ = ["SampledGaussianLaw"]

ALONE = 100  # steps up to which one large loss alone may make the tail
MOST_FEW, MOST_KINDS = 1000, 10  # steps and kinds up to which a hyperbola may be quicker
QUICK = 1.5e6  # products of nodes in z and in t up to which a line comes first: about 0.5 s


class SampledGaussianLaw(InvertedLaw):
    """The total loss of a composition of sampled Gaussian steps of any kinds."""

    def __init__(self, phases: tuple[EqualSteps, ...]) -> None:
        super().__init__(tuple((phase.part(), phase.steps) for phase in phases))
        self.phases = phases
        self._few = self.steps <= MOST_FEW and len(phases) <= MOST_KINDS

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity of `BallTails` has about the given logarithm."""
        found = super().guess(name, log_target)
        upper = name.endswith("above") or name == "h_qp"
        if not upper or self.steps > ALONE or self.lowest() is None:
            return found
        if name == "h_qp":
            name, log_target = "q_above", min(log_target, -1e-3)
        alone = single_threshold(self.phases, name, log_target)
        smaller = self.measured(max(place_of(phase, alone) for phase in self.phases))
        rest = smaller.mean_variance(0.0)[0] * (1 - 1 / self.steps)
        offset = self.offset()
        return (offset + min(float(found - offset), 1.15 * (alone + rest))).mid()

    @cached_property
    def _anchors(self) -> Anchors:
        return Anchors(self.cumulants, narrow=self._few and self.lowest() is not None)

    def _methods(self, threshold: float, c: float, depth: float) -> Iterator[Callable[[], Local]]:
        """Yield functions that make an inversion, the quick ones first."""
        plan = self._planner(threshold, c, depth)
        lines = [partial(self._line, plan, stretch) for stretch in STRETCHES]

        def bend() -> Hyperbola:
            return Hyperbola(self.phases, make_bend(self.phases, threshold, depth))

        if self._few:
            with suppress(NotFeasibleError):
                if plan(1.0).products < QUICK:
                    yield lines.pop(0)
            yield bend
        yield from lines
        if not self._few:
            yield bend
