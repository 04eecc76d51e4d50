"""Lower bounds from counts of right and wrong guesses of a test that was fixed beforehand."""

from __future__ import annotations

import math
from typing import NamedTuple

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.special import ndtri
from pyengine.workbench.audit._inputs import probability_level
from pyengine.workbench.audit.bands import both_bounds, rest_above

__all__ = ["CountAudit", "count_audit"]

ROOM = (ELEMENTARY + 16.0) * UNIT  # relative rounding error of the steps after Clopper-Pearson


class CountAudit(NamedTuple):
    """Lower bounds on privacy parameters; made by `count_audit`.

    Parameters
    ----------
    true_positive_rate, false_positive_rate : tuple of float
        Lower and upper bound of each rate.
    epsilon : float
        Lower bound on ε: the attacked mechanism is not (ε', δ)-DP for any smaller ε'.
    delta : float
        Lower bound on δ at the given ε: it is not (ε, δ')-DP for any smaller δ'.
    mu : float
        Lower bound on μ: it is not μ'-GDP for any smaller μ'.
    is_reversed : bool
        Whether the false positive rate is significantly above the true positive rate, so that the
        opposite guesses are better.  The bounds are those of the better guesses.
    confidence : float
        Level at which all statements hold together, if the guesses are independent.
    """

    true_positive_rate: tuple[float, float]
    false_positive_rate: tuple[float, float]
    epsilon: float
    delta: float
    mu: float
    is_reversed: bool
    confidence: float


def count_audit(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    *,
    delta: float = 0.0,
    epsilon: float = 0.0,
    confidence: float = 0.95,
) -> CountAudit:
    """Lower bounds on privacy parameters from the counts of a membership test.

    Parameters
    ----------
    true_positives, positives : int
        Number of "in" guesses in independent runs with the record, and the number of these runs;
        0 <= ``true_positives`` <= ``positives``, ``positives`` >= 1.
    false_positives, negatives : int
        The same for runs without the record.
    delta : float
        δ of the bound on ε, in [0, 1].
    epsilon : float
        ε >= 0 of the bound on δ.
    confidence : float
        Level in (0, 1) of all bounds together.

    Returns
    -------
    CountAudit
        Lower bounds on ε, δ and μ, and the bounds on both rates that they follow from.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    The test must be fixed before these runs; for a threshold chosen on the same scores use the
    bands of `empirical_trade_off`.  Each rate has a lower and an upper Clopper-Pearson bound, and
    each of these four fails with probability (1 - confidence)/4, so that the guesses may be
    reversed afterwards.  (ε, δ)-DP implies TPR <= e^ε FPR + δ, and the same for the complements.
    Rounding is covered, except that of SciPy's quantiles of the beta distribution.

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea, Auditing Differentially Private Machine Learning (2020),
    arXiv:2006.07709; P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential
    privacy (2017).

    Examples
    --------
    >>> from pyengine import audit
    >>> found = audit.count_audit(400, 1000, 10, 1000, delta=1e-5)
    >>> print(f"{found.epsilon:.3f} {found.delta:.3f} {found.mu:.3f}")
    2.923 0.346 1.717
    >>> audit.count_audit(10, 1000, 400, 1000).is_reversed
    True
    """
    tolerated = float(checks.probability("delta", delta))
    asked = float(checks.non_negative("epsilon", epsilon))
    error = (1.0 - probability_level("confidence", confidence)) / 4.0
    true = _rates("positives", true_positives, positives, error)
    false = _rates("negatives", false_positives, negatives, error)
    ways = [
        _Errors(float(rest_above(true[0])), false[1]),
        _Errors(float(rest_above(false[0])), true[1]),
    ]
    return CountAudit(
        true,
        false,
        max(way.epsilon(tolerated) for way in ways),
        max(way.delta(asked) for way in ways),
        max(way.mu() for way in ways),
        false[0] > true[1],
        float(confidence),
    )


class _Errors(NamedTuple):
    """Upper bounds on both error rates, of the guesses or of the reversed ones."""

    missed: float
    false_alarm: float

    def epsilon(self, delta: float) -> float:
        """The largest ε that the errors refute."""
        found = 0.0
        for one, other in (self, self[::-1]):
            above = 1.0 - delta - one - ROOM
            if above > other:
                found = max(found, fn.log(above / other) * (1.0 - ROOM) - ROOM)
        return found

    def delta(self, epsilon: float) -> float:
        """The largest δ that the errors refute."""
        factor = fn.exp(min(epsilon, 700.0)) * (1.0 + ROOM) if epsilon < 700.0 else math.inf
        return max(
            0.0,
            *(
                1.0 - one - factor * other * (1.0 + ROOM) - ROOM
                for one, other in (self, self[::-1])
            ),
        )

    def mu(self) -> float:
        """The largest μ that the errors refute."""
        if max(self) >= 1.0:
            return 0.0
        one, other = (float(ndtri(error)) for error in self)
        return max(0.0, -(one + other) - ROOM * (abs(one) + abs(other)))


def _rates(name: str, successes: int, trials: int, error: float) -> tuple[float, float]:
    """Lower and upper bound on a rate, each of which fails with probability ``error``."""
    names = f"{'true' if name == 'positives' else 'false'}_positives", name
    return both_bounds(successes, trials, error, names)
