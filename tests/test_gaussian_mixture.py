"""Mixtures of Gaussians against published digits, one-step quadrature and special cases."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
import thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import norm
from thorough import ALL
from truth import load

import pyengine as pe
from pyengine import reference
from pyengine.interop import from_dp_event
from pyengine.laws import mixture as laws
from pyengine.laws.mixture import GaussianMixtureLaw

ROWS = load("gaussian_mixture.json")
NAMES = {"delta": "delta", "gamma": "gamma_bound", "epsilon": "epsilon", "beta": "trade_off"}


def mechanism_of(row: dict[str, Any]) -> pe.Composition:
    mixture = pe.GaussianMixtureMechanism(row["sigma"], row["shifts"], row["weights"])
    return mixture.composed(row["steps"])


@pytest.mark.parametrize("row", ROWS)
def test_brackets_hold_the_published_digits(row: dict[str, Any]) -> None:
    question = getattr(pe, NAMES[row["question"]])
    found = question(
        mechanism_of(row), float(row["argument"]), adjacency=row["adjacency"], bounds=True
    )
    truth = float(row["value"])
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1.01e-4 * truth


@pytest.mark.parametrize("row", ROWS[:1])
def test_reference_has_the_published_digits(row: dict[str, Any]) -> None:
    question = getattr(reference, NAMES[row["question"]])
    digits = row["digits"] if ALL else 9
    value = question(mechanism_of(row), row["argument"], adjacency=row["adjacency"], digits=digits)
    assert value.certified
    with mpmath.workdps(60):
        truth = mpmath.mpf(row["value"])
        assert abs(value - truth) <= value.error + mpmath.mpf(10) ** -row["digits"] * truth
        assert value.error < mpmath.mpf(10) ** (1 - digits) * truth


def test_a_group_has_binomial_weights() -> None:
    assert pe.dp_sgd(2, "0.1", 100, group_size=2) == mechanism_of(ROWS[0])
    assert pe.dp_sgd(1.5, 0.1, 7, group_size=1) == pe.dp_sgd(1.5, 0.1, 7)


def test_one_record_is_poisson_sampling() -> None:
    mixture = pe.GaussianMixtureMechanism("1", ["0", "1"], ["0.99", "0.01"]).composed(1000)
    found = pe.gamma_bound(mixture, 1e-3, bounds=True)
    assert found.lower <= 0.004068447881142566 <= found.upper
    sampled = pe.GaussianMechanism("1").poisson_sampled("0.01")
    whole = pe.GaussianMixtureMechanism("1", ["1"], ["1"])
    assert whole.poisson_sampled("0.01").composed(1000) == mixture
    for epsilon in (0.0, 0.3):
        one = pe.delta(whole.poisson_sampled("0.01"), epsilon)
        assert one == pytest.approx(pe.delta(sampled, epsilon), rel=1e-11, abs=0)


def test_nothing_moves() -> None:
    nothing = pe.GaussianMixtureMechanism(1.0, [0], [1])
    assert pe.delta(nothing.composed(5), 0.0) == 0.0
    assert math.copysign(1.0, pe.epsilon(nothing, 0.0)) == 1.0
    both = nothing.composed(5) + pe.dp_sgd(1.0, 0.01, 10)
    assert pe.delta(both, 0.1) == pytest.approx(pe.delta(pe.dp_sgd(1.0, 0.01, 10), 0.1), rel=1e-9)


def one_step_profile(
    noise: Fraction, shifts: list[Fraction], weights: list[Fraction], epsilon: float, order: str
) -> Any:
    """H of one step from normal tails at the root of the likelihood ratio, at 40 digits."""
    with mpmath.workdps(40):
        means = [
            mpmath.mpf(c.numerator)
            / c.denominator
            / (mpmath.mpf(noise.numerator) / noise.denominator)
            for c in shifts
        ]
        masses = [mpmath.mpf(w.numerator) / w.denominator for w in weights]
        goal = mpmath.mpf(epsilon) * (1 if order == "remove" else -1)

        def loss(z: Any) -> Any:
            return mpmath.log(
                sum(w * mpmath.exp(c * z - c * c / 2) for c, w in zip(means, masses, strict=True))
            )

        low, high = mpmath.mpf(-400), mpmath.mpf(400)
        if loss(low) >= goal:  # the smallest loss is not reached
            return mpmath.mpf(0)
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) < goal else (low, middle)
        t = mpmath.exp(mpmath.mpf(epsilon))
        if order == "remove":
            above = sum(w * mpmath.ncdf(c - low) for c, w in zip(means, masses, strict=True))
            return above - t * mpmath.ncdf(-low)
        below = sum(w * mpmath.ncdf(low - c) for c, w in zip(means, masses, strict=True))
        return mpmath.ncdf(low) - t * below


@settings(max_examples=20, deadline=None)
@given(
    noise=st.floats(0.3, 20.0),
    shifts=st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True),
    raw=st.lists(st.integers(1, 10**6), min_size=5, max_size=5),
    epsilon=st.floats(0.0, 3.0),
    order=st.sampled_from(["add", "remove"]),
)
def test_one_step_against_normal_tails(
    noise: float, shifts: list[int], raw: list[int], epsilon: float, order: str
) -> None:
    parts = [Fraction(w, sum(raw[: len(shifts)])) for w in raw[: len(shifts)]]
    mixture = pe.GaussianMixtureMechanism(noise, shifts, parts)
    found = pe.delta(mixture, epsilon, adjacency=order, bounds=True)
    places = [Fraction(c) for c in mixture.shifts]
    weights = [Fraction(w) for w in mixture.weights]
    # where nothing moves the truth is 0, of which the difference leaves the last digit
    truth = max(one_step_profile(Fraction(noise), places, weights, epsilon, order), mpmath.mpf(0))
    assert found.lower <= truth <= found.upper
    assert found.value == pytest.approx(float(truth), rel=1e-9, abs=1e-13)
    # the lattice's own goal is 1e-4; its end masses make one step this narrow
    assert found.upper - found.lower <= 2e-7 * float(truth) + 1e-13


def test_larger_groups_leak_more() -> None:
    found = [pe.delta(pe.dp_sgd(1.5, 0.1, 5, group_size=k), 0.5, bounds=True) for k in range(1, 5)]
    for smaller, larger in pairwise(found):
        assert smaller.upper < larger.lower
    assert pe.gamma_bound(pe.dp_sgd(1.5, 0.1, 5, group_size=3), 0.2) > 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, [0, 1], [0.5, 0.6]), "weights must sum to 1"),
        ((1.0, [0, 1], ["0.5", "0.4999999999999999999"]), "weights must sum to 1"),
        ((1.0, [-1, 1], [0.5, 0.5]), "shifts must be finite and >= 0, got -1"),
        ((1.0, [0, 1], [1.0]), "one entry for each of 2 shifts, got 1"),
        ((1.0, [], []), "shifts must have at least one entry"),
        ((1.0, "01", [0.5, 0.5]), "shifts must be a sequence of numbers"),
        ((0.0, [0, 1], [0.5, 0.5]), "noise_multiplier must be positive"),
        ((1.0, [0, math.inf], [0.5, 0.5]), "shifts must be finite"),
        ((1.0, [0, 1], [1.5, -0.5]), r"weights must lie in \[0, 1\]"),
    ],
)
def test_wrong_input(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.GaussianMixtureMechanism(*arguments)


def test_what_is_not_defined() -> None:
    mixture = pe.GaussianMixtureMechanism(1.0, [0, 1], [0.5, 0.5])
    with pytest.raises(ValueError, match="cannot be sampled without replacement"):
        mixture.sampled_without_replacement(batch_size=1, dataset_size=2)
    with pytest.raises(ValueError, match="group_size"):
        pe.dp_sgd(1.0, 0.1, 10, group_size=0)


def random_mixture(rng: np.random.Generator) -> tuple[pe.GaussianMixtureMechanism, Any, Any]:
    """A mixture, its shifts in units of the noise and its weights, often mostly at rest."""
    count = int(rng.integers(1, 5))
    shifts = np.sort(rng.choice([0.0, 0.5, 1.0, 1.75, 2.0, 3.0], count, replace=False)) + (
        0.25 if count == 1 else 0.0
    )
    raw = rng.dirichlet(np.ones(count)) * np.where(
        np.arange(count), 10.0 ** rng.uniform(-3.0, 0.0), 1.0
    )
    made = pe.GaussianMixtureMechanism(10.0 ** rng.uniform(-0.3, 1.0), shifts, raw / raw.sum())
    noise = float(made.noise_multiplier)
    return made, np.array(made.shifts, float) / noise, np.array(made.weights, float)


def log_density(z: Any, means: Any, weights: Any) -> Any:
    """Of Σ wⱼ N(mⱼ, 1) over that of N(0, 1)."""
    terms = np.log(weights)[:, None] + means[:, None] * z - 0.5 * means[:, None] ** 2
    return np.logaddexp.reduce(terms, axis=0)


def test_other_records_move_it_the_other_way() -> None:
    """One step by normal tails; what moves less, or to whichever side, stays below."""
    rng = np.random.default_rng(5)
    for _ in range(300 if ALL else 12):
        mixture, shifts, weights = random_mixture(rng)
        epsilon = 10.0 ** rng.uniform(-2.0, 0.5)
        found = pe.delta(mixture, epsilon, adjacency="substitute", bounds=True)
        low, high = 0.0, 1e5
        for _ in range(90):
            z = 0.5 * (low + high)
            at = np.array([z])
            loss = log_density(at, shifts, weights) - log_density(at, -shifts, weights)
            low, high = (z, high) if loss[0] < epsilon else (low, z)
        truth = weights @ norm.sf(z - shifts) - math.exp(epsilon) * (weights @ norm.sf(z + shifts))
        assert found.lower * (1.0 - 1e-11) - 1e-15 <= truth <= found.upper * (1.0 + 1e-11) + 1e-15
        assert found.upper - found.lower <= 1e-8 * found.upper
        grid = np.linspace(-shifts[-1] - 9.0, shifts[-1] + 9.0, 4001)
        for _ in range(3):
            moves = [shifts * rng.uniform(-1.0, 1.0, shifts.size) for _ in range(2)]
            p, q = (np.exp(log_density(grid, m, weights) - 0.5 * grid**2) for m in moves)
            less = np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (grid[1] - grid[0])
            assert less / math.sqrt(2.0 * math.pi) <= found.upper * (1.0 + 1e-6) + 1e-12


def test_compositions_of_other_records() -> None:
    """Against sums of losses on a grid, and against the reference in other arithmetic."""
    rng = np.random.default_rng(6)
    for _ in range(300 if ALL else 2):
        mixture, shifts, weights = random_mixture(rng)
        steps = int(rng.integers(3, 40))
        run = mixture.composed(steps)
        z = np.linspace(-shifts[-1] - 12.0, shifts[-1] + 12.0, 200_001)
        up, down = (log_density(z, sign * shifts, weights) for sign in (1.0, -1.0))
        mass = np.exp(up - 0.5 * z * z) * (z[1] - z[0]) / math.sqrt(2.0 * math.pi)
        loss, size = up - down, 2**18
        mean = mass @ loss
        reach = steps * mean + 12.0 * math.sqrt(steps * (mass @ (loss - mean) ** 2)) + loss[-1]
        place = loss * size / (2.0 * reach)
        whole = np.floor(place).astype(int)
        law = np.bincount(whole % size, mass * (1.0 - place + whole), size)
        law += np.bincount((whole + 1) % size, mass * (place - whole), size)
        total = np.fft.irfft(np.fft.rfft(law) ** steps, size)
        losses = np.fft.fftfreq(size, 1.0 / size) * 2.0 * reach / size
        epsilon = float(pe.epsilon(run, 1e-3, adjacency="substitute"))
        above = losses > epsilon
        truth = -(total[above] @ np.expm1(epsilon - losses[above]))
        found = pe.delta(run, epsilon, adjacency="substitute", bounds=True)
        # the grid is off by up to 1e-4 where losses are rare and large
        assert found.lower * (1.0 - 2e-4) - 1e-11 <= truth <= found.upper * (1.0 + 2e-4) + 1e-11
        assert found.upper - found.lower <= 2e-5 * found.upper
    run = pe.dp_sgd("3/2", "1/10", 30, group_size=2)
    found = pe.delta(run, 1.0, adjacency="substitute", bounds=True)
    known = reference.delta(run, 1, adjacency="substitute", digits=12)
    assert found.lower <= known <= found.upper
    with_noise = run + pe.GaussianMechanism(3.0) + pe.LaplaceMechanism(5.0)
    assert pe.delta(with_noise, 1.0, adjacency="substitute") > found.upper


def test_floats_keep_their_sum() -> None:
    weights = [1 / 3, 1 / 3, 1 / 3]
    mixture = pe.GaussianMixtureMechanism(1.0, [0, 1, 2], weights)
    assert sum(mixture.weights) == 1
    assert np.allclose([float(w) for w in mixture.weights], weights, rtol=1e-15)
    same = pe.GaussianMixtureMechanism(1.0, [1, 0, 1], [0.25, 0.5, 0.25])
    assert same == pe.GaussianMixtureMechanism(1.0, [0, 1], [0.5, 0.5])


def test_nodes_are_found_in_a_few_steps_of_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lattice of 2^22 cells asks for as many; bisection took 80 steps for the last of them."""
    monkeypatch.setattr(laws, "NEWTON_STEPS", 15)
    random = np.random.default_rng(20261122)
    for _ in range(200):
        count, silent = int(random.integers(1, 8)), bool(random.integers(2))
        shifts = np.sort(10.0 ** random.uniform(-3.0, 1.5, count))
        weights = 10.0 ** random.uniform(-12.0, 0.0, count + silent)
        every = np.concatenate([np.zeros(int(silent)), shifts])
        law = GaussianMixtureLaw(tuple(every), tuple(weights / weights.sum()))
        edges, _ = law.loss(np.sort(random.normal(size=500) * 10.0 ** random.uniform(-1.0, 1.5)))
        nodes = law._nodes(edges)
        found, error = law.loss(nodes)
        near = np.abs(found - edges) <= 2.0 * error + 2.0**-51 * np.abs(edges)
        # at its smallest value, the log of a weight, a loss stands for all places further left
        assert np.all(near | (nodes < -1e100) & (edges - law.support()[0] < 1e-14))


