"""The hyperbola with the fewest nodes, in double precision."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from pyengine.reference.cumulants import Array
from pyengine.reference.gaussian.integrand_sizes import LINES, TURN, IntegrandSizes
from pyengine.reference.inversion.line import NotFeasibleError

__all__ = ["HyperbolaSide", "best_curve", "log_sizes"]

MOST_NODES = 3000  # on a hyperbola
SHAPES = ((0.38, 0.33, 0.3), (0.25, 0.22, 0.36))  # angle, and distances of both sides, in radians
SIZES = np.geomspace(1.0, 1000.0, 9)  # trial values of scale * threshold
COARSE = range(0, LINES, 3)  # lines tried for the sides of the strip


@dataclass(frozen=True)
class HyperbolaSide:
    """The hyperbola lambda(u) = corner + scale sin(angle + i u), its strip and its nodes.

    ``widths`` are how far the strip of analyticity extends to the left and right, in the angle; the
    nodes are ``spacing`` apart in u, up to ``reach``.
    """

    corner: float
    scale: float
    angle: float
    widths: tuple[float, float]
    spacing: float = 0.0
    reach: float = 0.0

    def places(self, u: Array, away: float = 0.0) -> Array:
        """Return lambda on the hyperbola of angle ``angle + away``."""
        result: Array = self.corner + self.scale * np.sin(self.angle + away + 1j * u)
        return result

    def log_kernel(self, u: Array, threshold: float, away: float = 0.0) -> Array:
        """Return log |lambda'(u) exp(-lambda c') / lambda| at a threshold c'."""
        place = self.places(u, away)
        front = np.abs(self.scale * np.cos(self.angle + away + 1j * u) / place)
        result: Array = np.log(front) - place.real * threshold
        return result


def log_sizes(sketches: list[IntegrandSizes], tables: list[Array]) -> Array:
    """Return the log of the bound on |product of M^n|, each phase by its best line (first axis)."""
    total: Array = np.zeros(1)
    for sketch, table in zip(sketches, tables, strict=True):
        total = total + sketch.steps * table.min(axis=0)
    return total


def best_curve(
    sketches: list[IntegrandSizes], threshold: float, vertices: list[float], goal: float
) -> HyperbolaSide:
    """Return the hyperbola with the fewest nodes, or `NotFeasibleError`.

    ``threshold`` is that of the sum of Y, ``vertices`` are places where it may cross the real axis,
    and ``goal`` is the log of the allowed absolute error.
    """
    u: Array = np.linspace(0.0, 9.0, 30)
    best: tuple[float, HyperbolaSide] | None = None
    for vertex, (angle, left, right), size in itertools.product(vertices, SHAPES, SIZES):
        scale = float(size) / threshold
        curve = HyperbolaSide(vertex - scale * math.sin(angle), scale, angle, (left, right))
        logs = []
        for away in (-left, right, 0.0):
            # beyond the nodes a line must be turned by the contour's angle at least
            lines = COARSE if away else range(math.ceil(angle / TURN), LINES, 2)
            places = curve.places(u, away)
            log = log_sizes(sketches, [sketch.table(places, lines, 2) for sketch in sketches])
            logs.append(log + curve.log_kernel(u, threshold, away))
            if away and not log.max() < math.inf:
                break
        above = np.nonzero(logs[-1] > goal - 2)[0]
        if len(logs) < 3 or above.size == 0 or above[-1] == len(u) - 1:
            continue
        spacing = min(
            2 * math.pi * width / max(float(log.max()) - goal + 2, 1.0)
            for width, log in zip((left, right), logs, strict=False)
        )
        before, after = logs[-1][above[-1] : above[-1] + 2]
        reach = float(np.interp(goal - 2, [after, before], [u[above[-1] + 1], u[above[-1]]]))
        if best is None or reach / spacing < best[0]:
            best = reach / spacing, replace(curve, spacing=spacing, reach=reach)
    if best is None or best[0] > MOST_NODES:
        raise NotFeasibleError("no hyperbola on which the transform decays")
    return best[1]
