"""Sampled Gaussian steps among the laws of a composition, those of groups included."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pyengine.engines.answers import Triple
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.sector import Kinds, Number, Rate
from pyengine.laws.base import StepLaw

__all__ = ["Sampled", "sampled_steps"]

LARGEST_GROUP = 32  # that laws on pieces are made for
NEAR = Fraction(1, 2**90)  # of itself, what a shift may be off from a multiple of the first one
Laws = tuple[tuple[StepLaw, int], ...]
Step = tuple[Number, Rate, bool]  # noise, rate, and whether A is the law with the record


class Sampled(NamedTuple):
    """The sampled Gaussian steps of one order, and all other steps.

    Parameters
    ----------
    kinds : tuple
        As laws on pieces take them.
    is_reversed : bool
        Whether A is the law with the record.
    end : tuple of float
        Minus their smallest loss where it is not, and two numbers that it lies between.
    laws, others : tuple
        Their laws, and those of all other steps.
    pair : GaussianPair or None
        The same where none is of a group.
    """

    kinds: Kinds
    is_reversed: bool
    end: Triple
    laws: Laws
    others: Laws
    pair: GaussianPair | None


def sampled_steps(laws: Laws, *, groups: bool = True) -> Sampled | None:
    """Return the sampled Gaussian steps whose numbers are known, and those of groups if asked.

    None where there are none, or of both orders.
    """

    def known_step(law: StepLaw) -> Step | None:
        return _sampled_gaussian(law) or (_sampled_group(law) if groups else None)

    found = [(known_step(law), law, n) for law, n in laws]
    known = [(*own, n) for own, _, n in found if own is not None]
    own_laws = tuple((law, n) for own, law, n in found if own is not None)
    others = tuple((law, n) for own, law, n in found if own is None)
    if len({is_reversed for _, _, is_reversed, _ in known}) != 1:
        return None
    is_reversed = known[0][2]
    kinds = tuple((noise, rate, n) for noise, rate, _, n in known)
    # probabilities that any record of a group is in a batch
    some = [1 - rate[0] if isinstance(rate, tuple) else rate for _, rate, _ in kinds]
    noise, _, number = zip(*kinds, strict=True)
    pair = GaussianPair(tuple(map(float, noise)), tuple(map(float, some)), number, is_reversed)
    end = largest_epsilon(pair._replace(reversed=False), some)
    has_groups = any(isinstance(rate, tuple) for _, rate, _ in kinds)
    return Sampled(kinds, is_reversed, end, own_laws, others, None if has_groups else pair)


def _sampled_group(law: StepLaw) -> Step | None:
    """Noise of a step, probabilities that 0, 1, ... records of a group are in, as of one record.

    None of other steps; of such weights that are none of a group no law is made.
    """
    found = law.exact_mixtures()
    if found is None or len(found) > 1:
        return None
    terms = {shift: sides for shift, sides in found[0].terms.items() if any(sides)}
    shifts = sorted(shift for shift in terms if shift)
    size = len(shifts)
    if not 2 <= size <= LARGEST_GROUP or len(terms) != size + 1 or shifts[0] <= 0:
        return None
    first = shifts[0]
    if any(abs(shift - k * first) > shift * NEAR for k, shift in enumerate(shifts, 1)):
        return None
    sides = list(zip(*(terms[shift] for shift in shifts), strict=True))
    moved = [side for side in sides if any(side)]
    if len(moved) != 1 or not all(moved[0]):
        return None
    some = moved[0]
    return 1 / first, (1 - sum(some, Fraction(0)), *some), sides[0] == some


def _sampled_gaussian(law: StepLaw) -> Step | None:
    """Noise and rate of a sampled Gaussian step, and whether A is the law with the record.

    None of other steps, and where the numbers are no doubles.
    """
    found = law.exact_mixtures()
    if found is None or len(found) > 1:
        return None
    terms = {shift: sides for shift, sides in found[0].terms.items() if any(sides)}
    moved = [(shift, sides) for shift, sides in terms.items() if shift]
    if len(moved) != 1 or len(terms) != 2:
        return None
    ((shift, (of_a, of_b)),) = moved
    if (of_a and of_b) or 1 in (of_a, of_b):
        return None
    # a shift down is the same pair as one up
    noise, rate = 1 / abs(shift), of_a or of_b
    if Fraction(float(noise)) != noise or Fraction(float(rate)) != rate:
        return None
    return float(noise), float(rate), bool(of_a)
