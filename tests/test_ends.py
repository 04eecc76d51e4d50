"""Bounds at and beside the atoms and the ends of the losses, against sums that share no code."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import fuzz_ends
import mpmath
import numpy as np
import pytest
from thorough import ALL, some

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines.answers import Answer, Questions
from pyengine.engines.exact import finite, laplace
from pyengine.laws.base import PoissonSampledLaw
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.numerics.sampled_loss import sampled_loss


def test_random_questions() -> None:
    counts: Counter[str] = Counter()
    draws = 12 if ALL else 4
    for index in range(draws):
        with mpmath.workdps(fuzz_ends.DIGITS):
            cases = list(fuzz_ends.questions(101, index))
        for case in cases:
            found = fuzz_ends.ask(case)
            counts["asked"] += 1
            if found is None:
                counts["refused"] += 1
            else:
                assert fuzz_ends.is_held(case, found), (index, case, found)
    assert counts["asked"] > 20 * draws // 3
    assert counts["refused"] < 0.15 * counts["asked"]


@pytest.mark.parametrize("method", ["exact", "lattice"])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_largest_epsilon_of_randomized_response(method: str, adjacency: str) -> None:
    mechanism = pe.RandomizedResponse("3/4").composed(6)
    found = pe.epsilon(mechanism, 0.0, adjacency=adjacency, method=method, bounds=True)
    with mpmath.workdps(40):
        assert found.lower <= 6 * mpmath.log(3) <= found.upper
    assert found.upper - found.lower < 1e-12


@pytest.mark.parametrize("method", ["exact", "lattice"])
@pytest.mark.parametrize(
    ("rest", "epsilon"), [(1e-10, 30.0), (2.0**-53, 40.0), (1e-3, 3.0), (1e-15, 0.5)]
)
def test_sampling_of_nearly_all(method: str, rest: float, epsilon: float) -> None:
    # 1 - p + p e^l has no digits where 1 is added and taken off again
    rate = 1.0 - rest
    mechanism = pe.GenericMechanism(epsilon, 0.0).poisson_sampled(rate)
    found = pe.epsilon(mechanism, 0.0, adjacency="add", method=method, bounds=True)
    with mpmath.workdps(60):
        p = mpmath.mpf(rate)
        truth = -mpmath.log(1 - p + p * mpmath.exp(-mpmath.mpf(epsilon)))
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower < 1e-12 * truth
        for loss in (-700.0, -1.0, -1e-9, 1e-9, 1.0, 650.0, 900.0):
            exact = mpmath.log(1 - p + p * mpmath.exp(mpmath.mpf(loss)))
            assert abs(float(sampled_loss(rate, loss)) / exact - 1) < 24 * 2.0**-53


@pytest.mark.parametrize("method", ["exact", "lattice"])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_delta_beside_the_mass_at_infinity(method: str, steps: int) -> None:
    mass = Fraction(0.1)
    lost = 1 - (1 - mass) ** steps
    near = float(lost)
    mechanism = pe.GenericMechanism(1.0, 0.1).composed(steps)
    for delta in (np.nextafter(near, 0.0), near, np.nextafter(near, 1.0)):
        found = pe.epsilon(mechanism, float(delta), adjacency="add", method=method, bounds=True)
        if Fraction(float(delta)) < lost:
            assert found.upper == math.inf
        else:
            assert found.lower <= steps


def test_discrete_gaussian_noise_has_no_largest_loss() -> None:
    noise = pe.DiscreteGaussianMechanism(2.0, 3)
    for method in ("exact", "lattice"):
        for steps in (1, 2):
            mechanism = noise.composed(steps)
            assert pe.epsilon(mechanism, 0.0, method=method) == math.inf
            sampled = noise.poisson_sampled(0.25).composed(steps)
            # without the record the loss of a sample stays above log(1 - p)
            found = pe.epsilon(sampled, 0.0, adjacency="add", method=method, bounds=True)
            assert found.lower <= -steps * math.log(0.75) <= found.upper
            assert found.upper - found.lower < 1e-12


@pytest.mark.parametrize("method", ["exact", "lattice"])
def test_ratios_of_one_double(method: str) -> None:
    # fifty ratios, each next to the last: their logarithms are one double, or two
    gap = Fraction(1, 2**52)
    p = [Fraction(1, 100)] * 50
    q = [Fraction(1, 200) * (1 + i * gap) for i in range(50)]
    p.append(1 - sum(p))
    q.append(1 - sum(q))
    with mpmath.workdps(60):
        largest = mpmath.log(max(mpmath.mpf(a / b) for a, b in zip(p, q, strict=True)))
        found = pe.epsilon(
            pe.from_probabilities(p, q), 0.0, adjacency="add", method=method, bounds=True
        )
        assert found.lower <= largest <= found.upper


def test_rates_that_are_no_doubles() -> None:
    # one minus the double next to 999999/1000000 is off by 1e-11 of itself
    mechanism = pe.GenericMechanism(20.0, 0.0).sampled_without_replacement(
        batch_size=999_999, dataset_size=1_000_000
    )
    found = pe.epsilon(mechanism, 0.0, adjacency="add", bounds=True)
    with mpmath.workdps(40):
        p = mpmath.mpf(999_999) / 1_000_000
        truth = -mpmath.log(1 - p + p * mpmath.exp(-20))
        assert found.lower <= truth <= found.upper


def test_support_errors() -> None:
    for noise in (0.3, 7.0, 1e6):
        law = LaplaceLaw(noise)
        with mpmath.workdps(40):
            truth = 1 / mpmath.mpf(noise)
            assert abs(law.support()[1] - truth) <= law.support_error()
            for rate in (1e-9, 0.3, 1.0 - 2.0**-50):
                sampled, p = PoissonSampledLaw(law, rate), mpmath.mpf(rate)
                for end, inner in zip(sampled.support(), (-truth, truth), strict=True):
                    exact = mpmath.log(1 - p + p * mpmath.exp(inner))
                    assert abs(end - exact) <= sampled.support_error()
    for value in (Fraction(1, 3), Fraction(10**30, 7), Fraction(10**9 + 1, 10**9)):
        atoms = [(Fraction(1, 9), Fraction(1, 9) * value)]
        found = FiniteLaw.from_fractions(atoms)
        with mpmath.workdps(60):
            exact = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
            assert abs(found.support()[0] - exact) <= found.support_error()


DISJOINT = [
    pe.RandomizedResponse(1.0),
    pe.GenericMechanism(0.0, 1.0),
    pe.from_probabilities(["0.25", "0.75", "0"], ["0", "0", "1"]),
]
BESIDE = [
    pe.dp_sgd(1.0, 0.01, 100),
    pe.LaplaceMechanism(2.0).poisson_sampled(0.1).composed(30),
    pe.DiscreteGaussianMechanism(3.0).composed(5),
    pe.RandomizedResponse(0.75).composed(3),
]


@pytest.mark.parametrize("beside", BESIDE, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("certain", DISJOINT, ids=lambda m: type(m).__name__)
def test_laws_without_a_common_outcome(certain: pe.Mechanism, beside: pe.Mechanism) -> None:
    mechanism = pe.compose(certain, beside)
    for adjacency in ("add", "remove", "add_remove"):
        for method in ("auto", "lattice"):
            given = {"adjacency": adjacency, "method": method}
            assert pe.delta(mechanism, [0.0, 1.0, 50.0, math.inf], **given).tolist() == [1.0] * 4
            assert pe.trade_off(mechanism, [0.0, 0.3, 1.0], **given).tolist() == [0.0] * 3
            assert pe.gamma_bound(mechanism, [0.0, 0.3, 1.0], **given).tolist() == [1.0] * 3
            found = pe.epsilon(mechanism, [0.0, 0.5, 1.0], **given)
            assert found.tolist() == [math.inf, math.inf, 0.0]


@pytest.mark.parametrize("beside", BESIDE, ids=lambda m: type(m).__name__)
def test_delta_at_infinity(beside: pe.Mechanism) -> None:
    mixed = pe.compose(beside, pe.dp_sgd(1.0, 0.01, 100), pe.RandomizedResponse(0.75))
    lossy = pe.compose(mixed, pe.GenericMechanism(0.5, 1e-3).composed(2))
    for adjacency in ("add", "remove", "add_remove"):
        for method in ("auto", "lattice"):
            given = {"adjacency": adjacency, "method": method, "bounds": True}
            assert pe.delta(mixed, math.inf, **given) == (0.0, 0.0, 0.0)
            found = pe.delta(lossy, math.inf, **given)
            truth = 1 - (1 - Fraction(1e-3)) ** 2
            assert Fraction(found.lower) <= truth <= Fraction(found.upper)
            assert found.upper - found.lower < 1e-15


def test_infinity_alone_asks_of_no_other_loss() -> None:
    """Beside it stood a largest loss, of which an engine that knew little asked the lattice."""

    class Asked(Questions):
        def __init__(self) -> None:
            self.asked: list[float] = []

        def profile(self, epsilon: np.ndarray) -> Answer:
            self.asked += epsilon.tolist()
            return Answer.exact(np.full(epsilon.size, 0.25))

    ends = Asked()
    assert ends.answer("delta", np.array([1.0, math.inf])).value.tolist() == [0.25, 0.25]
    assert ends.asked == [1.0, math.inf]
    assert ends.answer("delta", np.array([1e300, math.inf])).value.tolist() == [0.25, 0.25]
    assert 1e300 not in ends.asked


def test_levels_whose_rest_is_no_double() -> None:
    # 1 - α is rounded, and β is 1 - α where the release says nothing
    silent = pe.compose(pe.GenericMechanism(0.0, 0.0).composed(2), pe.LaplaceMechanism(1e9))
    for alpha in (6e-17, 1.2e-16, 1e-20, 0.1, 1.0 / 3.0):
        for method in ("auto", "lattice"):
            found = pe.trade_off(silent, alpha, adjacency="add", method=method, bounds=True)
            assert Fraction(found.lower) <= 1 - Fraction(alpha) * (1 - Fraction(1, 10**8))
            assert Fraction(found.upper) >= 1 - Fraction(alpha) * (1 + Fraction(2, 10**9))


@pytest.mark.parametrize("number", some([26, 95], 2))
def test_places_far_from_the_level(number: int) -> None:
    # a place at which masses are beyond all doubles bounded beta by 0
    with mpmath.workdps(fuzz_ends.DIGITS):
        cases = list(fuzz_ends.questions(3, number))
    for case in cases:
        found = fuzz_ends.ask(case)
        assert found is None or fuzz_ends.is_held(case, found), (case, found)
    assert any(fuzz_ends.ask(case) for case in cases)


def test_symmetric_pairs_are_one_curve() -> None:
    # truths from sums of the trinomial and the binomial law in log space
    response = pe.RandomizedResponse(0.4667, 3).composed(1590)
    found = pe.trade_off(response, 1e-9, bounds=True)
    assert found.lower <= 1.4324732961870645e-38 <= found.upper
    generic = pe.GenericMechanism(0.05842, 1.559e-08).composed(144899)
    found = pe.trade_off(generic, 0.0009798, bounds=True)
    assert found.lower <= 5.864565182e-82 <= found.upper
    assert found.upper - found.lower <= 1e-4 * found.upper


def test_what_one_part_settles() -> None:
    many = pe.compose(pe.GaussianMechanism(1.526).composed(181069), pe.LaplaceMechanism(0.3813))
    found = pe.delta(many, 5.227, bounds=True)
    assert 1.0 - 1e-6 < found.lower <= found.upper == 1.0
    mixed = pe.compose(
        pe.LaplaceMechanism(1.427).poisson_sampled(1.184e-05).composed(16),
        pe.dp_sgd(4.098, 1.0, 591),
        pe.GaussianMechanism(4.534).composed(22347),
    )
    found = pe.gamma_bound(mixed, 4.15e-06, bounds=True)
    assert 1.0 - 1e-6 < found.lower <= found.upper == 1.0


def test_exact_compositions_are_kept() -> None:
    mechanisms = (pe.RandomizedResponse(0.6).composed(300), pe.LaplaceMechanism(2.0).composed(50))
    for mechanism in mechanisms:
        clear_cache()
        first = pe.delta(mechanism, 1.0, method="exact")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finite, "composition", None)
            patch.setattr(laplace, "LaplaceSum", None)
            assert pe.delta(mechanism, 1.0, method="exact") == first
            pe.epsilon(mechanism, [1e-3, 1e-5], method="exact")


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-12, 1e-18, 1e-19, 1e-100, 1e-300])
def test_spectral_engine_with_hardly_any_noise(noise: float) -> None:
    """A sampled record is seen in the first step it takes part in, or no answer is given.

    At 1e-5 the nodes of one step would take 16 TB, and at 1e-19 their number is no integer.
    """
    unseen = 0.99**10
    run = pe.dp_sgd(noise, "0.01", 10)
    truths = {"gamma_bound": 1.0 - 0.7 * unseen, "trade_off": 0.7 * unseen}
    for name, truth in truths.items():
        try:
            found = getattr(pe, name)(run, 0.3, bounds=True)
        except pe.AccuracyError:
            continue
        assert found.lower <= truth * (1.0 + 1e-9), name
        assert found.upper >= truth * (1.0 - 1e-9), name


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["auto", "certified", "lattice"])
@pytest.mark.parametrize("noise", [1e-4, 1e-5, 1e-12, 1e-100, 1e-160, 1e-300])
def test_bounds_with_hardly_any_noise(noise: float, method: str) -> None:
    """As above; the lattice had tilts that are no numbers, and roots of none."""
    unseen = 0.99**10
    run = pe.dp_sgd(noise, "0.01", 10)
    truths = {("gamma_bound", 0.3): 1.0 - 0.7 * unseen, ("delta", 1.0): 1.0 - unseen}
    for (name, x), truth in {**truths, ("epsilon", 0.2): 0.0}.items():
        try:
            found = getattr(pe, name)(run, x, method=method, bounds=True)
        except pe.AccuracyError:
            continue
        assert found.lower <= truth * (1.0 + 1e-9), name
        assert found.upper >= truth * (1.0 - 1e-9), name
