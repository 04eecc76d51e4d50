"""Laws of few sampled Gaussian steps, of groups too, by proven convolutions of their densities.

For few steps or rare large losses: where the transform decays slowly or the sum over a line cancels
(docs/theory/sector_laws).  The density is kept as polynomials on panels; each convolution takes
some 2 to 10 ms.  Epochs of random allocation have such laws as well.
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

# Four laws, each truncated farther out; most questions need the first only.  Logs:
DEPTHS = (-75.0, -200.0, -760.0, -1500.0)  # of the density where a law is cut
LEAST_ASKED = (-45.0, -160.0, -375.0, SMALLEST)  # of the smallest values that a law is asked for
LEAST_SOLVED = (-45.0, -100.0, -375.0, SMALLEST)  # of the smallest values whose thresholds it finds
# Steps are cut on the left at a log density of at most this: of up to `FEWEST_STEPS` steps, unless
# their sum needs less, and of more, whose sums of rare losses lose more there.
LOWEST, LOWEST_OF_MANY = -200.0, -320.0
APART = 8.2  # standard deviations from the largest term of a convolution: farther ones are < 1e-14
AT_END = 1e-2  # relative distance of a threshold from an end below which it counts as the end
SMALL_ERROR = 1e-11  # relative error of rows that no deeper law is tried for
OWN_ERRORS = 4.0  # a law's rows err by at most so many of its own errors, if truncation is not felt
LEAST_ERROR = 8e-14  # relative, per step: rows of lines as close as this are not improved
TOO_SHALLOW = Limits(1e-9, 1e-9)  # errors of a law's rows for which the next deeper law is tried
LEFT = 3e-11  # relative error of rows above which lines other than the nearest are tried
LEFT_OF_MANY, LEFT_OF_EACH = 1e-8, 1e-12  # the same above MANY_STEPS, plus so much per step
MANY_STEPS = 1000  # more make laws slower than lines
OF_UNEQUAL = 1.75  # work of a convolution of two laws, over that of a law with itself
DIVISORS = (3, 5, 7, 9, 11, 13, 15, 17, 19, 21)

# Epochs of random allocation.  With large noise both tails fall like a normal law's, and each sum
# loses as much at the ends as it gains if they are cut at about e^-220; deeper laws cost little.
MOST_ALLOCATED = 12_000  # steps of all epochs
MOST_EPOCH_WORK = 8e7  # nodes of all convolutions of an epoch
EPOCH_DEPTHS = ((-230.0, -760.0), (-330.0, -760.0))  # for noise below `QUIET`, and from it on
DEEPEST = -160.0  # log of the smallest values that they are asked for
QUIET = 2.5  # noise multiplier
WIDEST = 80.0  # largest variance of the total loss, about
LOUDEST = 26.0  # 1/noise is replaced by at most this, before it is squared and exponentiated
EPOCHS_TOO_SHALLOW = Limits(1e-7, 1e-7)
NOT_PROVEN = "no law of these steps is proven; method='lattice' may bracket it"

# Kinds of steps: noise, the sampling probability or, of a group, the probabilities that 0, 1, ...
# of its records are in a batch, and the number of steps.
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
    """The work space of convolutions, shared by all of a thread."""
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
    """How far left of its mean a step's law must reach for the sum to reach ``reach``.

    All in standard deviations.  Given that a normal sum is at x, a part with the share f of the
    steps is at x sqrt(f), with the deviation sqrt(1 - f).
    """

    def part(x: float, share: float) -> float:
        return math.sqrt(share) * x + math.sqrt(1.0 - share) * APART

    for _ in kinds[1:]:
        reach = fn.hypot(reach, APART)  # the maximum of ``part`` over all shares
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
    """The law of all steps: powers of each kind by an addition chain, then their convolution."""
    result = None
    steps = sum(number for _, _, number in kinds)
    if steps > FEWEST_STEPS:
        low = min(deepest, LOWEST_OF_MANY)
    else:
        reach = _reach_of_parts(kinds, math.sqrt(-2.0 * deepest))
        low = max(-0.5 * reach**2, min(deepest, LOWEST))
    ones = [_step(noise, rate, steps, low, deepest) for noise, rate, _ in kinds]
    # the tables of all kinds reach as far as those of the kind with the largest losses
    reaches = [float(lib.pe_sector_reach(one)) for one in ones]
    most = max(reaches)
    for (noise, rate, number), one, reach in zip(kinds, ones, reaches, strict=True):
        own = one if reach == most else _step(noise, rate, steps, low, deepest, most)
        power = _power(own, number, _convolve)
        result = power if result is None else _convolve(result, power)
    return result


def _kept_integrals(law: Any) -> Any:
    """The law with its panels' integrals kept, which all rows and thresholds use."""
    finished(lib.pe_sector_keep(law), "a law with proven errors")
    return law


