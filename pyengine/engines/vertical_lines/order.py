"""Masses of a sum of Laplace losses on both sides of a threshold, and profiles, with bounds.

A line to the right of a kernel's pole gives the mass above a threshold, one to the left of it less
the mass below; the other mass is the complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property
from pyengine._support.status import finished, keep_raised
from pyengine.engines.exact.levels import BELOW_DOUBLES, SUBNORMAL, ComposedLaw, LawTests, Tails
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.build import line_at, terms_of_lines
from pyengine.engines.vertical_lines.choice import Choice, choice_of
from pyengine.engines.vertical_lines.chords import chord_bound
from pyengine.engines.vertical_lines.deformed import DeformedLine
from pyengine.engines.vertical_lines.line import LossLine
from pyengine.engines.vertical_lines.ordered import (
    MASSES,
    Alone,
    Inner,
    RoughTails,
    between,
    profile_from,
    tails_of,
)
from pyengine.engines.vertical_lines.shapes import Kinds
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT
from pyengine.numerics.rounding import UNIT

__all__ = ["LineOrder"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

SLACK = 1.0 + 1e-9
UNKNOWN = 1e9  # times what is removed
MOST = 600.0  # exponent of a bound that says nothing
TINIEST = 1e-300
MAKING = 4.0  # values that take as long as a line takes to be made
ROOM = 0.01  # around where a threshold is expected, in standard deviations
TAILS = (0, True), (0, False), (1, True), (1, False)  # of which law, and whether above
Line = LossLine | DeformedLine
OK: int = lib.PE_OK
ONE, ROUGH = ffi.typeof("double[1]"), ffi.typeof("double[4]")
LINES = "masses on lines"
LINE_TESTS = [ffi.addressof(lib, f"pe_line_law_{name}") for name in ("tails", "roughly")]
NO_LINE = ffi.new("pe_loss_line *")  # of no size


class OrderLines:
    """The lines of an order as the C core asks for them, which has each made that it needs.

    Parameters
    ----------
    order : LineOrder
        The order, of which `LineOrder.line_at` makes lines.
    """

    def __init__(self, order: LineOrder) -> None:
        choice, self._order, self._handle = order.choice, order, ffi.new_handle(self)
        self._made: dict[int, Line | None] = {}
        self._kept: list[object] = []  # what the core may be looking at
        self._line = ffi.new("pe_loss_line const *[]", choice.line.size)
        below = choice.below_b if order.exchanged else choice.below_a
        tables = choice.line, choice.log_weight, choice.limit, below, choice.loss
        names = "tilt", "log_weight", "limit", "place", "loss"
        law = {
            "exchanged": order.exchanged,
            "is_bounded": order.is_bounded,
            "is_whole": order.is_whole,
            "ends": order.ends,
            "rest": order.rests,
            "removed": order.removed,
            "alone": order.alone_masses,
            "shift": order.shifts,
            "room": order.room,
            "lines": choice.line.size,
            "places": choice.loss.size,
            **dict(zip(names, map(array, tables), strict=True)),
            "line": self._line,
            "make": lib.python_line,
            "order": self._handle,
        }
        self.core = ffi.new("pe_line_law *", law)
        self._tables = law

    def at(self, index: int) -> Line | None:
        """Return a line, which is made if it is asked for first; None where none serves."""
        if index not in self._made:
            self._made[index] = self._order.line_at(index)
        return self._made[index]

    def need(self, index: int, panels: int) -> None:
        """Hand a line over to the core, with so many panels beside places."""
        line = self.at(index)
        if line is None:
            self._line[index] = NO_LINE
            return
        if panels and self._line[index] == line.core[0]:  # not where others have added them since
            line.add_panels(panels)
        self._kept.append(line.core)
        self._line[index] = line.core[0]


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_line(lines: Any, index: int, panels: int) -> int:
    """Have a line made."""
    ffi.from_handle(lines).need(index, panels)
    return OK


class LineOrder(Inner, ComposedLaw):
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
    is_called: ClassVar[bool] = False  # by the C core for masses, which are others than of lines

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
        self.ends = float(low) - self._off_ends, float(high) + self._off_ends
        self.is_bounded = all(shape.is_bounded for shape, _ in kinds)
        of_a, of_b = (sum(n * shape.removed[law] for shape, n in kinds) * SLACK for law in (0, 1))
        self.removed = float(of_a), float(of_b)
        of_a, of_b = (Alone.of([(shape.alone[law], n) for shape, n in kinds]) for law in (0, 1))
        self.first, self.second = (of_b, of_a) if exchanged else (of_a, of_b)
        self.alone_masses = self.first.mass, self.second.mass
        self.is_whole = self.alone_masses == (0.0, 0.0)
        # A's and B's masses of finite losses, which are 1 of most, and what those are off by
        off = 0.0 if self.is_whole else 2.0 * UNIT
        self.rests = of_a.rest, of_b.rest, off * of_a.rest, off * of_b.rest
        self._form = lib.PE_SCALED_OF_B if exchanged else lib.PE_SCALED
        self._log_bounds: dict[float, float] = {}

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""
        low, high = self.ends
        return (-high, -low) if self.exchanged else (low, high)

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss: none below where more is removed."""
        end = self.support()[0]  # which lies as far outside as losses may be off
        least = end if self._off_ends else math.nextafter(end, -math.inf)
        if not self.is_bounded or self.removed != (0.0, 0.0):
            least = -math.inf
        return least, math.nextafter(end + 2.0 * self._off_ends, math.inf)

    def alone(self) -> tuple[float, float, float]:
        """None beside what profiles have."""
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
        level, (low, high) = np.ascontiguousarray(alpha), np.empty((2, alpha.size))
        room = array(low, writable=True), array(high, writable=True)
        lib.pe_line_law_expected(self._lines.core, level.size, array(level), *room)
        return low, high

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

    @property
    def shifts(self) -> tuple[float, float, float]:
        """Thresholds are moved by a part of |c| and another number, or by the last one if more."""
        return 0.0, 0.0, 0.0

    def shift(self, c: FloatArray) -> FloatArray:
        """By how much thresholds may be moved."""
        part, beside, least = self.shifts
        return np.asarray(np.maximum(part * (np.abs(c) + beside), least))

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which ε the profile is expected to come to δ; not proven."""
        if not self.is_whole:
            beyond = np.maximum(delta - self.first.mass, TINIEST) / max(self.first.rest, TINIEST)
            delta = np.minimum(beyond, 1.0 - UNIT)
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
        if self.is_whole:
            return self._most_of_finite(epsilon, enough)
        most = self.infinite()[0]
        if math.isfinite(epsilon):
            most = self._most_of_finite(epsilon, max(enough - self.first.mass, 0.0))
        return (self.first.mass + most) * (1.0 + 16.0 * UNIT)

    def _most_of_finite(self, epsilon: float, enough: float) -> float:
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

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        found, c = np.empty((MASSES, 2, c.size)), np.ascontiguousarray(c)
        room = array(found.reshape(-1), writable=True)
        finished(lib.pe_line_law_masses(self._lines.core, c.size, array(c), room), LINES)
        return [(each[0], each[1]) for each in found]

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """By Chernoff's bounds first."""
        if stage == self.stages - 1:
            return self.masses(c)
        most, (first, second) = self._most(c), self._least_alone
        # of each law what is above and what is not have the mass 1 with infinite losses, all of
        # which are on one side
        shown = np.array([0.0, first, second, 0.0])[:, None]
        least = np.maximum(1.0 - most[[1, 0, 3, 2]] - 2.0 * UNIT, shown)
        return [between(*x) for x in zip(least, most, strict=True)]

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By Chernoff's bounds first."""
        if stage == self.stages - 1:
            return self.profile(epsilon)
        return profile_from(epsilon, self._most(-epsilon), self._least_alone[0])

    @property
    def _least_alone(self) -> tuple[float, float]:
        """Lower bounds of what either law alone shows."""
        first, second = (max(x * (1.0 - 4.0 * UNIT) - SUBNORMAL, 0.0) for x in self.alone_masses)
        return first, second

    def _most(self, c: FloatArray) -> FloatArray:
        """Upper bounds of masses as of `Tails`: means of e^((λ - i)(S - c)) by tilts.

        Those are means over finite losses, to which come the masses of infinite ones.
        """
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
        found = found[::-1] if self.exchanged else found
        for row, alone in zip(found[1:3], self.alone_masses, strict=True):
            if alone:
                row[:] = (row + alone) * (1.0 + 4.0 * UNIT)
        return np.minimum(found, 1.0)

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
        out = ffi.new(ROUGH)
        finished(lib.pe_line_law_roughly(self._lines.core, c, out), LINES)
        found: RoughTails = out[0], out[1], out[2], out[3]
        return found

    @cached_property
    def tests(self) -> LawTests:
        """Tests {S > c} as the C core asks about them."""
        calls = self._lines.core, *LINE_TESTS
        if self.is_called:
            calls = ffi.new_handle(self), lib.python_tails, lib.python_roughly
        return LawTests(self, calls, self.jumps, has_atoms=self.has_atoms)

    def profile_about(self, near: float) -> Callable[[float], float]:
        """About the profile at ε, by the line of ``near`` wherever that serves as well."""
        law, out = self._lines.core, ffi.new(ONE)

        def about(epsilon: float) -> float:
            finished(lib.pe_line_law_profile_about(law, near, epsilon, out), LINES)
            return float(out[0])

        return about

    @cached_property
    def _lines(self) -> OrderLines:
        return OrderLines(self)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors.

        With all masses, at any ε, which has no digits beyond its double.
        """
        if self.is_whole:
            return self._profile(epsilon)
        alone, finite = self.first.mass, np.isfinite(epsilon)
        value, error = np.full(epsilon.size, alone), np.full(epsilon.size, 4.0 * UNIT * alone)
        if finite.any():
            value[finite], error[finite] = self._profile(epsilon[finite])
        return value, error + SUBNORMAL * (0.0 < alone < BELOW_DOUBLES)

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same at finite ε."""
        (value, error), at = np.empty((2, epsilon.size)), np.ascontiguousarray(epsilon)
        room = array(value, writable=True), array(error, writable=True)
        finished(lib.pe_line_law_profile(self._lines.core, at.size, array(at), *room), LINES)
        return value, error
