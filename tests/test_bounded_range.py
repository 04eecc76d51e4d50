"""Mechanisms of bounded range against brute force over the outer parameter and exact sums."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from outcomes import hockey_stick
from thorough import ALL

pytest.importorskip("flint")

from batch_truth import bounded_range_profile
from conversion_truth import judge_range_epsilon

import pyengine as pe


def atoms(t: Any, width: Any) -> tuple[Any, Any]:
    """Probability of loss t without and with the record."""
    a = (mpmath.exp(-t) - mpmath.exp(-width)) / (1 - mpmath.exp(-width))
    return a, a * mpmath.exp(t)


@settings(max_examples=15 if ALL else 5, deadline=None)
@given(
    width=st.sampled_from(["0.01", "0.3", "1", "4"]),
    steps=st.integers(1, 12),
    part=st.floats(0.0, 0.98),
)
@example(width="2", steps=3, part=0.2)
@example(width="0.05", steps=6, part=0.6)
def test_the_outer_parameter_by_brute_force(width: str, steps: int, part: float) -> None:
    epsilon = float(width) * steps * part
    truth = float(bounded_range_profile(float(width), steps, epsilon))
    found = pe.duality.bounded_range_delta(epsilon, range_per_step=float(width), steps=steps)
    assert found == pytest.approx(truth, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    ("delta", "width", "steps"),
    [
        (1e-6, 20.0, 50),  # 926.640368353, as losses above 700 are
        (1e-6, 50.0, 100),
        (0.9999999999554068, 5.0, 40),  # 8.640467592096: the digits are those of 1 - δ
        (0.9999999999986567, 5.0, 40),
    ],
)
def test_epsilon_where_it_was_off(delta: float, width: float, steps: int) -> None:
    found = pe.duality.bounded_range_epsilon(delta, range_per_step=width, steps=steps)
    assert judge_range_epsilon(found, delta, width, steps).error <= 1.0
    assert pe.duality.bounded_range_delta(found, range_per_step=width, steps=steps) <= delta


@pytest.mark.parametrize("steps", [2, 3])
def test_different_parameters_of_the_steps_are_no_better(steps: int) -> None:
    width, epsilon = 1.0, 0.4
    each = np.array([[float(x) for x in atoms(t, width)] for t in np.linspace(0.0, width, 13)])
    total = np.zeros(1)
    for signs in itertools.product((0, 1), repeat=steps):
        without, with_it = np.ones(1), np.ones(1)  # at all choices of the steps so far
        for low in signs:
            a, b = (1.0 - each if low else each).T
            without, with_it = np.outer(without, a).ravel(), np.outer(with_it, b).ravel()
        total = total + np.maximum(with_it - math.exp(epsilon) * without, 0.0)
    best = total.max()
    found = pe.duality.bounded_range_delta(epsilon, range_per_step=width, steps=steps)
    assert 0.98 * found < best <= found * (1 + 1e-12)


def uniform_sum(steps: int, x: Any) -> Any:
    """Density at x of the sum of uniforms on [-1, 1]."""
    total = mpmath.mpf(0)
    for k in range(steps + 1):
        if x + steps - 2 * k > 0:
            total += (-1) ** k * math.comb(steps, k) * (x + steps - 2 * k) ** (steps - 1)
    return total / (mpmath.factorial(steps - 1) * mpmath.mpf(2) ** steps)


@pytest.mark.parametrize(
    ("width", "steps", "epsilon"),
    [("0.5", 1, "0.1"), ("1", 2, "0.5"), ("0.25", 5, "0.5"), ("2", 3, "1.5"), ("0.125", 12, "0.5")],
)
def test_the_pair_tilted_by_a_half_is_uniform(width: str, steps: int, epsilon: str) -> None:
    """Composed, its loss is a sum of uniforms of which all is known."""
    with mpmath.workdps(40):
        w, e = mpmath.mpf(width), mpmath.mpf(epsilon)
        mass = (w / (2 * mpmath.sinh(w / 2))) ** steps  # of the root of both densities
        knots = sorted({e, *(w * (2 * k - steps) for k in range(steps + 1))})
        ends = [x for x in knots if x >= e]

        def density(x: Any) -> Any:
            if steps == 1:
                return mpmath.mpf(1) / 2
            return uniform_sum(steps, x / w)

        truth = mass * mpmath.quad(
            lambda x: (mpmath.exp(x / 2) - mpmath.exp(e - x / 2)) * density(x) / w, ends
        )
    run = pe.ExponentialMechanism(width).composed(steps)
    for adjacency in ("add", "remove"):
        found = pe.delta(run, float(e), adjacency=adjacency, bounds=True)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1.01e-4 * truth


def test_adaptive_choices_stay_between() -> None:
    """Two steps, the second one chosen in view of the first: no less than the best beforehand."""
    width, gains = 1.0, []
    grid = np.linspace(0.0, width, 201)
    a = np.expm1(width - grid) / np.expm1(width)
    b = a * np.exp(grid)

    def one(c: Any) -> Any:
        return np.maximum(
            np.maximum(b * (1 - np.exp(np.minimum(c[:, None] - grid, 0.0))), 0.0)
            + (1 - b) * np.maximum(1 - np.exp(np.minimum(c[:, None] - grid + width, 50.0)), 0.0),
            0.0,
        ).max(axis=1)

    for epsilon in (0.05, 0.1, 0.2, 0.4, 0.9):
        adaptive = float((b * one(epsilon - grid) + (1 - b) * one(epsilon - grid + width)).max())
        beforehand = pe.duality.bounded_range_delta(epsilon, range_per_step=width, steps=2)
        bound = pe.delta(pe.ExponentialMechanism(width).composed(2), epsilon, bounds=True)
        assert beforehand * (1 - 1e-4) < adaptive < bound.upper
        gains.append(adaptive / beforehand)
    assert max(gains) > 1.001


def test_exponential_mechanisms_are_below() -> None:
    """Scores of four candidates, moved by at most one half each: range 1 with weights e^q."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        scores = rng.normal(0, 2, 4)
        moved = scores + rng.uniform(-0.5, 0.5, 4)
        p, q = (np.exp(x) / np.exp(x).sum() for x in (scores, moved))
        for epsilon in (0.0, 0.2, 0.7):
            real = hockey_stick(q, p, epsilon)
            bound = pe.duality.bounded_range_delta(epsilon, range_per_step=1.0, steps=1)
            assert real <= bound * (1 + 1e-12)


