"""Lines with as few nodes as serve: how far apart they stand and how far up they go.

All is chosen by estimates; the line itself bounds what that leaves open.
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

LOG_AT_ENDS = -25.0  # of the mass at the ends of all steps
LOG_SURE = -33.0  # the same next to the poles, so that lines further out serve as well
LEFT = 2e-16  # what the rules of all steps may leave out
MOST_TERMS = 2**26  # of all nodes and steps: more take longer than other engines
FEW_TERMS = 2**23  # up to which all digits are asked for
GROWTH = 1.2
HEIGHTS = 48
BITS = 20  # of a spacing
ASIDE = 3.0  # large deviations of the values that a line serves from its own, at most
NEXT_TO_NOTHING = 45.0  # -log of a share of a value
FAR_ABOVE = 0.5  # of a bound above what was expected: aliases take e to this power
NEAR = 3.0  # times the least distance of the table's tilts from a line,
NEAREST = 1e-3  # parts of that distance at which others are tried
BETWEEN = 31  # so many
NEARER = 0.85  # of the way to a side, the next one that is tried,
MOST_MOVES = 9  # so often


class Remainders(NamedTuple):
    """Logarithms of what aliases may be and what lies beyond the nodes."""

    alias: float
    beyond: float


# for all digits, and for bounds of some 1e-9
GOALS = (Remainders(-38.0, -33.0), Remainders(-33.0, -28.0))


class LineGrid(NamedTuple):
    """Where the nodes of a line stand, and the tilts below and above for the bounds on aliases."""

    spacing: float
    number: int
    below: float
    above: float


@kept(64)
def terms_of_lines(kinds: Kinds) -> float:
    """Return how many terms the lines next to both poles have at most; infinite without those."""
    try:
        return _most_terms(kinds)
    except AccuracyError:  # not analytic, or known too badly
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
    """About how many terms a line has, of all nodes and steps."""
    last = grid.number * grid.spacing
    return float(grid.number * sum(shape.expected_nodes(last) for shape, _ in kinds))


def _log_at_ends(kinds: Kinds, tilt: float) -> float:
    """Logarithm of the tilted mass at the ends of all steps."""
    steps = sum(number for _, number in kinds)
    return math.fsum(
        number * shape.log_at_ends(At(tilt, cumulants_at(shape, tilt)[0], steps))
        for shape, number in kinds
    )


@kept(256)
def line_at(kinds: Kinds, index: int) -> LossLine | None:
    """Return a line of the composition's choice; None where it would take too many nodes.

    Laws end where next to nothing of the values is beyond, or farther out if nodes need that.
    """
    lost = _log_lost(choice_of(kinds), index)
    found = _line_of(kinds, index, lost)
    return _line_of(kinds, index, NOTHING_LOST) if found is None else found


def _line_of(kinds: Kinds, index: int, lost: float) -> LossLine | None:
    """A line of laws that may lack so little."""
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
    """Logarithm of a probability that is next to nothing of all values that a line serves."""
    tilt, log = float(choice.line[index]), float(choice.line_log[index])
    middle, spread = _place(choice, tilt)
    root = float(np.sqrt(2.0 * max(tilt * middle - log, 0.0))) + ASIDE
    of_b = min(middle - ASIDE * spread, 0.0)  # of B what e^loss leaves
    return -0.5 * root * root + of_b - NEXT_TO_NOTHING


@kept(256)
def _grid_at(kinds: Kinds, index: int, lost: float) -> LineGrid | None:
    """The nodes of a line: for all digits where they are few."""
    choice = choice_of(kinds)
    if not _log_at_ends(kinds, float(choice.line[index])) <= LOG_AT_ENDS:
        return None
    for goal, most in zip(GOALS, (FEW_TERMS, MOST_TERMS), strict=True):
        grid = _grid(kinds, choice, index, goal, lost)
        if grid is not None and _terms(kinds, grid) <= most:
            return grid
    return None


def _grid(
    kinds: Kinds, choice: Choice, index: int, goal: Remainders, lost: float
) -> LineGrid | None:
    """The nodes of a line; None where the transform never is small enough."""
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
    """A number of few digits not above another one, so that its multiples are exact."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2.0**BITS), exponent - BITS)


def _place(choice: Choice, tilt: float) -> tuple[float, float]:
    """Mean and deviation of the tilted sum."""
    middle = float(np.interp(tilt, choice.tilt, choice.loss))
    return middle, float(np.sqrt(np.interp(tilt, choice.tilt, choice.variance)))


def _window(choice: Choice, index: int) -> tuple[float, float]:
    """Between which losses a line is expected to serve."""
    middle, spread = _place(choice, float(choice.line[index]))
    first = choice.limit[index - 1] if index else middle - 2.0 * spread
    last = choice.limit[index] if index < choice.limit.size else middle + 2.0 * spread
    return float(first) - 0.5 * spread, float(last) + 0.5 * spread


class AliasSide(NamedTuple):
    """A tilt beside a line, and the period from which on it shows that aliases are small."""

    tilt: float
    period: float


def _sides(
    kinds: Kinds, choice: Choice, index: int, alias: float, lost: float
) -> tuple[AliasSide, AliasSide] | None:
    """The tilts below and above a line with the least periods; None where bounds know none."""
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
            # rare large losses let the means grow steeply: the best tilt may be nearer still
            places = tilt + sign * np.geomspace(nearest, NEAREST * nearest, BETWEEN)
            logs = cumulants(kinds, places)[0]
            lengths = _periods(sign * (places - tilt), logs - total, sign * c, alias)
            best = int(np.argmin(lengths))
        side, expected = AliasSide(float(places[best]), float(lengths[best])), float(logs[best])
        for _ in range(MOST_MOVES):
            bound = sum(n * shape.log_above(tilt, lost, side.tilt) for shape, n in kinds)
            away = abs(side.tilt - tilt)
            if bound <= expected + FAR_ABOVE:
                break
            period = (bound - total - sign * away * c - alias) / away
            side = AliasSide(side.tilt, period)
            nearer = tilt + NEARER * (side.tilt - tilt)
            expected = float(np.interp(nearer, choice.tilt, choice.log_mean))
            apart = abs(nearer - tilt)
            side = AliasSide(nearer, (expected - total - sign * apart * c - alias) / apart)
        else:
            return None
        found.append(side)
    return found[0], found[1]


def _highest(kinds: Kinds, tilt: float, beyond: float, lost: float) -> float | None:
    """The frequency from which on the transform is small; None where it never is."""
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

    # bounds fall: the first place that is small lies between one that is not and one that is
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
    """The least periods whose aliases bounds at distances from a line show to be small."""
    found = (log - distance * moved - alias) / distance
    return np.where(np.isnan(found), np.inf, found)
