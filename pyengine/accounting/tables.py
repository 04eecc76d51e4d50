"""Proven bounds of δ(ε) of the worst strategy, tabulated on a uniform grid of ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyengine.accounting.bells import READ, Bells
from pyengine.accounting.dominated import NEGLIGIBLE, least_variation, without_dominated
from pyengine.accounting.kernels import (
    FARTHEST,
    GradedLaw,
    StepProfile,
    between,
    graded,
    kernel,
)
from pyengine.accounting.recursion import COARSER, MOST_COMPUTED, Recursion, StatePlan, Values
from pyengine.accounting.smooth import SmoothRecursion
from pyengine.accounting.steps_on_bells import first_step
from pyengine.engines.answers import Triple
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["SMALLEST", "Choosing", "Detail", "ProfileTable"]

FloatArray = npt.NDArray[np.float64]
V = TypeVar("V")

RATES = np.unique(np.round(8.0 * np.geomspace(1.0, 400.0, 90))) / 8.0  # tried exponential tilts θ
COARSE = 0.25  # first spacing, roughly in units of the smallest standard deviation of a loss
MOST_POINTS = 1e9  # most grid points, summed over the products of both sides: about 30 s
MOST_NODES = 1 << 22
BEYOND = 64.0
BITS = 26  # of spacings: their multiples up to 2^27 are doubles
MOST_ALIGNED = 1 << 10  # most spacings that are tried
SMALLEST = 1e-280  # smallest `Detail.left_out`
WHOLE = 20.0  # largest θ ε of a table that keeps its digits between 0 and ε
TILTED = 300.0  # largest exponent of a tilt
FINEST = 2.0**-10  # fine grid of the bells at tolerance 1e-6, in units of the coarse spacing
# (factor, depth): the spacing of the bells is multiplied by the factor for states with up to
# ``depth`` choices to come, since every choice makes W smoother
LEVELS = ((1, 4), (2, 16), (4, 64), (8, 256), (16, math.inf))
TILTS = 5  # tilts tried for the window, from a third of the best one on
DISTANCES = (1, 2, 4, 8, 16)  # in cells, between the two nodes of a line below a profile


@dataclass(frozen=True)
class Detail:
    """Resolution and range of a table.

    - ``spacing``: h of the grid of ε and log R, a multiple of a power of two
    - ``place``: the ε about which δ is to be relatively accurate
    - ``left_out``: truncation error that is allowed in δ at ``place``
    - ``tail``: truncation error that is allowed in V of a step at R < 1
    - ``reach``: the table must reach at least this ε
    - ``is_whole``: whether δ is to be relatively accurate down to ε = 0, too
    - ``stop``: larger ε are not needed
    - ``is_smooth``: whether V is a sum of bells, for which a coarser grid suffices
    """

    spacing: float
    place: float
    left_out: float
    tail: float
    reach: float = 0.0
    is_whole: bool = False
    stop: float = math.inf
    is_smooth: bool = False

    @property
    def rare(self) -> float:
        """The log R from which on it counts as infinite, with a relative e^-`BEYOND` at ``place``.

        A choice, made from few values for the sake of laws that are kept.
        """
        far = max(self.place, self.reach) + BEYOND
        return min(BEYOND * math.ceil(far / BEYOND), FARTHEST)


@dataclass(frozen=True, eq=False)
class ProfileTable:
    """δ(ε_j) at ε_j = jh, j = 0, 1, ...: values between proven bounds.

    ``rounding`` is the part of ``upper - lower`` due to rounding, which no finer grid reduces.
    """

    spacing: float
    lower: FloatArray
    value: FloatArray
    upper: FloatArray
    rounding: FloatArray

    @property
    def epsilon(self) -> FloatArray:
        """The nodes ε_j."""
        return np.asarray(np.arange(self.value.size) * self.spacing, dtype=np.float64)

    @property
    def t(self) -> FloatArray:
        """Values of t = e^ε at the nodes; δ is convex in t."""
        return np.asarray(fn.exp(self.epsilon))

    def larger(self, other: ProfileTable) -> ProfileTable:
        """The maximum of two profiles on the same grid."""
        size = min(self.value.size, other.value.size)
        pairs = (
            (self.lower, other.lower),
            (self.value, other.value),
            (self.upper, other.upper),
            (self.rounding, other.rounding),
        )
        return ProfileTable(
            self.spacing, *(np.maximum(mine[:size], its[:size]) for mine, its in pairs)
        )

    def lines(self, cell: npt.NDArray[np.intp]) -> list[tuple[FloatArray, FloatArray]]:
        """Lines below δ on cells [t_j, t_{j+1}], by their values at both ends.

        A chord of a convex function, extended, lies below it.  A line goes through a lower bound at
        one end of the cell and an upper bound at a node outside it.
        """
        h, found = self.spacing, []
        for distance in DISTANCES:
            reach = distance * h
            for near, far, share in (
                (cell, cell - distance, fn.expm1(h) / -fn.expm1(-reach)),
                (cell + 1, cell + 1 + distance, -fn.expm1(-h) / fn.expm1(reach)),
            ):
                known = (far >= 0) & (far < self.value.size)
                at = np.clip(far, 0, self.value.size - 1)
                end = self.lower[near]
                other = end + share * (end - self.upper[at])
                other -= (2.0 * ELEMENTARY + 8.0) * UNIT * (1.0 + share) * (end + self.upper[at])
                other = np.where(known, other, -math.inf)
                found.append((end, other) if near is cell else (other, end))
        return found

    def delta(self, epsilon: float) -> Triple | None:
        """δ at ε >= 0; None beyond the table."""
        j = int(epsilon / self.spacing)
        j += int((j + 1) * self.spacing <= epsilon) - int(j * self.spacing > epsilon)
        if j + 1 >= self.value.size:
            return None
        if epsilon == j * self.spacing:
            return float(self.value[j]), float(self.lower[j]), float(self.upper[j])
        share = fn.expm1(epsilon - j * self.spacing) / fn.expm1(self.spacing)
        error = (2.0 * ELEMENTARY + 8.0) * UNIT
        upper = self.upper[j] + share * (self.upper[j + 1] - self.upper[j])
        cell = np.array([j])
        lower = max(
            float((1.0 - share) * left[0] + share * right[0]) for left, right in self.lines(cell)
        )
        lower = max(lower, float(self.lower[j + 1]))
        value = _geometric(self.value[j], self.value[j + 1], epsilon / self.spacing - j)
        # the error of the share times the change of δ over the cell
        apart = error * float(self.upper[j])
        lower, upper = max(lower - apart, 0.0), float(upper) + apart
        return min(max(value, lower), upper), lower, upper

    def epsilon_of(self, delta: float) -> Triple | None:
        """The smallest ε with δ(ε) <= δ; None if it lies beyond the table."""
        if self.upper[0] <= delta:
            return 0.0, 0.0, 0.0
        below = np.flatnonzero(self.upper <= delta)
        if not below.size or int(below[0]) + 1 >= self.value.size:
            return None
        j = int(below[0])
        t = self.t
        error = 8.0 * UNIT * (1.0 + j * self.spacing)
        rise = (self.upper[j - 1] - delta) / (self.upper[j - 1] - self.upper[j])
        upper = min(fn.log(t[j - 1] + rise * (t[j] - t[j - 1])) + error, j * self.spacing)
        upper = max(upper, (j - 1) * self.spacing)
        lower = 0.0
        above = np.flatnonzero(self.lower > delta)
        if above.size:
            i = int(above[-1])
            lower = i * self.spacing
            for left, right in self.lines(np.array([i])):
                if left[0] > delta and right[0] < delta and math.isfinite(right[0]):
                    part = (left[0] - delta) / (left[0] - right[0])
                    found = fn.log(t[i] + part * (t[i + 1] - t[i])) - error
                    lower = max(lower, min(found, (i + 1) * self.spacing))
                elif right[0] >= delta:
                    lower = (i + 1) * self.spacing
        value = self._crossing(delta)
        return min(max(value, lower), upper), lower, upper

    def _crossing(self, delta: float) -> float:
        j = int(np.argmax(self.value <= delta))
        if j == 0:
            return 0.0
        high, low = self.value[j - 1], self.value[j]
        if low <= 0.0:
            return j * self.spacing
        return float((j - 1 + fn.log(high / delta) / fn.log(high / low)) * self.spacing)


def _geometric(first: float, second: float, share: float) -> float:
    if first <= 0.0 or second <= 0.0:
        return float(first + share * (second - first))
    return float(first ** (1.0 - share) * second**share)


class Choosing:
    """Tables for the worst strategy, for one order of the neighbours.

    ``menu`` has the profiles of the choices; a run begins in the last state of the plan.
    """

    def __init__(self, menu: Sequence[StepProfile], plan: StatePlan) -> None:
        self._used, self.plan = without_dominated(menu, plan)
        self.menu = tuple(menu[choice] for choice in self._used)
        # by how much left-out choices may increase δ; 0 if none is left out
        self._more = plan.depth * len(menu) * NEGLIGIBLE if len(self._used) < len(menu) else 0.0
        self._ends_of_windows: dict[Detail, tuple[float, float, float]] = {}
        smallest = 2.5 * least_variation(self.menu)
        self.coarse = _aligned(
            2.0 ** math.floor(fn.log2(min(COARSE * smallest, 0.125))),
            {end for profile in self.menu for end in profile.ends_of_losses},
        )

    def points(self, detail: Detail, sides: int = 1) -> float:
        """Cost of a table: grid points, summed over all products; infinite if it is too large."""
        if detail.is_smooth:
            first, last, _ = self._wide_window(detail)
            nodes = [float(last - first) / wider for wider, _ in LEVELS]
            # upper values compute every choice, lower ones only the best
            products = sum(
                nodes[_level(depth)] * (min(len(moves), MOST_COMPUTED) + len(moves)) / 2.0
                for depth, moves in zip(self.plan.depths, self.plan.moves, strict=True)
            )
        else:
            first, last, _ = self._window(detail)
            products = float(last - first) * max(self.plan.products, 1)
        return sides * products if last - first <= MOST_NODES else math.inf

    def table(self, detail: Detail) -> ProfileTable:
        """The profile of the initial state."""
        return self.tables(detail, [len(self.plan.moves) - 1])[0]

    def tables(self, detail: Detail, states: Sequence[int]) -> list[ProfileTable]:
        """The profiles of given states."""
        if detail.is_smooth:
            return self._smooth_tables(detail, states)
        above, below = self._both(detail, states)
        found = []
        for state in states:
            high, low = above[state], below[state]
            count = 1 - high.first
            weight = fn.exp(np.arange(count) * detail.spacing)
            error = (ELEMENTARY + 4.0) * UNIT
            part = slice(count - 1, None, -1)  # x = -ε
            plain = weight * low.values[part], weight * high.values[part]
            top = np.minimum(weight * high.bounds[part] * (1.0 + error) + self._more, 1.0)
            bottom = weight * low.bounds[part] * (1.0 - error)
            value = between(*plain, max(high.depth, 1))
            value = np.clip(value, bottom, np.maximum(top, bottom))
            rounding = np.maximum(plain[0] - bottom, 0.0) + np.maximum(top - plain[1], 0.0)
            found.append(ProfileTable(detail.spacing, bottom, value, top, rounding))
        return found

    def _both(
        self, detail: Detail, states: Sequence[int]
    ) -> tuple[dict[int, Values], dict[int, Values]]:
        """Upper and lower bounds of V for given states."""
        ends = math.ceil(min(detail.stop / detail.spacing, float(MOST_NODES))) + 2 * DISTANCES[-1]
        upper, lower = (self._recursion(detail, is_upper=side) for side in (True, False))
        return _side_by_side(
            lambda tell: upper.run(self.plan, states, tell=tell, lowest=-ends),
            lambda among: lower.run(self.plan, states, among=among, lowest=-ends),
        )

    def _grids(self, detail: Detail, tilt: float) -> list[tuple[Bells, float]]:
        """The bells of each of the `LEVELS` needed, with the largest number of choices to come."""
        finest = FINEST * self.coarse * math.sqrt(detail.tail / 1e-11)
        parts = 1 << min(max(math.ceil(fn.log2(detail.spacing / finest)), 3), 10)
        found: list[tuple[Bells, float]] = []
        bells = Bells(0.5 * detail.spacing, parts // 2, tilt)
        for wider, depth in LEVELS[: _level(self.plan.depth) + 1]:
            bells = Bells(wider * detail.spacing, wider * parts, tilt, bells)
            found.append((bells, depth))
        return found

    def _laws(self, detail: Detail, bells: Bells, *, is_upper: bool) -> list[GradedLaw]:
        """Laws on the fine grid: all nodes up to 4 standard deviations of the smallest choice."""
        nodes = math.ceil(32.0 * self.coarse / bells.spacing) * bells.parts
        return [
            graded(
                profile,
                bells.fine,
                nodes,
                bells.parts,
                self._ends(profile, detail),
                is_upper,
                detail.rare,
            )
            for profile in self.menu
        ]

    def least_width(self, detail: Detail, delta: float) -> float:
        """Estimate from below of the relative width of a smooth table's bounds at a given δ."""
        first, last, tilt = self._wide_window(detail)
        if last - first > MOST_NODES or delta <= 0.0:
            return math.inf
        grids = self._grids(detail, tilt)
        up, _ = self._moments(detail)
        growth = float(up[tilt == RATES][0]) + (1.0 - tilt) * detail.place
        laws = self._laws(detail, grids[-1][0], is_upper=True)
        worst = max(first_step(law, grids[0][0]).error for law in laws)
        return 2.0 * worst * fn.exp(min(growth, 700.0)) / delta

    def _smooth_tables(self, detail: Detail, states: Sequence[int]) -> list[ProfileTable]:
        first, last, tilt = self._wide_window(detail)
        _check_nodes(last - first)
        h, grids = detail.spacing, self._grids(detail, tilt)
        end = min(
            -first * h, 2.0 * max(detail.place, detail.reach) + 64.0 * h, detail.stop + 8.0 * h
        )
        count = READ * math.ceil(end / h)

        def recursion(is_upper: bool) -> SmoothRecursion:
            laws, made = self._laws(detail, grids[-1][0], is_upper=is_upper), None
            for bells, depth in grids:
                ends = math.floor(first * h / bells.spacing), math.ceil(last * h / bells.spacing)
                made = SmoothRecursion(
                    laws, bells, *ends, is_upper=is_upper, finer=made, depth=depth
                )
            if made is None:
                raise AssertionError("no bells")
            return made

        above, below = _side_by_side(
            lambda tell: recursion(True).run(self.plan, states, count, h / READ, tell=tell),
            lambda among: recursion(False).run(self.plan, states, count, h / READ, among=among),
        )
        found = []
        for state in states:
            top = np.minimum(np.nan_to_num(above[state].bounds, nan=1.0) + self._more, 1.0)
            bottom = np.minimum(np.nan_to_num(below[state].bounds, nan=0.0), top)
            middle = 0.5 * (above[state].values + below[state].values)
            value = np.clip(np.nan_to_num(middle, nan=0.0), bottom, top)
            found.append(ProfileTable(h / READ, bottom, value, top, np.zeros(count)))
        return found

    def choices(self, detail: Detail) -> tuple[int, list[npt.NDArray[np.int8]]]:
        """Index of the first node, and for each state the best choice at each node."""
        states = range(len(self.plan.moves))
        found = self._recursion(detail, is_upper=True).run(self.plan, states, with_choices=True)
        best = [found[state].choices for state in states]
        number = np.array([*self._used, -1], dtype=np.int8)
        return found[0].first, [number[choice] for choice in best if choice is not None]

    def _recursion(self, detail: Detail, *, is_upper: bool) -> Recursion:
        first, last, tilt = self._window(detail)
        _check_nodes(last - first)
        # r times the A-mass at infinity must be small relative to W even at the smallest r
        below = -first * detail.spacing - detail.place
        cut = detail.left_out * fn.exp(-min((tilt - 1.0) * below, TILTED))
        inner = replace(detail, left_out=max(cut, SMALLEST))
        kernels = [
            kernel(profile, detail.spacing, *self._ends(profile, inner), is_upper, detail.rare)
            for profile in self.menu
        ]
        first, last = first // COARSER * COARSER, -(-last // COARSER) * COARSER
        outline = None
        if is_upper and len(self.menu) > 2:
            wide = COARSER * detail.spacing
            ends = (self._ends(profile, inner) for profile in self.menu)
            rough = [
                kernel(profile, wide, *pair, True, detail.rare)
                for profile, pair in zip(self.menu, ends, strict=True)
            ]
            outline = Recursion(rough, wide, first // COARSER, last // COARSER, tilt)
        return Recursion(kernels, detail.spacing, first, last, tilt, outline)

    def _ends(self, profile: StepProfile, detail: Detail) -> tuple[float, float]:
        """How far the nodes of a step must reach below and above log k = 0."""
        cuts = (detail.tail, detail.left_out / max(self.plan.depth, 1))
        low, high = (
            max(profile.end(cut, side, detail.rare), detail.spacing or self.coarse)
            for cut, side in zip(cuts, (-1, 1), strict=True)
        )
        return low, high

    def _moments(
        self,
        detail: Detail,
        few: float = math.inf,
        tilt: float = 1.0,
    ) -> tuple[FloatArray, FloatArray]:
        """Logs of the largest E_B R^ρ and E_B R^-ρ of a run over all strategies, at all `RATES`.

        Nodes beyond which E_B R^θ of a step has no more than e^-few, θ the tilt, are left out.
        """
        logs = []
        for profile in self.menu:
            ends = self._ends(profile, detail)
            if sum(ends) > 16.0 * MOST_NODES * self.coarse:
                raise AccuracyError(
                    "the worst strategy would need a grid of more than "
                    f"{16 * MOST_NODES:,} likelihood ratios: a step of the menu hardly reveals "
                    "anything, or only in rare cases"
                )
            step = kernel(profile, self.coarse, *ends, True, detail.rare)
            nodes = np.arange(step.first, step.last + 1) * self.coarse
            with np.errstate(divide="ignore"):
                mass = fn.log(step.weights)
            if few < math.inf:
                tilted = mass + tilt * nodes
                with np.errstate(divide="ignore"):
                    sums = fn.log(np.cumsum(fn.exp(tilted - tilted.max())[::-1])[::-1])
                kept = sums + tilted.max() > -few
                nodes, mass = nodes[kept], mass[kept]
            logs.append(
                [
                    [float(fn.log_sum(mass + sign * rate * nodes)) for rate in RATES]
                    for sign in (1.0, -1.0)
                ]
            )
        gains = np.array(logs)
        up, down = (self.plan.most(gains[:, side])[-1] for side in (0, 1))
        return up, down

    def rare(self, detail: Detail) -> float:
        """A-mass of losses that count as infinite in the run that has most of them, roughly."""
        masses = np.array([[profile.least(detail.rare)] for profile in self.menu])
        return float(self.plan.most(masses)[-1, 0])

    def _wide_window(self, detail: Detail) -> tuple[int, int, float]:
        """As `_window`, but such that W e^{-θx} is small beyond both ends; no bound rests on it."""
        alike = replace(detail, spacing=0.0, is_smooth=True)
        if alike not in self._ends_of_windows:
            self._ends_of_windows[alike] = self._wide_ends(alike)
        low, high, tilt = self._ends_of_windows[alike]
        h = detail.spacing
        low, high = max(low, detail.place + 16.0 * h, detail.reach + h), max(high, 16.0 * h)
        if not low + high <= MOST_NODES * h:
            return -MOST_NODES, MOST_NODES, tilt
        return -math.ceil(low / h) - 1, math.ceil(high / h) + 1, tilt

    def _wide_ends(self, detail: Detail) -> tuple[float, float, float]:
        """How far a window reaches below and above 0, in log R, and the tilt."""
        up, down = self._moments(detail)
        place = detail.place
        ends = [max(self._ends(profile, detail)) for profile in self.menu]
        most = TILTED / max(ends)  # no square of a tilted number overflows
        if detail.is_whole and place > 0.0:
            most = min(most, WHOLE / place)
        size = np.where(max(most, 1.0) >= RATES, up - RATES * place, math.inf)
        best = RATES[int(np.argmin(size))]
        found = []
        # a smaller tilt than the best one may allow a much smaller window
        for i in np.unique(np.searchsorted(RATES, np.geomspace(max(best / 3.0, 1.0), best, TILTS))):
            tilt = float(RATES[i])
            # δ is e^ε W, and the error of W e^{-θx} must be a part of ``left_out``
            rest = -fn.log(detail.left_out) + fn.log(10.0 * max(self.plan.depth, 1))
            rest += (1.0 - tilt) * place
            # rare large losses, which dominate the moments of high rates, are left out if possible
            few = rest + float(up[i]) + fn.log(max(self.plan.depth, 1))
            kept, _ = self._moments(detail, few, tilt)
            more = tilt < RATES
            low = float(((kept + rest)[more] / (RATES - tilt)[more]).min(initial=math.inf))
            high = float(((down + rest) / (RATES + tilt)).min())
            found.append((float(size[i]) + 2.0 * fn.log(low + max(high, 0.0)), low, high, tilt))
        return min(found)[1:]

    def _window(self, detail: Detail) -> tuple[int, int, float]:
        """First and last node, and the tilt: heuristic choices; the bounds hold for any others."""
        up, down = self._moments(detail)
        place = detail.place
        rest = -fn.log(detail.left_out) + fn.log(10.0 * max(self.plan.depth, 1))
        rest += detail.place  # δ is e^ε W
        rates = RATES
        # beyond the ends of the window the B-mass is small, or the values are
        farthest, lowest = (float(((gain + rest) / rates).min()) for gain in (up, down))
        last = min(farthest - place, lowest)
        # V is at least r times the A-mass at rare losses, and so never small below
        alone = self.rare(detail)
        first = -min(farthest if alone == 0.0 else math.inf, place + lowest)
        first = min(first, -place - 8.0 * detail.spacing, -detail.reach)
        size = up - rates * place - fn.log(rates)
        if alone > 0.0:
            size = fn.logaddexp(size, up + fn.log(alone) - (rates - 1.0) * (first + place))
        tilt = float(rates[int(np.argmin(size))])
        low = math.floor(first / detail.spacing) - 1
        high = math.ceil(max(last, 8.0 * detail.spacing) / detail.spacing) + 1
        reach = (high - low) * detail.spacing  # no square of a tilted number overflows
        most = min(TILTED / reach, WHOLE / place if detail.is_whole and place > 0.0 else math.inf)
        tilt = max(1.0, min(tilt, math.floor(8.0 * most) / 8.0))
        return low, high, tilt


def _aligned(spacing: float, places: set[float]) -> float:
    """The spacing, or one up to twice smaller, of whose multiples all places are nearest to one.

    Most laws have atoms at the ends of their losses, and between nodes each costs a part of a cell.
    """
    best, found = 0.125 * len(places), spacing
    known = np.array([place for place in places if spacing <= place < MOST_NODES * spacing])
    for place in known.tolist():
        least = math.ceil(place / spacing)
        fraction, exponent = np.frexp(
            place / np.arange(least, min(2 * least, least + MOST_ALIGNED))
        )
        tried = np.ldexp(np.floor(np.ldexp(fraction, BITS)), exponent - BITS)
        at = np.divide.outer(known, tried)
        off = np.abs(at - np.round(at)).sum(axis=0)
        if off.min() < best:
            best, found = float(off.min()), float(tried[int(np.argmin(off))])
    return found


def _level(depth: int) -> int:
    """Index in `LEVELS` for states with up to ``depth`` choices to come."""
    return next(i for i, (_, most) in enumerate(LEVELS) if depth <= most)


def _side_by_side(
    upper: Callable[[Callable[[tuple[int, ...]], object]], V],
    lower: Callable[[Callable[[int], Sequence[int]]], V],
) -> tuple[V, V]:
    """Upper and lower values in two threads; the lower ones try only what the upper ones report."""
    numbers: SimpleQueue[tuple[int, ...] | None] = SimpleQueue()

    def among(_: int) -> tuple[int, ...]:
        told = numbers.get()
        if told is None:
            raise RuntimeError("the upper values ended before the lower ones")
        return told

    with ThreadPoolExecutor(1) as pool:
        below = pool.submit(lower, among)
        try:
            above = upper(numbers.put)
        finally:
            numbers.put(None)
        return above, below.result()


def _check_nodes(number: int) -> None:
    if number > MOST_NODES:
        raise AccuracyError(
            f"the worst strategy would need a grid of {number:,} likelihood ratios, more than "
            f"{MOST_NODES:,}: a larger tolerance needs fewer"
        )
