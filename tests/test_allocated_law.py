"""The tabulated law of one epoch of random allocation against digits that share no code with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr
from truth import load

import pyengine as pe
from pyengine.engines.allocation import TabulatedEpoch
from pyengine.engines.rows import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.laws.allocation import AllocatedLaw

ONE_EPOCH = [row for row in load("random_allocation.json") if row["epochs"] == 1]


def row_of(case: dict[str, Any]) -> tuple[float, float]:
    """The answer at the level of rows, and its relative error."""
    law = AllocatedLaw(float(case["sigma"]), case["steps"])
    engine = TabulatedEpoch(law, case["adjacency"] == "remove")
    x = float(case["argument"])
    if case["question"] == "delta":
        row = engine.at(PROFILE, np.array([-x]))[0]
        return math.exp(row[2 + PROFILE]), row[ERRORS + PROFILE]
    if case["question"] == "epsilon":
        row = engine.solve(PROFILE, np.array([math.log(x)]))[0]
        return -row[0], row[ERRORS + PROFILE]
    row = engine.solve(A_ABOVE, np.array([math.log(x)]))[0]
    side = B_BELOW if case["question"] == "beta" else B_ABOVE
    return math.exp(row[2 + side]), row[ERRORS + side] + row[ERRORS + A_ABOVE]


@pytest.mark.parametrize("case", ONE_EPOCH)
def test_published_digits(case: dict[str, Any]) -> None:
    value, error = row_of(case)
    assert abs(value / float(case["value"]) - 1.0) <= min(error, 1e-12) + 4e-16


@pytest.mark.parametrize(("noise", "steps"), [(0.3, 2), (0.3, 5_000), (1.0, 77), (5.0, 100_000)])
def test_every_row_has_the_identities_of_its_functionals(noise: float, steps: int) -> None:
    law = AllocatedLaw(noise, steps)
    lowest, highest = law.support()
    for is_reversed in (False, True):
        engine = TabulatedEpoch(law, is_reversed)
        c = np.linspace(lowest, highest, 41)[1:-1] * (-1.0 if is_reversed else 1.0)
        rows = engine.at(PROFILE, c)
        logs = {f: rows[:, 2 + f] for f in (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE)}
        for below, above in ((A_BELOW, A_ABOVE), (B_BELOW, B_ABOVE)):
            assert np.abs(np.exp(logs[below]) + np.exp(logs[above]) - 1.0).max() < 1e-14
        # E_A(1 - e^{S-c})+ = A(S <= c) - e^-c B(S <= c), where that does not cancel
        other = logs[B_BELOW] - c - logs[A_BELOW]
        clear = other < -0.01
        assert clear.any()
        difference = logs[A_BELOW] + np.log(-np.expm1(np.minimum(other, -0.01)))
        assert np.abs(difference - logs[PROFILE])[clear].max() < 1e-10


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW, PROFILE])
def test_solve_and_at_agree(functional: int, is_reversed: bool) -> None:
    engine = TabulatedEpoch(AllocatedLaw(0.8, 300), is_reversed)
    target = -np.array([0.7, 2.0, 11.0, 69.0, 230.0, 600.0, 740.0])
    solved = engine.solve(functional, target)
    assert np.abs(solved[:, 2 + functional] / target - 1.0).max() < 1e-12
    assert np.array_equal(engine.at(functional, solved[:, 0]), solved)
    one = engine.one(functional, target[2], by_value=True)
    assert list(one) == list(solved[2])


def test_density_of_two_steps_against_one_integral() -> None:
    """Density of log((Y1 + Y2)/2) by a sum over the logarithm of the first share."""
    noise = 1.3
    mu = 1.0 / noise
    loss = np.linspace(-6.0, 8.0, 57)
    found = AllocatedLaw(noise, 2).log_density(loss)

    def log_lognormal(w: np.ndarray) -> np.ndarray:
        return -0.5 * ((w + mu * mu / 2) / mu) ** 2 - math.log(mu * math.sqrt(2 * math.pi))

    v = np.arange(-60.0, 60.0, 0.02)
    for x, log_density in zip(loss, found, strict=True):
        large = x + math.log(2.0) - np.logaddexp(0.0, -v)  # of sum e^large + e^(large - v) = 2 e^x
        terms = log_lognormal(large) + log_lognormal(large - v)
        assert abs(np.logaddexp.reduce(terms) + math.log(0.02) - log_density) < 1e-12


def test_far_right_tail_is_one_large_share() -> None:
    """Q(S > K) lies between t Q(Y > K) less the pairs, and the same for what the others add."""
    noise, steps = 0.5, 50
    mu = 1.0 / noise
    engine = TabulatedEpoch(AllocatedLaw(noise, steps), False)
    loss = 20.0
    z = (loss + math.log(steps) + mu * mu / 2) / mu
    lower = math.log(steps) + log_ndtr(-z)
    found = engine.at(A_ABOVE, np.array([loss]))[0, 2 + A_ABOVE]
    assert lower < found < lower + 1e-3


def test_what_has_no_table_is_refused() -> None:
    for law in (AllocatedLaw(0.01, 10), AllocatedLaw(1.0, 2**25)):
        assert not law.is_feasible
        with pytest.raises(pe.AccuracyError, match="method='reference'"):
            law.log_density([0.0])
