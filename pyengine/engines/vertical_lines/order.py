"""Masses of a sum of Laplace losses on both sides of a threshold, and profiles, with bounds.

A line to the right of a kernel's pole gives the mass above a threshold, one to the left of it less
the mass below; the other mass is the complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import reduce

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.caches import cached_property
from pyengine.engines.exact.levels import SUBNORMAL, Tails
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.build import line_at, terms_of_lines
from pyengine.engines.vertical_lines.choice import Choice, choice_of
from pyengine.engines.vertical_lines.chords import chord_bound
from pyengine.engines.vertical_lines.deformed import DeformedLine
from pyengine.engines.vertical_lines.line import LossLine
from pyengine.engines.vertical_lines.ordered import (
    MASSES,
    Inner,
    RoughTails,
    between,
    profile_from,
    tails_of,
)
from pyengine.engines.vertical_lines.shapes import Kinds
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.special import ndtri

__all__ = ["LineOrder"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

CHERNOFF = 1.0 + 1e-6  # for the rounding of the scale
SLACK = 1.0 + 1e-9
UNKNOWN = 1e9  # times what is removed
MOST = 600.0  # exponent of a bound that says nothing
MAKING = 4.0  # values that take as long as a line takes to be made
ROOM = 0.01  # around where a threshold is expected, in standard deviations
TAILS = (0, True), (0, False), (1, True), (1, False)  # of which law, and whether above
Line = LossLine | DeformedLine


class LineOrder(Inner):
    """One order of the pair of a composition of steps of any kinds.

    Parameters
    ----------
    kinds : tuple of (LossShape, int)
        The kinds of steps, A without the record, and how many there are of each.
    exchanged : bool
        Whether the pair is (B, A), of the loss with the other sign.
    """

    room = ROOM
    stages = 2  # Chernoff's bounds, and lines
    alone_masses = 0.0, 0.0
    first_alone = 0.0, 0.0, 0.0

    def __init__(self, kinds: Kinds, exchanged: bool) -> None:
        self.kinds, self.exchanged = kinds, exchanged
        low, high = (
            reduce(
                CONTEXT.add, (CONTEXT.multiply(Decimal(n), Decimal(s.ends[i])) for s, n in kinds)
            )
            for i in (0, 1)
        )
        errors = [n * shape.off_ends for shape, n in kinds]
        # beside what roundings of exact ends are
        self._off_ends = 1.01 * math.fsum(errors) + 1e-12 * float(abs(low) + abs(high))
        if all(shape.has_exact_ends for shape, _ in kinds):
            self._off_ends = 0.0
        self._ends = float(low) - self._off_ends, float(high) + self._off_ends
        self.is_bounded = all(shape.is_bounded for shape, _ in kinds)
        of_a, of_b = (sum(n * shape.removed[law] for shape, n in kinds) * SLACK for law in (0, 1))
        self.removed = float(of_a), float(of_b)
        self._last: tuple[int, Line | None] = (-1, None)
        self._log_bounds: dict[float, float] = {}

    def support(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        low, high = self._ends
        return (-high, -low) if self.exchanged else (low, high)

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss: none below where more is removed."""
        end = self.support()[0]  # which lies as far outside as losses may be off
        least = end if self._off_ends else math.nextafter(end, -math.inf)
        if not self.is_bounded or self.removed != (0.0, 0.0):
            least = -math.inf
        return least, math.nextafter(end + 2.0 * self._off_ends, math.inf)

    def alone(self) -> tuple[float, float, float]:
        """None of A's mass is alone."""
        return 0.0, 0.0, 0.0

    @property
    def terms(self) -> float:
        """How many terms the lines next to both poles have at most; infinite without those."""
        return terms_of_lines(self.kinds)

    @property
    def work(self) -> float:
        """About how many terms a value takes; to make a line takes some times its own."""
        return MAKING * self.terms

    @property
    def least_known(self) -> float:
        """What is smaller is known to be small alone."""
        return UNKNOWN * max(self.removed)

    @cached_property
    def choice(self) -> Choice:
        """The lines that serve."""
        return choice_of(self.kinds)

    def line_at(self, index: int) -> Line | None:
        """Return a line of the choice, or the next one nearer to the poles that can be made.

        Far out the law that ends is another one than that which goes on, and has no lines.
        """
        line = self.choice.line
        inwards = -1 if line[index] > 0.5 else 1
        while 0 <= index < line.size:
            found = line_at(self.kinds, index)
            if found is not None:
                return found
            index += inwards
        return None

    def infinite(self) -> tuple[float, float]:
        """Bounds on the masses of either law where the other one may have none: what is removed."""
        return self.removed[::-1] if self.exchanged else self.removed

    @property
    def _around(self) -> tuple[float, float]:
        return self.room, -self.room

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which losses A's mass above is expected to come to α; not proven."""
        choice, quantile = self.choice, ndtri(alpha)
        if self.exchanged:
            high, low = (np.interp(quantile + x, choice.below_b, choice.loss) for x in self._around)
            return np.asarray(-high), np.asarray(-low)
        low, high = (
            np.interp(-quantile + x, choice.below_a, choice.loss) for x in self._around[::-1]
        )
        return np.asarray(low), np.asarray(high)

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""
        return all(shape.is_symmetric for shape, _ in self.kinds)

    @property
    def has_atoms(self) -> bool:
        """No atoms count where lines serve."""
        return False

    @property
    def jumps(self) -> FloatArray:
        """None."""
        return np.zeros(0)

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which ε the profile is expected to come to δ; not proven."""
        choice, log = self.choice, fn.log(delta)
        if self.exchanged:
            known, loss, sign = choice.log_profile_b[::-1], choice.loss[::-1], 1.0
        else:
            known, loss, sign = choice.log_profile_a, choice.loss, -1.0
        ends = [sign * np.interp(log + x, known, loss) for x in 10.0 * np.array(self._around)]
        return np.maximum(ends[0], 0.0), np.maximum(ends[1], 0.0)

    def profile_most(self, epsilon: float, enough: float = 0.0) -> float:
        """A number not below the profile, by a tilt of the table: Chernoff's, or that of chords.

        With x the distance of the sum S from the threshold c the profile is the mean of (1 - e^x)_+
        at c = -ε, or e^c times that of (e^x - 1)_+ at c = ε.  On their sides these are at most
        e^(λ x) over 1 - λ, and over λ.
        """
        choice, of_b = self.choice, self.exchanged
        c = epsilon if of_b else -epsilon
        usable = choice.tilt > 1.0 if of_b else choice.tilt < 0.0
        weight = choice.tilt if of_b else 1.0 - choice.tilt
        cost = choice.log_mean - c * choice.tilt - fn.log(np.where(usable, weight, 1.0))
        at = int(np.argmin(np.where(usable, cost, np.inf)))
        tilt = float(choice.tilt[at])
        close = math.inf if enough else chord_bound(self.kinds, tilt, epsilon, exchanged=of_b)
        if close < math.inf:
            return close
        log = self._log_mean_bound(tilt) - tilt * c
        log += (c if of_b else 0.0) - fn.log(float(weight[at]))
        log += 1e-9 * (1.0 + abs(tilt * c) + abs(c))
        most = (fn.exp(log) if log < MOST else math.inf) + self.infinite()[0] + SUBNORMAL
        if 0.0 < enough < most:
            close = chord_bound(self.kinds, tilt, epsilon, exchanged=of_b)
        return min(most, close)

    def _groups(
        self, c: FloatArray, at: Indices, ask: Callable[[Line, FloatArray, Indices], None]
    ) -> npt.NDArray[np.bool_]:
        """Ask by line for the thresholds inside of the support, which are returned."""
        low, high = self._ends
        inside = np.isfinite(c)
        if self.is_bounded:
            inside &= (c >= math.nextafter(low, -math.inf)) & (c <= math.nextafter(high, math.inf))
        for index in sorted(set(at[inside].tolist())):
            line = self._line(index)
            if line is not None:
                chosen = np.flatnonzero(inside & (at == index))
                ask(line, c[chosen], chosen)
        return inside

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        if self.exchanged:
            c = -c
        # of A and of B those above and below, and their errors; where no line serves, that is all
        found = np.ones((2, 4, c.size))

        def ask(line: Line, c: FloatArray, at: Indices) -> None:
            kernels, masses = slice(0, 2), np.empty((2, 4, c.size))
            total, off = _known(line.sums(c, kernels), line.errors(c, kernels))
            log, log_error = line.log_scale(c)
            lib.pe_level_masses(
                c.size,
                array(c),
                array(log),
                array(log_error),
                line.tilt,
                array(total.reshape(-1)),
                array(off.reshape(-1)),
                line.removed,
                array(masses.reshape(-1), writable=True),
            )
            found[:, :, at] = masses

        inside = self._groups(c, self.choice.at(c), ask)
        if not inside.all():
            for outside, above in ((c < self._ends[0], 1.0), (c > self._ends[1], 0.0)):
                beyond = outside & ~inside
                found[:, 0, beyond], found[:, 1, beyond] = above, 1.0 - above
                found[:, 2:, beyond] = 0.0
            found[:, 2:, ~inside] += np.array(self.removed)[:, None, None]
        masses = [(law[i], law[i + 2]) for law in found for i in (0, 1)]
        return masses[::-1] if self.exchanged else masses

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """By Chernoff's bounds first."""
        if stage == self.stages - 1:
            return self.masses(c)
        most = self._most(c)
        # of each law what is above and what is not have the mass 1
        least = np.maximum(1.0 - most[[1, 0, 3, 2]] - 2.0 * UNIT, 0.0)
        return [between(*x) for x in zip(least, most, strict=True)]

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By Chernoff's bounds first."""
        if stage == self.stages - 1:
            return self.profile(epsilon)
        return profile_from(epsilon, self._most(-epsilon))

    def _most(self, c: FloatArray) -> FloatArray:
        """Upper bounds of masses as of `Tails`: means of e^((λ - i)(S - c)) by tilts."""
        choice, of_sum = self.choice, -c if self.exchanged else c
        found, finite = np.ones((MASSES, c.size)), np.isfinite(c)
        of_sum = of_sum[finite]
        # where losses are rare and large the tilts on both sides of a saddle are far apart
        after = np.searchsorted(choice.loss, of_sum)
        for saddle in (after - 1, after):
            for row, (law, is_above) in zip(found, TAILS, strict=True):
                usable = np.flatnonzero(choice.tilt > law if is_above else choice.tilt < law)
                places = np.clip(saddle, usable[0], usable[-1])
                at, where = np.unique(places, return_inverse=True)
                tilt = choice.tilt[at]
                log = np.array([self._log_mean_bound(each) for each in tilt.tolist()])[where]
                away = (tilt - law)[where] * of_sum
                log += 1e-9 * (1.0 + np.abs(away) + np.abs(log)) - away
                bound = fn.exp(np.minimum(log, 0.0)) + self.removed[law] + SUBNORMAL
                row[finite] = np.minimum(row[finite], bound)
        return np.minimum(found[::-1] if self.exchanged else found, 1.0)

    def _log_mean_bound(self, tilt: float) -> float:
        """Upper bound of the logarithm of the mean of e^(tilt S), kept."""
        if tilt not in self._log_bounds:
            logs = (n * shape.log_mean_bound(tilt) for shape, n in self.kinds)
            self._log_bounds[tilt] = math.fsum(logs)
        return self._log_bounds[tilt]

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        return tails_of(self.masses(c), self.shift(c))

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        c = -c if self.exchanged else c
        low, high = self._ends
        if self.is_bounded and not low <= c <= high:
            both = (1.0, 0.0) if c < low else (0.0, 1.0)
            masses = both + both
        else:
            line = self._line_for(c)
            if line is None:
                return 1.0, 1.0, 1.0, 1.0
            log = line.log_scale_at(c)
            found = []
            for law, value in enumerate(line.rough_sums(c, slice(0, 2))):
                is_above = line.tilt > law
                scaled = fn.exp(min(log + law * c, 600.0)) * (value if is_above else -value)
                mass = min(max(scaled, 0.0), 1.0)
                found += [mass, 1.0 - mass] if is_above else [1.0 - mass, mass]
            masses = (found[0], found[1], found[2], found[3])
        return masses[::-1] if self.exchanged else masses

    def profile_about(self, near: float) -> Callable[[float], float]:
        """About the profile at ε, by the line of ``near`` wherever that serves as well."""
        of_b, choice = self.exchanged, self.choice
        low, high = self._ends
        (at_hand,) = choice.for_profile(np.array([near if of_b else -near]))

        def about(epsilon: float) -> float:
            c = epsilon if of_b else -epsilon
            if self.is_bounded and not low <= c <= high:
                return -fn.expm1(epsilon) if (c < low) == of_b else 0.0
            line = self._line(int(choice.for_profile(np.array([c]), int(at_hand))[0]))
            if line is None:
                return 1.0
            (value,) = line.rough_sums(c, slice(2, 3))
            exponent = line.log_scale_at(c) + (c if of_b else 0.0)
            return fn.exp(min(exponent, 600.0)) * value + _pole(line.tilt, epsilon, of_b=of_b)

        return about

    def _line_for(self, c: float) -> Line | None:
        """The line for the masses at a loss."""
        return self._line(int(np.searchsorted(self.choice.limit, c)))

    def _line(self, index: int) -> Line | None:
        """A line of the choice; the last one is at hand."""
        last = self._last  # other threads may ask about other lines
        if last[0] != index:
            last = self._last = index, self.line_at(index)
        return last[1]

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors.

        At any real ε, which has no digits beyond its double.
        """
        assert low is None
        value, error = np.zeros(epsilon.size), np.full(epsilon.size, 1.0)
        of_b = self.exchanged
        first, second = self.infinite()
        lost = np.full(epsilon.size, first)
        c = epsilon if of_b else -epsilon

        def ask(line: Line, c: FloatArray, at: Indices) -> None:
            kernel = slice(2, 3)
            (total,), (off,) = _known(line.sums(c, kernel), line.errors(c, kernel))
            log, log_error = line.log_scale(c)
            exponent = log + c if of_b else log
            scale = fn.exp(np.minimum(exponent, 600.0))
            relative = log_error + (2.0 * ELEMENTARY + np.abs(exponent) + np.abs(c)) * UNIT
            found = scale * total
            off = scale * off + (np.abs(found) + scale * off) * (1.01 * relative + 4.0 * UNIT)
            pole = np.array([_pole(line.tilt, each, of_b=of_b) for each in epsilon[at].tolist()])
            value[at] = np.clip(found + pole, 0.0, 1.0)
            error[at] = off * (1.0 + 1e-9) + (ELEMENTARY + 2.0) * UNIT * np.abs(pole)
            lost[at] = line.removed[of_b]
            if (line.tilt <= 0.0) if of_b else (line.tilt >= 1.0):
                # e^ε in the pole stands for all mass of the second law
                error[at] += (1.0 - pole) * line.removed[not of_b]

        first_end, last_end = self._ends
        inside = self._groups(c, self.choice.for_profile(c), ask)
        nothing, whole = (c > last_end, c < first_end) if of_b else (c < first_end, c > last_end)
        value[nothing & ~inside], error[nothing & ~inside] = 0.0, 0.0
        at = whole & ~inside
        value[at] = -fn.expm1(epsilon[at])
        error[at] = 4.0 * UNIT + (1.0 - value[at]) * second
        error = np.where(np.isnan(error), 1.0, error)
        return value, error + SUBNORMAL * (inside | whole) + lost


def _known(value: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrals relative to their scale, which is Chernoff's bound on them, and their errors.

    What a sum does not know to that is between 0 and the bound.
    """
    is_open = ~(error <= 1.0)
    return np.where(is_open, 0.0, value), np.where(is_open, CHERNOFF, error)


def _pole(tilt: float, epsilon: float, *, of_b: bool) -> float:
    """What the poles between a line and that of the small profiles add."""
    if (tilt >= 1.0) if of_b else (tilt <= 0.0):
        return 0.0
    return 1.0 if 0.0 < tilt < 1.0 else -fn.expm1(epsilon)
