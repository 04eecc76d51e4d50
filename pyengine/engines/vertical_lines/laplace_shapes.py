"""The loss of one Laplace step as two atoms and a density between them.

With μ the distance of both laws in scales of the noise, q = 1 - p and y the ratio of B's density to
A's times e^μ, the loss log(q + p y e^-μ) of a step on a Poisson sample goes from that of y = 1 to
that of y = e^(2 μ), where A has the atoms 1/2 and e^-μ/2; between them A's law of y has the density
y^(-3/2)/4.  At the part x of the way from the least loss to the largest one, d above it, y is
1 + κ (e^(d x) - 1) with κ = 1 + q e^μ/p (docs/theory/laplace).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.engines.vertical_lines.gauss import rough_nodes
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.wide import Wide

__all__ = ["Branch", "LaplaceShape", "RangeShape", "StepShape", "SubstitutedShape", "shape_of"]

FloatArray = npt.NDArray[np.float64]

LARGEST = 30.0  # of the distance of both laws: beyond, one step tells nearly all
LEAST = 1e-12  # of the distance and of the sampling probability


class Branch(NamedTuple):
    """Losses ``origin`` ± log(1 + (e^v - 1)/κ) for v in (0, 2 μ), and A's density of v there.

    The density of v is (``falling`` e^(-v/2) + ``rising`` e^(v/2))/4.
    """

    origin: Wide
    sign: float
    falling: Wide
    rising: Wide


@dataclass(frozen=True)
class LaplaceShape:
    """A Laplace step, on a Poisson sample or not.

    Parameters
    ----------
    distance : Fraction
        μ, the sensitivity over the scale of the noise.
    probability : Fraction
        p in (0, 1]; 1 for a step on all data.
    """

    distance: Fraction
    probability: Fraction
    has_corners: ClassVar[bool] = True  # between which the density is analytic
    pieces: ClassVar[int] = 1  # of equal lengths, on each of which the density is analytic

    @cached_property
    def _hash(self) -> int:
        return hash((self.distance, self.probability))

    def __hash__(self) -> int:
        """Of both numbers, found once: laws are kept by their shapes, and fractions take long."""
        return self._hash

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
        """The number κ."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        rest = as_decimal(1 - self.probability)
        return Wide.of(1 + CONTEXT.divide(CONTEXT.multiply(rest, CONTEXT.exp(mu)), p))

    @property
    def half(self) -> LaplaceShape:
        """The step whose density lies between two corners: this one."""
        return self

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The losses between both atoms."""
        return (Branch(Wide.of(self.ends[0]), 1.0, Wide(1.0), Wide(0.0)),)

    @property
    def gap(self) -> float:
        """How far below the least loss the density has its singularity, in lengths; rounded."""
        rest = -1.0 / float(self.slope)
        return -fn.log1p(rest) / float(self.length) if rest > -1.0 else math.inf

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Parts of the way and A's masses that stand for the density; for choices only."""
        s, weight = rough_nodes(count)
        mu, p = float(self.distance), float(self.probability)
        inner = mu * s
        x = (fn.log1p(p * fn.expm1(inner)) - float(self.ends[0])) / float(self.length)
        return np.clip(x, 0.0, 1.0), 0.25 * mu * weight * fn.exp(-0.5 * (inner + mu))


@dataclass(frozen=True)
class RangeShape(LaplaceShape):
    """A step of bounded range: the density of a Laplace step on all data without its atoms.

    Parameters
    ----------
    distance : Fraction
        ε.
    probability : Fraction
        1.
    """

    __hash__ = LaplaceShape.__hash__

    @cached_property
    def atoms(self) -> tuple[Wide, Wide]:
        """None."""
        return Wide(0.0), Wide(0.0)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """All losses: A's law of v in (0, 2 ε) is that of a Laplace step, normalised."""
        whole = CONTEXT.subtract(Decimal(1), CONTEXT.exp(-as_decimal(self.distance)))
        share = Wide.of(CONTEXT.divide(Decimal(2), whole))
        return (Branch(Wide.of(self.ends[0]), 1.0, share, Wide(0.0)),)

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Parts of the way and A's masses that stand for the density; for choices only."""
        part, mass = super().nodes(count)
        return part, mass * float(self.branches[0].falling)


