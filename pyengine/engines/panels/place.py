"""Integrals of exponentials over the part of a law on panels that lies beyond a place.

With a rate r >= 0 the integral of e^(-r (x - y)) over x > y has a weight of at most 1, so that a
law's error counts as it is.  Panels beyond y have moments that are computed once; the panel around
y is integrated at Gauss nodes of the rest of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.caches import cached_property, kept
from pyengine.engines.functionals import array
from pyengine.engines.panels.blocks import multiplied
from pyengine.engines.panels.law import PanelLaw
from pyengine.engines.panels.legendre import gauss_nodes, growth, values
from pyengine.numerics.rounding import LIBM, UNIT

__all__ = ["PanelRow", "row_of"]

FloatArray = npt.NDArray[np.float64]

FINE = 1e-17  # what a rule may be off by, relative to the law
REACH = -math.log(FINE)  # beyond this exponent nothing counts
STEEP = 8.0  # a change of an exponent on a panel from which two exponentials are integrated apart


class GaussRule(NamedTuple):
    """Gauss-Legendre nodes on (0, 1) for the part ``reach`` of a panel."""

    nodes: int
    reach: float
    place: FloatArray
    weight: FloatArray


@kept(256)
def _rule(rate: float, bent: float, size: int) -> GaussRule:
    """The rule for polynomials of so many coefficients times e^(-rate s) or a bent one.

    With n nodes, an exponential is within 4 (r/4)^q/q! of what they integrate exactly, where q is 2
    n less the degree, and r what the exponent changes by (docs/theory/panels).
    """
    reach = min(1.0, REACH / rate) if rate else 1.0
    change = 0.25 * (rate * reach + bent)
    count = size // 2 + 4
    while _off(change, 2 * count - size + 1) > math.log(FINE):
        count += 4
    nodes = gauss_nodes(count)
    return GaussRule(count, reach, nodes.place.astype(float), nodes.weight.astype(float))


def _off(change: float, rest: int) -> float:
    """Logarithm of what an exponential differs from a polynomial by, at most."""
    if change == 0.0:
        return -math.inf
    return math.log(8.0) + rest * math.log(change) - math.lgamma(rest + 1.0)


@dataclass(frozen=True)
class PanelRow:
    """A law on panels, seen from one place.

    Parameters
    ----------
    start : float
        Left end of the first panel, exactly.
    length : float
        Length of a panel, a power of two.
    series : ndarray of shape (panels, size)
        Coefficients of the density.
    lowest : float
        Place of the first atom, exactly.
    atoms : ndarray
        Masses of the atoms.
    """

    start: float
    length: float
    series: FloatArray
    lowest: float
    atoms: FloatArray

    def seen_from(self, origin: float) -> PanelRow:
        """The law of a number less ``origin``, an integer."""
        return replace(self, start=self.start - origin, lowest=self.lowest - origin)

    @cached_property
    def mirrored(self) -> PanelRow:
        """The law of a number's negative."""
        panels, size = self.series.shape
        return replace(
            self,
            start=-(self.start + panels * self.length),
            series=np.ascontiguousarray(self.series[::-1] * (-1.0) ** np.arange(size)),
            lowest=-(self.lowest + self.atoms.size - 1.0),
            atoms=np.ascontiguousarray(self.atoms[::-1]),
        )

    def beyond(
        self, rate: float, y: FloatArray, bent: float = 0.0, *, closed: bool = False
    ) -> tuple[FloatArray, float]:
        """Integrals of e^(-rate (x - y)) over x > y, and a bound on their rounding.

        Times 1 - e^(-bent (x - y)), if ``bent`` is not 0.

        Parameters
        ----------
        rate, bent : float
            At least 0.
        y : ndarray
            Places.
        closed : bool
            Whether an atom at y counts.
        """
        if bent * self.length > STEEP:  # both terms differ on nearly all of a panel
            first, second = self.beyond(rate, y), self.beyond(rate + bent, y)
            return first[0] - second[0], first[1] + second[1]
        panels = len(self.series)
        rule, core = self._rule(rate, bent)
        total = np.empty(y.size)
        lib.pe_panel_beyond(
            self._core[0],
            core[0],
            y.size,
            array(np.ascontiguousarray(y)),
            closed,
            array(total, writable=True),
        )
        largest = 1.0
        if bent:  # (1 - e^(-b t)) e^(-r t) is at most b/(r + b), and on a panel b t more
            end = max(self.start + panels * self.length, self.lowest + self.atoms.size)
            span = max(end - float(y.min()), 0.0) + self.length
            largest = min(bent / (rate + bent) + bent * self.length, bent * span, 1.0)
        return total, largest * self._rounding(rule.nodes)

    def roughly(self, rate: float, y: float, *, closed: bool) -> float:
        """About the integral of e^(-rate (x - y)) over x > y."""
        room = ffi.new("double[1]")
        core = self._rule(rate, 0.0)[1]
        lib.pe_panel_beyond(self._core[0], core[0], 1, (y,), closed, room)
        return float(room[0])

    @cached_property
    def _core(self) -> list[Any]:
        """The law as the C core takes it, and what that points to."""
        kept = [array(self.series.reshape(-1)), array(self._scale), array(self.atoms)]
        panels, size = self.series.shape
        places = self.start, self.length, self.lowest
        return [ffi.new("pe_panel_row *", (*places, panels, size, self.atoms.size, *kept)), kept]

    def _rule(self, rate: float, bent: float) -> tuple[GaussRule, list[Any]]:
        """The rule for a weight, and that and its integrals as the C core takes them."""
        key = (rate, bent)
        if key not in self._known:
            rule = _rule(rate * self.length, bent * self.length, self.series.shape[1])
            kept = [array(x) for x in (rule.place, rule.weight, *self._moments(rate, bent, rule))]
            core = ffi.new("pe_panel_rule *", (rate, bent, rule.reach, rule.nodes, *kept))
            self._known[key] = rule, [core, kept]
        return self._known[key]

    def _moments(self, rate: float, bent: float, rule: GaussRule) -> tuple[FloatArray, FloatArray]:
        """Integrals of e^(-rate x) over each panel, x from its begin, and bent ones."""
        place = rule.reach * rule.place
        density = multiplied(self.series, values(self.series.shape[1], place))
        decay = rule.reach * rule.weight * np.exp(-rate * self.length * place)
        inner = (density * decay).sum(axis=1)
        bends = -np.expm1(-bent * self.length * place)
        return inner, (density * (decay * bends)).sum(axis=1) if bent else inner

    @cached_property
    def _known(self) -> dict[tuple[float, float], tuple[GaussRule, list[Any]]]:
        """What `_rule` has found."""
        return {}

    @cached_property
    def _scale(self) -> FloatArray:
        """Roots that make the polynomials orthonormal."""
        return np.sqrt(2.0 * np.arange(float(self.series.shape[1])) + 1.0)

    @cached_property
    def _sums(self) -> tuple[float, float, float]:
        """Bounds on the density, on the atoms, and on the errors of values in units of rounding."""
        size = self.series.shape[1]
        moduli = np.abs(self.series).sum(axis=0)
        return (
            float(moduli @ self._scale),
            float(self.atoms.sum()),
            float(moduli @ growth(size)),
        )

    def _rounding(self, count: int) -> float:
        """Bound on the rounding, and on the error of the nodes."""
        panels, size = self.series.shape
        chain = (size + count + panels + 4.0 * LIBM + 16.0) * UNIT
        density, atoms, values = self._sums
        # and what lies beyond the reach of the nodes, or is no polynomial
        dense = density * (chain + 3.0 * FINE) + UNIT * values
        exact = (self.atoms.size + 4.0 * LIBM + 8.0) * UNIT * atoms
        return float((dense + exact) * (1.0 + 1e-9))


def row_of(law: PanelLaw) -> PanelRow:
    """Return what integrals need of a law."""
    length = 2.0**law.level
    series = np.ascontiguousarray(law.series)
    return PanelRow(law.first * length, length, series, float(law.lowest), law.atoms)
