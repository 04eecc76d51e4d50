"""What a composition is divided into: terms that are composed, and a rest that is bounded."""

from __future__ import annotations

from typing import NamedTuple

from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part
from pyengine.laws.base import StepLaw

__all__ = ["Partition", "Rest", "Term", "single_parts"]


class Term(NamedTuple):
    """One part of the sum: e^log_weight times a composition, with its tilt."""

    log_weight: float
    parts: tuple[Part, ...]
    survey: CoarseCumulants
    tilt: float
    excess: float = 0.0  # nats by which its Chernoff bound exceeds the tail, at worst


def single_parts(term: Term) -> list[Term]:
    """Each kind of step of a term by itself, once."""
    return [
        Term(0.0, ((law, 1),), CoarseCumulants((loss,), (log_mass,), (1,)), term.tilt)
        for (law, _), loss, log_mass in zip(
            term.parts, term.survey.loss, term.survey.log_mass, strict=True
        )
    ]


class Rest(NamedTuple):
    """More than ``most`` large steps: ``term`` holds small ones, then large ones, of each kind."""

    term: Term
    most: int


class Partition(NamedTuple):
    """A composition as a sum of terms, and what is only bounded.

    ``unseen`` are parts of steps with too little mass for the survey.
    """

    parts: tuple[Part, ...]
    terms: tuple[Term, ...]
    rest: Rest | None = None
    unseen: tuple[StepLaw, ...] = ()
