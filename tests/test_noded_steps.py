"""Sampled Gaussian steps beside Laplace steps and exponential mechanisms, by nodes of their law."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import acb, arb, ctx
from random_mechanisms import evenly
from thorough import sampled

import pyengine as pe
from pyengine.engines.sampled import sampled_steps
from pyengine.engines.vertical_lines import noded
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, shape_of
from pyengine.engines.vertical_lines.noded import CornerBounds, NodedOrder
from pyengine.engines.vertical_lines.range import order_on_nodes
from pyengine.laws.composition import composition_law

DIGITS = 110
SEED = 20261127


class Setting(NamedTuple):
    """A sampled Gaussian step, a step beside it, of which sort, and a threshold."""

    noise: float
    rate: float
    sort: str
    size: float
    other_rate: float
    part: float  # of the way of the loss
    order: str

    @property
    def mechanism(self) -> pe.Mechanism:
        """Both steps."""
        other: pe.Mechanism = pe.LaplaceMechanism(1.0 / self.size)
        if self.sort == "exponential":
            other = pe.ExponentialMechanism(self.size)
        elif self.sort == "sampled":
            other = pe.LaplaceMechanism(1.0 / self.size).poisson_sampled(self.other_rate)
        return pe.dp_sgd(self.noise, self.rate, 1) + other


def _settings(count: int) -> list[Setting]:
    rng = np.random.default_rng(SEED)
    sorts = ("plain", "sampled", "exponential")
    return [
        Setting(
            evenly(rng, 0.4, 5.0),
            evenly(rng, 1e-7, 0.3),
            sorts[i % 3],
            evenly(rng, 0.03, 2.5),
            evenly(rng, 0.003, 0.6),
            float(rng.uniform(-0.02, 1.25)),
            ("add", "remove")[i // 3 % 2],
        )
        for i in range(count)
    ]


class Truth:
    """Masses of one sampled Gaussian step and one other, of A without the record, by integrals.

    The tails of the other step are formulas, and what is left is an integral over one normal
    variate between its corners, enclosed by ball arithmetic.
    """

    def __init__(self, setting: Setting, digits: int | None = None) -> None:
        ctx.dps = digits or DIGITS
        s = setting
        self.mu, self.p = 1 / arb(s.noise), arb(s.rate)
        self.exponential = s.sort == "exponential"
        self.q = arb(s.other_rate) if s.sort == "sampled" else arb(1)
        scale = arb(1.0 / s.size)
        self.m = arb(s.size) if self.exponential else 1 / scale
        self.ends = [(1 - self.q + self.q * (sign * self.m).exp()).log() for sign in (-1, 1)]
        self.floor = (1 - self.p).log()

    def _loss(self, z: acb) -> acb:
        return (1 - self.p + self.p * (self.mu * z - self.mu * self.mu / 2).exp()).log()

    def _above(self, t: acb) -> tuple[acb, acb]:
        """The other step's masses of A and B above t, between its ends."""
        v = ((t.exp() - 1 + self.q) / self.q).log()
        m = self.m
        if self.exponential:
            whole = (m / 2).exp() - (-m / 2).exp()
            return ((-v / 2).exp() - (-m / 2).exp()) / whole, (
                (m / 2).exp() - (v / 2).exp()
            ) / whole
        of_a, of_b = (-(v + m) / 2).exp() / 2, 1 - (-(m - v) / 2).exp() / 2
        return of_a, (1 - self.q) * of_a + self.q * of_b

    def _place(self, t: arb) -> arb | None:
        """The variate whose loss is t."""
        x = (t.exp() - 1 + self.p) / self.p
        return ((x.log() + self.mu * self.mu / 2) / self.mu) if x > 0 else None

    def masses(self, c: float) -> list[arb]:
        """A's mass above c and at most c, and B's."""
        start, end = (self._place(arb(c) - x) for x in reversed(self.ends))
        far = arb(60)
        low, high = (-far if x is None else x.max(-far).min(far) for x in (start, end))
        found = []
        for law in range(2):

            def density(z: acb, law: int = law) -> acb:
                weight = self._loss(z).exp() if law else acb(1)
                return (-z * z / 2).exp() * weight / (2 * arb.pi()).sqrt()

            def inner(z: acb, _: bool, above: bool, law: int = law) -> acb:
                share = self._above(arb(c) - self._loss(z))[law]
                return density(z) * (share if above else 1 - share)

            def whole(z: acb, _: bool) -> acb:
                return density(z)

            def integral(f: Any, a: arb, b: arb) -> arb:
                pieces = [a, *(a + (b - a) * k / 16 for k in range(1, 16)), b]
                total = acb(0)
                for x, y in pairwise(pieces):
                    total += acb.integral(f, x, y)
                return total.real

            top, bottom = integral(whole, high, far), integral(whole, -far, low)
            found += [
                integral(lambda z, b: inner(z, b, True), low, high) + top,
                integral(lambda z, b: inner(z, b, False), low, high) + bottom,
            ]
        return found


