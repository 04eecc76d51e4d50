"""Another record in its place, by the data set without it: all outcomes of small runs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from outcomes import hockey_stick
from test_selection import drawn, generating
from thorough import ALL

import pyengine as pe

EPSILON = (0.0, 0.2, 1.0, 3.0)
LEVELS = (1e-4, 0.03, 0.4)
Law = Any


def laws_of_epoch(noise: float, steps: int, selected: int, reach: int) -> list[Law]:
    """Masses of the releases for a record that moves them by 1, by -1, and not at all."""
    place = np.arange(-reach, reach + 1)
    masses = {
        move: np.exp(-np.abs(place - move) / noise) * math.tanh(0.5 / noise) for move in (1, -1, 0)
    }
    found = []
    for move in (1, -1, 0):
        total: Any = 0.0
        sets = list(itertools.combinations(range(steps), selected))
        for chosen in sets:
            law = np.ones(1)
            for i in range(steps):
                law = np.multiply.outer(law, masses[move if i in chosen else 0]).ravel()
            total = total + law / len(sets)
        found.append(total)
    return found


def power(one: Law, other: Law, level: float) -> float:
    """Largest mass under the first law of a randomized test of this mass under the second."""
    order = np.argsort(-one / other)
    x, y = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (other, one))
    return float(np.interp(level, x, y))


def judged(run: pe.Mechanism, laws: list[Law], slack: float) -> float:
    """Hold all questions against one replacement and against a record that moves nothing."""
    first, second, none = laws
    pairs = [(first, second), (second, first), (first, none), (none, first)]
    apart = 0.0
    for epsilon in EPSILON:
        found = pe.delta(run, epsilon, adjacency="substitute", bounds=True)
        truth = max(hockey_stick(*pair, epsilon) for pair in pairs)
        assert found.lower * (1.0 - 1e-9) - slack <= truth <= found.upper * (1.0 + 1e-9) + slack
        if truth > 1e-3:
            apart = max(apart, found.upper / truth)
        if truth > 1e3 * slack:
            back = pe.epsilon(run, truth, adjacency="substitute", bounds=True)
            assert back.upper >= epsilon * (1.0 - 1e-6) - 1e-6
            assert back.lower <= back.value <= back.upper
            # as good as the profile: δ at this ε is what was asked
            there = pe.delta(run, back.upper, adjacency="substitute", bounds=True)
            assert there.upper <= truth * (1.0 + 1e-5) + slack
            if back.value > 0.0:
                assert there.upper >= truth * (1.0 - 1e-3) - slack
    for level in LEVELS:
        gamma = pe.gamma_bound(run, level, adjacency="substitute", bounds=True)
        beta = pe.trade_off(run, level, adjacency="substitute", bounds=True)
        truth = max(power(*pair, level) for pair in pairs)
        assert gamma.lower * (1.0 - 1e-9) - slack <= truth <= gamma.upper * (1.0 + 1e-9) + slack
        assert beta.lower - 1e-9 - slack <= 1.0 - truth <= beta.upper + 1e-9 + slack
        assert beta.value == pytest.approx(1.0 - gamma.value, abs=1e-9)
    return apart


def test_epochs_by_all_outcomes() -> None:
    rng, farthest = np.random.default_rng(31), 0.0
    for _ in range(300 if ALL else 6):
        steps, noise = int(rng.integers(2, 4)), float(rng.uniform(0.4, 1.8))
        selected = int(rng.integers(1, steps))
        run = pe.DiscreteLaplaceMechanism(noise).randomly_allocated(steps, selected)
        laws = laws_of_epoch(noise, steps, selected, int(26.0 * noise) + 2)
        farthest = max(farthest, judged(run, laws, 1e-10))
    assert 1.0 < farthest < 2.0  # no idle bound


def test_two_epochs_and_another_release() -> None:
    """Compositions go through the same data set: all of them at once."""
    rng = np.random.default_rng(32)
    for _ in range(100 if ALL else 3):
        noise, truth = float(rng.uniform(0.3, 0.6)), float(rng.uniform(0.55, 0.9))
        step = pe.DiscreteLaplaceMechanism(noise)
        epochs = [np.multiply.outer(x, x).ravel() for x in laws_of_epoch(noise, 2, 1, 12)]
        judged(step.randomly_allocated(2).composed(2), epochs, 1e-7)
        # two answers of a bit, and none in between: a record in its place has another one
        coins = [np.array(x) for x in ((truth, 1.0 - truth), (1.0 - truth, truth))]
        run = step.randomly_allocated(2) + pe.RandomizedResponse(truth)
        one, other, _ = laws_of_epoch(noise, 2, 1, 20)
        pair = [np.multiply.outer(x, c).ravel() for x, c in zip((one, other), coins, strict=True)]
        for epsilon in EPSILON:
            found = pe.delta(run, epsilon, adjacency="substitute", bounds=True)
            assert hockey_stick(*pair, epsilon) <= found.upper * (1.0 + 1e-9) + 1e-10


def test_gaussian_epochs() -> None:
    """Opposite records in one of two steps, by sums over the plane; a single step is exact."""
    rng = np.random.default_rng(33)
    x = np.linspace(-9.0, 9.0, 901)
    weight = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    for _ in range(300 if ALL else 8):
        noise = float(rng.uniform(0.6, 4.0))
        run = pe.GaussianMechanism(noise).randomly_allocated(2)
        mu = 1.0 / noise
        sides = []
        for sign in (1.0, -1.0):
            one = np.exp(sign * mu * x - 0.5 * mu * mu)
            sides.append(0.5 * (one[:, None] + one[None, :]))
        for epsilon in (0.0, 0.5 * mu, 2.0 * mu):
            gain = np.maximum(sides[0] - math.exp(epsilon) * sides[1], 0.0)
            truth = float(weight @ gain @ weight)
            found = pe.delta(run, epsilon, adjacency="substitute", bounds=True)
            assert found.lower * (1.0 - 1e-4) <= truth <= found.upper * (1.0 + 1e-4)
            assert found.upper < 1.6 * truth
    once = pe.GaussianMechanism(2.0).randomly_allocated(1).composed(2)
    assert pe.epsilon(once, 1e-5, adjacency="substitute") == pe.epsilon(
        pe.GaussianMechanism(2.0).composed(2), 1e-5, adjacency="substitute"
    )


def test_plain_noise_is_a_noise_of_half_the_size() -> None:
    """Two Gaussian orders make the Gaussian of twice the distance: the bound loses nothing."""
    from pyengine.engines.registry import questions
    from pyengine.engines.replaced import ThroughTheRest

    for noise in (0.7, 2.0, 9.0):
        run, half = pe.GaussianMechanism(noise), pe.GaussianMechanism(0.5 * noise)
        words: Any = {"method": "auto", "threat_model": "dp", "tolerance": None}
        add, remove = (questions(run, adjacency=x, **words) for x in ("add", "remove"))
        through = ThroughTheRest(add, remove)
        places = np.array([0.0, 0.1, 1.0, 4.0])
        truth = pe.delta(half, places)
        assert np.allclose(through.profile(places).upper, truth, rtol=1e-10, atol=0.0)
        assert np.allclose(through.epsilon(truth).upper, places, rtol=1e-9, atol=1e-9)
        levels = np.array([1e-9, 0.01, 0.5, 0.99])
        beta, gamma = through.trade_off(levels)
        assert np.allclose(gamma.value, pe.gamma_bound(half, levels), rtol=1e-10, atol=0.0)
        assert np.allclose(beta.value, pe.trade_off(half, levels), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("word", ["poisson", "geometric", "negative_binomial", "binomial", "fixed"])
def test_selections_by_all_outcomes(word: str) -> None:
    """Scores are any order of the outcomes; the best run's law is a difference of φ(F)."""
    rng = np.random.default_rng([34, len(word)])
    for _ in range(60 if ALL else 2):
        noise, numbers = float(rng.uniform(1.0, 8.0)), drawn(rng, word)
        reach = int(26.0 * noise)
        tuned = pe.repeat_and_select(pe.DiscreteLaplaceMechanism(noise), word, **numbers)
        phi, laws = generating(word, **numbers), laws_of_epoch(noise, 1, 1, reach)
        order = rng.permutation(2 * reach + 1) if rng.random() < 0.5 else slice(None)
        best = [
            np.diff(phi(np.clip(np.concatenate([[0.0], np.cumsum(law[order])]), 0.0, 1.0)))
            for law in laws
        ]
        for epsilon in EPSILON:
            found = pe.delta(tuned, epsilon, adjacency="substitute", bounds=True)
            truth = max(hockey_stick(*best[:2], epsilon), hockey_stick(*best[1::-1], epsilon))
            assert truth <= found.upper + 1e-9
            assert found.lower <= truth + 1e-9
        kappa = np.array(LEVELS)
        found = pe.gamma_bound(tuned, kappa, adjacency="substitute", bounds=True)
        truth = [power(best[0] + 1e-300, best[1] + 1e-300, level) for level in LEVELS]
        assert (truth <= found.upper + 1e-9).all()


