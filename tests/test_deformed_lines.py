"""Few Laplace steps, of one kind or several, on lines whose far part is turned."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check
from laplace_checks import (
    against_the_reference,
    agrees,
    known_masses,
    laplace,
    within_the_lattice,
)
from nested_steps import NestedLaw, nested
from thorough import stored

import pyengine as pe
from pyengine.engines.vertical_lines import deformation, deformed, ends
from pyengine.engines.vertical_lines.deformation import DeformedOrder, deformed_at, deformed_choice
from pyengine.engines.vertical_lines.deformed import RAYS, DeformedLine
from pyengine.engines.vertical_lines.ends import RayWeights, end_bounds, end_transforms
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, SubstitutedShape
from pyengine.engines.vertical_lines.low_rule import LowRule
from pyengine.engines.vertical_lines.shapes import Kinds

SHAPES = {
    "close": LaplaceShape(Fraction(10, 3), Fraction(1, 1000)),
    "closest": LaplaceShape(Fraction(5), Fraction(1, 10**4)),
    "plain": LaplaceShape(Fraction(1), Fraction(1)),
    "rare": LaplaceShape(Fraction(1, 10), Fraction(1, 100)),
    "far": LaplaceShape(Fraction(5), Fraction(1, 2)),
}


def points(shape: LaplaceShape, side: int) -> Any:
    """Panels of a ray, from its begin to far out."""
    height = max(ends.LEAST_HEIGHT, 12.0 / float(shape.length))
    tau = height * np.concatenate([np.geomspace(0.01, 1.0, 16), np.geomspace(30.0, 1e5, 16)])
    found = 0.3 * height + 1j * height + tau * np.exp(1j * RAYS[side][0])
    # few digits, which no machine's functions change, as truths at them are kept
    return np.array([complex(float(f"{s.real:.6g}"), float(f"{s.imag:.6g}")) for s in found])


def transform(shape: LaplaceShape, s: complex, angle: float, start: bool) -> Any:
    """P or Q by mpmath."""
    mu, p = (mpmath.mpf(x.numerator) / x.denominator for x in (shape.distance, shape.probability))
    slope, ray = 1 + (1 - p) * mpmath.exp(mu) / p, mpmath.expj(angle)
    length = mpmath.log1p(p * mpmath.expm1(mu)) - mpmath.log1p(p * mpmath.expm1(-mu))
    up = slope * mpmath.exp(length) if start else slope
    base = mpmath.exp(2 * mu) if start else mpmath.mpf(1)

    def term(r: Any) -> Any:
        y = r * ray
        ratio = base + up * mpmath.expm1(y)
        return up * mpmath.exp(y + s * y) / (4 * ratio * mpmath.sqrt(ratio))

    gap = float(shape.gap) * float(shape.length)
    first, last = min(gap, 1.0 / abs(s)), 90.0 / abs(s)
    cuts = [first * 2.0**j for j in range(-1, math.ceil(math.log2(last / first)))]
    return ray * mpmath.quad(term, [0.0, *cuts, last])


PLACES = (0, 9, 15, 20, 31)


def transforms(name: str, side: int) -> list[list[list[str]]]:
    """P and Q at some points of a ray."""
    shape, s = SHAPES[name], points(SHAPES[name], side)
    with mpmath.workdps(25):
        return [
            [
                [mpmath.nstr(part, 25) for part in (truth.real, truth.imag)]
                for truth in (
                    transform(shape, complex(s[i]), RAYS[side][1], start) for start in (False, True)
                )
            ]
            for i in PLACES
        ]


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("nodes", [8, 16])
def test_ends_on_rays(name: str, side: int, nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of half as many nodes as well, where what rules leave out is far above rounding."""
    monkeypatch.setattr(ends, "NODES", nodes)
    shape, s = SHAPES[name], points(SHAPES[name], side)
    angle, lost = RAYS[side][1], 0.0
    found = end_transforms(shape, s, angle)
    height = float(s.imag.min())
    most = end_bounds(shape, height)
    key = f"ends of the Laplace step '{name}' on ray {side}, by quadrature"
    truths = stored(key, lambda: transforms(name, side))
    for i, known in zip(PLACES, truths, strict=True):
        for start, value, off in (
            (False, found.low[i], found.low_error[i]),
            (True, found.high[i], found.high_error[i]),
        ):
            with mpmath.workdps(25):
                truth = mpmath.mpc(*known[start])
                error = float(abs(truth - mpmath.mpc(complex(value))))
            assert error <= off
            assert abs(complex(truth)) <= most[start]
            assert nodes < 16 or off <= 1e-12 * most[start]
            lost = max(lost, error / abs(complex(truth)))
    assert lost < 1e-13 if nodes == 16 else lost > 1e-13


