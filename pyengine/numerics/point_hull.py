"""The lower convex hull of points in the plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["lower_hull"]


def lower_hull(points: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the vertices of the lower convex hull, by one pass from left to right.

    x must not decrease; of equal ones the first counts.  Slopes between vertices strictly increase:
    exactly for exact numbers, up to the rounding of two products for floats.

    A. M. Andrew, Another efficient algorithm for convex hulls in two dimensions (1979).
    """
    hull: list[tuple[Any, Any]] = []
    for x, y in points:
        if hull and hull[-1][0] == x:
            continue
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) > (x - x0) * (y1 - y0):  # the last vertex is below the chord
                break
            hull.pop()
        hull.append((x, y))
    return hull
