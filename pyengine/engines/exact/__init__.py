"""Exact sums: compositions of finitely many losses, and of equal Laplace steps.

Everything is a sum of positive numbers, so the errors are those of rounding, and proven
(docs/theory/exact).
"""

from __future__ import annotations

from pyengine.engines.exact.finite import composition
from pyengine.engines.exact.laplace import LaplaceLaw
from pyengine.engines.exact.threshold import ThresholdQuestions
from pyengine.errors import AccuracyError
from pyengine.laws.base import ReversedLaw, StepLaw
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.laplace import LaplaceLaw as LaplaceStep

__all__ = ["exact_questions"]


def exact_questions(laws: list[tuple[StepLaw, int]]) -> ThresholdQuestions:
    """Return what answers questions on a composition exactly.

    Parameters
    ----------
    laws : list of (StepLaw, int)
        The ordered pair of each kind of step, and how often it runs.

    Returns
    -------
    ThresholdQuestions
        All questions on the composed pair.

    Raises
    ------
    AccuracyError
        Where a loss takes more values than can be enumerated, or the sums are too long.
    """
    finite = [(law, number) for law, number in laws if isinstance(law, FiniteLaw)]
    if len(finite) == len(laws):
        return ThresholdQuestions(composition(finite))
    ratios = {_laplace_ratio(law) for law, _ in laws}
    steps = sum(number for _, number in laws)
    if len(ratios) == 1:
        ratio = ratios.pop()
        if ratio is not None and LaplaceLaw.available(ratio, steps):
            return ThresholdQuestions(LaplaceLaw(ratio, steps))
    raise AccuracyError(
        "exact sums exist for steps whose loss takes finitely many values, and for at most 400 "
        "equal Laplace steps without sampling: ask method='auto' or 'lattice'"
    )


def _laplace_ratio(law: StepLaw) -> float | None:
    """Sensitivity over scale of a Laplace step, the same in both orders."""
    if isinstance(law, ReversedLaw):
        law = law.law
    return 1.0 / law.noise_multiplier if isinstance(law, LaplaceStep) else None