def test_weights_below_all_doubles() -> None:
    weights = [Fraction(1, 2), Fraction(1, 2) - Fraction(1, 2**1080), Fraction(1, 2**1080)]
    with pytest.raises(ValueError, match=r"weights must be 0 or at least 2\^-1074"):
        pe.GaussianMixtureMechanism(1.0, [0, 1, 2], weights)


@pytest.mark.parametrize("seed", thorough.some(range(300), 60))
def test_draws_with_replacement(seed: int) -> None:
    """All other records at -1 and the record at 1: the sum has a binomial law, normal tails each.

    Draws that the mechanism does not tell apart are too rare to be seen.
    """
    rng = np.random.default_rng([seed, 44])
    draws, records = int(rng.integers(1, 12)), int(rng.integers(2, 40))
    noise, epsilon = float(rng.uniform(0.5, 20)), float(rng.choice([0.0, 0.1, 1.0, 3.0]))
    event_of = {"source_dataset_size": records, "sample_size": draws}
    inner = type("GaussianDpEvent", (), {"noise_multiplier": noise})()
    event = type("SampledWithReplacementDpEvent", (), {**event_of, "event": inner})()
    run = from_dp_event(event)
    gaussian = pe.GaussianMechanism(noise)
    drawn = gaussian.sampled_with_replacement(batch_size=draws, dataset_size=records)
    assert drawn == run
    rate = Fraction(1, records)
    assert drawn == gaussian.sampled_with_replacement(batch_size=draws, rate=rate)
    with mp.workdps(30):
        p = [
            mp.binomial(draws, j) * (records - 1) ** (draws - j) / mp.mpf(records) ** draws
            for j in range(draws + 1)
        ]
        sigma, e = mp.mpf(noise), mp.exp(mp.mpf(epsilon))

        def ratio(x: Any) -> Any:  # of the densities at a sum x above -draws
            return mp.fsum(w * mp.exp((2 * j * x - 2 * j * j) / sigma**2) for j, w in enumerate(p))

        def crossed(level: Any) -> Any:
            if p[0] >= level:
                return -mp.inf
            low, high = mp.mpf(-1e6), mp.mpf(1e6)
            for _ in range(140):
                middle = (low + high) / 2
                low, high = (low, middle) if ratio(middle) > level else (middle, high)
            return low

        def beyond(x: Any, j: int) -> Any:
            return mp.ncdf((2 * j - x) / sigma)

        at = crossed(e)
        remove = mp.fsum(w * beyond(at, j) for j, w in enumerate(p)) - e * beyond(at, 0)
        at = crossed(1 / e)
        below = mp.fsum(w * mp.ncdf((at - 2 * j) / sigma) for j, w in enumerate(p))
        add = mp.ncdf(at / sigma) - e * below
    for order, truth in (("remove", remove), ("add", max(add, 0))):
        found = pe.delta(run, epsilon, adjacency=order, bounds=True)
        slack = 1e-9 * truth + mp.mpf(10) ** -39
        assert found.lower <= truth + slack, (order, draws, records, noise, epsilon)
        assert truth - mp.mpf(10) ** -25 <= found.upper, (order, draws, records, noise, epsilon)


