"""Few sampled Gaussian steps: the hyperbola and its bounds against other computations."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from thorough import ALL, sampled, some, stored

import pyengine as pe

pytest.importorskip("flint")
from flint import acb, arb

from pyengine import reference
from pyengine.reference.balls import precision
from pyengine.reference.gaussian.closed_form import ClosedGaussian
from pyengine.reference.gaussian.hyperbola import Hyperbola
from pyengine.reference.gaussian.law import SampledGaussianLaw
from pyengine.reference.gaussian.plan_hyperbola import make_bend
from pyengine.reference.gaussian.rotated_transform import Majorant, Nodes, RotatedStep
from pyengine.reference.gaussian.steps import EqualSteps, cumulants_of, offset, single_threshold
from pyengine.reference.inversion.line import NotFeasibleError
from pyengine.reference.tails import BallTails
from pyengine.reference.value import make

DATA = Path(__file__).parent / "data"
NAMES = tuple(BallTails.__dataclass_fields__)


def hyperbola(phases: tuple[EqualSteps, ...], threshold: float, depth: float = 60.0) -> Hyperbola:
    return Hyperbola(phases, make_bend(phases, threshold, depth))


@sampled(2)
@pytest.mark.parametrize(
    ("noise", "p", "name", "log_tail"),
    [
        ("0.35", "0.09", "p_above", -7.0),
        ("0.3", "1e-6", "p_above", -230.0),
        ("1", "0.1", "p_above", -0.1),
        ("1.3", "1e-6", "q_above", -23.0),
        ("8.5", "0.33", "p_above", -7.0),
        ("1", "0.01", "q_below", -230.0),
        ("3", "0.05", "q_below", -0.1),
        ("10", "0.9", "p_below", -2.3),
    ],
)
def test_one_step_against_the_closed_form(noise: str, p: str, name: str, log_tail: float) -> None:
    phases = (EqualSteps(Fraction(noise), Fraction(p), 1),)
    tail = single_threshold(phases, name, log_tail) if name.endswith("above") else 0.0
    threshold = tail or cumulants_of(phases).threshold(name, log_tail)
    with precision(400):
        c = offset(phases) + threshold
        six = hyperbola(phases, threshold).at(c)
        tails = ClosedGaussian(phases).tails(c)
        p_above, p_below, q_above, q_below = tails
        h_qp, h_pq = q_above - c.exp() * p_above, p_below - (-c).exp() * q_below
        truth = BallTails(*tails, h_qp, h_pq)
        for one in NAMES:
            assert (getattr(six, one) - getattr(truth, one)).contains(0), one
        assert getattr(six, name).rel_accuracy_bits() > 50


def two_steps(noise: Any, p: Any, c: Any) -> tuple[Any, Any]:
    """P(S > c) and Q(S > c) by quadrature over the first step, at mpmath's precision."""
    mu, odds, base = 1 / noise, p / (1 - p), 2 * mpmath.log(1 - p)

    def place(y: Any) -> Any:
        return (mpmath.log(mpmath.expm1(y) / odds) + mu**2 / 2) / mu

    def above(z: Any, shift: Any) -> Any:
        rest = c - base - mpmath.log1p(odds * mpmath.exp(mu * z - mu**2 / 2))
        return mpmath.mpf(1) if rest <= 0 else mpmath.ncdf(shift - place(rest))

    def density(z: Any, shift: Any) -> Any:
        return mpmath.npdf(z - shift)

    # Past the kink the first step alone is above c.
    kink = place(c - base)
    near = [kink - mpmath.mpf(2) ** -k for k in range(-3, 40, 2)]
    nodes = [x for x in (-mpmath.mpf(14), -7, -3) if x < near[0]] + [*near, kink]

    def total(weights: dict[Any, Any], others: dict[Any, Any]) -> Any:
        result = mpmath.mpf(0)
        for shift, weight in weights.items():
            for second, share in others.items():
                inside = mpmath.quad(
                    lambda z, shift=shift, second=second: density(z, shift) * above(z, second),
                    nodes,
                )
                result += weight * share * (inside + mpmath.ncdf(shift - kink))
        return result

    zero = mpmath.mpf(0)
    mixture = {zero: 1 - p, mu: p}
    return total({zero: mpmath.mpf(1)}, {zero: mpmath.mpf(1)}), total(mixture, mixture)


