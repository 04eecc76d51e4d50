"""Sampled Gaussian steps among the laws of a composition, those of groups included."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pyengine.engines.answers import Triple
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.sector import Kinds, Number, Rate
from pyengine.laws.base import StepLaw

__all__ = ["SampledSteps", "sampled_steps"]

LARGEST_GROUP = 32  # records, that sector laws serve
NEAR = Fraction(1, 2**90)  # relative distance of a shift from a multiple of the first, at most
Laws = tuple[tuple[StepLaw, int], ...]
Step = tuple[Number, Rate, bool]  # noise, rate, and whether A is the law with the record


class SampledSteps(NamedTuple):
    """The sampled Gaussian steps of one order, and all other steps.

    Parameters
    ----------
    kinds : tuple
        As sector laws take them.
    is_reversed : bool
        Whether A is the law with the record.
    end : tuple of float
        Minus their smallest loss in the order (without, with), and bounds of it.
    laws, others : tuple
        Their laws, and those of all other steps.
    pair : GaussianPair or None
        The same steps, unless some are of a group or have parameters that are no doubles.
    """

    kinds: Kinds
    is_reversed: bool
    end: Triple
    laws: Laws
    others: Laws
    pair: GaussianPair | None


def sampled_steps(laws: Laws, *, plain: bool = False) -> SampledSteps | None:
    """Return the sampled Gaussian steps with exact parameters, those of groups included.

    With ``plain`` groups and parameters that are no doubles count as other steps.  None where
    there are none, or where some are reversed and others are not.
    """
    found = [(_step(law), law, n) for law, n in laws]
    if plain:
        found = [(own if own and _is_plain(*own[:2]) else None, law, n) for own, law, n in found]
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
    are_plain = all(_is_plain(noise, rate) for noise, rate, _ in kinds)
    return SampledSteps(kinds, is_reversed, end, own_laws, others, pair if are_plain else None)


def _is_plain(noise: Number, rate: Rate) -> bool:
    """Whether a step is of one record and its parameters are doubles."""
    return isinstance(noise, float) and isinstance(rate, float)


def _step(law: StepLaw) -> Step | None:
    """Noise and rate of a sampled Gaussian step, for a group its weights; None for other steps.

    A mixture is one if its shifts are 1, 2, ... times the first, all on one side only.
    """
    found = law.exact_mixtures()
    if found is None or len(found) > 1:
        return None
    terms = {shift: sides for shift, sides in found[0].terms.items() if any(sides)}
    # shifts down are the same pair as shifts up
    is_down = all(shift <= 0 for shift in terms)
    moved = {-shift if is_down else shift: sides for shift, sides in terms.items() if shift}
    shifts = sorted(moved)
    if not 1 <= len(shifts) <= LARGEST_GROUP or len(terms) != len(shifts) + 1 or shifts[0] < 0:
        return None
    first = shifts[0]
    if any(abs(shift - k * first) > shift * NEAR for k, shift in enumerate(shifts, 1)):
        return None
    of_a, of_b = zip(*(moved[shift] for shift in shifts), strict=True)
    some = of_a if any(of_a) else of_b
    if not all(some) or (any(of_a) and any(of_b)) or sum(some) == 1:
        return None
    noise = 1 / first
    if len(some) > 1:
        return noise, (1 - sum(some, Fraction(0)), *some), any(of_a)
    (rate,) = some
    if _is_double(noise) and _is_double(rate):
        return float(noise), float(rate), any(of_a)
    return noise, rate, any(of_a)


def _is_double(x: Fraction) -> bool:
    return Fraction(float(x)) == x