def test_inverse_and_limits() -> None:
    delta, epsilon = pe.duality.bounded_range_delta, pe.duality.bounded_range_epsilon
    for goal in (1e-12, 1e-6, 1e-2):
        found = epsilon(goal, range_per_step=0.25, steps=30)
        assert delta(found, range_per_step=0.25, steps=30) <= goal
        assert delta(found - 1e-8, range_per_step=0.25, steps=30) > goal
    assert epsilon(0.0, range_per_step=0.5, steps=3) == 1.5
    assert epsilon(1.0, range_per_step=0.5, steps=3) == 0.0
    assert delta([[0.0, 2.0]], range_per_step=0.5, steps=3)[0, 1] == 0.0
    one_step = (1 - math.exp((0.25 - 1) / 2)) ** 2 / (1 - math.exp(-1))
    assert delta(0.25, range_per_step=1.0, steps=1) == pytest.approx(one_step, rel=1e-14)
    assert pe.delta(pe.ExponentialMechanism(1.0), 0.25) == pytest.approx(one_step, rel=1e-12)
    assert pe.delta(pe.ExponentialMechanism(0).composed(5), 0.0) == 0.0
    sampled = pe.ExponentialMechanism(1.0).poisson_sampled(0.1)
    assert pe.delta(sampled, 0.05) < pe.delta(pe.GenericMechanism(1.0).poisson_sampled(0.1), 0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pe.ExponentialMechanism(-1), "epsilon must be finite and >= 0"),
        (lambda: pe.ExponentialMechanism(701), "epsilon must be at most 700"),
        (
            lambda: pe.duality.bounded_range_delta(-1.0, range_per_step=1.0, steps=1),
            "epsilon must lie in",
        ),
        (
            lambda: pe.duality.bounded_range_delta(1.0, range_per_step=0.0, steps=1),
            "range_per_step must be positive",
        ),
        (
            lambda: pe.duality.bounded_range_delta(1.0, range_per_step=1e3, steps=1),
            "range_per_step must be at most 700",
        ),
        (
            lambda: pe.duality.bounded_range_epsilon(0.1, range_per_step=1.0, steps=0),
            "steps must be an integer >= 1",
        ),
        (
            lambda: pe.duality.bounded_range_epsilon(2.0, range_per_step=1.0, steps=1),
            "delta must lie in",
        ),
        (
            lambda: pe.duality.bounded_range_delta(0.1, range_per_step=1.0, steps=5001),
            "steps must be at most 5,000",
        ),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