def test_sums_of_exponentials() -> None:
    """Of several rows, kinds and lengths, against NumPy."""
    draws = np.random.default_rng(3)
    node = -draws.random(32) + 1j * draws.normal(size=32)
    weight = draws.normal(size=(2, 3, 32)) + 1j * draws.normal(size=(2, 3, 32))
    factor = draws.random(5) * 3.0 + 0j
    panels, row = np.array([2, 1, 0, 2, 1]), np.array([0, 1, 1, 1, 0])
    found = RayWeights.of(node, weight).sums(factor, panels, row)
    for i in range(5):
        used = int(panels[i]) * ends.NODES
        terms = np.exp(factor[i] * node[:used]) * weight[row[i], :, :used]
        assert np.abs(found[i] - terms.sum(axis=1)).max() <= 1e-13


KINDS: dict[str, Kinds] = {
    "close": ((SHAPES["close"], 10),),
    "plain": ((SHAPES["plain"], 30),),
    "rare": ((SHAPES["rare"], 40),),
    "far": ((SHAPES["far"], 7),),
    "substituted": ((SubstitutedShape(Fraction(2), Fraction(1, 5)), 5),),
}


@pytest.mark.parametrize("known", known_masses(few=True))
def test_deformed_lines_agree_with_laws_on_panels(known: Any) -> None:
    """Between atoms and beside them."""
    agrees(DeformedOrder(known.kinds, known.exchanged), known, 1e-9)


