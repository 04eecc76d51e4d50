"""Questions that go to a second engine where the first one refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.answers import Answer, ErrorCurve
from pyengine.engines.handover import Handover


class Fixed:
    """Answers every question with one number, or refuses it."""

    def __init__(self, value: float | None, words: str = "") -> None:
        self._value, self._words = value, words

    def trade_off(self, alpha: Any) -> ErrorCurve:
        return ErrorCurve(self.profile(alpha), self.profile(alpha), np.zeros(alpha.size))

    def profile(self, epsilon: Any) -> Answer:
        if self._value is None:
            raise pe.AccuracyError(self._words)
        return Answer.exact(np.full(epsilon.size, self._value))

    def epsilon(self, delta: Any) -> Answer:
        return self.profile(delta)


def asked(pair: Handover) -> list[float]:
    x = np.array([0.5])
    curve = pair.trade_off(x)
    return [float(y.value[0]) for y in (curve.beta, pair.profile(x), pair.epsilon(x))]


def test_the_second_engine_answers_what_the_first_refuses() -> None:
    def never() -> Fixed:
        raise AssertionError("the second engine was made")

    assert asked(Handover(lambda: Fixed(0.25), never)) == [0.25] * 3
    assert asked(Handover(lambda: Fixed(None), lambda: Fixed(0.75))) == [0.75] * 3


def test_the_first_refusal_is_raised_where_both_refuse() -> None:
    pair = Handover(lambda: Fixed(None, "of the first"), lambda: Fixed(None, "of the second"))
    with pytest.raises(pe.AccuracyError, match="of the first"):
        pair.profile(np.array([0.5]))


def test_bounds_of_a_gaussian_step_beside_a_loud_one() -> None:
    loud = pe.GaussianMechanism(0.024033707745678926).poisson_sampled(0.00023)
    mechanism = pe.compose(loud, pe.GaussianMechanism(1.3640891771923522))
    found = pe.trade_off(mechanism, 0.9995, adjacency="remove", bounds=True)
    assert 0.0 < found.lower <= found.value <= found.upper <= (1 + 1e-4) * found.lower
    assert found.lower <= pe.trade_off(mechanism, 0.9995, adjacency="remove") <= found.upper


def test_values_of_gaussian_steps_below_all_doubles() -> None:
    loud = pe.GaussianMechanism(0.024033707745678926).poisson_sampled(0.00023)
    mechanism = pe.compose(loud, pe.GaussianMechanism(1.3640891771923522))
    level = 0.9999916120666209
    # the truth is 6.4e-412
    assert pe.trade_off(mechanism, level, adjacency="remove") == 0.0
    found = pe.trade_off(mechanism, level, adjacency="remove", bounds=True)
    assert found.lower == 0.0
    assert found.upper <= 1e-300
