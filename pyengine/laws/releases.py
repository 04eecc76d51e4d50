"""The law of several releases of the same records, whose losses add up.

If at most one release has a law that is not finite, the cells of the sum are those of that law,
shifted by each loss of the finite ones and weighted by its mass.  If there are several, all but one
(a Gaussian one, if there is one) are replaced by finite pairs: from above by a pair whose profile
joins upper bounds by chords, from below by a pair whose outcomes are cells of losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.errors import AccuracyError
from pyengine.laws.base import (
    Cells,
    EnclosedLaw,
    Enclosing,
    FloatArray,
    Law,
    StepLaw,
    largest_finite,
)
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.laws.profile import upper_values
from pyengine.mechanisms.general import pair_of_profile
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["SumLaw", "finite_sum", "outcomes_together", "sum_law"]

IntArray = npt.NDArray[np.intp]
Outcomes = list[tuple[Fraction, Fraction]]
Ends = tuple[bool, bool]  # whether the lower and the upper tail of losses is cut off

MOST_ATOMS = 1 << 20  # losses of a finite law
MOST_EXACT = 4096  # ratios of outcomes whose probabilities are multiplied in fractions
MOST_FACTORS = 64  # releases whose probabilities are multiplied in fractions
FEW = 257  # losses of a finite pair that replaces a law (256 cells)
FARTHEST = 64.0  # largest |loss| of such a pair, unless the tail is cut off before
TAIL = 1e-25  # mass of a tail that is cut off before `FARTHEST`
MOST_TOGETHER = 8  # edges up to which cells of all shifted laws are asked for at once
MOST_MOVED = 1024  # finite losses by which the cells of another law are shifted
TRIVIAL = FiniteLaw.from_fractions([(Fraction(1), Fraction(1))])  # the loss is 0


# Map: several releases of one sample | test_releases | theory/adjacency
def sum_law(parts: list[tuple[StepLaw, int]], *, or_enclosed: bool = False) -> StepLaw:
    """Return the law of the sum of independent losses.

    Parameters
    ----------
    parts : list of (StepLaw, int)
        Laws and how often each is added.
    or_enclosed : bool
        Whether to accept a law that is only enclosed between two others.

    Returns
    -------
    StepLaw
        A law with cells if at most one term is not finite; else one enclosed between two others.

    Raises
    ------
    AccuracyError
        If several terms are not finite, unless ``or_enclosed`` and their masses are proven; and if
        the sum has too many losses.
    """
    finite = [(law, number) for law, number in parts if isinstance(law, FiniteLaw)]
    others = [(law, number) for law, number in parts if not isinstance(law, FiniteLaw)]
    several = sum(number for _, number in others) > 1
    if not all(law.has_cells for law, _ in others) or (several and not or_enclosed):
        raise AccuracyError(
            "the law of several releases of one sample is known only if all but one of them have "
            "finitely many outcomes (all Gaussian ones together count as one): draw an independent "
            "sample for each of the others, and compose them"
        )
    if several and not all(law.is_proven for law, _ in others):
        raise AccuracyError(
            "several releases of one sample that are neither Gaussian nor have finitely many "
            "outcomes need proven masses, such as those of expressions: draw an independent sample "
            "for each of the others, and compose them"
        )
    if several:
        others.sort(key=lambda part: part[0].gaussian_noise() is None)
        return EnclosedSum((*others, *finite))
    if not finite:
        return others[0][0] if others else TRIVIAL
    losses = finite_sum(finite, MOST_MOVED if others else MOST_ATOMS)
    if not others or not losses.loss.size:  # no finite loss: everything is revealed already
        return losses
    other = others[0][0]
    if max(other.infinite()) > 0.0:
        raise AccuracyError(
            "a release with infinite losses can share its sample only with releases that have "
            "finitely many outcomes"
        )
    return SumLaw(losses, other)


@dataclass(frozen=True)
class EnclosedSum(EnclosedLaw):
    """The sum of losses of which several are not finite, enclosed between two laws.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        Laws and how often each is added.  The first one is not finite; one term of it is kept as it
        is, and the rest is replaced by finite pairs.
    """

    parts: tuple[tuple[StepLaw, int], ...]

    @property
    def is_bracketed(self) -> bool:
        """True: engines use the enclosing laws."""
        return True

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Sums of the first law and of a finite pair below or above the others."""
        del tolerance
        return _enclosed(self.parts)

    def support(self) -> tuple[float, float]:
        """Sums of the ends of all terms."""
        ends = [(law.support(), number) for law, number in self.parts]
        low, high = (sum(number * end[i] for end, number in ends) for i in (0, 1))
        return low, high


