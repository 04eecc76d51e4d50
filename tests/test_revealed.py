"""Mixtures of which the release names the part, against closed forms in 30 digits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import thorough

import pyengine as pe
from pyengine.engines.problem import Problem
from pyengine.engines.registry import answered
from pyengine.engines.revealed import RevealedPair
from pyengine.mechanisms.revealed import MOST_PARTS, parts_of

Outcomes = list[tuple[Any, Any]]  # of the data set with the record, and without it

SEEDS = thorough.some(range(400), 100)
WIDE = 1e-9


def height(thing: tuple[Outcomes, Any], t: Any, *, reverse: bool) -> Any:
    """sup over tests of P(A) - t P(B), for finitely many outcomes beside a normal shift."""
    outcomes, mu = thing
    total = mpmath.mpf(0)
    for a, b in outcomes:
        first, second = (b, a) if reverse else (a, b)
        if first == 0:
            continue
        if second == 0 or t == 0:
            total += first
        elif mu == 0:
            total += max(first - t * second, mpmath.mpf(0))
        else:
            x = mpmath.log(t * second / first) / mu
            total += first * mpmath.ncdf(mu / 2 - x) - t * second * mpmath.ncdf(-mu / 2 - x)
    return total


def together(*parts: Outcomes) -> Outcomes:
    """Outcomes of several releases."""
    rows: Outcomes = [(mpmath.mpf(1), mpmath.mpf(1))]
    for part in parts:
        rows = [(a * c, b * d) for a, b in rows for c, d in part]
    return rows


class Drawn:
    """A mixture, and what each part is: outcomes and the distance of two normal laws."""

    def __init__(self, rng: np.random.Generator) -> None:
        noise, other, truth = (round(float(x), 3) for x in rng.uniform(0.5, 4.0, 3))
        truth = round(0.5 + 0.1 * truth, 3)
        p = [Fraction(int(k), 20) for k in 1 + rng.multinomial(17, rng.dirichlet(np.ones(3)))]
        q = [Fraction(int(k), 20) for k in 1 + rng.multinomial(17, rng.dirichlet(np.ones(3)))]
        number = int(rng.integers(1, 3))
        vector: Outcomes = [(exact(a), exact(b)) for a, b in zip(p, q, strict=True)]
        high, low = exact(truth), 1 - exact(truth)
        coin: Outcomes = [(high, low), (low, high)]
        none: Outcomes = [(mpmath.mpf(1), mpmath.mpf(1))]
        menu = [
            (pe.GaussianMechanism(noise).composed(number), (none, mpmath.sqrt(number) / noise)),
            (pe.RandomizedResponse(truth).composed(number), (together(*[coin] * number), 0)),
            (pe.from_probabilities(p, q) + pe.GaussianMechanism(other), (vector, 1 / exact(other))),
            (pe.from_probabilities(p, q), (vector, 0)),
        ]
        chosen = [menu[int(i)] for i in rng.permutation(len(menu))[: int(rng.integers(2, 4))]]
        if not any(mu for _, (_, mu) in chosen):
            chosen.append(menu[0])
        counts = 1 + rng.multinomial(100 - len(chosen), rng.dirichlet(np.ones(len(chosen))))
        self.weights = [Fraction(int(count), 100) for count in counts]
        self.mixture = pe.revealed_mixture(
            [(w, thing) for w, (thing, _) in zip(self.weights, chosen, strict=True)]
        )
        self.draws = int(rng.integers(1, 3))
        parts = [(exact(w), *law) for w, (_, law) in zip(self.weights, chosen, strict=True)]
        self.rows: list[tuple[Any, tuple[Outcomes, Any]]] = []
        for drawn in itertools.product(parts, repeat=self.draws):
            weights, outcomes, shifts = zip(*drawn, strict=True)
            mu = mpmath.sqrt(sum(exact(shift) ** 2 for shift in shifts))
            self.rows.append((mpmath.fprod(weights), (together(*outcomes), mu)))

    def profile(self, t: Any, *, reverse: bool) -> Any:
        """H_t, of the first order or of its reverse."""
        return sum(w * height(thing, t, reverse=reverse) for w, thing in self.rows)

    def gamma(self, kappa: Any, *, reverse: bool) -> Any:
        """The least t κ + H_t of the other order, which is convex in t: golden section in log t."""
        ratio = (mpmath.sqrt(5) - 1) / 2
        low, high = mpmath.mpf(-40), mpmath.mpf(40)

        def line(c: Any) -> Any:
            return mpmath.exp(c) * kappa + self.profile(mpmath.exp(c), reverse=not reverse)

        x, y = high - ratio * (high - low), low + ratio * (high - low)
        f, g = line(x), line(y)
        for _ in range(95):
            if f <= g:
                high, y, g = y, x, f
                x = high - ratio * (high - low)
                f = line(x)
            else:
                low, x, f = x, y, g
                y = low + ratio * (high - low)
                g = line(y)
        return min(f, g)


def exact(x: Any) -> Any:
    """A number of the test without rounding."""
    found = Fraction(x) if not isinstance(x, mpmath.mpf) else x
    return (
        found if isinstance(found, mpmath.mpf) else mpmath.mpf(found.numerator) / found.denominator
    )


def holds(found: pe.Bounds[float], truth: Any) -> None:
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= WIDE * found.upper


@pytest.mark.parametrize("seed", SEEDS)
def test_against_closed_forms(seed: int) -> None:
    """δ, γ, β and ε of one draw or two, of Gaussian steps, coins and vectors, in both orders."""
    rng = np.random.default_rng([28, seed])
    with mpmath.workdps(30):
        drawn = Drawn(rng)
        run = drawn.mixture.composed(drawn.draws)
        for adjacency in ("add", "remove"):
            reverse = adjacency == "remove"
            epsilon = float(rng.uniform(0.0, 1.5))
            truth = drawn.profile(mpmath.exp(epsilon), reverse=reverse)
            if truth > 1e-200:
                found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
                holds(found, truth)
                delta = float(truth)
                at = pe.epsilon(run, delta, adjacency=adjacency, bounds=True)
                low, high = (
                    drawn.profile(mpmath.exp(exact(end)), reverse=reverse)
                    for end in (at.lower, at.upper)
                )
                assert high <= delta or at.upper == 0.0
                assert low >= delta or at.lower == 0.0
                assert at.upper - at.lower <= WIDE
            kappa = float(np.exp(rng.uniform(np.log(1e-6), np.log(0.9))))
            gamma = drawn.gamma(exact(kappa), reverse=reverse)
            holds(pe.gamma_bound(run, kappa, adjacency=adjacency, bounds=True), gamma)
            beta = pe.trade_off(run, kappa, adjacency=adjacency, bounds=True)
            assert beta.lower <= 1 - gamma <= beta.upper
            assert beta.upper - beta.lower <= WIDE


@pytest.mark.parametrize("seed", range(4))
def test_random_epochs(seed: int) -> None:
    """Numbers of steps that are drawn and published, by the arbitrary precision of each."""
    rng = np.random.default_rng([29, seed])
    noise, rate = round(float(rng.uniform(0.8, 3.0)), 3), round(float(rng.uniform(0.01, 0.1)), 4)
    runs = [pe.dp_sgd(noise, rate, int(rng.integers(20, 400)) * (k + 1)) for k in range(3)]
    mixture = pe.revealed_mixture([("1/4", runs[0]), ("1/4", runs[1]), ("1/2", runs[2])])
    epsilon = round(float(rng.uniform(0.1, 1.5)), 3)
    for adjacency in ("add", "remove"):
        parts = [pe.reference.delta(run, epsilon, adjacency=adjacency, digits=25) for run in runs]
        truth = (parts[0] + parts[1] + 2 * parts[2]) / 4
        holds(pe.delta(mixture, epsilon, adjacency=adjacency, bounds=True), truth)


@pytest.mark.parametrize("seed", range(8))
def test_parts_beside_the_law_of_the_mixture(seed: int) -> None:
    """Sampled Gaussian steps, of which the mixture has a law on lines: both say the same."""
    rng = np.random.default_rng([30, seed])
    parts = [
        pe.dp_sgd(
            round(float(rng.uniform(0.7, 3.0)), 3), round(float(rng.uniform(0.01, 0.5)), 3), 1
        )
        for _ in range(2)
    ]
    share = Fraction(int(rng.integers(5, 95)), 100)
    run = pe.revealed_mixture([(share, parts[0]), (1 - share, parts[1])]).composed(6)
    rows = parts_of(run)
    assert len(rows) == 7
    assert sum(w for w, _ in rows) == 1
    orders = [[answered(Problem(part, order)) for _, part in rows] for order in ("add", "remove")]
    asked = RevealedPair([w for w, _ in rows], *orders)
    x = np.array([0.05, 0.4, 1.1])
    for name, at in (("delta", x), ("epsilon", 1e-3 * x), ("gamma_bound", 0.5 * x)):
        found, other = (
            asked.answer(name, at),
            getattr(pe, name)(run, at, adjacency="add", bounds=True),
        )
        assert found.certified.all()
        assert (found.lower <= other.upper).all()
        assert (other.lower <= found.upper).all()
        assert (found.upper - found.lower <= WIDE * found.upper).all()


def test_all_orders_of_neighbours() -> None:
    """Both orders together, and one record in the place of another."""
    parts = [pe.dp_sgd(1.0, 0.05, 30), pe.LaplaceMechanism(2.0).composed(2)]
    mixture = pe.revealed_mixture([("1/3", parts[0]), ("2/3", parts[1])])
    both = [pe.delta(mixture, 0.7, adjacency=order, bounds=True) for order in ("add", "remove")]
    found = pe.delta(mixture, 0.7, bounds=True)
    assert found.lower <= max(each.upper for each in both)
    assert found.upper >= max(each.lower for each in both)
    swapped = [pe.delta(part, 0.7, adjacency="substitute", bounds=True) for part in parts]
    found = pe.delta(mixture, 0.7, adjacency="substitute", bounds=True)
    low, high = (
        getattr(swapped[0], side) / 3 + getattr(swapped[1], side) * 2 / 3
        for side in ("lower", "upper")
    )
    assert found.lower <= high * (1.0 + 1e-14)
    assert low <= found.upper * (1.0 + 1e-14)
    hull = pe.gamma_bound(mixture, 0.03, bounds=True)
    each = [pe.gamma_bound(mixture, 0.03, adjacency=o, bounds=True) for o in ("add", "remove")]
    assert hull.upper >= max(one.lower for one in each)


def test_ends() -> None:
    """Levels 0 and 1, δ = 0, and what one law alone shows."""
    shown = pe.GenericMechanism(0.5, 1e-3)
    mixture = pe.revealed_mixture([("1/2", shown), ("1/2", pe.LaplaceMechanism(2.0))])
    gamma = pe.gamma_bound(mixture, [0.0, 1e-12, 1.0], adjacency="add", bounds=True)
    assert gamma.lower[0] <= 5e-4 <= gamma.upper[0] <= 5e-4 * (1 + 1e-12)
    assert gamma.lower[0] < gamma.upper[1] < 5e-4 + 1e-10
    assert gamma.lower[2] == 1.0
    assert pe.trade_off(mixture, 1.0) == 0.0
    assert pe.epsilon(mixture, [0.0, 4.9e-4]).tolist() == [np.inf, np.inf]
    assert pe.epsilon(mixture, [5.1e-4, 1.0])[1] == 0.0
    assert pe.delta(mixture, np.inf) == pytest.approx(5e-4, rel=1e-12)
    both = pe.revealed_mixture([("1/2", pe.LaplaceMechanism(1)), ("1/2", pe.LaplaceMechanism(2))])
    assert pe.epsilon(both, 0.0) == pytest.approx(1.0, rel=1e-15)
    assert pe.delta(both, 1.0, bounds=True).upper <= 1e-31


def test_too_many_parts() -> None:
    """Beyond `MOST_PARTS` the mixture's own law is asked, where it has one."""
    few = pe.revealed_mixture([("1/2", pe.GaussianMechanism(9)), ("1/2", pe.LaplaceMechanism(40))])
    assert len(parts_of(few.composed(MOST_PARTS - 1))) == MOST_PARTS
    assert parts_of(few.composed(MOST_PARTS)) == []
    many = pe.revealed_mixture([("1/2", pe.dp_sgd(9, 0.01, 20)), ("1/2", pe.LaplaceMechanism(40))])
    with pytest.raises(pe.AccuracyError, match="up to 512 compositions"):
        pe.delta(many.composed(MOST_PARTS), 0.1)


