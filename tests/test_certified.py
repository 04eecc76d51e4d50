"""Certified bounds of DP-SGD against 20-digit truths, row by row and question by question."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from comparing import compared, comparing, left_out
from random_mechanisms import Draw, made, sgd
from thorough import ALL, stored
from truth import Question, load, questions_of

import pyengine as pe
from pyengine.api import answers
from pyengine.caches import clear_cache
from pyengine.engines import sector
from pyengine.engines.certified import CertifiedPair
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair, GaussianRows, enclosing_pairs, gaussian_rows
from pyengine.engines.row_sides import RowSide
from pyengine.engines.spectral import Spectral

POINTS = [point for point in load("dp_sgd_random.json")["points"] if "p_above" in point]
# Every row is compared where PYENGINE_ALL_POINTS is set (twenty minutes, most of it for rows that
# have no proof), else one in twenty-five.
STRIDE = 1 if ALL else 45
FORWARD = {A_ABOVE: "p_above", A_BELOW: "p_below", B_ABOVE: "q_above", B_BELOW: "q_below"}
BACKWARD = {
    A_ABOVE: "q_below",
    A_BELOW: "q_above",
    B_ABOVE: "p_below",
    B_BELOW: "p_above",
    PROFILE: "h_qp",
}


def last_digit(text: str) -> float:
    """Relative size of a unit in the last digit of a number."""
    digits = text.split("e")[0].replace(".", "").lstrip("0")
    return 10.0 ** (1 - len(digits))


@pytest.mark.parametrize("backward", [False, True])
def test_rows_hold_the_truth(backward: bool) -> None:
    """Thresholds of the file are doubles, so rows there have no error of an argument."""
    seen: Counter[str] = Counter()
    widths = []
    for point in POINTS[int(backward) :: STRIDE] if STRIDE > 1 else POINTS:
        pair = GaussianPair(
            tuple(point["noise"]), tuple(point["p"]), tuple(point["steps"]), backward
        )
        engine, c = Spectral(pair), -point["c"] if backward else point["c"]
        for functional in (A_ABOVE, A_BELOW, PROFILE):
            row = engine.certify(functional, np.array([c]))[0]
            for which, key in (BACKWARD if backward else FORWARD).items():
                error = row[ERRORS + which]
                seen["asked"] += 1
                if key not in point or mpmath.mpf(point[key]) == 0 or not error < 1e-3:
                    continue
                with mpmath.workdps(40):
                    truth = mpmath.log(mpmath.mpf(point[key]))
                    off = abs(mpmath.expm1(mpmath.mpf(row[2 + which]) - truth))
                assert off <= error + last_digit(point[key]), (point, functional, which)
                seen["held"] += 1
                if which == functional:
                    widths.append(error)
    assert seen["held"] > 0.35 * seen["asked"]
    assert np.median(widths) < 1e-12


FUNCTIONS = {"gamma": "gamma_bound", "beta": "trade_off", "delta": "delta"}


def certified(question: Question) -> tuple[pe.Bounds, str]:
    """Answer of the method, with the engine behind it."""
    bounds, engines, _ = answers(
        FUNCTIONS[question.name],
        question.mechanism,
        [question.argument],
        adjacency=question.adjacency,
        method="certified",
    )
    return pe.Bounds(*(float(part[0]) for part in bounds)), engines[0]


@comparing(0.5)
def test_bounds_hold_the_truth() -> None:
    ordinary = [point for point in POINTS if point["stratum"] in ("ordinary", "centre")]
    widths = []
    for point in ordinary[::24]:
        for question in questions_of(point):
            try:
                bounds, engine = certified(question)
            except pe.AccuracyError:
                left_out()
                continue
            # the truth's argument was corrected to first order of a rounding
            slack = question.truth * Decimal("1e-15")
            assert Decimal(bounds.lower) <= question.truth + slack, question
            assert Decimal(bounds.upper) >= question.truth - slack, question
            assert engine in ("certified", "closed_form", "lattice")
            if engine == "certified":
                widths.append((bounds.upper - bounds.lower) / bounds.value)
            compared()
    assert len(widths) > 10
    assert np.median(widths) < 2e-12


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_epsilon_is_where_delta_is_met(adjacency: str, delta: float) -> None:
    run = pe.dp_sgd(0.8, 0.001, 10_000)
    keywords: dict[str, Any] = {"adjacency": adjacency, "method": "certified", "bounds": True}
    lower, value, upper = pe.epsilon(run, delta, **keywords)
    assert lower <= value <= upper
    assert upper - lower < 1e-9 * value
    assert pe.delta(run, upper, **keywords).lower <= delta
    assert pe.delta(run, lower, **keywords).upper >= delta
    assert lower <= pe.epsilon(run, delta, adjacency=adjacency) <= upper


def rows_of(mechanism: pe.Mechanism, adjacency: str = "add") -> GaussianRows:
    found = gaussian_rows(mechanism, adjacency)
    assert found is not None
    return found


def test_numbers_that_are_no_doubles_are_enclosed() -> None:
    run = pe.dp_sgd("0.8", "1/1000", 10)
    private, public = enclosing_pairs(rows_of(run), "add")
    assert private.noise[0] >= Fraction("0.8") >= public.noise[0]
    assert private.probability[0] <= Fraction(1, 1000) <= public.probability[0]
    assert math.nextafter(public.noise[0], 1.0) == private.noise[0]
    same = enclosing_pairs(rows_of(pe.dp_sgd(0.75, 0.125, 10)), "add")
    assert same[0] is same[1]
    plain = pe.GaussianMechanism(0.8)
    same = enclosing_pairs(rows_of(plain, "substitute"), "substitute")
    assert same[0] is same[1]
    assert same[0].noise == (0.4,)
    # half of the smallest double is none
    halved = enclosing_pairs(rows_of(pe.GaussianMechanism(5e-324), "substitute"), "substitute")
    assert [pair.noise for pair in halved] == [(5e-324,), (0.0,)]
    lower, _, upper = pe.delta(run, 0.1, adjacency="add", method="certified", bounds=True)
    for noise, p in ((0.8, 0.001), (private.noise[0], private.probability[0])):
        inner = pe.delta(pe.dp_sgd(noise, p, 10), 0.1, adjacency="add", method="certified")
        assert lower <= inner <= upper


def test_what_is_not_proven_is_left_to_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    few = pe.dp_sgd(0.4, 3e-7, 1_400)
    lower, value, upper = pe.delta(few, 0.04, adjacency="remove", bounds=True)
    assert upper - lower <= 1e-8 * value
    monkeypatch.setattr(sector, "FEW_STEPS", 1_000)  # had they no law
    clear_cache()
    bounds, engines, proven = answers("delta", few, [0.04], adjacency="remove", method="certified")
    assert engines == ["lattice"]
    assert proven == [True]
    value = pe.delta(few, 0.04, adjacency="remove")
    assert bounds.lower[0] <= value <= bounds.upper[0]
    assert bounds.upper[0] - bounds.lower[0] <= 1e-4 * value
    bounds, engines, proven = answers("delta", few, [0.04], adjacency="remove")
    assert engines == ["lattice"]
    assert proven == [True]
    assert bounds.lower[0] <= bounds.value[0] <= bounds.upper[0]


# Of these the reference takes four seconds to forty; the others it answers in each run.
SLOW = [
    (1.911, 1.1e-4, 8_784),
    (2.7885, 5.2826e-4, 327),
    (1.1072, 3.2378e-5, 1_734),
    (0.5, 1e-3, 1_000),
]


@pytest.mark.parametrize(
    ("question", "parameters", "x", "adjacency"),
    [
        # a mode far out under the tilt: the law is cut in the gap before it
        ("gamma_bound", (47.06, 1.84e-7, 3_591_806), 0.01, "remove"),
        ("epsilon", (8.8458, 6.3962e-5, 58_887), 5.4e-7, "remove"),
        # very large tilts of a rare sample: upper sums of the moduli
        ("delta", (1.911, 1.1e-4, 8_784), 0.0713, "add"),
        ("delta", (2.7885, 5.2826e-4, 327), 0.01067, "add"),
        # single large steps decide: lines beside the pole
        ("gamma_bound", (1.1072, 3.2378e-5, 1_734), 4.97e-7, "add"),
        ("gamma_bound", (1.5609, 2.2237e-4, 124), 1.868e-5, "add"),
        ("delta", (2.0, 1e-3, 3), 1e-3, "add"),
        # one order of magnitude of the loss above another
        ("epsilon", (0.5, 1e-3, 1_000), 1e-5, "remove"),
    ],
)
def test_against_ball_arithmetic(
    question: str, parameters: tuple[float, float, int], x: float, adjacency: str
) -> None:
    """Where lines on the whole real axis prove nothing."""
    run = pe.dp_sgd(*parameters)
    bounds, engines, proven = answers(question, run, [x], adjacency=adjacency)
    assert (engines, proven) == (["certified"], [True])

    def ask() -> Any:
        return getattr(pe, question)(run, x, adjacency=adjacency, method="reference")

    key = f"{question} of dp_sgd{parameters} at {x!r}, {adjacency}"
    truth = stored(key, ask) if parameters in SLOW else ask()
    assert bounds.lower[0] <= truth * (1 + 2**-52)
    assert bounds.upper[0] >= truth * (1 - 2**-52)
    assert bounds.upper[0] - bounds.lower[0] <= 1e-5 * truth


def test_what_is_beyond_the_doubles() -> None:
    run = pe.dp_sgd(1.0, 0.01, 1000)
    words: dict[str, Any] = {"adjacency": "add", "method": "certified", "bounds": True}
    assert pe.delta(run, 9.99, **words).upper < 1e-305
    assert pe.trade_off(pe.dp_sgd(0.4, 0.5, 14_000), 1e-9, **words).upper < 1e-305
    assert pe.gamma_bound(pe.dp_sgd(0.4, 0.5, 14_000), 1e-9, **words).lower >= 1 - 2**-52
    assert pe.epsilon(pe.dp_sgd(2.0, 1e-5, 25), 1e-3, **words) == (0.0, 0.0, 0.0)


def test_ordinary_questions_are_proven() -> None:
    """Bounds of `auto`; the lines prove 94 of 100 of these, and no answer leaves them."""
    d = Draw(20)
    seen: Counter[bool] = Counter()
    for _ in range(60 if ALL else 25):
        run, adjacency = made(sgd(d, (0.4, 10), (1e-5, 1), (10, 1e6))), d.one_of("add", "remove")
        name = d.one_of("gamma_bound", "trade_off", "epsilon")
        x = d.number(1e-12, 0.5)
        try:
            bounds, _, proven = answers(name, run, [x], adjacency=adjacency)
        except pe.AccuracyError:
            continue
        plain = getattr(pe, name)(run, x, adjacency=adjacency)
        assert bounds.lower[0] <= bounds.value[0] <= bounds.upper[0]
        assert bounds.value[0] == pytest.approx(plain, rel=1e-9)
        seen[proven[0]] += 1
    assert seen[True] > 9 * seen[False]


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.LaplaceMechanism(2.0).poisson_sampled(0.1).composed(20),
        pe.RandomizedResponse(0.75).composed(3),
        pe.GaussianMechanism(2.0),
        pe.GaussianMechanism(2.0)
        .sampled_without_replacement(batch_size=3, dataset_size=70)
        .composed(40),
        pe.compose(pe.dp_sgd(1.0, 0.01, 50), pe.GaussianMechanism(4.0), pe.dp_sgd(2.0, 0.02, 9)),
    ],
    ids=["laplace", "response", "gaussian", "without replacement", "mixed"],
)
def test_every_kind_of_mechanism(mechanism: pe.Mechanism) -> None:
    """The method is a promise about the bounds, not about one engine."""
    for name, x in (("epsilon", 1e-3), ("delta", 0.3), ("gamma_bound", 0.01), ("trade_off", 0.2)):
        bounds, _, proven = answers(name, mechanism, [x], adjacency="add", method="certified")
        assert proven == [True]
        plain = getattr(pe, name)(mechanism, x, adjacency="add")
        assert bounds.lower[0] * (1 - 1e-11) <= plain <= bounds.upper[0] * (1 + 1e-4)


def test_ends_of_the_domain() -> None:
    run = pe.dp_sgd(1.0, 0.01, 100)
    assert pe.trade_off(run, [0.0, 1.0], method="certified").tolist() == [1.0, 0.0]
    assert pe.delta(run, math.inf, method="certified") == 0.0
    assert pe.epsilon(run, 1.0, method="certified") == 0.0
    assert pe.epsilon(run, 0.0, method="certified", adjacency="remove") == math.inf


@pytest.mark.parametrize(
    ("run", "epsilon", "adjacency", "truth"),
    [
        ((0.374, 0.663, 12409), 24500.0, "remove", "0.0624344303069901821980426"),
        ((0.374, 0.663, 12409), 24450.0, "remove", "0.08463151589124628060034499"),
        ((0.605, 0.728, 955841), 757000.0, "remove", "7.093009227274249318028911e-8"),
        ((0.59, 0.865, 32064), 25940.0, "add", "0.03693826892966062777671283"),
    ],
)
def test_far_thresholds_see_no_rounding_of_a_power(
    run: tuple[float, float, int], epsilon: float, adjacency: str, truth: str
) -> None:
    """Transforms at 1 - λ are those at λ only if that is a double: else K is off by K' ulps of it.

    The digits are those of `pyengine.reference`.
    """
    bounds, engines, proven = answers("delta", pe.dp_sgd(*run), [epsilon], adjacency=adjacency)
    assert (engines, proven) == (["certified"], [True])
    assert Decimal(float(bounds.lower[0])) <= Decimal(truth) <= Decimal(float(bounds.upper[0]))


def test_the_line_of_both_orders_counts_its_roundings() -> None:
    """1 - α is rounded below 1/2, by more than small β show: bounds missed the truth."""
    rng, known = np.random.default_rng(3), 0
    for _ in range(200):
        delta, alpha = rng.uniform(0.5, 0.999), np.empty(50)
        alpha[:] = 1.0 - delta - 10.0 ** rng.uniform(-12.0, -1.0, 50) * (1.0 - delta)
        side = RowSide()
        side.zero, side.straight = (delta, delta, delta), (0.0, 1.0)  # as if exactly known
        (beta, gamma), where = CertifiedPair(side, side, None, None).straight(alpha)
        for i, level in enumerate(alpha[where].tolist()):
            truth = 1 - Fraction(level) - Fraction(delta)
            assert Fraction(beta.lower[i]) <= truth <= Fraction(beta.upper[i])
            assert Fraction(gamma.lower[i]) <= 1 - truth <= Fraction(gamma.upper[i])
        known += int(where.sum())
    assert known > 5000
