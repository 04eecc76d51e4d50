"""The pair of the optimal trade-off function of bounds on Rényi divergences.

Each order alone implies an optimal profile (`numerics.renyi`).  The largest convex function below
the smallest of them, at ε and by symmetry at -ε, is optimal for all orders in both directions: a
test is possible if each order allows it, and the supporting lines of an intersection of convex sets
follow from those of the sets.  Computed values of the profile are joined by chords in e^ε, so the
finite pair dominates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.profile import DEEPEST, apart, law_of_values, placed_values
from pyengine.numerics import functions as fn
from pyengine.numerics.renyi import LARGEST_X, SMALLEST_X, best_order, order_bound
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["CurveBounds", "curve_law", "joined_curve"]

FloatArray = npt.NDArray[np.float64]

NEAREST, LARGEST = 1e-8, 700.0  # ε among which the end of the grid is sought
COARSE = 120  # of them
PLACES, PER_UNIT = 2600, 8  # points of the profile, and more for each unit of ε


class CurveBounds(NamedTuple):
    """Upper bounds of Rényi divergences in both directions.

    Parameters
    ----------
    orders : tuple of float
        Orders, increasing; empty for all orders above 1.
    values : tuple of float
        Bounds at these orders, or (ρ, ξ) for all orders: ξ + α ρ.
    delta : float
        Probability with which the bounds may fail and everything is revealed.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]
    delta: float


class CurvePart(NamedTuple):
    """The curve of one step, with numbers as they were given, and how often it runs."""

    orders: tuple[float, ...]
    values: tuple[Any, ...]
    delta: Any
    number: int


def joined_curve(parts: list[CurvePart]) -> CurveBounds:
    """Return the curve of a composition: the sum of those of its steps."""
    whole = [part for part in parts if not part.orders]
    rho, xi = (
        sum((part.number * Fraction(part.values[i]) for part in whole), Fraction(0)) for i in (0, 1)
    )
    delta = _told(parts)
    given = [part for part in parts if part.orders]
    orders = tuple(sorted({alpha for part in given for alpha in part.orders}))
    if not orders:
        return CurveBounds((), (_up(rho), _up(xi)), delta)
    values = []
    tables = [(part, _least(part)) for part in given]
    for alpha in orders:
        total: Fraction | None = xi + Fraction(alpha) * rho
        for part, least in tables:
            found = _between(part.orders, least, alpha)
            total = None if found is None or total is None else total + part.number * found
        values.append(math.inf if total is None else _up(total))
    return CurveBounds(orders, tuple(values), delta)


def _told(parts: list[CurvePart]) -> float:
    """1 - Π (1 - δᵢ)^nᵢ, rounded up."""
    if any(part.delta == 1 for part in parts):
        return 1.0
    rest = 0.0
    for part in parts:
        # δ < 1 may round up to 1
        delta = min(_up(Fraction(part.delta)), math.nextafter(1.0, 0.0))
        rest += part.number * fn.log1p(-delta)
    return min(1.0, -fn.expm1(rest) * (1.0 + (4.0 * ELEMENTARY + 8.0 * len(parts)) * UNIT))


def _least(part: CurvePart) -> list[float]:
    """Tightened bounds: divergences increase with the order, so bounds of larger orders apply."""
    found, least = [], math.inf
    for value in reversed(part.values):
        least = min(least, value)
        found.append(least)
    return found[::-1]


def _between(orders: tuple[float, ...], values: list[float], alpha: float) -> Fraction | None:
    """Bound at any order, as (α - 1) D_α is convex in α; None beyond the last order."""
    from bisect import bisect_left

    at = bisect_left(orders, alpha)
    if at == len(orders) or values[at] == math.inf:
        return None
    above = Fraction(values[at])
    if orders[at] == alpha or at == 0:
        return above
    low, high, x = (Fraction(y) for y in (orders[at - 1], orders[at], alpha))
    chord = (high - x) * (low - 1) * Fraction(values[at - 1]) + (x - low) * (high - 1) * above
    return min(above, chord / ((high - low) * (x - 1)))


def _up(x: Fraction) -> float:
    """Round up to a double."""
    try:
        near = float(x)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


@kept(64)
# Map: the optimal trade-off function of Rényi divergences | test_renyi_curves | theory/curves
def curve_law(curve: CurveBounds) -> FiniteLaw:
    """Return a finite, symmetric pair that dominates all mechanisms with this curve."""
    told = Fraction(min(curve.delta, 1.0))
    search = _search_of(curve)
    if told == 1 or search is None:
        return FiniteLaw.from_fractions(apart(Fraction(1)))
    return law_of_values(*search(), told)


def _search_of(curve: CurveBounds) -> Callable[[], tuple[FloatArray, FloatArray]] | None:
    """A function that computes the profile on a grid; None if no order is bounded."""
    if not curve.orders:
        rho, xi = curve.values
        if rho == xi == 0.0:
            return lambda: (np.array([0.0]), np.array([0.0]))

        def cost(x: FloatArray) -> FloatArray:
            return np.asarray(((1.0 + x) * rho + xi) * (1.0 + 4.0 * UNIT) + LOST)

        def coarse(epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
            return best_order(cost, epsilon, np.full(epsilon.size, LARGEST_X))

        def fine(epsilon: FloatArray, near: FloatArray, found: FloatArray) -> FloatArray:
            x = fn.exp(np.interp(epsilon, near, fn.log(found)))
            return order_bound(x, cost(x), epsilon)

        return lambda: _placed(coarse, fine)
    x = np.array(curve.orders) - 1.0
    rho_of = np.array(curve.values)
    use = (rho_of < math.inf) & (x >= SMALLEST_X)
    if not use.any():
        return None
    # divergences grow with the order
    x, rho_of = np.minimum(x[use], LARGEST_X), rho_of[use]
    rho_of = np.minimum.accumulate(rho_of[::-1])[::-1]

    def tried(epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = [order_bound(x, rho_of, np.full(x.size, e)) for e in epsilon]
        best = np.array([row.argmin() for row in rows])
        return np.array([row.min() for row in rows]), best

    def beside(epsilon: FloatArray, near: FloatArray, found: FloatArray) -> FloatArray:
        after = np.clip(np.searchsorted(near, epsilon), 1, near.size - 1)
        rows = []
        for order in (found[after - 1], found[after]):
            at = order.astype(np.intp)
            rows.append(order_bound(x[at], rho_of[at], epsilon))
        return np.asarray(np.minimum(*rows))

    return lambda: _placed(tried, beside)


def _placed(
    coarse: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    fine: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Grid up to where the profile is below `DEEPEST`, and the values there."""
    ends = np.geomspace(NEAREST, LARGEST, COARSE)
    tiny = coarse(ends)[0] <= DEEPEST
    end = float(ends[int(tiny.argmax())]) if tiny.any() else LARGEST
    return placed_values(coarse, fine, end, places=PLACES + int(PER_UNIT * end))
