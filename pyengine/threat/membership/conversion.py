"""Gaussian membership inference privacy: conversion from and to DP, calibration."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pyengine._support import checks
from pyengine.numerics.bracketing import bisected
from pyengine.threat.membership.composition import sgd_mu, step_mu
from pyengine.threat.membership.step import normal_mu

__all__ = [
    "NoiseLevels",
    "gdp_of_gmip",
    "gmip_of_gdp",
    "noise_for_gmip",
]


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
    value = checks.real("mu", mu)
    if value < 0.0:
        raise ValueError(f"mu must be non-negative, got {checks.shown(mu)}")
    d = checks.count("parameters", parameters, least=1)
    n = float(checks.positive("batch_size", batch_size))
    if value == 0.0:
        return 0.0
    if value < 1.0:  # 4/μ² may be beyond doubles
        return min(value * math.sqrt(d / (4.0 + (n + 0.5) * value * value)), value)
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
    value = float(checks.positive("mu", mu))
    d = checks.count("parameters", parameters, least=1)
    n = float(checks.positive("batch_size", batch_size))
    rest = d - (n + 0.5) * value * value
    return 2.0 * value / math.sqrt(rest) if rest > 0.0 else math.inf


def _noise_of_step(step: float, n: float, d: int, k: float) -> float:
    """The least τ/C at which equation 9 gives at most μ_step."""
    if k == d:
        size = d / step / step - 0.5
    else:  # equation 9 falls with the effective batch size

        def is_more(size: Any) -> bool:
            return normal_mu(float(size), float(d), k) > step

        if not is_more(n):
            return 0.0
        low, high = n, 2.0 * n
        while is_more(high):
            low, high = high, 2.0 * high
        size = float(bisected(is_more, low, high, rounds=200)[1])
    return math.sqrt(max(size - n, 0.0)) / n


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
    target = float(checks.positive("mu", mu))
    n, size = checks.batch(batch_size, dataset_size, least=2)
    number = checks.count("steps", steps, least=1)
    d = checks.count("parameters", parameters, least=1)
    norm = float(checks.positive("clip", clip))
    k = (
        float(d)
        if susceptibility is None
        else float(checks.positive("susceptibility", susceptibility))
    )
    participation = n * math.sqrt(number) / size
    each = step_mu(target, participation)
    gdp = 2.0 / n / each
    gmip = _noise_of_step(each, float(n), d, k)
    share = min(gmip, gdp)  # of the clipping norm, as both are
    mu_dp = sgd_mu(2.0 / n / share, participation) if share > 0.0 else math.inf
    return NoiseLevels(
        noise=_scaled(norm, share),
        gmip=_scaled(norm, gmip),
        gdp=_scaled(norm, gdp),
        step_mu=each,
        mu_dp=mu_dp,
    )


def _scaled(norm: float, noise: float) -> float:
    """``norm`` times ``noise``; no noise > 0 is rounded to 0."""
    return max(norm * noise, math.ulp(0.0)) if noise > 0.0 else 0.0
