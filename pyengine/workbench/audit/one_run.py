"""Lower bounds from one training run with many canaries, each in or out by a fair coin.

An auditor names ``guesses`` of the ``canaries`` and says in or out for each.  Let pᵢ be the
probability of i correct guesses, r_c = Σ_{i >= c} i pᵢ/m and h_c = Σ_{i >= c} (n - i) pᵢ/m for n
guesses and m canaries.  Flipping the coin of one canary turns a release with it guessed rightly, at
least c right in all, into one with it guessed wrongly and at least c - 1 right.  So r_c <=
γ(h_{c - 1}), with γ = 1 - T of the mechanism in both orders, by the concavity of γ.  As
r_{c - 1} - r_c = (c - 1)/(n - c + 1) (h_{c - 1} - h_c), a probability τ of c or more right ones
forces r_0 + h_0 up; it is n/m, and a τ that forces more is impossible.  All of τ at exactly c
forces least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyengine import api
from pyengine._support import checks
from pyengine.mechanisms import GaussianMechanism, Mechanism
from pyengine.numerics import functions as fn
from pyengine.numerics.wide import running_sums
from pyengine.special import log_ndtr, ndtr, ndtri
from pyengine.workbench.audit._inputs import FloatArray, probability_level

__all__ = ["OneRun", "one_run", "one_run_p_value"]

LEVELS = 1500  # of the table of a trade-off function
ROUNDS, PLACES = 7, 33  # of searches, each of which divides a range by 32
LARGEST = 64.0  # of ε and μ
MOST = 10**5  # canaries


class OneRun(NamedTuple):
    """What one training run proves, each bound at the level of confidence by itself.

    Parameters
    ----------
    epsilon : float
        ε of (ε, δ)-DP that is refuted, by the binomial test of Steinke et al.
    mu : float
        μ of Gaussian differential privacy that is refuted, by the recursion of Mahloujifar et al.
    epsilon_of_mu : float
        ε at δ of a Gaussian mechanism with that μ: a lower bound for mechanisms whose trade-off
        function is Gaussian.
    """

    epsilon: float
    mu: float
    epsilon_of_mu: float


def one_run(
    correct: int, guesses: int, canaries: int, *, delta: float = 1e-5, confidence: float = 0.95
) -> OneRun:
    """Lower bounds on privacy parameters from one training run.

    Parameters
    ----------
    correct : int
        Number of guesses that were right, in [0, ``guesses``].
    guesses : int
        Number of canaries that the auditor named, fixed beforehand, in [1, ``canaries``].
    canaries : int
        Number of records that a fair coin put in or left out, each by itself, in [1, 10^5].
    delta : float
        In [0, 1].
    confidence : float
        In (0, 1).

    Returns
    -------
    OneRun
        Bounds that hold with this confidence, in floating point to about 1e-9.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, Privacy Auditing with One (1) Training Run (2023),
    arXiv:2305.08846, Theorem 5.2; S. Mahloujifar, L. Melis, K. Chaudhuri, Auditing f-Differential
    Privacy in One Run (2024), arXiv:2410.22235, Theorem 9.

    Examples
    --------
    >>> from pyengine import audit
    >>> [round(x, 3) for x in audit.one_run(correct=90, guesses=100, canaries=1000)]
    [1.626, 0.603, 2.456]
    """
    right, named, total = _counts(correct, guesses, canaries)
    tolerated = float(checks.probability("delta", delta))
    level = 1.0 - probability_level("confidence", confidence)
    epsilon = _largest(
        lambda e: _binomial_p_values(right, named, total, e, tolerated) <= level, LARGEST
    )
    mu = _largest(
        lambda m: _rejects(right, named, total, _gaussian(m), np.full(m.shape, level)), LARGEST
    )
    of_mu = 0.0
    if mu > 0.0:
        of_mu = float(api.epsilon(GaussianMechanism(1.0 / mu), tolerated, adjacency="add"))
    return OneRun(epsilon, mu, of_mu)


def one_run_p_value(
    correct: int,
    guesses: int,
    canaries: int,
    against: Mechanism | Callable[[FloatArray], Any],
) -> float:
    """How improbable so many right guesses are, if the trade-off function is as claimed.

    Parameters
    ----------
    correct, guesses, canaries : int
        As in `one_run`.
    against : Mechanism or callable
        What is claimed: a mechanism, or a trade-off function of both orders, T(α) for arrays of α
        in [0, 1], convex and its own inverse.

    Returns
    -------
    float
        An upper bound of the probability of at least so many right guesses, in (0, 1]; the claim is
        refuted with confidence 1 minus this value.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    S. Mahloujifar, L. Melis, K. Chaudhuri, Auditing f-Differential Privacy in One Run (2024).

    Examples
    --------
    >>> import pyengine as pe
    >>> claimed = pe.dp_sgd(1.0, 0.01, 1000)
    >>> p = pe.audit.one_run_p_value(correct=90, guesses=100, canaries=1000, against=claimed)
    >>> p < 0.05
    True
    """
    right, named, total = _counts(correct, guesses, canaries)
    inverse = _table(against)
    low, high = -700.0, 0.0
    for _ in range(ROUNDS):
        logs = np.linspace(low, high, PLACES)
        refuted = _rejects(right, named, total, inverse, fn.exp(logs))
        if not refuted.any():
            return min(1.0, fn.exp(high))
        first = int(np.argmax(refuted))  # what forces too much goes on doing so
        if first == 0:
            return fn.exp(low)
        low, high = float(logs[first - 1]), float(logs[first])
    return fn.exp(high)


def _counts(correct: Any, guesses: Any, canaries: Any) -> tuple[int, int, int]:
    total = checks.count("canaries", canaries, least=1, most=MOST)
    named = checks.count("guesses", guesses, 1, total, "canaries = ")
    right = checks.count("correct", correct, 0, named, "guesses = ")
    return right, named, total


def _largest(refuted: Callable[[FloatArray], Any], top: float) -> float:
    """Largest parameter that is refuted, from below; 0 where none is."""
    low, high = 0.0, top
    if not refuted(np.zeros(1))[0]:
        return 0.0
    for _ in range(ROUNDS):
        places = np.linspace(low, high, PLACES)
        kept = places[np.logical_and.accumulate(refuted(places))]
        low = float(kept[-1])
        high = min(high, low + (places[1] - places[0]))
    return low


def _binomial_p_values(
    right: int, named: int, total: int, epsilons: FloatArray, delta: float
) -> FloatArray:
    """P(at least v right) is at most P(X >= v) + 2 m δ max over i of P(v - i <= X < v)/i.

    X is binomial with success probability e^ε/(1 + e^ε), v the number of right guesses.
    """
    k = np.arange(named + 1, dtype=np.float64)
    # logarithms of factorials, to as many digits as those of the numbers have
    factorials = np.append(0.0, running_sums(np.array([fn.log(k[1:]), np.zeros(named)]))[0])
    choices = factorials[-1] - factorials - factorials[::-1]
    values = []
    for epsilon in epsilons.tolist():
        wrong = fn.log1p(fn.exp(-epsilon))
        pmf = fn.exp(choices - k * wrong - (named - k) * (epsilon + wrong))
        worst = 0.0
        if right:
            worst = float((np.cumsum(pmf[:right][::-1]) / np.arange(1, right + 1)).max())
        values.append(min(1.0, float(pmf[right:].sum()) + 2.0 * total * delta * worst))
    return np.array(values)


def _rejects(
    right: int,
    named: int,
    total: int,
    inverse: Callable[[FloatArray], FloatArray],
    levels: FloatArray,
) -> Any:
    """Whether each probability of so many right guesses forces more than all probability."""
    r, h = levels * right / total, levels * (named - right) / total
    for i in range(right - 1, -1, -1):
        grown = np.maximum(h, inverse(np.minimum(r, 1.0)))
        r, h = r + i / (named - i) * (grown - h), grown
    return r + h > named / total * (1.0 + 1e-12)


def _gaussian(mu: FloatArray) -> Callable[[FloatArray], FloatArray]:
    def inverse(gamma: FloatArray) -> FloatArray:
        return np.asarray(ndtr(np.asarray(ndtri(gamma)) - mu))

    return inverse


def _table(against: Any) -> Callable[[FloatArray], FloatArray]:
    """κ with γ(κ) = g for both orders, from below: T is its own inverse, so it is T(1 - g).

    Between levels a convex function lies above the chords of the neighbouring intervals, extended.
    """
    scores = np.linspace(-38.0, 8.2, LEVELS)
    gamma = np.unique(np.concatenate([[0.0], fn.exp(np.asarray(log_ndtr(scores))), [1.0]]))
    found = api.trade_off_function("against", against)(1.0 - gamma)
    if found.shape != gamma.shape:
        raise ValueError(f"against must keep the shape of its argument, got {found.shape}")
    slopes = np.diff(found) / np.diff(gamma)

    def inverse(asked: FloatArray) -> FloatArray:
        cell = np.clip(np.searchsorted(gamma, asked, side="right") - 1, 0, gamma.size - 2)
        left = found[cell] + slopes[np.maximum(cell - 1, 0)] * (asked - gamma[cell])
        after = np.minimum(cell + 1, slopes.size - 1)
        right = found[cell + 1] - slopes[after] * (gamma[cell + 1] - asked)
        low = np.maximum(
            np.where(cell > 0, left, 0.0), np.where(cell + 1 < slopes.size, right, 0.0)
        )
        return np.asarray(np.maximum(low, 0.0))

    return inverse