@kept(32)
def _enclosed(parts: tuple[tuple[StepLaw, int], ...]) -> Enclosing:
    (one, number), *others = parts
    rest = [(one, number - 1), *others] if number > 1 else others
    below, above = (sum_law([(_coarse_sum(rest, way), 1), (one, 1)]) for way in (_below, _above))
    return Enclosing(below, above)


def _coarse_sum(
    parts: list[tuple[StepLaw, int]], bound: Callable[[StepLaw, FloatArray, Ends], FiniteLaw]
) -> FiniteLaw:
    """A finite law below or above the sum, coarsened to `FEW` losses after each addition."""
    total: FiniteLaw | None = None
    for law, number in parts:
        square, left = _coarse(law, bound), number
        while True:
            if left & 1:
                total = (
                    square if total is None else _coarse(_added(total, square, MOST_ATOMS), bound)
                )
            left >>= 1
            if not left:
                break
            square = _coarse(_added(square, square, MOST_ATOMS), bound)
    assert total is not None
    return total


def _coarse(law: StepLaw, bound: Callable[[StepLaw, FloatArray, Ends], FiniteLaw]) -> FiniteLaw:
    """A finite law below or above (``bound`` is `_below` or `_above`), from an even grid."""
    if isinstance(law, FiniteLaw) and law.loss.size <= FEW:
        return law
    low, high = law.limits()
    off = 1.01 * law.support_error()
    ends = low - off, high + off
    is_cut = not ends[0] > -FARTHEST, not ends[1] < FARTHEST
    if any(is_cut):  # the tail beyond has a mass of about `TAIL` at most
        places = np.arange(-FARTHEST, FARTHEST, 0.125)
        cells = law.cells(places)
        below, above = (np.cumsum(fn.exp(x)) for x in (cells.log_a, cells.log_b[::-1]))
        first, last = (max(int(np.searchsorted(x, TAIL)) - 1, 0) for x in (below, above))
        ends = (
            float(places[first]) if is_cut[0] else ends[0],
            float(places[places.size - 1 - last]) if is_cut[1] else ends[1],
        )
    return bound(law, np.linspace(*ends, FEW), is_cut)


def _below(law: StepLaw, edges: FloatArray, is_cut: Ends) -> FiniteLaw:
    """Law whose outcomes are the cells, which reveals less; left-out mass is in the heaviest."""
    del is_cut
    cells = law.cells(edges)
    some = np.isfinite(cells.log_a) & np.isfinite(cells.log_b)
    alone_a, alone_b = (isinstance(law, FiniteLaw) and law.alone) or tuple(
        map(Fraction, law.infinite())
    )
    made = FiniteLaw.from_atoms(
        cells.log_ratio[some],
        cells.log_a[some],
        (alone_a, alone_b),
        float(cells.ratio_error[some].max()),
    )
    heaviest = float(np.minimum(made.log_a, made.log_b).max())
    error = float(cells.error[some].max()) + 1.01 * law.left_out() * fn.exp(-heaviest)
    return replace(made, error=made.error + error)


def _above(law: StepLaw, edges: FloatArray, is_cut: Ends) -> FiniteLaw:
    """Law whose profile joins upper bounds at e^edges by chords."""
    t = fn.exp(edges)
    value, alone = upper_values(law, edges, t)
    if not is_cut[1]:
        t[-1] *= 1.0 + 16.0 * UNIT
        value[-1] = alone  # no finite ratio is larger than t
    if not is_cut[0] and law.infinite()[0] == law.left_out() == 0.0:
        t[0] *= 1.0 - 16.0 * UNIT
        value[0] = math.nextafter(1.0 - t[0], 1.0)  # no ratio is smaller than t: E (R - t) = 1 - t
    rows = [(Fraction(x), Fraction(y)) for x, y in zip(t.tolist(), value.tolist(), strict=True)]
    masses = pair_of_profile([(Fraction(0), Fraction(1)), *rows])
    return FiniteLaw.from_fractions((without, given) for given, without in masses)


def outcomes_together(parts: Iterable[tuple[Outcomes, int]]) -> Outcomes | None:
    """Return exact probabilities of the joint outcomes; outcomes of equal ratio are merged.

    None for more than `MOST_EXACT` ratios or more than `MOST_FACTORS` releases.
    """
    parts = list(parts)
    if sum(number for _, number in parts) > MOST_FACTORS:
        return None
    total: Outcomes = [(Fraction(1), Fraction(1))]
    for outcomes, number in parts:
        for _ in range(number):
            found: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
            for a, b in total:
                for c, d in outcomes:
                    one, other = a * c, b * d
                    if one == other == 0:
                        continue
                    ratio = other / one if one else None
                    before = found.get(ratio, (Fraction(0), Fraction(0)))
                    found[ratio] = before[0] + one, before[1] + other
            if len(found) > MOST_EXACT:
                return None
            total = list(found.values())
    return total


