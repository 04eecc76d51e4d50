"""Empirical trade-off functions of an attack, with simultaneous confidence bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.environment import Guarded
from pyengine.numerics.point_hull import lower_hull
from pyengine.workbench.audit._inputs import FloatArray, probability_level, scores
from pyengine.workbench.audit.bands import survival_band

__all__ = ["EmpiricalTradeOff", "Gap", "empirical_trade_off"]

GUESSING = 1e-12  # a claim that is nowhere more than this below 1 - α claims perfect privacy


@dataclass(frozen=True)
class Gap:
    """Comparison of an attack's errors with a claimed trade-off function f.

    Parameters
    ----------
    excess : float
        Largest f(α) - β over all thresholds, with both errors at their upper confidence bounds.  If
        positive, the attack beats the claim with the curve's confidence.
    deficit : float
        Largest β - f(α) with both errors at their lower confidence bounds.  If positive, the attack
        is significantly worse than the claim allows.
    alpha : float
        False positive rate at which ``excess`` is attained.
    power : bool
        Whether the sample distinguishes the attack from guessing, or the claim is perfect privacy.
        Without power the sample can only refute the claim, not support it.
    """

    excess: float
    deficit: float
    alpha: float
    power: bool = True

    @property
    def violated(self) -> bool:
        """Whether the attack is significantly better than the claim allows."""
        return self.excess > 0.0

    @property
    def attained(self) -> bool:
        """Whether the attack is as good as the claim allows, within the confidence bands."""
        return self.power and not self.violated and self.deficit <= 0.0

    @property
    def undecided(self) -> bool:
        """Whether the sample is too small: both guessing and the claim are consistent with it."""
        return not self.power and not self.violated and self.deficit <= 0.0

    @property
    def verdict(self) -> str:
        """The result of the comparison in words."""
        if self.violated:
            return "BEATS THE BOUND"
        if self.undecided:
            return "cannot tell"
        return "attains the bound within its band" if self.attained else "stays below the bound"


@dataclass(frozen=True, eq=False)
class EmpiricalTradeOff:
    """Errors of the tests ``score >= threshold``, one for each threshold.

    Parameters
    ----------
    threshold : ndarray, shape (n,)
        Infinity, and then all distinct scores in descending order.
    alpha, beta : ndarray, shape (n,)
        Observed false positive and false negative rates.
    alpha_lower, alpha_upper, beta_lower, beta_upper : ndarray, shape (n,)
        Simultaneous bands: with probability ``confidence`` both true error rates lie between them
        at all thresholds.
    confidence : float
        Joint confidence level of both bands.
    """

    threshold: FloatArray
    alpha: FloatArray
    beta: FloatArray
    alpha_lower: FloatArray
    alpha_upper: FloatArray
    beta_lower: FloatArray
    beta_upper: FloatArray
    confidence: float

    @property
    def is_reversed(self) -> bool:
        """Whether small scores significantly indicate the record.

        That is, at some threshold the false positive rate is above the true positive rate: the
        scores should be negated.
        """
        return bool((self.alpha_lower > 1.0 - self.beta_lower).any())

    def upper(self, alpha: npt.ArrayLike) -> FloatArray:
        """Upper bound on the smallest type II error of this attack at given levels.

        Parameters
        ----------
        alpha : array_like
            Levels in [0, 1].

        Returns
        -------
        ndarray
            Lower convex hull of the upper confidence bounds, since an attacker may choose between
            two thresholds at random.  With the curve's confidence it is also an upper bound for the
            trade-off function of the attacked mechanism.
        """
        x, y = _hull(
            np.concatenate([[0.0], self.alpha_upper, [1.0]]),
            np.concatenate([[1.0], self.beta_upper, [0.0]]),
        )
        return np.asarray(np.interp(np.asarray(alpha, dtype=np.float64), x, y))

    def compare(self, claim: Callable[[FloatArray], Any]) -> Gap:
        """Compare the attack with a claimed trade-off function.

        Parameters
        ----------
        claim : callable
            Nonincreasing β = f(α) for arrays of α in [0, 1].

        Returns
        -------
        Gap
            Whether, where and by how much the attack beats the claim.
        """
        claim = Guarded(claim)
        claimed = np.asarray(claim(self.alpha_upper), dtype=np.float64)
        best = claimed - self.beta_upper
        worst = self.beta_lower - np.asarray(claim(self.alpha_lower), dtype=np.float64)
        at = int(np.argmax(best))
        guessing = 1.0 - self.alpha_upper
        power = (guessing > self.beta_upper).any() or (guessing - claimed).max() <= GUESSING
        return Gap(float(best[at]), float(worst.max()), float(self.alpha_upper[at]), bool(power))


def _hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Vertices of the lower convex hull of points."""
    order = np.lexsort((y, x))
    corners = np.array(lower_hull(zip(x[order].tolist(), y[order].tolist(), strict=True)))
    return corners[:, 0], corners[:, 1]


def empirical_trade_off(
    null: npt.ArrayLike, alternative: npt.ArrayLike, *, confidence: float = 0.95
) -> EmpiricalTradeOff:
    """Empirical trade-off between both errors of an attack, from the scores of many runs.

    Parameters
    ----------
    null, alternative : array_like, one-dimensional
        Scores of independent runs without and with the record; large scores indicate the record.
        Infinite scores are allowed, NaN is not.
    confidence : float
        Level of the bands, in (0, 1).

    Returns
    -------
    EmpiricalTradeOff
        Both error rates at each threshold that occurred, with simultaneous confidence bands.

    Raises
    ------
    ValueError
        For empty samples, NaN scores or a level outside (0, 1).

    Notes
    -----
    The bands are valid for every distribution, with ties, for every sample size and for all
    thresholds at once; so a threshold may be chosen after looking at them.

    References
    ----------
    P. Massart, The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality (1990).

    Examples
    --------
    >>> import numpy as np
    >>> from pyengine import audit
    >>> rng = np.random.default_rng(1)
    >>> curve = audit.empirical_trade_off(rng.normal(0, 1, 10_000), rng.normal(1, 1, 10_000))
    >>> gap = curve.compare(lambda alpha: 1 - alpha)  # perfect privacy: refuted
    >>> gap.violated, round(gap.excess, 2)
    (True, 0.35)
    """
    without, with_record = scores("null", null), scores("alternative", alternative)
    error = (1.0 - probability_level("confidence", confidence)) / 2.0  # for each sample
    threshold = np.unique(np.concatenate([[np.inf], without, with_record]))[::-1]
    first = survival_band(without, threshold, error)
    second = survival_band(with_record, threshold, error)
    return EmpiricalTradeOff(
        threshold,
        _share_at_least(without, threshold),
        1.0 - _share_at_least(with_record, threshold),
        first.above_lower,
        first.above_upper,
        second.below_lower,
        second.below_upper,
        confidence,
    )


def _share_at_least(sample: FloatArray, threshold: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(np.sort(sample), threshold, side="left") / sample.size
