"""Dominating pairs of choices by Gaussian noise, from bounds on the probabilities of answers.

The first query above a threshold: an answer with probability p under one data set has at least
g(p) = Φ(Φ⁻¹(p) - μ) under the other, so with n answers δ(ε) <= n max h(p) over p <= 1/n, where
h(p) = p - e^ε g(p) is concave (docs/theory/choices).  That is n times a Gaussian profile if h has
its maximum at some p below 1/n, and 1 - e^ε n g(1/n) otherwise.

An answer that is almost certain: a test can use only sets of outcomes without it, of probability at
most q, and their complements.  The profile is the Gaussian one from the ε on where its slope in e^ε
is -q, and its tangent there for smaller ε.
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
from pyengine.mechanisms import AboveThreshold, LikelyAnswer
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["above_threshold_law", "likely_answer_law"]

FloatArray = npt.NDArray[np.float64]

POINTS = 2000  # of the profile of a first query above a threshold
TAIL_POINTS = 250  # of the profile of a likely answer, beyond the tangent
LEAST = 1e-18  # smallest q that is used: a smaller probability is rounded up to it
LARGEST = 700.0  # largest ε: e^700 is a double
NDTR = 16.0 * UNIT  # relative error of Φ and of log Φ
APART = 1e-9  # relative margin of the comparison of the maximum with 1/n


# Map: the first query above a threshold | test_choices | theory/choices
@kept(64)
def above_threshold_law(step: AboveThreshold) -> FiniteLaw:
    """Return a finite, symmetric pair that dominates.

    Raises
    ------
    AccuracyError
        For losses above 700, which need very little noise.
    """
    square = (
        1 / Fraction(step.threshold_noise) ** 2
        + (step.sides / Fraction(step.noise_multiplier)) ** 2
    )
    mu = math.sqrt(square) * (1.0 + 4.0 * UNIT)  # rounded up: a larger μ leaks more
    answers = step.queries + 1
    end = _end(mu, answers, "the first query above a threshold")
    epsilon, delta = placed_values(
        lambda e: (_profile(mu, answers, e), e),
        lambda e, _, __: _profile(mu, answers, e),
        end,
        places=POINTS,
    )
    return law_of_values(epsilon, np.minimum.accumulate(delta), Fraction(0))


# Map: an answer that is all but certain | test_votes | theory/choices
@kept(256)
def likely_answer_law(step: LikelyAnswer) -> FiniteLaw | None:
    """Return a finite, symmetric pair that dominates; None if the Gaussian one is as good."""
    mu = (1.0 + 4.0 * UNIT) / float(step.noise_multiplier)
    q = max(float(step.missed) * (1.0 + 2.0 * UNIT), LEAST)
    z = _quantile(q) if q < 0.5 else 0.0
    first = -mu * (z + 0.5 * mu)  # where the Gaussian profile has about the slope -q
    if not first > 0.0:
        return None
    end = max(_end(mu, 1, "a likely answer"), 1.01 * first)
    epsilon = np.append(0.0, first + (end - first) * np.linspace(0.0, 1.0, TAIL_POINTS) ** 2)
    delta = _gaussian_profile(mu, epsilon)
    more = special.ndtr(z + mu + 8.0 * UNIT * (mu - z)) * (1.0 + NDTR)
    delta[0] = (more - q * (1.0 - 4.0 * UNIT)) * (1.0 + 4.0 * UNIT) + 4.0 * UNIT * more
    return law_of_values(epsilon, np.minimum.accumulate(delta), Fraction(0))


def _quantile(p: float) -> float:
    """An upper bound c of the normal quantile of p < 1/2: Φ(c) >= p, proven."""
    c, step = float(special.ndtri(p)), 1e-13
    c += step * (1.0 + abs(c))
    while not special.ndtr(c) * (1.0 - NDTR) >= p:
        step *= 2.0
        c += step * (1.0 + abs(c))
    return c


def _end(mu: float, answers: int, name: str) -> float:
    """The ε from which on δ with this number of answers is below `DEEPEST`."""
    end = mu * (0.5 * mu - special.ndtri_exp(fn.log(DEEPEST / answers)))
    if not end < LARGEST:
        raise AccuracyError(
            f"the losses of {name} reach {end:.4g}, above {LARGEST:g}: use more noise"
        )
    return float(end)


def _gaussian_profile(mu: float, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of δ of a Gaussian release at ε >= 0."""
    far = epsilon / mu
    x, y = 0.5 * mu - far, -0.5 * mu - far
    off = 4.0 * UNIT * (mu + far)  # absolute error of x and y
    log_b = epsilon + np.asarray(special.log_ndtr(y))
    a = np.asarray(special.ndtr(x))
    # the slope of log Φ is at most |x| + 1
    a_off = NDTR + 1.01 * off * (np.abs(x) + 1.0)
    b_off = NDTR * (1.0 + np.abs(special.log_ndtr(y))) + 1.01 * off * (np.abs(y) + 1.0)
    b_off += ELEMENTARY * UNIT * (1.0 + np.abs(epsilon) + np.abs(log_b))
    whole = (a * (1.0 + a_off) - fn.exp(log_b) * (1.0 - b_off)) * (1.0 + 8.0 * UNIT)
    return np.asarray(np.clip(whole, 0.0, 1.0))


def _profile(mu: float, answers: int, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of δ of the first query above a threshold at ε >= 0."""
    whole = np.minimum(answers * _gaussian_profile(mu, epsilon) * (1.0 + 4.0 * UNIT), 1.0)
    # c with Φ(c) <= 1/n, proven
    c, step = float(special.ndtri(1.0 / answers)), 1e-13
    c -= step * (1.0 + abs(c))
    while not special.ndtr(c) * (1.0 + NDTR) * answers <= 1.0:
        step *= 2.0
        c -= step * (1.0 + abs(c))
    log_least = fn.log(float(answers)) + float(special.log_ndtr(c - mu))
    log_least -= 64.0 * UNIT * (1.0 + abs(log_least) + (abs(c) + mu + 1.0) ** 2)
    log_shared = epsilon + log_least
    shared = -fn.expm1(np.minimum(log_shared, 0.0)) + 8.0 * UNIT * (1.0 + epsilon)
    crowded = np.asarray(special.ndtr(0.5 * mu - epsilon / mu)) > (1.0 + APART) / answers
    return np.asarray(np.clip(np.where(crowded, np.minimum(shared, whole), whole), 0.0, 1.0))
