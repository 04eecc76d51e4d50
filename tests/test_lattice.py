"""Lattice engine: brackets against published references, other engines and exact masses."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from comparing import compared, comparing, left_out
from drawing import log_uniform, mechanisms
from error_budget import check_near
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_mechanisms import Draw, plain, sgd
from thorough import ALL

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.caches import clear_cache
from pyengine.engines.lattice import LatticePair
from pyengine.engines.lattice import refine as lattice_search
from pyengine.engines.lattice.coarse_cumulants import DEEPEST
from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.plan import make_layout
from pyengine.engines.lattice.tilt_grid import STEP, TiltGrid
from pyengine.engines.lattice.uncomposed import reverse
from pyengine.errors import AccuracyError
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.composition import composition_law
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.laplace import LaplaceLaw

DATA = json.loads((Path(__file__).parent / "data" / "lattice_reference.json").read_text())
UNIT = 2.0**-52
COMMON = settings(
    max_examples=10 if ALL else 5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@contextlib.contextmanager
def few_points(most: int) -> Iterator[None]:
    """Lattices of at most so many points, so that what needs more is refused soon.

    Nothing is kept from before: where a lattice begins depends on what was asked.
    """
    clear_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice_search, "MOST_POINTS", most)
        patch.setattr(lattice_search, "FIRST_POINTS", most // 4)
        yield


def holds(bounds: pe.Bounds, truth: str, tolerance: float) -> bool:
    exact = mpmath.mpf(truth)
    width = bounds.upper - bounds.lower
    return bool(bounds.lower <= exact <= bounds.upper and width <= tolerance * bounds.upper)


@pytest.mark.parametrize("row", DATA["gamma"], ids=lambda row: f"{row['steps']}-{row['kappa']}")
def test_gamma_and_beta(row: dict[str, str]) -> None:
    mechanism = pe.dp_sgd(float(row["sigma"]), float(row["p"]), int(row["steps"]))
    given_ = {"adjacency": row["adjacency"], "method": "lattice", "bounds": True}
    assert holds(pe.gamma_bound(mechanism, float(row["kappa"]), **given_), row["gamma"], 1e-4)
    assert holds(pe.trade_off(mechanism, float(row["kappa"]), **given_), row["beta"], 1e-4)


@pytest.mark.parametrize("row", DATA["delta"], ids=lambda row: f"{row['steps']}-{row['epsilon']}")
def test_delta(row: dict[str, str]) -> None:
    mechanism = pe.dp_sgd(float(row["sigma"]), float(row["p"]), int(row["steps"]))
    given_ = {"adjacency": row["adjacency"], "method": "lattice", "bounds": True}
    bounds = pe.delta(mechanism, float(row["epsilon"]), **given_)
    assert holds(bounds, row["delta"], 1e-4)
    # and back: the bracket of ε holds what δ came from
    back = pe.epsilon(mechanism, float(row["delta"]), **given_)
    assert back.lower <= float(row["epsilon"]) + 1e-12
    assert back.upper >= float(row["epsilon"]) - 1e-12


@pytest.mark.parametrize("row", DATA["laplace"], ids=lambda row: f"{row['mu']}-{row['steps']}")
def test_laplace(row: dict[str, str]) -> None:
    mechanism = pe.LaplaceMechanism(1.0 / float(row["mu"])).composed(int(row["steps"]))
    delta = pe.delta(mechanism, float(row["c"]), method="lattice", bounds=True)
    assert holds(delta, row["delta"], 1e-4)
    gamma = pe.gamma_bound(mechanism, float(row["kappa"]), method="lattice", bounds=True)
    assert abs(gamma.value / float(row["gamma"]) - 1.0) < 1e-4
    # κ is a rounded double: γ of it differs from the table's in the last digits
    assert gamma.lower * (1.0 - 1e-14) <= float(row["gamma"]) <= gamma.upper * (1.0 + 1e-14)


def test_tolerance() -> None:
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    wide = pe.delta(mechanism, 1.0, method="lattice", bounds=True, tolerance=1e-2)
    narrow = pe.delta(mechanism, 1.0, method="lattice", bounds=True, tolerance=1e-6)
    assert narrow.upper - narrow.lower <= 1e-6 * narrow.upper
    assert wide.lower <= narrow.upper
    assert narrow.lower <= wide.upper
    assert wide.upper - wide.lower > narrow.upper - narrow.lower
    with (
        few_points(2**16),
        pytest.raises(pe.AccuracyError, match="lattice points, more than 65536"),
    ):
        pe.delta(mechanism, 1.0, method="lattice", tolerance=1e-9)
    with pytest.raises(ValueError, match="tolerance"):
        pe.delta(mechanism, 1.0, method="lattice", tolerance=0.0)


def test_far_tails() -> None:
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    for delta in (1e-30, 1e-100):
        bounds = pe.epsilon(mechanism, delta, method="lattice", bounds=True)
        assert bounds.lower <= pe.epsilon(mechanism, delta) <= bounds.upper
        there = pe.delta(mechanism, bounds.value, method="lattice", bounds=True)
        assert there.upper - there.lower <= 1e-4 * there.upper
        assert abs(there.value / delta - 1.0) < 1e-2


def runs(d: Draw) -> str:
    """Sampled steps, and plain ones beside them."""
    beside = f" + {plain(d, (0.5, 20), (1, 1))}"
    return sgd(d, (0.6, 10), (1e-3, 1), (1, 200)) + d.one_of("", beside)


ADJACENCY = st.sampled_from(["add", "remove", "add_remove"])


@comparing(0.9)
@settings(COMMON, max_examples=20)  # of five drawn none could be refused
@given(mechanisms(runs), ADJACENCY, log_uniform(1e-40, 0.99))
def test_brackets_hold_other_engines(mechanism: pe.Mechanism, adjacency: str, x: float) -> None:
    for question in (pe.gamma_bound, pe.epsilon):
        try:
            with few_points(2**19):
                bounds = question(mechanism, x, adjacency=adjacency, method="lattice", bounds=True)
            truth = question(mechanism, x, adjacency=adjacency, bounds=True)
        except pe.AccuracyError:
            left_out()
            continue
        compared()
        assert bounds.lower <= truth.upper
        assert truth.lower <= bounds.upper
        assert bounds.lower <= bounds.value <= bounds.upper
        assert bounds.upper - bounds.lower <= 1e-2 * bounds.upper


@comparing(0.9)
@settings(COMMON, max_examples=20)  # of five drawn none could be refused
@given(mechanisms(runs), ADJACENCY)
def test_arrays(mechanism: pe.Mechanism, adjacency: str) -> None:
    kappa = np.array([0.0, 1e-9, 1e-3, 0.2, 0.5, 0.8, 0.999, 1.0])
    given_ = {"adjacency": adjacency, "method": "lattice", "bounds": True, "tolerance": 1e-3}
    try:
        with few_points(2**19):
            gamma = pe.gamma_bound(mechanism, kappa, **given_)
            delta = pe.delta(mechanism, np.array([0.0, 0.3, 1.0]), **given_)
            one = pe.gamma_bound(mechanism, float(kappa[2]), **given_)
    except pe.AccuracyError:
        left_out()
        return
    compared()
    assert np.all((gamma.lower <= gamma.value) & (gamma.value <= gamma.upper))
    assert np.all(gamma.upper - gamma.lower <= 2e-3 * gamma.upper)
    assert np.all(gamma.upper[1:] >= gamma.lower[:-1])
    assert np.all(np.diff(gamma.value) >= -2e-3 * gamma.value[1:])
    assert np.all((delta.lower <= delta.value) & (delta.value <= delta.upper))
    assert np.all(delta.lower[1:] <= delta.upper[:-1])
    assert one.lower <= gamma.upper[2]
    assert gamma.lower[2] <= one.upper


def test_both_orders_cross() -> None:
    """Profiles of the subsampled Laplace mechanism cross at two steps; the hull bridges them."""
    mechanism = pe.LaplaceMechanism(1.0).poisson_sampled(0.3).composed(2)
    epsilon = np.linspace(0.0, 1.5, 16)
    add, remove, both = (
        pe.delta(mechanism, epsilon, adjacency=order, method="lattice", bounds=True)
        for order in ("add", "remove", "add_remove")
    )
    assert np.array_equal(both.upper[1:], np.maximum(add.upper, remove.upper)[1:])
    # at 0 both profiles are the total variation, so that both brackets hold it
    assert both.upper[0] == min(add.upper[0], remove.upper[0])
    assert both.lower[0] == max(add.lower[0], remove.lower[0])
    alpha = np.linspace(0.05, 0.95, 7)
    hull = pe.trade_off(mechanism, alpha, method="lattice", bounds=True)
    for order in ("add", "remove"):
        curve = pe.trade_off(mechanism, alpha, adjacency=order, method="lattice", bounds=True)
        assert np.all(hull.lower <= curve.upper)
    # conjugacy at every slope: β + e^c α >= 1 - δ(c), with equality where a line touches
    for c, d in zip(epsilon, both.upper, strict=True):
        assert np.all(hull.upper >= 1.0 - math.exp(c) * alpha - d)


def test_mass_at_infinite_loss() -> None:
    mechanism = pe.GenericMechanism(0.5, 1e-3).composed(20)
    far = pe.delta(mechanism, 50.0, method="lattice", bounds=True)
    assert far.lower <= -math.expm1(20 * math.log1p(-1e-3)) <= far.upper
    assert far.upper - far.lower < 1e-12
    assert pe.epsilon(mechanism, 1e-3, method="lattice") == math.inf
    nothing = pe.gamma_bound(mechanism, 0.0, method="lattice", bounds=True)
    assert nothing.lower <= -math.expm1(20 * math.log1p(-1e-3)) <= nothing.upper


def test_nothing_released() -> None:
    mechanism = pe.dp_sgd(1.0, 0.0, 10)
    assert pe.delta(mechanism, 0.0, method="lattice") == 0.0
    assert pe.gamma_bound(mechanism, 0.3, method="lattice") == 0.3
    assert pe.epsilon(mechanism, 0.0, method="lattice") == 0.0


LAWS = [
    GaussianLaw(0.7),
    LaplaceLaw(1.3),
    PoissonSampledLaw(GaussianLaw(0.8), 1e-3),
    PoissonSampledLaw(LaplaceLaw(0.8), 0.3),
    ReversedLaw(PoissonSampledLaw(GaussianLaw(2.0), 0.1)),
]


def test_no_rungs_where_lower_tails_are_below_all_doubles() -> None:
    """A mode far out may take over from all others between two tilts of the survey."""
    mechanism = pe.dp_sgd(1.45, 0.01194, 2) + pe.dp_sgd(1.131, 3.153e-7, 886_700)
    parts = composition_law(mechanism + pe.LaplaceMechanism(0.9571), "remove")
    rungs = TiltGrid(tuple(parts))
    assert -rungs.survey.table[0][0] > 1e4
    assert DEEPEST < STEP * (rungs.lower_rungs - 1) < 3.0 * DEEPEST


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("outer", [True, False])
def test_one_step_is_split_on_the_safe_side(law: StepLaw, outer: bool) -> None:
    """Total masses of the split pair and of tests lie on the side that the proofs need."""
    rungs = TiltGrid(((law, 1),))
    place = rungs.place(0, outer)
    layout = make_layout(rungs.division(0, outer), place, 0.01, 1e-4)
    composition = compose_on(rungs.parts, layout)
    (composed,) = composition.terms

    def total(part) -> float:  # type: ignore[no-untyped-def]
        index = part.first + part.shift + np.arange(part.mass.size)
        with np.errstate(over="ignore", invalid="ignore"):
            terms = part.mass * np.exp(part.log_scale - part.rate * index)
        return float(np.nansum(terms[part.mass > 1e-25]))

    spread = total(composed.spread) + (composition.lost[1] if outer else 0.0)
    check_near("lattice.spread", spread, 1.0)
    assert (total(composed.a) - 1.0) * (-1.0 if outer else 1.0) > -1e-9


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cells_are_a_partition(law: StepLaw) -> None:
    lowest, highest = (min(max(x, -8.0), 8.0) for x in law.support())
    for edges in (np.linspace(lowest - 1.0, highest + 1.0, 301), np.array([0.1])):
        cells = law.cells(edges)
        assert math.fsum(np.exp(cells.log_a)) == pytest.approx(1.0, abs=1e-12)
        assert math.fsum(np.exp(cells.log_b)) == pytest.approx(1.0, abs=1e-12)
        inner = np.isfinite(cells.log_a[1:-1])
        ratio = cells.log_b[1:-1][inner] - cells.log_a[1:-1][inner]
        slack = (2.0 * cells.error[1:-1] + cells.shift[1:] + cells.shift[:-1])[inner]
        assert np.all(ratio >= edges[:-1][inner] - slack)
        assert np.all(ratio <= edges[1:][inner] + slack)
        back = reverse(reverse(law)).cells(edges)
        assert np.array_equal(back.log_a, cells.log_a)


def test_normal_cells() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        shift = float(rng.choice([0.0, 1.25, 0.01, 20.0]))
        low = rng.normal() * 10.0 ** rng.uniform(-1.0, 1.4)
        z = np.array([low, low + 10.0 ** rng.uniform(-9.0, 1.0)])
        out = np.empty(3)
        lib.pe_normal_cells(
            2,
            ffi.from_buffer("double[]", z),
            shift,
            ffi.from_buffer("double[]", out, require_writable=True),
        )
        with mpmath.workdps(60):
            a, b = (mpmath.mpf(x) - mpmath.mpf(shift) for x in z)
            if a + b > 0:
                a, b = -b, -a
            truth = mpmath.log(mpmath.ncdf(b) - mpmath.ncdf(a))
            error = abs(float(mpmath.mpf(out[1]) - truth))
        assert error <= 2.0 * UNIT * (4.0 - out[1] + (np.abs(z).max() + shift) ** 2)


def test_pairs_are_reused() -> None:
    pair = LatticePair([(PoissonSampledLaw(GaussianLaw(1.0), 0.1), 10)])
    first = pair.profile(np.array([0.1, 0.5]))
    again = pair.profile(np.array([0.5, 0.1]))
    assert np.array_equal(first.lower, again.lower[::-1])
    assert np.array_equal(first.upper, again.upper[::-1])


def test_advised_tolerances_are_met() -> None:
    random, advised = np.random.default_rng(20261122), 0
    for _ in range(9):
        noise, p = float(10 ** random.uniform(-0.3, 0.6)), float(10 ** random.uniform(-5, -0.5))
        steps, epsilon = int(10 ** random.uniform(1, 3)), float(10 ** random.uniform(-1, 1))
        size = int(random.integers(1, 4))
        mechanism = pe.dp_sgd(noise, p, steps, group_size=size)
        asked = partial(pe.delta, mechanism, epsilon, adjacency="remove", method="lattice")
        with few_points(2**13):
            try:
                asked(tolerance=1e-6)
            except AccuracyError as error:
                found = re.search(r"tolerance=(\S+) would do", str(error))
                if found is None:
                    continue
                bounds = asked(tolerance=float(found[1]), bounds=True)
                assert bounds.upper - bounds.lower <= float(found[1]) * bounds.upper
                advised += 1
    assert advised >= 3
