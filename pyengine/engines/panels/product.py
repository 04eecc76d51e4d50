"""Convolution of two laws on panels, with a bound on what it loses.

The density of the result is that of both densities' convolution, and each density moved by the
other law's atoms.  Short rows of panels are convolved by sums, long ones by transforms along the
row.  Degrees above the largest are dropped, and bounded by the coefficients that make them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.functionals import array
from pyengine.engines.panels.blocks import multiplied
from pyengine.engines.panels.law import PanelLaw, norms
from pyengine.engines.panels.legendre import Products, products
from pyengine.numerics.rounding import UNIT
from pyengine.status import finished

__all__ = ["convolved", "lost_degrees"]

FloatArray = npt.NDArray[np.float64]

TRANSFORM = 4.0  # of a product of transforms, in operations of a matrix product
SHORT = 48  # rows up to this length are convolved by sums
FFT_ROUNDING = 10.0 * UNIT  # per level of the transform: docs/theory/lattice


class _Dense(NamedTuple):
    """Coefficients of a density, and what they are off by."""

    first: int
    series: FloatArray
    error: float


def convolved(one: PanelLaw, other: PanelLaw, size: int) -> PanelLaw:
    """Return the law of the sum of two independent numbers.

    Parameters
    ----------
    one, other : PanelLaw
        Laws on panels of one length.
    size : int
        Coefficients that a panel may have.
    """
    if one.level != other.level:
        raise ValueError(f"both levels must be the same, got {one.level} and {other.level}")
    parts = [part for part in _parts(one, other, size) if part.series.size]
    error = sum(part.error for part in parts)
    first = min((part.first for part in parts), default=0)
    last = max((part.first + len(part.series) for part in parts), default=0)
    width = max((part.series.shape[1] for part in parts), default=1)
    series = np.zeros((last - first, width))
    for part in parts:
        rows, columns = part.series.shape
        series[part.first - first : part.first - first + rows, :columns] += part.series
    error += 2.0 * UNIT * sum(float(norms(part.series).sum()) for part in parts)
    atoms, off = np.zeros(0), 0.0
    if one.atoms.size and other.atoms.size:
        atoms = np.convolve(one.atoms, other.atoms)
        off = (min(one.atoms.size, other.atoms.size) + 1.0) * UNIT * float(atoms.sum()) * 1.01
    carried = one.error * other.mass + other.error * (one.mass + one.error)
    return PanelLaw(
        one.level,
        first,
        series,
        one.lowest + other.lowest,
        atoms,
        one.mass * other.mass * (1.0 + 2.0 * UNIT),
        (carried + error + off) * (1.0 + 1e-12),
    )


def _parts(one: PanelLaw, other: PanelLaw, size: int) -> list[_Dense]:
    """Densities that the density of the sum is made of."""
    if one is other:
        twice = _moved(one, other)
        moved = [twice._replace(series=2.0 * twice.series, error=2.0 * twice.error)]
    else:
        moved = [_moved(one, other), _moved(other, one)]
    if not (one.series.size and other.series.size):
        return moved
    return [_of_densities(one, other, size), *moved]


def _moved(law: PanelLaw, by: PanelLaw) -> _Dense:
    """The density of a law, moved by the atoms of another one."""
    if not (law.series.size and by.atoms.size):
        return _Dense(0, np.zeros((0, 1)), 0.0)
    apart = 1 << -law.level  # panels between atoms
    panels, size = law.series.shape
    out = np.zeros((panels + apart * (by.atoms.size - 1), size))
    if by.atoms.size <= panels:
        for i, mass in enumerate(by.atoms):
            out[i * apart : i * apart + panels] += mass * law.series
    else:
        span = apart * (by.atoms.size - 1) + 1
        for i, row in enumerate(law.series):
            out[i : i + span : apart] += by.atoms[:, None] * row
    terms = min(by.atoms.size, panels) + 1.0
    total = float(norms(law.series).sum()) * float(by.atoms.sum())
    return _Dense(law.first + apart * by.lowest, out, terms * UNIT * total * 1.01)


def _of_densities(one: PanelLaw, other: PanelLaw, size: int) -> _Dense:
    """The convolution of both densities."""
    short, long_ = sorted((one.series, other.series), key=len)
    made = min(size, short.shape[1] + long_.shape[1])
    table = products(max(made, short.shape[1], long_.shape[1]))
    out = np.zeros((len(short) + len(long_), made))
    error = 0.0
    if len(short) <= SHORT:
        error += _by_sums(np.arange(len(short)), short, long_, table, out)
    else:
        # few panels need many degrees: those next to atoms
        (few, low), (others, rest) = _split(short, long_)
        if short is long_:
            error += _by_sums(few, 2.0 * short[few], rest, table, out)
        else:
            error += _by_sums(few, short[few], rest, table, out)
            error += _by_sums(others, long_[others], low, table, out)
        error += _by_sums(few, short[few], long_[others], table, out, others)
        error += _by_transform(low, rest, table, out)
    first, second = (np.abs(series).sum(axis=0) for series in (short, long_))
    off = table.error[: first.size, : second.size]
    error += 2.0 * float(first @ off @ second) * (1.0 + 1e-12)
    return _Dense(one.first + other.first, out, error + lost_degrees(short, long_, made))


def lost_degrees(one: FloatArray, other: FloatArray, made: int) -> float:
    """Return a bound on what a convolution of series loses from the degree ``made`` on."""
    first, second = (np.abs(series).sum(axis=0) for series in (one, other))
    weight = products(max(made, first.size, second.size)).weight[:, :, made]
    return 2.0 * float(first @ weight[: first.size, : second.size] @ second) * (1.0 + 1e-12)


Split = tuple[npt.NDArray[np.intp], FloatArray]


def _split(short: FloatArray, long_: FloatArray) -> tuple[Split, Split]:
    """Panels of high degrees, and the series of the others, as costs least."""
    degrees = [x.shape[1] - np.argmax((x != 0.0)[:, ::-1], axis=1) for x in (short, long_)]
    width = max(short.shape[1], long_.shape[1])
    total, kept = len(short) + len(long_), np.arange(width + 1.0)
    rows = total - np.cumsum(np.bincount(np.concatenate(degrees), minlength=width + 1))
    cost = rows * (2.0 * total * kept * width + 2.0 * width**3) + TRANSFORM * total * kept**3
    best = 2 + int(np.argmin(cost[2:])) if width > 2 else width
    parts: list[Split] = []
    for series, degree in zip((short, long_), degrees, strict=True):
        if parts and short is long_:
            return parts[0], parts[0]
        few = np.flatnonzero(degree > best)
        rest = series[:, :best].copy()
        rest[few] = 0.0
        parts.append((few, rest))
    return parts[0], parts[1]


def _by_sums(
    places: npt.NDArray[np.intp],
    rows: FloatArray,
    long_: FloatArray,
    table: Products,
    out: FloatArray,
    others: npt.NDArray[np.intp] | None = None,
) -> float:
    """Add the convolution of rows at some places with a series; a bound on its rounding.

    The series has all places, or the ``others``.
    """
    if not (rows.size and long_.size):
        return 0.0
    made = out.shape[1]
    kept = table.table[: rows.shape[1], : long_.shape[1], :made].reshape(rows.shape[1], -1)
    sign = (-1.0) ** np.arange(max(rows.shape[1], long_.shape[1], made))
    # on the second panel of each product T has the signs (-1)^(i + j + k)
    signs = sign[: long_.shape[1], None] * sign[:made]
    below = multiplied(rows, kept).reshape(-1, *signs.shape)
    above = signs * multiplied(rows * sign[: rows.shape[1]], kept).reshape(-1, *signs.shape)
    for i, left, right in zip(places, below, above, strict=True):
        first = slice(i, i + len(long_)) if others is None else i + others
        second = slice(i + 1, i + 1 + len(long_)) if others is None else i + 1 + others
        out[first] += multiplied(long_, left)
        out[second] += multiplied(long_, right)
    first, second = (np.abs(series).sum(axis=0) for series in (rows, long_))
    weight = table.weight[: first.size, : second.size, 0]
    chain = rows.shape[1] + long_.shape[1] + 2.0 * len(rows) + 6.0
    return float(2.0 * chain * UNIT * (1.0 + 1e-9) * (first @ weight @ second))


def _by_transform(one: FloatArray, other: FloatArray, table: Products, out: FloatArray) -> float:
    """Add the convolution by transforms along the rows; a bound on its rounding.

    Transforms are off by a part of their norm; a product of two transforms by that of one times the
    largest modulus of the other, and by the rounding of its sums; norms over panels and degrees
    give total variations by Cauchy and Schwarz.
    """
    made = min(out.shape[1], one.shape[1] + other.shape[1])
    length = len(out)
    levels = math.ceil(math.log2(length))
    points = 1 << levels
    first = np.fft.rfft(np.ascontiguousarray(one.T), points)
    second = first if one is other else np.fft.rfft(np.ascontiguousarray(other.T), points)
    turn = np.exp(-2j * np.pi * np.arange(points // 2 + 1) / points)
    # of an even sum of degrees, and of an odd one
    sums = np.empty((2, made, turn.size), dtype=np.complex128)
    status = lib.pe_panel_products(
        turn.size,
        one.shape[1],
        other.shape[1],
        made,
        len(table.table),
        array(table.table),
        _pairs(first),
        _pairs(second),
        one is other,
        _pairs(sums),
    )
    finished(status, "products of transforms")
    even, odd = sums
    # what lies on the second panel of each product has the signs (-1)^(i + j + k)
    total = even + odd + turn * ((-1.0) ** np.arange(made))[:, None] * (even - odd)
    out[:, :made] += np.fft.irfft(total, points)[:, :length].T
    norm = [float(np.sqrt((x * x).sum(axis=0)).sum()) for x in (one, other)]
    moduli = [float(np.abs(x).sum()) for x in (one, other)]
    level = FFT_ROUNDING * (levels + 1.0)
    chain = (one.shape[1] + other.shape[1] + 12.0) * UNIT
    both = norm[0] * moduli[1] + norm[1] * moduli[0]
    crossed = min(norm[0] * moduli[1], norm[1] * moduli[0])
    rounding = level * both + (chain + 2.0 * level) * crossed
    return float(2.0 * rounding * math.sqrt(length) * (1.0 + 1e-9))


def _pairs(z: npt.NDArray[np.complex128]) -> Any:
    """Contiguous complex numbers as the C core takes them."""
    return ffi.from_buffer("double[]", z.view(np.float64))
