"""What holds for all engines: answers joined, and questions made of other questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import (
    TRADE_OFF,
    Answer,
    ErrorCurve,
    FloatArray,
    Found,
    Judged,
    LawQuestion,
    Questions,
    Wrapped,
    complement_above,
    each,
)
from pyengine.errors import AccuracyError

__all__ = [
    "Between",
    "Dominated",
    "NothingReleased",
    "Substitution",
    "Unproven",
    "larger",
    "smaller",
    "taken",
]

SHARE = 1.0 / 3.0  # of the bracket that is due to the law below, which loses half of what is gained


class NothingReleased(Questions):
    """Questions on a mechanism that releases nothing about the record."""

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """β = 1 - α and γ = α."""
        return ErrorCurve.trivial(alpha)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ = 0."""
        return Answer.exact(np.zeros(epsilon.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """ε = 0."""
        return Answer.exact(np.zeros(delta.size))


def larger(first: Answer, second: Answer) -> Answer:
    """Return the larger of two answers to one question, entry by entry."""
    return Answer(
        np.maximum(first.value, second.value),
        np.maximum(first.lower, second.lower),
        np.maximum(first.upper, second.upper),
        np.where(second.value > first.value, second.engine, first.engine),
        first.certified & second.certified,
    )


def taken(found: Found, where: npt.NDArray[np.bool_]) -> Found:
    """Return the entries of a mask."""
    if isinstance(found, ErrorCurve):
        slopes = found.c[where] if found.c.size else found.c
        return ErrorCurve(taken(found.beta, where), taken(found.gamma, where), slopes)
    return Answer(
        found.value[where],
        found.lower[where],
        found.upper[where],
        found.engine[where],
        found.certified[where],
    )


def smaller(first: Answer, second: Answer) -> Answer:
    """Return the smaller of two answers to one question, entry by entry."""
    return Answer(
        np.minimum(first.value, second.value),
        np.minimum(first.lower, second.lower),
        np.minimum(first.upper, second.upper),
        np.where(second.value < first.value, second.engine, first.engine),
        first.certified & second.certified,
    )


class Unproven(Wrapped):
    """Questions whose bounds hold if the masses of the steps err by no more than is estimated.

    Parameters
    ----------
    asked : Questions
        The engine's own; nothing that they answer is called proven.
    """

    def __init__(self, asked: Questions) -> None:
        self._asked = asked

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """What the engine answers."""
        return each(_estimated, question(self._asked, x))

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds."""
        return self._asked.values(name, x)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        return *self._asked.one(name, x)[:3], False


def _estimated(found: Sequence[Answer], _: bool) -> Answer:
    found[0].certified[:] = False
    return found[0]


class Between(Wrapped):
    """Questions on a law that two other laws enclose.

    Parameters
    ----------
    below, above : Questions
        Questions on a less and on a more informative law.
    """

    def __init__(self, below: Questions, above: Questions) -> None:
        self._below, self._above = below, above

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """From the lower bounds of one answer and the upper ones of the other."""
        return each(_between, question(self._above, x), question(self._below, x))


def _between(found: Sequence[Answer], falls: bool) -> Answer:
    small, large = found if falls else found[::-1]
    lower, upper = small.lower, large.upper
    with np.errstate(invalid="ignore"):
        value = np.where(upper < np.inf, lower + SHARE * (upper - lower), upper)
    # what an engine gives a value for without a bracket has that value still
    same = (small.value == large.value) & (lower <= small.value) & (small.value <= upper)
    value = np.where(same, small.value, value)
    certified = small.certified & large.certified
    return Answer(value, lower, upper, large.engine, certified)


class Substitution(Wrapped):
    """Questions on a substituted record where only bounds are known: values are the safe ones.

    Parameters
    ----------
    dominating : Questions
        A pair that dominates all pairs of data sets: its answers are on the safe side.
    attained : list of Questions
        Pairs of data sets, each of which bounds the truth from the other side.
    """

    def __init__(self, dominating: Questions, attained: list[Questions]) -> None:
        self._dominating, self._attained = dominating, attained

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """What the dominating pair has, bounded from the other side by the attained ones."""
        others = [question(pair, x) for pair in self._attained]
        return each(_safe, question(self._dominating, x), *others)


def _safe(found: Sequence[Answer], falls: bool) -> Answer:
    first, *others = found
    proven = _all_certified(found)
    if falls:
        upper = np.min([other.upper for other in others], axis=0)
        upper = np.maximum(upper, first.lower)
        return Answer(first.lower, first.lower, upper, first.engine, proven)
    lower = np.max([other.lower for other in others], axis=0)
    return Answer(first.upper, np.minimum(lower, first.upper), first.upper, first.engine, proven)


def _all_certified(found: Sequence[Answer]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.all([answer.certified for answer in found], axis=0))


class Dominated(Wrapped):
    """Questions whose values are those of a mechanism that dominates.

    Parameters
    ----------
    above : Questions
        Of the mechanism that dominates.
    below : sequence of callable
        Make questions on mechanisms that are dominated; those that no engine answers are left out.
    name : str
        The engine.
    """

    def __init__(
        self, above: Questions, below: Sequence[Callable[[], Questions]], name: str
    ) -> None:
        self._above, self._below, self._name = above, below, name

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """β from below, and everything else from above."""
        others = []
        for make in self._below:
            with suppress(AccuracyError):
                others.append(question(make(), x))
        least = x if question is TRADE_OFF else np.zeros(x.size)

        def bounded(found: Sequence[Answer], falls: bool) -> Answer:
            sure, *others = found
            lower, upper = sure.lower, sure.upper
            if falls:
                highest = [complement_above(x), *(other.upper for other in others)]
                upper = np.maximum(np.min(highest, axis=0), sure.value)
            else:
                lowest = np.max([least, *(other.lower for other in others)], axis=0)
                lower = np.minimum(lowest, sure.value)
            engine = np.full_like(sure.engine, self._name)
            return Answer(sure.value, lower, upper, engine, _all_certified(found))

        return each(bounded, question(self._above, x), *others)
