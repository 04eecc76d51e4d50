"""The optimal profile that a bound on one Rényi divergence implies, by duality.

Let R = dP/dQ, x = τ - 1 > 0, and E_Q R^τ <= C = e^{xρ}.  If λ r^τ + μ r + ν >= (r - e^ε)₊ for all
r >= 0, then δ(ε) = E_Q (R - e^ε)₊ <= λ C + μ + ν.  Of those, the best one touches at two ratios
r₁ < e^ε < r₂: it has λ = 1/(τ (r₂^x - r₁^x)), μ = -λ τ r₁^x and ν = λ x r₁^τ, the mean
(x/τ) (r₂^τ - r₁^τ)/(r₂^x - r₁^x) of both is e^ε, and so

    δ(ε) <= λ (C - 1 + φ(r₁)),   φ(r) = 1 + x r^τ - τ r^x >= 0.

Any r₁ and any r₂ whose mean is **at most** e^ε give a bound; the law on {r₁, r₂} under which all
holds with equality attains it (docs, theory/curves).  Where ρ >= ε + log(τ/x), r₁ is 0, and the
best bound is 1 - e^{ε - ρ}.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["LARGEST_X", "SMALLEST_X", "best_order", "order_bound"]

FloatArray = npt.NDArray[np.float64]

SMALLEST_X, LARGEST_X = 1e-12, 1e12
LEAST = 1e-9  # smallest x of a search: its bound is that of the limit, order 1, to enough digits
GRID, CLOSER = 20, 6  # points of a grid, and number of refined grids
HALVINGS = 36  # bisections of log s₁; the bound is flat in s₁
STEPS = 2  # Newton steps after each bisection, from the previous result
LAST = 6  # Newton steps for the final s₂
CLOSEST = 1e-13  # least s₁ that is tried besides
SMALLEST, LARGEST = -690.0, 30.0  # range of log s₁, which is about -log x if r₁ is nearly 0


def order_bound(x: FloatArray, rho: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Largest δ(ε) that a Rényi divergence ρ of order 1 + x allows, rounded up.

    For x in [1e-12, 1e12] and ε in [0, 700].  The relative excess is about
    1e-14 (1 + x (1 + ε + ρ)) at most, if δ is below 1/2.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        known = rho < np.inf
        cost = np.where(known, rho, 1.0)
        s1 = _place(x, cost, epsilon)
        found = _certified(x, cost, epsilon, s1)
        # ratios next to 1 must differ by more than rounding
        apart = _certified(x, cost, epsilon, np.maximum(s1, CLOSEST))
        found = np.minimum(found, apart)
        # the case r₁ = 0
        beyond = cost - epsilon >= fn.log1p(1.0 / x) * (1.0 + 16.0 * UNIT * (1.0 + ELEMENTARY))
        whole = -fn.expm1(epsilon - cost) * (1.0 + (ELEMENTARY + 4.0) * UNIT)
        whole += 2.0 * UNIT * fn.exp(epsilon - cost) * np.abs(cost - epsilon)
        found = np.where(beyond, np.minimum(found, whole), found)
    return np.where(known & (found <= 1.0), found, 1.0)


def best_order(
    cost: Callable[[FloatArray], FloatArray], epsilon: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The smallest `order_bound` over all orders, and its x, for bounds ρ(x) = ``cost``.

    ``cost`` is rounded up.  Every x <= ``most`` gives a bound; the search by refined grids only
    chooses one, about a relative 1e-10 above the smallest.
    """
    low, high = np.full(epsilon.size, fn.log(LEAST)), fn.log(np.maximum(most, 2.0 * LEAST))
    share = np.linspace(0.0, 1.0, GRID)
    best, place = np.full(epsilon.size, np.inf), fn.exp(low)
    rows = np.arange(epsilon.size)
    for _ in range(CLOSER):
        x = fn.exp(low[:, None] + share * (high - low)[:, None])
        found = order_bound(x.ravel(), cost(x.ravel()), np.repeat(epsilon, GRID)).reshape(x.shape)
        at = found.argmin(axis=1)
        value = found[rows, at]
        place = np.where(value < best, x[rows, at], place)
        best = np.minimum(best, value)
        step = (high - low) / (GRID - 1)
        middle = fn.log(place)
        low, high = np.maximum(middle - step, low), np.minimum(middle + step, high)
    return best, place


def _log_ratio(x: FloatArray, s: FloatArray) -> FloatArray:
    """Log (a/b), a = (1 - e^{-τ s})/τ and b = (1 - e^{-x s})/x."""
    tau = 1.0 + x
    return np.asarray(fn.log(fn.expm1(-tau * s) / tau / (fn.expm1(-x * s) / x)))


