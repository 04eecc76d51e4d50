"""Which compositions lines of analytic densities serve, decided before any question."""

from __future__ import annotations

from fractions import Fraction

import pyengine.engines.analytic_lines.step  # noqa: F401 lines find the steps there
from pyengine.analytic import log, number, pi, z
from pyengine.caches import kept
from pyengine.engines.analytic_lines.order import AnalyticOrder
from pyengine.engines.analytic_lines.shape import AnalyticShape
from pyengine.engines.vertical_lines.build import is_served
from pyengine.errors import AccuracyError
from pyengine.laws.analytic import FAINTEST, NOTHING, AnalyticLaw
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.gaussian import GaussianLaw

__all__ = ["analytic_order"]

MOST_KINDS = 64
LEAST = 2  # steps
# from both means, beyond which a Gaussian step has next to nothing: of the usual law, and far out
GAUSSIAN_ENDS = 16.0, 41.0


def analytic_order(laws: list[tuple[StepLaw, int]], *, far: bool = False) -> AnalyticOrder | None:
    """Return one order of a composition of analytic densities that lines serve; None of others.

    One whose laws end ``far`` out takes many times as long to make.
    """
    return _order(tuple(laws), far)


@kept(64)
def _order(laws: tuple[tuple[StepLaw, int], ...], far: bool) -> AnalyticOrder | None:
    if len(laws) > MOST_KINDS or sum(number for _, number in laws) < LEAST:
        return None
    kinds, exchanged = [], set()
    for law, steps in laws:
        found = _shape_of(law, far)
        if found is None:
            return None
        kinds.append((found[0], steps))
        exchanged.add(found[1])
    if len(exchanged) > 1:
        return None
    try:
        is_known = is_served(tuple(kinds))
    except AccuracyError:  # not analytic, or known too badly: the lattice asks no such thing
        return None
    return AnalyticOrder(tuple(kinds), exchanged == {True}) if is_known else None


def _shape_of(law: StepLaw, far: bool) -> tuple[AnalyticShape, bool] | None:
    """The shape of a law, and whether the law is that of the exchanged pair."""
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
    if isinstance(law, GaussianLaw) and law.low is not None:
        return _gaussian(law.noise_multiplier, law.low, probability, far), is_reversed
    return None


@kept(16)
def _made(*numbers: object) -> AnalyticShape:
    """One shape for all who ask, which keeps what it has found."""
    return AnalyticShape(*numbers)  # type: ignore[arg-type]


def _gaussian(noise: float, low: float, probability: Fraction, far: bool) -> AnalyticShape:
    """Gaussian noise in units of itself."""
    shift = 1 / (Fraction(noise) + Fraction(low))
    log_p = -z * z / 2 - log(2 * pi) / 2
    reach, faintest = GAUSSIAN_ENDS[far], FAINTEST if far else NOTHING
    ends = -reach, float(shift) + reach
    return _made(log_p, log_p.at(z - number(shift)), ends, probability, faintest)
