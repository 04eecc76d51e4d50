"""The lattice engine where single large steps decide: terms and rest."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from comparing import compared, comparing, left_out
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from thorough import some

import pyengine as pe
from pyengine.engines.lattice import discretise
from pyengine.engines.lattice.coarse_cumulants import survey
from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.discretise import step_masses
from pyengine.engines.lattice.large_steps import NEGLIGIBLE, Partition, RestrictedLaw, Tail
from pyengine.engines.lattice.lower_tails import LowerTails
from pyengine.engines.lattice.plan import Place, Plan, StepGrid, make_layout
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.composition import composition_law
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.laplace import LaplaceLaw

# noise, probability, steps, adjacency, question, argument: refused by a single tilt
FAR = [
    (2.1479511864644634, 2.0974839470079746e-4, 53, "add", "gamma_bound", 1.5557178860183315e-08),
    (0.5628077234759418, 9.049396771089232e-5, 3, "remove", "delta", 1.3158968886476958),
    (4.223434847052776, 2.605285262914029e-4, 88489, "remove", "epsilon", 7.497028062385517e-84),
    (2.735684109967758, 1.0656845208512873e-5, 1172, "remove", "delta", 0.014493210264481525),
    (2.5977668919341443, 5.627445744072704e-5, 394, "remove", "epsilon", 1.804698887572021e-97),
    (5.720708178740541, 4.6578061225849195e-4, 647, "add", "gamma_bound", 1.1087681093386055e-91),
    (5.25, 0.0013, 1619, "add", "trade_off", 7.7e-51),
    (1.0853, 0.000536788654, 1165, "remove", "epsilon", 3.6e-23),
]


@pytest.mark.parametrize("case", some(FAR, 2), ids=str)
def test_far_modes(case: tuple[float, float, int, str, str, float]) -> None:
    noise, rate, steps, adjacency, question, argument = case
    mechanism = pe.dp_sgd(noise, rate, steps)
    ask = getattr(pe, question)
    bounds = ask(mechanism, argument, adjacency=adjacency, method="lattice", bounds=True)
    truth = ask(mechanism, argument, adjacency=adjacency, bounds=True)
    assert bounds.lower <= truth.upper * (1.0 + 1e-14)
    assert truth.lower <= bounds.upper * (1.0 + 1e-14)
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


@pytest.mark.parametrize("steps", [20_000, 100_000])
def test_rounding_does_not_grow_with_the_steps(steps: int) -> None:
    """Losses of 1e-6 a step, so that their rounding and that of the power count most."""
    mechanism = pe.dp_sgd(5.4, 1e-5 * math.sqrt(400_000 / steps), steps)
    epsilon = float(pe.epsilon(mechanism, 1e-9, adjacency="remove"))
    bounds = pe.delta(mechanism, epsilon, adjacency="remove", method="lattice", bounds=True)
    assert bounds.lower <= 1e-9 * (1.0 + 1e-10)
    assert bounds.upper >= 1e-9 * (1.0 - 1e-10)
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


@pytest.mark.parametrize("steps", [1, 3])
def test_end_of_the_support(steps: int) -> None:
    """ε of tiny δ is near the largest that a step's loss can be under adjacency add."""
    mechanism = pe.dp_sgd(0.97, 7.55e-5, steps)
    bounds = pe.epsilon(mechanism, 1e-84, adjacency="add", method="lattice", bounds=True)
    assert bounds.upper <= -steps * math.log1p(-7.55e-5) * (1.0 + 1e-12)
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


def test_loss_far_above_the_window() -> None:
    mechanism = pe.dp_sgd(0.345, 0.4746, 20_000)
    bounds = pe.delta(mechanism, 100.0, adjacency="remove", method="lattice", bounds=True)
    assert bounds.lower > 1.0 - 1e-4
    assert bounds.upper == 1.0


