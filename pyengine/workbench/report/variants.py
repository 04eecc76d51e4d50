"""Variants of a run: with other batches, for several records of a user, or with other noise."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from pyengine.api.shuffled import simplest, without_amplification
from pyengine.mechanisms import (
    Mechanism,
    Step,
    compose,
    steps_of,
)
from pyengine.mechanisms.core import phases_of
from pyengine.mechanisms.mixture import group_sample
from pyengine.mechanisms.report import of_units
from pyengine.mechanisms.words import as_given, worded

__all__ = ["noise_of", "resampled", "with_group", "with_noise"]

# The step on a batch, the sampling rate of records, and the number of batches.
Stage = tuple[Step, Fraction, int]


def resampled(mechanism: Mechanism) -> dict[str, Mechanism]:
    """Return variants of the run with batches drawn in other ways, by their descriptions.

    Noise, rate and number of steps are unchanged.  Empty if nothing is sampled, or if records are
    not sampled individually.  Variants that equal the run itself are left out.
    """
    shuffled = without_amplification(mechanism)
    if shuffled is None:
        return {}
    stages = [(*_stage(step, number), _sizes(step)) for step, number in phases_of(mechanism)]
    found = {
        "Poisson samples of the same rate": [
            as_given(inner.poisson_sampled(rate), steps, sizes=sizes)
            for inner, rate, steps, sizes in stages
        ],
        "batches of fixed size, each drawn without replacement": [
            _fixed(inner, rate, sizes).composed(steps) for inner, rate, steps, sizes in stages
        ],
        "shuffled once an epoch: what holds without any amplification": [shuffled],
        "no sampling: the record in every step": [
            inner.composed(steps) for inner, _, steps, _ in stages
        ],
    }
    units = {step.words.whose for step, _ in phases_of(mechanism)}
    unit = units.pop() if len(units) == 1 else "record"
    made = {what: of_units(compose(*parts), unit) for what, parts in found.items()}
    own = compose(*_exact(mechanism))
    return {what: each for what, each in made.items() if compose(*_exact(each)) != own}


def _exact(mechanism: Mechanism) -> list[Mechanism]:
    """Steps of a run with exact rates in lowest terms, as `resampled` writes them."""
    found: list[Mechanism] = []
    for step, number in steps_of(mechanism):
        inner, rate, _ = _stage(step, number)
        if step.scheme == "poisson":
            found.append(inner.poisson_sampled(rate).composed(number))
        elif step.scheme == "without_replacement":
            found.append(_fixed(inner, rate).composed(number))
        else:
            found.append(step.composed(number))
    return found


def _fixed(inner: Step, rate: Fraction, sizes: tuple[int, int] | None = None) -> Step:
    """A step on batches of fixed size; if sizes are unknown, from the rate, which is enough."""
    batch, records = sizes or (rate.numerator, rate.denominator)
    return inner.sampled_without_replacement(batch_size=batch, dataset_size=records)


def _sizes(step: Step) -> tuple[int, int] | None:
    """Sizes of batch and data set, if they were given, possibly as a fraction; otherwise None."""
    batch, slash, records = step.words.rate.partition("/")
    if step.words.sizes is None and slash and batch.isdecimal() and records.isdecimal():
        return int(batch), int(records)
    return step.words.sizes


def _stage(step: Step, number: int) -> Stage:
    inner, rate, batches = step.stage
    return inner, simplest(rate), number * batches


def with_group(mechanism: Mechanism, size: int) -> Mechanism | None:
    """Return the run for a user of ``size`` records, or None if no dominating pair is known."""
    parts: list[Mechanism] = []
    for step, number in phases_of(mechanism):
        noise, words = step.inner.noise, step.words
        if words.neighbours != "present" and step.scheme != "none":
            return None
        if noise is not None and (step.scheme, noise.family) == ("poisson", "gaussian"):
            group = group_sample(noise.multiplier, step.share, size)
            parts.append(as_given(group, number, sizes=words.sizes))
        elif step.noise is not None:  # the sum changes ``size`` times as much
            less = Fraction(step.noise.multiplier) / size
            words = words._replace(name=f"{words.name}, {size:,} records at once")
            parts.append(worded(step.with_multiplier(less), words).composed(number))
        else:
            return None
    return compose(*parts)


def noise_of(mechanism: Mechanism) -> float | None:
    """Return the common noise multiplier of all steps, or None."""
    found = {step.multiplier for step, _ in steps_of(mechanism)}
    if len(found) != 1:
        return None
    (noise,) = found
    return None if noise is None else float(noise)


def with_noise(mechanism: Mechanism) -> Callable[[float], Mechanism] | None:
    """Return the run as a function of a factor of all noise; None if a step has no noise."""
    parts = [(step, number, step.multiplier) for step, number in steps_of(mechanism)]
    known = [(step, number, float(noise)) for step, number, noise in parts if noise is not None]
    if not parts or len(known) < len(parts):
        return None

    def make(factor: float) -> Mechanism:
        scaled = (
            step.with_multiplier(noise * factor).composed(number) for step, number, noise in known
        )
        return compose(*scaled)

    return make
