"""The second contour that judges bounds, against closed forms, and what its tally calls outside."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import mpmath
import numpy as np
import pytest

import pyengine as pe

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import second_contour as tool
from bounds_tally import Tally, Truth


@pytest.mark.parametrize("lam", [1.7, -0.6])
def test_plain_steps_have_a_closed_form(lam: float) -> None:
    """Three steps of noise 2 and five of noise 3, on a line of either side."""
    kinds = tool.Kinds([2.0, 3.0], [1.0, 1.0], [3, 5])
    contour = tool.Contour(tool.compiled(), kinds, lam)
    mean, deviation, _ = contour.moments()
    c = mean + deviation * np.array([-1.5, 0.0, 1.5])
    logs, off = contour.logs(c)
    assert off <= 1e-15
    with mpmath.workdps(30):
        mu = mpmath.sqrt(mpmath.mpf(3) / 4 + mpmath.mpf(5) / 9)
        sign = 1 if lam > 1.0 else -1
        for x, row in zip(c, logs, strict=True):
            z = mpmath.mpf(float(x)) / mu + mu / 2  # the loss under A is N(-mu^2/2, mu^2)
            p, q = mpmath.ncdf(-sign * z), mpmath.ncdf(-sign * (z - mu))
            h = q - p * mpmath.exp(float(x)) if sign > 0 else p - q * mpmath.exp(-float(x))
            for found, truth in zip(row, (p, q, h), strict=True):
                assert abs(float(found) - float(mpmath.log(truth))) <= 4e-15


def test_truths_of_both_orders_hold() -> None:
    """Questions under all adjacencies are within bounds, and nothing is estimated."""
    kinds = tool.Kinds([1.3], [0.02], [400])
    library = tool.compiled()
    found = tool.asked_on(lambda lam: tool.Contour(library, kinds, lam), np.random.default_rng(6))
    assert {one.adjacency for one in found} >= {"add", "remove"}
    tally = Tally()
    tally.judge(kinds.mechanism(), found, "here")
    assert set(tally.verdicts) == {"within"}


def test_what_is_beside_its_bounds_is_outside(capsys: pytest.CaptureFixture[str]) -> None:
    run = pe.dp_sgd(1.0, 1.0, 1)
    truth = Decimal(pe.delta(run, 1.0, adjacency="add"))
    tally = Tally()
    tally.judge(run, [Truth("delta", 1.0, "add", truth, 0.0)], "here")
    tally.judge(run, [Truth("delta", 1.0, "add", truth * (1 + Decimal("1e-9")), 0.0)], "here")
    assert tally.verdicts == {"within": 1, "OUTSIDE": 1}
    assert "pe.delta(mechanism, 1.0, adjacency='add', bounds=True)" in capsys.readouterr().out
