"""Steps of which only bounds are known, by other mechanisms: epochs, and selections among runs.

Of epochs in which each record takes part in several random steps, above stand blocks, each with one
random step of the record, or with two, whose law is known between two others; below stand the sum
of the epoch's releases and an epoch with fewer steps of the record (docs/theory/allocation has the
proofs).  Above the best of a random number of runs
stands a finite pair, and nothing below.
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
    """What dominates a step and what is dominated; None for steps that have a law.

    Of other than Gaussian noise nothing is known to be dominated.
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
    """Return the mechanism with what dominates in the place of such steps.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    best_of : callable, optional
        What dominates a selection among runs; it is left as it is if not given.
    """

    def above(step: Step) -> Mechanism:
        if step.repeated:
            return step if best_of is None else best_of(step)
        found = enclosing(step)
        return found[0] if found else step

    return compose(*(above(step).composed(number) for step, number in steps_of(mechanism)))


def in_blocks(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with blocks of one step of a record in the place of epochs."""
    return compose(*(step.blocks().composed(number) for step, number in steps_of(mechanism)))


def has_pairs(mechanism: Mechanism) -> bool:
    """Whether all that has no law of its own are epochs with two steps of a record."""
    bounded = [step for step, _ in steps_of(mechanism) if enclosing(step) or step.repeated]
    return bool(bounded) and all(
        step.places is not None and step.places.has_pairs for step in bounded
    )


def dominated(mechanism: Mechanism) -> list[Mechanism]:
    """Return mechanisms with one of those in the place of such steps that these dominate."""

    def below(step: Step, which: int) -> Mechanism:
        if step.repeated:
            return compose()
        found = enclosing(step)
        return found[1][which] if found else step

    return [
        compose(*(below(step, which).composed(number) for step, number in steps_of(mechanism)))
        for which in (0, 1)
    ]
