"""Mechanisms as values: exact parameters, equality, wrong input."""

from __future__ import annotations

import copy
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import pyengine as pe
from pyengine._support import checks
from pyengine.mechanisms import in_words, step_in_words

STEPS = (
    pe.GaussianMechanism("0.7"),
    pe.GaussianMechanism(0.7).poisson_sampled(0.1),
    pe.LaplaceMechanism(0.7).poisson_sampled(0.1),
    pe.GaussianMechanism(0.7).sampled_without_replacement(batch_size=10, dataset_size=100),
    pe.DiscreteGaussianMechanism(1.5, sensitivity=2),
    pe.DiscreteLaplaceMechanism("3/2"),
    pe.RandomizedResponse(0.75),
    pe.GenericMechanism(1.0, 1e-6),
    pe.from_probabilities([0.25, 0.75], [0.5, 0.5]),
)


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("4096/50000", Fraction(4096, 50000)),
        ("16384 / 1281167", Fraction(16384, 1281167)),
        ("1e-3", Fraction(1, 1000)),
        (" .5 ", Fraction(1, 2)),
        ("1.5e2/3E-1", Fraction(500)),
        ("1/3", Fraction(1, 3)),
    ],
)
def test_fractions(text: str, exact: Fraction) -> None:
    assert checks.positive("x", text) == exact


@pytest.mark.parametrize(
    "text", ["", "1/0", "one", "1//2", "1/2/3", "nan", "1e9999", "1e999/1e-999", "0x1", "1_0", "²"]
)
def test_wrong_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="x must be"):
        checks.positive("x", text)


@pytest.mark.parametrize("given", ["0.1", Decimal("0.1"), Fraction(1, 10), " 1 / 10 "])
def test_exact_parameters(given: Any) -> None:
    exact = pe.dp_sgd(given, given, 10)
    assert exact.parts[0][0].probability == Fraction(1, 10)
    assert exact != pe.dp_sgd(0.1, 0.1, 10)  # the double is another number
    assert pe.gamma_bound(exact, 0.1) == pe.gamma_bound(pe.dp_sgd(0.1, 0.1, 10), 0.1)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_values(step: pe.Mechanism) -> None:
    for twin in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        assert twin == step
        assert hash(twin) == hash(step)
    assert step.composed(3) == pe.compose(step, step.composed(2))
    assert step.composed(0) == pe.compose()
    assert step.composed(3.0).parts == ((step, 3),)
    assert step.composed(2**60).steps == 2**60
    by_hand = pe.Composition([(step, 1), (step, 2.0), (step, 0)])  # type: ignore[list-item]
    assert by_hand == step.composed(3)
    assert pickle.loads(pickle.dumps(by_hand)) == copy.deepcopy(by_hand) == by_hand
    for wrong in (-1, 0.5, True, None, 10**400, "many"):
        with pytest.raises(ValueError, match="steps must"):
            step.composed(wrong)  # type: ignore[arg-type]


def test_order_does_not_matter() -> None:
    assert pe.compose(*STEPS) == pe.compose(*reversed(STEPS))
    assert pe.compose(*STEPS) + STEPS[3] == STEPS[3] + pe.compose(*STEPS)


