"""Bounds for the worst strategy of an adaptive run, from tables refined to the tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine.accounting.kernels import ORDERS, REVERSED, StepProfile
from pyengine.accounting.recursion import StatePlan
from pyengine.accounting.tables import MOST_POINTS, SMALLEST, Choosing, Detail, ProfileTable
from pyengine.engines.answers import Answer, ByFunction, Triple, names
from pyengine.engines.within import BELOW_DOUBLES
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["FARTHEST", "TOLERANCE", "WorstCase"]

FloatArray = npt.NDArray[np.float64]
Tables = dict[str, ProfileTable]
# For each order: the ε at which accuracy is needed, and the ε which the table must reach.
Places = dict[str, tuple[float, float]]
# From tables: a value with its bounds, their relative width, and where accuracy is needed.
Found = tuple[Triple, float, Places]

TOLERANCE = 1e-6  # default relative width of bounds,
WIDEST = 1e-3  # and the largest accepted by default if `MOST_POINTS` do not suffice
ROUNDS = 12  # most refinements of a table
SMOOTH_FROM = 3e7  # grid points of plain tables above which smooth ones are tried
MOST_SMOOTH = 4e9  # most grid points of smooth tables: one or two minutes
FIRST_GAIN = 1.8  # factor by which the first, coarse tables overestimate the points needed
ROUGH = 0.3  # relative width above which a width predicts nothing about finer grids
NAME = "adaptive"
FARTHEST = 600.0  # largest ε


class WorstCase(ByFunction):
    """Bounds for the worst strategy under one adjacency.

    The tolerance is relative to the answer; for ε it is that of δ at this ε.  ``largest`` has for
    each order the largest loss of a run, and the largest probability that it is infinite.
    """

    def __init__(
        self,
        menu: tuple[Mechanism, ...],
        plan: StatePlan,
        adjacency: str,
        tolerance: float | None,
        largest: dict[str, tuple[float, float]],
    ) -> None:
        self._adjacency = adjacency
        self._orders = ("add", "remove") if adjacency == "add_remove" else (adjacency,)
        self._tolerance = TOLERANCE if tolerance is None else tolerance
        self._widest = WIDEST if tolerance is None else self._tolerance
        self._largest = largest
        self._choosing: dict[str, Choosing] = {
            order: Choosing([StepProfile(step, order) for step in menu], plan) for order in ORDERS
        }
        self._latest: Tables = {}
        self._detail: dict[str, Detail] = {}

    def _own(self, name: str, x: FloatArray) -> Answer:
        asks: dict[str, Callable[[float], Triple]] = {
            "trade_off": partial(self._error, of_beta=True),
            "gamma_bound": partial(self._error, of_beta=False),
            "delta": self._delta,
            "epsilon": self._epsilon,
        }
        found = np.array([asks[name](float(at)) for at in x]).reshape(-1, 3)
        value, lower, upper = found.T.copy()
        return Answer(value, lower, upper, names(NAME, x.size), True)

    def _delta(self, epsilon: float) -> Triple:
        far = [o for o in self._orders if epsilon < self._largest[o][0] * (1.0 + 1e-12)]
        if not far:
            return self._infinite(self._orders)
        if epsilon > FARTHEST:
            raise AccuracyError(
                f"the profile of the worst strategy is known up to epsilon = {FARTHEST:g}, got "
                f"{epsilon!r}"
            )
        choosing = [self._choosing[order] for order in far]
        if choosing[0].plan.depth == 1:  # one step: the largest δ of all choices
            at = np.array([epsilon])
            single = [each.menu[i].at(at) for each in choosing for i, _ in each.plan.moves[-1]]
            return _largest(
                [(0.5 * float(a[0] + b[0]), float(a[0]), float(b[0])) for a, b in single]
            )
        places = dict.fromkeys(far, (epsilon, epsilon))

        def ask(tables: Tables) -> Found | None:
            found = [tables[order].delta(epsilon) for order in far]
            known = [triple for triple in found if triple is not None]
            if len(known) < len(found):
                return None
            triple = _largest(known)
            return triple, _width(triple), places

        return self._narrowed(f"delta({epsilon!r})", ask, places)

    def _epsilon(self, delta: float) -> Triple:
        if delta >= 1.0:
            return 0.0, 0.0, 0.0
        if delta == 0.0:
            return self._pure()

        def ask(tables: Tables) -> Found | None:
            table = self._profile(tables, self._orders)
            found = table.epsilon_of(delta)
            if found is None:
                return None
            value, lower, upper = found
            wide = table.delta(lower), table.delta(upper)
            if wide[0] is None or wide[1] is None:
                return None
            apart = 0.0 if lower == upper else (wide[0][2] - wide[1][1]) / delta
            return found, apart, dict.fromkeys(self._orders, (value, value))

        places = {o: (min(1.0, 0.5 * self._largest[o][0]), 0.0) for o in self._orders}
        return self._narrowed(f"epsilon({delta!r})", ask, places)

    def _pure(self) -> Triple:
        """ε at δ = 0: the largest loss of any run."""
        value = max(self._largest[order][0] for order in self._orders)
        if not math.isfinite(value):
            return value, value, value
        return value, value * (1.0 - 1e-12), value * (1.0 + 1e-12)

    def _infinite(self, orders: tuple[str, ...]) -> Triple:
        """δ at ε = ∞: the largest probability of an infinite loss."""
        value = max(self._largest[order][1] for order in orders)
        return value, value * (1.0 - 1e-12), min(value * (1.0 + 1e-12), 1.0)

    def _error(self, alpha: float, *, of_beta: bool) -> Triple:
        """β or γ: with t = e^ε, γ = min α t + H_t over t > 0 for the profile H of the reverse."""
        if alpha == 1.0:
            return (0.0 if of_beta else 1.0,) * 3
        if self._adjacency == "add_remove":
            above = below = self._orders
        else:  # T(A, B) has the conjugate H(B‖A), whose values at t < 1 are those of H(A‖B)
            above, below = (REVERSED[self._adjacency],), (self._adjacency,)
        orders = tuple({*above, *below})
        if alpha == 0.0:
            value, lower, upper = self._infinite(above)
            return (1.0 - value, 1.0 - upper, 1.0 - lower) if of_beta else (value, lower, upper)

        def ask(tables: Tables) -> Found:
            gamma, at = _least_gamma(self._profile(tables, above), alpha)
            beta, other = _largest_beta(self._profile(tables, below), alpha)
            is_far = gamma[0] <= 1.0 - beta[0]  # the minimum lies at t >= 1
            # the tables must reach so far that beyond them α t > γ and (1 - α) / t < β
            far = fn.log(min(gamma[2], 1.0 - beta[1]) / alpha) + 0.01
            rest = (1.0 - alpha) / max(beta[1], 1.0 - gamma[2], 1e-300)
            near = min(max(fn.log(rest), 0.0) + 0.01, FARTHEST)
            sides = [
                (above, at if is_far else 0.0, far),
                (below, 0.0 if is_far else other, near),
            ]
            places = dict.fromkeys(orders, (0.0, 0.0))
            for side, place, reach in sides:
                for order in side:
                    old = places[order]
                    places[order] = (max(place, old[0]), max(reach, old[1]))
            triple = _joined(gamma, beta, of_beta=of_beta)
            return triple, _width(triple), places

        what = f"{'trade_off' if of_beta else 'gamma_bound'}({alpha!r})"
        return self._narrowed(what, ask, dict.fromkeys(orders, (1.0, 1.0)), is_whole=True)

    def _profile(self, tables: Tables, orders: tuple[str, ...]) -> ProfileTable:
        first = tables[orders[0]]
        return first if len(orders) == 1 else first.larger(tables[orders[1]])

    def _narrowed(
        self,
        what: str,
        ask: Callable[[Tables], Found | None],
        places: Places,
        *,
        is_whole: bool = False,
    ) -> Triple:
        """Refine tables until the bounds of ``ask(tables)`` meet the tolerance.

        ``what`` names the question in errors; ``places`` is where accuracy is needed first.
        AccuracyError if the cost limits do not allow the tolerance, or `WIDEST` by default.
        """
        orders = tuple(places)
        if all(order in self._latest for order in orders):
            found = ask(self._latest)
            if found is not None and found[1] <= self._tolerance:
                return found[0]
        tail = 1e-5 * self._tolerance
        spacing = min(self._choosing[order].coarse for order in orders)
        details = {
            order: Detail(spacing, place, 1e-20, tail, reach, is_whole)
            for order, (place, reach) in places.items()
        }
        narrowest, before, goal = None, math.inf, self._tolerance
        plain: dict[str, Detail] = {}  # to continue with if smooth tables do not converge
        for _ in range(ROUNDS):
            tables = {order: self._choosing[order].table(details[order]) for order in orders}
            found = ask(tables)
            if found is None:  # the table is too short
                details = {
                    order: replace(
                        at,
                        place=min(2.0 * at.place, FARTHEST),
                        left_out=max(at.left_out**1.5, SMALLEST),
                        is_smooth=False,
                    )
                    for order, at in details.items()
                }
                continue
            triple, width, places = found
            if narrowest is None or width <= narrowest[1]:
                narrowest = found
            if width <= goal or triple[2] <= BELOW_DOUBLES:
                self._latest = tables
                return triple
            was_smooth = any(at.is_smooth for at in details.values())
            if was_smooth and width > 0.5 * before:
                details, before = plain, math.inf
            elif not was_smooth and self._is_rounded(tables, details, places):
                break  # no finer table helps
            else:
                # the width is O(h²) for smooth laws, and O(h) with atoms between nodes
                is_slow = not was_smooth and before < ROUGH and width > 0.1 * before
                before = width
                points = self._points(details)
                needed = points * math.sqrt(width / (0.8 * goal))
                finer = {
                    order: self._finer(details[order], tables[order], place, width, is_slow=is_slow)
                    for order, place in places.items()
                }
                other = None
                if not plain and width < ROUGH and needed > SMOOTH_FROM:
                    other = self._smooth(finer, tables, min(0.5 * needed, MOST_SMOOTH))
                if other is not None:
                    plain, finer, before = finer, other, math.inf
                elif not was_smooth and needed > MOST_POINTS and width < ROUGH:
                    if needed > FIRST_GAIN * MOST_POINTS:
                        goal = 2.0 * width * (2.0 * points / MOST_POINTS) ** 2
                    if goal > self._widest:
                        raise self._too_wide(what, triple, goal)
                    while self._points(finer) > MOST_POINTS:
                        finer = {
                            order: replace(at, spacing=2.0 * at.spacing)
                            for order, at in finer.items()
                        }
                    if width <= goal or all(
                        at.spacing >= details[order].spacing for order, at in finer.items()
                    ):
                        break
                details = finer
            is_smooth = any(at.is_smooth for at in details.values())
            if is_smooth and self._points(details) > MOST_SMOOTH:
                details, before, is_smooth = plain, math.inf, False
            if not is_smooth and self._points(details) > MOST_POINTS:
                break
        if narrowest is None:
            raise AccuracyError(f"the worst strategy's {what} is below what the recursion keeps")
        triple, width, _ = narrowest
        if width <= self._widest:
            return triple
        raise self._too_wide(what, triple, 1.5 * width)

    def _too_wide(self, what: str, triple: Triple, reach: float) -> AccuracyError:
        advice = (
            f"tolerance={reach:.1g} or more gives this answer"
            if reach < ROUGH
            else "fewer steps, more noise or a smaller menu may be within reach"
        )
        return AccuracyError(
            f"the bounds {triple[1]!r} and {triple[2]!r} of the worst strategy's {what} are wider "
            f"than asked; {advice}"
        )

    def _points(self, details: dict[str, Detail]) -> float:
        """Cost of tables: grid points, summed over all products of both sides."""
        return sum(self._choosing[order].points(at, 2) for order, at in details.items())

    def _delta_at(self, order: str, tables: Tables, detail: Detail) -> float:
        """The value δ at the ε where a table is to be accurate."""
        found = tables[order].delta(min(detail.place, float(tables[order].epsilon[-2])))
        return 0.0 if found is None else found[0]

    def _smooth(
        self, details: dict[str, Detail], tables: Tables, most: float
    ) -> dict[str, Detail] | None:
        """Details of the coarsest smooth tables that may meet the tolerance.

        None if they would need more than ``most`` grid points.
        """
        found = {}
        for order, detail in details.items():
            choosing = self._choosing[order]
            # after few steps W is less smooth
            share = 1e-6 / self._tolerance * 1600.0 / max(choosing.plan.depth, 1)
            halvings = min(max(math.ceil(0.5 * fn.log2(share)), 0), 5) + 4
            spacing = 2.0 ** (math.floor(fn.log2(choosing.coarse)) - halvings)
            at = replace(detail, spacing=spacing, is_smooth=True)
            delta = self._delta_at(order, tables, detail)
            if choosing.rare(at) > self._tolerance * delta:  # bells leave it out
                return None
            while choosing.points(at, 2) < most:
                if choosing.least_width(at, delta) < 0.7 * self._tolerance:
                    break
                at = replace(at, spacing=0.5 * at.spacing)
            else:
                return None
            found[order] = at
        return found if self._points(found) < most else None

    def _is_rounded(self, tables: Tables, details: dict[str, Detail], places: Places) -> bool:
        """Whether rounding alone makes the bounds too wide where tables are to be accurate."""
        for order, (place, _) in places.items():
            table = tables[order]
            if abs(place - details[order].place) > 0.02 * (1.0 + place):
                continue
            at = min(int(place / table.spacing), table.value.size - 1)
            if self._adjacency == "add_remove" and self._is_smaller(table, tables, at):
                continue
            if table.value[at] > 0.0 and table.rounding[at] > self._tolerance * table.value[at]:
                return bool(table.upper[at] < (1.0 + ROUGH) * table.lower[at])
        return False

    def _is_smaller(self, table: ProfileTable, tables: Tables, at: int) -> bool:
        """Whether the other order is known to have a larger δ at a node."""
        lower = [each.lower[at] for each in tables.values() if at < each.lower.size]
        return bool(table.upper[at] < max(lower, default=0.0))

    def _finer(
        self,
        detail: Detail,
        table: ProfileTable,
        place: tuple[float, float],
        width: float,
        *,
        is_slow: bool,
    ) -> Detail:
        """The detail of the next table, from the ``width`` of the bounds found with this one."""
        at = table.delta(min(place[0], float(table.epsilon[-2])))
        delta = at[0] if at is not None and at[0] > 0.0 else detail.left_out
        left_out = max(1e-2 * self._tolerance * delta, SMALLEST)
        if width < ROUGH:
            ratio = (width / (0.8 * self._tolerance)) ** (2 if is_slow else 1)
            # the lower bounds of a coarse table are worse than O(h²) predicts
            halvings = min(max(1, math.ceil(0.5 * fn.log2(ratio))), 4 if width > 1e-3 else 16)
        else:
            halvings = 0 if left_out < 1e-3 * detail.left_out else 2
        return replace(
            detail,
            spacing=detail.spacing * 2.0**-halvings,
            place=place[0],
            left_out=left_out,
            reach=place[1],
        )


def _largest(found: list[Triple]) -> Triple:
    return tuple(max(triple[i] for triple in found) for i in range(3))  # type: ignore[return-value]


def _width(triple: Triple) -> float:
    value, lower, upper = triple
    if upper == lower:
        return 0.0
    return (upper - lower) / value if value > 0.0 else math.inf


def _least_gamma(table: ProfileTable, alpha: float) -> tuple[Triple, float]:
    """The minimum of α t + H_t over t >= 1 with bounds, and the ε where it is attained."""
    t, error = table.t, (ELEMENTARY + 4.0) * UNIT
    upper = float((alpha * t + table.upper).min()) * (1.0 + error)
    values = alpha * t + table.value
    at = int(np.argmin(values))
    cells = np.arange(t.size - 1)
    least = alpha * t[:-1] + table.lower[1:]  # as H falls
    for left, right in table.lines(cells):
        ends = np.minimum(alpha * t[:-1] + left, alpha * t[1:] + right)
        np.maximum(least, ends, out=least)
    # beyond the table α t is at least as large as at its end
    lower = min(float(least.min()), alpha * float(t[-1])) * (1.0 - 4.0 * error)
    value = _at_vertex(values, at)
    return (min(max(value, lower), upper), lower, upper), at * table.spacing


def _largest_beta(table: ProfileTable, alpha: float) -> tuple[Triple, float]:
    """The maximum of (1 - α - H_t) / t over t >= 1 with bounds, and the ε where it is attained."""
    t, error, rest = table.t, (ELEMENTARY + 6.0) * UNIT, 1.0 - alpha
    apart = 4.0 * UNIT  # rounding error of 1 - α - H
    lower = max(float(((rest - table.upper - apart) / t).max()) * (1.0 - error), 0.0)
    values = (rest - table.value) / t
    at = int(np.argmax(values))
    most = (rest - table.lower[1:] + apart) / t[:-1]  # as H falls
    for left, right in table.lines(np.arange(t.size - 1)):
        ends = np.maximum((rest - left + apart) / t[:-1], (rest - right + apart) / t[1:])
        np.minimum(most, ends, out=most)
    upper = max(float(most.max()), rest / float(t[-1])) * (1.0 + 4.0 * error)
    upper = max(upper, lower)
    value = -_at_vertex(-values, at)
    return (min(max(value, lower), upper), lower, upper), at * table.spacing


def _at_vertex(values: FloatArray, at: int) -> float:
    """Minimum of the parabola through the least value, at index ``at``, and its two neighbours."""
    if not 0 < at < values.size - 1:
        return float(values[at])
    left, middle, right = (float(value) for value in values[at - 1 : at + 2])
    bend = left - 2.0 * middle + right
    return middle - (right - left) ** 2 / (8.0 * bend) if bend > 0.0 else middle


def _joined(gamma: Triple, beta: Triple, *, of_beta: bool) -> Triple:
    """Combine both sides: γ = min(γ over t >= 1, 1 - β over t <= 1), or β = 1 - γ."""
    up, down = 1.0 + 4.0 * UNIT, 1.0 - 4.0 * UNIT
    if of_beta:
        value = max(beta[0], 1.0 - gamma[0])
        lower = max(beta[1], 1.0 - gamma[2] * up - 2.0 * UNIT, 0.0)
        upper = min(max(beta[2], 1.0 - gamma[1] * down + 2.0 * UNIT), 1.0)
    else:
        value = min(gamma[0], 1.0 - beta[0])
        lower = max(min(gamma[1], 1.0 - beta[2] * up - 2.0 * UNIT), 0.0)
        upper = min(gamma[2], 1.0 - beta[1] * down + 2.0 * UNIT, 1.0)
    return min(max(value, lower), upper), lower, upper