@pytest.mark.parametrize("wanted", ["gamma_bound", "trade_off"])
def test_only_the_wanted_error_is_narrow(wanted: str) -> None:
    """γ = 1 - β is known at once where β is beyond all precision."""
    mechanism = pe.dp_sgd(0.5, 0.5, 3000)
    if wanted == "gamma_bound":
        bounds = pe.gamma_bound(mechanism, 0.2, adjacency="remove", method="lattice", bounds=True)
        assert bounds.lower > 1.0 - 1e-4
    else:
        bounds = pe.trade_off(mechanism, 0.9, adjacency="remove", method="lattice", bounds=True)
        assert 0.0 <= bounds.lower <= bounds.upper <= 0.1


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.RandomizedResponse(0.6971588533036691).composed(41),
        pe.RandomizedResponse(0.7879).composed(15) + pe.RandomizedResponse(0.7879).composed(3),
        pe.RandomizedResponse(0.58393745).composed(872),
        pe.DiscreteLaplaceMechanism(2.0).composed(200),
    ],
    ids=str,
)
@pytest.mark.parametrize("share", [0.1, 0.7, 1.0 - 3e-6])
def test_laws_on_one_lattice(mechanism: pe.Mechanism, share: float) -> None:
    """No discretisation at all: from 0 to within rounding of the largest loss."""
    epsilon = share * float(pe.epsilon(mechanism, 0.0, adjacency="remove"))
    given_ = {"adjacency": "remove", "bounds": True}
    bounds = pe.delta(mechanism, epsilon, method="lattice", **given_)
    truth = pe.delta(mechanism, epsilon, **given_)
    assert bounds.lower <= truth.upper
    assert truth.lower <= bounds.upper
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper
    gamma = pe.gamma_bound(mechanism, 1e-50, method="lattice", **given_)
    other = pe.gamma_bound(mechanism, 1e-50, **given_)
    assert gamma.lower <= other.upper
    assert other.lower <= gamma.upper
    assert gamma.upper - gamma.lower <= 1e-4 * gamma.upper


def test_below_all_doubles() -> None:
    """δ of e^-3000 is not 0, and has a bound."""
    mechanism = pe.dp_sgd(0.85280544668629, 0.004921503365117752, 15122)
    bounds = pe.delta(mechanism, 34.1, adjacency="add", method="lattice", bounds=True)
    assert bounds.lower == 0.0
    assert 0.0 < bounds.upper < 1e-300


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.LaplaceMechanism(3.753).composed(8),
        pe.RandomizedResponse(0.6058).composed(8),
    ],
    ids=str,
)
@pytest.mark.parametrize("gap", [1e-9, 1e-7, 1e-5, 1e-3])
def test_beside_the_smallest_loss(mechanism: pe.Mechanism, gap: float) -> None:
    """δ is a small difference of the masses of the last atom."""
    epsilon = (1.0 - gap) * float(pe.epsilon(mechanism, 0.0, adjacency="remove"))
    given_ = {"adjacency": "remove", "bounds": True}
    bounds = pe.delta(mechanism, epsilon, method="lattice", **given_)
    truth = pe.delta(mechanism, epsilon, **given_)
    assert bounds.lower <= truth.upper
    assert truth.lower <= bounds.upper
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "alpha"),
    [
        (5.503718406661, 0.6767972907488065, 13120, 0.9239467494217347),
        (3.211367402098731, 0.023536450297429116, 18250, 0.9999999999980107),
    ],
)
def test_hull_of_tiny_errors(noise: float, rate: float, steps: int, alpha: float) -> None:
    """The order that decides is told by β where γ is 1 to all digits."""
    mechanism = pe.dp_sgd(noise, rate, steps)
    bounds = pe.trade_off(mechanism, alpha, method="lattice", bounds=True)
    truth = pe.trade_off(mechanism, alpha)
    assert bounds.lower <= truth <= bounds.upper
    assert bounds.upper - bounds.lower <= 2e-4 * bounds.upper