@dataclass(frozen=True)
class SubstitutedShape:
    """A Laplace step on a Poisson sample of which one record takes the place of another.

    The loss is symmetric about 0.  With y as of a `LaplaceShape` at the size l of the loss, the
    density of l is y'(q y^(-3/2) + p e^-μ y^(-1/2))/4 for losses below 0, and e^-l of it above.

    Parameters
    ----------
    distance, probability : Fraction
        As of a `LaplaceShape`; p < 1.
    """

    distance: Fraction
    probability: Fraction
    has_corners: ClassVar[bool] = True
    pieces: ClassVar[int] = 2
    is_symmetric: ClassVar[bool] = True

    @cached_property
    def _hash(self) -> int:
        return hash((self.distance, self.probability))

    def __hash__(self) -> int:
        """Of both numbers, found once: laws are kept by their shapes, and fractions take long."""
        return self._hash

    @cached_property
    def half(self) -> LaplaceShape:
        """The step whose losses are as long as one half, and whose density lies between corners."""
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
        """Q and p e^-μ."""
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
    def slope(self) -> Wide:
        """The number κ of either half."""
        return self.half.slope

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The losses below 0 and above."""
        (rest, share), zero = self._shares, Wide(0.0)
        return (Branch(zero, -1.0, rest, share), Branch(zero, 1.0, rest + share, zero))

    @property
    def gap(self) -> float:
        """How far beyond the middle the density of a half has its singularity, in lengths."""
        return 0.5 * self.half.gap

    def nodes(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Parts of the way and A's masses that stand for the density; for choices only."""
        s, weight = rough_nodes(count)
        mu, p = float(self.distance), float(self.probability)
        z = np.concatenate([0.5 * (s + 1.0), -0.5 * (s[::-1] + 1.0)])
        weight = 0.5 * np.concatenate([weight, weight[::-1]])
        size = fn.log1p(fn.expm1(2.0 * mu * np.abs(z)) / float(self.half.slope))
        x = 0.5 - np.sign(z) * size / float(self.length)
        near = (1.0 - p) * fn.exp(-mu * np.abs(z)) + p * fn.exp(-mu * np.abs(1.0 - z))
        return np.clip(x, 0.0, 1.0), 0.5 * mu * weight * near


StepShape = LaplaceShape | SubstitutedShape


def shape_of(law: StepLaw) -> tuple[StepShape, bool] | None:
    """Return the shape of a law and whether the law is that of the exchanged pair; None for others.

    A symmetric step is the same as exchanged.  Steps of bounded range have corners as well.
    """
    step, epsilon = law.laplace(), law.bounded_range()
    if epsilon is not None:
        return (_range(epsilon), False) if _is_usual(epsilon, Fraction(1)) else None
    if step is None:
        return None
    distance, p = step.distance, Fraction(step.probability)
    if not _is_usual(distance, p):
        return None
    return _made(distance, p, step.is_substituted), step.is_reversed


@kept(64)
def _made(distance: Fraction, probability: Fraction, is_substituted: bool) -> StepShape:
    """One shape for all who ask, as its ends and its slope are numbers of many digits."""
    shape = SubstitutedShape if is_substituted else LaplaceShape
    return shape(distance, probability)


@kept(64)
def _range(epsilon: Fraction) -> RangeShape:
    """As `_made`."""
    return RangeShape(epsilon, Fraction(1))


def _is_usual(distance: Fraction, probability: Fraction) -> bool:
    """Whether sums of two doubles hold what is made of both."""
    return LEAST <= distance <= LARGEST and probability >= LEAST
