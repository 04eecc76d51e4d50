"""The law of the loss of one Laplace step: two atoms and a density between them.

μ is the sensitivity over the scale of the noise, q = 1 - p, and y the likelihood ratio without
sampling times e^μ.  The loss log(q + p y e^-μ) grows from that of y = 1 to that of y = e^(2 μ),
where A has the atoms 1/2 and e^-μ/2; between them y has the density y^(-3/2)/4 under A.  With d
the length, the largest loss less the least one, and κ = 1 + q e^μ/p, y = 1 + κ (e^(d x) - 1) at the
fraction x of the length (docs/theory/laplace).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.engines.vertical_lines.decay import Decay, decay_of
from pyengine.engines.vertical_lines.gauss import rough_nodes
from pyengine.engines.vertical_lines.shapes import At, Fall, LossShape, cumulants_at
from pyengine.engines.vertical_lines.tilted import ClosedRangeStep, LaplaceStep, laplace_step
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import Wide

__all__ = ["Branch", "LaplaceShape", "RangeShape", "StepShape", "SubstitutedShape", "shape_of"]

FloatArray = npt.NDArray[np.float64]

LARGEST = 30.0  # largest μ: e^-30/2 is the chance that one step does not reveal the record
WIDEST = 170.0  # largest ε of bounded range: squares of its densities are doubles
NODES = 32  # of the rule for estimates of cumulants
FEW_STEPS = 64  # of bounded range: up to so many use the closed form of the transform
CLOSE = 1e-9  # relative quadrature error of bounds of log means
LEAST = 1e-12  # smallest μ, ε and sampling probability


class Branch(NamedTuple):
    """Losses ``origin`` + ``sign`` log(1 + (e^v - 1)/κ) for v in (0, 2 μ).

    A's density of v is (``falling`` e^(-v/2) + ``rising`` e^(v/2))/4.
    """

    origin: Wide
    sign: float
    falling: Wide
    rising: Wide


class StepShape(LossShape):
    """A Laplace step, under add_remove or substitute, or a step of bounded range."""

    distance: Fraction
    has_exact_ends: ClassVar[bool] = True
    pieces: ClassVar[int]  # number of equal parts of the length with an analytic density

    @property
    @abstractmethod
    def half(self) -> LaplaceShape:
        """The step with the density of one piece, up to a factor."""

    @property
    @abstractmethod
    def length(self) -> Wide:
        """The largest loss less the least one."""

    @property
    @abstractmethod
    def atoms(self) -> tuple[Wide, Wide]:
        """A's masses of the least and of the largest loss."""

    @property
    @abstractmethod
    def branches(self) -> tuple[Branch, ...]:
        """The losses between both atoms, with A's density."""

    @abstractmethod
    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Quadrature of the density, for estimates: fractions of the length, and A's masses."""

    @property
    def slope(self) -> Wide:
        """κ; under substitute that of a half."""
        return self.half.slope

    @property
    def has_corners(self) -> bool:
        """False for a range so wide that sums along rays overflow."""
        return self.distance <= LARGEST

    @cached_property
    def _rough(self) -> tuple[FloatArray, FloatArray]:
        """`nodes` with the atoms: fractions of the length, and A's masses."""
        part, mass = self.nodes(NODES)
        first, last = (float(atom) for atom in self.atoms)
        return np.concatenate([[0.0], part, [1.0]]), np.concatenate([[first], mass, [last]])

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates of log E_A e^(λ loss), and of mean and variance of the tilted loss."""
        part, mass = self._rough
        low, length = float(self.ends[0]), float(self.length)
        rate = length * tilt
        top = np.maximum(rate, 0.0)
        terms = mass * fn.exp(rate[:, None] * part - top[:, None])
        total = terms.sum(axis=1)
        mean = (terms @ part) / total
        spread = (terms @ (part * part)) / total - mean * mean
        log = tilt * low + top + fn.log(total)
        return log, low + length * mean, length * length * np.maximum(spread, 1e-300)

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), by nodes chosen for this tilt."""
        return _log_mean_bound(self, tilt)

    def expected_nodes(self, frequency: float) -> float:
        """Estimated number of nodes of a step, for frequencies up to this one."""
        return len(self.branches) * (50.0 + 0.9 * frequency * float(self.length) / self.pieces)

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of both atoms, which are the flat part; estimated."""
        mass = math.fsum(
            fn.exp(min(at.tilt * float(end) - at.log_mean + fn.log(float(atom)), 0.0))
            for end, atom in zip(self.ends, self.atoms, strict=True)
            if float(atom) > 0.0
        )
        return fn.log(min(mass, 1.0)) if mass > 0.0 else -math.inf

    def decay(self, tilt: float, log_mean: float) -> Decay:
        """Bounds of the transform where A is multiplied by e^(``tilt`` loss - ``log_mean``)."""
        return decay_of(self, tilt, log_mean)

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """Decay of the transform along a line, about."""
        decay, length = self.decay(at.tilt, at.log_mean), float(self.length)
        most = decay.largest(np.maximum(frequency, np.pi / length))
        turn = np.minimum(frequency * length, np.pi)
        square = 1.0 - 2.0 * variance * (1.0 - fn.cos(turn)) / (length * length)
        near = np.where(frequency * length < np.pi, np.sqrt(np.maximum(square, 0.0)), 0.0)
        return Fall(np.maximum(most, near), decay.tail(frequency))

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> LaplaceStep | None:
        """The step at a tilt, for frequencies up to one; None where that takes too many nodes."""
        del spacing
        return laplace_step(self, at.tilt, at.log_mean, frequency, enough)


@dataclass(frozen=True)
class LaplaceShape(StepShape):
    """A Laplace step under add_remove, on a Poisson sample or on all data.

    Parameters
    ----------
    distance : Fraction
        μ, the sensitivity over the scale of the noise.
    probability : Fraction
        p in (0, 1]; 1 for a step on all data.
    """

    distance: Fraction
    probability: Fraction
    pieces: ClassVar[int] = 1
    __hash__ = LossShape.__hash__

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""
        return self.probability == 1

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The least and the largest loss, to 60 digits."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        grown = [CONTEXT.subtract(CONTEXT.exp(x), Decimal(1)) for x in (-mu, mu)]
        losses = [CONTEXT.ln(CONTEXT.add(Decimal(1), CONTEXT.multiply(p, x))) for x in grown]
        return losses[0], losses[1]

    @cached_property
    def length(self) -> Wide:
        """The largest loss less the least one."""
        low, high = self.ends
        return Wide.of(CONTEXT.subtract(high, low))

    @cached_property
    def atoms(self) -> tuple[Wide, Wide]:
        """A's masses of the least and of the largest loss."""
        mu = as_decimal(self.distance)
        return Wide(0.5), Wide.of(CONTEXT.exp(-mu) / 2)

    @cached_property
    def slope(self) -> Wide:
        """κ."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        rest = as_decimal(1 - self.probability)
        return Wide.of(1 + CONTEXT.divide(CONTEXT.multiply(rest, CONTEXT.exp(mu)), p))

    @property
    def half(self) -> LaplaceShape:
        """The step itself: its density is one piece."""
        return self

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The losses between both atoms, with A's density."""
        return (Branch(Wide.of(self.ends[0]), 1.0, Wide(1.0), Wide(0.0)),)

    @property
    def gap(self) -> float:
        """Distance of the density's singularity below the least loss, in lengths; rounded."""
        rest = -1.0 / float(self.slope)
        return -fn.log1p(rest) / float(self.length) if rest > -1.0 else math.inf

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Quadrature of the density, for estimates: fractions of the length, and A's masses."""
        s, weight = rough_nodes(count)
        mu, p = float(self.distance), float(self.probability)
        inner = mu * s
        x = (fn.log1p(p * fn.expm1(inner)) - float(self.ends[0])) / float(self.length)
        return np.clip(x, 0.0, 1.0), 0.25 * mu * weight * fn.exp(-0.5 * (inner + mu))


