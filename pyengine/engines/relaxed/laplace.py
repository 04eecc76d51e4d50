"""Laplace noise: the distance is exponential without the record, folded Laplace with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pyengine.engines.relaxed.core import (
    LOG_2,
    ROUNDING,
    Errors,
    FloatArray,
    LogTails,
    RoundedProfile,
    exp,
    log,
    one_minus_sum,
)
from pyengine.engines.relaxed.sampled import SampledPair
from pyengine.laws.base import Cells, Law, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["FoldedLaplaceLaw", "LaplacePair", "SampledLaplacePair"]


# Map: Theorem 1 of Kaissis et al. (2023), relaxed: Laplace noise | test_relaxed | relaxed
class LaplacePair:
    """Exp(1) against the law of |Laplace(μ, 1)|, μ the effect: sensitivity over scale.

    With x the distance, L(x) = log(e^{-μ} cosh x) + x for x <= μ, and log cosh μ beyond: an atom.
    """

    def __init__(self, effect: float) -> None:
        self.effect = effect
        self.lowest = -effect
        # log cosh μ, which is μ²/2 for small μ
        self.highest = (
            fn.log1p(2.0 * fn.sinh(effect / 2.0) ** 2)
            if effect < 1.0
            else effect + fn.log1p(fn.exp(-2.0 * effect)) - LOG_2
        )

    @property
    def kink(self) -> float:
        """The value of j at α = e^{-μ}, where the threshold is μ."""
        return -0.5 * fn.expm1(-2.0 * self.effect)

    def _times_cosh(self, alpha: FloatArray) -> FloatArray:
        """Return α cosh μ for α <= e^{-μ}, without overflow."""
        return 0.5 * (exp(log(alpha) + self.effect) + alpha * fn.exp(-self.effect))

    def limit(self) -> None:
        """None: no limit is known."""

    def law(self) -> StepLaw:
        """Both laws as one step of a composition."""
        return FoldedLaplaceLaw(self.effect)

    def forward(self, alpha: FloatArray) -> Errors:
        """Theorem 1, equation 2."""
        mu = self.effect
        near = log(alpha) < -mu  # the threshold is above μ
        inner = np.where(near, 1.0, alpha)
        log_beta = log((1.0 - inner) * (1.0 + inner)) - fn.log(inner) - mu - LOG_2
        beta = exp(log_beta)
        gamma = 1.0 - beta
        if near.any():
            tail = alpha[near]
            gamma[near] = self._times_cosh(tail)
            if mu < 1.0:  # 1 - α cosh μ cancels near α = e^{-μ}
                beta[near] = (1.0 - tail) - 2.0 * tail * fn.sinh(mu / 2.0) ** 2
            else:
                beta[near] = 1.0 - gamma[near]
            log_beta[near] = np.where(gamma[near] < 0.5, fn.log1p(-gamma[near]), log(beta[near]))
        return Errors(beta, gamma, log_beta)

    def backward(self, alpha: FloatArray) -> Errors:
        """Theorem 1, equation 3, with its condition corrected to α < (1 - e^{-2μ})/2."""
        mu = self.effect
        below = alpha < self.kink
        with np.errstate(over="ignore"):
            s = np.where(below, exp(log(alpha) + mu), 0.0)
        small = s < 1e8
        inner = np.where(small, s, 0.0)
        root = np.sqrt(1.0 + inner * inner)
        log_beta = np.where(small, -fn.arcsinh(s), -(log(alpha) + mu + LOG_2))
        beta = exp(log_beta)
        with np.errstate(invalid="ignore"):
            gamma = np.where(small, (inner + inner * inner / (1.0 + root)) * beta, 1.0 - beta)
        above = ~below
        if above.any():
            rest = 1.0 - alpha[above]
            log_beta[above] = log(rest) - self.highest
            beta[above] = exp(log_beta[above])
            gamma[above] = 1.0 - beta[above]
            if mu < 1.0:
                h = 2.0 * fn.sinh(mu / 2.0) ** 2  # cosh μ - 1
                gamma[above] = (alpha[above] + h) / (1.0 + h)
        return Errors(beta, gamma, log_beta)

    def loss(self, p_above: FloatArray) -> FloatArray:
        """L at the distance x with P(above) = e^{-x}."""
        with np.errstate(divide="ignore", under="ignore", over="ignore"):
            x = np.minimum(-fn.log(p_above), self.effect)
            # log(e^{x} cosh x) = log((e^{2x} + 1)/2)
            inner = np.where(
                x < 0.3,
                fn.log1p(0.5 * fn.expm1(2.0 * x)),
                2.0 * x - LOG_2 + fn.log1p(fn.exp(-2.0 * x)),
            )
        return np.asarray(np.minimum(inner - self.effect, self.highest))

    def tails(self, loss: FloatArray) -> LogTails:
        """Tails at losses; the atom is at the highest loss."""
        mu = self.effect
        top = loss >= self.highest
        x = _distance(np.where(top, self.lowest, np.maximum(loss, self.lowest)) + mu)
        with np.errstate(over="ignore"):
            p_above = -x
            p_below = log(-fn.expm1(-x))
            q_below = log(-0.5 * fn.expm1(-2.0 * x)) + x - mu
            q_above = fn.log1p(-exp(q_below))
        for array, value in (
            (p_above, -math.inf),
            (q_above, -math.inf),
            (p_below, 0.0),
            (q_below, 0.0),
        ):
            array[top] = value
        return LogTails(p_below, p_above, q_below, q_above)

    def profile(self, epsilon: FloatArray, *, backward: bool) -> RoundedProfile:
        """With v = e^{ε-μ}: (1 - w)²/(1 + w²), w² = v/(2 - v); backward 1 - √(2v - e^{-2μ})."""
        mu = self.effect
        if backward:
            v = fn.exp(np.minimum(epsilon, self.highest) - mu)
            root = np.sqrt(np.maximum(2.0 * v - fn.exp(-2.0 * mu), 0.0))
            # 1 - root² = 2 e^{-μ} (cosh μ - e^ε) = -2 e^{-μ} cosh μ expm1(ε - log cosh μ)
            gap = -fn.expm1(np.minimum(epsilon - self.highest, 0.0)) * (1.0 + fn.exp(-2.0 * mu))
            value = gap / (1.0 + root)
            slope = np.where(root > 0.0, v / np.maximum(root, 1e-300), 0.0)
        else:
            v = fn.exp(np.minimum(epsilon - mu, 0.0))
            w = np.sqrt(v / (2.0 - v))
            rest = -2.0 * fn.expm1(np.minimum(epsilon - mu, 0.0)) / ((2.0 - v) * (1.0 + w))  # 1 - w
            value = rest * rest / (1.0 + w * w)
            slope = rest  # P's mass of the event, an upper bound
        # rounding of ε - μ and of μ
        moved = np.where(value > 0.0, slope * (mu + np.minimum(epsilon, 1e300)), 0.0)
        return RoundedProfile(value, ROUNDING * (value + 0.25 * moved))


def _distance(w: FloatArray) -> FloatArray:
    """The x with e^{2x} = 2 e^w - 1, for a loss w - μ."""
    with np.errstate(over="ignore", under="ignore"):
        far = 0.5 * (w + LOG_2 + fn.log1p(-0.5 * fn.exp(-w)))
    return np.asarray(np.where(w < 0.3, 0.5 * fn.log1p(2.0 * fn.expm1(np.minimum(w, 0.3))), far))


class SampledLaplacePair(SampledPair):
    """A `LaplacePair` on a Poisson sample."""

    def backward(self, alpha: FloatArray) -> Errors:
        """In closed form: the two pieces of Theorem 1 give a quadratic and a linear equation."""
        p, mu = self.probability, -self.pair.lowest
        # p (cosh μ - 1)
        ph = fn.expm1(self.highest) if self.highest < 700.0 else math.inf
        q, r = 0.5 * p * fn.exp(-mu), 1.0 - p
        rest = one_minus_sum(alpha, p)  # r - α
        root = np.sqrt(rest * rest + 4.0 * q * (q + r))
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(rest > 0.0, (rest + root) / (2.0 * (q + r)), 2.0 * q / (root - rest))
            c = 2.0 * alpha / (2.0 * q + r + alpha + root)
        far = ~(a >= fn.exp(-mu))  # the threshold is above μ
        a = np.where(far, (1.0 - alpha) / (1.0 + ph), a)
        c = np.where(far, (alpha + ph) / (1.0 + ph) if ph < math.inf else 1.0, c)
        log_beta = np.where(c < 0.5, fn.log1p(-np.minimum(c, 0.5)), log(a))
        deep = far & ~(c < 0.5)
        log_beta = np.where(deep, log(1.0 - alpha) - self.highest, log_beta)
        return Errors(np.where(deep, exp(log_beta), a), c, log_beta)


@dataclass(frozen=True)
class FoldedLaplaceLaw(Law):
    """Exp(1) and |Laplace(μ, 1)|: L(x) = log(e^{-μ} cosh x) + x for x <= μ, constant beyond."""

    effect: float

    def support(self) -> tuple[float, float]:
        """From -μ to log cosh μ, where both laws have an atom."""
        pair = LaplacePair(self.effect)
        return pair.lowest, pair.highest

    def cells(self, edges: FloatArray) -> Cells:
        """Masses between points x(L) in closed form, from differences of x."""
        mu = self.effect
        lowest, highest = self.support()
        x = np.minimum(_distance(np.clip(edges, lowest, highest) + mu), mu)
        x = np.where(edges >= highest, mu, x)
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
