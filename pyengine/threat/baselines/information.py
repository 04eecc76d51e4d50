"""Fano's bound on reconstruction from mutual information (Guo et al. 2022b)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_root
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["fano_success", "gaussian_information", "orthogonal_information"]

FloatArray = npt.NDArray[np.float64]

STEP = 0.25  # of sums over log t and μ g: their error is e^{-π²/STEP} = 7e-18
SETTLED = 1e-14  # distance from log n up to which the information is taken as log n
SERIES = 0.25  # |x| up to which φ is a series of TERMS terms; the next one is below 1e-18 of it
TERMS = 27


class Prior(NamedTuple):
    """A prior over n candidates: p and 1 - p of each; a single entry if all are equally likely.

    ``shares`` sum to 1, ``excess`` is log n - H(prior), and ``error`` bounds its rounding.
    """

    size: int
    weights: FloatArray
    others: FloatArray
    shares: FloatArray
    excess: float
    error: float


def prior_of(prior: Any) -> Prior:
    """Check a prior, and return its probabilities."""
    if np.ndim(prior) == 0:
        size = checks.count("prior", prior, least=2)
        one = np.array([1.0 / size])
        return Prior(size, one, 1.0 - one, np.ones(1), 0.0, 0.0)
    weights = checks.real_array("prior", prior, 0.0, 1.0)
    total = math.fsum(weights.ravel())
    if weights.ndim != 1 or weights.size < 2 or abs(total - 1.0) > 1e-9:
        raise ValueError(
            f"prior must hold two or more probabilities that sum to 1, got {checks.shown(prior)}"
        )
    weights = weights[weights > 0.0] / total
    others = 1.0 - weights
    largest = int(weights.argmax())
    others[largest] = math.fsum(np.delete(weights, largest))  # 1 - p would have few digits
    excess = math.fsum(_phi(weights * weights.size - 1.0)) / weights.size
    # the error of each weight is 4 units, and φ' = log(1 + x)
    error = 4.0 * UNIT * math.fsum(np.abs(fn.log(weights * weights.size)) * weights)
    return Prior(weights.size, weights, others, weights, excess, error + 64.0 * UNIT * excess)


def _phi(x: FloatArray) -> FloatArray:
    """(1 + x) log(1 + x) - x, without cancellation next to 0."""
    near = np.clip(x, -SERIES, SERIES)
    series = np.zeros(x.shape)
    for k in range(TERMS, 1, -1):
        series = (-1.0) ** k / (k * (k - 1)) + series * near
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x > -1.0, (1.0 + x) * fn.log1p(x) - x, 1.0)
    return np.where(np.abs(x) <= SERIES, near * near * series, far)


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
        - t log(n - 1) <= 0; a proven upper bound, rounded up by at most a relative 1e-13, and √n
        times as much for n candidates that are not equally likely.

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
    >>> from pyengine.threat.baselines import fano_success, gaussian_information
    >>> information = gaussian_information(10, noise_multiplier=1.0, sensitivity=2**0.5)
    >>> round((fano_success(10, information) - 0.1) / 0.9, 3)
    0.593
    """
    size, *_, excess, error = prior_of(prior)
    amount = checks.real("information", information)
    if amount < 0.0:
        raise ValueError(f"information must be at least 0, got {checks.shown(information)}")
    # the success s is the larger root of KL((s, 1 - s) ‖ (1/n, 1 - 1/n)) = I'
    amount = (amount + excess) * (1.0 + 2.0 * UNIT) + error
    if amount >= fn.log(size) or size == 1:
        return 1.0
    q = 1.0 / size
    if amount == 0.0:
        return q * (1.0 + 2.0 * UNIT)

    def excess_of(y: FloatArray) -> FloatArray:
        """I' minus the divergence at s = q (1 + e^y), a sum of two positive terms."""
        d = fn.exp(y)
        e = np.minimum(q * d / (1.0 - q), 1.0)
        return np.asarray(amount - (q * _phi(d) + (1.0 - q) * _phi(-e)))

    # the divergence is at most q d²/(1 - q)
    low = min(0.5 * (fn.log(amount) + fn.log(size - 1)), fn.log(size - 1))
    high = np.array([fn.log(size - 1)])
    if excess_of(high)[0] >= 0.0:
        return 1.0
    y = falling_root(excess_of, np.array([low]), high)
    # the error of the divergence is 64 units, and that of d less, as the divergence is convex
    return min(q * (1.0 + fn.exp(float(y[0])) * (1.0 + 72.0 * UNIT)) * (1.0 + 8.0 * UNIT), 1.0)


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
        -Σ p log(p + (1 - p) e^{-steps Δ²/(2 noise²)}) in nats; a proven upper bound, rounded up by
        at most a relative 2e-14, plus 2e-323 for each candidate of a list.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Appendix H, after Guo et al. 2022b.
    """
    _, weights, others, shares, *_ = prior_of(prior)
    noise = float(checks.positive("noise_multiplier", noise_multiplier))
    distance = float(checks.positive("sensitivity", sensitivity))
    number = checks.count("steps", steps, least=1)
    ratio = math.sqrt(number) * (distance / noise)
    square = 0.5 * ratio * ratio
    # p + (1 - p) e^{-square} = 1 - (1 - p)(1 - e^{-square}): one of both forms keeps its digits
    lost = others * -fn.expm1(-square)
    inside = weights + others * fn.exp(-square)
    logs = np.where(lost < 0.5, fn.log1p(-np.minimum(lost, 0.5)), fn.log(inside))
    # errors in units: 8 of the square, ELEMENTARY of its exponential, 4 of a weight, 4 of what is
    # made of both; where the second form is used, the logarithm is at least log 2
    return max(-math.fsum(shares * logs), 0.0) * (1.0 + 40.0 * UNIT) + LOST * shares.size


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
        s_1 = μ g_1 + μ², μ = √steps / noise; an estimate with an absolute error of at most 1e-12,
        measured.

    Notes
    -----
    E log X = ∫ (e^{-t} - E e^{-tX}) dt/t turns the n-dimensional expectation into an integral of
    M(t)^{n-1} M(t e^{μ²}), M(t) = E e^{-t e^{μ g}}, where Guo et al. 2022b take random samples.
    """
    size = checks.count("candidates", candidates, least=2)
    noise = float(checks.positive("noise_multiplier", noise_multiplier))
    mu = math.sqrt(checks.count("steps", steps, least=1)) / noise
    log_size = fn.log(size)
    # log n - I <= E Σ log(1 + e^{s_j - s_1}) <= 2 (n - 1) e^{-μ²/4}, as log(1 + y) <= 2 √y
    if 0.25 * mu * mu > log_size + fn.log(2.0 / SETTLED):
        return log_size
    reach = math.sqrt(2.0 * (log_size + 40.0))  # standard deviations that n variates may reach
    half = math.ceil(reach / min(STEP, STEP / mu))
    g = np.linspace(-reach, reach, 2 * half + 1)
    weight = fn.exp(-0.5 * g * g)
    weight /= weight.sum()
    # log t: e^{-t} - E e^{-tX} vanishes beyond both ends
    low = -40.0 - mu * (1.5 * mu + reach) - log_size
    high = 5.0 + reach * mu
    u = STEP * np.arange(math.floor(low / STEP), math.ceil(high / STEP) + 1)
    with np.errstate(over="ignore", under="ignore"):
        # by 1 - M, whose digits matter in the power and where the product is next to 1
        rest = -fn.expm1(-fn.exp(u[:, None] + mu * g)) @ weight
        first = -fn.expm1(-fn.exp(u[:, None] + mu * g + mu * mu)) @ weight
        log_product = sum(
            number * fn.log1p(-np.minimum(part, 1.0 - UNIT))
            for number, part in ((size - 1, rest), (1, first))
        )
        integrand = fn.expm1(-fn.exp(u)) - fn.expm1(log_product)
    mean_log = STEP * math.fsum(integrand)
    return min(max(log_size - mean_log + mu * mu, 0.0), log_size)
