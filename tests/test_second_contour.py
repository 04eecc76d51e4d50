"""Contours that judge bounds, against closed forms, and what their tally calls outside."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction
from functools import partial

import bounds_tally as tally_of
import mpmath
import numpy as np
import pytest
import second_contour as tool
from bounds_tally import Tally, Truth
from mixture_contour import Kind, MixtureLine
from outcomes import gaussian_delta

import pyengine as pe


def on_nodes(kinds: tool.Kinds, lam: float) -> MixtureLine:
    """The line in long double of the same steps, on nodes of exact weights."""
    listed = []
    for noise, p, steps in zip(*kinds, strict=True):
        rate = Fraction(p)
        a = [(Fraction(0), Fraction(1))]
        b = [(Fraction(0), 1 - rate)] * (rate < 1) + [(1 / Fraction(noise), rate)]
        listed.append(Kind(pe.GaussianMechanism(noise), [(Fraction(1), a, b)], steps))
    return MixtureLine(tool.second_contour(), listed, lam)


@pytest.mark.parametrize("lam", [1.7, -0.6])
def test_plain_steps_have_a_closed_form(lam: float) -> None:
    """Three steps of noise 2 and five of noise 3, on a line of either side."""
    kinds = tool.Kinds([2.0, 3.0], [1.0, 1.0], [3, 5])
    contour = on_nodes(kinds, lam)
    mean, deviation, _ = contour.moments()
    c = mean + deviation * np.array([-1.5, 0.0, 1.5])
    logs, off = contour.logs(c)
    assert off <= 1.01e-15
    with mpmath.workdps(30):
        mu = mpmath.sqrt(mpmath.mpf(3) / 4 + mpmath.mpf(5) / 9)
        sign = 1 if lam > 1.0 else -1
        for x, row in zip(c, logs, strict=True):
            z = mpmath.mpf(float(x)) / mu + mu / 2  # the loss under A is N(-mu^2/2, mu^2)
            p, q = mpmath.ncdf(-sign * z), mpmath.ncdf(-sign * (z - mu))
            h = q - p * mpmath.exp(float(x)) if sign > 0 else p - q * mpmath.exp(-float(x))
            for found, truth in zip(row, (p, q, h), strict=True):
                assert abs(float(found) - float(mpmath.log(truth))) <= 4e-15


def test_truths_of_both_orders_hold() -> None:
    """Questions under all adjacencies are within bounds, and nothing is estimated."""
    kinds = tool.Kinds([1.3], [0.02], [400])
    found = tool.asked_of(kinds, np.random.default_rng(6))
    assert {one.adjacency for one in found} >= {"add", "remove"}
    tally = Tally()
    tally.judge(kinds.mechanism(), found, "here")
    assert set(tally.verdicts) == {"within"}


@pytest.mark.parametrize("lam", [-8.0, 3.64])
def test_sampled_steps_agree_with_the_reference(lam: float) -> None:
    kinds = tool.Kinds([0.98175], [0.050734], [60])
    contour = on_nodes(kinds, lam)
    mean, _, _ = contour.moments()
    logs, off = contour.logs(np.array([mean]))
    assert off <= tool.LOOSE
    order = "remove" if lam > 1.0 else "add"
    truth = pe.reference.delta(kinds.mechanism(), abs(mean), adjacency=order, digits=20)
    with mpmath.workdps(25):
        exact = mpmath.log(mpmath.mpf(truth.decimal(20)))
        assert abs(mpmath.mpf(str(logs[0, 2])) - exact) <= 4.0 * off


def test_rounding_of_millions_of_steps_is_a_doubt() -> None:
    """No refinement shows it: both sums of log M have it."""
    kinds, order = tool.Kinds([2.1447], [1.0], [1753800]), "remove"
    contour, c = on_nodes(kinds, -0.02858), np.array([-201541.20899954758])
    logs, off = contour.logs(c)
    truth = pe.reference.delta(kinds.mechanism(), -float(c[0]), adjacency=order, digits=20)
    with mpmath.workdps(25):
        exact = mpmath.log(mpmath.mpf(truth.decimal(20)))
        missed = abs(mpmath.mpf(str(logs[0, 2])) - exact)
    assert missed <= 4.0 * off < 1e-12


def test_one_step_has_closed_forms() -> None:
    kinds = tool.Kinds([1.6], [0.003], [1])
    found = tool.asked_of(kinds, np.random.default_rng(3))
    assert {one.name for one in found} >= {"gamma_bound", "trade_off", "delta", "epsilon"}
    tally = Tally()
    tally.judge(kinds.mechanism(), found, "here")
    assert set(tally.verdicts) == {"within"}


def test_one_plain_step_keeps_its_digits_far_below_zero() -> None:
    """Truths of e^-137 once lost 57 of 60 digits, and called three answers outside."""
    kinds = tool.Kinds([0.22572], [1.0], [1])
    with mpmath.workdps(200):
        mu = 1 / mpmath.mpf(kinds.noise[0])
        asked = [
            Truth("delta", epsilon, "add", Decimal(mpmath.nstr(gaussian_delta(mu, epsilon), 40)))
            for epsilon in (121.0, 130.5, 137.25)
        ]
    tally = Tally()
    tally.judge(kinds.mechanism(), asked, "here")
    assert tally.verdicts == {"within": 3}


# Contours once called answers outside here: a trade-off function moves hundreds of times as much as
# the level that it is asked at, and so does what a contour errs by in it.
ALARMS = [
    (894, tool.Kinds([16.631], [1.0], [133300])),
    (3449, tool.Kinds([38.987], [1.0], [1539900])),
    (5539, tool.Kinds([94.008], [1.0], [3680900])),
]


@pytest.mark.parametrize(("index", "kinds"), ALARMS)
@pytest.mark.parametrize("closed", [True, False])
def test_truths_in_far_tails_raise_no_alarm(index: int, kinds: tool.Kinds, closed: bool) -> None:
    rng = np.random.default_rng([20261127, index])
    assert tool.drawn(rng) == kinds
    if closed:
        found = tool.asked_of(kinds, rng)
        assert max(one.doubt for one in found) < 1e-17
    else:
        found = tool.asked_on(partial(on_nodes, kinds), rng)
        # of 4 times 7e-15 to 5e-14, the trade-off function some 200 times
        assert 1e-12 < max(one.doubt for one in found) < 1e-10
    tally = Tally()
    tally.judge(kinds.mechanism(), found, "here")
    assert tally.verdicts == {"within": len(found)}
    assert len(found) >= 200
    assert "doubts of truths" in tally.report()


def test_a_contour_that_errs_by_its_doubt_raises_no_alarm() -> None:
    """Masses and profiles, each off by all that it may be off by, on the side that hurts."""
    kinds = tool.Kinds([16.631], [1.0], [133300])
    off = 1e-13

    class Shifted(tool.Proven):
        signs = (1, 1, 1)

        def logs(self, c: np.ndarray) -> tuple[object, float]:
            rows, _ = super().logs(c)
            return rows + np.array([sign * off for sign in self.signs]), off

    for signs in itertools.product((1, -1), repeat=3):
        Shifted.signs = signs
        rng = np.random.default_rng([20261127, 894])
        assert tool.drawn(rng) == kinds
        with mpmath.workdps(60):
            found = tool.asked_on(partial(Shifted, kinds.law(), tool.Clock(20.0)), rng)
        assert {one.name for one in found} >= {"gamma_bound", "trade_off", "delta", "epsilon"}
        # by four times what functionals are off by; here they are off by no more than that
        narrow = [one._replace(doubt=1.01 * one.doubt / 4.0) for one in found]
        tally = Tally()
        tally.judge(kinds.mechanism(), narrow, "here")
        assert set(tally.verdicts) == {"within"}


def _missed(mu: mpmath.mpf, level: float, epsilon: mpmath.mpf) -> mpmath.mpf:
    """What the profile of plain steps exceeds a level by."""
    return gaussian_delta(mu, epsilon) - level


def test_levels_next_to_one_are_rounded_along_a_curve() -> None:
    """Three answers were called outside: of δ = 1 - 1.6e-10 a tangent moved ε by 1e-6 of it."""
    kinds = tool.Kinds([49.29], [1.0], [397040])
    rng = np.random.default_rng([20261502, 1808])
    assert tool.drawn(rng) == kinds
    found = tool.asked_of(kinds, rng) + tool.ends_of(kinds, rng)
    near = [one for one in found if one.name == "epsilon" and 1.0 - 2e-10 < one.argument < 1.0]
    positive = [one for one in near if one.truth > 0]
    assert positive
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(kinds.steps[0])) / mpmath.mpf(kinds.noise[0])
        for one in positive:
            exact = mpmath.findroot(partial(_missed, mu, one.argument), mpmath.mpf(str(one.truth)))
            assert abs(mpmath.mpf(str(one.truth)) / exact - 1) <= one.doubt
    tally = Tally()
    tally.judge(kinds.mechanism(), found, "here")
    assert set(tally.verdicts) == {"within"}


def test_a_private_level_is_asked_in_every_order() -> None:
    """Epsilon is 0 from the profile at 0 on; what a contour says of that is asked, too."""
    kinds = tool.Kinds([9.539591237404867], [0.0002250509110326688], [3])
    asked = tool.ends_of(kinds, np.random.default_rng(1))
    private = [one for one in asked if one.name == "epsilon" and one.truth == 0]
    assert {one.adjacency for one in private} == {"add", "remove", "add_remove"}
    beyond = [one for one in asked if one.name == "delta" and one.truth == 0]
    assert {one.adjacency for one in beyond} == {"add"}
    tally = Tally()
    tally.judge(kinds.mechanism(), asked, "here")
    assert set(tally.verdicts) == {"within"}


def test_bounds_that_cross_have_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    run = pe.dp_sgd(1.0, 1.0, 1)
    whole = tally_of.answers

    def answers(*asked: object, **kept: object) -> object:
        found, engines, proven = whole(*asked, **kept)
        return found._replace(lower=found.upper, upper=found.lower), engines, proven

    monkeypatch.setattr(tally_of, "answers", answers)
    tally = Tally()
    tally.judge(run, [Truth("delta", 1.0, "add", Decimal("0.127"), 0.0)], "here")
    assert tally.verdicts == {"CROSSED": 1}


def test_refusals_are_counted_one_by_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One question that is refused takes none of its neighbours with it."""
    run, x = pe.dp_sgd(1.0, 1.0, 1), [0.5, 1.0, 1.5, 2.0]
    whole = tally_of.answers

    def answers(name: str, mechanism: pe.Mechanism, x: list[float], **kept: str) -> object:
        if 1.0 in x:
            raise pe.AccuracyError("no")
        return whole(name, mechanism, x, **kept)

    monkeypatch.setattr(tally_of, "answers", answers)
    asked = [
        Truth("delta", one, "add", Decimal(pe.delta(run, one, adjacency="add")), 0.0) for one in x
    ]
    tally = Tally(listed=True)
    tally.judge(run, asked, "here")
    assert tally.verdicts == {"within": 3, "refused": 1}
    assert capsys.readouterr().out.startswith("refused: here: delta(1.0, add)")


def test_what_is_beside_its_bounds_is_outside(capsys: pytest.CaptureFixture[str]) -> None:
    run = pe.dp_sgd(1.0, 1.0, 1)
    truth = Decimal(pe.delta(run, 1.0, adjacency="add"))
    tally = Tally()
    tally.judge(run, [Truth("delta", 1.0, "add", truth, 0.0)], "here")
    tally.judge(run, [Truth("delta", 1.0, "add", truth * (1 + Decimal("1e-9")), 0.0)], "here")
    assert tally.verdicts == {"within": 1, "OUTSIDE": 1}
    assert "pe.delta(mechanism, 1.0, adjacency='add', bounds=True)" in capsys.readouterr().out
