"""Choices and histograms by noise against quadrature of other code, drawn queries and samples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from outcomes import chain, hockey_stick
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm
from thorough import ALL

import pyengine as pe


def log_win(gaps: Any) -> float:
    """Log probability that a query beats the others, whose means lie so much below its own."""
    gaps = np.asarray(gaps, dtype=float)

    def log_of(z: float) -> float:
        return -0.5 * z * z + float(log_ndtr(gaps + z).sum())

    z = np.linspace(-40.0, 40.0, 4001)
    middle = z[int(np.argmax([log_of(x) for x in z]))]
    top = log_of(middle)
    found = quad(
        lambda x: math.exp(log_of(x) - top),
        middle - 12.0,
        middle + 12.0,
        points=[middle - 2.0, middle, middle + 2.0],
        epsabs=0.0,
        epsrel=1e-12,
        limit=200,
    )[0]
    return top + math.log(found / math.sqrt(2.0 * math.pi))


def test_noisy_max_is_the_largest_log_ratio() -> None:
    """Of drawn queries none has a larger one, and those at the ends of the span attain it."""
    rng = np.random.default_rng(2)
    for _ in range(300 if ALL else 5):
        noise, span = float(10.0 ** rng.uniform(-0.3, 1.3)), float(10.0 ** rng.uniform(-0.7, 1.0))
        number = int(rng.integers(2, 7))
        epsilon = float(pe.report_noisy_max(noise, number, span=span).epsilon)
        ends = np.full(number - 1, -span / noise)
        moved = 2.0 * min(1.0, span) / noise
        truth = log_win(ends + moved) - log_win(ends)
        assert truth * (1.0 - 1e-9) <= epsilon <= truth * (1.0 + 1e-9)
        for _ in range(3):
            first = rng.uniform(0.0, span, number)
            second = np.clip(first + rng.choice([-1.0, 0.3, 1.0], number), 0.0, span)
            for i in range(number):
                ratio = log_win(np.delete((first[i] - first) / noise, i)) - log_win(
                    np.delete((second[i] - second) / noise, i)
                )
                assert abs(ratio) <= epsilon * (1.0 + 1e-9)


def test_noisy_max_of_many_queries() -> None:
    """Proven ends lie beside each other; more queries and less noise leak more."""
    values = [float(pe.report_noisy_max(1.0, 10**n, span=5).epsilon) for n in range(1, 8)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(
        log_win_of_equal(-3.0, 10**7) - log_win_of_equal(-5.0, 10**7), rel=1e-9
    )
    assert pe.report_noisy_max("1/2", 10, span="5/2") == pe.report_noisy_max(0.5, 10, span=2.5)
    run = pe.report_noisy_max(3.0, 2, span=100)
    assert pe.delta(run, 10.0) > 1e-3 > 1e-20 > pe.delta(run, float(run.epsilon))


def log_win_of_equal(gap: float, number: int) -> float:
    z = np.linspace(-5.0, 15.0, 400_001)
    logs = -0.5 * z * z + (number - 1) * log_ndtr(gap + z)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) * float(z[1] - z[0]))


def test_histograms_above_a_threshold_dominate_their_pairs() -> None:
    """j keys of one record alone and k - j shared ones, by the definition of a profile."""
    rng = np.random.default_rng(6)
    for _ in range(300 if ALL else 20):
        noise, keys = float(rng.uniform(0.5, 10.0)), int(rng.integers(1, 6))
        threshold = 1.0 + noise * float(rng.uniform(-1.0, 6.0))
        run = pe.thresholded_histogram(noise, threshold, keys=keys)
        epsilon = float(rng.uniform(0.0, 3.0))
        found = pe.delta(run, epsilon)
        for alone in range(keys + 1):
            delta = -math.expm1(alone * norm.logcdf((threshold - 1.0) / noise))
            mu = math.sqrt(keys - alone) / noise
            shared = 0.0
            if mu:
                shared = norm.cdf(0.5 * mu - epsilon / mu)
                shared -= math.exp(epsilon) * norm.cdf(-0.5 * mu - epsilon / mu)
            truth = delta + (1.0 - delta) * shared
            assert found >= truth * (1.0 - 1e-9) - 1e-15
        whole = -math.expm1(keys * norm.logcdf((threshold - 1.0) / noise))
        mu = math.sqrt(keys) / noise
        shared = norm.cdf(0.5 * mu - epsilon / mu)
        shared -= math.exp(epsilon) * norm.cdf(-0.5 * mu - epsilon / mu)
        assert found == pytest.approx(whole + (1.0 - whole) * shared, rel=1e-9, abs=1e-15)
    far = pe.thresholded_histogram(1.0, 37.0)
    (delta,) = [step.delta for step, _ in pe.mechanisms.steps_of(far) if hasattr(step, "delta")]
    assert norm.sf(36.0) <= delta <= norm.sf(36.0) * (1.0 + 1e-10)
    for low in (-100.0, "-1e300"):
        assert pe.delta(pe.thresholded_histogram(1.0, low), 5.0) == 1.0
    assert pe.thresholded_histogram("1/2", "10") == pe.thresholded_histogram(0.5, 10.0)


def answers(queries: Any, noise: float, threshold: float) -> Any:
    """Probabilities of the first query above a threshold at 0, and of none, as sums."""
    z = np.linspace(-9.0, 9.0, 1501)
    weight = np.exp(-0.5 * z * z) * (z[1] - z[0])
    x = (np.asarray(queries)[:, None] - threshold * z) / noise
    below = np.cumprod(norm.cdf(-x), axis=0)
    first = norm.cdf(x) * np.vstack([np.ones(z.size), below[:-1]])
    return np.append(first, below[-1:], axis=0) @ weight / math.sqrt(2.0 * math.pi)


def test_the_first_above_a_threshold_leaks_less() -> None:
    """Of drawn queries and neighbours, in both orders, one side and two."""
    rng = np.random.default_rng(11)
    nearest = 0.0
    for _ in range(1000 if ALL else 12):
        noise, threshold = 10.0 ** rng.uniform(-0.3, 1.0, 2)
        count, sides = int(rng.integers(1, 7)), int(rng.integers(1, 3))
        step = pe.AboveThreshold(noise, threshold, count, sides)
        epsilon = 10.0 ** rng.uniform(-2.0, 0.0) / min(noise, threshold)
        found = pe.delta(step, epsilon)
        for _ in range(10):
            first = rng.normal(size=count) * rng.choice([0.3, 3.0]) * noise - rng.choice([0, 2])
            move = rng.choice([-1.0, 1.0], count) if sides == 2 else rng.integers(0, 2, count)
            second = first + move * rng.choice([0.4, 1.0, 1.0])
            p, q = (answers(x, noise, threshold) for x in (first, second))
            assert p.sum() == pytest.approx(1.0, rel=1e-9)
            for one, other in ((p, q), (q, p)):
                truth = hockey_stick(one, other, epsilon)
                assert truth <= found * (1.0 + 1e-9) + 1e-12
                nearest = max(nearest, truth / max(found, 1e-9))
    assert nearest > 0.2  # it is no idle bound


def test_the_profile_of_the_first_above_a_threshold() -> None:
    """The closed formula, in both orders together."""
    rng = np.random.default_rng(12)
    for _ in range(300 if ALL else 8):
        noise, threshold = 10.0 ** rng.uniform(-0.2, 2.0, 2)
        count, sides = int(10.0 ** rng.uniform(0.0, 6.0)), int(rng.integers(1, 3))
        mu = math.hypot(1.0 / threshold, sides / noise)
        places = np.linspace(0.0, mu * (0.5 * mu + 10.0 + 0.5 * math.log(count)), 4001)
        p = np.minimum(norm.cdf(0.5 * mu - places / mu), 1.0 / (count + 1))
        values = (count + 1) * (p - np.exp(places) * norm.cdf(norm.ppf(p) - mu))
        t, mirrored = np.exp(-places[:0:-1]), values[:0:-1]
        whole = np.append(t, np.exp(places)), np.append(1.0 - t + t * mirrored, values)
        hull = chain(zip(*whole, strict=True))  # profiles are convex in e^ε
        epsilon = float(mu * (0.5 * mu + rng.uniform(-0.5 * mu, 6.0)))
        truth = np.interp(math.exp(epsilon), *zip(*hull, strict=True))
        found = pe.delta(pe.AboveThreshold(noise, threshold, count, sides), epsilon, bounds=True)
        assert truth * (1.0 - 1e-3) - 1e-13 <= found.lower
        assert found.upper <= truth * (1.0 + 1e-3) + 1e-13
    fewer, more = (
        pe.epsilon(pe.AboveThreshold(8.0, 4.0, d).composed(3), 1e-6) for d in (10, 10**4)
    )
    assert fewer < more < 2.0 * fewer
    assert pe.AboveThreshold("8", 4.0, 3).multiplier == 8


def test_permute_and_flip_by_all_orders() -> None:
    """Probabilities of each item, over all orders of the items, of scores that move by 1."""
    rng, nearest = np.random.default_rng(13), 0.0
    for _ in range(300 if ALL else 20):
        number, epsilon = int(rng.integers(2, 6)), float(10.0 ** rng.uniform(-1.5, 1.0))
        scores = rng.normal(size=number) * float(rng.choice([0.3, 3.0]))
        laws = []
        for moved in (scores, scores + rng.choice([-1.0, 0.3, 1.0], number)):
            heads = np.exp(0.5 * epsilon * (moved - moved.max()))
            law = np.zeros(number)
            for turns in itertools.permutations(range(number)):
                left = 1.0
                for item in turns:
                    law[item] += left * heads[item]
                    left *= 1.0 - heads[item]
            laws.append(law / law.sum())
        run = pe.permute_and_flip(epsilon)
        for at in (0.0, 0.5 * epsilon, 0.95 * epsilon):
            found = pe.delta(run, at)
            for one, other in (laws, laws[::-1]):
                truth = hockey_stick(one, other, at)
                assert truth <= found * (1.0 + 1e-9) + 1e-15
                nearest = max(nearest, truth / found)
    assert nearest > 0.5  # it is no idle bound


def test_votes_of_teachers_by_their_noise() -> None:
    """The two votes that one teacher moves: one Gaussian of the distance √2, by its closed form."""
    rng = np.random.default_rng(14)
    for _ in range(300 if ALL else 20):
        noise, queries = float(10.0 ** rng.uniform(0.0, 2.5)), int(10.0 ** rng.uniform(0.0, 3.0))
        mu = math.sqrt(2.0 * queries) / noise
        epsilon = float(rng.uniform(0.0, 3.0)) * mu
        truth = norm.cdf(0.5 * mu - epsilon / mu)
        truth -= math.exp(epsilon) * norm.cdf(-0.5 * mu - epsilon / mu)
        found = pe.delta(pe.pate_noisy_max(noise, queries), epsilon)
        assert found == pytest.approx(truth, rel=1e-9, abs=1e-14)


def test_names() -> None:
    assert pe.permute_and_flip("0.1") == pe.GenericMechanism("0.1")
    run = pe.pate_noisy_max(100.0, 50)
    assert pe.epsilon(run, 1e-5) == pytest.approx(
        pe.epsilon(pe.GaussianMechanism(100.0 / math.sqrt(2.0)).composed(50), 1e-5), rel=1e-12
    )
    for made, words, known in (
        (pe.permute_and_flip(1.0), "permute-and-flip", "upper bound"),
        (pe.report_noisy_max(1.0, 3, span=2), "noisy max of 3 queries", "upper bound"),
        (run, "noisy maximum of votes", "upper bound"),
        (pe.thresholded_histogram(1.0, 5.0), "histogram above a threshold", "upper bound"),
    ):
        label = pe.mechanisms.label_of(made)[0]
        assert words in label.mechanism
        assert label.known == known
        assert pe.from_json(pe.to_json(made)) == made


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pe.report_noisy_max(0.0, 2, span=1), ValueError, "noise_multiplier must be pos"),
        (lambda: pe.report_noisy_max(1.0, 1, span=1), ValueError, "integer >= 2"),
        (lambda: pe.report_noisy_max(1.0, 10**9, span=1), ValueError, "queries must be at most"),
        (lambda: pe.report_noisy_max(1.0, 2, span=0), ValueError, "span must be positive"),
        (lambda: pe.report_noisy_max(1e-3, 2, span=11), pe.AccuracyError, "below 10.4"),
        (lambda: pe.report_noisy_max(0.01, 2, span=90), pe.AccuracyError, "more noise"),
        (lambda: pe.permute_and_flip(-1), ValueError, "epsilon"),
        (lambda: pe.pate_noisy_max(-1, 2), ValueError, "noise_multiplier must be positive"),
        (lambda: pe.AboveThreshold(1.0, 0.0, 3), ValueError, "threshold_noise must be positive"),
        (lambda: pe.AboveThreshold(1.0, 1.0, 0), ValueError, "queries must be an integer >= 1"),
        (lambda: pe.AboveThreshold(1.0, 1.0, 10**9), ValueError, "queries must be at most"),
        (lambda: pe.AboveThreshold(1.0, 1.0, 3, 3), ValueError, "sides must be 1 or 2, got 3"),
        (lambda: pe.delta(pe.AboveThreshold(0.01, 1.0, 3), 1), pe.AccuracyError, "more noise"),
        (lambda: pe.thresholded_histogram(1.0, math.nan), ValueError, "threshold"),
        (lambda: pe.thresholded_histogram(1.0, -math.inf), ValueError, "threshold must be finite"),
        (lambda: pe.thresholded_histogram(1.0, 3.0, keys=0), ValueError, "keys must be an integer"),
    ],
)
def test_wrong_input(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
