"""Lines with as few nodes as serve: how far apart they stand and how far up they go.

All is chosen by estimates; the line itself bounds what that leaves open.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.laplace_lines.choice import Choice, Kinds, choice_of, cumulants
from pyengine.engines.laplace_lines.decay import decay_of
from pyengine.engines.laplace_lines.line import LossLine, Side
from pyengine.engines.laplace_lines.tilted import tilted_step

__all__ = ["is_served", "line_at"]

FloatArray = npt.NDArray[np.float64]

LOG_AT_ENDS = -31.0  # of the mass at the ends of all steps
LOG_SURE = -45.0  # the same next to the poles, so that lines further out serve as well
LOG_SMALL = -38.0  # of aliases
LOG_BEYOND = -33.0  # of what lies beyond the nodes
LEFT = 2e-16  # what the rules of all steps may leave out
MOST_NODES = 2**12
MOST_TERMS = 2**18  # of all nodes and steps: more take longer than other engines
GROWTH = 1.2
HEIGHTS = 48


@kept(64)
def is_served(kinds: Kinds) -> bool:
    """Return whether there are lines next to both poles; decided before any question."""
    if _log_at_ends(kinds, np.array([0.0, 1.0])).max() > LOG_SURE:
        return False
    choice = choice_of(kinds)
    below = int(np.searchsorted(choice.line, 0.0)) - 1
    above = int(np.searchsorted(choice.line, 1.0))
    if below < 0 or above >= choice.line.size:
        return False
    return all(line_at(kinds, i) is not None for i in (below, above))


def _log_at_ends(kinds: Kinds, tilt: FloatArray) -> FloatArray:
    """Logarithms of the tilted masses at the ends of all steps."""
    total = np.zeros(tilt.size)
    for shape, number in kinds:
        ends = np.array([float(end) for end in shape.ends])
        mean = cumulants(((shape, 1),), tilt)[0]
        mass = np.exp(tilt[:, None] * ends - mean[:, None]) @ shape.atoms.astype(np.float64)
        total += number * np.log(np.minimum(mass, 1.0))
    return total


@kept(256)
def line_at(kinds: Kinds, index: int) -> LossLine | None:
    """Return a line of the composition's choice; None where it would take too many nodes."""
    choice = choice_of(kinds)
    tilt = float(choice.line[index])
    if _log_at_ends(kinds, np.array([tilt]))[0] > LOG_AT_ENDS:
        return None
    window, total = _window(choice, index), float(choice.line_log[index])
    period, below, above = _period(choice, tilt, total, window)
    highest = _highest(kinds, tilt)
    if highest is None:
        return None
    spacing = float(np.float32(2.0 * np.pi / period))
    count = int(highest / spacing) + 1
    if count > MOST_NODES:
        return None
    steps, terms = [], 0
    all_steps = sum(number for _, number in kinds)
    for shape, number in kinds:
        mean = float(cumulants(((shape, 1),), np.array([tilt]))[0][0])
        step = tilted_step(shape, tilt, mean, 1.001 * count * spacing, LEFT / all_steps)
        if step is None:
            return None
        terms += step.nodes.loss.size
        steps.append((step, number))
    if terms * count > MOST_TERMS:
        return None
    sides = [Side(x, sum(n * step.bound_at(x) for step, n in steps) * 1.0) for x in (below, above)]
    return LossLine(steps, tilt, spacing, count, (sides[0], sides[1]))


def _window(choice: Choice, index: int) -> tuple[float, float]:
    """Between which losses a line is expected to serve."""
    tilt = choice.line[index]
    middle = float(np.interp(tilt, choice.tilt, choice.loss))
    spread = float(np.sqrt(np.interp(tilt, choice.tilt, choice.variance)))
    first = choice.limit[index - 1] if index else middle - 2.0 * spread
    last = choice.limit[index] if index < choice.limit.size else middle + 2.0 * spread
    return float(first) - 0.5 * spread, float(last) + 0.5 * spread


def _period(
    choice: Choice, tilt: float, total: float, window: tuple[float, float]
) -> tuple[float, float, float]:
    """The least period with small aliases, and the tilts below and above that show so."""
    low, high = window
    needed = [
        (-LOG_SMALL - total + (tilt - pole) * c) / abs(tilt - pole)
        for pole in (0.0, 1.0)
        for c in window
    ]
    others, means = choice.tilt, choice.log_mean
    sides = []
    for sign, c in ((-1.0, high), (1.0, low)):
        apart = sign * (others - tilt)
        far = apart > 1e-9 * (1.0 + abs(tilt))
        distance = apart[far]
        length = (-LOG_SMALL + means[far] - total - sign * distance * c) / distance
        best = int(np.argmin(length)) if length.size else -1
        if best < 0:
            sides.append(tilt + sign)
            continue
        needed.append(float(length[best]))
        sides.append(float(others[far][best]))
    return max(needed), sides[0], sides[1]


def _highest(kinds: Kinds, tilt: float) -> float | None:
    """The frequency from which on the transform is small; None where it never is."""
    at = np.array([tilt])
    variance = float(cumulants(kinds, at)[2][0])
    frequency = np.sqrt(-2.0 * LOG_BEYOND / variance) * GROWTH ** np.arange(HEIGHTS)
    log, slope = np.zeros((2, HEIGHTS))
    for shape, number in kinds:
        mean, _, spread = (float(x[0]) for x in cumulants(((shape, 1),), at))
        decay, length = decay_of(shape, tilt, mean), float(shape.length)
        beyond = decay.largest(np.maximum(frequency, np.pi / length))
        turn = np.minimum(frequency * length, np.pi)
        square = 1.0 - 2.0 * spread * (1.0 - np.cos(turn)) / (length * length)
        near = np.where(frequency * length < np.pi, np.sqrt(np.maximum(square, 0.0)), 0.0)
        modulus = np.maximum(beyond, near)
        log += number * np.log(modulus)
        slope += number * decay.variation / modulus
    small = np.flatnonzero(log + np.log(slope / frequency) <= LOG_BEYOND)
    return float(frequency[small[0]]) if small.size else None
