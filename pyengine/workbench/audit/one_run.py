"""Lower bounds from one training run with many canaries, each included by a fair coin.

The auditor guesses "in" or "out" for n = ``guesses`` of the m = ``canaries``.  Let pᵢ be the
probability of i correct guesses, r_c = Σ_{i >= c} i pᵢ/m and h_c = Σ_{i >= c} (n - i) pᵢ/m.
Flipping the coin of one canary turns "this one guessed correctly, at least c correct in all" into
"this one guessed wrongly, at least c - 1 correct in all".  Since γ = 1 - T of the mechanism (for
both orders) is concave, r_c <= γ(h_{c - 1}).  As r_{c - 1} - r_c = (c - 1)/(n - c + 1)
(h_{c - 1} - h_c), a probability τ of c or more correct guesses implies a lower bound on r_0 + h_0,
which is n/m; a τ whose bound exceeds n/m is impossible.  The bound is least if all of τ is at
exactly c.
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

LEVELS = 1500  # levels in the table of a trade-off function
ROUNDS, PLACES = 7, 33  # rounds of a search and points in each: a round divides the range by 32
LARGEST = 64.0  # largest ε and μ tried
MOST = 10**5  # most canaries


class OneRun(NamedTuple):
    """Lower bounds from one training run; each holds with the confidence by itself.

    Parameters
    ----------
    epsilon : float
        Lower bound on ε of (ε, δ)-DP, by the binomial test of Steinke et al.
    mu : float
        Lower bound on μ of Gaussian differential privacy, by the recursion of Mahloujifar et al.
    epsilon_of_mu : float
        ε at δ of a Gaussian mechanism with this μ: a lower bound for mechanisms whose trade-off
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
        Number of correct guesses, in [0, ``guesses``].
    guesses : int
        Number of canaries for which a guess was made, fixed beforehand, in [1, ``canaries``].
    canaries : int
        Number of records that were each included by an independent fair coin, in [1, 10^5].
    delta : float
        δ in [0, 1].
    confidence : float
        Confidence level in (0, 1).

    Returns
    -------
    OneRun
        The bounds, computed in floating point to about 1e-9.

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
    """P-value of the number of correct guesses, if the trade-off function is as claimed.

    Parameters
    ----------
    correct, guesses, canaries : int
        As in `one_run`.
    against : Mechanism or callable
        The claim: a mechanism, or a trade-off function for both orders, that is, T(α) for arrays of
        α in [0, 1], convex and its own inverse.

    Returns
    -------
    float
        Upper bound, in (0, 1], of the probability of at least this many correct guesses; the claim
        is refuted with confidence 1 minus this value.

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
        first = int(np.argmax(refuted))  # all larger levels are refuted, too
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
    """Lower bound of the largest parameter that is refuted; 0 if none is."""
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
    """P(at least v correct) <= P(X >= v) + 2 m δ max over i of P(v - i <= X < v)/i.

    X is binomial with success probability e^ε/(1 + e^ε), v the number of correct guesses.
    """
    k = np.arange(named + 1, dtype=np.float64)
    # log factorials, summed in double-double
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
    """Whether each level τ is impossible as P(at least ``right`` correct); see the module."""
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
    """Lower bound of the inverse of γ: κ with γ(κ) = g is T(1 - g), as T is its own inverse.

    Between levels a convex function lies above the extended chords of the neighbouring intervals.
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
