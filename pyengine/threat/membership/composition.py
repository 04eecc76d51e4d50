"""Gaussian membership inference privacy of several steps, and of SGD on random batches."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected

__all__ = ["composed_mu", "sgd_mu", "step_mu"]

SERIES = 1.0  # s up to which differences of error functions are summed as a series
LARGE = 5.0  # s from which on e^{s²} is factored out


def composed_mu(mus: npt.ArrayLike) -> float:
    """GMIP parameter of a composition of steps that are μ_i-GMIP for every record.

    Parameters
    ----------
    mus : array_like
        Parameters of the steps, in [0, ∞).

    Returns
    -------
    float
        √(Σ μ_i²): exact for Gaussian trade-off functions.  (The paper's Appendix D.3 prints
        √(Σ μ_i).)

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.composed_mu([1.1396] * 5), 4)
    2.5482
    """
    array = checks.real_array("mus", mus, 0.0, math.inf)
    largest = float(array.max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return largest
    shares = array / largest  # squares of the parameters may be beyond doubles
    with np.errstate(over="ignore"):
        return float(largest * np.sqrt(np.sum(shares * shares)))


def _log_growth(s: float) -> float:
    """Return log(e^{s²} Φ(3s/2) + 3Φ(-s/2) - 2), about log(s²/2) for small s."""
    phi = special.ndtr(1.5 * s)
    if s > LARGE:
        return s * s + fn.log(phi + fn.exp(-s * s) * (3.0 * special.ndtr(-0.5 * s) - 2.0))
    if s > SERIES:
        odd = phi + 3.0 * special.ndtr(-0.5 * s) - 2.0
    else:  # the linear terms of Φ(3s/2) - 1/2 and 3(Φ(-s/2) - 1/2) cancel
        odd = math.fsum(
            (-0.5) ** k / (math.factorial(k) * (2 * k + 1)) * (1.5**m - 3.0 * 0.5**m) * s**m
            for k in range(1, 40)
            for m in (2 * k + 1,)
        ) / math.sqrt(2.0 * math.pi)
    return fn.log(fn.expm1(s * s) * phi + odd)


def sgd_mu(step_mu: float, participation: float) -> float:
    """Parameter of SGD with subsampling whose steps are μ_step-GMIP for the records in the batch.

    Parameters
    ----------
    step_mu : float
        Parameter of one step, in [0, ∞).  With 2C/(nτ) = 1/σ it gives the same for Gaussian
        differential privacy (Dong, Roth and Su, Corollary 4).
    participation : float
        c = n √T / N for batches of n among N records and T steps, in (0, ∞).

    Returns
    -------
    float
        μ of equation 10, the limit of many steps; inf where it overflows.

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian Membership Inference Privacy (2023), Lemma 5.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.sgd_mu(1.0, participation=0.3), 6)
    0.513043
    """
    s = float(checks.non_negative("step_mu", step_mu))
    c = float(checks.positive("participation", participation))
    if s == 0.0:
        return 0.0
    if s < 1e-8:
        return c * s * (1.0 + s / math.sqrt(2.0 * math.pi))
    exponent = 0.5 * (_log_growth(s) + fn.log(2.0)) + fn.log(c)
    return fn.exp(exponent) if exponent < 709.0 else math.inf


def step_mu(mu: float, participation: float) -> float:
    """Inverse of `sgd_mu`: the parameter that each step may have for μ-GMIP training.

    Parameters
    ----------
    mu : float
        Target, in (0, ∞).
    participation : float
        As in `sgd_mu`.

    Returns
    -------
    float
        μ_step, to a few units in the last place of `sgd_mu`.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.step_mu(0.513043, participation=0.3), 5)
    1.0
    """
    target = float(checks.positive("mu", mu))
    low, high = 0.0, 1.0
    while sgd_mu(high, participation) < target:
        low, high = high, 2.0 * high
    _, found = bisected(lambda step: sgd_mu(float(step), participation) < target, low, high)
    return float(found)
