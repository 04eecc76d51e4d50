"""The first query above a threshold: a pair that dominates what each answer tells by itself.

An answer of probability p under one data set has at least g(p) = Φ(Φ⁻¹(p) - μ) under the other, so
that with n answers δ(ε) <= n max h(p) over p <= 1/n, h(p) = p - e^ε g(p), which is concave
(docs/theory/choices).  It is n times a Gaussian profile where h is largest at a p below 1/n, and
1 - e^ε n g(1/n) elsewhere.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine._support.caches import kept
from pyengine.errors import AccuracyError
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.profile import DEEPEST, law_of_values, placed_values
from pyengine.mechanisms import AboveThreshold
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["above_threshold_law"]

FloatArray = npt.NDArray[np.float64]

PLACES = 2000
LARGEST = 700.0  # ε whose exponential is a double
NDTR = 16.0 * UNIT  # relative, of Φ and of its logarithm
APART = 1e-9  # relative, of probabilities that are told from each other


# Map: the first query above a threshold | test_choices | theory/choices
@kept(64)
def above_threshold_law(step: AboveThreshold) -> FiniteLaw:
    """Return the finite, symmetric pair that dominates.

    Raises
    ------
    AccuracyError
        For losses above 700, of next to no noise.
    """
    square = (
        1 / Fraction(step.threshold_noise) ** 2
        + (step.sides / Fraction(step.noise_multiplier)) ** 2
    )
    mu = math.sqrt(square) * (1.0 + 4.0 * UNIT)  # more tells more
    answers = step.queries + 1
    deep = -special.ndtri_exp(fn.log(DEEPEST / answers))
    end = mu * (0.5 * mu + deep)
    if not end < LARGEST:
        raise AccuracyError(
            f"the losses of the first query above a threshold reach {end:.4g}, above {LARGEST:g}: "
            "more noise is answered"
        )
    epsilon, delta = placed_values(
        lambda e: (_profile(mu, answers, e), e),
        lambda e, _, __: _profile(mu, answers, e),
        end,
        places=PLACES,
    )
    return law_of_values(epsilon, np.minimum.accumulate(delta), Fraction(0))


def _profile(mu: float, answers: int, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of δ at ε >= 0."""
    far = epsilon / mu
    x, y = 0.5 * mu - far, -0.5 * mu - far
    off = 4.0 * UNIT * (mu + far)  # of both, and more of their differences
    log_b = epsilon + np.asarray(special.log_ndtr(y))
    a = np.asarray(special.ndtr(x))
    # log Φ is at most |x| + 1 steep
    a_off = NDTR + 1.01 * off * (np.abs(x) + 1.0)
    b_off = NDTR * (1.0 + np.abs(special.log_ndtr(y))) + 1.01 * off * (np.abs(y) + 1.0)
    b_off += ELEMENTARY * UNIT * (1.0 + np.abs(epsilon) + np.abs(log_b))
    b = fn.exp(log_b)
    whole = answers * (a * (1.0 + a_off) - b * (1.0 - b_off)) * (1.0 + 8.0 * UNIT)
    # some c whose Φ is at most one answer's share
    c = float(special.ndtri(1.0 / answers))
    c -= 1e-13 * (1.0 + abs(c))
    assert special.ndtr(c) * (1.0 + NDTR) * answers <= 1.0
    log_least = fn.log(float(answers)) + float(special.log_ndtr(c - mu))
    log_least -= 64.0 * UNIT * (1.0 + abs(log_least) + (abs(c) + mu + 1.0) ** 2)
    log_shared = epsilon + log_least
    shared = -fn.expm1(np.minimum(log_shared, 0.0)) + 8.0 * UNIT * (1.0 + epsilon)
    crowded = a > (1.0 + APART) / answers
    value = np.where(crowded, np.minimum(shared, whole), whole)
    return np.asarray(np.clip(value, 0.0, 1.0))
