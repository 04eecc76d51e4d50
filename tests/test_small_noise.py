"""Noise so small that a step shows the record for certain or has its smallest loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from thorough import ALL

import pyengine as pe

LEVEL = 0.1
RUNS = [(0.01, 1.0 / 128.0, 700), (0.06, 0.25, 20), (0.08, 0.25, 20)]
HIDDEN = (0.08, 0.25, 20)
if ALL:  # convolutions of 700 such steps take 10 s to 40 s
    RUNS += [(noise, 1.0 / 128.0, 700) for noise in (0.0432, 0.06, 0.08)]
    HIDDEN = (0.05, 1.0 / 128.0, 700)


@pytest.mark.parametrize(("noise", "p", "steps"), RUNS)
def test_gamma_is_that_of_steps_without_the_record(noise: float, p: float, steps: int) -> None:
    found = pe.gamma_bound(pe.dp_sgd(noise, p, steps), LEVEL, bounds="estimated")
    # the record is in no step with probability (1 - p)^n, and then a level of 0.1 is all there is
    rest = (1.0 - LEVEL) * math.exp(steps * math.log1p(-p))
    assert found.value == pytest.approx(1.0 - rest, abs=1e-14)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower <= 1e-11
    proven = pe.gamma_bound(pe.dp_sgd(noise, p, steps), LEVEL, bounds=True)
    assert proven.lower <= 1.0 - rest <= proven.upper <= proven.lower + 1e-7
    assert pe.trade_off(pe.dp_sgd(noise, p, steps), LEVEL, adjacency="add") == pytest.approx(
        rest, rel=1e-11
    )


@pytest.mark.parametrize("adjacency", ["remove", "add_remove"])
def test_nothing_is_hidden_from_who_may_err_more_often(adjacency: str) -> None:
    mechanism = pe.dp_sgd(*HIDDEN)
    levels = np.array([LEVEL, 0.3])
    found = pe.gamma_bound(mechanism, levels, adjacency=adjacency, bounds="estimated")
    assert np.all(found.value == 1.0)
    assert np.all(found.lower > 1.0 - 1e-11)
    assert pe.gamma_bound(mechanism, LEVEL, adjacency=adjacency) == 1.0


def test_more_noise_agrees_with_the_engines() -> None:
    for noise, p, steps in ((0.08, 0.01, 3), (0.1, 0.2, 5), (0.14, 0.03, 2)):
        mechanism = pe.dp_sgd(noise, p, steps)
        for adjacency in ("add", "remove", "add_remove"):
            for level in (1e-6, 0.01, 0.2, 0.7):
                auto = pe.gamma_bound(mechanism, level, adjacency=adjacency)
                other = pe.gamma_bound(
                    mechanism, level, adjacency=adjacency, method="lattice", bounds=True
                )
                assert other.lower <= auto <= other.upper
