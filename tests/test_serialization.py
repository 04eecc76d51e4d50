"""JSON of mechanisms, targets and answers, and back."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest

import pyengine as pe

MECHANISMS = [
    pe.dp_sgd(1.0, 0.01, 1000),
    pe.dp_sgd("1/3", "256/60000", 7),
    pe.compose(pe.dp_sgd(1.0, 0.1, 3), pe.LaplaceMechanism(0.1).composed(2)),
    pe.GaussianMechanism(2.0)
    .sampled_without_replacement(batch_size=3, dataset_size=10)
    .composed(2),
    pe.DiscreteGaussianMechanism("1.5", 3).composed(4),
    pe.DiscreteLaplaceMechanism(0.1).poisson_sampled("1/7").composed(1),
    pe.RandomizedResponse(0.75, 5).composed(9),
    pe.GenericMechanism("1/10", 1e-300).composed(10**12),
    pe.from_probabilities([0.1, 0.2, 0.7], [0.3, 0.3, 0.4]).composed(2),
    pe.from_probabilities(["1/3", "2/3"], ["1/2", "1/2"]).composed(2),
    pe.compose(),
    pe.GaussianMixtureMechanism(1.5, [0, "1/3", 2.5], [0.1, 0.2, 0.7]),
    pe.GaussianMixtureMechanism("3/2", [0, 1], ["1/3", "2/3"]).composed(7),
    pe.dp_sgd(1.0, "256/60000", 5, group_size=40),
    pe.dp_sgd(1.0, 0.1, 5, group_size=4),
    pe.dp_sgd_allocated(1.0, 100, 3),
    pe.GaussianMechanism("1/3").randomly_allocated(7),
    pe.ExponentialMechanism("1/3").poisson_sampled(0.1).composed(4),
    pe.GaussianMechanism("1/3").truncated_poisson_sampled(0.1, batch_size=3, dataset_size=9),
    pe.ShuffledRandomizer("1/3", 50).composed(2),
    pe.LaplaceMechanism(2.0),
    pe.LaplaceMechanism(2.0).composed(1),
    pe.GaussianMechanism("1/7").poisson_sampled(0.1),
]
TARGETS = [
    pe.targets.EpsilonDelta(1.0, 1e-6),
    pe.targets.EpsilonDelta(math.inf, 0.5, adjacency="remove", tolerance=1e-3),
    pe.targets.EpsilonDelta([1.0, 2.0], 1e-6),
    pe.targets.Gamma(1e-3, 0.01),
    pe.targets.TradeOff(0.1, 0.8, threat_model="relaxed"),
    pe.targets.Advantage(0.1),
    pe.targets.GaussianDP(1.0, 1e-9),
]


@pytest.mark.parametrize("value", [*MECHANISMS, *TARGETS], ids=str)
def test_round_trip(value: Any) -> None:
    text = pe.to_json(value)
    assert pe.from_json(text) == value
    assert json.loads(text)["schema"] == "pyengine/1"
    assert pe.to_json(pe.from_json(text)) == text
    assert pe.from_json(pe.to_json(value, indent=2)) == value


def test_random_doubles_survive() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        noise, rate = float(np.exp(rng.normal(0, 50))), float(rng.uniform())
        value = pe.from_probabilities(list(p), list(q)).composed(2) + pe.dp_sgd(noise, rate, 3)
        assert pe.from_json(pe.to_json(value)) == value


@pytest.mark.parametrize("argument", [1e-3, [[1e-3, 0.5]], []])
def test_answers(argument: Any) -> None:
    run = pe.GaussianMechanism(1.0)
    for value in (pe.epsilon(run, argument, bounds=True), pe.epsilon(run, 0.0, bounds=True)):
        back = pe.from_json(pe.to_json(value))
        assert isinstance(back, pe.Bounds)
        for ours, written in zip(back, value, strict=True):
            assert type(ours) is type(written)
            assert np.array_equal(ours, written)


GOOD = json.loads(pe.to_json(pe.dp_sgd(1.0, 0.5, 2)))
STEP = GOOD["mechanism"][0]


WORDS = {"name": "DP-SGD", "batches": "some"}


def said(words: Any) -> dict[str, Any]:
    return {**GOOD, "mechanism": [{**STEP, "words": words}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a JSON object whose schema is 'pyengine/1'"),
        ({**GOOD, "schema": "pyengine/2"}, "a JSON object whose schema is 'pyengine/1'"),
        (
            {**GOOD, "more": 1},
            "must hold one of mechanism, adaptive, target, answer, got mechanism, more",
        ),
        ({"schema": "pyengine/1"}, "must hold one of"),
        ({**GOOD, "mechanism": STEP}, "mechanism must be a list of steps"),
        ({**GOOD, "mechanism": [3]}, "mechanism must be an object, got 3"),
        ({**GOOD, "mechanism": [{**STEP, "mechanism": "Cauchy"}]}, "must be one of 'Gaussian"),
        ({**GOOD, "mechanism": [{**STEP, "sigma": 1}]}, "sigma"),
        ({**GOOD, "mechanism": [{**STEP, "steps": -1}]}, "steps must be a non-negative integer"),
        (
            {**GOOD, "mechanism": [{**STEP, "batch_size": 1}]},
            "sampling_probability and batch_size both given (0.5 and 1); give one",
        ),
        ({**GOOD, "mechanism": [{**STEP, "steps": 10.0}]}, "without point or exponent, got 10.0"),
        ({**GOOD, "mechanism": [{**STEP, "steps": True}]}, "steps must be a real number, got True"),
        ({**GOOD, "mechanism": [{**STEP, "steps": 10**400}]}, "got about 1.000e+400"),
        ({**GOOD, "mechanism": [{**STEP, "noise_multiplier": False}]}, "real number, got False"),
        ({**GOOD, "mechanism": [{**STEP, "noise_multiplier": None}]}, "real number, got None"),
        ({**GOOD, "mechanism": [{**STEP, "noise_multiplier": [1.0]}]}, "real number, got [1.0]"),
        (
            {"schema": "pyengine/1", "target": {"target": "Gamma", "kappa": True, "gamma": 0.1}},
            "kappa must be a real number, got True",
        ),
        (
            {"schema": "pyengine/1", "answer": {"lower": [0.0], "value": [0.0, 1.0], "upper": 1}},
            "answer must hold numbers, or lists of one shape, got lower (1,), value (2,), upper ()",
        ),
        (
            {"schema": "pyengine/1", "answer": {"lower": 2, "value": 1, "upper": 0}},
            "answer must have lower <= value <= upper",
        ),
        (
            {"schema": "pyengine/1", "answer": {"lower": [0, [1]], "value": [0], "upper": [1]}},
            "lower must be a regular list of numbers",
        ),
        (said(3), "words must be an object with none but name, batches, size"),
        (said({"names": "a"}), "words must be an object with none but name, batches, size"),
        (said({"name": "a", "batches": 3}), "words.batches must be a printable text, got 3"),
        (
            said({"unit": "one record\nAll bounds are proven."}),
            "words.unit must be a printable text",
        ),
        (said({"given": [["a", "\x1b[2J"]]}), "words.given[0] must be a printable text"),
        (said({**WORDS, "neighbours": "all"}), "words.neighbours must be one of 'present', 'in_pl"),
        (said({**WORDS, "known": "bound"}), "words.known must be one of"),
        (said({**WORDS, "sizes": [1]}), "words.sizes must hold 2 items, got 1"),
        (said({**WORDS, "sizes": 1}), "words.sizes must be a sequence, got 1"),
        (said({**WORDS, "epochs": [3, "x"]}), "words.epochs[1] must be"),
        (said({**WORDS, "least": [0.0, 3]}), "words.least[0] must be positive"),
        (said({**WORDS, "given": ["a"]}), "words.given[0] must be a name and a text, got 'a'"),
        ({**GOOD, "mechanism": [{**STEP, "noise_multiplier": "x"}]}, "noise_multiplier must be a"),
        ({"schema": "pyengine/1", "target": {"target": "Nothing"}}, "target.target must be one of"),
        ({"schema": "pyengine/1", "target": {"target": "Gamma", "kappa": 1.0}}, "gamma"),
        ({"schema": "pyengine/1", "answer": {"value": 1.0}}, "must hold lower, value, upper"),
        ({"schema": "pyengine/1", "answer": {"lower": 0, "value": "x", "upper": 1}}, "value must"),
    ],
)
def test_wrong_texts(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        pe.from_json(json.dumps(content))


NOISE = '{"schema": "pyengine/1", "mechanism": [{"mechanism": "GaussianMechanism", %s}]}'
LONG = "9" * 5000
SHUFFLED = (
    '{"schema": "pyengine/1", "mechanism": [{"mechanism": "ShuffledRandomizer", '
    '"local_epsilon": 1, "users": 9, %s}]}'
)
TARGET = '{"schema": "pyengine/1", "target": {"target": "EpsilonDelta", %s}}'
ANSWER = '{"schema": "pyengine/1", "answer": {"value": 1, "upper": 1, "lower": %s}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 10_000 + "]" * 10_000, "text must be JSON: nested too deeply"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "text must be JSON: nested too deeply"),
        (ANSWER % ("[" * 10_000 + "1" + "]" * 10_000), "text must be JSON: nested too deeply"),
        (ANSWER % ("[" * 900 + "1" + "]" * 900), "lower must be a|answer must be nested less"),
        (NOISE % '"noise_multiplier": 1, "steps": 1e1', "steps must be an integer without point"),
        (NOISE % '"noise_multiplier": NaN', "NaN is no number of JSON"),
        (NOISE % '"noise_multiplier": Infinity', "Infinity is no number of JSON"),
        (NOISE % '"noise_multiplier": 1e999', "the number 1e999 is beyond the doubles"),
        (
            NOISE % '"noise_multiplier": 1, "noise_multiplier": 2',
            "'noise_multiplier' is given twice",
        ),
        (NOISE % f'"noise_multiplier": 1{"0" * 5000}', "an integer has more than 4,300 digits"),
        (NOISE % f'"noise_multiplier": 1, "steps": 1{"0" * 400}', "got about 1.000e.400$"),
        (NOISE % '"noise_multiplier": 1, "sampling_probability": 2', "^sampling_probability must"),
        (
            NOISE % f'"noise_multiplier": 1, "sampling_probability": 1, "batch_size": "{LONG}"',
            r"^sampling_probability and batch_size both given \(1 and 9{60}\.\.\. \(5,000 char",
        ),
        (
            SHUFFLED % '"sampling_probability": "1/3"',
            "cannot be sampled; got sampling probability 1/3$",
        ),
        (
            SHUFFLED % f'"batch_size": "{LONG}", "dataset_size": 9',
            r"cannot be sampled; got batches of '9{59}\.\.\. \(5,002 characters\) of 9 records$",
        ),
        (TARGET % '"epsilon": 1, "delta": 1e-400', "the number 1e-400 is beyond the doubles"),
        (TARGET % '"epsilon": 1e400, "delta": 0.1', "the number 1e400 is beyond the doubles"),
        (TARGET % '"epsilon": 1, "delta": 0.1, "bounds": 1', "bounds must be True"),
        (TARGET % '"epsilon": 1, "delta": 0.1, "tolerance": true', "tolerance must be"),
        ("{", "text must be JSON: Expecting"),
        ("", "text must be JSON: Expecting value"),
        ("\ufeff{}", "text must be JSON"),
    ],
    ids=range(22),
)
def test_texts_that_json_does_not_mean(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        pe.from_json(text)
    assert len(str(error.value)) < 250


def test_zeros_are_doubles() -> None:
    for zero in ("0.0", "-0.0", "0e400", "0.000e-7"):
        assert pe.from_json(ANSWER % zero).lower == 0.0


def test_what_has_no_text() -> None:
    from_function = pe.from_profile(lambda epsilon: max(0.0, 0.1 - epsilon / 10))
    relaxed = pe.targets.TradeOff(0.1, 0.8, threat_model=pe.threat_models.Relaxed(3))
    for value, message in (
        (3, "value must be a Mechanism, an AdaptiveRun, a Target or Bounds, got 3"),
        (relaxed, "threat_model that is a word"),
    ):
        with pytest.raises(ValueError, match=message):
            pe.to_json(value)  # type: ignore[arg-type]
    assert pe.from_json(pe.to_json(from_function)) == from_function  # a pair of vectors
    scipy_stats = pytest.importorskip("scipy.stats")
    laws = pe.from_distributions(scipy_stats.norm(0, 1), scipy_stats.norm(1, 1))
    with pytest.raises(ValueError, match="holds functions"):
        pe.to_json(laws)
    for wrong in ("{", None):
        with pytest.raises(ValueError, match=r"text must be|Expecting"):
            pe.from_json(wrong)  # type: ignore[arg-type]


def test_long_numbers() -> None:
    """What is written is read: exact weights of groups have hundreds of digits, and more."""
    for run in (
        pe.dp_sgd(1.0, "0.0667", 3, group_size=220),
        pe.dp_sgd(1.0, batch_size=1000, dataset_size=7000, steps=3, sampling="with_replacement"),
        pe.dp_sgd("1." + "3" * 4000, 0.01, 3),
        pe.LaplaceMechanism("1" + "0" * 200 + "." + "7" * 4000),
    ):
        assert pe.from_json(pe.to_json(run)) == run
    with pytest.raises(ValueError, match="value must have numbers of at most 4,300 digits"):
        pe.to_json(pe.GaussianMechanism("1." + "3" * 4300))
    with pytest.raises(ValueError, match="noise_multiplier must be a number or a fraction"):
        pe.GaussianMechanism("1." + "3" * 4301)
