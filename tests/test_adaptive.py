"""Runs that adapt: the worst strategy against policy trees, compositions and a second program."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import pickle
import random
import threading
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import outcomes
import pytest
from adaptive_truth import Case, Choice, bounds_of, drawn, is_outside, judged, value_and_error
from error_budget import check
from thorough import ALL, sampled, some, stored

import pyengine as pe
from pyengine.accounting import corners, kernels, questions
from pyengine.accounting.kernels import StepProfile, kernel
from pyengine.accounting.runs import _by_grid
from pyengine.accounting.tables import Choosing, Detail
from pyengine.engines.answers import Answering, Questions
from pyengine.errors import AccuracyError

F = Fraction
ONE = F(1)
Pairs = list[tuple[Fraction, Fraction]]
NOISE_AND_RATE = [(1.0, 0.02), (2.0, 0.06)]
MENU = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in NOISE_AND_RATE]


class ByRecursion(Answering):
    """A run that is asked by the recursion, where another way is shorter, too."""

    def __init__(self, run: pe.accounting.AdaptiveRun) -> None:
        self.run = run

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        return _by_grid(self.run, adjacency, tolerance)


def response(p: Fraction, q: Fraction, order: str) -> tuple[pe.Mechanism, Pairs]:
    """Sampled randomized response and the probabilities of its outcomes under both laws."""
    step = pe.RandomizedResponse(p).poisson_sampled(q)
    pairs = outcomes.sampled(outcomes.response(p), q)
    return step, pairs if order == "add" else outcomes.reversed_(pairs)


def tree(
    menu: Sequence[Pairs],
    steps: int,
    threshold: Fraction,
    left: Sequence[int],
    costs: Sequence[int],
    budget: int,
    a: Fraction = ONE,
    b: Fraction = ONE,
) -> Fraction:
    """δ of the best policy tree, every history for itself, in exact arithmetic."""
    best = max(a - threshold * b, F(0))
    for i, pairs in enumerate(menu):
        if steps == 0 or left[i] == 0 or costs[i] > budget:
            continue
        rest = [k - (j == i) for j, k in enumerate(left)]
        after = (
            tree(menu, steps - 1, threshold, rest, costs, budget - costs[i], a * x, b * y)
            for x, y in pairs
        )
        best = max(best, sum(after, F(0)))
    return best


def test_policy_trees() -> None:
    """The bounds of random menus, budgets and limits hold the truth."""
    rng = random.Random(4)
    for _ in range(600 if ALL else 60):
        size = rng.randint(1, 3)
        steps = rng.randint(1, 4 if size > 1 else 6)
        order = rng.choice(["add", "remove"])
        choices = [
            response(F(rng.randint(51, 95), 100), F(rng.randint(1, 99), 100), order)
            for _ in range(size)
        ]
        costs = [rng.randint(1, 3) for _ in range(size)]
        budget, most = rng.randint(1, 3 * steps), rng.randint(0, steps)
        menu = [step for step, _ in choices]
        run = pe.adaptive(menu, steps, costs=costs, budget=budget, most={0: most})
        epsilon = rng.randint(0, 1000) / 1000
        with mpmath.workdps(40):
            threshold = F(int(mpmath.floor(mpmath.exp(epsilon) * 10**30)), 10**30)
        left = [most] + [steps] * (size - 1)
        truth = float(tree([p for _, p in choices], steps, threshold, left, costs, budget))
        for asked, tolerance in ((run, None), (ByRecursion(run), 5e-3)):
            found = pe.delta(asked, epsilon, adjacency=order, bounds=True, tolerance=tolerance)
            assert found.lower <= truth * (1 + 1e-14), (run, order, epsilon, truth, found)
            assert truth * (1 - 1e-14) <= found.upper, (run, order, epsilon, truth, found)
            if truth > 0.0:
                assert found.upper - found.lower <= (tolerance or 1e-6) * found.value
                if tolerance is None:
                    check("adaptive.corners", abs(found.value - truth))


def test_corners_and_grids_agree() -> None:
    """On all questions, with outcomes that only one law has, by two programs of nothing shared."""
    menu = [
        pe.RandomizedResponse("0.8").poisson_sampled("0.3"),
        pe.from_probabilities(["0.5", "0.49", "0.01"], ["0.6", "0.4", "0"]),
        pe.RandomizedResponse("0.55") + pe.RandomizedResponse("0.6", categories=4),
    ]
    run = pe.adaptive(menu, 4, most={0: 2})
    for adjacency in ("add", "remove", "add_remove"):
        for ask, x in (
            (pe.delta, 0.2),
            (pe.epsilon, 0.05),
            (pe.gamma_bound, 0.1),
            (pe.trade_off, 0.2),
        ):
            exact = ask(run, x, adjacency=adjacency, bounds=True)
            wide = ask(ByRecursion(run), x, adjacency=adjacency, bounds=True, tolerance=0.3)
            assert exact.upper - exact.lower <= 1e-10
            assert wide.lower <= exact.upper, (adjacency, ask)
            assert exact.lower <= wide.upper, (adjacency, ask)
    certain = 1.0 - 0.99**4
    assert pe.gamma_bound(run, 0.0, adjacency="remove") == pytest.approx(certain, rel=1e-12)
    assert pe.delta(run, 50.0, adjacency="add") == pytest.approx(certain, rel=1e-9)


def test_rare_large_losses() -> None:
    """Masses at infinite and at huge losses: the grid has nodes for what is not rare only."""
    tiny = F(1, 10**250)
    huge = pe.from_probabilities([tiny, F(1, 2), F(1, 2) - tiny], ["1e-6", "0.501", "0.498999"])
    for menu, steps in (
        ([pe.GenericMechanism(0.1, 1e-9), pe.RandomizedResponse("0.52")], 2),
        ([huge, pe.RandomizedResponse("0.6")], 2),
        ([huge, pe.GenericMechanism(0.02, 1e-3)], 3),
    ):
        run = pe.adaptive(menu, steps)
        for adjacency in ("add", "remove"):
            asked = ((pe.delta, 0.25), (pe.delta, 3.0), (pe.gamma_bound, 0.01))
            for ask, x in asked if ALL else asked[:1]:
                exact = ask(run, x, adjacency=adjacency, bounds=True)
                grid = ask(ByRecursion(run), x, adjacency=adjacency, bounds=True, tolerance=1e-2)
                assert exact.upper - exact.lower <= 1e-6 * exact.value
                assert grid.lower <= exact.upper, (menu, adjacency, ask, x)
                assert exact.lower <= grid.upper, (menu, adjacency, ask, x)


def test_losses_beyond_doubles() -> None:
    """Products of ratios that are no doubles, against policy trees in exact arithmetic."""
    rng, refused = random.Random(9), 0
    for _ in range(200 if ALL else 20):
        pairs: list[Pairs] = []
        for _ in range(rng.randint(1, 2)):
            tiny = [F(1, 10 ** rng.randint(1, 290)) for _ in range(2)]
            a = F(rng.randint(1, 99), 100)
            b = F(rng.randint(1, 99), 100)
            pairs.append([(tiny[0], b * tiny[1]), (a * (1 - tiny[0]), b * (1 - tiny[1]))])
            pairs[-1].append(tuple(1 - sum(p[i] for p in pairs[-1]) for i in range(2)))  # type: ignore[arg-type]
        steps, threshold = rng.randint(1, 3), F(rng.randint(1000, 5000), 1000)
        menu = [pe.from_probabilities(*zip(*pair, strict=True)) for pair in pairs]
        run = pe.adaptive(menu, steps)
        truths = []
        for side in (pairs, [outcomes.reversed_(pair) for pair in pairs]):
            truths.append(tree(side, steps, threshold, [steps] * len(menu), [1] * len(menu), steps))
        truth = float(max(truths))
        if truth < 1e-9:  # corners may be too near to one another for six digits
            continue
        try:
            found = pe.delta(run, math.log(threshold), bounds=True)
        except pe.AccuracyError:
            refused += 1
            continue
        assert found.lower <= truth * (1 + 1e-13), (run, threshold)
        assert truth * (1 - 1e-13) <= found.upper, (run, threshold)
        assert found.upper - found.lower <= 1e-6 * found.value
    assert refused <= (1 if ALL else 0)  # corners of a choice of masses of 1e-53 and 1e-96


def exact_hull(x: Sequence[float], values: Sequence[float]) -> list[Fraction]:
    """C at the nodes of the largest convex function below the points, by a scan of all chords."""
    k = [F(math.exp(each)) for each in x]
    points = [(a, F(v) + max(1 - a, F(0))) for a, v in zip(k, values, strict=True)]
    found, at = [points[0]], 0
    while at < len(points) - 1:
        left = points[at]
        slopes = [(b - left[1]) / (a - left[0]) for a, b in points[at + 1 :]]
        at += 1 + slopes.index(min(slopes))
        found.append(points[at])
    return [
        next(
            b0 + (b1 - b0) * (a - a0) / (a1 - a0)
            for (a0, b0), (a1, b1) in pairwise(found)
            if a0 <= a <= a1
        )
        for a in k
    ]


def test_corners_of_call_functions() -> None:
    """The convex hull of noisy call functions, against one in exact arithmetic."""
    rng = np.random.default_rng(5)
    for trial in range(300 if ALL else 30):
        left, right = rng.integers(1, 30, size=2)
        spacing = 2.0 ** -rng.integers(1, 12)
        x = np.arange(-left, right + 1) * spacing
        plain = 0.2 * np.exp(-np.abs(x) / (spacing * rng.uniform(1.0, 20.0)))
        values = plain * (1.0 + rng.choice([1e-14, 1e-3, 0.5]) * rng.uniform(-1.0, 1.0, x.size))
        whole, weights = kernels._corners(x, values, int(left), bool(trial % 2))
        call = whole + np.maximum(-np.expm1(np.minimum(x, 0.0)), 0.0)
        exact = [float(each) for each in exact_hull(x.tolist(), values.tolist())]
        assert call == pytest.approx(exact, rel=1e-12)
        assert (weights >= 0.0).all()


def profile_of(noise: float, rate: float, x: float) -> float:
    """H_k with the record over without it, k = e^x, of a sampled Gaussian."""
    with mpmath.workdps(40):
        mu, p = 1 / mpmath.mpf(noise), mpmath.mpf(rate)
        return float(outcomes.sampled_gaussian_delta(mu, p, mpmath.exp(x)))


@pytest.mark.parametrize("spacing", [2.0**-4, 2.0**-6, 2.0**-9])
@pytest.mark.parametrize("is_upper", [True, False])
def test_laws_on_the_grid_lie_on_their_side(spacing: float, is_upper: bool) -> None:
    """Between nodes, too: a lower call function that is cut off at 0 in a cell lay above."""
    p, q = F(4, 5), F(2, 25)
    step, pairs = response(p, q, "remove")

    def of_response(x: float) -> float:
        return float(sum(max(float(a) - math.exp(x) * float(b), 0.0) for a, b in pairs))

    cases: list[tuple[pe.Mechanism, Any]] = [
        (step, of_response),
        (MENU[0], lambda x: profile_of(1.0, 0.02, x)),
        (MENU[1], lambda x: profile_of(2.0, 0.06, x)),
    ]
    rng = np.random.default_rng(1)
    for mechanism, true in cases:
        found = kernel(StepProfile(mechanism, "remove"), spacing, 0.07, 0.7, is_upper)
        nodes = np.arange(found.first, found.last + 1) * spacing
        k = np.exp(nodes)
        x = rng.uniform(nodes[0], nodes[-1], 150)
        call = np.interp(np.exp(x), k, found.values + np.maximum(1.0 - k, 0.0))
        truth = np.array([true(at) for at in x])
        excess = (call - truth) / np.maximum(truth, 1e-30)
        assert (excess >= -1e-12).all() if is_upper else (excess <= 1e-12).all(), mechanism
        # and what the weights have is what the values say
        summed = np.maximum(k - np.exp(x)[:, None], 0.0) @ found.weights + found.far
        assert (np.abs(summed - call) <= 1e-12 * (1.0 + call)).all()


QUESTIONS = [
    (pe.delta, 0.5),
    (pe.delta, 0.0),
    (pe.epsilon, 1e-6),
    (pe.gamma_bound, 1e-3),
    (pe.trade_off, 0.3),
    (pe.trade_off, 0.9),
]


@sampled(2)
@pytest.mark.parametrize(
    ("step", "steps", "adjacency", "tolerance"),
    [
        (pe.GaussianMechanism(4.0), 16, "add_remove", 1e-6),
        (MENU[1], 40, "add", 1e-4),
        (MENU[1], 40, "remove", 1e-4),
        (MENU[1], 40, "add_remove", 1e-4),
        (pe.LaplaceMechanism(5.0).poisson_sampled(0.5), 10, "remove", 1e-3),
    ],
)
def test_a_menu_of_one_is_the_composition(
    step: Any, steps: int, adjacency: str, tolerance: float
) -> None:
    run, composed = ByRecursion(pe.adaptive([step], steps)), step.composed(steps)
    for ask, x in QUESTIONS:
        truth = ask(composed, x, adjacency=adjacency, bounds=True)
        found = ask(run, x, adjacency=adjacency, bounds=True, tolerance=tolerance)
        assert found.lower <= truth.upper, (ask, x)
        assert truth.lower <= found.upper, (ask, x)
        assert found.lower <= found.value <= found.upper
        if ask is not pe.epsilon:
            assert found.upper - found.lower <= tolerance * found.value


def test_values_of_a_menu_of_one() -> None:
    """Errors of the value are far below the width of its bounds."""
    truth = pe.delta(pe.GaussianMechanism(4.0).composed(16), 1.0)
    run = ByRecursion(pe.adaptive([pe.GaussianMechanism(4.0)], 16))
    found = pe.delta(run, 1.0, tolerance=1e-8)
    check("adaptive.menu_of_one", abs(found / truth - 1.0))


def test_plain_gaussians_under_a_budget() -> None:
    """Of Σ 1/σ² <= B all strategies that use it up are one Gaussian: to adapt costs nothing."""
    menu = [pe.GaussianMechanism(s) for s in (2, 4)]
    run = pe.adaptive(menu, 16, costs=["1/4", "1/16"], budget=1)
    for epsilon in some([4.0, 0.0], 2):
        truth = pe.delta(pe.GaussianMechanism(1.0), epsilon)
        found = pe.delta(ByRecursion(run), epsilon, adjacency="add", bounds=True, tolerance=1e-7)
        assert found.lower <= truth <= found.upper
        check("adaptive.gaussian_budget", abs(found.value / truth - 1.0), whole=ALL)
        exact = pe.delta(run, epsilon, adjacency="add", bounds=True)
        assert exact.lower <= truth <= exact.upper
        assert exact.upper - exact.lower <= 1e-12 * truth


def test_plain_gaussians_have_closed_forms() -> None:
    """Of random menus, limits and compositions: that of the largest Σ 1/σ², by brute force."""
    rng = random.Random(5)
    for _ in range(60):
        size, steps = rng.randint(2, 3), rng.randint(1, 5)
        kinds = [(rng.randint(2, 30), rng.randint(1, 3)) for _ in range(size)]
        menu = [pe.GaussianMechanism(noise).composed(k) for noise, k in kinds]
        squares = [F(k, noise**2) for noise, k in kinds]
        costs = [rng.randint(0, 3) for _ in range(size)]
        budget, most = rng.randint(0, 6), rng.randint(0, steps)
        run = pe.adaptive(menu, steps, costs=costs, budget=budget, most={0: most})
        best = max(
            sum((squares[i] for i in way), F(0))
            for length in range(steps + 1)
            for way in itertools.product(range(size), repeat=length)
            if sum(costs[i] for i in way) <= budget and way.count(0) <= most
        )
        found = pe.delta(run, 0.5, adjacency="substitute", bounds=True)
        if not best:
            assert found.value == 0.0
            continue
        with mpmath.workdps(30):
            mu = 2 * mpmath.sqrt(mpmath.mpf(best.numerator) / best.denominator)
            truth = outcomes.gaussian_delta(mu, 0.5)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1e-10 * found.value


def test_the_known_menu() -> None:
    """To adapt costs a quarter of δ beyond the worst fixed order; a second program agrees."""
    run = pe.adaptive(MENU, 40)
    fixed = [MENU[0].composed(k) + MENU[1].composed(40 - k) for k in range(41)]
    key = f"adaptive: {NOISE_AND_RATE}, 40 steps, remove, epsilon 0.5 and 1, spacing 0.0035"
    truths = stored(key, lambda: [f"{x:.9e}" for x in second_program(40, [0.5, 1.0], 0.0035)])
    orders, adapted = (1.08336e-3, 1.72099e-5), (1.3593e-3, 2.0436e-5)
    for epsilon, truth, order, rough in zip((0.5, 1.0), truths, orders, adapted, strict=True):
        worst = max(pe.delta(m, epsilon, adjacency="remove") for m in fixed)
        assert f"{worst:.5e}" == f"{order:.5e}"
        found = pe.delta(run, epsilon, adjacency="remove", bounds=True)
        assert found.lower <= float(truth) <= found.upper
        assert found.upper - found.lower <= 1e-6 * found.value
        check("adaptive.second_program", abs(found.value / float(truth) - 1.0))
        assert abs(found.value - rough) < 1e-4 * rough


def second_program(steps: int, epsilons: Sequence[float], spacing: float) -> list[float]:
    """W by quintic splines of log E_B W(rR) in log r, Gauss panels split where choices change."""
    from numpy.polynomial.legendre import leggauss
    from scipy.interpolate import make_interp_spline
    from scipy.special import ndtr

    low, high, span, panels, points = -2.6, 2.6, 9.0, 36, 14
    x = np.arange(low, high + spacing / 2, spacing)
    u, w = leggauss(points)
    edges = np.linspace(-span, span, panels + 1)
    half = (edges[1] - edges[0]) / 2

    def loss(z: Any, s: float, p: float) -> Any:
        return np.log1p(p * np.expm1(z / s - 0.5 / s**2))

    def place(at: Any, s: float, p: float) -> Any:
        return s * (np.log(np.maximum(np.expm1(at) + p, 1e-300) / p) + 0.5 / s**2)

    def density(z: Any) -> Any:
        return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    logs = []
    for s, p in NOISE_AND_RATE:
        z = np.where(-x <= math.log1p(-p), -40.0, place(-x, s, p))
        logs.append(np.log(np.exp(x) * ((1 - p) * ndtr(-z) + p * ndtr(1 / s - z)) - ndtr(-z)))
    for _ in range(steps - 1):
        splines = [make_interp_spline(x, values, k=5) for values in logs]

        def value(at: Any, splines: Any = splines) -> Any:
            inner = np.clip(at, low, high)
            inside = np.exp(np.max([f(inner) for f in splines], axis=0))
            return np.where(at > high, np.expm1(at), np.where(at < low, 0.0, inside))

        best = np.argmax([f(x) for f in splines], axis=0)
        switches = []
        for i in np.flatnonzero(np.diff(best)):
            left, right = x[i], x[i + 1]
            for _ in range(60):
                middle = (left + right) / 2
                first = splines[best[i]](middle) > splines[best[i + 1]](middle)
                left, right = (middle, right) if first else (left, middle)
            switches.append(left)
        z = (edges[:-1, None] + half + half * u).ravel()
        weights = np.tile(half * w, panels) * density(z)
        logs = []
        for s, p in NOISE_AND_RATE:
            parts = value(x[:, None] + loss(z, s, p)) * weights
            parts = parts.reshape(x.size, panels, points).sum(axis=2)
            inside: dict[tuple[int, int], list[float]] = {}
            for switch in switches:
                for i, at in enumerate(place(switch - x, s, p)):
                    if abs(at) < span and switch - x[i] > math.log1p(-p):
                        inside.setdefault((i, int((at + span) / (2 * half))), []).append(at)
            cut = [
                (i, panel, left, right)
                for (i, panel), places in inside.items()
                for left, right in pairwise([edges[panel], *sorted(places), edges[panel + 1]])
            ]
            if cut:
                rows, columns, left, right = (np.array(column) for column in zip(*cut, strict=True))
                at = (left + right)[:, None] / 2 + (right - left)[:, None] / 2 * u
                inner = value(x[rows][:, None] + loss(at, s, p)) * density(at) * w
                parts[rows, columns] = 0.0
                np.add.at(parts, (rows, columns), inner.sum(axis=1) * (right - left) / 2)
            logs.append(np.log(parts.sum(axis=1)))
    splines = [make_interp_spline(x, values, k=5) for values in logs]
    return [math.exp(e) * math.exp(max(float(f(-e)) for f in splines)) for e in epsilons]


def test_larger_menus_and_limits_lose_more() -> None:
    def upper(*args: Any, **words: Any) -> float:
        run = pe.adaptive(*args, **words)
        return float(pe.delta(run, 0.3, adjacency="remove", bounds=True, tolerance=1e-5).upper)

    both = upper(MENU, 10)
    assert max(upper([m], 10) for m in MENU) < both < upper(MENU, 11)
    limited = [upper(MENU, 10, costs=[3, 4], budget=b) for b in (20, 30, 40)]
    assert limited == sorted(limited)
    assert limited[-1] == both
    assert upper(MENU, 10, most={1: 3}) < upper(MENU, 10, most={1: 4}) < both


def test_choices_that_are_never_best_are_left_out() -> None:
    """Seven choices, few of them the best ones somewhere: as if all were computed.

    Costs of their own lead to states of their own, where a mean of others says nothing.
    """
    noises, rates = np.geomspace(0.8, 2.5, 7), np.geomspace(0.006, 0.04, 7)
    menu = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in zip(noises, rates, strict=True)]
    plan = pe.adaptive(menu, 12, costs=[4, 5, 6, 7, 8, 9, 10], budget=70).plan
    choosing = Choosing([StepProfile(step, "remove") for step in menu], plan)
    moves = choosing.plan.moves
    assert len(choosing.menu) == 7
    first = len(moves) - 1
    detail = Detail(choosing.coarse / 2.0, 0.5, 1e-12, 1e-9)
    recursion = choosing._recursion(detail, is_upper=True)
    told: list[tuple[int, ...]] = []
    quick = recursion.run(choosing.plan, [first], tell=told.append)[first]
    assert sum(map(len, told)) < 0.6 * sum(map(len, moves))
    recursion._outline = None
    whole = recursion.run(choosing.plan, [first])[first]
    inside = quick.values[: 1 - quick.first]
    assert (whole.values[: inside.size] >= inside * (1.0 - 1e-9) - 1e-15).all()
    assert (whole.values[: inside.size] <= quick.bounds[: inside.size]).all()
    assert quick.bounds[: inside.size].max() <= whole.values[: inside.size].max() * (1.0 + 1e-5)


def test_both_orders_are_one_curve() -> None:
    """γ with H0 without the record, and β with H0 with it, are two names of one number."""
    run = pe.adaptive(MENU, 10)
    gamma = pe.gamma_bound(run, 0.05, adjacency="add", bounds=True)
    beta = 1.0 - gamma.value
    back = pe.trade_off(run, beta, adjacency="remove", bounds=True)
    assert abs(back.value - 0.05) < 1e-6
    wider = pe.gamma_bound(run, 0.05, adjacency="add_remove", bounds=True)
    other = pe.gamma_bound(run, 0.05, adjacency="remove", bounds=True)
    assert wider.upper >= max(gamma.lower, other.lower)


def test_epsilon_and_delta_are_inverse() -> None:
    run = pe.adaptive(MENU, 10 if ALL else 5)
    epsilons = pe.epsilon(run, [1e-3, 1e-5, 1e-8], adjacency="remove", bounds=True)
    assert (np.diff(epsilons.value) > 0.0).all()
    deltas = pe.delta(run, epsilons.value, adjacency="remove")
    assert np.abs(deltas / [1e-3, 1e-5, 1e-8] - 1.0).max() < 1e-6


def test_small_levels_of_bounded_losses() -> None:
    """Tables that keep digits only where the loss is largest know nothing of the rest."""
    step, pairs = response(F(37, 50), F(8, 25), "add")
    run = pe.adaptive([step], 1)
    level = F(1.3e-4)
    truth = level * max(b / a for a, b in pairs)
    found = pe.gamma_bound(run, float(level), bounds=True, tolerance=1e-3)
    assert found.lower <= float(truth) * (1 + 1e-14)
    assert float(truth) * (1 - 1e-14) <= found.upper


def test_infinite_losses() -> None:
    """What shows the record for certain adds up, whatever else is chosen."""
    pair = pe.from_probabilities(["0.5", "0.5", "0"], ["0.49", "0.5", "0.01"])
    run = pe.adaptive([pair, pe.GaussianMechanism(5.0)], 4)
    certain = 1.0 - 0.99**4
    assert pe.gamma_bound(run, 0.0) == pytest.approx(certain, rel=1e-12)
    assert pe.trade_off(run, 0.0, adjacency="add") == pytest.approx(0.99**4, rel=1e-12)
    assert pe.delta(run, math.inf, adjacency="remove") == pytest.approx(certain, rel=1e-12)
    assert pe.delta(run, math.inf, adjacency="add") == 0.0
    found = pe.delta(run, 1.0, adjacency="remove", bounds=True, tolerance=1e-3)
    assert found.lower <= certain <= found.upper
    assert pe.epsilon(run, 0.0) == math.inf


def test_bounded_losses() -> None:
    """Beyond the largest loss of all choices δ is 0, and ε at δ = 0 is that loss."""
    step = pe.RandomizedResponse("0.75")
    run = pe.adaptive([step, pe.RandomizedResponse("0.6")], 5, most={0: 2})
    largest = 2 * math.log(3) + 3 * math.log(1.5)
    assert pe.epsilon(run, 0.0, bounds=True).lower <= largest <= pe.epsilon(run, 0.0) * (1 + 1e-12)
    assert pe.delta(run, largest + 1e-9) == 0.0
    nothing = pe.adaptive([step], 0)
    assert pe.delta(nothing, 0.0) == 0.0
    assert pe.trade_off(nothing, 0.25) == 0.75


def test_monte_carlo_of_the_strategy_attains_the_bound() -> None:
    run, rng, count = pe.adaptive(MENU, 40), np.random.default_rng(0), 200_000
    strategy = run.strategy(0.5)
    noise, rate = np.array(NOISE_AND_RATE).T
    ratio = np.zeros(count)
    grid = strategy.log_ratios
    for step in range(40):
        row = strategy.row([0] * step)
        at = np.clip(np.rint((ratio - grid[0]) / (grid[1] - grid[0])), 0, grid.size - 1)
        choice = np.maximum(row[at.astype(int)], 0)
        s, p = noise[choice], rate[choice]
        z = rng.standard_normal(count) * s + (rng.random(count) < p)
        ratio += np.log1p(p * np.expm1((2.0 * z - 1.0) / (2.0 * s * s)))
    gains = np.maximum(-np.expm1(0.5 - ratio), 0.0)
    error = gains.std() / math.sqrt(count)
    truth = pe.delta(run, 0.5, adjacency="remove", tolerance=1e-4)
    assert abs(gains.mean() - truth) < 4.0 * error < 0.15 * truth
    assert {strategy.choice([0] * 10, 0.0), strategy.choice([0] * 10, 0.3)} == {0, 1}
    with pytest.raises(ValueError, match="made must be choices that the run allows"):
        strategy.row([0] * 41)


def test_filter_has_the_largest_budget() -> None:
    target = pe.targets.EpsilonDelta(1.0, 1e-6)
    found = pe.Filter(MENU, target, costs=[2, 3])
    assert pe.delta(found.run_of(found.budget), 1.0, bounds=True).upper <= 1e-6
    assert pe.delta(found.run_of(found.budget + 1), 1.0, bounds=True).lower > 1e-6
    assert found.left == found.budget == pe.Filter(MENU, target, costs=["0.2", "0.3"]).budget * 10
    spent = 0
    while found.allows(1):
        assert found.spend(1)
        spent += 3
    assert found.spent == spent == 3 * len(found.choices)
    assert found.budget - spent < 3
    assert not found.spend(1)
    assert found.spent == spent
    assert pe.Filter(MENU, pe.targets.Gamma(1e-2, 2e-2)).budget > 10


def test_threads_share_a_filter() -> None:
    shared = pe.Filter(MENU, pe.targets.EpsilonDelta(1.0, 1e-5))
    admitted = []

    def spend() -> None:
        for _ in range(100):
            if shared.spend(0):
                admitted.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == shared.budget == shared.spent


def test_filters_and_odometers_go_to_other_processes() -> None:
    odometer = pe.Odometer(MENU)
    assert all(odometer.spend(choice) for choice in (0, 1, 1))
    again = pickle.loads(pickle.dumps(odometer))
    assert again.choices == (0, 1, 1)
    assert again.run == odometer.run == pe.adaptive(MENU, 3, costs=[1, 1], budget=3)
    assert again.spend(0)
    assert odometer.spent == 3


def test_policy_trees_of_groups_and_orders() -> None:
    """Limits on several choices at once, floors, and menus that are only gone through forward."""
    rng = random.Random(6)
    for _ in range(400 if ALL else 40):
        order, steps = rng.choice(["add", "remove"]), rng.randint(2, 4)
        choices = [
            response(F(rng.randint(51, 95), 100), F(rng.randint(1, 99), 100), order)
            for _ in range(3)
        ]
        most, floor = rng.randint(0, steps), rng.randint(0, steps)
        way = rng.choice(["free", "menu"])
        run = pe.adaptive(
            [step for step, _ in choices],
            steps,
            most={(0, 2): most},
            least={(1, 2): floor},
            order=way,
        )
        epsilon = rng.randint(0, 600) / 1000
        threshold = F(math.exp(epsilon))

        def best(made: tuple[int, ...], a: Fraction, b: Fraction, words: Any = None) -> Fraction:
            pairs, most, floor, way, steps, threshold = words
            found = max(a - threshold * b, F(0))
            for i in range(3) if len(made) < steps else ():
                after = (*made, i)
                if sum(j in (0, 2) for j in after) > most or after.count(0) > steps - floor:
                    continue
                if way == "menu" and made and i < made[-1]:
                    continue
                tails = (best(after, a * x, b * y, words) for x, y in pairs[i])
                found = max(found, sum(tails, F(0)))
            return found

        words = ([p for _, p in choices], most, floor, way, steps, threshold)
        truth = float(best((), ONE, ONE, words))
        found = pe.delta(run, epsilon, adjacency=order, bounds=True, tolerance=2e-2)
        assert found.lower <= truth * (1 + 1e-14), (run, order, epsilon)
        assert truth * (1 - 1e-14) <= found.upper, (run, order, epsilon)


def test_ranges_are_their_worst_end() -> None:
    """No step in the range is above it at any ε, under either order."""
    rng = np.random.default_rng(3)
    for family, make in (("gaussian", pe.GaussianMechanism), ("laplace", pe.LaplaceMechanism)):
        between = pe.accounting.NoiseRange((0.7, 3), ("0.01", "0.3"), family)
        epsilon = np.array([0.0, 0.1, 0.5, 1.0])
        for _ in range(10):
            step = make(rng.uniform(0.7, 3.0)).poisson_sampled(rng.uniform(0.01, 0.3))
            for order in ("add", "remove"):
                inside = pe.delta(step, epsilon, adjacency=order, bounds=True).lower
                worst = pe.delta(between.worst, epsilon, adjacency=order, bounds=True).upper
                assert (inside <= worst).all()
    assert pe.accounting.NoiseRange((2, 3)).worst == pe.GaussianMechanism(2)
    run = pe.adaptive([pe.accounting.NoiseRange((2, 3)), MENU[0]], 3)
    assert "noise multiplier 2, 1 step, or more noise or a smaller rate" in run.label


def test_adaptive_runs_as_json() -> None:
    between = pe.accounting.NoiseRange((1, 4), ("0.01", "0.02"))
    for run in (
        pe.adaptive(MENU, 40),
        pe.adaptive([*MENU, between], 9, costs=["1/3", 1, 2], budget=7, order="menu"),
        pe.adaptive([*MENU, between], 9, most={(0, 1): 5, 2: 3}, least={1: 2}),
        pe.adaptive([MENU[0].composed(3) + MENU[1]], 2),
    ):
        text = pe.to_json(run)
        assert pe.from_json(text) == run
        assert pe.to_json(pe.from_json(text)) == text
    for wrong, message in (
        ({"menu": []}, "must be an object with menu and steps"),
        ({"menu": [{"noise": [1, 2]}], "steps": 3}, "menu must hold ranges of noise, rate, family"),
        ({"menu": [], "steps": 3, "limits": [{"most": 1}]}, "limits must hold choices and most"),
    ):
        with pytest.raises(ValueError, match=message):
            pe.from_json(json.dumps({"schema": "pyengine/1", "adaptive": wrong}))


def test_statement_of_an_adaptive_run() -> None:
    run = pe.adaptive([pe.GaussianMechanism(s) for s in (20, 40)], 3)
    stated = pe.statement.privacy_statement(run, 1e-5, kappas=[], false_positive_rates=[0.01])
    assert stated.mechanism == (run.label,)
    assert {figure.certainty for figure in stated.figures} == {"proven"}
    assert stated.figures[0].bound >= pe.epsilon(run, 1e-5) * (1.0 - 1e-12)
    sampled = pe.adaptive(MENU[:1], 2)
    words: dict[str, Any] = {"kappas": [], "false_positive_rates": []}
    stated = pe.statement.privacy_statement(sampled, 1e-3, **words)
    assert "A loader that shuffles is different: these figures do not hold for it." in str(stated)


def test_the_strategy_as_intervals() -> None:
    strategy = pe.adaptive(MENU, 12).strategy(0.5)
    found = strategy.intervals([0, 1])
    assert [choice for _, _, choice in found] == [0, 1, -1]
    for low, high, choice in found:
        assert strategy.choice([1, 0], low) == strategy.choice([1, 0], high) == choice


def test_labels() -> None:
    run = pe.adaptive(MENU, 40, costs=[1, 2], budget=50, most={0: 7})
    assert str(run) == (
        "up to 40 steps, each chosen from (DP-SGD, noise multiplier 1, 1 step at rate 0.02) or "
        "(DP-SGD, noise multiplier 2, 1 step at rate 0.06) after seeing what was released; choice "
        "1 at most 7 times; total cost at most 50 (1 of choice 1, 2 of choice 2); worst strategy"
    )
    assert hash(run) == hash(pe.adaptive(MENU, 40, costs=[1, 2], budget=50, most={0: 7}))


@pytest.mark.parametrize(
    ("menu", "steps", "words", "message"),
    [
        ([], 3, {}, "menu must hold 1 to 100 mechanisms, got 0"),
        ([1.0], 3, {}, "mechanism must be a Mechanism, got 1.0"),
        (MENU, -1, {}, "steps must be"),
        (MENU, 3, {"costs": [1]}, "costs must have one entry for each choice"),
        (MENU, 3, {"costs": [1, -1]}, "costs must be finite and >= 0"),
        (MENU, 3, {"budget": math.inf}, "budget must be finite"),
        (MENU, 3, {"most": {2: 1}}, "most must have indices of choices below 2, got 2"),
        (MENU, 3, {"most": {0: -1}}, "most must be"),
        (MENU, 3, {"most": {(): 1}}, "most must have indices of choices below 2"),
        (MENU, 3, {"least": {0: 4}}, "least must be at most steps, which is 3, got 4"),
        (MENU, 3, {"order": "back"}, "order must be one of"),
    ],
)
def test_wrong_runs(menu: Any, steps: int, words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.adaptive(menu, steps, **words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"noise": (2, 1)}, "noise must have a least and a largest value"),
        ({"noise": (0, 1)}, "noise must be positive"),
        ({"noise": (1, 2), "rate": 1.5}, r"rate must be in \[0, 1\]"),
        ({"noise": (1, 2), "family": "cauchy"}, "family must be"),
    ],
)
def test_wrong_ranges(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.accounting.NoiseRange(**words)


def test_budgets_of_filters_are_the_largest() -> None:
    """By one recursion for all budgets, and by a question for each."""
    rng = np.random.default_rng(7)
    for adjacency in ("add", "remove", "add_remove"):
        noises, rates = rng.uniform(0.8, 2.5, 2), rng.uniform(0.01, 0.08, 2)
        menu = [
            pe.GaussianMechanism(s).poisson_sampled(p) for s, p in zip(noises, rates, strict=True)
        ]
        costs = rng.choice([2, 3, 5], 2, replace=False).tolist()
        target = pe.targets.EpsilonDelta(0.6, 1e-4, adjacency=adjacency)
        made = pe.Filter(menu, target, costs=costs)
        largest = made._searched(F(1))
        assert largest * 0.998 - 1 <= made.budget <= largest, (adjacency, costs)
        run = made.run_of(made.budget)
        assert made.target.is_met(run)
        assert not made.target.is_met(made.run_of(largest + 1))


def test_random_menus_against_a_second_program() -> None:
    """On another grid; tools/campaigns.py asks thousands."""
    rng = np.random.default_rng(11)
    clear = 0
    for _ in range(100 if ALL else 3):
        case = drawn(rng)
        found, compute = bounds_of(case, 1e-4), partial(value_and_error, case)
        key = f"{case} by the second program"
        value, error = stored(key, compute)
        assert not is_outside(found, value, error), (case, found, value, error)
        if value > 0.0 and error <= 1e-5 * value:
            clear += 1
            assert abs(found.value / value - 1.0) <= 1e-4, (case, found, value)
    assert clear >= 1


def test_an_example_adapts_to_its_loss() -> None:
    example = importlib.import_module("examples.adaptive_noise")
    budget = example.made_filter(pe.targets.EpsilonDelta(1.0, 1e-4))
    accountant, right = example.train(budget)
    assert [noise for noise, _, _ in accountant.history] == [2.0, 1.5, 1.0]
    assert len(accountant) == len(budget.choices)
    assert 0.0 <= budget.left < max(budget.costs)
    assert accountant.get_epsilon(1e-4) <= 1.0
    assert right > 0.7


def test_one_step_is_the_worst_choice() -> None:
    """Whatever the kinds, to all digits of their own bounds; costs leave out what is too dear."""
    coin = pe.RandomizedResponse("0.639").poisson_sampled("0.2534")
    menu = [coin, pe.LaplaceMechanism(3.0).poisson_sampled(0.1), MENU[0]]
    for epsilon in (0.0, 0.05, 0.178, 0.4):
        for order in ("add", "remove", "add_remove"):
            run = pe.adaptive(menu, 1, costs=[1, 1, 3], budget=2)
            truth = max(pe.delta(step, epsilon, adjacency=order) for step in menu[:2])
            found = pe.delta(run, epsilon, adjacency=order, bounds=True)
            assert found.value == pytest.approx(truth, rel=1e-11, abs=1e-300)
            assert found.upper - found.lower <= 1e-9 * found.upper


def test_what_is_out_of_reach_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tolerance bounds come as near as products allow; with one nothing is tried."""
    monkeypatch.setattr(questions, "MOST_POINTS", 4e6)
    monkeypatch.setattr(questions, "SMOOTH_FROM", math.inf)
    asked = []
    table = Choosing.table

    def counted(self: Choosing, detail: Detail) -> Any:
        asked.append(detail)
        return table(self, detail)

    monkeypatch.setattr(Choosing, "table", counted)
    run = pe.adaptive(MENU, 41)
    found = pe.delta(run, 0.5, adjacency="remove", bounds=True)
    assert 1e-6 < (found.upper - found.lower) / found.value <= 1e-3
    asked.clear()
    with pytest.raises(pe.AccuracyError, match=r"tolerance=(\S+) or more gives") as refusal:
        pe.delta(run, 0.5, adjacency="remove", tolerance=1e-7)
    assert len(asked) == 1
    said = float(str(refusal.value).split("tolerance=")[1].split()[0])
    near = pe.delta(run, 0.5, adjacency="remove", tolerance=said, bounds=True)
    assert near.upper - near.lower <= said * near.value
    assert near.lower <= found.value <= near.upper


