"""Privacy random variables of prv_accountant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pyengine._support.extras import needed
from pyengine.mechanisms import (
    Composition,
    GaussianMechanism,
    GenericMechanism,
    LaplaceMechanism,
    Mechanism,
    Step,
    compose,
    steps_of,
)

__all__ = ["from_prv", "from_prvs", "to_prvs"]


def from_prv(prv: Any) -> Step:
    """Make the step of a privacy random variable of prv_accountant, with exact parameters.

    For ``PoissonSubsampledGaussianMechanism``, ``GaussianMechanism``, ``LaplaceMechanism``,
    ``PureDPMechanism`` and ``ApproximateDPMechanism``; a ValueError names any other.
    """
    name = type(prv).__name__
    if name == "PoissonSubsampledGaussianMechanism":
        return GaussianMechanism(float(prv.sigma)).poisson_sampled(float(prv.p))
    if name == "GaussianMechanism":
        return GaussianMechanism(1 / Fraction(prv.mu))
    if name == "LaplaceMechanism":
        return LaplaceMechanism(1 / Fraction(prv.mu))
    if name == "PureDPMechanism":
        return GenericMechanism(prv.eps)
    if name == "ApproximateDPMechanism":
        return GenericMechanism(prv.pure_dp.eps, prv.delta)
    raise ValueError(f"prv must have an exact counterpart, got {name}")


def from_prvs(prvs: Any, steps: int | Sequence[int] = 1) -> Composition:
    """Composition of privacy random variables, as ``PRVAccountant`` takes them.

    Parameters
    ----------
    prvs : PrivacyRandomVariable or sequence of them
        Each stands for one kind of step; see `from_prv`.
    steps : int or sequence of int
        How often each is composed with itself: ``num_self_compositions``.

    Returns
    -------
    Composition
        With exact parameters.

    Raises
    ------
    ValueError
        For a random variable without counterpart, or if the numbers differ.
    """
    several = list(prvs) if isinstance(prvs, list | tuple) else [prvs]
    numbers = list(steps) if isinstance(steps, Sequence) else [steps]
    if len(several) != len(numbers):
        raise ValueError(
            f"steps must have as many entries as prvs, {len(several)}, got {len(numbers)}"
        )
    parts = zip(several, numbers, strict=True)
    return compose(*(from_prv(prv).composed(number) for prv, number in parts))


def to_prvs(mechanism: Mechanism) -> tuple[list[Any], list[int]]:
    """Arguments of ``PRVAccountant`` for a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps, Poisson-sampled or not, and Laplace steps, composed.

    Returns
    -------
    list of PrivacyRandomVariable, list of int
        For ``prvs`` and ``max_self_compositions``; parameters are rounded to doubles.

    Raises
    ------
    ImportError
        If prv_accountant is not installed.
    ValueError
        For any other step, by its name.
    """
    with needed("a PrivacyRandomVariable", "peers"):
        from prv_accountant import privacy_random_variables as module

    prvs, numbers = [], []
    for step, number in steps_of(mechanism):
        prvs.append(_prv(module, step))
        numbers.append(number)
    return prvs, numbers


def _prv(module: Any, step: Step) -> Any:
    noise = step.inner.noise
    if noise is None:
        raise ValueError(f"mechanism must have a counterpart in prv_accountant, got {step!r}")
    match step.scheme, noise.family:
        case "poisson", "gaussian":
            return module.PoissonSubsampledGaussianMechanism(
                float(step.share), float(noise.multiplier)
            )
        case "none", "gaussian":
            return module.GaussianMechanism(float(noise.multiplier))
        case "none", "laplace":
            return module.LaplaceMechanism(float(1 / Fraction(noise.multiplier)))
    raise ValueError(f"mechanism must have a counterpart in prv_accountant, got {step!r}")
