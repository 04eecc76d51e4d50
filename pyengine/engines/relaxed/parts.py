"""From a mechanism to the laws of distances that the relaxed threat model tests."""

from __future__ import annotations

import math
from fractions import Fraction

from pyengine._support.caches import kept
from pyengine.engines.relaxed.core import MagnitudePair
from pyengine.engines.relaxed.gaussian import GaussianDistance
from pyengine.engines.relaxed.laplace import LaplacePair, SampledLaplacePair
from pyengine.engines.relaxed.sampled import SampledPair
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import Mechanism, Noise, Step, step_in_words, steps_of
from pyengine.mechanisms.threat_models import Relaxed

__all__ = ["gaussian_effect", "magnitude_parts"]


# Map: Lemma 8 of Kaissis et al. (2023), relaxed: composition | test_relaxed_composition | relaxed
def gaussian_effect(steps: list[tuple[Noise, int]], combination: str) -> float:
    """Effect μ of the summed outputs: μ² = Σ 1/noise², or N²/Σ noise² for the ``mean``."""
    squares = [(Fraction(noise.multiplier) ** 2, number) for noise, number in steps]
    if combination == "mean":
        total = sum(number for _, number in squares)
        ratio = total**2 / sum((number * square for square, number in squares), Fraction(0))
    else:
        ratio = sum((number / square for square, number in squares), Fraction(0))
    return math.sqrt(ratio)


@kept(1024)
def magnitude_parts(mechanism: Mechanism, model: Relaxed) -> tuple[tuple[MagnitudePair, int], ...]:
    """Laws of the independent distances that the adversary tests, with their repetitions.

    Plain Gaussian steps are summed before the length is taken (Lemma 8); each other step has a
    distance of its own.  Mechanisms that the paper does not cover are refused.
    """
    plain: list[tuple[Noise, int]] = []
    parts: list[tuple[MagnitudePair, int]] = []
    for step, number in steps_of(mechanism):
        if step.noise is not None and step.noise.family == "gaussian":
            plain.append((step.noise, number))
            continue
        probability = float(step.share)
        inner = step.inner if step.scheme == "poisson" else step
        pair = _one_step(inner, model, probability)
        if probability > 0.0:
            parts.append((pair, number))
    if plain:
        effect = gaussian_effect(plain, model.combination)
        parts.insert(0, (GaussianDistance(model.dimension, effect), 1))
    return tuple(parts)


def _one_step(step: Step, model: Relaxed, probability: float) -> MagnitudePair:
    if step.noise is None:
        raise NotDefinedError(
            "threat_model='relaxed' covers Gaussian and Laplace mechanisms, plain or on a Poisson "
            f"sample, got {step_in_words(step)}"
        )
    family, multiplier = step.noise
    if family == "gaussian":
        gaussian = GaussianDistance(model.dimension, 1.0 / float(multiplier))
        return SampledPair(gaussian, probability) if 0.0 < probability < 1.0 else gaussian
    if model.dimension > 1:
        raise NotDefinedError(
            "dimension must be 1 for a Laplace mechanism in the relaxed threat model, got "
            f"{model.dimension}"
        )
    laplace = LaplacePair(1.0 / float(multiplier))
    return SampledLaplacePair(laplace, probability) if 0.0 < probability < 1.0 else laplace
