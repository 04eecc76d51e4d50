"""Inversion on a hyperbola: which contour and which nodes, decided in double precision.

Nothing here is proven and nothing here needs to be: `pyengine.reference.gaussian.hyperbola` bounds
every error that the choices leave.
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

MOST_TERMS = 8.0e6
APART = 3  # lines that get nodes: tables cost more than a few terms
ALL = range(-LINES + 1, LINES)


@dataclass(frozen=True)
class NodeLines:
    """How one phase's transform is computed.

    ``lines`` and ``strips`` are by node of the contour: the line of the integral and how far its
    strip reaches.  ``rules`` have by line the first node, how many there are to a doubling of the
    loss, and in all.  ``bits`` says how far terms are above their errors.
    """

    lines: list[int]
    strips: list[int]
    rules: dict[int, tuple[float, int, int]]
    bits: float


@dataclass(frozen=True)
class HyperbolaPlan:
    """Discretisation for one threshold of the sum of Y, with sketches and columns of the phases."""

    curve: HyperbolaSide
    threshold: float
    sketches: list[IntegrandSizes]
    columns: list[NodeLines]

    @property
    def count(self) -> int:
        """How many nodes there are on the contour."""
        return len(self.columns[0].lines)

    @property
    def bits(self) -> int:
        """Working precision."""
        return int(max(column.bits for column in self.columns)) + 70


def make_bend(phases: tuple[EqualSteps, ...], threshold: float, depth: float) -> HyperbolaPlan:
    """Choose the discretisation; NotFeasibleError if a step has p = 1, or it takes too many nodes.

    ``threshold`` is that of the sum of Y, ``depth`` the logarithm of the relative precision aimed
    at.
    """
    if threshold <= 0 or any(phase.full_batch for phase in phases):
        raise NotFeasibleError("the loss has no lower end there")
    steps = sum(phase.steps for phase in phases)
    # One step beyond the threshold, or several steps below it.
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
    """Choose a line for every node of the contour, and the nodes on each line."""
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
