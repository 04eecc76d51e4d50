"""The tabulated law of one epoch of random allocation against digits that share no code with it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, integers
from scipy.special import log_ndtr
from thorough import ALL, some
from truth import load

import pyengine as pe
from pyengine.engines.certified_epochs import TabulatedEpoch
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.laws.allocation import AllocatedLaw

ONE_EPOCH = [row for row in load("random_allocation.json") if row["epochs"] == 1]


def row_of(case: dict[str, Any]) -> tuple[float, float]:
    """The answer at the level of rows, and its relative error."""
    law = AllocatedLaw(float(case["sigma"]), case["steps"])
    engine = TabulatedEpoch(law, case["adjacency"] == "remove")
    x = float(case["argument"])
    if case["question"] == "delta":
        row = engine.at(PROFILE, np.array([-x]))[0]
        return math.exp(row[2 + PROFILE]), row[ERRORS + PROFILE]
    if case["question"] == "epsilon":
        row = engine.solve(PROFILE, np.array([math.log(x)]))[0]
        return -row[0], row[ERRORS + PROFILE]
    row = engine.solve(A_ABOVE, np.array([math.log(x)]))[0]
    side = B_BELOW if case["question"] == "beta" else B_ABOVE
    return math.exp(row[2 + side]), row[ERRORS + side] + row[ERRORS + A_ABOVE]


@pytest.mark.parametrize("case", ONE_EPOCH)
def test_published_digits(case: dict[str, Any]) -> None:
    value, error = row_of(case)
    assert abs(value / float(case["value"]) - 1.0) <= min(error, 1e-12) + 4e-16


@pytest.mark.parametrize(("noise", "steps"), [(0.3, 2), (0.3, 5_000), (1.0, 77), (5.0, 100_000)])
def test_every_row_has_the_identities_of_its_functionals(noise: float, steps: int) -> None:
    law = AllocatedLaw(noise, steps)
    lowest, highest = law.support()
    for is_reversed in (False, True):
        engine = TabulatedEpoch(law, is_reversed)
        c = np.linspace(lowest, highest, 41)[1:-1] * (-1.0 if is_reversed else 1.0)
        rows = engine.at(PROFILE, c)
        logs = {f: rows[:, 2 + f] for f in (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE)}
        for below, above in ((A_BELOW, A_ABOVE), (B_BELOW, B_ABOVE)):
            assert np.abs(np.exp(logs[below]) + np.exp(logs[above]) - 1.0).max() < 1e-14
        # E_A(1 - e^{S-c})+ = A(S <= c) - e^-c B(S <= c), where that does not cancel
        other = logs[B_BELOW] - c - logs[A_BELOW]
        clear = other < -0.01
        assert clear.any()
        difference = logs[A_BELOW] + np.log(-np.expm1(np.minimum(other, -0.01)))
        assert np.abs(difference - logs[PROFILE])[clear].max() < 1e-10


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW, PROFILE])
def test_solve_and_at_agree(functional: int, is_reversed: bool) -> None:
    engine = TabulatedEpoch(AllocatedLaw(0.8, 300), is_reversed)
    target = -np.array([0.7, 2.0, 11.0, 69.0, 230.0, 600.0, 740.0])
    solved = engine.solve(functional, target)
    assert np.abs(solved[:, 2 + functional] / target - 1.0).max() < 1e-12
    assert np.array_equal(engine.at(functional, solved[:, 0]), solved)
    one = engine.one(functional, target[2], by_value=True)
    assert list(one) == list(solved[2])


def test_density_of_two_steps_against_one_integral() -> None:
    """Density of log((Y1 + Y2)/2) by a sum over the logarithm of the first share."""
    noise = 1.3
    mu = 1.0 / noise
    loss = np.linspace(-6.0, 8.0, 57)
    found = AllocatedLaw(noise, 2).log_density(loss)

    def log_lognormal(w: np.ndarray) -> np.ndarray:
        return -0.5 * ((w + mu * mu / 2) / mu) ** 2 - math.log(mu * math.sqrt(2 * math.pi))

    v = np.arange(-60.0, 60.0, 0.02)
    for x, log_density in zip(loss, found, strict=True):
        large = x + math.log(2.0) - np.logaddexp(0.0, -v)  # of sum e^large + e^(large - v) = 2 e^x
        terms = log_lognormal(large) + log_lognormal(large - v)
        assert abs(np.logaddexp.reduce(terms) + math.log(0.02) - log_density) < 1e-12


def test_far_right_tail_is_one_large_share() -> None:
    """Q(S > K) lies between t Q(Y > K) less the pairs, and the same for what the others add."""
    noise, steps = 0.5, 50
    mu = 1.0 / noise
    engine = TabulatedEpoch(AllocatedLaw(noise, steps), False)
    loss = 20.0
    z = (loss + math.log(steps) + mu * mu / 2) / mu
    lower = math.log(steps) + log_ndtr(-z)
    found = engine.at(A_ABOVE, np.array([loss]))[0, 2 + A_ABOVE]
    assert lower < found < lower + 1e-3


LAWS = [(0.3, 3), (0.31, 60_000), (0.9, 1_234), (3.0, 77), (4.0, 20_000), (10.0, 100_000)]


def log_sum(terms: np.ndarray) -> float:
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def on_a_grid(law: AllocatedLaw) -> tuple[np.ndarray, np.ndarray]:
    """Losses and logs of their weights, so dense that sums are integrals."""
    lowest, highest = law.support()
    loss = np.linspace(lowest, highest, 40_001)
    return loss, law.log_density(loss) + math.log((highest - lowest) / 40_000)


@pytest.mark.parametrize(("noise", "steps"), LAWS)
def test_left_tail_has_the_laplace_transform_of_the_sum(noise: float, steps: int) -> None:
    """E e^{-uS/t} is the t-th power of that of one lognormal number, at any tilt u > 0."""
    loss, weight = on_a_grid(AllocatedLaw(noise, steps))
    mu, width = 1.0 / noise, 2.0**-8
    x = width * np.arange(-10_000, 10_001)
    normal = -x * x / 2 + math.log(width / math.sqrt(2 * math.pi))
    share = np.exp(mu * x - mu * mu / 2)
    for u in 10.0 ** np.arange(-2.0, 8.5, 0.75):
        rest = float((-np.expm1(-u / steps * share) * np.exp(normal)).sum())
        one = math.log1p(-rest) if rest < 0.5 else log_sum(normal - u / steps * share)
        if steps * one < -600.0:
            break
        found = log_sum(weight - u * np.exp(np.minimum(loss, 700.0)))
        assert abs(found - steps * one) < 2e-13 - 4e-15 * steps * one


@pytest.mark.parametrize(("noise", "steps"), LAWS)
def test_right_tail_has_the_moments_of_the_sum(noise: float, steps: int) -> None:
    """E S^m from the binomial theorem, in 40 digits."""
    loss, weight = on_a_grid(AllocatedLaw(noise, steps))

    def product(a: list[Any], b: list[Any]) -> list[Any]:
        return [
            mpmath.fsum(mpmath.binomial(m, i) * a[i] * b[m - i] for i in range(m + 1))
            for m in range(len(a))
        ]

    with mpmath.workdps(40):
        rate = 1 / mpmath.mpf(noise) ** 2
        power = [mpmath.exp(rate * m * (m - 1) / 2) for m in range(17)]
        moments = [mpmath.mpf(1)] + [mpmath.mpf(0)] * 16
        for bit in reversed(bin(steps)[2:]):
            if bit == "1":
                moments = product(moments, power)
            power = product(power, power)
        logs = [float(mpmath.log(m / mpmath.mpf(steps) ** k)) for k, m in enumerate(moments)]
    served = 0
    for m, truth in enumerate(logs):
        tilted = weight + m * loss
        top = int(np.argmax(tilted))
        if max(tilted[0], tilted[-1]) > tilted[top] - 45.0:
            break
        depth = abs(weight[top]) + m * abs(loss[top])
        assert abs(log_sum(tilted) - truth) < 2e-13 + 4e-15 * depth
        served += 1
    assert served > 3


@pytest.mark.parametrize(("noise", "steps"), LAWS)
def test_nodes_are_as_good_as_the_law(noise: float, steps: int) -> None:
    law = AllocatedLaw(noise, steps)
    nodes = law.nodes(10)
    assert nodes is not None
    spacing = np.diff(nodes.loss)
    assert np.abs(spacing / spacing[0] - 1.0).max() < 1e-9
    assert nodes.t_max < math.pi / spacing[0]
    loss, weight = on_a_grid(law)
    scale = math.sqrt(float(np.exp(weight) @ loss**2))
    for tilt in np.array([-20.0, -4.0, -1.0, 0.0, 1.0, 4.0]) / scale:
        tilted = weight + tilt * loss
        if max(tilted[0], tilted[-1]) > tilted.max() - 45.0:
            continue
        size = math.exp(log_sum(tilted) - tilted.max())
        for t in (0.0, 0.3 * nodes.t_max, nodes.t_max):
            one, two = (
                (np.exp(w + tilt * x - tilted.max()) * np.exp(1j * t * x)).sum()
                for x, w in ((loss, weight), (nodes.loss, nodes.log_weight))
            )
            assert abs(one - two) < 1e-12 * size


def test_what_has_no_table_is_refused() -> None:
    for law in (AllocatedLaw(0.01, 10), AllocatedLaw(1.0, 2**25)):
        assert not law.is_feasible
        with pytest.raises(pe.AccuracyError, match="method='reference'"):
            law.log_density([0.0])


def test_questions_at_the_ends() -> None:
    run = pe.dp_sgd_allocated(0.7, 30, 1)
    for adjacency in ("add", "remove", "add_remove"):
        assert pe.trade_off(run, 0.0, adjacency=adjacency) == 1.0
        assert pe.trade_off(run, 1.0, adjacency=adjacency) == 0.0
        assert pe.delta(run, math.inf, adjacency=adjacency) == 0.0
        assert pe.delta(run, 900.0, adjacency=adjacency) == 0.0
        assert pe.epsilon(run, 1.0, adjacency=adjacency) == 0.0
        assert pe.epsilon(run, 0.0, adjacency=adjacency) == math.inf
        tiny = pe.epsilon(run, 1e-300, adjacency=adjacency)
        assert abs(pe.delta(run, tiny, adjacency=adjacency) / 1e-300 - 1.0) < 1e-10
        alpha = np.array([1e-300, 1e-100, 1e-9, 0.2, 0.5, 0.8, 1 - 1e-9])
        beta, gamma = (
            question(run, alpha, adjacency=adjacency) for question in (pe.trade_off, pe.gamma_bound)
        )
        assert (gamma >= alpha).all()
        assert np.abs(beta + gamma - 1.0).max() < 1e-15
        assert beta[3] == pe.trade_off(run, 0.2, adjacency=adjacency)


@settings(max_examples=25 if ALL else 8, deadline=None)
@given(noise=floats(0.3, 8.0), steps=integers(2, 3_000), level=floats(-40.0, -0.1))
def test_more_noise_and_more_steps_tell_less(noise: float, steps: int, level: float) -> None:
    alpha = math.exp(level)
    for adjacency in ("add", "remove", "add_remove"):
        values = [
            pe.gamma_bound(run, alpha, adjacency=adjacency)
            for run in (
                pe.GaussianMechanism(noise),
                pe.dp_sgd_allocated(noise, steps, 1),
                pe.dp_sgd_allocated(noise, steps + 7, 1),
            )
        ]
        values.append(
            pe.gamma_bound(
                pe.dp_sgd_allocated(1.3 * noise, steps + 7, 1), alpha, adjacency=adjacency
            )
        )
        for more, less in itertools.pairwise(values):
            assert less <= more * (1.0 + 1e-12)
        assert values[-1] >= alpha


def test_order_of_composition_and_epochs_beside_steps() -> None:
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(40)
    other = pe.GaussianMechanism(1.5).randomly_allocated(60)
    plain = pe.dp_sgd(1.2, 0.05, 50)
    first = epoch.composed(20) + plain + other.composed(10)
    second = other.composed(10) + epoch.composed(20) + plain
    for adjacency in ("add", "remove"):
        one, two = (pe.epsilon(run, 1e-6, adjacency=adjacency) for run in (first, second))
        assert abs(one / two - 1.0) < 1e-11
        assert one > pe.epsilon(epoch.composed(20), 1e-6, adjacency=adjacency)


@pytest.mark.parametrize(
    ("noise", "steps", "epochs"), [(1.0, 100, 100), (0.6, 20, 7), (3.0, 30, 40)]
)
def test_estimates_of_several_epochs_are_those_of_a_table(
    noise: float, steps: int, epochs: int
) -> None:
    run, law = pe.dp_sgd_allocated(noise, steps, epochs), AllocatedLaw(noise, steps)
    for adjacency in ("add", "remove"):
        rows = TabulatedEpoch(law, adjacency == "remove", epochs)
        for delta in (1e-3, 1e-9, 1e-40):
            epsilon = pe.epsilon(run, delta, adjacency=adjacency)
            table = -rows.solve(PROFILE, np.array([math.log(delta)]))[0, 0]
            assert abs(epsilon / table - 1.0) < 1e-12


@pytest.mark.parametrize(("noise", "steps", "epochs"), some([(0.5, 10_000, 2), (3.0, 1_000, 5)], 2))
def test_few_epochs_of_many_steps(noise: float, steps: int, epochs: int) -> None:
    """The transform has no saddle point in reach; the mean of the sum from its tails."""
    law = AllocatedLaw(noise, steps)
    engine = TabulatedEpoch(law, False, epochs)
    loss, weight = on_a_grid(law)
    mean = float(np.exp(weight) @ loss)
    # E_Q L over the sum from its tails, against the sum of the means
    c = np.linspace(-2.0, 30.0, 200_001)
    rows = engine.at(A_ABOVE, c)
    above, below = np.exp(rows[:, 2 + A_ABOVE]), np.exp(rows[:, 2 + A_BELOW])
    width = 32.0 / 200_000
    found = width * (above[c > 0].sum() - below[c < 0].sum() + 0.5 * (above - below)[c == 0].sum())
    assert abs(found - epochs * mean) < 1e-6 * abs(mean)


def test_two_epochs_against_an_integral_over_one() -> None:
    """Two epochs against one more integral: δ of two is the mean of δ of one at ε - L."""
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(25)
    nodes = AllocatedLaw(1.0, 25).nodes(10)
    assert nodes is not None
    engine = TabulatedEpoch(AllocatedLaw(1.0, 25), True)
    epsilon = 0.7
    # under P the loss -L' of `remove` is L: H(P²‖Q²) at ε is the mean over P of H(P‖Q) at ε - L
    rows = engine.at(PROFILE, -(epsilon - nodes.loss))
    terms = nodes.log_weight + nodes.loss + rows[:, 2 + PROFILE]
    truth = math.exp(log_sum(terms))
    assert abs(pe.delta(epoch.composed(2), epsilon, adjacency="remove") / truth - 1.0) < 1e-11
