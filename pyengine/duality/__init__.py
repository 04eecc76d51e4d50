"""From trade-off functions to privacy profiles and back, for curves that come from anywhere.

The trade-off function T(A, B) and the profile δ(ε) = H_{e^ε}(B‖A), **of the reversed pair**, are
conjugate: 1 - T(α) = min over t >= 0 of δ(log t) + t α.  Both are convex, so finitely many values
already bound the other curve from both sides, and every conversion here returns both bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyengine._support import checks
from pyengine.duality._bounded_range import bounded_range_delta, bounded_range_epsilon
from pyengine.duality._conjugate import Curve, Enclosure, FloatArray, Refined, least, source
from pyengine.duality._moments import from_rdp, from_zcdp, to_gdp
from pyengine.numerics import functions as fn
from pyengine.numerics.gaussian_filter import GaussianFilter
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST
from pyengine.numerics.selection import repeat_and_select

__all__ = [
    "Enclosure",
    "GaussianFilter",
    "bounded_range_delta",
    "bounded_range_epsilon",
    "from_rdp",
    "from_zcdp",
    "gamma_from_epsilon_delta",
    "gamma_from_profile",
    "profile_from_trade_off",
    "repeat_and_select",
    "to_gdp",
    "trade_off_from_epsilon_delta",
    "trade_off_from_profile",
]

LARGEST = 700.0  # largest |ε| at which functions are evaluated
ACCURACY = 1e-11  # relative accuracy of the package's own answers


# Map: reconstruction robustness from (ε, δ) | test_duality | theory/conversions
def gamma_from_epsilon_delta(epsilon: Any, delta: Any, kappa: Any) -> Any:
    """Reconstruction robustness that (ε, δ)-DP implies: γ(κ) <= min(1, e^ε κ + δ).

    Parameters
    ----------
    epsilon, delta : array_like
        The guarantee, in [0, ∞] and [0, 1], for any adjacency.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1]; broadcast with both.

    Returns
    -------
    float or ndarray of the broadcast shape
        An upper bound for γ, rounded up by at most a relative 2e-15 plus 2e-323.  It is optimal for
        a single (ε, δ) in both directions if κ <= (1 - δ)/(1 + e^ε).

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks with the
    hypothesis testing interpretation of differential privacy (2023), Theorem 1.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.duality.gamma_from_epsilon_delta(1.0, 1e-5, 0.01), 12)
    0.027192818285
    """
    mass = checks.real_array("delta", delta, 0.0, 1.0)
    x = checks.real_array("kappa", kappa, 0.0, 1.0)
    moved = _upper_product(checks.real_array("epsilon", epsilon, 0.0, math.inf), x)
    total = (moved + mass) * np.where((moved > 0.0) & (mass > 0.0), 1.0 + 4.0 * UNIT, 1.0)
    value = np.minimum(total, 1.0)
    return value if value.shape else float(value)


def _upper_product(epsilon: FloatArray, x: FloatArray) -> FloatArray:
    """e^ε x, rounded up; x itself at ε = 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = fn.exp(epsilon) * x * (1.0 + (ELEMENTARY + 4.0) * UNIT) + LOST
    return np.where((epsilon == 0.0) | (x == 0.0), x, product)


