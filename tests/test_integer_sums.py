"""Skellam noise and sums of discrete Gaussians against Bessel functions and sums in 40 digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import thorough
from mpmath import mp

import pyengine as pe


def profile(mass: dict[int, Any], shift: int, epsilon: float) -> Any:
    """H of masses moved by a shift, from those that were not."""
    level = mp.exp(mp.mpf(epsilon))
    terms = (mass.get(k - shift, mp.mpf(0)) - level * p for k, p in mass.items())
    beyond = (p for k, p in mass.items() if k + shift not in mass)
    return mp.fsum(x for x in terms if x > 0) + mp.fsum(beyond)


def skellam(variance: Any, deep: int = 200) -> dict[int, Any]:
    """Masses e^-v I_k(v), by the recurrence of the Bessel functions downwards."""
    reach = int(40 * mp.sqrt(variance)) + deep
    values = [mp.mpf(0), mp.mpf(10) ** -400]
    for k in range(reach, 0, -1):
        values.append(values[-2] + 2 * k / variance * values[-1])
    half = values[::-1][: reach + 1]
    total = half[0] + 2 * mp.fsum(half[1:])
    assert abs(half[0] / total / (mp.exp(-variance) * mp.besseli(0, variance)) - 1) < 1e-30
    return {k: half[abs(k)] / total for k in range(-reach, reach + 1)}


def gaussian_sum(sigma: Any, summands: int, deviations: int = 12) -> dict[int, Any]:
    """Masses of the sum, one party after another."""
    reach = int(deviations * sigma) + 3
    one = {k: mp.exp(-(k**2) / (2 * sigma**2)) for k in range(-reach, reach + 1)}
    scale = mp.fsum(one.values())
    total = {0: mp.mpf(1)}
    for _ in range(summands):
        found: dict[int, Any] = {}
        for k, p in total.items():
            for j, q in one.items():
                found[k + j] = found.get(k + j, mp.mpf(0)) + p * q / scale
        total = found
    return total


def assert_holds(run: pe.Mechanism, mass: dict[int, Any], shift: int, epsilon: float) -> None:
    for adjacency, moved in (("add_remove", shift), ("substitute", 2 * shift)):
        truth = profile(mass, moved, epsilon)
        found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
        # the truth's own ends are cut at some e^-70
        assert found.lower * (1 - 1e-12) - 1e-25 <= truth <= found.upper + 1e-30
        assert found.upper - found.lower <= 1e-8 * found.value + 1e-25


@pytest.mark.parametrize("seed", thorough.some(range(320), 40))
def test_skellam(seed: int) -> None:
    rng = np.random.default_rng([seed, 49])
    shift, noise = int(rng.integers(1, 6)), float(rng.uniform(0.2, 4.0))
    run = pe.SkellamMechanism(noise, shift)
    assert pe.from_json(pe.to_json(run)) == run
    with mp.workdps(40):
        mass = skellam((mp.mpf(noise) * shift) ** 2)
        assert_holds(run, mass, shift, float(rng.uniform(0.0, 4.0 / noise)))


@pytest.mark.parametrize("seed", thorough.some(range(300), 50))
def test_sums_of_discrete_gaussians(seed: int) -> None:
    rng = np.random.default_rng([seed, 50])
    shift, noise = int(rng.integers(1, 4)), float(rng.uniform(0.2, 1.5))
    summands = int(rng.integers(1, 7))
    run = pe.DiscreteGaussianSum(noise, summands, shift)
    assert pe.from_json(pe.to_json(run)) == run
    with mp.workdps(40):
        mass = gaussian_sum(mp.mpf(noise) * shift, summands)
        assert_holds(run, mass, shift, float(rng.uniform(0.0, 4.0 / noise)))


def far_profile(half: list[Any], shift: int, epsilon: float) -> Any:
    """H of symmetric masses from 0 on, far below all doubles where they end."""
    level = mp.exp(mp.mpf(epsilon))
    last = len(half) - 1
    both = {k: half[abs(k)] for k in range(-last, last + 1)}
    terms = (both[k - shift] - level * both[k] for k in range(shift - last, last + 1))
    return mp.fsum(x for x in terms if x > 0)


@pytest.mark.parametrize("seed", thorough.some(range(200), 10))
@pytest.mark.parametrize("kind", ["skellam", "sum"])
def test_tails_below_all_that_one_convolution_reaches(kind: str, seed: int) -> None:
    """What is rare is not told: beyond its loss δ falls on, down to the least double."""
    rng = np.random.default_rng([seed, 51])
    shift, noise = int(rng.integers(1, 4)), float(np.exp(rng.uniform(-2.5, 0.3)))
    with mp.workdps(60):
        sigma = mp.mpf(noise) * shift
        if kind == "skellam":
            run: pe.Mechanism = pe.SkellamMechanism(noise, shift)
            mass, deviation = skellam(sigma**2, deep=400), float(sigma)
        else:
            summands = int(rng.integers(2, 4))
            run = pe.DiscreteGaussianSum(noise, summands, shift)
            mass, deviation = gaussian_sum(sigma, summands, 60), float(sigma) * summands**0.5
        half = [mass[k] for k in range(max(mass) + 1)]
        for far in rng.uniform(0.0, 42.0, 6):
            at = min(int(far * deviation) + shift, len(half) - 3)
            loss = float(mp.log(half[abs(at - shift)] / half[at]))
            epsilon = max(0.0, loss * float(rng.uniform(0.9, 1.1)))
            truth = far_profile(half, shift, epsilon)
            found = pe.delta(run, epsilon, adjacency="add", bounds=True)
            assert found.lower * (1 - mp.mpf(10) ** -20) <= truth
            assert truth <= found.upper * (1 + mp.mpf(10) ** -20)
            assert found.upper - found.lower <= 1e-7 * truth + 1e-300
        assert pe.delta(run, np.inf, bounds=True) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("noise", "summands"), [(0.2, 10**6), (0.15, 60), (0.05, 40)])
def test_many_parties_of_less_noise_than_the_integers_are_apart(
    noise: float, summands: int
) -> None:
    """Their sum varies less than so many normal variables: powers of transforms, in 400 digits."""
    run = pe.DiscreteGaussianSum(noise, summands)
    with mp.workdps(400):
        one = {k: mp.exp(-(k**2) / (2 * mp.mpf(noise) ** 2)) for k in range(-12, 13)}
        size = 240
        values = [
            mp.fsum(p * mp.cospi(mp.mpf(2 * k * j) / size) for k, p in one.items())
            for j in range(size)
        ]
        powers = [(x / values[0]) ** summands for x in values]
        half = [
            mp.fsum(x * mp.cospi(mp.mpf(2 * k * j) / size) for j, x in enumerate(powers)) / size
            for k in range(size // 2 - 20)
        ]
        for at in (1, 4, 12, 40):
            if half[at] < mp.mpf(10) ** -290:
                continue
            epsilon = float(mp.log(half[at - 1] / half[at])) * 0.97
            truth = far_profile(half, 1, epsilon)
            found = pe.delta(run, epsilon, adjacency="add", bounds=True)
            assert found.lower * (1 - mp.mpf(10) ** -20) <= truth
            assert truth <= found.upper * (1 + mp.mpf(10) ** -20)


def test_one_party_and_many() -> None:
    """One summand is a discrete Gaussian; many are all but one, and Skellam noise is close."""
    one = pe.DiscreteGaussianSum("3/2", 1, 2)
    for epsilon in (0.0, 0.5, 2.0):
        expected = pe.delta(pe.DiscreteGaussianMechanism("3/2", 2), epsilon)
        assert pe.delta(one, epsilon) == pytest.approx(expected, rel=1e-11)
    many = pe.DiscreteGaussianSum(Fraction(3, 10), 900)
    near = pe.GaussianMechanism(9.0)
    assert pe.epsilon(many.composed(20), 1e-5) > pe.epsilon(near.composed(20), 1e-5)
    sampled = pe.SkellamMechanism(8.0).poisson_sampled(0.01).composed(500)
    plain = pe.dp_sgd(8.0, 0.01, 500)
    assert 0.99 < pe.epsilon(sampled, 1e-5) / pe.epsilon(plain, 1e-5) < 1.05
    with pytest.raises(pe.AccuracyError, match="scale the query down"):
        pe.delta(pe.SkellamMechanism(1e4), 0.1)
    with pytest.raises(ValueError, match="summands must be"):
        pe.DiscreteGaussianSum(1.0, 0)
    with pytest.raises(pe.AccuracyError, match="too little for the sum of several parties"):
        pe.delta(pe.DiscreteGaussianSum(0.025, 3), 0.1)
    with pytest.raises(pe.AccuracyError, match="ratios of masses are no doubles"):
        pe.delta(pe.SkellamMechanism(1e-160), 0.1)
