"""Sensitivity of a matrix mechanism: how far one record can move C x, by its participation.

A record with contributions uᵢ of norm at most 1 at the steps i of a pattern π moves C x, with
columns cᵢ of C, by the square Σ ⟨cᵢ, cⱼ⟩⟨uᵢ, uⱼ⟩ <= Σ |⟨cᵢ, cⱼ⟩| over i, j in π.  The bound is
attained if the products have the signs of sᵢsⱼ for some signs s, as for non-negative columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.mechanisms.separation import heaviest
from pyengine.numerics import functions as fn

__all__ = [
    "LONGEST",
    "PARTICIPATIONS",
    "Sensitivity",
    "bin_moves",
    "bin_products",
    "matrix_sensitivity",
    "square_of_sensitivity",
    "toeplitz_square",
]

FloatArray = npt.NDArray[np.float64]

PARTICIPATIONS = ("single", "fixed_order", "min_separation")
UNIT = 2.0**-52
LONGEST = 10**7  # steps of a Toeplitz matrix; only its column is formed
LARGEST = 16_384  # columns of a matrix
BLOCK = 256  # columns whose products with all others are formed at once
CANDIDATES = 64  # patterns whose sums are formed exactly


class Sensitivity(NamedTuple):
    """Sensitivity of a matrix, and whether some record attains it.

    Parameters
    ----------
    value : float
        At least the sensitivity; rounded up.
    exact : bool
        Whether the value is the sensitivity itself, to a relative 1e-10; else it is an upper bound.
    """

    value: float
    exact: bool


class BinProducts(NamedTuple):
    """Largest |mᵢ|² and ⟨mᵢ, mⱼ⟩ of two bins of a class, mᵢ the sum of absolute columns of bin i.

    Both are rounded up, by about rows × 2⁻⁵⁰ relatively at most; the product is 0 for classes of
    one bin.  ``size`` is the smallest number of bins in a class; the bound is ``exact`` if all
    squares are equal, all products are, C has one sign, and there is one class.
    """

    square: Fraction
    product: Fraction
    size: int
    classes: int
    exact: bool


def matrix_sensitivity(
    C: Any,
    participation: str = "single",
    *,
    times: int | None = None,
    separation: int | None = None,
) -> Sensitivity:
    """Largest norm by which one record moves C x.

    Parameters
    ----------
    C : array_like of shape (rows, steps)
        The matrix whose product with the sums of the steps is released with noise; finite, and no
        column is zero.
    participation : {"single", "fixed_order", "min_separation"}
        At which steps a record takes part, each time with a contribution of norm at most 1.
        ``single``: once.  ``fixed_order``: (k, b)-participation, at most k times, exactly b steps
        apart, as in epochs of one order.  ``min_separation``: at most k times, at least b apart.
    times, separation : int
        k and b, >= 1; not given for ``single``.

    Returns
    -------
    Sensitivity
        Exact for ``single`` and ``fixed_order`` if the products of the heaviest columns have the
        signs of sᵢsⱼ for some signs s (all non-negative matrices).  Exact for ``min_separation`` if
        in addition C has fewer than 2b bands, has few patterns, is Toeplitz with non-negative
        decreasing entries (Theorem 2 of Kalinin and Lampert), or has the nodes of trees as rows;
        otherwise an upper bound.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    C. A. Choquette-Choo, H. B. McMahan, K. Rush, A. Thakurta, Multi-Epoch Matrix Factorization
    Mechanisms for Private Machine Learning (2023), arXiv:2211.06530, Section 2; C. A.
    Choquette-Choo et al., (Amplified) Banded Matrix Factorization (2023), arXiv:2306.08153; N.
    Kalinin, C. Lampert, Banded Square Root Matrix Factorization for Differentially Private Model
    Training (2024), arXiv:2405.13763.

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> prefix = np.tril(np.ones((4, 4)))
    >>> pe.matrix_sensitivity(prefix).value, pe.matrix_sensitivity(-prefix).exact
    (2.0, True)
    >>> round(pe.matrix_sensitivity(prefix, "fixed_order", times=2, separation=2).value ** 2, 12)
    10.0
    """
    square, exact = square_of_sensitivity(C, participation, times, separation)
    root = math.sqrt(square)
    if Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return Sensitivity(root, exact)


def square_of_sensitivity(
    C: Any, participation: str, times: int | None, separation: int | None
) -> tuple[Fraction, bool]:
    """Square of `matrix_sensitivity`, rounded up, and whether a record attains it."""
    matrix = _matrix(C)
    steps = matrix.shape[1]
    word, number, gap = _pattern(steps, participation, times, separation)
    if word == "min_separation" and number > 1 and not _decreasing_toeplitz(matrix):
        return _separated(matrix, number, gap)
    first_is_largest = word == "min_separation" and number > 1  # of a decreasing Toeplitz matrix
    starts = 1 if first_is_largest else steps
    patterns = [np.arange(i, min(steps, i + number * gap), gap) for i in range(starts)]
    return _largest(matrix, patterns)


def _pattern(
    steps: int, participation: str, times: int | None, separation: int | None
) -> tuple[str, int, int]:
    """Check the arguments: participation, most steps of a record, and their distance."""
    word = checks.choice("participation", participation, PARTICIPATIONS)
    if word == "single":
        if times is not None or separation is not None:
            raise ValueError(
                "times and separation go with participation 'fixed_order' or 'min_separation', got "
                f"{times!r} and {separation!r}"
            )
        return word, 1, 1
    if times is None or separation is None:
        raise ValueError(f"participation {word!r} needs times and separation")
    number = checks.count("times", times, least=1)
    gap = min(checks.count("separation", separation, least=1), steps)
    return word, min(number, -(-steps // gap)), gap


def toeplitz_square(
    coefficients: Any, steps: int, participation: str, times: int | None, separation: int | None
) -> tuple[Fraction, bool]:
    """Square of the sensitivity of a lower triangular Toeplitz matrix, as `square_of_sensitivity`.

    Steps 0, b, 2b, … are the heaviest pattern of non-negative decreasing coefficients, and of at
    most b coefficients of any kind: columns b apart are orthogonal, and the first are the longest.
    """
    number = checks.count("steps", steps, least=1, most=LONGEST)
    column = checks.real_array("coefficients", coefficients, -1e100, 1e100)
    if column.ndim != 1 or not 0 < column.size <= number:
        raise ValueError(
            f"coefficients must be a list of 1 to steps = {number:,} numbers, got shape "
            f"{column.shape}"
        )
    if not abs(float(column[0])) > 1e-100:
        raise ValueError(f"coefficients must begin with one beyond 1e-100, got {column[0]}")
    _, most, gap = _pattern(number, participation, times, separation)
    sizes = np.abs(column)
    falling = bool((column >= 0.0).all() or (column <= 0.0).all()) and bool(
        (np.diff(sizes) <= 0.0).all()
    )
    exact = most == 1 or falling or column.size <= gap
    if not exact:
        sizes = np.maximum.accumulate(sizes[::-1])[::-1]
    row = np.zeros(number)
    for first in range(0, most * gap, gap):
        end = min(first + sizes.size, number)
        row[first:end] += sizes[: end - first]
    # each entry is off by k - 1 roundings of sums, its square by twice that and one of its own
    value = Fraction(math.fsum(np.square(row).tolist()))
    return value * (1 + Fraction((2.0 * most + 2.0) * UNIT)), exact


def bin_moves(C: Any, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return C, checked, and a matrix with the sum of its absolute columns in each bin."""
    matrix = _matrix(C)
    number = checks.count("bins", bins, least=1)
    if number > matrix.shape[1]:
        raise ValueError(f"bins must be at most the number of steps, {matrix.shape[1]}, got {bins}")
    size = np.abs(matrix)
    moves = [size[:, i::number].sum(axis=1) for i in range(number)]
    return matrix, np.stack(moves, axis=1)


