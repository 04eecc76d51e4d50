"""Gaussian steps with a closed form, as a law with knots that finite steps are composed with.

Narrow steps of the distribution function, far from each other, are found by bisection between
knots: those are where the loss is smallest, or its middle, and ends far out in both tails.
"""

from __future__ import annotations

import math

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.reference.atomic.law import ThresholdMasses
from pyengine.reference.balls import exact
from pyengine.reference.gaussian.closed_form import ClosedGaussian
from pyengine.reference.gaussian.steps import EqualSteps, offset

__all__ = ["NormalSource"]


class NormalSource:
    """What makes the law of one sampled Gaussian step, or of many that are not sampled.

    Parameters
    ----------
    phases : tuple of Phase
        A composition that `pyengine.reference.gaussian.closed_form.applies` accepts.
    """

    certified = True

    def __init__(self, phases: tuple[EqualSteps, ...]) -> None:
        self.phases = phases

    def bits(self, depth: float, variant: int) -> int:  # noqa: ARG002 - there is one
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 100

    def law(self, depth: float, variant: int) -> NormalLaw:
        """Return the law at the working precision."""
        return NormalLaw(self.phases, depth, self.bits(depth, variant))

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        sampled = not any(phase.full_batch for phase in self.phases)
        return (offset(self.phases) if sampled else -arb("inf")), arb("inf")

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)


class NormalLaw:
    """Tails by the normal law; no atoms."""

    cost = 1

    def __init__(self, phases: tuple[EqualSteps, ...], depth: float, bits: int) -> None:
        self.phases, self.depth = phases, depth
        self._law = ClosedGaussian(phases, bits)

    @cached_property
    def knots(self) -> list[arb]:
        """Places between which answers are searched."""
        reach = exact(math.ceil(math.sqrt(2 * 2.303 * (self.depth + 20))))  # in standard deviations
        if any(phase.full_batch for phase in self.phases):
            square = sum((phase.steps * phase.mu() ** 2 for phase in self.phases), arb(0))
            root = square.sqrt()
            low, high = -square / 2 - reach * root, square / 2 + reach * root
            return [low.mid(), arb(0), high.mid()]
        (phase,) = self.phases
        mu = phase.mu()
        top = (phase.odds() * (mu * reach + mu**2 / 2).exp()).log1p()
        floor = offset(self.phases)
        return [floor, (floor + top).mid()]

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        six = self._law.at(c)
        zero = arb(0)
        return ThresholdMasses(six.p_above, zero, six.p_below, six.q_above, zero, six.q_below)