def _order(mechanism: pe.Mechanism, adjacency: str) -> NodedOrder:
    order = order_on_nodes(tuple(composition_law(mechanism, adjacency)))
    assert order is not None
    inner = order.inner
    assert isinstance(inner, NodedOrder)
    return inner


def _asked(setting: Setting) -> tuple[NodedOrder, float, list[arb]]:
    """The order, a threshold of it, and its masses."""
    truth = Truth(setting)
    low, high = (float(end) for end in truth.ends)
    low += float(truth.floor)
    c = low + setting.part * (high - low)
    known = truth.masses(c)
    if not all(mass.rad() < 1e-20 * mass.mid() for mass in known):  # far from all losses
        known = Truth(setting, 4 * DIGITS).masses(c)
    backward = setting.order == "remove"
    return (
        _order(setting.mechanism, setting.order),
        (-c if backward else c),
        (known[::-1] if backward else known),
    )


def _is_within(value: float, error: float, truth: arb) -> bool:
    return bool(abs(arb(value) - truth) <= arb(error) + abs(truth) * arb(1e-30))


@sampled(60)
@pytest.mark.parametrize("setting", _settings(600))
def test_masses_hold_the_truth(setting: Setting) -> None:
    order, c, truth = _asked(setting)
    found = order.masses(np.array([c]))
    for (value, error), known in zip(found, truth, strict=True):
        assert _is_within(float(value[0]), float(error[0]), known)
        if known > 1e-12:
            assert float(error[0]) < 2e-12 * float(known)
    value, error = order.profile(np.array([-c]))
    profile = truth[1] - arb(-c).exp() * truth[3]
    assert _is_within(float(value[0]), float(error[0]), profile)


