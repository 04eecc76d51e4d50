"""Fano's bound on reconstruction from mutual information (Guo et al. 2022b)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import _checks
from pyengine.errors import AccuracyError
from pyengine.numerics.bracketing import bisected

__all__ = ["fano_success", "gaussian_information", "orthogonal_information"]

FloatArray = npt.NDArray[np.float64]

WIDEST = 60.0  # deviations whose rule takes tens of millions of exponentials


def probabilities(prior: Any) -> FloatArray:
    """Return the probabilities of a prior: those given, or 1/n each for an integer n."""
    if np.ndim(prior) == 0:
        size = _checks.count("prior", prior, least=2)
        return np.full(size, 1.0 / size)
    weights = _checks.real_array("prior", prior, 0.0, 1.0)
    if weights.ndim != 1 or weights.size < 2 or abs(float(weights.sum()) - 1.0) > 1e-9:
        raise ValueError(f"prior must hold two or more probabilities that sum to 1, got {prior!r}")
    return np.asarray(weights / weights.sum())


def _entropy(weights: FloatArray) -> float:
    positive = weights[weights > 0.0]
    return float(-(positive * np.log(positive)).sum())


def fano_success(prior: Any, information: float) -> float:
    """Largest success probability that Fano's inequality allows at some mutual information.

    Parameters
    ----------
    prior : int or array_like
        Number of equally likely candidates, >= 2, or their probabilities.
    information : float
        Mutual information between candidate and release, in nats, >= 0, or an upper bound of it.

    Returns
    -------
    float
        1 - t for the smallest t in [0, 1] with H(prior) - I + t log t + (1 - t) log(1 - t)
        - t log(n - 1) <= 0; a proven upper bound, up to rounding.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    C. Guo, A. Sablayrolles, M. Sanjabi, Analyzing privacy leakage in machine learning via multiple
    hypothesis testing: a lesson from Fano (2022); J. Hayes, S. Mahloujifar, B. Balle, Bounding
    Training Data Reconstruction in DP-SGD (2023), equation 5.

    Examples
    --------
    >>> import pyengine as pe
    >>> from pyengine.baselines import fano_success, gaussian_information
    >>> information = gaussian_information(10, noise_multiplier=1.0, sensitivity=2**0.5)
    >>> round((fano_success(10, information) - 0.1) / 0.9, 3)
    0.593
    """
    weights = probabilities(prior)
    weights = weights[weights > 0.0]
    amount = _checks.real("information", information)
    if amount < 0.0:
        raise ValueError(f"information must be at least 0, got {information!r}")
    slack, size = _entropy(weights) - amount, weights.size
    if slack <= 0.0 or size == 1:
        return 1.0

    def is_left(t: float) -> bool:
        value = slack + t * math.log(t) + (1.0 - t) * math.log1p(-t) - t * math.log(size - 1)
        return value > 0.0

    # f falls from slack to slack - log n on this interval
    low, _ = bisected(is_left, 0.0, 1.0 - 1.0 / size, rounds=200)
    return 1.0 - float(low)


def gaussian_information(
    prior: Any, noise_multiplier: float, *, sensitivity: float = 1.0, steps: int = 1
) -> float:
    """Closed upper bound on the mutual information between candidate and Gaussian release.

    Parameters
    ----------
    prior : int or array_like
        Number of equally likely candidates, >= 2, or their probabilities.
    noise_multiplier : float
        Standard deviation of the noise, > 0.
    sensitivity : float
        Largest distance Δ between the means of two candidates, > 0, in the unit of the noise; √2
        for orthogonal gradients of norm 1.
    steps : int
        Number of releases without sampling, >= 1.

    Returns
    -------
    float
        -Σ p log(p + (1 - p) e^{-steps Δ²/(2 noise²)}) in nats; a proven upper bound.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Appendix H, after Guo et al. 2022b.
    """
    weights = probabilities(prior)
    noise = float(_checks.positive("noise_multiplier", noise_multiplier))
    distance = float(_checks.positive("sensitivity", sensitivity))
    number = _checks.count("steps", steps, least=1)
    ratio = math.sqrt(number) * (distance / noise)
    overlap = math.exp(-0.5 * ratio * ratio)
    weights = weights[weights > 0.0]
    return float(-(weights * np.log(weights + (1.0 - weights) * overlap)).sum())


def orthogonal_information(candidates: int, noise_multiplier: float, *, steps: int = 1) -> float:
    """Mutual information of equally likely orthogonal candidates of norm 1 and a Gaussian release.

    Parameters
    ----------
    candidates : int
        Their number n, >= 2.
    noise_multiplier : float
        Standard deviation of the noise, > 0.
    steps : int
        Number of releases without sampling, >= 1.

    Returns
    -------
    float
        I = log n - E log Σ_j e^{s_j - s_1} in nats, s_j = μ g_j for standard normal g_j and
        s_1 = μ g_1 + μ², μ = √steps / noise; exact up to quadrature errors near 1e-12.

    Notes
    -----
    E log X = ∫ (e^{-t} - E e^{-tX}) dt/t turns the n-dimensional expectation into an integral of
    M(t)^{n-1} M(t e^{μ²}), M(t) = E e^{-t e^{μ g}}, where Guo et al. 2022b take random samples.
    """
    size = _checks.count("candidates", candidates, least=2)
    noise = float(_checks.positive("noise_multiplier", noise_multiplier))
    mu = math.sqrt(_checks.count("steps", steps, least=1)) / noise
    if not mu <= WIDEST:
        raise AccuracyError(
            f"the rule takes too many nodes where sqrt(steps)/noise_multiplier is above {WIDEST:g}"
            f", got {mu:.3g}; the information is next to log(candidates), its largest value"
        )
    g = np.linspace(-9.0, 9.0, 289)
    weight = np.exp(-0.5 * g * g)
    weight /= weight.sum()
    # log t: e^{-t} - E e^{-tX} vanishes beyond both ends
    low = -40.0 - mu * (mu + 9.0) - math.log(size)
    high = 5.0 + 9.0 * mu
    u = np.linspace(low, high, max(2001, math.ceil((high - low) * 40)))
    with np.errstate(over="ignore", under="ignore"):
        base = np.exp(-np.exp(u[:, None] + mu * g)) @ weight
        first = np.exp(-np.exp(u[:, None] + mu * g + mu * mu)) @ weight
        integrand = np.exp(-np.exp(u)) - base ** (size - 1) * first
    mean_log = float(integrand.sum() * (u[1] - u[0]))
    return min(max(math.log(size) - mean_log + mu * mu, 0.0), math.log(size))
