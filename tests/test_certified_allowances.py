"""Proven bounds hold where each row errs as far as it is said to, and tell both sides apart.

The rows are those of one Gaussian step, whose curves are known in closed form; their errors are
made so large that an allowance that is forgotten, or that has the wrong sign, shows.
"""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
import pytest
from scipy import optimize, stats

from pyengine.engines import certified, row_bounds
from pyengine.engines.certified import CertifiedPair
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    WIDTH,
)
from pyengine.engines.row_sides import RowSide

ROOM = 1e-11  # for the doubles of this test, relative
LARGE = 2.0**-8
LOG = {A_ABOVE: (stats.norm.logsf, 0.5), A_BELOW: (stats.norm.logcdf, 0.5)} | {
    B_ABOVE: (stats.norm.logsf, -0.5),
    B_BELOW: (stats.norm.logcdf, -0.5),
}
ALPHA = np.concatenate(
    [[0.0], 10.0 ** np.arange(-12.0, 0.0), np.linspace(0.15, 0.95, 9), [1.0 - 1e-6, 1.0]]
)


def log_profile(mu: float, epsilon: np.ndarray) -> np.ndarray:
    first = stats.norm.logcdf(mu / 2.0 - epsilon / mu)
    second = stats.norm.logcdf(-mu / 2.0 - epsilon / mu)
    return np.asarray(first + np.log(-np.expm1(epsilon + second - first)))


def trade_off(mu: float, alpha: np.ndarray) -> np.ndarray:
    return np.asarray(stats.norm.cdf(stats.norm.isf(alpha) - mu))


class OneStep(RowSide):
    """Rows of a Gaussian step whose logs and values err by as much as they may, either way."""

    def __init__(self, mu: float, error: float, rng: np.random.Generator, rough: float) -> None:
        super().__init__()
        self.mu, self.error, self.rng, self.rough = mu, error, rng, rough
        self.shares = [0.0, 1.0]  # some rows are known better than their neighbours

    def log(self, functional: int, c: np.ndarray) -> np.ndarray:
        if functional == PROFILE:
            return log_profile(self.mu, -c)
        log_tail, sign = LOG[functional]
        return np.asarray(log_tail(c / self.mu + sign * self.mu))

    def threshold(self, functional: int, log_target: np.ndarray) -> np.ndarray:
        found = [
            optimize.brentq(lambda c, y=y: float(self.log(functional, np.float64(c))) - y, -40, 40)
            if np.isfinite(y)
            else np.nan
            for y in log_target
        ]
        return np.asarray(found) + self.rough * self.rng.choice([-1.0, 1.0], size=len(found))

    def table(self, functional: int, c: np.ndarray) -> np.ndarray:  # noqa: ARG002 - all are
        rows = np.zeros((c.size, WIDTH))
        rows[:, 0] = c
        error = self.error * self.rng.choice(self.shares, size=c.size)
        for which in (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE):
            with np.errstate(all="ignore"):
                log = self.log(which, c)
            # the error is a part of the value that is given, and so is the rounding of its log
            away = self.rng.choice([-1.0, 1.0, 0.3], size=(2, c.size))
            slack = row_bounds.SLACK * (1.0 + np.abs(log)) if row_bounds.SLACK > ROOM else 0.0
            rows[:, 2 + which] = log - np.log1p(error * away[0]) - 0.9 * slack * away[1]
            rows[:, ERRORS + which] = error + ROOM
        return rows


def nobody() -> NoReturn:
    raise AssertionError("all is proven here")


def pair_of(error: float, rough: float, seed: int, mus: tuple[float, float]) -> CertifiedPair:
    rng = np.random.default_rng([20261123, seed])
    private, public = (OneStep(mu, error, rng, rough) for mu in mus)
    return CertifiedPair(private, public, math.inf, nobody)


SETTINGS = [
    (error, rough, mus)
    for error in (0.0, LARGE)
    for rough in (0.0, 0.02)
    for mus in ((1.0, 1.0), (0.9, 1.1), (3.0, 3.0))
]


