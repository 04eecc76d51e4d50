"""Spacing and height of a line's nodes, as few as serve, and the line with these.

All is chosen by estimates; the line itself bounds the aliases and the truncation that remain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.vertical_lines.choice import Choice, choice_of
from pyengine.engines.vertical_lines.line import LossLine, Side
from pyengine.engines.vertical_lines.shapes import (
    NOTHING_LOST,
    At,
    Kinds,
    cumulants,
    cumulants_at,
)
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn

__all__ = ["line_at", "terms_of_lines"]

FloatArray = npt.NDArray[np.float64]

# largest logs of the tilted mass on atoms of all steps at once
LOG_AT_ENDS = -25.0  # for a line: e^-25 is some 1e-11 of a value
LOG_SURE = -33.0  # at the poles, for a composition: lines farther out have more
LEFT = 2e-16  # relative quadrature error that the nodes of all steps together may have
MOST_TERMS = 2**26  # nodes of a line times those of the steps: more take longer than other engines
FAR_TERMS = 2**25  # the same of lines farther from the poles
FEW_TERMS = 2**23  # up to which the first of `GOALS` is used
GROWTH = 1.2  # ratio of two heights that are tried
HEIGHTS = 48
BITS = 20  # binary digits of a spacing
FARTHEST = 3.0  # standard deviations of a line's farthest thresholds from its mean
NEGLIGIBLE = 45.0  # -log of the part of a value that a truncated law may lack
LOG_EXCESS = 0.5  # log of a proven K over the expected one for which a side still serves
NEAR = 3.0  # distances of the table's nearest tilt within which a side is searched for again,
NEAREST = 1e-3  # down to this part of that distance,
BETWEEN = 31  # at so many tilts
SHRINK = 0.85  # factor by which a side without a good bound moves towards the line,
MOST_MOVES = 9  # at most so often


class Remainders(NamedTuple):
    """Logarithms of the aliases and of the truncation that are aimed at, relative to e^K."""

    alias: float
    beyond: float


# for eleven digits, and for bounds of relative width 1e-9
GOALS = (Remainders(-38.0, -33.0), Remainders(-33.0, -28.0))


class LineGrid(NamedTuple):
    """Spacing h and number of nodes, and the tilts below and above for the alias bounds."""

    spacing: float
    number: int
    below: float
    above: float


@kept(64)
def terms_of_lines(kinds: Kinds) -> float:
    """Return the larger number of terms of the lines next to both poles; infinite without those."""
    try:
        return _most_terms(kinds)
    except AccuracyError:  # a density that is not analytic, or too inexact
        return math.inf


def _most_terms(kinds: Kinds) -> float:
    if not all(_log_at_ends(kinds, pole) <= LOG_SURE for pole in (0.0, 1.0)):
        return math.inf
    choice = choice_of(kinds)
    below = int(np.searchsorted(choice.line, 0.0)) - 1
    above = int(np.searchsorted(choice.line, 1.0))
    if below < 0 or above >= choice.line.size:
        return math.inf
    most = 0.0
    for i in (below, above):
        grid = _grid_at(kinds, i, _log_lost(choice, i)) or _grid_at(kinds, i, NOTHING_LOST)
        if grid is None:
            return math.inf
        most = max(most, _terms(kinds, grid))
    return most


def _terms(kinds: Kinds, grid: LineGrid) -> float:
    """Estimated number of terms: nodes of the line times nodes of all kinds of steps."""
    last = grid.number * grid.spacing
    return float(grid.number * sum(shape.expected_nodes(last) for shape, _ in kinds))


def _log_at_ends(kinds: Kinds, tilt: float) -> float:
    """Logarithm of the tilted mass on atoms of all steps at once; estimated."""
    steps = sum(number for _, number in kinds)
    return math.fsum(
        number * shape.log_at_ends(At(tilt, cumulants_at(shape, tilt)[0], steps))
        for shape, number in kinds
    )


@kept(256)
def line_at(kinds: Kinds, index: int) -> LossLine | None:
    """Return the line ``index`` of `choice_of`; None where it would take too many nodes.

    Steps are truncated where that costs e^-`NEGLIGIBLE` of the values, or else not at all.
    """
    lost = _log_lost(choice_of(kinds), index)
    found = _line_of(kinds, index, lost)
    return _line_of(kinds, index, NOTHING_LOST) if found is None else found


def _line_of(kinds: Kinds, index: int, lost: float) -> LossLine | None:
    """The line of steps truncated by at most e^``lost``; None where it takes too many nodes."""
    grid = _grid_at(kinds, index, lost)
    if grid is None:
        return None
    tilt, steps = float(choice_of(kinds).line[index]), []
    all_steps = sum(number for _, number in kinds)
    highest, enough = 1.001 * grid.number * grid.spacing, LEFT / all_steps
    for shape, number in kinds:
        at = At(tilt, cumulants_at(shape, tilt)[0], all_steps, lost)
        step = shape.tilted(at, highest, enough, grid.spacing)
        if step is None:
            return None
        steps.append((step, number))
    below, above = (
        Side(x, float(sum(n * step.bound_at(x) for step, n in steps)))
        for x in (grid.below, grid.above)
    )
    line = LossLine(steps, tilt, grid.spacing, grid.number, (below, above))
    return line if line.is_known else None


def _log_lost(choice: Choice, index: int) -> float:
    """Logarithm of a probability that is negligible beside all values that a line serves."""
    tilt, log = float(choice.line[index]), float(choice.line_log[index])
    middle, spread = _place(choice, tilt)
    root = float(np.sqrt(2.0 * max(tilt * middle - log, 0.0))) + FARTHEST
    of_b = min(middle - FARTHEST * spread, 0.0)  # B's masses are e^loss of A's
    return -0.5 * root * root + of_b - NEGLIGIBLE


@kept(256)
def _grid_at(kinds: Kinds, index: int, lost: float) -> LineGrid | None:
    """The nodes of a line, for the first of `GOALS` that they are few enough for."""
    choice = choice_of(kinds)
    if not _log_at_ends(kinds, float(choice.line[index])) <= LOG_AT_ENDS:
        return None
    # beyond the lines next to the poles, the next one nearer serves as well
    beside = np.abs(index + 0.5 - np.searchsorted(choice.line, (0.0, 1.0)))
    largest = MOST_TERMS if beside.min() < 1.0 else FAR_TERMS
    for goal, most in zip(GOALS, (FEW_TERMS, largest), strict=True):
        grid = _grid(kinds, choice, index, goal, lost)
        if grid is not None and _terms(kinds, grid) <= most:
            return grid
    return None


def _grid(
    kinds: Kinds, choice: Choice, index: int, goal: Remainders, lost: float
) -> LineGrid | None:
    """The nodes of a line for a goal; None where the transform does not fall far enough."""
    tilt = float(choice.line[index])
    sides = _sides(kinds, choice, index, goal.alias, lost)
    if sides is None:
        return None
    highest = _highest(kinds, tilt, goal.beyond, lost)
    if highest is None:
        return None
    spacing = _short(2.0 * np.pi / max(side.period for side in sides))
    return LineGrid(spacing, int(highest / spacing) + 1, sides[0].tilt, sides[1].tilt)


def _short(x: float) -> float:
    """``x`` rounded down to `BITS` binary digits, so that its multiples are exact."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2.0**BITS), exponent - BITS)


