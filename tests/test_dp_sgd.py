"""DP-SGD against arbitrary precision: published points, and random points of the whole domain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from error_budget import check
from thorough import ALL, once
from truth import Question, ask, load, plain, questions_of, relative_error

import pyengine as pe

TINY, LEAST = Decimal("1e-30"), Decimal("1e-300")
STRIDE = 1 if ALL else 29
PUBLISHED = load("dp_sgd_published.json")
RANDOM = load("dp_sgd_random.json")["points"]


def published_questions() -> Iterator[Question]:
    for row in PUBLISHED["gamma"]:
        mechanism = pe.dp_sgd(float(row["sigma"]), float(row["p"]), row["steps"])
        for name in ("gamma", "beta"):
            truth = Decimal(row[name])
            if name == "beta" and row["beta"].startswith("1.0000000"):
                continue  # rounded to 1 in the file
            kappa = float(row["kappa"])
            yield Question(name, row["adjacency"], mechanism, kappa, truth, str(row))
    for row in PUBLISHED["delta"]:
        mechanism = pe.dp_sgd(float(row["sigma"]), float(row["p"]), row["steps"])
        truth, argument = Decimal(row["delta"]), float(row["epsilon"])
        if truth > Decimal("1e-300"):
            yield Question("delta", row["adjacency"], mechanism, argument, truth, str(row))


@pytest.mark.parametrize("name", ["gamma", "beta", "delta"])
def test_published_values(name: str) -> None:
    # the file's decimal parameters are not doubles: p = 0.01 moves the last digits by 1e-16 / p
    questions = [q for q in published_questions() if q.name == name]
    assert len(questions) >= 15
    for label, chosen in (
        ("", [q for q in questions if q.truth >= TINY]),
        ("_below_1e-30", [q for q in questions if q.truth < TINY]),
    ):
        errors = [relative_error(ask(q).value, q.truth) for q in chosen]
        check(f"dp_sgd.published_{name}{label}", max(errors))


Answered = list[tuple[Question, pe.Bounds | None]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """Values between estimated bounds."""
    found: Answered = once(
        tmp_path_factory, "dp_sgd_random_points", partial(answered, "estimated", RANDOM[::STRIDE])
    )
    return found


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """Values between proven bounds."""
    asked = RANDOM if ALL else RANDOM[STRIDE :: 2 * STRIDE]  # a proof takes up to 4 s
    found: Answered = once(tmp_path_factory, "dp_sgd_random_proofs", partial(answered, True, asked))
    return found


def answered(bounds: bool | str, points: list[Any]) -> Answered:
    found: Answered = []
    for point in points:
        for question in questions_of(point):
            try:
                found.append((question, ask(question, bounds)))
            except pe.AccuracyError:
                found.append((question, None))
    return found


@pytest.mark.parametrize("name", ["gamma", "beta", "delta"])
def test_random_points(name: str, answers: Answered) -> None:
    mine = [(q, b) for q, b in answers if q.name == name and b is not None]
    judged = [(q, relative_error(b.value, q.truth)) for q, b in mine if q.truth >= LEAST]
    # next to wide bounds a value has the digits that they have
    loose = [q for q, error in judged if error > (1e-11 if q.truth >= TINY else 1e-9)]
    assert len(loose) <= 0.015 * len(judged)
    for question, bounds in mine:
        if question in loose:
            assert Decimal(bounds.lower) <= question.truth <= Decimal(bounds.upper)
            assert plain(question) == bounds.value
    large = [error for q, error in judged if q.truth >= TINY and q not in loose]
    small = [error for q, error in judged if q.truth < TINY and q not in loose]
    assert len(large) > 40
    assert len(small) > 5
    check(f"dp_sgd.all_random_{name}", max(large), whole=STRIDE == 1)
    check(f"dp_sgd.all_random_{name}_below_1e-30", max(small), whole=STRIDE == 1)


def test_random_points_lie_within_their_bounds(
    answers: Answered,
) -> None:
    # a truth whose argument was corrected by its slope may exceed 1 in its last digit
    outside = [
        q.where
        for q, b in answers
        if b is not None and not Decimal(b.lower) <= min(q.truth, Decimal(1)) <= Decimal(b.upper)
    ]
    # the widths are estimates: they may fail, but not often and not by much
    assert len(outside) <= 0.003 * len(answers), outside
    for q, b in answers:
        if b is None or q.truth < Decimal("1e-300"):
            continue
        width = max(b.upper - b.value, b.value - b.lower)
        miss = abs(float(Decimal(b.value) - q.truth))
        assert miss <= 8.0 * width, (q, b)


def test_random_points_lie_within_their_proven_bounds(proven: Answered) -> None:
    outside = [
        q.where
        for q, b in proven
        if b is not None and not Decimal(b.lower) <= min(q.truth, Decimal(1)) <= Decimal(b.upper)
    ]
    assert outside == []
    # the points are drawn from the corners of the domain, too
    unproven = [q.where for q, b in proven if b is None and q.argument <= 1000.0]
    assert len(unproven) <= 0.04 * len(proven), unproven


def test_few_random_points_are_refused(
    answers: Answered,
) -> None:
    refused = [q.where for q, b in answers if b is None and q.argument <= 1000.0]
    assert len(refused) <= 0.01 * len(answers), refused


def test_lebeda_table_1() -> None:
    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    epsilon = pe.epsilon(mechanism, [1e-7, 1e-6, 1e-5], adjacency="remove")
    expected = [1.1707628432, 0.9471956872, 0.7823877811]
    assert np.allclose(epsilon, expected, rtol=0, atol=1.01e-10)


def test_inverses() -> None:
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    for adjacency in ("add", "remove", "add_remove"):
        delta = np.geomspace(1e-250, 0.15, 60)
        if adjacency == "add":
            delta = delta[delta > 1e-40]
        back = pe.delta(
            mechanism, pe.epsilon(mechanism, delta, adjacency=adjacency), adjacency=adjacency
        )
        worst = float(np.max(np.abs(back / delta - 1.0)))
        check(f"dp_sgd.inverse_{adjacency}", worst)


def test_trade_off_of_remove_is_the_inverse_of_add() -> None:
    mechanism = pe.dp_sgd(0.7, 0.02, 300)
    alpha = np.geomspace(1e-12, 0.4, 40)
    beta = pe.trade_off(mechanism, alpha, adjacency="add")
    back = pe.trade_off(mechanism, beta, adjacency="remove")
    # beta is rounded: conditioning is beta * |slope of the inverse| / alpha
    slope = np.gradient(np.log(alpha), beta)
    assert np.all(np.abs(back / alpha - 1.0) <= 1e-13 + 4e-16 * np.abs(slope))


def test_heterogeneous_phases_equal_their_sum() -> None:
    one = pe.dp_sgd(1.1, 0.02, 700)
    parts = pe.compose(pe.dp_sgd(1.1, 0.02, 300), pe.dp_sgd(1.1, 0.02, 400))
    assert one == parts
    assert hash(one) == hash(parts)
    # nearly equal noise: another code path (two groups), nearly the same law
    near = pe.compose(pe.dp_sgd(1.1, 0.02, 300), pe.dp_sgd(1.1 * (1 + 1e-13), 0.02, 400))
    assert math.isclose(pe.gamma_bound(near, 1e-4), pe.gamma_bound(one, 1e-4), rel_tol=1e-12)
