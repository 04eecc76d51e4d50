"""Epochs with several random steps of each record: bounds by blocks, and samples of the epoch."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from scipy.special import ndtr
from thorough import ALL, some

import pyengine as pe
from pyengine import reference
from pyengine.cli.main import main
from pyengine.engines import allocated_samples

QUESTIONS = (
    (pe.delta, 0.3),
    (pe.delta, 1.0),
    (pe.epsilon, 1e-2),
    (pe.gamma_bound, 0.02),
    (pe.gamma_bound, 0.4),
)


def two_of_three(noise: float, epsilon: float, adjacency: str, size: int = 1001) -> float:
    """δ(ε) of an epoch with each record in two of three steps, over a plane of two normals.

    e^L = c (y₁y₂ + y₃(y₁ + y₂))/3 with normal log yᵢ; the integral over y₃ is in closed form.
    """
    mu = 1.0 / noise
    x = np.linspace(-9.0, 9.0, size)
    phi = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    y = np.exp(mu * x - 0.5 * mu * mu)
    product, total = np.multiply.outer(y, y), np.add.outer(y, y)
    k = math.exp(epsilon if adjacency == "remove" else -epsilon)
    edge = (3.0 * k - product) / total  # of y₃
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(edge > 0.0, np.log(np.maximum(edge, 1e-300)) / mu + 0.5 * mu, -np.inf)
    if adjacency == "remove":  # E (e^L - e^ε)+
        inner = (product / 3.0 - k) * ndtr(-z) + total / 3.0 * ndtr(mu - z)
        return float(phi @ inner @ phi)
    inner = (k - product / 3.0) * ndtr(z) - total / 3.0 * ndtr(z - mu)  # E (e^-ε - e^L)+
    return float(phi @ inner @ phi) / k


@pytest.mark.parametrize(("question", "x"), QUESTIONS)
def test_blocks_that_are_asked_by_name_are_proven(question: Any, x: float) -> None:
    run = pe.GaussianMechanism(2.0).randomly_allocated(8, selected=2)
    proven, quick = (question(run, x, method="blocks", bounds=b) for b in (True, "estimated"))
    assert proven.lower < proven.upper
    assert proven.upper == pytest.approx(quick.upper, rel=1e-9)
    assert proven.upper >= question(run, x, bounds=True).lower


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize("noise", some([0.7, 1.5, 4.0], 2))
def test_bounds_hold_for_two_of_three_steps(
    noise: float, adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocated_samples, "WORK", 5e7)
    run = pe.GaussianMechanism(noise).randomly_allocated(3, selected=2)
    for epsilon in (0.0, 0.2, 1.0):
        truth = two_of_three(noise, epsilon, adjacency)
        lower, value, upper = pe.delta(run, epsilon, adjacency=adjacency, bounds="estimated")
        assert lower <= truth <= value * (1.0 + 1e-10) <= upper * (1.0 + 2e-10)
        assert value < 1.6 * truth or truth < 1e-3
        sampled = pe.delta(
            run, epsilon, adjacency=adjacency, bounds="estimated", method="monte_carlo"
        )
        assert sampled.lower <= truth <= sampled.upper


def test_blocks_are_as_long_as_steps_allow() -> None:
    noise = pe.GaussianMechanism(2.0)
    epoch = noise.randomly_allocated(11, selected=3)
    assert isinstance(epoch, pe.RandomlyAllocated)
    longer, shorter = noise.randomly_allocated(4), noise.randomly_allocated(3)
    assert epoch.blocks() == pe.compose(longer.composed(2), shorter)
    for question, x in QUESTIONS:
        blocks = question(epoch.composed(2), x, method="blocks")
        assert blocks == question(epoch.blocks().composed(2), x)
    for question, x in QUESTIONS:
        lower, value, upper = question(epoch, x, bounds="estimated")
        assert 0.0 < lower < value <= upper


def test_every_step_is_the_plain_mechanism() -> None:
    epoch = pe.GaussianMechanism(2.0).randomly_allocated(5, selected=5)
    plain = pe.GaussianMechanism(2.0).composed(5)
    for question, x in QUESTIONS:
        lower, value, upper = question(epoch, x, bounds="estimated")
        assert value == question(plain, x)
        assert upper - lower < 1e-12 * value


def test_the_answer_says_that_it_is_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--noise 2 --steps-per-epoch 30 --selected 3 --epochs 2 --epsilon 1"
    assert main(["delta", *flags.split(), "--bounds", "estimated"]) == 0
    printed = capsys.readouterr().out
    assert "2 epochs of 30 batches, each record in 3 of them" in printed
    assert printed.splitlines()[-1].endswith("upper bound")
    run = pe.dp_sgd_allocated("2", 30, 2, selected=3)
    assert f"{pe.delta(run, 1.0):.6g}"[:7] in printed
    assert pe.from_json(pe.to_json(run)) == run


def test_what_answers_and_what_does_not() -> None:
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(20, selected=2)
    with pytest.raises(pe.AccuracyError, match="only bounds are known"):
        reference.delta(epoch, "0.5")
    replaced = pe.delta(epoch, 0.5, adjacency="substitute", bounds=True)
    assert pe.delta(epoch, 0.5, bounds=True).lower <= replaced.lower < replaced.upper
    for run in (epoch, epoch + pe.LaplaceMechanism(1.0)):
        sure, quick = (pe.delta(run, 0.5, bounds=kind) for kind in (True, "estimated"))
        assert 0.0 < sure.lower <= quick.lower < quick.value <= sure.upper
        assert sure.upper <= quick.value * (1.0 + 1e-3)
    with pytest.raises(pe.NotDefinedError, match="beside plain Gaussian steps"):
        pe.delta(epoch + pe.dp_sgd(1.0, 0.1, 2), 0.5, method="monte_carlo")
    with pytest.raises(pe.AccuracyError, match="selected > 1"):
        pe.delta(pe.GaussianMechanism(1.0), 0.5, method="blocks")
    proven = pe.delta(epoch, 0.5, adjacency="remove", method="reference", bounds=True)
    blocks = pe.delta(epoch, 0.5, adjacency="remove", method="blocks")
    assert proven.upper == pytest.approx(blocks, rel=1e-12)
    assert pe.delta(epoch + pe.dp_sgd(1.0, 0.1, 2), 0.5) > proven.value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda noise: noise.randomly_allocated(3, selected=4), "selected must be at most"),
        (lambda noise: noise.randomly_allocated(1, selected=2), "selected must be at most"),
        (lambda noise: noise.randomly_allocated(3, 0), "selected must be an integer >= 1"),
        (lambda noise: noise.randomly_allocated(3, 1.5), "selected must be an integer"),
        (lambda _: pe.dp_sgd_allocated(1.0, 2, 1, selected=3), "selected must be at most"),
        (lambda _: pe.RandomlyAllocated(pe.GaussianMechanism(1), 2, 3), "selected must be at most"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(pe.GaussianMechanism(1.0))


def log_of_mean(values: list[Fraction], k: int) -> float:
    """log(e_k/C(n, k)) of exact numbers, by the definition."""
    total = sum(math.prod(chosen, start=Fraction(1)) for chosen in combinations(values, k))
    exact = total / math.comb(len(values), k)
    return math.log(exact.numerator) - math.log(exact.denominator)


@pytest.mark.parametrize(
    ("t", "k", "noise"),
    [(5, 2, 1.0), (7, 3, 0.5), (4, 4, 1.5), (9, 1, 0.2), (1, 1, 3.0), (8, 7, 2)],
)
def test_losses_of_samples(t: int, k: int, noise: float) -> None:
    """Ratios against exact symmetric polynomials, whose mean over places the blocks have."""
    kind = allocated_samples._Epochs(1.0 / noise, t, k, 1)
    law = allocated_samples._Proposal((0.3, 1.3, 2.3), (0.5, 0.3, 0.2), -0.2)
    seen: list[Any] = []

    class Recorded:
        def __init__(self, rng: np.random.Generator) -> None:
            self.rng = rng

        def standard_normal(self, shape: Any) -> Any:
            seen.append(self.rng.standard_normal(shape))
            return seen[-1]  # moved in place

        def random(self, shape: Any) -> Any:
            return self.rng.random(shape)

    rng: Any = Recorded(np.random.default_rng(t))
    _, _, rows = allocated_samples._drawn(kind, law, k, 2, slice(0, 3), rng)
    others, selected = seen
    for replicate in range(2):
        for lane in range(3):
            x = [*others[:, lane], *selected[replicate, :, lane]]
            y = [Fraction(math.exp(v / noise - 0.5 / noise**2)) for v in x]
            ratio = [
                sum(
                    w * math.exp((a - law.shift) * v - 0.5 * (a * a - law.shift**2))
                    for a, w in zip(law.means, law.weights, strict=True)
                )
                for v in x
            ]
            base = sum(law.shift * v - 0.5 * law.shift**2 for v in x)
            assert rows[0, replicate, lane] == pytest.approx(log_of_mean(y, k), abs=1e-12)
            moved = log_of_mean([Fraction(r) for r in ratio], k) + base
            assert rows[1, replicate, lane] == pytest.approx(moved, abs=1e-12)
            size, longer = divmod(t, k)
            means = []  # of blocks of the steps in any order; those that were drawn are one
            for order in permutations(range(t)) if t <= 5 else []:
                ends = np.cumsum([0] + [size] * (k - longer) + [size + 1] * longer)
                parts = [[y[i] for i in order[a:b]] for a, b in pairwise(ends)]
                means.append(math.prod(float(sum(p)) / len(p) for p in parts))
            if means:
                drawn = math.exp(rows[2, replicate, lane])
                assert min(abs(drawn / m - 1.0) for m in means) < 1e-12
                assert math.log(sum(means) / len(means)) == pytest.approx(
                    rows[0, replicate, lane], abs=1e-12
                )


def test_all_questions_of_two_of_three_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals against a plane of two normals: 99 % each, so few of many may miss."""
    monkeypatch.setattr(allocated_samples, "WORK", 2e7)
    rng, missed, asked = np.random.default_rng(17), 0, 0
    for _ in range(100 if ALL else 1):
        noise = float(rng.uniform(0.5, 3.0))
        run = pe.GaussianMechanism(noise).randomly_allocated(3, selected=2)
        for adjacency in ("add", "remove"):
            epsilon = float(rng.uniform(0.0, 1.5) / noise)
            delta = two_of_three(noise, epsilon, adjacency)
            if delta < 1e-7:  # the plane's own digits
                continue
            alpha = float(10.0 ** -rng.uniform(0.1, 3.0))
            # γ of the other law's tests, as the least of αe^c + its profile
            target = "add" if adjacency == "remove" else "remove"
            gamma = min(
                alpha * math.exp(c) + profile_of_two(noise, c, target)
                for c in np.linspace(-2.5 / noise, 6.0 / noise, 40)
            )
            for question, x, truth, slack in (
                (pe.delta, epsilon, delta, 1e-6),
                (pe.epsilon, delta, epsilon, 1e-6),
                (pe.gamma_bound, alpha, gamma, 5e-3),
            ):
                found = question(
                    run, x, adjacency=adjacency, method="monte_carlo", bounds="estimated"
                )
                asked += 1
                inside = found.lower * (1.0 - slack) <= truth <= found.upper * (1.0 + slack)
                missed += not inside
                assert found.lower <= found.value <= found.upper
                far = 0.02 if question is pe.epsilon else 1e-3
                assert abs(found.value - truth) <= 0.2 * truth + far
    assert missed <= 0.02 * asked


