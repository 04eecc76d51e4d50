"""The papers' approximations against the exact engines, and the intervals of Monte Carlo."""

from __future__ import annotations

import math
import tracemalloc
import warnings

import mpmath
import numpy as np
import pytest
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.approximations import clt_mu, edgeworth_gamma, monte_carlo_gamma
from pyengine.engines.intervals import bennett_interval, empirical_bernstein, rank_range
from pyengine.engines.inverse_cdf import LossTable, loss_table, sample_losses
from pyengine.engines.loss_quadrature import losses
from pyengine.engines.monte_carlo import MonteCarloPair
from pyengine.numerics.bracketing import inverse_profile

IMAGENET = pe.dp_sgd(2.5, 0.0127, 72_000)
MANY = pe.dp_sgd(1.0, 0.01, 1000)
KAPPA = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9])
ADJACENCIES = ("add", "remove", "add_remove")
ERRORS = (pe.gamma_bound, pe.trade_off)
QUIET = pytest.mark.filterwarnings("ignore::pyengine.ApproximationWarning")

# mu = sensitivity/scale, steps, kappa = P(S > c), gamma = Q(S > c) of the Laplace mechanism:
# trinomial mixtures of Irwin and Hall's laws in ball arithmetic, rounded to 12 digits
LAPLACE = (
    (1.0, 10, 0.00532690867520, 0.574800617678),
    (0.25, 20, 0.0171720081944, 0.147509890677),
    (0.6, 8, 0.197372805100, 0.761507111430),
)


