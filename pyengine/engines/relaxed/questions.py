"""The relaxed threat model where one distance says it all: closed forms and tails at quantiles.

``add`` is the paper's j = T(P, Q), ``remove`` its inverse T(Q, P), ``add_remove`` their convexified
minimum J, where P is the law of the distance without the record and Q the one with it.
"""

from __future__ import annotations

import numpy as np

from pyengine.engines.answers import Answer, ErrorCurve, FloatArray, Questions, names
from pyengine.engines.hull import BothOrders
from pyengine.engines.problem import Problem
from pyengine.engines.relaxed.core import ROUNDING, Errors, MagnitudePair
from pyengine.engines.relaxed.hull import hull
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, in_words
from pyengine.mechanisms.threat_models import Relaxed
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_root

__all__ = [
    "MagnitudeQuestions",
    "RelaxedPairQuestions",
    "answers_of",
    "no_closed_form",
    "relaxed_closed_form",
    "relaxed_log_beta",
]

SUBNORMAL = 1e-323
ENGINE = "ncx2"


def answers_of(errors: Errors) -> tuple[Answer, Answer]:
    """Both errors of a test with bounds: the logarithm of β is accurate in relative terms."""
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


class RelaxedPairQuestions(Questions):
    """Questions on one order of a pair of laws of a distance."""

    def __init__(self, pair: MagnitudePair, *, backward: bool) -> None:
        self.pair = pair
        self.backward = backward

    def errors(self, alpha: FloatArray) -> Errors:
        """β, γ and log β at α in [0, 1]; γ >= α and β <= 1 - α hold in spite of rounding."""
        errors = (self.pair.backward if self.backward else self.pair.forward)(alpha)
        return Errors(
            np.minimum(errors.beta, 1.0 - alpha),
            np.clip(errors.gamma, alpha, 1.0),
            errors.log_beta,
        )

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        errors = self.errors(alpha)
        c = -self.pair.loss(errors.beta) if self.backward else self.pair.loss(alpha)
        return ErrorCurve(*answers_of(errors), c)

    @property
    def largest_epsilon(self) -> float:
        """Where the profile vanishes."""
        return self.pair.highest if self.backward else -self.pair.lowest

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0; the absolute error is that of two probabilities."""
        value, error = self.pair.profile(epsilon, backward=self.backward)
        return Answer.around(value + 0.0, error + SUBNORMAL, names(ENGINE, epsilon.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        low, high = np.zeros(delta.size), np.full(delta.size, self.largest_epsilon)
        open_end = ~np.isfinite(high) & (delta > 0.0)
        high[open_end] = 1.0
        while open_end.any():  # doubles until the profile is small enough
            still = self.profile(high[open_end]).value > delta[open_end]
            where = np.flatnonzero(open_end)
            open_end[where[~still]] = False
            high[where[still]] *= 2.0
        high[delta >= self.profile(np.zeros(1)).value[0]] = 0.0
        inner = (high > 0.0) & (delta > 0.0)
        error = np.zeros(delta.size)
        if inner.any():

            def excess(epsilon: FloatArray) -> FloatArray:
                value = self.profile(epsilon).value
                return np.asarray(fn.log(np.maximum(value, SUBNORMAL)) - fn.log(delta[inner]))

            high[inner] = falling_root(excess, low[inner], high[inner])
            error[inner] = self._error_of_root(high[inner])
        return Answer(high, np.maximum(high - error, 0.0), high + error, names(ENGINE, delta.size))

    def _error_of_root(self, epsilon: FloatArray) -> FloatArray:
        """Error of the profile over its slope -e^ε B(E)."""
        error = self.pair.profile(epsilon, backward=self.backward).error
        sign = 1.0 if self.backward else -1.0
        tails = self.pair.tails(np.clip(sign * epsilon, self.pair.lowest, self.pair.highest))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            slope = fn.exp(epsilon + (tails.p_above if self.backward else tails.q_below))
            shift = np.where(slope > 0.0, error / slope, epsilon)
        return np.minimum(shift, epsilon) + ROUNDING * (1.0 + epsilon)


class MagnitudeQuestions(BothOrders):
    """Questions on both orders: adjacency ``add_remove``, the paper's J."""

    def __init__(self, pair: MagnitudePair) -> None:
        self._pair = pair
        self._add: RelaxedPairQuestions = RelaxedPairQuestions(pair, backward=False)
        self._remove: RelaxedPairQuestions = RelaxedPairQuestions(pair, backward=True)

    def errors(self, alpha: FloatArray) -> Errors:
        """β, γ and log β of J = C(j, j⁻¹) at α in [0, 1]."""
        return hull(self._pair, alpha, self._add.errors(alpha), self._remove.errors(alpha))

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """Lower convex hull of j and its inverse."""
        return ErrorCurve(*answers_of(self.errors(alpha)))


def _on(pair: MagnitudePair, adjacency: str) -> RelaxedPairQuestions | MagnitudeQuestions:
    if adjacency == "add_remove":
        return MagnitudeQuestions(pair)
    return RelaxedPairQuestions(pair, backward=adjacency == "remove")


def relaxed_closed_form(pair: MagnitudePair, adjacency: str) -> Questions:
    """Return what answers for one distance."""
    return _on(pair, adjacency)


def relaxed_log_beta(
    mechanism: Mechanism, alpha: FloatArray, *, model: Relaxed, adjacency: str
) -> FloatArray:
    """Return log β at flat levels, also where β is below the smallest double.

    Raises
    ------
    ValueError
        For a mechanism or an adjacency that the model does not cover.
    AccuracyError
        For compositions that have no closed form.
    """
    parts = Problem(mechanism, adjacency, threat_model=model).distances
    if not parts:
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log1p(-alpha))
    if len(parts) > 1 or parts[0][1] > 1:
        raise no_closed_form(mechanism)
    return _on(parts[0][0], adjacency).errors(alpha).log_beta


def no_closed_form(mechanism: Mechanism) -> AccuracyError:
    """Return the error of a composition that has no closed form."""
    return AccuracyError(
        "the relaxed threat model has a closed form for Gaussian steps without sampling and for a "
        f"single step of another kind; got {' and '.join(in_words(mechanism))}"
    )
