"""The interface of one order of steps that stand beside others, and masses as `Tails`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.exact.levels import Tails
from pyengine.engines.functionals import array
from pyengine.laws.fine import lost_mass
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal

__all__ = [
    "MASSES",
    "ROUGHLY",
    "Alone",
    "Inner",
    "RoughTails",
    "between",
    "profile_from",
    "tails_of",
]

FloatArray = npt.NDArray[np.float64]
RoughTails = tuple[float, float, float, float]  # A above and below, B above and below


MASSES = 4  # A above and below a threshold, B above and below
ROUGHLY = 1e-10  # relative error wanted of estimates, which only place thresholds
SLACK, ROUNDED = 1.0 + 1e-15, 1.0 + 1e-14  # cover the rounding of bounds
DOUBLED = 3  # doublings of a step of the search in `_largest_kept`
PLACE_TERMS = 2**9  # terms of a straight line that take as long as one place of a deformed one


class Alone(NamedTuple):
    """The mass of one law of a composition at an infinite loss, where the other law has none.

    Parameters
    ----------
    mass, rest : float
        The mass and its complement to 1, each to a unit in the last place.
    low, error : float
        The low part of the mass as a sum of two doubles, and a bound of that sum's error.
    """

    mass: float
    rest: float
    low: float
    error: float

    @classmethod
    def of(cls, parts: Sequence[tuple[Fraction, int]]) -> Alone:
        """1 - Π (1 - m)^N, and the product."""
        if not any(mass for mass, _ in parts):
            return NOT_ALONE
        log = Decimal(0)
        for mass, number in parts:
            log = CONTEXT.add(log, CONTEXT.multiply(number, CONTEXT.ln(as_decimal(1 - mass))))
        high, low, error = lost_mass(parts)
        return cls(high, float(CONTEXT.exp(log)), low, error)


NOT_ALONE = Alone(0.0, 1.0, 0.0, 0.0)


class Inner(ABC):
    """One order of steps with bounds of masses and profiles, for sums over other steps' losses."""

    is_deformed: ClassVar[bool] = False
    losses: ClassVar[None] = None  # infinitely many
    stages: int = 1  # number of methods, later ones closer and slower
    alone_masses = 0.0, 0.0  # of the first law at the loss -∞, and of the second at +∞

    @property
    def terms(self) -> float:
        """Number of terms of the lines next to both poles; 0 if there are no lines."""
        return 0.0

    @property
    def places(self) -> float:
        """Time of a mass, in places of a deformed line."""
        return self.terms / PLACE_TERMS

    @property
    def has_atoms(self) -> bool:
        """Whether atoms have mass that counts, so that errors of thresholds matter."""
        return True

    @property
    @abstractmethod
    def jumps(self) -> FloatArray:
        """Losses of atoms with mass that counts, rising."""

    @property
    def least_known(self) -> float:
        """Values below this may have bounds that are far apart."""
        return 0.0

    @abstractmethod
    def lowest(self) -> tuple[float, float]:
        """Bounds of the smallest finite loss; -∞ if there is none."""

    @abstractmethod
    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The same by the method of one stage."""
        del stage
        return self.masses(c)

    def masses_for(self, c: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """Masses and errors, of shape (4, 2, rows, n), for thresholds c of shape (rows, n).

        The values of each row will be summed with weights.  Later stages are used where the errors
        of a row's sum would exceed ``least`` of the sum.
        """
        return self._refined(self.masses_at, c, weight, least)

    def profiles_for(self, epsilon: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """The same for profiles, of shape (1, 2, rows, n)."""

        def ask(stage: int, epsilon: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
            return [self.profile_at(stage, epsilon)]

        return self._refined(ask, epsilon, weight, least)

    def _refined(
        self,
        ask: Callable[[int, FloatArray], list[tuple[FloatArray, FloatArray]]],
        places: FloatArray,
        weight: FloatArray,
        least: float,
    ) -> FloatArray:
        """Values and errors; NaN becomes 1 with the error 1."""

        def asked(stage: int, x: FloatArray) -> FloatArray:
            pairs = np.array(ask(stage, x))
            return np.where(np.isnan(pairs), 1.0, pairs)

        flat = places.ravel()
        found, stage = asked(0, flat), np.zeros(flat.size, dtype=np.intp)
        shape = len(found), 2, *places.shape
        while self.stages > 1:
            terms = found.reshape(shape) * weight[:, None]
            enough = least * terms.sum(axis=(1, 3))[..., None]
            off = terms[:, 1] * (stage < self.stages - 1).reshape(places.shape)
            counts = (off > _largest_kept(off, enough)).any(axis=0).ravel()
            if not counts.any():
                break
            stage[counts] += 1
            for each in np.unique(stage[counts]).tolist():
                at = np.flatnonzero(counts & (stage == each))
                new = asked(each, flat[at])
                closer = new[:, 1] < found[:, 1, at]
                found[:, :, at] = np.where(closer[:, None], new, found[:, :, at])
        return found.reshape(shape)

    def shift(self, c: FloatArray) -> FloatArray:
        """Bounds of the errors of thresholds, which matter next to atoms."""
        return np.zeros(c.size)

    @abstractmethod
    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile at any real ε, and bounds of its absolute errors."""

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same by the method of one stage."""
        del stage
        return self.profile(epsilon)

    def rough_masses(self, c: FloatArray, weight: FloatArray, far: bool = True) -> FloatArray:
        """Estimates of the masses, of shape (4, n), for values that will be summed with weights.

        Unless ``far``, NaN where all that is known is that the threshold is in the far tails.
        """
        del far
        return np.asarray(self.masses_for(c[None], weight[:, None], ROUGHLY)[:, 0, 0])

    def rough_profile(
        self, epsilon: FloatArray, weight: FloatArray, far: bool = True
    ) -> FloatArray:
        """The same of the profile at any real ε."""
        del far
        return np.asarray(self.profiles_for(epsilon[None], weight[None, None], ROUGHLY)[0, 0, 0])


def _largest_kept(terms: FloatArray, enough: FloatArray) -> FloatArray:
    """A number for each row such that terms up to it sum to at most ``enough``, nearly maximal."""
    kept: FloatArray = enough / terms.shape[-1]
    for _ in range(((terms.shape[-1] - 1).bit_length() + DOUBLED - 1) // DOUBLED):
        higher = 2.0**DOUBLED * kept
        fits = (terms * (terms <= higher)).sum(axis=-1, keepdims=True) <= enough
        kept = np.where(fits, higher, kept)
    return kept


def between(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the middle of bounds, and the larger distance of a bound from it."""
    middle = 0.5 * (low + high)
    return middle, np.maximum(high - middle, middle - low) * SLACK


