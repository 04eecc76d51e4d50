"""One step of bounded range ε: the pair that dominates every such mechanism.

The losses of an ε-bounded-range mechanism lie in some interval [t - ε, t], t in [0, ε], and the two
atoms at its ends dominate those of one t.  At e in [-ε, ε] the largest of their profiles is
(1 - e^{(e - ε)/2})²/(1 - e^{-ε}), at t = (e + ε)/2.  That is the profile of the pair whose loss has
densities proportional to e^{-L/2} and e^{L/2} on [-ε, ε]: its second derivative in e^e is that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pyengine.laws.base import Cells, FloatArray, Law
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["BoundedRangeLaw"]


@dataclass(frozen=True)
class BoundedRangeLaw(Law):
    """The pair of densities e^{-L/2} and e^{L/2}, normalised, on [-ε, ε].

    Parameters
    ----------
    epsilon : float or Fraction
        ε in (0, ∞), exactly.
    """

    epsilon: float | Fraction
    symmetric: ClassVar[bool] = True

    def bounded_range(self) -> Fraction:
        """ε."""
        return Fraction(self.epsilon)

    def support(self) -> tuple[float, float]:
        """From -ε to ε."""
        end = float(self.epsilon)
        return -end, end

    def cells(self, edges: FloatArray) -> Cells:
        """Masses in closed form; widths are differences of the given doubles.

        A(x < L <= y) = e^{-(x + ε)/2} (1 - e^{-(y - x)/2})/(1 - e^{-ε}), and B has those of the
        mirror images.  The rounding of ε scales the losses, which is part of ``shift``.
        """
        end = float(self.epsilon)
        inside = np.clip(edges, -end, end)
        gap = np.concatenate([[inside[0] + end], np.diff(inside), [end - inside[-1]]])
        share = fn.expm1(-0.5 * gap) / fn.expm1(-end)
        with np.errstate(divide="ignore"):
            log_share = fn.log(share)
        log_a = log_share - 0.5 * (np.append(-end, inside) + end)
        log_b = log_share - 0.5 * (end - np.append(inside, end))
        finite = np.where(np.isfinite(log_share), np.abs(log_share), 0.0)
        error = UNIT * (64.0 + 8.0 * end + 4.0 * finite)
        return Cells(log_a, log_b, error, UNIT * (4.0 * np.abs(edges) + 4.0 * end))
