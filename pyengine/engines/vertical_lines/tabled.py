"""Masses of steps with corners by Chebyshev interpolation between the corners, with remainders.

A mass takes some 50 µs on a deformed line, and sums over nodes of other steps or over few losses
need hundreds of thousands.  Between two corners masses are analytic and bounded on Bernstein
ellipses, so that interpolation has a proven remainder (docs/theory/kinds, Lemma 7).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.noded import NEAR, TILTS, CornerBounds
from pyengine.engines.vertical_lines.ordered import Inner
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["TabledOrder"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

POINTS, EACH = 38, 0.55  # points of a panel, and more per step, whose bounds are pessimistic
RHO = 5.0  # of the ellipse about a panel
LONG, HIGH = 0.5 * (RHO + 1.0 / RHO), 0.5 * (RHO - 1.0 / RHO)  # its half-axes over the half-width
MOST_POINTS, LEBESGUE = 149, 4.2  # most points, and a bound of their Lebesgue constant
HIGHEST = 1.25  # largest imaginary part of a distance from a corner, as Lemma 5 asks
STEEP = 0.5  # log by which masses may grow on half a panel, about
SLACK = 1.0 + 1e-9  # covers the rounding of a bound
CLOSE = 2e-11  # relative errors up to which interpolated masses serve
LEAST_APART = 1e4  # least distance of two corners for panels between them, in threshold errors
SHARE = 3  # a panel is made for a call with at least 1/SHARE as many thresholds as it has points


class _Panels(NamedTuple):
    """Panels in rising order: middles, half-widths, and logs of A's mass bounds on the ellipses.

    ``last`` are the largest real parts on the ellipses.
    """

    middle: FloatArray
    half: FloatArray
    log_most: FloatArray
    last: FloatArray


_Table = dict[int, tuple[FloatArray, FloatArray]]  # coefficients and error bounds, by panel


class TabledOrder(Inner):
    """A composition of steps with two corners each, for very many thresholds.

    Parameters
    ----------
    inner : DeformedOrder
        The steps.
    """

    stages = 2  # interpolation, then lines where it is not close

    def __init__(self, inner: DeformedOrder) -> None:
        self.inner = inner
        # masses below thresholds in the order (A, B) are interpolated, for both orders
        self._own = DeformedOrder(inner.kinds, exchanged=False)
        wanted = POINTS + math.ceil(EACH * sum(number for _, number in inner.kinds))
        self._points = min(wanted, MOST_POINTS)
        self._bounds = CornerBounds(inner.kinds, np.zeros((2, 1)), np.ones(1), 0.0)
        self._masses: _Table = {}
        self._profiles: _Table = {}

    @property
    def jumps(self) -> FloatArray:
        """That of the steps."""
        return self.inner.jumps

    @property
    def least_known(self) -> float:
        """That of the steps."""
        return self.inner.least_known

    def lowest(self) -> tuple[float, float]:
        """That of the steps."""
        return self.inner.lowest()

    def shift(self, c: FloatArray) -> FloatArray:
        """That of the steps."""
        return self.inner.shift(c)

    @cached_property
    def _panels(self) -> _Panels:
        """Panels between corners with ellipses on which Lemma 5 bounds the masses."""
        bounds = self._bounds
        places = bounds.places
        least = LEAST_APART * float(self._own.shift(places[[0, -1]]).max())
        rows = []
        for start, end in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
            if end - start < least:
                continue
            tilt = bounds.tilt_at(0.5 * (start + end) - float(places[0]))
            steepest = STEEP / max(float(TILTS[tilt]), STEEP)
            left = start
            while left < end:
                away = left - start
                # the first ellipse fits into the disc about the corner, others into the wedge
                disc = float(bounds.near[tilt]) / 3.0 / (SLACK * (1.0 + LONG))
                wedge = min(away / (fn.hypot(LONG, HIGH) * SLACK - 1.0), HIGHEST / (HIGH * SLACK))
                half = min(disc if away == 0.0 else wedge, steepest, 0.5 * (end - left))
                right = end if half >= 0.5 * (end - left) else left + 2.0 * half
                half = 0.5 * (right - left)
                middle = 0.5 * (left + right)
                above = (middle + LONG * half - float(places[0])) * SLACK
                log = float(TILTS[tilt]) * above + float(bounds.log_grown[tilt]) + NEAR
                rows.append((middle, half, log, middle + LONG * half))
                left = right
        return _Panels(*np.array(rows).reshape(-1, 4).T)

    def _tabled(self, table: _Table, c: FloatArray, rows: int) -> tuple[FloatArray, FloatArray]:
        """Interpolants at thresholds, and bounds of errors, of shape (rows, n); NaN if none."""
        panels = self._panels
        value, error = np.full((2, rows, c.size), np.nan)
        if not panels.middle.size:
            return value, error
        at = np.searchsorted(panels.middle + panels.half, c).clip(max=panels.middle.size - 1)
        x = (c - panels.middle[at]) / panels.half[at]
        # by this call's thresholds alone, so that answers do not depend on earlier questions
        pays = SHARE * np.bincount(at, np.abs(x) <= 1.0) >= self._points
        inside = np.flatnonzero((np.abs(x) <= 1.0) & pays[at])
        if not inside.size:
            return value, error
        own, which = np.unique(at[inside], return_inverse=True)
        new = np.array([panel for panel in own.tolist() if panel not in table], dtype=np.intp)
        if new.size:
            self._make(table, new, rows)
        found = [table[panel] for panel in own.tolist()]
        terms, off = (np.array([each[i] for each in found]) for i in (0, 1))
        value[:, inside] = _series(terms, which, x[inside])
        error[:, inside] = off[which].T
        return value, error

    def _make(self, table: _Table, new: Indices, rows: int) -> None:
        """Interpolate on the panels ``new``, with bounds of all errors, that at points included."""
        panels, points = self._panels, self._points
        order = np.arange(points, dtype=np.float64)
        # T_k at the Chebyshev points, with angles reduced to below 2π
        angles = np.mod(order[:, None] * (2.0 * order + 1.0), 4.0 * points) / (2.0 * points)
        polynomials = fn.cos(math.pi * angles)
        places = panels.middle[new, None] - panels.half[new, None] * polynomials[1]
        x = (places - panels.middle[new, None]) / panels.half[new, None]
        if table is self._masses:
            masses = self._own.masses(places.ravel())
            known = np.array([masses[1], masses[3]])
            most = np.stack([panels.log_most[new], panels.log_most[new] + panels.last[new]])
        else:
            known = np.array([self._own.profile(-places.ravel())])
            most = panels.log_most[None, new] + fn.log(2.0)
        value, error = (known[:, i].reshape(rows, new.size, points) for i in (0, 1))
        value, error = value.transpose(1, 0, 2), error.transpose(1, 0, 2)
        signs = np.where(order % 2.0, -1.0, 1.0) * np.where(order, 2.0, 1.0) / points
        terms = signs * (value[..., None, :] * polynomials).sum(axis=-1)
        rounded = np.abs(terms) @ (16.0 * UNIT * (order + 1.0) * (order + 2.0))
        again = _series(terms, np.repeat(np.arange(new.size), points), x.ravel())
        off = np.abs(again.reshape(rows, new.size, points).transpose(1, 0, 2) - value).max(axis=2)
        off = LEBESGUE * (error.max(axis=2) + off + rounded) + rounded
        left = fn.log(2.0 * (1.0 + LEBESGUE) / (RHO - 1.0)) - (points - 1) * fn.log(RHO)
        off += fn.exp(np.minimum(most.T + left, 600.0))
        for panel, coefficients, errors in zip(new.tolist(), terms, off * SLACK, strict=True):
            table[panel] = coefficients, errors

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        found = np.array(self.masses_at(0, c))
        rest = ~(found[:, 1] <= CLOSE * found[:, 0]).all(axis=0)
        if rest.any():
            found[:, :, rest] = self.masses_at(1, c[rest])
        return [(each[0], each[1]) for each in found]

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The same by interpolation, or by lines in stage 1."""
        if stage:
            return self.inner.masses(c)
        is_turned = self.inner.exchanged
        u = -c if is_turned else c
        found = np.full((4, 2, c.size), np.nan)
        found[1::2] = np.stack(self._tabled(self._masses, u, 2), axis=1)
        if self.inner.is_symmetric:  # B's masses above are A's below the threshold's mirror image
            found[2::-2] = np.stack(self._tabled(self._masses, -u, 2), axis=1)
        for one, other in ((0, 1), (1, 0), (2, 3), (3, 2)):
            worse = ~(found[one, 1] <= found[other, 1] + UNIT)
            found[one, 0, worse] = 1.0 - found[other, 0, worse]
            found[one, 1, worse] = found[other, 1, worse] + UNIT
        if is_turned:
            found = found[::-1]
        found[:, 0] = np.clip(found[:, 0], 0.0, 1.0)
        return [(each[0], each[1]) for each in found]

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile, and bounds of its absolute errors."""
        value, error = self.profile_at(0, epsilon)
        rest = ~(error <= CLOSE * value)
        if rest.any():
            value[rest], error[rest] = self.profile_at(1, epsilon[rest])
        return value, error

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same by interpolation, or by lines in stage 1."""
        if stage:
            return self.inner.profile(epsilon)
        # symmetric steps have the same profile in both orders
        is_other = self.inner.exchanged and not self.inner.is_symmetric
        u = epsilon if is_other else -epsilon
        value, error = (part[0] for part in self._tabled(self._profiles, u, 1))
        if is_other:
            grown = fn.exp(np.minimum(u, 600.0))
            whole = -fn.expm1(np.minimum(u, 600.0))
            error = grown * error + 8.0 * UNIT * (grown * np.abs(value) + np.abs(whole))
            value = whole + grown * value
        return np.clip(value, 0.0, 1.0), error


def _series(terms: FloatArray, which: Indices, x: FloatArray) -> FloatArray:
    """Values, of shape (rows, n), of the Chebyshev series ``terms[which]`` of all rows at ``x``.

    ``terms`` has shape (panels, rows, points).
    """
    _, rows, points = terms.shape
    found, of = np.empty((rows, x.size)), np.ascontiguousarray(which, dtype=np.intc)
    lib.pe_chebyshev_series(
        x.size,
        array(np.ascontiguousarray(x)),
        ffi.from_buffer("int[]", of),
        rows,
        points,
        array(np.ascontiguousarray(terms).reshape(-1)),
        array(found.reshape(-1), writable=True),
    )
    return found
