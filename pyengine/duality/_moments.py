"""From bounds on Rényi divergences and from pure differential privacy to profiles and to GDP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_root
from pyengine.numerics.renyi import LARGEST_X, SMALLEST_X, best_order, order_bound
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST
from pyengine.special import log_ndtr, ndtri_exp

__all__ = ["from_rdp", "from_zcdp", "to_gdp"]

FloatArray = npt.NDArray[np.float64]

LARGEST = 700.0
BLOCK = 1 << 16  # bounds computed at once
FARTHEST = 690.0  # largest |log(α - 1)| in a search: beyond, δ is 0 or 1 to all digits
NEAR = 1.15  # ε up to which μ is a series of TERMS terms; log_ndtr is proven from μ/2 = .7 on
TERMS = 34


def from_rdp(orders: Any, divergences: Any, epsilon: Any) -> Any:
    """Privacy profile that Rényi divergences imply: (α, ρ_α)-RDP gives (ε, δ)-DP.

    Parameters
    ----------
    orders : array_like of shape (n,)
        Orders α > 1, finite.
    divergences : array_like of shape (n,)
        Upper bounds ρ_α >= 0 of the Rényi divergences of these orders, in the direction of the
        question; infinite where none is known.
    epsilon : array_like
        In [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        An upper bound of δ(ε): the best that one of the orders implies, which two Bernoulli laws
        attain.  It is rounded up by at most a relative 1e-13 (1 + α)(1 + ε + ρ_α) plus 1e-12, and
        is never above the smallest e^{(α - 1)(ρ_α - ε)} (1 - 1/α)^α/(α - 1), which is rounded up by
        a relative 3e-15 (4 + log(1/δ) + 2 log α) plus 2e-323 and is used alone where α - 1 is not
        in [1e-12, 1e12].

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    S. Asoodeh, J. Liao, F. Calmon, O. Kosut, L. Sankar, Three Variants of Differential Privacy:
    Lossless Conversion and Applications (2021), arXiv:2008.06529, Theorem 3, for the best bound of
    one order; C. Canonne, G. Kamath, T. Steinke, The Discrete Gaussian for Differential Privacy
    (2020), arXiv:2004.00010, Proposition 12, for the other one.  Several orders at once, and both
    directions, are a mechanism: `pyengine.RenyiCurve` (docs, theory/curves).

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> orders = np.arange(2, 64)
    >>> f"{pe.duality.from_rdp(orders, orders / 2, 4.0):.6f}"  # of Gaussian noise 1
    '0.000203'
    """
    alpha = np.atleast_1d(checks.real_array("orders", orders, -math.inf, math.inf))
    rho = np.atleast_1d(checks.real_array("divergences", divergences, -math.inf, math.inf))
    if alpha.ndim != 1 or alpha.size == 0 or not ((alpha > 1.0) & (alpha < math.inf)).all():
        raise ValueError(f"orders must be finite numbers above 1, got {checks.shown(orders)}")
    if rho.shape != alpha.shape or not (rho >= 0.0).all():
        raise ValueError(
            f"divergences must be >= 0, one for each order, got {checks.shown(divergences)}"
        )
    at = checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    x = alpha - 1.0
    goal = at.ravel()
    with np.errstate(over="ignore"):
        rate = rho - goal[:, None]
        value = _upper_delta(x, rate, np.abs(rate)).min(axis=1)
    inside = (x >= SMALLEST_X) & (x <= LARGEST_X)
    for some in np.array_split(np.arange(goal.size), 1 + goal.size * x.size // BLOCK):
        shape = some.size, int(inside.sum())
        if shape[1]:
            one, cost = (np.broadcast_to(row[inside], shape).ravel() for row in (x, rho))
            best = order_bound(one, cost, np.repeat(goal[some], shape[1])).reshape(shape)
            value[some] = np.minimum(value[some], best.min(axis=1))
    value = value.reshape(at.shape)
    return value if at.shape else float(value)


def from_zcdp(rho: Any, epsilon: Any) -> Any:
    """Privacy profile that ρ-zCDP implies: that of the best order for ρ_α = α ρ.

    Parameters
    ----------
    rho : float
        Zero-concentrated differential privacy, in (0, ∞).
    epsilon : array_like
        In [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        An upper bound of δ(ε): that of the best order, to a relative 1e-9, rounded up as in
        `from_rdp`.  For Gaussian noise `pyengine.delta` is exact, and smaller.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    As `from_rdp`.  Near ε = 0 both directions together imply more than any order of one direction:
    `pyengine.ZeroConcentrated` uses both.

    Examples
    --------
    >>> import pyengine as pe
    >>> f"{pe.duality.from_zcdp(0.5, 4.0):.6f} {pe.delta(pe.GaussianMechanism(1.0), 4.0):.6f}"
    '0.000196 0.000047'
    """
    size = float(checks.positive("rho", rho))
    at = checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    goal = at.ravel()

    def fall(place: FloatArray) -> FloatArray:
        """Minus the slope of log δ in x = α - 1, which is convex in x."""
        x = fn.exp(place)
        return np.asarray(goal + fn.log1p(1.0 / x) - (1.0 + 2.0 * x) * size)

    # at x <= 1, log1p(1/x) >= log(1/x); from 1 on it is below 1
    low = np.maximum(np.minimum(0.0, goal - 3.0 * size), -FARTHEST)
    high = np.minimum(fn.logaddexp(0.0, fn.log(goal + 1.0) - fn.log(2.0) - fn.log(size)), FARTHEST)
    with np.errstate(over="ignore"):
        # every order gives a bound; the search only chooses one
        x = fn.exp(np.where(fall(high) > 0.0, high, falling_root(fall, low, high)))
        cost = (1.0 + x) * size
        value = _upper_delta(x, cost - goal, cost + goal)
        # the best order of the tighter bound is at most twice that
        most = np.clip(2.0 * x, SMALLEST_X, LARGEST_X)
        for some in np.array_split(np.arange(goal.size), 1 + 20 * goal.size // BLOCK):
            best, _ = best_order(
                lambda y: (1.0 + y) * size * (1.0 + 4.0 * UNIT) + LOST, goal[some], most[some]
            )
            value[some] = np.minimum(value[some], best)
    value = value.reshape(at.shape)
    return value if at.shape else float(value)


def _upper_delta(x: FloatArray, rate: FloatArray, size: FloatArray) -> FloatArray:
    """The bound of order 1 + x, rounded up; ``rate`` is ρ - ε, to 3 units of ``size``.

    (1 - 1/α)^α/(α - 1) = e^{-x log(1 + 1/x) - log(1 + x)}, of which neither part cancels, however
    small x is.  Errors in units: x and a product on top of 3, 5 of x size; x, 1/x, ELEMENTARY and a
    product, 7 of the second; x and ELEMENTARY, 5 of the third; two sums; in all below 9 of the
    terms' sizes, of which 12 are added.  Then an exponential and a product: ELEMENTARY + 1.
    """
    second, third = x * fn.log1p(1.0 / x), fn.log1p(x)
    logs = x * rate - second - third + 12.0 * UNIT * (x * size + second + third)
    # ∞ - ∞: nothing is known
    logs = np.where(np.isnan(logs), np.inf, logs)
    value = fn.exp(np.minimum(logs, 0.0)) * (1.0 + (ELEMENTARY + 4.0) * UNIT) + LOST
    return np.asarray(np.minimum(value, 1.0))


def to_gdp(epsilon: Any) -> Any:
    """Smallest μ for which every ε-DP mechanism is μ-GDP.

    For a known mechanism, `pyengine.targets.GaussianDP` finds its own μ, which is smaller.

    Parameters
    ----------
    epsilon : array_like
        ε of pure differential privacy, in [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        μ = -2 Φ⁻¹(1/(1 + e^ε)), rounded up by at most a relative 1e-14.  Its Gaussian trade-off
        function passes through the corner α = β of that of ε-DP, and is convex, so it stays below
        both chords of the latter.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), equation 5.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.duality.to_gdp(1.0), 9)
    1.232035385
    """
    at = checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    value = np.where(at <= NEAR, _near(np.minimum(at, NEAR)), _far(np.maximum(at, NEAR)))
    return value if at.shape else float(value)


def _near(epsilon: FloatArray) -> FloatArray:
    """μ for ε <= NEAR, rounded up: erf(μ/√8) = tanh(ε/2) =: q by the series of the inverse of erf.

    It is √(2π) q Σ c_k (π q²/4)^k/(2k + 1).  With b_k the coefficient of q^{2k+1}, b_k r^{2k+1} is
    below erf⁻¹(r) for each r < 1; r = .99 bounds the terms that are left out by 1e-18 of the sum.
    2q errs by ELEMENTARY + ELEMENTARY/2 + 2 = 8 units, q² passes 2 on, and coefficients, Horner's
    scheme, constant and products add 6: 16 in all, of which 24 are added.
    """
    double = 2.0 * -fn.expm1(-epsilon) / (1.0 + fn.exp(-epsilon))
    series = np.zeros(epsilon.shape)
    for k, c in reversed(list(enumerate(_inverse_erf_coefficients()))):
        series = c / (2 * k + 1) + series * (math.pi / 16.0 * double * double)
    value = math.sqrt(0.5 * math.pi) * double * series * (1.0 + 24.0 * UNIT)
    return np.where(epsilon > 0.0, value + LOST, 0.0)


def _inverse_erf_coefficients() -> list[float]:
    """c_0 = 1, c_k = Σ c_m c_{k-1-m}/((m + 1)(2m + 1)): positive, so that errors stay small."""
    c = [1.0]
    for k in range(1, TERMS):
        c.append(math.fsum(c[m] * c[k - 1 - m] / ((m + 1) * (2 * m + 1)) for m in range(k)))
    return c


def _far(epsilon: FloatArray) -> FloatArray:
    """μ for ε >= NEAR, rounded up: Newton's step on log Φ(-t) = y from anywhere ends above μ/2.

    log Φ(-t) is concave, and its slope -h(t) at least (3t + √(t² + 8))/4 in size (Sampford 1953).
    log_ndtr errs by a square and a sum, 2 units of y, by 7 units of Φ(-t) e^{t²/2} (proven in
    docs/theory/closed_form) and by ELEMENTARY units of its logarithm, which is below 5; y errs by a
    unit of itself and ELEMENTARY/2: in all below 3 units of y and 29.
    """
    y = -(epsilon + fn.log1p(fn.exp(-epsilon)))
    t = -np.asarray(ndtri_exp(y))
    miss = np.asarray(log_ndtr(-t)) - y + UNIT * (4.0 * np.abs(y) + 32.0)
    rise = np.maximum(miss, 0.0) / (0.25 * (3.0 * t + np.sqrt(t * t + 8.0)))
    return np.asarray(2.0 * (t + rise) * (1.0 + 8.0 * UNIT))
