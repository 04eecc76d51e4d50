"""The interface of a pair of laws of a distance, and sums and logs without cancellation."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ROUNDING", "Errors", "LogTails", "MagnitudePair", "RoundedProfile", "one_minus_sum"]

FloatArray = npt.NDArray[np.float64]

# relative error of a function of the C core and a few operations after it: several times what
# tests measure
ROUNDING = 32.0 * UNIT


class Errors(NamedTuple):
    """β, γ = 1 - β and log β of a test, each computed without cancellation."""

    beta: FloatArray
    gamma: FloatArray
    log_beta: FloatArray


class RoundedProfile(NamedTuple):
    """A hockey-stick divergence, and an estimate of its absolute rounding error."""

    value: FloatArray
    error: FloatArray


class LogTails(NamedTuple):
    """Logs of P(L <= l), P(L > l), Q(L <= l), Q(L > l) at losses l = log dQ/dP."""

    p_below: FloatArray
    p_above: FloatArray
    q_below: FloatArray
    q_above: FloatArray


class MagnitudePair(Protocol):
    """Laws (P, Q) of a distance, without and with the record; L = log dQ/dP increases with it."""

    lowest: float  # infimum of L
    highest: float  # supremum of L

    def limit(self) -> tuple[float, float] | None:
        """Shift and scale of the limiting normal law in many dimensions; None if there is none."""

    def law(self) -> StepLaw:
        """Both laws as one step of a composition."""

    def forward(self, alpha: FloatArray) -> Errors:
        """T(P, Q), the paper's j, for α in [0, 1]."""

    def backward(self, alpha: FloatArray) -> Errors:
        """T(Q, P), the paper's j⁻¹, for α in [0, 1]."""

    def loss(self, p_above: FloatArray) -> FloatArray:
        """The loss at the distance that P exceeds with this probability."""

    def tails(self, loss: FloatArray) -> LogTails:
        """Tails of both laws at losses within [lowest, highest]."""

    def profile(self, epsilon: FloatArray, *, backward: bool) -> RoundedProfile:
        """H(P‖Q), or H(Q‖P) if backward, at ε >= 0."""


def one_minus_sum(first: FloatArray | float, second: FloatArray | float) -> FloatArray:
    """1 - first - second for numbers in [0, 1], with a small relative error."""
    a, b = np.maximum(first, second), np.minimum(first, second)
    # 1 - a is exact for a >= 1/2, and halves are exact for both in [1/4, 1/2]
    return np.where(a >= 0.5, (1.0 - a) - b, (0.5 - a) + (0.5 - b))


def exp(x: FloatArray) -> FloatArray:
    """e^x without warnings of underflow and overflow."""
    with np.errstate(under="ignore", over="ignore"):
        result: FloatArray = fn.exp(x)
    return result


def log(x: FloatArray) -> FloatArray:
    """Logarithm, -inf at 0 without a warning."""
    with np.errstate(divide="ignore"):
        result: FloatArray = fn.log(x)
    return result


def from_log(log_beta: FloatArray) -> Errors:
    """Errors of a test from log β."""
    with np.errstate(under="ignore"):
        return Errors(fn.exp(log_beta), -fn.expm1(log_beta), log_beta)


LOG_2 = fn.log(2.0)
