"""Gaussian steps and mixtures of normals as kinds of steps on lines.

All plain Gaussian steps are one, in closed form.  All others (Poisson samples, groups, substitute,
truncated samples) are one kind of the C core, with the nodes, values and bounds of the engine for
mixtures of normals alone (docs/theory/kinds, Lemmas 1 and 2, and docs/theory/gaussian).
"""

from __future__ import annotations

import math
from _thread import allocate_lock
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property, kept
from pyengine._support.status import finished
from pyengine.engines.functionals import array
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.spectral import Spectral
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.shapes import At, Fall, LossShape
from pyengine.engines.vertical_lines.tilted import TiltedStep, TiltedTransform
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import as_decimal
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide

__all__ = ["GaussianShape", "MixtureShape"]

FloatArray = npt.NDArray[np.float64]

REACH = 45.0  # standard deviations: a normal law has less than all doubles beyond
FARTHEST = 40.0  # standard deviations from the normals' shifts up to which laws are integrated
ABOVE_LAST = 1.002  # the last node's frequency times this is at most that of the request
RUNS = 33.0  # spacings by which whole runs of values may pass the last node
WINDOW = 6.0  # standard deviations of integration beyond those that the removed mass asks for
NODES = 64  # of one law of a mixture, about
SLACK = 1.0 + 1e-9  # covers the rounding of a bound
MOST_LOG = 700.0  # larger exponents overflow
NO_MASS = 750.0  # e^-750 is below all doubles
TILTS = 2.0 ** np.arange(-8.0, 12.0)  # distances of Chernoff tilts from the poles


@dataclass(frozen=True)
class GaussianShape(LossShape):
    """All plain Gaussian steps of a composition, which are one.

    Parameters
    ----------
    variance : Fraction
        That of the summed loss, Σ N/σ².
    """

    variance: Fraction
    is_symmetric: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = False
    __hash__ = LossShape.__hash__

    @cached_property
    def exact(self) -> Wide:
        """The variance as a sum of two doubles."""
        return Wide.of(as_decimal(self.variance))

    @property
    def ends(self) -> tuple[float, float]:
        """Losses beyond which all masses underflow."""
        v = float(self.variance)
        reach = 0.5 * v + REACH * math.sqrt(v)
        return -reach, reach

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss)."""
        log = 0.5 * float(self.variance) * tilt * (tilt - 1.0)
        return log + 8.0 * UNIT * (abs(log) + float(self.variance) * abs(tilt))

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log E_A e^(λ loss), and mean and variance of the tilted loss, rounded."""
        v = float(self.variance)
        return 0.5 * v * tilt * (tilt - 1.0), v * (tilt - 0.5), np.full(tilt.size, v)

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """Decay e^(-v t²/2), and the bound of its integral over dt/t."""
        del at
        square = variance * frequency * frequency
        modulus = fn.exp(-0.5 * square)
        with np.errstate(over="ignore", divide="ignore"):  # a law too narrow to fall at all
            return Fall(modulus, modulus / square)

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> GaussianStep:
        """The step at a tilt, for all frequencies."""
        del frequency, enough, spacing
        return GaussianStep(self, at.tilt)


class GaussianStep(TiltedStep):
    """A Gaussian step at a tilt: with a centre at the mean, φ is e^(-v t²/2)."""

    shape: GaussianShape

    def __init__(self, shape: GaussianShape, tilt: float) -> None:
        self.shape, self.tilt = shape, tilt
        at = Wide(tilt)
        self.log_mean = 0.5 * shape.exact * at * (at - 1.0)
        mean = shape.exact * (at - 0.5)
        self.centre, self._beside = float(mean), float(mean.low)
        self._off = 4.0 * EXTENDED * (abs(self.centre) + float(shape.exact)) + UNIT * abs(
            self._beside
        )

    @property
    def log_error(self) -> float:
        """By the rounding of the variance and of three products."""
        return 6.0 * EXTENDED * (abs(float(self.log_mean)) + float(self.shape.exact))

    def _log(self, frequency: FloatArray | float) -> Any:
        return -0.5 * float(self.shape.exact) * (frequency * frequency)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """|φ| at the frequency, as it falls."""
        del modulus
        return float(fn.exp(self._log(frequency[0]))) * SLACK

    def tail(self, frequency: float) -> float:
        """The bound e^(-v T²/2)/(v T²) of the integral of e^(-v t²/2) dt/t from T on."""
        square = float(self.shape.exact) * frequency * frequency
        return fn.exp(-0.5 * square) / square * SLACK

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """φ in closed form."""
        del spacing
        log = self._log(frequency)
        error = 4.0 * UNIT * np.abs(log) + frequency * self._off
        modulus = fn.exp(log)
        of_value = modulus * fn.expm1(np.minimum(error, 1.0)) + ELEMENTARY * UNIT * modulus
        return TiltedTransform(modulus, log, frequency * self._beside, of_value, error)


