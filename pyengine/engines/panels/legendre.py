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

from pyengine._core import ffi, lib
from pyengine.caches import kept
from pyengine.engines.functionals import array
from pyengine.numerics.rounding import UNIT
from pyengine.status import finished

__all__ = [
    "EXTENDED",
    "Extended",
    "Halves",
    "LegendreNodes",
    "Products",
    "extended_product",
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
    table : ndarray of shape (size, size, size)
        T[i, j, k], rounded.
    weight : ndarray of shape (size, size, size + 1)
        Bounds on the norm of the coefficients of p_i * p_j from an index k on, those included that
        the table does not hold.
    error : ndarray of shape (size, size)
        Bounds on the norm over k of the entries' errors.
    """

    table: FloatArray
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
    points = np.ascontiguousarray(s)
    out = np.empty((size, *s.shape), dtype=s.dtype)
    if s.dtype == Extended:
        lib.pe_legendre_extended(size, s.size, _long(points), _long(out))
    else:
        lib.pe_legendre_values(size, s.size, array(points), array(out, writable=True))
    return out


def _long(x: ExtendedArray) -> Any:
    """A contiguous array in extended precision as the C core takes it."""
    return ffi.from_buffer("long double[]", x)


def extended_product(first: ExtendedArray, second: ExtendedArray) -> ExtendedArray:
    """Return the product of a matrix and the transpose of another one, in extended precision."""
    rows, inner = first.shape
    columns = len(second)
    out = np.empty((rows, columns), dtype=Extended)
    lib.pe_extended_product(
        rows,
        inner,
        columns,
        _long(np.ascontiguousarray(first)),
        _long(np.ascontiguousarray(second)),
        _long(out),
    )
    return out


def growth(size: int) -> FloatArray:
    """Return bounds on the errors of `values` at points with a rounding, in units of rounding."""
    n = np.arange(float(size))
    return np.asarray(np.sqrt(2.0 * n + 1.0) * (4.0 + 8.0 * n + 6.0 * n * n))


@kept(16)
def rough_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on (-1, 1), rounded; for choices only."""
    rule = gauss_nodes(size)
    return (2.0 * rule.place - 1.0).astype(np.float64), (2.0 * rule.weight).astype(np.float64)


@kept(64)
def gauss_nodes(size: int) -> LegendreNodes:
    """Return Gauss-Legendre nodes and weights: exact for degrees below 2 ``size``."""
    place, weight = np.empty((2, size), dtype=Extended)
    lib.pe_gauss_nodes(size, _long(place), _long(weight))
    return LegendreNodes(place, weight, WEIGHTS * size * size * EXTENDED)


@kept(8)
def products(size: int) -> Products:
    """Return the coefficients of convolutions of polynomials of degrees below ``size``."""
    # integrals S of the polynomials P with maximum 1 instead, by the smallest index i, as P_(i+1)
    # - P_(i-1) is 4 i + 2 times the integral of P_i; for larger ones i than j or k, the recurrence
    # would lose digits, and entries follow from others
    table, weight = np.empty((size, size, size)), np.zeros((size, size, size + 1))
    status = lib.pe_legendre_products(
        size, array(table, writable=True), array(weight, writable=True)
    )
    finished(status, "products of polynomials")
    j = np.arange(size)
    # no more entries than that are not 0
    count = 2.0 * np.minimum(j[:, None], j) + 3.0
    error = TABLE * EXTENDED * np.sqrt(count) + UNIT * weight[:, :, 0]
    return Products(table, weight, error)


@kept(8)
def halves(size: int) -> Halves:
    """Return what takes polynomials of degrees below ``size`` to the halves of their interval."""
    nodes = gauss_nodes(size)
    own = values(size, nodes.place) * nodes.weight
    whole = (values(size, (nodes.place + h) / 2) for h in (0, 1))
    made = np.array([extended_product(other, own) for other in whole])
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
