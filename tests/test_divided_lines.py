"""Rows of divided laws: few or rarely sampled steps, where one large loss decides."""

from __future__ import annotations

from pathlib import Path

import audit_divided as tool
import mpmath
import numpy as np
import pytest
from thorough import sampled

import pyengine as pe
from pyengine import reference
from pyengine.api import answers
from pyengine.caches import clear_cache
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.pairs import gaussian_rows, ordered_pair

# Noise, rate, steps, order, question, what it is asked, and how wide its bounds may be; the lattice
# proves 1e-7 to 1e-4 of these.
CLOSE = [
    (1.0, 1e-6, 100_000, "remove", "delta", 2.0, 3e-10),
    (1.0, 1e-3, 10, "remove", "delta", 1.0, 3e-10),
    (1.0, 1e-3, 10, "add", "gamma_bound", 1e-8, 3e-9),
    (0.5, 1e-4, 20, "remove", "epsilon", 1e-9, 3e-10),
    (0.3, 1e-5, 1000, "add", "trade_off", 1e-7, 1e-13),
    (0.667, 8.58e-6, 87_353, "add", "gamma_bound", 2.52e-9, 2e-8),
    (1.075, 1.03e-3, 11, "add", "gamma_bound", 6.98e-6, 2e-8),
    (0.7231, 2.428e-6, 79_510, "remove", "delta", 0.04537, 1e-7),
    # many small losses add up to the threshold as often as a large one does
    (3.069, 2.54e-4, 2811, "remove", "delta", 0.07152, 1e-9),
    (1.268, 7.528e-4, 10_902, "remove", "delta", 0.8672, 1e-9),
    # the loss that decides is so small beside 1 that no gap ends the law beyond it
    (2.8618, 2.1109e-4, 19_398, "remove", "delta", 0.21988, 1e-6),
    (1.988, 2.304e-4, 26_002, "remove", "delta", 0.6996, 1e-7),
]


@sampled(2)
@pytest.mark.parametrize("case", CLOSE, ids=lambda case: "-".join(map(str, case[:5])))
def test_few_large_losses_have_close_proofs(
    case: tuple[float, float, int, str, str, float, float],
) -> None:
    noise, rate, steps, order, name, x, wide = case
    run = pe.dp_sgd(noise, rate, steps)
    bounds, engines, proven = answers(name, run, [x], adjacency=order)
    assert proven[0]
    assert engines[0] == "certified"
    lower, upper = float(bounds.lower[0]), float(bounds.upper[0])
    assert 0.0 < upper - lower <= wide * upper
    # the convolution engine's sums of positive terms share no code with lines
    estimate = getattr(pe, name)(run, x, adjacency=order, bounds="estimated")
    assert estimate.lower <= upper
    assert lower <= estimate.upper


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "epsilon"),
    [(1.0, 1e-3, 10, 1.0), (0.5, 1e-4, 20, 2.0), (0.8, 2e-3, 6, 0.5)],
)
def test_bounds_hold_the_truth(noise: float, rate: float, steps: int, epsilon: float) -> None:
    run = pe.dp_sgd(noise, rate, steps)
    bounds = pe.delta(run, epsilon, adjacency="remove", bounds=True)
    truth = reference.delta(run, epsilon, adjacency="remove", digits=20)
    assert (
        0.0 < bounds.upper - bounds.lower < 1e-9 * bounds.upper
    )  # what the lattice does not reach
    assert bounds.lower <= float(truth) * (1.0 + 1e-15)
    assert float(truth) * (1.0 - 1e-15) <= bounds.upper


OTHERS = [
    pe.GaussianMixtureMechanism(1, [0, 1, 2], ["0.9998", "0.00015", "0.00005"]).composed(20),
    pe.dp_sgd(1.0, 1e-4, 50, group_size=2),
    pe.compose(pe.dp_sgd(0.6, 1e-5, 300), pe.dp_sgd(1.0, 1e-4, 20)),
]


@sampled(3)
@pytest.mark.parametrize("run", OTHERS, ids=["mixture", "group", "two kinds"])
def test_rows_of_other_steps_meet_the_lattice(run: pe.Mechanism) -> None:
    epsilon = np.array([0.1, 0.3, 2.0])
    lattice = pe.delta(run, epsilon, adjacency="remove", bounds=True, method="lattice")
    for i, each in enumerate(epsilon.tolist()):
        lower, value, upper = pe.delta(run, each, adjacency="remove", bounds=True)
        assert lower <= value <= upper
        assert max(lower, lattice.lower[i]) <= min(upper, lattice.upper[i])


def test_several_kinds_have_close_proofs() -> None:
    bounds, engines, proven = answers("delta", OTHERS[2], [0.3, 2.0], adjacency="remove")
    assert list(proven) == [True, True]
    assert list(engines) == ["certified", "certified"]
    assert ((bounds.upper - bounds.lower) < 1e-8 * bounds.upper).all()


TAPERS = [(x, y) for x in (-5.0, -0.4, -0.01, 0.0, 0.3, 1.5, 7.7, 20.0) for y in (0.0, 0.3, 1.0)]


def test_tapers_are_error_functions(tmp_path: Path) -> None:
    """The taper in the plane against mpmath, through a program of its own."""
    found = tool.tapers(TAPERS, tmp_path)
    with mpmath.workdps(40):
        for (x, y), (re, im, size, units) in zip(TAPERS, found, strict=True):
            truth = mpmath.erfc(mpmath.mpc(x, y)) / 2
            off = abs(mpmath.mpc(mpmath.mpf(re), mpmath.mpf(im)) - truth)
            assert off <= mpmath.mpf(units) * mpmath.mpf(2) ** -63 * mpmath.mpf(size)
            assert abs(truth) <= mpmath.mpf(size) * (1 + mpmath.mpf(2) ** -50)


def test_lines_are_kept_for_thresholds_beside_theirs() -> None:
    """Each took 0.1 to 0.5 s anew; bits do not depend on what was asked before."""
    mechanism = pe.dp_sgd(1.0, 1e-6, 100_000)
    asked = [2.0, 2.001, 1.999, 3.0]
    alone = []
    for epsilon in asked:
        clear_cache()
        alone.append(pe.delta(mechanism, epsilon, adjacency="remove", bounds=True))
    clear_cache()
    pair = ordered_pair(gaussian_rows(mechanism, "remove"), "remove")
    sizes = []
    for epsilon, found in zip(asked, alone, strict=True):
        assert pe.delta(mechanism, epsilon, adjacency="remove", bounds=True) == found
        sizes.append(GaussianSide(pair).prover().bytes())
    assert sizes[0] == sizes[1] == sizes[2] < sizes[3]


def test_no_divided_law_is_made_where_lines_leave_little() -> None:
    """It was made at each threshold, 0.2 s for γ(1e-9), and gained nothing."""
    mechanism = pe.dp_sgd(0.9, 0.001, 10_000)
    pair = ordered_pair(gaussian_rows(mechanism, "add"), "add")
    sizes = []
    for level in (1e-9, 1.001e-9, 1.002e-9):
        found = pe.gamma_bound(mechanism, level, bounds=True)
        assert found.upper - found.lower < 1e-9 * found.upper
        sizes.append(GaussianSide(pair).prover().bytes())
    assert sizes[0] == sizes[1] == sizes[2]
