"""Masses of a sum of losses above and below thresholds, and profiles, from lines, with bounds.

A line to the right of the kernel's pole gives the mass above the threshold, one to the left minus
the mass below (docs/theory/line, Lemma 1); the other mass is the complement.
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
from pyengine.engines.exact.levels import (
    BELOW_DOUBLES,
    SUBNORMAL,
    Calls,
    ComposedLaw,
    LawTests,
    Tails,
)
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

SLACK = 1.0 + 1e-9  # covers the rounding of a bound
LEAST_RATIO = 1e9  # of a value to the removed mass, for digits
MOST_LOG = 600.0  # larger exponents overflow
TINIEST = 1e-300
MAKING = 4.0  # time to make a line, in values on it
ROOM = 0.01  # half-width of the bracket of an expected threshold, in standard deviations
TAILS = (0, True), (0, False), (1, True), (1, False)  # law A or B, and whether above
Line = LossLine | DeformedLine
OK: int = lib.PE_OK
ONE, ROUGH = ffi.typeof("double[1]"), ffi.typeof("double[4]")
LINES = "masses on lines"
LINE_TESTS = {name: ffi.addressof(lib, f"pe_line_law_{name}") for name in ("tails", "roughly")}
NO_LINE = ffi.new("pe_loss_line *")  # of size 0: the core takes it for none


class OrderLines:
    """The lines of an order for the C core, which calls back for each line that it needs.

    Parameters
    ----------
    order : LineOrder
        The order, of which `LineOrder.line_at` makes lines.
    """

    def __init__(self, order: LineOrder) -> None:
        choice, self._order, self._handle = order.choice, order, ffi.new_handle(self)
        self._made: dict[int, Line | None] = {}
        self._kept: list[object] = []  # buffers that the core may point into
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
        """Return a line, made on first use; None where none serves."""
        if index not in self._made:
            self._made[index] = self._order.line_at(index)
        return self._made[index]

    def need(self, index: int, panels: int) -> None:
        """Give the core a line, with at least ``panels`` panels on a deformed line's rays."""
        line = self.at(index)
        if line is None:
            self._line[index] = NO_LINE
            return
        if panels and self._line[index] == line.core[0]:  # else another thread has extended it
            line.add_panels(panels)
        self._kept.append(line.core)
        self._line[index] = line.core[0]


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_line(lines: Any, index: int, panels: int) -> int:
    """The core's call for a line."""
    ffi.from_handle(lines).need(index, panels)
    return OK


