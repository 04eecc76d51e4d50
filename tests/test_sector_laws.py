"""Laws of few steps with proven errors against engines that share no code with them."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import audit_sector as tool
import mpmath
import numpy as np
import pytest
from error_terms import tally

import pyengine as pe
from pyengine._core import lib
from pyengine.api import answers
from pyengine.engines import sector
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    Limits,
    array,
    call_kernel,
)
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.plan import FEW_STEPS
from pyengine.engines.sector import (
    OF_UNEQUAL,
    SectorLaws,
    _composed,
    _convolve,
    _kept_integrals,
    _law_of,
    _step,
    _sums,
    kinds_of,
)
from pyengine.engines.spectral import SOON, THOROUGH, Spectral

FUNCTIONALS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE)
TWO = ((0.2829, 5.27e-4, 1), (3.3, 0.0034, 1))
SHORT = [TWO, ((0.3, 1e-4, 2), (3.0, 0.01, 2))]  # laws whose last panel ends well before e^-16


def of_pair(pair: GaussianPair) -> SectorLaws:
    return SectorLaws(kinds_of(pair), pair.reversed)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tool.build(tmp_path_factory.mktemp("plain") / "kernel")


def test_the_density_of_a_step_grows_by_no_more_in_the_sector(kernel: Any) -> None:
    """Lemma 1 of docs/theory/sector_laws, by closed forms in 30 digits."""
    rng = np.random.default_rng(20261125)
    closest = 0.0
    for _ in range(40):
        noise, p = np.exp(rng.uniform(np.log((0.2, 1e-7)), np.log((30.0, 0.5)))).tolist()
        law = tool.step(kernel, noise, p, -200.0, 1)
        for _ in range(20):
            w = rng.uniform(*law.ends[:2])
            turn = rng.uniform(0.0, math.pi / 4 if w > 0.0 else 3.0)
            kappa = kernel.audit_sector_growth(law.pointer, ctypes.c_double(w))
            with mpmath.workdps(30 + int(abs(w))):
                grown = [log_density(noise, p, mpmath.mpf(w), angle) for angle in (turn, 0.0)]
                growth = float(grown[0] - grown[1])
            assert growth <= kappa * turn**2 * (1 + 1e-12)
            closest = max(closest, growth / (kappa * turn**2))
    assert closest > 0.9


def log_density(noise: float, p: float, w: Any, angle: float) -> Any:
    """Log of the modulus of one step's density at w + i angle, but for a constant."""
    s = mpmath.exp(w) * mpmath.expjpi(mpmath.mpf(angle) / mpmath.pi)
    rest = -mpmath.expm1(-s)
    root = s + mpmath.log(rest) + mpmath.mpf(noise) ** -2 / 2 - mpmath.log(p / (1 - mpmath.mpf(p)))
    return mpmath.log(abs(s / rest)) - mpmath.re(root**2) * mpmath.mpf(noise) ** 2 / 2


def test_random_rows_hold_the_sums_of_positive_terms() -> None:
    found: list[Any] = []
    for _, some in tool.campaign(20261125):
        found += some or ()
        if tally(found).asked > 600:
            break
    assert tally(found).outside == 0


@pytest.mark.parametrize("kinds", SHORT, ids=["two", "four"])
def test_rows_just_below_the_high_end(kernel: Any, kinds: tool.Kinds) -> None:
    """The side above has a large error there, which the other side must not be known by."""
    high = tool.composed(kernel, kinds, -200.0).ends[1]
    floor = math.fsum(n * math.log1p(-p) for _, p, n in kinds)
    c = floor + np.exp(high - 10.0 ** -np.arange(6.0, 15.0))
    for backward in (False, True):
        found = tool.compared(kinds, -200.0, -c if backward else c, backward)
        assert tally([found]).asked > 10
        assert tally([found]).outside == 0


def test_a_sum_beside_the_low_end_of_its_larger_part(kernel: Any) -> None:
    """Its loss is mostly that of one law, which falls slowly as the other's share does."""
    kinds = ((5.0, 0.01, 16),)
    short, long = (tool.composed(kernel, kinds, depth) for depth in (-150.0, -500.0))
    one = tool.step(kernel, 1.0, 1e-5, -500.0, 17)
    asked = 0
    for w in short.ends[0] + np.geomspace(1e-3, 0.02, 20):
        at = round(w / tool.GRID) * tool.GRID
        value, error, _ = tool.summed(short, one, at)
        truth, unsure, _ = tool.summed(long, one, at)
        if error < 0.5 and unsure < 1e-9:
            asked += 1
            assert abs(math.expm1(value - truth)) <= error + unsure
    assert asked > 3