def test_threefry_known_answers() -> None:
    """Vectors of Random123 (kat_vectors, threefry2x64 20)."""
    ones = 2**64 - 1
    pi = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
    vectors = {
        (0, 0, 0, 0): (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D),
        (ones, ones, ones, ones): (0xE02CB7C4D95D277A, 0xD06633D0893B8B68),
        (pi[2], pi[3], pi[0], pi[1]): (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    }
    out = ffi.new("uint64_t[2]")
    for key_and_counter, expected in vectors.items():
        lib.pe_threefry(*key_and_counter, out)
        assert tuple(out) == expected


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_edgeworth_imagenet(adjacency: str) -> None:
    truth = pe.gamma_bound(IMAGENET, KAPPA, adjacency=adjacency)
    found = pe.gamma_bound(
        IMAGENET, KAPPA, adjacency=adjacency, method="edgeworth", bounds="estimated"
    )
    assert np.all(np.abs(found.value / truth - 1.0) < 1e-8)
    # the smaller side keeps its own accuracy
    assert np.all(np.abs((1.0 - found.value) / (1.0 - truth) - 1.0) < 1e-7)
    inside = slice(2 if adjacency != "add" else 0, None)
    assert np.all((found.lower <= truth + 1e-13)[inside])
    assert np.all((truth <= found.upper + 1e-13)[inside])


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_edgeworth_converges_at_its_rate(order: int, adjacency: str) -> None:
    """16 times the steps make the error of order k at least 2^(3/2 (k + 1)) times smaller."""
    kappa = np.array([0.02, 0.2])
    error = []
    for steps in (400, 6400):
        # the composed law keeps its distance, each of its steps loses some
        mechanism = pe.dp_sgd(4.0 * (steps / 400) ** 0.5, 0.2, steps)
        truth = pe.gamma_bound(mechanism, kappa, adjacency=adjacency)
        found = edgeworth_gamma(mechanism, kappa, order=order, adjacency=adjacency)
        error.append(float(np.max(np.abs(found - truth))))
    assert error[1] <= max(error[0] / 2.0 ** (1.5 * (order + 1)), 2e-14)


def test_edgeworth_orders_improve() -> None:
    errors = [
        abs(edgeworth_gamma(IMAGENET, 1e-3, order=order) / pe.gamma_bound(IMAGENET, 1e-3) - 1.0)
        for order in range(5)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.02
    assert errors[4] < 1e-11


def test_edgeworth_heterogeneous() -> None:
    parts = [pe.dp_sgd(noise, p, 2000) for noise, p in ((3.0, 0.05), (4.0, 0.02), (5.0, 0.1))]
    mechanism = pe.compose(*parts)
    truth = pe.gamma_bound(mechanism, KAPPA[1:])
    assert np.allclose(edgeworth_gamma(mechanism, KAPPA[1:]), truth, rtol=1e-9, atol=0)
    halves = pe.compose(pe.dp_sgd(1.0, 0.01, 400), pe.dp_sgd(1.0 + 1e-15, 0.01, 600))
    assert np.allclose(edgeworth_gamma(halves, 0.1), edgeworth_gamma(MANY, 0.1), rtol=1e-12)


@QUIET
@pytest.mark.parametrize(("mu", "steps", "kappa", "gamma"), LAPLACE)
def test_laplace(mu: float, steps: int, kappa: float, gamma: float) -> None:
    mechanism = pe.LaplaceMechanism(1.0 / mu).composed(steps)
    assert abs(edgeworth_gamma(mechanism, kappa) / gamma - 1.0) < 3e-3
    found = monte_carlo_gamma(mechanism, kappa, samples=50_000)
    assert found.lower < gamma < found.upper
    assert abs(found.value / gamma - 1.0) < 0.01
    plain = monte_carlo_gamma(mechanism, kappa, samples=50_000, tilted=False)
    assert plain.lower < gamma < plain.upper


def test_laplace_below_the_atom_of_the_largest_loss() -> None:
    """All steps at their largest loss have probability (e^{-μ}/2)^N: below it γ = κ e^{Nμ}."""
    mechanism, kappa = pe.LaplaceMechanism(2.0).composed(8), 1e-6
    found = monte_carlo_gamma(mechanism, kappa, samples=5000)
    gamma = kappa * np.exp(4.0)
    assert found.lower < gamma < found.upper
    assert found.value == pytest.approx(gamma, rel=1e-9)


def test_laplace_one_step_is_closed_form() -> None:
    """Corollary 1 of Kaissis et al. 2023, in the range where e^{-μ}/2 <= α <= 1/2."""
    mechanism, alpha = pe.LaplaceMechanism(1.0), np.array([0.25, 0.4])
    found = monte_carlo_gamma(mechanism, alpha, samples=10**5, tilted=False)
    gamma = 1.0 - np.exp(-1.0) / (4.0 * alpha)
    assert np.all((found.lower < gamma) & (gamma < found.upper))
    assert np.allclose(found.value, gamma, rtol=0.01)


def test_edgeworth_warns_outside_its_range() -> None:
    rare = pe.dp_sgd(0.5, 1e-4, 100)
    with pytest.warns(pe.ApproximationWarning, match="method='edgeworth' is outside its range"):
        found = pe.gamma_bound(rare, 1e-6, method="edgeworth", bounds="estimated")
    assert found.lower <= pe.gamma_bound(rare, 1e-6) <= found.upper


@QUIET
@pytest.mark.parametrize("order", [0, 1, 4])
def test_bounds_reach_the_truth(order: int) -> None:
    """Whatever an expansion misses by, its bounds hold the reference's value and its own."""
    kappa = np.array([1e-4, 0.01, 0.3])
    for noise, p, steps in ((0.8, 0.02, 100), (2.0, 0.3, 3000)):
        mechanism = pe.dp_sgd(noise, p, steps)
        truth = pe.gamma_bound(mechanism, kappa, adjacency="add", method="reference")
        found = edgeworth_gamma(mechanism, kappa, order=order, bounds="estimated")
        assert np.all((found.lower <= truth) & (truth <= found.upper))
        apart = np.abs(found.value - truth)
        assert np.all(found.upper - found.lower <= apart * (1.0 + 1e-6) + 1e-12 * truth)


def test_clt() -> None:
    assert clt_mu(IMAGENET) == pytest.approx(0.0127 * np.sqrt(72_000 * np.expm1(1 / 6.25)))
    mixed = pe.compose(pe.dp_sgd(2.0, 0.1, 30), pe.LaplaceMechanism(3.0).composed(5))
    b = 1.0 / 3.0
    chi = 2.0 / 3.0 * np.exp(b) + np.exp(-2.0 * b) / 3.0 - 1.0
    assert clt_mu(mixed) == pytest.approx(np.sqrt(30 * 0.01 * np.expm1(0.25) + 5 * chi))
    truth = pe.gamma_bound(IMAGENET, KAPPA, adjacency="remove")
    found = pe.gamma_bound(IMAGENET, KAPPA, adjacency="remove", method="clt", bounds="estimated")
    assert np.all(np.abs(found.value / truth - 1.0) < 0.06)
    assert np.all((found.lower <= truth) & (truth <= found.upper))
    assert np.array_equal(found.value, pe.gamma_bound(IMAGENET, KAPPA, method="clt"))
    with pytest.raises(pe.AccuracyError, match="overflows"):
        clt_mu(pe.dp_sgd(0.03, 0.1, 10))


@QUIET
@pytest.mark.parametrize("method", ["edgeworth", "clt", "monte_carlo"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_questions(method: str, adjacency: str) -> None:
    """Each question in the neighbourhood of truth, within the bounds, and consistent in itself."""
    keywords = {"adjacency": adjacency, "method": method}
    mechanism = pe.dp_sgd(1.5, 0.05, 100)
    alpha = np.array([0.0, 0.05, 0.3, 0.42, 0.5, 0.7, 0.95, 1.0])
    beta = pe.trade_off(mechanism, alpha, **keywords)
    assert np.allclose(beta, pe.trade_off(mechanism, alpha, adjacency=adjacency), atol=7e-3)
    assert np.allclose(beta, 1.0 - pe.gamma_bound(mechanism, alpha, **keywords), atol=1e-15)
    assert beta[0] == 1.0
    assert beta[-1] == 0.0
    epsilon = np.array([0.0, 0.2, 0.6, np.inf])
    found = pe.delta(mechanism, epsilon, bounds="estimated", **keywords)
    truth = pe.delta(mechanism, epsilon, adjacency=adjacency)
    assert np.allclose(found.value, truth, atol=8e-3)
    assert np.all((found.lower <= truth) & (truth <= found.upper + 1e-6))
    inverse = pe.epsilon(mechanism, found.value[1:3], **keywords)
    assert np.allclose(inverse, epsilon[1:3], rtol=1e-3)
    assert pe.epsilon(mechanism, 1.0, **keywords) == 0.0
    assert (
        pe.epsilon(mechanism, 0.0, **keywords)
        >= pe.epsilon(mechanism, 0.0, adjacency=adjacency) - 1e-9
    )
    nothing = pe.dp_sgd(1.0, 0.0, 5)
    assert pe.gamma_bound(nothing, 0.3, **keywords) == pytest.approx(0.3, abs=1e-9)
    assert pe.delta(nothing, 0.1, **keywords) == 0.0
    assert pe.epsilon(nothing, 0.1, **keywords) == 0.0


@QUIET
@settings(max_examples=25, deadline=None)
@given(
    noise=st.floats(0.5, 20.0),
    p=st.floats(1e-3, 1.0),
    steps=st.integers(1, 10_000),
    order=st.integers(0, 4),
    adjacency=st.sampled_from(ADJACENCIES),
)
def test_edgeworth_is_a_trade_off_function(
    noise: float, p: float, steps: int, order: int, adjacency: str
) -> None:
    alpha = np.linspace(0.0, 1.0, 41)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pe.ApproximationWarning)
        found = edgeworth_gamma(
            pe.dp_sgd(noise, p, steps), alpha, order=order, adjacency=adjacency, bounds="estimated"
        )
    assert np.all((alpha <= found.lower) & (found.lower <= found.value))
    assert np.all((found.value <= found.upper) & (found.upper <= 1.0))
    assert np.all(np.diff(found.value) >= -1e-9)


def test_samples_do_not_depend_on_threads_or_split() -> None:
    step = pe.GaussianMechanism(1.0).poisson_sampled(0.1)
    tables = [
        loss_table(step, 7, 0.0, reversed_=False),
        loss_table(pe.LaplaceMechanism(2.0), 4, 0.5, reversed_=True),
    ]
    all_at_once = sample_losses(tables, 70_000, 5, threads=1)
    assert np.array_equal(all_at_once, sample_losses(tables, 70_000, 5, threads=3))
    assert np.array_equal(all_at_once[:1001], sample_losses(tables, 1001, 5, threads=2))
    assert not np.array_equal(all_at_once[:9], sample_losses(tables, 9, 6, threads=1))


def test_samples_are_sums_of_normal_variates() -> None:
    """Through a table of the identity: Box and Muller on words of the generator, here in Python."""
    cells = np.stack([-8.0 + 0.25 * np.arange(64), *np.zeros((3, 64))], axis=1)
    cells[:, 1] = 0.25
    found = sample_losses([LossTable(-8.0, 4.0, 64.0 - 1e-9, cells, 0.0, 3)], 300, 2023, threads=2)
    words = ffi.new("uint64_t[2]")
    for i in range(300):
        variates = []
        for pair in range(2):
            lib.pe_threefry(2023, 0, i, pair, words)
            u, v = (((word >> 12) + 0.5) / 2.0**52 for word in words)
            r = np.sqrt(-2.0 * np.log(u))
            variates += [r * np.cos(2.0 * np.pi * v), r * np.sin(2.0 * np.pi * v)]
        assert found[i] == pytest.approx(sum(variates[:3]), abs=1e-13)
    # the same bits on every machine
    assert [float(x).hex() for x in found[:2]] == ["0x1.4ed018e8d7870p-1", "0x1.9da4757a303e0p-3"]


@pytest.mark.parametrize("tilt", [0.0, 0.7, 8.0])
@pytest.mark.parametrize("reversed_", [False, True])
@pytest.mark.parametrize("base", [pe.GaussianMechanism(0.7), pe.LaplaceMechanism(0.7)])
def test_sampled_moments(base: pe.mechanisms.Step, reversed_: bool, tilt: float) -> None:
    """Mean and variance of the tilted loss and its normalising constant against quadrature."""
    mechanism = base.poisson_sampled(0.3).composed(1)
    (term,) = losses(mechanism, "remove" if reversed_ else "add")
    weight = term.under_a * np.exp(tilt * term.loss)
    constant = weight.sum()
    mean = weight @ term.loss / constant
    deviation = np.sqrt(weight @ (term.loss - mean) ** 2 / constant)
    table = loss_table(base.poisson_sampled(0.3), 1, tilt, reversed_=reversed_)
    assert table.log_mgf == pytest.approx(np.log(constant), abs=1e-9)
    drawn = sample_losses([table], 200_000, 3)
    assert abs(drawn.mean() - mean) < 5.0 * deviation / np.sqrt(drawn.size)
    check_near("simulations.moments", drawn.std(), deviation)


def test_monte_carlo_memory_does_not_grow_with_steps() -> None:
    """10^6 samples of 100 steps: 800 MB as the array of the paper, below 100 MB here."""
    tracemalloc.start()
    MonteCarloPair(pe.dp_sgd(1.0, 0.01, 100), "add", samples=10**6, threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize("kappa", [1e-12, 1e-4, 0.3])
def test_tilted_relative_error_does_not_blow_up(kappa: float, adjacency: str) -> None:
    found = monte_carlo_gamma(MANY, kappa, adjacency=adjacency, samples=20_000)
    truth = pe.gamma_bound(MANY, kappa, adjacency=adjacency)
    assert abs(found.value / truth - 1.0) < 0.02
    assert found.lower < truth < found.upper
    assert found.upper / found.lower < 1.2


@pytest.mark.parametrize("tilted", [False, True])
def test_intervals_cover(tilted: bool) -> None:
    """At confidence 0.8 at least 80 % of seeded runs hold the truth."""
    mechanism, kappa, runs = pe.dp_sgd(2.0, 0.2, 20), 0.05, 60
    truth = pe.gamma_bound(mechanism, kappa)
    held = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pe.ApproximationWarning)
        for seed in range(runs):
            found = monte_carlo_gamma(
                mechanism, kappa, samples=3000, seed=seed, confidence=0.8, tilted=tilted, threads=1
            )
            assert found.lower <= found.value <= found.upper
            held += found.lower <= truth <= found.upper
    assert held >= 0.8 * runs


def test_bennett_interval_is_the_inverse_of_its_bound() -> None:
    mean, bound, size = np.array([0.0, 0.01, 0.5]), np.ones(3), 1000
    lower, upper = bennett_interval(mean, mean, bound, size, 0.05)
    assert np.all((lower <= mean) & (mean < upper))
    for edge in (lower[1:], upper):
        x = mean[-edge.size :]
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = np.where(x > 0, x * np.log(x / edge), 0.0) - x + edge
        assert np.allclose(exponent, np.log(2.0 / 0.05) / size, rtol=1e-9)
    assert bennett_interval(mean, mean, np.full(3, np.inf), size, 0.05)[1].tolist() == [np.inf] * 3


def test_empirical_bernstein_covers_and_sees_the_variance() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.random((4000, 200)) < 0.03  # skew: the normal approximation would miss
    mean = drawn.mean(axis=1)
    off = empirical_bernstein(mean, mean, np.ones(mean.size), 200, 0.1)
    assert np.mean(mean + off < 0.03) <= 0.1
    assert np.mean(mean - off > 0.03) <= 0.1
    none = np.zeros(1)
    at_one = empirical_bernstein(none + 0.5, none + 0.25, none + 1.0, 1001, 0.1)
    assert at_one[0] == pytest.approx(7.0 * np.log(20.0) / 3000.0)  # no variance


def test_rank_range_is_where_the_entropy_reaches_its_limit() -> None:
    level = np.array([1e-6, 0.02, 0.5, 0.999])
    low, high = rank_range(level, 1000, 0.05)
    assert np.all((low < level) & (level < high))
    for end in (low, high):
        x, p = end[(end > 1e-12) & (end < 1.0)], level[(end > 1e-12) & (end < 1.0)]
        entropy = x * np.log(x / p) + (1.0 - x) * np.log((1.0 - x) / (1.0 - p))
        assert np.allclose(entropy, np.log(40.0) / 1000.0, rtol=1e-9)
    assert low[0] == 0.0


@pytest.mark.parametrize(("tilted", "widest"), [(True, 0.03), (False, 0.04)])
def test_intervals_are_narrow(tilted: bool, widest: float) -> None:
    """About 7 standard deviations of the estimate; ranks and Bennett's inequality gave 0.13."""
    found = monte_carlo_gamma(pe.dp_sgd(2.0, 0.2, 20), 0.3, samples=20_000, tilted=tilted)
    assert found.upper - found.lower < widest * found.value


def test_largest_loss_alone_decides() -> None:
    """All tilted samples are on one atom or beside it: the range of the threshold is a test's."""
    mechanism, kappa = pe.LaplaceMechanism(2.0).composed(8), 1e-6
    for seed in range(6):
        found = monte_carlo_gamma(mechanism, kappa, samples=5000, seed=seed)
        assert found.lower <= kappa * np.exp(4.0) <= found.upper * (1 + 1e-12)
        assert found.lower > 0.7 * found.upper


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: edgeworth_gamma(MANY, 0.1, order=5), "order must be at most 4, got 5"),
        (lambda: edgeworth_gamma(MANY, 1.1), r"kappa must lie in \[0, 1\], got 1.1"),
        (lambda: edgeworth_gamma(3, 0.1), "mechanism must be a Mechanism, got 3"),
        (lambda: monte_carlo_gamma(MANY, 0.1, samples=1), "samples must be an integer >= 2"),
        (lambda: monte_carlo_gamma(MANY, 0.1, seed=2**64), r"seed must be below 2\^64"),
        (lambda: monte_carlo_gamma(MANY, 0.1, confidence=1.0), r"confidence must lie in \(0, 1\)"),
        (lambda: monte_carlo_gamma(MANY, 0.1, adjacency="add_remove"), "adjacency must be one of"),
        (
            lambda: pe.gamma_bound(pe.RandomizedResponse(0.7), 0.1, method="edgeworth"),
            "mechanism must be composed of Gaussian and Laplace steps",
        ),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def test_too_steep_to_sample() -> None:
    with pytest.raises(pe.AccuracyError, match="too steep"):
        monte_carlo_gamma(pe.dp_sgd(0.02, 0.5, 10**6), 1e-3, samples=100)


SMALL_GAMMA = pe.dp_sgd(0.7876, 0.1248, 166)  # γ(3.49e-90) = 1.1589e-52, measured by the reference


@pytest.mark.parametrize("method", ["edgeworth", "clt"])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_small_answers_are_not_certain(method: str, adjacency: str) -> None:
    """Errors are differences of the small one of β and γ: that of the other one has no digits."""
    kappa = np.concatenate([np.geomspace(1e-300, 1e-9, 60), 1.0 - np.geomspace(1e-15, 1e-9, 20)])
    for question in (pe.gamma_bound, pe.trade_off, pe.epsilon):
        truth = question(SMALL_GAMMA, kappa, adjacency=adjacency)
        with pytest.warns(pe.ApproximationWarning):
            found = question(
                SMALL_GAMMA, kappa, adjacency=adjacency, method=method, bounds="estimated"
            )
        off = np.abs(found.value - truth)
        wrong = off > 1e-9 * truth + 1e-15 * (truth > 0.5)
        assert np.count_nonzero(wrong) > 20
        assert np.all(found.upper[wrong] - found.lower[wrong] > 0.0)
        assert np.all(found.lower <= found.value)
        assert np.all(found.value <= found.upper)


@pytest.mark.parametrize("method", ["edgeworth", "clt"])
def test_bounds_hold_the_proven_ones_and_far_values_warn(method: str) -> None:
    """Orders of an expansion agree where all are wrong: rare large steps, and many small ones."""
    rng = np.random.default_rng(11)
    held = warned = 0
    for _ in range(40):
        noise, p = 10.0 ** rng.uniform(-0.4, 1.3), 10.0 ** rng.uniform(-4.0, 0.0)
        run = pe.dp_sgd(noise, p, int(10.0 ** rng.uniform(0.0, 4.0)))
        question = (pe.gamma_bound, pe.trade_off, pe.delta, pe.epsilon)[rng.integers(4)]
        argument = 10.0 ** -(300.0 ** rng.uniform(-1.0, 1.0))
        adjacency = ("add", "remove")[rng.integers(2)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = question(run, argument, adjacency=adjacency, method=method, bounds="estimated")
        truth = question(run, argument, adjacency=adjacency, bounds=True)
        assert found.lower <= truth.lower
        assert truth.upper <= found.upper
        low, high = min(found.value, truth.lower), max(found.value, truth.upper)
        size = min(found.value, 1.0 - found.value) if question in ERRORS else found.value
        is_far = high - low > 0.1 * size
        assert is_far == any(issubclass(w.category, pe.ApproximationWarning) for w in caught)
        held, warned = held + (not is_far), warned + is_far
    assert held > 5
    assert warned > 5


def test_inverses_are_found_in_few_steps() -> None:
    """Roots, what no ε reaches and what every ε does, from 40 values of the profile at most."""
    delta = np.array([0.0, 1e-300, 1e-9, 0.3, 0.9, 1.0])
    asked = 0

    def profile(epsilon: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += 1
        return np.where(epsilon >= 300.0, 0.0, 0.9 * np.exp(-epsilon))

    found = inverse_profile(profile, delta, 300.0)
    assert found[:2].tolist() == [300.0, 300.0]
    assert np.allclose(found[2:4], np.log(0.9 / delta[2:4]), rtol=1e-15, atol=0)
    assert found[4:].tolist() == [0.0, 0.0]
    assert asked <= 40
    endless = inverse_profile(lambda epsilon: 1.0 / (1.0 + epsilon), np.array([1e-9, 0.5]), np.inf)
    assert endless.tolist() == [np.inf, 1.0]


def test_a_profile_that_vanishes_by_cancellation_is_not_certain() -> None:
    epsilon = np.linspace(1.0, 300.0, 200)
    truth = pe.delta(SMALL_GAMMA, epsilon)
    with pytest.warns(pe.ApproximationWarning):
        found = pe.delta(SMALL_GAMMA, epsilon, method="edgeworth", bounds="estimated")
    wrong = np.abs(found.value - truth) > 1e-9 * truth
    assert np.count_nonzero(wrong & (found.value == 0.0)) > 5
    assert np.all(found.upper[wrong] > found.lower[wrong])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("samples", [2, 3, 50, 4000])
@pytest.mark.parametrize("kappa", [5e-324, 1e-300, 3.304e-5, 0.5, 1.0 - 2.0**-53])
def test_tilted_samples_at_extreme_levels(samples: int, kappa: float) -> None:
    for mechanism in (
        pe.dp_sgd(7.469, 0.003058, 51),
        pe.LaplaceMechanism(3.0),
    ):
        found = monte_carlo_gamma(mechanism, kappa, samples=samples, confidence=0.8)
        assert kappa <= found.lower <= found.value <= found.upper <= 1.0


def test_noise_that_takes_too_many_nodes_is_refused() -> None:
    for noise in (1e-4, 1e-150, 1e-308):
        with pytest.raises(pe.AccuracyError, match="noise_multiplier is too small"):
            pe.gamma_bound(pe.dp_sgd(noise, 0.1, 2), 0.1, method="edgeworth")
        with pytest.raises(pe.AccuracyError):
            monte_carlo_gamma(pe.dp_sgd(noise, 0.1, 2), 0.1, samples=10)


@pytest.mark.parametrize(
    ("noise", "rate", "kappa", "method"),
    [
        (2.0, 0.0003778688362595726, 1.272976347046234e-245, "edgeworth"),
        (17.688784478305738, 0.8518518518518519, 2.0280911239581102e-296, "clt"),
    ],
)
def test_levels_beyond_the_largest_loss_of_the_saddle_point(
    noise: float, rate: float, kappa: float, method: str
) -> None:
    """The tilt grows until sums overflow there, which only the approximation's warning tells."""
    step = pe.GaussianMechanism(noise).poisson_sampled(rate)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        pe.gamma_bound(step, kappa, adjacency="remove", method=method, bounds="estimated")
    assert {one.category for one in heard} <= {pe.ApproximationWarning}


def test_estimates_hold_the_rounding_of_their_values() -> None:
    """What is next to 1 is not known to be the nearest double."""
    for noise, steps, alpha in ((4.348927070423971, 37, 6.3e-15), (2.1465, 6084, 6.4e-172)):
        plain = pe.GaussianMechanism(noise).composed(steps)
        with mpmath.workdps(250):
            mu = mpmath.sqrt(steps) / mpmath.mpf(noise)
            z = mpmath.mpf(-math.sqrt(-2.0 * math.log(alpha)))
            for _ in range(60):  # Newton's method for the log of the distribution function
                z -= mpmath.ncdf(z) * mpmath.log(mpmath.ncdf(z) / alpha) / mpmath.npdf(z)
            beta = mpmath.ncdf(-z - mu)
            for asked, truth in ((pe.trade_off, beta), (pe.gamma_bound, 1 - beta)):
                found = asked(plain, alpha, adjacency="add", method="edgeworth", bounds="estimated")
                assert found.lower <= truth <= found.upper
