"""Steps of finitely many losses, and of bounded range, as kinds of steps on lines.

A finite law is its own nodes.  Its transform need not fall: all of it is the part at the ends, so
that lines serve where other kinds fall.  The loss of a mechanism of bounded range has densities
proportional to e^(-L/2) and e^(L/2) on [-ε, ε], of which Gauss's rules have next to no error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.caches import cached_property, kept
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.choice import cumulants_of
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.fall import Fall
from pyengine.engines.vertical_lines.gauss import EXTENDED, gauss_nodes
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes
from pyengine.engines.vertical_lines.shapes import At
from pyengine.engines.vertical_lines.tilted import (
    NodeStep,
    TiltedStep,
    TiltedTransform,
    log_mean_at,
    reached,
)
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, wide_exp

__all__ = ["BoundedRangeShape", "FiniteShape"]

FloatArray = npt.NDArray[np.float64]

FAINTEST = -11000.0  # logs of masses that powers of 2 beside doubles hold
WIDEST = 8192.0  # range, whose masses are held
NO_RULE = PanelRule(0, 0, 0.0)
SIZES = np.array([10, 14, 18, 24, 32, 40, 56, 80])
PANELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
HEIGHTS = np.array([0.3, 0.6, 1.0, 1.7, 3.0, 6.0, 12.0])  # of ellipses, in half-lengths of a panel
ACROSS = fn.hypot(HEIGHTS, 1.0)
LOG_RHO = fn.log(HEIGHTS + ACROSS)
LOG_RULES = 2.0 * SIZES[:, None, None] * LOG_RHO + fn.log(-fn.expm1(-LOG_RHO))
SLACK = 1.0 + 1e-6  # for the rounding of bounds
FEW = 64  # steps, of which the distance of each transform from 1 need not be known closely
LEAST_MODULUS = 1e-14
SUBNORMAL = 1e-317  # stands for masses below all doubles


@dataclass(frozen=True)
class FiniteShape:
    """A step of finitely many losses, all of which both laws have.

    Parameters
    ----------
    law : FiniteLaw
        The ordered pair.
    """

    law: FiniteLaw
    is_few_losses: ClassVar[bool] = True

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""
        return self.law.symmetric

    @property
    def is_bounded(self) -> bool:
        """Whether the smallest and the largest loss are those of all atoms."""
        return self.law.ends is None

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest loss."""
        return self.law.support()

    @property
    def off_ends(self) -> float:
        """Bound on the errors of both."""
        return self.law.support_error()

    @cached_property
    def nodes(self) -> StepNodes:
        """The atoms, with errors of each mass."""
        law = self.law
        beside, error = np.zeros(law.loss.size), ROUNDED * float(np.abs(law.loss).max())
        if law.fine is not None:
            beside, error = law.fine.beside(law.loss)
        loss = (Wide(law.loss) + beside).parts
        mass, power = wide_exp(self._log_mass)
        # relative to each, and what the mean of all has
        off = 2.0 * (LOG_ERROR * (1.0 + np.abs(law.log_a)) + law.error)
        return StepNodes(loss, mass, power, error + law.loss_error, off * (1.0 + 1e-9), NO_RULE)

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Logarithms of A's masses."""
        return np.stack([self.law.log_a, np.zeros(self.law.log_a.size)])

    def log_mean_bound(self, tilt: float) -> float:
        """Bound on the logarithm of the mean of e^(``tilt`` loss)."""
        log = log_mean_at(self.nodes, self._log_mass, tilt)
        deepest = float(np.abs(self.law.log_a).max())
        return log.most + LOG_ERROR * (1.0 + deepest) + self.law.error

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """About the log of the mean of e^(tilt loss), mean and variance of the tilted loss."""
        loss, log_a = self.law.loss, self.law.log_a
        found = np.empty((3, tilt.size))
        per_part = max(1, 2**20 // loss.size)
        for i in range(0, tilt.size, per_part):
            part = slice(i, i + per_part)
            exponent = log_a + tilt[part, None] * loss
            top = exponent.max(axis=1)
            with np.errstate(under="ignore"):
                share = fn.exp(exponent - top[:, None])
            total = share.sum(axis=1)
            mean = share @ loss / total
            spread = (share * (loss - mean[:, None]) ** 2).sum(axis=1) / total
            found[:, part] = top + fn.log(total), mean, np.maximum(spread, 1e-300)
        return found[0], found[1], found[2]

    def expected_nodes(self, frequency: float) -> float:
        """About how many nodes stand for a step up to a frequency."""
        del frequency
        return float(self.law.loss.size)

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of the part whose transform need not fall."""
        del at
        return 0.0

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """About how the transform falls along a line."""
        del at, variance
        return Fall(np.ones(frequency.size), np.zeros(frequency.size))

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> FiniteStep | None:
        """A step at a tilt, for frequencies up to one; None where it has none."""
        del enough, spacing
        step = FiniteStep(self, at.tilt)
        return step if reached(step, at.log_mean, frequency) else None


class FiniteStep(NodeStep):
    """A step of finitely many losses at a tilt.

    Parameters
    ----------
    shape : FiniteShape
        The step.
    tilt : float
        λ.
    """

    at_ends = 1.0
    decay = Decay(np.zeros(0), np.zeros(0), 0.0)

    def __init__(self, shape: FiniteShape, tilt: float) -> None:
        super().__init__(tilt, shape.nodes, 0.0)
        self.shape = shape

    def mass_at_ends(self, pole: float) -> float:
        """All mass."""
        del pole
        return 1.0

    @property
    def removed(self) -> tuple[float, float]:
        """What is below all doubles, where atoms are left out."""
        lost = SUBNORMAL if self.shape.law.left_out() > 0.0 else 0.0
        return lost, lost

    def bound_at(self, tilt: float) -> float:
        """By the atoms."""
        return self.shape.log_mean_bound(tilt)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """It need not fall."""
        del frequency, modulus
        return 1.0


@dataclass(frozen=True)
class BoundedRangeShape:
    """A step of densities proportional to e^(-L/2) and e^(L/2) of the loss L in [-ε, ε].

    Parameters
    ----------
    epsilon : float
        ε, of a relative error of at most one unit.
    """

    epsilon: float
    is_symmetric: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest loss."""
        return -self.epsilon, self.epsilon

    def nodes(self, rule: PanelRule) -> StepNodes:
        """Nodes of Gauss's rules on panels of one length."""
        return _range_nodes(self.epsilon, rule)

    @cached_property
    def log_norm(self) -> float:
        """Logarithm of the integral of e^(-L/2) over [-ε, ε]."""
        return 0.5 * self.epsilon + fn.log(-2.0 * fn.expm1(-self.epsilon))

    def log_mean(self, tilt: FloatArray) -> FloatArray:
        """About the logarithm of the mean of e^(tilt loss): that of a quotient of hyperbolic sines.

        At ½ + x it is that of sinh(x ε)/(x sinh(½ ε)) over 2.
        """
        rate = np.abs(tilt - 0.5) * self.epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            of_rate = rate + fn.log(-fn.expm1(-2.0 * rate)) - fn.log(2.0 * rate)
        of_rate = np.where(rate < 1e-4, rate * rate / 6.0, of_rate)
        half = 0.5 * self.epsilon
        of_half = half + fn.log(-fn.expm1(-2.0 * half)) - fn.log(2.0 * half)
        return np.asarray(of_rate - of_half)

    def log_mean_bound(self, tilt: float) -> float:
        """Bound on it."""
        found = float(self.log_mean(np.array([tilt]))[0])
        return found + 1e-12 * (1.0 + abs(tilt) * self.epsilon)

    def missed(self, tilt: float, log_mean: float, frequency: float, panels: int) -> FloatArray:
        """Bounds on what rules of `SIZES` leave out of the mean of e^(s loss), relative."""
        half = self.epsilon / panels
        middle = half * (2.0 * np.arange(panels) + 1.0) - self.epsilon
        across = half * ACROSS
        rate = tilt - 0.5
        # |e^((s - 1/2) L)| on the ellipse about each panel
        most = rate * middle[:, None] + abs(rate) * across + frequency * half * HEIGHTS
        most = most - self.log_norm - log_mean
        least = fn.exp((most - LOG_RULES).min(axis=2))
        return np.asarray(8.0 * half * least.sum(axis=1) * SLACK)

    def least_rule(
        self, tilt: float, log_mean: float, frequency: float, enough: float
    ) -> tuple[PanelRule, float] | None:
        """The fewest nodes that leave little enough, and how much that is; None where none does."""
        best: tuple[PanelRule, float] | None = None
        for panels in PANELS:
            if best is not None and panels * SIZES[0] >= best[0].panels * best[0].size:
                break
            left = self.missed(tilt, log_mean, frequency, panels)
            good = np.flatnonzero(left <= enough)
            if good.size:
                rule = PanelRule(panels, int(SIZES[good[0]]), 0.0)
                if best is None or panels * rule.size < best[0].panels * best[0].size:
                    best = rule, float(left[good[0]])
        return best

    def decay(self, tilt: float, log_mean: float) -> Decay:
        """The tilted density is monotone: its variation and jumps are twice its largest value."""
        rate = tilt - 0.5
        top = abs(rate) * self.epsilon - self.log_norm - log_mean
        largest = fn.exp(top) * SLACK
        least = fn.exp(top - 2.0 * abs(rate) * self.epsilon) / SLACK
        length = 2.0 * self.epsilon
        return Decay(np.array([least * length]), np.array([length]), 2.0 * largest, flat=0.0)

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """About the log of the mean of e^(tilt loss), mean and variance of the tilted loss."""
        rate, end = (tilt - 0.5) * self.epsilon, self.epsilon
        near = np.abs(rate) < 1e-2
        x = np.where(near, 1.0, rate)
        with np.errstate(over="ignore"):
            mean = np.where(near, rate / 3.0, 1.0 + 2.0 / fn.expm1(2.0 * x) - 1.0 / x)
            spread = np.where(
                near, 1.0 / 3.0 - rate * rate / 15.0, 1.0 / (x * x) - 1.0 / fn.sinh(x) ** 2
            )
        return self.log_mean(tilt), end * mean, np.maximum(end * end * spread, 1e-300)

    def expected_nodes(self, frequency: float) -> float:
        """About how many nodes stand for a step up to a frequency."""
        # few steps, whose lines go far up, have a closed form
        return min(20.0 + frequency * self.epsilon, 200.0)

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of the part whose transform need not fall."""
        del at
        return -math.inf

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """About how the transform falls along a line."""
        del variance
        log = float(self.log_mean(np.array([at.tilt]))[0])
        decay = self.decay(at.tilt, log)
        return Fall(decay.largest(frequency), decay.tail(frequency))

    def tilted(
        self, at: At, frequency: float, enough: float, spacing: float
    ) -> BoundedRangeStep | ClosedRangeStep | None:
        """A step at a tilt, for frequencies up to one; None where it has none."""
        del spacing
        log = float(self.log_mean(np.array([at.tilt]))[0])
        if at.steps <= FEW:
            return ClosedRangeStep(self, at.tilt)
        if self.epsilon > WIDEST:
            return None
        found = self.least_rule(at.tilt, log, frequency, enough)
        if found is None:
            return None
        step = BoundedRangeStep(self, at.tilt, self.nodes(found[0]), found[1])
        return step if reached(step, log, frequency) else None


@kept(64)
def _range_nodes(epsilon: float, rule: PanelRule) -> StepNodes:
    gauss = gauss_nodes(rule.size)
    size = rule.panels * rule.size
    loss, mass = np.empty((2, 2, size))
    power = np.empty(size)
    lib.pe_range_nodes(
        epsilon,
        rule.panels,
        rule.size,
        array(gauss.place),
        array(gauss.weight),
        *(array(each, writable=True) for each in (loss, mass, power)),
    )
    error = UNIT * epsilon + 16.0 * EXTENDED * epsilon
    # ε itself is off by a rounding, which moves losses and the integral of the density
    return StepNodes(
        loss,
        mass,
        power,
        error,
        2.0 * (gauss.error + 64.0 * EXTENDED + UNIT * (2.0 + epsilon)),
        rule,
    )


class BoundedRangeStep(NodeStep):
    """A step of bounded range at a tilt.

    Parameters
    ----------
    shape : BoundedRangeShape
        The step.
    tilt, nodes, left
        As of a `NodeStep`.
    """

    at_ends = 0.0

    def __init__(
        self, shape: BoundedRangeShape, tilt: float, nodes: StepNodes, left: float
    ) -> None:
        super().__init__(tilt, nodes, left)
        self.shape = shape

    @cached_property
    def decay(self) -> Decay:
        """Of the tilted density."""
        return self.shape.decay(self.tilt, float(self.log_mean))

    def mass_at_ends(self, pole: float) -> float:
        """None."""
        del pole
        return 0.0

    def bound_at(self, tilt: float) -> float:
        """In closed form."""
        return self.shape.log_mean_bound(tilt)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """By the decay of the density."""
        del modulus
        return float(self.decay.largest(frequency)[0])


class ClosedRangeStep(TiltedStep):
    """A step of bounded range at a tilt, one of few, whose transform is a quotient of sines.

    At λ + it, with x = λ - ½ and z = x + it, it is sinh(z ε) x/(z sinh(x ε)).  What it is off by is
    some roundings of 1 and of the angle t ε, which a few steps carry; nodes know how far it is from
    1, which many need.

    Parameters
    ----------
    shape : BoundedRangeShape
        The step.
    tilt : float
        λ.
    """

    at_ends = 0.0

    def __init__(self, shape: BoundedRangeShape, tilt: float) -> None:
        self.shape, self.tilt = shape, tilt
        place = np.array([tilt])
        self._log = float(shape.log_mean(place)[0])
        self.log_mean = Wide(self._log)
        self.centre = float(cumulants_of(shape, place)[1][0])

    @property
    def log_error(self) -> float:
        """Of logarithms of hyperbolic sines."""
        end = self.shape.epsilon
        size = 4.0 + abs(self._log) + (1.0 + abs(self.tilt)) * end
        return 16.0 * UNIT * size + 4.0 * ELEMENTARY * UNIT * (1.0 + abs(fn.log(end)))

    def mass_at_ends(self, pole: float) -> float:
        """None."""
        del pole
        return 0.0

    @cached_property
    def _decay(self) -> Decay:
        return self.shape.decay(self.tilt, self._log)

    def bound_at(self, tilt: float) -> float:
        """In closed form."""
        return self.shape.log_mean_bound(tilt)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """By the decay of the density."""
        del modulus
        return float(self._decay.largest(frequency)[0])

    def tail(self, frequency: float) -> float:
        """As the decay says."""
        return float(self._decay.tail(np.array([frequency]))[0])

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """In closed form, of sines and cosines of the angle as a sum of two doubles."""
        del spacing
        end, rate = self.shape.epsilon, abs(self.tilt - 0.5)
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
        known = modulus > 4.0 * error + LEAST_MODULUS
        least = np.where(known, modulus, 1.0)
        log = np.where(known, fn.log(least), -np.inf)
        off = error / (least - np.minimum(2.0 * error, 0.5 * least))
        off = off + 8.0 * UNIT * (2.0 + np.abs(fn.log(least)) + np.abs(frequency * self.centre))
        most = fn.log(modulus + error + 4.0 * UNIT * modulus)
        return TiltedTransform(modulus, log, turned, error, np.where(known, off, most))
