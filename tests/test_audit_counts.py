"""Audits from counts, reversed scores, and the area under the curve."""

from __future__ import annotations

import math
import re
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm
from thorough import ALL

import pyengine as pe
from pyengine import audit
from pyengine.workbench.audit.report import Finding, report

mp = mpmath.MPContext()
mp.dps = 30


def binomial_tail(successes: int, trials: int, rate: Any) -> Any:
    """P(at least so many)."""
    rate = mp.mpf(rate)
    return mp.fsum(
        mp.binomial(trials, k) * rate**k * (1 - rate) ** (trials - k)
        for k in range(successes, trials + 1)
    )


@pytest.mark.parametrize(
    ("right", "runs", "wrong", "others"),
    [(40, 100, 1, 100), (7, 9, 0, 30), (90, 90, 3, 50), (0, 5, 5, 5), (50, 100, 48, 90)],
)
def test_rates_are_those_of_clopper_and_pearson(
    right: int, runs: int, wrong: int, others: int
) -> None:
    found = audit.count_audit(right, runs, wrong, others, confidence=0.9)
    for (low, high), hits, trials in (
        (found.true_positive_rate, right, runs),
        (found.false_positive_rate, wrong, others),
    ):
        assert 0.0 <= low <= hits / trials <= high <= 1.0
        if hits > 0:
            assert float(binomial_tail(hits, trials, low)) == pytest.approx(0.025, rel=1e-9)
        if hits < trials:
            tail = 1 - binomial_tail(hits + 1, trials, high)
            assert float(tail) == pytest.approx(0.025, rel=1e-9)


def least_delta(true: tuple[float, float], false: tuple[float, float], epsilon: float) -> float:
    """Smallest δ for which some rates in both intervals are (ε, δ)-DP, as a linear program."""
    e = math.exp(epsilon)
    rows = [[1, -e, -1], [-e, 1, -1], [-1, e, -1], [e, -1, -1]]
    found = linprog([0, 0, 1], rows, [0, 0, e - 1, e - 1], bounds=[true, false, (0, 1)])
    assert found.success
    return float(found.fun)


def test_random_counts() -> None:
    """Ends by binomial tails, what they refute by a linear program over all rates between."""
    generator, told = np.random.default_rng(17), 0
    for _ in range(300 if ALL else 25):
        positives, negatives = (int(n) for n in generator.integers(1, 250, 2))
        rates = generator.beta(0.5, 0.5, 2)
        hits, alarms = (
            int(generator.binomial(n, rate))
            for n, rate in zip((positives, negatives), rates, strict=True)
        )
        level = float(generator.choice([0.5, 0.9, 0.999]))
        delta = float(generator.choice([0.0, 1e-5, 0.1]))
        epsilon = float(generator.choice([0.0, 0.3, 2.0]))
        found = audit.count_audit(
            hits, positives, alarms, negatives, delta=delta, epsilon=epsilon, confidence=level
        )
        true, false = found.true_positive_rate, found.false_positive_rate
        for (low, high), count, trials in ((true, hits, positives), (false, alarms, negatives)):
            ends = (low, count, 0), (1.0 - high, trials - count, 1)
            for end, successes, side in ends:
                if successes == 0:
                    assert (low, high)[side] == side
                    continue
                tail = binomial_tail(successes, trials, 1 - mp.mpf(high) if side else end)
                assert float(tail) == pytest.approx((1.0 - level) / 4.0, rel=1e-9)
        assert found.delta == pytest.approx(least_delta(true, false, epsilon), abs=1e-9)
        if found.epsilon > 0.0:
            told += 1
            assert least_delta(true, false, found.epsilon) == pytest.approx(delta, abs=1e-9)
        else:
            assert least_delta(true, false, 0.0) <= delta + 1e-9
        mu = max(
            norm.ppf(true[0]) - norm.ppf(false[1]), norm.ppf(false[0]) - norm.ppf(true[1]), 0.0
        )
        assert found.mu == pytest.approx(mu, rel=1e-9, abs=1e-12)
    assert told >= 8


@pytest.mark.parametrize("trials", [10**3, 10**6, 10**9, 10**12, 2**53])
def test_many_trials_without_an_error(trials: int) -> None:
    """What quantiles next to 1 leave of it was rounded: ε of 2^53 trials was 0.09 too large."""
    found = audit.count_audit(trials, trials, 0, trials, confidence=0.95)
    with mpmath.workdps(40):
        most = 1 - ((1 - mpmath.mpf(0.95)) / 4) ** (mpmath.mpf(1) / trials)
        epsilon = mpmath.log((1 - most) / most)
        assert most <= found.false_positive_rate[1] <= most + 2.0**-51
        assert epsilon - 2.0**-51 / most <= found.epsilon <= epsilon
        both = 1 - ((1 - mpmath.mpf(0.95)) / 2) ** (mpmath.mpf(1) / trials)
        assert audit.clopper_pearson(0, trials)[1] >= both


