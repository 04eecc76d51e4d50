"""The κ of priors against brute force and its own confidence statement."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine.priors import kappa_from_samples, kappa_of_points, kappa_uniform, kappa_weighted

NORMS = {"manhattan": 1, "euclidean": 2, "chebyshev": np.inf}


def test_finite_priors() -> None:
    assert kappa_uniform(256) == 1 / 256
    assert kappa_weighted([0.2, 0.5, 0.3]) == 0.5


@pytest.mark.parametrize("error", NORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_balls_against_all_pairs(error: str, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    points = rng.standard_normal((300, 3))
    weights = rng.dirichlet(np.ones(300)) if weighted else np.full(300, 1 / 300)
    distance = np.linalg.norm(points[:, None] - points[None], ord=NORMS[error], axis=2)
    expected = [float(((distance <= r) @ weights).max()) for r in (0.8, 1.6)]
    given = {"probabilities": weights} if weighted else {}
    found = kappa_of_points(points, 0.8, error=error, **given)
    assert np.allclose([found.value, found.upper], expected, rtol=1e-12)
    assert found.lower == found.value
    own = kappa_of_points(
        points,
        0.8,
        error=lambda a, b: np.linalg.norm(a - b, ord=NORMS[error], axis=1),
        **given,
    )
    assert np.allclose(own, found, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=30), st.integers(0, 15))
def test_line_is_exact(values: list[int], radius: int) -> None:
    """All guesses that matter lie half-way between integers."""
    guesses = np.arange(-40, 41) / 2
    inside = np.abs(np.array(values)[:, None] - guesses) <= radius
    found = kappa_of_points(values, float(radius))
    assert found.value == pytest.approx(inside.mean(axis=0).max())
    assert found.lower == found.value == found.upper


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 2.0))
def test_bounds_hold_any_guess(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((40, 2))
    guesses = rng.standard_normal((200, 2))
    mass = np.linalg.norm(points[:, None] - guesses, axis=2) <= radius
    assert mass.mean(axis=0).max() <= kappa_of_points(points, radius).upper + 1e-12


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_points_as_far_apart_as_a_ball_is_wide(dimension: int) -> None:
    """Rounding left out the other point, and half of κ, of one in 65 such pairs."""
    rng = np.random.default_rng(dimension)
    for pair in rng.uniform(-1.0, 1.0, (400, 2, dimension)):
        first, second = (list(map(Fraction, point)) for point in pair.tolist())
        square = sum((x - y) ** 2 for x, y in zip(first, second, strict=True))
        radius = 0.5 * math.sqrt(square)
        if (2 * Fraction(radius)) ** 2 < square:
            radius = math.nextafter(radius, 2.0)
        assert kappa_of_points(pair, radius).upper == 1.0  # of the ball about the middle


def test_exact_match() -> None:
    found = kappa_of_points([[0, 0], [1, 1], [0, 0], [2, 2]], 0.0)
    assert tuple(found) == (0.5, 0.5, 0.5)
    letters = np.array([[0.0], [1.0], [1.0], [2.0]])
    match = kappa_of_points(letters, 0.5, error=lambda a, b: np.any(a != b, axis=1))
    assert match.value == 0.5


def test_confidence_statement() -> None:
    """Uniform prior on [0, 1], κ = 2η: at confidence 0.9 the bound holds in 9 of 10 runs."""
    rng, radius = np.random.default_rng(0), 0.05
    bounds = [
        kappa_from_samples(rng.uniform(size=300), radius, confidence=0.9).upper for _ in range(200)
    ]
    assert np.mean(np.array(bounds) >= 2 * radius) >= 0.9
    assert np.median(bounds) < 3.0 * 2 * radius


def test_confidence_is_proposition_6() -> None:
    samples = np.linspace(0.0, 1.0, 500)
    found = kappa_from_samples(samples, 0.02, confidence=0.95)
    kappa = found.upper
    tau = 1.0 - found.value / kappa
    assert np.exp(-samples.size * tau**2 * kappa / 2) == pytest.approx(0.05)
    more = kappa_from_samples(samples, 0.02, confidence=0.999)
    assert more.upper > kappa
    assert more.value == found.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kappa_uniform(0), "candidates must be an integer >= 1"),
        (lambda: kappa_weighted([0.5, 0.6]), "probabilities must sum to 1"),
        (lambda: kappa_weighted([]), "not empty"),
        (lambda: kappa_of_points([[1.0, 2.0]], -1.0), "radius must be finite and at least 0"),
        (lambda: kappa_of_points([[1.0, np.inf]], 1.0), "points must be a finite array"),
        (lambda: kappa_of_points([1.0, 2.0], 1.0, error="cosine"), "error must be one of"),
        (lambda: kappa_of_points([1.0, 2.0], 1.0, probabilities=[1.0]), "one for each of 2"),
        (lambda: kappa_of_points([1.0, 2.0], 1.0, error=lambda a, _: a), "error must return 2"),
        (lambda: kappa_from_samples([1.0, 2.0], 1.0, confidence=0.0), "confidence must lie in"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
