"""Search over rungs and finer and finer lattices until every bracket is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.plan import MOST_POINTS
from pyengine.engines.lattice.tail_sums import Bracket
from pyengine.engines.lattice.tilt_grid import TiltGrid
from pyengine.errors import AccuracyError

__all__ = ["Search"]

FloatArray = npt.NDArray[np.float64]

TRIES = 10  # lattices on a rung
FIRST_POINTS = 2**20  # most points of the first lattice tried
MOVES = 6  # most moves of a question to another rung
VANISHES = 1e-300  # upper bounds below it count as narrow
FINER = 0.8  # factor on the spacing that suffices if widths fall with its square
SPARE = 1.3  # tolerance that is advised, relative to the width of the present bracket
HOPELESS = 0.5  # relative width above which no tolerance is advised
BLIND_POINTS = 2**21  # about the most points that are tried next after a relative width above 1
# a lattice with more than 16 times as many points, and over `BLIND_POINTS`, is tried only if one
# with twice as many narrowed the bracket
FAR = 16.0


class Search(NamedTuple):
    """Search for brackets of one kind of question on rungs 0 to ``last`` of one composition.

    Rungs are ``outer`` or between the means; ``share`` names the quantity that sets the first
    spacing (``a``, ``b``, ``profile`` or ``epsilon``).  Where the tolerance cannot be met, widths
    up to ``loosest`` are accepted.
    """

    rungs: TiltGrid
    outer: bool
    share: str
    tolerance: float
    loosest: float
    last: int

    # overflow makes a bracket infinitely wide, so it is never accepted
    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def brackets(
        self,
        question: Callable[[Any, FloatArray], Bracket],
        x: FloatArray,
        rung: npt.NDArray[np.int64],
        scale: FloatArray | None = None,
    ) -> Bracket:
        """Brackets at x, from the given rungs on; widths are relative to max(upper, scale)."""
        result = Bracket.empty(x.size)
        moved = np.zeros(x.size, dtype=np.int64)
        pending = np.ones(x.size, dtype=np.bool_)
        rung = np.clip(rung, 0, self.last)
        while pending.any():
            here = int(rung[pending].min())
            tries = _Tries(self, here)
            while (mine := np.flatnonzero(pending & (rung == here))).size:
                tails = tries.tails()
                found = question(tails, x[mine])
                to = np.clip(here + found.beyond * (-1 if self.outer else 1), 0, self.last)
                away = (to != here) & (moved[mine] < MOVES)
                moved[mine] += away
                rung[mine] = np.where(away, to, here)
                at = mine[~away]
                for whole, part in zip(result, found, strict=True):
                    whole[at] = part[~away]
                size = np.maximum(result.upper[at], 0.0)
                if scale is not None:
                    size = np.maximum(size, scale[at])
                width = (result.upper[at] - result.lower[at]) / size
                width = np.where(result.upper[at] <= VANISHES, 0.0, width)
                width = np.where(np.isnan(width), math.inf, width)
                done = width <= self.tolerance
                pending[at[done]] = False
                if not done.all():
                    try:
                        tries.refine(tails, float(width.max()))
                    except AccuracyError:
                        if not width.max() <= self.loosest:
                            raise
                        pending[at] = False
        return result


def _advice(width: float) -> str:
    """Advice for an error message, given the relative width of the present bracket."""
    wanted = SPARE * width
    if wanted > HOPELESS:
        return "ask for a level further from the ends of the loss, or for each kind of steps apart"
    digit = 10.0 ** math.floor(math.log10(wanted))
    return f"tolerance={math.ceil(wanted / digit) * digit:.0e} would do"


class _Tries:
    """Finer and finer lattices on one rung."""

    def __init__(self, search: Search, rung: int) -> None:
        self._search, self._rung = search, rung
        self._spacing = search.rungs.first_spacing(
            rung, search.outer, search.share, search.tolerance
        )
        self._worst = self._used = math.inf
        self._number = self._stalls = 0
        self._is_blind = self._is_probed = False

    def tails(self) -> Any:
        """The composition with the present spacing."""
        return self._search.rungs.tails(*self._asked)

    @property
    def _asked(self) -> tuple[int, bool, float, float, int]:
        """Arguments of `TiltGrid.tails`: rung, outer, spacing, tolerance, limit of points."""
        search = self._search
        # the first lattice is small: its width tells how many points are needed
        limit = MOST_POINTS if self._number else min(FIRST_POINTS, MOST_POINTS)
        return self._rung, search.outer, self._spacing, search.tolerance, limit

    def refine(self, tails: Any, now: float) -> None:
        """Choose a finer spacing, given the widest bracket, or raise AccuracyError."""
        tolerance = self._search.tolerance
        self._number += 1
        self._stalls += now > 0.9 * self._worst and now < 1.0 and tails.spacing < 0.9 * self._used
        if self._stalls > 1 - self._is_probed:
            raise AccuracyError(
                f"the bracket stays at a relative width of {now:.1e}, which rounding sets, "
                f"above the tolerance of {tolerance:g}: {_advice(now)}"
            )
        was_blind, self._is_blind = self._is_blind, now >= 1.0
        is_lost = was_blind and self._is_blind  # much finer, and still wider than the answer
        is_far = now > 4.0 * tolerance * (MOST_POINTS / tails.points) ** 2
        if is_lost or (is_far and not self._is_probed):  # a probe narrows too little to judge
            if now > HOPELESS:
                raise AccuracyError(
                    f"{tails.points} lattice points bound the answer within a factor of "
                    f"{1.0 + now:.1e} only, and no number of them up to {MOST_POINTS} is likely to "
                    f"do: {_advice(now)}"
                )
            needed = tails.points * math.sqrt(now / tolerance)
            raise AccuracyError(
                f"a bracket of relative width {tolerance:g} needs about {needed:.1e} "
                f"lattice points, more than {MOST_POINTS}: {_advice(now)}"
            )
        self._worst, self._used = now, tails.spacing
        wanted = math.sqrt(tolerance / now) if now < math.inf else 0.0
        least = max(1.0 / 64.0, tails.points / BLIND_POINTS if self._is_blind else 0.0)
        finer = min(max(FINER * wanted, least), 0.7)
        is_wide = FAR * finer < 1.0 and finer * BLIND_POINTS < tails.points
        self._is_probed = is_wide and not (self._is_blind or self._is_probed)
        self._spacing = tails.spacing * (0.5 if self._is_probed else finer)
        if self._number >= TRIES or self._spacing < self._search.rungs.least_spacing(self._rung):
            raise AccuracyError(
                f"no bracket of relative width {tolerance:g} after {self._number} refinements "
                f"(last width {now:.1e}), or a lattice finer than the rounding of losses: "
                f"{_advice(now)}"
            )
        if self._search.rungs.spacing(*self._asked) > 0.95 * self._used:
            raise AccuracyError(
                f"the bracket stays at a relative width of {now:.1e} on the finest lattice of "
                f"{tails.points} points, above the tolerance of {tolerance:g}: "
                f"{_advice(now)}"
            )
