"""The hull of both orders, from curves of which all is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from pyengine.engines.answers import Answer, ErrorCurve, names
from pyengine.engines.curves import larger, smaller, substituted
from pyengine.engines.hull import BothOrders, mixed

FloatArray = npt.NDArray[np.float64]

AT = np.array([0.01, 0.26, 0.3, 0.4, 0.49, 0.9])
# γ of the hull: the common tangent, of slope 1, touches the curves at 1/4 and 1/2
HULL = np.where(AT < 0.25, np.sqrt(AT), np.where(AT < 0.5, AT + 0.25, 2.0 * AT - AT**2))


class Root:
    """T(α) = 1 - √α, or its inverse (1 - α)², in bounds that are a little apart.

    Values lie ``off`` times the error from the truth, γ's upwards and a profile's downwards.
    """

    def __init__(self, *, inverse: bool, error: float = 1e-13, off: float = 0.0) -> None:
        self.inverse, self.error, self.off = inverse, error, off

    def _between(self, truth: FloatArray, side: float) -> Answer:
        error = np.full(truth.size, self.error)
        value = truth + side * self.off * error
        return Answer.around(value, error, names("stub", truth.size), True)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        gamma = 2.0 * alpha - alpha**2 if self.inverse else np.sqrt(alpha)
        with np.errstate(divide="ignore"):
            c = np.log(2.0 - 2.0 * alpha) if self.inverse else -np.log(2.0 * np.sqrt(alpha))
        return ErrorCurve(self._between(1.0 - gamma, 1.0), self._between(gamma, -1.0), c)

    def profile(self, epsilon: FloatArray) -> Answer:
        # max over α of 1 - α - e^ε T(α), both curves being each other's inverse: 1/4 at ε = 0
        slope = np.exp(epsilon)
        best = 0.25 / slope if self.inverse else np.maximum(2.0 - slope, 0.0) ** 2 / 4.0
        return self._between(best, -1.0)

    def epsilon(self, delta: FloatArray) -> Answer:
        raise NotImplementedError


BOTH = BothOrders(Root(inverse=False), Root(inverse=True))


def test_hull_between_bounds() -> None:
    beta, gamma = BOTH.trade_off(AT)
    assert gamma.value == pytest.approx(HULL, abs=1e-12)
    assert beta.value == pytest.approx(1.0 - HULL, abs=1e-12)
    for answer, truth in ((gamma, HULL), (beta, 1.0 - HULL)):
        assert np.all(answer.lower <= answer.value)
        assert np.all(answer.value <= answer.upper)
        assert np.all(answer.lower <= truth + 1e-16)
        assert np.all(answer.upper >= truth - 1e-16)
        assert np.all(answer.upper - answer.lower < 2e-12)


@pytest.mark.parametrize("off", [-0.9, 0.0, 0.9])
def test_bounds_hold_where_the_hull_is_hardly_below_the_curves(off: float) -> None:
    """A line that both curves' bounds hide may still be the hull: the bounds say so."""
    at = np.concatenate([AT, 0.25 + np.geomspace(1e-6, 0.1, 60), 0.5 - np.geomspace(1e-6, 0.1, 60)])
    hull = np.where(at < 0.25, np.sqrt(at), np.where(at < 0.5, at + 0.25, 2.0 * at - at**2))
    pairs = [Root(inverse=inverse, error=1e-3, off=off) for inverse in (False, True)]
    beta, gamma = BothOrders(*pairs).trade_off(at)
    for answer, truth in ((gamma, hull), (beta, 1.0 - hull)):
        assert np.all(answer.lower <= truth)
        assert np.all(truth <= answer.upper)
        assert np.all(answer.upper - answer.lower < 6e-3)
        assert answer.certified.all()


def test_chord_is_below_the_hull_and_close_to_it() -> None:
    bridged = AT[1:5]
    chord, *_ = BOTH._chord(bridged, np.zeros(bridged.size))
    assert np.all(chord <= bridged + 0.25)
    assert np.all(chord >= bridged + 0.25 - 1e-12)


def test_no_chord_is_above_the_hull() -> None:
    for c in np.linspace(-1.5, 1.5, 13):
        chord, *_ = BOTH._chord(AT, np.full(AT.size, c))
        assert np.all(chord <= HULL + 1e-13)
        assert np.all(chord >= AT)


def test_a_chord_is_below_by_more_than_its_roundings() -> None:
    """Between points without an error: what is left is the allowance for the chord itself."""
    pairs = [Root(inverse=inverse, error=0.0) for inverse in (False, True)]
    at = np.linspace(0.26, 0.49, 400)
    chord, *_ = BothOrders(*pairs)._chord(at, np.zeros(at.size))
    assert np.all(chord <= (at + 0.25) * (1.0 - 2.0**-51))
    assert np.all(chord >= (at + 0.25) * (1.0 - 2.0**-49))