def _second(
    x: FloatArray, epsilon: FloatArray, s1: FloatArray, s2: FloatArray, steps: int
) -> FloatArray:
    """Log r₂ at which the mean is e^ε, by Newton: s₂ + log (a/b)(s₁ + s₂) = ε, of slope >= 1/2."""
    tau = 1.0 + x
    for _ in range(steps):
        s = np.maximum(s1 + s2, 1e-300)
        slope = 1.0 + tau / fn.expm1(tau * s) - x / fn.expm1(x * s)
        slope = np.where(np.isfinite(slope), np.clip(slope, 0.5, 1.0), 0.5)
        s2 = s2 - (s2 + _log_ratio(x, s) - epsilon) / slope
        s2 = np.maximum(s2, -s1)
    return s2


def _place(x: FloatArray, rho: FloatArray, epsilon: FloatArray) -> FloatArray:
    """s₁ = -log r₁ at which E R^τ = C, by bisection (it rises with s₁); any value is valid."""
    tau = 1.0 + x
    low = np.broadcast_to(np.asarray(SMALLEST), x.shape)
    high = np.broadcast_to(np.asarray(LARGEST), x.shape)
    s2 = epsilon + fn.log1p(1.0 / x)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        s1 = fn.exp(middle)
        s2 = _second(x, epsilon, s1, s2, STEPS)
        inside = s2 > 0.0
        # the mass of the upper ratio: α r₂ = 1 - r₁ + α r₁
        log_mass = fn.log(fn.expm1(-s1) / fn.expm1(-s1 - s2)) - s2
        upper = log_mass + tau * s2
        rest = fn.log1p(-np.minimum(fn.exp(log_mass), 1.0)) - tau * s1
        # E R (R^x - 1) against e^{xρ} - 1, which keeps the digits of small x
        near = fn.exp(log_mass + s2) * fn.expm1(x * s2) + fn.exp(rest + x * s1) * fn.expm1(-x * s1)
        is_more = np.where(
            x * rho < 1.0, near > fn.expm1(x * rho), fn.logaddexp(upper, rest) > x * rho
        )
        more = inside & is_more
        high, low = np.where(more, middle, high), np.where(more, low, middle)
        s2 = np.where(np.isfinite(s2), s2, epsilon + fn.log1p(1.0 / x))
    return np.asarray(fn.exp(low))


def _certified(x: FloatArray, rho: FloatArray, epsilon: FloatArray, s1: FloatArray) -> FloatArray:
    """λ (C - 1 + φ(r₁)) at doubles s₁ and s₂ whose mean is at most e^ε, rounded up.

    In units: τ 1, s₁ + s₂ 1, products 1; 1 - e^{-y} errs by at most the relative error of y, and
    ELEMENTARY: a and b by ELEMENTARY + 6.
    """
    tau = 1.0 + x
    s2 = _second(x, epsilon, s1, epsilon + fn.log1p(1.0 / x), LAST)
    log_ratio = _log_ratio(x, s1 + s2)
    error = UNIT * (
        3.0 * ELEMENTARY
        + 20.0
        + ELEMENTARY * np.abs(log_ratio)
        + 6.0 * (np.abs(s2) + np.abs(epsilon))
    )
    # the log of the mean has a slope of at least 1/2 in s₂
    s2 = s2 - 2.0 * (np.maximum(s2 + log_ratio - epsilon, 0.0) + error)
    s = s1 + s2
    b = -fn.expm1(-x * s) / x
    grown = x * (rho - s2)  # C and r₂^-x together
    grown += 4.0 * UNIT * x * (np.abs(rho - s2) + np.abs(rho))
    first = fn.exp(np.minimum(grown, 800.0)) * (-fn.expm1(-x * rho) / x)
    p, q = -fn.expm1(-x * s1) / x, fn.exp(-x * s1) * -fn.expm1(-s1)
    phi = np.maximum(p - q, 0.0) + (2.0 * ELEMENTARY + 12.0 + 4.0 * x * s1) * UNIT * (p + q)
    second = fn.exp(-x * s2 * (1.0 - np.copysign(4.0 * UNIT, s2))) * phi
    value = (first + second) / (tau * b)
    value = value * (1.0 + (4.0 * ELEMENTARY + 32.0) * UNIT) + LOST
    return np.where((s > 0.0) & np.isfinite(value) & (b > 0.0), value, np.inf)
