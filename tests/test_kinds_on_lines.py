"""Steps of different kinds on one line: each kind's own claims, and compositions of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import random_mechanisms as families
from error_budget import check
from thorough import sampled, some

import pyengine as pe
from pyengine.api import answers
from pyengine.caches import clear_cache
from pyengine.engines.lattice.pair import LatticePair
from pyengine.engines.vertical_lines import questions
from pyengine.engines.vertical_lines.choice import choice_of
from pyengine.engines.vertical_lines.finite_steps import FiniteShape
from pyengine.engines.vertical_lines.inner import RowsOrder
from pyengine.engines.vertical_lines.laplace_shapes import RangeShape
from pyengine.engines.vertical_lines.mixed import WeightedOrder
from pyengine.engines.vertical_lines.normal_steps import GaussianShape, MixtureShape
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.range import line_order
from pyengine.engines.vertical_lines.shapes import At, cumulants, cumulants_at
from pyengine.engines.vertical_lines.tilted import TiltedStep
from pyengine.laws.composition import composition_law
from pyengine.laws.discrete import noise_law
from pyengine.laws.finite import FiniteLaw

Number = Any  # of mpmath


class Kind:
    """A shape, how its transform is known otherwise, and how many steps it stands for."""

    def __init__(self, shape: Any, transform: Any, steps: int) -> None:
        self.shape, self.transform, self.steps = shape, transform, steps


def gaussian() -> Kind:
    variance = Fraction(7, 5)

    def transform(s: Number) -> Number:
        v = mpmath.mpf(variance.numerator) / variance.denominator
        return mpmath.exp(v * s * (s - 1) / 2)

    return Kind(GaussianShape(variance), transform, 1)


def finite() -> Kind:
    masses = [
        (Fraction(1, 2), Fraction(1, 8)),
        (Fraction(3, 8), Fraction(3, 8)),
        (Fraction(1, 8), Fraction(1, 2)),
    ]
    law = FiniteLaw.from_fractions(masses)

    def transform(s: Number) -> Number:
        found = mpmath.mpf(0)
        for a, b in masses:
            ratio = mpmath.mpf((b / a).numerator) / (b / a).denominator
            found += mpmath.mpf(a.numerator) / a.denominator * ratio**s
        return found

    return Kind(FiniteShape(law), transform, 1)


def discrete() -> Kind:
    law = noise_law(pe.DiscreteGaussianMechanism(3.0), doubled=False)
    assert isinstance(law, FiniteLaw)

    def transform(s: Number) -> Number:
        weights = [(k, mpmath.exp(-mpmath.mpf(k * k) / 18)) for k in range(-60, 61)]
        total = sum(w for _, w in weights)
        return sum(w * mpmath.exp(s * (2 * k - 1) / 18) for k, w in weights) / total

    return Kind(FiniteShape(law), transform, 1)


def bounded_range(steps: int) -> Kind:
    def transform(s: Number) -> Number:
        end = mpmath.mpf(0.75)
        x = s - mpmath.mpf(1) / 2
        return mpmath.sinh(x * end) / x / (2 * mpmath.sinh(end / 2))

    return Kind(RangeShape(Fraction(3, 4), Fraction(1)), transform, steps)


def mixture(order: str) -> Kind:
    (law, _), *_ = composition_law(pe.dp_sgd(0.8, 0.03125, 40), order)

    @cache
    def nodes(digits: int) -> list[tuple[Number, Number]]:
        """Equidistant ones of what is analytic on all of the line: weights and logs of ratios."""
        assert digits == mpmath.mp.dps
        mu, p, h = 1 / mpmath.mpf(0.8), mpmath.mpf(1) / 32, mpmath.mpf(1) / 24
        places = [h * k for k in range(-24 * 14, 24 * 18)]
        ratios = [1 - p + p * mpmath.exp(mu * z - mu * mu / 2) for z in places]
        return [
            (h * mpmath.npdf(z), mpmath.log(ratio)) for z, ratio in zip(places, ratios, strict=True)
        ]

    def step(s: Number) -> Number:
        power = s if order == "add" else 1 - s
        return mpmath.fsum(w * mpmath.exp(power * log) for w, log in nodes(mpmath.mp.dps))

    return Kind(MixtureShape(((law, 40),)), lambda s: step(s) ** 40, 1)


KINDS = {
    "gaussian": gaussian,
    "finite": finite,
    "discrete": discrete,
    "bounded range, few": lambda: bounded_range(3),
    "bounded range, many": lambda: bounded_range(500),
    "mixture, add": lambda: mixture("add"),
    "mixture, remove": lambda: mixture("remove"),
}
SPACING = 2.0**-4


def made(kind: Kind, tilt: float, count: int) -> TiltedStep:
    log_mean = cumulants_at(kind.shape, tilt)[0]
    at = At(tilt, log_mean, kind.steps, -200.0)
    found = kind.shape.tilted(at, 1.001 * count * SPACING, 1e-18, SPACING)
    assert found is not None
    return found


# Lemmas of docs/theory/kinds
@pytest.mark.parametrize("tilt", [-1.25, 0.375, 2.5])
@pytest.mark.parametrize("name", list(KINDS))
def test_each_kind_keeps_what_it_claims(name: str, tilt: float) -> None:
    """Its transform, log mean and centre, what lies beyond a frequency, and means elsewhere."""
    kind, count = KINDS[name](), 80
    step = made(kind, tilt, count)
    t = SPACING * np.arange(count + 1.0)
    found = step.transform(t, SPACING)
    with mpmath.workdps(40):
        whole = kind.transform(mpmath.mpf(tilt))
        log = mpmath.log(whole)
        removed = mpmath.mpf(sum(step.removed)) / whole
        known = mpmath.mpf(str(step.log_mean))
        assert abs(log - known) <= step.log_error + removed * 10
        moduli = []
        for i in range(0, count + 1, 5 if "mixture" not in name else 20):
            value = kind.transform(mpmath.mpc(tilt, t[i])) / whole
            moduli.append((float(t[i]), abs(value)))
            turned = value * mpmath.exp(mpmath.mpc(0, -t[i] * mpmath.mpf(step.centre)))
            if math.isfinite(found.log[i]):
                own = mpmath.exp(mpmath.mpc(found.log[i], found.angle[i]))
                off = abs(own - turned)
                allowed = abs(own) * mpmath.expm1(
                    found.log_error[i] + 2**-50 * (1 + abs(found.angle[i]))
                )
                assert off <= allowed + removed * 10, (t[i], off, allowed)
            else:
                assert mpmath.log(abs(value)) <= found.log_error[i] + 1e-12
        for place, _ in moduli[1:]:
            most = step.largest_from(np.array([place]), 1.0)
            assert all(value <= most + 1e-15 for at, value in moduli if at >= place)
        for other in (tilt - 1.0, tilt + 0.5):
            truth = mpmath.log(kind.transform(mpmath.mpf(other)))
            assert truth <= step.bound_at(other) + 1e-12
            assert truth <= kind.shape.log_mean_bound(other) + 1e-12
            assert abs(truth - kind.shape.log_above(tilt, -200.0, other)) < 0.5


@pytest.mark.parametrize("name", [x for x in KINDS if x not in ("finite", "discrete")])
def test_integrals_beyond_a_frequency(name: str) -> None:
    """The integral of a modulus over dt/t from a frequency on is at most what the kind says."""
    kind, tilt = KINDS[name](), 0.375
    whole = kind.transform(mpmath.mpf(tilt))
    for first in (2.0, 5.0):
        step = made(kind, tilt, int(first / SPACING))
        t = first * np.exp(np.linspace(0.0, 3.0, 400 if "mixture" not in name else 25))
        moduli = [float(abs(kind.transform(mpmath.mpc(tilt, x)) / whole)) for x in t]
        integral = float(np.trapezoid(moduli, np.log(t)))
        assert integral <= 1.01 * step.tail(first)


# ---- compositions -----------------------------------------------------------------------------

CASES = json.loads((Path(__file__).parent / "data/mixed.json").read_text())["values"]


@pytest.mark.parametrize("case", CASES, ids=[str(i) for i in range(len(CASES))])
def test_values_of_the_brief(case: dict[str, Any]) -> None:
    mechanism = eval(case["mechanism"], {"pe": pe})
    with mpmath.workdps(40):
        truth = mpmath.mpf(case["value"])
        epsilon = float(case["epsilon"])
        # ε is the decimal that is written, next to which the double lies
        slope = 2.0 * abs(mpmath.mpf(epsilon) - mpmath.mpf(case["epsilon"]))
        low, value, high = pe.delta(mechanism, epsilon, adjacency=case["adjacency"], bounds=True)
        assert low - slope <= truth <= high + slope
        check("kinds_on_lines.width", float((high - low) / truth))
        check("kinds_on_lines.value", float(abs(value - truth) / truth))
        _, engines, proven = answers("delta", mechanism, [epsilon], adjacency=case["adjacency"])
    assert engines == ["certified"]
    assert proven


REFERENCED = [
    (pe.GaussianMechanism(2.0).composed(10) + pe.LaplaceMechanism(2.0).composed(5)),
    (pe.dp_sgd(1.0, 0.015625, 500) + pe.LaplaceMechanism(3.0).composed(5)),
    (pe.dp_sgd(1.1, 0.015625, 400) + pe.RandomizedResponse(Fraction(3, 4)).composed(5)),
    (pe.LaplaceMechanism(3.0).poisson_sampled(0.125).composed(9) + pe.RandomizedResponse("0.75")),
    (pe.LaplaceMechanism(1.5).composed(4) + pe.DiscreteGaussianMechanism(3).composed(2)),
    (pe.GaussianMechanism(1.5).composed(3) + pe.DiscreteLaplaceMechanism(2).composed(3)),
]


@sampled(2)
@pytest.mark.parametrize("mechanism", some(REFERENCED, 2), ids=str)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_all_questions_against_the_reference(mechanism: pe.Mechanism, adjacency: str) -> None:
    for question, x in (
        ("delta", 1.0),
        ("gamma_bound", 1e-3),
        ("trade_off", 0.25),
        ("epsilon", 1e-5),
    ):
        truth = getattr(pe.reference, question)(mechanism, x, adjacency=adjacency, digits=20)
        low, value, high = getattr(pe, question)(mechanism, x, adjacency=adjacency, bounds=True)
        with mpmath.workdps(30):
            assert low <= truth * (1 + mpmath.mpf(10) ** -18)
            assert truth <= high * (1 + mpmath.mpf(10) ** -18)
            check("kinds_on_lines.value", float(abs(value - truth) / truth))
        check("kinds_on_lines.width", (high - low) / value)


@sampled(2)
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_exponential_mechanisms_have_digits(epsilon: float) -> None:
    """Against the convolution of the density with itself, by characteristic functions in mpmath."""
    steps = 10
    mechanism = pe.ExponentialMechanism(epsilon).composed(steps)
    end = mpmath.mpf(epsilon)

    def transform(s: Number) -> Number:
        x = s - mpmath.mpf(1) / 2
        return (mpmath.sinh(x * end) / x / (2 * mpmath.sinh(end / 2))) ** steps

    with mpmath.workdps(30):
        c, tilt = -mpmath.mpf("0.25"), mpmath.mpf(-2)

        def integrand(t: Number) -> Number:
            s = mpmath.mpc(tilt, t)
            return (transform(s) * mpmath.exp(-s * c) / (s * (s - 1))).real / mpmath.pi

        edges = [0, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 5120, 40960]
        truth = mpmath.quad(integrand, edges, maxdegree=10)
        low, _, high = pe.delta(mechanism, 0.25, bounds=True)
        assert low - mpmath.mpf(10) ** -17 <= truth <= high + mpmath.mpf(10) ** -17
    assert high - low <= 1e-12 * high


def some_alone(name: str) -> tuple[pe.Mechanism, list[tuple[Fraction, Fraction]]]:
    if name == "generic":
        return pe.GenericMechanism(0.0, "1/32"), [
            (Fraction(1, 32), Fraction(0)),
            (Fraction(31, 32), Fraction(31, 32)),
            (Fraction(0), Fraction(1, 32)),
        ]
    p = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(0)]
    q = [Fraction(3, 8), Fraction(1, 2), Fraction(0), Fraction(1, 8)]
    return pe.from_probabilities(p, q), list(zip(p, q, strict=True))


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize("name", ["generic", "vectors"])
def test_what_one_law_alone_shows_joins_the_line(name: str, adjacency: str) -> None:
    """δ of a sum over outcomes of profiles of plain noise, which are normal masses."""
    few, outcomes = some_alone(name)
    mechanism = pe.GaussianMechanism(2.0).composed(4) + few
    if adjacency == "remove":
        outcomes = [(b, a) for a, b in outcomes]
    with mpmath.workdps(40):

        def profile(epsilon: Number) -> Number:
            return mpmath.ncdf(mpmath.mpf(1) / 2 - epsilon) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mpmath.mpf(1) / 2 - epsilon
            )

        def delta(epsilon: Number) -> Number:
            total = mpmath.mpf(0)
            for a, b in outcomes:
                mass = mpmath.mpf(a.numerator) / a.denominator
                if b == 0:
                    total += mass
                elif a > 0:
                    ratio = mpmath.mpf((b / a).numerator) / (b / a).denominator
                    total += mass * profile(epsilon + mpmath.log(ratio))
            return total

        for epsilon in (0.0, 0.03125, 0.5, 3.0):
            low, _, high = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
            truth = delta(mpmath.mpf(epsilon))
            assert low <= truth <= high
            assert high - low <= 1e-12 * high
        alone = float(sum(a for a, b in outcomes if b == 0))
        shown = float(sum(b for a, b in outcomes if a == 0))
        assert pe.epsilon(mechanism, 0.5 * alone, adjacency=adjacency) == math.inf
        low, _, high = pe.epsilon(mechanism, alone + 0.0625, adjacency=adjacency, bounds=True)
        assert delta(mpmath.mpf(high)) <= alone + 0.0625 <= delta(mpmath.mpf(low))
        assert high - low <= 1e-11 * high
        low, _, high = pe.gamma_bound(mechanism, 0.0, adjacency=adjacency, bounds=True)
        assert low <= shown <= high
        assert high - low <= 1e-14
        whole = 1.0 - alone + 2.0**-20
        assert pe.trade_off(mechanism, whole, adjacency=adjacency) == 0.0


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_quick_bounds_beside_infinite_losses_hold_what_lines_say(adjacency: str) -> None:
    few = pe.from_probabilities(["1/2", "1/4", "1/4", 0], ["3/8", "1/2", 0, "1/8"])
    mechanism = pe.GaussianMechanism(2.0).composed(4) + few.composed(2)
    order = line_order(composition_law(mechanism, adjacency))
    assert type(order) is LineOrder
    c = np.concatenate([np.linspace(-9.0, 9.0, 181), [-np.inf, np.inf]])
    pairs = list(zip(order.masses_at(0, c), order.masses_at(1, c), strict=True))
    pairs.append((order.profile_at(0, c[:-2]), order.profile_at(1, c[:-2])))
    for (quick, off), (value, error) in pairs:
        assert (np.abs(quick - value) <= off + error).all()
    # both parts of each law have the mass 1, whatever is infinite
    (above, off), (below, error) = pairs[0][1], pairs[1][1]
    assert (np.abs(above + below - 1.0) <= off + error).all()
    assert above[-2] == pytest.approx(float(1 - order.first.mass), rel=1e-15)


def test_next_to_no_mass_of_finite_losses() -> None:
    """Less than doubles hold: all but nothing is told."""
    step = pe.GenericMechanism(0.0, 0.9).composed(400)
    mechanism = pe.LaplaceMechanism(2.0).composed(40) + step
    low, _, high = pe.delta(mechanism, 0.5, bounds=True)
    assert 1.0 - 1e-14 <= low <= high == 1.0
    assert pe.epsilon(mechanism, 0.99) == math.inf
    assert pe.trade_off(mechanism, 0.2) == 0.0


def test_few_losses_far_apart_have_lines_of_their_own() -> None:
    """One line for all would take fifteen thousand nodes, and lose three digits."""
    mechanism = pe.dp_sgd(5.0, 1e-5, 10**6) + pe.RandomizedResponse("0.85").composed(6)
    assert isinstance(line_order(composition_law(mechanism, "add")), WeightedOrder)
    for alpha in (1e-3, 0.3):
        low, value, high = pe.gamma_bound(mechanism, alpha, bounds=True)
        assert high - low <= 1e-11 * value


def test_random_compositions_are_narrow_and_meet_the_lattice() -> None:
    """Kinds drawn together; the lattice discretises anew what lines invert."""
    d = families.Draw(20261126)
    names = ("plain", "sgd", "laplace", "exponential", "response", "discrete", "generic")
    narrow, asked = 0, 30
    for i in range(asked):
        chosen = names[i % 2], *d.random.choice(names, 3, replace=False)
        mechanism = families.made(*(families.FAMILIES[name](d) for name in chosen))
        adjacency = d.adjacency()
        name, x = d.question(delta=(0.01, 3.0), epsilon=(1e-6, 1e-2), gamma_bound=(1e-9, 0.1))
        question = getattr(pe, name)
        clear_cache()
        one = question(mechanism, x, adjacency=adjacency, bounds=True)
        narrow += one.upper - one.lower <= 1e-10 * one.upper or one.lower == math.inf
        if i % 5 == 0:
            other = question(mechanism, x, adjacency=adjacency, bounds=True, method="lattice")
            assert one.lower <= other.upper, (mechanism, name, x, adjacency)
            assert other.lower <= one.upper, (mechanism, name, x, adjacency)
    assert narrow >= asked - 1


# ---- what an audit of the first version found ---------------------------------------------------


def test_tails_beyond_what_sums_know_are_not_zero() -> None:
    """Errors that were no numbers passed for 0: masses were proven to be exactly 0."""
    run = pe.dp_sgd("2.61", "0.304", 1, group_size=2)
    mechanism = run + pe.RandomizedResponse("0.671").composed(4)
    for kappa in (5.0929e-22, 9.01e-25):
        low, value, high = pe.gamma_bound(mechanism, kappa, adjacency="remove", bounds=True)
        assert kappa < low <= value <= high
    order = line_order(composition_law(mechanism, "remove"))
    assert order is not None
    c = np.linspace(-4.0, 4.0, 161)
    tails = order.tails(c)
    known = tails.error < 1.0
    for part in tails[:4]:
        assert (part[known] > 0.0).all()
    assert not np.isnan(np.array(tails)).any()


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (
            pe.dp_sgd(2.51, 0.0531, 3, group_size=3) + pe.RandomizedResponse(0.801).composed(3),
            0.0552,
        ),
        (
            pe.LaplaceMechanism(0.704).poisson_sampled(0.00377).composed(530)
            + pe.dp_sgd(1.64, 0.385, 3),
            4.71,
        ),
    ],
)
def test_profiles_beyond_what_sums_know_are_bounded(
    mechanism: pe.Mechanism, epsilon: float
) -> None:
    low, value, high = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
    assert 0.0 <= low <= value <= high <= 1.0


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_epsilon_beside_what_one_law_alone_shows(adjacency: str) -> None:
    """A rounding above that mass the truth is far below the largest loss."""
    mechanism = pe.GenericMechanism(0, "0.5") + pe.GaussianMechanism(1).composed(2)
    low, _, high = pe.epsilon(mechanism, math.nextafter(0.5, 1.0), adjacency=adjacency, bounds=True)
    assert low <= 12.15985 <= high
    twice = pe.GaussianMechanism(1).composed(2) + pe.GenericMechanism(0, "1/10").composed(2)
    low, _, high = pe.epsilon(twice, 0.19, adjacency=adjacency, bounds=True)
    assert low <= 12.9021 <= high
    assert pe.epsilon(mechanism, math.nextafter(0.5, 0.0), adjacency=adjacency) == math.inf


@pytest.mark.parametrize(
    ("mechanism", "delta", "truth"),
    [
        (
            pe.LaplaceMechanism(1).composed(10) + pe.ExponentialMechanism(0.5).composed(10),
            0.0,
            15.0,
        ),
        (
            pe.GenericMechanism(0, "0.5")
            + pe.LaplaceMechanism(1).composed(30)
            + pe.ExponentialMechanism(0.5).composed(20),
            0.5,
            40.0,
        ),
        (pe.LaplaceMechanism(1).composed(2) + pe.DiscreteGaussianMechanism(3), 0.0, math.inf),
        (pe.LaplaceMechanism(1).composed(3) + pe.DiscreteGaussianMechanism(1), 0.0, math.inf),
    ],
)
def test_the_largest_loss_lies_between_its_bounds(
    mechanism: pe.Mechanism, delta: float, truth: float
) -> None:
    low, _, high = pe.epsilon(mechanism, delta, bounds=True)
    assert low <= truth <= high


@pytest.mark.parametrize(("adjacency", "delta"), [("remove", 1e-300), ("substitute", 1e-300)])
def test_epsilon_beyond_the_losses_of_most_steps(
    adjacency: str, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare step may have a loss far above all others, which lines know without a lattice."""
    monkeypatch.delattr(LatticePair, "epsilon")
    mechanism = pe.dp_sgd(1, 0.01, 100) + pe.LaplaceMechanism(2).composed(3)
    order = line_order(composition_law(mechanism, adjacency))
    assert order is not None
    low, value, high = pe.epsilon(mechanism, delta, adjacency=adjacency, bounds=True)
    assert low <= value <= high <= low * (1.0 + 1e-9)
    variance = cumulants(order.kinds, np.array([0.0]))[2][0]
    assert low > 50.0 * math.sqrt(variance)
    # one of the steps alone shows less
    step = pe.epsilon(pe.dp_sgd(1, 0.01, 1), delta, adjacency=adjacency, bounds=True)
    assert step.lower <= high
    for end, sign in ((low, 1.0), (high, -1.0)):
        at_end = pe.delta(mechanism, end, adjacency=adjacency, bounds=True)
        assert sign * (at_end.value / delta - 1.0) >= -1e-6


