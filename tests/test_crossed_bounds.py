"""Bounds on the wrong sides of each other: one of them is wrong, and neither may be returned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine._support.caches import clear_cache
from pyengine.engines import equal_steps
from pyengine.engines.answers import Answer, Questions, names
from pyengine.engines.certified import CertifiedPair
from pyengine.engines.equal_steps import FEW, EqualQuestions, run_settings
from pyengine.engines.functionals import A_ABOVE, B_ABOVE, B_BELOW, PROFILE, WIDTH
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.hull import _clip
from pyengine.engines.plan import FloatPlan
from pyengine.engines.row_bounds import LogBounds

RUN = pe.dp_sgd(1.1, 0.03, 57)
X = {"trade_off": 0.2, "gamma_bound": 1e-3, "delta": 0.4, "epsilon": 1e-5}


def _swapped(found: LogBounds) -> LogBounds:
    """Rows whose lower bounds are 1e-3 above the upper ones."""
    table = found._table.copy()
    table[:, 0::4] += 1e-3
    table[:, 2::4] *= math.exp(1e-3)
    return LogBounds(found.c, table)


@pytest.mark.parametrize("name", list(X))
def test_crossed_rows_are_left_to_the_next_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lower bound of a row above its upper one once passed for a narrow answer."""
    rows = GaussianSide.rows
    monkeypatch.setattr(
        GaussianSide, "rows", lambda self, functional, c: _swapped(rows(self, functional, c))
    )
    solved = GaussianSide.solved
    monkeypatch.setattr(
        GaussianSide, "solved", lambda self, functional, x: _swapped(solved(self, functional, x))
    )
    asked = {"adjacency": "add", "method": "certified", "bounds": True}
    found = getattr(pe, name)(RUN, [X[name]] * (FEW + 1), **asked)  # of fewer each is a float
    monkeypatch.undo()
    sure = getattr(pe, name)(RUN, X[name], **asked)
    assert found.lower[0] <= sure.value <= found.upper[0]
    assert found.upper[0] - found.lower[0] > 1e-7 * sure.value  # the lattice's


@pytest.mark.parametrize("name", list(X))
def test_crossed_rows_of_floats_are_left_to_the_next_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = getattr(pe, name)(RUN, X[name], adjacency="add", method="certified", bounds=True)

    def inwards(**how: Any) -> Any:
        plan = run_settings(**how)
        plan.slack = -1e-3  # which moves all bounds of rows over each other
        return plan

    monkeypatch.setattr(equal_steps, "run_settings", inwards)
    clear_cache()
    asked, others = [], EqualQuestions.others

    def noted(self: EqualQuestions, name: str = "") -> Questions:
        asked.append(self)
        return others(self, name)

    monkeypatch.setattr(EqualQuestions, "others", noted)
    found = getattr(pe, name)(RUN, X[name], adjacency="add", method="certified", bounds=True)
    clear_cache()
    assert asked
    assert found.lower <= first.value <= found.upper


@pytest.mark.parametrize(("lower", "upper"), [(0.3, 0.2), (math.nan, 0.2), (0.1, math.nan)])
@pytest.mark.parametrize("argument", [0.4, [0.4, 0.5]])
def test_crossed_bounds_of_any_engine_are_refused(
    lower: float, upper: float, argument: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the engine is, and whether they are proven or estimated."""

    def profile(_: CertifiedPair, epsilon: np.ndarray) -> Answer:
        low, high = np.full(epsilon.size, 0.1), np.full(epsilon.size, 0.2)
        low[-1], high[-1] = lower, upper
        return Answer(low.copy(), low, high, names("certified", low.size), True)

    monkeypatch.setattr(CertifiedPair, "profile", profile)
    monkeypatch.setattr(FloatPlan, "one", lambda *_: None)
    with pytest.raises(pe.AccuracyError, match="one of them is wrong"):
        pe.delta(pe.dp_sgd(1.0, 0.01, 123), argument, adjacency="add", bounds=True)  # not kept yet


def test_crossed_bounds_are_not_clipped_in_a_hull() -> None:
    """A hull moved values between bounds, and lower bounds of estimates down to these."""

    def answer(low: float, high: float, proven: bool) -> Answer:
        low_, high_ = np.array([low]), np.array([high])
        return Answer(low_.copy(), low_, high_, names("certified", 1), proven)

    alpha = np.array([0.1])
    with pytest.raises(pe.AccuracyError, match="one of them is wrong"):
        _clip(alpha, answer(0.5, 0.4, True), answer(0.5, 0.6, True))
    with pytest.raises(pe.AccuracyError, match="one of them is wrong"):
        _clip(alpha, answer(0.4, 0.5, True), answer(0.6, 0.5, True))
    _clip(alpha, answer(0.4, 0.4, True), answer(0.6, 0.6, True))


def test_unknown_rows_bound_nothing() -> None:
    """An upper bound that is no number once became the smallest double."""
    found = LogBounds.of_rows(np.zeros(1), np.full((1, WIDTH), math.nan))
    for which in (A_ABOVE, B_ABOVE, B_BELOW, PROFILE):
        low, high = found.values(which)
        assert (low[0], high[0]) == (0.0, 1.0)