def profile_of_two(noise: float, c: float, adjacency: str) -> float:
    """The profile at c of either sign, of the law that is first in an order."""
    if c >= 0.0:
        return two_of_three(noise, c, adjacency, 301)
    other = "add" if adjacency == "remove" else "remove"
    return -math.expm1(c) + math.exp(c) * two_of_three(noise, -c, other, 301)


@pytest.mark.parametrize(
    ("noise", "t", "k", "epsilon", "truth", "error"),
    # plain samples of 10^6 by other code, and one standard error
    some(
        [
            (0.8, 100, 10, 5.0, 7.87e-3, 0.01e-3),
            (2.0, 100, 10, 1.0, 9.44e-3, 0.08e-3),
            (0.55, 391, 5, 8.0, 1.1e-6, 0.4e-6),
            (0.5, 391, 5, 8.0, 5.2e-5, 0.9e-5),
        ],
        2,
    ),
)
def test_far_tails_of_many_steps(
    noise: float,
    t: int,
    k: int,
    epsilon: float,
    truth: float,
    error: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allocated_samples, "WORK", 4e8)
    run = pe.GaussianMechanism(noise).randomly_allocated(t, selected=k)
    keywords = {"adjacency": "remove", "method": "monte_carlo", "bounds": "estimated"}
    found = pe.delta(run, epsilon, **keywords)
    assert found.lower - 4.0 * error < truth < found.upper + 4.0 * error
    assert found.value - found.lower < 0.06 * found.value
    assert found.upper < min(1.3 * found.value, pe.delta(run, epsilon, adjacency="remove"))


