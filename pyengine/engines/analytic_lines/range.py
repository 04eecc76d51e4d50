"""Shapes of analytic densities, plain or on Poisson samples, for lines."""

from __future__ import annotations

from fractions import Fraction

import pyengine.engines.analytic_lines.step  # noqa: F401 lines find the steps there
from pyengine._support.caches import kept
from pyengine.engines.analytic_lines.shape import AnalyticShape
from pyengine.laws.analytic import FAINTEST, NOTHING, AnalyticLaw
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw

__all__ = ["analytic_shape"]


def analytic_shape(law: StepLaw, far: bool) -> tuple[AnalyticShape, bool] | None:
    """Return the shape of a law, and whether the law is that of the exchanged pair."""
    probability, is_reversed = Fraction(1), False
    while isinstance(law, ReversedLaw | PoissonSampledLaw):
        if isinstance(law, PoissonSampledLaw):
            if isinstance(law.law, ReversedLaw):  # a sample of the exchanged pair is another one
                return None
            probability *= Fraction(law.probability)
        else:
            is_reversed = not is_reversed
        law = law.law
    if isinstance(law, AnalyticLaw):
        step = law.step
        ends, faintest = (law.far_ends, FAINTEST) if far else (law.ends, NOTHING)
        return _made(step.log_p, step.log_q, ends, probability, faintest), is_reversed
    return None


@kept(16)
def _made(*numbers: object) -> AnalyticShape:
    """One shape for all who ask, which keeps what it has found."""
    return AnalyticShape(*numbers)  # type: ignore[arg-type]
