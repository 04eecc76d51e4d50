"""The questions: trade-off function, reconstruction bound, privacy profile and its inverse."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine import _checks
from pyengine.curves import Answer, epsilon_of_delta, profile, trade_off_curve
from pyengine.engines.select import METHODS
from pyengine.mechanisms import Mechanism

__all__ = ["Bounds", "delta", "epsilon", "gamma_bound", "trade_off"]

FloatArray = npt.NDArray[np.float64]
Real = float | npt.ArrayLike

ADJACENCIES = ("add", "remove", "add_remove")
THREAT_MODELS = ("dp",)


class Bounds(NamedTuple):
    """A value between two bounds: lower <= truth <= upper, as far as the engine's errors go.

    The bounds follow from error estimates, of which only the part of the aliases is proven; each
    engine's page says what is behind them and how they compare with truth.
    """

    lower: Any
    value: Any
    upper: Any


def _mechanism(value: Any) -> Mechanism:
    if not isinstance(value, Mechanism):
        raise ValueError(f"mechanism must be a Mechanism, got {value!r}")
    return value


def _result(
    answer: Answer, shape: tuple[int, ...], low: Any, high: float, bounds: bool
) -> FloatArray | float | Bounds:
    """Give flat values their shape; a scalar becomes a float."""
    if not shape and not bounds:
        return float(answer.value[0])
    if not bounds:
        return answer.value.reshape(shape)
    lower = np.clip(answer.value - answer.error, low, high)
    upper = np.clip(answer.value + answer.error, low, high)
    parts = (lower, answer.value, upper)
    if not shape:
        return Bounds(*(float(part[0]) for part in parts))
    return Bounds(*(part.reshape(shape) for part in parts))


def _check_words(adjacency: str, method: str, threat_model: str) -> None:
    _checks.choice("adjacency", adjacency, ADJACENCIES)
    _checks.choice("method", method, METHODS)
    _checks.choice("threat_model", threat_model, THREAT_MODELS)


def trade_off(
    mechanism: Mechanism,
    alpha: Real,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str = "dp",
    bounds: bool = False,
) -> Any:
    """Smallest type-II error β(α) of a level-α test that a record took part.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    alpha : array_like
        Levels of the test, in [0, 1].
    adjacency : {"add_remove", "add", "remove"}
        ``add``: H0 is the data without the record; ``remove``: H0 is the data with it;
        ``add_remove``: lower convex hull of both functions.
    method : {"auto", "closed_form", "spectral", "convolution"}
        Engine; ``auto`` takes the fastest one whose error estimate is small enough.
    threat_model : {"dp"}
        Adversary of differential privacy, who knows everything but the record.
    bounds : bool
        Whether to return `Bounds` instead of the value.

    Returns
    -------
    float, ndarray of the shape of ``alpha``, or Bounds
        β(α); an estimate, with relative error below 1e-11 (1e-9 below 1e-30).

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

    Notes
    -----
    Accuracy over the domain is measured in the docs (theory/accuracy).  For levels near 1 the
    result keeps its relative accuracy: 1 - α is exact there.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Definition 2.1 and F.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> round(pe.trade_off(mechanism, 0.1, adjacency="add"), 12)
    0.805798868372
    """
    _mechanism(mechanism)
    _check_words(adjacency, method, threat_model)
    level = _checks.real_array("alpha", alpha, 0.0, 1.0)
    flat = level.ravel()
    beta, _ = trade_off_curve(mechanism, flat, adjacency, method)
    return _result(beta, level.shape, 0.0, 1.0, bounds)


def gamma_bound(
    mechanism: Mechanism,
    kappa: Real,
    *,
    adjacency: str = "add",
    method: str = "auto",
    threat_model: str = "dp",
    bounds: bool = False,
) -> Any:
    """Reconstruction robustness γ(κ): the largest success probability at prior success κ.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    adjacency : {"add", "remove", "add_remove"}
        As in `trade_off`.  The default has H0 without the record, as in the papers.
    method, threat_model, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``kappa``, or Bounds
        γ = 1 - T(κ) >= κ; an estimate, with relative error below 1e-11 (1e-9 below 1e-30).

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

    Notes
    -----
    γ(κ) = sup{Q(E) : P(E) <= κ} bounds the success of any reconstruction attack whose success
    without the release is at most κ.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Theorem 2; G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks
    with the hypothesis testing interpretation of differential privacy (2023).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> round(pe.gamma_bound(mechanism, 1e-3), 12)
    0.004068447881
    """
    _mechanism(mechanism)
    _check_words(adjacency, method, threat_model)
    prior = _checks.real_array("kappa", kappa, 0.0, 1.0)
    flat = prior.ravel()
    _, gamma = trade_off_curve(mechanism, flat, adjacency, method)
    return _result(gamma, prior.shape, flat, 1.0, bounds)


def delta(
    mechanism: Mechanism,
    epsilon: Real,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str = "dp",
    bounds: bool = False,
) -> Any:
    """Privacy profile δ(ε): the smallest δ for which the mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    epsilon : array_like
        In [0, ∞].
    adjacency : {"add_remove", "add", "remove"}
        ``add``: H(without‖with) of the record; ``remove``: H(with‖without); ``add_remove``: the
        larger one.
    method, threat_model, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``epsilon``, or Bounds
        δ(ε); an estimate, with relative error below 1e-11 (1e-9 below 1e-30).

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

    References
    ----------
    C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of
    Subsampled Mechanisms under Composition (2024), Section 2.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    >>> print(f"{pe.delta(mechanism, 1.0):.10e}")
    5.3195913780e-07
    """
    _mechanism(mechanism)
    _check_words(adjacency, method, threat_model)
    eps = _checks.real_array("epsilon", epsilon, 0.0, math.inf)
    answer = profile(mechanism, eps.ravel(), adjacency, method)
    return _result(answer, eps.shape, 0.0, 1.0, bounds)


def epsilon(
    mechanism: Mechanism,
    delta: Real,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str = "dp",
    bounds: bool = False,
) -> Any:
    """Inverse of the privacy profile: the smallest ε for which the mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    delta : array_like
        In [0, 1].
    adjacency : {"add_remove", "add", "remove"}
        As in `delta`.
    method, threat_model, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``delta``, or Bounds
        ε >= 0, inf where no ε will do; an estimate whose δ is within 1e-11 (1e-9 below 1e-30),
        relative, of the one that was asked for.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    >>> round(pe.epsilon(mechanism, 1e-7), 10)
    1.1707628432
    """
    _mechanism(mechanism)
    _check_words(adjacency, method, threat_model)
    target = _checks.real_array("delta", delta, 0.0, 1.0)
    answer = epsilon_of_delta(mechanism, target.ravel(), adjacency, method)
    return _result(answer, target.shape, 0.0, math.inf, bounds)
