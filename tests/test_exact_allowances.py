"""Bounds at a level hold where each mass and each threshold errs as far as it is said to.

Errors are made so large that an allowance that is forgotten, or that has the wrong sign, shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from outcomes import Outcomes, corners, height, number

from pyengine._core import ffi, lib
from pyengine.engines.exact import levels
from pyengine.engines.exact.levels import Tails
from pyengine.engines.functionals import array

ROOM = 1e-13  # for the doubles of this test
LARGE = 2.0**-7
CLOSE = 2.0**-4  # how much nearer a threshold may surely be on its side


def outcomes_of(rng: np.random.Generator) -> Outcomes:
    """Masses of a few outcomes under both laws, some under one law alone."""
    size = int(rng.integers(2, 6))
    columns = []
    for _ in range(2):
        weights = [Fraction(float(2.0 ** -rng.uniform(0.0, 12.0))) for _ in range(size)]
        columns.append([weight / sum(weights) for weight in weights])
    found = list(zip(*columns, strict=True))
    lost = Fraction(float(2.0 ** -rng.uniform(1.0, 9.0)))
    kind = rng.integers(0, 4)
    if kind & 1:  # outcomes that only B has
        found = [(a, b * (1 - lost)) for a, b in found] + [(Fraction(0), lost)]
    if kind & 2:  # outcomes that only A has
        found = [(a * (1 - lost), b) for a, b in found] + [(lost, Fraction(0))]
    return found


def losses_of(outcomes: Outcomes) -> list[float]:
    return [
        math.inf if not a else -math.inf if not b else float(mpmath.log(number(b) / number(a)))
        for a, b in outcomes
    ]


def tails_of(
    rng: np.random.Generator, outcomes: Outcomes, c: np.ndarray, error: float, shift: float
) -> Tails:
    """Tails that err as far as they may, up or down, each by itself."""
    losses = np.array(losses_of(outcomes))
    away = c[..., None] - losses
    on = np.where(np.abs(away) < shift, rng.random(away.shape) < 0.5, away < 0.0)
    events, which = np.unique(on.reshape(-1, losses.size), axis=0, return_inverse=True)
    sums = [
        [
            float(
                sum(
                    (o[law] for o, above in zip(outcomes, event, strict=True) if above == side),
                    Fraction(0),
                )
            )
            for law in (0, 1)
            for side in (True, False)
        ]
        for event in events
    ]
    masses = np.array(sums)[which.ravel()].T.reshape(4, *c.shape)
    away = rng.choice([-1.0, 1.0, 0.3], size=masses.shape)
    whole = np.full(c.shape, error + ROOM)
    # the error is a part of the mass that is given
    return Tails(*(masses / (1.0 + error * away)), whole, np.full(c.shape, shift))


def questions(
    rng: np.random.Generator, error: float, shift: float
) -> tuple[Outcomes, np.ndarray, np.ndarray, Tails, list[Fraction]]:
    """Thresholds in every place, levels on corners, beside them and anywhere, and the truth."""
    outcomes = outcomes_of(rng)
    known = corners(outcomes)
    alpha = np.concatenate(
        [
            [float(x) * (1.0 + d) for x, _ in known[1:-1] for d in (-error, 0.0, error)],
            rng.uniform(0.0, 1.0, 4),
            10.0 ** -rng.uniform(0.0, 6.0, 3),
            1.0 - 10.0 ** -rng.uniform(0.0, 6.0, 2),
        ]
    )
    alpha = alpha[(alpha > 0.0) & (alpha < 1.0)]
    finite = [x for x in losses_of(outcomes) if math.isfinite(x)]
    places = np.concatenate(
        [finite, [x + d * shift for x in finite for d in (-0.9, 0.9)], rng.uniform(-9.0, 9.0, 3)]
    )
    # every threshold a row, the largest first, so that levels grow
    c = np.repeat(np.unique(places)[::-1, None], alpha.size, axis=1)
    points = tails_of(rng, outcomes, c, error, shift)
    truth = [Fraction(height(known, Fraction(x))) for x in alpha]
    return outcomes, alpha, c, points, truth


def assert_held(
    alpha: np.ndarray, truth: list[Fraction], lower: np.ndarray, upper: np.ndarray, what: str
) -> None:
    for x, exact, low, high in zip(alpha, truth, lower, upper, strict=True):
        assert Fraction(low) <= exact <= Fraction(high), (what, x, float(exact), low, high)


def by_core(
    kernel: Callable[..., None], shape: tuple[int, ...], alpha: np.ndarray, points: Tails, *c: Any
) -> np.ndarray:
    """Two arrays of the C core from points, and arrays of the same shape where it needs them."""
    out = np.empty((2, *shape))
    given = [array(np.ascontiguousarray(x).reshape(-1)) for x in (alpha, *c)]
    tails = array(np.concatenate(points, axis=None))
    room = [array(x.reshape(-1), writable=True) for x in out]
    kernel(points.error.shape[0], alpha.size, *given, tails, levels.ROUNDING, *room)
    return out


def chord(points: Tails, alpha: np.ndarray) -> np.ndarray:
    """Upper bounds of β and lower ones of γ."""
    return by_core(lib.pe_level_chord, alpha.shape, alpha, points)


def tangents(points: Tails, c: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Lower bounds of β and upper ones of γ."""
    reach = np.vectorize(lib.pe_level_reach)(points.shift, c)
    return by_core(lib.pe_level_tangents, c.shape, alpha, points, c, reach)


