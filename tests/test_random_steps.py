"""Random allocation of any mechanism against enumeration, integrals and laws on finer lattices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import thorough
from integrals import (
    Ratio,
    check_both_orders,
    of_laplace,
    of_range,
    of_response_and_gaussian,
    of_sum,
)
from outcomes import Outcomes, generic, response
from thorough import sampled

import pyengine as pe


def enumerated(pairs: Outcomes, steps: int, selected: int, level: Fraction) -> tuple[Any, Any]:
    """Profiles of both orders at e^ε = level, by going through all outcomes of all steps."""
    sets = list(itertools.combinations(range(steps), selected))
    remove = add = Fraction(0)
    for outcome in itertools.product(pairs, repeat=steps):
        without = math.prod((a for a, _ in outcome), start=Fraction(1))
        of_sets = (
            math.prod((outcome[i][i in chosen] for i in range(steps)), start=Fraction(1))
            for chosen in sets
        )
        with_record = sum(of_sets, Fraction(0)) / len(sets)
        remove += max(with_record - level * without, Fraction(0))
        add += max(without - level * with_record, Fraction(0))
    return add, remove


def drawn_pairs(rng: np.random.Generator) -> tuple[Outcomes, pe.Mechanism]:
    """Outcomes of a mechanism, with doubles for exponentials, and the mechanism."""
    kind = int(rng.integers(4))
    if kind == 0:
        truth, k = Fraction(int(rng.integers(1, 100)), 100), int(rng.integers(2, 5))
        return response(truth, k), pe.RandomizedResponse(truth, k)
    if kind == 1:
        epsilon, delta = float(rng.uniform(0, 3)), float(rng.choice([0.0, 0.01, 0.3]))
        step = pe.GenericMechanism(epsilon, delta)
        return generic(epsilon, Fraction(delta), lambda x: Fraction(math.exp(x))), step
    size = int(rng.integers(2, 5))
    p, q = (rng.integers(0 if kind == 3 else 1, 20, size) for _ in range(2))
    p[0], q[-1] = p[0] + 1, q[-1] + 1
    p, q = ([Fraction(int(x), int(v.sum())) for x in v] for v in (p, q))
    return [row for row in zip(p, q, strict=True) if any(row)], pe.from_probabilities(p, q)


@pytest.mark.parametrize("seed", thorough.some(range(400), 20))
def test_few_outcomes_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng([seed, 46])
    pairs, run = drawn_pairs(rng)
    steps = int(rng.integers(2, 6 if len(pairs) < 4 else 5))
    selected = int(rng.integers(1, steps))
    epoch = run.randomly_allocated(steps, selected)
    assert pe.from_json(pe.to_json(epoch)) == epoch
    for epsilon in (0.0, 0.3, 1.5):
        level = Fraction(math.exp(epsilon))
        for order, exact in zip(
            ("add", "remove"), enumerated(pairs, steps, selected, level), strict=True
        ):
            found = pe.delta(epoch, epsilon, adjacency=order, bounds=True)
            slack = 1e-14 + 1e-13 * float(exact)  # of the doubles that are exponentials here
            assert found.lower - slack <= float(exact) <= found.upper + slack
            assert found.upper - found.lower <= 1e-11


@pytest.mark.parametrize("delta", ["1e-9", "3e-4", "0.013", "0.07"])
def test_what_is_told_surely_lies_between_its_bounds(delta: str) -> None:
    """At ε = ∞: one of the steps with the record tells, or so few others do not."""
    told = Fraction(delta)
    step = pe.GenericMechanism(0.7, delta)
    for steps, selected in ((2, 1), (3, 2), (5, 1), (5, 2), (6, 2), (7, 3), (40, 2)):
        epoch = step.randomly_allocated(steps, selected)
        shown = [
            math.comb(steps, j) * (1 - told) ** j * told ** (steps - j) for j in range(selected)
        ]
        for order, exact in (("add", sum(shown)), ("remove", 1 - (1 - told) ** selected)):
            found = pe.delta(epoch, math.inf, adjacency=order, bounds=True)
            assert Fraction(found.lower) <= exact <= Fraction(found.upper)
            assert found.upper - found.lower <= 1e-14 * found.value + 1e-300


def laplace_tail(t: Any, mu: float) -> Any:
    """E (R - t)+ of one Laplace step, without the record."""
    t = np.asarray(t, dtype=float)
    inside = np.clip(t, math.exp(-mu), math.exp(mu))
    # of the events z > x, R = e^(2x - μ): e^(x - μ)/2 of mass, or what is below 0
    x = 0.5 * (np.log(inside) + mu)
    value = (1.0 - 0.5 * np.exp(-mu + x)) - 0.0 * t
    a, b = 0.5 * np.exp(-x), 1.0 - 0.5 * np.exp(x - mu)
    value = b - inside * a
    value = np.where(t >= math.exp(mu), 0.0, value)
    return np.where(t <= math.exp(-mu), 1.0 - t, value)


def two_laplace(mu: float, level: float) -> float:
    """E (R₁ + R₂ - 2 level)+ / 2 of two steps: atoms of R₁, and Gauss panels of its density."""
    ends = [math.exp(-mu), math.exp(mu)]
    total = 0.5 * laplace_tail(2 * level - ends[0], mu)
    total += 0.5 * math.exp(-mu) * laplace_tail(2 * level - ends[1], mu)
    knots = sorted({-mu, mu, *(math.log(2 * level - e) for e in ends if 2 * level > e)})
    knots = [k for k in knots if -mu <= k <= mu]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for low, high in itertools.pairwise(knots):
        loss = 0.5 * (low + high) + 0.5 * (high - low) * nodes
        density = 0.25 * np.exp(-0.5 * (mu + loss))
        values = laplace_tail(2 * level - np.exp(loss), mu)
        total += 0.5 * (high - low) * float(weights @ (density * values))
    return float(total) / 2.0


@sampled(2)
@pytest.mark.parametrize("seed", thorough.some(range(320), 40))
def test_two_laplace_steps(seed: int) -> None:
    rng = np.random.default_rng([seed, 47])
    noise, epsilon = float(rng.uniform(0.3, 4.0)), float(rng.uniform(0.0, 1.0))
    mu = 1.0 / noise
    epsilon *= mu
    epoch = pe.LaplaceMechanism(noise).randomly_allocated(2)
    remove = two_laplace(mu, math.exp(epsilon))
    # E (1 - e^ε S/2)+ = e^ε E (e^-ε - S/2)+, and the mean of S/2 is 1
    add = math.exp(epsilon) * (math.exp(-epsilon) - 1.0 + two_laplace(mu, math.exp(-epsilon)))
    slack = 2e-6 * math.exp(2.0 * mu)  # most next to the smallest ratio
    for order, truth in (("remove", remove), ("add", add)):
        found = pe.delta(epoch, epsilon, adjacency=order, bounds=True)
        assert found.lower - 1e-13 <= truth * (1.0 + 1e-9)
        assert truth * (1.0 - 1e-9) - 1e-13 <= found.upper <= truth * (1.0 + slack) + 1e-7


KINDS: list[tuple[Callable[[Any], Ratio], Callable[[float], pe.Mechanism]]] = [
    (of_laplace, lambda mu: pe.LaplaceMechanism(Fraction(1) / Fraction(mu))),
    (of_range, pe.ExponentialMechanism),
    (
        of_response_and_gaussian,
        lambda mu: pe.GaussianMechanism(Fraction(1) / Fraction(mu)) + pe.RandomizedResponse("3/4"),
    ),
]
CASES = [(kind, 2, seed) for kind in range(3) for seed in range(80)]
CASES += [(kind, 3, seed) for kind in range(2) for seed in range(30)]


@sampled(3)
@pytest.mark.parametrize(("kind", "steps", "seed"), thorough.some(CASES, 40))
def test_bounds_of_few_steps_hold_by_integrals(kind: int, steps: int, seed: int) -> None:
    """Both orders and four questions lie between bounds from below and from above."""
    with mp.workdps(30):
        check_questions(kind, steps, np.random.default_rng([kind, steps, seed, 61]))


def check_questions(kind: int, steps: int, rng: np.random.Generator) -> None:
    """All questions at one ε."""
    mu = float(math.exp(rng.uniform(-1.5, 1.0)))
    made, run = KINDS[kind]
    one = made(mp.mpf(mu))
    total = one
    for _ in range(steps - 1):
        total = of_sum(one, total)
    width = mu if kind < 2 else 1.1 + 2.0 * mu
    epsilon = float(rng.uniform(0.02, 0.9)) * width / math.sqrt(steps)

    def above(level: Any) -> tuple[Any, Any]:
        value, tail = total.above(steps * level)
        return value / steps, tail

    apart = 2e-5 if kind < 2 else 2e-4
    check_both_orders(run(mu).randomly_allocated(steps), epsilon, above, apart)


def below(mu: float, steps: int, points: int) -> tuple[Any, Any]:
    """Sums of conditional means of R on cells, whose law is spread less, by powers of transforms.

    Cells of one width in R; a conditional mean off the lattice is split to the places beside it,
    and then moved down by a variance: nothing is proven, the error is of second order.
    """
    ends = math.exp(-mu), math.exp(mu)
    width = (ends[1] - ends[0]) / points
    edges = ends[0] + width * np.arange(points + 1)
    tails = laplace_tail(edges, mu)
    curve = np.concatenate([[1.0 - edges[0] + width], tails, [0.0]])
    mass = np.diff(curve, 2) / width
    size = 1 << math.ceil(math.log2(steps * (points + 1)))
    total = np.fft.irfft(np.fft.rfft(mass, size) ** steps, size)
    place = (steps * ends[0] + width * np.arange(size)) / steps
    return place, total


@sampled(2)
@pytest.mark.parametrize("seed", thorough.some(range(300), 50))
def test_many_laplace_steps(seed: int) -> None:
    """Values on two finer lattices, extrapolated to none: what is answered lies just above."""
    rng = np.random.default_rng([seed, 48])
    noise, steps = float(rng.uniform(0.4, 4.0)), int(rng.integers(3, 60))
    mu = 1.0 / noise
    epoch = pe.LaplaceMechanism(noise).randomly_allocated(steps)
    epsilon = float(rng.uniform(0.0, 2.0)) * mu / math.sqrt(steps)
    found = []
    for points in (2000, 4000):
        place, mass = below(mu, steps, points)
        level = math.exp(epsilon)
        found.append(
            (
                float(np.maximum(1.0 - level * place, 0.0) @ mass),
                float(np.maximum(place - level, 0.0) @ mass),
            )
        )
    for order, coarse, fine in zip(("add", "remove"), *found, strict=True):
        truth = fine + (fine - coarse) / 3.0
        bounds = pe.delta(epoch, epsilon, adjacency=order, bounds=True)
        # beside a corner the error need not be of second order: the finer value itself is within
        off = 0.4 * abs(fine - coarse) + 1e-12
        assert bounds.lower - off <= truth <= bounds.upper + off
        assert bounds.upper - bounds.lower <= 3e-4 * bounds.upper + 1e-12


@pytest.mark.parametrize("seed", thorough.some(range(300), 60))
def test_two_steps_of_unbounded_losses(seed: int) -> None:
    """Discrete Gaussian and Skellam noise, by all pairs of outcomes."""
    rng = np.random.default_rng([seed, 54])
    shift, noise = int(rng.integers(1, 4)), float(rng.uniform(2.0, 6.0))
    sigma = noise * shift
    run: pe.Mechanism = pe.DiscreteGaussianMechanism(noise, shift)
    k = np.arange(-int(11 * sigma) - shift, int(11 * sigma) + 2 * shift + 1)
    log_mass = -0.5 * (k / sigma) ** 2
    if seed % 2:
        run = pe.SkellamMechanism(noise, shift)
        half = sigma * sigma / 2.0
        log_poisson = [-half + j * math.log(half) - math.lgamma(j + 1) for j in range(4000)]
        poisson = np.exp(log_poisson)
        both = np.convolve(poisson, poisson[::-1])
        log_mass = np.log(np.maximum(both[k + 3999], 1e-300))
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    ratio = np.zeros(k.size)
    ratio[shift:] = mass[:-shift] / mass[shift:]
    mean = 0.5 * (ratio[:, None] + ratio[None, :])
    weight = mass[:, None] * mass[None, :]
    epsilon = float(rng.uniform(0.0, 2.0)) / noise
    level = math.exp(epsilon)
    for order, terms in (("remove", mean - level), ("add", 1.0 - level * mean)):
        truth = float((np.maximum(terms, 0.0) * weight).sum())
        epoch = run.randomly_allocated(2)
        found = pe.delta(epoch, epsilon, adjacency=order, bounds=True)
        assert found.lower - 1e-14 <= truth * (1.0 + 1e-9)
        assert truth * (1.0 - 1e-9) <= found.upper <= found.lower * 1.0002 + 1e-12


def profiles(law: Any, level: float) -> tuple[float, float]:
    """Profiles of both orders of a finite law."""
    a, b = np.exp(law.log_a), np.exp(law.log_b)
    above, below = (float(np.maximum(x, 0.0).sum()) for x in (b - level * a, a - level * b))
    return above + law.b_infinite, below + law.a_infinite


@pytest.mark.parametrize("seed", thorough.some(range(1000), 20))
def test_few_outcomes_lie_between_both_laws(seed: int) -> None:
    """Laws that are answered exactly, by atoms and by cells, some with what one side has alone."""
    from pyengine.laws import random_steps
    from pyengine.laws.base import ReversedLaw
    from pyengine.laws.finite import FiniteLaw

    rng = np.random.default_rng([seed, 62])
    size, scale = int(rng.integers(2, 5)), 10.0 ** rng.uniform(-7.0, 1.5)
    a = np.maximum(rng.dirichlet(np.ones(size) * 10.0 ** rng.uniform(-1.0, 1.0)), 1e-60)
    b = a * np.exp(np.clip(rng.normal(size=size) * scale, -200.0, 200.0))
    p, q = ([Fraction(x) / sum(map(Fraction, v.tolist())) for x in v.tolist()] for v in (a, b))
    none, told = (
        Fraction(float(10.0 ** rng.uniform(-12.0, -0.1))) if rng.random() < 0.4 else Fraction(0)
        for _ in range(2)
    )
    rows = [((1 - none) * x, (1 - told) * y) for x, y in zip(p, q, strict=True)]
    law = FiniteLaw.from_fractions([*rows, (none, Fraction(0)), (Fraction(0), told)])
    steps = int(rng.choice([2, 3, 4, 5, 7, 12, 20, 40]))
    exact = random_steps.allocated_finite(law, steps, 1)
    if exact is None:
        assert math.comb(steps + size, size) > random_steps.MOST_STATES
        return
    for form in (law, ReversedLaw(law.reversed)):
        below, above = random_steps._enclosed(form, steps, int(rng.choice([256, 1024])))
        assert isinstance(below, FiniteLaw)
        assert isinstance(above, FiniteLaw)
        off = 4.0 * (above.error + above.loss_error + exact.error + 1e-13)
        moved = rng.normal(size=3) * 0.1 * scale / math.sqrt(steps)
        for level in (1.0, *np.exp(rng.choice(exact.loss, 3) + moved).tolist()):
            found = (profiles(each, level) for each in (below, exact, above))
            for least, truth, most in zip(*found, strict=True):
                room = off * max(level, 1.0)
                assert least - room <= truth <= most + room


LAWS = (
    pe.LaplaceMechanism(2),
    pe.LaplaceMechanism(2) + pe.GenericMechanism("1/2", "1/1000"),
    pe.GaussianMechanism(2) + pe.GenericMechanism(1, "1/100"),
    pe.GaussianMechanism(1) + pe.RandomizedResponse("3/4"),
)


@pytest.mark.parametrize("steps", [2, 3, 9, 100])
@pytest.mark.parametrize("mechanism", LAWS)
def test_laws_of_all_numbers_of_nodes_enclose(mechanism: pe.Mechanism, steps: int) -> None:
    """Either law on few nodes lies beyond both on many, and all masses are there."""
    from pyengine.laws import random_steps
    from pyengine.laws.kinds import added_law

    law = added_law(mechanism.randomly_allocated(steps))
    assert isinstance(law, random_steps.OtherEpoch)
    found = [random_steps._enclosed(law.law, steps, nodes) for nodes in (256, 2048)]
    for each in (*found[0], *found[1]):
        for log_mass, alone in zip((each.log_a, each.log_b), each.infinite(), strict=True):
            assert abs(float(np.exp(log_mass).sum()) + alone - 1.0) <= 1e-9
    for level in np.exp(np.linspace(-3.0, 3.0, 25) / math.sqrt(steps)).tolist():
        below, above = (np.array([profiles(one[i], level) for one in found]) for i in (0, 1))
        assert (below.max(axis=0) <= above.min(axis=0) + 1e-8 * max(level, 1.0)).all()


def test_compositions_and_blocks() -> None:
    """Epochs compose, several releases share their steps, and the rest is refused with a reason."""
    step = pe.LaplaceMechanism(2.0)
    epoch = step.randomly_allocated(20)
    assert epoch.words.known == ""
    assert step.randomly_allocated(20, 3).words.known == "upper bound"
    twice = pe.delta(epoch.composed(2), 0.3, bounds=True)
    assert pe.delta(epoch, 0.3) < twice.upper < 3.0 * pe.delta(epoch, 0.15)
    assert step.randomly_allocated(1) is step
    assert step.randomly_allocated(3, 3) == step.composed(3)
    loud = pe.delta(pe.DiscreteGaussianMechanism(1.0).randomly_allocated(9), 0.5, bounds=True)
    assert 0.0 < loud.lower <= loud.upper < loud.lower * (1.0 + 1e-4)
    with pytest.raises(pe.AccuracyError, match=r"losses up to 512, and those .* go to 1e"):
        pe.delta(pe.LaplaceMechanism(0.001).randomly_allocated(9), 0.5)
    both = (step + pe.RandomizedResponse("3/4")).randomly_allocated(3)
    assert pe.delta(both, 0.5) > pe.delta(step.randomly_allocated(3), 0.5)
    several = pe.delta(step.randomly_allocated(20, 3), 0.5, bounds=True)
    blocks = step.randomly_allocated(7).composed(2) + step.randomly_allocated(6)
    assert several.value == pe.delta(blocks, 0.5)
    assert several.lower == 0.0  # nothing is known from below
    with pytest.raises(pe.AccuracyError, match="for Gaussian noise and for few outcomes"):
        pe.delta(step.randomly_allocated(20, 3), 0.5, method="exact")
    for wrong in (step.poisson_sampled(0.1), epoch, pe.GaussianMixtureMechanism(1, [1], [1])):
        with pytest.raises(ValueError, match=r"single step that is not|cannot be|can run on"):
            wrong.randomly_allocated(3)
    replaced = pe.delta(epoch, 0.4, adjacency="substitute", bounds=True)
    assert (
        pe.delta(epoch, 0.4, bounds=True).lower <= replaced.lower * (1.0 + 1e-6) <= replaced.upper
    )


@sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_blocks_bound_laplace_steps(seed: int) -> None:
    """Means over all sets of steps, of samples: below the bound, and less than half below it."""
    rng = np.random.default_rng(seed)
    noise, steps = float(rng.uniform(1.0, 4.0)), int(rng.integers(4, 9))
    selected = int(rng.integers(2, 4))
    z = rng.laplace(size=(60_000, steps))
    y = np.exp(np.abs(z) - np.abs(z - 1.0 / noise))
    sets = itertools.combinations(range(steps), selected)
    ratio = np.mean([np.prod(y[:, chosen], axis=1) for chosen in sets], axis=0)
    run = pe.LaplaceMechanism(noise).randomly_allocated(steps, selected)
    for epsilon in (0.0, 0.3 * selected / noise):
        for adjacency, term in (
            ("remove", ratio - math.exp(epsilon)),
            ("add", 1.0 - math.exp(epsilon) * ratio),
        ):
            above = np.maximum(term, 0.0)
            truth, error = float(above.mean()), float(above.std()) / math.sqrt(len(z))
            found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
            assert truth - 5.0 * error <= found.upper <= 2.0 * truth + 5.0 * error
