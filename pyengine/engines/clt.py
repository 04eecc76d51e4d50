"""The central limit approximation: a subsampled composition as one Gaussian mechanism.

Its distance is μ̃ = √(Σ n p² χ²), χ² the divergence of one step without sampling: for Gaussian
noise p √(n (e^{μ²} - 1)), μ = 1/noise (Bu et al. 2020).  Kaissis et al. 2023 print e^{μ}; their own
footnote has the square.  The error estimate is the distance to Edgeworth's expansion of order 4
and that one's own estimate.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.engines.approximate import FloatArray, curve_of, inverse_profile, warn_where
from pyengine.engines.edgeworth import EdgeworthPair, edgeworth_questions
from pyengine.engines.loss_quadrature import pearson
from pyengine.errors import AccuracyError, ApproximationWarning
from pyengine.mechanisms import Mechanism
from pyengine.special import log_ndtr, ndtr, ndtri

__all__ = ["CltPair", "clt_distance"]


# Map: central limit of Bu et al. (2020) | test_approximations | approximations
def clt_distance(mechanism: Mechanism) -> float:
    """Distance μ̃ of the Gaussian pair in the place of a composition."""
    distance = math.sqrt(pearson(mechanism))
    if not math.isfinite(distance):
        raise AccuracyError(
            "the central limit approximation overflows: a noise_multiplier is too small; "
            "method='auto' is exact"
        )
    return distance


class CltPair(Questions):
    """The Gaussian in the place of a composition; it is the same for all adjacencies."""

    def __init__(self, mechanism: Mechanism, adjacency: str) -> None:
        self._mu = clt_distance(mechanism)
        if adjacency == "add_remove":
            self._judge = edgeworth_questions(mechanism, adjacency)
        else:
            self._judge = EdgeworthPair(mechanism, adjacency)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        z = ndtri(alpha)
        beta, gamma = np.asarray(ndtr(-z - self._mu)), np.asarray(ndtr(z + self._mu))
        c = np.where(np.isfinite(z), -self._mu * (z + 0.5 * self._mu), -z)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            judged = self._judge.trade_off(alpha)
        # what is near 1 has none of the digits in which its complement differs
        error = np.where(beta < gamma, _distance(beta, judged.beta), _distance(gamma, judged.gamma))
        inner = (alpha > 0.0) & (alpha < 1.0) & (self._mu > 0.0)
        smaller = np.minimum(beta, gamma)[inner]
        warn_where(smaller, error[inner], np.zeros(smaller.size, dtype=bool), "clt")
        return curve_of(alpha, beta, gamma, error, c, "clt")

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        if self._mu == 0.0:
            return np.zeros(epsilon.size)
        x, half = -epsilon / self._mu, 0.5 * self._mu
        with np.errstate(invalid="ignore"):
            log_second = np.where(np.isfinite(epsilon), epsilon + log_ndtr(x - half), -np.inf)
        return np.clip(ndtr(x + half) - np.exp(np.minimum(log_second, 0.0)), 0.0, 1.0)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        value = self._delta(epsilon)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            other = self._judge.profile(epsilon)
        return self._answer(value, other, 1.0)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        value = inverse_profile(self._delta, delta, math.inf)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            other = self._judge.epsilon(delta)
        return self._answer(value, other, math.inf)

    def _answer(self, value: FloatArray, other: Answer, ceiling: float) -> Answer:
        with np.errstate(invalid="ignore"):
            error = _distance(value, other)
        error = np.where(np.isnan(error), np.where(value == other.lower, 0.0, math.inf), error)
        warn_where(value, error, np.zeros(value.size, dtype=bool), "clt")
        with np.errstate(invalid="ignore"):
            lower = np.maximum(np.where(np.isfinite(error), value - error, 0.0), 0.0)
        return Answer(value, lower, np.minimum(value + error, ceiling), names("clt", value.size))


def _distance(value: FloatArray, other: Answer) -> FloatArray:
    """Largest distance from a value to what another answer's interval holds."""
    return np.maximum(np.abs(value - other.lower), np.abs(other.upper - value))
