"""The other steps beside few losses, where they need no lines: closed forms, and sampled Gaussians.

`WeightedOrder` sums their masses and profiles over the few losses (docs/theory/line, Lemma 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.exact import closed_law
from pyengine.engines.exact.levels import ClosedLaw
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE, WIDTH
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.row_sides import CLOSE, LineSide
from pyengine.engines.sampled import SampledSteps, sampled_steps
from pyengine.engines.sector import SectorLaws
from pyengine.engines.smooth import SmoothSide
from pyengine.engines.spectral import SOON
from pyengine.engines.vertical_lines.ordered import Inner, between, profile_from
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = [
    "ClosedOrder",
    "PiecesOrder",
    "RowsOrder",
    "closed_order",
    "pieces_order",
    "rows_order",
]

FloatArray = npt.NDArray[np.float64]
Laws = tuple[tuple[StepLaw, int], ...]

TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)
FALLING = (A_ABOVE, B_ABOVE)
FAILED_WIDTH = 0.5  # bounds farther apart are those of a row that failed
ROUNDED = 4.0 * UNIT  # relative error of expm1


class ClosedOrder(Inner):
    """One order of steps whose sum has its masses in closed form.

    Parameters
    ----------
    law : ClosedLaw
        The steps.
    """

    def __init__(self, law: ClosedLaw) -> None:
        self._law = law

    @cached_property
    def jumps(self) -> FloatArray:
        """The ends of the support, where the atoms of bounded losses are."""
        return np.unique(np.array(self._law.support()))

    def lowest(self) -> tuple[float, float]:
        """Bounds of the smallest loss."""
        return self._law.lowest()

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        found = self._law.tails(c)
        return [(mass, mass * found.error) for mass in found[:4]]

    def shift(self, c: FloatArray) -> FloatArray:
        """Bounds of the errors of thresholds."""
        return self._law.shift(c)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile, and bounds of its absolute errors."""
        found = self._law.profile(epsilon)
        return found.value, found.error


def closed_order(laws: Laws) -> ClosedOrder | None:
    """Return the order of one step, or of steps whose sum has a closed form; None for others."""
    if not all(law.has_cells and law.infinite() == (0.0, 0.0) for law, _ in laws):
        return None
    found = closed_law(laws)
    return None if found is None else ClosedOrder(found)


