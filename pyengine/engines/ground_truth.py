"""The reference as an engine: arbitrary-precision values rounded to doubles, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pyengine.engines.answers import Answer, FloatArray, Found, LawQuestion, Questions
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import ThreatModel

if TYPE_CHECKING:
    from mpmath import mpf

    from pyengine.reference import Value

__all__ = ["GroundTruth"]

DIGITS = 20
UNPROVEN = "reference, error estimated"  # engine's name for values without a proof


class GroundTruth(Questions):
    """Questions on a mechanism, each answered to 20 digits and rounded."""

    def __init__(self, mechanism: Mechanism, adjacency: str, threat_model: ThreatModel) -> None:
        self.mechanism, self.adjacency = mechanism, adjacency
        self.threat_model = threat_model

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """Values by the functions of `pyengine.reference` that belong to the question."""
        from pyengine import reference

        return question.made(*(self._ask(getattr(reference, name), x) for name in question.public))

    def _ask(self, question: Callable[..., Value], arguments: FloatArray) -> Answer:
        values = [
            question(
                self.mechanism,
                float(x),
                adjacency=self.adjacency,
                threat_model=self.threat_model,
                digits=DIGITS,
            )
            for x in arguments
        ]
        return Answer(
            np.array([float(v) for v in values]),
            np.array([_below(v.lower) for v in values]),
            np.array([-_below(-v.upper) for v in values]),
            np.array(["reference" if v.certified else UNPROVEN for v in values]),
            np.array([v.certified for v in values], dtype=np.bool_),
        )


def _below(number: mpf) -> float:
    """Return a double not above a number, at most one double below the largest such."""
    near = float(number)
    return near if near <= number else math.nextafter(near, -math.inf)
