"""Private selection: the best of a random number of runs, as in hyperparameter tuning.

With K runs of Q and the generating function φ of K, the best one has the law of density
Q(y) φ'(F(y)), F(y) = Q(at most as good as y); with the record likewise Q'(y) φ'(F'(y)).  As
1 - F' <= e^ε̂ (1 - F) + δ̂ with δ̂ = δ_Q(ε̂), the ratio φ'(F)/φ'(F') is at most e^c:

- K Poisson of mean m, φ' = m e^{m(x - 1)}: c = m (e^ε̂ - 1 + δ̂);
- K truncated negative binomial, φ' ∝ (1 - (1 - γ) x)^{-η - 1}: c = (η + 1) log(e^ε̂ + (1 - γ) δ̂/γ);
- K binomial of n and p, φ' = n p (1 - p (1 - x))^{n - 1}: with u = 1 - F the ratio is largest where
  e^ε̂ u + δ̂ = 1, and c = (n - 1) log(1 + p (1 - (1 - δ̂) e^{-ε̂})/(1 - p)).

So H_{e^ε} of the best runs is at most max φ' H_{e^{ε - c}}(Q‖Q') = E K δ_Q(ε - c), for every
ε̂ >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["check_runs", "repeat_and_select", "stopping_of"]

RUNS = ("poisson", "negative_binomial", "binomial")
LARGEST = 700.0
GRID = 60  # values of ε̂ that are tried; each gives a bound
SLACK = 2.0**-46  # relative, for the rounding of c and E K


def repeat_and_select(
    profile: Callable[[Any], Any],
    epsilon: float,
    *,
    runs: str = "poisson",
    mean: float | None = None,
    shape: float | None = None,
    stopping: float | None = None,
    number: int | None = None,
    probability: float | None = None,
) -> float:
    """Bound for δ of releasing the best of a random number of runs of one mechanism.

    Parameters
    ----------
    profile : callable
        δ_Q(ε) of one run at an array of ε >= 0, or an upper bound of it, for both orders of the
        neighbours (adjacency ``add_remove`` or ``substitute``).
    epsilon : float
        In [0, 700].
    runs : {"poisson", "negative_binomial", "binomial"}
        Law of the number K of runs, which stays secret; nothing is released for K = 0.
    mean : float
        E K for ``poisson``, > 0.
    shape, stopping : float
        η > -1 and γ in (0, 1) of the truncated negative binomial law: P(K = k) is proportional to
        (1 - γ)^k Γ(k + η)/(k! Γ(η)), k >= 1.  η = 1 is geometric of mean 1/γ, η = 0 logarithmic.
    number, probability : int and float
        n >= 1 and p in (0, 1] of the binomial law.

    Returns
    -------
    float
        An upper bound of δ(ε): the smallest over `GRID` values of ε̂, rounded up (c and E K by a
        relative 2e-14, ε - c by a relative 3e-16, and the result by 2e-323).

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    N. Papernot, T. Steinke, Hyperparameter Tuning with Rényi Differential Privacy (2022),
    arXiv:2110.03620; A. Koskela, R. Redberg, Y.-X. Wang, Privacy Profiles for Private Selection
    (2024), arXiv:2402.06701, Theorems 5 and 7.

    Examples
    --------
    >>> import pyengine as pe
    >>> one = pe.dp_sgd(1.0, 0.01, 1000)
    >>> best = pe.duality.repeat_and_select(
    ...     lambda epsilon: pe.delta(one, epsilon), 4.0, runs="poisson", mean=10.0
    ... )
    >>> f"{pe.delta(one, 4.0):.2e} {best:.2e}"
    '5.35e-13 1.19e-06'
    """
    at = checks.scalar("epsilon", epsilon, 0.0, LARGEST)
    word = checks.choice("runs", runs, RUNS)
    given = {
        "mean": mean,
        "shape": shape,
        "stopping": stopping,
        "number": number,
        "probability": probability,
    }
    check_runs(word, given)
    if word == "poisson":
        times, power = math.frexp(checks.positive("mean", mean))
    elif word == "binomial":
        n = checks.count("number", number, least=1)
        p = checks.real("probability", probability)
        if not 0.0 < p <= 1.0:
            raise ValueError(f"probability must lie in (0, 1], got {checks.shown(probability)}")
        times, power = math.frexp(checks.as_double(n * Fraction(p)))
    else:
        eta, gamma = checks.real("shape", shape), checks.real("stopping", stopping)
        if not -1.0 < eta < math.inf:
            raise ValueError(f"shape must be finite and above -1, got {checks.shown(shape)}")
        if not 0.0 < gamma < 1.0:
            raise ValueError(f"stopping must lie in (0, 1), got {checks.shown(stopping)}")
        times, power = _mean(eta, gamma)
    if not callable(profile):
        raise ValueError(f"profile must be a function of epsilon, got {checks.shown(profile)}")
    profile = Guarded(profile)
    inner = np.concatenate([[0.0], np.geomspace(1e-6, max(at, 1e-5), GRID - 1)])
    found = checks.real_array("profile(epsilon)", profile(inner), 0.0, 1.0)
    if found.shape != inner.shape:
        raise ValueError(f"profile must keep the shape of its argument, got {found.shape}")
    with np.errstate(over="ignore"):
        if word == "poisson":
            cost = np.ldexp(times * (fn.expm1(inner) + found), power)
        elif word == "binomial":
            apart = found * fn.exp(-inner) - fn.expm1(-inner)
            with np.errstate(divide="ignore", invalid="ignore"):
                cost = (n - 1) * fn.log1p(p * apart / (1.0 - p)) if n > 1 else 0.0 * inner
            cost = np.where(np.isnan(cost), np.inf, cost)
        else:
            more = fn.expm1(inner) + found / gamma * (1.0 - gamma)
            cost = fn.log1p(more)
            beyond = np.isinf(more)  # γ is below 1e-308 there, and 1 - γ is 1
            cost[beyond] = fn.logaddexp(inner[beyond], fn.log(found[beyond]) - fn.log(gamma))
            cost = (eta + 1.0) * cost
    costs = (inner > 0.0) | (found > 0.0)
    left = at - np.where(costs, cost * (1.0 + SLACK) + LOST, 0.0)
    left = np.where(costs, left * (1.0 - 2.0 * UNIT), left)
    asked = left >= 0.0
    if not asked.any():
        return 1.0
    deltas = checks.real_array("profile(epsilon)", profile(left[asked]), 0.0, 1.0)
    least, lower = math.frexp(deltas.min())
    if least == 0.0:
        return 0.0
    if power + lower > 1:  # both parts are at least 1/2
        return 1.0
    return min(1.0, math.ldexp(times * least * (1.0 + SLACK), power + lower) + LOST)


NEEDED = {
    "poisson": ("mean",),
    "geometric": ("stopping",),
    "negative_binomial": ("shape", "stopping"),
    "binomial": ("number", "probability"),
    "fixed": ("number",),
}


def check_runs(runs: str, given: dict[str, Any]) -> None:
    """Refuse parameters that a law of runs does not take, and missing ones."""
    needed = NEEDED[runs]
    wrong = [name for name, value in given.items() if (value is None) == (name in needed)]
    if wrong:
        others = [name for name in given if name not in needed]
        more = f", and none of {', '.join(others)}" if others else ""
        raise ValueError(f"runs {runs!r} needs {' and '.join(needed)}{more}; check {wrong[0]}")


def _mean(eta: float, gamma: float) -> tuple[float, int]:
    """Mean of the truncated negative binomial law as (m, e) for m 2^e, since it may overflow."""
    log = fn.log(gamma)
    part, power = math.frexp(gamma)  # divided by at the end
    if abs(eta * log) < 1.0:  # 1 - γ^η over η, whose limit at 0 is -log γ
        share = -fn.expm1(eta * log) / eta if abs(eta * log) > 1e-300 else -log
        mean = (1.0 - gamma) / share
    elif eta <= -0.5:  # 1 + η is exact, and its power far above γ and a normal double
        mean = (1.0 - gamma) * (eta / (gamma - fn.power(gamma, 1.0 + eta)))
        part, power = 1.0, 0
    else:  # γ^η is below 2^538
        mean = (1.0 - gamma) * (eta / (1.0 - fn.power(gamma, eta)))
    mean, more = math.frexp(mean)
    mean, last = math.frexp(mean / part)
    return mean, more + last - power


def stopping_of(mean: float, shape: float) -> float:
    """γ of the truncated negative binomial law of a mean, rounded down: its mean is no smaller."""
    if not 1.0 < checks.real("mean", mean) < math.inf:
        raise ValueError(f"mean must be finite and above 1, got {checks.shown(mean)}")
    if not -1.0 < checks.real("shape", shape) < math.inf:
        raise ValueError(f"shape must be finite and above -1, got {checks.shown(shape)}")

    if shape == 1.0:  # geometric
        near = 1.0 / mean
        return near if Fraction(near) * Fraction(mean) <= 1 else math.nextafter(near, 0.0)

    def reaches(log_gamma: Any) -> bool:
        part, power = _mean(shape, fn.exp(float(log_gamma)))
        return power > 1024 or math.ldexp(part, power) >= mean

    if not reaches(-LARGEST):
        raise ValueError(
            f"mean must be reached by a law of runs of shape {shape!r}, got {checks.shown(mean)}"
        )
    low, _ = bisected(reaches, -LARGEST, -(2.0**-60))
    # a mean is off by 2e-14 of it at most, and log(mean) has a slope in log(γ) of at least half of
    # min(1, 1 + η)
    slack = 2.0**-43 / min(1.0 + shape, 1.0)
    return fn.exp(float(low) - slack)