def test_whole_samples() -> None:
    assert STEPS[0].poisson_sampled(1) is STEPS[0]
    whole = pe.SampledWithoutReplacement(STEPS[0], 5, 5)
    assert STEPS[0].sampled_without_replacement(batch_size=5, dataset_size=5) is STEPS[0]
    assert whole.batch_size == whole.dataset_size


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: STEPS[1].poisson_sampled(0.5), "must be a single step that is not sampled"),
        (lambda: pe.PoissonSampled(pe.compose(), 0.5), "must be a single step"),
        (lambda: pe.SampledWithoutReplacement(STEPS[0], 6, 5), "batch_size must be at most"),
        (lambda: pe.SampledWithoutReplacement(STEPS[0], 0, 0), "dataset_size must be an integer"),
        (lambda: pe.LaplaceMechanism(0), "noise_multiplier must be positive"),
        (lambda: pe.LaplaceMechanism("1e-999"), "noise_multiplier must be positive"),
        (lambda: pe.LaplaceMechanism(Decimal("inf")), "noise_multiplier must be finite"),
        (lambda: pe.DiscreteGaussianMechanism(1.0, 0), "sensitivity must be an integer >= 1"),
        (lambda: pe.RandomizedResponse(1.5), "truth_probability must lie in"),
        (lambda: pe.RandomizedResponse(0.5, 1), "categories must be an integer >= 2"),
        (lambda: pe.GenericMechanism(-1.0), "epsilon must be finite and >= 0"),
        (lambda: pe.from_probabilities([0.5, 0.5], [1.0]), "q must have as many entries as p"),
        (lambda: pe.from_probabilities([0.5, 0.4], [0.5, 0.5]), "p must add up to 1"),
        # the class itself proved bounds of 0.347 for δ(0.1) of this
        (lambda: pe.FinitePair((0.5, 0.5), (0.9, 0.2)), "q must add up to 1, got a sum of 1.1"),
        (lambda: pe.FinitePair((0.5, 0.5), (1.0,)), "q must have as many entries as p, 2, got 1"),
        (lambda: pe.FinitePair((), ()), "p must have at least one entry"),
        (lambda: pe.from_probabilities(["1/2", "1/3"], [0.5, 0.5]), "p must add up to 1"),
        (lambda: pe.from_probabilities([1.5, -0.5], [0.5, 0.5]), r"p\[0\] must lie in"),
        (lambda: pe.from_probabilities([], []), "p must have at least one entry"),
        (lambda: pe.from_probabilities("11", [0.5, 0.5]), "p must be a sequence"),
        (lambda: pe.from_probabilities(1.0, [0.5, 0.5]), "p must be a sequence"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "made",
    [
        pe.dp_sgd(1.1, 0.01, 1000),
        pe.dp_sgd("1/3", "256/60000", 5, group_size=40),
        pe.shuffled_lower_bound(1.1, 234, epochs=20),
        pe.from_profile(lambda epsilon: max(0.0, 0.1 - epsilon / 10)),
        pe.compose(*(pe.dp_sgd(2.0 + t / 100, 0.004, 7) for t in range(100))),
        pe.LaplaceMechanism(f"1{'0' * 300}"),
        *STEPS,
    ],
    ids=range(6 + len(STEPS)),
)
def test_reprs_are_lines_that_one_reads(made: pe.Mechanism) -> None:
    """400 numbers were printed for shuffled batches, and 10,000 characters of exact weights."""
    text = repr(made)
    assert 5 < len(text) < 3 * 165 + 60
    assert "\n" not in text
    assert not re.search(r"Fraction|\d{170}", text)
    with pytest.raises(ValueError, match="target must be a Target") as error:
        pe.calibrate(lambda _: made, made)  # type: ignore[arg-type]
    assert str(error.value).endswith(f"got {text}")


def test_a_repr_has_the_words_of_reports() -> None:
    run = pe.dp_sgd(1.1, 0.01, 1000)
    assert repr(run) == str(run) == "; ".join(in_words(run))
    step = pe.GaussianMechanism(2.0).poisson_sampled(0.25)
    assert repr(step) == step_in_words(step)
    assert repr(pe.compose()) == "no steps"
    many = pe.compose(*(pe.LaplaceMechanism(t).composed(5) for t in range(1, 11)))
    assert repr(many) == "; ".join([*in_words(many)[:3], "and 35 more of 7 other kinds"])


