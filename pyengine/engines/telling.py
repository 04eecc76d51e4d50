"""Steps of so little noise that the record shows for certain or not at all, without composing them.

Laws of such losses are so wide that a composition takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable

from pyengine._support.caches import cached_property
from pyengine.engines.answers import ErrorCurve, PairQuestions
from pyengine.engines.certified import BoolArray, CertifiedPair
from pyengine.engines.curves import taken
from pyengine.engines.functionals import FloatArray
from pyengine.engines.lattice.uncomposed import Uncomposed, reverse
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.row_sides import RowSide
from pyengine.laws.base import PoissonSampledLaw, StepLaw
from pyengine.laws.gaussian import GaussianLaw

__all__ = ["TellingPair"]

CLOSE = 2e-11  # relative width of bounds that are taken


class TellingPair(CertifiedPair):
    """Questions on one ordered pair, of which some levels are known without a composition.

    Parameters
    ----------
    pair : GaussianPair
        The ordered pair.
    side, tolerance, otherwise, proven
        As of `CertifiedPair`.
    """

    knows_levels = False

    def __init__(
        self,
        pair: GaussianPair,
        side: RowSide,
        tolerance: float | None,
        otherwise: Callable[[], PairQuestions] | None,
        *,
        proven: bool,
    ) -> None:
        super().__init__(side, side, tolerance, otherwise, proven=proven)
        self._pair = pair

    @cached_property
    def _uncomposed(self) -> Uncomposed:
        return Uncomposed(_laws_of(self._pair), CLOSE, None)

    def proven(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """T(A, B), and where its bounds are too wide."""
        curve, rest = self._uncomposed.trade_off(alpha)
        for answer in (curve.beta, curve.gamma):
            answer.certified &= self.is_proven
        weak = rest.copy()
        if rest.any():
            found, weak[rest] = super().proven(alpha[rest])
            curve.beta.put(rest, found.beta)
            curve.gamma.put(rest, found.gamma)
            curve.c[rest] = found.c
        return curve, weak

    def told_apart(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """Where β is next to nothing, which makes it that of every hull with this curve."""
        curve, rest = self._uncomposed.trade_off(alpha)
        where = ~rest & (curve.beta.lower == 0.0) & (alpha < 1.0) & (alpha > 0.0)
        found = ErrorCurve(taken(curve.beta, where), taken(curve.gamma, where), curve.c[where])
        for answer in (found.beta, found.gamma):
            answer.certified &= self.is_proven
        return found, where


def _laws_of(pair: GaussianPair) -> tuple[tuple[StepLaw, int], ...]:
    """The same pair as laws of steps."""
    laws = []
    for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True):
        plain = GaussianLaw(noise)
        law = plain if probability == 1.0 else PoissonSampledLaw(plain, probability)
        laws.append((reverse(law) if pair.reversed else law, steps))
    return tuple(laws)
