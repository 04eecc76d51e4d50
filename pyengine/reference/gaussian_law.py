"""Which method answers for a composition of subsampled Gaussian steps."""

from __future__ import annotations

import math
from functools import cached_property

from flint import arb

from pyengine.errors import AccuracyError
from pyengine.reference import closed_form
from pyengine.reference.cumulants import Cumulants
from pyengine.reference.gaussian import Phase, offset
from pyengine.reference.hyperbola import Hyperbola
from pyengine.reference.inversion import Line
from pyengine.reference.line import NotFeasibleError, make_plan
from pyengine.reference.solve import Local

__all__ = ["GaussianLaw"]

FEW_BITS = 10
STRETCHES = (1.0, 1.15, 1.35, 1.6)  # a cut further out lowers the weight at it


class GaussianLaw:
    """The total loss of a composition of subsampled Gaussian steps.

    Parameters
    ----------
    phases : tuple of Phase
        At least one, all different.
    """

    def __init__(self, phases: tuple[Phase, ...]) -> None:
        self.phases = phases
        self._last: tuple[float, float, Local] | None = None

    @cached_property
    def cumulants(self) -> Cumulants:
        """Double-precision cumulants that plan."""
        return Cumulants(self.phases)

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        if any(phase.full_batch for phase in self.phases):
            return None
        return offset(self.phases)

    def guess(self, name: str, log_target: float) -> float:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            return self._guess_divergence(name, log_target)
        return self.cumulants.threshold(name, log_target) + self.cumulants.shift

    def _guess_divergence(self, name: str, log_target: float) -> float:
        tail = "q_above" if name == "h_qp" else "p_below"
        return self.cumulants.threshold(tail, min(log_target, -1e-3)) + self.cumulants.shift

    def near(self, c: float, depth: float) -> Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        if closed_form.applies(self.phases):
            return closed_form.ClosedForm(self.phases, int(depth / math.log(2)) + 64)
        if self._last is not None and self._last[0] == c and self._last[1] >= depth:
            return self._last[2]
        local = self._inversion(c, depth)
        self._last = (c, depth, local)
        return local

    def _inversion(self, c: float, depth: float) -> Local:
        span = max(45.0, 2 * math.sqrt(2 * depth))
        threshold = float(arb(c) - offset(self.phases))
        cut = self._cut(c, threshold, depth)
        for stretch in STRETCHES:
            try:
                cumulants = Cumulants(self.phases, stretch * cut, span)
                line = Line(self.phases, make_plan(cumulants, threshold, depth))
            except NotFeasibleError as error:
                reason = error
                continue
            six = line.at(arb(c))
            if max(six.p_above.rel_accuracy_bits(), six.p_below.rel_accuracy_bits()) > FEW_BITS:
                return line
            reason = NotFeasibleError("the bounds on a vertical line are too wide")
        try:
            return Hyperbola(self.phases, c, depth)
        except NotFeasibleError as error:
            reason = error
        raise AccuracyError(
            f"no ground truth for {self.phases[0]!r} at a loss of {c:g}: {reason}; more steps or "
            "more noise make the loss smoother"
        )

    def _cut(self, c: float, threshold: float, depth: float) -> float:
        """Return where the normal law may be cut off, from an estimate of the tail."""
        log_steps = math.log(sum(phase.steps for phase in self.phases))
        low, high = 8.0, 45.0 + math.sqrt(2 * depth)
        for _ in range(9):
            cut = (low + high) / 2
            estimate = Cumulants(self.phases, cut).chernoff(threshold) - 6 + min(c, 0.0)
            needed = math.sqrt(2 * (depth + log_steps - estimate))
            low, high = (cut, high) if needed > cut else (low, cut)
        return 1.02 * high + max(1 / float(phase.noise) for phase in self.phases)