def errors_at(points: Tails, c: np.ndarray, alpha: np.ndarray, shown: float) -> np.ndarray:
    """β, two bounds, γ, two bounds, and the threshold that the slope is of."""
    out = np.empty((levels.ANSWERS, alpha.size))
    given = [array(np.ascontiguousarray(x).reshape(-1)) for x in (alpha, c)]
    tails, room = array(np.concatenate(points, axis=None)), array(out.reshape(-1), writable=True)
    lib.pe_level_errors(len(c), alpha.size, *given, tails, levels.ROUNDING, shown, room)
    return out


def excess(points: Tails, alpha: np.ndarray) -> np.ndarray:
    """Bounds of A's mass on events less α."""
    return by_core(lib.pe_level_excess, points.error.shape, alpha, points)


ERRORS = [(LARGE, 0.0), (0.0, 2.0**-5), (LARGE, 2.0**-5), (0.0, 0.0)]


@pytest.mark.parametrize("rounding", [None, LARGE])
@pytest.mark.parametrize(("error", "shift"), ERRORS)
def test_bounds_hold_with_the_largest_errors(
    error: float, shift: float, rounding: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an error of masses nor one that rounding is said to be moves a bound too little."""
    rng = np.random.default_rng([20261123, int(error > 0.0), int(shift > 0.0)])
    if rounding is not None:
        monkeypatch.setattr(levels, "ROUNDING", rounding)
    for _ in range(20):
        outcomes, alpha, c, points, truth = questions(rng, error + (rounding or 0.0), shift)
        if rounding is not None:  # the masses err by what is left to rounding
            points = points._replace(error=np.full(c.shape, error + ROOM))
        shown = float(sum(b for a, b in outcomes if not a))
        found = errors_at(points, c, alpha, shown)
        gamma = [1 - x for x in truth]
        assert_held(alpha, truth, *found[1:3], "beta")
        assert_held(alpha, gamma, *found[4:6], "gamma")
        below, above = tangents(points, c, alpha)
        beta, kept = chord(points, alpha)
        for row in range(len(c)):
            assert_held(alpha, truth, below[row], np.ones(alpha.size), "tangent")
            assert_held(alpha, gamma, np.zeros(alpha.size), above[row], "tangent")
        assert_held(alpha, truth, np.zeros(alpha.size), beta, "chord")
        assert_held(alpha, gamma, kept, np.ones(alpha.size), "chord")


def test_bounds_are_no_wider_than_the_errors() -> None:
    """Masses that are known leave nothing open, small values of either kind included."""
    rng = np.random.default_rng(20261124)
    seen = 0
    for _ in range(50):
        outcomes, alpha, c, points, truth = questions(rng, 0.0, 0.0)
        found = errors_at(points, c, alpha, float(sum(b for a, b in outcomes if not a)))
        beta, kept = chord(points, alpha)
        for i, exact in enumerate(truth):
            if not points.a_above[0, i] < alpha[i] * (1.0 - ROOM) <= points.a_above[-1, i] - ROOM:
                continue  # no test on one side is among the points
            # a corner that no double is has a slope on each side
            steep = max(1.0, math.exp(max(x for x in losses_of(outcomes) if x < math.inf)))
            off = 4.0 * ROOM * steep
            assert found[2, i] - found[1, i] <= off
            assert found[5, i] - found[4, i] <= off
            assert abs(beta[i] - exact) <= off
            assert abs(kept[i] - (1 - exact)) <= off
            seen += 1
    assert seen > 300


class Listed:
    """Thresholds of listed outcomes, with errors."""

    def __init__(self, rng: np.random.Generator, error: float, shift: float) -> None:
        self.outcomes, self.error, self.shift = outcomes_of(rng), error, shift
        self.asked = 0

    def support(self) -> tuple[float, float]:
        finite = [x for x in losses_of(self.outcomes) if math.isfinite(x)]
        return min(finite), max(finite)

    def tails(self, c: np.ndarray) -> Tails:
        self.asked += 1
        exact = tails_of(np.random.default_rng(0), self.outcomes, c, 0.0, 0.0)
        # the same errors at the same threshold, however many are asked
        masses = [x / (1.0 + self.error * np.cos(k + 1e3 * c)) for k, x in enumerate(exact[:4])]
        return Tails(*masses, exact.error + self.error, np.full(c.shape, self.shift))

    def roughly(self, c: float) -> list[float]:
        return [float(x[0]) for x in self.tails(np.array([c]))[:4]]


def four_tests(law: Listed, alpha: np.ndarray, *, is_narrowed: bool) -> tuple[np.ndarray, Tails]:
    """Four thresholds for each level, in falling order, and the tails there."""
    c, tails = np.empty((4, alpha.size)), np.empty((6, 4, alpha.size))
    expected = (levels.everywhere if is_narrowed else levels.brackets)(law, alpha)
    given = [array(np.ascontiguousarray(x)) for x in (alpha, *expected)]
    room = [array(x.reshape(-1), writable=True) for x in (c, tails)]
    roughly = lib.python_roughly if is_narrowed else ffi.NULL
    calls = levels.Calls(ffi.new_handle(law), lib.python_tails, roughly=roughly)
    losses = np.unique([x for x in losses_of(law.outcomes) if math.isfinite(x)])
    how = {"has_atoms": True, "room": 1e-15 * float(np.abs(losses).max())} if is_narrowed else {}
    asked = levels.LawTests(law, calls, losses if is_narrowed else levels.NOWHERE, **how)
    status = lib.pe_tests_at_levels(asked.core, alpha.size, *given, levels.ROUNDING, *room)
    assert status == lib.PE_OK
    return c, Tails(*tails)


@pytest.mark.parametrize("is_narrowed", [False, True])
@pytest.mark.parametrize("error", [0.0, LARGE])
def test_thresholds_are_beside_the_level(error: float, is_narrowed: bool) -> None:
    """The inner two enclose the level, and the outer ones are surely on their sides, closely."""
    rng = np.random.default_rng(20261125)
    for _ in range(10):
        law = Listed(rng, error, 0.0)
        # at a corner the masses on both sides may be either
        known = [float(x) for x, _ in corners(law.outcomes)[1:-1]]
        alpha = np.concatenate([rng.uniform(1e-3, 0.999, 3), known])
        if not is_narrowed:
            low, high = levels.brackets(law, alpha)
            assert law.asked < 70
            assert (low <= high).all()
            assert (high - low <= 1e-14 * (1.0 + np.abs(high))).all()
        law.asked = 0
        c, points = four_tests(law, alpha, is_narrowed=is_narrowed)
        assert law.asked < 120 + 20 * is_narrowed * alpha.size
        assert (np.diff(c, axis=0) <= 0.0).all()
        for ours, there in zip(points, law.tails(c), strict=True):
            assert np.array_equal(ours, there)
        least, most = law.support()
        sides = excess(points, alpha)
        inner = excess(law.tails(c + np.array([-CLOSE, 0.0, 0.0, CLOSE])[:, None]), alpha)
        for i, x in enumerate(alpha):
            # the side is known, unless no threshold has it; and not known much nearer
            assert sides[1, 0, i] <= 0.0 or c[0, i] >= most
            assert sides[0, 3, i] >= 0.0 or c[3, i] <= least
            assert c[0, i] - CLOSE <= c[1, i] or inner[1, 0, i] > 0.0, (x, c[:, i])
            assert c[3, i] + CLOSE >= c[2, i] or inner[0, 3, i] < 0.0, (x, c[:, i])


def test_values_between_two_points() -> None:
    """On the line between the corners on both sides, with the digits of whichever is small."""
    rng = np.random.default_rng(20261126)
    seen = 0
    for _ in range(50):
        _, alpha, c, points, truth = questions(rng, 0.0, 0.0)
        beta, _, _, gamma, _, _, slope = errors_at(points, c, alpha, 0.0)
        for i, exact in enumerate(truth):
            reached = np.flatnonzero(points.a_above[:, i] <= alpha[i])
            if reached.size in (0, len(c)):
                continue  # no point on one side
            if slope[i] != c[reached[-1], i]:  # on a point, whose mass is rounded
                assert points.a_above[reached[-1], i] == pytest.approx(alpha[i], rel=1e-12)
            assert beta[i] == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
            assert gamma[i] == pytest.approx(float(1 - exact), rel=1e-9, abs=1e-12)
            seen += 1
    assert seen > 300


def test_excess_has_the_digits_of_the_smaller_side() -> None:
    """A level near 1 is told from the mass off the event, as one near 0 is from that on it."""
    rng = np.random.default_rng(20261127)
    for _ in range(200):
        error, side = 10.0 ** -rng.uniform(1.0, 12.0), 10.0 ** -rng.uniform(0.4, 15.0)
        small, away = Fraction(side), rng.uniform(-1.0, 1.0, 2)
        for mass in (small, 1 - small):
            alpha = np.array([float(mass) * (1.0 + 1e-3 * side)])
            given = [
                float(x / Fraction(1.0 + error * d))
                for x, d in zip((mass, 1 - mass), away, strict=True)
            ]
            tails = Tails(*(np.array([x]) for x in (*given, 0.0, 0.0, error + ROOM, 0.0)))
            least, most = excess(tails, alpha)
            exact = mass - Fraction(alpha[0])
            assert Fraction(least[0]) <= exact <= Fraction(most[0])
            assert most[0] - least[0] <= 2.5 * (error + ROOM) * side
