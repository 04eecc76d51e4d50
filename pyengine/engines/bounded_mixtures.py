"""Which compositions of mixtures of normals the convolution engine takes, and as what."""

from __future__ import annotations

from fractions import Fraction

from pyengine.engines.convolution import BoundedStep, BoundedSteps
from pyengine.laws.base import StepLaw
from pyengine.laws.normals import MixturePair

__all__ = ["bounded_mixtures"]

Terms = dict[Fraction, tuple[Fraction, Fraction]]


def bounded_mixtures(pair: tuple[tuple[StepLaw, int], ...]) -> tuple[BoundedSteps, bool] | None:
    """Return the steps of a pair and whether it is reversed; None where a loss is unbounded.

    One side of each step is N(0, 1), the same side of all, and the other one has a share of it, all
    other shifts being of one sign.
    """
    steps, orders = [], set()
    for law, number in pair:
        terms = _terms(law)
        if terms is None:
            return None
        found = [_bounded(terms, side) for side in (0, 1)]
        is_reversed = found[0] is None
        step = found[is_reversed]
        if step is None:
            return None
        steps.append((step, number))
        orders.add(is_reversed)
    return (tuple(steps), orders.pop()) if len(orders) == 1 else None


def _terms(law: StepLaw) -> Terms | None:
    """By shift the weights in A and in B, as exactly as they are known; of one alternative only."""
    exact = law.exact_mixtures()
    if exact is not None:
        return exact[0].terms if len(exact) == 1 else None
    found = law.mixtures()
    return _from_doubles(found[0]) if found is not None and len(found) == 1 else None


def _from_doubles(pair: MixturePair) -> Terms:
    terms: Terms = {}
    for side, normals in enumerate((pair.a, pair.b)):
        for shift, weight in zip(normals.shifts, normals.weights, strict=True):
            both = list(terms.get(Fraction(shift), (Fraction(0), Fraction(0))))
            both[side] += Fraction(weight)
            terms[Fraction(shift)] = (both[0], both[1])
    return terms


def _bounded(terms: Terms, plain: int) -> BoundedStep | None:
    """The step if the side ``plain`` is N(0, 1) and the other one has a share of it."""
    shifts = [shift for shift in sorted(terms, key=abs) if shift != 0]
    if any(terms[shift][plain] != 0 for shift in shifts) or not shifts:
        return None
    weights = [terms[shift][1 - plain] for shift in shifts]
    if not sum(weights) < 1 or min(shifts) < 0 < max(shifts):
        return None
    return BoundedStep(tuple(abs(float(shift)) for shift in shifts), tuple(weights))