def test_bounds_stay_where_no_other_engine_knows_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are asked for what is wider than 1e-10, and know less; the lattice knows only 1e-4."""
    monkeypatch.delattr(LatticePair, "profile")
    mechanism = pe.dp_sgd(1, 0.0001, 1000) + pe.LaplaceMechanism(2).composed(3)
    for epsilon in (5.0, 8.0, 10.0):
        low, _, high = pe.delta(mechanism, epsilon, adjacency="remove", bounds=True)
        assert 1e-10 < (high - low) / high < 1e-9


@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
def test_only_the_error_that_is_asked_for_is_handed_over(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next to α = 0 the other error takes a lattice of many terms, of which nobody asked."""
    asked = []

    def refuse(self: LatticePair, alpha: Any) -> Any:
        del alpha
        asked.append(self.wanted)
        raise pe.AccuracyError("the lattice is asked")

    monkeypatch.setattr(LatticePair, "_inside", refuse)
    mechanism = pe.GenericMechanism(0.9993, 2.294e-8).composed(3)
    mechanism += pe.dp_sgd(0.4757, 3.072e-7, 30_240)
    monkeypatch.setattr(questions, "WIDEST", 1e-9)
    low, _, high = pe.trade_off(mechanism, 1e-10, adjacency=adjacency, bounds=True)
    assert high - low < 1e-9
    assert not asked
    with pytest.raises(pe.AccuracyError, match="is asked"):
        pe.gamma_bound(mechanism, 1e-10, adjacency=adjacency, bounds=True)
    assert asked == ["gamma"]


