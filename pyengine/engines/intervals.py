"""Confidence intervals of means of bounded variables.

For n independent variables in [0, M] with mean m the variance is at most M m, and Bennett's
inequality with that variance says: a sample mean x with x log(x/m) - x + m >= t M/n on a given side
of m has probability at most e^{-t}.  Inverted in m it is an interval.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["bennett_interval", "deviation", "dkw_width"]

FloatArray = npt.NDArray[np.float64]


def dkw_width(samples: int, failure: float) -> float:
    """Largest distance η of empirical from true distribution function, up to a failure probability.

    Dvoretzky, Kiefer and Wolfowitz with Massart's constant: 2 e^{-2nη²} = failure.
    """
    return math.sqrt(math.log(2.0 / failure) / (2.0 * samples))


def deviation(x: FloatArray, mean: FloatArray | float) -> FloatArray:
    """Exponent x log(x/m) - x + m >= 0 of Bennett's inequality."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(x > 0.0, x * np.log(x / mean), 0.0)
    return np.asarray(ratio - x + mean)


def bennett_interval(
    low: FloatArray, high: FloatArray, bound: FloatArray, samples: int, failure: float
) -> tuple[FloatArray, FloatArray]:
    """Interval for the mean of variables in [0, bound] whose sample mean lies in [low, high].

    Parameters
    ----------
    low, high : ndarray
        Range of the sample mean.
    bound : ndarray
        Largest value M of a variable; inf leaves nothing to say above.
    samples : int
        Their number.
    failure : float
        Probability, for both sides together, that the mean lies outside.

    Returns
    -------
    lower, upper : ndarray
        Ends of the interval; proven.
    """
    limit = math.log(2.0 / failure) * bound / samples
    finite = np.isfinite(limit)
    limit = np.where(finite, limit, 1.0)
    # below: the smallest m <= low with deviation(low, m) <= limit
    left, right = np.zeros(low.shape), low.copy()
    for _ in range(100):
        middle = 0.5 * (left + right)
        with np.errstate(divide="ignore"):
            far = deviation(low, middle) > limit
        left, right = np.where(far, middle, left), np.where(far, right, middle)
    lower = np.where(finite, left, 0.0)
    # above: deviation is convex in m and at most limit at the root of (m - x)²/(2m) = limit
    left, right = high.copy(), high + limit + np.sqrt(limit * (limit + 2.0 * high))
    for _ in range(100):
        middle = 0.5 * (left + right)
        far = deviation(high, middle) > limit
        left, right = np.where(far, left, middle), np.where(far, middle, right)
    return lower, np.where(finite, right, math.inf)
