"""The profile beside the smallest loss: bounds that hold, and that say something."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from error_budget import check_near
from scipy.special import log_ndtr, ndtri
from scipy.stats import binom

import pyengine as pe
from pyengine.engines.lattice.support_end import profile_at_end, smallest_loss
from pyengine.laws.composition import step_law
from pyengine.laws.laplace import LaplaceLaw

NOISE = 2.0


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_one_laplace_step(gap: float) -> None:
    low = -1.0 / NOISE
    c = low + gap
    found = profile_at_end(((LaplaceLaw(NOISE), 1),), c, (low, low))
    assert found is not None
    # H at ε = -c is 1 - exp((ε - 1/noise)/2), Theorem 3 of Balle, Barthe and Gaboardi (2018)
    truth = -mpmath.expm1((-mpmath.mpf(c) - mpmath.mpf(1) / 2) / 2)
    assert found[0] <= truth <= found[1]
    assert found[1] - found[0] <= 2.0 * (gap + 1e-5) * found[1]


@pytest.mark.parametrize("steps", [2, 5])
def test_several_laplace_steps(steps: int) -> None:
    gap, low = 1e-6, -steps / NOISE
    ends = (math.nextafter(low, -9.0), math.nextafter(low, 9.0))
    found = profile_at_end(((LaplaceLaw(NOISE), steps),), low + gap, ends)
    assert found is not None
    # the atom at the end, of mass 2^-steps, and what of the rest lies within the gap of it
    least = 0.5**steps * -math.expm1(-gap)
    assert least * (1.0 - 1e-5) <= found[0] <= found[1] <= least * (1.0 + 1e-5)


def test_where_nothing_is_said() -> None:
    parts, low = ((LaplaceLaw(NOISE), 1),), -1.0 / NOISE
    assert profile_at_end(parts, low, (low, low)) is None
    assert profile_at_end(parts, low - 1e-3, (low, low)) is None
    assert profile_at_end(parts, low + 0.06, (low, low)) is None
    # an end that is not known well enough
    assert profile_at_end(parts, low + 1e-9, (low - 1e-9, low + 1e-9)) is None


def _nearly_disjoint() -> tuple[pe.Mechanism, float]:
    """Steps that show the record for certain, with probability 1/128, and the rest of the loss."""
    return pe.dp_sgd(0.01, 1.0 / 128.0, 500), 500.0 * math.log1p(-1.0 / 128.0)


@pytest.mark.parametrize("alpha", [1e-9, 1e-5, 0.1, 0.5, 0.9, 1.0 - 1e-9])
def test_noise_that_hides_nothing_leaves_the_steps_without_the_record(alpha: float) -> None:
    mechanism, low = _nearly_disjoint()
    found = pe.trade_off(mechanism, alpha, adjacency="add", method="lattice", bounds=True)
    truth = (1.0 - alpha) * math.exp(low)
    assert found.lower * (1.0 - 1e-13) <= truth <= found.upper * (1.0 + 1e-13)
    assert found.value == pytest.approx(truth, rel=1e-12)
    assert found.upper <= found.lower * (1.0 + 1e-4)
    # the hull's line of slope -1 joins both curves
    both = pe.trade_off(mechanism, alpha, method="lattice", bounds=True)
    line = max(math.exp(low) - alpha, 0.0)
    assert both.lower * (1.0 - 1e-9) <= line <= both.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_other_questions_on_noise_that_hides_nothing(adjacency: str) -> None:
    mechanism, low = _nearly_disjoint()
    for epsilon in (0.01, 1.0, 3.5, 3.9):
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, method="lattice", bounds=True)
        truth = -math.expm1(epsilon + low if adjacency == "add" else low)
        assert found.lower * (1.0 - 1e-9) <= truth <= found.upper * (1.0 + 1e-9)
    if adjacency == "add":
        for delta in (1e-9, 1e-3, 0.5, 0.9):
            found = pe.epsilon(mechanism, delta, adjacency=adjacency, method="lattice", bounds=True)
            truth = math.log1p(-delta) - low
            assert found.lower <= truth * (1.0 + 1e-13)
            assert truth * (1.0 - 1e-13) <= found.upper <= found.lower * (1.0 + 1e-4)
    else:
        found = pe.epsilon(mechanism, 1e-5, adjacency=adjacency, method="lattice", bounds=True)
        # some fifteen steps show the record, each with a loss of about 5,000 ± 100
        assert 7e4 < found.lower <= found.upper <= found.lower * (1.0 + 1e-4) < 1e5


def test_events_of_the_smallest_loss_hold_exact_sums() -> None:
    rng = np.random.default_rng(20261122)
    for _ in range(400):
        truth, steps = float(rng.uniform(0.5, 0.999)), int(rng.integers(1, 60))
        p = float(rng.uniform(0.01, 1.0))
        law = step_law(pe.RandomizedResponse(truth).poisson_sampled(p), "add")
        a = np.array([1.0 - truth, truth])
        b = (1.0 - p) * a + p * a[::-1]
        low = float(np.log(b / a).min())
        mass = float(a[np.argmin(b / a)]) ** steps
        ends = (steps * low * (1.0 + 1e-13), steps * low * (1.0 - 1e-13))
        found = smallest_loss(((law, steps),), ends, 1e-6)
        assert found is not None
        assert found.mass <= mass * (1.0 + 1e-9)
        assert found.mass == pytest.approx(mass, rel=1e-9)
        assert found.least <= steps * low <= found.most
        k = np.arange(steps + 1)
        log_a = binom.logpmf(k, steps, a[np.argmin(b / a)])
        loss = k * low + (steps - k) * float(np.log(b / a).max())
        epsilon = float(rng.uniform(0.0, -steps * low))
        profile = np.sum(np.exp(log_a) * np.maximum(-np.expm1(epsilon + loss), 0.0))
        lower, upper = found.profile(np.array([epsilon]))
        assert lower[0] <= profile * (1.0 + 1e-12)
        assert upper[0] >= profile * (1.0 - 1e-12)
        level = 1.0 - mass * float(rng.random())
        lower, upper = found.beta(np.array([level]), 0.0)
        exact = (1.0 - level) * math.exp(steps * low)
        assert lower[0] <= exact * (1.0 + 1e-12)
        assert exact <= upper[0] * (1.0 + 1e-12)


def test_two_heavy_atoms_lie_on_the_lattice() -> None:
    """Losses of half a million steps: two atoms of nearly all mass, and a rare third one."""
    epsilon, p, steps = 0.1294, 0.05, 200_000
    mechanism = pe.compose(
        pe.GenericMechanism(epsilon, 1e-12).poisson_sampled(p).composed(steps),
        pe.GaussianMechanism(50.0),
    )
    found = pe.trade_off(mechanism, 0.87, adjacency="remove", bounds=True)
    assert found.upper <= found.lower * (1.0 + 1e-4)
    # nearly normal: the steps have losses log(1 - p + p e^{±ε}) and a Gaussian one is next to them
    share = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    a = np.array([share, 1.0 - share])
    b = (1.0 - p) * a + p * a[::-1]
    square = steps * float(np.sum((np.sqrt(b) - np.sqrt(a)) ** 2)) * 4.0 + 1.0 / 2500.0
    quantile = -float(ndtri(0.87)) - math.sqrt(square)
    check_near("limits.two_heavy_atoms", math.log(found.value), float(log_ndtr(quantile)))


def test_tests_that_move_far_are_refused_for_their_memory() -> None:
    """They took 5.5 GB: 10^8 rare steps that mostly do not sample, each of which moves a test."""
    run = pe.dp_sgd(1.0, 1e-7, 10**8)
    with pytest.raises(pe.AccuracyError, match="lattice points, at most 25165824 are held in mem"):
        pe.trade_off(run, 1.0 - 1e-9, method="lattice")
    found = pe.trade_off(run, 0.5, bounds=True)  # lines need none
    assert found.upper - found.lower < 1e-11
