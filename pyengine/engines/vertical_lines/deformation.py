"""Deformed lines for few Laplace steps: which compositions they serve, and where they turn.

All is estimated: a poor choice widens bounds, no more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.engines.vertical_lines.choice import Choice, choice_of
from pyengine.engines.vertical_lines.corners import corners_of
from pyengine.engines.vertical_lines.deformed import DeformedLine, places_error
from pyengine.engines.vertical_lines.ends import LEAST_HEIGHT
from pyengine.engines.vertical_lines.low_rule import Window, low_rule
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.shapes import Kinds, cumulants_at
from pyengine.engines.vertical_lines.tilted import laplace_step
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["DeformedOrder", "is_deformable"]

FloatArray = npt.NDArray[np.float64]

LEFT = 2e-16  # relative quadrature error that the nodes of all steps together may have
LEAST_STEPS = 2
MOST_PLACES = 3000  # corners of the composition: each takes a sum of its own
MOST_AT_TURN = 6.0  # log of the sum of all terms' moduli at the turn: e^6 cancels 2.6 digits
TURNS = 12.0  # least height of the turn, in 1/lengths of the longest step
GROWTH = 1.5  # ratio of two heights that are tried
STEEPEST = 300.0  # tilt times the longest length: steeper ones would take too many nodes
NEAREST = 0.5  # standard deviations between a line and a pole
SLACK = 1.0  # log of the scale of a line over that of the best one
TRIES = 40  # heights
MOST_TURNS = 2e4  # height of the turn times the longest length
ROOM = 0.1  # half-width of the bracket of an expected threshold, in standard deviations
PLACE_ERROR = 4.0 * UNIT  # relative, of atoms and of the ends of the support
FEW_PLACES = 10  # corners for which a line is as quick as a Chernoff bound


def is_deformable(kinds: Kinds) -> bool:
    """Return whether a composition has deformed lines, be they the quickest way or not."""
    if not all(shape.has_corners for shape, _ in kinds):
        return False
    places = math.prod(shape.pieces * number + 1 for shape, number in kinds)
    return places <= MOST_PLACES and sum(number for _, number in kinds) >= LEAST_STEPS


@kept(64)
def deformed_choice(kinds: Kinds) -> Choice:
    """Return few lines such that at every threshold one has nearly the smallest scale.

    The scale of a line is e^(K(λ) - λ c)/|λ (λ - 1)|; at most e^`SLACK` times the least is near.
    """
    choice = choice_of(kinds)
    tilt, distance = choice.tilt, np.minimum(np.abs(choice.tilt), np.abs(choice.tilt - 1.0))
    longest = max(float(shape.length) for shape, _ in kinds)
    is_far = distance * np.sqrt(choice.variance) >= NEAREST
    able = np.flatnonzero(is_far & (np.abs(tilt) * longest <= STEEPEST))
    if not able.size:
        able = np.array([0, tilt.size - 1])
    c = np.unique(choice.loss)
    cost = choice.log_mean[able] - c[:, None] * tilt[able]
    cost -= fn.log(np.abs(tilt[able] * (tilt[able] - 1.0)))
    covered = cost <= cost.min(axis=1)[:, None] + SLACK
    chosen, at = [], 0
    while at < c.size:
        # greedy: of the lines that serve this threshold, the one that serves longest
        known = np.flatnonzero(covered[at])
        rest = ~covered[at:, known]
        reach = np.where(rest.any(axis=0), np.argmax(rest, axis=0), c.size - at)
        best = int(np.argmax(reach))
        chosen.append(int(able[known[best]]))
        at += int(reach[best])
    line = np.unique(tilt[chosen])
    log = np.interp(line, tilt, choice.log_mean)
    limit = np.maximum.accumulate(np.diff(log) / np.diff(line))
    return replace(choice, line=line, line_log=log, limit=limit)


@kept(256)
def _height(kinds: Kinds, index: int) -> float | None:
    """Height of a line's turn: the least at which terms hardly cancel; None where too high."""
    tilt = float(deformed_choice(kinds).line[index])
    longest = max(float(shape.length) for shape, _ in kinds)
    height = max(LEAST_HEIGHT, TURNS / longest, 2.0 * (abs(tilt - 0.5) + 1.5))
    logs = [cumulants_at(shape, tilt)[0] for shape, _ in kinds]
    for _ in range(TRIES):
        if height * longest > MOST_TURNS:
            return None
        most = 0.0
        for (shape, number), log in zip(kinds, logs, strict=True):
            corners = corners_of(shape)
            places = np.linspace(float(shape.ends[0]), float(shape.ends[1]), corners.number)
            parts = corners.atoms(*map(float, shape.atoms)) + corners.bounds(height)
            most += number * fn.log(float(fn.exp(tilt * places - log) @ parts))
        if most <= MOST_AT_TURN:
            return height
        height *= GROWTH
    return None


