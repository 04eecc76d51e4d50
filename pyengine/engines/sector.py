"""Laws of few sampled Gaussian steps, also of groups, with proven errors, by positive terms.

For few steps, or rare large losses: where a transform decays slowly or cancels, and certified lines
prove little (docs/theory/sector_laws).  A law is built at some 2 to 10 ms for each convolution.
Epochs of random allocation have such laws as well.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine._support.status import finished
from pyengine.engines.functionals import FloatArray, Limits, array, call_kernel, row_errors
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.plan import FEW_STEPS, FEWEST_STEPS, SMALLEST
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import in_two_doubles, log_of_rest, ratio_in_two_doubles

__all__ = ["EpochKinds", "EpochLaws", "Kinds", "SectorLaws", "kinds_of"]

# Log densities where laws end: values down to about half of it are served.  Most are by the first.
DEPTHS = (-75.0, -200.0, -760.0, -1500.0)
TOO_DEEP = (-45.0, -160.0, -375.0, SMALLEST)  # log values below are not asked of each
SOLVED = (-45.0, -100.0, -375.0, SMALLEST)  # and those whose thresholds it has
# Of steps whose sum does not end below it.  Squaring laws that are normal gives others like them
# from the first on; sums of many rare losses lose more at their low ends.
LOWEST, LOWEST_OF_MANY = -200.0, -320.0
APART = 8.2  # standard deviations: terms of a sum that are so far from its largest do not count
AT_END = 1e-2  # of an end: thresholds that are so near are where a law ends
SMALL_ERROR = 1e-11  # of rows: below it no deeper law is asked
OWN_ERRORS = 4.0  # of a law, what its rows are off by at most if its ends do not count
LEAST_ERROR = 8e-14  # of rows, for each step: lines that are as close gain nothing by a law
TOO_SHALLOW = Limits(1e-9, 1e-9)  # of what rows then miss by more than this
LEFT = 3e-11  # error of rows from which on other lines are asked than those that are nearest,
# and of those of many steps, whose laws take longer than lines do, and for each of them
LEFT_OF_MANY, LEFT_OF_EACH = 1e-8, 1e-12
MANY_STEPS = 1000
OF_UNEQUAL = 1.75  # times the work of a sum of two equal laws, that of two others
DIVISORS = (3, 5, 7, 9, 11, 13, 15, 17, 19, 21)

# Of epochs: total numbers of steps, and what powers of their ratios may take.  Where noise is large
# both tails fall like a normal law's, and lose as much as they gain at each sum if they end at
# about e^-220: laws are deeper there, and cost little.
MOST_ALLOCATED = 12_000
MOST_EPOCH_WORK = 8e7
EPOCH_DEPTHS = ((-230.0, -760.0), (-330.0, -760.0))
DEEPEST = -160.0  # log values below are not asked of them
QUIET = 2.5  # noise
WIDEST = 80.0  # of the spread of a loss
LOUDEST = 26.0  # inverse of a noise; more of it is as wide
EPOCHS_TOO_SHALLOW = Limits(1e-7, 1e-7)
NOT_PROVEN = "no law of these steps is proven; method='lattice' may bracket it"

# Noise, the sampling probability, or the probabilities that 0, 1, ... records of a group are in a
# batch, and number of the steps.
Number = float | Fraction
Rate = Number | tuple[Fraction, ...]
Kinds = tuple[tuple[Number, Rate, int], ...]
EpochKinds = tuple[tuple[tuple[float, float], int, int], ...]  # noise, steps and number of epochs


def _law(status: int, out: Any) -> Any:
    law = ffi.gc(out[0], lib.pe_sector_free)
    if not finished(status, "a law with proven errors"):
        raise AccuracyError(NOT_PROVEN)
    return law


_thread = threading.local()


def _pieces() -> Any:
    """Nodes of rules, which all sums of a thread share."""
    if not hasattr(_thread, "pieces"):
        _thread.pieces = ffi.gc(lib.pe_sector_pieces_new(), lib.pe_sector_pieces_free)
    return _thread.pieces


def _step(
    noise: Number,
    rate: Rate,
    number: int,
    deepest: float,
    rarest: float,
    reach: float = -math.inf,
) -> Any:
    out = ffi.new("pe_sector **")
    scale = Fraction(noise)
    shift = ratio_in_two_doubles(scale.denominator, scale.numerator)
    ends = deepest, rarest, float(number), reach, out
    if isinstance(rate, tuple):
        none, *some = rate
        ratios = [part for weight in some for part in in_two_doubles(weight / none)]
        floor = log_of_rest(1 - none)
        return _law(lib.pe_sector_group(shift, len(some), ratios, floor, *ends), out)
    p = Fraction(rate)
    ratio, floor = in_two_doubles(p / (1 - p)), log_of_rest(rate)
    return _law(lib.pe_sector_step(shift, ratio, floor, float(rate), *ends), out)


def _convolve(a: Any, b: Any) -> Any:
    out = ffi.new("pe_sector **")
    return _law(lib.pe_sector_convolve(a, b, _pieces(), out), out)


def _reach_of_parts(kinds: Kinds, reach: float) -> float:
    """Where steps have to end if their sum is to reach so far to the left, in deviations.

    A part that has the share f of a sum at x is about x sqrt(f) there, give or take sqrt(1 - f).
    """

    def part(x: float, share: float) -> float:
        return math.sqrt(share) * x + math.sqrt(1.0 - share) * APART

    for _ in kinds[1:]:
        reach = fn.hypot(reach, APART)  # the most, of any share
    farthest = reach
    for _, _, number in kinds:
        reaches = {number: reach}
        for one, other in reversed(_sums(number)):
            own = reaches[one + other]
            for parts in {one, other}:
                needed = part(own, parts / (one + other))
                reaches[parts] = max(reaches.get(parts, 0.0), needed)
        farthest = max(farthest, *reaches.values())
    return farthest


def _composed(kinds: Kinds, deepest: float) -> Any:
    """Law of all steps: powers by squaring, and their sum."""
    result = None
    steps = sum(number for _, _, number in kinds)
    if steps > FEWEST_STEPS:
        low = min(deepest, LOWEST_OF_MANY)
    else:
        reach = _reach_of_parts(kinds, math.sqrt(-2.0 * deepest))
        low = max(-0.5 * reach**2, min(deepest, LOWEST))
    ones = [_step(noise, rate, steps, low, deepest) for noise, rate, _ in kinds]
    # tables of all go as far as those of the one whose losses are the largest
    reaches = [float(lib.pe_sector_reach(one)) for one in ones]
    most = max(reaches)
    for (noise, rate, number), one, reach in zip(kinds, ones, reaches, strict=True):
        own = one if reach == most else _step(noise, rate, steps, low, deepest, most)
        power = _power(own, number, _convolve)
        result = power if result is None else _convolve(result, power)
    return result


def _kept_integrals(law: Any) -> Any:
    """A law that keeps its integrals, which all of its rows and thresholds need."""
    finished(lib.pe_sector_keep(law), "a law with proven errors")
    return law


@kept(128, lambda law: 0 if law is None else int(lib.pe_sector_bytes(law)))
def _law_of(make: Callable[[Any, float], Any], kinds: Any, deepest: float) -> Any:
    """Law of the composed loss; None where there is none: to find that out takes time, too."""
    try:
        return _kept_integrals(make(kinds, deepest))
    except AccuracyError:
        return None


def _sums(number: int) -> list[tuple[int, int]]:
    """Sums of two numbers of parts, each made before, that lead from 1 to a number at little cost.

    A number is twice its half, one more than the one before, or a power of the power of a divisor.
    """
    found: dict[int, tuple[float, list[tuple[int, int]]]] = {1: (0.0, [])}

    def best(n: int) -> tuple[float, list[tuple[int, int]]]:
        if n not in found:
            ways = [2 if n % 2 == 0 else 1, *(d for d in DIVISORS if n % d == 0 and d < n)]
            found[n] = min((joined(n, way) for way in ways), key=lambda way: way[0])
        return found[n]

    def joined(n: int, divisor: int) -> tuple[float, list[tuple[int, int]]]:
        if divisor == 1:
            cost, sums = best(n - 1)
            return cost + OF_UNEQUAL, [*sums, (n - 1, 1)]
        cost, sums = best(n // divisor)
        more, own = best(divisor)
        return cost + more, [*sums, *((a * n // divisor, b * n // divisor) for a, b in own)]

    found[2] = 1.0, [(1, 1)]
    return best(number)[1]


def _power(one: Any, number: int, joined: Callable[[Any, Any], Any]) -> Any:
    """Law of equal parts."""
    laws = {1: one}
    for a, b in _sums(number):
        laws[a + b] = joined(laws[a], laws[b])
    return laws[number]


def _halved(one: Any, number: int, joined: Callable[[Any, Any], Any]) -> Any:
    """The same from halves that differ by one at most: unequal sums lose some at their ends."""
    laws = {1: one}

    def law(parts: int) -> Any:
        if parts not in laws:
            laws[parts] = joined(law(parts // 2), law(parts - parts // 2))
        return laws[parts]

    return law(number)


def _compose(a: Any, b: Any) -> Any:
    out = ffi.new("pe_sector **")
    return _law(lib.pe_sector_compose(a, b, _pieces(), out), out)


def _epoch(noise: tuple[float, float], steps: int, deepest: float, sums: int) -> Any:
    """Law of the loss of one epoch, the log of a mean of ratios."""
    out = ffi.new("pe_sector **")
    shift = in_two_doubles(1 / (Fraction(noise[0]) + Fraction(noise[1])))
    one = _law(lib.pe_sector_ratio(shift, deepest, float(steps), out), out)
    if steps > 1 and sums * float(lib.pe_sector_work(_convolve(one, one))) > MOST_EPOCH_WORK:
        raise AccuracyError(NOT_PROVEN)  # which the last of its sums would say after some seconds
    return _halved(one, steps, _convolve)


def _composed_epochs(kinds: EpochKinds, deepest: float) -> Any:
    """Law of all epochs."""
    result = None
    # about the variance of the loss, of whose root the axis has to hold some twenty on either side
    spread = sum(
        number * fn.log1p(fn.expm1(min(1.0 / noise[0], LOUDEST) ** 2) / steps)
        for noise, steps, number in kinds
    )
    if spread > WIDEST:
        raise AccuracyError(NOT_PROVEN)
    for noise, steps, number in kinds:
        # sums of powers take half as long as the first one where losses are large
        sums = steps.bit_length() + number.bit_length()
        power = _halved(_epoch(noise, steps, deepest, sums), number, _compose)
        result = power if result is None else _compose(result, power)
    return result


def _deeper_epochs(kinds: EpochKinds, first: float, deepest: float) -> Any:
    """A law that ends farther out, unless one that does not was refused: it costs more."""
    shallow = _law_of(_composed_epochs, kinds, first)
    return None if shallow is None else _law_of(_composed_epochs, kinds, deepest)


class _Level(NamedTuple):
    """A law, made where it is asked for, log values that it may have, and errors that do for it.

    Where `then` is None these are also what its rows are off by if its ends do not count.
    """

    law: Callable[[], Any]
    least: float
    solved: float
    then: Limits | None


def kinds_of(pair: GaussianPair) -> Kinds:
    """Return noise, sampling probability and number of the steps."""
    return tuple(zip(pair.noise, pair.probability, pair.steps, strict=True))


class SectorLaws:
    """Proven rows of one ordered pair of few steps; A is the law with the record if reversed."""

    def __init__(self, kinds: Kinds, is_reversed: bool) -> None:
        self._reversed = is_reversed
        steps = sum(number for _, _, number in kinds)
        self.serves = 0 < steps <= FEW_STEPS and all(rate != 1.0 for _, rate, _ in kinds)
        self.comes_first = self.serves and steps <= FEWEST_STEPS
        self.left, self._least_error = LEFT, LEAST_ERROR * steps
        enough: tuple[Limits | None, ...] = (None, TOO_SHALLOW, TOO_SHALLOW, TOO_SHALLOW)
        self.are_costly = self.serves and steps > MANY_STEPS
        if self.are_costly:
            self.left = self._least_error = LEFT_OF_MANY + LEFT_OF_EACH * steps
            enough = (Limits(self.left, self.left), TOO_SHALLOW)
        self._levels = tuple(
            _Level(partial(_law_of, _composed, kinds, depth), least, solved, then)
            for depth, least, solved, then in zip(DEPTHS, TOO_DEEP, SOLVED, enough, strict=False)
        )

    def improve(
        self,
        functional: int,
        c: FloatArray,
        table: FloatArray,
        enough: Limits,
        depths: int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Put rows into a table of proven ones where their errors are smaller, and say where.

        Nothing is done where thresholds are NaN or infinite, or rows have no larger errors than are
        enough.  ``depths`` laws are asked at most, of those that are proven the shortest ones.
        """
        put = np.zeros(c.size, dtype=np.bool_)
        if not self.serves:
            return put
        limits = Limits(*(max(limit, self._least_error) for limit in enough))
        for level in self._levels:
            errors, good = row_errors(table, functional, limits)
            weak = np.isfinite(c) & ~good
            if not weak.any():
                break
            weak &= ~(table[:, 2 + functional] < level.least)
            if not weak.any():
                continue
            law = level.law()
            if law is None:
                continue
            found = call_kernel(self._rows, law, functional, c[weak])
            better = row_errors(found, functional, limits)[0] < errors[weak]
            own = table[weak]
            own[better] = found[better]
            table[weak] = own
            put[weak] |= better
            if depths is not None and (depths := depths - 1) == 0:
                break
            own_error = max(OWN_ERRORS * float(lib.pe_sector_error(law)), SMALL_ERROR)
            limits = level.then or Limits(own_error, own_error)  # more is due to its ends
        return put

    @property
    def depths(self) -> int:
        """How many laws there are, each of which ends farther out than the one before."""
        return len(self._levels)

    def law(self, depth: int) -> Any:
        """Return a law; None where none is proven."""
        return self._levels[depth].law()

    def _rows(self, law: Any, _: int, n: int, x: Any, rows: Any) -> int:
        return int(lib.pe_sector_at(law, self._reversed, n, x, rows))

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds where a law has the log of a functional; NaN where none reaches so far."""
        found = np.full(log_target.size, np.nan)
        for level in self._levels if self.serves else ():
            here = np.isfinite(log_target) & np.isnan(found) & (log_target >= level.solved)
            law = level.law() if here.any() else None
            if law is not None:
                places = self._threshold(law, functional, log_target[here])
                found[here] = np.where(_is_end(law, places), np.nan, places)
        return found

    def farthest(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds where the deepest law has it or ends; NaN where there is no law."""
        for level in self._levels[::-1] if self.serves else ():
            law = level.law()
            if law is not None:
                return self._threshold(law, functional, log_target)
        return np.full(log_target.size, np.nan)

    def _threshold(self, law: Any, functional: int, goal: FloatArray) -> FloatArray:
        """Thresholds of one law, between its ends."""
        found, goal = np.empty(goal.size), np.ascontiguousarray(goal)
        out = array(found, writable=True)
        lib.pe_sector_solve(law, self._reversed, functional, goal.size, array(goal), out)
        return found


def _is_end(law: Any, c: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether thresholds, of either order, are next to an end of a law."""
    ends = np.empty(2)
    lib.pe_sector_ends(law, array(ends, writable=True))
    return np.asarray(np.any([abs(abs(c) - abs(end)) <= AT_END * abs(end) for end in ends], axis=0))


class EpochLaws(SectorLaws):
    """Proven rows of one ordered pair of epochs of random allocation.

    Noise is a sum of two doubles, and epochs of one step are plain Gaussian steps; A is the law
    with the record if reversed.
    """

    def __init__(self, kinds: EpochKinds, is_reversed: bool) -> None:
        self._reversed = is_reversed
        self._least_error = 0.0  # no lines know anything of epochs
        self.serves = sum(steps * number for _, steps, number in kinds) <= MOST_ALLOCATED
        noise = max(noise[0] for noise, _, _ in kinds)
        first, deeper = EPOCH_DEPTHS[noise >= QUIET]
        laws = (
            partial(_law_of, _composed_epochs, kinds, first),
            partial(_deeper_epochs, kinds, first, deeper),
        )
        self._levels = tuple(_Level(law, DEEPEST, DEEPEST, EPOCHS_TOO_SHALLOW) for law in laws)
