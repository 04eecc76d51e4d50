"""Bounds on reconstruction from (ε, δ) and from Rényi divergence of order 2; the advantage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.duality import gamma_from_epsilon_delta
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["advantage", "dp_gamma", "mse_lower_bound"]

Real = float | npt.ArrayLike


def _scalar_or_array(value: Any) -> Any:
    return value if np.ndim(value) else float(value)


def dp_gamma(kappa: Real, epsilon: Real, delta: Real = 0.0) -> Any:
    """Bound on γ(κ) from (ε, δ)-differential privacy.

    Parameters
    ----------
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    epsilon, delta : array_like
        The guarantee, ε in [0, ∞] and δ in [0, 1]; broadcast with ``kappa``.

    Returns
    -------
    float or ndarray of the broadcast shape
        min(e^ε κ + δ, 1): a proven bound, rounded up, as
        `pyengine.duality.gamma_from_epsilon_delta`.

    Notes
    -----
    `pyengine.gamma_bound` of `pyengine.GenericMechanism` is the tight bound from one (ε, δ), which
    also uses that the guarantee is symmetric.

    References
    ----------
    G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks with the
    hypothesis testing interpretation of differential privacy (2023), Theorem 1.
    """
    return gamma_from_epsilon_delta(epsilon, delta, kappa)


def advantage(success: Real, prior: Real) -> Any:
    """Advantage of an adversary over guessing.

    Parameters
    ----------
    success : array_like
        Success probability, or a bound on it, in [0, 1].
    prior : array_like
        Largest probability of a candidate, in [0, 1).

    Returns
    -------
    float or ndarray of the broadcast shape
        (success - prior) / (1 - prior), with a relative error of at most 4e-16.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    equation 4.
    """
    reached = checks.real_array("success", success, 0.0, 1.0)
    before = checks.real_array("prior", prior, 0.0, 1.0)
    if np.any(before == 1.0):
        raise ValueError("prior must be below 1, got 1.0")
    return _scalar_or_array((reached - before) / (1.0 - before))


def mse_lower_bound(renyi_epsilon: Real, *, diameter: Real = 1.0) -> Any:
    """Lower bound on the mean squared error, per coordinate, of any unbiased reconstruction.

    Parameters
    ----------
    renyi_epsilon : array_like
        ε of Rényi differential privacy of order 2 under substitution, in [0, ∞].
    diameter : array_like
        Width of the range of each coordinate, > 0 and finite, or one for all.

    Returns
    -------
    float or ndarray of the shape of ``renyi_epsilon``
        Mean of diameter² / (4 (e^ε - 1)) over the coordinates, inf at ε = 0; a proven bound,
        rounded down by at most a relative 1e-14 plus 2e-323, and capped at the largest double.

    References
    ----------
    C. Guo, B. Karrer, K. Chaudhuri, L. van der Maaten, Bounding training data reconstruction in
    private (deep) learning, ICML 2022, as quoted by Hayes, Mahloujifar and Balle 2023, section 2.1
    and Appendix J.
    """
    cost = checks.real_array("renyi_epsilon", renyi_epsilon, 0.0, math.inf)
    widths = checks.real_array("diameter", diameter, 0.0, math.inf)
    if not widths.size or not np.all((widths > 0.0) & np.isfinite(widths)):
        raise ValueError(f"diameter must be positive and finite, got {checks.shown(diameter)}")
    top = float(widths.max())
    # the root first, as e^ε and squares of widths may overflow
    square = math.fsum(((widths / top) ** 2).ravel()) / widths.size
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        quarter = fn.exp(-0.25 * cost)  # e^(-ε/2) may underflow where top² e^-ε does not
        root = top * quarter / np.sqrt(-fn.expm1(-cost)) * math.sqrt(0.25 * square) * quarter
        value = root * root * (1.0 - (6.0 * ELEMENTARY + 20.0) * UNIT) - LOST
    value = np.clip(value, 0.0, np.finfo(np.float64).max)
    return _scalar_or_array(np.where(cost == 0.0, math.inf, value))
