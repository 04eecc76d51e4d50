"""What a pair of laws of a distance answers, and exact differences that the answers rest on."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ROUNDING", "Errors", "LogTails", "MagnitudePair", "RoundedProfile", "one_minus_sum"]

FloatArray = npt.NDArray[np.float64]

# Relative error of a function of the C core and of a few operations after it, in the units in which
# the functions' own pages state theirs; several times what the tests measure.
ROUNDING = 32.0 * UNIT


class Errors(NamedTuple):
    """Both errors of a test: β, its logarithm, and the power γ = 1 - β, each on its own."""

    beta: FloatArray
    gamma: FloatArray
    log_beta: FloatArray


class RoundedProfile(NamedTuple):
    """A hockey-stick divergence and a bound on what rounding has done to it."""

    value: FloatArray
    error: FloatArray


class LogTails(NamedTuple):
    """Logs of P(L <= l), P(L > l), Q(L <= l), Q(L > l) at losses l = log dQ/dP."""

    p_below: FloatArray
    p_above: FloatArray
    q_below: FloatArray
    q_above: FloatArray


class MagnitudePair(Protocol):
    """Laws (P, Q) of a distance without and with the record; L = log dQ/dP grows with it."""

    lowest: float  # infimum of L
    highest: float  # supremum of L

    def limit(self) -> tuple[float, float] | None:
        """Shift and scale of the normal law that the pair tends to; None where there is none."""

    def law(self) -> StepLaw:
        """Both laws as one step of a composition."""

    def forward(self, alpha: FloatArray) -> Errors:
        """T(P, Q), the paper's j, for α in [0, 1]."""

    def backward(self, alpha: FloatArray) -> Errors:
        """T(Q, P), the paper's j⁻¹, for α in [0, 1]."""

    def loss(self, p_above: FloatArray) -> FloatArray:
        """The loss at the threshold that P exceeds with this probability."""

    def tails(self, loss: FloatArray) -> LogTails:
        """Tails of both laws at losses within [lowest, highest]."""

    def profile(self, epsilon: FloatArray, *, backward: bool) -> RoundedProfile:
        """H(P‖Q), or H(Q‖P) if backward, at ε >= 0."""


def one_minus_sum(first: FloatArray | float, second: FloatArray | float) -> FloatArray:
    """1 - first - second for numbers in [0, 1], to relative accuracy also where it cancels."""
    a, b = np.maximum(first, second), np.minimum(first, second)
    # 1 - a is exact for a >= 1/2, and halves are exact for both in [1/4, 1/2]
    return np.where(a >= 0.5, (1.0 - a) - b, (0.5 - a) + (0.5 - b))


def exp(x: FloatArray) -> FloatArray:
    """e^x without a warning where it underflows."""
    with np.errstate(under="ignore", over="ignore"):
        result: FloatArray = fn.exp(x)
    return result


def log(x: FloatArray) -> FloatArray:
    """Logarithm, -inf at 0 without a warning."""
    with np.errstate(divide="ignore"):
        result: FloatArray = fn.log(x)
    return result


def from_log(log_beta: FloatArray) -> Errors:
    """Errors of a test from the logarithm of β, which is accurate in relative terms."""
    with np.errstate(under="ignore"):
        return Errors(fn.exp(log_beta), -fn.expm1(log_beta), log_beta)


LOG_2 = fn.log(2.0)
