"""Orthonormal Legendre polynomials on (0, 1): values, Gauss nodes, products and halves.

With p_n of degree n, orthonormal for the uniform law on (0, 1), the convolution of p_i with p_j is
a polynomial on (0, 1) and another one on (1, 2).  Their coefficients are T[i, j, k] and
(-1)^(i+j+k) T[i, j, k], the same for every order of i, j and k but for a sign, and 0 where one
index exceeds the sum of the others by more than 1.  All tables are made in extended precision, and
come with bounds on what their entries are off by (docs/theory/panels).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.numerics.rounding import UNIT

__all__ = [
    "EXTENDED",
    "Extended",
    "Halves",
    "LegendreNodes",
    "Products",
    "gauss_nodes",
    "growth",
    "halves",
    "products",
    "rough_nodes",
    "values",
]

FloatArray = npt.NDArray[np.float64]
ExtendedArray = npt.NDArray[Any]
Extended: Any = np.longdouble
EXTENDED = 0.5 * float(np.finfo(np.longdouble).eps)  # of one operation in extended precision
# what tests watch, in roundings of extended precision: errors of Gauss nodes, of n weights relative
# to them and to n^2, and of the coefficients of products
NODES = 1.0
WEIGHTS = 1.0
TABLE = 8.0


class Products(NamedTuple):
    """Coefficients of convolutions.

    Parameters
    ----------
    table, mirrored : ndarray of shape (size, size, size)
        T[i, j, k], rounded, and (-1)^(i+j+k) times that.
    weight : ndarray of shape (2 size + 1, size, size)
        Bounds on the norm of the coefficients of p_i * p_j from an index k on, of which there are
        2 ``size``, and which the table does not hold all.
    error : ndarray of shape (size, size)
        Bounds on the norm over k of the entries' errors.
    """

    table: FloatArray
    mirrored: FloatArray
    weight: FloatArray
    error: FloatArray


class LegendreNodes(NamedTuple):
    """Gauss-Legendre nodes and weights on (0, 1), in extended precision.

    ``error`` bounds the errors of the weights relative to them.
    """

    place: ExtendedArray
    weight: ExtendedArray
    error: float


class Halves(NamedTuple):
    """Integrals of p_i((s + h)/2) p_j(s) over (0, 1), for either half h of the interval.

    A density of coefficients c_0 and c_1 on both halves has ``half[0] @ c_0 + half[1] @ c_1`` on
    the whole; one of coefficients c on the whole has ``half[h].T @ c / 2`` on a half.

    Parameters
    ----------
    half : ndarray of shape (2, size, size)
        The integrals, rounded.
    error : ndarray of shape (size,)
        Bound on the norm over j of the entries' errors.
    """

    half: FloatArray
    error: FloatArray


def values(size: int, s: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return p_0, ..., p_(size - 1) at points of (0, 1), shape (size, *s.shape).

    By the recurrence of the Legendre polynomials; errors are at most `growth` units.
    """
    t = 2 * s - 1
    out = np.empty((size, *s.shape), dtype=s.dtype)
    out[0] = 1
    if size > 1:
        out[1] = t
    for n in range(1, size - 1):
        out[n + 1] = ((2 * n + 1) * t * out[n] - n * out[n - 1]) / (n + 1)
    scale = np.sqrt(2 * np.arange(size, dtype=s.dtype) + 1)
    return np.asarray(out * scale.reshape(-1, *[1] * s.ndim))


def growth(size: int) -> FloatArray:
    """Return bounds on the errors of `values` at points with a rounding, in units of rounding."""
    n = np.arange(float(size))
    return np.asarray(np.sqrt(2.0 * n + 1.0) * (4.0 + 8.0 * n + 6.0 * n * n))


