"""Equal Laplace steps, against truth that shares no code with their lines."""

from __future__ import annotations

import json
from bisect import bisect_left
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine._support.caches import clear_cache
from pyengine.engines.answers import Answer, names
from pyengine.engines.exact.laplace import LaplaceSum
from pyengine.engines.vertical_lines import questions
from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.gauss import EXTENDED, NODES, gauss_nodes
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.range import deformed_order
from pyengine.engines.vertical_lines.search import root_of
from pyengine.laws.composition import composition_law

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "laplace_steps.json").read_text(encoding="utf-8")
)
FUNCTIONS = {"delta": "delta", "gamma": "gamma_bound", "beta": "trade_off"}
CLOSE = ("certified", "exact")  # lines, and sums of few plain steps
# what the truths themselves are off by, and the rounding of their arguments
TRUTH = {"line": 1e-12, "reference": 4e-16, "substitute": 4e-16}


def mechanism_of(row: dict[str, Any]) -> pe.Mechanism:
    step: Any = pe.LaplaceMechanism(float(row["noise"]))
    if row["p"] != "1":
        step = step.poisson_sampled(float(row["p"]))
    return step.composed(row["steps"])


def asked(row: dict[str, Any]) -> tuple[pe.Bounds, str]:
    """Bounds of a row's question, and the engine that gives them; all are proven."""
    found, engines, proven = pe.api.answers(
        FUNCTIONS[row["name"]], mechanism_of(row), [row["argument"]], adjacency=row["adjacency"]
    )
    assert proven == [True]
    bounds = pe.Bounds(*(float(x[0]) for x in (found.lower, found.value, found.upper)))
    return bounds, engines[0]


@pytest.mark.parametrize("method", list(TRUTH))
def test_truth_lies_within_the_bounds(method: str) -> None:
    rows = [row for row in ROWS if row["method"] == method and float(row["truth"]) > 1e-300]
    assert len(rows) >= {"line": 200, "reference": 750, "substitute": 150}[method]
    widths, errors, others = [], [], 0
    for row in rows:
        truth = float(row["truth"])
        bounds, engine = asked(row)
        slack = TRUTH[method] * truth
        assert bounds.lower - slack <= truth <= bounds.upper + slack, (row, bounds)
        if engine in CLOSE:
            widths.append((bounds.upper - bounds.lower) / bounds.upper)
            errors.append(abs(bounds.value / truth - 1.0))
        others += engine not in CLOSE
    assert others <= 0.1 * len(widths)
    assert np.mean(np.array(widths) <= 1e-8) >= 0.9
    check(f"laplace_steps.median_width_{method}", float(np.median(widths)))
    check(f"laplace_steps.largest_width_{method}", max(widths))
    check(f"laplace_steps.median_error_{method}", float(np.median(errors)))


