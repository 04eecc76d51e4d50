"""From bounds on Rényi divergences and from pure differential privacy to profiles and to GDP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import _checks
from pyengine.numerics.golden_section import lowest
from pyengine.special import ndtri

__all__ = ["from_rdp", "from_zcdp", "to_gdp"]

FloatArray = npt.NDArray[np.float64]

LARGEST = 700.0
TRIES = 100


def from_rdp(orders: Any, divergences: Any, epsilon: Any) -> Any:
    """Privacy profile that Rényi divergences imply: (α, ρ_α)-RDP gives (ε, δ)-DP.

    Parameters
    ----------
    orders : array_like of shape (n,)
        Orders α > 1, finite.
    divergences : array_like of shape (n,)
        Upper bounds ρ_α >= 0 of the Rényi divergences of these orders, for the order of neighbours
        that is asked about; infinite where none is known.
    epsilon : array_like
        In [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        An upper bound of δ(ε), rounded up: the smallest over the orders of
        e^{(α - 1)(ρ_α - ε)} (1 - 1/α)^α/(α - 1), and at most 1.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, The Discrete Gaussian for Differential Privacy (2020),
    arXiv:2004.00010, Proposition 12.

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> orders = np.arange(2, 64)
    >>> f"{pe.duality.from_rdp(orders, orders / 2, 4.0):.6f}"  # of Gaussian noise 1
    '0.000203'
    """
    alpha = np.atleast_1d(_checks.real_array("orders", orders, -math.inf, math.inf))
    rho = np.atleast_1d(_checks.real_array("divergences", divergences, -math.inf, math.inf))
    if alpha.ndim != 1 or alpha.size == 0 or not ((alpha > 1.0) & (alpha < math.inf)).all():
        raise ValueError(f"orders must be finite numbers above 1, got {orders!r}")
    if rho.shape != alpha.shape or not (rho >= 0.0).all():
        raise ValueError(f"divergences must be >= 0, one for each order, got {divergences!r}")
    at = _checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    logs = _log_delta(alpha, rho, at.ravel()[:, None]).min(axis=1)
    value = np.exp(np.minimum(logs, 0.0)).reshape(at.shape)
    return value if at.shape else float(value)


def from_zcdp(rho: Any, epsilon: Any) -> Any:
    """Privacy profile that ρ-zCDP implies: the best order of `from_rdp` for ρ_α = α ρ.

    Parameters
    ----------
    rho : float
        Zero-concentrated differential privacy, in (0, ∞).
    epsilon : array_like
        In [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        An upper bound of δ(ε), rounded up.  For noise that is Gaussian `pyengine.delta` is the
        truth, and smaller.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    As `from_rdp`, Corollary 13.

    Examples
    --------
    >>> import pyengine as pe
    >>> f"{pe.duality.from_zcdp(0.5, 4.0):.6f} {pe.delta(pe.GaussianMechanism(1.0), 4.0):.6f}"
    '0.000196 0.000047'
    """
    # a larger ρ promises less, and below all doubles no quotient is one
    size = max(float(_checks.positive("rho", rho)), 1e-300)
    at = _checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    goal = at.ravel()
    # any order gives a bound: a search in log(α - 1) only chooses one
    low = np.full(goal.shape, math.log(1e-6))
    high = np.log(2.0 + (goal + 40.0) / size) + 2.0

    def log_delta(place: FloatArray) -> FloatArray:
        alpha = 1.0 + np.exp(place)
        return _log_delta(alpha, alpha * size, goal)

    _, logs = lowest(log_delta, low, high, rounds=TRIES)
    value = np.exp(np.minimum(logs, 0.0)).reshape(at.shape)
    return value if at.shape else float(value)


def _log_delta(alpha: FloatArray, rho: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Log of the bound that one order gives, rounded up by more than its own rounding."""
    logs = (alpha - 1.0) * (rho - epsilon) - np.log(alpha - 1.0) + alpha * np.log1p(-1.0 / alpha)
    terms = (alpha - 1.0) * (rho + epsilon) + np.abs(np.log(alpha - 1.0)) + 4.0
    return np.asarray(logs + 2.0**-49 * terms)


def to_gdp(epsilon: Any) -> Any:
    """Smallest μ for which every ε-DP mechanism is μ-GDP.

    For a mechanism that is known, `pyengine.targets.GaussianDP` finds its own μ, which is smaller.

    Parameters
    ----------
    epsilon : array_like
        Of pure differential privacy, in [0, 700].

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        μ = -2 Φ⁻¹(1/(1 + e^ε)), to a few units: the Gaussian trade-off function through the corner
        α = β of the one of ε-DP, below whose two chords it stays because it is convex.

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
    at = _checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    corner = np.exp(-at) / (1.0 + np.exp(-at))
    value = np.asarray(np.where(at == 0.0, 0.0, -2.0 * np.asarray(ndtri(corner))))
    return value if at.shape else float(value)