def test_refusals() -> None:
    run = pe.adaptive(MENU, 5)
    with pytest.raises(pe.NotDefinedError, match="adjacency must be 'add', 'remove' or"):
        pe.delta(run, 1.0, adjacency="substitute")
    with pytest.raises(pe.NotDefinedError, match="method must be 'auto' or 'certified'"):
        pe.delta(run, 1.0, method="lattice")
    with pytest.raises(pe.AccuracyError, match=r"tolerance=\S+ or more gives this answer"):
        pe.delta(run, 0.1, adjacency="remove", tolerance=1e-14)
    with pytest.raises(pe.AccuracyError, match="up to epsilon = 600"):
        pe.delta(run, 601.0, adjacency="remove")
    with pytest.raises(ValueError, match="costs must be positive"):
        pe.Odometer(MENU, costs=[0, 1])
    with pytest.raises(ValueError, match="choice must be an index below 2, got 2"):
        pe.Odometer(MENU).spend(2)
    with pytest.raises(ValueError, match="target must be a single target"):
        pe.Filter(MENU, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must not be GaussianDP.*duality\.GaussianFilter"):
        pe.Filter(MENU, pe.targets.GaussianDP(1.0))
    with pytest.raises(ValueError, match="target must be kept by a step of the menu"):
        pe.Filter(MENU, pe.targets.EpsilonDelta(0.0, 1e-9))
    many = pe.adaptive(MENU * 3, 60, costs=[F(1, p) for p in (2, 3, 5, 7, 11, 13)], budget=7)
    with pytest.raises(ValueError, match="must leave at most 20,000 states"):
        pe.delta(many, 1.0)


@pytest.mark.parametrize(
    ("choice", "steps", "epsilon", "order"),
    [
        (Choice("sampled gaussian", 0.9, 0.0548), 3, 0.015, "add"),
        (Choice("laplace", 3.437, 0.1247), 4, 0.061, "remove"),
    ],
)
def test_the_second_program_knows_its_error(
    choice: Choice, steps: int, epsilon: float, order: str
) -> None:
    """On menus of one choice, where the truth is that of the composition."""
    case = Case((choice,), steps, "no limits", (steps,), (1,), 1, epsilon, order)
    truth = pe.delta(choice.mechanism.composed(steps), epsilon, adjacency=order, bounds=True)
    found, value, error = judged(case, 1e-4)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert not is_outside(truth, value, error)


def test_infinite_epsilon() -> None:
    """Where a choice tells both data sets apart, for certain or with more probability than δ."""
    apart = pe.from_probabilities([1, 0], [0, 1])
    some = pe.from_probabilities(["1/2", "1/2", "0"], ["1/4", "1/2", "1/4"])
    response = pe.RandomizedResponse("3/4")
    for menu in ([apart], [response, apart], [pe.GaussianMechanism(2.0), apart]):
        run: Any = pe.adaptive(menu, 3)
        for order in ("add", "remove", "add_remove"):
            how: Any = {"adjacency": order, "bounds": True}
            assert tuple(pe.epsilon(run, 0.5, **how)) == (math.inf,) * 3
            assert tuple(pe.delta(run, math.inf, **how)) == (1.0,) * 3
            assert pe.trade_off(run, 0.1, **how).upper <= 1e-300
    run = pe.adaptive([some, response], 3)
    alone = 1.0 - 0.75**3  # of three releases that tell apart
    for delta, epsilon in ((0.99 * alone, math.inf), (1.01 * alone, None)):
        found = pe.epsilon(run, delta, adjacency="remove", bounds=True)
        assert found.lower == epsilon if epsilon else found.upper < 10.0


@pytest.mark.parametrize("steps", [2, 6])
def test_small_values_of_finitely_many_outcomes(steps: int) -> None:
    """(ε, δ)-private steps beyond the sum of their ε, and a rare outcome: values far below 1."""
    small = F(1, 10**9)
    menu = [pe.GenericMechanism(1, "1e-10"), pe.GenericMechanism("1/2", small)]
    run: Any = pe.adaptive(menu, steps)
    found = pe.delta(run, 1.0 * steps + 0.1, adjacency="remove", bounds=True)
    truth = 1 - (1 - small) ** steps
    assert F(found.lower) <= truth <= F(found.upper)
    assert found.upper - found.lower <= 1e-9 * found.upper
    rare = pe.from_probabilities([F("6e-38"), 1 - F("6e-38")], [3 * small, 1 - 3 * small])
    run = pe.adaptive([rare, pe.from_probabilities(["1/2", "1/2"], ["1/2", "1/2"])], steps)
    for epsilon in (0.1, 3.0):
        found = pe.delta(run, epsilon, adjacency="remove", bounds=True)
        truth_of = pe.delta(rare.composed(steps), epsilon, adjacency="remove", bounds=True)
        assert found.lower <= truth_of.upper
        assert truth_of.lower <= found.upper
        assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.filterwarnings("error")
def test_corners_beyond_doubles_are_moved_without_a_warning() -> None:
    step = corners.OutcomePair(np.array([1e250, 0.5]), np.array([0.5, 0.5]), 0.0, 0.0)
    once = corners.CornerFunction(np.ones(1), np.ones(1), 0.0, 0.0).after(step)
    assert once.k[0] == pytest.approx(1e-250)
    twice = once.after(step)
    assert twice.k == pytest.approx([2e-250, 4.0])
    assert (twice.at_zero, twice.mass.tolist()) == (0.25, [0.5, 0.25])
    assert 0.25e-280 <= twice.moved <= 0.26e-280


def test_a_choice_that_hardly_reveals_anything_is_refused_at_once() -> None:
    """Its grid would take 267 GiB."""
    rare = pe.from_probabilities([F("6e-38"), 1 - F("6e-38")], [F("3e-9"), 1 - F("3e-9")])
    run: Any = pe.adaptive([rare, pe.GaussianMechanism(1.0).poisson_sampled(0.01)], 3)
    with pytest.raises(AccuracyError, match="hardly reveals"):
        pe.delta(run, 0.5, adjacency="remove")