def rough_line(kinds: Kinds, index: int, rule: LowRule | None) -> DeformedLine:
    fine = deformed_at(kinds, index)
    assert fine is not None
    return DeformedLine(fine._steps, fine.tilt, fine._height, rule or fine.rule)


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize("what", ["low", "rays", "panels"])
def test_bounds_of_rough_deformed_lines(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too few nodes below the turn or beyond it lose digits, and the bounds say how many."""
    kinds = KINDS[name]
    lost = 0.0
    for index in range(deformed_choice(kinds).line.size):
        fine = deformed_at(kinds, index)
        assert fine is not None
        low, high = (float(end) for end in DeformedOrder(kinds, False).support())
        c = low + (high - low) * np.array([0.013, 0.21, 0.37, 0.68, 0.93])
        truth, error = fine.at(c)
        with monkeypatch.context() as patched:
            if what == "low":
                rule = fine.rule._replace(size=max(2, fine.rule.size // 2))
                rough = rough_line(kinds, index, rule)
            elif what == "rays":
                patched.setattr(deformed, "NODES", 8)
                patched.setattr(ends, "NODES", 8)
                rough = rough_line(kinds, index, None)
            else:
                patched.setattr(deformed, "FALLEN", 6.0)
                rough = rough_line(kinds, index, None)
            found, off = rough.at(c)
        known = off < 1e-3
        assert (np.abs(truth - found) <= error + off)[known].all()
        lost = max(lost, float(np.abs(truth - found)[known].max(initial=0.0)))
    # so that bounds without a term would fail
    assert lost > (2e-14 if what == "rays" else 1e-13)


@pytest.mark.parametrize(
    "steps",
    [
        ((0.2, 1e-4), (0.2, 1e-4), (0.2, 1e-4)),
        ((0.25, 0.01), (0.25, 0.01), (0.25, 0.01)),
        ((0.2, 0.3), (0.5, 1e-3), (0.5, 1e-3)),
        ((0.3, 1e-3), (1.0, 0.1), (2.0, 0.5)),
    ],
)
def test_three_steps_against_nested_rules(steps: Any) -> None:
    """Whatever the gap: masses to 1e-13, and bounds that are narrower than 1e-9."""
    laws = [NestedLaw(*step) for step in steps]
    kinds = tuple(
        (LaplaceShape(1 / Fraction(str(noise)), Fraction(str(p))), steps.count((noise, p)))
        for noise, p in dict.fromkeys(steps)
    )
    one, two, three = laws
    low, length = (sum(getattr(law, of) for law in laws) for of in ("low", "length"))
    places = length * np.array([1e-3, 0.123, 0.345, 0.612, 0.877])

    def both(x: Any) -> Any:
        return nested(two, one.above, x, [0.0, one.length])

    def above() -> list[float]:
        cuts = [0.0, one.length, two.length, one.length + two.length]
        return [float(nested(three, both, np.array([x]), cuts)[0]) for x in places]

    truths = stored(f"masses of Laplace steps {steps} above {places.tolist()}", above)
    found = DeformedOrder(kinds, False).tails(low + places)
    for mass, error, truth in zip(found.a_above, found.error, truths, strict=True):
        off = abs(mass - truth)
        assert off <= error * truth
        assert off <= 1e-12 * truth
        assert error <= 1e-9


COMPOSITIONS = {
    "close": laplace(0.3, 0.001, 10),
    "closest": laplace(0.2, 1e-4, 20),
    "often": laplace(0.25, 0.01, 45),
    "three kinds": laplace(0.5, 0.1, 2) + laplace(1.0, 0.1, 3) + laplace(2.0, 0.01, 2),
    "lengths apart": laplace(2.8, 0.04, 5) + laplace(0.25, 0.7, 1),
}
# what the reference has digits for
FEWER = {
    "one kind": laplace(0.5, 0.1, 4),
    "two kinds": laplace(1.0, 0.1, 5) + laplace(2.0, 0.2, 5),
    "plain beside": laplace(1.0, None, 4) + laplace(0.7, 0.1, 3),
}


@pytest.mark.parametrize("name", list(FEWER))
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_few_steps_against_the_reference(name: str, adjacency: str) -> None:
    deltas = [0.2, 1e-6, 1e-3, 1e-12]
    width = against_the_reference(FEWER[name], adjacency, deltas, 4, 14, "1e-14")
    check("deformed_lines.width", width)


@pytest.mark.parametrize("name", [*COMPOSITIONS, *FEWER])
def test_few_steps_lie_within_the_lattice(name: str) -> None:
    questions = [
        ("gamma_bound", 1e-3),
        ("gamma_bound", 0.2),
        ("trade_off", 0.7),
        ("epsilon", 1e-5),
        ("delta", 0.01),
    ]
    within_the_lattice((COMPOSITIONS | FEWER)[name], questions, ["remove", "add_remove"], 1e-8)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_ends_of_the_losses(adjacency: str) -> None:
    mechanism = FEWER["two kinds"]
    most = pe.epsilon(mechanism, 0.0, adjacency=adjacency)
    assert pe.delta(mechanism, most * 1.0001, adjacency=adjacency, bounds=True).upper == 0.0
    for epsilon in (0.0, most * (1.0 - 1e-6), most * (1.0 - 1e-3)):
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
        assert found.lower > 0.0
        assert found.upper - found.lower <= 1e-8 * found.upper


def test_places_that_are_too_many_are_left_to_the_lattice() -> None:
    mechanism = laplace(1.0, 0.1, 14) + laplace(2.0, 0.1, 14) + laplace(3.0, 0.1, 14)
    assert deformation.MOST_PLACES < 15**3
    _, engines, _ = pe.api.answers("delta", mechanism, [0.5], adjacency="add")
    assert engines == ["lattice"]


@pytest.mark.parametrize(
    ("mechanism", "question", "x", "adjacency", "rough"),
    [
        # of a level whose line far out would take too many nodes, with the lattice's bracket
        (
            laplace(0.28637013693642305, 4.936734077972221e-05, 95),
            "gamma_bound",
            2.489505591449067e-10,
            "remove",
            (2.500711124303752e-10, 2.5007118606481813e-10),
        ),
        # where laws on panels left 2e-8 open, with their bracket; the lattice has none
        (
            laplace(2.704417260174082, 0.006483815520181077, 11),
            "delta",
            0.022067843900977147,
            "add",
            (7.666333188375694e-11, 7.666333317451583e-11),
        ),
    ],
)
def test_what_others_leave_open_is_narrow(
    mechanism: Any, question: str, x: float, adjacency: str, rough: tuple[float, float]
) -> None:
    found = getattr(pe, question)(mechanism, x, adjacency=adjacency, bounds=True)
    assert found.upper - found.lower <= 2e-9 * found.upper
    assert rough[0] <= found.upper
    assert found.lower <= rough[1]


@pytest.mark.parametrize("steps", [10, 100, 1000])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_epsilon_next_to_where_it_is_none(steps: int, adjacency: str) -> None:
    """From δ(0) on ε is 0 exactly; just below it is small, and its δ comes back."""
    mechanism = laplace(0.5, 0.001, steps)
    none = pe.delta(mechanism, 0.0, adjacency=adjacency)
    for part in (1.0 + 1e-6, 3.0, 0.5 / none):
        assert pe.epsilon(mechanism, part * none, adjacency=adjacency, bounds=True).upper == 0.0
    for part in (1.0 - 1e-6, 0.9, 0.1):
        found = pe.epsilon(mechanism, part * none, adjacency=adjacency, bounds=True)
        assert 0.0 < found.lower <= found.upper
        assert pe.delta(mechanism, found.upper, adjacency=adjacency) <= part * none * (1.0 + 1e-9)
        assert pe.delta(mechanism, found.lower, adjacency=adjacency) >= part * none * (1.0 - 1e-9)


def test_panels_that_one_order_has_made_serve_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to an atom; each order keeps what its own lines were when it asked."""
    kinds, made = ((SHAPES["plain"], 6),), []
    add = DeformedLine.add_panels

    def counted(self: DeformedLine, panels: int) -> None:
        made.append(panels)
        add(self, panels)

    monkeypatch.setattr(DeformedLine, "add_panels", counted)
    orders = [DeformedOrder(kinds, exchanged) for exchanged in (False, True)]
    c = np.array([0.5])
    far = [order.tails(sign * c) for order, sign in zip(orders, (1.0, -1.0), strict=True)]
    first = len(made)
    close = orders[0].jumps[[2]] + 1e-11
    one = orders[0].tails(close)
    assert len(made) > first
    first = len(made)
    other = orders[1].tails(-close)
    assert len(made) == first
    assert np.array_equal(one.a_above, other.b_below)
    again = [order.tails(sign * c) for order, sign in zip(orders, (1.0, -1.0), strict=True)]
    assert all(np.array_equal(x, y) for x, y in zip(far, again, strict=True))
