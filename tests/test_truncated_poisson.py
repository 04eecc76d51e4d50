"""Truncated Poisson samples against enumeration, normal tails and compositions of known laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine import reference
from pyengine.laws.truncated import truncation


def exact(p: Fraction, size: int, records: int) -> tuple[Fraction, Fraction]:
    """τ and q by summing over the number of others in the sample."""
    others = [
        math.comb(records - 1, k) * p**k * (1 - p) ** (records - 1 - k) for k in range(records)
    ]
    full = sum(others[size:], Fraction(0))
    inside = sum(w * p * Fraction(size, k + 1) for k, w in enumerate(others) if k >= size)
    return full, inside / full if full else p


@settings(max_examples=150, deadline=None)
@given(
    records=st.integers(2, 60),
    share=st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=10**6),
    part=st.integers(1, 10**6),
)
def test_chances_are_the_sums_that_define_them(records: int, share: Fraction, part: int) -> None:
    size = 1 + part % records
    full, inside = exact(share, size, records)
    found = truncation(share, size, records)
    tolerance = Fraction(1, 10**38)
    assert abs(Fraction(found.full) - full) <= tolerance * full
    assert abs(Fraction(found.rest) - (1 - full)) <= tolerance * (1 - full)
    assert abs(found.inside - inside) <= tolerance * inside


@pytest.mark.parametrize(
    ("records", "p", "size"),
    [(600, "1/8", 90), (600, "1/8", 60), (700, "0.9", 690)],
)
def test_chances_of_many_records(records: int, p: str, size: int) -> None:
    full, inside = exact(Fraction(p), size, records)
    found = truncation(Fraction(p), size, records)
    assert abs(Fraction(found.full) / full - 1) < Fraction(1, 10**38)
    assert abs(found.inside / inside - 1) < Fraction(1, 10**38)


def test_chances_by_enumeration_of_the_loader() -> None:
    """All samples of four records and all ways to cut them to two."""
    p, size, records = Fraction(1, 3), 2, 4
    full = batch_has_it = Fraction(0)
    for others in itertools.product((0, 1), repeat=records - 1):
        weight = math.prod((p if x else 1 - p) for x in others)
        if sum(others) < size:
            continue
        full += weight
        sample = [i for i, x in enumerate(others) if x] + ["record"]
        kept = list(itertools.combinations(sample, size))
        batch_has_it += weight * p * Fraction(sum("record" in k for k in kept), len(kept))
    found = truncation(p, size, records)
    assert float(found.full) == pytest.approx(float(full), rel=1e-15)
    assert float(found.inside) == pytest.approx(float(batch_has_it / full), rel=1e-15)


def one_step(noise: Fraction, p: Fraction, epsilon: float, order: str) -> Any:
    """Profile of a sampled Gaussian from normal tails at 40 digits."""
    with mpmath.workdps(40):
        mu, share = 1 / mpmath.mpf(str(float(noise))), mpmath.mpf(p.numerator) / p.denominator
        t = mpmath.exp(epsilon)
        goal = epsilon if order == "remove" else -epsilon
        odds = (mpmath.exp(goal) - 1 + share) / share
        if odds <= 0:
            return mpmath.mpf(0)
        z = mpmath.log(odds) / mu + mu / 2
        if order == "remove":
            above = (1 - share) * mpmath.ncdf(-z) + share * mpmath.ncdf(mu - z)
            return above - t * mpmath.ncdf(-z)
        below = (1 - share) * mpmath.ncdf(z) + share * mpmath.ncdf(z - mu)
        return mpmath.ncdf(z) - t * below


@settings(max_examples=60, deadline=None)
@given(
    noise=st.sampled_from(["0.5", "0.75", "1", "2", "8"]),
    p=st.sampled_from(["0.01", "0.1", "0.5", "0.95"]),
    records=st.integers(2, 400),
    part=st.integers(1, 10**6),
    epsilon=st.sampled_from([0.0, 0.125, 0.5, 2.0]),
    order=st.sampled_from(["add", "remove"]),
)
def test_one_step_against_normal_tails(
    noise: str, p: str, records: int, part: int, epsilon: float, order: str
) -> None:
    size = 1 + part % (records - 1)
    rate = Fraction(p)
    full, inside = exact(rate, size, records)
    with mpmath.workdps(40):
        heavy, rest = (mpmath.mpf(x.numerator) / x.denominator for x in (full, 1 - full))
        truth = rest * one_step(Fraction(noise), rate, epsilon, order)
        truth += heavy * one_step(Fraction(noise) / 2, inside, epsilon, order)
    step = pe.GaussianMechanism(noise).truncated_poisson_sampled(
        p, batch_size=size, dataset_size=records
    )
    found = pe.delta(step, epsilon, adjacency=order, bounds=True)
    assert found.lower <= truth <= found.upper
    assert found.value == pytest.approx(float(truth), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("noise", "p", "size", "records", "steps", "epsilon", "order"),
    [
        ("1.5", "0.1", 10, 100, 3, "0.5", "remove"),
        ("1.5", "0.2", 3, 10, 4, "0.25", "add"),
        ("2", "0.05", 55, 1000, 40, "0.5", "remove"),
        ("2", "0.05", 55, 1000, 40, "0.5", "add"),
        # its mixture has seven compositions that only convolutions answer
        *([("1", "0.05", 8, 60, 6, "1", "remove")] if ALL else []),
    ],
)
def test_steps_are_a_binomial_mixture_of_known_compositions(
    noise: str, p: str, size: int, records: int, steps: int, epsilon: str, order: str
) -> None:
    rate = Fraction(p)
    full, inside = exact(rate, size, records)
    truth, heavy = 0.0, pe.GaussianMechanism(Fraction(noise) / 2).poisson_sampled(inside)
    for k in range(steps + 1):
        weight = math.comb(steps, k) * float(full) ** k * float(1 - full) ** (steps - k)
        run = pe.GaussianMechanism(noise).poisson_sampled(rate).composed(steps - k)
        truth += weight * pe.delta(run + heavy.composed(k), float(epsilon), adjacency=order)
    run = pe.GaussianMechanism(noise).truncated_poisson_sampled(
        p, batch_size=size, dataset_size=records
    )
    found = pe.delta(run.composed(steps), float(epsilon), adjacency=order, bounds=True)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1.01e-4 * truth


def mixture_density(means: dict[float, float], noise: float, x: Any) -> Any:
    return sum(
        w * np.exp(-0.5 * ((x - m) / noise) ** 2) / (noise * math.sqrt(2 * math.pi))
        for m, w in means.items()
    )


def releases(values: tuple[float, ...], p: float, size: int) -> dict[float, float]:
    """Means of the release and their probabilities, by running the loader in all ways."""
    found: dict[float, float] = {}
    for chosen in itertools.product((0, 1), repeat=len(values)):
        weight = math.prod(p if x else 1 - p for x in chosen)
        sample = [v for v, x in zip(values, chosen, strict=True) if x]
        cuts = list(itertools.combinations(sample, size)) if len(sample) > size else [tuple(sample)]
        for batch in cuts:
            mean = round(sum(batch), 9)
            found[mean] = found.get(mean, 0.0) + weight / len(cuts)
    return found


@pytest.mark.parametrize("p", [0.2, 0.6])
@pytest.mark.parametrize("size", [1, 2])
def test_the_pair_dominates_real_data_sets(p: float, size: int) -> None:
    """The profile of every small data set, by quadrature over the release."""
    noise, x = 0.8, np.linspace(-12.0, 12.0, 6001)
    worst = 0.0
    step = pe.GaussianMechanism(noise).truncated_poisson_sampled(p, batch_size=size, dataset_size=3)
    for others in itertools.product((-1.0, 0.0, 1.0), repeat=2):
        without = mixture_density(releases(others, p, size), noise, x)
        with_it = mixture_density(releases((*others, 1.0), p, size), noise, x)
        for epsilon in (0.0, 0.3, 1.0):
            for order, (top, rest) in {
                "remove": (with_it, without),
                "add": (without, with_it),
            }.items():
                real = np.trapezoid(np.maximum(top - math.exp(epsilon) * rest, 0.0), x)
                bound = pe.delta(step, epsilon, adjacency=order)
                assert real <= bound * (1.0 + 1e-6) + 1e-12
                worst = max(worst, real / bound if bound > 1e-6 else 0.0)
    assert worst > 0.5  # the bound is not far from what data sets attain


def test_limits() -> None:
    noise = pe.GaussianMechanism(1.0)
    whole = noise.truncated_poisson_sampled(0.1, batch_size=50, dataset_size=50)
    assert whole == noise.poisson_sampled(0.1)
    never = noise.truncated_poisson_sampled(0.0, batch_size=5, dataset_size=50)
    assert pe.delta(never.composed(3), 0.0) == 0.0
    always = noise.truncated_poisson_sampled(1, batch_size=5, dataset_size=50).composed(1)
    fixed = pe.GaussianMechanism(0.5).poisson_sampled("0.1")
    assert pe.delta(always, 0.5) == pytest.approx(pe.delta(fixed, 0.5), rel=1e-11)
    rare = noise.truncated_poisson_sampled(0.01, batch_size=5_000, dataset_size=60_000)
    found, poisson = rare.composed(50), pe.dp_sgd(1.0, 0.01, 50)
    assert pe.epsilon(found, 1e-5) == pytest.approx(pe.epsilon(poisson, 1e-5), rel=1e-9)


def test_smaller_batches_leak_more() -> None:
    found = [
        pe.delta(
            pe.GaussianMechanism(1.0)
            .truncated_poisson_sampled(0.1, batch_size=size, dataset_size=100)
            .composed(5),
            0.5,
        )
        for size in (30, 16, 13, 10, 7)
    ]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"batch_size": 11, "dataset_size": 10}, "batch_size must be at most dataset_size = 10"),
        ({"batch_size": 0, "dataset_size": 10}, "batch_size must be an integer >= 1"),
        ({"batch_size": 1, "dataset_size": 0}, "dataset_size must be an integer >= 1"),
        ({"probability": 1.5, "batch_size": 1, "dataset_size": 9}, r"probability must lie in"),
    ],
)
def test_wrong_input(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.GaussianMechanism(1.0).truncated_poisson_sampled(**{"probability": 0.1, **keywords})


def test_what_is_not_defined() -> None:
    step = pe.GaussianMechanism(1.0).truncated_poisson_sampled(0.1, batch_size=3, dataset_size=9)
    with pytest.raises(ValueError, match="cannot be sampled again"):
        step.poisson_sampled(0.1)
    with pytest.raises(ValueError, match="cannot be sampled again"):
        step.sampled_without_replacement(batch_size=1, dataset_size=2)
    with pytest.raises(ValueError, match="must be a GaussianMechanism"):
        pe.TruncatedPoissonSampled(pe.LaplaceMechanism(1.0), 0.1, 1, 2)
    with pytest.raises(pe.AccuracyError):
        reference.delta(step, "0.5")


@pytest.mark.parametrize("seed", thorough.some(range(320), 40))
def test_another_record_in_its_place_by_enumeration(seed: int) -> None:
    """All samples of few records with values in [-1, 1], and all ways to cut them."""
    rng = np.random.default_rng([seed, 45])
    records = int(rng.integers(2, 6))
    size, p = int(rng.integers(1, records + 1)), float(rng.uniform(0.05, 1.0))
    noise, epsilon = float(rng.uniform(0.5, 3)), float(rng.choice([0.0, 0.3, 1.0, 2.0]))
    others = rng.choice([-1.0, 0.0, 1.0], records - 1)
    x = np.linspace(-records - 12 * noise, records + 12 * noise, 20_001)
    density = [np.zeros(x.size), np.zeros(x.size)]
    for chosen in itertools.product((0, 1), repeat=records):
        weight = math.prod(p if inside else 1.0 - p for inside in chosen)
        sample = [i for i, inside in enumerate(chosen) if inside]
        kept = list(itertools.combinations(sample, min(size, len(sample))))
        for batch in kept:
            for value, made in zip((1.0, -1.0), density, strict=True):
                total = sum(value if i == 0 else others[i - 1] for i in batch)
                made += weight / len(kept) * np.exp(-0.5 * ((x - total) / noise) ** 2)
    step = x[1] - x[0]
    first, second = (made * step / (noise * math.sqrt(2.0 * math.pi)) for made in density)
    true = float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
    run = pe.GaussianMechanism(noise).truncated_poisson_sampled(
        p, batch_size=size, dataset_size=records
    )
    assert true <= pe.delta(run, epsilon, adjacency="substitute", bounds=True).upper + 2e-7


def test_substitution_has_the_known_ends() -> None:
    """No truncation: plain samples; samples of all records: batches without replacement."""
    noise = pe.GaussianMechanism(1.5)
    whole = noise.truncated_poisson_sampled(0.25, batch_size=9, dataset_size=9)
    all_in = noise.truncated_poisson_sampled(1, batch_size=3, dataset_size=9)
    both_in = noise.truncated_poisson_sampled(1, batch_size=9, dataset_size=9)
    for run, like in (
        (whole, noise.poisson_sampled(0.25)),
        (all_in, noise.sampled_without_replacement(batch_size=3, dataset_size=9)),
        (both_in, noise),
    ):
        for epsilon in (0.0, 0.4, 2.0):
            expected = pe.delta(like, epsilon, adjacency="substitute")
            assert pe.delta(run, epsilon, adjacency="substitute") == pytest.approx(expected, 1e-9)
    rare = noise.truncated_poisson_sampled(0.25, batch_size=30, dataset_size=60)
    often = noise.truncated_poisson_sampled(0.25, batch_size=8, dataset_size=60)
    plain = pe.delta(noise.poisson_sampled(0.25).composed(5), 1.0, adjacency="substitute")
    assert pe.delta(rare.composed(5), 1.0, adjacency="substitute") == pytest.approx(plain, 1e-3)
    assert pe.delta(often.composed(5), 1.0, adjacency="substitute") > 0.5 * plain
