"""Levels whose threshold lies where nearly all of the law is: a root that was missed is no answer.

With few steps and a small sampling probability the loss is next to its smallest value most of the
time.  A contour that does not reach the threshold there once answered with the end of its reach.
"""

from __future__ import annotations

import numpy as np
import pytest
from thorough import ALL, some

import pyengine as pe
from pyengine.api import answers

KAPPA = np.array([0.2, 0.4999999, 0.5000001, 0.7])


RUNS = [(0.3, 0.001, 10), (0.5, 0.015625, 10), (0.7, 0.01, 5)]


@pytest.mark.parametrize(
    ("noise", "p", "steps", "adjacency"),
    [(*run, order) for order in ("add", "remove") for run in RUNS]
    + [(*run, "add_remove") for run in some(RUNS, 3)],
)
def test_no_root_is_missed(noise: float, p: float, steps: int, adjacency: str) -> None:
    run = pe.dp_sgd(noise, p, steps)
    gamma, *_ = answers("gamma_bound", run, KAPPA, adjacency=adjacency, proven=False)
    beta, *_ = answers("trade_off", run, KAPPA, adjacency=adjacency, proven=False)
    distance = pe.delta(run, 0.0)  # total variation: of the largest gain of any test
    assert np.all(gamma.value <= KAPPA + distance * (1 + 1e-9))
    assert np.all(gamma.value >= KAPPA)
    np.testing.assert_allclose(gamma.value + beta.value, 1.0, rtol=1e-12)
    assert np.all(gamma.upper - gamma.lower < 1e-9)
    if not ALL and noise == 0.3:
        return  # whose proof takes ten seconds
    proven, _, certain = answers("gamma_bound", run, KAPPA, adjacency=adjacency)
    assert np.all((proven.lower <= gamma.upper) & (gamma.lower <= proven.upper))
    assert np.mean(certain) >= 0.5
