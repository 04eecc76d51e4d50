"""Laws of losses that take finitely many values, built from exact fractions or from logarithms.

Each finite loss is an atom with its mass under A and under B; outcomes that are possible under one
law only have infinite loss.  Masses are kept as logarithms, each with an error of at most
``LOG_ERROR (1 + |log mass|)``, which covers the roundings of the functions that build laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.laws.base import Cells, StepLaw, largest_finite, positive
from pyengine.laws.fine import MOST_ATOMS, Fine, logarithm
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.sampled_loss import sampled_loss, share_of

__all__ = ["LOG_ERROR", "ROUNDED", "FiniteLaw", "grouped", "log_fraction"]

FloatArray = npt.NDArray[np.float64]
Infinite = tuple[float, float] | tuple[Fraction, Fraction]

LOG_ERROR = 8.0 * UNIT
# Losses closer than this, relative to 1 + |loss|, are merged, with the width as an error.
SAME = 4.0 * UNIT
ROUNDED = 2.0 * LOG_ERROR  # relative error of every loss


def log_fraction(value: Fraction) -> float:
    """Return the logarithm of a fraction >= 0, to one or two units in the last place."""
    if value <= 0:
        return -math.inf
    if Fraction(1, 2) < value < 2:
        return fn.log1p(float(value - 1))
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / Fraction(2) ** shift
    return fn.log(float(scaled)) + shift * fn.log(2.0)


@dataclass(frozen=True, eq=False)
class FiniteLaw(StepLaw):
    """The ordered pair (A, B) of one step whose loss takes finitely many values.

    Parameters
    ----------
    loss : ndarray of float
        The finite losses log dB/dA, increasing.
    log_a, log_b : ndarray of float
        Logarithms of the masses of A and B at each.
    a_infinite, b_infinite : float
        Mass of A where B has none (loss -inf), and of B where A has none (loss inf).
    error : float
        Relative error of the masses beyond rounding, where they are not given exactly.
    loss_error : float
        Error of the losses beyond ``ROUNDED |loss|``.
    ends : tuple of float or None
        Infimum and supremum of all finite losses, where atoms of masses below e^-800 are left out.
    symmetric : bool
        Whether (B, A) is exactly the same pair as (A, B).
    digits : callable or None
        Makes the losses to many digits; None where only doubles are known.
    alone : tuple of Fraction or None
        The masses ``a_infinite`` and ``b_infinite`` exactly; None where only doubles are known.
    """

    loss: FloatArray
    log_a: FloatArray
    log_b: FloatArray
    a_infinite: float = 0.0
    b_infinite: float = 0.0
    error: float = 0.0
    loss_error: float = 0.0
    ends: tuple[float, float] | None = None
    symmetric: bool = False
    digits: Callable[[], Fine] | None = None
    alone: tuple[Fraction, Fraction] | None = None

    @cached_property
    def fine(self) -> Fine | None:
        """The losses to many digits; None if they are not known, or too many."""
        known = self.digits is not None and self.loss.size <= MOST_ATOMS
        return self.many_digits() if known else None

    def many_digits(self) -> Fine:
        """The losses to many digits; only for laws that know them."""
        if self.digits is None:
            raise AssertionError("a law without digits was asked for them")
        return self.digits()

    @classmethod
    def from_fractions(cls, pairs: Iterable[tuple[Fraction, Fraction]]) -> FiniteLaw:
        """Law of outcomes with exact probabilities (under A, under B); equal ratios are merged."""
        merged: dict[Fraction, tuple[Fraction, Fraction]] = {}
        b_infinite = Fraction(0)
        for a, b in pairs:
            if a == 0:
                b_infinite += b
                continue
            old_a, old_b = merged.get(b / a, (Fraction(0), Fraction(0)))
            merged[b / a] = (old_a + a, old_b + b)
        a_infinite, _ = merged.pop(Fraction(0), (Fraction(0), Fraction(0)))
        atoms = sorted(merged.items())

        def digits() -> Fine:
            if all(ratio == 1 for ratio, _ in atoms):
                return Fine.nothing(len(atoms))
            return Fine.of([logarithm(ratio) for ratio, _ in atoms])

        symmetric = a_infinite == b_infinite and all(
            merged.get(1 / ratio) == (b, a) for ratio, (a, b) in atoms
        )
        return grouped(  # ratios that differ may have the same logarithm
            np.array([log_fraction(ratio) for ratio, _ in atoms]),
            np.array([log_fraction(a) for _, (a, _) in atoms]),
            np.array([log_fraction(b) for _, (_, b) in atoms]),
            (a_infinite, b_infinite),
            symmetric=symmetric,
            digits=digits,
        )

    @classmethod
    def from_atoms(
        cls,
        loss: npt.ArrayLike,
        log_a: npt.ArrayLike,
        alone: tuple[Fraction, Fraction],
        loss_error: float = 0.0,
        ends: tuple[float, float] | None = None,
        symmetric: bool = False,
        digits: Callable[[], Fine] | None = None,
    ) -> FiniteLaw:
        """Law of atoms in any order, from losses and A's masses; B's follow from them.

        ``digits`` makes the losses in the given order.
        """
        loss, log_a = np.asarray(loss, dtype=float), np.asarray(log_a, dtype=float)
        order = np.argsort(loss, kind="stable")
        loss, log_a = loss[order], log_a[order]
        in_order = None if digits is None else lambda: digits().taken(order)
        # B's mass is that of A times e^loss
        return grouped(
            loss, log_a, log_a + loss, alone, loss_error, loss_error, ends, symmetric, in_order
        )

    def finite(self) -> FiniteLaw:
        """Itself."""
        return self

    def exchanged(self) -> FiniteLaw:
        """The pair (B, A)."""
        return self.reversed

    @cached_property
    def reversed(self) -> FiniteLaw:
        """The pair (B, A), whose `reversed` is this law."""
        if self.symmetric:
            return self
        found = FiniteLaw(
            -self.loss[::-1],
            self.log_b[::-1],
            self.log_a[::-1],
            self.b_infinite,
            self.a_infinite,
            self.error,
            self.loss_error,
            None if self.ends is None else (-self.ends[1], -self.ends[0]),
            digits=None if self.digits is None else lambda: self.many_digits().reversed,
            alone=None if self.alone is None else (self.alone[1], self.alone[0]),
        )
        found.__dict__["reversed"] = self
        return found

    def poisson_sampled(self, share: Fraction | float) -> FiniteLaw:
        """The pair (A, (1 - p) A + p B) for p in (0, 1)."""
        p, _, log_p, log_rest, _ = share_of(share)
        loss = sampled_loss(share, self.loss)
        # errors of losses are multiplied by the slope p e^l/(1 - p + p e^l) of the map
        slope = fn.exp(np.minimum(log_p + self.loss - loss, 0.0))
        moved = slope * (ROUNDED * np.abs(self.loss) + self.loss_error) + ROUNDED * np.abs(loss)
        off = float(moved.max(initial=0.0))
        ends = None
        if self.ends is not None:
            lowest, highest = sampled_loss(share, np.array(self.ends)).tolist()
            ends = (log_rest if self.a_infinite > 0.0 else lowest, highest)
        log_a, log_b = self.log_a, fn.logaddexp(log_rest + self.log_a, log_p + self.log_b)
        if self.a_infinite > 0.0:
            lost = fn.log(self.a_infinite)
            loss = np.concatenate([[log_rest], loss])
            log_a = np.concatenate([[lost], log_a])
            log_b = np.concatenate([[lost + log_rest], log_b])

        def digits() -> Fine:
            return self.many_digits().poisson_sampled(Fraction(share), alone=self.a_infinite > 0.0)

        infinite: Infinite = (0.0, positive(p * self.b_infinite, self.b_infinite > 0.0))
        if self.alone is not None:
            infinite = (Fraction(0), Fraction(share) * self.alone[1])
        return grouped(
            loss,
            log_a,
            log_b,
            infinite,
            self.error,
            off,
            ends,
            digits=None if self.digits is None else digits,
        )

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""
        if not self.loss.size:
            return 0.0, 0.0
        return float(self.loss[0]), float(self.loss[-1])

    def support_error(self) -> float:
        """Error of the losses at the ends."""
        return ROUNDED * largest_finite(self.support()) + self.loss_error

    def limits(self) -> tuple[float, float]:
        """Smallest and largest finite loss, including those of atoms that are left out."""
        return self.support() if self.ends is None else self.ends

    def left_out(self) -> float:
        """A bound of masses below e^-800, if atoms with such masses are left out; else 0."""
        return 0.0 if self.ends is None else 5e-324

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""
        return self.a_infinite, self.b_infinite

    def cells(self, edges: FloatArray) -> Cells:
        """Masses of the cells between edges; an atom on an edge belongs to the cell below."""
        cell = np.searchsorted(edges, self.loss, side="left")
        log_a = np.full(len(edges) + 1, -math.inf)
        log_b = log_a.copy()
        if cell.size:
            starts = np.flatnonzero(np.diff(cell, prepend=-1))
            log_a[cell[starts]] = logsumexp_groups(self.log_a, starts)
            log_b[cell[starts]] = logsumexp_groups(self.log_b, starts)
        deepest = np.where(np.isfinite(log_a), -np.minimum(log_a, log_b), 0.0)
        error = LOG_ERROR * (2.0 + deepest + fn.log(cell.size + 1.0)) + self.error
        # an atom is on the wrong side of an edge only if the error of its loss reaches across it
        shift = 1.01 * ROUNDED * np.abs(edges) + 1.01 * self.loss_error
        if not cell.size:
            return Cells(log_a, log_b, error, shift)
        with np.errstate(invalid="ignore"):
            ratio, finer = 2.01 * error, log_b - log_a
        at = cell[starts]
        finer[at], ratio[at] = self._mean_ratios(starts, finer[at], ratio[at])
        return Cells(log_a, log_b, error, shift, ratio, finer)

    def _mean_ratios(
        self, starts: npt.NDArray[np.intp], plain: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Logs of the ratios of both masses of groups of atoms, and their errors.

        A ratio is the mean of e^loss over its group, known about as well as the losses are.
        """
        first = self.loss[starts]
        sizes = np.diff(starts, append=self.loss.size)
        away = self.loss - np.repeat(first, sizes)
        top = np.maximum.reduceat(self.log_a, starts)
        mass = fn.exp(self.log_a - np.repeat(top, sizes))
        raised = np.add.reduceat(mass * fn.expm1(np.minimum(away, 1.0)), starts)
        mean = raised / np.add.reduceat(mass, starts)
        width = np.maximum.reduceat(away, starts)
        largest = np.maximum(np.abs(first), np.abs(first + width))
        found = first + fn.log1p(mean)
        # errors of masses change the weights in the mean of e^away - 1
        off = error * fn.expm1(np.minimum(width, 1.0)) + 1.01 * ROUNDED * largest
        off += 1.01 * self.loss_error + LOG_ERROR * np.minimum(width, 1.0)
        return np.where(width < 0.5, found, plain), np.where(width < 0.5, off, error)

    def spacing(self) -> tuple[float, float] | None:
        """Offset and spacing of a lattice that holds every loss; None if there is none."""
        if self.loss.size < 2:
            return None
        step = float(np.diff(self.loss).min())
        multiples = (self.loss - self.loss[0]) / step
        if multiples[-1] > 1e6 or np.abs(multiples - np.round(multiples)).max() > 1e-6:
            return None
        # the range over its number of steps is rounded least
        return float(self.loss[0]), float((self.loss[-1] - self.loss[0]) / round(multiples[-1]))


