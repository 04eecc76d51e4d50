"""Masses of steps with finitely many losses, in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx

from pyengine.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    FinitePair,
    GenericMechanism,
    RandomizedResponse,
    Step,
)
from pyengine.reference.balls import exact

__all__ = ["FINITE", "NOISE", "Masses", "masses", "sampled", "substituted"]


@dataclass(frozen=True)
class Masses:
    """Masses of one step under P (without the record) and Q (with it), by outcome.

    ``p`` and ``q`` are positive masses of the outcomes that both laws have; ``only_p`` and
    ``only_q`` are the masses of outcomes of one law alone; ``lost`` bounds the mass left out under
    either law.  If ``lattice``, the losses log(q/p) are equidistant, in the order of the lists.
    """

    p: list[arb]
    q: list[arb]
    only_p: arb
    only_q: arb
    lost: arb
    lattice: bool


# masses of the noise around 0, -shift and shift, and a bound on the mass left out
Shifted = tuple[list[arb], list[arb], list[arb], arb]


def masses(step: Step) -> Masses:
    """Return the masses of a step at the working precision."""
    return FINITE[type(step)](step)


def sampled(one: Masses, probability: float | Fraction) -> Masses:
    """Return the masses of a step on a Poisson sample of probability r: Q becomes (1 - r) P + r Q.

    Outcomes that only P had now have mass under both laws, and the loss log(1 - r).
    """
    r, rest = exact(probability), exact(1 - Fraction(probability))
    p, q = list(one.p), [rest * a + r * b for a, b in zip(one.p, one.q, strict=True)]
    if one.only_p > 0:
        p.insert(0, one.only_p)
        q.insert(0, rest * one.only_p)
    return Masses(p, q, arb(0), r * one.only_q, one.lost, len(p) <= 2)


def _finite_pair(step: FinitePair) -> Masses:
    return _from_pairs([Fraction(x) for x in step.p], [Fraction(x) for x in step.q])


def _from_pairs(p: list[Fraction], q: list[Fraction]) -> Masses:
    """Return the masses, with outcomes of equal loss merged and each law divided by its sum."""
    total_p, total_q = sum(p), sum(q)
    merged: dict[Fraction, list[Fraction]] = {}
    only_p = only_q = Fraction(0)
    for a, b in zip(p, q, strict=True):
        a, b = a / total_p, b / total_q
        if a > 0 and b > 0:
            entry = merged.setdefault(b / a, [Fraction(0), Fraction(0)])
            entry[0] += a
            entry[1] += b
        elif a > 0:
            only_p += a
        else:
            only_q += b
    ratios = sorted(merged)
    steps = {y / x for x, y in pairwise(ratios)}
    return Masses(
        [exact(merged[ratio][0]) for ratio in ratios],
        [exact(merged[ratio][1]) for ratio in ratios],
        exact(only_p),
        exact(only_q),
        arb(0),
        len(steps) <= 1,
    )


def _randomized_response(step: RandomizedResponse) -> Masses:
    truth = Fraction(step.truth_probability)
    other = (1 - truth) / (step.categories - 1)
    rest = [other * (step.categories - 2)] if step.categories > 2 else []
    return _from_pairs([truth, other, *rest], [other, truth, *rest])


def _generic(step: GenericMechanism) -> Masses:
    delta = exact(step.delta)
    keep = exact(1 - Fraction(step.delta))
    likely = keep / (1 + (-exact(step.epsilon)).exp())
    unlikely = keep / (1 + exact(step.epsilon).exp())
    if Fraction(step.delta) == 1:
        return Masses([], [], delta, delta, arb(0), True)
    return Masses([likely, unlikely], [unlikely, likely], delta, delta, arb(0), True)


def _discrete_laplace(step: DiscreteLaplaceMechanism) -> Masses:
    """Return the masses; each tail of the noise, where the loss is constant, is one outcome."""
    shift = step.sensitivity
    decay = (-1 / (exact(step.noise_multiplier) * shift)).exp()
    unit = (1 - decay) / (1 + decay)
    p = [1 / (1 + decay)]
    p += [unit * decay**x for x in range(1, shift)]
    p.append(decay**shift / (1 + decay))
    return Masses(p, p[::-1], arb(0), arb(0), arb(0), True)


def _discrete_gaussian(step: DiscreteGaussianMechanism) -> Masses:
    shift = step.sensitivity
    spread, reach = _scale(step)
    total, tail = _normaliser(spread, reach)
    places = range(-reach, reach + shift + 1)
    p = [(-(x**2) / (2 * spread**2)).exp() / total for x in places]
    return Masses(p, p[::-1], arb(0), arb(0), 2 * tail / total, True)


def _scale(step: DiscreteGaussianMechanism) -> tuple[arb, int]:
    """Return sigma, and the largest noise kept: weights beyond it are below 2^(-2 prec)."""
    spread = exact(step.noise_multiplier) * step.sensitivity
    return spread, int(float(spread) * (2.8 * ctx.prec) ** 0.5) + 2


def _normaliser(spread: arb, reach: int) -> tuple[arb, arb]:
    """Return the sum of all weights exp(-x^2/(2 sigma^2)), and a bound on those beyond one end."""
    total = 1 + 2 * sum(((-(x**2) / (2 * spread**2)).exp() for x in range(1, reach + 1)), arb(0))
    # beyond the reach a geometric series bounds the weights
    first = (-((reach + 1) ** 2) / (2 * spread**2)).exp()
    tail = first / (1 - (-(2 * reach + 3) / (2 * spread**2)).exp())
    return total + arb(0, (2 * tail).upper()), tail


def substituted(step: Step, probability: float | Fraction) -> Masses:
    """Return the masses of a step on a Poisson sample under substitution.

    P is (1 - r) D(0) + r D(-shift), Q is (1 - r) D(0) + r D(shift), where D(x) is the law of the
    noise around x and r the sampling probability.
    """
    r, rest = exact(probability), exact(1 - Fraction(probability))
    zero, down, up, lost = NOISE[type(step)](step)
    p = [rest * a + r * b for a, b in zip(zero, down, strict=True)]
    q = [rest * a + r * b for a, b in zip(zero, up, strict=True)]
    return Masses(p, q, arb(0), arb(0), lost, probability == 1)


def _three_laplaces(step: DiscreteLaplaceMechanism) -> Shifted:
    """Return the masses of noise around 0, -shift and shift, with each tail as one outcome."""
    shift = step.sensitivity
    decay = (-1 / (exact(step.noise_multiplier) * shift)).exp()
    unit = (1 - decay) / (1 + decay)

    def tail(x: int) -> arb:
        """Return the mass of the noise at x and above."""
        return decay**x / (1 + decay) if x > 0 else 1 - decay ** (1 - x) / (1 + decay)

    inner = range(1 - shift, shift)
    columns = [[unit * decay ** abs(x - at) for x in inner] for at in (0, -shift, shift)]
    ends = [(tail(shift + at), tail(shift - at)) for at in (0, -shift, shift)]
    zero, down, up = ([end[0], *row, end[1]] for row, end in zip(columns, ends, strict=True))
    return zero, down, up, arb(0)


def _three_gaussians(step: DiscreteGaussianMechanism) -> Shifted:
    """Return the masses of noise around 0, -shift and shift on one range of integers."""
    shift = step.sensitivity
    spread, reach = _scale(step)
    total, tail = _normaliser(spread, reach)
    places = range(-reach - shift, reach + shift + 1)
    zero, down, up = (
        [(-((x - at) ** 2) / (2 * spread**2)).exp() / total for x in places]
        for at in (0, -shift, shift)
    )
    return zero, down, up, 2 * tail / total


# functions that make the masses, by class of step
FINITE: dict[type[Step], Callable[[Any], Masses]] = {
    DiscreteGaussianMechanism: _discrete_gaussian,
    DiscreteLaplaceMechanism: _discrete_laplace,
    FinitePair: _finite_pair,
    GenericMechanism: _generic,
    RandomizedResponse: _randomized_response,
}
# the same for noise on the integers, around three places
NOISE: dict[type[Step], Callable[[Any], Shifted]] = {
    DiscreteGaussianMechanism: _three_gaussians,
    DiscreteLaplaceMechanism: _three_laplaces,
}
