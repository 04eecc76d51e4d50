"""Search for the sign change of a monotone function, with few evaluations.

The function is the excess of a target as a function of a parameter, positive if the target is
missed.  A bracket is found by growing steps; inside it, inverse interpolation through the nearest
points proposes the root, and the last step lands just on the safe side of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from pyengine._support.decimals import written
from pyengine.errors import AccuracyError

__all__ = ["Domain", "Guide", "NoiseSearch", "Unbounded", "Unreachable"]

NEAR = 1.25  # factor of the first step, which determines a slope
GROWTH = 4.0  # largest factor of the second step outwards; it is squared for each further step
MAX_EVALUATIONS = 200
POINTS = 4  # most points of the inverse interpolation
STALLED = 3  # steps without progress after which the bracket is bisected
SAFE = 0.25  # distance of the last step from the root, in units of the tolerance
MOST_GUIDED = 1  # with more points than this, their slope is used instead of the guide
BEYOND, LEAST_BEYOND = 1.1, 1e-9  # how far to go beyond the guide's estimate: factor, and least
GUIDED_STEPS = 24  # most secant steps in the guide
NEARBY = 0.25  # |excess| up to which a step may land on the boundary and needs full accuracy
STEEP = 3.0  # |d strength / d log parameter| above which rare large losses make the guide useless
LARGEST_STEP = 3.0  # largest secant step in the log of the parameter
DIFFERENT = 1e-9  # excesses that differ by less count as equal, up to rounding


@dataclass(frozen=True)
class Domain:
    """The closed interval of a parameter."""

    low: float
    high: float
    integer: bool


class Guide(Protocol):
    """A cheap estimate of the boundary, which only determines where to evaluate.

    It uses a ``strength``, the logarithm of a figure that decreases as privacy grows.
    """

    def strength(self, x: float) -> float:
        """Strength at a parameter; NaN if unknown."""

    def missing(self, excess: float) -> float:
        """Estimated strength at the boundary less that at an excess; NaN if unknown."""

    def goal(self) -> float:
        """Estimated strength at the boundary; NaN if unknown."""


class Unbounded(ValueError):  # noqa: N818 - named like `Unreachable`
    """All values that were tried, from ``low`` to ``high``, meet the target."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__(
            f"every parameter from {written(low, '.2g')} to {written(high, '.2g')} meets the target"
        )
        self.low, self.high = low, high


class Unreachable(Exception):  # noqa: N818 - the caller says what is the best achievable
    """No value of the parameter up to ``best`` meets the target.

    ``best`` is the end of the domain, or ``error`` is why no engine has an answer beyond it.
    """

    def __init__(self, best: float, error: AccuracyError | None = None) -> None:
        super().__init__(best)
        self.best = best
        self.error = error