@comparing(0.2)
@settings(max_examples=20, deadline=None)
@given(
    noise=st.floats(0.4, 4.0),
    log_rate=st.floats(-4.0, -0.3),
    steps=st.integers(1, 40),
    share=st.floats(0.05, 1.5),
    most=st.integers(1, 4),
    is_two=st.booleans(),
    adjacency=st.sampled_from(["add", "remove"]),
    least=st.sampled_from([-math.inf, -20.0, -5.0, -1.0]),
)
def test_any_division_holds_the_truth(
    noise: float,
    log_rate: float,
    steps: int,
    share: float,
    most: int,
    is_two: bool,
    adjacency: str,
    least: float,
) -> None:
    """Whatever the cuts and the terms that are composed, bounds are bounds."""
    step = PoissonSampledLaw(GaussianLaw(noise), 10.0**log_rate)
    law: StepLaw = step if adjacency == "add" else ReversedLaw(step)
    mechanism = pe.dp_sgd(noise, 10.0**log_rate, steps)
    epsilon = 0.5 * float(pe.epsilon(mechanism, 1e-6, adjacency=adjacency))
    truth = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
    parts = ((law, steps),)
    tail = Tail(parts, survey(parts, 60))
    c = np.array([-2.0 * epsilon - 1e-3, -epsilon, -0.5 * epsilon])
    log_tail = tail.log_tail(c)
    shape = tail.tilts[:, None] * c + log_tail
    cuts = tuple(
        -share * (epsilon + 1e-4) * factor for factor in ((1.0, 1.7) if is_two else (1.0,))
    )
    ends = (math.inf, *cuts, -math.inf)
    pieces = [RestrictedLaw(law, low, high) for high, low in itertools.pairwise(ends)]
    unseen = tuple(
        piece for i, piece in enumerate(pieces) if not tail._mask(0, ends[i + 1], ends[i]).any()
    )
    terms = tuple(sorted(tail._listed(cuts, most, shape), key=lambda term: -term.excess))
    if pieces[0] in unseen or not terms:
        left_out()
        return
    rest = tail._rest_of(cuts[0], most, shape) if steps > most else None
    if rest is not None and not math.isfinite(rest.tilt):
        left_out()
        return
    place = Place(terms[0].tilt, True, (float(c[0]), float(c[2])), float(log_tail[0]))
    try:
        division = Partition.of(parts, terms, rest, unseen, terms[0].excess + least)
        layout = make_layout(division, place, 0.02 * noise, 1e-3, 2**14)
        with np.errstate(all="ignore"):  # what overflows is an infinite bound
            found = LowerTails(compose_on(parts, layout)).at(np.array([-epsilon]))
    except pe.AccuracyError:
        left_out()
        return
    upper = math.inf if math.isnan(found.upper[0]) else found.upper[0]
    (compared if found.lower[0] > 0.0 and upper < 1.0 else left_out)()  # 0 and 1 say nothing
    assert found.lower[0] <= truth.upper * (1.0 + 1e-12)
    assert truth.lower * (1.0 - 1e-12) <= upper


