"""Proven bounds of analytic densities that users write down."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from outcomes import gaussian_delta
from thorough import sampled, some

import pyengine as pe
from pyengine.analytic import Expression, cosh, exp, lgamma, log, number, pi, sqrt, z
from pyengine.api import answers

flint = pytest.importorskip("flint")

from bounds_tally import Tally  # noqa: E402 needs what may be missing
from smooth_contour import expressions  # noqa: E402

from pyengine.engines.analytic_lines.shape import AnalyticShape  # noqa: E402
from pyengine.engines.vertical_lines.nodes import PanelRule  # noqa: E402
from pyengine.engines.vertical_lines.order import LineOrder  # noqa: E402
from pyengine.engines.vertical_lines.shapes import At, cumulants_at  # noqa: E402
from pyengine.laws.analytic import NOTHING  # noqa: E402

NORMAL = -z * z / 2 - log(2 * pi) / 2
LOGISTIC = -z - 2 * log(1 + exp(-z))
SECANT = -log(pi * cosh(z))
STUDENT = log(2 / (pi * sqrt(number(3)))) - 2 * log(1 + z * z / 3)


def moved(log_p: Expression, by: Any) -> pe.AnalyticPair:
    """A density, and the same moved."""
    return pe.from_analytic_densities(log_p, log_p.at(z - by))


def holds(found: pe.Bounds, truth: Any, room: float = 0.0) -> bool:
    """Whether bounds hold a truth that is known but for a relative error."""
    doubt = abs(truth) * room
    return bool(found.lower - doubt <= truth <= found.upper + doubt)


def width(found: pe.Bounds) -> float:
    """Relative."""
    return float((found.upper - found.lower) / found.upper)


@pytest.mark.parametrize("steps", [2, 3, 7, 40, 2000])
@pytest.mark.parametrize("shift", ["0.05", "0.5", "2"])
def test_normal_densities_are_those_of_the_gaussian_mechanism(steps: int, shift: str) -> None:
    run, close = moved(NORMAL, shift).composed(steps), 1e-8 if steps < 7 else 1e-10
    with mpmath.workdps(40):
        mu = mpmath.mpf(shift) * mpmath.sqrt(steps)
        for epsilon in (0.1 * float(mu), 1.0 * float(mu), 3.0 * float(mu) + 0.5 * float(mu) ** 2):
            truth = gaussian_delta(mu, epsilon)
            for adjacency in ("add", "remove", "add_remove"):
                found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
                assert holds(found, truth)
                assert width(found) < close
            delta = float(truth)
            if 1e-200 < delta < 0.99:
                found = pe.epsilon(run, delta, adjacency="remove", bounds=True)
                assert gaussian_delta(mu, found.lower) >= delta >= gaussian_delta(mu, found.upper)
                assert width(found) < 10.0 * close
        for kappa in (1e-12, 1e-3, 0.4):
            quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(kappa) - 1)
            found = pe.gamma_bound(run, kappa, bounds=True)
            assert holds(found, mpmath.ncdf(quantile + mu))
            assert width(found) < close


@pytest.mark.parametrize("noise", ["0.8", "3"])
def test_sampled_normal_densities_are_dp_sgd(noise: str) -> None:
    """Bounds of both meet, and are equally close."""
    shift = 1 / Fraction(noise)
    run = moved(NORMAL, number(shift)).poisson_sampled("0.03").composed(300)
    same = pe.dp_sgd(noise_multiplier=noise, sampling_probability="0.03", steps=300)
    asked: list[tuple[Any, float]] = [
        (pe.delta, 0.3),
        (pe.epsilon, 1e-6),
        (pe.gamma_bound, 1e-3),
        (pe.trade_off, 0.9),
    ]
    for question, x in asked:
        for adjacency in ("add", "remove", "add_remove"):
            one, other = (
                question(each, x, adjacency=adjacency, bounds=True) for each in (run, same)
            )
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)
            assert width(one) < 2e-9


def test_another_contour() -> None:
    """Random questions on four families, on all data and on samples: none is outside."""
    tally = Tally()
    for index in some(range(120), 40):
        run, truths = expressions(np.random.default_rng([17, index]))
        tally.judge(run, truths[::5], str(index))
    assert tally.verdicts["within"] >= 20
    assert set(tally.verdicts) <= {"within", "within an estimate"}
    assert np.median(tally.widths) < 1e-10
    assert np.quantile(tally.widths, 0.9) < 1e-8


@sampled(3)
@pytest.mark.parametrize(
    ("log_p", "shift", "steps"),
    [(LOGISTIC, "0.3", 60), (SECANT, "0.3", 90), (STUDENT, "0.5", 120)],
)
def test_bounds_lie_within_the_lattice_s(log_p: Expression, shift: str, steps: int) -> None:
    """Which knows the same densities by other rules, in doubles."""
    run = moved(log_p, shift).poisson_sampled("0.2").composed(steps)
    asked: list[tuple[Any, float]] = [
        (pe.delta, 0.3),
        (pe.epsilon, 1e-5),
        (pe.gamma_bound, 1e-3),
        (pe.trade_off, 0.9),
    ]
    for question, x in asked:
        for adjacency in ("add", "add_remove"):
            found = question(run, x, adjacency=adjacency, bounds=True)
            wide = question(run, x, adjacency=adjacency, method="lattice", bounds="estimated")
            assert wide.lower <= found.lower <= found.value <= found.upper <= wide.upper
            assert width(found) < 1e-9


def test_kinds_of_steps_beside_each_other() -> None:
    """Two users' densities and DP-SGD, whose order changes nothing; against the lattice."""
    parts = [
        moved(LOGISTIC, "0.1").poisson_sampled("0.1").composed(50),
        moved(NORMAL, "0.2").composed(30),
        pe.dp_sgd(noise_multiplier=2, sampling_probability="0.05", steps=300),
        pe.GaussianMechanism("20/3").composed(4),
    ]
    run, other = pe.compose(*parts), pe.compose(*parts[::-1])
    for adjacency in ("add", "add_remove"):
        found = pe.delta(run, 1.0, adjacency=adjacency, bounds=True)
        assert found == pe.delta(other, 1.0, adjacency=adjacency, bounds=True)
        wide = pe.delta(run, 1.0, adjacency=adjacency, method="lattice", bounds="estimated")
        assert wide.lower <= found.lower <= found.upper <= wide.upper
        assert width(found) < 1e-9


