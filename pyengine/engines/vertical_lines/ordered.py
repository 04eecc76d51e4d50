"""What questions ask of one order of a composed law of Laplace steps, and what all orders say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import ComposedLaw, Tails

__all__ = ["FiniteLosses", "OrderedLaw", "RoughTails", "tails_of"]

FloatArray = npt.NDArray[np.float64]
RoughTails = tuple[float, float, float, float]  # A above and below, B above and below


class OrderedLaw(ComposedLaw, Protocol):
    """An ordered pair whose masses are known with bounds, and about where they lie."""

    exchanged: bool
    # masses of the first and of the second law where the other one has none,
    alone_masses: tuple[float, float]
    # and the former as a sum of two doubles, with a bound on its error
    first_alone: tuple[float, float, float]

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""

    @property
    def has_atoms(self) -> bool:
        """Whether atoms count, so that masses jump and what is expected is rough."""

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""

    def profile_about(self, near: float) -> Callable[[float], float]:
        """About the profile at ε, by what serves at ``near`` wherever that serves as well."""

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which losses the first law's mass above is expected to come to α."""

    @property
    def jumps(self) -> FloatArray:
        """Losses with atoms that count, rising; none where `has_atoms` is not."""

    def profile_most(self, epsilon: float, enough: float = 0.0) -> float:
        """A number not below the profile, found quickly; no closer than ``enough`` asks for."""

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which ε the profile is expected to come to δ."""

    @property
    def least_known(self) -> float:
        """What is smaller is known to be small alone: bounds of it may be far apart."""


class FiniteLosses:
    """One order of a pair whose losses are bounded, between ``ends`` under the order (A, B).

    Parameters
    ----------
    ends : pair of float
        The doubles next to the least and to the largest loss.
    exchanged : bool
        Whether the pair is (B, A), of the loss with the other sign.
    """

    alone_masses = 0.0, 0.0
    first_alone = 0.0, 0.0, 0.0

    def __init__(self, ends: tuple[float, float], exchanged: bool) -> None:
        self._ends, self.exchanged = ends, exchanged

    def support(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        low, high = self._ends
        return (-high, -low) if self.exchanged else (low, high)

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss."""
        end = self.support()[0]
        return math.nextafter(end, -math.inf), math.nextafter(end, math.inf)

    def infinite(self) -> tuple[float, float]:
        """No loss is infinite."""
        return 0.0, 0.0

    def alone(self) -> tuple[float, float, float]:
        """None of A's mass is alone."""
        return 0.0, 0.0, 0.0

    @property
    def least_known(self) -> float:
        """Bounds are close whatever they are of."""
        return 0.0


def tails_of(masses: Iterable[tuple[FloatArray, FloatArray]], shift: FloatArray) -> Tails:
    """Return tails of masses and bounds on their absolute errors.

    Parameters
    ----------
    masses : iterable
        A's mass above and below, and B's, each with its bound.
    shift : ndarray
        Of the thresholds.
    """
    parts, error = [], np.zeros(shift.size)
    for mass, given in masses:
        off = np.where(np.isnan(given), 1.0, given)
        unknown = (mass <= off) & (off > 0.0)
        known = np.where(unknown, np.minimum(off, 1.0), mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(off > 0.0, off / known, 0.0)
        error = np.maximum(error, np.where(unknown, np.maximum(share, 1.0), share))
        parts.append(known)
    return Tails(parts[0], parts[1], parts[2], parts[3], error, shift)
