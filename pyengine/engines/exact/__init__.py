"""Exact sums: compositions of finite laws, also with equal Laplace steps or one step of any law.

All terms are positive, so the only errors are roundings, with proven bounds (docs/theory/finite).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pyengine.engines.answers import Questions
from pyengine.engines.exact.finite import composition, finite_composition
from pyengine.engines.exact.laplace import MAX_RATIO, LaplaceSum, laplace_composition
from pyengine.engines.exact.levels import ClosedLaw
from pyengine.engines.exact.mixed import Mixed
from pyengine.engines.exact.sampled_laplace import SampledLaplace
from pyengine.engines.exact.single import SingleStep
from pyengine.engines.exact.threshold import ThresholdQuestions
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw, overflow_of
from pyengine.laws.finite import FiniteLaw

__all__ = ["FEW_RANGES", "closed_law", "disjoint_questions", "exact_questions", "exact_refusal"]

FEW_RANGES = 4  # from so many steps of bounded range beside finite laws, lines are more precise
MAX_WEIGHTS = 4096  # most finite losses over which a step in closed form is averaged


def disjoint_questions(laws: list[tuple[StepLaw, int]], engine: str) -> Questions | None:
    """Return questions on disjoint laws if one step has disjoint laws; else None.

    Then A and B of the composition are disjoint, whatever the other steps are.
    """
    for finite, _ in _parted(laws)[0]:
        if not finite.loss.size:
            return ThresholdQuestions(composition([(finite, 1)]), engine)
    return None


def exact_refusal(laws: list[tuple[StepLaw, int]]) -> str | None:
    """Return the reason why exact sums refuse a composition; None if they answer."""
    try:
        exact_questions(laws)
    except AccuracyError as refusal:
        return str(refusal)
    return None


def exact_questions(laws: list[tuple[StepLaw, int]]) -> Questions:
    """Return questions on a composition, answered by exact sums, or raise an `AccuracyError`.

    Finite laws are composed here, since only that shows whether the sums are short enough; the
    composition is cached.
    """
    told_apart = disjoint_questions(laws, "exact")
    if told_apart is not None:
        return told_apart
    if not all(law.has_cells for law, _ in laws):
        raise AccuracyError(
            "method='exact' needs the law of each step, and for an epoch only two enclosing laws "
            "are known: ask method='auto' or 'lattice'"
        )
    overflow = overflow_of(laws)
    if overflow is not None:
        raise AccuracyError(overflow)
    finite, others = _parted(laws)
    if not others:
        return ThresholdQuestions(finite_composition(finite))
    law, number = closed_law(others, alone=not finite), sum(steps for _, steps in others)
    if law is None:
        raise AccuracyError(
            "method='exact' takes steps with finitely many losses, and beside them at most 400 "
            "equal Laplace steps, 3 equal steps of bounded range (20 alone) or one step of another "
            "kind: ask method='auto' or 'lattice'"
        )
    if not finite:
        return ThresholdQuestions(law)
    made = finite_composition(finite)
    if others[0][0].infinite() != (0.0, 0.0):
        raise AccuracyError(
            "method='exact' takes finite losses beside another step only if both of its laws have "
            "the same outcomes: ask method='auto' or 'lattice'"
        )
    return ThresholdQuestions(Mixed(made.weights(MAX_WEIGHTS // number), law))


def _parted(
    laws: list[tuple[StepLaw, int]],
) -> tuple[list[tuple[FiniteLaw, int]], list[tuple[StepLaw, int]]]:
    """Split into laws with finitely many losses, and the others."""
    found = [(law.finite(), number) for law, number in laws]
    return (
        [(law, number) for law, number in found if law is not None],
        [part for part in laws if part[0].finite() is None],
    )


def closed_law(laws: Sequence[tuple[StepLaw, int]], *, alone: bool = False) -> ClosedLaw | None:
    """The closed form of steps with infinitely many losses; None if there is none.

    Unless these steps are ``alone``, also None from `FEW_RANGES` steps of bounded range on.
    """
    number = sum(steps for _, steps in laws)
    keys = {_closed_sum(law) for law, _ in laws}
    key = keys.pop() if len(keys) == 1 else None
    if key is not None and key[0] <= MAX_RATIO:
        ratio, has_atoms = key
        is_sum = LaplaceSum.available(float(ratio), number, has_atoms=has_atoms)
        if is_sum and (alone or has_atoms or number < FEW_RANGES):
            return laplace_composition(ratio, number, has_atoms)
    if number != 1:
        return None
    law, step = laws[0][0], laws[0][0].laplace()
    if step is None or step.is_plain or step.is_substituted or step.distance > MAX_RATIO:
        return SingleStep(law)
    return SampledLaplace(step.distance, step.probability, step.is_reversed)


def _closed_sum(law: StepLaw) -> tuple[Fraction, bool] | None:
    """Ratio μ of a step of bounded range or plain Laplace noise, and whether it has atoms."""
    ratio = law.bounded_range()
    if ratio is not None:
        return ratio, False
    step = law.laplace()
    return (step.distance, True) if step is not None and step.is_plain else None
