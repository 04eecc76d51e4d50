"""Proven rows of epochs of random allocation: laws of losses of means of likelihood ratios.

Truths are closed forms of plain Gaussian steps, which are epochs of one step, integrals over few
steps, and the tabulated density, whose code is other.
"""

from __future__ import annotations

from fractions import Fraction

import audit_epochs as tool
import numpy as np
import pytest
import sector_terms
from audit_sector import VALUES, rows_of
from error_terms import tally

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.api import answers
from pyengine.engines.certified_epochs import EpochSide
from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import EpochLaws, _composed_epochs, _law_of
from pyengine.laws.allocation import AllocatedLaw
from pyengine.laws.gaussian import GaussianLaw


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_random_epochs_hold_their_estimates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = tally(tool.compared(tool.drawn(rng, 200), rng))
    assert found.asked > 40
    assert found.outside == 0
    assert found.median < 1e-10


@pytest.mark.parametrize("noise", [(1.0, 1.0), (0.4, 2.0), (7.0, 3.0), (0.9, 0.9, 0.9)])
def test_plain_steps_have_their_closed_forms(noise: tuple[float, ...]) -> None:
    law = _law_of(_composed_epochs, tuple(((x, 0.0), 1, 1) for x in noise), -230.0)
    variance = float(sum(1 / Fraction(x) ** 2 for x in noise))
    ends = ffi.new("double[2]")
    lib.pe_sector_ends(law, ends)
    c = np.linspace(ends[0] + 1e-3, ends[1] - 1e-3, 60)
    for backward in (False, True):
        rows = rows_of(law, backward, c)
        truth = np.array([sector_terms.normal_row(variance, float(x)) for x in c])
        found = tally([(rows[:, VALUES], rows[:, ERRORS:] + 1e-15 * (1 - truth), truth)])
        assert found.asked > 150
        assert found.outside == 0
        assert found.median < 1e-11


QUESTIONS = [
    ("delta", (1.0, 16, 1), 0.5),
    ("epsilon", (1.0, 16, 3), 1e-6),
    ("gamma_bound", (0.5, 50, 2), 1e-3),
    ("trade_off", (2.0, 100, 10), 0.3),
    ("epsilon", (5.0, 30, 20), 1e-9),
]


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize(("question", "run", "x"), QUESTIONS)
def test_bounds_are_close_and_hold_the_estimate(
    question: str, run: tuple[float, int, int], x: float, adjacency: str
) -> None:
    mechanism = pe.dp_sgd_allocated(*run)
    bounds, engines, proven = answers(question, mechanism, [x], adjacency=adjacency)
    assert list(proven) == [True]
    assert list(engines) == ["certified"]
    assert bounds.upper[0] - bounds.lower[0] < 3e-9 * bounds.upper[0]
    guess = getattr(pe, question)(mechanism, x, adjacency=adjacency, bounds="estimated")
    assert bounds.lower[0] <= guess.upper * (1.0 + 1e-12)
    assert guess.lower * (1.0 - 1e-12) <= bounds.upper[0]
    alone = getattr(pe, question)(mechanism, x, adjacency=adjacency, bounds=True)
    assert (alone.lower, alone.upper) == (bounds.lower[0], bounds.upper[0])


# 14 digits of `pyengine.reference`, which inverts transforms in ball arithmetic
TRUTHS = [
    ("delta", (1.0, 2, 1), 0.5, "remove", "0.149177523135520172"),
    ("delta", (1.0, 16, 1), 0.5, "add", "0.0070584184083366036"),
    ("gamma_bound", (1.0, 16, 1), 1e-3, "remove", "0.00254991381512916538"),
    ("epsilon", (2.0, 100, 10), 1e-6, "add", "0.69111824555890454"),
    ("delta", (1.0, 16, 3), 1.0, "remove", "0.014162638424240349"),
    ("gamma_bound", (1.5, 30, 2), 1e-4, "add", "0.000216861939692601"),
]


@pytest.mark.parametrize(("question", "run", "x", "adjacency", "truth"), TRUTHS)
def test_bounds_hold_the_reference(
    question: str, run: tuple[float, int, int], x: float, adjacency: str, truth: str
) -> None:
    found = getattr(pe, question)(pe.dp_sgd_allocated(*run), x, adjacency=adjacency, bounds=True)
    assert found.lower < float(truth) < found.upper
    assert found.upper - found.lower < 1e-10 * found.upper


def test_epochs_of_several_kinds_beside_plain_steps() -> None:
    run = pe.compose(
        pe.dp_sgd_allocated(1.0, 16, 2), pe.dp_sgd_allocated(2.0, 30, 1), pe.dp_sgd(3.0, 1.0, 2)
    )
    for adjacency in ("add", "remove"):
        bounds, engines, proven = answers("delta", run, [0.2, 1.0], adjacency=adjacency)
        assert list(proven) == [True, True]
        assert set(engines) == {"certified"}
        assert (bounds.upper - bounds.lower <= 1e-9 * bounds.upper).all()
        wide, *_ = answers("delta", run, [0.2, 1.0], adjacency=adjacency, method="lattice")
        assert (wide.lower <= bounds.upper).all()
        assert (bounds.lower <= wide.upper).all()


@pytest.mark.parametrize("noise", [1e-200, 1e8, 1e150, 1e300])
def test_plain_steps_of_extreme_noise_are_refused_or_proven(noise: float) -> None:
    side = EpochSide.of([(AllocatedLaw(1.0, 4), 1), (GaussianLaw(noise, low=0.0), 1)])
    assert side is not None
    table = side.table(4, np.array([-0.5]))  # the profile at 0.5
    alone = EpochSide.of([(AllocatedLaw(1.0, 4), 1)])
    assert alone is not None
    least = alone.table(4, np.array([-0.5]))[0]
    if table[0, ERRORS + 4] < 1.0:
        assert table[0, 6] >= least[6] - table[0, ERRORS + 4] - least[ERRORS + 4]


def test_noise_that_is_no_double() -> None:
    third = pe.epsilon(
        pe.GaussianMechanism("1/3").randomly_allocated(8), 1e-5, adjacency="remove", bounds=True
    )
    near = pe.epsilon(pe.dp_sgd_allocated(1.0 / 3.0, 8, 1), 1e-5, adjacency="remove", bounds=True)
    assert abs(third.value - near.value) < 1e-14 * near.value
    assert third.upper - third.lower < 1e-11 * third.upper


def test_more_steps_than_are_served_are_left_to_the_lattice() -> None:
    assert EpochSide.of([(AllocatedLaw(1.0, 20_000), 1)]) is None
    assert EpochSide.of([(GaussianLaw(1.0, low=0.0), 3)]) is None  # which closed forms answer
    assert not EpochLaws((((1.0, 0.0), 100, 200),), False).serves
    run = pe.dp_sgd_allocated(0.15, 1000, 1)
    _, engines, proven = answers("delta", run, [0.5], adjacency="add")
    assert list(engines) == ["lattice"]
    assert list(proven) == [True]


def test_values_far_out_have_the_deeper_law() -> None:
    run = pe.dp_sgd_allocated(1.0, 4, 2)
    bounds, engines, _ = answers("delta", run, [23.0], adjacency="remove")
    assert list(engines) == ["certified"]
    assert 0.0 < bounds.upper[0] < 1e-45
    assert bounds.upper[0] - bounds.lower[0] < 1e-9 * bounds.upper[0]
