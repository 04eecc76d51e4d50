"""An error that an engine does not know stays unknown on its way from rows to answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyengine._core import lib
from pyengine.engines.functionals import A_ABOVE, B_ABOVE, B_BELOW, ERRORS, PROFILE, WIDTH, array


def row(**known: tuple[float, float]) -> np.ndarray:
    """A row at c = 0 with logs and relative errors of the functionals named."""
    names = {"a_above": A_ABOVE, "b_above": B_ABOVE, "b_below": B_BELOW, "profile": PROFILE}
    out = np.zeros((1, WIDTH))
    out[0, 2:] = math.nan
    for name, (log, error) in known.items():
        out[0, 2 + names[name]], out[0, ERRORS + names[name]] = log, error
    return out


@pytest.mark.parametrize("unknown", [math.inf, math.nan])
@pytest.mark.parametrize("log", [-0.5, -800.0])
def test_profiles(unknown: float, log: float) -> None:
    out = np.empty(3)
    lib.pe_profile_answers(1, array(row(profile=(log, unknown))), array(out, writable=True))
    value, lower, upper = out
    assert value == pytest.approx(math.exp(log))
    assert lower <= 0.0
    assert upper >= 1.0


@pytest.mark.parametrize("unknown", [math.inf, math.nan])
def test_a_tail_below_all_doubles_is_known_by_the_other_one(unknown: float) -> None:
    """β is 0 as a double, with no error of its own; γ is known to 1e-12, and so is β."""
    out = np.empty(6)
    rows = row(a_above=(math.log(0.3), 0.0), b_below=(-800.0, unknown), b_above=(0.0, 1e-12))
    lib.pe_trade_off_answers(1, array(np.array([0.3])), array(rows), array(out, writable=True))
    value, lower, upper = out[:3]
    assert value == 0.0
    assert lower <= 0.0
    assert 1e-12 <= upper < 2e-12


def test_tails_of_which_nothing_is_known() -> None:
    out = np.empty(6)
    rows = row(a_above=(math.log(0.3), 0.0), b_below=(-2.0, math.inf), b_above=(-0.1454, math.nan))
    lib.pe_trade_off_answers(1, array(np.array([0.3])), array(rows), array(out, writable=True))
    assert out[1] <= 0.0
    assert out[2] >= 1.0
    assert out[4] <= 0.0
    assert out[5] >= 1.0
