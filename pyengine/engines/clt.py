"""The central limit approximation: a subsampled composition as one Gaussian mechanism.

Its distance is μ̃ = √(Σ n p² χ²), χ² the divergence of one step without sampling: for Gaussian
noise p √(n (e^{μ²} - 1)), μ = 1/noise (Bu et al. 2020).  Kaissis et al. 2023 print e^{μ}; their own
footnote has the square.
"""

from __future__ import annotations

import math

import numpy as np

from pyengine.engines.answers import Answer, ErrorCurve, Questions
from pyengine.engines.approximate import FloatArray, alone, curve_of, inverse_profile
from pyengine.engines.loss_quadrature import pearson
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.special import log_ndtr, ndtr, ndtri

__all__ = ["CltPair", "clt_distance"]

NAME = "clt"


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

    def __init__(self, mechanism: Mechanism) -> None:
        self._mu = clt_distance(mechanism)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        z = ndtri(alpha)
        beta, gamma = np.asarray(ndtr(-z - self._mu)), np.asarray(ndtr(z + self._mu))
        c = np.where(np.isfinite(z), -self._mu * (z + 0.5 * self._mu), -z)
        return curve_of(alpha, beta, gamma, c, NAME)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        if self._mu == 0.0:
            return np.zeros(epsilon.size)
        x, half = -epsilon / self._mu, 0.5 * self._mu
        with np.errstate(invalid="ignore"):
            log_second = np.where(np.isfinite(epsilon), epsilon + log_ndtr(x - half), -np.inf)
        return np.clip(ndtr(x + half) - np.exp(np.minimum(log_second, 0.0)), 0.0, 1.0)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return alone(self._delta(epsilon), NAME)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        return alone(inverse_profile(self._delta, delta, math.inf), NAME)