def test_bounds_by_hand() -> None:
    found = audit.count_audit(400, 1000, 10, 1000, delta=1e-5, epsilon=1.0)
    (true, most_true), (least_false, false) = found.true_positive_rate, found.false_positive_rate
    assert found.epsilon == pytest.approx(math.log((true - 1e-5) / false), rel=1e-12)
    assert found.delta == pytest.approx(true - math.e * false, rel=1e-12)
    assert found.mu == pytest.approx(
        float(mp.sqrt(2) * (mp.erfinv(2 * true - 1) - mp.erfinv(2 * false - 1))), rel=1e-9
    )
    assert not found.is_reversed
    turned = audit.count_audit(10, 1000, 400, 1000, delta=1e-5, epsilon=1.0)
    assert turned.is_reversed
    assert turned[2:5] == found[2:5]
    assert (turned.true_positive_rate, turned.false_positive_rate) == (
        found.false_positive_rate,
        found.true_positive_rate,
    )
    assert least_false < false < true < most_true
    # the complements: few misses, which the rates of positives would not show
    missed = audit.count_audit(1000, 1000, 600, 1000)
    assert missed.epsilon == pytest.approx(
        math.log((1 - missed.false_positive_rate[1]) / (1 - missed.true_positive_rate[0])), rel=1e-9
    )
    nothing = audit.count_audit(5, 10, 5, 10, delta=0.5, epsilon=50.0)
    assert nothing[2:6] == (0.0, 0.0, 0.0, False)


def test_a_delta_without_epsilon_is_seen() -> None:
    """(0, δ): a record told with probability 0.3; no ε bounds that, and δ is found from below."""
    found = audit.count_audit(3000, 10_000, 0, 10_000, epsilon=3.0)
    assert 0.25 < found.delta < 0.3
    assert audit.count_audit(3000, 10_000, 0, 10_000, delta=0.31).epsilon == 0.0
    assert audit.count_audit(3000, 10_000, 0, 10_000, epsilon=800.0).delta == 0.0


def test_coverage() -> None:
    """Of repeated audits of what is known, no more are wrong than the confidence says."""
    generator = np.random.default_rng(11)
    noise, runs, confidence = pe.GaussianMechanism(1.0), 60, 0.8
    threshold = 0.5
    true, false = (float(pe.special.ndtr(x)) for x in (1.0 - threshold, -threshold))
    epsilon, delta = float(pe.epsilon(noise, 0.05)), float(pe.delta(noise, 0.5))
    wrong = 0
    repeats = 400
    for hits, alarms in zip(
        generator.binomial(runs, true, repeats),
        generator.binomial(runs, false, repeats),
        strict=True,
    ):
        found = audit.count_audit(
            int(hits), runs, int(alarms), runs, delta=0.05, epsilon=0.5, confidence=confidence
        )
        wrong += found.epsilon > epsilon or found.delta > delta or found.mu > 1.0
    assert wrong <= repeats * (1 - confidence)


@pytest.mark.parametrize(
    ("arguments", "words", "message"),
    [
        ((1, 0, 0, 1), {}, "positives must be an integer in [1, 2^53], got 0"),
        ((2, 1, 0, 1), {}, "true_positives must be an integer in [0, 1], got 2"),
        ((1, 2, -1, 4), {}, "false_positives must be an integer in [0, 4], got -1"),
        ((1.5, 2, 0, 4), {}, "true_positives must be an integer in [0, 2], got 1.5"),
        ((1, 2, 0, 4), {"delta": 2}, "delta must"),
        ((1, 2, 0, 4), {"epsilon": -1}, "epsilon must"),
        ((1, 2, 0, 4), {"confidence": 1.0}, "confidence must"),
    ],
)
def test_wrong_arguments(arguments: Any, words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        audit.count_audit(*arguments, **words)


def test_reversed_scores_are_noticed() -> None:
    generator = np.random.default_rng(3)
    null, alternative = generator.normal(0, 1, 3000), generator.normal(1, 1, 3000)
    assert not audit.empirical_trade_off(null, alternative).is_reversed
    curve = audit.empirical_trade_off(-null, -alternative)
    assert curve.is_reversed
    same = audit.empirical_trade_off(null, generator.normal(0, 1, 3000))
    assert not same.is_reversed
    text, _ = report([Finding("attack", curve, lambda alpha: 1 - alpha)])
    assert "small scores speak for the record, significantly: negate them" in text


def test_auroc() -> None:
    assert audit.auroc([0, 1, 2, 3], [1, 2, 3, 4]).value == (3.5 + 2.5 + 1.5 + 4) / 16
    generator = np.random.default_rng(5)
    for mu in (0.0, 0.3, 1.0, 3.0):
        truth = float(mp.ncdf(mu / mp.sqrt(2)))
        inside = 0
        for _ in range(40):
            null, alternative = generator.normal(0, 1, 400), generator.normal(mu, 1, 300)
            found = audit.auroc(null, alternative, confidence=0.9)
            pairs = (alternative[:, None] > null[None, :]).mean()
            assert found.value == pytest.approx(float(pairs), rel=1e-12)
            assert found.lower <= found.value <= found.upper
            inside += found.lower <= truth <= found.upper
        assert inside >= 36
        turned = audit.auroc(-null, -alternative)
        assert turned.value == pytest.approx(1.0 - found.value, rel=1e-12)
        assert turned.is_reversed is (mu >= 1.0)
    ties = audit.auroc([0, 0, 1], [0, 1, 1])
    assert ties.value == pytest.approx(2 / 3)
    apart = audit.auroc(np.zeros(2000), np.ones(2000))
    assert apart.value == 1.0
    assert 0.98 < apart.lower <= apart.upper == 1.0
