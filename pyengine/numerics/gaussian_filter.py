"""A privacy filter: Gaussian releases that are chosen in view of earlier ones, within a total."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from pyengine._support import checks

__all__ = ["GaussianFilter", "root_above", "root_below"]


class _Booked(NamedTuple):
    """The sum of squares that was spent, and under the key ``next`` the state after one more."""

    spent: Fraction
    after: dict[str, Any]


class GaussianFilter:
    """Admits adaptively chosen releases as long as Σ μᵢ² <= μ²: together they are μ-GDP.

    Each release, including its μᵢ, may depend on all earlier ones.

    Parameters
    ----------
    mu : float or exact number
        Total, in (0, ∞).

    Notes
    -----
    The filter holds for releases that are Gaussian mechanisms, or μᵢ-GDP given the earlier ones.
    Sums are exact, so no rounding accumulates over millions of releases.

    Threads may share it, and signal handlers may use it: releases are booked one after the other,
    without a lock.  `copy.copy` and `copy.deepcopy` return the same filter, as there is only one
    budget.  A forked child has a copy that does not see what the parent spends; so is a loaded
    pickle, which is a checkpoint: continue with it or with the original, not with both.

    References
    ----------
    A. Smith, A. Thakurta, Fully Adaptive Composition for Gaussian Differential Privacy (2022),
    arXiv:2210.17520, Theorem 2; A. Koskela, M. Tobaben, A. Honkela, Individual Privacy Accounting
    with Gaussian Differential Privacy (2023), arXiv:2209.15596.

    Examples
    --------
    >>> import pyengine as pe
    >>> budget = pe.duality.GaussianFilter(1)
    >>> [budget.spend("0.6"), budget.spend("0.8"), budget.spend("0.001")]
    [True, True, False]
    """

    def __init__(self, mu: Any) -> None:
        self._total = Fraction(checks.positive("mu", mu)) ** 2
        self._booked = _Booked(Fraction(0), {})  # the last state, or one shortly before it

    def __copy__(self) -> GaussianFilter:
        return self

    def __deepcopy__(self, memo: Any) -> GaussianFilter:
        return self

    def _last(self) -> _Booked:
        booked = self._booked
        while (after := booked.after.get("next")) is not None:
            booked = after
        return booked

    def spend(self, mu: Any) -> bool:
        """Book a release if it fits.

        Parameters
        ----------
        mu : float or exact number
            μ of the release, in [0, ∞).

        Returns
        -------
        bool
            True if it fits and was booked; False if not: then it must not happen.
        """
        square = Fraction(checks.non_negative("mu", mu)) ** 2
        while True:
            last = self._last()
            spent = last.spent + square
            if spent > self._total:
                return False
            booked = _Booked(spent, {})
            # atomic: of all that try at the same time, one comes next
            if last.after.setdefault("next", booked) is booked:
                self._booked = booked
                return True

    @property
    def spent(self) -> float:
        """μ of all booked releases together, rounded up."""
        return root_above(self._last().spent)

    @property
    def left(self) -> float:
        """Largest μ of one more release, rounded down to a double so that it fits."""
        return root_below(self._total - self._last().spent)


def root_above(square: Fraction) -> float:
    """Smallest double, or inf, whose square is at least a number in [0, ∞)."""
    root = root_below(square)
    return root if Fraction(root) ** 2 == square else math.nextafter(root, math.inf)


def root_below(square: Fraction) -> float:
    """Largest double whose square is at most a number in [0, ∞)."""
    if not square:
        return 0.0
    bits = square.numerator.bit_length() - square.denominator.bit_length()
    shift = 64 - bits // 2  # the root then has about 64 bits before the point
    scaled = square * Fraction(4) ** shift
    try:
        root = math.ldexp(math.isqrt(math.floor(scaled)), -shift)
    except OverflowError:
        root = math.nextafter(math.inf, 0.0)
    while Fraction(root) ** 2 > square:  # it was rounded up
        root = math.nextafter(root, 0.0)
    return root