@dataclass(frozen=True)
class RangeShape(LaplaceShape):
    """A step of bounded range ε: the law of an unsampled Laplace step of μ = ε without its atoms.

    Parameters
    ----------
    distance : Fraction
        ε.
    probability : Fraction
        1.
    """

    __hash__ = LossShape.__hash__

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """-ε and ε."""
        end = as_decimal(self.distance)
        return CONTEXT.minus(end), end

    @cached_property
    def atoms(self) -> tuple[Wide, Wide]:
        """No atoms."""
        return Wide(0.0), Wide(0.0)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """All losses: the density of v in (0, 2 ε) is a Laplace step's, normalised."""
        whole = CONTEXT.subtract(Decimal(1), CONTEXT.exp(-as_decimal(self.distance)))
        share = Wide.of(CONTEXT.divide(Decimal(2), whole))
        return (Branch(Wide.of(self.ends[0]), 1.0, share, Wide(0.0)),)

    def _log_mean(self, tilt: FloatArray) -> FloatArray:
        """Log E_A e^(λ loss), rounded: that of sinh(x ε)/(2 x sinh(ε/2)) with x = λ - 1/2."""
        end = float(self.distance)

        def log_sinhc(rate: FloatArray) -> FloatArray:
            far = rate + fn.log(-fn.expm1(-2.0 * rate)) - fn.log(2.0 * rate)
            return np.where(rate < 1e-4, rate * rate / 6.0, far)

        rate = np.append(np.abs(tilt - 0.5), 0.5) * end
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = log_sinhc(rate)
        return np.asarray(logs[:-1] - logs[-1])

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss), by the closed form."""
        found = float(self._log_mean(np.array([tilt]))[0])
        return found + 1e-12 * (1.0 + abs(tilt) * float(self.distance))

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log E_A e^(λ loss), and mean and variance of the tilted loss, rounded."""
        end = float(self.distance)
        rate = (tilt - 0.5) * end
        near = np.abs(rate) < 1e-2
        x = np.where(near, 1.0, rate)
        with np.errstate(over="ignore"):
            mean = np.where(near, rate / 3.0, 1.0 + 2.0 / fn.expm1(2.0 * x) - 1.0 / x)
            spread = np.where(
                near, 1.0 / 3.0 - rate * rate / 15.0, 1.0 / (x * x) - 1.0 / fn.sinh(x) ** 2
            )
        return self._log_mean(tilt), end * mean, np.maximum(end * end * spread, 1e-300)

    def decay(self, tilt: float, log_mean: float) -> Decay:
        """No flat part; as the density is monotone, half of the variation bound is enough."""
        found = super().decay(tilt, log_mean)
        return found._replace(variation=0.5 * found.variation, flat=0.0)

    def expected_nodes(self, frequency: float) -> float:
        """Estimated number of nodes of a step, for frequencies up to this one."""
        # at high frequencies, which few steps need, the closed form serves
        return min(super().expected_nodes(frequency), 200.0)

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> LaplaceStep | None:
        """The step at a tilt, of few steps by the closed form; None as of a `LaplaceShape`."""
        found = super().tilted(at, 0.0 if at.steps <= FEW_STEPS else frequency, enough, spacing)
        if found is None or at.steps > FEW_STEPS:
            return found
        return ClosedRangeStep(self, at.tilt, found.nodes, found.left)


