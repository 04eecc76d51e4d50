"""The transform of one tilted step along a vertical line, with bounds of its errors.

φ(t) = E_A e^((λ + it) loss - it centre)/E_A e^(λ loss), with a centre near the tilted mean.  The
sums are those of φ - 1, with errors in proportion to t: near the real axis they are as small as
φ - 1 itself (docs/theory/laplace, Lemma 2, and docs/theory/line, Lemma 8).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property
from pyengine._support.status import finished
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.nodes import StepNodes, chosen_nodes, edges_of, remainder
from pyengine.engines.vertical_lines.shapes import LossShape
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, wide_log

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.laplace_shapes import StepShape

__all__ = [
    "ClosedRangeStep",
    "LaplaceStep",
    "NodeStep",
    "TiltedStep",
    "TiltedTransform",
    "laplace_step",
    "log_mean_at",
]

FloatArray = npt.NDArray[np.float64]

LANES = 8  # partial sums of the C kernel
PART = 256  # losses of a block, which is summed before it is added
LANES_OF_PART = PART / LANES
# roundings of a term and of adding the lanes, for any frequencies and for multiples of a spacing
SUMMED, SUMMED_ON_GRID = 20.0, 40.0
IN_A_ROW = 64  # shares that the core adds one after the other
FARTHEST = 1e8  # largest angle of the kernel
LEAST = 1e-14  # smallest |φ| whose logarithm is used


class TiltedTransform(NamedTuple):
    """Modulus, log of the modulus, and angle of φ at n frequencies, with bounds of errors.

    ``error`` bounds the absolute error of φ, but for the rounding of the modulus; ``log_error``
    that of the complex logarithm.  Where φ is hardly known ``log`` is -∞ and ``log_error`` is an
    upper bound of log |φ|.
    """

    modulus: FloatArray
    log: FloatArray
    angle: FloatArray
    error: FloatArray
    log_error: FloatArray


class LogMean(NamedTuple):
    """The logarithm of a sum over nodes, rounded, and an upper bound of it."""

    about: float
    most: float


def log_mean_at(nodes: StepNodes, log_mass: FloatArray, tilt: float) -> LogMean:
    """Return log Σ mass e^(``tilt`` loss) over nodes.

    ``log_mass`` are the logarithms of the masses, sums of two doubles of shape (2, n).
    """
    out = ffi.new("double *")
    size = nodes.power.size
    over = lib.pe_log_mean_of_nodes(size, array(nodes.loss), array(log_mass), tilt, out)
    top = float(out[0])
    log = top + over
    rounding = (4.0 * (abs(top) + abs(log)) + size + 16.0) * UNIT
    return LogMean(log, log + rounding + 2.0 * abs(tilt) * nodes.loss_error)


class TiltedStep(ABC):
    """One kind of step at a tilt, as a line asks about it (docs/theory/line, Lemma 7).

    Attributes
    ----------
    shape : LossShape
        The kind.
    tilt : float
        λ.
    log_mean : Wide
        log E_A e^(λ loss).
    log_error : float
        Bound of its absolute error.
    centre : float
        Near the mean of the tilted loss; transforms are those of loss - centre.
    """

    shape: LossShape
    tilt: float
    log_mean: Wide
    centre: float

    @property
    @abstractmethod
    def log_error(self) -> float:
        """Bound of the absolute error of ``log_mean``."""

    @property
    def at_ends(self) -> float:
        """Upper bound of the tilted mass of the flat part."""
        return 0.0

    def mass_at_ends(self, pole: float) -> float:
        """Upper bound of A's (pole 0) or B's (pole 1) mass of the flat part."""
        del pole
        return 0.0

    @property
    def removed(self) -> tuple[float, float]:
        """Upper bounds of the masses that A and B lack of 1."""
        return self.shape.removed

    def bound_at(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss)."""
        return self.shape.log_mean_bound(tilt)

    @abstractmethod
    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """Upper bound of |φ| from a frequency on; at that frequency it is at most ``modulus``."""

    @abstractmethod
    def tail(self, frequency: float) -> float:
        """Upper bound of the integral of |φ - q| dt/t from there on, q being the flat part's."""

    @abstractmethod
    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """φ at frequencies up to the one that the step was made for.

        With a ``spacing`` the frequencies are its exact multiples, from 0 on.
        """