def finite_sum(parts: list[tuple[FiniteLaw, int]], most: int) -> FiniteLaw:
    """Return the law of a sum of finite losses; an AccuracyError for more than ``most`` losses."""
    total: FiniteLaw | None = None
    for law, number in parts:
        power, left, square = None, number, law
        while True:  # by squaring
            if left & 1:
                power = square if power is None else _added(power, square, most)
            left >>= 1
            if not left:
                break
            square = _added(square, square, most)
        assert power is not None
        total = power if total is None else _added(total, power, most)
    assert total is not None
    return total


def _added(first: FiniteLaw, second: FiniteLaw, most: int) -> FiniteLaw:
    """The law of the sum of two losses."""
    size = first.loss.size * second.loss.size
    if size > 4 * MOST_ATOMS:
        raise AccuracyError(_too_many(size))
    loss = np.add.outer(first.loss, second.loss).ravel()
    log_a = np.add.outer(first.log_a, second.log_a).ravel()
    one, other = (
        law.alone or tuple(Fraction(x) for x in law.infinite()) for law in (first, second)
    )
    below, above = (x + y - x * y for x, y in zip(one, other, strict=True))
    moved = sum(ROUNDED * largest_finite(law.support()) + law.loss_error for law in (first, second))
    # masses of equal losses are added up, at most as many as the smaller law has atoms
    rounding = 4.0 * LOG_ERROR + UNIT * min(first.loss.size, second.loss.size)
    ends = None
    if first.ends is not None or second.ends is not None:
        ends = tuple(x + y for x, y in zip(first.limits(), second.limits(), strict=True))
    made = FiniteLaw.from_atoms(
        loss,
        log_a,
        (below, above),
        moved,
        None if ends is None else (ends[0], ends[1]),
        symmetric=first.symmetric and second.symmetric,
    )
    if made.loss.size > most:
        raise AccuracyError(_too_many(made.loss.size))
    return replace(made, error=made.error + first.error + second.error + rounding)


def _too_many(size: int) -> str:
    return (
        f"the releases of one sample have {size:,} losses together, which are too many: use fewer "
        "outcomes, or fewer releases on a sample"
    )