def test_chances_between_two_tests_hold_what_they_round() -> None:
    """Against fractions, of levels next to either test and errors of all sizes."""
    rng = np.random.default_rng(3)
    n = 5000
    x, u = np.sort(10.0 ** -np.minimum(rng.exponential(20.0, (2, n)), 323.0), axis=0)
    share = np.where(rng.random(n) < 0.5, rng.random(n), 10.0 ** rng.uniform(-17.0, 0.0, n))
    share = np.where(rng.random(n) < 0.5, share, 1.0 - share)
    alpha = np.clip(x + share * (u - x), x, u)
    missed, shown = (10.0 ** rng.uniform(-323.0, 0.0, (2, n)) for _ in range(2))
    power, error, within = mixed(alpha, [(x, missed[0], shown[0]), (u, missed[1], shown[1])])
    assert np.array_equal(within, x < u)
    least = 8 * Fraction(5e-324)
    for i in np.flatnonzero(within):
        a, b, at = (Fraction(float(end[i])) for end in (x, u, alpha))
        second = (at - a) / (b - a)
        one, other = (Fraction(float(row[i])) for row in shown)
        exact = one + second * (other - one)
        assert Fraction(float(power[i])) <= max(exact, at)
        assert Fraction(float(power[i])) >= exact * (1 - Fraction(2) ** -49) - least
        one, other = (Fraction(float(row[i])) for row in missed)
        exact = one + second * (other - one)
        assert exact <= Fraction(float(error[i])) <= exact * (1 + Fraction(2) ** -49) + least


class Known(Root):
    """A pair with given values of its profile, exactly."""

    def __init__(self, value: FloatArray) -> None:
        self.value = value

    def profile(self, epsilon: FloatArray) -> Answer:  # noqa: ARG002
        return Answer.exact(self.value.copy())


def test_a_line_of_slope_one_holds_what_it_rounds() -> None:
    """Against fractions; near α = 1 the roundings of γ are large beside β."""
    rng = np.random.default_rng(2)
    rest = 2.0 ** -rng.uniform(1.0, 30.0, 2000)
    alpha = 1.0 - rest
    profile = rest * rng.uniform(0.0, 0.999, rest.size)
    pair = Known(profile)
    beta, gamma = BothOrders(pair, pair)._tangent(alpha, np.zeros(rest.size))
    for i, (x, d) in enumerate(zip(alpha.tolist(), profile.tolist(), strict=True)):
        line = Fraction(x) + Fraction(d)
        assert Fraction(float(gamma.lower[i])) <= line <= Fraction(float(gamma.upper[i]))
        assert Fraction(float(beta.lower[i])) <= 1 - line <= Fraction(float(beta.upper[i]))
    assert np.all(gamma.upper - gamma.lower <= 2.0**-47)


def test_larger_and_smaller_take_all_of_the_extreme_one() -> None:
    engine = names("one", 2), names("two", 2)
    one = Answer(*np.array([[1.0, 5.0], [0.5, 4.0], [2.0, 6.0]]), engine[0], True)
    two = Answer(
        *np.array([[3.0, 4.5], [0.9, 4.2], [3.5, 8.0]]), engine[1], np.array([True, False])
    )
    up, down = larger(one, two), smaller(one, two)
    assert (up.value.tolist(), up.lower.tolist(), up.upper.tolist()) == (
        [3, 5],
        [0.9, 4.2],
        [3.5, 8],
    )
    assert (down.value.tolist(), down.lower.tolist()) == ([1, 4.5], [0.5, 4.0])
    assert down.upper.tolist() == [2.0, 6.0]
    assert (up.engine.tolist(), down.engine.tolist()) == (["two", "one"], ["one", "two"])
    assert up.certified.tolist() == down.certified.tolist() == [True, False]


class Fixed:
    """A pair that gives the same answer to every question, for two points."""

    def __init__(self, middle: list[float], proven: bool) -> None:
        value = np.array(middle)
        self.answer = Answer.around(value, 0.01 + 0.0 * value, names("stub", value.size), proven)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        beta = Answer.around(1.0 - self.answer.value, 0.01 + 0.0 * alpha, self.answer.engine, True)
        return ErrorCurve(beta, self.answer, alpha)

    def profile(self, epsilon: FloatArray) -> Answer:  # noqa: ARG002
        return self.answer

    epsilon = profile


def test_a_dominating_pair_is_bounded_by_what_is_attained() -> None:
    attained = [Fixed([0.2, 0.6], True), Fixed([0.4, 0.5], True)]
    asked = substituted(Fixed([0.5, 0.7], True), attained)
    at = np.array([0.1, 0.2])
    beta, gamma = asked.trade_off(at)
    for answer in (gamma, asked.profile(at), asked.epsilon(at)):
        assert answer.value.tolist() == answer.upper.tolist() == [0.51, 0.71]
        assert answer.lower.tolist() == [0.39, 0.59]  # the largest of what is attained, by point
        assert answer.certified.all()
    assert beta.value.tolist() == beta.lower.tolist() == pytest.approx([0.49, 0.29])
    assert beta.upper.tolist() == pytest.approx([0.61, 0.41])
    assert beta.certified.all()
    unproven = substituted(Fixed([0.5, 0.7], True), [*attained, Fixed([0.1, 0.1], False)])
    assert not unproven.profile(at).certified.any()
    # an attained bound above the dominating one is one of rounding
    above = substituted(Fixed([0.5, 0.7], True), [Fixed([0.9, 0.1], True)]).profile(at)
    assert above.lower.tolist() == pytest.approx([0.51, 0.09])