def test_words_and_ends() -> None:
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(10)
    assert pe.mechanisms.label_of(epoch, "substitute")[0].known == "upper bound"
    assert pe.mechanisms.label_of(epoch)[0].known == ""
    ends = {"adjacency": "substitute", "bounds": True}
    assert pe.delta(epoch, math.inf, **ends).upper == 0.0
    assert pe.epsilon(epoch, 1.0, **ends).upper == 0.0
    assert pe.epsilon(epoch, 0.0, **ends).upper == math.inf
    for far in (650.0, 1e4, 1e300):
        assert pe.delta(epoch, far, **ends).upper < 1e-20
    finite = pe.DiscreteLaplaceMechanism(2.0).randomly_allocated(3)
    most, once = pe.epsilon(finite, 0.0, **ends), pe.epsilon(finite, 0.0)
    assert 0.0 < most.lower < most.upper <= 2.0 * once * (1.0 + 1e-9)
    for level, value in ((0.0, 0.0), (1.0, 1.0)):
        assert pe.gamma_bound(epoch, level, **ends).value == value
    several = pe.gamma_bound(epoch, [1e-3, 0.1], **ends)
    assert several.upper[0] == pe.gamma_bound(epoch, 1e-3, **ends).upper
    assert 0.0 < pe.delta(epoch, 1.0, adjacency="substitute", method="lattice") < 0.1
    with pytest.raises(ValueError, match="substitute"):
        pe.delta(epoch, 1.0, adjacency="substitute", method="exact")
