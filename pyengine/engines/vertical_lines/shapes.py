"""What lines ask of the shape of a step, whatever it is made of."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.tilted import TiltedStep

__all__ = ["NOTHING_LOST", "At", "Fall", "Kinds", "LossShape", "cumulants", "cumulants_at"]

FloatArray = npt.NDArray[np.float64]

NOTHING_LOST = -800.0
NOTHING = Fraction(0), Fraction(0)


class At(NamedTuple):
    """A tilt at which steps are asked for, and what they are parts of.

    Parameters
    ----------
    tilt, log_mean : float
        λ, and about the logarithm of the mean of e^(λ loss) of a step.
    steps : int
        How many there are of all kinds.
    log_lost : float
        Logarithm of the probability that the composition may lack of both laws.
    """

    tilt: float
    log_mean: float
    steps: int
    log_lost: float = NOTHING_LOST


class Fall(NamedTuple):
    """About how a transform falls, for choices: bounds, or nearly that, at some frequencies.

    Parameters
    ----------
    modulus : ndarray
        Of the transform from there on.
    tail : ndarray
        Of the integral over t, from there on, of what is beside the part that need not fall.
    """

    modulus: FloatArray
    tail: FloatArray


class LossShape(ABC):
    """One kind of step, A without the record; shapes that are equal have one hash, found once."""

    is_costly: ClassVar[bool] = False  # to bound far out: one frequency at a time
    is_few_losses: ClassVar[bool] = False

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        """Of all that a shape is made of: laws are kept by it, and fractions take long."""
        return self._hash

    @property
    @abstractmethod
    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest loss."""

    @property
    def has_exact_ends(self) -> bool:
        """Whether both are known to many digits."""
        return False

    @property
    def off_ends(self) -> float:
        """Bound on the errors of both beside roundings."""
        return 0.0

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is known to be the same."""
        return False

    @property
    def is_bounded(self) -> bool:
        """Whether no loss lies beyond the ends."""
        return True

    @property
    def has_corners(self) -> bool:
        """Whether the density is analytic between corners, and deformed lines know it."""
        return False

    @property
    def alone(self) -> tuple[Fraction, Fraction]:
        """Masses of A at the loss -∞ and of B at +∞, which no line has."""
        return NOTHING

    @property
    def log_masses(self) -> tuple[float, float]:
        """Logarithms of what A and B have of finite losses."""
        return 0.0, 0.0

    @property
    def removed(self) -> tuple[float, float]:
        """Bounds on the masses of A and of B that the law lacks on all lines."""
        return 0.0, 0.0

    @abstractmethod
    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """About the log of the mean of e^(tilt loss), mean and variance of the tilted loss."""

    @abstractmethod
    def log_mean_bound(self, tilt: float) -> float:
        """Bound on the logarithm of the mean of e^(``tilt`` loss) between the ends."""

    def log_above(self, tilt: float, log_lost: float, place: float) -> float:
        """About what the line at ``tilt`` bounds the logarithm of the mean by at a place."""
        del tilt, log_lost
        return cumulants_at(self, place)[0]

    def expected_nodes(self, frequency: float) -> float:
        """About how many nodes stand for a step up to a frequency; not proven."""
        del frequency
        return 1.0

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of the part whose transform need not fall."""
        del at
        return -math.inf

    @abstractmethod
    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """About how the transform falls along a line."""

    @abstractmethod
    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> TiltedStep | None:
        """A step at a tilt, for frequencies up to one; None where that takes too many nodes.

        Nodes may leave out ``enough`` of the mean; frequencies are multiples of a ``spacing``.
        """


Kinds = tuple[tuple[Any, int], ...]  # shapes, and how many steps there are of each


@kept(256)
def cumulants_at(shape: LossShape, tilt: float) -> tuple[float, float, float]:
    """Return those of one step at one tilt."""
    log, mean, variance = shape.cumulants(np.array([tilt]))
    return float(log[0]), float(mean[0]), float(variance[0])


def cumulants(kinds: Kinds, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the logarithm of the mean of e^(tilt S), and mean and variance of the tilted sum."""
    found = np.zeros((3, tilt.size))
    for shape, number in kinds:
        found += number * np.array(shape.cumulants(tilt))
    return found[0], found[1], found[2]
