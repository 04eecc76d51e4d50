"""Rényi divergences of a composition and the bound on γ that follows from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.engines.loss_quadrature import losses, parts, ratio
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, Step, checked_mechanism, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.golden_section import lowest
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST

__all__ = [
    "gaussian_renyi_gamma",
    "renyi_divergence",
    "renyi_gamma",
    "renyi_gamma_bound",
    "substitution_cost",
]

FloatArray = npt.NDArray[np.float64]
Real = float | npt.ArrayLike

MOST_NODES = 2**22
REACH = 12.0  # standard deviations on both sides of the outermost modes
FARTHEST = 80.0  # standard deviations by which the largest order tried moves the mode of a step
ERROR = 1e-11  # relative error of divergences
NEAR, TERMS = 0.3, 16  # range and number of terms of the series where terms cancel
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
COARSE, ROUNDS = 60, 60  # orders of the first grid; steps of the golden section after it


def _nodes(step: Step, power: float) -> tuple[FloatArray, FloatArray]:
    """Nodes of a quadrature for E_P[(dQ/dP)^power]: log dQ/dP and log weights under P."""
    noise, probability = parts(step)
    mu = 1.0 / float(noise.multiplier)
    gaussian = noise.family == "gaussian"
    low, high = min(0.0, power * mu) - REACH, max(mu, power * mu) + REACH
    nodes = (high - low) / min(0.25, 0.25 / mu) if gaussian else 20.0 * mu * max(1.0, abs(power))
    if not nodes <= MOST_NODES:
        raise AccuracyError(
            f"moments of order {power:g} of a sampled step of noise multiplier {1.0 / mu:g} "
            f"take {nodes:.3g} nodes, more than {MOST_NODES:,}: use a smaller order"
        )
    if not gaussian:
        # the ratio is constant beyond both ends; between them panels get shorter with the order
        x, weights = np.polynomial.legendre.leggauss(20)
        panels = np.linspace(0.0, mu, math.ceil(nodes / 20.0) + 1)
        half = 0.5 * np.diff(panels)[:, None]
        z = (panels[:-1, None] + half * (1.0 + x)).ravel()
        inside = fn.log(half * weights).ravel() - z
        logs = np.concatenate([[0.0], inside, [-mu]]) - fn.log(2.0)
        return ratio(np.concatenate([[-mu], 2.0 * z - mu, [mu]]), probability), logs
    z = np.linspace(low, high, math.ceil(nodes) + 1)
    width = (high - low) / (z.size - 1)
    return ratio(mu * (z - 0.5 * mu), probability), -0.5 * z * z + fn.log(width / ROOT_TWO_PI)


def _divergence(step: Step, x: float, adjacency: str) -> float:
    """Rényi divergence of order 1 + x >= 1 of one step, P without the record and Q with it.

    It is log(M)/x with M = E_P[r^b], r = dQ/dP, b = 1 + x or -x.  Near 1, M = 1 + x E_P h with
    h = (r^b - 1 - b (r - 1))/x >= 0, as E_P r = 1: so no digits are lost for small rates or for
    orders next to 1.
    """
    noise, probability = parts(step)
    if noise.family == "gaussian" and probability == 1.0:
        return 0.5 * (1.0 + x) / float(noise.multiplier) ** 2
    power = 1.0 + x if adjacency == "add" else -x
    v, log_weight = _nodes(step, power)
    exponent = log_weight + power * v
    top = float(exponent.max())
    log_moment = top + fn.log(math.fsum(fn.exp(exponent - top)))
    if log_moment > 1.0:
        return log_moment / x
    return _excess(v, log_weight, x, adjacency)


def _excess(v: FloatArray, log_weight: FloatArray, x: float, adjacency: str) -> float:
    """log(1 + x E h)/x, or E h at x = 0."""
    weight, raised = fn.exp(log_weight), fn.exp(log_weight + v)
    power = 1.0 + x if adjacency == "add" else -x
    y = x * v if adjacency == "add" else -x * v
    # (e^y - 1)/x times the weight of one law, and the part that is linear in r
    base = raised if adjacency == "add" else weight
    with np.errstate(over="ignore", invalid="ignore"):
        near = base * (fn.expm1(y) / x if x else v if adjacency == "add" else -v)
        grown = np.where(
            np.abs(y) <= 1.0, near, (fn.exp(log_weight + power * v) - base) / (x or 1.0)
        )
        linear = np.where(np.abs(v) <= 1.0, weight * fn.expm1(v), raised - weight)
        far = grown - linear if adjacency == "add" else grown + linear
    # a series about v = 0, where both terms nearly cancel
    scale = max(1.0, abs(power))
    small = np.clip(v, -NEAR / scale, NEAR / scale)
    total, term, grows = np.zeros(v.shape), small, 0.0
    for k in range(2, TERMS):
        term = term * small / k
        # (b^k - b)/x: for b = 1 + x a geometric sum
        grows = power * (grows + 1.0) if adjacency == "add" else 1.0 - power ** (k - 1)
        total += grows * term
    mean = math.fsum(np.where(np.abs(v) * scale <= NEAR, weight * total, far))
    return fn.log1p(x * mean) / x if x else mean


def renyi_divergence(mechanism: Mechanism, order: Real, *, adjacency: str = "add") -> Any:
    """Rényi divergence of a composition's law with the record from that without, or reversed.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.
    order : array_like
        Orders α, in [1, ∞); 1 is the Kullback-Leibler divergence.
    adjacency : {"add", "remove"}
        ``add``: of the law with the record from that without; ``remove``: the other way.

    Returns
    -------
    float or ndarray of the shape of ``order``
        log E_A[(dB/dA)^α] / (α - 1); an estimate with a relative error of at most 1e-11, measured.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    I. Mironov, Rényi differential privacy, CSF 2017.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.baselines.renyi_divergence(pe.GaussianMechanism(2.0).composed(3), 5.0)  # α T / (2 σ²)
    1.875
    """
    orders = checks.real_array("order", order, 1.0, math.inf)
    if np.isinf(orders).any():
        raise ValueError("order must be finite, got inf")
    checks.choice("adjacency", adjacency, ("add", "remove"))
    losses(checked_mechanism(mechanism), adjacency)  # refuses other mechanisms
    found = np.empty(orders.size)
    for i, alpha in enumerate(orders.ravel()):
        found[i] = math.fsum(
            n * _divergence(step, float(alpha) - 1.0, adjacency) for step, n in steps_of(mechanism)
        )
    return found.reshape(orders.shape) if orders.shape else float(found[0])


def substitution_cost(mechanism: Mechanism) -> float:
    """Rényi divergence of order 2 between the laws of two data sets that differ in one record.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.

    Returns
    -------
    float
        Sum over the steps of that of (1 - p) N(0) + p N(-Δ) from (1 - p) N(0) + p N(Δ), which no
        substitution exceeds; an estimate with a relative error of at most 1e-12, measured.

    Raises
    ------
    ValueError
        For another mechanism.

    References
    ----------
    C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of
    Subsampled Mechanisms under Composition (2024), Proposition 13, for the pair.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.baselines.substitution_cost(pe.GaussianMechanism(2.0).composed(3))  # 4 T / σ²
    3.0
    """
    losses(checked_mechanism(mechanism), "add")  # refuses other mechanisms
    return math.fsum(n * _log_square(step) for step, n in steps_of(mechanism))


def _log_square(step: Step) -> float:
    """Logarithm of E_A[(dB/dA)²] for a replaced record."""
    noise, probability = parts(step)
    mu = 1.0 / float(noise.multiplier)
    if noise.family == "gaussian":
        if probability == 1.0:
            return 4.0 * mu * mu
        reach = 3.0 * mu + REACH
        z = np.linspace(-reach, reach, math.ceil(2.0 * reach / min(0.25, 0.25 / mu)) + 1)
        log_weight = -0.5 * z * z + fn.log((z[1] - z[0]) / math.sqrt(2.0 * math.pi))
        up, down = mu * (z - 0.5 * mu), -mu * (z + 0.5 * mu)
    else:
        # the ratios are constant beyond ±μ, and smooth on both sides of 0
        nodes, weights = np.polynomial.legendre.leggauss(20)
        panels = np.linspace(0.0, mu, math.ceil(mu) + 1)
        half = 0.5 * np.diff(panels)
        right = (panels[:-1, None] + half[:, None] * (1.0 + nodes)).ravel()
        inside = fn.log((half[:, None] * weights).ravel()) - right - fn.log(2.0)
        z = np.concatenate([[-mu], -right, right, [mu]])
        tail = [-mu - fn.log(2.0)]
        log_weight = np.concatenate([tail, inside, inside, tail])
        up, down = np.abs(z) - np.abs(z - mu), np.abs(z) - np.abs(z + mu)
    # E_A (dB/dA)² = 1 + E_A (dB/dA - 1)², which keeps its digits for a small probability
    with np.errstate(divide="ignore"):
        apart = np.maximum(up, down) + fn.log(-fn.expm1(-np.abs(up - down)))
    exponent = log_weight + 2.0 * (fn.log(probability) + apart) - ratio(up, probability)
    top = float(exponent.max())
    return float(fn.logaddexp(0.0, top + fn.log(math.fsum(fn.exp(exponent - top)))))


def renyi_gamma(kappa: Real, order: Real, epsilon: Real) -> Any:
    """Bound on γ(κ) from a curve of Rényi differential privacy.

    Parameters
    ----------
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    order, epsilon : array_like, one-dimensional or scalar, of one shape
        Points (α, ε) of the curve, α > 1 and ε >= 0.

    Returns
    -------
    float or ndarray of the shape of ``kappa``
        min over the curve of (κ e^ε)^{(α-1)/α}, at most 1; a proven bound if the curve is one,
        rounded up by at most a relative 4e-15 (1 + log(1/κ) + ε) plus 2e-323.

    References
    ----------
    B. Balle, G. Cherubin, J. Hayes, Reconstructing training data with informed adversaries, S&P
    2022; J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD
    (2023), section 3.1.
    """
    array = checks.real_array("kappa", kappa, 0.0, 1.0)
    alpha = np.atleast_1d(checks.real_array("order", order, 1.0, math.inf))
    cost = np.atleast_1d(checks.real_array("epsilon", epsilon, 0.0, math.inf))
    if alpha.ndim != 1 or alpha.shape != cost.shape or not alpha.size:
        raise ValueError(
            f"order and epsilon must have one shape of at most one dimension, got {alpha.shape} "
            f"and {cost.shape}"
        )
    if not np.all(alpha > 1.0):
        raise ValueError(f"order must be above 1, got {float(alpha.min())!r}")
    x = array.ravel()[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(alpha < math.inf, (alpha - 1.0) / alpha, 1.0)
        log = fn.log(x)
        exponent = share * (log + cost + 12.0 * UNIT * (cost - log))
    # errors in units: ELEMENTARY of the logarithm, with sum, share and product 10; value 1 more
    best = np.where(x == 0.0, -np.inf, np.minimum(exponent, 0.0)).min(axis=1)
    value = np.minimum(fn.exp(best) * (1.0 + (ELEMENTARY + 4.0) * UNIT) + LOST, 1.0)
    value = np.where(array.ravel() == 0.0, 0.0, value)
    return value.reshape(array.shape) if array.shape else float(value[0])


def renyi_gamma_bound(mechanism: Mechanism, kappa: Real) -> Any:
    """Bound on γ(κ) from the Rényi divergences of a mechanism, at the best order.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``kappa``
        min over α > 1 of (κ e^{ε(α)})^{(α-1)/α}, at most 1, ε(α) from `renyi_divergence` with
        adjacency ``add``.  An upper bound of γ(κ) for whatever order the search finds, provided
        that the estimated error of the divergences holds; it is raised by that error and rounding.

    References
    ----------
    As for `renyi_gamma`; for Gaussian noise without sampling it is `gaussian_renyi_gamma`.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> print(f"{pe.baselines.renyi_gamma_bound(mechanism, 1e-3):.6f}")
    0.004945
    >>> print(f"{pe.gamma_bound(mechanism, 1e-3):.6f}")
    0.004068
    """
    array = checks.real_array("kappa", kappa, 0.0, 1.0)
    kinds = [step for step, _ in steps_of(checked_mechanism(mechanism))]
    strongest = max((1.0 / float(parts(step)[0].multiplier) for step in kinds), default=1.0)
    value = np.array([_best(mechanism, float(k), FARTHEST / strongest) for k in array.ravel()])
    return value.reshape(array.shape) if array.shape else float(value[0])


def _best(mechanism: Mechanism, kappa: float, largest: float) -> float:
    if kappa in (0.0, 1.0):
        return kappa

    def exponents(u: FloatArray) -> FloatArray:
        """Logarithm of the bound at orders 1 + e^u."""
        alpha = 1.0 + fn.exp(u)
        cost = renyi_divergence(mechanism, alpha) * (1.0 + ERROR)
        slack = 16.0 * UNIT * (cost - fn.log(kappa) + 1.0)
        return np.asarray((1.0 - 1.0 / alpha) * (fn.log(kappa) + cost + slack))

    grid = np.linspace(fn.log(1e-4), fn.log(largest + 1.0), COARSE)
    values = exponents(grid)
    at = int(np.argmin(values))
    low, high = grid[[max(at - 1, 0)]], grid[[min(at + 1, COARSE - 1)]]
    _, best = lowest(exponents, low, high, rounds=ROUNDS)
    raised = fn.exp(min(float(best[0]), float(values[at]), 0.0)) * (1.0 + 16.0 * UNIT) + LOST
    return min(raised, 1.0)


def gaussian_renyi_gamma(kappa: Real, noise_multiplier: float, *, steps: int = 1) -> Any:
    """Closed form of the Rényi bound on γ(κ) for Gaussian noise without sampling.

    Parameters
    ----------
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    noise_multiplier : float
        Standard deviation of the noise divided by the sensitivity, in (0, ∞).
    steps : int
        Number T of steps, >= 0.

    Returns
    -------
    float or ndarray of the shape of ``kappa``
        exp(-max(0, √log(1/κ) - √(T/(2σ²)))²); a proven bound, rounded up by at most a relative
        1e-14 (1 + log(1/κ)) plus 2e-323.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    equation 2.
    """
    array = checks.real_array("kappa", kappa, 0.0, 1.0)
    noise = float(checks.positive("noise_multiplier", noise_multiplier))
    shift = math.sqrt(0.5 * checks.count("steps", steps)) / noise
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(-fn.log(array))
        distance = np.maximum(root - shift - 8.0 * UNIT * (root + shift), 0.0)
    value = fn.exp(-(distance**2) * (1.0 - 4.0 * UNIT)) * (1.0 + (ELEMENTARY + 4.0) * UNIT) + LOST
    value = np.where(array == 0.0, 0.0, np.minimum(value, 1.0))
    return value if array.shape else float(value)
