"""Bounds of the last iterate against mixtures of normals, and against what full batches attain."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from thorough import ALL

import pyengine as pe


def truth(noise: float, rate: float, steps: int, c: float, epsilon: float, order: str) -> float:
    """δ of X_t of quadratic losses: a mixture of 2^t normals against one, by quadrature."""
    coins = np.array(list(itertools.product((0, 1), repeat=steps)), dtype=float)
    means = coins @ c ** np.arange(steps)
    weights = np.prod(np.where(coins > 0, rate, 1.0 - rate), axis=1)
    deviation = noise * math.sqrt(float((c ** (2.0 * np.arange(steps))).sum()))
    x = np.linspace(-12.0 * deviation, float(means.max()) + 12.0 * deviation, 20_001)
    plain = np.exp(-0.5 * (x / deviation) ** 2)
    mixed = np.exp(-0.5 * ((x[:, None] - means) / deviation) ** 2) @ weights
    first, second = (mixed, plain) if order == "remove" else (plain, mixed)
    gap = np.maximum(first - math.exp(epsilon) * second, 0.0)
    return float(gap.sum() * (x[1] - x[0])) / deviation / math.sqrt(2.0 * math.pi)


def test_quadratic_losses_lie_below() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300 if ALL else 40):
        noise, rate = rng.uniform(0.6, 4.0), rng.uniform(0.05, 0.9)
        steps, c = int(rng.integers(1, 10)), rng.uniform(0.2, 1.0)
        epsilon, order = rng.uniform(0.0, 1.0), str(rng.choice(["add", "remove"]))
        run = pe.last_iterate(noise, rate, steps, contraction=c)
        true = truth(noise, rate, steps, c, epsilon, order)
        last = int(rng.integers(1, steps + 1))
        over = int(rng.integers(1, last + 1))
        bounds = [run.bound(last, rng.uniform(0.1, 0.9), k) for k in (over, None)]
        for each in (run, *bounds):
            found = pe.delta(each, epsilon, adjacency=order, bounds=True).upper
            assert found >= true * (1.0 - 1e-6) - 1e-12, (run, epsilon, order)


def test_full_batches_are_attained() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        noise, steps, c = rng.uniform(1.0, 9.0), int(rng.integers(1, 400)), rng.uniform(0.5, 0.999)
        run = pe.last_iterate(noise, 1, steps, contraction=c)
        square = (1.0 - c**steps) * (1.0 + c) / ((1.0 + c**steps) * (1.0 - c))
        exact = pe.delta(pe.GaussianMechanism(noise / math.sqrt(square)), 0.5)
        found = pe.delta(run, 0.5, bounds=True)
        assert exact * (1.0 - 1e-12) <= found.upper <= exact * (1.0 + 1e-9)


def test_sets_with_a_diameter() -> None:
    """ε ends to grow with the steps, at any rate; for full batches as two normals say."""
    words: dict[str, Any] = {"contraction": 1.0, "diameter": 20.0}
    few, many = (pe.last_iterate(4.0, 0.05, t, **words) for t in (50_000, 400_000))
    check_near("limits.diameter", pe.epsilon(few, 1e-5), pe.epsilon(many, 1e-5))
    assert pe.epsilon(many, 1e-5) < 0.5 * pe.epsilon(many.parts[0], 1e-5)
    full = pe.last_iterate(4.0, 1, 1000, **words)
    best = min((20.0 + n) / math.sqrt(n) for n in range(1, 1000)) / 4.0
    exact = pe.delta(pe.GaussianMechanism(1.0 / best), 1.0)
    assert exact <= pe.delta(full, 1.0) <= exact * (1.0 + 1e-3)


def test_few_steps_hide_the_distance() -> None:
    """Better than all that count, and the least in the normal limit is near the least of δ."""
    run = pe.last_iterate(2.0, 0.02, 20_000, contraction=0.99)
    best = pe.delta(run, 1.0)
    counts, shares = (300, 400, 450, 500, 550, 600, 700), np.linspace(0.05, 0.95, 10)
    alike = min(pe.delta(run.bound(n, 0.1 * s), 1.0) for n in counts for s in shares)
    assert best <= 0.6 * alike
    overs = (1, 10, 30, 60, 100, 200)
    others = (run.bound(n, s, m) for n in counts[2:6] for s in shares[:5] for m in overs)
    assert best <= min(pe.delta(each, 1.0) for each in others) * 1.02


def test_hiding_never_costs() -> None:
    for c in (1.0, 0.99):
        run = pe.last_iterate(1.0, 0.02, 40, contraction=c)
        for ask, x, sign in (
            (pe.delta, 0.3, 1.0),
            (pe.epsilon, 1e-5, 1.0),
            (pe.gamma_bound, 0.01, 1.0),
            (pe.trade_off, 0.1, -1.0),
        ):
            for order in ("add", "remove", "add_remove"):
                shown = ask(run.parts[0], x, adjacency=order)
                assert sign * ask(run, x, adjacency=order) <= sign * shown + 1e-12
    nearer, farther = (pe.last_iterate(1.0, 0.02, 2000, contraction=c) for c in (0.9, 0.99))
    assert pe.epsilon(nearer, 1e-5) < pe.epsilon(farther, 1e-5)


def test_words_and_refusals() -> None:
    run = pe.last_iterate(2.0, "1/50", 300, contraction=0.9, diameter=7)
    assert str(run) == (
        "last iterate of DP-SGD, noise multiplier 2, 300 steps at rate 0.02, updates contract by "
        "0.9 in a set of diameter 7"
    )
    assert run.labels("add")[0].known == "upper bound"
    stated = pe.statement.privacy_statement(run, 1e-5, kappas=[], false_positive_rates=[])
    assert stated.mechanism == (str(run),)
    with pytest.raises(pe.NotDefinedError, match="adjacency must be 'add', 'remove'"):
        pe.epsilon(run, 1e-5, adjacency="substitute")
    with pytest.raises(ValueError, match=r"last must be in \[1, 300\], got 301"):
        run.bound(301, 0.5)
    with pytest.raises(ValueError, match=r"over must be in \[1, 3\], got 4"):
        run.bound(3, 0.5, 4)
    with pytest.raises(ValueError, match=r"share must be in \(0, 1\)"):
        run.bound(3, 1.0)


@pytest.mark.parametrize(
    ("given", "words", "message"),
    [
        ((0, 0.1, 5), {}, "noise_multiplier must be"),
        ((1, 0, 5), {}, r"rate must be in \(0, 1\], got 0"),
        ((1, 2, 5), {}, r"rate must be in \(0, 1\], got 2"),
        ((1, 0.1, 0), {}, "steps must be at least 1"),
        ((1, 0.1, 5), {"contraction": 1.1}, r"contraction must be in \(0, 1\]"),
        ((1, 0.1, 5), {"contraction": 0}, r"contraction must be in \(0, 1\]"),
        ((1, 0.1, 5), {"diameter": 0}, "diameter must be > 0"),
        ((1, 0.1, 5), {"diameter": math.nan}, "diameter must not be NaN"),
    ],
)
def test_wrong_runs(given: Any, words: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.last_iterate(*given, **{"contraction": 0.9, **words})


@pytest.mark.parametrize("noise", ["1e-320", 1e-160, 1e200])
@pytest.mark.parametrize("steps", [7, 10**20, 10**200])
def test_ends_of_doubles_are_answered_or_refused(noise: Any, steps: int) -> None:
    """Squares of noise and numbers of steps are beyond doubles, and of 64-bit integers."""
    for rate, contraction in itertools.product((1, 5e-324, 0.5), (5e-324, 0.5, 1.0)):
        run = pe.last_iterate(noise, rate, steps, contraction=contraction, diameter=1e300)
        assert 1 <= run.start[0] <= steps
        last, over, share = run.start
        with contextlib.suppress(ValueError, pe.AccuracyError):
            assert 0.0 <= pe.delta(run.bound(last, share, over), 1.0) <= 1.0