@pytest.mark.parametrize("size", [16, 24, 37, 40, 64, 90])
def test_gauss_nodes(size: int) -> None:
    nodes = gauss_nodes(size)

    def exact(x: Any) -> Any:
        """A number in extended precision, as two doubles."""
        return mpmath.mpf(x[0]) + mpmath.mpf(x[1])

    with mpmath.workdps(50):
        for q in range(0, size, max(1, size // 12)):
            place, weight = exact(nodes.place[:, q]), exact(nodes.weight[:, q])
            t = mpmath.findroot(lambda t: mpmath.legendre(size, t), 2 * place - 1)
            slope = size * mpmath.legendre(size - 1, t) / (1 - t * t)
            assert abs(place - (t + 1) / 2) <= NODES * EXTENDED
            assert abs(weight * (1 - t * t) * slope**2 - 1) <= nodes.error


def test_plain_steps_agree_with_exact_sums() -> None:
    mu, steps = Fraction(2, 3), 40
    kinds = ((LaplaceShape(mu, Fraction(1)), steps),)
    exact, found = LaplaceSum(mu, steps), DeformedOrder(kinds, False)
    c = np.linspace(-26.5, 26.5, 31)
    first, second = exact.tails(c), found.tails(c)
    for a, b in zip(first[:4], second[:4], strict=True):
        assert (np.abs(a - b) <= (first.error + second.error) * a).all()
    epsilon = np.linspace(0.0, 26.6, 31)
    value, error, _ = exact.profile(epsilon)
    for exchanged in (False, True):
        other, off = DeformedOrder(kinds, exchanged).profile(epsilon)
        assert (np.abs(value - other) <= error + off).all()


@pytest.mark.parametrize("steps", [9, 10, 11, 63, 64, 65])
@pytest.mark.parametrize("p", [0.004, 0.6])
def test_numbers_of_steps_next_to_each_other(steps: int, p: float) -> None:
    """Bounds lie within the lattice's; γ and δ grow with the steps, and the hull is the largest."""
    step = pe.LaplaceMechanism(1.4).poisson_sampled(p)
    mechanism = step.composed(steps)
    for name, x in (("gamma_bound", 0.01), ("trade_off", 0.3), ("delta", 0.2), ("epsilon", 1e-5)):
        ask: Any = getattr(pe, name)
        bounds = {}
        for adjacency in ("add", "remove", "add_remove"):
            found = ask(mechanism, x, adjacency=adjacency, bounds=True)
            rough = ask(mechanism, x, adjacency=adjacency, bounds=True, method="lattice")
            assert found.upper - found.lower <= 1e-8 * found.upper
            assert rough.lower <= found.upper
            assert found.lower <= rough.upper
            bounds[adjacency] = found
        both = bounds["add_remove"]
        orders = [bounds["add"], bounds["remove"]]
        if name == "trade_off":
            assert both.lower <= min(one.upper for one in orders)
        else:
            assert both.upper >= max(one.lower for one in orders)
        before = ask(step.composed(steps - 1), x, bounds=True)
        sign = -1.0 if name == "trade_off" else 1.0
        assert sign * before.lower <= sign * both.upper


@pytest.mark.parametrize("p", [1.0, 0.35])
def test_levels_on_atoms_and_beside_them(p: float) -> None:
    """At the levels of both sides of an atom, where the slope jumps, and between them."""
    step: Any = pe.LaplaceMechanism(2.5)
    mechanism = (step if p == 1.0 else step.poisson_sampled(p)).composed(31)
    order = deformed_order(composition_law(mechanism, "add"))
    assert order is not None
    d, low = float(order.kinds[0][0].length), order.support()[0]
    atoms = low + d * np.arange(0.0, 32.0, 5.0)
    step_aside = 1e-9 * d
    above, below = (
        order.tails(np.clip(atoms + side, low, None)) for side in (step_aside, -step_aside)
    )
    levels = np.concatenate([above.a_above, below.a_above, 0.5 * (above.a_above + below.a_above)])
    levels = levels[(levels > 1e-290) & (levels < 1.0 - 1e-12)]
    for level in np.unique(levels):
        for x in (level, np.nextafter(level, 0.0), np.nextafter(level, 1.0)):
            found = pe.gamma_bound(mechanism, float(x), adjacency="add", bounds=True)
            exact = p == 1.0
            other: Any = {"method": "exact"} if exact else {"method": "lattice", "tolerance": 1e-5}
            rough = pe.gamma_bound(mechanism, float(x), adjacency="add", bounds=True, **other)
            assert rough.lower <= found.upper
            assert found.lower <= rough.upper
            assert found.upper - found.lower <= 1e-8 * found.upper
    for epsilon in -atoms[atoms < 0.0]:
        for x in (epsilon, np.nextafter(epsilon, 0.0), np.nextafter(epsilon, 99.0)):
            found = pe.delta(mechanism, float(x), adjacency="add", bounds=True)
            rough = pe.delta(mechanism, float(x), adjacency="add", bounds=True, method="lattice")
            assert rough.lower <= found.upper
            assert found.lower <= rough.upper


def test_epsilon_is_the_inverse_of_the_profile() -> None:
    mechanism = pe.LaplaceMechanism(0.9).poisson_sampled(0.02).composed(400)
    for adjacency in ("add", "remove", "add_remove"):
        deltas = np.array([0.0, 1e-250, 1e-30, 1e-9, 1e-3, 0.03, 0.9, 1.0])
        found = pe.epsilon(mechanism, deltas, adjacency=adjacency, bounds=True)
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
        assert found.value[-1] == 0.0
        inner = slice(1, 6)
        least = pe.delta(mechanism, found.upper[inner], adjacency=adjacency, bounds=True)
        most = pe.delta(mechanism, found.lower[inner], adjacency=adjacency, bounds=True)
        zero = found.lower[inner] == 0.0
        assert (least.lower <= deltas[inner]).all()
        assert ((most.upper >= deltas[inner]) | zero).all()
        one = [pe.epsilon(mechanism, float(x), adjacency=adjacency) for x in deltas]
        np.testing.assert_allclose(one, found.value, rtol=1e-9, atol=1e-300)


@settings(max_examples=60 if ALL else 12, deadline=None)
@given(
    noise=st.floats(0.5, 100.0),
    p=st.floats(1e-6, 1.0),
    steps=st.integers(3, 200),
    share=st.floats(0.01, 0.99),
)
def test_properties_of_random_steps(noise: float, p: float, steps: int, share: float) -> None:
    """Both orders are each other's mirror images, masses add up, and bounds are in their order."""
    kinds = ((LaplaceShape(1 / Fraction(noise), Fraction(p)), steps),)
    add, remove = DeformedOrder(kinds, False), DeformedOrder(kinds, p != 1.0)
    low, high = add.support()
    c = np.array([low + share * (high - low)])
    tails = add.tails(c)
    slack = 2.0 * tails.error + 1e-15
    assert np.abs(tails.a_above + tails.a_below - 1.0) <= slack
    assert np.abs(tails.b_above + tails.b_below - 1.0) <= slack
    # what c is between the masses: A on {S > c} is at most e^-c times B there
    weight = np.exp(-c)
    assert tails.a_above * (1.0 - tails.error) <= weight * tails.b_above * (1.0 + 1e-9)
    assert tails.b_below * (1.0 - tails.error) <= tails.a_below * (1.0 + 1e-9) / weight
    if c < 0.0:
        value, error = add.profile(-c)
        direct = tails.a_below - np.exp(-c) * tails.b_below
        assert np.abs(value - direct) <= error + slack * (1.0 + np.exp(-c))
    elif p != 1.0:
        value, error = remove.profile(c)
        direct = tails.b_above - np.exp(c) * tails.a_above
        assert np.abs(value - direct) <= error + slack * (1.0 + np.exp(c) * tails.a_above)


def test_many_rare_steps() -> None:
    """A profile far below the losses of all steps together: the weight of a tilt that falls."""
    mechanism = pe.LaplaceMechanism(100).poisson_sampled(1e-6).composed(10**6)
    for name, x in (("delta", 1e-6), ("epsilon", 1e-6), ("gamma_bound", 1e-3)):
        ask: Any = getattr(pe, name)
        found = ask(mechanism, x, bounds=True)
        assert 0.0 < found.lower < found.upper < found.lower * (1.0 + 1e-6)


def test_what_is_not_served_goes_on() -> None:
    """Little noise, several kinds and others beside them have lines, few plain steps exact sums."""
    engines = {}
    for name, mechanism in {
        "one kind": pe.LaplaceMechanism(1.0).poisson_sampled(0.01).composed(10),
        "little noise": pe.LaplaceMechanism(0.1).poisson_sampled(0.01).composed(10),
        "two kinds": pe.LaplaceMechanism(1.0).poisson_sampled(0.01).composed(10)
        + pe.LaplaceMechanism(2.0).poisson_sampled(0.01).composed(10),
        "others": pe.LaplaceMechanism(1.0).poisson_sampled(0.01).composed(10)
        + pe.GaussianMechanism(2.0).poisson_sampled(0.01).composed(10),
        "few": pe.LaplaceMechanism(1.0).composed(3),
    }.items():
        for method in ("auto", "certified"):
            _, found, proven = pe.api.answers(
                "delta", mechanism, [0.01], adjacency="add", method=method
            )
            assert proven == [True]
            engines[name, method] = found[0]
    for method in ("auto", "certified"):
        assert engines["one kind", method] == "certified"
        assert engines["little noise", method] == engines["two kinds", method] == "certified"
        assert engines["others", method] == "certified"
        assert engines["few", method] == "exact"


def test_bad_input() -> None:
    mechanism = pe.LaplaceMechanism(1.0).poisson_sampled(0.01).composed(10)
    for ask, x in ((pe.gamma_bound, 1.5), (pe.delta, -1.0), (pe.epsilon, 2.0)):
        with pytest.raises(ValueError, match=r"must|lie in"):
            ask(mechanism, x)


def test_a_tolerance_that_lines_do_not_reach_is_refused_or_met() -> None:
    mechanism = pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(20)
    found = pe.delta(mechanism, 0.5, tolerance=1e-9, bounds=True)
    assert found.upper - found.lower <= 1e-9 * found.upper
    with pytest.raises(pe.AccuracyError):
        pe.delta(mechanism, 0.5, tolerance=1e-17, bounds=True)


def test_proven_bounds_that_do_not_meet_are_refused() -> None:
    def bracket(lower: float, upper: float) -> Answer:
        middle = np.array([0.5 * (lower + upper)])
        return Answer(middle, np.array([lower]), np.array([upper]), names("lattice", 1), True)

    at = np.array([True])
    found = bracket(0.1, 0.3)
    questions._narrow(found, at, bracket(0.2, 0.4))
    assert (found.lower[0], found.upper[0]) == (0.2, 0.3)
    with pytest.raises(pe.AccuracyError, match="do not meet"):
        questions._narrow(found, at, bracket(0.31, 0.4))


QUICK = {"on an atom": (1.0, 0.1, 10, 1e-3), "beside one": (10.0, 0.01, 10, 1e-3)}


@pytest.mark.parametrize("name", list(QUICK))
def test_levels_on_atoms_are_found_without_halving(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A search that knows no atoms halves some thirty times, as no value is near the level."""
    noise, rate, steps, level = QUICK[name]
    asked = []
    roughly = LineOrder.roughly

    def counted(self: LineOrder, c: float) -> Any:
        asked.append(c)
        return roughly(self, c)

    monkeypatch.setattr(LineOrder, "roughly", counted)
    monkeypatch.setattr(LineOrder, "is_called", True)
    mechanism = pe.LaplaceMechanism(noise).poisson_sampled(rate).composed(steps)
    found = pe.gamma_bound(mechanism, level, bounds=True)
    assert len(asked) <= 8
    assert found.upper - found.lower <= 1e-9 * found.upper
    other = pe.gamma_bound(mechanism, level, method="lattice", bounds=True)
    assert other.lower <= found.upper
    assert found.lower <= other.upper


def test_jumps_tell_where_levels_are() -> None:
    """Of every place that a level may have beside what was expected, atoms on its sides or not."""
    places = [1.0, 2.0, 3.0]
    for level in np.linspace(-0.4, 3.7, 60):

        def stairs(c: float, level: float = float(level)) -> float:
            return level - bisect_left(places, c) - 0.01 * c

        for expected in ((0.4, 0.6), (1.9, 2.05), (0.0, 4.0), (2.4, 2.6), (3.2, 3.3)):
            found = root_of(stairs, expected, (-100.0, 100.0), 4e-9, places)
            assert found[0] <= found[1] <= found[0] + 1e-8
            assert stairs(found[0]) >= 0.0 >= stairs(found[1])


def test_what_a_function_raises_reaches_who_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the C core, from a function, from a law's masses, and from the making of a line."""

    def failing(*_: Any) -> Any:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        root_of(failing, (0.0, 1.0), (-1.0, 2.0))
    mechanism = pe.LaplaceMechanism(3.0).composed(1234)
    for name, called in (("line_at", False), ("masses", True), ("roughly", True)):
        with monkeypatch.context() as patch:
            patch.setattr(LineOrder, name, failing)
            patch.setattr(LineOrder, "is_called", called)
            clear_cache()
            with pytest.raises(KeyError, match="here"):
                pe.gamma_bound(mechanism, 0.01, bounds=True)
    assert pe.gamma_bound(mechanism, 0.01, bounds=True).lower > 0.01


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 10), (0.3, 10), (10.0, 1000)])
def test_epsilon_is_0_from_its_profile_on(
    monkeypatch: pytest.MonkeyPatch, noise: float, steps: int
) -> None:
    """Known of the profile at 0: there is no root, for which a search would halve on and on."""
    mechanism = pe.LaplaceMechanism(noise).poisson_sampled(0.01).composed(steps)
    most = pe.delta(mechanism, 0.0, bounds=True)

    def searched(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(questions, "root_of", searched)
    for delta in (most.upper * (1.0 + 1e-9), 0.5, 1.0):
        assert pe.epsilon(mechanism, delta, bounds=True) == pe.Bounds(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("noise", "steps", "delta", "width"),
    [(8.08, 41, 1e-147, 5e-15), (82.0, 57, 1e-169, 5e-15), (22.4, 955, 0.0106, 1.3e-11)],
)
def test_epsilon_is_as_narrow_as_what_serves_there_best(
    noise: float, steps: int, delta: float, width: float
) -> None:
    """At the largest loss others are asked; elsewhere what the search has at hand may be coarse."""
    found = pe.epsilon(pe.LaplaceMechanism(noise).composed(steps), delta, bounds=True)
    assert found.upper - found.lower <= width * found.upper


def test_epsilon_of_the_other_order_is_looked_for_next_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own expectation is far off where few atoms hold all masses."""
    asked = []
    about = LineOrder.profile_about

    def counted(self: LineOrder, near: float) -> Any:
        profile = about(self, near)

        def one(epsilon: float) -> float:
            asked.append(epsilon)
            return profile(epsilon)

        return one

    monkeypatch.setattr(LineOrder, "profile_about", counted)
    mechanism = pe.LaplaceMechanism(10.0).poisson_sampled(0.01).composed(10)
    found = pe.epsilon(mechanism, 1e-6, bounds=True)
    assert len(asked) <= 24
    each = [pe.epsilon(mechanism, 1e-6, adjacency=x, bounds=True) for x in ("add", "remove")]
    assert found.lower <= max(x.upper for x in each)
    assert found.upper >= max(x.lower for x in each)
