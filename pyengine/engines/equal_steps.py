"""Equal Gaussian steps on Poisson samples: few floats are answered without choosing an engine.

One call of the C core answers each from noise, rate and number of steps.  Longer arrays, and
questions that the call does not answer, go to the engine of the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyengine._core import ffi
from pyengine.engines.answers import (
    WANTED,
    Answer,
    FloatArray,
    Found,
    Judged,
    LawQuestion,
    Questions,
    names,
)
from pyengine.engines.certified import WIDEST
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.plan import PLAN, FloatPlan, settings
from pyengine.mechanisms.dp_sgd import equal_gaussian_steps

__all__ = [
    "FEW",
    "ORDERS",
    "EqualQuestions",
    "questions_of_run",
    "run_settings",
]

FEW = 8  # size of arrays up to which one call a float is quicker
LEAST_UPPER = 1e-69  # smaller upper bounds are left to arrays, for which sector laws may be closer
ORDERS = {"add": (False,), "remove": (True,), "add_remove": (False, True)}  # whether A has it
METHODS = ("auto", "certified")


SETTINGS = settings((WIDEST, WIDEST))


def run_settings() -> Any:
    """A new C plan with the default settings."""
    return ffi.new(PLAN, SETTINGS[0])


def questions_of_run(
    mechanism: Any, adjacency: Any, method: Any, otherwise: Callable[[str | None], Questions]
) -> EqualQuestions | None:
    """Questions on equal steps; None for arguments that the registry has to look at.

    ``otherwise`` makes the registry's questions with narrow bounds of one error, or of both.
    """
    run = equal_gaussian_steps(mechanism)
    if run is None or adjacency not in ORDERS or method not in METHODS:
        return None
    noise, rate, steps = run
    first, *others = (
        GaussianSide(GaussianPair((noise,), (rate,), (steps,), order))
        for order in ORDERS[adjacency]
    )
    plan = FloatPlan(first, others[0] if others else None, run_settings(), proven=True)
    return EqualQuestions(plan, otherwise)


class EqualQuestions(Questions):
    """Questions on equal steps: few floats by a plan, all else by the registry's engine."""

    is_light = True

    def __init__(self, plan: FloatPlan, otherwise: Callable[[str | None], Questions]) -> None:
        self.plan, self._make = plan, otherwise
        self._others: dict[str | None, Questions] = {}

    def others(self, name: str = "") -> Questions:
        """Questions by the registry's engine for a public function, made on first use.

        No name asks for narrow bounds of both errors.
        """
        wanted = WANTED.get(name)
        if wanted not in self._others:
            self._others[wanted] = self._make(wanted)
        return self._others[wanted]

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        return self.plan.one(name, x) or self.others(name).answer(name, np.array([x])).first()

    def answer(self, name: str, x: FloatArray) -> Answer:
        """Values of a public function."""
        return self._few(name, x) or self.others(name).answer(name, x)

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds."""
        few = self._few(name, x)
        return self.others(name).values(name, x) if few is None else few.value

    def _few(self, name: str, x: FloatArray) -> Answer | None:
        """Few values, with the same bits as the others'; None unless the plan answers all."""
        if not 0 < x.size <= FEW:
            return None
        rows = []
        for each in x.tolist():
            found = self.plan.one(name, each)
            if found is None or not found[2] >= LEAST_UPPER:
                return None
            rows.append(found[:3])
        value, lower, upper = np.array(rows).T.copy()
        return Answer(value, lower, upper, names("certified", x.size), True)

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The others' answer."""
        return question(self.others(), x)