@kept(16)
def rough_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on (-1, 1), rounded; for choices only."""
    place, weight = np.polynomial.legendre.leggauss(size)
    return place, weight


@kept(64)
def gauss_nodes(size: int) -> LegendreNodes:
    """Return Gauss-Legendre nodes and weights: exact for degrees below 2 ``size``."""
    place = 0.5 * (1.0 + np.polynomial.legendre.leggauss(size)[0].astype(Extended))
    n = size
    for _ in range(2):  # steps of Newton's method, of which the first leaves 1e-30
        p = values(n + 1, place) / np.sqrt(2 * np.arange(n + 1, dtype=Extended) + 1)[:, None]
        t = 2 * place - 1
        slope = n * (p[n - 1] - t * p[n]) / (1 - t * t)
        place = place - p[n] / (2 * slope)
    weight = 1 / (values(n, place) ** 2).sum(axis=0)
    return LegendreNodes(place, weight, WEIGHTS * n * n * EXTENDED)


@kept(8)
def products(size: int) -> Products:
    """Return the coefficients of convolutions of polynomials of degrees below ``size``."""
    # integrals S of the polynomials P with maximum 1 instead, by the smallest index i, as P_(i+1)
    # - P_(i-1) is 4 i + 2 times the integral of P_i; for larger ones i than j or k, the recurrence
    # would lose digits, and entries follow from others
    room = 2 * size + 2  # every step asks for the next k
    k = np.arange(room, dtype=Extended)
    s = np.zeros((size, size, room), dtype=Extended)
    j = np.arange(size)
    s[0, j, j + 1] = 1 / (2 * (2 * k[:size] + 1) * (2 * k[:size] + 3))
    s[0, j[1:], j[1:] - 1] = -1 / (2 * (2 * k[1:size] + 1) * (2 * k[1:size] - 1))
    s[0, 0, 0] = Extended(0.5)
    inverse = 1 / (2 * k[1:-1] + 1)
    for i in range(size - 1):
        s[i + 1, i:] = s[i - 1, i:] if i else -s[0]
        s[i + 1, i:, 1:-1] += (2 * i + 1) * inverse * (s[i, i:, :-2] - s[i, i:, 2:])
    sign, root = (-1.0) ** np.arange(2 * size), np.sqrt(2 * k[: 2 * size] + 1)
    rounded = np.zeros((size, size, 2 * size))
    for i in range(size):
        part = s[i, i:, i : 2 * size] * (root[i] * sign[i:] * root[i : 2 * size])
        found = (part * root[i:size, None]).astype(np.float64)  # symmetric in all indices
        rounded[i, i:, i:], rounded[i:, i, i:] = found, found
        rounded[i:, i:, i] = found[:, : size - i]
    apart, last = np.abs(j[:, None] - j) - 1, j[:, None] + j + 1
    all_k = np.arange(2 * size)
    outside = (all_k < apart[:, :, None]) | (all_k > last[:, :, None])
    rounded = np.where(outside, 0.0, rounded * sign)
    squares = np.zeros((2 * size + 1, size, size))
    squares[:-1] = np.cumsum((rounded * rounded).T[::-1], axis=0)[::-1]
    weight = np.sqrt(squares) * (1.0 + 1e-9) + 1e-15 * (
        np.arange(2 * size + 1)[:, None, None] <= last
    )
    rounded = np.ascontiguousarray(rounded[:, :, :size])
    # no more entries than that are not 0
    count = 2.0 * np.minimum(j[:, None], j) + 3.0
    error = TABLE * EXTENDED * np.sqrt(count) + UNIT * weight[0]
    sign = sign[:size]
    mirrored = rounded * sign[:, None, None] * sign[:, None] * sign
    return Products(rounded, mirrored, weight, error)


@kept(8)
def halves(size: int) -> Halves:
    """Return what takes polynomials of degrees below ``size`` to the halves of their interval."""
    nodes = gauss_nodes(size)
    own = values(size, nodes.place) * nodes.weight
    whole = (values(size, (nodes.place + h) / 2) for h in (0, 1))
    made = np.array([other @ own.T for other in whole])
    made[:, np.triu(np.ones((size, size), dtype=np.bool_), 1)] = 0
    i = np.arange(float(size))
    bound = (
        (2.0 * NODES + WEIGHTS * size * size + 16.0)
        * EXTENDED
        * np.sqrt(2.0 * i + 1.0)
        * growth(size)
    )
    error = 2.0 * UNIT + bound * np.sqrt(i + 1.0)
    return Halves(made.astype(np.float64), error)
