"""Exact sums: finitely many losses, beside them Laplace steps or one step of any law.

Everything is a sum of positive numbers, so the errors are those of rounding, and proven; two steps
of which one must be cut into cells are enclosed between two such sums (docs/theory/finite).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pyengine.engines.answers import Questions
from pyengine.engines.exact.finite import composition
from pyengine.engines.exact.kept import finite_composition, laplace_composition
from pyengine.engines.exact.laplace import MAX_RATIO, LaplaceSum, OneLaplaceStep
from pyengine.engines.exact.levels import ClosedLaw
from pyengine.engines.exact.mixed import Mixed, enclosing
from pyengine.engines.exact.sampled_laplace import SampledLaplace
from pyengine.engines.exact.single import SingleStep
from pyengine.engines.exact.threshold import ThresholdQuestions
from pyengine.engines.hull import Between
from pyengine.laws.base import StepLaw, overflow_of
from pyengine.laws.finite import FiniteLaw

__all__ = ["FEW_RANGES", "closed_sum", "disjoint_questions", "exact_questions", "exact_refusal"]

FEW_RANGES = 4  # equal steps of bounded range: beside finite losses lines of more are closer
MAX_WEIGHTS = 4096  # finite losses that a step in closed form is averaged over


class _Closed(NamedTuple):
    """A law in closed form of a number of equal steps."""

    law: ClosedLaw
    step: StepLaw
    number: int


def disjoint_questions(laws: list[tuple[StepLaw, int]], engine: str) -> Questions | None:
    """Return what answers where one step alone tells both laws apart surely; None elsewhere.

    Whatever the other steps do, A and B then have no outcome in common.
    """
    for finite, _ in _finite(laws):
        if not finite.loss.size:
            return ThresholdQuestions(composition([(finite, 1)]), engine)
    return None


def exact_refusal(laws: list[tuple[StepLaw, int]]) -> str | None:
    """Return why exact sums do not answer for a composition; None where they do.

    How long the sums of finite laws are shows when they are made; they are kept for the answer.
    """
    if disjoint_questions(laws, "exact") is not None:
        return None
    if not all(law.has_cells for law, _ in laws):
        return "exact sums need the law of each step, and two others enclose that of an epoch"
    overflow = overflow_of(laws)
    if overflow is not None:
        return overflow
    finite, closed = _parted(laws)
    if closed is not None and len(closed) <= 1:
        made = finite_composition(finite)
        if isinstance(made, str):
            return made
        return made.too_many(_room(closed)) if finite and closed else None
    if _are_two_laplace(finite, closed):
        return None
    others = _others(laws)
    if sum(number for _, number in others) != 1:
        return (
            "exact sums exist for steps whose loss takes finitely many values, with at most 400 "
            "equal Laplace steps, 20 equal steps of bounded range or a single step of anything "
            "besides, and for two Laplace steps, sampled or not: ask method='auto' or 'lattice'"
        )
    if not finite:
        return None
    made = finite_composition(finite)
    if isinstance(made, str):
        return made
    if others[0][0].infinite() != (0.0, 0.0):
        return "exact sums over finite losses need a step that has every outcome of either side"
    return made.too_many(MAX_WEIGHTS)


def exact_questions(laws: list[tuple[StepLaw, int]]) -> Questions:
    """Return what answers questions on a composition exactly, where `exact_refusal` has no reason.

    Parameters
    ----------
    laws : list of (StepLaw, int)
        The ordered pair of each kind of step, and how often it runs.

    Returns
    -------
    Questions
        All questions on the composed pair.
    """
    told_apart = disjoint_questions(laws, "exact")
    if told_apart is not None:
        return told_apart
    finite, closed = _parted(laws)
    if closed is not None and len(closed) <= 1:
        made = finite_composition(finite)
        assert not isinstance(made, str)
        if not closed:
            return ThresholdQuestions(made)
        law = closed[0].law
        if isinstance(law, LaplaceSum) and law.steps == 1 and law.atoms.any() and not finite:
            return OneLaplaceStep(law)
        return ThresholdQuestions(Mixed(made.weights(), law) if finite else law)
    if closed is not None and _are_two_laplace(finite, closed):
        sides = (Mixed(weights, closed[1].law) for weights in enclosing(closed[0].step))
        return Between(*(ThresholdQuestions(law) for law in sides))
    single = SingleStep(_others(laws)[0][0])
    if not finite:
        return ThresholdQuestions(single)
    made = finite_composition(finite)
    assert not isinstance(made, str)
    return ThresholdQuestions(Mixed(made.weights(), single))


def _parted(
    laws: list[tuple[StepLaw, int]],
) -> tuple[list[tuple[FiniteLaw, int]], list[_Closed] | None]:
    """Finite laws, and what `_closed` makes of the others."""
    finite, others = _finite(laws), _others(laws)
    if finite and any(law.bounded_range() and number >= FEW_RANGES for law, number in others):
        return finite, None
    return finite, _closed(others)


def _finite(laws: list[tuple[StepLaw, int]]) -> list[tuple[FiniteLaw, int]]:
    """Those of finitely many losses."""
    found = ((law.finite(), number) for law, number in laws)
    return [(law, number) for law, number in found if law is not None]


def _others(laws: list[tuple[StepLaw, int]]) -> list[tuple[StepLaw, int]]:
    """The rest."""
    return [part for part in laws if part[0].finite() is None]


def _room(closed: list[_Closed]) -> int:
    """Finite losses that a law in closed form may be averaged over."""
    return MAX_WEIGHTS // closed[0].number


def _are_two_laplace(finite: list[tuple[FiniteLaw, int]], closed: list[_Closed] | None) -> bool:
    return closed is not None and [part.number for part in closed] == [1, 1] and not finite


def closed_sum(law: StepLaw) -> tuple[Fraction, bool] | None:
    """Ratio of a step whose equal ones have a sum, and whether it has atoms; None for others."""
    ratio = law.bounded_range()
    if ratio is not None:
        return ratio, False
    step = law.laplace()
    return (step.distance, True) if step is not None and step.is_plain else None


def _closed(laws: list[tuple[StepLaw, int]]) -> list[_Closed] | None:
    """Laws in closed form for continuous steps; None where some step has none."""
    equal: dict[tuple[Fraction, bool], tuple[StepLaw, int]] = {}
    single: list[_Closed] = []
    for law, number in laws:
        key, step = closed_sum(law), law.laplace()
        if key is not None:
            equal[key] = (law, number + equal.get(key, (law, 0))[1])
        elif step is None or step.is_substituted or number > 2 or step.distance > MAX_RATIO:
            return None
        else:
            one = SampledLaplace(step.distance, step.probability, step.is_reversed)
            single += [_Closed(one, law, 1)] * number
    if not all(
        ratio <= MAX_RATIO and LaplaceSum.available(float(ratio), number, has_atoms=has_atoms)
        for (ratio, has_atoms), (_, number) in equal.items()
    ):
        return None
    groups = [
        _Closed(laplace_composition(key[0], number, key[1]), law, number)
        for key, (law, number) in equal.items()
    ]
    return single + groups