class NodeStep(TiltedStep):
    """One kind of step at a tilt, by a quadrature of its law.

    Parameters
    ----------
    shape, tilt : LossShape, float
        The kind, and λ.
    nodes : StepNodes
        The quadrature.
    left : float
        Bound of the quadrature error of E_A e^(s loss), relative to E_A e^(λ loss).
    """

    _of_moments = 0.0  # Σ share |loss - centre| times the share's error, if each has its own

    def __init__(self, shape: LossShape, tilt: float, nodes: StepNodes, left: float) -> None:
        self.shape, self.tilt, self.nodes, self.left = shape, tilt, nodes, left
        self.share, self.apart = np.empty((2, nodes.power.size))
        log_mean = ffi.new("pe_dd *")
        self.centre = lib.pe_step_at_tilt(
            nodes.power.size,
            array(nodes.loss),
            array(nodes.mass),
            array(nodes.power),
            tilt,
            log_mean,
            array(self.share, writable=True),
            array(self.apart, writable=True),
        )
        self.log_mean = Wide(log_mean.h, log_mean.l)
        exponents = 8.0 * EXTENDED * float(abs(tilt) * np.abs(nodes.loss[0]).max() + 8.0)
        # relative error of the shares; of errors that differ the mean counts
        of_masses = nodes.mass_error
        if isinstance(of_masses, np.ndarray):
            heavy = self.share * of_masses * (1.0 + 1e-9)
            of_masses = float(heavy.sum())
            self._of_moments = float((heavy * np.abs(self.apart)).sum())
        self.share_error = (
            of_masses
            + 2.0 * abs(tilt) * nodes.loss_error
            + exponents
            + EXTENDED * (IN_A_ROW + nodes.power.size / IN_A_ROW)
        )

    def reaching(self, log_mean: float, frequency: float) -> Self | None:
        """The step if the kernel takes all angles up to a frequency, else None.

        Rescales ``left``, which was relative to e^``log_mean``, an estimate, to the proven mean.
        """
        self.left *= 1.01 * max(1.0, float(fn.exp(log_mean - float(self.log_mean))))
        return self if frequency * float(np.abs(self.apart).max()) < FARTHEST else None

    @property
    def log_error(self) -> float:
        """By the errors of the nodes' masses and losses, and by that of the quadrature."""
        return 1.01 * (self.share_error + self.left)

    @property
    @abstractmethod
    def decay(self) -> Decay:
        """Bounds of φ at high frequencies."""

    def tail(self, frequency: float) -> float:
        """Upper bound of the integral of |φ - q| dt/t from there on, by `decay`."""
        return float(self.decay.tail(np.array([frequency]))[0])

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """φ at frequencies up to the one that the nodes were chosen for."""
        count = frequency.size
        x, y = np.empty(count), np.empty(count)
        losses = self.apart.size, array(self.apart), array(self.share)
        room = array(x, writable=True), array(y, writable=True)
        if spacing is None:
            lib.pe_loss_transform(count, array(frequency), *losses, *room)
        else:
            status = lib.pe_loss_transform_grid(count, spacing, *losses, *room)
            finished(status, "transforms of losses")
        # terms are at most |t (loss - centre)|, and err by parts of that
        moment = float((self.share * np.abs(self.apart)).sum()) * (1.0 + 1e-9)
        summed = SUMMED if spacing is None else SUMMED_ON_GRID
        size = self.share.size
        chain = (min(size / LANES, LANES_OF_PART) + size / PART + summed) * UNIT + self.share_error
        known = moment * chain + self._of_moments + 2.0 * self.nodes.loss_error
        error = frequency * known + 2.0 * self.left
        error = error * (1.0 + 1e-9) + 1e-300
        square = 2.0 * x + (x * x + y * y)
        # not the root of 1 + square, which loses a small modulus in the rounding of 1
        modulus = fn.hypot(1.0 + x, y)
        known = modulus > 4.0 * error + LEAST
        near = known & (modulus > 0.5)
        least = np.where(known, modulus, 1.0)
        log = np.where(near, 0.5 * fn.log1p(np.where(near, square, 0.0)), fn.log(least))
        angle = fn.arctan2(y, 1.0 + x)
        change = 2.0 * np.abs(x) + x * x + np.abs(y) + y * y
        log_error = error / (least - np.minimum(2.0 * error, 0.5 * least))
        rounded = np.where(near, change / (least * least), 1.0 / least) + np.abs(log)
        log_error = log_error + (4.0 + ELEMENTARY) * UNIT * rounded
        log_error = log_error + ELEMENTARY * UNIT * np.abs(angle)
        # where φ is hardly known it is set to 0, with the upper bound of log |φ| as its error
        largest = fn.log(modulus + error + 4.0 * UNIT)
        return TiltedTransform(
            modulus,
            np.where(known, log, -np.inf),
            angle,
            error,
            np.where(known, log_error, largest),
        )


