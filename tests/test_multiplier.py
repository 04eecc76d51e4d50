"""The noise multiplier of noise as training code adds it."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pyengine as pe


def test_is_rounded_down_from_the_exact_number() -> None:
    random_ = random.Random(3)
    for _ in range(300):
        size = random_.randint(1, 4)
        std = [math.exp(random_.uniform(-40, 40)) for _ in range(size)]
        clip = [math.exp(random_.uniform(-40, 40)) for _ in range(size)]
        batch, clients = random_.randint(1, 10_000), random_.randint(1, 100)
        mean, micro = random_.random() < 0.5, random_.choice((1, 8))
        found = pe.noise_multiplier(
            std, clip, batch, mean=mean, clients=clients, microbatch_size=micro
        )
        # what one contribution is worth in units of the noise: the inverse of the multiplier
        square = sum(Fraction(c) ** 2 / Fraction(s) ** 2 for s, c in zip(std, clip, strict=True))
        square /= clients * (batch**2 if mean else 1)
        square *= 4 if micro > 1 else 1
        assert Fraction(found) ** 2 * square <= 1
        assert Fraction(math.nextafter(found, math.inf)) ** 2 * square > 1


@pytest.mark.parametrize(
    ("arguments", "words", "value"),
    [
        ((1.1, 1.0), {}, 1.1),
        (("0.1", "0.3", 3), {"mean": True}, 1.0),
        ((1.0, 1.0, 256), {"mean": False}, 1.0),
        ((1.0, 1.0, 256), {"mean": True}, 256.0),
        ((1.0, [0.5] * 4), {}, 1.0),
        (([0.5, 2.0, 1.0, 1.5], [0.5, 2.0, 1.0, 1.5]), {}, 0.5),
        ((np.array([1.0, 1.0, 1.0, 1.0]), 1.0), {}, 0.5),
        ((0.1, 1.0), {"clients": 100}, 1.0),  # and a little more
        (("0.1", 1.0), {"clients": 100}, 1.0),
        ((1.0, 1.0), {"microbatch_size": 2}, 0.5),
    ],
)
def test_known(arguments: Any, words: dict[str, Any], value: float) -> None:
    assert pe.noise_multiplier(*arguments, **words) == value


def test_what_training_code_does_has_this_multiplier() -> None:
    """The law of the released vector under both data sets, by its own variance and shift."""
    generator = np.random.default_rng(5)
    clips, stds, micro, each = np.array([0.7, 1.9]), np.array([0.02, 0.05]), 4, 25
    gradients = generator.normal(size=(micro * each, 2))
    # accumulated means with noise each: the last record has its largest norm, or is not there
    gradients[-1] = clips
    without = gradients.copy()
    without[-1] = 0.0

    def released(of: np.ndarray[Any, Any]) -> Any:
        clipped = np.clip(of, -clips, clips)
        return sum(clipped[i * each : (i + 1) * each].sum(0) / each for i in range(micro)) / micro

    shift = released(gradients) - released(without)
    scale = stds / math.sqrt(micro)  # of the mean of independent noises
    mu = math.sqrt(sum((shift / scale) ** 2))
    z = pe.noise_multiplier(stds, clips, each, mean=True, clients=micro)
    assert z == pytest.approx(1 / mu, rel=1e-12)


def test_a_group_is_a_gaussian_release_beside_the_others() -> None:
    """Releases of one batch merge: their squared distances add up."""
    both = pe.noise_multiplier([1.5, 4.0], [1.0, 0.5])
    apart = pe.GaussianMechanism(1.5) + pe.GaussianMechanism(8.0)
    assert pe.delta(apart, 0.3) == pytest.approx(
        pe.delta(pe.GaussianMechanism(both), 0.3), rel=1e-10
    )


@pytest.mark.parametrize(
    ("arguments", "words", "message"),
    [
        ((1.0, 1.0, 256), {}, "mean must be given with batch_size"),
        ((1.0, 1.0), {"mean": True}, "batch_size must be given"),
        ((0.0, 1.0), {}, "std must be positive"),
        ((1.0, -1.0), {}, "clip must be positive"),
        ((1.0, math.inf), {}, "clip must be"),
        ((math.nan, 1.0), {}, "std must not be NaN"),
        ((1.0, []), {}, "clip must hold a number for each group"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), {}, "as many groups, got 2 and 3"),
        (([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]), {}, "as many groups, got 2 and 4"),
        ((1.0, 1.0, 0), {"mean": True}, "batch_size must be positive"),
        ((1.0, 1.0), {"clients": 0}, "clients must"),
        ((1.0, 1.0), {"microbatch_size": 1.5}, "microbatch_size must"),
        ((1.0, 1.0, 2), {"mean": 1}, "mean must"),
        (("much", 1.0), {}, "std must be a number"),
    ],
)
def test_wrong_arguments(arguments: Any, words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.noise_multiplier(*arguments, **words)
