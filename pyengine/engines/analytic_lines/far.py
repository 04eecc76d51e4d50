"""Tiny values of analytic densities, from a law that is truncated farther out.

The usual law is truncated where about e^-150 lies beyond, and proves no digits of values near that.
A law truncated where e^-800 lies beyond takes many times as long, so it is built on first use.
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

SMALLEST = 1e-300  # values below it need no digits
CLOSE = 1e-8  # relative width of bounds that are kept from the usual law


# Map: values next to the ends of analytic densities | test_analytic_far | theory/analytic_densities
class FarQuestions(Questions):
    """Questions on a law near its truncation: tiny values go to a law truncated farther out.

    Parameters
    ----------
    near : Questions
        Questions on the usual law.
    known : float
        Values below it may have no digits there, because of the truncation.
    tolerance : float or None
        Largest relative width of bounds.
    far : callable
        Makes questions on the law truncated farther out, and its ``known``; raises AccuracyError
        if no lines serve.
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
        """Answers of the usual law; tiny values from the law truncated farther out."""
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
                # a value of 0, beyond all losses, is accepted
                still = self._is_open(far, known, None if level is None else level[at])
                self._refuse(still & (far.value > 0.0), far, known)
                answer.put(at, _proven(far, answer.taken(at)))
        return found

    def _replace_epsilon(self, found: Answer, delta: FloatArray) -> None:
        """The same for ε."""
        faint = (delta > 0.0) & (delta < self._known) & self._is_rough(found)
        if faint.any():
            asked, known = self._far_questions()
            far, near = asked.epsilon(delta[faint]), found.taken(faint)
            self._refuse((delta[faint] < known) & self._is_rough(far), far, known)
            found.put(faint, _proven(far, near))

    def _is_rough(self, answer: Answer) -> BoolArray:
        """Whether bounds are too wide, or estimates."""
        return np.asarray((relative_width(answer) > self._widest) | ~answer.certified)

    def _is_open(self, answer: Answer, known: float, level: FloatArray | None = None) -> BoolArray:
        """Where the truncation is too large for proven digits."""
        small = is_small(answer, known, level) & (answer.upper > SMALLEST)
        return np.asarray(small & self._is_rough(answer))

    def _far_questions(self) -> tuple[Questions, float]:
        """Questions on the law truncated farther out, made once, and its ``known``."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _refuse(self, open_: BoolArray, far: Answer, known: float) -> None:
        """Raise where the law truncated farther out proves no digits either."""
        open_ = open_ & far.certified
        if open_.any():
            raise AccuracyError(
                f"values below {known:.2g} cannot be proven: the densities may have that much mass "
                "outside the range that is examined; method='lattice' estimates them"
            )


def _proven(far: Answer, near: Answer) -> Answer:
    """Values of the far law, in its bounds, or in those of ``near`` if only these are proven."""
    kept = near.certified & ~far.certified & np.isfinite(near.upper)
    lower, upper = np.where(kept, near.lower, far.lower), np.where(kept, near.upper, far.upper)
    engine = np.where(kept, near.engine, far.engine)
    return Answer(np.clip(far.value, lower, upper), lower, upper, engine, far.certified | kept)
