"""Proven rows just beyond a root, and bounds that the C core forms of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from pyengine._core import ffi, lib
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.row_bounds import SLACK, LogBounds
from pyengine.engines.spectral import Spectral

PAIRS = [
    GaussianPair((1.15,), (0.00745593516,), (405,), False),
    GaussianPair((0.6,), (1e-4,), (1_000_000,), True),
    GaussianPair((10.5, 2.0), (0.08192, 0.01), (1000, 300), False),
    GaussianPair((2.5, 30.0), (0.0127, 1.0), (72_000, 4), True),
]
LOGS = np.log([1e-40, 1e-9, 1e-3, 0.1, 0.45])


def level_bounds(functional: int, tail: float, row: list[float]) -> Any:
    """Bounds of β and of γ, and both values, from one row; None where a second one is needed."""
    out = ffi.new("double[6]")
    return out if lib.pe_bounds_level(functional, tail, row, SLACK, out) else None


def epsilon_bounds(delta: float, row: list[float]) -> Any:
    """Bounds of ε, and its value, from one row; None where that does not prove both bounds."""
    out = ffi.new("double[3]")
    return out if lib.pe_bounds_epsilon(delta, row, SLACK, out) else None


@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW, PROFILE])
@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_rows_lie_just_beyond_what_was_asked(pair: GaussianPair, functional: int) -> None:
    table = Spectral(pair).certify_beyond(functional, LOGS, SLACK)
    found = np.flatnonzero(~np.isnan(table[:, 0]))
    assert found.size >= 4
    low, high = LogBounds.of_rows(table[found, 0], table[found]).values(functional)
    target = np.exp(LOGS[found])
    error = table[found, ERRORS + functional]
    assert (error < 1e-10).all()
    if functional == A_BELOW:
        assert (low >= target).all()
        assert (low <= target * (1.0 + 4.0 * error + 1e-12)).all()
    else:
        assert (high <= target).all()
        assert (high >= target * (1.0 - 4.0 * error - 1e-12)).all()


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_rows_beyond_a_root_are_those_at_its_threshold(pair: GaussianPair) -> None:
    engine = Spectral(pair)
    table = engine.certify_beyond(A_ABOVE, LOGS, SLACK)
    known = ~np.isnan(table[:, 0])
    there = engine.certify(A_ABOVE, table[known, 0])
    off = np.abs(there[:, 2 + A_ABOVE] - table[known, 2 + A_ABOVE])
    assert (off <= there[:, ERRORS + A_ABOVE] + table[known, ERRORS + A_ABOVE]).all()


def test_what_was_not_asked_has_no_row() -> None:
    table = Spectral(PAIRS[0]).certify_beyond(A_ABOVE, np.array([math.nan, -math.inf, -3.0]), SLACK)
    assert np.isnan(table[:2]).all()
    assert np.isfinite(table[2, 0])


def test_one_row_bounds_as_arrays_do() -> None:
    engine = Spectral(PAIRS[0])
    table = engine.certify_beyond(A_ABOVE, LOGS, SLACK)
    bounds = LogBounds.of_rows(table[:, 0], table)
    tail = np.exp(LOGS)
    lower, _ = bounds.line(A_ABOVE, tail)

    def nobody(c: np.ndarray) -> LogBounds:
        raise AssertionError(f"a second row is asked at {c}")

    upper, _ = bounds.chord(A_ABOVE, tail * (1.0 + 1e-9), nobody)
    for row, level, low in zip(table, tail, lower, strict=True):
        one = level_bounds(A_ABOVE, float(level) * (1.0 + 1e-9), row.tolist())
        assert one is not None
        assert one[0] <= one[1]
        assert one[2] <= one[3]
        # the level that is passed already needs another row
        assert level_bounds(A_ABOVE, float(level) * (1.0 - 1e-6), row.tolist()) is None
        assert low <= one[1]
    assert (lower <= upper).all()


def test_bounds_of_profiles_and_of_their_inverse() -> None:
    engine = Spectral(PAIRS[0])
    table = engine.certify_beyond(PROFILE, np.log([1e-5]), SLACK)
    (row,) = table
    both = epsilon_bounds(1e-5, row.tolist())
    assert both is not None
    assert 0.0 < both[0] < both[2] < both[1] == -row[0]
    assert both[1] - both[0] < 1e-10
    assert LogBounds.of_rows(table[:, 0], table).values(PROFILE)[1][0] <= 1e-5
    assert epsilon_bounds(0.9e-5, row.tolist()) is None  # not met at that threshold


def test_rows_of_nothing_bound_by_0_and_1() -> None:
    rows = np.full((1, 12), np.nan)
    low, high = LogBounds.of_rows(rows[:, 0], rows).values(PROFILE)
    assert low[0] == 0.0
    assert high[0] == 1.0
    assert level_bounds(A_ABOVE, 0.1, rows[0].tolist()) is not None
    found = level_bounds(A_ABOVE, 0.1, rows[0].tolist())
    assert (found[0], found[3]) == (0.0, 1.0)
    assert epsilon_bounds(0.1, rows[0].tolist()) is None


@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW])
def test_a_test_of_too_large_a_level_bounds_gamma_by_a_line_through_0(functional: int) -> None:
    """Of normal laws, where no second row is to be had; γ is concave."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        mu, c = rng.uniform(0.05, 3.0), rng.uniform(-3.0, 4.0)
        above, below = (c + 0.5 * mu * mu) / mu, (c - 0.5 * mu * mu) / mu
        tails = [ndtr(-above), ndtr(above), ndtr(-below), ndtr(below)]
        error = 10.0 ** rng.uniform(-12.0, -1.0)
        row = np.concatenate([[c, 0.0], np.log([*tails, 0.5]), np.full(5, error)])
        level = tails[0] * (1.0 - 0.5 * error)  # which the test may exceed
        tail = level if functional == A_ABOVE else 1.0 - level
        found = LogBounds.of_rows(np.array([c]), row[None])
        nothing = LogBounds.of_rows(np.array([math.nan]), np.full((1, 12), np.nan))
        _, gamma = found.chord(functional, np.array([tail]), lambda _, other=nothing: other)
        truth = ndtr(ndtri(level) + mu)
        assert gamma[0] <= truth * (1.0 + 1e-13)
        if functional == A_ABOVE or tail < 0.9:
            assert gamma[0] >= truth * (1.0 - 40.0 * error - 1e-12)


