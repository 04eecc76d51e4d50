"""Queries with other additive noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pyengine._support import checks
from pyengine.mechanisms.core import Noise, Step

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteGaussianSum",
    "DiscreteLaplaceMechanism",
    "LaplaceMechanism",
    "SkellamMechanism",
]


@dataclass(frozen=True, init=False, repr=False)
class LaplaceMechanism(Step):
    """A query of sensitivity 1 with Laplace noise.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Scale b of the noise, of density ``exp(-|x|/b) / (2b)``, divided by the sensitivity; in
        (0, ∞).
    """

    noise_multiplier: checks.Number

    def __init__(self, noise_multiplier: Any) -> None:
        vars(self).update(noise_multiplier=checks.positive("noise_multiplier", noise_multiplier))

    @property
    def noise(self) -> Noise:
        """Laplace noise."""
        return Noise("laplace", self.noise_multiplier)

    @property
    def pure_epsilon(self) -> Fraction:
        """ε of one release, exactly: the sensitivity over the scale of the noise."""
        return 1 / Fraction(self.noise_multiplier)


@dataclass(frozen=True, init=False, repr=False)
class DiscreteNoise(Step):
    """Base of integer queries with integer noise; `family` is that of the weights in k."""

    family: ClassVar[Literal["gaussian", "laplace"]]
    noise_multiplier: checks.Number
    sensitivity: int = 1

    def __init__(self, noise_multiplier: Any, sensitivity: int = 1) -> None:
        vars(self).update(
            noise_multiplier=checks.positive("noise_multiplier", noise_multiplier),
            sensitivity=checks.count("sensitivity", sensitivity, least=1),
        )


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


@dataclass(frozen=True, init=False, repr=False)
class SkellamMechanism(DiscreteNoise):
    """An integer query with Skellam noise: the difference of two equal Poisson variables.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise divided by the sensitivity, in (0, ∞); each Poisson variable
        has half of its variance.
    sensitivity : int
        Sensitivity of the query, whose value is one integer; >= 1.

    Notes
    -----
    Where several parties add Skellam noise, the sum is Skellam noise and its variance is the sum.

    References
    ----------
    N. Agarwal, P. Kairouz, Z. Liu, The Skellam Mechanism for Differentially Private Federated
    Learning (2021), arXiv:2110.04995.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.SkellamMechanism(10.0).composed(100)
    >>> print(f"{pe.epsilon(run, 1e-5):.4f}")
    4.3761
    """


@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussianSum(Step):
    """An integer query with a sum of discrete Gaussians, one from each of several parties.

    Parameters
    ----------
    noise_multiplier : float or exact number
        σ of **one** summand, with weights ``exp(-k² / (2σ²))``, divided by the sensitivity, in
        (0, ∞).
    summands : int
        Number of summands, >= 1; every party keeps its own secret.
    sensitivity : int
        Sensitivity of the query, whose value is one integer; >= 1.

    Notes
    -----
    The sum is not a discrete Gaussian.  For σ of a few units it is close to the one with parameter
    σ √summands.

    References
    ----------
    P. Kairouz, Z. Liu, T. Steinke, The Distributed Discrete Gaussian Mechanism for Federated
    Learning with Secure Aggregation (2021), arXiv:2102.06387.

    Examples
    --------
    >>> import pyengine as pe
    >>> parties, one = pe.DiscreteGaussianSum(0.5, 16), pe.DiscreteGaussianMechanism(2.0)
    >>> print(f"{pe.delta(parties, 1.0):.6f} {pe.delta(one, 1.0):.6f}")
    0.007533 0.007249
    """

    noise_multiplier: checks.Number
    summands: int
    sensitivity: int = 1

    def __init__(self, noise_multiplier: Any, summands: int, sensitivity: int = 1) -> None:
        vars(self).update(
            noise_multiplier=checks.positive("noise_multiplier", noise_multiplier),
            summands=checks.count("summands", summands, least=1),
            sensitivity=checks.count("sensitivity", sensitivity, least=1),
        )