@dataclass(frozen=True)
class MixtureShape(LossShape):
    """All steps of a composition with mixtures of normals, as one kind.

    Parameters
    ----------
    laws : tuple of (StepLaw, int)
        Ordered pairs with exact mixtures, and the number of steps of each.
    """

    laws: tuple[tuple[StepLaw, int], ...]
    is_costly: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = False
    __hash__ = LossShape.__hash__

    @cached_property
    def number(self) -> int:
        """Number of steps."""
        return sum(number for _, number in self.laws)

    @cached_property
    def _core(self) -> tuple[Spectral, Any]:
        """The steps in the C core, and a lock: the core's object serves one thread at a time."""
        others, exact = [], []
        for law, number in self.laws:
            found, terms = law.mixtures(), law.exact_mixtures()
            assert found is not None
            assert terms is not None
            others.append((found, number))
            exact.append(terms)
        pair = Spectral(GaussianPair((), (), (), False), tuple(others), tuple(exact))
        return pair, allocate_lock()

    def _ask(self, call: Callable[[Any], int]) -> bool:
        """Call the core with the steps; False where it finds no proof."""
        pair, lock = self._core
        with lock:
            status = call(pair.handle)
        return finished(status, "mixtures of normals")

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Losses beyond which all masses underflow, by Chernoff's bounds with estimated means."""
        log = self.cumulants(np.concatenate([-TILTS, 1.0 + TILTS]))[0].reshape(2, -1)
        below, above = np.fmin.reduce((log + NO_MASS) / TILTS, axis=1).tolist()
        return -below, above

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss) of the law as truncated; ∞ without a proof."""
        out = ffi.new("double[3]")
        is_known = self._ask(lambda pair: lib.pe_pair_log_above(pair, tilt, out))
        return float(out[0]) if is_known else math.inf

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates of log E_A e^(λ loss), and of mean and variance of the tilted loss."""
        out, places = np.empty((tilt.size, 3)), array(np.ascontiguousarray(tilt))
        room = array(out.reshape(-1), writable=True)
        if not self._ask(lambda pair: lib.pe_pair_cumulants(pair, tilt.size, places, room)):
            out[:] = math.nan
        # far out the variance cancels
        return out[:, 0], out[:, 1], np.maximum(out[:, 2], 1e-300)

    def at(self, tilt: float, log_lost: float) -> MixtureKind | None:
        """The kind at a tilt, truncated by at most e^``log_lost``; None without a proof."""
        out = ffi.new("pe_mixture_kind **")
        # standard deviations from the shifts: Gaussian tails of the mass that each step may lose
        mass = log_lost - fn.log(self.number + 1.0)
        farthest = min(math.sqrt(-2.0 * mass) + WINDOW, FARTHEST)
        if not self._ask(lambda pair: lib.pe_mixture_kind_new(pair, tilt, farthest, out)):
            return None
        return MixtureKind(self, ffi.gc(out[0], lib.pe_mixture_kind_free))

    def expected_nodes(self, frequency: float) -> float:
        """Estimated number of nodes of all laws."""
        del frequency
        return float(NODES * len(self.laws))

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """Decay of the transform along a line, by bounds of the core."""
        del variance
        kind, lock = _begun(self, at.tilt, at.log_lost)
        if kind is None:
            return Fall(np.ones(frequency.size), np.ones(frequency.size))
        with lock:
            log = np.array([kind.log_beyond(t) for t in frequency.tolist()])
            modulus = fn.exp(np.minimum(log, 0.0))
            return Fall(modulus, modulus)

    def log_above(self, tilt: float, log_lost: float, place: float) -> float:
        """The bound of log E_A e^(``place`` loss) that the line at ``tilt`` finds."""
        kind, lock = _begun(self, tilt, log_lost)
        if kind is None:
            return math.inf
        with lock:
            return kind.log_above(place)

    def tilted(
        self, at: At, frequency: float, enough: float, spacing: float
    ) -> NormalMixtureStep | None:
        """The step at a tilt, for frequencies up to one; None where the core has no proof."""
        del enough
        known = ffi.new("pe_kind_at *")
        kind = self.at(at.tilt, at.log_lost)
        if kind is None:
            return None
        last, top = frequency / ABOVE_LAST, 1.01 * frequency + RUNS * spacing
        status = lib.pe_mixture_kind_finish(kind.kind, last, top, known)
        if not finished(status, "mixtures of normals"):
            return None
        return NormalMixtureStep(self, at.tilt, kind, known, last)