def test_a_record_in_one_step_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the blocks are the epoch itself: the upper end is the truth."""
    monkeypatch.setattr(allocated_samples, "WORK", 2e7)
    run = pe.dp_sgd_allocated(2.0, 5, 2) + pe.GaussianMechanism(9.0).composed(3)
    for question, x in QUESTIONS[1:4]:
        truth = question(run, x, adjacency="remove")
        found = question(run, x, adjacency="remove", method="monte_carlo", bounds="estimated")
        assert found.lower <= truth * (1.0 + 1e-9)
        check_near("simulations.known_step", found.value, truth)
        assert truth <= found.upper * (1.0 + 1e-12)


def test_the_lowest_line_below_a_convex_function() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        k = np.sort(rng.uniform(0.1, 3.0, 5))
        scale = float(rng.uniform(0.3, 2.0))
        truth = np.exp(-scale * k)
        lower, upper = truth * (1.0 - 0.1 * rng.random(5)), truth * (1.0 + 0.1 * rng.random(5))
        alpha = float(rng.uniform(0.01, 1.0))
        least = allocated_samples._least_line(alpha, k, lower, upper)
        x = np.linspace(0.0, 20.0, 4001)
        assert 0.0 < least <= float((alpha * x + np.exp(-scale * x)).min()) + 1e-12


def test_no_value_without_a_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower tail out of reach of moved samples is refused; beside the other it does no harm."""
    monkeypatch.setattr(allocated_samples, "WORK", 2e7)
    epoch = pe.GaussianMechanism(0.5).randomly_allocated(40, selected=2)
    with pytest.raises(pe.AccuracyError, match="no digit of it is known; method='auto' bounds it"):
        pe.delta(epoch, 8.0, adjacency="add", method="monte_carlo")
    both = pe.delta(epoch, 8.0, method="monte_carlo")
    assert both == pe.delta(epoch, 8.0, adjacency="remove", method="monte_carlo") > 1e-22