@sampled(6)
@pytest.mark.parametrize("setting", _settings(60))
def test_small_masses_are_known_closely(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far above what one step beside the sampled one may lose, where all rules leave more."""
    monkeypatch.setitem(globals(), "DIGITS", 150)
    truth = Truth(setting)
    z = 8.0 + 10.0 * max(setting.part, 0.0)
    c = float(truth.ends[1] + truth._loss(acb(z)).real)
    backward = setting.order == "remove"
    known = truth.masses(c)
    order = _order(setting.mechanism, setting.order)
    found = order.masses(np.array([-c if backward else c]))
    assert known[0] < 1e-14
    moved = truth.masses(c + 2.0 * float(order.shift(np.array([c]))[0]))
    rows = zip(known, moved, strict=True)
    for (value, error), (mass, other) in zip(
        found, list(rows)[:: -1 if backward else 1], strict=True
    ):
        off = float(error[0]) + float(abs(mass - other))
        assert _is_within(float(value[0]), off, mass)
        assert float(error[0]) < 1e-10 * float(mass)


Asked = tuple[Setting, float, list[arb]]
Drop = Callable[[pytest.MonkeyPatch], None]

_MEAN = noded._mean


def _coarse_rules(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(noded, "SIZES", (4, 4, 4))
    patch.setattr(noded, "LEFT", 9.0)
    patch.setattr(noded, "TURNS", 1)


def _few_pieces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(noded, "HALVED", 1)
    patch.setattr(noded, "TURNS", 1)


def _nothing_missed(patch: pytest.MonkeyPatch) -> None:
    own = NodedOrder._placed

    def placed(self: Any, law: Any, left: Any, right: Any, size: int, missed: Any) -> Any:
        return own(self, law, left, right, size, 0.0 * missed)

    patch.setattr(NodedOrder, "_placed", placed)


def _near_ends(patch: pytest.MonkeyPatch) -> None:
    own = noded._taken

    def taken(core: Any) -> Any:
        law = own(core)
        # a law that has less: what is beyond is bounded by normal tails of the one step
        return law._replace(
            low=law.low + 0.6 * (law.high - law.low), below=np.log([0.9999, 0.9999])
        )

    patch.setattr(noded, "_taken", taken)


def _nothing_beyond(patch: pytest.MonkeyPatch) -> None:
    own = noded._taken

    def taken(core: Any) -> Any:
        return own(core)._replace(below=np.full(2, -np.inf), above=np.full(2, -np.inf))

    patch.setattr(noded, "_taken", taken)


def _moved_corners(patch: pytest.MonkeyPatch) -> None:
    own = CornerBounds.__init__

    def made(self: Any, *given: Any) -> None:
        own(self, *given)
        self.places = self.places + 1e-5
        self.off = self.off + 1e-5

    patch.setattr(CornerBounds, "__init__", made)


def _corners_known(patch: pytest.MonkeyPatch) -> None:
    def beside(_: Any, off: Any, *__: Any) -> Any:
        return 0.0 * off

    patch.setattr(CornerBounds, "beside", beside)


def _wrong_weights(patch: pytest.MonkeyPatch) -> None:
    own = NodedOrder._placed

    def placed(self: Any, *given: Any) -> Any:
        nodes = own(self, *given)
        wrong = 1e-6 * np.random.default_rng(3).uniform(-1.0, 1.0, nodes.mass.size)
        return nodes._replace(mass=nodes.mass * (1.0 + wrong), error=nodes.error + 1.1e-6)

    patch.setattr(NodedOrder, "_placed", placed)


def _weights_known(patch: pytest.MonkeyPatch) -> None:
    own = noded._mean

    def mean(weight: Any, rounded: Any, *given: Any) -> Any:
        return own(weight, np.minimum(rounded, 1e-12), *given)

    patch.setattr(noded, "_mean", mean)


def _wrong_values(patch: pytest.MonkeyPatch, error: float = 1.1e-6) -> None:
    own = _MEAN

    def mean(weight: Any, rounded: Any, value: Any, off: Any, beyond: Any) -> Any:
        wrong = np.where(np.arange(value.size) % 2, 1e-6, -1e-6)
        # the value that the others follow is wrong as well
        wrong[np.argmax(weight * value[: weight.size])] = 1e-6
        return own(weight, rounded, value * (1.0 + wrong), off + error * value, beyond)

    patch.setattr(noded, "_mean", mean)


def _values_known(patch: pytest.MonkeyPatch) -> None:
    _wrong_values(patch, 0.0)


TERMS: dict[str, tuple[Drop, Drop]] = {
    "rules": (_coarse_rules, _nothing_missed),
    "pieces left out": (_few_pieces, _nothing_missed),
    "beyond the ends": (_near_ends, _nothing_beyond),
    "corners": (_moved_corners, _corners_known),
    "weights": (_wrong_weights, _weights_known),
    "values": (_wrong_values, _values_known),
}


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    """Settings, thresholds and masses."""
    return [(setting, *_asked(setting)[1:]) for setting in _settings(18)]


def _outside(settings: list[Asked]) -> int:
    found = 0
    for setting, c, truth in settings:
        order = NodedOrder(*_parts(setting))
        masses = order.masses(np.array([c]))
        pairs = zip(masses, truth, strict=True)
        found += not all(_is_within(float(v[0]), float(e[0]), known) for (v, e), known in pairs)
    return found


def _parts(setting: Setting) -> tuple[Any, Any, Any, CornerBounds]:
    order = _order(setting.mechanism, setting.order)
    (law, _) = next(
        part
        for part in composition_law(setting.mechanism, "add")
        if part[0].analytic() is None and shape_of(part[0]) is not None
    )
    found = shape_of(law)
    assert found is not None
    assert isinstance(found[0], LaplaceShape)
    corners = CornerBounds(((found[0], 1),), np.zeros((2, 1)), np.ones(1), 0.0)
    known = sampled_steps(tuple(composition_law(setting.mechanism, setting.order)))
    assert known is not None
    return known, order._laws, order._others, corners


@pytest.mark.parametrize("name", TERMS)
def test_each_error_term_is_enough_and_missed(
    name: str, asked: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made to carry the error alone, a term holds the truth; without it truths are outside."""
    loud, drop = TERMS[name]
    loud(monkeypatch)
    assert _outside(asked) == 0
    drop(monkeypatch)
    assert _outside(asked) > 0


@pytest.mark.parametrize("setting", _settings(18), ids=lambda setting: setting.sort)
def test_masses_from_corners_are_bounded_in_the_plane(setting: Setting) -> None:
    """Lemma 5, of one step: its formula between the corners, and every tilt."""
    truth, rng = Truth(setting), np.random.default_rng(7)
    corners = _parts(setting)[3]
    length = float(truth.ends[1] - truth.ends[0])
    assert corners.places.size == 2
    for _ in range(40):
        size = length * evenly(rng, 1e-4, 1.0)
        angle = float(rng.uniform(-0.25, 0.25)) * math.pi
        y = complex(size * math.cos(angle), size * math.sin(angle))
        if abs(y.imag) > 1.25:
            continue
        z = acb(truth.ends[0]) + acb(y.real, y.imag)
        of_a, of_b = (float(abs(1 - above).upper()) for above in truth._above(z))
        for tilt in range(noded.TILTS.size):
            most = float(corners.at(tilt, np.array(y.real), np.array(0.0)))
            assert of_a <= math.exp(min(most, 600.0))
            assert of_b <= math.exp(min(most + float(z.real), 600.0)) * (1.0 + 1e-12)
        for tilt, near in enumerate(corners.near.tolist()):
            turn = float(rng.uniform(-math.pi, math.pi))
            y = near / 3.0 * complex(math.cos(turn), math.sin(turn))
            z = acb(truth.ends[0]) + acb(y.real, y.imag)
            of_a = float(abs(1 - truth._above(z)[0]).upper())
            most = float(corners.at(tilt, np.array(y.real), np.array(abs(y) * (1.0 - 1e-9))))
            assert of_a <= math.exp(min(most, 600.0))


MIXTURES = (
    "pe.dp_sgd(0.6, 1.5e-7, 14) + pe.LaplaceMechanism(0.84).composed(4)",
    "pe.dp_sgd(3.6, 0.002, 3) + pe.LaplaceMechanism(3.4).poisson_sampled(0.0085).composed(3)",
    "pe.dp_sgd(0.46, 3.5e-5, 26) + pe.ExponentialMechanism(0.072).composed(2)",
    "pe.dp_sgd(1.75, 4.4e-6, 60) + pe.LaplaceMechanism(1.64).composed(20)",
    "pe.dp_sgd(0.6, 2e-4, 5) + pe.dp_sgd(3.3, 1e-4, 25) + pe.LaplaceMechanism(2.0).composed(2)",
    "pe.dp_sgd(1.9, 3e-7, 12) + pe.LaplaceMechanism(11.0).composed(4) + pe.RandomizedResponse(0.8)",
)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_bounds_are_close_and_meet_those_of_the_lattice(mixture: str) -> None:
    """Several steps of each kind: brackets of code that shares nothing with these sums."""
    mechanism = eval(mixture, {"pe": pe})
    for question, at, order in (("trade_off", 0.2, "add"), ("gamma_bound", 0.01, "remove")):
        ask = partial(getattr(pe, question), mechanism, at, adjacency=order, bounds=True)
        found, other = ask(), ask(method="lattice")
        assert found.upper - found.lower <= 5e-10 * found.upper
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)