@pytest.mark.parametrize(("noise", "p", "c"), [("1", "0.1", "0.5"), ("0.5", "0.02", "3")])
def test_two_steps_by_quadrature(noise: str, p: str, c: str) -> None:
    law = SampledGaussianLaw((EqualSteps(Fraction(noise), Fraction(p), 2),))
    with precision(200):
        place = arb(c)
        six = law.near(place, 50.0).at(place)

    def compute() -> list[str]:
        with mpmath.workdps(30):
            return [str(x) for x in two_steps(*map(mpmath.mpf, (noise, p, c)))]

    truths = stored(f"two steps of dp_sgd({noise}, {p}) above {c} by quadrature", compute)
    with mpmath.workdps(30):
        for value, text in zip((six.p_above, six.q_above), truths, strict=True):
            exact = mpmath.mpf(text)
            found = make(value, certified=True)
            assert abs(found - exact) < found.error + exact * mpmath.mpf(10) ** -14
            assert found.error < exact * mpmath.mpf(10) ** -15


def few_steps() -> list[dict[str, Any]]:
    """Random points that another program computed on contours of its own."""
    points = json.loads((DATA / "dp_sgd_random.json").read_text(encoding="utf-8"))["points"]
    return [p for p in points if 1 < sum(p["steps"]) < 60 and min(p["p"]) < 1][::150]


@pytest.mark.parametrize("point", few_steps(), ids=lambda p: f"{p['noise'][0]:.4g}-{p['c']:.4g}")
def test_random_points(point: dict[str, Any]) -> None:
    rows = zip(point["noise"], point["p"], point["steps"], strict=True)
    c = arb(point["c"])
    local = SampledGaussianLaw(tuple(EqualSteps(*row) for row in rows)).near(c, 60.0)
    assert local.certified
    with precision(300):
        six = local.at(c)
        for name, digits in zip((n for n in NAMES if n in point), point["digits"], strict=True):
            value, truth = getattr(six, name), arb(point[name])
            slack = truth * arb(10) ** (1 - min(digits, 20))
            assert abs(value.mid() - truth) <= value.rad() + slack
        assert max(six.p_above.rel_accuracy_bits(), six.p_below.rel_accuracy_bits()) > 50


@sampled(3)
@pytest.mark.parametrize(
    ("mechanism", "kappa"),
    [
        (pe.dp_sgd(1, 0.1, 3), 1e-3),
        (pe.dp_sgd(0.7, 0.01, 12), 0.05),
        (pe.compose(pe.dp_sgd(0.8, 0.02, 5), pe.dp_sgd(2, 0.2, 7)), 0.01),
    ],
)
def test_brackets_of_the_lattice_engine(mechanism: pe.Mechanism, kappa: float) -> None:
    for adjacency in ("add", "remove"):
        value = reference.gamma_bound(mechanism, kappa, adjacency=adjacency, digits=15)
        assert value.certified
        bounds = pe.gamma_bound(
            mechanism, kappa, adjacency=adjacency, method="lattice", bounds=True, tolerance=1e-6
        )
        assert bounds.lower <= value.upper
        assert value.lower <= bounds.upper


def test_all_questions_are_proven() -> None:
    run, digits = pe.dp_sgd("0.9", "0.05", 4), 30 if ALL else 16
    values = [
        reference.gamma_bound(run, "0.01", digits=digits),
        reference.trade_off(run, "0.1", digits=digits),
        reference.delta(run, "0.5", digits=digits),
        reference.epsilon(run, "1e-5", digits=digits),
    ]
    assert all(value.certified and value.digits >= digits for value in values)
    # The questions hang together: the profile at epsilon is delta, a tail of 1e-5 at 10 digits.
    again = reference.delta(run, values[3].decimal(digits), digits=15)
    assert float(again) == pytest.approx(1e-5, rel=1e-14)


def test_more_digits_lie_within_fewer() -> None:
    run = pe.dp_sgd("0.6", "1e-4", 5)
    most = 45 if ALL else 30
    few, many = (reference.gamma_bound(run, "1e-3", digits=d) for d in (12, most))
    with mpmath.workdps(60):
        assert abs(few - many) <= few.error + many.error
        assert many.error < many * mpmath.mpf(10) ** -most
    assert many.certified


def test_plans_for_other_thresholds_agree() -> None:
    """Contours on both sides of the poles, which lie within the strip of some, enclose the same."""
    phases = (EqualSteps(Fraction(1), Fraction(1, 10), 3),)
    law = SampledGaussianLaw(phases)
    with precision(300):
        c = law.guess("p_above", -1.5)
        threshold = float(c - offset(phases))
        sixes = [hyperbola(phases, threshold * x).at(c) for x in some((0.3, 0.7, 1.0, 1.4, 2.5), 2)]
        for name in NAMES:
            values = [getattr(six, name) for six in sixes]
            assert all(one.overlaps(two) for one in values for two in values)
            assert max(value.rel_accuracy_bits() for value in values) > 60