def test_both_orders_of_a_lopsided_pair() -> None:
    """Losses that turn: the hull of both orders holds either."""
    step = pe.from_analytic_densities(SECANT, SECANT.at((z - "0.2") / "1.1") - log(number("1.1")))
    run = step.composed(60)
    for kappa in (1e-6, 0.01, 0.3):
        hull = pe.gamma_bound(run, kappa, adjacency="add_remove", bounds=True)
        for adjacency in ("add", "remove"):
            one = pe.gamma_bound(run, kappa, adjacency=adjacency, bounds=True)
            assert one.upper <= hull.upper * (1.0 + 1e-12)
    for epsilon in (0.0, 0.5, 2.0):
        both = pe.delta(run, epsilon, bounds=True)
        single = [pe.delta(run, epsilon, adjacency=x, bounds=True) for x in ("add", "remove")]
        assert both.lower == max(x.lower for x in single)
        assert both.upper == max(x.upper for x in single)


def test_supports_that_end() -> None:
    """Exponential laws of two rates, whose sum of losses is a gamma law."""
    faster = pe.from_analytic_densities(-z, -2 * z + log(number(2)), support=(0, math.inf))
    steps, epsilon = 30, 3.0
    # the loss of n steps is n log 2 - x with x of a gamma law of the shape n, rate 1 or 2
    with mpmath.workdps(40):
        most = steps * mpmath.log(2)
        for adjacency, sign in (("remove", 1), ("add", -1)):
            found = pe.delta(faster.composed(steps), epsilon, adjacency=adjacency, bounds=True)
            x = most - sign * epsilon
            below = [mpmath.gammainc(steps, 0, rate * x, regularized=True) for rate in (1, 2)]
            if sign > 0:  # B against A, where the loss is above epsilon: x is small
                truth = below[1] - mpmath.exp(epsilon) * below[0]
            else:
                truth = (1 - below[0]) - mpmath.exp(epsilon) * (1 - below[1])
            assert holds(found, truth)
            assert width(found) < 1e-10
    beta = pe.from_analytic_densities(
        log(6 * z * (1 - z)), log(12 * z * z * (1 - z)), support=(0, 1)
    ).composed(25)
    found = pe.delta(beta, 1.0, bounds=True)
    wide = pe.delta(beta, 1.0, method="lattice", bounds="estimated")
    assert wide.lower <= found.lower <= found.upper <= wide.upper
    assert width(found) < 1e-9