@pytest.mark.parametrize(
    ("question", "steps", "other", "widest"),
    [
        ("trade_off", (1.2, 1e-6, 1224), pe.RandomizedResponse("0.781").composed(6), 1e-9),
        ("gamma_bound", (1.2, 1e-6, 1224), pe.RandomizedResponse("0.781").composed(6), 2.1e-9),
        ("epsilon", (0.5, 1e-5, 100), pe.GenericMechanism(0.1, 1e-6), 1e-10),
    ],
)
def test_what_lines_know_is_not_searched_for_again(
    question: str, steps: Any, other: Any, widest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next engine narrows the bounds of a number, with the lines' estimates on the way."""
    asked = Counter[str]()

    def counting(owner: Any, name: str) -> None:
        made = getattr(owner, name)

        def counted(*args: Any) -> Any:
            asked[name] += 1
            return made(*args)

        monkeypatch.setattr(owner, name, counted)

    counting(LineOrder, "expected")
    counting(RowsOrder, "rough_masses")
    counting(RowsOrder, "rough_profile")
    counting(RowsOrder, "masses_at")
    clear_cache()
    found = getattr(pe, question)(pe.dp_sgd(*steps) + other, 7e-4, adjacency="add", bounds=True)
    assert found.upper - found.lower <= widest * found.upper
    assert asked["expected"] == 2  # by both; for the spread
    assert asked["masses_at"] > 0
    assert asked["rough_masses"] == asked["rough_profile"] == 0


def test_thresholds_are_searched_for_where_rare_large_losses_are() -> None:
    """The next engine has no estimates there, and the lines' serve in their place."""
    mechanism = pe.GenericMechanism("0.1923", "0.0002601") + pe.dp_sgd(0.4516, 2.046e-6, 6308)
    mechanism += pe.RandomizedResponse("0.7711").composed(2)
    low, _, high = pe.gamma_bound(mechanism, 2.256e-9, adjacency="add", bounds=True)
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize("point", some(range(40), 5))
def test_mixtures_end_where_no_mass_is_left(point: int) -> None:
    """By proven means at some tilt, on both sides and for both laws."""
    random = np.random.default_rng(point)
    noise = float(random.uniform(0.4, 4.0))
    rate = float(10.0 ** random.uniform(-7.0, -1.0))
    steps = int(10.0 ** random.uniform(0.5, 5.0))
    ((law, number),) = composition_law(pe.dp_sgd(noise, rate, steps), "add")
    shape = MixtureShape(((law, number),))
    low, high = shape.ends
    away = 2.0 ** np.arange(-8.0, 12.0)
    above = min(shape.log_mean_bound(1.0 + x) - x * high for x in away.tolist())
    below = min(shape.log_mean_bound(-x) + x * low for x in away.tolist())
    assert above < -745.0  # B has the more mass above, A below
    assert below < -745.0


@pytest.mark.parametrize("point", some(range(40), 5))
def test_every_loss_has_a_line_near_its_saddle(point: int) -> None:
    """Also losses between the usual ones and a mode far out: their bound is nearly Chernoff's."""
    random = np.random.default_rng(point)
    noise = float(random.uniform(0.4, 2.0))
    rate = float(10.0 ** random.uniform(-7.0, -3.0))
    steps = int(10.0 ** random.uniform(1.0, 5.0))
    law = composition_law(pe.dp_sgd(noise, rate, steps), "add")
    kinds = ((MixtureShape(tuple(law)), 1),)
    choice = choice_of(kinds)
    best = choice.log_mean - choice.tilt * choice.loss
    own = (choice.line_log[:, None] - np.outer(choice.line, choice.loss)).min(axis=0)
    counts = (choice.tilt > 1.0) & (best - np.minimum(choice.loss, 0.0) > -600.0)
    assert (own - best)[counts].max() < 12.0


@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
def test_bounds_do_not_depend_on_what_was_asked_before(adjacency: str) -> None:
    mechanism = pe.dp_sgd(2.479, 0.0006762, 909, group_size=3) + pe.dp_sgd(1.443, 7.74e-6, 22)
    mechanism += pe.LaplaceMechanism(2.11)
    found = []
    for first in ("trade_off", "delta"):
        clear_cache()
        getattr(pe, first)(mechanism, 1e-6, adjacency=adjacency)
        found.append(pe.gamma_bound(mechanism, 1e-6, adjacency=adjacency, bounds=True))
    assert found[0] == found[1]
    assert found[0].upper - found[0].lower <= 1e-4 * found[0].upper


def test_infinite_losses_are_asked_at_infinity() -> None:
    """Of questions that were left empty by them."""
    assert pe.epsilon(pe.dp_sgd(1.33, 0.07, 3) + pe.GenericMechanism(2.03, 0.5), 0.115) == math.inf
    tiny = pe.GenericMechanism("0.1", "1e-320").composed(10) + pe.GaussianMechanism(1.0)
    low, _, high = pe.delta(tiny, math.inf, bounds=True)
    assert low < 1e-319 < high


def test_masses_below_all_numbers_are_left_to_others() -> None:
    p = Fraction(1, 10**4950)
    few = pe.from_probabilities([p, 1 - p], ["1/2", "1/2"])
    mechanism = pe.GaussianMechanism("0.02").composed(2) + few
    assert line_order(composition_law(mechanism, "add")) is None
