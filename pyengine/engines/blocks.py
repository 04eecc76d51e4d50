"""Steps without a law of their own, between mechanisms that dominate and that are dominated.

Epochs in which each record takes part in several random steps are dominated by blocks, each with
one random step of the record, or with two, whose law lies between two others.  They dominate the
sum of the epoch's releases and an epoch with fewer steps of the record (docs/theory/allocation).
The best of a random number of runs is dominated by a finite pair; nothing is known that it
dominates.
"""

from __future__ import annotations

from collections.abc import Callable

from pyengine.errors import AccuracyError
from pyengine.laws.kinds import added_law
from pyengine.mechanisms import (
    GenericMechanism,
    Mechanism,
    Step,
    compose,
    steps_of,
)

__all__ = ["NAME", "dominated", "dominating", "enclosing", "has_pairs", "in_blocks"]

NAME = "blocks"


def enclosing(step: Step) -> tuple[Mechanism, tuple[Step, ...]] | None:
    """The mechanism that dominates a step, and those that it dominates; None if it has a law.

    With noise that is not Gaussian the dominated mechanisms release nothing.
    """
    found, blocks = step.enclosing, compose(step.blocks())
    if found or step.places is not None or blocks == compose(step):
        return found
    try:
        added_law(step)
    except AccuracyError:
        nothing = GenericMechanism(0)
        return blocks, (nothing, nothing)
    return None


def dominating(
    mechanism: Mechanism, best_of: Callable[[Step], Mechanism] | None = None
) -> Mechanism:
    """Return a mechanism that dominates, with such steps replaced.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    best_of : callable, optional
        Returns what dominates a selection among runs; without it selections are left.
    """

    def above(step: Step) -> Mechanism:
        if step.repeated:
            return step if best_of is None else best_of(step)
        found = enclosing(step)
        return found[0] if found else step

    return compose(*(above(step).composed(number) for step, number in steps_of(mechanism)))


def in_blocks(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with epochs replaced by blocks, one step of a record in each."""
    return compose(*(step.blocks().composed(number) for step, number in steps_of(mechanism)))


def has_pairs(mechanism: Mechanism) -> bool:
    """Whether there are steps without a law, all of them epochs with two steps of a record."""
    bounded = [step for step, _ in steps_of(mechanism) if enclosing(step) or step.repeated]
    return bool(bounded) and all(
        step.places is not None and step.places.has_pairs for step in bounded
    )


def dominated(mechanism: Mechanism) -> list[Mechanism]:
    """Return two mechanisms that are dominated, with such steps replaced."""

    def below(step: Step, which: int) -> Mechanism:
        if step.repeated:
            return compose()
        found = enclosing(step)
        return found[1][which] if found else step

    return [
        compose(*(below(step, which).composed(number) for step, number in steps_of(mechanism)))
        for which in (0, 1)
    ]
