"""Trade-off functions with values and points of given slope, for stochastic composition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.golden_section import lowest

__all__ = ["ConvexTradeOff", "GaussianTradeOff", "TradeOffFunction"]

FloatArray = npt.NDArray[np.float64]
SECTIONS = 100  # golden-section steps
LOGITS = (-36.5, 36.5)  # range of log(α/(1 - α)) of the search: beyond, β is next to 1 or 0


class TradeOffFunction(Protocol):
    """A convex trade-off function that can find its points of given slope."""

    def __call__(self, alpha: float | npt.ArrayLike) -> Any:
        """β(α) for α in [0, 1]."""

    def at_slope(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A point (α, β) of the function with a tangent of slope -e^c."""


@dataclass(frozen=True)
class GaussianTradeOff:
    """Trade-off function Φ(Φ⁻¹(1 - α) - μ) of N(0, 1) against N(μ, 1).

    Parameters
    ----------
    mu : float
        In [0, ∞).

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.GaussianTradeOff(1.0)(0.05), 6)
    0.740489
    """

    mu: float

    def __post_init__(self) -> None:
        mu = float(checks.number("mu", self.mu))
        if not 0.0 <= mu < np.inf:
            raise ValueError(f"mu must be non-negative and finite, got {checks.shown(self.mu)}")
        object.__setattr__(self, "mu", mu)

    def __call__(self, alpha: float | npt.ArrayLike) -> Any:
        """Return β(α), to a few units in the last place of μ and of the quantile."""
        array = checks.real_array("alpha", alpha, 0.0, 1.0)
        value = special.ndtr(-np.asarray(special.ndtri(array)) - self.mu)
        return value if array.shape else float(value)

    def at_slope(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Φ(-c/μ - μ/2) and Φ(c/μ - μ/2)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(c == 0.0, 0.0, c / self.mu)
        half = 0.5 * self.mu
        return np.asarray(special.ndtr(-ratio - half)), np.asarray(special.ndtr(ratio - half))


@dataclass(frozen=True)
class ConvexTradeOff:
    """Any convex trade-off function given as a Python function of α.

    Parameters
    ----------
    function : callable
        Takes an array of α in [0, 1] and returns β; convex, non-increasing, at most 1 - α.

    Notes
    -----
    Points of given slope are found by golden-section search, to about half of the digits.  The
    intercept of the tangent there, which compositions need, has nearly all digits.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=1.0)
    >>> member = pe.membership.ConvexTradeOff(lambda alpha: pe.trade_off(mechanism, alpha))
    >>> round(member(0.1), 6)
    0.610856
    """

    function: Callable[[FloatArray], npt.ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {checks.shown(self.function)}")

    def __call__(self, alpha: float | npt.ArrayLike) -> Any:
        """Return β(α)."""
        array = checks.real_array("alpha", alpha, 0.0, 1.0)
        value = self._values(array.ravel()).reshape(array.shape)
        return value if array.shape else float(value)

    def _values(self, alpha: FloatArray) -> FloatArray:
        return checks.real_array("function(alpha)", Guarded(self.function)(alpha), 0.0, 1.0)

    def at_slope(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minimise β + e^c α over α."""
        c = np.asarray(c, dtype=np.float64)
        flat = c.ravel()
        weight = fn.exp(np.minimum(flat, 0.0)), fn.exp(np.minimum(-flat, 0.0))  # of α and of β
        low, high = (np.full(flat.size, end) for end in LOGITS)

        def height(alpha: FloatArray) -> FloatArray:
            return np.asarray(weight[1] * self._values(alpha) + weight[0] * alpha)

        def at(logit: FloatArray) -> FloatArray:
            return height(_level(logit))

        # equal heights are a plateau of rounding near an end, or the minimum itself
        place, _ = lowest(at, low, high, rounds=SECTIONS, on_plateau=lambda left: left > 0.0)
        best = _level(place)
        ends = np.zeros(flat.size), np.ones(flat.size)
        heights = np.array([height(best), height(ends[0]), height(ends[1])])
        best = np.choose(np.argmin(heights, axis=0), [best, *ends])
        return best.reshape(c.shape), self._values(best).reshape(c.shape)


def _level(logit: FloatArray) -> FloatArray:
    """Return 1/(1 + e^{-x})."""
    with np.errstate(under="ignore"):
        return np.asarray(
            np.where(
                logit < 0.0,
                fn.exp(np.minimum(logit, 0.0)) / (1.0 + fn.exp(np.minimum(logit, 0.0))),
                1.0 / (1.0 + fn.exp(-np.maximum(logit, 0.0))),
            )
        )
