"""Gaussian steps with a closed form: a single step, or steps without sampling."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.reference.atomic.law import ThresholdMasses
from pyengine.reference.balls import upper_normal
from pyengine.reference.gaussian.steps import EqualSteps, offset

__all__ = [
    "ClosedGaussian",
    "NormalSource",
    "NormalTails",
    "SubstitutedNormalStep",
    "applies",
]

Four = tuple[arb, arb, arb, arb]


def applies(phases: tuple[EqualSteps, ...]) -> bool:
    """Whether a closed form covers the composition."""
    return sum(phase.steps for phase in phases) == 1 or all(phase.full_batch for phase in phases)


class ClosedGaussian:
    """Tails, by the normal law, of a composition that `applies` accepts."""

    def __init__(self, phases: tuple[EqualSteps, ...]) -> None:
        self.phases = phases
        self.full = all(phase.full_batch for phase in phases)

    def _root(self) -> arb:
        return sum((phase.steps * phase.mu() ** 2 for phase in self.phases), arb(0)).sqrt()

    def tails(self, c: arb) -> Four:
        """Return P(S > c), P(S <= c), Q(S > c), Q(S <= c)."""
        if self.full:
            root = self._root()
            under_p = c / root + root / 2
            under_q = under_p - root
            p_above, p_below = upper_normal(under_p), upper_normal(-under_p)
            return p_above, p_below, upper_normal(under_q), upper_normal(-under_q)
        (phase,) = self.phases
        away = c - offset(self.phases)
        if not away > 0:
            return arb(1), arb(0), arb(1), arb(0)
        mu, p, rest = phase.mu(), phase.exact_probability(), phase.complement()
        z = ((away.expm1() / phase.odds()).log() + mu**2 / 2) / mu
        p_above, p_below = upper_normal(z), upper_normal(-z)
        q_above = rest * p_above + p * upper_normal(z - mu)
        return p_above, p_below, q_above, rest * p_below + p * upper_normal(mu - z)

    def places(self, reach: int) -> list[arb]:
        """Return the losses at -reach, 0, reach standard deviations; or the least and the upper."""
        if self.full:
            root = self._root()
            low, high = (root * (root / 2 * sign + sign * reach) for sign in (-1, 1))
            return [low.mid(), arb(0), high.mid()]
        (phase,) = self.phases
        mu, floor = phase.mu(), offset(self.phases)
        top = (phase.odds() * (mu * reach + mu**2 / 2).exp()).log1p()
        return [floor, (floor + top).mid()]

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        return (-arb("inf") if self.full else offset(self.phases)), arb("inf")


class SubstitutedNormalStep:
    """One sampled step under substitution, p in (0, 1).

    With mu = 1/noise, P = (1 - p) N(0, 1) + p N(-mu, 1) and Q is its mirror image (Lebeda et al.,
    2024, Proposition 13), so both orders have the same answers.
    """

    def __init__(self, noise: float | Fraction, probability: float | Fraction) -> None:
        self.step = EqualSteps(noise, probability, 1)

    def tails(self, c: arb) -> Four:
        """Return P and Q above and below y, mu y = c/2 + asinh((1 - p) e^(mu²/2) sinh(c/2) / p)."""
        mu, p, rest = self.step.mu(), self.step.exact_probability(), self.step.complement()
        y = (c / 2 + (rest / p * (mu**2 / 2).exp() * (c / 2).sinh()).asinh()) / mu
        above, below = rest * upper_normal(y), rest * upper_normal(-y)
        return (
            above + p * upper_normal(y + mu),
            below + p * upper_normal(-y - mu),
            above + p * upper_normal(y - mu),
            below + p * upper_normal(mu - y),
        )

    def places(self, reach: int) -> list[arb]:
        """Return the middle loss, and those ``reach`` standard deviations out on both sides."""
        mu, p, rest = self.step.mu(), self.step.exact_probability(), self.step.complement()
        up, down = ((rest + p * (s * mu * (mu + reach) - mu**2 / 2).exp()).log() for s in (1, -1))
        top = (up - down).mid()
        return [-top, arb(0), top]

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        return -arb("inf"), arb("inf")


class NormalTails(Protocol):
    """Tails of a total loss in closed form."""

    def tails(self, c: arb) -> Four:
        """Return P(S > c), P(S <= c), Q(S > c), Q(S <= c)."""

    def places(self, reach: int) -> list[arb]:
        """Return increasing losses, from the least or -reach to reach standard deviations."""

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""


class NormalSource:
    """Closed tails as a law with knots; see `pyengine.reference.atomic.law.Source`.

    The knots are the ``places`` of the tails; bisection between them also finds thresholds where
    the distribution function has narrow steps far apart.
    """

    certified = True

    def __init__(self, law: NormalTails) -> None:
        self.closed = law
        self.ends = law.ends

    def bits(self, depth: float, variant: int) -> int:  # noqa: ARG002 - there is one
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 100

    def law(self, depth: float, variant: int) -> NormalLaw:  # noqa: ARG002
        """Return the law at the working precision."""
        return NormalLaw(self.closed, depth)

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)


class NormalLaw:
    """A law without atoms, by closed tails; see `pyengine.reference.atomic.law.AtomicLaw`."""

    cost = 1

    def __init__(self, closed: NormalTails, depth: float) -> None:
        self.closed, self.depth = closed, depth

    @cached_property
    def knots(self) -> list[arb]:
        """Places between which thresholds are searched, out to tails of 10^-(depth + 20)."""
        return self.closed.places(math.ceil(math.sqrt(2 * 2.303 * (self.depth + 20))))

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        p_above, p_below, q_above, q_below = self.closed.tails(c)
        return ThresholdMasses(p_above, arb(0), p_below, q_above, arb(0), q_below)