def trade_off_from_epsilon_delta(epsilon: Any, delta: Any, alpha: Any) -> Any:
    """Trade-off function that (ε, δ)-DP implies: max(0, 1 - δ - e^ε α, e^{-ε}(1 - δ - α)).

    Parameters
    ----------
    epsilon, delta : float
        The guarantee, in [0, ∞] and [0, 1], for both directions of a neighbouring relation.
    alpha : array_like
        Levels of the test, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        A lower bound for T(α), rounded down by at most 3e-15; by a relative 3e-15 plus 2e-323 if
        the last expression is the largest.

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
    >>> pe.duality.trade_off_from_epsilon_delta(0.0, 0.25, [0.0, 0.5])
    array([0.75, 0.25])
    """
    cost = np.asarray(checks.scalar("epsilon", epsilon, 0.0, math.inf))
    mass = float(checks.probability("delta", delta))
    x = checks.real_array("alpha", alpha, 0.0, 1.0)
    # 1 - δ - α without cancellation: 1 - α as two doubles
    rest = 1.0 - x
    rest = (rest - mass) + ((1.0 - rest) - x)
    steep = (1.0 - mass) - _upper_product(cost, x) - 4.0 * UNIT
    with np.errstate(over="ignore"):
        flat = rest * (1.0 - (ELEMENTARY + 8.0) * UNIT) / fn.exp(cost) - LOST  # the same at ε = 0
    value = np.where(x + mass == 0.0, 1.0, np.maximum(np.maximum(steep, flat), 0.0))
    return value if x.shape else float(value)


def gamma_from_profile(
    profile: Curve, kappa: Any, *, symmetric: bool = False, accuracy: float = ACCURACY
) -> Enclosure:
    """Reconstruction robustness of a profile: γ(κ) = min over c of κ e^c + δ(c).

    Parameters
    ----------
    profile : callable, or pair of arrays
        δ(ε) at ε >= 0, or increasing ε >= 0 and the values there.  For γ against H0 without the
        record (adjacency ``add``), that is the profile of adjacency ``remove``.
    kappa : array_like
        In [0, 1].
    symmetric : bool
        Whether the profile holds for both directions, as that of ``add_remove`` does: it is then
        known at ε < 0, too.
    accuracy : float
        Bound on the relative error of the given values, in [0, 1e-3]; the bounds allow for it.

    Returns
    -------
    Enclosure
        Each of the shape of ``kappa``.  ``upper`` bounds γ even if the values are only upper bounds
        of δ; ``lower`` needs true values.

    Raises
    ------
    ValueError
        For arguments outside their domains, or a profile that increases or is not convex in e^ε.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Proposition 2.12.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    >>> remove = lambda epsilon: pe.delta(mechanism, epsilon, adjacency="remove")
    >>> bracket = pe.duality.gamma_from_profile(remove, 1e-3)
    >>> gamma = pe.gamma_bound(mechanism, 1e-3)
    >>> bracket.lower < gamma < bracket.upper < 1.0001 * gamma
    True
    """
    slope = checks.real_array("kappa", kappa, 0.0, 1.0)
    return _shaped(_least_of_profile(profile, slope.ravel(), symmetric, accuracy), slope.shape)


def trade_off_from_profile(
    profile: Curve, alpha: Any, *, symmetric: bool = False, accuracy: float = ACCURACY
) -> Enclosure:
    """Trade-off function of a profile: T(α) = max over c of 1 - δ(c) - α e^c.

    Parameters
    ----------
    profile : callable, or pair of arrays
        As in `gamma_from_profile`: for T(A, B), the profile of the pair (B, A).
    alpha : array_like
        In [0, 1].
    symmetric, accuracy
        As in `gamma_from_profile`.

    Returns
    -------
    Enclosure
        Each of the shape of ``alpha``.  ``lower`` bounds T, on the safe side, even if the values
        are only upper bounds of δ; ``upper`` needs true values.

    Raises
    ------
    ValueError
        As `gamma_from_profile`.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(1.0)
    >>> both = lambda epsilon: pe.delta(mechanism, epsilon)
    >>> bracket = pe.duality.trade_off_from_profile(both, 0.3, symmetric=True)
    >>> bracket.lower < pe.trade_off(mechanism, 0.3) < bracket.upper
    True
    """
    slope = checks.real_array("alpha", alpha, 0.0, 1.0)
    found = _least_of_profile(profile, slope.ravel(), symmetric, accuracy)
    return _shaped(_rest(found), slope.shape)


