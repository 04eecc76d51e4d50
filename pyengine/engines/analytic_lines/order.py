"""Masses and profiles of a sum of losses of analytic densities, with bounds."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.engines.analytic_lines.shape import AnalyticShape
from pyengine.engines.vertical_lines.build import line_at
from pyengine.engines.vertical_lines.line import LossLine
from pyengine.engines.vertical_lines.order import LineOrder

__all__ = ["AnalyticKinds", "AnalyticOrder"]

FloatArray = npt.NDArray[np.float64]
AnalyticKinds = tuple[tuple[AnalyticShape, int], ...]

SLACK = 1.0 + 1e-9
UNKNOWN = 1e9  # times what is removed
MOST = 600.0  # exponent of a bound that says nothing


class AnalyticOrder(LineOrder):
    """One order of the pair of a composition of steps of analytic densities.

    The law that is summed ends where next to nothing is left of either law: every mass, and every
    profile, lies between that of the shorter law and that plus what is removed.

    Parameters
    ----------
    kinds : tuple of (AnalyticShape, int)
        The kinds of steps, A without the record, and how many there are of each.
    exchanged : bool
        Whether the pair is (B, A), of the loss with the other sign.
    """

    kinds: AnalyticKinds

    @staticmethod
    def _ends_of(kinds: AnalyticKinds) -> tuple[float, float]:
        low, high = (math.fsum(number * shape.losses[i] for shape, number in kinds) for i in (0, 1))
        room = 1e-12 * (abs(low) + abs(high))
        return low - room, high + room

    @staticmethod
    def _removed_of(kinds: AnalyticKinds) -> tuple[float, float]:
        of_a, of_b = (sum(n * shape.removed[law] for shape, n in kinds) * SLACK for law in (0, 1))
        return of_a, of_b

    def lowest(self) -> tuple[float, float]:
        """Nothing below the smallest loss, and a number not below it."""
        return -math.inf, math.nextafter(self.support()[0], math.inf)

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
        log = sum(n * shape.log_mean_bound(tilt) for shape, n in self.kinds) - tilt * c
        log += (c if of_b else 0.0) - math.log(float(weight[at]))
        log += 1e-9 * (1.0 + abs(tilt * c) + abs(c))
        return (math.exp(log) if log < MOST else math.inf) + self.infinite()[0]