@pytest.mark.parametrize(
    ("noise", "p", "c"),
    [
        (200.0, 3.2e-4, -3.4919197380728887e-06),
        (200.0, 3.2e-4, -8.5165640506133753e-06),
        (50.0, 1e-7, -4.1038548227561216e-09),
    ],
)
def test_thresholds_whose_logarithm_is_no_double(noise: float, p: float, c: float) -> None:
    """What a double lacks of log(c - floor) is all of the error where the loss is narrow."""
    law = _law_of(_composed, ((noise, p, 1),), -200.0)
    row = call_kernel(lib.pe_sector_at, np.array([c]), law, False)[0]
    with mpmath.workdps(60):
        shift = 1 / mpmath.mpf(noise)
        ratio = (mpmath.exp(c) - 1 + mpmath.mpf(p)) / mpmath.mpf(p)
        z = mpmath.log(ratio) / shift + shift / 2
        off = abs(mpmath.expm1(mpmath.log(mpmath.ncdf(z)) - row[2 + A_BELOW]))
    assert off <= row[ERRORS + A_BELOW] < 1e-12


def test_many_steps_and_full_batches_are_not_served() -> None:
    assert of_pair(GaussianPair((1.0,), (0.1,), (FEW_STEPS,), False)).serves
    assert not of_pair(GaussianPair((1.0,), (0.1,), (FEW_STEPS + 1,), False)).serves
    assert not of_pair(GaussianPair((1.0, 1.0), (0.1, 1.0), (2, 1), False)).serves


MANY = (1.0, 1e-3, 2000)


@pytest.mark.parametrize("backward", [False, True])
def test_rows_of_many_steps_are_those_of_lines(backward: bool) -> None:
    """Their density is not proven to fall to the left of the first panel."""
    law = _law_of(_composed, (MANY,), -75.0)
    noise, p, steps = MANY
    pair = GaussianPair((noise,), (p,), (steps,), backward)
    laws, lines = of_pair(pair), Spectral(pair)
    for functional in FUNCTIONALS:
        goal = np.log([0.3, 1e-3, 1e-6])
        c = laws.threshold(functional, goal)
        row = call_kernel(lib.pe_sector_at, c, law, backward)
        value, error = row[:, 2 + functional], row[:, ERRORS + functional]
        assert (abs(value - goal) < 1e-9).all()
        assert (error < 2e-9).all()
        line = lines.certify(functional, c)
        claimed = error + line[:, ERRORS + functional]
        assert (abs(value - line[:, 2 + functional]) <= claimed).all()
        assert (claimed < 1e-8).all()


def test_a_law_that_keeps_no_integrals_has_the_same_rows() -> None:
    one = _step(1.0, 0.01, 2, -200.0, -75.0)
    law, c = _convolve(one, one), np.linspace(-0.015, 0.3, 7)
    before = call_kernel(lib.pe_sector_at, c, law, False)
    _kept_integrals(law)
    assert np.isfinite(before[:, 2:7]).all()
    assert np.array_equal(before, call_kernel(lib.pe_sector_at, c, law, False))


def test_lines_of_little_work_do_not_know_what_was_asked_before() -> None:
    pair = GaussianPair((1.014,), (0.00211,), (6,), False)
    c = of_pair(pair).threshold(A_ABOVE, np.log([1e-3, 1e-6]))
    fresh, asked = Spectral(pair), Spectral(pair)
    first = asked.certify(A_ABOVE, c, lines=THOROUGH)
    soon = fresh.certify(A_ABOVE, c, lines=SOON)
    assert np.array_equal(soon, asked.certify(A_ABOVE, c, lines=SOON), equal_nan=True)
    assert not np.array_equal(soon, first, equal_nan=True)
    assert np.array_equal(first, fresh.certify(A_ABOVE, c, lines=THOROUGH), equal_nan=True)


def test_a_refused_law_changes_no_row() -> None:
    loud = GaussianPair((0.05,), (0.01,), (100,), False)
    assert _law_of(_composed, ((0.05, 0.01, 100),), -200.0) is None
    table = np.full((1, 12), np.nan)
    laws = of_pair(loud)
    assert laws.serves
    assert not laws.improve(PROFILE, np.array([-1.0]), table, Limits(3e-11, 3e-11)).any()
    assert np.isnan(table).all()


