"""The `AnalyticShape` of a law, plain or on Poisson samples."""

from __future__ import annotations

from pyengine._support.caches import kept
from pyengine.engines.analytic_lines.shape import AnalyticShape
from pyengine.laws.analytic import FAINTEST, NOTHING
from pyengine.laws.base import StepLaw

__all__ = ["analytic_shape"]


def analytic_shape(law: StepLaw, far: bool) -> tuple[AnalyticShape, bool] | None:
    """Return the shape of a law, and whether the pair is reversed; None if it is not analytic.

    With ``far``, it is truncated where e^`FAINTEST` lies beyond the ends, else e^`NOTHING`.
    """
    found = law.analytic()
    if found is None:
        return None
    law_on_all, probability, is_reversed = found
    step = law_on_all.step
    ends, faintest = (law_on_all.far_ends, FAINTEST) if far else (law_on_all.ends, NOTHING)
    return _made(step.log_p, step.log_q, ends, probability, faintest), is_reversed


@kept(16)
def _made(*numbers: object) -> AnalyticShape:
    """The cached shape, which keeps its panels and nodes."""
    return AnalyticShape(*numbers)  # type: ignore[arg-type]
