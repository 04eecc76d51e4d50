"""Questions whose answers are refused if their bounds are wider than a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import (
    EPSILON,
    Answer,
    Found,
    LawQuestion,
    Questions,
)
from pyengine.engines.refusals import LOOSEST, too_wide
from pyengine.errors import AccuracyError

__all__ = ["WithinTolerance"]

FloatArray = npt.NDArray[np.float64]
BELOW_DOUBLES = 1e-300  # bounds narrower than this are accepted
CLOSE = 64.0  # width over tolerance up to which narrower bounds of ε are tried


class WithinTolerance(Questions):
    """Questions of an engine, held to a tolerance.

    The tolerance is the largest relative width of the bounds: of β and γ, or of the one ``wanted``;
    for ε, that of δ between its bounds.  Engines measure ε on scales of their own, so if its bounds
    are slightly too wide, narrower ones are tried before a refusal.
    """

    def __init__(
        self,
        make: Callable[[float], Questions],
        tolerance: float,
        wanted: str | None,
        *,
        only_bounds: bool = False,
    ) -> None:
        self._make, self._asked = make, make(tolerance)
        self._tolerance, self._wanted, self._only_bounds = tolerance, wanted, only_bounds

    @property
    def is_estimated(self) -> bool:
        """Whether all answers inside the domain are estimates, from the prover as well."""
        return self._asked.is_estimated

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The engine's answer, if its bounds are narrow enough."""
        found = question(self._asked, x)
        for name, answer in found.parts().items():
            if not name or self._wanted in (None, name):
                widths = self._closer(answer, x) if question is EPSILON else _widths(answer)
                self._judge(answer, widths)
        return found

    def _closer(self, found: Answer, delta: FloatArray) -> FloatArray:
        """Widths in δ of the bounds of ε, which are narrowed first if slightly too wide."""
        width = self._widths_in_delta(self._asked, found, delta)
        close = (width > self._tolerance) & (width <= CLOSE * self._tolerance)
        if close.any() and not self._only_bounds:
            narrower = self._make(0.5 * self._tolerance**2 / float(width[close].max()))
            with suppress(AccuracyError):
                again = narrower.epsilon(delta[close])
                found.put(close, again)
                width[close] = self._widths_in_delta(narrower, again, delta[close])
        return width

    def _widths_in_delta(self, asked: Questions, found: Answer, delta: FloatArray) -> FloatArray:
        """Change of the profile between the bounds of ε, relative to δ; for δ = 0, widths of ε."""
        width = _widths(found)
        some = (width > 0.0) & (delta > 0.0) & np.isfinite(found.upper)
        if some.any():
            places = found.lower[some], found.upper[some]
            try:
                ends = [asked.profile(place).value for place in places]
            except AccuracyError:  # the profile is refused, but the question is about ε
                left, right = map(self._make(LOOSEST).profile, places)
                ends = [left.upper, right.lower]
            width[some] = np.subtract(*ends) / delta[some]
        return width

    def _judge(self, answer: Answer, width: FloatArray) -> None:
        wide = width > self._tolerance
        if wide.any():
            at = int(np.argmax(wide))
            raise too_wide(
                f"method={str(answer.engine[at])!r}",
                float(answer.lower[at]),
                float(answer.upper[at]),
                float(width[at]),
                only_bounds=self._only_bounds,
            )


def _widths(answer: Answer) -> FloatArray:
    """Relative widths of bounds; 0 for widths up to `BELOW_DOUBLES`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        width = answer.upper - answer.lower
        return np.where(width > BELOW_DOUBLES, width / answer.value, 0.0)