@kept(128, lambda law: 0 if law is None else int(lib.pe_sector_bytes(law)))
def _law_of(make: Callable[[Any, float], Any], kinds: Any, deepest: float) -> Any:
    """The law of the composed loss, or None: a failure is kept as well, as it takes as long."""
    try:
        return _kept_integrals(make(kinds, deepest))
    except AccuracyError:
        return None


def _sums(number: int) -> list[tuple[int, int]]:
    """A cheap addition chain from 1 to ``number``: pairs of which each adds up to the next power.

    An n-th power is the square of its half's, that of n - 1 times the first, or a power of that of
    a divisor.
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
    """The law of ``number`` equal parts, by the chain of `_sums`."""
    laws = {1: one}
    for a, b in _sums(number):
        laws[a + b] = joined(laws[a], laws[b])
    return laws[number]


def _halved(one: Any, number: int, joined: Callable[[Any, Any], Any]) -> Any:
    """The same by halves that differ by at most one: unequal parts lose more at their ends."""
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
    """The law of one epoch's loss, the log of the mean of its steps' likelihood ratios."""
    out = ffi.new("pe_sector **")
    shift = in_two_doubles(1 / (Fraction(noise[0]) + Fraction(noise[1])))
    one = _law(lib.pe_sector_ratio(shift, deepest, float(steps), out), out)
    if steps > 1 and sums * float(lib.pe_sector_work(_convolve(one, one))) > MOST_EPOCH_WORK:
        raise AccuracyError(NOT_PROVEN)  # the last convolution would refuse after some seconds
    return _halved(one, steps, _convolve)


def _composed_epochs(kinds: EpochKinds, deepest: float) -> Any:
    """The law of all epochs."""
    result = None
    # about the variance of the loss: the axis has to hold some 20 deviations on either side
    spread = sum(
        number * fn.log1p(fn.expm1(min(1.0 / noise[0], LOUDEST) ** 2) / steps)
        for noise, steps, number in kinds
    )
    if spread > WIDEST:
        raise AccuracyError(NOT_PROVEN)
    for noise, steps, number in kinds:
        # number of convolutions
        sums = steps.bit_length() + number.bit_length()
        power = _halved(_epoch(noise, steps, deepest, sums), number, _compose)
        result = power if result is None else _compose(result, power)
    return result


def _deeper_epochs(kinds: EpochKinds, first: float, deepest: float) -> Any:
    """The deeper law, tried only where the shallow one, which costs less, is proven."""
    shallow = _law_of(_composed_epochs, kinds, first)
    return None if shallow is None else _law_of(_composed_epochs, kinds, deepest)


class _Level(NamedTuple):
    """A law, made on first use, with logs of the smallest values for rows and for thresholds.

    The next deeper law is tried for rows with errors above ``then``; None stands for errors above
    the law's own, which truncation causes.
    """

    law: Callable[[], Any]
    least: float
    solved: float
    then: Limits | None


def kinds_of(pair: GaussianPair) -> Kinds:
    """Return noise, sampling probability and number of the steps."""
    return tuple(zip(pair.noise, pair.probability, pair.steps, strict=True))


class SectorLaws:
    """Proven rows of one ordered pair of few steps; if reversed A is the law with the record."""

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
            for depth, least, solved, then in zip(
                DEPTHS, LEAST_ASKED, LEAST_SOLVED, enough, strict=False
            )
        )

    def improve(
        self,
        functional: int,
        c: FloatArray,
        table: FloatArray,
        enough: Limits,
        depths: int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Replace rows of a table by closer rows of laws, and return where.

        Rows with errors within ``enough``, and thresholds that are not finite, are left.  At most
        ``depths`` of the laws that are proven are asked, the shallowest first.
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
            found = call_kernel(lib.pe_sector_at, c[weak], law, self._reversed)
            better = row_errors(found, functional, limits)[0] < errors[weak]
            own = table[weak]
            own[better] = found[better]
            table[weak] = own
            put[weak] |= better
            if depths is not None and (depths := depths - 1) == 0:
                break
            own_error = max(OWN_ERRORS * float(lib.pe_sector_error(law)), SMALL_ERROR)
            limits = level.then or Limits(own_error, own_error)  # the rest is truncation
        return put

    @property
    def depths(self) -> int:
        """Number of laws, each truncated farther out than the one before."""
        return len(self._levels)

    def law(self, depth: int) -> Any:
        """Return the law of this index; None where it is not proven."""
        return self._levels[depth].law()

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds at which the log of a functional has given values; NaN beyond all laws."""
        found = np.full(log_target.size, np.nan)
        for level in self._levels if self.serves else ():
            here = np.isfinite(log_target) & np.isnan(found) & (log_target >= level.solved)
            law = level.law() if here.any() else None
            if law is not None:
                places = self._threshold(law, functional, log_target[here])
                found[here] = np.where(_is_end(law, places), np.nan, places)
        return found

    def farthest(self, functional: int, log_target: FloatArray) -> FloatArray:
        """The same by the deepest law, or its end; NaN where no law is proven."""
        for level in self._levels[::-1] if self.serves else ():
            law = level.law()
            if law is not None:
                return self._threshold(law, functional, log_target)
        return np.full(log_target.size, np.nan)

    def _threshold(self, law: Any, functional: int, goal: FloatArray) -> FloatArray:
        """The same by one law, clipped to its ends."""
        found, goal = np.empty(goal.size), np.ascontiguousarray(goal)
        out = array(found, writable=True)
        lib.pe_sector_solve(law, self._reversed, functional, goal.size, array(goal), out)
        return found


def _is_end(law: Any, c: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether thresholds, of either order, are at an end of a law, up to `AT_END`."""
    ends = np.empty(2)
    lib.pe_sector_ends(law, array(ends, writable=True))
    return np.asarray(np.any([abs(abs(c) - abs(end)) <= AT_END * abs(end) for end in ends], axis=0))


class EpochLaws(SectorLaws):
    """Proven rows of one ordered pair of epochs of random allocation.

    Noise is a sum of two doubles, and epochs of one step are plain Gaussian steps.  If reversed A
    is the law with the record.
    """

    def __init__(self, kinds: EpochKinds, is_reversed: bool) -> None:
        self._reversed = is_reversed
        self._least_error = 0.0  # no other rows of epochs exist
        self.serves = sum(steps * number for _, steps, number in kinds) <= MOST_ALLOCATED
        noise = max(noise[0] for noise, _, _ in kinds)
        first, deeper = EPOCH_DEPTHS[noise >= QUIET]
        laws = (
            partial(_law_of, _composed_epochs, kinds, first),
            partial(_deeper_epochs, kinds, first, deeper),
        )
        self._levels = tuple(_Level(law, DEEPEST, DEEPEST, EPOCHS_TOO_SHALLOW) for law in laws)
