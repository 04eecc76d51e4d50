"""Choice of the contour and the nodes of an inversion on a hyperbola, in double precision.

Nothing here needs a proof: `pyengine.reference.gaussian.hyperbola` bounds every error of the
choices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pyengine.reference.cumulants import Array, away_from_poles, log_upper_normal
from pyengine.reference.gaussian.fewest_nodes import HyperbolaSide, best_curve, log_sizes
from pyengine.reference.gaussian.integrand_sizes import LINES, TURN, IntegrandSizes
from pyengine.reference.gaussian.steps import EqualSteps, cumulants_of, place_of
from pyengine.reference.inversion.line import NotFeasibleError

__all__ = ["HyperbolaPlan", "NodeLines", "make_bend"]

MOST_TERMS = 8.0e6  # of all sums, which limits the time
APART = 3  # only every third line gets nodes: a table of nodes costs more than longer sums
ALL = range(-LINES + 1, LINES)


@dataclass(frozen=True)
class NodeLines:
    """How the transform of one phase is computed at the nodes of the contour.

    ``lines`` and ``strips`` have, by node of the contour, the index of the line of integration and
    the half width of the strip around it, in lines.  ``rules`` have, by line, the first node in log
    r, the number of nodes to a doubling of r, and the number of nodes.  ``bits`` is the log2 of the
    largest term over its allowed error.
    """

    lines: list[int]
    strips: list[int]
    rules: dict[int, tuple[float, int, int]]
    bits: float


@dataclass(frozen=True)
class HyperbolaPlan:
    """Discretisation for one threshold of the sum of Y; sketches and columns are by phase."""

    curve: HyperbolaSide
    threshold: float
    sketches: list[IntegrandSizes]
    columns: list[NodeLines]

    @property
    def count(self) -> int:
        """Number of nodes on the contour."""
        return len(self.columns[0].lines)

    @property
    def bits(self) -> int:
        """Working precision in bits."""
        return int(max(column.bits for column in self.columns)) + 70


def make_bend(phases: tuple[EqualSteps, ...], threshold: float, depth: float) -> HyperbolaPlan:
    """Choose the discretisation; NotFeasibleError if a step has p = 1, or it takes too many nodes.

    ``threshold`` is that of the sum of Y, exp(-``depth``) the relative accuracy aimed at.
    """
    if threshold <= 0 or any(phase.full_batch for phase in phases):
        raise NotFeasibleError("the loss has no lower end there")
    steps = sum(phase.steps for phase in phases)
    # either one step alone exceeds the threshold, or all are below it and their sum exceeds it
    alone = min(place_of(phase, threshold) for phase in phases)
    cumulants = cumulants_of(phases, min(max(alone, 1.0), 1e3) + 0.5)
    saddle = cumulants.saddle(threshold)
    sd = math.sqrt(cumulants.mean_variance(saddle)[1])
    base = cumulants.value(saddle) - saddle * threshold
    size = base - math.log1p(abs(saddle) * sd)
    if saddle > 0:
        size = max(size, log_upper_normal(alone))
    goal = size - depth - math.log(steps) - 3
    sketches = [IntegrandSizes(phase, 20 - goal) for phase in phases]
    vertices = [away_from_poles(saddle, 1 / sd)] if sd > 0 else []
    if saddle > 0:
        free = cumulants_of(phases).saddle(threshold)
        vertices += [away_from_poles(x * free, 0.1 * x / threshold) for x in (0.1, 0.5, 0.999)]
        vertices += [-x / threshold for x in (1.0, 4.0, 16.0)]
    curve = best_curve(sketches, threshold, vertices, goal)
    u: Array = curve.spacing * np.arange(math.ceil(curve.reach / curve.spacing) + 1.0)
    places = curve.places(u)
    tables = [sketch.table(places, ALL) for sketch in sketches]
    logs = log_sizes(sketches, [table[LINES - 1 :] for table in tables]) + math.log(curve.spacing)
    logs += curve.log_kernel(u, threshold)
    allowed = goal - math.log(2 * len(u) * len(phases)) - logs  # relative, of M^n
    columns = [
        _lines(sketch, table, places, np.minimum(allowed, -1.0) - math.log(sketch.steps))
        for sketch, table in zip(sketches, tables, strict=True)
    ]
    terms = sum(column.rules[line][2] for column in columns for line in column.lines)
    if terms > MOST_TERMS:
        raise NotFeasibleError(f"{terms} terms would be needed")
    return HyperbolaPlan(curve, threshold, sketches, columns)


def _lines(sketch: IntegrandSizes, table: Array, places: Array, error: Array) -> NodeLines:
    """Choose a line for every node of the contour, and the nodes on each line.

    ``table`` has log B by line and node; ``error`` the allowed relative errors of M, as logs.
    """
    centre, count = LINES - 1, len(places)
    error = error + table[centre:].min(axis=0)
    best, line, strip = np.zeros(count), np.zeros(count, dtype=int), np.ones(count, dtype=int)
    for wide in range(1, 11):
        sides = (table[centre + k * wide :][: LINES - wide] for k in (-1, 1))
        size = np.maximum(*sides)
        spacing = 2 * math.pi * wide * TURN / (np.maximum(size - error, 1.0) + 1)
        top = APART * spacing[::APART].argmax(axis=0)
        value = spacing[top, np.arange(count)]
        line, strip = np.where(value > best, (top, np.full(count, wide)), (line, strip))
        best = np.maximum(best, value)
    rules = {}
    for index in sorted(set(line.tolist())):
        chosen, angle = line == index, index * TURN
        s = (places[chosen] * np.exp(1j * angle)).real
        deep = max(float(-error[chosen].min()), 0.0) + 6
        halves = math.ceil(math.log(2) / float(best[chosen].min()))
        start, stop = sketch.start(angle, deep), sketch.stop(angle, float(s.max()), deep)
        rules[index] = start, halves, math.ceil((stop - start) * halves / math.log(2)) + 1
    bits = (table[centre + line, np.arange(count)] - error).max() / math.log(2)
    return NodeLines(line.tolist(), strip.tolist(), rules, float(bits))
