"""Approximations from papers, with their parameters; ``method=`` uses the defaults.

They are for comparisons with the exact engines, whose answers take no longer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.api import ESTIMATED, Bounds, kind_of_bounds
from pyengine.engines.approximate import BesideTruth, in_orders
from pyengine.engines.edgeworth import MAX_ORDER, EdgeworthPair
from pyengine.engines.loss_quadrature import clt_distance, losses
from pyengine.engines.monte_carlo import CONFIDENCE, MOST_SAMPLES, SAMPLES, MonteCarloPair
from pyengine.engines.registry import questions
from pyengine.engines.shifted_samples import bins_profile
from pyengine.engines.tilted import tilted_gamma
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, checked_mechanism
from pyengine.mechanisms.participation import bin_moves

__all__ = ["balls_in_bins_delta", "clt_mu", "edgeworth_gamma", "monte_carlo_gamma"]

Real = float | npt.ArrayLike


def _shaped(array: npt.NDArray[np.float64], like: npt.NDArray[np.float64]) -> Any:
    return array.reshape(like.shape) if like.shape else float(array[0])


def clt_mu(mechanism: Mechanism) -> float:
    """Distance μ̃ of the Gaussian pair in the central limit approximation.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.

    Returns
    -------
    float
        √(Σ p² (e^{μ²} - 1)) over all steps with μ = 1/noise_multiplier for Gaussian noise; exact.

    Raises
    ------
    ValueError
        For other steps.
    AccuracyError
        If e^{μ²} overflows.

    References
    ----------
    Z. Bu, J. Dong, Q. Long, W. Su, Deep learning with Gaussian differential privacy, HDSR 2 (2020).

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.approximations.clt_mu(pe.dp_sgd(1.0, 0.01, 1000)), 12)
    0.414521631337
    """
    return clt_distance(checked_mechanism(mechanism))


def edgeworth_gamma(
    mechanism: Mechanism,
    kappa: Real,
    *,
    order: int = MAX_ORDER,
    adjacency: str = "add",
    bounds: bool | str = False,
) -> Any:
    """Reconstruction robustness γ(κ) by an Edgeworth expansion of given order.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    order : int
        From 0 (the normal law with exact mean and variance) to 4: terms up to the size
        steps^(-order/2), from cumulants up to order + 2.
    adjacency : {"add", "remove", "add_remove"}
        As in `pyengine.gamma_bound`.
    bounds : False or "estimated"
        "estimated" returns `pyengine.Bounds`; none are proven.

    Returns
    -------
    float, ndarray of the shape of ``kappa``, or Bounds
        γ(κ), an approximation.  The bounds enclose it and those of ``method="auto"``.

    Raises
    ------
    ValueError
        For an argument outside its domain, and for ``bounds=True``.

    Warns
    -----
    ApproximationWarning
        If the error exceeds a tenth of γ or of 1 - γ.

    References
    ----------
    Q. Zheng, J. Dong, Q. Long, W. Su, Sharp composition bounds for Gaussian differential privacy
    via Edgeworth expansion, ICML 2020; G. Kaissis et al., Bounding data reconstruction attacks
    with the hypothesis testing interpretation of differential privacy (2023), section 4.3.

    Examples
    --------
    >>> import pyengine as pe
    >>> imagenet = pe.dp_sgd(noise_multiplier=2.5, sampling_probability=0.0127, steps=72_000)
    >>> print(f"{pe.approximations.edgeworth_gamma(imagenet, 1e-3):.10f}")
    0.0474136739
    """
    array = checks.real_array("kappa", kappa, 0.0, 1.0)
    order = checks.count("order", order, most=MAX_ORDER)
    checks.choice("adjacency", adjacency, ("add", "remove", "add_remove"))
    if kind_of_bounds(bounds) is True:
        raise ValueError(
            f"bounds must be False or {ESTIMATED!r} here, as approximations prove none, got True"
        )
    checked = checked_mechanism(mechanism)
    found = in_orders(partial(EdgeworthPair, order=order), checked, adjacency)
    how: dict[str, Any] = {"method": "auto", "threat_model": "dp", "tolerance": None}
    truth: Any = partial(questions, checked, adjacency=adjacency, **how)
    asked = BesideTruth(found, "edgeworth", truth)
    gamma = asked.trade_off(array.ravel()).gamma
    if bounds == ESTIMATED:
        return Bounds(*(_shaped(part, array) for part in (gamma.lower, gamma.value, gamma.upper)))
    return _shaped(gamma.value, array)


def monte_carlo_gamma(
    mechanism: Mechanism,
    kappa: Real,
    *,
    adjacency: str = "add",
    samples: int = SAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    tilted: bool = True,
    threads: int | None = None,
) -> Bounds:
    """Reconstruction robustness γ(κ) by Monte Carlo, with confidence intervals.

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    adjacency : {"add", "remove"}
        As in `pyengine.gamma_bound`.
    samples : int
        Number of samples, in [2, 10^10]; each takes about 70 bytes of memory, for any number of
        steps.
    seed : int
        In [0, 2^64).  Results do not depend on the number of threads or on the machine.
    confidence : float
        Least probability with which each single interval holds the truth, in (0, 1).
    tilted : bool
        True draws samples for each κ from a law that is tilted to the threshold of its test; False
        uses samples from the law without the record for all κ, as Algorithm 1 of Hayes et al.
    threads : int, optional
        By default one for each processor that the process may use.

    Returns
    -------
    Bounds
        Estimate between the ends of its interval, each of the shape of ``kappa``.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If the loss of a step is too steep for the table from which it is drawn.

    Warns
    -----
    ApproximationWarning
        With ``tilted=False``, if the interval is wider than a tenth of γ or of 1 - γ.

    Notes
    -----
    The intervals are proven except for the table from which losses are drawn: its interpolation
    shifts the sum of all losses by at most 1e-7.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Algorithm 1 (whose last line divides by the number of kept samples where that of all samples is
    meant) and section 3.3.  A. Maurer, M. Pontil, Empirical Bernstein Bounds and Sample Variance
    Penalization, COLT 2009, Theorem 4.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> found = pe.approximations.monte_carlo_gamma(mechanism, 1e-12, samples=10_000)
    >>> found.lower < pe.gamma_bound(mechanism, 1e-12) < found.upper
    True
    """
    array = checks.real_array("kappa", kappa, 0.0, 1.0)
    mechanism = checked_mechanism(mechanism)
    checks.choice("adjacency", adjacency, ("add", "remove"))
    samples = checks.count("samples", samples, least=2, most=MOST_SAMPLES)
    seed = checks.count("seed", seed)
    if seed >= 2**64:
        raise ValueError(f"seed must be below 2^64, got {checks.shown(seed)}")
    share = checks.real("confidence", confidence)
    if not 0.0 < share < 1.0:
        raise ValueError(f"confidence must lie in (0, 1), got {checks.shown(confidence)}")
    if threads is not None:
        threads = checks.count("threads", threads, least=1)
    flat = array.ravel()
    if tilted:
        terms = losses(mechanism, adjacency)
        parts = np.empty((3, flat.size))
        for i, level in enumerate(flat):
            if level in (0.0, 1.0) or not terms:
                parts[:, i] = level
                continue
            value, lower, upper = tilted_gamma(
                mechanism, adjacency, float(level), samples, seed, share, threads
            )
            parts[:, i] = lower, value, upper
    else:
        pair = MonteCarloPair(mechanism, adjacency, samples, seed, share, threads)
        gamma = pair.trade_off(flat).gamma
        parts = np.stack((gamma.lower, gamma.value, gamma.upper))
    return Bounds(*(_shaped(part, array) for part in parts))


def balls_in_bins_delta(
    noise_multiplier: checks.NumberLike,
    C: Any,
    bins: int,
    epsilon: Real,
    *,
    adjacency: str = "add_remove",
) -> Bounds:
    """δ(ε) of C x + z with each record in one of b random bins, by importance sampling.

    Parameters
    ----------
    noise_multiplier, C, bins
        As in `pyengine.matrix_mechanism` with ``balls_in_bins``.
    epsilon : array_like
        Values >= 0.
    adjacency : {"add_remove", "add", "remove"}
        The neighbours.

    Returns
    -------
    Bounds
        Of the shape of ``epsilon``: an estimate in an interval that holds, with probability 0.99,
        the δ of the absolute values of C; proven except for the rounding of the samples.  That is δ
        itself if all entries of C have one sign, and at least δ otherwise.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    The pair and the bounds of the weights are in the docs, estimates.

    Examples
    --------
    >>> import pyengine as pe
    >>> C = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]
    >>> found = pe.approximations.balls_in_bins_delta(2.0, C, bins=3, epsilon=0.5)
    >>> 0.0 < found.lower < found.value < found.upper < 0.1
    True
    """
    noise = float(checks.positive("noise_multiplier", noise_multiplier))
    word = checks.choice("adjacency", adjacency, ("add_remove", "add", "remove"))
    array = checks.real_array("epsilon", epsilon, 0.0, np.inf) + 0.0
    with np.errstate(over="ignore"):
        moves = bin_moves(C, bins)[1] / noise
        squares = float(np.square(moves).sum())
    if not squares < math.inf:
        raise AccuracyError(
            "the squares of what the bins add, over the noise, must be doubles: use a larger "
            f"noise_multiplier than {noise:g}"
        )
    # the same inner products in as few coordinates as there are bins
    shifts = np.asarray(np.linalg.qr(moves, mode="r")).T
    flat = array.ravel()
    parts = np.zeros((3, flat.size))  # δ(∞) = 0
    finite = flat < math.inf
    parts[:, finite] = bins_profile(np.ascontiguousarray(shifts), flat[finite], word)
    return Bounds(*(_shaped(part, array) for part in parts))
