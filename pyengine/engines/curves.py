"""For all engines: answers combined, and questions made of other questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import (
    TRADE_OFF,
    Answer,
    FloatArray,
    Found,
    Joining,
    Judged,
    LawQuestion,
    Questions,
    complement_above,
)
from pyengine.errors import AccuracyError

__all__ = [
    "Dominated",
    "MadeOf",
    "NothingReleased",
    "Unproven",
    "larger",
    "smaller",
    "substituted",
]


class NothingReleased(Questions):
    """Questions on a mechanism that releases nothing about the record."""

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """β = 1 - α, γ = α, δ = 0 and ε = 0."""
        return question.nothing(x)


def larger(first: Answer, second: Answer) -> Answer:
    """Return the larger of two answers to one question, entry by entry."""
    return _entries(np.maximum, first, second)


def smaller(first: Answer, second: Answer) -> Answer:
    """Return the smaller of two answers to one question, entry by entry."""
    return _entries(np.minimum, first, second)


def _entries(pick: np.ufunc, first: Answer, second: Answer) -> Answer:
    value = pick(first.value, second.value)
    engine = np.where(value != first.value, second.engine, first.engine)
    lower, upper = pick(first.lower, second.lower), pick(first.upper, second.upper)
    return Answer(value, lower, upper, engine, first.certified & second.certified)


class MadeOf(Questions):
    """Questions whose answers ``make`` forms from those of others."""

    def __init__(self, make: Joining, first: Questions, *others: Questions) -> None:
        self._make, self._first, self._others = make, first, others

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The combination of all answers."""
        found = question(self._first, x)
        return found.each(self._make, *(question(other, x) for other in self._others))


class Unproven(MadeOf):
    """Questions whose bounds hold if the estimated errors of the steps' masses do: not proven."""

    def __init__(self, asked: Questions) -> None:
        super().__init__(_estimated, asked)

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds."""
        return self._first.values(name, x)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        return *self._first.one(name, x)[:3], False


def _estimated(found: Sequence[Answer], _: bool) -> Answer:
    found[0].certified[:] = False
    return found[0]


def substituted(dominating: Questions, attained: Sequence[Questions]) -> Questions:
    """Return questions on a substituted record where only bounds are known: the values are safe.

    ``dominating`` dominates all pairs of neighbouring data sets; pairs that are ``attained`` bound
    the truth from the other side.
    """
    return MadeOf(_safe, dominating, *attained)


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


class Dominated(Questions):
    """Questions whose values are those of a dominating mechanism.

    Parameters
    ----------
    above : Questions
        Questions on the dominating mechanism.
    below : sequence of callable
        Make questions on dominated mechanisms; those that refuse are left out.
    name : str
        Name of the engine in answers.
    own : callable, optional
        Makes questions on the mechanism itself; left out if they refuse.
    """

    def __init__(
        self,
        above: Questions,
        below: Sequence[Callable[[], Questions]],
        name: str,
        own: Callable[[], Questions] | None = None,
    ) -> None:
        self._above, self._name, self._itself = above, name, own
        self._below = below if own is None else [own, *below]

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """Safe values: the lower bound of β, and the upper bounds of γ, δ and ε."""
        others = []
        both = False
        for make in self._below:
            with suppress(AccuracyError):
                others.append(question(make(), x))
                both |= make is self._itself
        least = x if question is TRADE_OFF else np.zeros(x.size)

        def bounded(found: Sequence[Answer], falls: bool) -> Answer:
            sure, *others = found
            value, lower, upper = sure.value, sure.lower, sure.upper
            if falls:
                if both:
                    value, lower = (np.maximum(end, others[0].lower) for end in (value, lower))
                highest = [complement_above(x), *(other.upper for other in others)]
                upper = np.maximum(np.min(highest, axis=0), value)
            else:
                if both:
                    value, upper = (np.minimum(end, others[0].upper) for end in (value, upper))
                lowest = np.max([least, *(other.lower for other in others)], axis=0)
                lower = np.minimum(lowest, value)
            engine = np.full_like(sure.engine, self._name)
            return Answer(value, lower, upper, engine, _all_certified(found))

        return question(self._above, x).each(bounded, *others)
