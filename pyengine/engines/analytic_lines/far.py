"""Values next to what a law leaves beyond its ends, asked of a law that ends further out.

A law of analytic densities ends where next to nothing lies beyond, and knows no digit of what is
smaller than that.  One that ends far out takes many times as long to make, and is made where it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import (
    EPSILON,
    Answer,
    Found,
    LawQuestion,
    Questions,
)
from pyengine.engines.certified import relative_width
from pyengine.engines.vertical_lines.questions import is_small
from pyengine.errors import AccuracyError

__all__ = ["FarQuestions"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SMALLEST = 1e-300  # of what is smaller no digit is asked for
CLOSE = 1e-8  # relative width of bounds that are close enough


# Map: values next to the ends of analytic densities | test_analytic_far | theory/analytic_densities
class FarQuestions(Questions):
    """Questions of which a law that ends far out answers what another one does not know.

    Parameters
    ----------
    near : Questions
        What the usual law says.
    known : float
        What is smaller is known to be small alone.
    tolerance : float or None
        Largest relative width of the bounds that was asked for.
    far : callable
        Makes questions on the law that ends far out, with what is known there to be small alone;
        AccuracyError where there are no lines for it.
    """

    is_light = True

    def __init__(
        self,
        near: Questions,
        known: float,
        tolerance: float | None,
        far: Callable[[], tuple[Questions, float]],
    ) -> None:
        self._near, self._known, self._make = near, known, far
        self._widest = CLOSE if tolerance is None else min(tolerance, CLOSE)
        self._made: tuple[Questions, float] | None = None

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """What the usual law says, and where that is too little the one that ends far out."""
        found = question(self._near, x)
        for name, answer in found.parts().items():
            if question is EPSILON:
                self._replace_epsilon(answer, x)
                continue
            at = (x > 0.0) & (x < 1.0) if name else np.isfinite(x)
            level = x if name == "gamma" else None
            at &= self._is_open(answer, self._known, level)
            if at.any():
                asked, known = self._far_questions()
                far = question(asked, x[at]).parts()[name]
                # beyond all losses 0 is all there is to say
                still = self._is_open(far, known, None if level is None else level[at])
                self._refuse(still & (far.value > 0.0), far, known)
                answer.put(at, _proven(far, answer.taken(at)))
        return found

    def _replace_epsilon(self, found: Answer, delta: FloatArray) -> None:
        """The same of ε."""
        faint = (delta > 0.0) & (delta < self._known) & self._is_rough(found)
        if faint.any():
            asked, known = self._far_questions()
            far, near = asked.epsilon(delta[faint]), found.taken(faint)
            self._refuse((delta[faint] < known) & self._is_rough(far), far, known)
            found.put(faint, _proven(far, near))

    def _is_rough(self, answer: Answer) -> BoolArray:
        """Whether bounds are far apart, or estimates."""
        return np.asarray((relative_width(answer) > self._widest) | ~answer.certified)

    def _is_open(self, answer: Answer, known: float, level: FloatArray | None = None) -> BoolArray:
        """Of which values no digit is proven because of what lies beyond the ends."""
        small = is_small(answer, known, level) & (answer.upper > SMALLEST)
        return np.asarray(small & self._is_rough(answer))

    def _far_questions(self) -> tuple[Questions, float]:
        """Questions on the law that ends far out, which is made once."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _refuse(self, open_: BoolArray, far: Answer, known: float) -> None:
        """Raise an error where a law that ends far out proves no digit either."""
        open_ = open_ & far.certified
        if open_.any():
            raise AccuracyError(
                f"values below {known:.2g} are not known, as the densities have so much where they "
                "are not looked at; method='lattice' estimates"
            )


def _proven(far: Answer, near: Answer) -> Answer:
    """What is proven, about values of the law that ends far out."""
    kept = near.certified & ~far.certified & np.isfinite(near.upper)
    lower, upper = np.where(kept, near.lower, far.lower), np.where(kept, near.upper, far.upper)
    engine = np.where(kept, near.engine, far.engine)
    return Answer(np.clip(far.value, lower, upper), lower, upper, engine, far.certified | kept)