def _place(choice: Choice, tilt: float) -> tuple[float, float]:
    """Mean and standard deviation of the tilted sum."""
    middle = float(np.interp(tilt, choice.tilt, choice.loss))
    return middle, float(np.sqrt(np.interp(tilt, choice.tilt, choice.variance)))


def _window(choice: Choice, index: int) -> tuple[float, float]:
    """The thresholds that a line is expected to serve."""
    middle, spread = _place(choice, float(choice.line[index]))
    first = choice.limit[index - 1] if index else middle - 2.0 * spread
    last = choice.limit[index] if index < choice.limit.size else middle + 2.0 * spread
    return float(first) - 0.5 * spread, float(last) + 0.5 * spread


class AliasSide(NamedTuple):
    """A tilt beside a line, and the least period 2π/h with which it bounds aliases as wanted."""

    tilt: float
    period: float


def _sides(
    kinds: Kinds, choice: Choice, index: int, alias: float, lost: float
) -> tuple[AliasSide, AliasSide] | None:
    """The tilts below and above a line with the least periods; None where no bound is good."""
    tilt, total = float(choice.line[index]), float(choice.line_log[index])
    low, high = _window(choice, index)
    found: list[AliasSide] = []
    for sign, c in ((-1.0, high), (1.0, low)):
        far = sign * (choice.tilt - tilt) > 1e-9 * (1.0 + abs(tilt))
        if not far.any():
            found.append(AliasSide(tilt + sign, 0.0))
            continue
        places, logs = choice.tilt[far], choice.log_mean[far]
        lengths = _periods(sign * (places - tilt), logs - total, sign * c, alias)
        best = int(np.argmin(lengths))
        nearest = float(np.abs(places - tilt).min())
        if abs(places[best] - tilt) < NEAR * nearest:
            # with rare large losses K grows steeply and the best tilt may be nearer still
            places = tilt + sign * np.geomspace(nearest, NEAREST * nearest, BETWEEN)
            logs = cumulants(kinds, places)[0]
            lengths = _periods(sign * (places - tilt), logs - total, sign * c, alias)
            best = int(np.argmin(lengths))
        side, expected = AliasSide(float(places[best]), float(lengths[best])), float(logs[best])
        for _ in range(MOST_MOVES):
            bound = sum(n * shape.log_above(tilt, lost, side.tilt) for shape, n in kinds)
            away = abs(side.tilt - tilt)
            if bound <= expected + LOG_EXCESS:
                break
            period = (bound - total - sign * away * c - alias) / away
            side = AliasSide(side.tilt, period)
            nearer = tilt + SHRINK * (side.tilt - tilt)
            expected = float(np.interp(nearer, choice.tilt, choice.log_mean))
            apart = abs(nearer - tilt)
            side = AliasSide(nearer, (expected - total - sign * apart * c - alias) / apart)
        else:
            return None
        found.append(side)
    return found[0], found[1]


