"""Empirical lower bounds on privacy parameters from the errors of an attack."""

from __future__ import annotations

import numpy as np

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.special import ndtri
from pyengine.workbench.audit._inputs import FloatArray, probability_level
from pyengine.workbench.audit.bands import success_bound
from pyengine.workbench.audit.trade_off import EmpiricalTradeOff

__all__ = ["epsilon_lower_bound", "gamma_lower_bound", "mu_lower_bound"]


def _smaller_errors(curve: EmpiricalTradeOff) -> tuple[FloatArray, FloatArray]:
    if not isinstance(curve, EmpiricalTradeOff):
        raise ValueError(f"curve must be an EmpiricalTradeOff, got {curve!r}")
    return curve.alpha_upper, curve.beta_upper


def epsilon_lower_bound(curve: EmpiricalTradeOff, delta: float = 0.0) -> float:
    """Lower bound on ε from an attack: the attacked mechanism is not (ε', δ)-DP for any ε' < ε.

    Parameters
    ----------
    curve : EmpiricalTradeOff
        The attack's error rates.
    delta : float
        δ in [0, 1].

    Returns
    -------
    float
        The largest bound over all thresholds and both orders of the laws, >= 0; it holds with the
        curve's confidence.

    References
    ----------
    P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy (2017): the
    region of (ε, δ)-DP is α + e^ε β >= 1 - δ and β + e^ε α >= 1 - δ.
    """
    tolerated = float(checks.probability("delta", delta))
    alpha, beta = _smaller_errors(curve)
    best = 0.0
    for first, second in ((alpha, beta), (beta, alpha)):
        above = 1.0 - tolerated - first
        where = above > 0.0
        if where.any():
            ratio = float(np.max(above[where] / second[where]))
            best = max(best, fn.log(ratio) if ratio > 0.0 else 0.0)
    return best


def mu_lower_bound(curve: EmpiricalTradeOff) -> float:
    """Lower bound on μ from an attack: the attacked mechanism is not μ'-GDP for any μ' < μ.

    Parameters
    ----------
    curve : EmpiricalTradeOff
        The attack's error rates.

    Returns
    -------
    float
        The largest Φ⁻¹(1 - α) - Φ⁻¹(β) over all thresholds, >= 0; it holds with the curve's
        confidence.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian differential privacy (2022), Definition 4.
    """
    alpha, beta = _smaller_errors(curve)
    inner = (alpha < 1.0) & (beta < 1.0)
    if not inner.any():
        return 0.0
    return max(0.0, float(np.max(-ndtri(alpha[inner]) - ndtri(beta[inner]))))


def gamma_lower_bound(successes: int, trials: int, confidence: float = 0.95) -> float:
    """Lower bound on γ from the number of successful reconstruction attacks.

    Parameters
    ----------
    successes, trials : int
        Number of successful attacks among ``trials`` independent ones; 0 <= successes <= trials.
    confidence : float
        Level in (0, 1) of the one-sided bound.

    Returns
    -------
    float
        Clopper-Pearson lower bound on the success probability, and so on γ(κ), κ being the success
        probability without the release.
    """
    return success_bound(successes, trials, 1.0 - probability_level("confidence", confidence))