class MixtureKind:
    """Mixtures of normals at a tilt; for one thread.

    Parameters
    ----------
    shape : MixtureShape
        The owner of the core's steps, kept alive.
    kind : cdata
        The core's object.
    """

    def __init__(self, shape: MixtureShape, kind: Any) -> None:
        self._shape, self.kind = shape, kind

    def log_beyond(self, frequency: float) -> float:
        """Log of an upper bound of |φ| from a frequency on."""
        out = ffi.new("double *")
        lib.pe_mixture_kind_beyond(self.kind, 1, (frequency,), out)
        return float(out[0])

    def log_above(self, place: float) -> float:
        """Upper bound of log E_A e^(``place`` loss)."""
        return float(lib.pe_mixture_kind_log_above(self.kind, place))


# kept for several questions about a line before it is made, with a lock for threads
@kept(64)
def _begun(shape: MixtureShape, tilt: float, log_lost: float) -> tuple[MixtureKind | None, Any]:
    return shape.at(tilt, log_lost), allocate_lock()


class NormalMixtureStep(TiltedStep):
    """All mixtures of normals of a composition at a tilt, as one step.

    Parameters
    ----------
    shape, tilt : MixtureShape, float
        The kind, and λ.
    kind : MixtureKind
        The kind at this tilt.
    known : pe_kind_at
        The core's log mean, centre, bounds, and removed masses.
    last : float
        The frequency from which on the core's bounds hold.
    """

    def __init__(
        self, shape: MixtureShape, tilt: float, kind: MixtureKind, known: Any, last: float
    ) -> None:
        self.shape, self.tilt, self._kind, self._last = shape, tilt, kind, last
        self._beyond = min(fn.exp(min(float(known.log_beyond), 0.0)) * SLACK, 1.0)
        self._tail = float(known.tail) * SLACK
        high, low = known.log_m
        self.log_mean = Wide(high, low)
        self._log_error = float(known.log_m_error)
        self.centre = float(known.mean)
        self._removed = float(known.removed[0]), float(known.removed[1])

    @property
    def log_error(self) -> float:
        """Bound of the absolute error of ``log_mean``."""
        return self._log_error

    @property
    def removed(self) -> tuple[float, float]:
        """Upper bounds of A's and B's mass beyond the ends of integration."""
        return self._removed

    def bound_at(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), by quadrature on the real line."""
        return self._kind.log_above(tilt)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """Upper bound of |φ| by contours off the real line; 1 below ``last``."""
        del modulus
        return self._beyond if frequency[0] >= self._last else 1.0

    def tail(self, frequency: float) -> float:
        """Upper bound of the integral of |φ| dt/t by such contours; ∞ below ``last``."""
        return self._tail if frequency >= self._last else math.inf

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """φ at multiples of ``spacing``, which must be given."""
        if spacing is None:
            raise AssertionError("mixtures of normals know multiples of a spacing alone")
        size = frequency.size
        log, angle, error, top = np.empty((4, size))
        status = lib.pe_mixture_kind_values(
            self._kind.kind,
            size,
            spacing,
            *(array(x, writable=True) for x in (log, angle, error, top)),
        )
        finished(status, "mixtures of normals")
        # roundings of the sum over steps, as in the core's own lines
        error += (12.0 + 2.0 * np.abs(angle) + 2.0 * np.abs(log)) * UNIT
        known = np.isfinite(error)
        modulus = fn.exp(np.minimum(log, 0.0))
        most = fn.exp(np.minimum(top, MOST_LOG))
        off = np.where(known, modulus * fn.expm1(np.minimum(error, 1.0)), modulus + most)
        return TiltedTransform(
            modulus,
            np.where(known, log, -np.inf),
            angle,
            off,
            np.where(known, error, top + 4.0 * UNIT * (1.0 + np.abs(top))),
        )
