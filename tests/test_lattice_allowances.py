"""Allowances for rounding in sums of tails: exact arithmetic stays within, and none is left out.

Brackets of whole questions are millions of roundings wide and say nothing about a few of them.
Here positions and sums are held against exact arithmetic, and where no input makes all roundings go
one way the unit of rounding itself is made large: each allowance then shows in the bracket.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.engines.lattice import lower_tails
from pyengine.engines.lattice.coarse_cumulants import survey
from pyengine.engines.lattice.compose import PlaceComposition, compose_on
from pyengine.engines.lattice.discretise import doubles
from pyengine.engines.lattice.large_steps import Partition, Term
from pyengine.engines.lattice.lower_tails import LowerTails
from pyengine.engines.lattice.plan import Place, make_layout
from pyengine.engines.lattice.tail_sums import SumRange
from pyengine.laws.base import PoissonSampledLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.numerics.rounding import UNIT

TILT = -2.0
WIDE = 3e-2


@pytest.fixture(scope="module")
def composed() -> PlaceComposition:
    parts = ((PoissonSampledLaw(GaussianLaw(1.0), 0.1), 30),)
    found = survey(parts, 60)
    place = Place(TILT, True, (-3.0, -1.0), -8.0)
    partition = Partition(parts, (Term(0.0, parts, found, TILT),))
    return compose_on(parts, make_layout(partition, place, 0.01, 1e-3, 2**12))


def test_positions(composed: PlaceComposition) -> None:
    part, plan = SumRange(composed), composed.terms[0].plan
    centre, h = Fraction(plan.centre), Fraction(part.h)
    middle = centre + h * Fraction(part.middle)
    assert abs(Fraction(part.loss) - middle) <= part.position_error + UNIT * abs(part.loss)
    c = np.random.default_rng(3).uniform(-4.0, 1.0, 400)
    for x, found in zip(c.tolist(), part.relative(c).tolist(), strict=True):
        off = abs(Fraction(found) - (Fraction(x) - middle))
        assert off <= part.position_error + 2.0 * UNIT * abs(found)
    assert 0.0 < part.position_error < 64.0 * UNIT


@pytest.mark.parametrize("which", ["a", "b", "spread"])
def test_sums_are_within_their_error(composed: PlaceComposition, which: str) -> None:
    part, sums = SumRange(composed), getattr(composed.terms[0], which)
    log_q = min(sums.rate, 0.0)
    found = part.upward(sums, log_q, part.first, part.last)
    factor = part.factor(sums, 0.0, part.index + sums.shift)
    error = part.error(sums, log_q)
    assert error < 1e-11
    with mpmath.workdps(40):
        q = mpmath.exp(mpmath.mpf(log_q))
        rate, log_scale = mpmath.mpf(sums.rate), mpmath.mpf(sums.log_scale)
        for at in np.linspace(0, found.size - 1, 7).astype(int).tolist():
            last = part.first + at
            masses = sums.mass[: max(last - sums.first + 1, 0)].tolist()
            truth = mpmath.mpf(0)
            for mass in masses:
                truth = truth * q + mpmath.mpf(mass)
            truth *= q ** max(last - sums.first + 1 - len(masses), 0)
            scale = mpmath.exp(log_scale - rate * (last + sums.shift))
            if truth > 0:
                value = mpmath.mpf(float(found[at])) * mpmath.mpf(float(factor[at]))
                assert abs(value / (truth * scale) - 1) <= error


def levels(tails: LowerTails) -> np.ndarray:
    """Levels of the first law from below the best event on to half of the range."""
    inside = tails.a[(tails.a > 0.0)] * math.exp(tails.base)
    return np.exp(np.linspace(math.log(inside[0]) - 2.0, math.log(inside[-1]) - 1.0, 12))


def test_an_error_of_positions_widens_the_second_error(
    composed: PlaceComposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    tails = LowerTails(composed)
    mass = levels(tails)
    narrow = tails.second_from_first(mass)
    monkeypatch.setattr(SumRange, "position_error", 1e-3)
    wide = tails.second_from_first(mass)
    some = narrow.lower > 0.0
    assert some.any()
    assert np.all(wide.lower[some] <= narrow.lower[some] * (1.0 - 3.999e-3))
    some = np.isfinite(narrow.upper)
    assert some.any()
    assert np.all(wide.upper[some] >= narrow.upper[some] * (1.0 + 3.999e-3))


def test_every_rounding_widens_the_first_error(
    composed: PlaceComposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    tails = LowerTails(composed)
    below = np.exp(np.linspace(-6.0, -0.5, 8)) * tails.b[tails._best] * math.exp(tails.base_b)
    narrow = tails.first_from_second(below)
    unit = 2.0**-34
    monkeypatch.setattr(lower_tails, "UNIT", unit)
    wide = tails.first_from_second(below)
    # of the level, of the chord to the best event, and of the scale of the result
    least = 16.0 * (1.0 + abs(tails.base_b)) + 16.0 + 64.0 + 8.0 * abs(tails.base)
    assert np.all(narrow.lower > 0.0)
    assert np.all(wide.lower <= narrow.lower * (1.0 - 0.99 * unit * least))
    least = 16.0 + 64.0 + 8.0 * abs(tails.base)
    assert np.all(wide.upper > narrow.upper)
    assert np.all(wide.upper <= narrow.upper * (1.0 + 4.0 * unit * (least + abs(tails.base_b))))


def test_brackets_of_all_questions(composed: PlaceComposition) -> None:
    """Against the contours, which share nothing with a lattice but the law."""
    tails, run = LowerTails(composed), pe.dp_sgd(1.0, 0.1, 30)
    c = np.linspace(-1.5, -1.05, 37)
    truth = pe.delta(run, -c, adjacency="add", bounds=True)
    profile = tails.at(c)
    assert np.all(profile.lower <= truth.upper)
    assert np.all(truth.lower <= profile.upper)
    assert np.all(profile.upper - profile.lower <= WIDE * truth.value)
    # of the test beside it: at least A(E) - e^-c B(E) of its own masses
    assert np.all(profile.a - np.exp(-c) * profile.b <= truth.upper)
    assert np.all(profile.a - np.exp(-c) * profile.b >= 0.9 * truth.value)
    epsilon = tails.epsilon(truth.value)
    assert np.all(epsilon.lower <= -c + 1e-12)
    assert np.all(-c - 1e-12 <= epsilon.upper)
    assert np.all(epsilon.upper - epsilon.lower <= WIDE)
    mass = levels(tails)[4:-1]
    for found, other in (
        (tails.second_from_first(mass), pe.trade_off(run, 1.0 - mass, adjacency="add")),
        (tails.first_from_second(mass), pe.gamma_bound(run, mass, adjacency="remove")),
    ):
        assert np.all(found.lower <= other * (1.0 + 1e-8))  # 1 - mass is rounded
        assert np.all(other * (1.0 - 1e-8) <= found.upper)
        assert np.all(found.upper - found.lower <= WIDE * other)


def test_every_rounding_widens_a_profile(
    composed: PlaceComposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    tails, unit = LowerTails(composed), 2.0**-34
    part = tails._slice
    c = np.linspace(-1.5, -1.05, 9)
    position = part.relative(c)
    moved = 0.99 * unit * 8.0 * (np.abs(position) + np.abs(c))
    narrow, left, right = (tails.at(x) for x in (c, c - moved, c + moved))
    monkeypatch.setattr(lower_tails, "UNIT", unit)
    wide = tails.at(c)
    # of the position, and of the scale of the result
    assert np.all(wide.upper >= right.upper * (1.0 + 0.99 * 16.0 * unit))
    # of the ratio of both laws at the best test as well
    ratio = (16.0 + 4.0 * np.abs(position)) * np.exp(-c) * narrow.b
    assert np.all(wide.lower <= left.lower * (1.0 - 7.9 * unit) - 0.98 * unit * ratio)
    assert np.all(wide.lower >= left.lower - 1e3 * unit)
    assert np.all(wide.a <= narrow.a - 7.9 * unit * (narrow.a - tails.lost[0]))
    assert np.all(wide.b >= narrow.b * (1.0 + 0.99 * unit * (64.0 + 8.0 * abs(tails.base_b))))
    monkeypatch.undo()
    monkeypatch.setattr(SumRange, "position_error", 1e-6)
    wide = tails.at(c)
    assert np.all(wide.upper >= narrow.upper * (1.0 + 1e-7))
    assert np.all(wide.lower <= narrow.lower * (1.0 - 1e-7))
    assert np.all(wide.b >= narrow.b * (1.0 + 3.99e-6))


def test_every_rounding_widens_an_inverse(
    composed: PlaceComposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    tails, unit = LowerTails(composed), 2.0**-34
    part = tails._slice
    c = np.linspace(-1.45, -1.1, 8)
    delta = tails.at(c).upper
    tiny = 0.99 * unit * 16.0 * (1.0 + abs(tails.base))
    narrow, less, more = (tails.epsilon(delta * factor) for factor in (1.0, 1.0 - tiny, 1.0 + tiny))
    # both upper bounds are of one chord
    assert np.allclose(narrow.upper, -c, rtol=0, atol=1e-12)
    assert np.all(narrow.upper - narrow.lower < WIDE)
    monkeypatch.setattr(lower_tails, "UNIT", unit)
    wide = tails.epsilon(delta)
    # of losses, of the level, and of the logarithm of a ratio
    doubt = unit * 16.0 * (abs(part.loss) + abs(part.offset[-1]))
    assert np.all(wide.upper >= less.upper + 0.99 * doubt)
    of_line = unit * (16.0 + 4.0 * np.abs(narrow.lower + part.loss))
    assert np.all(wide.lower <= more.lower - 0.99 * (doubt + of_line))
    assert np.all(wide.lower >= narrow.lower - 1e4 * unit)
    monkeypatch.undo()
    monkeypatch.setattr(SumRange, "position_error", 1e-6)
    wide = tails.epsilon(delta)
    assert np.all(wide.upper >= narrow.upper + 1.99e-6)
    assert np.all(wide.lower <= narrow.lower - 1.99e-6)


@pytest.mark.parametrize("outer", [True, False])
def test_a_cell_whose_edges_are_off(outer: bool) -> None:
    """Two atoms anywhere between the edges, also where these are off by more than the spacing."""
    rng = np.random.default_rng(20261128)
    for _ in range(400):
        h = 10.0 ** rng.uniform(-3.0, 0.5)
        off = h * 10.0 ** rng.uniform(-3.0, 0.6)
        losses = h * 3.0 + rng.uniform(-off, h + off, 2)  # points 3 and 4 are the edges
        if rng.random() < 0.5:
            losses[:] = h * 3.0 - off, h * 4.0 + off
        masses = 10.0 ** rng.uniform(-6.0, 0.0, 2)
        a, b = masses.sum(), (masses * np.exp(losses)).sum()
        spread, *others = (np.zeros(8) for _ in range(3))
        given = [np.array(x) for x in ([math.log(a)], [math.log(b)], [math.log(b / a)])]
        errors = [np.zeros(1), np.zeros(1), np.full(2, off)]
        names = ("log_a", "log_b", "log_ratio", "error", "ratio_error", "shift")
        cells = ffi.new(
            "pe_cells *", {n: doubles(x) for n, x in zip(names, given + errors, strict=True)}
        )
        cells.start, cells.n = 4, 1
        lattice = ffi.new("pe_lattice *", {"spacing": h, "outer": outer})
        arrays = [doubles(x, True) for x in (spread, *others)]
        out = ffi.new("pe_lattice_masses *", dict(zip(("spread", "a", "b"), arrays, strict=True)))
        lib.pe_lattice_cells(lattice, cells, out)
        t = np.exp(-np.linspace(-2.0 * h - 2.0 * off, 9.0 * h + 2.0 * off, 300))[:, None]
        true, ours = t * np.exp(losses), t * np.exp(h * np.arange(8))
        if outer:
            profile = (masses * np.maximum(1.0 - true, 0.0)).sum(axis=1)
            bound = (spread * np.maximum(1.0 - ours, 0.0)).sum(axis=1) + out.lost
            assert np.all(bound >= profile * (1.0 - 1e-12))
        else:
            overlap = (masses * np.minimum(1.0, true)).sum(axis=1)
            assert np.all((spread * np.minimum(1.0, ours)).sum(axis=1) <= overlap * (1.0 + 1e-12))
