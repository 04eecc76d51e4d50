"""Tails of a sum by the saddle-point formula of Lugannani and Rice, with its second term.

In the tails the formula errs in relative terms by powers of the inverse number of terms, wherever
the tail is, where Edgeworth's expansion about the mean loses all digits.  It judges that expansion
and answers nothing itself.  K is the cumulant function of the sum, λ the saddle point of a
threshold, u = λ √K'', w² = 2 (λ c - K) with the sign of λ, κ₃ and κ₄ the standardised cumulants of
the law tilted by λ (Lugannani and Rice 1980; Daniels 1987 for the second term).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.special import ndtr, normal_pdf

__all__ = ["SaddlePoint"]

FloatArray = npt.NDArray[np.float64]

ITERATIONS = 60
FOUND = 1e-9  # miss of the mean of the tilted law, in its standard deviations
MOST_AT_ONCE = 4_000_000  # products of thresholds and nodes
CENTRE = 0.3  # below this |w| the differences of the formula lose their digits


class _Tilted(NamedTuple):
    """K and its first four derivatives."""

    k0: FloatArray
    k1: FloatArray
    k2: FloatArray
    k3: FloatArray
    k4: FloatArray


# Map: saddle-point formula of Lugannani and Rice | test_approximations | approximations
class SaddlePoint:
    """Both tails of a sum of independent terms.

    Parameters
    ----------
    terms : iterable of (values, weights, number)
        Law of each kind of term and how many there are.
    """

    def __init__(self, terms: Iterable[tuple[FloatArray, FloatArray, int]]) -> None:
        with np.errstate(divide="ignore"):
            self._terms = [(value, np.log(weight), number) for value, weight, number in terms]
        self._nodes = max((value.size for value, *_ in self._terms), default=1)

    def tails(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tails beyond thresholds, seen from the mean, and their relative errors.

        Returns
        -------
        sign : ndarray
            1 where the tail is the upper one, -1 where it is the lower one.
        tail, error : ndarray
            The error is the size of the second term.  Near the mean, and where the formula fails,
            the tail is NaN and the error infinite.
        """
        step = max(1, MOST_AT_ONCE // self._nodes)
        parts = [self._part(c[at : at + step]) for at in range(0, c.size, step)]
        sign, tail, error = (np.concatenate(column) for column in zip(*parts, strict=True))
        return sign, tail, error

    def _part(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        lam, at = self._solved(c)
        sign = np.where(lam >= 0.0, 1.0, -1.0)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            w = np.sqrt(np.maximum(2.0 * (lam * c - at.k0), 0.0))
            u = np.abs(lam) * np.sqrt(at.k2)
            third, fourth = sign * at.k3 / at.k2**1.5, at.k4 / at.k2**2
            height = normal_pdf(w)
            first = ndtr(-w) + height * (1.0 / u - 1.0 / w)
            second = (fourth / 8.0 - 5.0 * third**2 / 24.0) / u - third / (2.0 * u**2)
            second = height * (second - u**-3.0 + w**-3.0)
            miss = np.abs(at.k1 - c) / np.sqrt(at.k2)
            known = (miss <= 1e3 * FOUND) & (first + second > 0.0) & (w > CENTRE)
            tail = np.where(known, first + second, np.nan)
            error = np.where(known, np.abs(second) / tail, np.inf)
        return sign, tail, error

    def _solved(self, c: FloatArray) -> tuple[FloatArray, _Tilted]:
        """Saddle points by Newton's method between brackets that grow; cumulants are slopes."""
        lam, low, high = np.zeros(c.size), np.full(c.size, -np.inf), np.full(c.size, np.inf)
        at = self._cumulants(lam)
        for _ in range(ITERATIONS):
            miss = c - at.k1
            low, high = np.where(miss > 0.0, lam, low), np.where(miss > 0.0, high, lam)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                if np.all(np.abs(miss) <= FOUND * np.sqrt(at.k2)):
                    break
                new = lam + miss / at.k2
                width = np.where(np.isfinite(high - low), 0.5 * (high + low), 2.0 * lam)
                new = np.where((new > low) & (new < high), new, width)
            lam = np.where(np.isfinite(new), new, lam)
            at = self._cumulants(lam)
        return lam, at

    @np.errstate(over="ignore", invalid="ignore")  # beyond the largest loss λ grows to infinity
    def _cumulants(self, lam: FloatArray) -> _Tilted:
        """Cumulants of the tilted sums; NaN, which no tail is made of, where they overflow."""
        total = np.zeros((5, lam.size))
        for value, log_weight, number in self._terms:
            exponent = lam[:, None] * value + log_weight
            top = exponent.max(axis=1, keepdims=True)
            share = np.exp(exponent - top)
            norm = share.sum(axis=1)
            share /= norm[:, None]
            mean = share @ value
            y = value - mean[:, None]
            square = y * y
            m2, m3, m4 = (
                (share * power).sum(axis=1) for power in (square, square * y, square * square)
            )
            total += number * np.array([top[:, 0] + np.log(norm), mean, m2, m3, m4 - 3.0 * m2 * m2])
        return _Tilted(*total)
