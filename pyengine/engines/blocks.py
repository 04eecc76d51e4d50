"""Steps of which only bounds are known, by other mechanisms: epochs, and selections among runs.

Of epochs in which each record takes part in several random steps, above stand blocks, each with one
random step of the record; below stand the sum of the epoch's releases and an epoch with one step of
the record (docs/theory/allocation has the proofs).  Above the best of a random number of runs
stands a finite pair, and nothing below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, FloatArray, Questions, complement_above, names
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, Step, compose, steps_of

__all__ = ["BlocksQuestions", "dominated", "dominating"]

NAME = "blocks"
T = TypeVar("T")


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
        return step.enclosing[0] if step.enclosing else step

    return compose(*(above(step).composed(number) for step, number in steps_of(mechanism)))


def dominated(mechanism: Mechanism) -> list[Mechanism]:
    """Return mechanisms with one of those in the place of such steps that these dominate."""

    def below(step: Step, which: int) -> Mechanism:
        if step.repeated:
            return compose()
        return step.enclosing[1][which] if step.enclosing else step

    return [
        compose(*(below(step, which).composed(number) for step, number in steps_of(mechanism)))
        for which in (0, 1)
    ]


class BlocksQuestions(Questions):
    """Questions whose values are those of a mechanism that dominates.

    Parameters
    ----------
    above : Questions
        Of the mechanism that dominates.
    below : sequence of callable
        Make questions on mechanisms that are dominated; those that no engine answers are left out.
    """

    def __init__(self, above: Questions, below: Sequence[Callable[[], Questions]]) -> None:
        self._above, self._below = above, below

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α), from below, and γ = 1 - T(α), from above."""
        beta, gamma = self._above.trade_off(alpha)
        others = self._others(lambda asked: asked.trade_off(alpha))
        for other, _ in others:
            beta.certified &= other.certified
            gamma.certified &= other.certified
        highest = np.min([complement_above(alpha), *(x.upper for x, _ in others)], axis=0)
        lowest = np.max([alpha, *(x.lower for _, x in others)], axis=0)
        name = names(NAME, alpha.size)
        return (
            _bounded(beta, beta.lower, np.maximum(highest, beta.value), name),
            _bounded(gamma, np.minimum(lowest, gamma.value), gamma.upper, name),
        )

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0, from above."""
        return self._merged(lambda asked: asked.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ, from above."""
        return self._merged(lambda asked: asked.epsilon(delta))

    def _merged(self, ask: Callable[[Questions], Answer]) -> Answer:
        sure, others = ask(self._above), self._others(ask)
        for other in others:
            sure.certified &= other.certified
        lowest = np.max([np.zeros(sure.value.size), *(x.lower for x in others)], axis=0)
        lower = np.minimum(lowest, sure.value)
        return _bounded(sure, lower, sure.upper, names(NAME, sure.value.size))

    def _others(self, ask: Callable[[Questions], T]) -> list[T]:
        found = []
        for make in self._below:
            with suppress(AccuracyError):
                found.append(ask(make()))
        return found


def _bounded(
    answer: Answer, lower: FloatArray, upper: FloatArray, engine: npt.NDArray[np.str_]
) -> Answer:
    """Return the values of an answer with other bounds, as certain as it was."""
    return Answer(answer.value, lower, upper, engine, answer.certified)
