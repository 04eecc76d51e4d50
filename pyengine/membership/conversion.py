"""Gaussian membership inference privacy: composition, conversion from and to DP, calibration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine import _checks, special
from pyengine.errors import AccuracyError

__all__ = [
    "NoiseLevels",
    "composed_mu",
    "gdp_of_gmip",
    "gmip_of_gdp",
    "noise_for_gmip",
    "sgd_mu",
    "step_mu",
]

SERIES = 1.0  # step parameter below which differences of error functions are a series
LARGE = 5.0


class NoiseLevels(NamedTuple):
    """Noise that gives a guarantee.

    Parameters
    ----------
    noise : float
        The smaller of both: differential privacy implies membership inference privacy.
    gmip, gdp : float
        Noise by the attacker's own bound, and by that of differential privacy.
    step_mu : float
        GMIP parameter that each step may have.
    mu_dp : float
        Parameter of Gaussian differential privacy of the whole training at ``noise``; inf without
        noise.  To be reported beside the guarantee.
    """

    noise: float
    gmip: float
    gdp: float
    step_mu: float
    mu_dp: float


def composed_mu(mus: npt.ArrayLike) -> float:
    """Parameter of several steps that are each μ_i-GMIP for every record.

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
    array = _checks.real_array("mus", mus, 0.0, math.inf)
    return float(np.sqrt(np.sum(array * array)))


def _log_growth(s: float) -> float:
    """Return log(e^{s²} Φ(3s/2) + 3Φ(-s/2) - 2), about log(s²/2) for small s."""
    phi = special.ndtr(1.5 * s)
    if s > LARGE:
        return s * s + math.log(phi + math.exp(-s * s) * (3.0 * special.ndtr(-0.5 * s) - 2.0))
    if s > SERIES:
        odd = phi + 3.0 * special.ndtr(-0.5 * s) - 2.0
    else:  # the linear terms of Φ(3s/2) - 1/2 and 3(Φ(-s/2) - 1/2) cancel
        odd = math.fsum(
            (-0.5) ** k / (math.factorial(k) * (2 * k + 1)) * (1.5**m - 3.0 * 0.5**m) * s**m
            for k in range(1, 40)
            for m in (2 * k + 1,)
        ) / math.sqrt(2.0 * math.pi)
    return math.log(math.expm1(s * s) * phi + odd)


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
    s = float(_checks.non_negative("step_mu", step_mu))
    c = float(_checks.positive("participation", participation))
    if s == 0.0:
        return 0.0
    if s < 1e-8:
        return c * s
    exponent = 0.5 * (_log_growth(s) + math.log(2.0)) + math.log(c)
    return math.exp(exponent) if exponent < 709.0 else math.inf


