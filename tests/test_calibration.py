"""Calibration: known noises, the safe side, integers, several targets, arrays, what is refused."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from drawing import log_uniform
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine import calibration
from pyengine.targets import Advantage, EpsilonDelta, Gamma, GaussianDP, TradeOff

FEW = settings(max_examples=12 if ALL else 6, deadline=None, derandomize=True)


def noise_of(probability: float = 0.01, steps: int = 1000) -> Any:
    return lambda noise: pe.dp_sgd(noise, probability, steps)


# Noise to ten digits: tests/data/README.md says how it was found.
KNOWN = [
    (EpsilonDelta(1.0, 1e-6), 0.01, 10_000, 4.302106466),
    (EpsilonDelta(4.0, 1e-5), 0.01, 100, 0.590501823),
    (EpsilonDelta(4.0, 1e-5), 0.5, 100, 5.511152140),
    (EpsilonDelta(4.0, 1e-5), 0.99, 100, 10.705414115),
]


@pytest.mark.parametrize(("target", "probability", "steps", "noise"), KNOWN)
def test_known_noise(target: EpsilonDelta, probability: float, steps: int, noise: float) -> None:
    found = pe.calibrate(noise_of(probability, steps), target)
    assert found.value == pytest.approx(noise, abs=1e-9)
    assert found.evaluations <= 12
    assert found.achieved.delta <= target.delta
    assert found.achieved.delta == pytest.approx(target.delta, rel=1e-9)
    assert found.mechanism == pe.dp_sgd(found.value, probability, steps)
    smaller = noise_of(probability, steps)(found.value * (1 - 1e-10))
    assert pe.delta(smaller, target.epsilon) > target.delta


@pytest.mark.parametrize(("target", "probability", "steps", "noise"), [KNOWN[0], *KNOWN[2:]])
def test_known_noise_is_true(
    target: EpsilonDelta, probability: float, steps: int, noise: float
) -> None:
    pytest.importorskip("flint")
    exact, half = Fraction(str(noise)), Fraction(5, 10**10)
    for nearby, above in ((exact - half, True), (exact + half, False)):
        mechanism = pe.dp_sgd(nearby, Fraction(str(probability)), steps)
        delta = pe.reference.delta(mechanism, target.epsilon, adjacency="remove", digits=12)
        assert (delta > target.delta) == above


@pytest.mark.parametrize(
    ("probability", "gamma"), [(0.01, 0.186773), (0.5, 0.355340), (0.99, 0.360632)]
)
def test_reconstruction_along_a_family(probability: float, gamma: float) -> None:
    """Equal (4, 1e-5), unequal γ(0.1): Hayes, Mahloujifar and Balle 2023, Figure 5."""
    found = pe.calibrate(noise_of(probability, 100), EpsilonDelta(4.0, 1e-5))
    assert pe.gamma_bound(found.mechanism, 0.1) == pytest.approx(gamma, abs=5e-7)


@FEW
@given(log_uniform(0.2, 2.0), log_uniform(1e-12, 1e-2), log_uniform(0.02, 0.5))
def test_noise_is_the_smallest(epsilon: float, delta: float, probability: float) -> None:
    target, make = EpsilonDelta(epsilon, delta), noise_of(probability, 500)
    found = pe.calibrate(make, target)
    assert target.is_met(found.mechanism)
    reached = pe.delta(found.mechanism, epsilon, adjacency="add_remove", bounds="estimated")
    assert reached.upper <= delta
    assert not target.is_met(make(float(found) * (1 - 1e-9)))


@FEW
@given(
    st.one_of(
        st.builds(Gamma, log_uniform(1e-6, 0.1), st.just(0.3)),
        st.builds(TradeOff, log_uniform(1e-3, 0.4), st.just(0.2)),
        st.builds(TradeOff, st.just(0.05), st.floats(0.5, 0.94), adjacency=st.just("add")),
        st.builds(Advantage, log_uniform(1e-4, 0.6)),
        st.builds(EpsilonDelta, log_uniform(0.1, 5.0), st.just(1e-6), adjacency=st.just("add")),
    )
)
def test_other_targets_are_tight(target: pe.targets.Target) -> None:
    make = noise_of(0.02, 400)
    found = pe.calibrate(make, target)
    assert target.is_met(found.mechanism)
    assert found.achieved.is_met(found.mechanism)
    assert not target.is_met(make(found.value * (1 - 1e-8)))


def test_closed_forms() -> None:
    """One Gaussian step of noise 1/μ: its own figures give the noise back."""
    one = pe.GaussianMechanism(1.25)
    for target in (
        EpsilonDelta(1.0, 1.0).achieved(one),
        Gamma(0.01, 1.0).achieved(one),
        TradeOff(0.01, 0.0).achieved(one),
        Advantage(1.0).achieved(one),
        GaussianDP(1.0).achieved(one),
    ):
        found = pe.calibrate(pe.GaussianMechanism, target)
        assert found.value == pytest.approx(1.25, rel=1e-10)
        assert found.value >= 1.25 * (1 - 1e-15)


def test_sampling_probability_and_its_end() -> None:
    target = EpsilonDelta(1.0, 1e-6)
    found = pe.calibrate(lambda p: pe.dp_sgd(1.0, p, 1000), target)
    assert target.is_met(found.mechanism)
    assert not target.is_met(pe.dp_sgd(1.0, found.value * (1 + 1e-9), 1000))
    # enough noise for the full batch: the end of the domain is found and returned
    whole = pe.calibrate(lambda p: pe.dp_sgd(300.0, p, 1000), target)
    assert whole.value == 1.0
    assert whole.achieved.delta < 1e-20


@pytest.mark.parametrize("epsilon", [0.9, 1.7, 3.0])
def test_most_steps(epsilon: float) -> None:
    target = EpsilonDelta(epsilon, 1e-6)
    found = pe.calibrate(lambda n: pe.dp_sgd(1.0, 0.01, n), target, integer=True)
    assert isinstance(found.value, int)
    assert target.is_met(found.mechanism)
    assert not target.is_met(pe.dp_sgd(1.0, 0.01, found.value + 1))
    assert list(range(10_000))[found] == int(found) == found.value


def test_smallest_integer() -> None:
    target = EpsilonDelta(1.0, 1e-6)
    found = pe.calibrate(lambda n: pe.dp_sgd(1.0, 256 / max(n, 256), 1000), target, integer=True)
    assert target.is_met(found.mechanism)
    assert not target.is_met(pe.dp_sgd(1.0, 256 / (found.value - 1), 1000))


def test_no_step_is_an_answer() -> None:
    target = EpsilonDelta(0.1, 1e-6)
    found = pe.calibrate(lambda n: pe.dp_sgd(0.5, 1.0, n), target, integer=True, start=8)
    assert found.value == 0


def test_several_targets() -> None:
    make = noise_of()
    targets = [EpsilonDelta(1.0, 1e-6), Gamma(1e-3, 2e-3), Advantage(0.05)]
    together = pe.calibrate(make, targets)
    alone = [pe.calibrate(make, target).value for target in targets]
    assert together.value == pytest.approx(max(alone), rel=2e-11)
    assert all(target.is_met(together.mechanism) for target in targets)
    assert [type(found) for found in together.achieved] == [type(target) for target in targets]


def test_arrays_of_targets() -> None:
    make = noise_of()
    epsilon, delta = np.array([0.5, 1.0, 2.0]), np.array([[1e-5], [1e-6]])
    found = pe.calibrate(make, EpsilonDelta(epsilon, delta))
    assert np.asarray(found).shape == (2, 3)
    assert np.all(np.diff(found.value, axis=1) < 0)
    assert np.all(found.achieved.delta <= delta)
    assert found.mechanism[1, 1] == make(found.value[1, 1])
    assert found.evaluations <= 6 * 8  # each entry begins where the one before has ended
    single = pe.calibrate(make, EpsilonDelta(1.0, 1e-6))
    assert found.value[1, 1] == pytest.approx(single.value, rel=2e-11)
    both = pe.calibrate(make, (EpsilonDelta(epsilon, 1e-6), Advantage(0.2)))
    assert both.value.shape == both.achieved[1].eta.shape == (3,)
    steps = pe.calibrate(
        lambda n: pe.dp_sgd(1.0, 0.01, n), EpsilonDelta([1.7, 3.0], 1e-6), integer=True
    )
    assert steps.value.dtype.kind == "i"
    assert pe.calibrate(make, EpsilonDelta([], 1e-6)).value.shape == (0,)


def test_start_and_direction_may_be_given() -> None:
    make, target = noise_of(), EpsilonDelta(1.0, 1e-6)
    expected = pe.calibrate(make, target).value
    for start in (0.5, 1.5, 40.0):
        for maximize in (None, False):
            found = pe.calibrate(make, target, start=start, maximize=maximize)
            assert found.value == pytest.approx(expected, rel=2e-11)
    rough = pe.calibrate(make, target, rtol=1e-3)
    assert expected <= rough.value <= expected * 1.002
    assert rough.evaluations < pe.calibrate(make, target, rtol=1e-13).evaluations


def test_gaussian_dp_everywhere_is_that_of_the_full_batch() -> None:
    found = pe.calibrate(noise_of(0.01, 100), GaussianDP(2.0))
    assert found.value == pytest.approx(math.sqrt(100) / 2.0, rel=1e-10)
    mixed = pe.calibrate(
        lambda s: pe.dp_sgd(s, 0.3, 9) + pe.dp_sgd(2 * s, 1.0, 16), GaussianDP(1.0)
    )
    assert mixed.value == pytest.approx(math.sqrt(9 + 16 / 4), rel=1e-10)
    # no smaller μ will do: far out, the profile of the Gaussian falls below
    mechanism, mu = pe.dp_sgd(1.0, 0.3, 1), 0.9
    epsilon = np.linspace(0.0, 30.0, 61)
    gaussian = pe.delta(pe.GaussianMechanism(1 / mu), epsilon)
    sampled = pe.delta(mechanism, epsilon)
    assert sampled[5] < gaussian[5]
    assert sampled[-1] > gaussian[-1]


def test_mechanisms_with_atoms() -> None:
    """Pure ε of Laplace noise and of two answers; kinks and jumps of δ do not stop the search."""
    pure = EpsilonDelta(0.75, 0.0)
    assert pe.calibrate(pe.LaplaceMechanism, pure).value == pytest.approx(1 / 0.75, rel=1e-10)
    assert pe.calibrate(pe.GenericMechanism, pure).value == pytest.approx(0.75, rel=1e-10)
    found = pe.calibrate(
        lambda k: pe.GenericMechanism(0.1, 1e-9).composed(k),
        EpsilonDelta(1.0, 1e-6),
        integer=True,
        start=4,
    )
    assert found.value == 10  # δ(1) is 0 but for the tells until the losses can exceed 1


def test_gaussian_dp_of_randomized_response() -> None:
    """Its curve has one corner, at equal errors: that lies on G_μ at truth probability Φ(μ/2)."""
    found = pe.calibrate(
        lambda t: pe.RandomizedResponse(0.5 + t), GaussianDP(1.0), start=0.1, rtol=1e-7
    )
    check_near("searches.gaussian_dp_of_response", 0.5 + found.value, pe.special.ndtr(0.5))


@pytest.mark.parametrize("slack", [1e-4, 1e-9])
def test_gaussian_dp_with_slack(slack: float) -> None:
    make, mu = noise_of(), 0.5
    target = GaussianDP(mu, slack)
    found = pe.calibrate(make, target)
    epsilon = np.linspace(0.0, 6.0, 5_000)
    gaussian = pe.delta(pe.GaussianMechanism(1 / mu), epsilon)
    allowed = np.maximum(gaussian, slack)
    assert np.all(pe.delta(found.mechanism, epsilon) <= allowed)
    assert np.any(pe.delta(make(found.value * (1 - 2e-3)), epsilon) > allowed)
    assert found.value < pe.calibrate(make, GaussianDP(mu)).value
    assert found.achieved.mu == pytest.approx(mu, rel=1e-9)
    # the mirror image is the same question
    for adjacency in ("add", "remove"):
        same = pe.calibrate(make, GaussianDP(mu, slack, adjacency=adjacency), start=found.value)
        assert same.value == pytest.approx(found.value, rel=1e-10)


@pytest.mark.parametrize(
    ("target", "best"),
    [
        (Gamma(0.1, 0.05), r"kappa 0\.1, gamma 0\.1"),
        (TradeOff(0.05, 0.96), r"alpha 0\.05, beta 0\.9"),
        (EpsilonDelta(1.0, 0.0, adjacency="remove"), "epsilon inf, delta 0"),
        (Advantage(0.0), "eta "),
        ([Advantage(0.5), Gamma(0.1, 0.05)], "eta .* and kappa 0.1, gamma "),
    ],
)
@pytest.mark.parametrize("probability", [0.01, 1.0])
def test_out_of_reach(target: Any, best: str, probability: float) -> None:
    """Either the end of the domain is reached, or no engine answers from somewhere on."""
    make = noise_of(probability, 200)
    with pytest.raises(
        (ValueError, pe.AccuracyError), match=f"(the last one tried,|even 2e60) gives {best}"
    ):
        pe.calibrate(make, target)


def test_least_batch_out_of_reach() -> None:
    with pytest.raises(ValueError, match="target must be within reach: the parameter 0"):
        pe.calibrate(lambda n: pe.dp_sgd(1.0, 0.5, n + 5), Advantage(0.01), integer=True)


@pytest.mark.parametrize(
    ("target", "slip"),
    [
        (
            EpsilonDelta(math.inf, 0.0),
            "EpsilonDelta(epsilon=inf, delta=0): ε = inf is no constraint.",
        ),
        (
            EpsilonDelta(1e-5, 1.0),
            "EpsilonDelta(epsilon=1e-5, delta=1): δ = 1 is no constraint. Were ε and δ swapped?",
        ),
        (EpsilonDelta(3.0, 1.0), "EpsilonDelta(epsilon=3, delta=1): δ = 1 is no constraint."),
        (Gamma(0.1, 1.0), "Gamma(kappa=0.1, gamma=1): γ = 1 is no constraint."),
        (TradeOff(0.1, 0.0), "TradeOff(alpha=0.1, beta=0): β = 0 is no constraint."),
        (Advantage(1.0), "Advantage(eta=1): η = 1 is no constraint."),
        (
            GaussianDP(1e-5, 1.0),
            "GaussianDP(mu=1e-5, slack=1): A slack of 1 is no constraint. Were μ and the slack "
            "swapped?",
        ),
        (GaussianDP(math.inf), "GaussianDP(mu=inf, slack=0): μ = inf is no constraint."),
    ],
)
def test_nothing_to_find(target: pe.targets.Target, slip: str) -> None:
    with pytest.raises(ValueError, match=r"every parameter from .* meets the target") as error:
        pe.calibrate(noise_of(), target)
    assert str(error.value).endswith(f"meets the target {slip}")


@pytest.mark.parametrize(
    ("target", "slip"),
    [
        (Gamma(0.01, 0.001), "γ is below κ, where no mechanism is. Were κ and γ swapped?"),
        (TradeOff(0.1, 0.95), "β is above 1 - α, where no mechanism is."),
        (EpsilonDelta(1.0, 0.0), "gives epsilon inf, delta 0"),
    ],
)
def test_out_of_reach_says_why(target: pe.targets.Target, slip: str) -> None:
    with pytest.raises(ValueError, match="target must be within reach") as error:
        pe.calibrate(noise_of(), target)
    assert str(error.value).endswith(slip)


def test_out_of_reach_is_found_where_the_excess_points() -> None:
    """Towards little noise answers take minutes; a monotone excess never needs to look there."""
    asked: list[float] = []

    def make(noise: float) -> pe.mechanisms.Mechanism:
        asked.append(noise)
        return pe.dp_sgd(noise, 0.01, 200)

    with pytest.raises(ValueError, match="within reach"):
        pe.calibrate(make, Gamma(0.1, 0.05))
    assert min(asked) >= 0.25


def test_no_end() -> None:
    with pytest.raises(ValueError, match=r"every parameter from .* meets the target"):
        pe.calibrate(lambda n: pe.dp_sgd(1.0, 0.0, n), EpsilonDelta(1.0, 0.0), integer=True)


@pytest.mark.parametrize(("start", "end"), [(1.0, "within reach"), (8.0, "meets the target")])
def test_a_wrong_direction_ends_in_an_error(start: float, end: str) -> None:
    with pytest.raises(
        (ValueError, pe.AccuracyError), match=f"{end}|no engine answers|there is no answer"
    ):
        pe.calibrate(
            lambda s: pe.dp_sgd(s, 1.0, 1), EpsilonDelta(1.0, 1e-6), maximize=True, start=start
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 1.0}, "target must be a Target"),
        ({"target": []}, "target must be a Target"),
        ({"target": [EpsilonDelta(1.0, 1e-6), None]}, "target must be a Target"),
        (
            {"target": [EpsilonDelta([1.0, 2.0], 1e-6), Advantage([0.1, 0.2, 0.3])]},
            "target must hold arrays that broadcast",
        ),
        ({"make": 3.0}, "make must be callable, got 3.0"),
        ({"make": lambda s: s}, "make must return a Mechanism, got 1.0"),
        ({"start": -1.0}, r"start must lie in .*, got -1.0"),
        ({"start": "1"}, "start must be a real number"),
        ({"start": 1.5, "integer": True}, "start must be a non-negative integer, got 1.5"),
        ({"rtol": 0.0}, r"rtol must lie in \[1e-14, 0.1\], got 0.0"),
        ({"rtol": math.nan}, "rtol must not be NaN"),
        ({"make": lambda p: pe.dp_sgd(1.0, p, 10), "start": 2.0}, "sampling_probability must lie"),
        # 1 was returned as the largest number of steps, of which 1.25 is none
        ({"make": lambda n: pe.dp_sgd(1.0, 0.01, n)}, "real numbers near 1 unless integer=True"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    given_ = {"make": noise_of(), "target": EpsilonDelta(1.0, 1e-6)} | arguments
    with pytest.raises(ValueError, match=message):
        pe.calibrate(given_.pop("make"), given_.pop("target"), **given_)


def test_mistakes_inside_make_are_seen() -> None:
    def make(noise: float) -> pe.Mechanism:
        return pe.dp_sgd(noise, 0.01, missing)  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(NameError):
        pe.calibrate(make, EpsilonDelta(1.0, 1e-6))


def test_far_from_the_target_some_digits_do(monkeypatch: pytest.MonkeyPatch) -> None:
    # at noise 2 δ(3) is 3e-84, of which lines know some digits
    from pyengine.engines.lattice import LatticePair

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the lattice was asked")

    monkeypatch.setattr(LatticePair, "profile", refused)
    target = pe.targets.EpsilonDelta(3.0, 1e-8)
    found = pe.calibrate(lambda s: pe.dp_sgd(s, 0.001, 10_000), target)
    assert found.value == pytest.approx(0.6738376301945, rel=1e-11)
    assert found.achieved.delta <= 1e-8
    assert found.evaluations <= 9


def test_a_tolerance_or_a_method_is_kept_on_the_way() -> None:
    free = pe.targets.EpsilonDelta(1.0, 1e-6)
    assert free.roughly().tolerance == 1e-2
    for bound in (
        pe.targets.EpsilonDelta(1.0, 1e-6, tolerance=1e-5),
        pe.targets.EpsilonDelta(1.0, 1e-6, method="lattice"),
    ):
        assert bound.roughly() is bound


@pytest.mark.parametrize(
    ("target", "mechanism"),
    [
        (EpsilonDelta(1.0, 1e-6), pe.GaussianMechanism),
        (EpsilonDelta(0.0, 1e-3), pe.GaussianMechanism),
        (Gamma(0.1, 0.3), pe.GaussianMechanism),
        (TradeOff(0.05, 0.7), pe.GaussianMechanism),
        (Advantage(0.2), pe.GaussianMechanism),
    ],
)
def test_targets_say_which_gaussian_meets_them(target: Any, mechanism: Any) -> None:
    """And which one has an excess."""
    for distance in (0.4, 1.0, 2.3):
        excess = target.excess(mechanism(1.0 / distance))
        assert target.gaussian(excess) == pytest.approx(distance, rel=1e-9)
    assert target.excess(mechanism(1.0 / target.gaussian(0.0))) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "target", "integer"),
    [
        (noise_of(0.01, 10_000), EpsilonDelta(1.0, 1e-6), False),
        (noise_of(0.001, 100_000), EpsilonDelta(0.1, 1e-9), False),
        (lambda p: pe.dp_sgd(2.0, p, 3000), Gamma(0.01, 0.05), False),
        (lambda n: pe.dp_sgd(4.0, 0.01, n), EpsilonDelta(1.0, 1e-6), True),
    ],
)
def test_few_mechanisms_are_tried(make: Any, target: Any, integer: bool) -> None:
    """The divergence says where to begin; without it, six to ten mechanisms are tried."""
    found = pe.calibrate(make, target, integer=integer)
    assert found.evaluations <= (7 if integer else 4)
    assert target.excess(found.mechanism) <= 0.0
    plain = pe.calibrate(make, [target], integer=integer, start=1.5 * float(found))
    assert plain.value == pytest.approx(found.value, rel=2e-11)


def test_a_guide_that_is_wrong_only_costs() -> None:
    """Its figures are any numbers: the boundary is found, or the same error is raised."""
    from pyengine.calibration.search import Domain, NoiseSearch

    class Wrong:
        def __init__(self, slope: float, goal: float) -> None:
            self._slope, self._goal = slope, goal

        def strength(self, x: float) -> float:
            return self._slope * math.log(x)

        def missing(self, excess: float) -> float:
            return -0.3 * excess

        def goal(self) -> float:
            return self._goal

    for slope, goal in ((-1.0, 40.0), (-3.0, -2.0), (-1e-3, 1.0), (-1.0, math.nan)):
        search = NoiseSearch(
            lambda x: math.log(7.0 / x),
            lambda _: True,
            Domain(2.0**-200, 2.0**200, False),
            1e-11,
            guide=Wrong(slope, goal),
        )
        found, grows = search.undirected(1.0, monotone=True)
        assert not grows
        assert 7.0 <= found <= 7.0 * (1.0 + 1e-11)
        assert len(search.points) < 25


def test_only_an_integer_is_an_index() -> None:
    target = pe.targets.EpsilonDelta(1.0, 1e-5)
    steps = pe.calibrate(
        lambda n: pe.dp_sgd(2.0, 0.01, n), target, integer=True, maximize=True, start=10
    )
    assert operator.index(steps) == steps.value
    noise = pe.calibrate(lambda value: pe.GaussianMechanism(value), target)
    with pytest.raises(TypeError, match="only a single integer can be an index, got 3"):
        operator.index(noise)


def test_no_engine_beyond_the_last_answer() -> None:
    """Of an ε far above that of any noise with an answer, the last one that has one is told."""
    target = pe.targets.EpsilonDelta(1e9, 1e-5)
    with pytest.raises(pe.AccuracyError, match="the target is still met at "):
        pe.calibrate(lambda value: pe.dp_sgd(value, 0.01, 2), target)


@pytest.mark.parametrize("kinds", [[("1/100", 2)], [("0.3", 7), ("1e-5", 10**6)], [("1e-18", 3)]])
def test_a_chance_to_take_part_bounds_what_steps_tell(kinds: list[tuple[str, int]]) -> None:
    run = pe.compose(*(pe.dp_sgd(1.0, rate, steps) for rate, steps in kinds))
    missed = mpmath.mpf(1)
    with mpmath.workdps(60):
        for rate, steps in kinds:
            share = Fraction(rate)
            missed *= (1 - mpmath.mpf(share.numerator) / share.denominator) ** steps
        found = calibration._chance(run)
        assert found is not None
        assert 1 - missed <= found <= (1 - missed) * (1 + mpmath.mpf(2) ** -40)
    assert calibration._chance(pe.compose(run, pe.GaussianMechanism(1.0))) is None


def test_a_target_that_every_noise_meets_is_found_to_be_one() -> None:
    """The search for the least noise that an engine answers took two minutes."""
    target = pe.targets.Advantage(0.1, method="certified")
    with pytest.raises(ValueError, match=r"every parameter from .* meets the target"):
        pe.calibrate(lambda noise: pe.dp_sgd(noise, 0.01, 2), target, start=0.02)


@pytest.mark.parametrize("bounds", ["estimated", True])
def test_what_all_noise_meets_is_said_without_an_engine(
    bounds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(*_: Any) -> float:
        raise AssertionError("an engine was asked")

    monkeypatch.setattr(calibration._Job, "excess", engine)
    monkeypatch.setattr(calibration._Job, "rough", engine)
    targets = [
        pe.targets.EpsilonDelta(1.0, 0.0996, bounds=bounds),
        pe.targets.Advantage(0.0996, adjacency="substitute", bounds=bounds),
        pe.targets.TradeOff(0.25, 0.65, bounds=bounds),
        pe.targets.Gamma(0.25, 0.35, bounds=bounds),
        pe.targets.GaussianDP(1.0, 0.1, bounds=bounds),
    ]
    for target in targets:  # a record is in one of 99 batches with a probability of .0943 at most
        with pytest.raises(ValueError, match=r"every parameter from .* meets the target"):
            pe.calibrate(lambda noise: pe.dp_sgd(noise, "1/1000", 99), target)
    for target in targets[:2]:
        with pytest.raises(AssertionError, match="an engine was asked"):
            pe.calibrate(lambda noise: pe.dp_sgd(noise, "1/1000", 110), target)