# Map: balls in bins, by Kahane's inequality | test_matrix | theory/matrix
def bin_products(C: Any, bins: int, noise: float, classes: int | None = None) -> BinProducts:
    """Largest |mᵢ|² and largest ⟨mᵢ, mⱼ⟩ of two bins i ≠ j of one class; see `BinProducts`.

    A record in bin i of b takes part in the steps i, i + b, i + 2b, ...; class r of c has the bins
    r, r + c, ...  Every number of classes gives a bound.  By default it is 1 where that is exact,
    else the one whose dominating pair has the least E_Q(dP/dQ)² at this noise.
    """
    matrix, moves = bin_moves(C, bins)
    number = moves.shape[1]
    products = moves.T @ moves
    squares, others = np.diag(products), products[~np.eye(number, dtype=np.bool_)]
    if classes is not None and checks.count("classes", classes, least=1) > number:
        raise ValueError(f"classes must be at most the number of bins, {number}, got {classes}")
    # sums of terms >= 0: the relative errors of the entries, of the products and of their sum
    slack = Fraction((2.0 * matrix.shape[1] + matrix.shape[0] + 4.0) * UNIT)
    whole = 2.0**20 * moves
    if (whole == np.rint(whole)).all() and float(products.max()) < 2.0**12:
        slack = Fraction(0)  # all sums are multiples of 2^-40 below 2^12, which are doubles
    one_sign = bool((matrix >= 0.0).all() or (matrix <= 0.0).all())
    same = all(
        float(np.ptp(x)) <= float(slack) * float(x.max()) for x in (squares, others) if x.size
    )
    exact = one_sign and same and classes in (None, 1)
    square = float(squares.max())
    # products of bins at each distance, the largest
    apart = np.array([float(products.diagonal(d).max()) for d in range(number)])
    if exact:
        classes = 1
    tried = range(1, number + 1) if classes is None else (classes,)
    best = min((_log_square(square, apart[c::c], number // c, noise), c) for c in tried)
    chosen = best[1]
    product = Fraction(max(apart[chosen::chosen].tolist(), default=0.0))
    found = Fraction(square) * (1 + slack), product * (1 + slack)
    return BinProducts(*found, number // chosen, chosen, exact)


def _log_square(square: float, products: FloatArray, size: int, noise: float) -> float:
    """Logarithm of E_Q(dP/dQ)² for classes of ``size`` bins, from the square and the products."""
    shared = float(products.max()) if products.size else 0.0
    own = max(square - shared, 0.0) / noise / noise
    rest = own - fn.log(size) if own > 700.0 else fn.log1p(fn.expm1(own) / size)
    return shared / noise / noise + rest


def _matrix(C: Any) -> FloatArray:
    try:
        matrix = np.asarray(C, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"C must be a matrix of real numbers, got {checks.shown(C)}") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"C must be a matrix with at least one entry, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("C must have finite entries only, got NaN or an infinity")
    zero = np.flatnonzero(~matrix.any(axis=0))
    if zero.size:
        raise ValueError(f"C must have no zero column, got one at step {int(zero[0])}")
    if matrix.shape[1] > LARGEST:
        raise ValueError(f"C must have at most {LARGEST:,} columns, got {matrix.shape[1]:,}")
    size = float(np.abs(matrix).max())
    if not 1e-100 < float(np.abs(matrix).max(axis=0).min()) <= size < 1e100:
        raise ValueError("C must have columns of sizes within 1e-100 and 1e100")
    return matrix


def _rounding(matrix: FloatArray, number: int) -> float:
    """Relative error of Σ |⟨cᵢ, cⱼ⟩| over a pattern, formed in doubles.

    A product of two columns is off by at most rows × unit × their norms, and (Σ ‖cᵢ‖)² is at most
    k Σ ‖cᵢ‖², a part of the sum.
    """
    rows: int = matrix.shape[0]
    return (rows * number + number * number + 16.0) * UNIT


def _largest(matrix: FloatArray, patterns: list[npt.NDArray[np.intp]]) -> tuple[Fraction, bool]:
    """Largest Σ |⟨cᵢ, cⱼ⟩| over patterns; those that rounding leaves open are summed exactly."""
    number = max(pattern.size for pattern in patterns)
    values = np.array([_rounded(matrix[:, pattern]) for pattern in patterns])
    error = _rounding(matrix, number)
    open_ = np.flatnonzero(values >= values.max() * (1.0 - 4.0 * error))
    distinct: dict[bytes, npt.NDArray[np.intp]] = {}
    for index in open_:
        columns = matrix[:, patterns[index]]
        if number == 1:  # the norm does not depend on the order of the rows
            columns = np.sort(np.abs(columns), axis=0)
        distinct.setdefault(columns.tobytes(), patterns[index])
        if len(distinct) > CANDIDATES:
            break
    else:
        return max(_exactly(matrix[:, pattern]) for pattern in distinct.values())
    best = patterns[int(values.argmax())]
    return Fraction(float(values.max())) * (1 + Fraction(2.0 * error)), _exactly(matrix[:, best])[1]


def _rounded(columns: FloatArray) -> float:
    return float(np.abs(columns.T @ columns).sum())


def _exactly(columns: FloatArray) -> tuple[Fraction, bool]:
    """Exact Σ |⟨cᵢ, cⱼ⟩|, and whether signs of the contributions attain it."""
    scaled, unit = _integers(columns)
    if (columns >= 0.0).all() or (columns <= 0.0).all():
        return Fraction(sum(sum(row) ** 2 for row in scaled)) * unit * unit, True
    parts = list(zip(*scaled, strict=True))
    products = [[sum(map(int.__mul__, a, b)) for b in parts] for a in parts]
    total = sum(abs(entry) for row in products for entry in row)
    return Fraction(total) * unit * unit, _balanced(products)


def _integers(columns: FloatArray) -> tuple[list[list[int]], Fraction]:
    """Entries as integers, in units of one power of two."""
    ratios = [[float(x).as_integer_ratio() for x in row] for row in columns]
    largest = max(denominator for row in ratios for _, denominator in row)
    return [[p * (largest // q) for p, q in row] for row in ratios], Fraction(1, largest)


def _balanced(products: list[list[int]]) -> bool:
    """Whether there are signs s such that every product has the sign sᵢsⱼ or is 0."""
    signs: dict[int, int] = {}
    for start in range(len(products)):
        if start in signs:
            continue
        signs[start], pending = 1, [start]
        while pending:
            i = pending.pop()
            for j, entry in enumerate(products[i]):
                if entry == 0:
                    continue
                sign = signs[i] if entry > 0 else -signs[i]
                if j not in signs:
                    signs[j] = sign
                    pending.append(j)
                elif signs[j] != sign:
                    return False
    return True


def _decreasing_toeplitz(matrix: FloatArray) -> bool:
    """Whether C is square, lower triangular and Toeplitz with entries that decrease to >= 0."""
    rows, steps = matrix.shape
    first = matrix[:, 0]
    if rows != steps or (first < 0.0).any() or (np.diff(first) > 0.0).any():
        return False
    return all(
        not matrix[:i, i].any() and np.array_equal(matrix[i:, i], first[: steps - i])
        for i in range(1, steps)
    )


def _separated(matrix: FloatArray, number: int, gap: int) -> tuple[Fraction, bool]:
    """Largest weight of a pattern of at most ``number`` steps, ``gap`` apart or more, or a bound.

    The bound is for dynamic programs with too many states: each step i adds at most uᵢ, the largest
    Σⱼ |⟨cᵢ, cⱼ⟩| over the patterns that hold i; dynamic programming finds the largest Σ uᵢ.
    """
    found = heaviest(matrix, number, gap)
    if found is not None:
        whole = 2.0**20 * matrix  # all sums are then multiples of 2^-40, doubles below 2^12
        is_whole = bool((whole == np.rint(whole)).all()) and found.weight < 2.0**12
        value = Fraction(found.weight)
        if not is_whole:
            value *= 1 + Fraction(2.0 * _rounding(matrix, number))
        if found.pattern is None:
            return value, True
        return value, _exactly(matrix[:, found.pattern])[1]
    shares, diagonal = np.empty(matrix.shape[1]), np.einsum("ij,ij->j", matrix, matrix)
    for start, rows in _row_blocks(matrix):
        steps = np.arange(start, start + len(rows))
        near = np.abs(steps[:, None] - np.arange(matrix.shape[1])) < gap
        rows[near] = 0.0
        shares[steps] = diagonal[steps] + _best(rows, number - 1, gap)[:, -1]
    best = _best(shares[None, :], number, gap)[0, -1]
    pattern = _attaining(shares, number, gap)
    error = 2.0 * _rounding(matrix, number)
    value = Fraction(float(best)) * (1 + Fraction(error))
    attained, exact = _exactly(matrix[:, pattern])
    return value, exact and attained * (1 + Fraction(2.0 * error)) >= value


def _row_blocks(matrix: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    for start in range(0, matrix.shape[1], BLOCK):
        yield start, np.abs(matrix[:, start : start + BLOCK].T @ matrix)


def _best(weights: FloatArray, number: int, gap: int) -> FloatArray:
    """Largest sum of at most ``number`` weights of a row, ``gap`` apart, up to each column."""
    best = np.zeros_like(weights)
    for _ in range(number):
        candidates = weights.copy()
        candidates[:, gap:] += best[:, :-gap]
        best = np.maximum.accumulate(candidates, axis=1)
    return best


def _attaining(weights: FloatArray, number: int, gap: int) -> npt.NDArray[np.intp]:
    """Steps whose weights have the largest sum, as `_best` finds it."""
    rows = [_best(weights[None, :], m, gap)[0] for m in range(number + 1)]
    chosen, end = [], weights.size - 1
    for m in range(number, 0, -1):
        if end < 0:
            break
        last = int(np.searchsorted(rows[m][: end + 1], rows[m][end], side="left"))
        chosen.append(last)
        end = last - gap
    return np.array(chosen[::-1], dtype=np.intp)
