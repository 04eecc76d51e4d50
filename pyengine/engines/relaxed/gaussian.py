"""Gaussian noise: the squared distance is chi-squared, noncentral with the record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pyengine import special
from pyengine._core import ffi, lib
from pyengine.engines.relaxed.core import (
    LOG_2,
    ROUNDING,
    Errors,
    FloatArray,
    LogTails,
    RoundedProfile,
    exp,
    from_log,
    log,
)
from pyengine.laws.base import Cells, Law, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["FoldedGaussianLaw", "GaussianDistance", "SquaredLengthLaw"]

# a loss and a squared distance beyond which neither law has mass
HIGHEST, FURTHEST = 1e12, 1e200
NEAR = 4.0  # largest z/a for the series of 0F1


def log_0f1(a: float, z: FloatArray) -> FloatArray:
    """Log 0F1(; a; z) for a >= 1/2, z >= 0, with a small relative error.

    Near 0 by its series; farther out as the log ratio of the noncentral to the central χ² density,
    which is large there compared with the rounding of both.
    """
    result = np.empty_like(z)
    near = z <= NEAR * a
    if near.any():
        part = z[near]
        term = np.ones_like(part)
        total = np.zeros_like(part)
        for k in range(1, 200):
            term = term * part / (k * (a + k - 1.0))
            total += term
            if k % 8 == 0 and not np.any(term > 1e-18 * total):
                break
        result[near] = fn.log1p(total)
    far = ~near
    if far.any():
        # nc x = 4 z; both densities are most precise at x = 2a + nc
        part = z[far]
        half = np.sqrt(a * a + 4.0 * part) - a  # nc, as nc (2a + nc) = 4 z
        x = 2.0 * a + half
        nc = 4.0 * part / x
        result[far] = (
            special.ncx2_logpdf(x, 2.0 * a, nc) - special.ncx2_logpdf(x, 2.0 * a, 0.0) + nc / 2.0
        )
    return result


def solve_log_0f1(a: float, w: FloatArray) -> FloatArray:
    """The z >= 0 with log 0F1(; a; z) = w, for w >= 0.

    The function is concave with slope 1/a at 0, so Newton's method from a w climbs to the root.
    """
    z = a * w
    for _ in range(100):
        value = log_0f1(a, z)
        slope = fn.exp(log_0f1(a + 1.0, z) - value) / a
        step = (w - value) / slope
        z = np.maximum(z + step, 0.0)
        if not np.any(np.abs(step) > 1e-9 * z):  # quadratic convergence: the error is its square
            break
    return z


# Map: Theorem 2 of Kaissis et al. (2023), relaxed: Gaussian noise | test_relaxed | relaxed
class GaussianDistance:
    """χ²_d(0) against χ²_d(μ²), μ the effect: sensitivity over standard deviation.

    Theorem 2 of Kaissis et al. (2023); L(x) = -μ²/2 + log 0F1(; d/2; μ²x/4).
    """

    def __init__(self, dimension: int, effect: float) -> None:
        self.dimension = dimension
        self.effect = effect
        self.lowest = -0.5 * effect * effect
        self.highest = math.inf

    def limit(self) -> tuple[float, float]:
        """Shift κ/√(2d) and scale √(1 + 2κ/d), κ = μ²: Theorem 3, corrected."""
        kappa, d = self.effect**2, self.dimension
        return kappa / math.sqrt(2.0 * d), math.sqrt(1.0 + 2.0 * kappa / d)

    def law(self) -> StepLaw:
        """Both laws as one step of a composition."""
        if self.dimension == 1:
            return FoldedGaussianLaw(self.effect)
        return SquaredLengthLaw(self.dimension, self.effect)

    def forward(self, alpha: FloatArray) -> Errors:
        """Equation 4, left: F_{μ²} at the quantile of F_0; Corollary 1 in one dimension."""
        if self.dimension > 1:
            return from_log(special.log_relaxed_beta(alpha, float(self.dimension), self.effect))
        log_beta = np.empty_like(alpha)
        gamma = np.empty_like(alpha)
        near = alpha <= 0.5  # beyond, Φ(z - μ) - Φ(-z - μ) cancels
        if near.any():
            z = -np.asarray(special.ndtri(0.5 * alpha[near]))
            first, second = (special.log_ndtr(x - self.effect) for x in (z, -z))
            with np.errstate(invalid="ignore"):
                log_beta[near] = first + fn.log1p(
                    -exp(np.where(z < math.inf, second - first, -math.inf))
                )
            gamma[near] = special.ndtr(self.effect - z) + special.ndtr(-z - self.effect)
        far = ~near
        if far.any():
            part = from_log(special.log_relaxed_beta(alpha[far], 1.0, self.effect))
            log_beta[far], gamma[far] = part.log_beta, part.gamma
        return Errors(exp(log_beta), gamma, log_beta)

    def backward(self, alpha: FloatArray) -> Errors:
        """Equation 4, right: 1 - F_0 at the quantile of F_{μ²}."""
        errors = from_log(special.log_relaxed_alpha(alpha, float(self.dimension), self.effect))
        # where the quantile underflows, the likelihood ratio is e^{μ²/2} to all digits
        lost = (errors.gamma == 0.0) & (alpha > 0.0)
        if lost.any():
            errors.gamma[lost] = exp(log(alpha[lost]) - self.lowest)
        return errors

    def _log_ratio(self, x: FloatArray) -> FloatArray:
        """Return L + μ²/2 at squared distances."""
        if self.dimension == 1:
            y = self.effect * np.sqrt(x)
            with np.errstate(under="ignore", over="ignore"):
                # log cosh y
                return np.asarray(
                    np.where(
                        y < 1.0,
                        fn.log1p(2.0 * fn.sinh(np.minimum(y, 1.0) / 2.0) ** 2),
                        y - LOG_2 + fn.log1p(fn.exp(-2.0 * y)),
                    )
                )
        return log_0f1(0.5 * self.dimension, 0.25 * self.effect**2 * x)

    def loss(self, p_above: FloatArray) -> FloatArray:
        """L at the quantile of the central law."""
        x = special.ncx2_isf(p_above, float(self.dimension), 0.0)
        inside = np.isfinite(x)
        result = np.full(p_above.shape, math.inf)
        result[inside] = self._log_ratio(x[inside]) + self.lowest
        return result

    def squared_distance(self, loss: FloatArray) -> FloatArray:
        """The x with L(x) = loss; 0 for losses below the smallest one."""
        w = np.clip(loss - self.lowest, 0.0, HIGHEST)
        if self.dimension == 1:
            # arcosh e^w
            y = w + fn.log1p(np.sqrt(-fn.expm1(-2.0 * w)))
            return np.asarray(np.minimum((y / self.effect) ** 2, FURTHEST))
        return 4.0 * solve_log_0f1(0.5 * self.dimension, w) / self.effect**2

    def tails(self, loss: FloatArray) -> LogTails:
        """Tails of both laws at losses."""
        return self._tails_at(self.squared_distance(loss))

    def _tails_at(self, x: FloatArray) -> LogTails:
        d, nc = float(self.dimension), self.effect**2
        return LogTails(
            special.ncx2_logcdf(x, d, 0.0),
            special.ncx2_logsf(x, d, 0.0),
            special.ncx2_logcdf(x, d, nc),
            special.ncx2_logsf(x, d, nc),
        )

    def profile(self, epsilon: FloatArray, *, backward: bool) -> RoundedProfile:
        """A difference of two tails; rounding of their common argument acts in second order."""
        if backward:
            tails = self.tails(epsilon)
            gain, loss = tails.q_above, tails.p_above
        else:
            possible = np.minimum(epsilon, -self.lowest)
            tails = self.tails(-possible)
            gain, loss = tails.p_below, tails.q_below
        with np.errstate(under="ignore", invalid="ignore"):
            first = fn.exp(gain)
            share = np.where(gain == -math.inf, 1.0, epsilon + loss - gain)
            value = np.maximum(
                np.where(share < 0.0, -first * fn.expm1(np.minimum(share, 0.0)), 0.0), 0.0
            )
        if not backward:
            value = np.where(epsilon < -self.lowest, value, 0.0)
        depth = 1.0 + np.where(np.isfinite(gain), np.abs(gain), 0.0)
        return RoundedProfile(value, ROUNDING * depth * first)


@dataclass(frozen=True)
class FoldedGaussianLaw(Law):
    """|N(0, 1)| and |N(μ, 1)|: L(x) = log cosh(μ x) - μ²/2, μ > 0 the effect."""

    effect: float

    def support(self) -> tuple[float, float]:
        """Losses from -μ²/2."""
        return -0.5 * self.effect**2, math.inf

    def cells(self, edges: FloatArray) -> Cells:
        """Normal masses on both sides of 0, between points x(L) = arcosh(e^{L + μ²/2})/μ."""
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
    """Logs of the masses of |N(mean, 1)| between increasing x > 0, at indices ``place``."""
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
    """χ²_d(0) and χ²_d(μ²): L(x) = -μ²/2 + log 0F1(; d/2; μ²x/4), d >= 2, μ > 0 the effect."""

    dimension: int
    effect: float
    is_proven: ClassVar[bool] = False  # the error of the noncentral law is only measured

    def support(self) -> tuple[float, float]:
        """Losses from -μ²/2."""
        return -0.5 * self.effect**2, math.inf

    def cells(self, edges: FloatArray) -> Cells:
        """Differences of tails, of the smaller tail of each law.

        A difference of nearly equal tails loses digits, which ``error`` includes.
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
        # 32 u of log 0F1, and the rounding of x where x f(x) is large
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