def test_proofs_of_what_only_others_bound() -> None:
    """``method="certified"`` answers epochs with several random steps, and records replaced."""
    twice = pe.GaussianMechanism(1.0).randomly_allocated(12, selected=2)
    allocated = pe.dp_sgd_allocated(1.0, 50, 2)
    for run, adjacency in ((twice, "add_remove"), (allocated, "substitute")):
        found = pe.delta(run, 0.5, adjacency=adjacency, method="certified", bounds=True)
        assert found == pe.delta(run, 0.5, adjacency=adjacency, bounds=True)
    mixture = pe.revealed_mixture([("1/2", allocated), ("1/2", pe.LaplaceMechanism(2.0))])
    found = pe.delta(mixture, 0.5, adjacency="substitute", bounds=True)
    part = pe.delta(allocated, 0.5, adjacency="substitute", bounds=True)
    other = pe.delta(pe.LaplaceMechanism(2.0), 0.5, adjacency="substitute")
    assert found.upper == pytest.approx(0.5 * (part.upper + other), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-12, 1e-300])
def test_epsilon_next_to_the_largest_loss(delta: float) -> None:
    """Where one of two Laplace steps has losses left: δ = (1 - e^((ε - 1)/2))/2."""
    both = pe.revealed_mixture([("1/2", pe.LaplaceMechanism(1)), ("1/2", pe.LaplaceMechanism(2))])
    found = pe.epsilon(both, delta, bounds=True)
    with mpmath.workdps(330):
        truth = 1 + 2 * mpmath.log(1 - 2 * mpmath.mpf(delta))
        assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 1e-11


@pytest.mark.parametrize("kappa", [1e-300, 1e-5, 0.5])
def test_parts_that_show_the_record(kappa: float) -> None:
    """No line tells so small an error: one level for all parts bounds it."""
    runs = [pe.dp_sgd(0.2, 0.01, 10**6), pe.dp_sgd(0.2, 0.01, 2 * 10**6)]
    mixture = pe.revealed_mixture([("1/2", runs[0]), ("1/2", runs[1])])
    assert pe.gamma_bound(mixture, kappa, bounds=True).lower > 1.0 - 1e-15
