"""The loss of one Laplace step as two atoms and a density between them.

With μ the distance of both laws in scales of the noise, q = 1 - p and y the ratio of B's density to
A's times e^μ, the loss log(q + p y e^-μ) of a step on a Poisson sample goes from that of y = 1 to
that of y = e^(2 μ), where A has the atoms 1/2 and e^-μ/2; between them A's law of y has the density
y^(-3/2)/4.  At the part x of the way from the least loss to the largest one, d above it, y is
1 + κ (e^(d x) - 1) with κ = 1 + q e^μ/p (docs/theory/panels).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.engines.panels.legendre import EXTENDED, Extended, ExtendedArray
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal

__all__ = ["LaplaceShape", "shape_of"]

FloatArray = npt.NDArray[np.float64]

LARGEST = 30.0  # of the distance of both laws: beyond, one step tells nearly all
LEAST = 1e-12  # of the distance and of the sampling probability


def extended(x: Decimal) -> Any:
    """The number in extended precision next to one of 60 digits."""
    return Extended(str(x))


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

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The least and the largest loss, to 60 digits."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        grown = [CONTEXT.subtract(CONTEXT.exp(x), Decimal(1)) for x in (-mu, mu)]
        losses = [CONTEXT.ln(CONTEXT.add(Decimal(1), CONTEXT.multiply(p, x))) for x in grown]
        return losses[0], losses[1]

    @cached_property
    def length(self) -> Any:
        """The largest loss less the least one."""
        low, high = self.ends
        return extended(CONTEXT.subtract(high, low))

    @cached_property
    def atoms(self) -> ExtendedArray:
        """A's masses of the least and of the largest loss."""
        mu = as_decimal(self.distance)
        return np.array([Extended(0.5), extended(CONTEXT.exp(-mu) / 2)])

    @cached_property
    def _slope(self) -> Any:
        """The number κ."""
        mu, p = as_decimal(self.distance), as_decimal(self.probability)
        rest = as_decimal(1 - self.probability)
        return extended(1 + CONTEXT.divide(CONTEXT.multiply(rest, CONTEXT.exp(mu)), p))

    @property
    def gap(self) -> float:
        """How far below the least loss the density has its singularity, in lengths; rounded."""
        rest = -1.0 / float(self._slope)
        return -math.log1p(rest) / float(self.length) if rest > -1.0 else math.inf

    def density(self, x: ExtendedArray) -> ExtendedArray:
        """A's density at parts x of the way, of relative error at most `density_error`."""
        d = self.length
        y = 1 + self._slope * np.expm1(d * x)
        return np.asarray(d * self._slope * np.exp(d * x) / (4 * y * np.sqrt(y)))

    @property
    def density_error(self) -> float:
        """Bound on the relative error of `density`."""
        return EXTENDED * (64.0 + 4.0 * float(self.length))

    def largest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Bounds on the density in strips low <= Re x <= high of the plane; infinite where none is.

        y/κ is e^(d x) - e^(d s), of modulus at least the same of Re x where that is above s, where
        y vanishes, and so the density has nowhere a larger modulus than at Re x.
        """
        d, slope = float(self.length), float(self._slope)
        grown = slope * np.expm1(d * low)
        least = (1.0 + grown) - 1e-13 * (1.0 + np.abs(grown))  # for the rounding of both terms
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = d * slope * np.exp(d * high) / (4.0 * least * np.sqrt(least))
        return np.asarray(np.where(least > 0.0, found * (1.0 + 1e-9), np.inf))


def shape_of(law: StepLaw) -> tuple[LaplaceShape, bool] | None:
    """Return the shape of a law and whether the law is that of the exchanged pair; None for others.

    A plain step is the same as exchanged.
    """
    if isinstance(law, ReversedLaw):
        found = shape_of(law.law)
        if found is None:
            return None
        return found[0], not found[1] and found[0].probability != 1
    probability: float | Fraction = 1
    inner = law
    if isinstance(law, PoissonSampledLaw):
        inner, probability = law.law, law.probability
    if not isinstance(inner, LaplaceLaw):
        return None
    distance, p = inner.exact_ratio, Fraction(probability)
    if not (LEAST <= distance <= LARGEST and p >= LEAST):
        return None
    return LaplaceShape(distance, p), False
