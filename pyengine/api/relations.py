"""Neighbouring relations of dp_accounting as adjacencies, and which events they do not define."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyengine.api.dp_events import (
    best_of,
    discrete_gaussian,
    from_dp_event,
    with_replacement,
)
from pyengine.mechanisms import Mechanism, compose, from_probabilities
from pyengine.mechanisms.core import phases_of
from pyengine.mechanisms.words import worded

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency

__all__ = ["ADJACENCY", "mechanism_under"]

ADD_OR_REMOVE, REPLACE, SPECIAL = "ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"
# Replacing a record by an empty one has the same laws as removing it.
ADJACENCY: dict[str, Adjacency] = {
    ADD_OR_REMOVE: "add_remove",
    REPLACE: "substitute",
    SPECIAL: "add_remove",
}
MIXED = {"MixtureOfGaussiansDpEvent", "SampledWithReplacementDpEvent"}
# Events whose parameters hold for the relation of the question, and sampling schemes under which
# batches differ in another way than data sets.
GIVEN = {"EpsilonDeltaDpEvent", "ZCDpEvent", "ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent"}
OTHERWISE = {
    ADD_OR_REMOVE: "SampledWithoutReplacementDpEvent",
    REPLACE: "RandomAllocationDpEvent",
}
SAMPLES = ("PoissonSampledDpEvent", "RandomAllocationDpEvent", "SampledWithoutReplacementDpEvent")


def mechanism_under(event: Any, relation: str) -> Mechanism:
    """Mechanism with the laws of a dp_accounting event under a neighbouring relation.

    ``relation`` names the ``NeighboringRelation``; ask with its adjacency in `ADJACENCY`.  Raises
    ValueError for an event without a counterpart, or without one under this relation.

    - Randomized response answers for a record that exists, so it is not defined under
      ``ADD_OR_REMOVE_ONE``; the special record answers uniformly.
    - Trees have a place for each record, so they are not defined under ``ADD_OR_REMOVE_ONE``.
    - A discrete Gaussian with a dimension other than 1 is known by its zCDP curve; if two records
      move it, ρ is four times as large.  Other curves, and (ε, δ), hold for the relation of the
      question.  Batches without replacement differ by ``REPLACE_ONE`` and epochs of random
      allocation by ``ADD_OR_REMOVE_ONE``, so such events are not defined under the other relation.
    - With replacement the special record is drawn as often, and moves nothing.
    - Under ``REPLACE_ONE`` either record of a mixture moves the sum by its sensitivities.
    - Without replacement the special record still takes a place in the batch.  That pair is not the
      one of Poisson sampling, and no exact one is known here; ``REPLACE_ONE`` is an upper bound, as
      the special record is a replacement.
    """
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        return mechanism_under(event.event, relation).composed(event.count)
    if name == "ComposedDpEvent":
        return compose(*(mechanism_under(part, relation) for part in event.events))
    if name == "RandomizedResponseDpEvent":
        if relation == SPECIAL and event.num_buckets > 1:
            return _beside_uniform(event)
        if relation == ADD_OR_REMOVE:
            raise _undefined(event, relation)
    if name == "RepeatAndSelectDpEvent":
        return best_of(mechanism_under(event.event, relation), event)
    if name == "DiscreteGaussianDpEvent" and relation == REPLACE:
        return discrete_gaussian(event, times=2)
    if name == "SampledWithReplacementDpEvent" and relation == SPECIAL:
        return _in_place(with_replacement(event, moved=1))
    kinds = _kinds(event)
    undefined = {
        ADD_OR_REMOVE: {"RandomizedResponseDpEvent", "SingleEpochTreeAggregationDpEvent"},
        REPLACE: set(),
        SPECIAL: {"SampledWithoutReplacementDpEvent", "RandomizedResponseDpEvent"},
    }[relation]
    if name == "RandomizedResponseDpEvent" and event.num_buckets == 1:
        return compose()  # one bucket reveals nothing
    sampled_answers = name in SAMPLES and "RandomizedResponseDpEvent" in kinds
    if kinds & undefined or sampled_answers or (name == OTHERWISE.get(relation) and kinds & GIVEN):
        raise _undefined(event, relation)
    made = from_dp_event(event)
    if relation == REPLACE and kinds & MIXED:
        sampled = (step for step, _ in phases_of(made) if step.scheme == "poisson")
        if any(step.inner.noise is None for step in sampled):  # everything is revealed
            raise _undefined(event, relation)
    return _in_place(made) if relation == SPECIAL else made


def _in_place(mechanism: Mechanism) -> Mechanism:
    """The same steps, with labels for neighbours that replace a record by an empty one."""
    parts = [
        (worded(step, step.words._replace(neighbours="in_place")), number)
        if step.words.neighbours == "present"
        else (step, number)
        for step, number in phases_of(mechanism)
    ]
    if mechanism.is_step:
        return parts[0][0]
    return compose(*(step.composed(number) for step, number in parts))


def _kinds(event: Any) -> set[str]:
    """Names of all events in a tree."""
    inner = [*getattr(event, "events", ())]
    if hasattr(event, "event"):
        inner.append(event.event)
    return {type(event).__name__}.union(*map(_kinds, inner))


def _undefined(event: Any, relation: str) -> ValueError:
    bounded = relation == SPECIAL and "SampledWithoutReplacementDpEvent" in _kinds(event)
    advice = "; REPLACE_ONE bounds it" if bounded else ""
    return ValueError(f"event must be defined under {relation}, got {type(event).__name__}{advice}")


def _beside_uniform(event: Any) -> Mechanism:
    """Pair of randomized response and a uniform answer: the true category, or another one."""
    k, p = event.num_buckets, Fraction(event.noise_parameter)
    true = 1 - p + p / k
    return from_probabilities([Fraction(1, k), Fraction(k - 1, k)], [true, 1 - true])
