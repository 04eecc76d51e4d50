"""Queries with additive noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyengine import _checks
from pyengine.mechanisms.core import Step

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
]


@dataclass(frozen=True)
class GaussianMechanism(Step):
    """A query of sensitivity 1 with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise divided by the sensitivity, in (0, ∞).
    """

    noise_multiplier: _checks.Number

    def __init__(self, noise_multiplier: Any) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)


@dataclass(frozen=True)
class LaplaceMechanism(Step):
    """A query of sensitivity 1 with Laplace noise.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Scale b of the noise, of density ``exp(-|x|/b) / (2b)``, divided by the sensitivity; in
        (0, ∞).
    """

    noise_multiplier: _checks.Number

    def __init__(self, noise_multiplier: Any) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)


@dataclass(frozen=True)
class DiscreteGaussianMechanism(Step):
    """An integer query with discrete Gaussian noise: weight ``exp(-k² / (2σ²))`` at each integer k.

    Parameters
    ----------
    noise_multiplier : float or exact number
        σ divided by the sensitivity, in (0, ∞).
    sensitivity : int
        Sensitivity of the query, >= 1; σ = ``noise_multiplier * sensitivity``.
    """

    noise_multiplier: _checks.Number
    sensitivity: int = 1

    def __init__(self, noise_multiplier: Any, sensitivity: int = 1) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)
        object.__setattr__(self, "sensitivity", _checks.count("sensitivity", sensitivity, least=1))


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(Step):
    """An integer query with discrete Laplace noise: weight ``exp(-|k| / b)`` at each integer k.

    Parameters
    ----------
    noise_multiplier : float or exact number
        b divided by the sensitivity, in (0, ∞).
    sensitivity : int
        Sensitivity of the query, >= 1; b = ``noise_multiplier * sensitivity``.
    """

    noise_multiplier: _checks.Number
    sensitivity: int = 1

    def __init__(self, noise_multiplier: Any, sensitivity: int = 1) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)
        object.__setattr__(self, "sensitivity", _checks.count("sensitivity", sensitivity, least=1))
