"""The transform of equal Laplace steps as a sum over the corners of their loss.

The density of one step's loss is analytic between its *corners*: the two ends, and under
``substitute`` the middle.  So its transform is the sum over corners of e^(s loss) times a factor
that does not oscillate, and that of N steps is a polynomial in e^(s d): its coefficients are those
of the N-th power of the polynomial of factors (docs/theory/laplace, Lemma 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.engines.lattice.fft_convolution import FFT_ROUNDING
from pyengine.engines.vertical_lines.ends import end_bounds, end_transforms
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["Corners", "Factors", "corners_of", "mean_log"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

# roundings: of a factor, of the polynomial at a root of unity, and of its power for each step
FACTOR, ROOT, POWER = 16.0, 24.0, 4.0


SMALL = 0.01  # densities up to this part of their atoms are kept apart from these
PART = 40.0  # roundings of e^(n log(1 + part)) - 1, in parts of n times the part
MOST_INSIDE = 10  # most steps at the middle corner, which has no atom, in `beside_atoms`
NEGLIGIBLE = 1e-19  # relative, of terms with more steps there


class Factors(NamedTuple):
    """Factors of a step's corners at points s: the atom's mass plus the density's P or -Q.

    Parameters
    ----------
    shares : ndarray of shape (corners, 1)
        Tilted masses of the atoms.
    added, error : ndarray of shape (corners, points)
        The densities' contributions, and bounds of their absolute errors.
    relative : float
        Bound of further relative errors of both.
    """

    shares: FloatArray
    added: ComplexArray
    error: FloatArray
    relative: float


class BesideAtoms(NamedTuple):
    """Terms of equal steps: ``atoms`` by place, and ``rest`` (term - atom) by place and point.

    ``whole`` bounds the sum of all moduli at a point, and ``error`` that of the errors of ``rest``
    over all places, relative to ``whole``.
    """

    atoms: FloatArray
    rest: ComplexArray
    whole: FloatArray
    error: FloatArray


class Piece(NamedTuple):
    """A piece of the density: ``share`` times that of the half, from corner ``start`` to ``end``.

    A ``mirrored`` piece goes to lower losses, with e^(distance from the start) times the density.
    """

    start: int
    end: int
    share: float
    mirrored: bool


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners of a step, the least loss first and the largest one last.

    Parameters
    ----------
    half : LaplaceShape
        The step whose density the pieces have.
    pieces : tuple of Piece
        The pieces between the corners.
    """

    half: LaplaceShape
    pieces: tuple[Piece, ...]

    @property
    def number(self) -> int:
        """Number of corners: one more than pieces."""
        return len(self.pieces) + 1

    @cached_property
    def _grown(self) -> float:
        """e^d."""
        return fn.exp(float(self.half.length))

    def transforms(self, s: ComplexArray, angle: float) -> tuple[ComplexArray, FloatArray]:
        """Contributions of the densities to the factors at points s, and bounds of the errors.

        As `end_transforms`; a mirrored piece has those at 1 - s, formed at the complex conjugate,
        which lies above the real axis as s does.
        """
        value = np.zeros((self.number, s.size), dtype=np.complex128)
        error = np.zeros((self.number, s.size))
        for start, end, share, mirrored in self.pieces:
            if mirrored:
                found = end_transforms(self.half, 1.0 - s.conj(), math.pi - angle)
                low, high, far = found.low.conj(), found.high.conj(), share * self._grown
            else:
                found = end_transforms(self.half, s, angle)
                low, high, far = found.low, found.high, share
            value[start] += share * low
            value[end] -= far * high
            error[start] += share * found.low_error
            error[end] += far * found.high_error
        return value, error

    def bounds(self, height: float) -> FloatArray:
        """Bounds of the moduli of these contributions wherever Im s is at least a height."""
        found = np.zeros(self.number)
        first, last = end_bounds(self.half, height)
        for start, end, share, mirrored in self.pieces:
            found[start] += share * first
            found[end] += share * (self._grown if mirrored else 1.0) * last
        return found * (1.0 + 16.0 * UNIT)

    def atoms(self, low: float, high: float) -> FloatArray:
        """Masses of the atoms at both ends, by corners; 0 between them."""
        found = np.zeros(self.number)
        found[0], found[-1] = low, high
        return found

    def powers(
        self, factor: ComplexArray, number: int, row: npt.NDArray[np.intp]
    ) -> tuple[ComplexArray, FloatArray]:
        """Coefficients ``row`` of the ``number``-th power of the polynomial of factors.

        Also a bound of the sum of all coefficients' errors, relative to the power of the sum of the
        factors' moduli; factors err by `FACTOR` units of that sum.
        """
        moduli = fn.modulus(factor)
        both = moduli.sum(axis=0)
        if self.number == 2:
            at, back = np.unique(row, return_inverse=True)
            j = at.astype(np.float64)[:, None]
            log = fn.complex_log(factor)
            table = (number - j) * log[0] + j * log[1]
            off = number * (FACTOR + 6.0 * mean_log(moduli)) * UNIT
            # errors of the logarithms' real and imaginary parts
            off += number * (4.0 + 10.0 * (moduli * np.abs(log.imag)).sum(axis=0) / both) * UNIT
            return fn.complex_exp(table + _log_comb(number)[at, None])[back], off
        found, off = self._by_roots(factor / both, number, number * fn.log(both))
        return found[row], off

    def _by_roots(
        self, factor: ComplexArray, number: int, log_both: FloatArray
    ) -> tuple[ComplexArray, FloatArray]:
        """All coefficients, by a Fourier transform of values at roots of unity.

        The factors were divided by the sum of their moduli.  By Parseval the norm of the
        coefficients is that of the values over the root of their number, and the sum of all
        coefficients' errors is at most that root times the norm of these errors.
        """
        last = (self.number - 1) * number
        levels = last.bit_length()
        k = np.arange(1 << levels)
        root = fn.turn(2.0 * math.pi * np.where(2 * k > k.size, k - k.size, k) / k.size)
        value = factor[-1]
        for one in factor[-2::-1]:
            value = value * root[:, None] + one
        power = fn.power_by_squares(value, number)
        slope = _norm(fn.power_by_squares(fn.modulus(value), number - 1))
        off = number * UNIT * ((FACTOR + ROOT) * slope + POWER * _norm(power))
        off += FFT_ROUNDING * levels * _norm(power) + (8.0 + 4.0 * np.abs(log_both)) * UNIT
        found = np.fft.fft(power, axis=0)[: last + 1] * (fn.exp(log_both) / k.size)
        return found, off * (1.0 + 1e-6)

    def is_small(self, factors: Factors, number: int) -> bool:
        """Whether densities are small beside the atoms at both ends, and so at the middle."""
        ends = [0, -1]
        if not (
            fn.modulus(factors.added[ends]).max(axis=1) < SMALL * factors.shares[ends, 0]
        ).all():
            return False
        return self.number == 2 or self._inside(factors, number) <= MOST_INSIDE

    def _inside(self, factors: Factors, number: int) -> int:
        """Number of steps at the middle corner beyond which terms are negligible."""
        part = float(fn.modulus(factors.added[1]).max() / factors.shares.sum())
        return next(
            (k for k in range(MOST_INSIDE + 1) if _most_inside(part, number, k) < NEGLIGIBLE),
            MOST_INSIDE + 1,
        )

    def beside_atoms(self, factors: Factors, number: int, row: npt.NDArray[np.intp]) -> BesideAtoms:
        """Coefficients as of `powers` less those of the atoms alone, without cancellation.

        Needs `is_small`: a term is atom (e^E - 1) with E = Σ n log(1 + density/atom).
        """
        ends = [0, -1]
        shares, error, added = factors.shares[ends], factors.error[ends], factors.added[ends]
        steps = self.number - 1
        j = row // steps
        with np.errstate(divide="ignore"):
            atoms = fn.exp(self.log_terms(factors.shares[:, 0], number)[row])
        part = added / shares
        log, high = _log1p(part), j[:, None].astype(np.float64)
        exponent = (number - high) * log[0] + high * log[1]
        rest = atoms[:, None] * fn.complex_expm1(exponent)
        moduli = fn.modulus(part)
        off = 1.5 * (error / shares + (factors.relative + PART * UNIT) * moduli)
        whole = fn.exp(number * fn.modulus(log).max(axis=0)) * fn.power(float(shares.sum()), number)
        found = number * off.max(axis=0)
        if steps == 1:
            return BesideAtoms(atoms, rest, whole, found)
        both = fn.modulus(shares + added)
        inside = fn.modulus(factors.added[1])
        total = both.sum(axis=0)
        middle = np.where(inside > 0.0, factors.added[1], 1e-300)
        known = fn.complex_log(shares + added), fn.complex_log(middle)
        most = self._inside(factors, number)
        for k in range(1, most + 1):
            at = np.flatnonzero((row >= k) & ((row - k) % 2 == 0) & ((row - k) // 2 <= number - k))
            i = ((row[at] - k) // 2)[:, None].astype(np.float64)
            logs = (number - k - i) * known[0][0] + i * known[0][1] + k * known[1]
            ways = fn.log_integer(math.comb(number, k)) + _log_comb(number - k)[(row[at] - k) // 2]
            rest[at] += fn.complex_exp(logs + ways[:, None])
        # relative errors of these terms, which sum to at most number times the middle's share
        each = number * (factors.relative + (FACTOR + 6.0 * mean_log(both)) * UNIT)
        each = each + number * factors.error[ends].sum(axis=0) / total
        logs = UNIT * (20.0 + 6.0 * np.abs(fn.log(np.maximum(inside, 1e-300))))
        beside = number * (inside / total) * fn.power(1.0 + inside / total, number)
        found = found + beside * (each + most * logs) + number * factors.error[1] / total * 2.0
        left = _most_inside(inside / total, number, most)
        return BesideAtoms(atoms, rest, np.maximum(whole, fn.power(total, number)), found + left)

    def log_terms(self, factor: FloatArray, number: int) -> FloatArray:
        """Logarithms of the power's coefficients for real factors, at least 0."""
        steps = self.number - 1
        if steps == 1 or factor[1] == 0.0:
            found = np.full(steps * number + 1, -np.inf)
            j = np.arange(number + 1.0)
            logs = (number - j) * fn.log(factor[0]) + j * fn.log(factor[-1])
            found[::steps] = logs + _log_comb(number)
            return found
        whole = float(factor.sum())
        power = _polynomial_power(factor / whole, number)
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log(power) + number * fn.log(whole))


@kept(64)
def _log_comb(number: int) -> FloatArray:
    """Logarithms of the binomial coefficients of ``number``."""
    return np.array([fn.log_integer(math.comb(number, j)) for j in range(number + 1)])


def _norm(values: FloatArray | ComplexArray) -> FloatArray:
    """Euclidean norms of columns."""
    return np.asarray(np.sqrt((values.real * values.real + values.imag * values.imag).sum(axis=0)))


def mean_log(parts: FloatArray) -> FloatArray:
    """Return the mean of |log x| over the ``parts`` x of columns, weighted with x."""
    known = np.maximum(parts, 1e-300)
    return np.asarray((known * np.abs(fn.log(known))).sum(axis=0) / known.sum(axis=0))


def _most_inside(part: float | FloatArray, number: int, inside: int) -> Any:
    """Bound of all terms with more than ``inside`` steps at a corner with this share of all."""
    if inside >= number:
        return 0.0 * part
    more = inside + 1
    of_others = fn.power(1.0 + part, float(number - more))
    return math.comb(number, more) * fn.power(part, float(more)) * of_others


def _log1p(z: ComplexArray) -> ComplexArray:
    """log(1 + z) for small z, to 12 roundings of |z|."""
    x, y = z.real, z.imag
    return np.asarray(0.5 * fn.log1p(x * (2.0 + x) + y * y) + 1j * fn.arctan2(y, 1.0 + x))


def _polynomial_power(factor: FloatArray, number: int) -> FloatArray:
    """Coefficients of the power of a polynomial, by repeated squaring."""
    if number == 1:
        return factor
    half = _polynomial_power(factor, number // 2)
    square = np.convolve(half, half)
    return np.convolve(square, factor) if number % 2 else square


@kept(64)
def corners_of(shape: StepShape) -> Corners:
    """Return the corners of a step."""
    if shape.pieces == 1:
        return Corners(shape.half, (Piece(0, 1, float(shape.branches[0].falling), False),))
    share = float(shape.branches[1].falling)
    return Corners(shape.half, (Piece(1, 0, share, True), Piece(1, 2, share, False)))
