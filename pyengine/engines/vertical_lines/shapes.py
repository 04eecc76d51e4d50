"""What lines ask of a kind of step, its *shape*, whatever its law is."""

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

NOTHING_LOST = -800.0  # logarithm of a probability below all doubles: laws are not truncated
NO_MASSES = Fraction(0), Fraction(0)


class At(NamedTuple):
    """A tilt at which a step is wanted, and the composition that it is part of.

    Parameters
    ----------
    tilt, log_mean : float
        λ, and an estimate of the step's log E_A e^(λ loss).
    steps : int
        Number of steps of all kinds together.
    log_lost : float
        Logarithm of the probability by which each law of the composition may be truncated.
    """

    tilt: float
    log_mean: float
    steps: int
    log_lost: float = NOTHING_LOST


class Fall(NamedTuple):
    """Decay of a transform at some frequencies T, for choices: bounds, or nearly that.

    Parameters
    ----------
    modulus : ndarray
        The largest |φ(t)| for t >= T.
    tail : ndarray
        The integral of |φ(t) - q(t)| dt/t from T on, q being the transform of the flat part.
    """

    modulus: FloatArray
    tail: FloatArray


class LossShape(ABC):
    """One kind of step, A being the law without the record.

    Its *flat part* (atoms) is the part of the law whose transform need not decay.
    """

    is_costly: ClassVar[bool] = False  # `fall` is slow: ask one frequency at a time
    is_few_losses: ClassVar[bool] = False  # a law of finitely many losses

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        """Hash of all fields, kept: shapes are keys of caches, and fractions are slow to hash."""
        return self._hash

    @property
    @abstractmethod
    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest loss."""

    @property
    def has_exact_ends(self) -> bool:
        """Whether both ends are known to 60 digits."""
        return False

    @property
    def off_ends(self) -> float:
        """Bound of the absolute errors of both ends, roundings not counted."""
        return 0.0

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is known to be the same."""
        return False

    @property
    def is_bounded(self) -> bool:
        """Whether all losses lie between the ends."""
        return True

    @property
    def has_corners(self) -> bool:
        """Whether the density is analytic between few corners, so that deformed lines serve."""
        return False

    @property
    def alone(self) -> tuple[Fraction, Fraction]:
        """Masses of A at the loss -∞ and of B at +∞, which lines do not contain (Lemma 9)."""
        return NO_MASSES

    @property
    def log_masses(self) -> tuple[float, float]:
        """Logarithms of A's and B's masses of finite losses."""
        return 0.0, 0.0

    @property
    def removed(self) -> tuple[float, float]:
        """Bounds of the masses of A and B that truncation removes on every line."""
        return 0.0, 0.0

    @abstractmethod
    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates of log E_A e^(λ loss), and of mean and variance of the tilted loss."""

    @abstractmethod
    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), over losses between the ends."""

    def log_above(self, tilt: float, log_lost: float, place: float) -> float:
        """Estimate of the bound of log E_A e^(``place`` loss) that the line at ``tilt`` finds."""
        del tilt, log_lost
        return cumulants_at(self, place)[0]

    def expected_nodes(self, frequency: float) -> float:
        """Estimated number of nodes of a step, for frequencies up to this one."""
        del frequency
        return 1.0

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of the flat part; estimated."""
        del at
        return -math.inf

    @abstractmethod
    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """Decay of the transform along a line; ``variance`` is that of the tilted loss."""

    @abstractmethod
    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> TiltedStep | None:
        """The step at a tilt, for frequencies up to one; None where that takes too many nodes.

        The relative quadrature error of E_A e^(s loss) may be ``enough``; frequencies are
        multiples of ``spacing``.
        """


Kinds = tuple[tuple[Any, int], ...]  # shapes, and the number of steps of each


@kept(256)
def cumulants_at(shape: LossShape, tilt: float) -> tuple[float, float, float]:
    """Return `LossShape.cumulants` of one step at one tilt."""
    log, mean, variance = shape.cumulants(np.array([tilt]))
    return float(log[0]), float(mean[0]), float(variance[0])


def cumulants(kinds: Kinds, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates of K, K' and K'' at tilts, for the composition."""
    found = np.zeros((3, tilt.size))
    for shape, number in kinds:
        found += number * np.array(shape.cumulants(tilt))
    return found[0], found[1], found[2]
