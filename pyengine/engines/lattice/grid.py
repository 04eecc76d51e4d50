"""Where a composition is computed: a place on the line of losses, and lattices for all terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.partition import Rest
from pyengine.laws.base import StepLaw

__all__ = ["MOST_POINTS", "Layout", "Place", "Plan", "StepGrid"]

MOST_POINTS = 2**24


@dataclass(frozen=True)
class Place:
    """Where on the line of losses a composition is to be accurate.

    Parameters
    ----------
    tilt : float
        Exponent of the tilt; at most 0 where ``outer``, else in (0, 1).
    outer : bool
        Whether lower tails of the loss are asked for, under both laws; else A's upper and B's
        lower tail.
    reach : tuple of float
        Range of losses that are asked for.
    log_least : float
        Log of the tail at the lower end of the reach, roughly, or inf.
    """

    tilt: float
    outer: bool
    reach: tuple[float, float]
    log_least: float = math.inf


@dataclass(frozen=True)
class StepGrid:
    """Lattice of one kind of step: points ``anchor + (first + k) spacing``, k = 0 ... last.

    ``centre`` is the k near the tilted mean, ``log_scale`` the log of the mass, tilted around it.
    What is itself a sum of steps has the plan of its own finer lattice, ``inner``.
    """

    anchor: float | Fraction
    first: int
    last: int
    centre: int
    log_scale: float
    inner: Plan | None = None


@dataclass(frozen=True)
class Plan:
    """A lattice of ``points`` points; index 0 of the sum is the loss ``centre``."""

    place: Place
    spacing: float
    grids: tuple[StepGrid, ...]
    centre: Fraction
    first: int
    points: int
    aside: tuple[float, float]  # tilts of the Chernoff bounds below and above the window
    log_weight: float = 0.0

    @property
    def finest(self) -> float:
        """The smallest spacing: that of the sums among its steps, where there are such."""
        return min((x.inner.spacing for x in self.grids if x.inner), default=self.spacing)

    @property
    def longest(self) -> int:
        """The largest number of points, of the sums among its steps as well."""
        return max(self.points, *(x.inner.points for x in self.grids if x.inner), 0)


class Layout(NamedTuple):
    """Plans of all terms on one lattice."""

    parts: list[tuple[Part, ...]]
    plans: list[Plan]
    rest: Rest | None
    unseen: tuple[StepLaw, ...]

    def offset(self, plan: Plan) -> int:
        """Index 0 of a plan in the coordinate of the first one."""
        away = (plan.centre - self.plans[0].centre) / Fraction(plan.spacing)
        assert away.denominator == 1
        return int(away)
