"""A mechanism on a Poisson sample: the law with the record is a mixture with the one without it.

Lemma 9 of Kaissis et al. (2023): T(P, (1-p)P + pQ) = p T(P, Q) + (1-p)(1-α), and its inverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pyengine.engines.relaxed.core import (
    ROUNDING,
    Errors,
    FloatArray,
    LogTails,
    MagnitudePair,
    RoundedProfile,
    exp,
    log,
    one_minus_sum,
)
from pyengine.laws.base import PoissonSampledLaw, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.sampled_loss import sampled_loss

__all__ = ["SampledPair"]

NEGLIGIBLE = 1e-19  # term of a sum, relative to it, that rounding hides
SMALLEST = 1e-300  # lower end of a bracket of a positive root
SLACK = 1e-15  # relative rounding of an end of a bracket


# Map: Lemma 9 of Kaissis et al. (2023), relaxed: Poisson sampling | test_relaxed | relaxed
class SampledPair:
    """(P, (1-p)P + pQ) for a pair (P, Q) and p in (0, 1)."""

    def __init__(self, pair: MagnitudePair, probability: float) -> None:
        self.pair = pair
        self.probability = probability
        self.lowest, self.highest = self._sampled(np.array([pair.lowest, pair.highest])).tolist()

    def loss(self, p_above: FloatArray) -> FloatArray:
        """Return log(1 + p (e^L - 1)) at the same threshold."""
        return self._sampled(self.pair.loss(p_above))

    def _sampled(self, loss: FloatArray) -> FloatArray:
        with np.errstate(under="ignore", invalid="ignore"):
            return sampled_loss(self.probability, loss)

    def _unsampled(self, loss: FloatArray) -> FloatArray:
        """The unsampled losses l with log(1 + p (e^l - 1)) = loss."""
        p = self.probability
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = np.where(
                loss > 1.0,
                loss + fn.log(np.maximum((1.0 - (1.0 - p) * fn.exp(-loss)) / p, 0.0)),
                fn.log1p(np.maximum(fn.expm1(np.minimum(loss, 1.0)) / p, -1.0)),
            )
        return np.asarray(found)

    def limit(self) -> None:
        """None: no limit is known."""

    def law(self) -> StepLaw:
        """Both laws as one step of a composition."""
        return PoissonSampledLaw(self.pair.law(), self.probability)

    def forward(self, alpha: FloatArray) -> Errors:
        """Return p times the errors of the pair plus 1 - p times those of a random guess."""
        p = self.probability
        inner = self.pair.forward(alpha)
        beta = p * inner.beta + (1.0 - p) * (1.0 - alpha)
        gamma = p * inner.gamma + (1.0 - p) * alpha
        return Errors(
            beta, gamma, np.where(gamma < 0.5, fn.log1p(-np.minimum(gamma, 0.5)), log(beta))
        )

    def backward(self, alpha: FloatArray) -> Errors:
        """Return the inverse of forward: the a with p T(a) + (1-p)(1-a) = α."""
        beta, gamma, log_beta = (np.empty_like(alpha) for _ in range(3))
        for chosen, solve in ((alpha > 0.5, self._from_above), (alpha <= 0.5, self._from_below)):
            if chosen.any():
                part = solve(alpha[chosen])
                beta[chosen], gamma[chosen], log_beta[chosen] = part
        return Errors(beta, gamma, log_beta)

    def _from_above(self, alpha: FloatArray) -> Errors:
        """Solve p γ(a) + (1-p) a = u for a <= u = 1 - α < 1/2."""
        p = self.probability
        u = 1.0 - alpha  # exact
        z = one_minus_sum(alpha, p)  # u - p
        # If a is negligible in the sum, p β(a) = -z gives a directly.  For β near 1 that is too
        # inexact, so it is only the start of Newton's method there, unless a underflows.
        start = self.pair.backward(np.clip(-z / p, 0.0, 1.0))
        alone = (z < 0.0) & (start.beta < NEGLIGIBLE * u)
        alone &= (-z <= 0.5 * p) | (start.beta < SMALLEST)

        def excess(a: FloatArray) -> FloatArray:
            inner = self.pair.forward(a)
            return np.where(
                inner.gamma < 0.5,
                p * inner.gamma + (1.0 - p) * a - u,
                (1.0 - p) * a - p * inner.beta - z,
            )

        low = np.where(z > 0.0, z / (1.0 - p) * (1.0 - SLACK), SMALLEST)
        low = np.minimum(low, u)
        a = _newton(
            np.clip(start.beta, low, u),
            low,
            u,
            excess,
            lambda a: p * exp(self.pair.loss(a)) + (1.0 - p),
        )
        beta = np.where(alone, start.beta, np.where(u > 0.0, a, 0.0))
        log_beta = np.where(alone, start.log_beta, log(beta))
        return Errors(beta, 1.0 - beta, log_beta)

    def _from_below(self, alpha: FloatArray) -> Errors:
        """Solve p b + (1-p) γ(b) = α for b = β(a) <= α, where γ(b) = 1 - a."""
        p = self.probability
        z = one_minus_sum(alpha, p)  # (1 - p) - α
        # if b is negligible in the sum, a = z/(1-p)
        only = np.clip(z / (1.0 - p), 0.0, 1.0)
        alone = (z > 0.0) & (self.pair.forward(only).beta <= NEGLIGIBLE * alpha)

        def excess(b: FloatArray) -> FloatArray:
            inner = self.pair.backward(b)
            return np.where(
                inner.gamma < 0.5,
                p * b + (1.0 - p) * inner.gamma - alpha,
                p * b - (1.0 - p) * inner.beta + z,
            )

        def slope(b: FloatArray) -> FloatArray:
            return p + (1.0 - p) * exp(-self.pair.loss(self.pair.backward(b).beta))

        low = np.where(z < 0.0, -z / p * (1.0 - SLACK), NEGLIGIBLE * alpha / 2.0)
        low = np.minimum(low, alpha)
        inner = self.pair.backward(_newton(alpha, low, alpha, excess, slope))
        gamma = np.where(alone, alpha / (1.0 - p), inner.gamma)
        with np.errstate(divide="ignore"):
            log_alone = np.where(gamma < 0.5, fn.log1p(-np.minimum(gamma, 0.5)), fn.log(only))
        return Errors(
            np.where(alone, only, inner.beta), gamma, np.where(alone, log_alone, inner.log_beta)
        )

    def tails(self, loss: FloatArray) -> LogTails:
        """Tails at sampled losses, from those of the pair at the same distances."""
        p = self.probability
        inner = np.clip(self._unsampled(loss), self.pair.lowest, self.pair.highest)
        tails = self.pair.tails(inner)
        below, above = fn.log1p(-p), fn.log(p)
        return LogTails(
            tails.p_below,
            tails.p_above,
            fn.logaddexp(below + tails.p_below, above + tails.q_below),
            fn.logaddexp(below + tails.p_above, above + tails.q_above),
        )

    def profile(self, epsilon: FloatArray, *, backward: bool) -> RoundedProfile:
        """The unsampled profile at another ε, times a factor."""
        p = self.probability
        possible = np.full(epsilon.shape, True)
        with np.errstate(over="ignore"):
            if backward:  # H_t(Q_p‖P) = p H_{t'}(Q‖P), t' = 1 + (t - 1)/p
                factor = np.full(epsilon.shape, p)
                inner = self._unsampled(epsilon)
            else:  # H_t(P‖Q_p) = f H_{t''}(P‖Q), f = 1 - t (1-p), t'' - 1 = (t - 1)/f
                factor = p - (1.0 - p) * fn.expm1(np.minimum(epsilon, 700.0))
                possible = factor > 0.0
                factor = np.where(possible, factor, p)
                inner = fn.log1p(fn.expm1(np.minimum(epsilon, 700.0)) / factor)
        part = self.pair.profile(inner, backward=backward)
        value = np.where(possible, factor * part.value, 0.0)
        # rounding of the inner ε changes the profile by its slope, e^ε times a mass
        end = np.clip(inner if backward else -inner, self.pair.lowest, self.pair.highest)
        tails = self.pair.tails(end)
        mass = tails.p_above if backward else tails.q_below
        with np.errstate(invalid="ignore"):
            slope = np.where(mass > -math.inf, exp(inner + mass), 0.0)
        moved = np.where(slope > 0.0, slope * np.minimum(inner, 1e300), 0.0)
        error = factor * part.error + ROUNDING * p * (part.value + moved)
        return RoundedProfile(value, np.where(possible, error, 0.0))


def _newton(
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    excess: Callable[[FloatArray], FloatArray],
    slope: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Root of an increasing function in [low, high], by Newton's method with bisection.

    Bisection takes the geometric mean, as ends may be hundreds of orders of magnitude apart.
    """
    x, low, high = start, low.copy(), high.copy()
    last = False
    for _ in range(200):
        value = excess(x)
        low = np.where(value < 0.0, x, low)
        high = np.where(value > 0.0, x, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            trial = x - value / slope(x)
            inside = (trial >= low) & (trial <= high)
            trial = np.where(inside, trial, np.sqrt(low) * np.sqrt(high))
        trial = np.where(value == 0.0, x, trial)
        settled = np.abs(trial - x) <= 1e-8 * x
        x = trial
        if last:
            break
        last = bool(settled.all())  # one more step squares the relative error
    return x
