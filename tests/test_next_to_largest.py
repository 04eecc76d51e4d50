"""Levels whose tests take next to nothing but the outcomes of the largest likelihood ratio.

Truths have 20 digits of ``pyengine.reference``; random levels are held against the lattice.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

import pyengine as pe
from pyengine._core import lib
from pyengine.api import answers
from pyengine.engines.functionals import A_ABOVE, A_BELOW
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.pairs import GaussianPair

Steps = list[tuple[float, float, int]]

CASES: list[tuple[str, Steps, float, str, str]] = [
    ("gamma_bound", [(0.28754805529155253, 0.0030204656994411807, 2)], 2.37e-28, "remove",
     "2.3843821356841926939e-28"),
    ("gamma_bound", [(0.247764932023388, 0.48932078371546195, 2)], 2.7e-25, "remove",
     "1.0353028218073823851e-24"),
    ("trade_off", [(0.247764932023388, 0.48932078371546195, 2)], 1.0 - 2e-15, "add",
     "5.2116963134123693854e-16"),
    ("gamma_bound", [(0.3, 0.01, 5)], 1e-60, "remove", "1.0515357128133420548e-60"),
    ("gamma_bound", [(0.3, 0.01, 3), (0.25, 1e-3, 2)], 1e-70, "remove",
     "1.0326744683906774731e-70"),
    ("gamma_bound", [(0.5, 0.01, 2)], 1e-100, "remove", "1.0203040506070806789e-100"),
    ("gamma_bound", [(0.2, 1e-5, 12)], 1e-60, "remove", "1.000120007800363984e-60"),
]  # fmt: skip


def _likely(pair: GaussianPair) -> float:
    """Log of the tail below which there are bounds."""
    noise, probability, steps, is_reversed = pair
    return lib.pe_log_next_to_largest(len(steps), noise, probability, steps, is_reversed)


def _level(pair: GaussianPair, functional: int, log_tail: float) -> np.ndarray | None:
    """The answer at one level, beside one that has none."""
    found = GaussianSide(pair).next_to_largest(functional, np.array([log_tail, -0.1]))
    if found is None:
        return None
    assert math.isnan(found[1, 0])
    return None if math.isnan(found[0, 0]) else found[0]


def _run(steps: Steps) -> pe.Mechanism:
    return pe.compose(*(pe.dp_sgd(*step) for step in steps))


@pytest.mark.parametrize(("question", "steps", "x", "adjacency", "truth"), CASES)
def test_bounds_hold_the_truth(
    question: str, steps: Steps, x: float, adjacency: str, truth: str
) -> None:
    bounds, engines, proven = answers(question, _run(steps), [x, x], adjacency=adjacency)
    assert all(proven)
    assert set(engines) == {"certified"}
    lower, upper = Decimal(float(bounds.lower[0])), Decimal(float(bounds.upper[0]))
    assert lower <= Decimal(truth) <= upper
    assert upper - lower < Decimal("2e-12") * upper
    alone = getattr(pe, question)(_run(steps), x, adjacency=adjacency, bounds=True)
    assert (alone.lower, alone.value, alone.upper) == (
        bounds.lower[1],
        bounds.value[1],
        bounds.upper[1],
    )


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_random_levels_meet_the_lattice(adjacency: str) -> None:
    rng = np.random.default_rng(15)
    met = 0
    for _ in range(40):
        noise, p = float(rng.uniform(0.2, 0.35)), float(10.0 ** rng.uniform(-4.0, -0.3))
        steps = int(rng.integers(2, 5))
        pair = GaussianPair((noise,), (p,), (steps,), adjacency == "remove")
        # a power of 2, so that 1 less the tail is a double as well
        exponent = math.ceil(-_likely(pair) / math.log(2.0)) + int(rng.integers(0, 20))
        if exponent > (900 if pair.reversed else 52):
            continue
        tail, functional = 2.0**-exponent, A_ABOVE if pair.reversed else A_BELOW
        found = _level(pair, functional, math.log(tail))
        assert found is not None
        question, alpha = ("gamma_bound", tail) if pair.reversed else ("trade_off", 1.0 - tail)
        low, high = found[2:4] if pair.reversed else found[:2]
        run, ask = pe.dp_sgd(noise, p, steps), getattr(pe, question)
        try:
            other = ask(run, alpha, adjacency=adjacency, method="lattice", bounds=True)
        except pe.AccuracyError:
            continue
        assert low <= other.upper
        assert high >= other.lower
        met += 1
    assert met >= 10


def test_probability_of_no_loss_beyond_is_a_lower_bound() -> None:
    rng = np.random.default_rng(16)
    for noise, p, steps in [(0.3, 0.02, 3), (0.25, 0.4, 2), (0.22, 1e-3, 8)]:
        pair = GaussianPair((noise,), (p,), (steps,), False)
        z = rng.standard_normal((400_000, steps))
        with np.errstate(divide="ignore"):
            loss = np.log1p(p / (1.0 - p) * np.exp(z / noise - 0.5 / noise**2)).sum(axis=1)
        share = float((loss <= 2.0**-40).mean())
        off = 5.0 * math.sqrt(max(share, 1e-5) / loss.size)
        assert math.exp(_likely(pair)) <= share + off


@pytest.mark.parametrize(
    "pair",
    [
        GaussianPair((0.3,), (1.0,), (2,), True),
        GaussianPair((0.3, 0.3), (1.0, 0.1), (2, 1), False),
        GaussianPair((0.3,), (0.1,), (101,), True),
        GaussianPair((), (), (), True),
    ],
)
def test_nothing_is_said_elsewhere(pair: GaussianPair) -> None:
    assert _likely(pair) == -math.inf
    assert _level(pair, A_ABOVE, -700.0) is None
    assert _level(pair, A_BELOW, -700.0) is None


def test_other_tails_and_larger_levels_are_left_to_rows() -> None:
    pair = GaussianPair((0.3,), (0.01,), (2,), True)
    likely = _likely(pair)
    assert _level(pair, A_BELOW, -700.0) is None
    assert _level(pair, A_ABOVE, likely) is None
    assert _level(pair, A_ABOVE, likely - 1.0) is not None
    assert _level(pair, A_ABOVE, math.log(5e-324)) is None  # doubles there lose digits


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 1e-303])
def test_the_smallest_levels_have_bounds(alpha: float) -> None:
    answer = pe.gamma_bound(pe.dp_sgd(0.3, 0.01, 2), alpha, adjacency="remove", bounds=True)
    exact = Decimal(alpha) / (Decimal("0.99") ** 2)  # no outcome beyond samples the record
    assert Decimal(answer.lower) <= exact * (1 + Decimal("1e-30"))
    assert Decimal(answer.upper) >= exact * (1 - Decimal("1e-10"))