@dataclass
class NoiseSearch:
    """One search for the boundary of the region where a target is met.

    - ``excess``: monotone function, <= 0 if the target is met; AccuracyError without an answer
    - ``valid``: whether a parameter is in the domain, an interval; cheap
    - ``rtol``: largest distance of the answer from the boundary, relative to it
    - ``rough``: a quick estimate of the excess if that is far from 0, otherwise NaN
    - ``guide``: estimates the boundary
    - ``ceiling``: an upper bound of the excess that needs no engine, if engines refuse
    - ``starts_near``: whether to begin at the start instead of the guide's estimate
    """

    excess: Callable[[float], float]
    valid: Callable[[float], bool]
    domain: Domain
    rtol: float
    rough: Callable[[float], float] | None = None
    guide: Guide | None = None
    ceiling: Callable[[float], float] | None = None
    starts_near: bool = False
    points: dict[float, float] = field(default_factory=dict)
    unknown: dict[float, AccuracyError] = field(default_factory=dict)
    has_ceiling: bool = False  # whether ``ceiling`` has decided a point without an engine's answer

    def ask(self, x: float, *, on_the_way: bool = False) -> float:
        """Excess at x, NaN without an answer; may be an estimate if ``on_the_way`` to a bracket."""
        if x in self.points:
            return self.points[x]
        if x in self.unknown:
            return math.nan
        if len(self.points) + len(self.unknown) >= MAX_EVALUATIONS:
            self._give_up()
        if self.has_ceiling and self._is_surely_met(x):
            return self.points[x]
        if on_the_way and self.rough is not None:
            y = self.rough(x)
            if not math.isnan(y):
                self.points[x] = y
                return y
        try:
            y = self.points[x] = self.excess(x)
        except AccuracyError as error:
            self.has_ceiling = self._is_surely_met(x)
            if self.has_ceiling:
                return self.points[x]
            self.unknown[x] = error
            return math.nan
        return y

    def _is_surely_met(self, x: float) -> bool:
        """Whether the upper bound shows that the target is met at x; if so, it is stored."""
        bound = math.inf if self.ceiling is None else self.ceiling(x)
        if bound <= 0.0:
            self.points[x] = bound
        return bound <= 0.0

    def refuse_what_all_meet(self, start: float) -> None:
        """Raise `Unbounded` if by the upper bound all of a domain without ends meets the target.

        Checking the ends suffices, since the upper bound is monotone in the parameter.
        """
        domain = self.domain
        if self.ceiling is None or self.ceiling(start) > 0.0:
            return
        ends = self._step(start, domain.low / start), self._step(start, domain.high / start)
        has_end = domain.integer or ends[0] != domain.low or ends[1] != domain.high
        if not has_end and max(map(self.ceiling, ends)) <= 0.0:
            raise Unbounded(*ends)

    # ---- the way to a bracket

    def direction(self, start: float) -> bool:
        """Whether the excess grows with the parameter, judged by points around a start."""
        guided = self._guided_direction(start)
        if guided is not None:
            return guided
        first = self.ask(start, on_the_way=True)
        factor = 2.0
        while True:
            moved = False
            for x in (self._step(start, factor), self._step(start, 1.0 / factor)):
                if x == start or x in self.unknown:
                    continue
                moved = moved or x not in self.points
                y = self.ask(x, on_the_way=True)
                if math.isnan(first) and not math.isnan(y):
                    start, first = x, y
                elif _differ(y, first):
                    return (y > first) == (x > start)
            if not moved:
                self._no_direction()
            factor *= factor

    def undirected(self, start: float, *, monotone: bool) -> tuple[float, bool]:
        """Return `boundary` and whether the excess grows with the parameter, if that is not known.

        If only the sign of the excess is monotone (not ``monotone``), two values on one side of the
        boundary may suggest the wrong direction: if the search finds no boundary there, the other
        direction is searched, too.
        """
        grows = self.direction(start)
        try:
            return self.boundary(start, grows), grows
        except (Unreachable, Unbounded) as first:
            if monotone:
                raise
            try:
                return self.boundary(start, not grows), not grows
            except (Unreachable, Unbounded, AccuracyError):
                raise first from None

    def boundary(self, start: float, grows: bool) -> float:
        """A point that meets the target within the tolerance of the boundary.

        The end of the domain if all points meet the target; `Unbounded` if it has no end, and
        `Unreachable` if no point meets the target.
        """
        if self._guided_direction(start) not in (None, grows):
            self.guide = None  # a given direction takes precedence over the guide
        first = start if self.points else self._guided(start)
        # near the boundary an estimate of the excess would not suffice
        if math.isnan(self.ask(first, on_the_way=first == start)):
            self._known(first)
        growth = GROWTH
        while True:
            met = [x for x, y in self.points.items() if y <= 0.0]
            missed = [x for x, y in self.points.items() if y > 0.0]
            if met and missed:
                break
            up = grows == bool(met)  # towards the side that is still missing
            edge = max(self.points) if up else min(self.points)
            guided = self._beyond(edge, up)
            x = self._outward(edge, up, growth) if guided is None else guided
            growth = min(growth * growth, 1e80) if len(self.points) > 1 else growth
            if x == edge and not met:
                raise Unreachable(edge)
            if x == edge:
                return self._end(edge)
            if math.isnan(
                self.ask(x, on_the_way=guided is None or abs(self.points[edge]) > NEARBY)
            ):
                self._towards(edge, x, bool(met))
        return self._refine(*((max(met), min(missed)) if grows else (min(met), max(missed))))

    def _guided_direction(self, start: float) -> bool | None:
        """Whether the strength grows with the parameter; None if unknown."""
        if self.guide is None:
            return None
        other = self._step(start, 2.0)
        if other == start:
            other = self._step(start, 0.5)
        first, second = self.guide.strength(start), self.guide.strength(other)
        if math.isnan(self.guide.goal()) or not abs(first - second) > DIFFERENT:
            return None
        return (second > first) == (other > start)

    def _guided(self, start: float) -> float:
        """The guide's estimate of the boundary; the start if it has none."""
        if self.guide is None or self.starts_near:
            return start
        found = self._where(start, self.guide.goal())
        if found is None:
            return start
        other = self._step(found, 1.02)
        change = abs(self.guide.strength(other) - self.guide.strength(found))
        return found if change <= STEEP * abs(math.log(other / found)) else start

    def _beyond(self, edge: float, up: bool) -> float | None:
        """A point slightly beyond the guide's estimate of the boundary; None if it has none."""
        if self.guide is None or len(self.points) > MOST_GUIDED:
            return None
        missing = self.guide.missing(self.points[edge])
        further = math.copysign(BEYOND * abs(missing) + LEAST_BEYOND, missing)
        found = self._where(edge, self.guide.strength(edge) + further)
        return found if found is not None and (found > edge) == up and found != edge else None

    def _where(self, start: float, goal: float) -> float | None:
        """The parameter with a given strength, by the secant method; None if it fails."""
        guide, domain = self.guide, self.domain
        if guide is None or not math.isfinite(goal) or start <= 0.0:
            return None
        x, y = start, guide.strength(start) - goal
        other = self._step(x, 1.02 if not domain.integer else 2.0)
        if other == x:
            other = self._step(x, 0.98 if not domain.integer else 0.5)
        before = guide.strength(other) - goal if other > 0.0 else math.nan
        for _ in range(GUIDED_STEPS):
            if not (math.isfinite(y) and math.isfinite(before)) or y == before:
                return None
            if abs(y) <= 1e-3 * min(1.0, abs(goal - guide.strength(start))) or x == other:
                return x
            slope = (y - before) / math.log(x / other)
            factor = math.exp(min(max(-y / slope, -LARGEST_STEP), LARGEST_STEP))
            other, before = x, y
            x = self._step(x, factor) if factor != 1.0 else x
            y = guide.strength(x) - goal if x > 0.0 else math.nan
        return None

    def _outward(self, edge: float, up: bool, growth: float) -> float:
        """The next point beyond the edge: a little beyond the extrapolated root."""
        factor = growth if len(self.points) > 1 else NEAR
        guess = self._interpolated(2)
        if guess is not None and guess > 0.0:
            ratio = guess / edge if up else edge / guess
            if 1.0 < ratio < growth:
                factor = ratio**1.1
        return self._step(edge, factor if up else 1.0 / factor)

    def _step(self, x: float, factor: float) -> float:
        """The point x times a factor, or the last valid point on the way there."""
        domain = self.domain
        y = x * factor
        if domain.integer:
            y = float(max(math.ceil(y), x + 1.0) if factor > 1.0 else math.floor(y))
        y = min(max(y, domain.low), domain.high)
        if y == x or self.valid(y):
            return y
        inside, outside = x, y
        while True:  # bisection for the end of the parameter's domain, without engines
            middle = 0.5 * (inside + outside)
            if domain.integer:
                middle = math.floor(middle)
            if middle in (inside, outside):
                return inside
            if self.valid(middle):
                inside = middle
            else:
                outside = middle

    def _known(self, start: float) -> None:
        """Find a point near the start at which an engine has an answer."""
        for factor in (2.0, 0.5, 8.0, 0.125, 64.0, 1.0 / 64.0):
            if self.points or not math.isnan(self.ask(self._step(start, factor))):
                return
        raise self.unknown[start]

    def _towards(self, known: float, unknown: float, met: bool) -> None:
        """Look for the other side of the boundary between a known point and one without answer."""
        error = self.unknown[unknown]
        for _ in range(30):
            middle = self._middle(known, unknown)
            if middle in (known, unknown) or abs(unknown - known) < 1e-3 * abs(known):
                break
            y = self.ask(middle)
            if math.isnan(y):
                unknown = middle
            elif (y <= 0.0) == met:
                known = middle
            else:
                return
        if not met:
            raise Unreachable(known, error)
        raise AccuracyError(
            f"the target is still met at {known!r}, and no engine answers beyond: {error}"
        ) from error

    # ---- inside a bracket

    def _refine(self, met: float, missed: float) -> float:
        """Shrink a bracket until the point that meets the target is close to the boundary."""
        stalled, width, least = 0, abs(met - missed), math.inf
        while not self._close(met, missed):
            x = self._proposal(met, missed) if stalled < STALLED else None
            if x is None:
                x, stalled = self._middle(met, missed), 0
            y = self.ask(x)
            if math.isnan(y):
                raise AccuracyError(
                    f"the target is met at {met!r} and missed at {missed!r}, and no engine "
                    f"answers at {x!r} between: {self.unknown[x]}"
                ) from self.unknown[x]
            if y <= 0.0:
                met = x
            else:
                missed = x
            progress = abs(met - missed) < 0.5 * width or abs(y) < 0.5 * least
            stalled = 0 if progress else stalled + 1
            width, least = abs(met - missed), min(least, abs(y))
        return met

    def _close(self, met: float, missed: float) -> bool:
        """Whether the point that meets the target is within the tolerance of the boundary."""
        if self.domain.integer:
            return abs(met - missed) <= 1.0
        tolerance = self.rtol * abs(met)
        if abs(met - missed) <= tolerance or self._middle(met, missed) in (met, missed):
            return True
        y = self.points[met]
        if not math.isfinite(y):
            return False
        # distance by the slopes to the nearest points, with a margin; slopes to points that are
        # too near would be mostly rounding
        near = [x for x in self._nearest(4) if abs(x - met) > 10.0 * tolerance]
        slopes = [abs((self.points[x] - y) / (x - met)) for x in near[:2]]
        return len(slopes) == 2 and -2.0 * y <= tolerance * min(slopes)

    def _nearest(self, count: int) -> list[float]:
        finite = [x for x, y in self.points.items() if math.isfinite(y) and x > 0.0]
        return sorted(finite, key=lambda x: abs(self.points[x]))[:count]

    def _interpolated(self, count: int) -> float | None:
        """The root of inverse interpolation of log x through the nearest points (Neville)."""
        near = self._nearest(count)
        ys = [self.points[x] for x in near]
        if len(near) < 2 or len(set(ys)) < len(ys):
            return None
        values = [math.log(x) for x in near]
        for order in range(1, len(near)):
            for i in range(len(near) - order):
                a, b = ys[i], ys[i + order]
                values[i] = (b * values[i] - a * values[i + 1]) / (b - a)
        return math.exp(values[0]) if abs(values[0]) < 700.0 else None

    def _proposal(self, met: float, missed: float) -> float | None:
        """Interpolated root inside the bracket, moved to the safe side once it is accurate."""
        low, high = min(met, missed), max(met, missed)
        guesses = [self._interpolated(count) for count in range(2, POINTS + 1)]
        inside = [x for x in guesses if x is not None and low < x < high]
        if not inside:
            return None
        x = inside[-1]
        if self.domain.integer:
            x = float(math.floor(x))
            return x if low < x else x + 1.0
        uncertain = abs(x - inside[-2]) if len(inside) > 1 else math.inf
        safe = SAFE * self.rtol * x
        if uncertain < x * math.sqrt(self.rtol):
            # the error of the next order is far smaller: land on the safe side of the root
            shifted = x + math.copysign(safe, met - missed)
            if low < shifted < high:
                x = shifted
        return x if low < x < high else None

    def _middle(self, a: float, b: float) -> float:
        """Geometric mean; for integers near each other the arithmetic mean, rounded down."""
        if self.domain.integer:
            if min(a, b) > 0.0 and max(a, b) > 4.0 * min(a, b):
                return float(math.floor(math.sqrt(a * b)))
            return float(math.floor(0.5 * (a + b)))
        return math.sqrt(a) * math.sqrt(b)

    # ---- ways to fail

    def _no_direction(self) -> NoReturn:
        """Raise the error for an excess that is the same at all parameters."""
        if not self.points:
            raise next(iter(self.unknown.values()))
        if max(self.points.values()) > 0.0:
            raise Unreachable(max(self.points, key=lambda x: (-self.points[x], x)))
        raise Unbounded(min(self.points), max(self.points))

    def _end(self, edge: float) -> float:
        """The end of a domain that meets the target completely; `Unbounded` if it has no end."""
        domain = self.domain
        if edge != domain.high and (edge != domain.low or domain.integer):
            return edge
        raise Unbounded(min(self.points), max(self.points))

    def _give_up(self) -> NoReturn:
        raise AccuracyError(
            f"no boundary found in {MAX_EVALUATIONS} evaluations: the target must be monotone in "
            "the parameter"
        )


def _differ(a: float, b: float) -> bool:
    """Whether two excesses are known and differ by more than rounding."""
    if math.isnan(a) or math.isnan(b):
        return False
    if math.isinf(a) or math.isinf(b):
        return a != b
    return abs(a - b) > DIFFERENT * max(1.0, abs(a))