def _highest(kinds: Kinds, tilt: float, beyond: float, lost: float) -> float | None:
    """The height from which on the truncation is at most e^``beyond``; None without one."""
    known = [cumulants_at(shape, tilt) for shape, _ in kinds]
    variance = sum(number * each[2] for (_, number), each in zip(kinds, known, strict=True))
    frequency = np.sqrt(-2.0 * beyond / variance) * fn.power(GROWTH, np.arange(HEIGHTS))
    steps = sum(number for _, number in kinds)

    places = [At(tilt, log_mean, steps, lost) for log_mean, _, _ in known]
    falls = [
        None if shape.is_costly else shape.fall(place, spread, frequency)
        for (shape, _), place, (_, _, spread) in zip(kinds, places, known, strict=True)
    ]

    def is_small(at: int) -> bool:
        log, tails, whole = 0.0, 0.0, math.inf
        for (shape, number), place, (_, _, spread), fall in zip(
            kinds, places, known, falls, strict=True
        ):
            i = at
            if fall is None:
                fall, i = shape.fall(place, spread, frequency[at : at + 1]), 0
            modulus = max(float(fall.modulus[i]), 1e-300)
            log += number * fn.log(modulus)
            tail = float(fall.tail[i]) / modulus
            tails += number * tail
            if shape.log_at_ends(place) == -math.inf:
                whole = min(whole, tail)
        return log + fn.log(max(min(tails, whole), 1e-300)) <= beyond

    # bounds fall with the frequency: bisection, after steps of growing length
    low, high, reach = -1, 0, 1
    while not is_small(high):
        if high == HEIGHTS - 1:
            return None
        low, high, reach = high, min(high + reach, HEIGHTS - 1), 2 * reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_small(middle) else (middle, high)
    return float(frequency[high])


def _periods(distance: FloatArray, log: FloatArray, moved: float, alias: float) -> FloatArray:
    """Periods L with e^(``log`` - ``distance`` (``moved`` + L)) = e^``alias``, K relative."""
    found = (log - distance * moved - alias) / distance
    return np.where(np.isnan(found), np.inf, found)