@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW])
@pytest.mark.parametrize("better", [B_ABOVE, B_BELOW])
def test_values_come_from_the_error_that_is_known_better(functional: int, better: int) -> None:
    """Each error of a row is 1 less the other; γ came from its own row even where β knew more."""
    random = np.random.default_rng(5)
    for gamma in 10.0 ** random.uniform(-12.0, -0.01, 200):
        logs = np.log([0.25, 0.75, gamma, 1.0 - gamma, 0.1])
        error = float(10.0 ** random.uniform(-9.0, -3.0))
        errors = np.full(5, 1e-15)
        worse = B_BELOW if better == B_ABOVE else B_ABOVE
        errors[worse] = error
        logs[worse] += error * random.uniform(-1.0, 1.0)
        row = np.concatenate([[0.3, 0.0], logs, errors])[None, :]
        tail = np.exp(logs[[functional]])
        found = LogBounds(row[:, 0], np.empty((1, 20)), row).best(functional, tail)
        own = abs(found[better == B_ABOVE][0] / (gamma if better == B_ABOVE else 1.0 - gamma) - 1.0)
        assert own <= 1e-14  # the better one keeps its digits
        # neither is farther off than the better one's error and a rounding of 1
        assert abs(found[1][0] - gamma) <= 1e-15
        assert abs(found[0][0] - (1.0 - gamma)) <= 1e-15
