"""Confidence intervals of means of bounded variables.

n independent variables in [0, M] with mean m have a variance of at most M m.  Bennett's inequality
then says: the sample mean x lies on a given side of m with x log(x/m) - x + m >= t M/n with
probability at most e^{-t}.  Solved for m this is an interval.  Where the sample variance is far
below M m, the inequality of Maurer and Pontil is narrower.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.numerics.bracketing import bisected

__all__ = ["bennett_interval", "deviation", "empirical_bernstein", "rank_range"]

FloatArray = npt.NDArray[np.float64]


# Map: Theorem 4 of Maurer and Pontil (2009) | test_approximations | approximations
def empirical_bernstein(
    mean: FloatArray, square: FloatArray, width: FloatArray, samples: int, failure: float
) -> FloatArray:
    """How far the mean lies above the sample mean at most, or below it, up to ``failure``.

    ``mean`` and ``square`` are the sample means of at least two variables and of their squares,
    ``width`` is the length of an interval that contains all values, and ``failure`` the probability
    that the bound fails, for each side (Theorem 4 of A. Maurer, M. Pontil, Empirical Bernstein
    Bounds and Sample Variance Penalization, COLT 2009).
    """
    log = math.log(2.0 / failure)
    variance = np.maximum(square - mean * mean, 0.0) * (samples / (samples - 1.0))
    spread = np.sqrt(2.0 * log / samples * variance)
    return np.asarray(spread + 7.0 * log / (3.0 * (samples - 1.0)) * width)


def rank_range(level: FloatArray, samples: int, failure: float) -> tuple[FloatArray, FloatArray]:
    """Range of the fraction of samples in an event of probability ``level``.

    By Chernoff's bound with the binary relative entropy; both sides together fail with probability
    at most ``failure``.
    """
    limit = math.log(2.0 / failure) / samples

    def entropy(share: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            yes = np.where(share > 0.0, share * np.log(share / level), 0.0)
            no = np.where(share < 1.0, (1.0 - share) * np.log((1.0 - share) / (1.0 - level)), 0.0)
        return np.asarray(yes + no)

    ends = []
    for end in (0.0, 1.0):
        outer = np.full(level.shape, end)
        ends.append(bisected(lambda share: entropy(share) <= limit, level, outer, rounds=60)[1])
    return ends[0], ends[1]


def deviation(x: FloatArray, mean: FloatArray | float) -> FloatArray:
    """Exponent x log(x/m) - x + m >= 0 of Bennett's inequality."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = x / mean
        log = np.where(np.isinf(ratio), np.log(x) - np.log(mean), np.log(ratio))
        ratio = np.where(x > 0.0, x * log, 0.0)
    return np.asarray(ratio - x + mean)


# Map: Bennett's inequality, inverted | test_approximations | approximations
def bennett_interval(
    low: FloatArray, high: FloatArray, bound: FloatArray, samples: int, failure: float
) -> tuple[FloatArray, FloatArray]:
    """Interval for the mean of variables in [0, bound] whose sample mean is in [low, high].

    The mean lies outside with probability at most ``failure``, both sides together.  With a bound
    of ∞ the interval is [0, ∞].
    """
    limit = math.log(2.0 / failure) * bound / samples
    finite = np.isfinite(limit)
    limit = np.where(finite, limit, 1.0)
    # below: the smallest m <= low with deviation(low, m) <= limit
    left, _ = bisected(lambda m: deviation(low, m) > limit, np.zeros(low.shape), low, rounds=100)
    # above: deviation is convex in m and at most limit at the root of (m - x)²/(2m) = limit
    right = high + limit + np.sqrt(limit * (limit + 2.0 * high))
    _, right = bisected(lambda m: deviation(high, m) <= limit, high, right, rounds=100)
    return np.where(finite, left, 0.0), np.where(finite, right, math.inf)
