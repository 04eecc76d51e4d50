"""Laws of finitely many likelihood ratios, known as doubles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pyengine._support.caches import cached_property
from pyengine.laws.base import Cells, FloatArray, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["RatioLaw"]


@dataclass(frozen=True, eq=False)
class RatioLaw(StepLaw):
    """The pair (A, B) whose ratio dB/dA takes finitely many values.

    Parameters
    ----------
    ratio : ndarray of shape (n,)
        The values, positive and increasing.
    mass : ndarray of shape (n,)
        Masses of A at each, positive; those of B are ``ratio`` times as large.
    error : float
        Bound on the errors of log masses; both laws have the same errors, as of a common density.
    ratio_error : float
        Bound on the errors of log ratios.
    alone : float
        Bound on the mass of either law where the other one has none.
    """

    ratio: FloatArray
    mass: FloatArray
    error: float
    ratio_error: float
    alone: float = 0.0

    @cached_property
    def _loss(self) -> FloatArray:
        return np.asarray(fn.log(self.ratio))

    @cached_property
    def _shift(self) -> float:
        """Error of the losses: that of the ratios and the rounding of the logarithms."""
        return self.ratio_error + ELEMENTARY * UNIT * float(np.abs(self._loss).max())

    def support(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        return float(self._loss[0]), float(self._loss[-1])

    def support_error(self) -> float:
        """As of every loss."""
        return self._shift

    def limits(self) -> tuple[float, float]:
        """The support: nothing is left out."""
        return self.support()

    def left_out(self) -> float:
        """0: nothing is left out."""
        return 0.0

    def spacing(self) -> tuple[float, float] | None:
        """None: the losses lie on no lattice."""
        return None

    def infinite(self) -> tuple[float, float]:
        """The mass that either law has alone."""
        return self.alone, self.alone

    def cells(self, edges: FloatArray) -> Cells:
        """Sums over the atoms between the edges; an atom on an edge is counted below it."""
        place = np.searchsorted(edges, self._loss)  # cell i has the losses in (x_{i-1}, x_i]
        start = np.flatnonzero(np.append(True, place[1:] > place[:-1]))
        home, count = place[start], np.diff(np.append(start, place.size))
        log_a, log_b = (np.full(edges.size + 1, -math.inf) for _ in range(2))
        log_a[home] = fn.log(np.add.reduceat(self.mass, start))
        log_b[home] = fn.log(np.add.reduceat(self.mass * self.ratio, start))
        rounding = np.zeros(edges.size + 1)
        size = np.maximum(np.abs(log_a[home]), np.abs(log_b[home]))
        rounding[home] = UNIT * (count + 4.0 + ELEMENTARY * size)
        error = (self.error + self.ratio_error + rounding) * (1.0 + 1e-6)
        shift = np.full(edges.size, self._shift)
        return Cells(log_a, log_b, error, shift, self.ratio_error + 2.0 * rounding)