def test_values_are_proven_ones() -> None:
    """Without bounds the same value, at once."""
    run = moved(LOGISTIC, "0.2").composed(500)
    found = pe.delta(run, 1.0, bounds=True)
    assert pe.delta(run, 1.0) == found.value
    answer, engines, proven = answers("delta", run, [1.0], adjacency="add_remove")
    assert engines == ["certified"]
    assert proven == [True]
    assert answer.value[0] == found.value


def test_few_steps_are_estimates() -> None:
    """A single step, and few of a loss whose density jumps at its ends, are the lattice's."""
    for run in (moved(LOGISTIC, "0.2"), moved(LOGISTIC, "0.2").composed(2)):
        with pytest.raises(pe.AccuracyError):
            pe.delta(run, 0.05, bounds=True)
        found = pe.delta(run, 0.05, bounds="estimated")
        assert found.lower <= found.value <= found.upper
        assert width(found) < 2e-4


def test_equal_densities_release_nothing() -> None:
    run = pe.from_analytic_densities(LOGISTIC, LOGISTIC).composed(30)
    assert pe.delta(run, 0.1, bounds=True) == pe.Bounds(0.0, 0.0, 0.0)


def test_calibration_of_a_scale() -> None:
    """The least scale that meets a target, on the proven side."""

    def mechanism(scale: float) -> pe.Mechanism:
        wide = LOGISTIC.at(z / number(scale)) - log(number(scale))
        return moved(wide, 1).composed(100)

    found = pe.calibrate(mechanism, pe.targets.EpsilonDelta(2.0, 1e-6), start=5.0, rtol=1e-3)
    scale = float(found)
    assert pe.epsilon(mechanism(scale), 1e-6, bounds=True).upper <= 2.0
    assert pe.epsilon(mechanism(0.99 * scale), 1e-6, bounds=True).lower > 2.0


@pytest.mark.parametrize(
    ("log_p", "log_q", "said"),
    [
        (LOGISTIC + number("1e-12"), LOGISTIC.at(z - 1), "p must integrate to 1, but is proven"),
        (LOGISTIC, LOGISTIC.at(z - 1) + number("1e-12"), "q must integrate to 1, but is proven"),
        (
            LOGISTIC - number("1e-8"),
            LOGISTIC.at(z - 1),
            "p must integrate to 1, but has 1e-08 less",
        ),
        (
            LOGISTIC,
            LOGISTIC.at(z - 1) - number("1e-8"),
            "q must integrate to 1, but has 1e-08 less",
        ),
        (LOGISTIC + 1, LOGISTIC.at(z - 1), "total mass 1"),
    ],
)
@pytest.mark.parametrize("rate", [1, "0.1"])
def test_densities_that_are_none(
    log_p: Expression, log_q: Expression, said: str, rate: Any
) -> None:
    step: Any = pe.from_analytic_densities(log_p, log_q)
    run = (step if rate == 1 else step.poisson_sampled(rate)).composed(50)
    with pytest.raises(ValueError, match=said):
        pe.delta(run, 0.3, bounds=True)


def test_a_little_less_than_a_density_widens_bounds() -> None:
    """What it lacks is taken to lie beyond the ends."""
    exact = pe.delta(moved(LOGISTIC, 1).composed(50), 3.0, bounds=True)
    lacking = moved(LOGISTIC - number("1e-12"), 1)
    found = pe.delta(lacking.composed(50), 3.0, bounds=True)
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert 1e-12 < found.upper - found.lower < 1e-9


@pytest.mark.parametrize(
    "bad",
    [
        lambda: pe.from_analytic_densities(lambda x: -x * x, NORMAL),  # type: ignore[arg-type,return-value]
        lambda: pe.from_analytic_densities(NORMAL, 0.0),  # type: ignore[arg-type]
        lambda: pe.from_analytic_densities(NORMAL, NORMAL, support=(1.0, 0.0)),
        lambda: pe.from_analytic_densities(NORMAL, NORMAL, support=(0.0, 1.0, 2.0)),
        lambda: pe.from_analytic_densities(NORMAL, NORMAL, support=(math.nan, 1.0)),
        lambda: pe.delta(moved(log(-z * z), 1).composed(3), 0.1),
    ],
)
def test_bad_input(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"must|are not finite"):
        bad()


