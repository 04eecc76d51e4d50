"""Lines with as few nodes as serve: how far apart they stand and how far up they go.

All is chosen by estimates; the line itself bounds what that leaves open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.vertical_lines.choice import Choice, Kinds, choice_of, cumulants_at
from pyengine.engines.vertical_lines.fall import fall_of, log_at_ends
from pyengine.engines.vertical_lines.line import LossLine, Side
from pyengine.engines.vertical_lines.nodes import expected_nodes
from pyengine.engines.vertical_lines.tilted import tilted_step

__all__ = ["is_served", "line_at"]

FloatArray = npt.NDArray[np.float64]

LOG_AT_ENDS = -25.0  # of the mass at the ends of all steps
LOG_SURE = -33.0  # the same next to the poles, so that lines further out serve as well
LEFT = 2e-16  # what the rules of all steps may leave out
MOST_TERMS = 2**23  # of all nodes and steps: more take longer than other engines
FEW_TERMS = 2**20  # up to which all digits are asked for
GROWTH = 1.2
HEIGHTS = 48


class Remainders(NamedTuple):
    """Logarithms of what aliases may be and what lies beyond the nodes."""

    alias: float
    beyond: float


# for all digits, and for bounds of some 1e-9
GOALS = (Remainders(-38.0, -33.0), Remainders(-28.0, -25.0))


class LineGrid(NamedTuple):
    """Where the nodes of a line stand, and the tilts below and above for the bounds on aliases."""

    spacing: float
    number: int
    below: float
    above: float


@kept(64)
def is_served(kinds: Kinds) -> bool:
    """Return whether there are lines next to both poles; decided before any question."""
    if not all(_log_at_ends(kinds, pole) <= LOG_SURE for pole in (0.0, 1.0)):
        return False
    choice = choice_of(kinds)
    below = int(np.searchsorted(choice.line, 0.0)) - 1
    above = int(np.searchsorted(choice.line, 1.0))
    if below < 0 or above >= choice.line.size:
        return False
    return all(_grid_at(kinds, i) is not None for i in (below, above))


def _log_at_ends(kinds: Kinds, tilt: float) -> float:
    """Logarithm of the tilted mass at the ends of all steps."""
    steps = sum(number for _, number in kinds)
    return sum(
        number * log_at_ends(shape, tilt, cumulants_at(shape, tilt)[0], steps)
        for shape, number in kinds
    )


@kept(256)
def line_at(kinds: Kinds, index: int) -> LossLine | None:
    """Return a line of the composition's choice; None where it would take too many nodes."""
    grid = _grid_at(kinds, index)
    if grid is None:
        return None
    tilt, steps = float(choice_of(kinds).line[index]), []
    all_steps = sum(number for _, number in kinds)
    for shape, number in kinds:
        mean = cumulants_at(shape, tilt)[0]
        highest = 1.001 * grid.number * grid.spacing
        step = tilted_step(shape, tilt, mean, highest, LEFT / all_steps, all_steps)
        if step is None:
            return None
        steps.append((step, number))
    below, above = (
        Side(x, float(sum(n * step.bound_at(x) for step, n in steps)))
        for x in (grid.below, grid.above)
    )
    return LossLine(steps, tilt, grid.spacing, grid.number, (below, above))


@kept(256)
def _grid_at(kinds: Kinds, index: int) -> LineGrid | None:
    """The nodes of a line: for all digits where they are few."""
    choice = choice_of(kinds)
    if not _log_at_ends(kinds, float(choice.line[index])) <= LOG_AT_ENDS:
        return None
    for goal, most in zip(GOALS, (FEW_TERMS, MOST_TERMS), strict=True):
        grid = _grid(kinds, choice, index, goal)
        if grid is not None:
            last = grid.number * grid.spacing
            if grid.number * sum(expected_nodes(shape, last) for shape, _ in kinds) <= most:
                return grid
    return None


def _grid(kinds: Kinds, choice: Choice, index: int, goal: Remainders) -> LineGrid | None:
    """The nodes of a line; None where the transform never is small enough."""
    tilt, total = float(choice.line[index]), float(choice.line_log[index])
    period, below, above = _period(choice, tilt, total, _window(choice, index), goal.alias)
    highest = _highest(kinds, tilt, goal.beyond)
    if highest is None:
        return None
    spacing = float(np.float32(2.0 * np.pi / period))
    return LineGrid(spacing, int(highest / spacing) + 1, below, above)


def _window(choice: Choice, index: int) -> tuple[float, float]:
    """Between which losses a line is expected to serve."""
    tilt = choice.line[index]
    middle = float(np.interp(tilt, choice.tilt, choice.loss))
    spread = float(np.sqrt(np.interp(tilt, choice.tilt, choice.variance)))
    first = choice.limit[index - 1] if index else middle - 2.0 * spread
    last = choice.limit[index] if index < choice.limit.size else middle + 2.0 * spread
    return float(first) - 0.5 * spread, float(last) + 0.5 * spread


def _period(
    choice: Choice, tilt: float, total: float, window: tuple[float, float], alias: float
) -> tuple[float, float, float]:
    """The least period with small aliases, and the tilts below and above that show so."""
    low, high = window
    others, means, periods, sides = choice.tilt, choice.log_mean, [], []
    for sign, c in ((-1.0, high), (1.0, low)):
        far = sign * (others - tilt) > 1e-9 * (1.0 + abs(tilt))
        if not far.any():
            sides.append(tilt + sign)
            continue
        distance = sign * (others[far] - tilt)
        length = (means[far] - total - sign * distance * c - alias) / distance
        best = int(np.argmin(length))
        periods.append(float(length[best]))
        sides.append(float(others[far][best]))
    return max(periods), sides[0], sides[1]


def _highest(kinds: Kinds, tilt: float, beyond: float) -> float | None:
    """The frequency from which on the transform is small; None where it never is."""
    known = [cumulants_at(shape, tilt) for shape, _ in kinds]
    variance = sum(number * each[2] for (_, number), each in zip(kinds, known, strict=True))
    frequency = np.sqrt(-2.0 * beyond / variance) * GROWTH ** np.arange(HEIGHTS)
    log, tails = np.zeros((2, HEIGHTS))
    steps = sum(number for _, number in kinds)
    for (shape, number), (mean, _, spread) in zip(kinds, known, strict=True):
        fall = fall_of(shape, tilt, mean, spread, frequency, steps)
        log += number * np.log(fall.modulus)
        tails += number * fall.tail / fall.modulus
    small = np.flatnonzero(log + np.log(tails) <= beyond)
    return float(frequency[small[0]]) if small.size else None
