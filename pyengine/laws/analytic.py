"""Laws of two analytic densities in doubles: where their mass lies, and cells for the lattice.

Nothing here is proven.  Engines that prove bounds evaluate the same expressions in ball arithmetic,
on the interval found here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.laws.base import AnalyticParts
from pyengine.laws.density import DensityLaw
from pyengine.laws.log_sums import SOFTPLUS, without_large_terms
from pyengine.mechanisms.analytic import AnalyticPair
from pyengine.mechanisms.expressions import Evaluator, Expression
from pyengine.numerics import functions as fn

__all__ = ["FAINTEST", "NOTHING", "AnalyticLaw"]

FloatArray = npt.NDArray[np.float64]

# log of the mass that may lie beyond an end, and log of the largest distance of an end from the
# mode, in scales: usually, and for values near the smallest doubles
NOTHING, WIDEST = -150.0, 54.0
FAINTEST, FARTHEST = -800.0, 300.0
PLACES = 4001  # points of a grid
ROUNDS = 6  # refinements of the grid about the mode
NEAREST = 1e-280  # distance to an end of the support where a density is not regular
STEP = 0.125  # of the logarithm of the distance to an end


def _log_gamma(x: float) -> float:
    return math.lgamma(x) if x > 0.0 else math.nan


_DOUBLES: dict[str, Callable[..., Any]] = {
    "number": float,
    "pi": lambda: math.pi,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "power": np.float_power,
    "exp": fn.exp,
    "log": fn.log,
    "sqrt": np.sqrt,
    "sinh": fn.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erfc": fn.erfc,
    "lgamma": np.vectorize(_log_gamma, otypes=[float]),
    SOFTPLUS: lambda x: fn.logaddexp(0.0, x),
}


def _in_doubles(expression: Expression) -> Callable[[FloatArray], FloatArray]:
    """A log-density as a function of doubles; -inf where it is NaN."""
    on = Evaluator(without_large_terms(expression).program, _DOUBLES)

    def values(x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            found = on(np.asarray(x, dtype=float))
        found = np.broadcast_to(np.asarray(found, dtype=float), np.shape(x))
        return np.where(np.isnan(found), -np.inf, found)

    return values


class _Quantiles:
    """A distribution as `DensityLaw` takes it, with approximate quantiles."""

    def __init__(
        self, logpdf: Callable[[FloatArray], FloatArray], x: FloatArray, ends: tuple[float, float]
    ) -> None:
        self.logpdf, self._x, self._ends = logpdf, x, ends
        weight = fn.exp(logpdf(x))
        part = 0.5 * (weight[1:] + weight[:-1]) * np.diff(x)
        whole = part.sum()
        if not 0.0 < whole < math.inf:
            raise ValueError("log_p and log_q must have a positive, finite integral")
        self._below = np.append(0.0, np.cumsum(part)) / whole
        self._above = np.append(np.cumsum(part[::-1])[::-1], 0.0) / whole

    def ppf(self, level: FloatArray) -> FloatArray:
        """Approximate quantiles."""
        return np.asarray(np.interp(level, self._below, self._x))

    def isf(self, level: FloatArray) -> FloatArray:
        """Approximate upper quantiles."""
        return np.asarray(np.interp(level, self._above[::-1], self._x[::-1]))

    def support(self) -> tuple[float, float]:
        """The ends of the interval."""
        return self._ends


class AnalyticLaw(DensityLaw):
    """The ordered pair (A, B) of two analytic densities; see `StepLaw`.

    Parameters
    ----------
    step : AnalyticPair
        The densities.

    Attributes
    ----------
    step : AnalyticPair
        The densities.
    ends : pair of float
        Points of the support beyond which the mass is about e^-150 at most.
    """

    def __init__(self, step: AnalyticPair) -> None:
        self.step = step
        log_p, log_q = _in_doubles(step.log_p), _in_doubles(step.log_q)
        self._larger = lambda x: np.maximum(log_p(x), log_q(x))
        mode, scale = _bulk(self._larger, step.support)
        self._around = mode, scale
        self.ends = self._ends(NOTHING, WIDEST)
        x = _places(self.ends, step.support, mode, scale)
        laws = tuple(_Quantiles(log, x, self.ends) for log in (log_p, log_q))
        super().__init__(log_p, log_q, laws, ())

    def analytic(self) -> AnalyticParts:
        """The step itself, unsampled."""
        return AnalyticParts(self, Fraction(1), False)

    @cached_property
    def far_ends(self) -> tuple[float, float]:
        """As `ends`, for a mass of about e^-800 at most, below all doubles in use."""
        return self._ends(FAINTEST, FARTHEST)

    def _ends(self, nothing: float, widest: float) -> tuple[float, float]:
        return _ends(self._larger, self.step.support, *self._around, nothing, widest)


def _places(
    ends: tuple[float, float], support: tuple[float, float], mode: float, scale: float
) -> FloatArray:
    """Grid between the ends, finer near the mode and near finite ends of the support."""
    low, high = (fn.arcsinh((end - mode) / scale) for end in ends)
    parts = [mode + scale * fn.sinh(np.linspace(low, high, PLACES))]
    length = ends[1] - ends[0]
    for place, end, side in zip(ends, support, (1.0, -1.0), strict=True):
        if math.isfinite(end):
            nearest = max(abs(place - end), fn.exp(NOTHING) * length)
            parts.append(end + side * np.geomspace(nearest, length, PLACES))
    return np.unique(np.clip(np.concatenate(parts), *ends))


def _bulk(
    density: Callable[[FloatArray], FloatArray], support: tuple[float, float]
) -> tuple[float, float]:
    """Approximate mode of a density, and a distance from it at which it has fallen by e."""
    low, high = support
    grown = np.linspace(-WIDEST, WIDEST, PLACES)
    if math.isfinite(low) and math.isfinite(high):
        x = low + (high - low) * (np.arange(PLACES) + 0.5) / PLACES
    elif math.isfinite(low):
        x = low + fn.exp(grown)
    elif math.isfinite(high):
        x = high - fn.exp(grown[::-1])
    else:
        x = fn.sinh(grown)
    for _ in range(ROUNDS):
        values = density(x)
        values = np.where(values == np.inf, -np.inf, values)
        at = int(np.argmax(values))
        if values[at] == -np.inf:
            raise ValueError("log_p and log_q are not finite anywhere on the support")
        mode, top = float(x[at]), float(values[at])
        x = np.linspace(x[max(at - 1, 0)], x[min(at + 1, x.size - 1)], PLACES)
    away = fn.exp(np.arange(-WIDEST, WIDEST, STEP))
    falls = [density(mode + side * away) < top - 1.0 for side in (1.0, -1.0)]
    firsts = [float(away[np.argmax(each)]) for each in falls if each.any()]
    return mode, min(firsts) if firsts else 0.25 * (high - low)


def _ends(
    density: Callable[[FloatArray], FloatArray],
    support: tuple[float, float],
    mode: float,
    scale: float,
    nothing: float,
    widest: float,
) -> tuple[float, float]:
    """Points beyond which the log mass is about ``nothing`` at most, or ends of the support."""
    found = []
    for side, end in ((-1.0, support[0]), (1.0, support[1])):
        if math.isfinite(end):
            away = abs(end - mode) * fn.exp(-np.arange(0.0, -2.0 * nothing, STEP))
            away = away[away > NEAREST]
            x = end - side * away
        else:
            away = scale * fn.exp(np.arange(0.0, widest, STEP))
            x = mode + side * away
        inside = side * x < side * end
        x, away = x[inside], away[inside]
        with np.errstate(divide="ignore"):
            far = np.flatnonzero(density(x) + fn.log(away) > nothing)
        last = int(far[-1]) + 1 if far.size else 0
        place = float(x[min(last, x.size - 1)])
        if math.isfinite(end):
            is_regular = math.isfinite(float(density(np.array([end]))[0]))
            if is_regular:
                place = end
            elif last == x.size or place == end:
                place = end - side * max(abs(end - math.nextafter(end, mode)), NEAREST)
        found.append(place)
    return found[0], found[1]
