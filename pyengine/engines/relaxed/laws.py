"""One step as the adversary of the relaxed threat model sees it: the laws of a distance.

A is the law of the distance without the record, B the one with it; the loss grows with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pyengine import special
from pyengine._core import ffi, lib
from pyengine.engines.relaxed.core import MagnitudePair
from pyengine.engines.relaxed.gaussian import GaussianDistance
from pyengine.engines.relaxed.laplace import LaplacePair
from pyengine.engines.relaxed.sampled import SampledPair
from pyengine.laws.base import Cells, FloatArray, Law, PoissonSampledLaw, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["FoldedGaussianLaw", "FoldedLaplaceLaw", "SquaredLengthLaw", "magnitude_law"]


def magnitude_law(pair: MagnitudePair) -> StepLaw:
    """Return the law of a pair of laws of a distance."""
    if isinstance(pair, SampledPair):
        return PoissonSampledLaw(magnitude_law(pair.pair), pair.probability)
    if isinstance(pair, LaplacePair):
        return FoldedLaplaceLaw(pair.effect)
    if isinstance(pair, GaussianDistance):
        if pair.dimension == 1:
            return FoldedGaussianLaw(pair.effect)
        return SquaredLengthLaw(pair.dimension, pair.effect)
    raise ValueError(f"pair must be Gaussian or Laplace, plain or sampled, got {pair!r}")


@dataclass(frozen=True)
class FoldedLaplaceLaw(Law):
    """Exp(1) and the law of |Laplace(μ, 1)|: L(x) = log(e^{-μ} cosh x) + x up to x = μ, then flat.

    Parameters
    ----------
    effect : float
        μ, sensitivity over scale, in (0, ∞).
    """

    effect: float

    def support(self) -> tuple[float, float]:
        """From -μ to log cosh μ, where both laws have an atom."""
        pair = LaplacePair(self.effect)
        return pair.lowest, pair.highest

    def cells(self, edges: FloatArray) -> Cells:
        """Closed forms between x(L), e^{2x} = 2 e^{L+μ} - 1, from differences of x."""
        mu = self.effect
        lowest, highest = self.support()
        w = np.clip(edges, lowest, highest) + mu
        with np.errstate(over="ignore", under="ignore"):
            far = 0.5 * (w + fn.log(2.0) + fn.log1p(-0.5 * fn.exp(-w)))
        x = np.where(w < 0.3, 0.5 * fn.log1p(2.0 * fn.expm1(np.minimum(w, 0.3))), far)
        x = np.where(edges >= highest, mu, np.minimum(x, mu))
        start, end = np.append(0.0, x), np.append(x, mu)
        gap = end - start
        with np.errstate(divide="ignore", under="ignore"):
            log_a = fn.log(-fn.expm1(-gap)) - start
            # e^{-μ} (sinh end - sinh start) = 2 e^{-μ} cosh((start + end)/2) sinh(gap/2)
            middle = 0.5 * (start + end)
            log_b = fn.log(-fn.expm1(-gap)) + 0.5 * gap - fn.log(2.0)
            log_b += fn.log1p(fn.exp(-2.0 * middle)) + middle - mu
        home = int(np.searchsorted(edges, highest))
        log_a[home] = fn.logaddexp(log_a[home], -mu)
        log_b[home] = fn.logaddexp(log_b[home], highest - mu)
        error = np.full(gap.size, UNIT * ELEMENTARY * (24.0 + 8.0 * mu))
        shift = UNIT * (4.0 * np.abs(edges) + ELEMENTARY * (8.0 + 8.0 * mu))
        return Cells(log_a, log_b, error, shift)


@dataclass(frozen=True)
class FoldedGaussianLaw(Law):
    """|N(0, 1)| and |N(μ, 1)|: L(x) = log cosh(μ x) - μ²/2.

    Parameters
    ----------
    effect : float
        μ, sensitivity over standard deviation, in (0, ∞).
    """

    effect: float

    def support(self) -> tuple[float, float]:
        """Losses from -μ²/2."""
        return -0.5 * self.effect**2, math.inf

    def cells(self, edges: FloatArray) -> Cells:
        """Normal masses on both sides of 0 between x(L) = arcosh(e^{L + μ²/2})/μ."""
        mu = self.effect
        w = np.maximum(edges + 0.5 * mu * mu, 0.0)
        y = w + fn.log1p(np.sqrt(-fn.expm1(-2.0 * w)))
        x = y / mu
        shift = UNIT * (4.0 * np.abs(edges) + 4.0 * mu * mu + 4.0 * ELEMENTARY * (w + y))
        use = x > 0.0
        use[1:] &= x[1:] > np.maximum.accumulate(x)[:-1]
        kept = np.flatnonzero(use)
        place = np.append(kept, x.size)  # cells between equal x are empty
        inner = x[kept]
        log_a, log_b = (_folded_masses(inner, mean, place, x.size + 1) for mean in (0.0, mu))
        reach = np.maximum(np.append(x, 0.0), np.append(0.0, x)) + mu
        finite = np.where(np.isfinite(log_a), np.abs(log_a), 0.0)
        error = UNIT * (96.0 + 4.0 * finite + 12.0 * reach * reach)
        return Cells(log_a, log_b, error, shift)


def _folded_masses(x: FloatArray, mean: float, place: FloatArray, size: int) -> FloatArray:
    """Logs of the masses of |N(mean, 1)| between increasing x > 0, put in their places."""
    both = np.ascontiguousarray(np.concatenate([-x[::-1], x]))
    mass = np.empty(both.size + 1)
    whole = np.full(size, -math.inf)
    if not x.size:
        whole[place] = 0.0
        return whole
    lib.pe_normal_cells(
        both.size,
        ffi.from_buffer("double[]", both),
        mean,
        ffi.from_buffer("double[]", mass, require_writable=True),
    )
    right, left = mass[x.size :], mass[x.size :: -1]
    whole[place] = np.append(right[0], fn.logaddexp(right[1:], left[1:]))
    return whole


@dataclass(frozen=True)
class SquaredLengthLaw(Law):
    """χ²_d(0) and χ²_d(μ²): L(x) = -μ²/2 + log 0F1(; d/2; μ²x/4).

    Parameters
    ----------
    dimension : int
        d >= 2.
    effect : float
        μ, sensitivity over standard deviation, in (0, ∞).
    """

    dimension: int
    effect: float
    is_proven: ClassVar[bool] = False  # the error of the noncentral law is measured

    def support(self) -> tuple[float, float]:
        """Losses from -μ²/2."""
        return -0.5 * self.effect**2, math.inf

    def cells(self, edges: FloatArray) -> Cells:
        """Differences of tails, from the smaller side of each law.

        A difference of nearly equal tails loses digits in proportion; ``error`` says so.
        """
        pair = GaussianDistance(self.dimension, self.effect)
        w = np.maximum(edges - pair.lowest, 0.0)
        x = pair.squared_distance(edges)
        use = x > 0.0
        use[1:] &= x[1:] > np.maximum.accumulate(x)[:-1]
        kept = np.flatnonzero(use)
        place = np.append(kept, x.size)
        log_a, error_a = self._masses(x[kept], 0.0, place, x.size + 1)
        log_b, error_b = self._masses(x[kept], self.effect**2, place, x.size + 1)
        # log 0F1 to 32 units, and the rounding of x where x f(x) is large
        shift = UNIT * (4.0 * np.abs(edges) + 4.0 * self.effect**2 + 32.0 * ELEMENTARY * (1.0 + w))
        return Cells(log_a, log_b, np.maximum(error_a, error_b), shift)

    def _masses(
        self, x: FloatArray, nc: float, place: FloatArray, size: int
    ) -> tuple[FloatArray, FloatArray]:
        d = float(self.dimension)
        below = np.concatenate([[-math.inf], special.ncx2_logcdf(x, d, nc), [0.0]])
        above = np.concatenate([[0.0], special.ncx2_logsf(x, d, nc), [-math.inf]])
        lower = below[1:] < above[:-1]
        big = np.where(lower, below[1:], above[:-1])
        small = np.where(lower, below[:-1], above[1:])
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            share = np.where(big > -math.inf, -fn.expm1(small - big), 0.0)
            mass = np.where(share > 0.0, big + fn.log(np.maximum(share, 1e-300)), -math.inf)
            depth = np.where(big > -math.inf, np.abs(big), 0.0)
            error = UNIT * (64.0 + 32.0 * (1.0 + depth) / np.maximum(share, 1e-300))
        whole, errors = np.full(size, -math.inf), np.zeros(size)
        whole[place], errors[place] = mass, np.where(share > 0.0, error, 0.0)
        return whole, errors
