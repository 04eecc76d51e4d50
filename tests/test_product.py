"""Smooth steps beside steps of few losses: sums of certified rows."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import random_mechanisms as families
from outcomes import Outcomes, gaussian_delta, generic, response, sampled_gaussian_delta, vectors
from random_mechanisms import Draw, made
from thorough import sampled

import pyengine as pe
from pyengine.api import answers
from pyengine.caches import clear_cache
from pyengine.engines.exact.finite import finite_composition
from pyengine.engines.vertical_lines import mixed
from pyengine.engines.vertical_lines.finite_steps import FiniteShape
from pyengine.engines.vertical_lines.normal_steps import GaussianShape
from pyengine.laws.composition import composition_law
from pyengine.laws.finite import FiniteLaw


def engine_of(question: str, mechanism: pe.Mechanism, x: float, adjacency: str) -> str:
    _, engines, _ = answers(question, mechanism, [x], adjacency=adjacency, method="auto")
    return str(engines[0])


# Truth: plain Gaussian noise, whose functionals are normal distribution functions, in mpmath.


def few_losses(name: str) -> tuple[pe.Mechanism, Outcomes]:
    """A mechanism and the masses of both laws of its outcomes, without the record first."""
    if name == "response":
        return pe.RandomizedResponse(Fraction(3, 4)), response(mpmath.mpf(3) / 4)
    if name == "generic":
        return pe.GenericMechanism(0.5, 0.03125), generic(0.5, 0.03125)
    p, q = ["1/2", "1/4", "1/8", "1/8"], ["1/8", "1/8", "1/4", "1/2"]
    return pe.from_probabilities(p, q), vectors(p, q)


def true_delta(mu: Any, outcomes: Outcomes, epsilon: float) -> Any:
    total = mpmath.mpf(0)
    for a, b in outcomes:
        if a == 0:
            continue
        total += a if b == 0 else a * gaussian_delta(mu, epsilon + mpmath.log(b / a))
    return total


@pytest.mark.parametrize("name", ["response", "generic", "vectors"])
def test_profiles_beside_plain_noise(name: str) -> None:
    with mpmath.workdps(50):
        few, outcomes = few_losses(name)
        rng = np.random.default_rng(len(name))
        for _ in range(12):
            noise, steps = float(10.0 ** rng.uniform(-0.2, 1.0)), int(10 ** rng.uniform(0.4, 3.0))
            mu = mpmath.sqrt(steps) / mpmath.mpf(noise)
            mechanism = pe.compose(pe.GaussianMechanism(noise).composed(steps), few)
            epsilon = float(rng.uniform(0.0, 2.0 * float(mu) + 1.0))
            truth = true_delta(mu, outcomes, epsilon)
            low, value, high = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
            assert low <= truth <= high
            assert abs(value - truth) <= 1e-10 * truth
            assert engine_of("delta", mechanism, epsilon, "add") == "certified"
            if truth > 0.999:  # next to 1 rounding of δ is all that ε would tell
                continue
            low, _, high = pe.epsilon(mechanism, float(truth), adjacency="add", bounds=True)
            assert high - low <= 1e-8 * high
            assert true_delta(mu, outcomes, high) <= float(truth)
            assert low == 0.0 or true_delta(mu, outcomes, low) >= float(truth)


@pytest.mark.parametrize("name", ["response", "generic", "vectors"])
def test_curves_lie_on_the_tangents_of_their_profiles(name: str) -> None:
    """γ(κ) is the least κ e^t + H_{e^t} over all real t, by duality."""
    with mpmath.workdps(40):
        few, outcomes = few_losses(name)
        mechanism = pe.compose(pe.GaussianMechanism(2.0).composed(9), few)
        mu = mpmath.mpf(3) / 2
        for level in (1e-12, 3e-5, 0.01, 0.3):
            low, value, high = pe.gamma_bound(mechanism, level, adjacency="remove", bounds=True)

            # γ(κ) = min over t of κ e^t + H_{e^t}, as both orders of these pairs are alike
            def bound(t: Any, level: float = level) -> Any:
                return level * mpmath.exp(t) + true_delta(mu, outcomes, t)

            left, right = mpmath.mpf(-12), mpmath.mpf(40)
            golden = (mpmath.sqrt(5) - 1) / 2
            for _ in range(120):
                x, y = right - golden * (right - left), left + golden * (right - left)
                if bound(x) < bound(y):
                    right = y
                else:
                    left = x
            truth = bound((left + right) / 2)
            assert low <= truth * (1 + mpmath.mpf(10) ** -20)
            assert truth <= high * (1 + mpmath.mpf(10) ** -20)
            assert abs(value - truth) <= 1e-10 * truth


# Truth: the reference, and the lattice, for sampled steps.


def test_sampled_steps_beside_few_losses_agree_with_the_reference() -> None:
    vectors = pe.from_probabilities(["1/2", "1/4", "1/8", "1/8"], ["1/8", "1/8", "1/4", "1/2"])
    for few in (pe.RandomizedResponse(Fraction(3, 4)).composed(5), vectors):
        mechanism = pe.compose(pe.dp_sgd(1.1, 0.015625, 400), few)
        for adjacency in ("add", "remove"):
            for question, x in (("delta", 1.5), ("gamma_bound", 1e-4), ("trade_off", 0.4)):
                truth = getattr(pe.reference, question)(
                    mechanism, x, adjacency=adjacency, digits=20
                )
                found = getattr(pe, question)(mechanism, x, adjacency=adjacency, bounds=True)
                assert found.lower <= truth.upper
                assert truth.lower <= found.upper
                assert found.upper - found.lower <= 1e-10 * found.value


def test_random_compositions_overlap_with_the_lattice() -> None:
    """Another method with another discretisation, over noise, rates, lengths and questions."""
    d, narrow, refused = Draw(20261122), 0, 0
    for _ in range(16):
        few = d.one_of(
            lambda: families.response(d, (0.55, 0.9), (1, 20)),
            lambda: families.generic(d, (0.01, 2.0), (1e-9, 0.1), (1, 1)),
            lambda: f"pe.DiscreteLaplaceMechanism({d.real(0.5, 5)}).poisson_sampled(0.25)",
        )
        mechanism = made(families.sgd(d, (0.5, 6.3), (1e-4, 0.3), (30, 3e4)), few())
        adjacency = d.adjacency()
        name, x = d.question((0.01, 3.0), (1e-7, 0.1), (1e-7, 0.5), (0.01, 0.9))
        asked = getattr(pe, name)
        try:
            one = asked(mechanism, x, adjacency=adjacency, bounds=True)
        except pe.AccuracyError:  # neither lines nor the lattice
            refused += 1
            continue
        narrow += one.upper - one.lower <= 1e-9 * one.value
        with contextlib.suppress(pe.AccuracyError):
            other = asked(mechanism, x, adjacency=adjacency, bounds=True, method="lattice")
            assert one.lower <= other.upper, (mechanism, name, x, adjacency)
            assert other.lower <= one.upper, (mechanism, name, x, adjacency)
    assert refused <= 1
    assert narrow >= 11


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_outcomes_that_tell_the_record(adjacency: str) -> None:
    """What only one law has counts at κ = 0 and at ε = inf, where lines say nothing."""
    mechanism = pe.compose(pe.dp_sgd(1.0, 0.01, 1000), pe.GenericMechanism(0.5, 0.03125))
    assert pe.delta(mechanism, np.inf, adjacency=adjacency) == pytest.approx(0.03125, rel=1e-12)
    assert pe.gamma_bound(mechanism, 0.0, adjacency=adjacency) == pytest.approx(0.03125, rel=1e-12)
    assert pe.epsilon(mechanism, 0.03, adjacency=adjacency) == np.inf
    array = pe.gamma_bound(mechanism, np.array([0.0, 1e-6, 0.5, 1.0]), adjacency=adjacency)
    assert np.all(np.diff(array) > 0.0)
    assert array[-1] == 1.0


def test_a_refused_composition_of_many_gaussian_steps_is_answered() -> None:
    """Of 393,378 rare steps the lattice knew β within a factor of 1.8 only."""
    mechanism = pe.compose(
        pe.GaussianMechanism(0.6965).poisson_sampled(1.467e-05).composed(393378),
        pe.DiscreteLaplaceMechanism(18.01, 1).poisson_sampled(2.405e-05).composed(1),
        pe.GaussianMechanism(1.094)
        .sampled_without_replacement(batch_size=8, dataset_size=112)
        .composed(20),
    )
    low, _, high = pe.trade_off(mechanism, 0.1700679481571633, adjacency="add", bounds=True)
    assert high - low <= 1e-9 * low
    assert 0.51 < low < 0.53


def test_arrays_have_the_bits_of_their_numbers() -> None:
    mechanism = pe.compose(pe.dp_sgd(1.1, 0.015625, 400), pe.RandomizedResponse(0.75).composed(5))
    kappa = np.array([1e-9, 1e-4, 0.3, 0.9])
    together = pe.gamma_bound(mechanism, kappa, adjacency="add")
    assert together.tolist() == [
        pe.gamma_bound(mechanism, float(x), adjacency="add") for x in kappa
    ]


def test_values_near_the_smallest_double_hold_what_masses_lose() -> None:
    """A mass of 1e-310 has few digits, and may be all that a tail is made of."""
    rare = pe.GenericMechanism(300.0, 0.0)
    with mpmath.workdps(60):
        odds = mpmath.exp(300)
        outcomes = [(odds / (1 + odds), 1 / (1 + odds)), (1 / (1 + odds), odds / (1 + odds))]
        mechanism = pe.compose(pe.GaussianMechanism(1.0).composed(4), rare, rare)
        twice = [(a * c, b * d) for a, b in outcomes for c, d in outcomes]
        for epsilon in (20.0, 310.0, 640.0):
            truth = true_delta(mpmath.mpf(2), twice, epsilon)
            low, _, high = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
            assert low <= truth <= high


def test_both_orders_of_rare_steps_are_left_to_the_lattice_level_by_level() -> None:
    """A hull of lines and of brackets from elsewhere had no answer."""
    mechanism = pe.compose(
        pe.RandomizedResponse(0.9341641837691365)
        .poisson_sampled(0.00011355287346860285)
        .composed(6),
        pe.GaussianMechanism(0.721).poisson_sampled(0.000879507475813544).composed(2),
    )
    beta = pe.trade_off(mechanism, np.array([0.000853180355072004, 0.5]), bounds=True)
    for i, level in enumerate((0.000853180355072004, 0.5)):
        lattice = pe.trade_off(mechanism, level, method="lattice", bounds=True)
        assert beta.lower[i] <= lattice.upper
        assert lattice.lower <= beta.upper[i]
    assert np.all(beta.upper - beta.lower <= 1e-4 * beta.value)


def test_one_smooth_step_beside_few_losses_has_digits() -> None:
    mechanism = pe.compose(pe.GaussianMechanism(1.0), pe.RandomizedResponse(0.75))
    with mpmath.workdps(40):
        odds = mpmath.mpf(3)
        outcomes = [(odds / 4, 1 / (odds + 1)), (1 / (odds + 1), odds / 4)]
        truth = true_delta(mpmath.mpf(1), outcomes, 0.5)
    low, _, high = pe.delta(mechanism, 0.5, adjacency="add", bounds=True)
    assert low <= truth <= high
    assert high - low <= 1e-12 * low


@pytest.mark.parametrize("level", [2.5302965508581436e-4, 1e-12, 0.01])
def test_both_orders_of_one_step_beside_a_generic_mechanism(level: float) -> None:
    """These were refused, by a lattice of the order that does not matter."""
    mechanism = pe.compose(pe.GenericMechanism(0.1), pe.dp_sgd(0.3, 0.9, 1))
    with mpmath.workdps(40):
        own, noise, p = mpmath.mpf(0.1), mpmath.mpf(0.3), mpmath.mpf(0.9)
        share = 1 / (1 + mpmath.exp(-own))

        def profile(epsilon: Any, order: str) -> Any:
            parts = [
                weight
                * sampled_gaussian_delta(1 / noise, p, mpmath.exp(epsilon - sign * own), order)
                for sign, weight in ((1, share), (-1, 1 - share))
            ]
            return mpmath.fsum(parts)

        def line(c: Any) -> Any:  # of slope e^c below both curves
            return level * mpmath.exp(c) + max(profile(c, order) for order in ("add", "remove"))

        low, high = mpmath.mpf(0), mpmath.mpf(40)
        for _ in range(150):  # e^c times a level plus the profile is convex in e^c
            thirds = low + (high - low) / 3, high - (high - low) / 3
            if line(thirds[0]) < line(thirds[1]):
                high = thirds[1]
            else:
                low = thirds[0]
        truth = line((low + high) / 2)
    found = pe.gamma_bound(mechanism, level, adjacency="add_remove", bounds=True)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 1e-10 * found.upper
    plain = pe.gamma_bound(mechanism, level, adjacency="add_remove")
    assert found.lower <= plain <= found.upper


@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
def test_no_arguments_have_no_answers(adjacency: str) -> None:
    mechanism = pe.compose(pe.dp_sgd(1.0, 0.01, 1000), pe.RandomizedResponse(0.75))
    for asked in (pe.delta, pe.epsilon, pe.trade_off, pe.gamma_bound):
        assert asked(mechanism, np.array([]), adjacency=adjacency).shape == (0,)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_losses_are_used_with_more_digits_than_doubles_have(adjacency: str) -> None:
    """Where the smooth loss varies by 1e-3 alone, thresholds off by 3e-13 would cost 1e-9."""
    run = pe.compose(pe.dp_sgd("37.39", "0.005", 80), pe.RandomizedResponse("0.75"))
    epsilon = np.log(3.0) + np.array([-2e-3, -5e-4, 0.0, 5e-4, 2e-3])
    found, engines, proven = answers("delta", run, epsilon, adjacency=adjacency)
    assert set(engines) == {"certified"}
    assert all(proven)
    assert ((found.upper - found.lower) < 1e-10 * found.upper).all()


def beside_response(noise: float, p: float, steps: int, responses: int) -> pe.Mechanism:
    """Sampled Gaussian steps and randomized response."""
    few = pe.RandomizedResponse(Fraction(17, 20)).composed(responses)
    return pe.dp_sgd(noise, p, steps) + few


@pytest.mark.parametrize("alpha", [1e-3, 0.3])
def test_rare_steps_beside_few_losses(alpha: float) -> None:
    """Most of the few losses place the threshold where one of the two laws has next to nothing."""
    mechanism = beside_response(1.414, 6.54e-5, 11_090, 4)
    found = pe.gamma_bound(mechanism, alpha, adjacency="add", bounds=True)
    assert found.upper - found.lower <= 2e-10 * found.upper
    if alpha > 0.01:  # the lattice refuses the other level
        other = pe.gamma_bound(mechanism, alpha, adjacency="add", method="lattice", bounds=True)
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)


def far_out() -> pe.Mechanism:
    """Many truncated samples, whose estimates err by 1.6e-10 beyond the window."""
    batches = pe.GaussianMechanism("2.465").truncated_poisson_sampled(
        "0.0334", batch_size=12, dataset_size=267
    )
    return pe.compose(pe.RandomizedResponse("0.67").composed(5), batches.composed(257_200))


@pytest.mark.parametrize("alpha", [1.0759196560324979e-20, 3.4545834440726939e-26])
def test_levels_far_out_have_digits(alpha: float) -> None:
    """Bounds of places between the ends of a window left the log of a tail open by some units."""
    clear_cache()
    for question, adjacency in (("gamma_bound", "add"), ("trade_off", "remove")):
        low, value, high = getattr(pe, question)(far_out(), alpha, adjacency=adjacency, bounds=True)
        assert high - low <= 1e-10 * value
        assert engine_of(question, far_out(), alpha, adjacency) == "certified"
    clear_cache()


def test_what_places_a_threshold_is_close() -> None:
    """A threshold whose tail is 3e-9 off is left to the lattice: nothing proves a chord there."""
    weights = ("16818201/100000000", "24191799/50000000", "34798201/100000000")
    noise = pe.GaussianMixtureMechanism("7.47", (0, 1, 2), weights).composed(814)
    mechanism = pe.compose(noise, pe.RandomizedResponse("0.91").composed(4))
    alpha = 4.144919863223875e-11
    low, value, high = pe.gamma_bound(mechanism, alpha, adjacency="add", bounds=True)
    assert high - low <= 1e-11 * value


def test_far_rows_are_bounded_by_the_ends_of_a_window() -> None:
    """No line is proven at the thresholds of the other losses; without the ends 4e-6 is left."""
    mechanism = beside_response(5.0, 1e-5, 10**6, 6)
    for alpha in (1e-3, 0.3):
        found = pe.gamma_bound(mechanism, alpha, bounds=True)
        assert found.upper - found.lower <= 1e-11 * found.upper
        other = pe.gamma_bound(mechanism, alpha, method="lattice", bounds=True)
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)


def below_the_least_loss() -> pe.Mechanism:
    """A few batches beside which most thresholds lie below all losses that they can have."""
    batches = pe.GaussianMechanism("12.9").sampled_without_replacement(
        batch_size=4, dataset_size=78
    )
    return pe.compose(pe.RandomizedResponse("0.79").composed(6), batches.composed(5))


def behind_rare_losses() -> pe.Mechanism:
    """Beside rare large losses no line is proven where the tail asked for is next to 1."""
    weights = ("0.999610050697803", "0.000389898606591", "0.000000050693409", "0.000000000002197")
    noise = pe.GaussianMixtureMechanism("2.918", (0, 1, 2, 3), weights)
    return pe.compose(noise.composed(1192), pe.RandomizedResponse("0.97").composed(5))


@pytest.mark.parametrize(
    ("mechanism", "question", "x", "adjacency", "truth"),
    [
        (below_the_least_loss, "trade_off", 0.9456666100838511, "add", 1.87272394001328921e-05),
        (below_the_least_loss, "gamma_bound", 1.872723940013289e-05, "remove", 0.0543333899161488),
        (behind_rare_losses, "trade_off", 0.4042845147288945, "remove", 1.68167694972598016e-08),
        (behind_rare_losses, "trade_off", 0.24149416607197285, "remove", 2.14412199280219392e-08),
    ],
)
def test_places_beyond_the_window_are_bounded_by_their_small_tails(
    mechanism: Any, question: str, x: float, adjacency: str, truth: float
) -> None:
    """Truth: ``tools/mixture_contour.py``; the lattice answered here, 1e-5 wide."""
    found = getattr(pe, question)(mechanism(), x, adjacency=adjacency, bounds=True)
    assert found.lower <= truth * (1.0 + 2e-14)
    assert found.upper >= truth * (1.0 - 2e-14)
    assert found.upper - found.lower <= 1e-10 * truth
    assert engine_of(question, mechanism(), x, adjacency) == "certified"


@sampled(3)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_plain_values_are_those_of_the_proofs(adjacency: str) -> None:
    """They came from the lattice, as lines of the smooth part were asked for a value only."""
    step = pe.GaussianMechanism(1).sampled_with_replacement(batch_size=256, dataset_size=60_000)
    for run in (beside_response(1.414, 6.54e-5, 1_109, 3), step.composed(1000)):
        found = pe.epsilon(run, 1e-5, adjacency=adjacency, bounds=True)
        assert found.lower <= pe.epsilon(run, 1e-5, adjacency=adjacency) <= found.upper


# Each error of a sum over few losses, made to carry the error alone.


def weighted(few: pe.Mechanism, noise: float, steps: int) -> mixed.WeightedOrder:
    """The few losses beside plain noise, as sums over them whatever lines would do."""
    laws = composition_law(pe.GaussianMechanism(noise).composed(steps) + few, "add")
    finite = [(law, number) for law, number in laws if isinstance(law, FiniteLaw)]
    others = tuple(part for part in laws if not isinstance(part[0], FiniteLaw))
    shape = GaussianShape(Fraction(steps) / Fraction(noise) ** 2)
    inner = mixed.LineOrder(((shape, 1),), exchanged=False)
    composed = finite_composition(finite)
    assert others
    kinds = (*((FiniteShape(law), number) for law, number in finite), (shape, 1))
    return mixed.WeightedOrder(kinds, False, composed.weights(), inner)


@pytest.mark.parametrize("planted", ["nothing", "rest", "losses", "masses"])
def test_errors_of_sums_over_few_losses(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    """With its term each error is within the bounds; without it, outside of them."""
    few, outcomes = few_losses("vectors")
    mu, points = mpmath.mpf(1) / 2, (0.0, 0.4, 1.1, 2.0)

    def outside(*, is_counted: bool) -> int:
        law = weighted(few, 2.0, 1)
        if planted == "rest":
            parts = [
                part if is_counted else part._replace(rest_a=0.0, rest_b=0.0)
                for part in law._sorted
            ]
            law.__dict__["_sorted"] = parts
        elif planted == "losses":
            low, off = law._low
            law.__dict__["_low"] = low + 1e-9, 1e-9 if is_counted else off
        elif planted == "masses":
            law.__dict__["_sorted"] = [
                part._replace(a=part.a * (1 + 1e-9), b=part.b * (1 + 1e-9)) for part in law._sorted
            ]
            law._weights.error = 1e-9 if is_counted else law._weights.error
        value, error = law.profile(np.array(points))
        with mpmath.workdps(40):
            truth = [true_delta(mu, outcomes, x) for x in points]
            return sum(
                not mpmath.mpf(v) - e <= t <= mpmath.mpf(v) + e
                for v, e, t in zip(value.tolist(), error.tolist(), truth, strict=True)
            )

    if planted == "rest":  # the lightest losses are left to their masses
        monkeypatch.setattr(mixed, "SHARES", (1.0, 0.7, -1.0))
        monkeypatch.setattr(mixed, "COUNTS", 10.0)
    assert outside(is_counted=True) == 0
    assert (outside(is_counted=False) > 0) == (planted != "nothing")


# Steps beside few losses that no line serves: in closed form, and by laws on pieces.

TOLD = pe.GenericMechanism(0.5, 0.03125)
ASKED = {"delta": 0.3, "epsilon": 0.05, "gamma_bound": 1e-6, "trade_off": 0.03}


def asked(mechanism: pe.Mechanism, question: str, adjacency: str, **more: Any) -> Any:
    ask = getattr(pe, question)
    return ask(mechanism, ASKED[question], adjacency=adjacency, bounds=True, **more)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize(
    ("mechanism", "questions"),
    [
        (pe.LaplaceMechanism(2.0).poisson_sampled(0.25) + TOLD, ("delta", "trade_off")),
        (pe.LaplaceMechanism("8.286").composed(2) + TOLD, ("gamma_bound", "epsilon")),
    ],
)
def test_steps_in_closed_form_beside_few_losses(
    mechanism: pe.Mechanism, questions: tuple[str, ...], adjacency: str
) -> None:
    """Truth: the reference.  The lattice answered here."""
    for question in questions:
        found = asked(mechanism, question, adjacency)
        truth = getattr(pe.reference, question)(
            mechanism, ASKED[question], adjacency=adjacency, digits=20
        )
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
        assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize("order", ["add", "remove"])
@pytest.mark.parametrize("epsilon", [0.05, 1.2])
def test_two_rare_steps_beside_few_losses(order: str, epsilon: float) -> None:
    """Truth: an integral over the first step of the second one in closed form."""
    few, outcomes = few_losses("response")
    mechanism = pe.dp_sgd(0.75, 2.0**-10, 2) + few
    with mpmath.workdps(30):
        noise, p = mpmath.mpf(3) / 4, mpmath.mpf(2) ** -10
        shift = 1 / noise

        def ratio(z: Any) -> Any:
            return 1 - p + p * mpmath.exp(shift * z - shift**2 / 2)

        def over(z: Any) -> Any:
            density = mpmath.npdf(z) * (ratio(z) if order == "remove" else 1)
            loss = mpmath.log(ratio(z)) * (-1 if order == "remove" else 1)
            return density * mpmath.fsum(
                a * sampled_gaussian_delta(1 / noise, p, mpmath.exp(epsilon + loss) * b / a, order)
                for a, b in outcomes
            )

        places = [-12, -6, -3, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14]
        kinks = []  # where the second step's largest loss is the other end of its profile
        for a, b in outcomes:
            e = mpmath.exp(epsilon) * b / a
            r = 1 / (e * (1 - p)) if order == "add" else e / (1 - p)
            if r > 1 - p:
                kinks.append((mpmath.log((r - 1 + p) / p) + shift**2 / 2) / shift)
        truth = mpmath.quad(over, sorted([*places, *(x for x in kinks if -12 < x < 14)]))
        found = pe.delta(mechanism, epsilon, adjacency=order, bounds=True)
        assert found.lower <= truth * (1 + mpmath.mpf(10) ** -16)
        assert truth * (1 - mpmath.mpf(10) ** -16) <= found.upper
    assert found.upper - found.lower <= max(1e-10 * found.upper, 1e-300)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize(
    "mechanism",
    [
        pe.dp_sgd(0.75, 2.0**-18, 22) + pe.RandomizedResponse(Fraction(5, 8)).composed(9),
        pe.dp_sgd(1.5, 2.0**-11, 63) + pe.RandomizedResponse(Fraction(25, 32)).composed(3),
        pe.dp_sgd(0.75, 2.0**-15, 43) + TOLD,
    ],
)
def test_rare_steps_beside_few_losses_on_pieces(mechanism: pe.Mechanism, adjacency: str) -> None:
    """The lattice, whose bounds are 1e-7 to 5e-5 wide, is another method."""
    for question in ("gamma_bound", "trade_off"):
        found = asked(mechanism, question, adjacency)
        assert found.upper - found.lower <= 5e-9 * found.upper
        with contextlib.suppress(pe.AccuracyError):  # the lattice refuses some levels
            other = asked(mechanism, question, adjacency, method="lattice")
            assert max(found.lower, other.lower) <= min(found.upper, other.upper)


def test_arrays_on_pieces_have_the_bits_of_their_numbers() -> None:
    mechanism = pe.dp_sgd(0.75, 2.0**-15, 43) + pe.RandomizedResponse(Fraction(5, 8)).composed(3)
    kappa = np.array([1e-7, 1e-3, 0.4])
    together = pe.gamma_bound(mechanism, kappa, adjacency="remove", bounds=True)
    alone = [pe.gamma_bound(mechanism, x, adjacency="remove", bounds=True) for x in kappa.tolist()]
    assert together.lower.tolist() == [one.lower for one in alone]
    assert together.upper.tolist() == [one.upper for one in alone]