@dataclass(frozen=True)
class SumLaw(Law):
    """The sum of a loss with finitely many values and of any other loss.

    Parameters
    ----------
    few : FiniteLaw
        The law of the first loss.
    other : StepLaw
        The law of the second loss, without infinite losses.
    """

    few: FiniteLaw
    other: StepLaw

    @property
    def is_proven(self) -> bool:
        """As that of the other law; finite ones are proven."""
        return self.other.is_proven

    def support(self) -> tuple[float, float]:
        """Sums of both ends."""
        return _sums(self.few.support(), self.other.support())

    def support_error(self) -> float:
        """Errors of both, and a rounding."""
        error = self.few.support_error() + self.other.support_error()
        return error + 4.0 * UNIT * largest_finite(self.support())

    def limits(self) -> tuple[float, float]:
        """Sums of both limits."""
        return _sums(self.few.limits(), self.other.limits())

    def left_out(self) -> float:
        """The masses that both leave out."""
        return self.few.left_out() + self.other.left_out()

    def infinite(self) -> tuple[float, float]:
        """As of the finite law."""
        return self.few.infinite()

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of the other law, shifted by each finite loss and weighted by its masses.

        ``shift`` bounds the distance of the edges of all terms, as in a revealed mixture.
        """
        if 0 < edges.size <= MOST_TOGETHER < self.few.loss.size:
            return self._together(edges)
        sums = [_Sums(edges.size + 1) for _ in range(2)]
        shift = np.zeros(edges.size)
        rows = zip(self.few.loss, self.few.log_a, self.few.log_b, strict=True)
        for loss, log_a, log_b in rows:
            moved = edges - loss
            cells = self.other.cells(moved)
            size = np.abs(edges) + abs(loss)
            off = ROUNDED * abs(loss) + self.few.loss_error + 2.0 * UNIT * size
            shift = np.maximum(shift, cells.shift + off)
            for found, mass, weight in zip(
                sums, (cells.log_a, cells.log_b), (log_a, log_b), strict=True
            ):
                error = LOG_ERROR * (1.0 + abs(weight)) + self.few.error
                found.add(mass + weight, 1.01 * cells.error + error)
        (mass_a, error_a), (mass_b, error_b) = (found.total() for found in sums)
        return Cells(mass_a, mass_b, np.maximum(error_a, error_b), shift)

    def _together(self, edges: FloatArray) -> Cells:
        """Cells at few edges: those of the other law between all moved edges at once, added up.

        Errors are those of docs/theory/adjacency, Lemma 7.
        """
        losses = self.few.loss[:, None]
        moved, place = np.unique(edges - losses, return_inverse=True)
        cells = self.other.cells(moved)
        ends = place.reshape(losses.size, edges.size) + 1
        start = np.pad(ends, ((0, 0), (1, 0)))
        stop = np.pad(ends, ((0, 0), (0, 1)), constant_values=moved.size + 1)
        rounds = float(moved.size.bit_length())
        sums = []
        with np.errstate(divide="ignore", invalid="ignore"):
            log_error = fn.log(cells.error)
            for masses, weight in zip(
                (cells.log_a, cells.log_b), (self.few.log_a, self.few.log_b), strict=True
            ):
                logs = _of_ranges(masses, start, stop)
                off = _of_ranges(masses + log_error, start, stop)
                finite = np.isfinite(logs)
                error = fn.exp(np.where(finite, off - logs, -math.inf))
                # mean of |log m| over the blocks that add up, weighted by their masses m
                size = 1.0 + rounds + np.abs(np.where(finite, logs, 0.0))
                own = LOG_ERROR * (1.0 + np.abs(weight)) + self.few.error
                found = _Sums(edges.size + 1)
                rounding = UNIT * (16.0 + 16.0 * rounds * size)
                found.add_all(logs + weight[:, None], 1.01 * error + rounding + own[:, None])
                sums.append(found.total())
        (mass_a, error_a), (mass_b, error_b) = sums
        off = ROUNDED * np.abs(losses) + self.few.loss_error
        off = off + 2.0 * UNIT * (np.abs(edges) + np.abs(losses))
        shift = (cells.shift[ends - 1] + off).max(axis=0)
        return Cells(mass_a, mass_b, np.maximum(error_a, error_b), shift)


class _Sums:
    """Pairwise sums of masses in logs, with relative errors: terms of equal counts are joined."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[tuple[int, FloatArray, FloatArray]] = []

    def add(self, log_mass: FloatArray, error: FloatArray) -> None:
        """Add masses with relative errors."""
        with np.errstate(divide="ignore"):
            self._parts.append((1, log_mass, log_mass + fn.log(error)))
        while len(self._parts) > 1 and self._parts[-1][0] == self._parts[-2][0]:
            self._join()

    def add_all(self, log_mass: FloatArray, error: FloatArray) -> None:
        """Add rows of masses, by halves."""
        with np.errstate(divide="ignore"):
            mass, off = log_mass, log_mass + fn.log(error)
        while len(mass) > 1:
            half = (len(mass) + 1) // 2  # a row without another one stays as it is
            pairs = len(mass) - half
            joined = _joined(mass[:pairs], off[:pairs], mass[half:], off[half:])
            mass, off = (
                np.concatenate([sums, rows[pairs:half]])
                for sums, rows in zip(joined, (mass, off), strict=True)
            )
        self._parts.append((1, mass[0], off[0]))

    def _join(self) -> None:
        number, *last = self._parts.pop()
        before, *first = self._parts.pop()
        self._parts.append((number + before, *_joined(*last, *first)))

    def total(self) -> tuple[FloatArray, FloatArray]:
        """Logs of the sums, and their relative errors."""
        if not self._parts:
            return np.full(self._size, -math.inf), np.zeros(self._size)
        while len(self._parts) > 1:
            self._join()
        _, mass, off = self._parts[0]
        with np.errstate(invalid="ignore", over="ignore"):
            error = 1.01 * fn.exp(np.where(np.isfinite(mass), off - mass, -math.inf))
        return mass, error + 16.0 * UNIT


def _of_ranges(log_mass: FloatArray, start: IntArray, stop: IntArray) -> FloatArray:
    """Logs of the sums from ``start`` up to ``stop``, of 1, 2, 4, ... masses each."""
    found = np.full(start.shape, -math.inf)
    place, left, sums, length = start.copy(), stop - start, log_mass, 1
    while left.any():
        odd = (left & 1) == 1
        found[odd] = fn.logaddexp(found[odd], sums[place[odd]])
        place += np.where(odd, length, 0)
        left >>= 1
        sums = fn.logaddexp(sums[:-length], sums[length:])
        length *= 2
    return found


def _joined(
    mass: FloatArray, off: FloatArray, other: FloatArray, more: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logs of sums of masses, and of their errors."""
    sums = fn.logaddexp(mass, other)
    with np.errstate(invalid="ignore", divide="ignore"):
        finite = np.where(np.isfinite(sums), np.abs(sums), 0.0)
        rounding = fn.log(UNIT * (4.0 * ELEMENTARY + 4.0 * (1.0 + finite)))
        off = fn.logaddexp(fn.logaddexp(off, more), sums + rounding)
    return sums, off


def _sums(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] + second[0], first[1] + second[1]