def profile_from(
    epsilon: FloatArray, most: FloatArray, alone: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the profile at ε, and a bound of its error, from upper bounds of the four masses.

    It is at most A(S <= -ε), and for ε < 0 also 1 - e^ε + e^ε B(S > -ε); it is at least
    (1 - e^ε)_+ and A's mass at infinite losses, ``alone``.
    """
    grown = fn.exp(np.minimum(epsilon, 0.0))
    least = -fn.expm1(np.minimum(epsilon, 0.0))
    high = np.minimum(most[1], least * ROUNDED + np.where(epsilon < 0.0, grown * most[2], 1.0))
    return between(np.maximum(least, alone) / ROUNDED, high * ROUNDED)


def tails_of(masses: Iterable[tuple[FloatArray, FloatArray]], shift: FloatArray) -> Tails:
    """Return `Tails` from masses with bounds of their absolute errors.

    Parameters
    ----------
    masses : iterable
        A's masses above and below, and B's, each with its bound.
    shift : ndarray
        Bounds of the errors of the thresholds.
    """
    given, out = np.array(list(masses)), np.empty((len(Tails._fields), shift.size))
    given, moved = np.ascontiguousarray(given), np.ascontiguousarray(shift)
    found = array(out.reshape(-1), writable=True)
    lib.pe_level_tails(shift.size, array(given.reshape(-1)), array(moved), found)
    return Tails(*out)
