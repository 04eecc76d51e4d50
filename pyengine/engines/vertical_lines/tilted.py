"""The transform of one tilted Laplace step along a vertical line, with bounds on its errors.

All is relative to the mean of e^(λ loss), and losses count from a centre near the tilted mean, so
that what is summed is the distance of the transform from 1: near the real axis its error is as
small as that distance.
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

LANES = 8  # partial sums of the kernel,
PART = 256  # losses that it sums before the others, and how many of them are in a lane
LANES_OF_PART = PART / LANES
# roundings of a term and of the sum of the lanes, of the kernel for any frequencies and of that for
# multiples of a spacing
SUMMED, SUMMED_ON_GRID = 20.0, 40.0
IN_A_ROW = 64
FARTHEST = 1e8  # angles that the kernel takes
LEAST = 1e-14  # of a modulus whose logarithm is known


class TiltedTransform(NamedTuple):
    """Modulus and angle of a transform, its logarithm, and a bound on the latter's errors.

    ``error`` bounds the error of what was summed, the transform less 1, beside which the modulus is
    rounded.
    """

    modulus: FloatArray
    log: FloatArray
    angle: FloatArray
    error: FloatArray
    log_error: FloatArray


class LogMean(NamedTuple):
    """About the logarithm of a sum over nodes, and a bound on it."""

    about: float
    most: float


def log_mean_at(nodes: StepNodes, log_mass: FloatArray, tilt: float) -> LogMean:
    """Return the logarithm of the mean of e^(``tilt`` loss) that nodes give.

    Logarithms of masses are given, of shape (2, n).
    """
    out = ffi.new("double *")
    size = nodes.power.size
    over = lib.pe_log_mean_of_nodes(size, array(nodes.loss), array(log_mass), tilt, out)
    top = float(out[0])
    log = top + over
    rounding = (4.0 * (abs(top) + abs(log)) + size + 16.0) * UNIT
    return LogMean(log, log + rounding + 2.0 * abs(tilt) * nodes.loss_error)


class TiltedStep(ABC):
    """One kind of step at a tilt: all that a line asks of it.

    Attributes
    ----------
    shape : LossShape
        The kind.
    tilt : float
        λ.
    log_mean : Wide
        The logarithm of the mean of e^(λ loss).
    log_error : float
        Bound on its error.
    centre : float
        Next to the mean of the tilted loss; transforms turn about it.
    """

    shape: LossShape
    tilt: float
    log_mean: Wide
    centre: float

    @property
    @abstractmethod
    def log_error(self) -> float:
        """Bound on the error of the logarithm of the mean."""

    @property
    def at_ends(self) -> float:
        """Bound on the tilted mass of the part of the law whose transform need not fall."""
        return 0.0

    def mass_at_ends(self, pole: float) -> float:
        """Bound on A's (0) or B's (1) mass of that part."""
        del pole
        return 0.0

    @property
    def removed(self) -> tuple[float, float]:
        """Bounds on what the masses of A and B are below 1."""
        return self.shape.removed

    def bound_at(self, tilt: float) -> float:
        """Bound on the logarithm of the mean of e^(``tilt`` loss)."""
        return self.shape.log_mean_bound(tilt)

    @abstractmethod
    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """Bound on the modulus of the transform from a frequency on, where it is ``modulus``."""

    @abstractmethod
    def tail(self, frequency: float) -> float:
        """Bound on the integral of what is beside the part at the ends over dt/t, from there on."""

    @abstractmethod
    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """The transform at frequencies up to the one that the step was made for.

        With a ``spacing`` they are its exact multiples from 0 on.
        """


class NodeStep(TiltedStep):
    """One kind of step at a tilt, by nodes that stand for it.

    Parameters
    ----------
    shape, tilt : LossShape, float
        The kind, and λ.
    nodes : StepNodes
        What stands for the step.
    left : float
        Bound on what the nodes leave out, relative to the mean of e^(λ loss).
    """

    _of_moments = 0.0  # errors of masses that have one each, times the distances of their losses

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
        # of a share, relative: of the masses' errors that of the mean one
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
        """The step where it serves up to a frequency, else None.

        What its nodes leave out is made relative to what they sum to, as the guess of the mean that
        it was relative to is not proven.
        """
        self.left *= 1.01 * max(1.0, float(fn.exp(log_mean - float(self.log_mean))))
        return self if frequency * float(np.abs(self.apart).max()) < FARTHEST else None

    @property
    def log_error(self) -> float:
        """Of the masses and losses of nodes, and of what they leave out."""
        return 1.01 * (self.share_error + self.left)

    @property
    @abstractmethod
    def decay(self) -> Decay:
        """Bounds of the transform far out."""

    def tail(self, frequency: float) -> float:
        """As the decay says."""
        return float(self.decay.tail(np.array([frequency]))[0])

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """The transform at frequencies up to the one that the nodes were chosen for."""
        count = frequency.size
        x, y = np.empty(count), np.empty(count)
        losses = self.apart.size, array(self.apart), array(self.share)
        room = array(x, writable=True), array(y, writable=True)
        if spacing is None:
            lib.pe_loss_transform(count, array(frequency), *losses, *room)
        else:
            status = lib.pe_loss_transform_grid(count, spacing, *losses, *room)
            finished(status, "transforms of losses")
        # terms are at most |t (loss - centre)|, and their errors relative to that
        moment = float((self.share * np.abs(self.apart)).sum()) * (1.0 + 1e-9)
        summed = SUMMED if spacing is None else SUMMED_ON_GRID
        size = self.share.size
        chain = (min(size / LANES, LANES_OF_PART) + size / PART + summed) * UNIT + self.share_error
        known = moment * chain + self._of_moments + 2.0 * self.nodes.loss_error
        error = frequency * known + 2.0 * self.left
        error = error * (1.0 + 1e-9) + 1e-300
        square = 2.0 * x + (x * x + y * y)
        # not by the square, whose rounding is that of 1: of a small modulus it leaves nothing
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
        # what is hardly known is 0, and its bound is all that it may be
        largest = fn.log(modulus + error + 4.0 * UNIT)
        return TiltedTransform(
            modulus,
            np.where(known, log, -np.inf),
            angle,
            error,
            np.where(known, log_error, largest),
        )


class LaplaceStep(NodeStep):
    """A Laplace step at a tilt, whose atoms are the first nodes."""

    shape: StepShape

    @cached_property
    def decay(self) -> Decay:
        """Bounds of the transform far out."""
        return self.shape.decay(self.tilt, float(self.log_mean))

    @property
    def at_ends(self) -> float:
        """The tilted mass of both atoms."""
        return float(self.share[:2].sum()) * (1.0 + 4.0 * UNIT)

    def mass_at_ends(self, pole: float) -> float:
        """The mass of both atoms."""
        ends = np.array([float(end) for end in self.shape.ends])
        atoms = np.array([float(atom) for atom in self.shape.atoms])
        return float((atoms * fn.exp(pole * ends)).sum())

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Logarithms of A's masses."""
        return wide_log(self.nodes.mass, self.nodes.power)

    def bound_at(self, tilt: float) -> float:
        """By the same nodes and the remainders of their rules there."""
        log = log_mean_at(self.nodes, self._log_mass, tilt)
        rule = self.nodes.rule
        edges = edges_of(self.shape, rule)
        left = remainder(self.shape, tilt, log.about, 0.0, edges, np.array([rule.size]))[0]
        return log.most + float(fn.log1p(left))

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """The modulus falls until half a turn of the longest distance of two losses."""
        half_turn = math.pi / float(self.shape.length)
        found = float(self.decay.largest(np.maximum(frequency, 0.999999 * half_turn))[0])
        found = max(found, self.at_ends)
        return max(found, modulus) if frequency[0] < half_turn else found


class ClosedRangeStep(LaplaceStep):
    """A step of bounded range at a tilt, one of few, whose transform is a quotient of sines.

    At λ + it, with x = λ - ½ and z = x + it, it is sinh(z ε) x/(z sinh(x ε)).  What it is off by is
    some roundings of 1 and of the angle t ε, which a few steps carry; nodes know how far it is from
    1, which many need.
    """

    def bound_at(self, tilt: float) -> float:
        """By nodes that serve there, as these know one tilt alone."""
        return self.shape.log_mean_bound(tilt)

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """In closed form, of sines and cosines of the angle as a sum of two doubles."""
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
        if self.tilt < 0.5:  # that of the exchanged pair is the conjugate
            value = np.conj(value)
        modulus = fn.modulus(value)
        turned = fn.arctan2(value.imag, value.real) - frequency * self.centre
        # some roundings, and that of ε in the angle and in both sines
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
    """Return a Laplace step at a tilt, as of a `LossShape`."""
    found = chosen_nodes(shape, tilt, log_mean, frequency, enough)
    if found is None:
        return None
    return LaplaceStep(shape, tilt, *found).reaching(log_mean, frequency)