@pytest.mark.parametrize("slack", [None, 2.0**-12])
@pytest.mark.parametrize(("error", "rough", "mus"), SETTINGS)
def test_curves_of_both_sides_lie_within(
    error: float,
    rough: float,
    mus: tuple[float, float],
    slack: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the more private side does not say, and the other one not deny, is in the bounds."""
    if slack is not None:
        monkeypatch.setattr(row_bounds, "SLACK", slack)
    epsilon = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
    delta = np.array([0.3, 0.1, 1e-2, 1e-4, 1e-8, 1e-12])
    for seed in range(1 + int(error > 0.0)):
        pair = pair_of(error, rough, seed, mus)
        found = pair.trade_off(ALPHA)
        high, low = (trade_off(mu, ALPHA) for mu in mus)
        assert (found.beta.lower <= low * (1.0 + ROOM)).all()
        assert (found.beta.upper >= high * (1.0 - ROOM)).all()
        least, most = (stats.norm.sf(stats.norm.isf(ALPHA) - mu) for mu in mus)
        assert (found.gamma.lower <= least * (1.0 + ROOM)).all()
        assert (found.gamma.upper >= most * (1.0 - ROOM)).all()
        for answer in (found.beta, found.gamma):
            assert (answer.lower[[0, -1]] == answer.upper[[0, -1]]).all()  # 0 and 1 are known
            assert answer.certified.all()
            assert (answer.lower <= answer.value).all()
            assert (answer.value <= answer.upper).all()
        profile = pair.profile(epsilon)
        least, most = (np.exp(log_profile(mu, epsilon)) for mu in mus)
        assert (profile.lower <= least * (1.0 + ROOM)).all()
        assert (profile.upper >= most * (1.0 - ROOM)).all()
        inverse = pair.epsilon(delta)
        least, most = (epsilon_of(mu, delta) for mu in mus)
        assert (inverse.lower <= least * (1.0 + ROOM)).all()
        assert (inverse.upper >= most * (1.0 - ROOM)).all()
        inside, mu = ALPHA[1:-1], mus[1]
        below, above = pair.line(inside, stats.norm.isf(inside) * mu - mu**2 / 2.0 + rough)
        assert (below <= trade_off(mu, inside) * (1.0 + ROOM)).all()
        assert (above >= stats.norm.sf(stats.norm.isf(inside) - mu) * (1.0 - ROOM)).all()
        level, missed, power = pair.test(np.linspace(-3.0, 5.0, 9))
        private = OneStep(mus[0], 0.0, pair._private.rng, 0.0)  # type: ignore[attr-defined]
        c = np.linspace(-3.0, 5.0, 9)
        assert (level >= np.exp(private.log(A_ABOVE, c)) * (1.0 - ROOM)).all()
        assert (missed >= np.exp(private.log(B_BELOW, c)) * (1.0 - ROOM)).all()
        assert (power <= np.exp(private.log(B_ABOVE, c)) * (1.0 + ROOM)).all()


def epsilon_of(mu: float, delta: np.ndarray) -> np.ndarray:
    found = []
    for x in delta:
        if log_profile(mu, np.float64(0.0)) <= np.log(x):
            found.append(0.0)
        else:
            function = lambda e, x=x: float(log_profile(mu, np.float64(e))) - np.log(x)  # noqa: E731
            found.append(optimize.brentq(function, 0.0, 40.0, xtol=1e-14, rtol=1e-14))
    return np.array(found)


@pytest.mark.parametrize("rough", [0.0, 1e-6])
def test_bounds_are_narrow_where_rows_are(rough: float) -> None:
    """A threshold that is a little off costs little."""
    pair = pair_of(0.0, rough, 3, (1.0, 1.0))
    allowed = 1e-9 + 20.0 * rough
    found = pair.trade_off(ALPHA)
    for answer in (found.beta, found.gamma):
        assert (answer.upper - answer.lower <= allowed * answer.upper).all()
    inverse = pair.epsilon(np.array([0.1, 1e-3, 1e-9]))
    assert (inverse.upper - inverse.lower <= allowed).all()
    profile = pair.profile(np.array([0.0, 0.5, 3.0]))
    assert (profile.upper - profile.lower <= allowed * profile.upper).all()


def test_what_is_too_wide_is_left_to_the_other_engine() -> None:
    """The tolerance is of the width: one above it is kept, one below it asks elsewhere."""
    rng = np.random.default_rng(5)
    asked = []

    class Otherwise:
        def profile(self, epsilon: np.ndarray) -> object:
            asked.append(epsilon)
            return CertifiedPair(side, side, math.inf, nobody).profile(epsilon)

        trade_off = epsilon = None

    side = OneStep(1.0, LARGE, rng, 0.0)
    side.shares = [1.0]
    for tolerance, expected in ((0.1, 0), (1e-3, 1), (None, 1)):
        asked.clear()
        CertifiedPair(side, side, tolerance, Otherwise).profile(np.array([0.5]))  # type: ignore[arg-type]
        assert len(asked) == expected


@pytest.mark.parametrize("error", [0.0, LARGE])
def test_epsilon_is_proven_however_far_the_first_row_is(error: float) -> None:
    """One step on the slope of the first row is not enough: an ε that no row proves is none."""
    delta = np.array([0.05, 1e-3, 1e-6, 1e-9])
    truth = epsilon_of(0.5, delta)
    for seed in range(4):
        found = pair_of(error, 0.7, seed, (0.5, 0.5)).epsilon(delta)
        assert (found.lower <= truth * (1.0 + ROOM)).all()
        assert (found.upper >= truth * (1.0 - ROOM)).all()
        assert np.isfinite(found.upper).all()


def test_a_value_is_between_its_bounds() -> None:
    """The lower bound stands where there is no other, and where both are no doubles."""
    lower, upper = np.array([1.0, 0.5, 0.0, 0.0]), np.array([3.0, np.inf, 1e-310, 1e-300])
    assert certified.middle(lower, upper).tolist() == [2.0, 0.5, 0.0, 5e-301]
