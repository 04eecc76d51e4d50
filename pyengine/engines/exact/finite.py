"""Composition of laws with finitely many losses: sums of positive products, atoms merged.

Masses are doubles with integer exponents, so nothing underflows.  Atoms whose losses agree to
rounding are merged: that is post-processing, and costs a relative error of at most their distance.
Losses are doubles, or sums of two doubles for a profile next to one of them (docs/theory/finite).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property, kept
from pyengine.engines.exact.levels import (
    NO_LOW_PARTS,
    SUBNORMAL,
    Calls,
    ComposedLaw,
    KnownProfile,
    LawTests,
    Tails,
    low_parts,
    masses_from,
    profile_from,
)
from pyengine.engines.exact.mixed import FEW, Weights
from pyengine.engines.functionals import array
from pyengine.errors import AccuracyError
from pyengine.laws.base import overflow_of
from pyengine.laws.fine import left_of, lost_mass
from pyengine.laws.finite import LOG_ERROR, FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import Wide

__all__ = ["FiniteComposition", "NotComposedError", "composition", "finite_composition"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

KERNELS = [
    ffi.addressof(lib, f"pe_finite_law_{name}") for name in ("tails", "profile", "roughly", "start")
]
# products of two laws up to which no common lattice is looked for, and most off a lattice
FEW_PRODUCTS, MAX_PRODUCTS = 1 << 10, 1 << 21
# on a common lattice: most points, most products, and largest numerator of a ratio of spacings
MAX_LATTICE, MAX_ON_LATTICE, MAX_QUOTIENT = 1 << 20, 1 << 28, 4096
LEAST_GAP, LARGEST_LOSS = 1e-200, 1e290  # products of sums of two doubles keep their digits
MAX_GAPS = 32  # places of the lattice per loss
WIDE_ERROR = 2.0**-98  # relative error of some operations on sums of two doubles
SCALE = 200  # masses on a lattice are times 2^200, so that underflow is below 1e-380
MOST_EXPONENT = 1000  # masses are at most 1: those above 2^1000 are rounding alone
DEEPEST = -(1 << 61)  # smallest exponent of a mass: the sum of two is an int64
KEPT = 64  # compositions in the cache


class NotComposedError(AccuracyError):
    """A composition with sums too long, or losses too large, for this engine."""


@dataclass(eq=False)
class _Atoms:
    """Sorted losses, masses ``mantissa`` 2^``exponent`` of both laws, and their relative error."""

    loss: FloatArray
    low: FloatArray | None  # the losses are loss + low; None if low parts are not kept
    mantissa: FloatArray  # shape (2, n): A, B
    exponent: IntArray
    error: float
    loss_error: float  # bound of the absolute error of loss + low, if low parts are kept

    @property
    def size(self) -> int:
        return int(self.loss.size)

    @property
    def wide(self) -> Wide:
        """All losses, those without low parts as doubles."""
        return Wide(self.loss, np.zeros(self.size) if self.low is None else self.low)

    @property
    def first(self) -> Wide:
        """The smallest loss."""
        return self._at(0)

    @property
    def last(self) -> Wide:
        """The largest loss."""
        return self._at(-1)

    def _at(self, index: int) -> Wide:
        return Wide(float(self.loss[index]), 0.0 if self.low is None else float(self.low[index]))


def _of(law: FiniteLaw, fine: bool) -> _Atoms:
    low, loss_error = None, 0.0
    if fine and law.fine is not None:
        low, loss_error = law.fine.beside(law.loss)
    elif fine:
        low, loss_error = np.zeros(law.loss.size), law.support_error()
    logs = np.array([law.log_a, law.log_b]) / fn.log(2.0)
    exponent = np.floor(np.maximum(logs, DEEPEST))
    # rounding of log / log 2 is within the error of the law itself
    mantissa = fn.power(2.0, np.maximum(logs - exponent, 0.0))
    return _Atoms(law.loss, low, mantissa, exponent.astype(np.int64), 0.0, loss_error)


def _merged(
    loss: FloatArray,
    low: FloatArray | None,
    mantissa: FloatArray,
    exponent: IntArray,
    e: float,
    loss_error: float,
) -> _Atoms:
    order = np.argsort(loss, kind="stable")
    loss, mantissa, exponent = loss[order], mantissa[:, order], exponent[:, order]
    same = 64.0 * UNIT * (1.0 + max(abs(float(loss[0])), abs(float(loss[-1]))))
    with np.errstate(over="ignore"):  # losses may be farther apart than the largest double
        starts = np.concatenate([[0], np.flatnonzero(np.diff(loss) > same) + 1])
    sizes = np.diff(np.append(starts, loss.size))
    ends = starts + sizes - 1
    spread = float((loss[ends] - loss[starts]).max())
    top = np.maximum.reduceat(exponent, starts, axis=1)
    shifted = np.maximum(exponent - np.repeat(top, sizes, axis=1), -2000)
    sums = np.add.reduceat(np.ldexp(mantissa, shifted.astype(np.int32)), starts, axis=1)
    mantissa, carry = np.frexp(sums)
    e += UNIT * (float(sizes.max()) + 2.0) + spread
    if low is not None:
        low = low[order]
        # distances of the losses in one atom from the first, which stands for all of them
        apart = (loss - np.repeat(loss[starts], sizes)) + (low - np.repeat(low[starts], sizes))
        loss_error += 1.01 * float(np.abs(apart).max())
        low = low[starts]
    return _Atoms(loss[starts], low, mantissa, top + carry, e, loss_error)


def _sums(x: _Atoms, y: _Atoms) -> tuple[FloatArray, FloatArray | None, float]:
    """Sums of all pairs of losses as doubles, their low parts, and a bound of the error of both."""
    high = np.add.outer(x.loss, y.loss)
    if x.low is None or y.low is None:
        return high.ravel(), None, 0.0
    low = left_of(x.loss[:, None], y.loss, high) + (x.low[:, None] + y.low)
    error = x.loss_error + y.loss_error + 4.0 * UNIT * float(np.abs(low).max())
    return high.ravel(), low.ravel(), error * (1.0 + 4.0 * UNIT)


def _times(x: _Atoms, y: _Atoms) -> _Atoms:
    products = x.size * y.size
    found = _on_a_lattice(x, y) if products > FEW_PRODUCTS else None
    if found is not None:
        return found
    if products > MAX_PRODUCTS:
        raise NotComposedError(
            f"an exact composition would need {x.size} x {y.size} products, more than "
            f"{MAX_PRODUCTS}: compose fewer steps or ask method='lattice'"
        )
    loss, low, loss_error = _sums(x, y)
    return _merged(
        loss,
        low,
        (x.mantissa[:, :, None] * y.mantissa[:, None, :]).reshape(2, -1),
        np.maximum(x.exponent[:, :, None] + y.exponent[:, None, :], DEEPEST).reshape(2, -1),
        x.error + y.error,
        loss_error,
    )


class _Multiples(NamedTuple):
    """Losses as multiples of a spacing from the smallest one, and a bound of their distance."""

    number: IntArray
    off: float

    @classmethod
    def of(cls, atoms: _Atoms, spacing: Wide) -> _Multiples:
        apart = atoms.wide - atoms.first
        number = np.round(apart.high / spacing.high)
        off = float(np.abs((apart - spacing * number).high).max()) * (1.0 + 4.0 * UNIT)
        rounded = WIDE_ERROR * (float(np.abs(atoms.loss).max()) + float(apart.high[-1]))
        return cls(number.astype(np.int64), off + rounded)


def _spacing(x: _Atoms, y: _Atoms) -> Wide | None:
    """Estimated spacing of a lattice that may contain the losses of both laws; else None."""
    if min(x.size, y.size) < 2:
        return None
    gaps = [float(np.diff(each.loss).min()) for each in (x, y)]
    largest = max(float(np.abs(each.loss).max()) for each in (x, y))
    if not (min(gaps) > LEAST_GAP and largest < LARGEST_LOSS):
        return None
    ranges = [each.last - each.first for each in (x, y)]
    counts = [round(float(r) / gap) for r, gap in zip(ranges, gaps, strict=True)]
    steps = [r / count for r, count in zip(ranges, counts, strict=True)]
    quotient = Fraction(float(steps[0]) / float(steps[1])).limit_denominator(MAX_QUOTIENT)
    if not 0 < quotient.numerator <= MAX_QUOTIENT:
        return None
    # the longer range determines the spacing more precisely
    if float(ranges[0]) >= float(ranges[1]):
        return steps[0] / quotient.numerator
    return steps[1] / quotient.denominator


# Map: finite laws on a common lattice | test_common_lattices | theory/finite
def _on_a_lattice(x: _Atoms, y: _Atoms) -> _Atoms | None:
    """The product if all losses are multiples of one spacing up to rounding; else None.

    All products are positive, so a sum has at most one relative rounding per term.
    """
    spacing = _spacing(x, y)
    if spacing is None:
        return None
    few, many = (x, y) if x.size <= y.size else (y, x)
    of_few, of_many = (_Multiples.of(each, spacing) for each in (few, many))
    most = max(abs(float(x.loss[i] + y.loss[i])) for i in (0, -1))
    off = of_few.off + of_many.off + WIDE_ERROR * most
    size = int(of_few.number[-1] + of_many.number[-1]) + 1
    width = int(of_many.number[-1]) + 1
    # beyond that many gaps sorting all products is quicker, if there is room for it
    room = MAX_GAPS * x.size * y.size if x.size * y.size <= MAX_PRODUCTS else MAX_ON_LATTICE
    if off > 64.0 * UNIT * (1.0 + most) or size > MAX_LATTICE or few.size * width > room:
        return None
    masses = np.zeros((2, size))
    for of_law in (0, 1):
        dense = np.zeros(width)
        dense[of_many.number] = _raised(many, of_law)
        room_of_row = np.empty(width)
        raised = _raised(few, of_law)
        for first, mass in zip(of_few.number.tolist(), raised.tolist(), strict=True):
            masses[of_law, first : first + width] += np.multiply(dense, mass, out=room_of_row)
    known = np.flatnonzero(masses.max(axis=0))
    if not known.size:  # all are below 2^(-2 SCALE) times the smallest double
        return None
    mantissa, exponent = np.frexp(masses[:, known])
    exponent = np.where(mantissa > 0.0, exponent.astype(np.int64) - 2 * SCALE, DEEPEST)
    loss = spacing * known.astype(np.float64) + (x.first + y.first)
    are_fine = x.low is not None and y.low is not None
    error = x.error + y.error + UNIT * (few.size + 4.0) + off
    loss_error = x.loss_error + y.loss_error + off if are_fine else 0.0
    low = loss.low if are_fine else None
    return _Atoms(loss.high, low, mantissa, exponent, error, loss_error)


def _raised(atoms: _Atoms, of_law: int) -> FloatArray:
    """Masses times 2^`SCALE`."""
    exponent = np.clip(atoms.exponent[of_law] + SCALE, -3000, 3000).astype(np.int32)
    return np.asarray(np.ldexp(atoms.mantissa[of_law], exponent))


def _power(step: _Atoms, number: int) -> _Atoms:
    result = step
    for bit in bin(number)[3:]:
        result = _times(result, result)
        if bit == "1":
            result = _times(result, step)
    return result


# Map: composition of laws with finitely many losses | test_exact | theory/finite
def composition(laws: list[tuple[FiniteLaw, int]]) -> FiniteComposition:
    """Compose laws, each with its number of steps, or raise `NotComposedError`."""
    result, losses, atoms, given, steps, survive = _nothing(), 0.0, 0.0, 0.0, 0, [0.0, 0.0]
    off, lowest = 0.0, 0.0
    overflow = overflow_of(laws)
    if overflow is not None:
        raise NotComposedError(overflow)
    laws = [(law, number) for law, number in laws if not _tells_nothing(law)]
    for law, number in laws:
        if not law.loss.size:  # all losses are infinite
            empty = replace(_nothing(), mantissa=np.zeros((2, 1)))
            return FiniteComposition(empty, 1.0, 1.0, 0.0, 0.0, 0.0)
        result = _times(result, _power(_of(law, fine=False), number))
        losses += number * (1.0 + float(np.abs(law.loss).max()))
        atoms += number * fn.log(law.loss.size)
        steps += number
        given += number * law.error
        off += number * law.support_error()
        lowest += number * law.limits()[0]
        both = zip(law.infinite(), (law.log_a, law.log_b), strict=True)
        for side, (mass, logs) in enumerate(both):
            # for a mass near 1, one minus it is more precise from the finite masses
            rest = fn.log1p(-mass) if mass < 0.5 else float(fn.log_sum(logs))
            survive[side] += number * min(rest, 0.0)
    if result.exponent.max() > MOST_EXPONENT:
        raise NotComposedError(
            f"the masses of {steps:,} steps are rounded by more than doubles hold: an exact "
            "composition takes fewer steps"
        )
    # Lemma 1: a mass has relative error LOG_ERROR (1 + |log mass|), so a total M over paths of N
    # factors has LOG_ERROR (N + log(number of paths) + |log M|), as entropy is concave
    error = result.error + LOG_ERROR * (2.0 * steps + atoms + losses) + given
    a_lost, b_lost = (0.0 - fn.expm1(value) for value in survive)
    # sums of losses are rounded once per squaring and per law
    rounds = 2.0 + len(laws) + sum(number.bit_length() for _, number in laws)
    shift = UNIT * rounds * losses + off
    return FiniteComposition(result, a_lost, b_lost, error, shift, lowest, laws)


def _tells_nothing(law: FiniteLaw) -> bool:
    """Whether both laws are exactly the same."""
    if law.loss.size != 1 or law.loss[0] != 0.0 or law.infinite() != (0.0, 0.0):
        return False
    return law.fine is not None and law.fine.is_nothing


def _nothing() -> _Atoms:
    """The law of zero steps."""
    one, none = np.ones((2, 1)), np.zeros((2, 1), np.int64)
    return _Atoms(np.zeros(1), np.zeros(1), one, none, 0.0, 0.0)


def _accumulated(values: FloatArray) -> tuple[FloatArray, float]:
    """Running sums from 0, in blocks, and a bound of their relative error: O(√n) roundings."""
    block = max(1, math.isqrt(values.size))
    padded = np.zeros(-(-values.size // block) * block)
    padded[: values.size] = values
    inner = np.cumsum(padded.reshape(-1, block), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:, -1])[:-1]])
    sums = (inner + before[:, None]).ravel()[: values.size]
    return np.concatenate([[0.0], sums]), UNIT * (2.0 * block + 4.0)


class _Digits:
    """Low parts of the losses of a composition, made where a profile needs them."""

    def __init__(self, laws: list[tuple[FiniteLaw, int]]) -> None:
        self._laws = laws

    @property
    def are_known(self) -> bool:
        """Whether some law has low parts."""
        return any(law.fine is not None for law, _ in self._laws)

    @cached_property
    def low(self) -> tuple[FloatArray, float]:
        """Low parts of the losses, and a bound of the error of double and low part together."""
        atoms = _nothing()
        for law, number in self._laws:
            atoms = _times(atoms, _power(_of(law, fine=True), number))
        if atoms.low is None:
            raise AssertionError("losses to many digits have no low parts")
        return atoms.low, atoms.loss_error


class FiniteComposition(ComposedLaw):
    """Composed laws of finitely many losses; see `ComposedLaw`."""

    is_narrowed = True

    def __init__(
        self,
        atoms: _Atoms,
        a_lost: float,
        b_lost: float,
        error: float,
        shift: float,
        lowest: float,
        laws: list[tuple[FiniteLaw, int]] | None = None,
    ) -> None:
        self._laws = laws or []
        exponent = np.clip(atoms.exponent, -3000, 3000).astype(np.int32)
        self._loss, self._meets = atoms.loss, bool(atoms.mantissa.any())
        self._a, self._b = map(np.ascontiguousarray, np.ldexp(atoms.mantissa, exponent))
        self._lost = a_lost, b_lost
        self._shift, self._lowest = shift, lowest  # absolute error of a loss, and the smallest loss
        sums = []
        for values in (self._a, self._b):
            below, extra = _accumulated(values)
            above, _ = _accumulated(values[::-1])
            sums += [np.ascontiguousarray(above[::-1]), below]
            if len(values) > 1:  # the sum of one mass is exact
                error = max(error, error + extra)
        self._error = error
        tails = sums[0], sums[1] + a_lost, sums[2] + b_lost, sums[3]
        self._arrays = [self._loss, *tails, self._a, sums[1]]
        self._digits = _Digits(self._laws)
        self.is_light = self.size <= FEW

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""
        return float(self._loss[0]), float(self._loss[-1])

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""
        return self._lost

    @property
    def meets(self) -> bool:
        """Whether some outcome is possible under both laws."""
        return self._meets

    def lowest(self) -> tuple[float, float]:
        """Lower and upper bound of the infimum of all finite losses."""
        return self._lowest - self._shift, self._lowest + self._shift

    @property
    def size(self) -> int:
        """Number of finite losses."""
        return int(self._loss.size)

    def weights(self, most: int | None = None) -> Weights:
        """The losses and their masses; with ``most``, refused for more losses or infinite ones."""
        if most is not None and (self._loss.size > most or max(self._lost) > 0.0):
            raise NotComposedError(
                f"an exact composition with continuous steps takes at most {most} finite losses, "
                f"and none that is infinite; here are {self._loss.size}: ask method='lattice'"
            )
        # masses below e^-700 do not count in the sums, whatever their relative error
        error = self._error + 700.0 * LOG_ERROR + self._shift
        digits = (lambda: self._digits.low) if self._digits.are_known else None
        return Weights(self._loss, self._a, self._b, error, digits, self.lowest())

    @cached_property
    def _core(self) -> Any:
        # losses that were merged differ by less than the error
        errors = self._error, LOG_ERROR, self._error + self._shift
        digits = low_parts(self._digits) if self._digits.are_known else NO_LOW_PARTS
        given = self.size, *map(array, self._arrays), *errors, self.lowest()[0], digits
        self._kept = given  # what the struct points to
        return ffi.new("pe_finite_law *", given)

    @property
    def calls(self) -> Calls:
        """Functions of this law for the C core."""
        return Calls(self._core, *KERNELS)

    @cached_property
    def tests(self) -> LawTests:
        """Tests {S > c} for the C core, which finds the thresholds."""
        # less than a distance of losses, and no less than their last place
        room = max(2.0 * UNIT * float(np.abs(self._loss).max()), SUBNORMAL)
        return LawTests(self, self.calls, self._loss, has_atoms=True, room=room)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        return masses_from(lib.pe_finite_law_tails, self._core, c)

    def alone(self) -> tuple[float, float, float]:
        """Mass of A at loss -inf as a sum of two doubles, and a bound of its absolute error."""
        return self._alone

    @cached_property
    def _alone(self) -> tuple[float, float, float]:
        lost = self._lost[0]
        parts = [(law.alone[0], number) for law, number in self._laws if law.alone is not None]
        if len(parts) == len(self._laws):
            return lost_mass(parts) if lost > 0.0 and parts else (lost, 0.0, 0.0)
        depth = max(-fn.log(lost), 0.0) if lost > 0.0 else 0.0
        return lost, 0.0, lost * (self._error + LOG_ERROR * depth)

    def profile(self, epsilon: FloatArray) -> KnownProfile:
        """H_{e^ε}(A‖B) without A's mass at loss -inf."""
        return profile_from(lib.pe_finite_law_profile, self._core, epsilon)


@kept(KEPT)
def _made(laws: tuple[tuple[FiniteLaw, int], ...]) -> tuple[FiniteComposition | None, str]:
    try:
        return composition(list(laws)), ""
    except NotComposedError as refusal:  # cached as well: it takes time to find out
        return None, str(refusal)


def finite_composition(laws: list[tuple[FiniteLaw, int]]) -> FiniteComposition:
    """Return the cached composition of finite laws.

    Raises
    ------
    NotComposedError
        If its sums are too long, or its losses too large.
    """
    made, reason = _made(tuple(laws))
    if made is None:
        raise NotComposedError(reason)
    return made