@dataclass(frozen=True)
class SubstitutedShape(StepShape):
    """A Laplace step on a Poisson sample under substitute: one record replaces another.

    The ends are ±d.  With y as of a `LaplaceShape` at the distance l from its least loss, A has
    at the loss -l the density y'(l) (q y^(-3/2) + p e^-μ y^(-1/2))/4, and at l e^-l times that.

    Parameters
    ----------
    distance, probability : Fraction
        As of a `LaplaceShape`; p < 1.
    """

    distance: Fraction
    probability: Fraction
    pieces: ClassVar[int] = 2
    is_symmetric: ClassVar[bool] = True
    __hash__ = LossShape.__hash__

    @cached_property
    def half(self) -> LaplaceShape:
        """The step under add_remove, whose length d is that of each half."""
        return LaplaceShape(self.distance, self.probability)

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The least and the largest loss, to 60 digits."""
        low, high = self.half.ends
        most = CONTEXT.subtract(high, low)
        return -most, most

    @cached_property
    def length(self) -> Wide:
        """The largest loss less the least one."""
        return 2 * self.half.length

    @cached_property
    def _shares(self) -> tuple[Wide, Wide]:
        """The factors q and p e^-μ."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        return Wide.of(as_decimal(1 - self.probability)), Wide.of(
            CONTEXT.multiply(p, CONTEXT.exp(-mu))
        )

    @cached_property
    def atoms(self) -> tuple[Wide, Wide]:
        """A's masses of the least and of the largest loss."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        far = CONTEXT.multiply(as_decimal(1 - self.probability), CONTEXT.exp(-mu))
        further = CONTEXT.multiply(p, CONTEXT.exp(-2 * mu))
        return Wide.of(CONTEXT.add(far, p) / 2), Wide.of(CONTEXT.add(far, further) / 2)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The losses below 0 and those above, with A's densities."""
        (rest, share), zero = self._shares, Wide(0.0)
        return (Branch(zero, -1.0, rest, share), Branch(zero, 1.0, rest + share, zero))

    @property
    def gap(self) -> float:
        """Distance of the singularity of a half's density from the middle, in lengths."""
        return 0.5 * self.half.gap

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Quadrature of the density, for estimates: fractions of the length, and A's masses."""
        s, weight = rough_nodes(count)
        mu, p = float(self.distance), float(self.probability)
        z = np.concatenate([0.5 * (s + 1.0), -0.5 * (s[::-1] + 1.0)])
        weight = 0.5 * np.concatenate([weight, weight[::-1]])
        size = fn.log1p(fn.expm1(2.0 * mu * np.abs(z)) / float(self.half.slope))
        x = 0.5 - np.sign(z) * size / float(self.length)
        near = (1.0 - p) * fn.exp(-mu * np.abs(z)) + p * fn.exp(-mu * np.abs(1.0 - z))
        return np.clip(x, 0.0, 1.0), 0.5 * mu * weight * near


