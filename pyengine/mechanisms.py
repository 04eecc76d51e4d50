"""Mechanisms as values: what is released, how it is sampled, how often.

A mechanism says what it is; how to compute on it is the business of the engines.  Mechanisms are
frozen, hashable and comparable: equal compositions are equal values, whatever the order in which
their steps were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyengine import _checks

__all__ = [
    "Composition",
    "GaussianMechanism",
    "Mechanism",
    "PoissonSampled",
    "compose",
    "dp_sgd",
]


@dataclass(frozen=True)
class Mechanism:
    """Base of all mechanisms; made by its subclasses only."""

    def composed(self, steps: int) -> Composition:
        """Repeat the mechanism, each time with fresh randomness.

        Parameters
        ----------
        steps : int
            Number of repetitions, >= 0.

        Returns
        -------
        Composition
            The adaptive composition of ``steps`` runs.
        """
        number = _checks.count("steps", steps)
        return _collect([(step, number * times) for step, times in _steps_of(self)])

    def __add__(self, other: Mechanism) -> Composition:
        """Compose with another mechanism on the same data."""
        if not isinstance(other, Mechanism):
            return NotImplemented
        return compose(self, other)


@dataclass(frozen=True)
class GaussianMechanism(Mechanism):
    """A query of sensitivity 1 with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the sensitivity, in (0, ∞).
    """

    noise_multiplier: float

    def __init__(self, noise_multiplier: float) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)

    def poisson_sampled(self, probability: float) -> Mechanism:
        """Run on a Poisson sample of the records.

        Parameters
        ----------
        probability : float
            Probability with which each record takes part, independently, in [0, 1].

        Returns
        -------
        Mechanism
            The sampled mechanism; the mechanism itself at probability 1.
        """
        value = _checks.probability("probability", probability)
        return self if value == 1.0 else PoissonSampled(self, value)


@dataclass(frozen=True)
class PoissonSampled(Mechanism):
    """A mechanism on a Poisson sample; see `GaussianMechanism.poisson_sampled`."""

    mechanism: GaussianMechanism
    probability: float

    def __init__(self, mechanism: GaussianMechanism, probability: float) -> None:
        if not isinstance(mechanism, GaussianMechanism):
            raise ValueError(f"mechanism must be a single GaussianMechanism, got {mechanism!r}")
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "probability", _checks.probability("probability", probability))


Step = GaussianMechanism | PoissonSampled


@dataclass(frozen=True)
class Composition(Mechanism):
    """Adaptive composition of steps; made by `Mechanism.composed` and `compose`.

    Parameters
    ----------
    parts : tuple of (step, int)
        The different steps, sorted, each with its number of repetitions >= 1.
    """

    parts: tuple[tuple[Step, int], ...]

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return sum(number for _, number in self.parts)


def _steps_of(mechanism: Mechanism) -> list[tuple[Step, int]]:
    if isinstance(mechanism, Composition):
        return list(mechanism.parts)
    if isinstance(mechanism, GaussianMechanism | PoissonSampled):
        return [(mechanism, 1)]
    raise ValueError(f"mechanism must be a Mechanism, got {mechanism!r}")


def _sort_key(step: Step) -> tuple[float, float]:
    if isinstance(step, PoissonSampled):
        return step.mechanism.noise_multiplier, step.probability
    return step.noise_multiplier, 1.0


def _collect(steps: list[tuple[Step, int]]) -> Composition:
    numbers: dict[Step, int] = {}
    for step, number in steps:
        numbers[step] = numbers.get(step, 0) + number
    parts = [(step, number) for step, number in numbers.items() if number]
    return Composition(tuple(sorted(parts, key=lambda part: _sort_key(part[0]))))


def compose(*mechanisms: Mechanism) -> Composition:
    """Compose mechanisms that run on the same data, adaptively.

    Parameters
    ----------
    *mechanisms : Mechanism
        Any number of mechanisms; none gives the mechanism that releases nothing.

    Returns
    -------
    Composition
        Equal steps are counted together; the order does not matter.

    Examples
    --------
    >>> import pyengine as pe
    >>> warm_up, main = pe.dp_sgd(2.0, 0.01, 100), pe.dp_sgd(1.0, 0.02, 900)
    >>> pe.compose(warm_up, main).steps
    1000
    """
    return _collect([part for mechanism in mechanisms for part in _steps_of(mechanism)])


def dp_sgd(noise_multiplier: float, sampling_probability: float, steps: int) -> Composition:
    """DP-SGD: the Poisson-subsampled Gaussian mechanism, composed.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the clipping norm, in (0, ∞).
    sampling_probability : float
        Probability with which each record enters a batch, in [0, 1].
    steps : int
        Number of steps, >= 0.

    Returns
    -------
    Composition
        Equal to
        ``GaussianMechanism(noise_multiplier).poisson_sampled(sampling_probability).composed(steps)``.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.gamma_bound(pe.dp_sgd(1.0, 0.01, 1000), kappa=1e-3), 12)
    0.004068447881
    """
    noise = _checks.positive("noise_multiplier", noise_multiplier)
    probability = _checks.probability("sampling_probability", sampling_probability)
    return GaussianMechanism(noise).poisson_sampled(probability).composed(steps)


def describe(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return the parameters of each kind of step, for reports."""
    rows: list[dict[str, Any]] = []
    for step, number in _steps_of(mechanism):
        noise, probability = _sort_key(step)
        rows.append(
            {"noise_multiplier": noise, "sampling_probability": probability, "steps": number}
        )
    return rows
