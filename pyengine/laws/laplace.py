"""One step of the Laplace mechanism: densities e^{-|z|}/2 and e^{-|z - μ|}/2, L = |z| - |z - μ|.

Half of A has loss -μ and half of B has loss μ; between them L = 2 z - μ has densities under both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.laws.base import Cells, FloatArray, Law
from pyengine.laws.laplace_parameters import LaplaceParameters
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LaplaceLaw"]


@dataclass(frozen=True)
class LaplaceLaw(Law):
    """The pair of Laplace laws at distance μ = 1/noise_multiplier in units of their scale.

    Parameters
    ----------
    noise_multiplier : float or Fraction
        Scale of the noise divided by the sensitivity, in (0, ∞), exactly.
    """

    noise_multiplier: float | Fraction
    symmetric: ClassVar[bool] = True

    @cached_property
    def ratio(self) -> float:
        """The double next to μ."""
        try:
            return float(self.laplace().distance)
        except OverflowError:
            raise AccuracyError(
                "the scale of Laplace noise, over the sensitivity, must be at least 2^-1024, whose "
                "losses are doubles"
            ) from None

    def laplace(self) -> LaplaceParameters:
        """Parameters of the noise."""
        return LaplaceParameters(self.noise_multiplier)

    def support(self) -> tuple[float, float]:
        """From -μ to μ."""
        mu = self.ratio
        return -mu, mu

    def cells(self, edges: FloatArray) -> Cells:
        """Masses in closed form; widths are differences of the given doubles.

        A(x < L <= y) = e^{-(μ + x)/2} (1 - e^{-(y - x)/2})/2 in (-μ, μ), and B likewise with the
        mirror images.
        """
        mu = self.ratio
        inside = np.clip(edges, -mu, mu)
        low, high = inside[:-1], inside[1:]
        lumps = np.zeros((2, edges.size + 1))  # atoms: 1/2, e^{-μ}/2 in the other law
        below = int(np.searchsorted(edges, -mu))  # first edge >= -μ: the atom's cell
        above = int(np.searchsorted(edges, mu))
        lumps[0, below] += 0.5
        lumps[1, below] += 0.5 * fn.exp(-mu)
        lumps[0, above] += 0.5 * fn.exp(-mu)
        lumps[1, above] += 0.5
        gap = np.append(np.append(inside[0] + mu, high - low), mu - inside[-1])
        share = -0.5 * fn.expm1(-0.5 * gap)
        start = np.append(-mu, inside)
        end = np.append(inside, mu)
        a = share * fn.exp(-0.5 * (mu + start)) + lumps[0]
        b = share * fn.exp(-0.5 * (mu - end)) + lumps[1]
        with np.errstate(divide="ignore"):
            log_a, log_b = fn.log(a), fn.log(b)
        error = np.full(a.size, UNIT * (64.0 + 8.0 * mu))
        return Cells(log_a, log_b, error, UNIT * (4.0 * np.abs(edges) + 4.0 * mu))
