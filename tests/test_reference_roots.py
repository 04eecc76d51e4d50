"""Brackets of zeros of functions whose values are balls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("flint")
from flint import arb

from pyengine.reference.balls import precision
from pyengine.reference.roots import bracket

FUNCTIONS: dict[str, tuple[Callable[[arb], arb], int]] = {
    "tail": (lambda x: arb("1e-9") - x.erfc(), 15),
    "root": (lambda x: x**3 - 2, 5),
    "logarithm": (lambda x: (x + 1).log() - 1, 50),
    "kink": (lambda x: (x - 1 if x < 1 else 100 * (x - 1)) + arb("1e-3"), 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("digits", [10, 33])
def test_both_ends_close_in(name: str, digits: int) -> None:
    function, high = FUNCTIONS[name]
    asked = []

    def gap(x: arb) -> arb:
        asked.append(x)
        return function(x)

    with precision(220):
        ends = bracket(gap, arb(0), arb(high), digits)
        assert ends is not None
        low, high = ends
        assert function(low) < 0 < function(high)
        assert high - low < low * arb(10) ** -digits
        assert len(asked) < 35
        asked.clear()
        assert bracket(gap, arb(0), arb(FUNCTIONS[name][1]), digits, low) is not None
        assert len(asked) < 8


def test_a_zero_that_cannot_be_told() -> None:
    with precision(60):
        wide = arb(0, 1e-12)
        ends = bracket(lambda x: x - 1 + wide, arb(0), arb(2), 9)
        assert ends is not None
        assert ends[0] < 1 < ends[1]
        assert bracket(lambda x: x - 1 + wide, arb(0), arb(2), 14) is None
        assert bracket(lambda _: arb("nan"), arb(0), arb(2), 9) is None
