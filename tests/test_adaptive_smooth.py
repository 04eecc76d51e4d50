"""Adaptive runs on coarse grids: sums of bells beside laws, plain tables and compositions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from thorough import ALL, some

import pyengine as pe
from pyengine.accounting.bells import READ, Bells, noisy_stop, normal_masses
from pyengine.accounting.kernels import StepProfile, graded, kernel
from pyengine.accounting.questions import TOLERANCE, WIDEST, WorstCase
from pyengine.accounting.runs import _by_grid
from pyengine.accounting.smooth import SmoothRecursion
from pyengine.accounting.steps_on_bells import NEAR, FirstStep, StepOnBells
from pyengine.accounting.tables import LEVELS, Choosing, Detail

LOW, HIGH = (pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06)))
KINDS = [
    LOW,
    pe.GaussianMechanism(4.0),
    pe.LaplaceMechanism(5.0).poisson_sampled(0.5),
    pe.RandomizedResponse("0.6").poisson_sampled("0.3"),
]


def choosing(menu: list[Any], steps: int, order: Any, **words: Any) -> Choosing:
    run = pe.adaptive(menu, steps, **words)
    return Choosing([StepProfile(step, order) for step in run.choices], run.plan)


def smooth(of: Choosing, place: float, delta: float, halvings: int) -> Detail:
    spacing = of.coarse / 2.0**halvings
    return Detail(spacing, place, 1e-8 * delta, 1e-11, is_smooth=True)


def bell_at(bells: Bells, x: Any) -> Any:
    """B by its definition: the mean of a hat function, linear in r, over the noise.

    It is linear in r between nodes of the fine grid, where all of that has its corners.
    """
    n, h = bells.noise.size // 2, bells.spacing
    nodes = np.arange(-bells.half, bells.half + 1) * bells.fine
    y = nodes[:, None] + np.arange(-n, n + 1) * bells.fine
    fall = (np.exp(h) - np.exp(y)) / np.expm1(h)
    hat = np.where(y < 0.0, (np.exp(y) - np.exp(-h)) / -np.expm1(-h), fall)
    values = np.where(np.abs(y) < h, hat, 0.0) @ bells.noise
    return np.interp(np.exp(x), np.exp(nodes), values, left=0.0, right=0.0)


@pytest.mark.parametrize("is_upper", [True, False])
def test_laws_of_fewer_nodes(is_upper: bool) -> None:
    """On all nodes they are the laws of full grids; on fewer they lie on their side of these."""
    profile, h = StepProfile(LOW, "remove"), 2.0**-9
    whole = kernel(profile, h, 0.06, 0.7, is_upper)
    thin = graded(profile, h, 32, 16, (0.06, 0.7), is_upper)
    most = graded(profile, h, 1 << 12, 16, (0.06, 0.7), is_upper)
    assert thin.index.size < 0.6 * most.index.size
    k = np.exp(np.linspace(-0.05, 0.6, 300))

    def call(index: Any, weights: Any, far: float) -> Any:
        return np.maximum(np.exp(index * h)[:, None] - k, 0.0).T @ weights + far

    full = call(np.arange(whole.first, whole.last + 1), whole.weights, whole.far)
    nearly = call(most.index, most.weights, most.far)
    check_near("adaptive.fewer_nodes", nearly, full, absolute=True)
    low, high = np.array(profile.at(np.log(k))) + np.maximum(1.0 - k, 0.0)
    for law in (thin, most):
        other = call(law.index, law.weights, law.far)
        assert (other >= low - 1e-12).all() if is_upper else (other <= high + 1e-12).all()
        assert np.abs(other - low).max() <= 0.1 * h


@pytest.mark.parametrize("step", some(KINDS, 2))
@pytest.mark.parametrize("tilt", [1.0, 4.5])
def test_what_a_step_makes_of_bells(step: Any, tilt: float) -> None:
    """At random places, by definition: residuals, and coefficients of (r - 1)+, keep to errors."""
    profile = StepProfile(step, "remove")
    h = 2.0 ** math.floor(math.log2(profile.variation / 6.0))
    bells = Bells(h, 8, tilt)
    ends = profile.end(1e-12, -1), profile.end(1e-12, 1)
    law = graded(profile, bells.fine, 1 << 11, 8, ends, is_upper=True)
    made, first = StepOnBells(law, bells), FirstStep(law, bells)
    y = law.index * bells.fine
    m = made.first + np.arange(made.c.size)
    near = np.abs(m) * h < 2.0
    rng = np.random.default_rng(3)
    for place in rng.uniform(0.0, h, 2):
        x = place + h * np.arange(-int(1.2 / h), int(0.7 / h))
        damping = np.exp(-tilt * x)
        after = bell_at(bells, x[:, None] + y) @ law.weights * damping
        places = x[:, None] - m[near] * h
        left = after - (bell_at(bells, places) * np.exp(-tilt * places)) @ made.c[near]
        assert np.abs(left).sum() <= made.residual * 1.01 + 1e-9
        stop = np.maximum(np.expm1(x[:, None] + y), 0.0) @ law.weights
        n = bells.noise.size // 2
        noisy = np.maximum(np.expm1(x[:, None] + np.arange(-n, n + 1) * bells.fine), 0.0)
        k = np.arange(-int(1.5 / h), int(1.5 / h))
        begin = np.zeros(k.size)
        at = k - first.start
        inside = (at >= 0) & (at < first.value.size)
        begin[inside] = first.value[at[inside]]
        bell = bell_at(bells, x[:, None] - k * h) * np.exp(-tilt * (x[:, None] - k * h))
        found = noisy @ bells.noise * damping + bell @ begin
        assert np.abs(found - stop * damping).max() <= first.error + 1e-12
        assert first.error <= (1e-3 if step in KINDS[:2] else 0.2) * h


@pytest.mark.parametrize("step", some(KINDS, 1))
def test_steps_on_coarser_bells(step: Any) -> None:
    """At random places, by definition: what is made of finer ones keeps to its residual."""
    profile = StepProfile(step, "add")
    h = 2.0 ** math.floor(math.log2(profile.variation / 6.0))
    bells = Bells(0.25 * h, 4, 2.5)
    for wider in (0.5, 1.0, 2.0):
        bells = Bells(wider * h, 2 * bells.parts, 2.5, bells)
    ends = profile.end(1e-12, -1), profile.end(1e-12, 1)
    law = graded(profile, bells.fine, 1 << 11, bells.parts, ends, is_upper=True)
    made = StepOnBells(law, bells)
    y = law.index * bells.fine
    m = made.first + np.arange(made.c.size)
    near = np.abs(m) * bells.spacing < 2.0
    place = np.random.default_rng(4).uniform(0.0, bells.spacing)
    x = place + bells.spacing * np.arange(-int(0.6 / h), int(0.6 / h))
    after = bell_at(bells, x[:, None] + y) @ law.weights * np.exp(-2.5 * x)
    apart = x[:, None] - m[near] * bells.spacing
    left = after - (bell_at(bells, apart) * np.exp(-2.5 * apart)) @ made.c[near]
    assert np.abs(left).sum() <= made.residual * 1.01 + 1e-9
    smooth = step in KINDS[:2]
    assert made.residual <= (2e-10 if smooth else 1e-7)


@pytest.mark.parametrize("wider", [2, 4])
def test_bells_are_sums_of_finer_ones(wider: int) -> None:
    """At all places, and so are their sums up to an error that holds, with stops in them."""
    fine = Bells(2.0**-9, 16, 2.5)
    bells = Bells(wider * fine.spacing, wider * fine.parts, 2.5, fine)
    j = np.arange(-(bells.of_finer.size // 2), bells.of_finer.size // 2 + 1)
    x = np.random.default_rng(2).uniform(-0.2, 0.2, 300)
    apart = x[:, None] - j * fine.spacing
    sums = (bell_at(fine, apart) * np.exp(-2.5 * apart)) @ bells.of_finer
    assert np.abs(sums - bell_at(bells, x) * np.exp(-2.5 * x)).max() <= bells.rounding
    law = graded(StepProfile(LOW, "remove"), fine.fine, 1 << 10, bells.parts, (0.1, 0.5), True)
    finer = SmoothRecursion([law], fine, -400, 400, is_upper=True, depth=3)
    recursion = SmoothRecursion(
        [law], bells, -400 // wider, 400 // wider, is_upper=True, finer=finer
    )
    nodes = [np.arange(-most, most + 1) for most in (400, 400 // wider)]
    at = nodes[0] * fine.spacing
    for width, corner in ((0.05, 0.0), (0.03, 1e-3)):
        noise = normal_masses(width, fine.spacing)
        value = noisy_stop(noise, fine.spacing, nodes[0]) * np.exp(-2.5 * at)
        value += corner * np.maximum(0.1 - np.abs(at), 0.0)
        found, error = recursion._coarser(value)
        both = []
        for of, sums, where in ((fine, value, nodes[0]), (bells, found, nodes[1])):
            apart = x[:, None] - where * of.spacing
            n = of.noise.size // 2
            noisy = np.maximum(np.expm1(x[:, None] + np.arange(-n, n + 1) * of.fine), 0.0)
            stop = noisy @ of.noise * np.exp(-2.5 * x)
            both.append((bell_at(of, apart) * np.exp(-2.5 * apart)) @ sums + stop)
        # between fine nodes the noisy stop is no sum of its values there
        assert np.abs(both[0] - both[1]).max() <= error * 1.01 + 1e-7
        assert error <= (1e-6 if corner == 0.0 else 1e-5)


def test_a_part_without_mass_makes_nothing() -> None:
    """Sampled randomized response: the nodes far from 0 have no mass."""
    profile = StepProfile(pe.RandomizedResponse(0.863).poisson_sampled(0.079), "add")
    h = 2.0 ** math.floor(math.log2(profile.variation / 6.0))
    bells = Bells(h, 8, 2.0)
    law = graded(profile, bells.fine, 1 << 11, 8, (0.5, 1.0), is_upper=True)
    far = np.append(law.index, law.index[-1] + 8 * NEAR + np.arange(1, 3))
    more = replace(
        law,
        index=far,
        weights=np.append(law.weights, [0.0, 0.0]),
        values=np.append(law.values, [law.far, law.far]),
    )
    made, without = StepOnBells(more, bells), StepOnBells(law, bells)
    nodes = np.arange(made.c.size) + made.first - without.first
    inside = (nodes >= 0) & (nodes < without.c.size)
    assert made.c[inside] == pytest.approx(without.c[nodes[inside]], abs=1e-9)
    assert not made.c[~inside].any()


def test_lower_maxima_lie_below() -> None:
    """Of random coefficients whose owners change often, at random places."""
    rng = np.random.default_rng(5)
    step = StepProfile(LOW, "remove")
    bells = Bells(2.0**-8, 8, 3.0)
    law = graded(step, bells.fine, 1 << 12, 8, (0.1, 0.5), is_upper=False)
    recursion = SmoothRecursion([law], bells, -100, 100, is_upper=False)
    nodes = np.arange(-100, 101)
    for _ in range(20 if ALL else 5):
        size = int(rng.integers(2, 5))
        steps = rng.normal(size=(size, nodes.size)) * rng.choice([1e-3, 1.0], size=(size, 1))
        values = list(np.cumsum(steps, axis=1))
        low, _ = recursion._best(values, 0.0)
        assert (low <= np.max(values, axis=0)).all()
        x = rng.uniform(-0.3, 0.3, 400)
        bell = bell_at(bells, x[:, None] - nodes * bells.spacing) * np.exp(
            -bells.tilt * (x[:, None] - nodes * bells.spacing)
        )
        largest = np.max([bell @ value for value in values], axis=0)
        assert (bell @ low <= largest + 1e-11).all()
        # and no lower than it has to be: where one choice owns all about x nothing is lost
        owner = np.argmax(values, axis=0)
        alone = [np.ptp(owner[np.abs(nodes - at / bells.spacing) <= 16]) == 0 for at in x]
        assert np.allclose((bell @ low)[alone], largest[alone], atol=1e-11)


@pytest.mark.parametrize("order", ["add", "remove"])
@pytest.mark.parametrize("step", KINDS)
def test_a_menu_of_one_is_the_composition(step: Any, order: Any) -> None:
    """Whatever the kind; where losses have atoms, these tables are known to be too wide to ask."""
    steps = 30
    of = choosing([step], steps, order)
    composed = step.composed(steps)
    place = float(pe.epsilon(composed, 1e-4, adjacency=order))
    detail = smooth(of, place, 1e-4, 4)
    table = of.table(detail)
    least = of.least_width(detail, 1e-4)
    # nine tenths of the mass of Laplace's loss here are two atoms
    assert least <= TOLERANCE if step in KINDS[:2] else least > WIDEST
    for epsilon in (place, 0.7 * place):
        truth = pe.delta(composed, epsilon, adjacency=order, bounds=True)
        found = table.delta(epsilon)
        assert found is not None
        value, lower, upper = found
        assert lower <= truth.upper
        assert truth.lower <= upper
        if step in KINDS[:2]:
            assert upper - lower <= 1e-4 * value


def test_smooth_and_plain_tables_agree() -> None:
    """Of the known menu, whose value a second program has, and under limits of two sorts."""
    of = choosing([LOW, HIGH], 40, "remove")
    found = of.table(smooth(of, 0.5, 1e-3, 6)).delta(0.5)  # nodes of most states: coarse / 16
    assert found is not None
    assert found[1] <= 1.359347840e-3 * (1.0 + 1e-9)
    assert found[2] >= 1.359347840e-3 * (1.0 - 1e-9)
    assert found[2] - found[1] <= 1e-5 * found[0]
    assert abs(found[0] / 1.359347840e-3 - 1.0) <= 1e-6
    cases: list[dict[str, Any]] = [{"costs": [1, 2], "budget": 9}, {"most": {0: 2}}]
    for words in cases:
        of = choosing([LOW, HIGH], 8, "add", **words)
        plain = of.table(Detail(of.coarse / 16.0, 0.15, 1e-13, 1e-11))
        rough = of.table(smooth(of, 0.15, 1e-4, 4))
        for epsilon in (0.15, 0.13):
            one, two = plain.delta(epsilon), rough.delta(epsilon)
            assert one is not None
            assert two is not None
            assert one[1] <= two[2], words
            assert two[1] <= one[2], words
            assert two[2] - two[1] <= 1e-3 * two[0]


def test_many_steps_within_the_default() -> None:
    """Bounds meet within 1e-6 where plain tables take many more likelihood ratios."""
    steps = 1000 if ALL else 120
    run = pe.adaptive([LOW, HIGH], steps)
    questions = _by_grid(run, "remove", None)
    assert isinstance(questions, WorstCase)
    found = pe.delta(run, 1.0, adjacency="remove", bounds=True)
    assert found.upper - found.lower <= 1e-6 * found.value
    widest = questions._latest["remove"].spacing * READ * LEVELS[3][0]  # of most states
    assert widest >= questions._choosing["remove"].coarse / 2**6
    rough = pe.delta(run, 1.0, adjacency="remove", bounds=True, tolerance=1e-3)
    assert rough.lower <= found.upper
    assert found.lower <= rough.upper
