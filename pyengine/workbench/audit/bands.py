"""Distribution-free simultaneous confidence bands of survival functions, for any sample size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.extras import needed
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.workbench.audit._inputs import FloatArray, probability_level

__all__ = [
    "SurvivalBand",
    "both_bounds",
    "clopper_pearson",
    "rest_above",
    "success_bound",
    "survival_band",
]

RANK_RATIO = 1.05  # ratio of successive ranks with a bound; using all ranks widens the bands


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided exact confidence interval of a probability.

    Parameters
    ----------
    successes, trials : int
        Counts, 0 <= ``successes`` <= ``trials``, ``trials`` >= 1.
    confidence : float
        Level in (0, 1); each bound fails with probability at most (1 - confidence)/2.

    Returns
    -------
    lower, upper : float
        Bounds that hold together with at least this confidence.

    Raises
    ------
    ValueError
        For counts or a level outside their domain.

    References
    ----------
    C. Clopper, E. Pearson, The use of confidence or fiducial limits (1934).

    Examples
    --------
    >>> from pyengine.workbench.audit import clopper_pearson
    >>> lower, upper = clopper_pearson(0, 100)
    >>> lower, round(upper, 6)
    (0.0, 0.036217)
    """
    tail = (1.0 - probability_level("confidence", confidence)) / 2.0
    return both_bounds(successes, trials, tail)


def both_bounds(
    successes: Any, trials: Any, error: float, names: tuple[str, str] = ("successes", "trials")
) -> tuple[float, float]:
    """Return bounds of a probability, each of which fails with probability at most ``error``."""
    lower = success_bound(successes, trials, error, names)
    return lower, float(rest_above(success_bound(trials - successes, trials, error)))


def rest_above(lower: Any) -> Any:
    """Upper bounds 1 - lower, plus a unit that covers the rounding of lower bounds near 1."""
    return np.minimum(1.0 - lower + UNIT, 1.0)


def success_bound(
    successes: Any, trials: Any, error: float, names: tuple[str, str] = ("successes", "trials")
) -> float:
    """Return a lower bound of a probability that fails with probability at most ``error``."""
    if not (_is_integer(trials) and 1 <= trials <= checks.PLAIN_COUNT):
        raise ValueError(f"{names[1]} must be an integer in [1, 2^53], got {checks.shown(trials)}")
    if not (_is_integer(successes) and 0 <= successes <= trials):
        raise ValueError(
            f"{names[0]} must be an integer in [0, {trials}], got {checks.shown(successes)}"
        )
    if successes == 0:
        return 0.0
    return float(_beta_quantile(successes, trials - successes + 1, error))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _beta_quantile(a: object, b: object, probability: float) -> FloatArray:
    with needed("pyengine.audit", "audit"):
        from scipy.special import betaincinv

    quantile: FloatArray = betaincinv(a, b, probability)
    return quantile


@dataclass(frozen=True, eq=False)
class SurvivalBand:
    """Simultaneous bounds on P(S >= t) and on its complement P(S < t) at thresholds t."""

    above_lower: FloatArray
    above_upper: FloatArray
    below_lower: FloatArray
    below_upper: FloatArray


def _ranks(size: int) -> npt.NDArray[np.int64]:
    """Ranks 1 … size, dense near both ends."""
    near = [1]
    while near[-1] < size:
        near.append(max(near[-1] + 1, math.ceil(near[-1] * RANK_RATIO)))
    low = np.array([rank for rank in near if rank <= (size + 1) // 2])
    return np.unique(np.concatenate([low, size + 1 - low]))


def survival_band(sample: FloatArray, thresholds: FloatArray, error: float) -> SurvivalBand:
    """Bounds on P(S >= t) at all thresholds that fail together with probability <= ``error``.

    If S has no atoms, P(S >= X) at the k-th largest of n values X has the law Beta(k, n - k + 1).
    With atoms it errs on the safe side: P(S > X) is never larger, P(S >= X) never smaller.  Half of
    the error is spent on both tails of these laws at about a hundred ranks, half on the inequality
    of Dvoretzky, Kiefer, Wolfowitz and Massart, which is sharper in the middle.
    """
    descending = np.sort(sample)[::-1]
    size = descending.size
    ranks = _ranks(size)
    tail = error / 2.0 / (2 * ranks.size)
    at_least = _beta_quantile(ranks, size - ranks + 1, tail)  # P(S >= X_k) is above this
    below = _beta_quantile(size - ranks + 1, ranks, tail)  # P(S <= X_k) is above this
    values = descending[ranks - 1]
    # values descend: ranks with X_k >= t come first
    reached = np.searchsorted(-values, -thresholds, side="right")  # number with X_k >= t
    above_lower = np.concatenate([[0.0], at_least])[reached]
    below_lower = np.concatenate([below, [0.0]])[reached]  # first with X_k < t
    inequality = math.sqrt(fn.log(4.0 / error) / (2.0 * size))
    share = np.searchsorted(-descending, -thresholds, side="right") / size  # of S >= t
    above_lower = np.maximum(above_lower, share - inequality)
    below_lower = np.maximum(below_lower, (1.0 - share) - inequality)
    return SurvivalBand(above_lower, rest_above(below_lower), below_lower, rest_above(above_lower))