@kept(64)
def deformed_at(kinds: Kinds, index: int) -> DeformedLine | None:
    """Return the line ``index`` of `deformed_choice`; None where it would take too many nodes."""
    height, choice = _height(kinds, index), deformed_choice(kinds)
    if height is None:
        return None
    tilt, steps = float(choice.line[index]), []
    rule = low_rule(kinds, tilt, height, _window(kinds, choice, index))
    if rule is None:
        return None
    enough = LEFT / sum(number for _, number in kinds)
    for shape, number in kinds:
        mean = cumulants_at(shape, tilt)[0]
        step = laplace_step(shape, tilt, mean, 1.001 * height, enough)
        if step is None:
            return None
        steps.append((step, number))
    return DeformedLine(steps, tilt, height, rule)


def _window(kinds: Kinds, choice: Choice, index: int) -> Window:
    """The thresholds that a line is expected to serve."""
    low, high = (float(sum(number * shape.ends[i] for shape, number in kinds)) for i in (0, 1))
    first = float(choice.limit[index - 1]) if index else low
    last = float(choice.limit[index]) if index < choice.limit.size else high
    spread = 0.5 * float(np.sqrt(np.interp(choice.line[index], choice.tilt, choice.variance)))
    return Window(max(first - spread, low), min(last + spread, high))


class DeformedOrder(LineOrder):
    """One order of the pair of a composition of few Laplace steps, by deformed lines."""

    room = ROOM
    is_deformed = True

    @property
    def places(self) -> float:
        """The number of corners of the sum."""
        return float(self.jumps.size)

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Without Chernoff bounds where lines are as quick."""
        return 1 if self.places <= FEW_PLACES else 2

    @cached_property
    def choice(self) -> Choice:
        """The lines that serve."""
        return deformed_choice(self.kinds)

    def line_at(self, index: int) -> DeformedLine | None:
        """Return the line ``index`` of the choice; None where it takes too many nodes."""
        return deformed_at(self.kinds, index)

    @property
    def has_atoms(self) -> bool:
        """Atoms of all steps at once have much mass where steps are few."""
        return True

    @property
    def shifts(self) -> tuple[float, float, float]:
        """As of `LineOrder`: atoms and ends of the support are rounded."""
        return PLACE_ERROR, 0.125 * max(map(abs, self.ends)), self._off_places

    @cached_property
    def _off_places(self) -> float:
        """Bound of the errors of the lines' places of atoms."""
        return places_error(self.kinds)

    @cached_property
    def jumps(self) -> FloatArray:
        """Losses of the sum's atoms, rising."""
        places = np.zeros(1)
        for shape, number in self.kinds:
            first, last = (float(Decimal(number) * end) for end in shape.ends)
            places = (places[:, None] + np.linspace(first, last, number + 1)).ravel()
        places = np.unique(places)
        return np.asarray(-places[::-1] if self.exchanged else places)