def step_mu(mu: float, participation: float) -> float:
    """Inverse of `sgd_mu`: what each step may have if the training is to be μ-GMIP.

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
    target = float(_checks.positive("mu", mu))
    low, high = 0.0, 1.0
    while sgd_mu(high, participation) < target:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        if sgd_mu(middle, participation) < target:
            low = middle
        else:
            high = middle
    raise AccuracyError(f"no step_mu found for mu={mu!r}")


def gmip_of_gdp(mu: float, *, parameters: int, batch_size: float) -> float:
    """GMIP parameter of one step that is μ-GDP, for records of susceptibility K = d.

    Parameters
    ----------
    mu : float
        Parameter of Gaussian differential privacy, in [0, ∞]; inf for a step without noise.
    parameters : int
        Number d of parameters, >= 1.
    batch_size : float
        n, in (0, ∞).

    Returns
    -------
    float
        min(√(d / (n + 4/μ² + 1/2)), μ): Corollary F.1, part 1, in which the paper prints 4C²/μ².

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.gmip_of_gdp(1.0, parameters=650, batch_size=5000), 6)
    0.360393
    """
    value = _checks.real("mu", mu)
    if value < 0.0:
        raise ValueError(f"mu must be non-negative, got {mu!r}")
    d = _checks.count("parameters", parameters, least=1)
    n = float(_checks.positive("batch_size", batch_size))
    if value == 0.0:
        return 0.0
    return min(math.sqrt(d / (n + 4.0 / value / value + 0.5)), value)


def gdp_of_gmip(mu: float, *, parameters: int, batch_size: float) -> float:
    """GDP parameter of one step whose noise makes it μ-GMIP by equation 9, for K = d.

    Parameters
    ----------
    mu : float
        GMIP parameter, in (0, ∞).
    parameters, batch_size
        As in `gmip_of_gdp`.

    Returns
    -------
    float
        2/√(d/μ² - n - 1/2), or inf if the step is μ-GMIP without noise (Corollary F.1, part 2).

    Notes
    -----
    The inverse of `gmip_of_gdp` only where the first term of its minimum is the smaller one.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.membership.gdp_of_gmip(0.3, parameters=650, batch_size=5000), 6)
    0.042431
    """
    value = float(_checks.positive("mu", mu))
    d = _checks.count("parameters", parameters, least=1)
    n = float(_checks.positive("batch_size", batch_size))
    rest = d / value / value - n - 0.5
    return 2.0 / math.sqrt(rest) if rest > 0.0 else math.inf


def _noise_of_step(step: float, n: float, d: int, k: float, clip: float) -> float:
    """The least τ at which equation 9 gives at most μ_step."""
    if k == d:
        size = d / (step * step) - 0.5
    else:  # equation 9 falls with the effective batch size

        def mu_at(size: float) -> float:
            return (d + (2.0 * size - 1.0) * k) / (size * math.sqrt(2.0 * d + 4.0 * size * k))

        if mu_at(n) <= step:
            return 0.0
        low, high = n, 2.0 * n
        while mu_at(high) > step:
            low, high = high, 2.0 * high
        for _ in range(200):
            size = 0.5 * (low + high)
            if not low < size < high:
                break
            low, high = (size, high) if mu_at(size) > step else (low, size)
        size = high
    return clip / n * math.sqrt(max(size - n, 0.0))


def noise_for_gmip(
    mu: float,
    *,
    batch_size: int,
    dataset_size: int,
    steps: int,
    parameters: int,
    clip: float,
    susceptibility: float | None = None,
) -> NoiseLevels:
    """Noise τ on the mean gradient that makes training μ-GMIP.

    Parameters
    ----------
    mu : float
        Target, in (0, ∞).
    batch_size, dataset_size : int
        n and N, 1 <= n <= N; n + 1/2 may not be below what equation 9 needs (n >= 2).
    steps : int
        T >= 1.
    parameters : int
        d >= 1.
    clip : float
        C, in (0, ∞).
    susceptibility : float, optional
        K, in (0, ∞); d by default.

    Returns
    -------
    NoiseLevels
        Its ``noise`` is the smaller one of the noise by equations 9 and 10 and the noise by
        Corollary 4 of Dong, Roth and Su with τ = 2Cσ/n, as differential privacy implies membership
        inference privacy.

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian Membership Inference Privacy (2023),
    Appendix C.1 and Table 5.

    Examples
    --------
    >>> import pyengine as pe
    >>> levels = pe.membership.noise_for_gmip(
    ...     0.66, batch_size=400, dataset_size=48000, steps=1200, parameters=650, clip=500.0
    ... )
    >>> round(levels.noise, 2), round(levels.gmip, 2), round(levels.gdp, 2)
    (2.14, 10.77, 2.14)
    """
    target = float(_checks.positive("mu", mu))
    n = _checks.count("batch_size", batch_size, least=2)
    size = _checks.count("dataset_size", dataset_size, least=1)
    if n > size:
        raise ValueError(f"batch_size must be at most dataset_size = {size}, got {batch_size!r}")
    number = _checks.count("steps", steps, least=1)
    d = _checks.count("parameters", parameters, least=1)
    norm = float(_checks.positive("clip", clip))
    k = (
        float(d)
        if susceptibility is None
        else float(_checks.positive("susceptibility", susceptibility))
    )
    participation = n * math.sqrt(number) / size
    each = step_mu(target, participation)
    gdp = 2.0 * norm / (n * each)
    gmip = _noise_of_step(each, float(n), d, k, norm)
    noise = min(gmip, gdp)
    mu_dp = sgd_mu(2.0 * norm / (n * noise), participation) if noise > 0.0 else math.inf
    return NoiseLevels(noise, gmip, gdp, each, mu_dp)