def test_dp_sgd_in_the_words_of_a_training_loop() -> None:
    words = {"noise_multiplier": 1.5, "batch_size": 256, "dataset_size": 60_000}
    poisson = pe.dp_sgd(**words, epochs=10, sampling="poisson")
    assert poisson == pe.dp_sgd(1.5, "256/60000", 2344)
    assert pe.dp_sgd(**words, steps=7, sampling="poisson") == pe.dp_sgd(1.5, "256/60000", 7)
    fixed = pe.dp_sgd(**words, epochs="1/2", sampling="without_replacement")
    step = pe.GaussianMechanism(1.5).sampled_without_replacement(
        batch_size=256, dataset_size=60_000
    )
    assert fixed == step.composed(118)
    assert pe.dp_sgd(1.5, sample_rate=0.01, steps=5) == pe.dp_sgd(1.5, 0.01, 5)
    assert pe.dp_sgd(1.5, 0.01, 5, sampling="poisson") == pe.dp_sgd(1.5, 0.01, 5)
    for probability, epochs, steps in ((0.3, 3, 10), (0.1, 3.0, 30), (0.01, 0, 0), ("0.3", 3, 10)):
        assert pe.dp_sgd(1.0, probability, epochs=epochs).steps == steps
    users = pe.dp_sgd(**words, epochs=1, sampling="poisson", group_size=3)
    assert users == pe.dp_sgd(1.5, "256/60000", 235, group_size=3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "give sampling_probability, or both of batch_size and dataset_size: got none"),
        ({"batch_size": 5}, "both of batch_size and dataset_size: got batch_size"),
        ({"sampling_probability": 0.1}, "neither steps nor epochs given; give one"),
        (
            {"sampling_probability": 0.1, "steps": 1, "epochs": 1},
            r"steps and epochs both given \(1 and 1\); give one",
        ),
        ({"batch_size": 5, "dataset_size": 10, "steps": 1}, "sampling must be said"),
        (
            {
                "batch_size": 5,
                "dataset_size": 10,
                "steps": 1,
                "sampling": "shuffle",
                "group_size": 2,
            },
            "group_size must be 1 where batches are shuffled",
        ),
        (
            {"sampling_probability": 0.1, "steps": 1, "sampling": "shuffle"},
            "sampling 'shuffle' needs",
        ),
        (
            {"batch_size": 0, "dataset_size": 10, "steps": 1, "sampling": "shuffle"},
            "batch_size must be an integer",
        ),
        ({"batch_size": 5, "dataset_size": 10, "sampling": "poison"}, "did you mean 'poisson'"),
        ({"batch_size": 11, "dataset_size": 10, "steps": 1, "sampling": "poisson"}, "at most"),
        ({"sampling_probability": 0.1, "batch_size": 5, "steps": 1}, r"both given \(0.1 and 5\)"),
        (
            {"sampling_probability": 0.1, "sample_rate": 0.1, "steps": 1},
            r"both given \(0.1 and 0.1\)",
        ),
        (
            {"sampling_probability": 0.1, "steps": 1, "sampling": "without_replacement"},
            "'without_replacement' needs batch_size and dataset_size instead of",
        ),
        ({"sampling_probability": 0.0, "epochs": 1}, "positive sampling probability"),
        ({"sampling_probability": 0.1, "epochs": -1}, "epochs must be finite and >= 0"),
    ],
)
def test_dp_sgd_leaves_nothing_open(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.dp_sgd(1.0, **words)


def test_groups_need_poisson_samples() -> None:
    words: dict[str, Any] = {"batch_size": 5, "dataset_size": 10, "steps": 1}
    for way in ("without", "with"):
        with pytest.raises(ValueError, match=f"group_size must be 1 {way} replacement"):
            pe.dp_sgd(1.0, **words, sampling=f"{way}_replacement", group_size=2)
    with pytest.raises(ValueError, match="'with_replacement' needs batch_size and dataset_size"):
        pe.dp_sgd(1.0, 0.1, 1, sampling="with_replacement")
    drawn = pe.GaussianMechanism(1.0).sampled_with_replacement(batch_size=5, dataset_size=10)
    found = pe.dp_sgd(1.0, batch_size=5, dataset_size=10, steps=3, sampling="with_replacement")
    assert found == drawn.composed(3)


def test_steps_say_their_noise_and_take_another() -> None:
    for make in (pe.GaussianMechanism, pe.LaplaceMechanism, pe.DiscreteLaplaceMechanism):
        step = make(2)
        assert step.multiplier == 2
        assert step.with_multiplier("1/3") == make("1/3")
    for step, other in (
        (pe.GaussianMechanism(2), pe.GaussianMechanism(5)),
        (pe.LaplaceMechanism(2), pe.LaplaceMechanism(5)),
    ):
        sampled = step.poisson_sampled("1/7")
        assert sampled.multiplier == 2
        assert sampled.with_multiplier(5) == other.poisson_sampled("1/7")
    epoch = pe.GaussianMechanism(2).randomly_allocated(10)
    assert epoch.with_multiplier(5) == pe.GaussianMechanism(5).randomly_allocated(10)
    assert pe.RandomizedResponse("0.7").multiplier is None
    assert pe.DiscreteGaussianMechanism(2, 3) != pe.DiscreteLaplaceMechanism(2, 3)
