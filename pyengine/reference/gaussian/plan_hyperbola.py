"""Inversion on a hyperbola: which contour and which nodes, decided in double precision.

Nothing here is proven and nothing here needs to be: `pyengine.reference.gaussian.hyperbola` bounds
every error that the choices leave.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

from pyengine.reference.cumulants import (
    Array,
    Cumulants,
    away_from_poles,
    log_upper_normal,
    place_of,
)
from pyengine.reference.gaussian.fewest_nodes import HyperbolaSide, best_curve, log_sizes
from pyengine.reference.gaussian.integrand_sizes import LINES, TURN, IntegrandSizes
from pyengine.reference.gaussian.steps import EqualSteps
from pyengine.reference.inversion.line import NotFeasibleError

__all__ = ["Edge", "HyperbolaPlan", "LineRule", "NodeMethod", "make_bend"]

MOST_TERMS = 4.0e6
PIECES = 40
APART = 3  # lines that get nodes: tables cost more than a few terms
ALL = range(-LINES + 1, LINES)


@dataclass(frozen=True)
class LineRule:
    """Nodes on one line of one phase."""

    line: int
    start: float
    halves: int
    count: int


@dataclass(frozen=True)
class NodeMethod:
    """How one phase's transform is computed at one node of the contour."""

    line: int
    strip: int
    first: int
    last: int


@dataclass(frozen=True)
class Edge:
    """A side of the strip: its distance and, per piece and phase, the line that bounds M."""

    width: float
    ends: tuple[float, ...]
    lines: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class HyperbolaPlan:
    """Discretisation on lambda(u) = corner + scale sin(angle + i u).

    Parameters
    ----------
    corner, scale, angle : float
        The hyperbola.
    spacing : float
        Of the nodes u = 0, spacing, 2 spacing, ...
    rows : tuple of tuple of Row
        Per node and phase.
    rules : tuple of tuple of Rule
        Per phase.
    edges : tuple of Edge
        Left (towards the vertical) and right.
    beyond : tuple of int
        Per phase, the line that bounds M beyond the last node.
    ranges : tuple of (float, float)
        Per phase, where the boxes of the bounds begin and end.
    bits : int
        Working precision.
    """

    corner: float
    scale: float
    angle: float
    spacing: float
    rows: tuple[tuple[NodeMethod, ...], ...]
    rules: tuple[tuple[LineRule, ...], ...]
    edges: tuple[Edge, Edge]
    beyond: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]
    bits: int


def make_bend(phases: tuple[EqualSteps, ...], threshold: float, depth: float) -> HyperbolaPlan:
    """Choose the discretisation.

    Parameters
    ----------
    phases : tuple of Phase
        The composition.
    threshold : float
        Threshold of the sum of Y.
    depth : float
        Natural logarithm of the relative precision aimed at.

    Raises
    ------
    NotFeasibleError
        If a step has p = 1, or too many nodes would be needed.
    """
    if threshold <= 0 or any(phase.full_batch for phase in phases):
        raise NotFeasibleError("the loss has no lower end there")
    steps = sum(phase.steps for phase in phases)
    # One step beyond the threshold, or several steps below it.
    alone = min(place_of(phase, threshold) for phase in phases)
    cumulants = Cumulants.of(phases, min(max(alone, 1.0), 1e3) + 0.5)
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
        free = Cumulants.of(phases).saddle(threshold)
        vertices += [away_from_poles(x * free, 0.1 * x / threshold) for x in (0.1, 0.5, 0.999)]
        vertices += [-x / threshold for x in (1.0, 4.0, 16.0)]
    curve = best_curve(sketches, threshold, vertices, goal)
    return _detailed(phases, sketches, curve, threshold, goal, depth + math.log(steps))


def _detailed(
    phases: tuple[EqualSteps, ...],
    sketches: list[IntegrandSizes],
    curve: HyperbolaSide,
    threshold: float,
    goal: float,
    depth: float,
) -> HyperbolaPlan:
    """Choose lines and nodes for a hyperbola."""
    count = math.ceil(curve.reach / curve.spacing) + 1
    u: Array = curve.spacing * np.arange(float(count))
    places = curve.places(u)
    tables = [sketch.table(places, ALL) for sketch in sketches]
    size = log_sizes(sketches, [table[LINES - 1 :] for table in tables]) + math.log(curve.spacing)
    size += curve.log_kernel(u, threshold)
    allowed = goal - math.log(2 * count * len(phases)) - size  # relative, of M^n
    columns, rules, bits, low = [], [], 0.0, 0.0
    for sketch, table in zip(sketches, tables, strict=True):
        log_m = table[LINES - 1 :].min(axis=0)
        low = min(low, float(log_m.min()))
        error = log_m + np.minimum(allowed, -1.0) - math.log(sketch.steps)
        rows, rule, need = _rows(sketch, table, places, error)
        columns.append(rows)
        rules.append(rule)
        bits = max(bits, need)
    edges = (
        _edge(sketches, curve, 0, threshold),
        _edge(sketches, curve, 1, threshold),
    )
    least = math.ceil(curve.angle / TURN)
    beyond = tuple(least + int(np.argmin(table[LINES - 1 + least :, -1])) for table in tables)
    terms = sum(row.last - row.first for rows in columns for row in rows)
    if terms > MOST_TERMS:
        raise NotFeasibleError(f"{terms} terms would be needed")
    used = _reached(curve, columns, places, edges, beyond)
    ranges = tuple(
        _range(sketch, reached, depth + 20 - low)
        for sketch, reached in zip(sketches, used, strict=True)
    )
    return HyperbolaPlan(
        curve.corner,
        curve.scale,
        curve.angle,
        curve.spacing,
        tuple(zip(*columns, strict=True)),
        tuple(rules),
        edges,
        beyond,
        ranges,
        int(bits / math.log(2)) + 70,
    )


