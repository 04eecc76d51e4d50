"""What is asked of one order of steps, and how masses become tails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import Tails

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.alone import AloneOrder
    from pyengine.engines.vertical_lines.order import LineOrder

__all__ = ["Inner", "OrderedLaw", "RoughTails", "tails_of"]

FloatArray = npt.NDArray[np.float64]
OrderedLaw: TypeAlias = "LineOrder | AloneOrder"  # what questions ask
RoughTails = tuple[float, float, float, float]  # A above and below, B above and below


PLACE_TERMS = 2**9  # of a line, that take as long as one of what is no line


class Inner(ABC):
    """One order of steps whose masses are known with bounds, as steps beside it ask."""

    is_deformed: ClassVar[bool] = False

    @property
    def terms(self) -> float:
        """How many terms the lines next to both poles have; 0 where nothing lies on lines."""
        return 0.0

    @property
    def places(self) -> float:
        """How many terms masses have, in places of a deformed line."""
        return self.terms / PLACE_TERMS

    @property
    def has_atoms(self) -> bool:
        """Whether atoms count, and thresholds are moved."""
        return True

    @property
    @abstractmethod
    def jumps(self) -> FloatArray:
        """Losses with atoms that count, rising."""

    @property
    def least_known(self) -> float:
        """What is smaller is known to be small alone: bounds of it may be far apart."""
        return 0.0

    @abstractmethod
    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss; -inf where there is none."""

    @abstractmethod
    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""

    def shift(self, c: FloatArray) -> FloatArray:
        """By how much thresholds may be moved beside atoms."""
        return np.zeros(c.size)

    @abstractmethod
    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile at any real ε, and a bound on absolute errors."""

    def rough_masses(self, c: FloatArray) -> FloatArray:
        """About the masses, of shape (4, n)."""
        return np.array([mass for mass, _ in self.masses(c)])

    def rough_profile(self, epsilon: FloatArray) -> FloatArray:
        """About the profile at any real ε."""
        return self.profile(epsilon)[0]


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