def test_terms_of_next_to_no_mass_are_bounded() -> None:
    """Many of two kinds of rare steps are, and all that they are made of is at hand."""
    mechanism = pe.dp_sgd(0.6, 1e-4, 800) + pe.dp_sgd(1, 1e-4, 300)
    parts = tuple(composition_law(mechanism, "remove"))
    tail = Tail(parts, survey(parts))
    c = np.array([-31.5, -30.0, -28.5])
    division = tail.division(c, tail.log_tail(c))
    assert len(division.faint) > 3
    assert all(term.excess < -NEGLIGIBLE for term in division.faint)
    composed = {law for term in division.terms for law, _ in term.parts}
    assert {law for term in division.faint for law, _ in term.parts} <= composed
    whole = division._replace(terms=division.terms + division.faint, faint=())
    place = Place(division.terms[0].tilt, True, (-31.5, -28.5), float(tail.log_tail(c)[0]))
    at = np.array([-30.0])
    few, all_ = (
        LowerTails(compose_on(parts, make_layout(each, place, 0.02, 1e-3, 2**15))).at(at)
        for each in (division, whole)
    )
    assert few.lower[0] <= all_.upper[0]
    assert all_.lower[0] <= few.upper[0]
    assert few.upper[0] - few.lower[0] <= 1.001 * (all_.upper[0] - all_.lower[0])


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_cells_are_the_same_however_many_grids_share_them(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where grids begin and end within what is made at a time."""
    ((law, _),) = composition_law(pe.dp_sgd(0.9, 0.01, 1), adjacency)
    law = RestrictedLaw(law, -2.0, math.inf)
    h, place = 2.0**-6, Place(-0.7, True, (-3.0, 0.0))
    grids = [StepGrid(0.0, first, last, 5, -1.0) for first, last in ((-140, 400), (-37, 90))]
    plans = [Plan(place, h, (grid,), Fraction(0), -200, 1024, (-2.0, 0.0)) for grid in grids]
    alone = [step_masses(law, [grid], [plan])[0] for grid, plan in zip(grids, plans, strict=True)]
    for chunk in (64, 2**18):
        monkeypatch.setattr(discretise, "CHUNK", chunk)
        for one, other in zip(alone, step_masses(law, grids, plans), strict=True):
            for part in ("spread", "a", "b"):
                mine, theirs = getattr(one, part), getattr(other, part)
                assert mine.any()
                # but for what edges may be off by
                assert np.allclose(mine, theirs, rtol=1e-10, atol=1e-11)
            assert one.lost == pytest.approx(other.lost, rel=1e-10, abs=0.0)
            assert other.blur < 1e-10


@pytest.mark.parametrize(
    "law",
    [
        PoissonSampledLaw(GaussianLaw(0.8), 1e-3),
        ReversedLaw(PoissonSampledLaw(GaussianLaw(2.0), 0.1)),
        LaplaceLaw(1.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("cut", [-0.3, -0.1, 0.0])
def test_restricted_laws_are_a_partition(law: StepLaw, cut: float) -> None:
    """Cells of two adjoining parts have the masses of the whole's, one of them being cut."""
    edges = np.linspace(-2.0, 2.0, 41) + 0.013
    whole = law.cells(np.union1d(edges, [cut]))
    below = RestrictedLaw(law, -math.inf, cut).cells(edges)
    above = RestrictedLaw(law, cut, math.inf).cells(edges)
    at = int(np.searchsorted(edges, cut))
    for name in ("log_a", "log_b"):
        joined = np.exp(getattr(below, name)) + np.exp(getattr(above, name))
        masses = np.exp(getattr(whole, name))
        merged = np.concatenate([masses[:at], [masses[at] + masses[at + 1]], masses[at + 2 :]])
        assert joined == pytest.approx(merged, rel=1e-12, abs=1e-300)


def test_error_of_a_sampled_ratio() -> None:
    """The log ratio of a sampled step is known better than either mass."""
    law = PoissonSampledLaw(GaussianLaw(0.9), 1e-4)
    edges = np.log1p(1e-4 * np.expm1(np.linspace(-3.0, 6.0, 25)))
    cells = law.cells(edges)
    with mpmath.workdps(50):
        p, mu = mpmath.mpf(1e-4), 1 / mpmath.mpf(0.9)
        z = [
            mpmath.log((mpmath.exp(mpmath.mpf(x)) - 1 + p) / p) / mu + mu / 2
            for x in edges.tolist()
        ]
        for i in range(1, edges.size):
            a = mpmath.ncdf(z[i]) - mpmath.ncdf(z[i - 1])
            b = mpmath.ncdf(z[i] - mu) - mpmath.ncdf(z[i - 1] - mu)
            off = abs(float(mpmath.log(1 - p + p * b / a) - mpmath.mpf(float(cells.log_ratio[i]))))
            # cells are as wide as the loss changes, so that an edge's error counts about once
            assert off <= cells.ratio_error[i] + 8.0 * cells.shift[i - 1 : i + 1].sum()
    assert np.all(cells.ratio_error[1:-1] < 0.1 * cells.error[1:-1])


@pytest.mark.parametrize("edges", [[-1e-3, 0.0, 1e-3], [-5e-6, 0.0, 3e-6, 9e-6]], ids=str)
def test_error_of_a_finite_ratio(edges: list[float]) -> None:
    """That of sampled atoms is known as well as their losses, several in a cell or one."""
    p, q = [Fraction(x, 1000) for x in (582, 83, 335)], [Fraction(x, 1000) for x in (293, 265, 442)]
    rate = Fraction("4.588e-5")
    law = FiniteLaw.from_fractions(zip(p, q, strict=True)).poisson_sampled(rate)
    cells = law.cells(np.array(edges))
    atoms = [(a, (1 - rate) * a + rate * b) for a, b in zip(p, q, strict=True)]
    seen = 0
    with mpmath.workdps(50):
        ends = [-math.inf, *edges, math.inf]
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            inside = [(a, b) for a, b in atoms if low < math.log1p(float(b / a - 1)) <= high]
            if inside:
                ratio = sum(b for _, b in inside) / sum(a for a, _ in inside)
                truth = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
                off = abs(float(truth - mpmath.mpf(float(cells.log_ratio[i]))))
                assert off <= cells.ratio_error[i] <= 1e-17
                seen += 1
    assert seen >= 2


def test_many_steps_of_tiny_losses() -> None:
    """78,994 steps of losses of 2e-6, where errors of losses count some 3.5e9 times.

    The truth is an integral of e^{N K(s) - sε}/(s (s + 1)) over a line, with K by quadrature.
    """
    noise, rate, steps, epsilon = 11.06, 2.254e-5, 78_994, 0.014495361763146945
    mechanism = pe.LaplaceMechanism(noise).poisson_sampled(rate).composed(steps)
    bounds = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper
    with mpmath.workdps(40):
        mu, p = 1 / mpmath.mpf(noise), mpmath.mpf(rate)
        nodes, weights = np.polynomial.legendre.leggauss(20)  # the integrand is nearly linear
        z = [mu * mpmath.mpf(float(x)) for x in nodes]
        density = [
            mu * mpmath.mpf(float(w)) * mpmath.exp(-(mu + x) / 2) / 4
            for x, w in zip(z, weights, strict=True)
        ]
        masses = [mpmath.mpf(1) / 2, mpmath.exp(-mu) / 2, *density]
        masses = [m / mpmath.fsum(masses) for m in masses]  # nodes are doubles
        loss = [-mpmath.log1p(p * mpmath.expm1(x)) for x in (-mu, mu, *z)]

        def term(s: mpmath.mpc) -> mpmath.mpc:
            moment = mpmath.fsum(m * mpmath.expm1(s * x) for m, x in zip(masses, loss, strict=True))
            return mpmath.exp(steps * mpmath.log1p(moment) - s * epsilon) / (s * (s + 1))

        tilt, width = mpmath.mpf(46_000), mpmath.mpf(100)
        # the trapezoidal rule converges at once: the law is Gaussian but for a little
        truth = (
            width
            / mpmath.pi
            * (
                term(mpmath.mpc(tilt)).real / 2
                + mpmath.fsum(term(mpmath.mpc(tilt, k * width)).real for k in range(1, 200))
            )
        )
    assert bounds.lower <= float(truth) * (1.0 + 1e-9)
    assert float(truth) * (1.0 - 1e-9) <= bounds.upper


def _comb_profile(noise: float, rate: float, steps: int, epsilon: float, removed: bool) -> float:
    """δ of sampled discrete Gaussian noise of few atoms, as a sum over how often each occurs.

    Outcomes z <= 0, whose losses agree to 1e-6, are taken together: far below the tolerance.
    """
    z = np.arange(-40, 41)
    without = np.exp(-(z**2) / (2.0 * noise**2))
    without /= without.sum()
    shifted = np.roll(without, 1)
    with_record = (1.0 - rate) * without + rate * shifted
    groups = [z <= 0, z == 1, z == 2, z == 3, z == 4]
    a, b = (np.array([law[g].sum() for g in groups]) for law in (without, with_record))
    masses, loss = (b, np.log(b / a)) if removed else (a, np.log(a / b))
    mean = steps * masses[1]
    width = 10.0 * math.sqrt(mean)
    ones = np.arange(max(int(mean - width), 0), int(mean + width))
    total = 0.0
    for rare in itertools.product(range(12), range(3), range(2)):
        rest = steps - sum(rare) - ones
        log_mass = math.lgamma(steps + 1) - gammaln(ones + 1) - gammaln(rest + 1)
        log_mass = log_mass + rest * math.log(masses[0]) + ones * math.log(masses[1])
        size = rest * loss[0] + ones * loss[1]
        for number, mass, own in zip(rare, masses[2:], loss[2:], strict=True):
            log_mass += number * math.log(mass) - math.lgamma(number + 1)
            size += number * own
        total += float(np.sum(np.exp(log_mass) * np.maximum(-np.expm1(epsilon - size), 0.0)))
    return total


@pytest.mark.parametrize(
    ("removed", "epsilon"), [(True, 3.4), (True, 6.0), (True, 0.2), (False, 0.2)]
)
def test_combs_of_isolated_sums(removed: bool, epsilon: float) -> None:
    """295,370 steps of nearly always one of two losses: the transform of their sum does not fall.

    One tilt for all left a bracket of relative width 5e-2 far out, the wider the finer.
    """
    noise, rate, steps = 0.3727, 1.796e-5, 295_370
    mechanism = pe.DiscreteGaussianMechanism(noise).poisson_sampled(rate).composed(steps)
    adjacency = "remove" if removed else "add"
    bounds = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
    truth = _comb_profile(noise, rate, steps, epsilon, removed)
    assert bounds.lower <= truth * (1.0 + 1e-7)
    assert truth * (1.0 - 1e-7) <= bounds.upper
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


def test_hull_of_a_comb_where_one_error_is_asked_for() -> None:
    """β of 1 - 3.5e-6 was refused for the digits of γ that nobody wanted."""
    mechanism = pe.DiscreteGaussianMechanism(0.3727).poisson_sampled(1.796e-5).composed(295_370)
    alpha = 2.0159425491395625e-08
    bounds = pe.trade_off(mechanism, alpha, bounds=True)
    gamma = pe.gamma_bound(mechanism, alpha, adjacency="add", bounds=True)
    assert 1.0 - bounds.upper <= gamma.upper + 2e-16
    assert gamma.lower <= 1.0 - bounds.lower + 2e-16
    assert bounds.upper - bounds.lower <= 1e-9