# Map: Prop. 2.12 of Dong, Roth and Su (2022) | test_duality | theory/conversions
def profile_from_trade_off(
    trade_off: Curve, epsilon: Any, *, accuracy: float = ACCURACY
) -> Enclosure:
    """Privacy profile of a trade-off function: δ(ε) = max over α of 1 - T(α) - e^ε α.

    Parameters
    ----------
    trade_off : callable, or pair of arrays
        T(A, B) on [0, 1], or increasing α and the values there.
    epsilon : array_like
        In [0, 700].
    accuracy : float
        Bound on the relative error of the given values, in [0, 1e-3]; the bounds allow for it.

    Returns
    -------
    Enclosure
        Bounds for H_{e^ε}(B‖A), each of the shape of ``epsilon``.  ``upper`` is on the safe side,
        and ``lower`` holds even if the values are only upper bounds of T, as those of an attack
        are.  Values below ``accuracy`` or 1e-16 are lost in 1 - T.

    Raises
    ------
    ValueError
        For arguments outside their domains, or a function that increases or is not convex.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Proposition 2.12.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(1.0)
    >>> curve = lambda alpha: pe.trade_off(mechanism, alpha)
    >>> bracket = pe.duality.profile_from_trade_off(curve, 1.0)
    >>> bracket.lower < pe.delta(mechanism, 1.0) < bracket.upper
    True
    """
    grid = checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    scores = np.arange(0.0, 79.0, 1.0 / 24.0) ** 1.5  # to e^-700
    low = 1.0 / (1.0 + fn.exp(scores[::-1]))
    high = 1.0 - low[::-1]
    levels = np.concatenate([[0.0], low, high[(high > 0.5) & (high < 1.0 - 1e-14)], [1.0]])
    function, x, y = source("trade_off", trade_off, levels, 1.0)
    if x[-1] < 1.0:
        x, y = np.append(x, 1.0), np.append(y, 0.0)
    refined = Refined(function, 0.0)
    found = least("trade_off", refined, x, y, fn.exp(grid.ravel()), 1.0, accuracy)
    return _shaped(_rest(found), grid.shape)


def _least_of_profile(
    profile: Curve, slope: FloatArray, symmetric: bool, accuracy: float
) -> Enclosure:
    """Bounds of min over t of δ(log t) + slope t."""
    steps = np.arange(0.0, LARGEST ** (2 / 3), 1.0 / 24.0) ** 1.5
    function, epsilon, delta = source("profile", profile, steps, LARGEST)

    def at(t: FloatArray) -> FloatArray:
        """Profile at log t, for t < 1 by the symmetry of the relation."""
        outside = t < 1.0
        inner = fn.log(np.where(outside, 1.0 / np.where(outside, t, 1.0), t))
        values = np.asarray(function(inner)) if function is not None else np.zeros(0)
        # 1 - t of the argument that was asked
        return np.where(outside, -fn.expm1(-inner) + t * values, values)

    t, y = fn.exp(epsilon), delta
    if symmetric:
        above = epsilon > 0.0
        mirrored = fn.exp(-epsilon[above])[::-1]
        t = np.concatenate([mirrored, t])
        rest = -fn.expm1(-epsilon[above][::-1])
        y = np.concatenate([rest + mirrored * delta[above][::-1], y])
    t, y = np.append(0.0, t), np.append(1.0, y)  # H_0 = 1
    refined = Refined(None if function is None else at, 1e-300 if symmetric else 1.0)
    return least("profile", refined, t, y, slope, math.inf, accuracy)


def _rest(found: Enclosure) -> Enclosure:
    slack = 2.0**-52
    return Enclosure(
        np.maximum(1.0 - found.upper - slack, 0.0), np.minimum(1.0 - found.lower + slack, 1.0)
    )


def _shaped(bracket: Enclosure, shape: tuple[int, ...]) -> Enclosure:
    return Enclosure(*(part.reshape(shape) if shape else float(part[0]) for part in bracket))
