"""Masses and profiles of a sum of losses of different kinds of steps, with bounds.

Whatever has a shape stands on the same line.  Laws that are summed may end where next to nothing is
left of them: every mass, and every profile, lies between that of the shorter law and that plus what
is removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.caches import cached_property
from pyengine.engines.exact.levels import SUBNORMAL, Tails
from pyengine.engines.exact.mixed import Mixed, Weights
from pyengine.engines.vertical_lines.build import line_at
from pyengine.engines.vertical_lines.chernoff import log_mean_bound as laplace_bound
from pyengine.engines.vertical_lines.choice import Kinds
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape, SubstitutedShape
from pyengine.engines.vertical_lines.line import LossLine
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.ordered import OrderedLaw, RoughTails

__all__ = ["MixedOrder", "WeightedOrder", "log_mean_bound", "removed_of"]

FloatArray = npt.NDArray[np.float64]

SLACK = 1.0 + 1e-9
UNKNOWN = 1e9  # times what is removed
MOST = 600.0  # exponent of a bound that says nothing
MOST_JUMPS = 4096  # places of atoms that are looked at


@singledispatch
def log_mean_bound(shape: Any, tilt: float) -> float:
    """Return a number not below the logarithm of the mean of e^(tilt loss) between the ends."""
    return float(shape.log_mean_bound(tilt))


@log_mean_bound.register(LaplaceShape)
@log_mean_bound.register(SubstitutedShape)
def _(shape: StepShape, tilt: float) -> float:
    return laplace_bound(shape, tilt)


@singledispatch
def removed_of(shape: Any) -> tuple[float, float]:
    """Return bounds on the masses of A and of B that the law of a step lacks on all lines."""
    del shape
    return 0.0, 0.0


def _losses(shape: Any) -> tuple[float, float]:
    """The smallest and the largest loss of a step, but for roundings."""
    low, high = getattr(shape, "losses", None) or shape.ends
    return float(low), float(high)


def _sums_of_losses(kinds: Kinds) -> tuple[float, float]:
    """The smallest and the largest loss of all steps, but for `_room`."""
    low, high = (math.fsum(n * _losses(shape)[i] for shape, n in kinds) for i in (0, 1))
    return low, high


def _room(kinds: Kinds) -> float:
    """Bound on the errors of the smallest and of the largest loss."""
    low, high = _sums_of_losses(kinds)
    errors = (n * getattr(shape, "off_ends", 0.0) for shape, n in kinds)
    return 1e-12 * (abs(low) + abs(high)) + 1.01 * math.fsum(errors)


class MixedOrder(LineOrder):
    """One order of the pair of a composition of steps of any kinds.

    Parameters
    ----------
    kinds : tuple of (shape, int)
        The kinds of steps, A without the record, and how many there are of each.
    exchanged : bool
        Whether the pair is (B, A), of the loss with the other sign.
    """

    def __init__(self, kinds: Kinds, exchanged: bool) -> None:
        super().__init__(kinds, exchanged)
        self.is_bounded = all(getattr(shape, "is_bounded", True) for shape, _ in kinds)

    @staticmethod
    def _ends_of(kinds: Kinds) -> tuple[float, float]:
        low, high = _sums_of_losses(kinds)
        room = _room(kinds)
        return low - room, high + room

    @staticmethod
    def _removed_of(kinds: Kinds) -> tuple[float, float]:
        of_a, of_b = (
            sum(n * removed_of(shape)[law] for shape, n in kinds) * SLACK for law in (0, 1)
        )
        return float(of_a), float(of_b)

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss: none below where more is removed."""
        end = self.support()[0]  # which lies as far outside as losses may be off
        least = end if self.is_bounded and self.removed == (0.0, 0.0) else -math.inf
        return least, math.nextafter(end + 2.0 * _room(self.kinds), math.inf)

    def line_at(self, index: int) -> LossLine | None:
        """Return a line of the choice, or the next one nearer to the poles that can be made.

        Far out the law that ends is another one than that which goes on, and has no lines.
        """
        line = self.choice.line
        inwards = -1 if line[index] > 0.5 else 1
        while 0 <= index < line.size:
            found = line_at(self.kinds, index)
            if found is not None:
                return found
            index += inwards
        return None

    @property
    def least_known(self) -> float:
        """What is smaller is known to be small alone."""
        return UNKNOWN * max(self.removed)

    def profile_most(self, epsilon: float, enough: float = 0.0) -> float:
        """A number not below the profile, by a tilt of the table."""
        del enough
        choice, of_b = self.choice, self.exchanged
        c = epsilon if of_b else -epsilon
        usable = choice.tilt > 1.0 if of_b else choice.tilt < 0.0
        weight = choice.tilt if of_b else 1.0 - choice.tilt
        cost = choice.log_mean - c * choice.tilt - np.log(np.where(usable, weight, 1.0))
        at = int(np.argmin(np.where(usable, cost, np.inf)))
        tilt = float(choice.tilt[at])
        log = sum(n * log_mean_bound(shape, tilt) for shape, n in self.kinds) - tilt * c
        log += (c if of_b else 0.0) - math.log(float(weight[at]))
        log += 1e-9 * (1.0 + abs(tilt * c) + abs(c))
        return (math.exp(log) if log < MOST else math.inf) + self.infinite()[0] + SUBNORMAL


class WeightedOrder(MixedOrder):
    """A composition whose transform does not fall, as few losses beside one that has an order.

    Masses are sums over the few losses; what is expected, and where, is told as of all others.

    Parameters
    ----------
    kinds, exchanged
        As of a `MixedOrder`.
    weights : Weights
        The few losses, with masses of the very pair that is asked about.
    inner : OrderedLaw
        The other steps, of that pair.
    """

    def __init__(self, kinds: Kinds, exchanged: bool, weights: Weights, inner: OrderedLaw) -> None:
        super().__init__(kinds, exchanged)
        self._inner = inner
        self._weights = Weights(
            weights.loss, weights.a, weights.b, weights.error, lowest=weights.lowest
        )
        self._mixed = Mixed(self._weights, inner)  # type: ignore[arg-type]

    def lowest(self) -> tuple[float, float]:
        """Sums of both infima."""
        return self._mixed.lowest()

    @property
    def least_known(self) -> float:
        """As of the other steps."""
        return self._inner.least_known

    @property
    def has_atoms(self) -> bool:
        """Atoms of the other steps count, beside each of the few losses."""
        return self._inner.has_atoms and self.jumps.size > 0

    @cached_property
    def jumps(self) -> FloatArray:
        """Losses with atoms that count, rising; none where they are too many."""
        inner, few = self._inner.jumps, self._weights.loss
        if inner.size * few.size > MOST_JUMPS:
            return np.zeros(0)
        return np.unique(np.add.outer(few, inner))

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        return self._mixed.tails(c)

    def roughly(self, c: float) -> RoughTails:
        """The masses of both laws above a threshold and at most at it."""
        found = self._mixed.tails(np.array([c]))
        a_above, a_below, b_above, b_below = (float(x[0]) for x in found[:4])
        return a_above, a_below, b_above, b_below

    def profile_about(self, near: float) -> Callable[[float], float]:
        """The profile at ε."""
        del near
        return lambda epsilon: float(self._mixed.profile(np.array([epsilon]))[0][0])

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        assert low is None
        return self._mixed.profile(epsilon)