def test_where_a_density_is_not_analytic_bounds_are_estimates() -> None:
    """A pole that touches the line: |z| in disguise, of which no panel about 0 is analytic."""
    laplace = -sqrt(z * z) - log(number(2))
    run = moved(laplace, "0.3").composed(60)
    with pytest.raises(pe.AccuracyError):
        pe.delta(run, 1.0, bounds=True)


def test_a_density_with_a_constant_by_the_gamma_function() -> None:
    """Student's law by its degrees of freedom, exactly normalised."""
    nu = Fraction(5)
    log_p = (
        lgamma((nu + 1) / 2)
        - lgamma(nu / 2)
        - log(number(nu) * pi) / 2
        - (nu + 1) / 2 * log(1 + z * z / nu)
    )
    found = pe.delta(moved(log_p, "0.4").composed(200), 2.0, bounds=True)
    assert width(found) < 1e-10


def test_processes_and_threads_agree() -> None:
    """The precision of balls is shared by threads, and locked."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(index: int) -> pe.Bounds:
        run = moved(LOGISTIC, number(Fraction(index % 3 + 1, 7))).composed(80)
        return pe.delta(run, 1.0, bounds=True)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(9)))
    assert found[:3] == found[3:6] == found[6:]
    assert len({x.value for x in found}) == 3


@pytest.mark.parametrize("shift", [34, 37, 38, 45])
def test_losses_whose_weight_lies_where_densities_are_below_all_doubles(shift: int) -> None:
    """Eight loud steps: masses of nodes are 1e-300 and less, and count."""
    run = moved(NORMAL, shift).composed(8)
    with mpmath.workdps(60):
        mu = shift * mpmath.sqrt(8)
        epsilon = float(mu**2 / 2 - 3 * mu)
        truth = gaussian_delta(mu, epsilon)
        try:
            found = pe.delta(run, epsilon, bounds=True)
        except pe.AccuracyError:
            assert shift > 37
        else:
            assert holds(found, truth)
            assert width(found) < 1e-9


def shape_of(
    log_p: Expression, log_q: Expression, ends: tuple[float, float], rate: Any = 1
) -> AnalyticShape:
    return AnalyticShape(log_p, log_q, ends, Fraction(rate), NOTHING)


@pytest.mark.parametrize(("shift", "tilt"), [(25.5, 1.0), (26.0, 0.95), (26.0, 1.0), (30.0, 0.5)])
def test_means_far_from_both_laws(shift: float, tilt: float) -> None:
    """The mean of e^(tilt loss) of normal densities is e^(tilt (tilt - 1) shift^2/2)."""
    shape = shape_of(NORMAL, NORMAL.at(z - shift), (-16.0, 16.0 + shift))
    truth = 0.5 * tilt * (tilt - 1.0) * shift * shift
    assert truth <= shape.log_mean_bound(tilt) <= truth + 0.1
    step = shape.tilted(At(0.5, -shift * shift / 8, 8), 0.1, 1e-15, 0.0)
    assert step is not None
    assert truth <= step.bound_at(tilt) <= truth + 1e-9 * (1.0 + abs(truth))


def test_remainders_of_panels_next_to_a_singularity() -> None:
    """A loss of -log z, whose panels are as short as 1e-270."""
    loss = log(number("0.3")) - number("0.7") * log(z)
    shape = shape_of(0 * z, loss, (1e-270, 1e-200))
    tilt = 4.0
    power = Fraction(7, 10) * 4
    with mpmath.workdps(40):
        # the integral of 0.3^4 z^-2.8
        low, high = (mpmath.mpf(end) ** (-mpmath.mpf(9) / 5) for end in (1e-270, 1e-200))
        whole = mpmath.mpf("0.3") ** 4 * (low - high) * 5 / 9
        assert float(power) == 2.8
        for size in (8, 12, 20):
            nodes = shape.nodes(PanelRule(1, size, 0.0))
            terms = [
                mpmath.fsum(mass) * mpmath.mpf(2) ** power * mpmath.exp(tilt * mpmath.fsum(loss))
                for mass, power, loss in zip(nodes.mass.T, nodes.power, nodes.loss.T, strict=True)
            ]
            off = float(abs(mpmath.fsum(terms) / whole - 1))
            missed = shape.missed(tilt, float(mpmath.log(whole)), 0.0, 1, np.array([size]))[0]
            assert off <= missed + 1e-14


def test_panels_that_no_number_holds_are_refused() -> None:
    shape = shape_of(0 * z, 0 * z, (0.0, 1e-290))
    with pytest.raises(pe.AccuracyError, match="too short"):
        _ = shape.panels


def test_removed_mass_of_the_second_law_counts_at_zero() -> None:
    """A normal law against a logistic one, cut off where the latter has 2e-10 left."""
    shape = shape_of(NORMAL, LOGISTIC, (-22.0, 22.0))
    removed = 60 * shape.removed[1]
    assert removed > 1e-8
    order = LineOrder(((shape, 60),), exchanged=False)
    found = {}
    for index in range(order.choice.line.size):
        if not -2.0 < order.choice.line[index] < 4.0 or order.line_at(index) is None:
            continue
        with pytest.MonkeyPatch.context() as patch:
            weight = np.where(order.choice.line == order.choice.line[index], 0.0, 1e6)
            patch.setattr(type(order.choice), "log_weight", weight)
            value, error = LineOrder(((shape, 60),), exchanged=False).profile(np.zeros(1))
        found[float(order.choice.line[index])] = (float(value[0]), float(error[0]))
    assert len(found) >= 2
    lowest = max(value - error for value, error in found.values())
    highest = min(value + error for value, error in found.values())
    assert lowest <= highest


def test_panels_of_the_last_doubles_are_not_divided() -> None:
    """Next to 1 there is no number between the ends of the last panel."""
    log_p, log_q = log(6 * z * (1 - z)), log(12 * z * z * (1 - z))
    shape = shape_of(log_p, log_q, (0.25, math.nextafter(1.0, 0.0)))
    assert shape.divides(1)
    assert not shape.divides(8)
    step = shape.tilted(At(0.5, cumulants_at(shape, 0.5)[0], 30), 300.0, 1e-12, 0.0)
    assert step is None or step.nodes.rule.panels == 1


@pytest.mark.parametrize("loud", ["1", "1.5", "2", "4"])
@pytest.mark.parametrize(("quiet", "steps"), [("0.05", 20), ("0.05", 5), ("0.2", 3), ("0.01", 10)])
def test_one_loud_step_beside_quiet_ones(loud: str, quiet: str, steps: int) -> None:
    """Its transform falls to 1e-8 and less where those of the others are still close to 1."""
    run = pe.compose(moved(NORMAL, loud), moved(NORMAL, quiet).composed(steps))
    with mpmath.workdps(40):
        mu = mpmath.sqrt(mpmath.mpf(loud) ** 2 + steps * mpmath.mpf(quiet) ** 2)
        for epsilon in (0.5, 1.0, 3.0, 8.0):
            truth = gaussian_delta(mu, epsilon)
            proven = steps != 10  # ten of the quietest steps are too few for some lines
            kind: Any = True if proven else "estimated"
            found = pe.delta(run, epsilon, adjacency="remove", bounds=kind)
            assert holds(found, truth)
            assert width(found) < (1e-10 if proven else 1e-4)


def test_small_moduli_of_transforms() -> None:
    """Between 1e-4 and 1e-14 the modulus and its logarithm are known to what is said of them."""
    shape = shape_of(NORMAL, NORMAL.at(z - 2), (-16.0, 18.0))
    step = shape.tilted(At(0.4, -0.48, 5), 4.5, 1e-17, 0.0)
    assert step is not None
    t = np.linspace(1.5, 4.2, 60)
    found = step.transform(t)
    with mpmath.workdps(40):
        exact = [mpmath.exp(-2 * mpmath.mpf(x) ** 2) for x in t.tolist()]  # variance 4
        for i, value in enumerate(exact):
            assert abs(found.modulus[i] - value) <= found.error[i] + 2.0**-51
            if np.isfinite(found.log[i]):
                assert abs(found.log[i] - mpmath.log(value)) <= found.log_error[i]
            else:
                assert mpmath.log(value) <= found.log_error[i]
