"""From a mechanism to its pair of laws."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial

from pyengine.errors import AccuracyError
from pyengine.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    PoissonSampled,
    Step,
    steps_of,
)
from pyengine.reference.answers import Pair
from pyengine.reference.atoms import Atoms
from pyengine.reference.finite import FINITE, Masses, masses, sampled
from pyengine.reference.gaussian import Phase
from pyengine.reference.gaussian_law import GaussianLaw
from pyengine.reference.laplace import Laplace
from pyengine.reference.solve import Continuous

__all__ = ["pair_of"]


@lru_cache(maxsize=64)
def pair_of(mechanism: Mechanism) -> Pair | None:
    """Return the pair (without the record, with it); None if both laws are the same.

    Raises
    ------
    AccuracyError
        If no ground truth is implemented for the mechanism.
    """
    steps = [(step, number) for step, number in steps_of(mechanism) if not _is_silent(step)]
    if not steps:
        return None
    bases = {type(_base(step)) for step, _ in steps}
    if bases == {GaussianMechanism}:
        return Continuous(GaussianLaw(tuple(_phase(step, number) for step, number in steps)))
    if bases == {LaplaceMechanism} and all(_probability(step) == 1 for step, _ in steps):
        return Laplace([(_noise(step), number) for step, number in steps])
    if bases <= set(FINITE):
        return Atoms([(partial(_masses, step), number) for step, number in steps])
    names = ", ".join(sorted(base.__name__ for base in bases))
    raise AccuracyError(f"no ground truth for a composition of {names}")


def _base(step: Step) -> Step:
    return step.mechanism if isinstance(step, PoissonSampled) else step


def _probability(step: Step) -> float | Fraction:
    return step.probability if isinstance(step, PoissonSampled) else 1.0


def _is_silent(step: Step) -> bool:
    """Whether nothing that depends on the record is ever released."""
    return _probability(step) == 0


def _masses(step: Step) -> Masses:
    one = masses(_base(step))
    probability = _probability(step)
    return one if probability == 1 else sampled(one, probability)


def _noise(step: Step) -> float | Fraction:
    assert isinstance(step, LaplaceMechanism)
    return step.noise_multiplier


def _phase(step: Step, number: int) -> Phase:
    base = _base(step)
    assert isinstance(base, GaussianMechanism)
    return Phase(base.noise_multiplier, _probability(step), number)
