"""Questions next to and beyond the ends of their domains, with their truths.

Epsilon at levels above the distance of the laws (there it is 0, in every order), delta next to
epsilon 0, next to the largest loss and beyond it, and trade-off functions at levels next to 0 and
1, and next to the probability that no step samples a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Protocol

import mpmath
import numpy as np
import numpy.typing as npt
from bounds_tally import Truth
from contour_lines import Line
from contour_truths import CLOSED, FARTHEST, LEAST_LOG, mass, truths
from scipy.interpolate import CubicSpline

__all__ = [
    "at_ends",
    "at_levels",
    "at_zero",
    "levels_next_to_ends",
    "next_to_largest",
    "private",
]

ORDERS = ("add", "remove", "add_remove")
SHARE = 0.3  # share of compositions with questions that need their own contours
ABOVE = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 9.0)  # of a level beside its bound, relative
FAINT = 1e-6  # errors from which on a truth is useless
GRID = 48  # thresholds by which those of levels are placed
BISECTIONS = 40


class Composed(Protocol):
    """Noise multipliers, rates and lengths of all kinds of steps."""

    noise: list[float]
    probability: list[float]
    steps: list[int]

    def largest(self) -> float:
        """Approximate largest loss of ``add``."""


Lines = Callable[[float], Line]


def _decimal(x: Any) -> Decimal:
    return Decimal(mpmath.nstr(x, 40))


def private(distance: Decimal, rng: np.random.Generator) -> Iterator[Truth]:
    """Questions at deltas not below the distance of the laws: epsilon is 0 in every order."""
    levels = [float(distance) * (1.0 + above) for above in rng.choice(ABOVE, 2, replace=False)]
    levels.append(1.0 - 2.0**-53 if rng.random() < 0.2 else 1.0 - 10.0 ** -rng.uniform(0.0, 15.0))
    for level in levels:
        if distance <= Decimal(level) < 1:
            for order in ORDERS:
                yield Truth("epsilon", level, order, Decimal(0), 0.0)


def _without_contours(kinds: Composed, rng: np.random.Generator) -> list[Truth]:
    """Deltas at which epsilon is certainly 0, and losses beyond the largest one of ``add``."""
    parts = list(zip(kinds.noise, kinds.probability, kinds.steps, strict=True))
    never = sum(n * mpmath.log1p(-mpmath.mpf(p)) for _, p, n in parts if p < 1.0)
    # a step moves what it samples, by what lies between normal laws that far apart
    apart = sum(n * mpmath.mpf(p) * (2 * mpmath.ncdf(0.5 / noise) - 1) for noise, p, n in parts)
    found = list(private(_decimal(apart * (1 + mpmath.mpf(10) ** -30)), rng)) if apart < 1 else []
    if any(p == 1.0 for p in kinds.probability):
        return found
    found += private(_decimal(-mpmath.expm1(never) * (1 + mpmath.mpf(10) ** -30)), rng)
    largest = _decimal(-never)
    beyond = [float(largest) * (1.0 + above) for above in (2.0**-52, *ABOVE)]
    beyond = [epsilon for epsilon in beyond if Decimal(epsilon) > largest]
    return found + [Truth("delta", epsilon, "add", Decimal(0), 0.0) for epsilon in beyond]


def at_zero(line: Lines, rng: np.random.Generator) -> list[Truth]:
    """Thresholds next to 0, and levels above the profile there."""
    right = bool(rng.random() < 0.5)
    found = line(1.0 if right else 0.0).moments()
    if found is None or not 0.0 < found[1] < math.inf or abs(found[0]) > 8.0 * found[1]:
        return []
    away = rng.uniform(0.5, 2.0) / found[1]
    c = np.concatenate([[0.0, 1e-300], 10.0 ** rng.uniform(-14.0, -3.0, 10)])
    rows = line(1.0 + away if right else -away).logs(c if right else -c)
    if rows is None or not LEAST_LOG < float(rows[0][0, 2]) < 0.0:
        return []
    asked = [
        one
        for one in truths((rows[0][1:], rows[1]), (c if right else -c)[1:], right, None)
        if one.doubt < FAINT
    ]
    distance, off = mass(rows[0][0, 2]), 4.0 * rows[1]
    asked += [Truth("delta", 0.0, order, distance, off) for order in ORDERS]
    return asked + list(private(distance * (1 + Decimal(off)), rng))


def _tilt(line: Lines, right: bool, reached: Callable[[tuple[float, float, float]], bool]) -> Any:
    """A tilt near which moments reach their target, with the moments; None without one."""
    pole = 1.0 if right else 0.0
    found = line(pole).moments()
    if found is None or not 0.0 < found[1] < math.inf:
        return None
    near, far = 0.5 / found[1], math.inf
    best = None
    for _ in range(BISECTIONS):
        away = 4.0 * near if math.isinf(far) else math.sqrt(near * far)
        lam = pole + away if right else -away
        found = line(lam).moments() if away < 1e9 else None
        if found is None or not all(map(math.isfinite, found)) or reached(found):
            far = away
        else:
            near, best = away, (lam, found)
        if far < 1.1 * near:
            break
    return best


def next_to_largest(line: Lines, largest: float, rng: np.random.Generator) -> list[Truth]:
    """Thresholds next to the largest loss of ``add``, as far as its masses are doubles."""
    part = 10.0 ** rng.uniform(-12.0, -0.5)
    limit, least = -largest * (1.0 - part), LEAST_LOG * rng.uniform(0.3, 1.0)
    start = _tilt(line, False, lambda found: found[0] < limit or found[2] < least)
    if start is None:
        return []
    lam, (mean, deviation, _) = start
    c = mean + deviation * rng.uniform(-2.0, 2.0, GRID)
    rows = line(lam).logs(np.maximum(c, -largest))
    return [] if rows is None else list(truths(rows, c, False, None))


def levels_next_to_ends(kinds: Composed | None, rng: np.random.Generator) -> list[float]:
    """Levels, and distances of others from 1, next to ends and seams of the domain."""
    found = [*(10.0 ** -rng.integers(1, 16, 6)), *(10.0 ** rng.uniform(-290.0, -0.3, 4))]
    if kinds is not None:
        parts = zip(kinds.probability, kinds.steps, strict=True)
        never = math.exp(sum(n * math.log1p(-p) if p < 1.0 else -math.inf for p, n in parts))
        for seam in (never, 1.0 - never):
            found += [seam * (1.0 + side * 10.0 ** -rng.integers(1, 15)) for side in (-1.0, 0, 1.0)]
    return [level for level in found if 1e-290 < level < 0.9]


def _judged(level: float, small: bool, order: str, value: Decimal, doubt: float) -> list[Truth]:
    """Both errors at a level, or at that distance from 1; the value is the power, or the error."""
    argument = level if small else 1.0 - level
    rest = 1 - value
    if not (doubt < FAINT and value > Decimal("1e-290") and rest > 0):
        return []
    of_rest = doubt * float(value / rest)
    names = ("gamma_bound", "trade_off") if small else ("trade_off", "gamma_bound")
    found = [Truth(names[0], argument, order, value, doubt)]
    if of_rest < FAINT:
        found.append(Truth(names[1], argument, order, rest, of_rest + CLOSED))
    return found


def at_levels(line: Lines, levels: list[float], rng: np.random.Generator) -> list[Truth]:
    """Levels on the small tail of either law, by thresholds from a first contour."""
    small, order = bool(rng.random() < 0.5), str(rng.choice(ORDERS[:2]))
    right, column = small == (order == "add"), 0 if order == "add" else 1
    if not small:  # the level is the nearest double
        levels = [1.0 - (1.0 - level) for level in levels if 1.0 - level < 1.0]
    if not levels:
        return []
    first = math.log(rng.choice(levels))
    start = _tilt(line, right, lambda found: found[2] + (found[0] if column else 0.0) < first + 1.0)
    if start is None:
        return []
    lam, (mean, deviation, _) = start
    c = mean + deviation * np.linspace(-3.0, 3.0, GRID)
    rows = line(lam).logs(c)
    if rows is None:
        return []
    return _placed(line(lam), rows, c, (small, order, column), levels)


def _placed(
    line: Line,
    rows: Any,
    c: npt.NDArray[np.float64],
    how: tuple[bool, str, int],
    levels: list[float],
) -> list[Truth]:
    small, order, column = how
    logs = np.array([float(x) for x in rows[0][:, column]])
    known = np.isfinite(logs)
    logs, c = logs[known], c[known]
    way = np.argsort(logs)
    if logs.size < GRID // 4 or not (np.diff(logs[way]) > 0.0).all():
        return []
    place = CubicSpline(logs[way], c[way])
    asked = [level for level in levels if logs.min() < math.log(level) < logs.max()]
    if not asked:
        return []
    at = np.asarray(place(np.log(asked)))
    rows = line.logs(at)
    if rows is None:
        return []
    found: list[Truth] = []
    for level, threshold, row in zip(asked, at, rows[0], strict=True):
        if not max(map(float, row[:2])) < 0.0:
            continue
        if max(abs(threshold), -float(row[:2].min())) > FARTHEST:  # beyond the range of Decimal
            continue
        exact = Decimal(level)
        own, other = mass(row[column]), mass(row[1 - column])
        slope = Decimal(float(threshold) if column == 0 else -float(threshold)).exp()
        value = other + slope * (exact - own)
        if not (value > 0 and own > 0):
            continue
        # twice the effect of the curvature over the distance to the level
        apart = float(abs(exact / own - 1))
        part = float(slope * own / value)
        bent = part * apart * apart * abs(float(place(math.log(level), 1)))
        doubt = 4.0 * rows[1] * (float(other / value) + part) + 2.0 * bent
        found += _judged(level, small, order, value, doubt)
    return found


def at_ends(line: Lines, kinds: Composed, rng: np.random.Generator) -> list[Truth]:
    """Questions on a composition that have a truth; those that need a contour are not always asked.

    One step and plain noise are asked next to all ends by ``make campaign SEED=closed-forms-1``. To
    be used with 60 digits of mpmath.
    """
    asked, levels = _without_contours(kinds, rng), levels_next_to_ends(kinds, rng)
    if all(p == 1.0 for p in kinds.probability):
        return asked + at_zero(line, rng)
    if rng.random() < SHARE:
        asked += at_zero(line, rng)
    if rng.random() < SHARE:
        asked += at_levels(line, levels, rng)
    if kinds.largest() < math.inf and rng.random() < SHARE:
        asked += next_to_largest(line, kinds.largest(), rng)
    return asked
