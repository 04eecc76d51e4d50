"""One step of the Gaussian mechanism: A = N(0, 1), B = N(μ, 1), L = μ z - μ²/2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pyengine.laws.base import Cells, FloatArray, Law
from pyengine.laws.normals import (
    STANDARD,
    Alternatives,
    ExactAlternatives,
    ExactMixturePair,
    MixturePair,
    Normals,
    normal_cells,
)
from pyengine.numerics.rounding import UNIT

__all__ = ["GaussianLaw"]


@dataclass(frozen=True)
class GaussianLaw(Law):
    """The pair N(0, 1), N(μ, 1) with μ = 1/noise_multiplier.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the sensitivity, in (0, ∞).
    uncertainty : float
        Bound on the relative error of the noise, in units of 2^-53.
    low : float or None
        The noise multiplier minus its double; None where that is unknown, and nothing can be
        proven.
    """

    noise_multiplier: float
    uncertainty: float = 4.0
    low: float | None = None
    symmetric: ClassVar[bool] = True

    def gaussian_noise(self) -> tuple[float, float] | None:
        """The noise multiplier as two doubles; None where ``low`` is unknown."""
        return None if self.low is None else (self.noise_multiplier, self.low)

    def rough_noise(self) -> tuple[float, float]:
        """The noise multiplier and its relative error, in units of 2^-53."""
        return self.noise_multiplier, self.uncertainty

    def support(self) -> tuple[float, float]:
        """All losses."""
        return -math.inf, math.inf

    def mixtures(self) -> Alternatives | None:
        """One normal on each side."""
        shifted = Normals((1.0 / self.noise_multiplier,), (1.0,))
        return (MixturePair(STANDARD, shifted),)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """One normal on each side, with the noise as two doubles."""
        if self.low is None:
            return None
        shift = 1 / (Fraction(self.noise_multiplier) + Fraction(self.low))
        one, none = Fraction(1), Fraction(0)
        return (ExactMixturePair({none: (one, none), shift: (none, one)}),)

    @np.errstate(over="ignore")  # an error that overflows is infinite
    def cells(self, edges: FloatArray) -> Cells:
        """Normal masses between z = L/μ + μ/2.

        ``shift`` covers the rounding of z, μ and the noise.  With μ (1 + e) in the place of μ, the
        loss at z moves by e (L - μ²/2), and so does the log of B's density.
        """
        mu = 1.0 / self.noise_multiplier
        z = edges * self.noise_multiplier + 0.5 * mu
        shift = UNIT * (4.0 + self.uncertainty) * (np.abs(edges) + mu * mu)
        logs = [normal_cells(z, mean) for mean in (0.0, mu)]
        size = np.abs(z) + mu
        reach = np.maximum(np.append(size, 0.0), np.append(0.0, size))
        finite = np.where(np.isfinite(logs[0]), np.abs(logs[0]), 0.0)
        error = UNIT * (64.0 + 4.0 * finite + 12.0 * reach * reach)
        if self.uncertainty > 4.0:  # 0 times an infinite reach would be no number
            error += UNIT * 2.0 * (self.uncertainty - 4.0) * mu * (1.0 + reach)
        return Cells(logs[0], logs[1], error, shift)