class RowsOrder(Inner):
    """One order of sampled Gaussian steps, by the rows of the engine for these alone.

    Parameters
    ----------
    steps : SampledSteps
        The steps.
    """

    has_atoms = False
    jumps = np.zeros(0)
    stages = 3

    def __init__(self, steps: SampledSteps) -> None:
        self._side: LineSide = SmoothSide(steps.laws)
        if steps.pair is not None:
            self._side = GaussianSide(steps.pair)
        # without exchange the loss is at least -end: an estimate of end, and bounds
        self._end, self._is_reversed = steps.end, steps.is_reversed

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss; -inf where there is none."""
        if self._is_reversed:
            return -math.inf, -math.inf
        return -self._end[2], -self._end[1]

    def _beyond(self, c: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether thresholds are below all losses or, in the reversed order, above them."""
        return c > self._end[2] if self._is_reversed else c < -self._end[2]

    @cached_property
    def _middle(self) -> float:
        """About the median of the loss under A; 0 where none is found."""
        found = float(self._threshold(A_ABOVE, fn.log([0.5]))[0])
        return found if math.isfinite(found) else 0.0

    def _threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        return self._side.threshold(functional, log_target)

    def _rough_rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Rows of estimates at thresholds, as bounds."""
        return LogBounds.of_rows(c, self._side.prover().at(functional, c))

    def _rows(self, functional: int, c: FloatArray, stage: int) -> LogBounds:
        """Proven rows: those that are quick, or in the last stage the best."""
        lines = self._side.prover()
        is_last = stage == self.stages - 1
        table = (
            self._side.table(functional, c) if is_last else lines.certify(functional, c, lines=SOON)
        )
        return LogBounds.of_rows(c, table)

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        return self.masses_at(self.stages - 1, c)

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The same: in stage 0 by Chernoff bounds, then by rows."""

        def rows(functional: int, c: FloatArray) -> LogBounds:
            return self._rows(functional, c, stage) if stage else self._chernoff(c)

        return [between(*x) for x in self._tails(c, rows)]

    def _chernoff(self, c: FloatArray) -> LogBounds:
        return LogBounds.of_rows(c, self._side.prover().chernoff(c))

    def _tails(self, c: FloatArray, rows: Callable[[int, FloatArray], LogBounds]) -> FloatArray:
        """Lower and upper bounds of the four masses, from rows of A's smaller tail at each c."""
        parts = np.empty((len(TAILS), 2, c.size))
        is_above = c >= self._middle
        for functional, at in ((A_ABOVE, is_above), (A_BELOW, ~is_above)):
            if at.any():
                found = rows(functional, c[at])
                for part, which in zip(parts, TAILS, strict=True):
                    part[0, at], part[1, at] = found.values(which)
        for part, which in zip(parts, TAILS, strict=True):
            part[:, self._beyond(c)] = (which in FALLING) != self._is_reversed
        return parts

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile, and bounds of its absolute errors."""
        return self.profile_at(self.stages - 1, epsilon)

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same: in stage 0 by Chernoff bounds, then by rows."""
        if stage == 0:
            return profile_from(epsilon, np.array([sum(x) for x in self.masses_at(0, -epsilon)]))
        return between(*self._profiles(-epsilon, self._rows(PROFILE, -epsilon, stage)))

    def _profiles(self, c: FloatArray, rows: LogBounds) -> FloatArray:
        found = np.array(rows.values(PROFILE))
        beyond = self._beyond(c)
        whole = -fn.expm1(-c[beyond]) if self._is_reversed else np.zeros(beyond.sum())
        off = ROUNDED * self._is_reversed
        found[0, beyond], found[1, beyond] = whole * (1.0 - off), whole * (1.0 + off)
        return found

    def rough_masses(self, c: FloatArray, weight: FloatArray, far: bool = True) -> FloatArray:
        """Estimates of the masses; 0 or 1 where rows fail, in the far tails, or NaN."""
        del weight
        low, high = self._tails(c, self._rough_rows).transpose(1, 0, 2)
        falls = np.array([which in FALLING for which in TAILS])[:, None]
        beyond = np.where(falls != (c >= self._middle), 1.0, 0.0) if far else np.nan
        return np.where(high - low > FAILED_WIDTH, beyond, 0.5 * (low + high))

    def rough_profile(
        self, epsilon: FloatArray, weight: FloatArray, far: bool = True
    ) -> FloatArray:
        """Estimates of the profile; 0 or 1 - e^ε where rows fail, in the far tails, or NaN."""
        del weight
        low, high = self._profiles(-epsilon, self._rough_rows(PROFILE, -epsilon))
        whole = -fn.expm1(np.minimum(epsilon, 0.0))
        beyond = np.where(-epsilon >= self._middle, whole, 0.0) if far else np.nan
        return np.where(high - low > FAILED_WIDTH, beyond, 0.5 * (low + high))


class PiecesOrder(RowsOrder):
    """One order of few or rare sampled Gaussian steps, also of groups, by sector laws.

    Parameters
    ----------
    steps : SampledSteps
        The steps.
    laws : SectorLaws
        Their sector laws, of several depths.
    """

    def __init__(self, steps: SampledSteps, laws: SectorLaws) -> None:
        super().__init__(steps)
        self._laws = laws
        self.stages = 1 + laws.depths

    def _threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        return self._laws.threshold(functional, log_target)

    def _rough_rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Rows of the law with the nearest ends."""
        return self._rows(functional, c, 1)

    def _rows(self, functional: int, c: FloatArray, stage: int) -> LogBounds:
        """Rows of the first ``stage`` laws, each truncated farther out."""
        table = np.full((c.size, WIDTH), np.nan)
        self._laws.improve(functional, c, table, CLOSE, stage)
        return LogBounds.of_rows(c, table)


def pieces_order(laws: Laws) -> PiecesOrder | None:
    """Return the order of sampled Gaussian steps with cheap sector laws; None for others."""
    known = sampled_steps(laws)
    if known is None or known.others:
        return None
    made = SectorLaws(known.kinds, known.is_reversed)
    return PiecesOrder(known, made) if made.serves and not made.are_costly else None


def rows_order(laws: Laws) -> RowsOrder | None:
    """Return the order of any sampled Gaussian steps, by rows; None for others."""
    known = sampled_steps(laws, plain=True)
    return None if known is None or known.others else RowsOrder(known)