class LineOrder(Inner, ComposedLaw):
    """One ordered pair of a composition of steps of any kinds, by lines.

    Parameters
    ----------
    kinds : tuple of (LossShape, int)
        The kinds of steps, A without the record, and the number of steps of each.
    exchanged : bool
        Whether the pair is (B, A), with the loss -S.
    """

    is_light = True
    room = ROOM
    stages = 2  # Chernoff bounds, then lines
    is_called: ClassVar[bool] = False  # whether the core calls back for masses: not those of lines

    def __init__(self, kinds: Kinds, exchanged: bool) -> None:
        self.kinds, self.exchanged = kinds, exchanged
        low, high = (
            reduce(
                CONTEXT.add, (CONTEXT.multiply(Decimal(n), Decimal(s.ends[i])) for s, n in kinds)
            )
            for i in (0, 1)
        )
        errors = [n * shape.off_ends for shape, n in kinds]
        # errors of the ends; ends known to 60 digits only round
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
        # A's and B's masses of finite losses, usually 1, and bounds of their errors
        off = 0.0 if self.is_whole else 2.0 * UNIT
        self.rests = of_a.rest, of_b.rest, off * of_a.rest, off * of_b.rest
        self._form = lib.PE_SCALED_OF_B if exchanged else lib.PE_SCALED
        self._log_bounds: dict[float, float] = {}

    def support(self) -> tuple[float, float]:
        """The smallest and the largest finite loss."""
        low, high = self.ends
        return (-high, -low) if self.exchanged else (low, high)

    def lowest(self) -> tuple[float, float]:
        """Bounds of the smallest loss; the lower one is -∞ where the law is truncated."""
        end = self.support()[0]  # moved outwards by the errors of the ends
        least = end if self._off_ends else math.nextafter(end, -math.inf)
        if not self.is_bounded or self.removed != (0.0, 0.0):
            least = -math.inf
        return least, math.nextafter(end + 2.0 * self._off_ends, math.inf)

    def alone(self) -> tuple[float, float, float]:
        """No masses at infinite losses beyond those that profiles contain."""
        return 0.0, 0.0, 0.0

    @property
    def terms(self) -> float:
        """Number of terms of the lines next to both poles; infinite without those."""
        return terms_of_lines(self.kinds)

    @property
    def work(self) -> float:
        """Estimated number of terms of a question, the making of its line included."""
        return MAKING * self.terms

    @property
    def least_known(self) -> float:
        """Values below this lose digits to the removed masses."""
        return LEAST_RATIO * max(self.removed)

    @cached_property
    def choice(self) -> Choice:
        """The lines, and estimates of cumulants."""
        return choice_of(self.kinds)

    def line_at(self, index: int) -> Line | None:
        """Return the line ``index``, or the next one nearer to the poles that can be made.

        Lines far out may have no bounds where the law is truncated.
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
        """Bounds of each law's mass where the other may have none: the removed masses."""
        return self.removed[::-1] if self.exchanged else self.removed

    @property
    def _around(self) -> tuple[float, float]:
        return self.room, -self.room

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Brackets of the thresholds c with A(S > c) = α; estimates."""
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
        """False: straight lines serve only where atoms are negligible."""
        return False

    @property
    def jumps(self) -> FloatArray:
        """No atoms."""
        return np.zeros(0)

    @property
    def shifts(self) -> tuple[float, float, float]:
        """Numbers r, a and m: thresholds err by at most max(r (|c| + a), m)."""
        return 0.0, 0.0, 0.0

    def shift(self, c: FloatArray) -> FloatArray:
        """Bounds of the errors of thresholds, by `shifts`."""
        part, beside, least = self.shifts
        return np.asarray(np.maximum(part * (np.abs(c) + beside), least))

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Brackets of the ε at which the profile is δ; estimates."""
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
        """An upper bound of the profile at ε: Chernoff's, or that of chords.

        With x = S - c, the profile of (A, B) is E_A (1 - e^x)_+ at c = -ε, in which (1 - e^x)_+ <=
        e^(λ x)/(1 - λ) for λ < 0.  That of (B, A) is e^c E_A (e^x - 1)_+ at c = ε, in which
        (e^x - 1)_+ <= e^(λ x)/λ for λ > 1.  Chords serve if Chernoff's bound is above ``enough``.
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
        with np.errstate(invalid="ignore"):  # at the tilt 0, which is not usable, of ε = ∞
            cost = choice.log_mean - c * choice.tilt - fn.log(np.where(usable, weight, 1.0))
        at = int(np.argmin(np.where(usable, cost, np.inf)))
        tilt = float(choice.tilt[at])
        close = math.inf if enough else chord_bound(self.kinds, tilt, epsilon, exchanged=of_b)
        if close < math.inf:
            return close
        log = self._log_mean_bound(tilt) - tilt * c
        log += (c if of_b else 0.0) - fn.log(float(weight[at]))
        log += 1e-9 * (1.0 + abs(tilt * c) + abs(c))
        most = (fn.exp(log) if log < MOST_LOG else math.inf) + self.infinite()[0] + SUBNORMAL
        if 0.0 < enough < most:
            close = chord_bound(self.kinds, tilt, epsilon, exchanged=of_b)
        return min(most, close)

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        found, c = np.empty((MASSES, 2, c.size)), np.ascontiguousarray(c)
        room = array(found.reshape(-1), writable=True)
        finished(lib.pe_line_law_masses(self._lines.core, c.size, array(c), room), LINES)
        return [(each[0], each[1]) for each in found]

    def masses_at(self, stage: int, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The same: by Chernoff bounds, or in the last stage by lines."""
        if stage == self.stages - 1:
            return self.masses(c)
        most, (first, second) = self._most(c), self._least_alone
        # each law's masses above and below add up to 1, with the infinite losses on one side
        shown = np.array([0.0, first, second, 0.0])[:, None]
        least = np.maximum(1.0 - most[[1, 0, 3, 2]] - 2.0 * UNIT, shown)
        return [between(*x) for x in zip(least, most, strict=True)]

    def profile_at(self, stage: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile: by Chernoff bounds, or in the last stage by lines."""
        if stage == self.stages - 1:
            return self.profile(epsilon)
        return profile_from(epsilon, self._most(-epsilon), self._least_alone[0])

    @property
    def _least_alone(self) -> tuple[float, float]:
        """Lower bounds of each law's mass at infinite losses."""
        first, second = (max(x * (1.0 - 4.0 * UNIT) - SUBNORMAL, 0.0) for x in self.alone_masses)
        return first, second

    def _most(self, c: FloatArray) -> FloatArray:
        """Chernoff bounds of the four masses, e^(K(λ) - (λ - i) c) with i = 0 for A and 1 for B.

        K is of finite losses; masses of infinite ones are added.
        """
        choice, of_sum = self.choice, -c if self.exchanged else c
        found, finite = np.ones((MASSES, c.size)), np.isfinite(c)
        of_sum = of_sum[finite]
        # both neighbours of the saddle: with rare large losses they are far apart
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
        """Upper bound of K(``tilt``), kept."""
        if tilt not in self._log_bounds:
            logs = (n * shape.log_mean_bound(tilt) for shape, n in self.kinds)
            self._log_bounds[tilt] = math.fsum(logs)
        return self._log_bounds[tilt]

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and up to c, with errors."""
        return tails_of(self.masses(c), self.shift(c))

    def roughly(self, c: float) -> RoughTails:
        """Estimates of A(S > c), A(S <= c), B(S > c) and B(S <= c)."""
        out = ffi.new(ROUGH)
        finished(lib.pe_line_law_roughly(self._lines.core, c, out), LINES)
        found: RoughTails = out[0], out[1], out[2], out[3]
        return found

    @cached_property
    def tests(self) -> LawTests:
        """The tests {S > c} for the C core's search for levels."""
        calls = Calls(self._lines.core, **LINE_TESTS)
        if self.is_called:
            calls = Calls(ffi.new_handle(self), lib.python_tails, roughly=lib.python_roughly)
        return LawTests(self, calls, self.jumps, has_atoms=self.has_atoms)

    def profile_about(self, near: float) -> Callable[[float], float]:
        """A function that estimates the profile at ε, by the line of ε = ``near`` if it serves."""
        law, out = self._lines.core, ffi.new(ONE)

        def about(epsilon: float) -> float:
            finished(lib.pe_line_law_profile_about(law, near, epsilon, out), LINES)
            return float(out[0])

        return about

    @cached_property
    def _lines(self) -> OrderLines:
        return OrderLines(self)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile at any ε, masses at infinite losses included, and bounds of its errors."""
        finite = np.isfinite(epsilon)
        if self.is_whole and finite.all():
            return self._profile(epsilon)
        alone = self.first.mass
        value, error = np.full(epsilon.size, alone), np.full(epsilon.size, 4.0 * UNIT * alone)
        if finite.any():
            value[finite], error[finite] = self._profile(epsilon[finite])
        return value, error + SUBNORMAL * (0.0 < alone < BELOW_DOUBLES)

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of finite losses at finite ε, and bounds of its errors."""
        (value, error), at = np.empty((2, epsilon.size)), np.ascontiguousarray(epsilon)
        room = array(value, writable=True), array(error, writable=True)
        finished(lib.pe_line_law_profile(self._lines.core, at.size, array(at), *room), LINES)
        return value, error