@kept(256)
def _log_mean_bound(shape: StepShape, tilt: float) -> float:
    step = laplace_step(shape, tilt, cumulants_at(shape, tilt)[0], 0.0, CLOSE)
    if step is None:
        return math.inf
    log = float(step.log_mean)
    return log + step.log_error + UNIT * abs(log)


def shape_of(law: StepLaw) -> tuple[StepShape, bool] | None:
    """Return the shape of a law, and whether the law is the exchanged pair (B, A).

    None for laws that are neither Laplace steps nor of bounded range, or out of bounds.
    """
    step, epsilon = law.laplace(), law.bounded_range()
    if epsilon is not None:
        return (_range(epsilon), False) if LEAST <= epsilon <= WIDEST else None
    if step is None:
        return None
    distance, p = step.distance, Fraction(step.probability)
    if not (LEAST <= distance <= LARGEST and p >= LEAST):  # where sums of two doubles serve
        return None
    return _made(distance, p, step.is_substituted), step.is_reversed


@kept(64)
def _made(distance: Fraction, probability: Fraction, is_substituted: bool) -> StepShape:
    """One kept shape for equal parameters: its ends and slope take 60-digit arithmetic."""
    shape = SubstitutedShape if is_substituted else LaplaceShape
    return shape(distance, probability)


@kept(64)
def _range(epsilon: Fraction) -> RangeShape:
    """One kept shape of bounded range for each ε."""
    return RangeShape(epsilon, Fraction(1))