@pytest.mark.parametrize(
    ("noise", "p", "angle", "s"),
    [("1", "0.1", 0.0, -3.0), ("0.4", "0.001", 0.6, -50.0), ("2", "0.3", 0.3, 2.0)],
)
def test_bounds_hold_and_are_sharp(noise: str, p: str, angle: float, s: float) -> None:
    phase = EqualSteps(Fraction(noise), Fraction(p), 1)
    step = RotatedStep(phase)

    def modulus(v: Any) -> Any:
        y = acb(arb(float(v)), angle)
        return float(abs(step.density(y)[1])) * math.exp(s * math.exp(float(v)))

    nodes = [-30 + 0.01 * k for k in range(3500)]
    truth = 0.01 * sum(map(modulus, nodes))  # a smooth integrand that dies at both ends
    bound = float(Majorant(phase, angle, 0.2).bound(arb(s)))
    assert truth * (1 - 1e-9) < bound < 1.1 * truth
    low, mu = float(step.low), float(step.mu)
    for v, sign in ((min(low - mu, -1.0), -1), (low - 4 * mu, -1), (2.0, 1), (2.5, 1)):
        width = 1e-3 if sign < 0 else 2e-5
        rest = [modulus(v + sign * width * k) for k in range(1500)]
        side = step.left if sign < 0 else step.right
        limit = float(side(arb(v), arb(angle), arb(s)))
        assert 0 < width * (sum(rest) - rest[0] / 2) * (1 - 1e-3) < limit < math.inf


def test_what_is_left_out_of_a_sum_is_bounded() -> None:
    phase, place = EqualSteps(Fraction(1), Fraction(1, 10), 1), acb(2, 30)
    with precision(120):
        nodes = Nodes(phase, 0.5, -16.0, 40, 1200)
        whole, _ = nodes.sum(place)
        spacing = math.log(2) / 40
        for first, last in ((200, 1200), (0, 900), (333, 871)):
            part, missing = Nodes(phase, 0.5, -16.0 + first * spacing, 40, last - first).sum(place)
            assert arb(10) ** -30 < abs(whole - part) < missing
        # Squares in place of exponentials: the sum is that of the terms.
        terms = (w * (place * y).exp() for y, w in zip(nodes.losses, nodes.weights, strict=True))
        assert abs(sum(terms, acb(0)) - whole) < 1e-25


def test_boxes_cover_what_is_asked_for() -> None:
    """Bounds in any order hold: boxes that one of them adds change others by little."""
    phase = EqualSteps(Fraction(1, 2), Fraction(1, 1000), 1)
    tilts = [arb(s) for s in (-1e7, -30.0, 0.0, 5.0, 40.0)]
    one, two = Majorant(phase, 0.3, 0.1), Majorant(phase, 0.3, 0.1)
    found = [float(one.bound(s)) for s in tilts]
    assert found == sorted(found)
    assert [float(two.bound(s)) for s in tilts[::-1]] == pytest.approx(found[::-1], rel=1e-3)
    assert not one.bound(arb("nan")).is_finite()


def test_what_the_hyperbola_cannot_do() -> None:
    with pytest.raises(NotFeasibleError, match="no lower end"):
        make_bend((EqualSteps(1.0, 1.0, 2),), 1.0, 50.0)
    with pytest.raises(NotFeasibleError, match="no lower end"):
        make_bend((EqualSteps(1.0, 0.5, 2),), -1.0, 50.0)
    with pytest.raises(NotFeasibleError, match="no hyperbola"):
        make_bend((EqualSteps(10.0, 1e-3, 2),), 0.5, 50.0)


def test_below_the_least_loss_all_is_known() -> None:
    phases = (EqualSteps(1.0, 0.1, 2),)
    local = hyperbola(phases, 0.3, 30.0)
    c = offset(phases) - 1
    six = local.at(c)
    assert (six.p_above, six.q_above, six.p_below, six.q_below, six.h_pq) == (1, 1, 0, 0, 0)
    assert (six.h_qp - (1 - c.exp())).contains(0)
    assert not local.at(offset(phases) + arb(0, 1e-9)).p_above.is_finite()
