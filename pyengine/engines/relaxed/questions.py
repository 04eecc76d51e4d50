"""The relaxed threat model with a single distance: closed forms and tails at quantiles.

``add`` is the paper's j = T(P, Q), ``remove`` its inverse T(Q, P), ``add_remove`` their convexified
minimum J; P is the law of the distance without the record, and Q that with it.
"""

from __future__ import annotations

import numpy as np

from pyengine import special
from pyengine.engines.answers import (
    TRADE_OFF,
    Answer,
    ErrorCurve,
    FloatArray,
    Found,
    LawQuestion,
    Questions,
    names,
)
from pyengine.engines.hull import BothOrders
from pyengine.engines.problem import Problem
from pyengine.engines.relaxed.core import ROUNDING, Errors, MagnitudePair
from pyengine.engines.relaxed.hull import hull
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words
from pyengine.mechanisms.threat_models import Relaxed
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import inverse_profile

__all__ = ["LimitQuestions", "RelaxedQuestions", "no_closed_form", "relaxed_log_beta"]

SUBNORMAL = 1e-323  # absolute error of a value below the normal doubles
LARGEST = 1e300  # largest ε of the search
ENGINE = "ncx2"


def answers_of(errors: Errors) -> tuple[Answer, Answer]:
    """Both errors of a test with estimated bounds, from a relative error of log β."""
    with np.errstate(invalid="ignore", over="ignore"):
        depth = np.where(np.isfinite(errors.log_beta), np.abs(errors.log_beta), 0.0)
        beta_error = errors.beta * ROUNDING * (1.0 + depth) + SUBNORMAL
    gamma_error = np.minimum(errors.gamma * ROUNDING, np.maximum(beta_error, ROUNDING))
    gamma_error = gamma_error + SUBNORMAL
    engine = names(ENGINE, errors.beta.size)
    return (
        Answer.around(errors.beta, beta_error, engine),
        Answer.around(errors.gamma, gamma_error, engine),
    )


class RelaxedQuestions(Questions):
    """Questions on one order of a pair of laws of a distance."""

    def __init__(self, pair: MagnitudePair, order: str) -> None:
        self.pair, self._backward = pair, order == "remove"

    def beside(self, remove: RelaxedQuestions) -> Questions:
        """The hull C(j, j⁻¹), computed in logs."""
        return _RelaxedBothOrders(self, remove)

    def errors(self, alpha: FloatArray) -> Errors:
        """β, γ and log β at α in [0, 1], with γ and β clipped to γ >= α and β <= 1 - α."""
        found = (self.pair.backward if self._backward else self.pair.forward)(alpha)
        beta, gamma = np.minimum(found.beta, 1.0 - alpha), np.clip(found.gamma, alpha, 1.0)
        return Errors(beta, gamma, found.log_beta)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        errors = self.errors(alpha)
        c = -self.pair.loss(errors.beta) if self._backward else self.pair.loss(alpha)
        return ErrorCurve(*answers_of(errors), c)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0, with the absolute error of a difference of two probabilities."""
        value, error = self.pair.profile(epsilon, backward=self._backward)
        return Answer.around(value + 0.0, error + SUBNORMAL, names(ENGINE, epsilon.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which the profile is <= δ."""
        largest = self.pair.highest if self._backward else -self.pair.lowest
        value = inverse_profile(lambda e: self.profile(e).value, delta, largest, LARGEST)
        inner, error = (value > 0.0) & (delta > 0.0), np.zeros(delta.size)
        if inner.any():
            error[inner] = self._error_of_root(value[inner])
        low = np.maximum(value - error, 0.0)
        high = np.minimum(value + error, largest + ROUNDING * (1.0 + largest))
        return Answer(value, low, high, names(ENGINE, delta.size))

    def _error_of_root(self, epsilon: FloatArray) -> FloatArray:
        """Error of ε: that of the profile over its slope e^ε B(E)."""
        error = self.pair.profile(epsilon, backward=self._backward).error
        sign = 1.0 if self._backward else -1.0
        tails = self.pair.tails(np.clip(sign * epsilon, self.pair.lowest, self.pair.highest))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            slope = fn.exp(epsilon + (tails.p_above if self._backward else tails.q_below))
            shift = np.where(slope > 0.0, error / slope, epsilon)
        return np.minimum(shift, epsilon) + ROUNDING * (1.0 + epsilon)


class _RelaxedBothOrders(BothOrders):
    """Questions on both orders."""

    _add: RelaxedQuestions
    _remove: RelaxedQuestions

    def errors(self, alpha: FloatArray) -> Errors:
        """β, γ and log β on the hull at α in [0, 1]."""
        return hull(self._add.pair, alpha, self._add.errors(alpha), self._remove.errors(alpha))

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        return ErrorCurve(*answers_of(self.errors(alpha)))


# Map: Theorem 3 of Kaissis et al. (2023), relaxed: many dimensions | test_relaxed | relaxed
class LimitQuestions(Questions):
    """The normal approximation of squared lengths in many dimensions, without an error bound.

    Theorem 3 of Kaissis et al. (2023), corrected: with κ = μ² the noncentrality, j tends to
    Φ((z - κ/√(2d)) / √(1 + 2κ/d)), z = Φ⁻¹(1 - α), and for κ << d both j and its inverse tend to
    Φ(z - κ/√(2d)).  The first form answers for each order, the second one for ``add_remove``.
    """

    def __init__(self, shift: float, scale: float, adjacency: str) -> None:
        self.shift, self.scale, self.adjacency = shift, scale, adjacency

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """β and γ at α in [0, 1]."""
        if question is not TRADE_OFF:  # the normal laws differ in variance: thresholds are not best
            raise NotDefinedError(
                "method='clt' of the relaxed threat model has trade-off functions only"
            )
        z = -special.ndtri(x)
        if self.adjacency == "add":
            at = (z - self.shift) / self.scale
        elif self.adjacency == "remove":
            at = z * self.scale - self.shift
        else:
            at = z - self.shift
        return question.made(self._answer(special.ndtr(at)), self._answer(special.ndtr(-at)))

    def _answer(self, value: FloatArray | float) -> Answer:
        flat = np.atleast_1d(np.asarray(value, dtype=np.float64))
        return Answer(flat, np.zeros(flat.size), np.ones(flat.size), names("clt", flat.size))


def relaxed_log_beta(
    mechanism: Mechanism, alpha: FloatArray, *, model: Relaxed, adjacency: str
) -> FloatArray:
    """Return log β at flat levels, also where β is below the smallest double.

    Mechanisms outside the model and compositions without a closed form are refused.
    """
    parts = Problem(mechanism, adjacency, threat_model=model).distances
    if not parts:
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log1p(-alpha))
    if len(parts) > 1 or parts[0][1] > 1:
        raise no_closed_form(mechanism)
    orders = ("add", "remove") if adjacency == "add_remove" else (adjacency,)
    asked = [RelaxedQuestions(parts[0][0], order) for order in orders]
    found = asked[0] if len(asked) == 1 else _RelaxedBothOrders(*asked)
    return found.errors(alpha).log_beta


def no_closed_form(mechanism: Mechanism) -> AccuracyError:
    """Return the error of a composition that has no closed form."""
    return AccuracyError(
        "the relaxed threat model has a closed form for Gaussian steps without sampling and for a "
        f"single step of another kind; got {' and '.join(in_words(mechanism))}"
    )