def test_few_rare_steps_have_close_proofs() -> None:
    """The lattice proved 1e-5 to 1e-4 of these."""
    for noise, rate, steps, order, name, x in (
        (1.03, 1e-5, 6, "add_remove", "delta", 0.0014),
        (0.553, 1.5e-7, 3, "add", "epsilon", 1.5e-11),
        (2.29, 0.0011, 4, "add", "gamma_bound", 3.1e-14),
        (0.331, 0.0011, 4, "add", "trade_off", 0.068),
    ):
        run = pe.dp_sgd(noise, rate, steps)
        bounds, engines, proven = answers(name, run, [x], adjacency=order)
        lower, upper = float(bounds.lower[0]), float(bounds.upper[0])
        assert engines[0] == "certified"
        assert proven[0]
        assert 0.0 < upper - lower <= 1e-10 * upper
        estimate = getattr(pe, name)(run, x, adjacency=order, bounds="estimated")
        assert estimate.lower <= upper
        assert estimate.upper >= lower


@pytest.mark.parametrize("order", ["add", "remove"])
def test_steps_of_very_different_noise_reach_as_far_as_the_louder_ones(order: str) -> None:
    """Tables of the quieter steps go on to where losses of the others are."""
    steps = pe.dp_sgd(0.6, 2e-4, 5) + pe.dp_sgd(3.3, 1e-4, 25)
    for question, at in (("delta", 1.0), ("epsilon", 1e-6), ("gamma_bound", 1e-5)):
        found = getattr(pe, question)(steps, at, adjacency=order, bounds=True)
        assert found.upper - found.lower <= 1e-10 * found.upper
    law = _law_of(_composed, ((0.6, 2e-4, 5), (3.3, 1e-4, 25)), -75.0)
    out = np.empty(8)
    lib.pe_sector_beyond(law, array(out, writable=True))
    assert (out[6:] < -60.0).all()


def test_numbers_of_parts_are_sums_of_those_before() -> None:
    for number in (*range(2, 200), 509, 832, 1000, 30_000, FEW_STEPS - 1):
        made, work = {1}, 0.0
        for a, b in _sums(number):
            assert {a, b} <= made
            made.add(a + b)
            work += 1.0 if a == b else OF_UNEQUAL
        assert max(made) == number
        squares, ones = number.bit_length() - 1, number.bit_count() - 1
        assert work <= squares + OF_UNEQUAL * ones


def test_rows_are_off_by_what_their_law_is_off_by() -> None:
    law = _kept_integrals(_composed(((1.14, 1.13e-3, 64),), -75.0))
    error = float(lib.pe_sector_error(law))
    assert error < 5e-12
    rows = tool.rows_of(law, False, np.array([-0.02, 0.0, 0.05, 0.4]))
    assert rows[:, ERRORS:].max() < 1.5 * error


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what takes long and was asked."""
    found: list[str] = []
    law, divided = sector._law_of, Spectral.certify_divided

    def asks_law(*of: Any) -> Any:
        found.append("law")
        return law(*of)

    def asks_divided(self: Spectral, *of: Any) -> Any:
        found.append("divided")
        return divided(self, *of)

    monkeypatch.setattr(sector, "_law_of", asks_law)
    monkeypatch.setattr(Spectral, "certify_divided", asks_divided)
    return found


def test_a_threshold_that_lines_find_asks_no_law(asked: list[str]) -> None:
    answer = pe.gamma_bound(pe.dp_sgd(0.722, 2.39e-4, 95), 0.072, bounds=True)
    assert (answer.upper - answer.lower) / answer.upper < 1e-10
    assert asked == []


def test_rows_of_laws_ask_no_line_that_takes_longer(asked: list[str]) -> None:
    answer = pe.delta(pe.dp_sgd(2.0, 0.01, 100), 0.8, adjacency="remove", bounds=True)
    assert (answer.upper - answer.lower) / answer.upper < 1e-10
    assert "divided" not in asked


def test_a_law_that_ends_farther_out_is_not_asked_where_ends_do_not_count(asked: list[str]) -> None:
    laws = of_pair(GaussianPair((1.46,), (3.6e-4,), (509,), False))
    table = np.full((1, 12), np.inf)
    table[:, 2:ERRORS] = -1.0
    laws.improve(A_ABOVE, np.array([0.028]), table, Limits(1e-12, 1e-12))
    assert asked == ["law"]
    assert table[0, ERRORS + A_ABOVE] < 1e-10