@pytest.mark.parametrize("seed", range(40))
def test_numbers_of_draws_are_rounded_down(seed: int) -> None:
    """What long exact probabilities lose moves up, so that the pair still dominates."""
    rng = random.Random(seed)
    draws = rng.randint(2, rng.choice([60, 3000]))
    rates = (
        Fraction(rng.random()),
        Fraction(1, rng.randint(1, 10**6)),
        Fraction(rng.randint(1, 7), 7),
    )
    rate = rng.choice(rates)
    drawn = pe.GaussianMechanism(1.0).sampled_with_replacement(batch_size=draws, rate=rate)
    parts: Any = drawn.parts
    (step, _), *told = parts
    weights = dict(zip(step.shifts, step.weights, strict=True))
    assert sum(weights.values()) == 1
    for count in {0, 1, 2, draws // 2, int(draws * rate), draws - 1}:
        if 2 * count < max(weights):
            mass = math.comb(draws, count) * rate**count * (1 - rate) ** (draws - count)
            given = weights.get(2 * count, Fraction(0))
            assert given <= mass <= given + Fraction(1, 2**1000)
    largest = max(weights)
    assert largest == 2 * draws or [weights[largest]] == [each.delta for each, _ in told]


def test_many_draws_take_no_long_numbers() -> None:
    """Exact probabilities of 16,384 draws had 300,000 digits, and those of 2,000 were refused."""
    started = time.process_time()
    run = pe.dp_sgd(
        0.8, batch_size=16_384, dataset_size=1_281_167, steps=3, sampling="with_replacement"
    )
    assert len(pe.to_json(run)) < 20_000
    assert time.process_time() - started < 2.0
    often = pe.GaussianMechanism(2000.0).sampled_with_replacement(batch_size=2000, rate="1/2")
    fewer, more = (pe.delta(pe.GaussianMechanism(1000 / draws), 1.0) for draws in (900, 1100))
    assert 0.999 * fewer < pe.delta(often, 1.0) < more + 1e-5  # P(outside) = 7e-6


def test_weighted_draws() -> None:
    """More of a weight is less private; what is missing or too much is said."""
    noise = pe.GaussianMechanism(1.5)
    deltas = [
        pe.delta(noise.sampled_with_replacement(batch_size=8, rate=rate).composed(20), 1.0)
        for rate in (0.001, 0.01, 0.1)
    ]
    assert deltas == sorted(deltas)
    for words in ({}, {"dataset_size": 9, "rate": 0.1}):
        with pytest.raises(ValueError, match="one of dataset_size and rate must be given"):
            noise.sampled_with_replacement(batch_size=3, **words)
    assert noise.sampled_with_replacement(batch_size=3, rate=0).parts[0][0].share == 0