@pytest.mark.parametrize("order", ["add", "remove"])
def test_thresholds_beyond_all_losses(order: str) -> None:
    found = _order(pe.dp_sgd(1.0, 0.01, 2) + pe.LaplaceMechanism(2.0), order)
    sides = found.masses(np.array([-math.inf, -30.0, 0.6, math.inf]))
    for (value, error), falls in zip(sides, (True, False, True, False), strict=True):
        assert value[0] == float(falls)
        assert value[3] == float(not falls)
        assert error[0] == error[3] == 0.0
    epsilon = np.array([-30.0, -0.7, 0.7, 30.0])
    value, error = found.profile(epsilon)
    assert (value + error >= np.maximum(-np.expm1(epsilon), 0.0)).all()
    assert (value - error <= 1.0).all()


@pytest.mark.parametrize("order", ["add", "remove"])
@pytest.mark.parametrize(("of_a", "of_b"), [("1/64", "1/64"), ("1/8", "1/32"), ("0", "1/4")])
def test_infinite_losses_beside_a_single_finite_one(of_a: str, of_b: str, order: str) -> None:
    """Profiles are those of the rest, moved, times the mass of finite losses, and what is alone."""
    a, b = Fraction(of_a), Fraction(of_b)
    few = pe.from_probabilities([1 - a, a, 0], [1 - b, 0, b])
    rest = pe.dp_sgd(1.118, 1.1e-5, 3) + pe.LaplaceMechanism(3.4)
    first, second = (1 - a) ** 2, (1 - b) ** 2
    if order == "remove":
        first, second = second, first
    moved = math.log(second / first)
    found = pe.delta(few.composed(2) + rest, 0.75, adjacency=order, bounds=True)
    inside = pe.delta(rest, 0.75 + moved, adjacency=order, bounds=True)
    low, high = (float(1 - first) + float(first) * end for end in (inside.lower, inside.upper))
    assert low * (1.0 - 1e-14) <= found.upper
    assert found.lower <= high * (1.0 + 1e-14)
    assert found.upper - found.lower <= 1e-12 * found.upper