def grouped(
    loss: FloatArray,
    log_a: FloatArray,
    log_b: FloatArray,
    infinite: Infinite,
    error: float = 0.0,
    loss_error: float = 0.0,
    ends: tuple[float, float] | None = None,
    symmetric: bool = False,
    digits: Callable[[], Fine] | None = None,
) -> FiniteLaw:
    """Law of sorted atoms, equal losses merged; ``infinite`` are the masses of A and B alone."""
    starts = group_starts(loss)
    width = 0.0
    if starts.size < loss.size:
        lasts = np.append(starts[1:], loss.size) - 1
        # giving all atoms of a group one loss makes errors of at most its width
        width = float((loss[lasts] - loss[starts]).max()) * (1.0 + UNIT)
    return FiniteLaw(
        loss[starts],
        logsumexp_groups(log_a, starts),
        logsumexp_groups(log_b, starts),
        positive(infinite[0]),
        positive(infinite[1]),
        error + width,
        loss_error + width,
        ends,
        symmetric,
        None if digits is None else lambda: digits().grouped(starts),
        infinite if isinstance(infinite[0], Fraction) else None,
    )


def group_starts(loss: FloatArray) -> npt.NDArray[np.intp]:
    """Return where groups of equal losses begin; losses are sorted."""
    with np.errstate(over="ignore"):  # differences may exceed the doubles
        gaps = np.diff(loss) > SAME * (1.0 + np.abs(loss[1:]))
    return np.concatenate([[0], np.flatnonzero(gaps) + 1]) if loss.size else np.zeros(0, np.intp)


def logsumexp_groups(
    values: FloatArray, starts: Sequence[int] | npt.NDArray[np.intp]
) -> FloatArray:
    """Return the logarithm of the sum of exponentials of each group of consecutive entries."""
    if not len(starts):
        return np.zeros(0)
    top = np.maximum.reduceat(values, starts)
    top = np.where(np.isfinite(top), top, 0.0)
    sizes = np.diff(np.concatenate([starts, [values.size]]))
    with np.errstate(under="ignore", divide="ignore"):
        sums = np.add.reduceat(fn.exp(values - np.repeat(top, sizes)), starts)
        return np.asarray(top + fn.log(sums))
