"""Answers whose bounds are held to a tolerance, and refused where they are wider."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, Questions
from pyengine.errors import AccuracyError

__all__ = ["WithinTolerance", "crossed", "too_wide"]

FloatArray = npt.NDArray[np.float64]
BELOW_DOUBLES = 1e-300  # what is less than this has no relative width to speak of


def too_wide(what: str, value: float, lower: float, upper: float) -> AccuracyError:
    """Return the refusal of an answer whose bounds are wider than asked, with what would help."""
    width = (upper - lower) / value if 0.0 < value < math.inf else math.inf
    advice = (
        f"tolerance={1.1 * width:.1g} or more gives this answer"
        if width < 1.0
        else "method='reference' answers in arbitrary precision"
    )
    return AccuracyError(
        f"the bounds {lower!r} and {upper!r} of {what} are wider than asked; {advice}"
    )


def crossed(what: str, lower: float, upper: float) -> AccuracyError:
    """Return the refusal of an answer whose bounds no number lies between: a defect shows."""
    return AccuracyError(
        f"the bounds {lower!r} and {upper!r} of {what} have no number between them, so one of them "
        "is wrong; method='reference' answers in arbitrary precision"
    )


class WithinTolerance(Questions):
    """Questions of an engine that bounds all it can, held to a tolerance.

    Parameters
    ----------
    asked : Questions
        The engine's own.
    tolerance : float
        Largest relative width of the bounds; for ε that of δ at it.
    wanted : {"beta", "gamma"} or None
        Which error of a trade-off function is to have that width; None for both.
    """

    def __init__(self, asked: Questions, tolerance: float, wanted: str | None) -> None:
        self._asked, self._tolerance, self._wanted = asked, tolerance, wanted

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        beta, gamma = self._asked.trade_off(alpha)
        if self._wanted != "gamma":
            self._judge(beta, self._is_wide(beta))
        if self._wanted != "beta":
            self._judge(gamma, self._is_wide(gamma))
        return beta, gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        found = self._asked.profile(epsilon)
        self._judge(found, self._is_wide(found))
        return found

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        found = self._asked.epsilon(delta)
        wide = self._is_wide(found)
        if wide.any():
            most = self._asked.profile(found.lower[wide]).upper
            least = self._asked.profile(found.upper[wide]).lower
            apart = most - least > self._tolerance * delta[wide]
            wide[wide] = apart | np.isinf(found.upper[wide])
        self._judge(found, wide)
        return found

    def _is_wide(self, answer: Answer) -> npt.NDArray[np.bool_]:
        apart = answer.upper > answer.lower
        width = np.zeros(answer.value.size)
        width[apart] = answer.upper[apart] - answer.lower[apart]
        return apart & (width > self._tolerance * answer.value) & (width > BELOW_DOUBLES)

    def _judge(self, answer: Answer, wide: npt.NDArray[np.bool_]) -> None:
        if wide.any():
            at = int(np.argmax(wide))
            triple = (float(x[at]) for x in (answer.value, answer.lower, answer.upper))
            raise too_wide(f"method={str(answer.engine[at])!r}", *triple)
