"""What a composition is divided into: terms that are composed, and a rest that is bounded."""

from __future__ import annotations

from typing import NamedTuple

from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part
from pyengine.laws.base import StepLaw

__all__ = ["Partition", "Rest", "Term"]


class Term(NamedTuple):
    """One part of the sum: e^log_weight times a composition, with its tilt."""

    log_weight: float
    parts: tuple[Part, ...]
    survey: CoarseCumulants
    tilt: float
    excess: float = 0.0  # nats by which its Chernoff bound exceeds the tail, at worst


class Rest(NamedTuple):
    """More than ``most`` large steps, and the tilt of the bound on what they have."""

    tilt: float
    most: int


class Partition(NamedTuple):
    """A composition as a sum of terms, and what is only bounded.

    ``unseen`` are parts of steps with too little mass for the survey.
    """

    parts: tuple[Part, ...]
    terms: tuple[Term, ...]
    rest: Rest | None = None
    unseen: tuple[StepLaw, ...] = ()
