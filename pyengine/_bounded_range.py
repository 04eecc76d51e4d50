"""Exponential mechanisms on the same data, chosen beforehand: their best composition.

Each step has loss t with A-probability a = (e^{-t} - e^{-ε})/(1 - e^{-ε}) and loss t - ε otherwise.
With k steps of one t in [0, ε], δ(e) is the largest over l < k of
F_l(t) = P(Bin(k, 1 - a e^t) <= l) - e^e P(Bin(k, 1 - a) <= l), and F_l is largest over t at
t_l = (e + (l + 1) ε)/(k + 1), or at the nearer end of [0, ε].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import _checks
from pyengine.numerics.bracketing import bisected

__all__ = ["bounded_range_delta", "bounded_range_epsilon"]

FloatArray = npt.NDArray[np.float64]

MOST_STEPS = 5_000
BLOCK = 2**21  # terms at once
LARGEST = 700.0


def bounded_range_delta(epsilon: Any, *, range_per_step: Any, steps: int) -> Any:
    """Best δ of mechanisms of bounded range that are composed non-adaptively.

    Parameters
    ----------
    epsilon : array_like
        In [0, 700].
    range_per_step : float
        Bounded range of each mechanism, in (0, 700]: that of the exponential mechanism with weights
        e^{ε q/(2Δ)}, q of sensitivity Δ, is ε.
    steps : int
        Number of mechanisms, in [1, 5000], which are chosen before any of them runs.

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        The smallest δ that holds for all such mechanisms, in both orders of neighbours; an estimate
        with a relative error of 1e-11, measured against exact sums.  If later mechanisms depend on
        earlier releases this is *no* guarantee: ask `pyengine.delta` for
        `pyengine.ExponentialMechanism`, composed.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    J. Dong, D. Durfee, R. Rogers, Optimal Differential Privacy Composition for Exponential
    Mechanisms and the Cost of Adaptivity (2019), arXiv:1909.13830, Theorem 3.

    Examples
    --------
    >>> import pyengine as pe
    >>> beforehand = pe.duality.bounded_range_delta(0.5, range_per_step=0.1, steps=20)
    >>> adaptive = pe.delta(pe.ExponentialMechanism("0.1").composed(20), 0.5)
    >>> pure = pe.delta(pe.GenericMechanism("0.1").composed(20), 0.5)
    >>> f"{beforehand:.8f} {adaptive:.7f} {pure:.8f}"
    '0.00131007 0.0031680 0.03825557'
    """
    at = _checks.real_array("epsilon", epsilon, 0.0, LARGEST)
    width, number = _arguments(range_per_step, steps)
    values = np.array([_delta(float(e), width, number) for e in at.ravel()]).reshape(at.shape)
    return values if at.shape else float(values)


def bounded_range_epsilon(delta: Any, *, range_per_step: Any, steps: int) -> Any:
    """Best ε of mechanisms of bounded range that are composed non-adaptively.

    Parameters
    ----------
    delta : array_like
        In [0, 1].
    range_per_step, steps
        As in `bounded_range_delta`, whose inverse this is.

    Returns
    -------
    float or ndarray of the shape of ``delta``
        Absolute error below 1e-10 times ``range_per_step * steps``; the latter where δ is 0.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.duality.bounded_range_epsilon(1e-6, range_per_step=0.1, steps=100), 6)
    2.246026
    """
    goals = _checks.real_array("delta", delta, 0.0, 1.0)
    width, number = _arguments(range_per_step, steps)
    values = np.array([_epsilon(float(d), width, number) for d in goals.ravel()])
    values = values.reshape(goals.shape)
    return values if goals.shape else float(values)


def _arguments(range_per_step: Any, steps: Any) -> tuple[float, int]:
    width = float(_checks.positive("range_per_step", range_per_step))
    number = _checks.count("steps", steps, least=1)
    if width > LARGEST:
        raise ValueError(
            f"range_per_step must be at most {LARGEST:g}, got {_checks.shown(range_per_step)}"
        )
    if number > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS:,}, got {_checks.shown(steps)}")
    return width, number


def _delta(epsilon: float, width: float, steps: int) -> float:
    if epsilon >= width * steps:
        return 0.0
    rows = np.arange(steps, dtype=np.float64)
    best = 0.0
    size = max(1, BLOCK // (steps + 1))
    for start in range(0, steps, size):
        t = (epsilon + (rows[start : start + size] + 1.0) * width) / (steps + 1.0)
        best = max(best, float(_profiles(np.clip(t, 0.0, width), epsilon, width, steps).max()))
    return best


def _profiles(t: FloatArray, epsilon: float, width: float, steps: int) -> FloatArray:
    """δ of ``steps`` atoms at each t; all terms are positive."""
    i = np.arange(steps + 1, dtype=np.float64)
    choices = np.array([_log_choose(steps, k) for k in range(steps + 1)])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        high = np.log(np.expm1(width - t)) - np.log(np.expm1(width))  # log a
        low = np.log(-np.expm1(-t)) - math.log(-math.expm1(-width))  # log(1 - a)
        excess = steps * t[:, None] - i * width - epsilon
        logs = choices + np.where(i == steps, 0.0, (steps - i) * high[:, None])
        logs += np.where(i == 0, 0.0, i * low[:, None])
        gains = epsilon + np.log(np.expm1(np.maximum(excess, 0.0)))
        large = excess > 30.0
        gains = np.where(large, epsilon + excess, gains)
        terms = np.exp(np.where(excess > 0.0, logs + gains, -np.inf))
    return np.asarray(terms.sum(axis=1))


def _log_choose(n: int, k: int) -> float:
    # of the integer itself where it is a double: lgamma would lose digits of the difference
    return math.log(math.comb(n, k))


def _epsilon(delta: float, width: float, steps: int) -> float:
    low, high = 0.0, min(width * steps, LARGEST)
    if delta == 0.0 or _delta(high, width, steps) > delta:
        return width * steps
    if _delta(0.0, width, steps) <= delta:
        return 0.0
    _, end = bisected(
        lambda epsilon: _delta(float(epsilon), width, steps) > delta,
        low,
        high,
        is_close=lambda first, second: second - first <= 1e-12 * width * steps,
    )
    return float(end)