def _rows(
    sketch: IntegrandSizes, table: Array, places: Array, error: Array
) -> tuple[list[NodeMethod], tuple[LineRule, ...], float]:
    """Choose a line for every node, and the nodes on each line."""
    centre, nodes = LINES - 1, len(places)
    best = np.zeros(nodes)
    line, strip = np.zeros(nodes, dtype=int), np.ones(nodes, dtype=int)
    for wide in range(1, 11):
        last = LINES - wide
        size = np.maximum(
            table[centre + wide : centre + wide + last],
            table[centre - wide : centre - wide + last],
        )
        spacing = 2 * math.pi * wide * TURN / (np.maximum(size - error, 1.0) + 1)
        top = APART * spacing[::APART].argmax(axis=0)
        value = spacing[top, np.arange(nodes)]
        better = value > best
        best, line = np.where(better, value, best), np.where(better, top, line)
        strip = np.where(better, wide, strip)
    rules, bits = list[LineRule](), 0.0
    rows: list[NodeMethod | None] = [None] * nodes
    for index in sorted(set(line.tolist())):
        chosen = np.nonzero(line == index)[0]
        angle = index * TURN
        s = (places[chosen] * np.exp(1j * angle)).real
        deep = max(float(np.max(-error[chosen])), 0.0) + 6
        halves = math.ceil(math.log(2) / float(best[chosen].min()))
        step = math.log(2) / halves
        start = sketch.start(angle, deep)
        stop = sketch.stop(angle, float(s.max()), deep)
        rules.append(LineRule(index, start, halves, math.ceil((stop - start) / step) + 1))
        whole = float(sketch.log_bound(index, np.zeros(1))[0])
        for k, tilt in zip(chosen, s, strict=True):
            goal = float(-error[k]) + 3
            first = int((sketch.start(angle, max(goal, 1.0)) - start) / step)
            final = rules[-1].count
            if tilt < 0:
                right = math.log(max(goal + whole, 1.0) / -tilt)
                final = min(final, max(math.ceil((right - start) / step), 1))
            rows[k] = NodeMethod(index, int(strip[k]), max(0, min(first, final - 1)), final)
            bits = max(bits, float(table[centre + index, k] - error[k]))
    return [row for row in rows if row is not None], tuple(rules), bits


def _edge(
    sketches: list[IntegrandSizes], curve: HyperbolaSide, side: int, threshold: float
) -> Edge:
    """Cut a side of the strip into pieces, as far as it matters."""
    width = curve.widths[side]
    away = width if side else -width
    least = math.ceil((curve.angle + away) / TURN)
    u: Array = np.linspace(0.0, 9.0, 200)
    places = curve.places(u, away)
    tables = [sketch.table(places, range(LINES)) for sketch in sketches]
    log = curve.log_kernel(u, threshold, away)
    top = (log + log_sizes(sketches, tables)).max()
    late = log + log_sizes(sketches, [table[least:] for table in tables])
    above = np.nonzero(late > top - 3)[0]
    reach = float(u[min(above[-1] + 1, len(u) - 1)]) if above.size else float(u[1])
    u = np.linspace(0.0, reach, PIECES + 1)
    places = curve.places(u, away)
    lines = []
    for sketch in sketches:
        table = sketch.table(places, range(LINES))
        inside = np.maximum(table[:, 1:], table[:, :-1]).argmin(axis=0).tolist()
        lines.append([*inside, least + int(table[least:, -1].argmin())])
    return Edge(width, tuple(u.tolist()), tuple(zip(*lines, strict=True)))


def _reached(
    curve: HyperbolaSide,
    columns: list[list[NodeMethod]],
    places: Array,
    edges: tuple[Edge, Edge],
    beyond: tuple[int, ...],
) -> list[list[tuple[int, complex]]]:
    """Return, per phase, the lines and places whose bounds will be asked for."""
    result = []
    for i, rows in enumerate(columns):
        reached = [
            (row.line + side * row.strip, complex(place))
            for row, place in zip(rows, places, strict=True)
            for side in (-1, 1)
        ]
        for edge, sign in zip(edges, (-1, 1), strict=True):
            ends = curve.places(np.array(edge.ends), sign * edge.width)
            for k, lines in enumerate(edge.lines):
                reached += [(lines[i], complex(end)) for end in ends[k : k + 2]]
        result.append([*reached, (beyond[i], complex(places[-1]))])
    return result


def _range(
    sketch: IntegrandSizes, reached: list[tuple[int, complex]], depth: float
) -> tuple[float, float]:
    """Return where the boxes of all bounds begin and end, for lines and places in use."""
    stops = [
        sketch.stop(abs(line) * TURN, (place * cmath.exp(1j * line * TURN)).real, depth)
        for line, place in reached
    ]
    return sketch.start(LINES * TURN, depth), max(stops)
