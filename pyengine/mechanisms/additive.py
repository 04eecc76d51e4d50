"""Queries with other additive noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pyengine import _checks
from pyengine.mechanisms.core import Noise, Step

__all__ = ["DiscreteGaussianMechanism", "DiscreteLaplaceMechanism", "LaplaceMechanism"]


@dataclass(frozen=True, init=False, repr=False)
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

    @property
    def noise(self) -> Noise:
        """Laplace noise."""
        return Noise("laplace", self.noise_multiplier)


@dataclass(frozen=True, init=False, repr=False)
class DiscreteNoise(Step):
    """Base of integer queries with noise on the integers, of the family that derived ones name."""

    family: ClassVar[Literal["gaussian", "laplace"]]
    noise_multiplier: _checks.Number
    sensitivity: int = 1

    def __init__(self, noise_multiplier: Any, sensitivity: int = 1) -> None:
        value = _checks.positive("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", value)
        object.__setattr__(self, "sensitivity", _checks.count("sensitivity", sensitivity, least=1))


@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussianMechanism(DiscreteNoise):
    """An integer query with discrete Gaussian noise: weight ``exp(-k² / (2σ²))`` at each integer k.

    Parameters
    ----------
    noise_multiplier : float or exact number
        σ divided by the sensitivity, in (0, ∞).
    sensitivity : int
        Sensitivity of the query, >= 1; σ = ``noise_multiplier * sensitivity``.
    """

    family: ClassVar[Literal["gaussian", "laplace"]] = "gaussian"


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplaceMechanism(DiscreteNoise):
    """An integer query with discrete Laplace noise: weight ``exp(-|k| / b)`` at each integer k.

    Parameters
    ----------
    noise_multiplier : float or exact number
        b divided by the sensitivity, in (0, ∞).
    sensitivity : int
        Sensitivity of the query, >= 1; b = ``noise_multiplier * sensitivity``.
    """

    family: ClassVar[Literal["gaussian", "laplace"]] = "laplace"