class LaplaceStep(NodeStep):
    """A Laplace step at a tilt; the first two nodes are its atoms, the flat part."""

    shape: StepShape

    @cached_property
    def decay(self) -> Decay:
        """Bounds of φ at high frequencies."""
        return self.shape.decay(self.tilt, float(self.log_mean))

    @property
    def at_ends(self) -> float:
        """Upper bound of the tilted mass of both atoms."""
        return float(self.share[:2].sum()) * (1.0 + 4.0 * UNIT)

    def mass_at_ends(self, pole: float) -> float:
        """A's (pole 0) or B's (pole 1) mass of both atoms."""
        ends = np.array([float(end) for end in self.shape.ends])
        atoms = np.array([float(atom) for atom in self.shape.atoms])
        return float((atoms * fn.exp(pole * ends)).sum())

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Logarithms of A's masses."""
        return wide_log(self.nodes.mass, self.nodes.power)

    def bound_at(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), by the same nodes and their remainder there."""
        log = log_mean_at(self.nodes, self._log_mass, tilt)
        rule = self.nodes.rule
        edges = edges_of(self.shape, rule)
        left = remainder(self.shape, tilt, log.about, 0.0, edges, np.array([rule.size]))[0]
        return log.most + float(fn.log1p(left))

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """Upper bound of |φ| from a frequency on; up to π/length |φ| is known to fall."""
        half_turn = math.pi / float(self.shape.length)
        found = float(self.decay.largest(np.maximum(frequency, 0.999999 * half_turn))[0])
        found = max(found, self.at_ends)
        return max(found, modulus) if frequency[0] < half_turn else found


class ClosedRangeStep(LaplaceStep):
    """A step of bounded range at a tilt, with φ in closed form, for few steps.

    With x = λ - 1/2 and z = x + it, φ is sinh(z ε) x/(z sinh(x ε)) up to the centre (docs/theory/
    kinds, Lemma 4).  Its error is some roundings of 1 and of t ε; many steps need φ - 1 with a
    small relative error, for which `NodeStep` serves.
    """

    def bound_at(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), by the shape: these nodes suit one tilt."""
        return self.shape.log_mean_bound(tilt)

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """φ in closed form; the angle t ε is a sum of two doubles."""
        del spacing
        end, rate = 0.5 * float(self.shape.length), abs(self.tilt - 0.5)
        angle = Wide(frequency) * end
        sine, cosine = fn.sin(angle.high), fn.cos(angle.high)
        sine, cosine = sine + angle.low * cosine, cosine - angle.low * sine
        # sinh(z ε) and sinh(x ε)/x over e^(|x| ε)
        rise = -fn.expm1(-2.0 * rate * end)
        top = 0.5 * rise * cosine + 0.5j * (2.0 - rise) * sine
        z = rate + 1j * frequency
        at_zero = 0.5 * rise / rate if rate > 0.0 else end
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(frequency > 0.0, top / z / at_zero, 1.0)
            size = np.minimum(1.0 / (fn.modulus(z) * at_zero), 1.0)
        if self.tilt < 0.5:  # λ and 1 - λ have conjugate transforms
            value = np.conj(value)
        modulus = fn.modulus(value)
        turned = fn.arctan2(value.imag, value.real) - frequency * self.centre
        # roundings of the quotient, and of ε in the angle and in both hyperbolic sines
        error = UNIT * (32.0 + 4.0 * (frequency + rate) * end) * size
        known = modulus > 4.0 * error + LEAST
        least = np.where(known, modulus, 1.0)
        log = np.where(known, fn.log(least), -np.inf)
        off = error / (least - np.minimum(2.0 * error, 0.5 * least))
        off = off + 8.0 * UNIT * (2.0 + np.abs(fn.log(least)) + np.abs(frequency * self.centre))
        most = fn.log(modulus + error + 4.0 * UNIT * modulus)
        return TiltedTransform(modulus, log, turned, error, np.where(known, off, most))


def laplace_step(
    shape: StepShape, tilt: float, log_mean: float, frequency: float, enough: float
) -> LaplaceStep | None:
    """Return a Laplace step at a tilt, as `LossShape.tilted` does."""
    found = chosen_nodes(shape, tilt, log_mean, frequency, enough)
    if found is None:
        return None
    return LaplaceStep(shape, tilt, *found).reaching(log_mean, frequency)
