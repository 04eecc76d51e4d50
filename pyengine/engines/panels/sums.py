"""Masses of N equal Laplace steps on both sides of a threshold, and their profile, with bounds.

The law of the sum under A is known times e^(θ x) for a few tilts θ, x being the sum's distance from
the least loss in lengths d of a step's support.  B's law is e^loss times A's, which is the tilt θ -
d of B's.  Every mass is the integral of a weight of at most 1 against a tilted law, from the
threshold on to the side on which the weight falls; its complement is the other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.exact.levels import SUBNORMAL, Tails
from pyengine.engines.panels.chords import bound_for
from pyengine.engines.panels.legendre import EXTENDED, Extended, ExtendedArray
from pyengine.engines.panels.one_step import one_step
from pyengine.engines.panels.ordered import FiniteLosses, RoughTails, tails_of
from pyengine.engines.panels.place import PanelRow, row_of
from pyengine.engines.panels.power import power
from pyengine.engines.panels.shape import StepShape
from pyengine.engines.panels.tilts import Tilts, budget_for, panels_for, tilts_of
from pyengine.laws.fine import left_of
from pyengine.numerics.exact_numbers import CONTEXT, two_doubles
from pyengine.numerics.rounding import UNIT
from pyengine.special import ndtri

__all__ = ["LaplaceOrder", "LaplaceSteps"]

FloatArray = npt.NDArray[np.float64]

MOST_JUMPING = 50  # steps
ROOM = 0.25  # around where a threshold is expected, in standard deviations


class TiltedSum(NamedTuple):
    """The law of a sum times e^(θ x), divided by its scale, seen from either end.

    ``rows`` are the law and its mirror image, from the least loss and from the largest one.
    """

    rows: tuple[tuple[PanelRow, PanelRow], tuple[PanelRow, PanelRow]]
    error: float


@kept(128)
def tilted_sum(shape: StepShape, number: int, tilt: float, log_scale: float) -> TiltedSum | None:
    """Return the law of a number of tilted steps; None where no panels are short enough."""
    chosen = panels_for(shape, tilt, log_scale, number)
    if chosen is None:
        return None
    level, size = chosen
    step = one_step(shape, tilt, log_scale, level, size)
    law = power(step, number, size, budget_for(shape))
    low = row_of(law)
    high = low.seen_from(float(number))
    return TiltedSum(((low, low.mirrored), (high, high.mirrored)), law.error)


class _Masses(NamedTuple):
    """Masses above and below thresholds, and bounds on their absolute errors."""

    above: FloatArray
    below: FloatArray
    above_error: FloatArray
    below_error: FloatArray


class LaplaceSteps:
    """Equal Laplace steps of an ordered pair (A, B), on Poisson samples or not.

    Parameters
    ----------
    shape : StepShape
        One step, A without the record.
    number : int
        Steps, at least 1.
    """

    def __init__(self, shape: StepShape, number: int) -> None:
        self.shape, self.number = shape, number
        n = Decimal(number)
        self._ends = tuple(two_doubles(CONTEXT.multiply(n, end)) for end in shape.ends)
        self._length = shape.length
        self._last: tuple[int, TiltedSum | None] = (-1, None)

    @cached_property
    def tilts(self) -> Tilts:
        """The tilts that serve."""
        return tilts_of(self.shape, self.number)

    @property
    def ends(self) -> tuple[float, float]:
        """The doubles next to the least and to the largest sum of losses."""
        return self._ends[0][0], self._ends[1][0]

    @property
    def length(self) -> float:
        """The length of a step's support, rounded."""
        return float(self._length)

    def place_of(self, c: FloatArray) -> FloatArray:
        """Places of losses from the least one on, rounded; for choices only."""
        return np.asarray((c - self._ends[0][0]) / float(self._length))

    def loss_at(self, place: npt.ArrayLike) -> FloatArray:
        """Losses at places, rounded."""
        return np.asarray(self._ends[0][0] + float(self._length) * np.asarray(place))

    def _gaps(self, c: FloatArray, low: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Distances of losses c + low from the least and to the largest one; errors of 4 units."""
        (first, first_low), (last, last_low) = self._ends
        up = c - first
        up = up + ((left_of(c, np.full(c.size, -first), up) - first_low) + low)
        down = last - c
        down = down + ((left_of(np.full(c.size, last), -c, down) + last_low) - low)
        return np.asarray(up), np.asarray(down)

    def _groups(
        self,
        c: FloatArray,
        low: FloatArray,
        at: npt.NDArray[np.intp],
        ask: Callable[[TiltedSum, int, bool, FloatArray, npt.NDArray[np.intp]], None],
    ) -> tuple[FloatArray, FloatArray]:
        """Ask for thresholds inside of the support by tilt and by the nearer end; their gaps."""
        up, down = self._gaps(c, low)
        inside = (up >= 0.0) & (down >= 0.0)
        nearer = up > down
        for index in np.unique(at[inside]):
            found = self._tilted(int(index))
            if found is None:
                continue
            for high in (False, True):
                chosen = np.flatnonzero(inside & (at == index) & (nearer == high))
                if chosen.size:
                    gap = down[chosen] if high else up[chosen]
                    place = gap / float(self._length)
                    ask(found, int(index), high, -place if high else place, chosen)
        return up, down

    def _log_scale(
        self, index: int, high: bool, place: FloatArray
    ) -> tuple[ExtendedArray, FloatArray]:
        """Log of what tilted integrals from a place are divided by; a bound on relative errors."""
        tilt = Extended(self.tilts.tilt[index])
        origin = self.number if high else 0
        log = Extended(self.number) * Extended(self.tilts.log_scale[index])
        log = log - tilt * (origin + place.astype(Extended))
        size = self.number * (abs(self.tilts.log_scale[index]) + abs(tilt) + 1.0)
        return np.asarray(log), 8.0 * EXTENDED * float(size) + np.zeros(place.size)

    def _integral(
        self,
        found: TiltedSum,
        index: int,
        high: bool,
        place: FloatArray,
        *,
        of_b: bool,
        bent: bool = False,
    ) -> tuple[FloatArray, FloatArray, bool]:
        """A mass of A or B beyond places, its error, and whether it is the one above.

        With ``bent`` it is the integral of 1 - e^-y instead, y the distance of the loss.
        """
        d = float(self._length)
        tilt = float(self.tilts.tilt[index])
        rate = tilt - d if of_b else tilt
        is_above = rate >= 0.0 if not bent else of_b
        if bent and (rate < 0.0) == of_b and rate != 0.0:
            raise AssertionError(f"a profile of tilt {tilt!r} has a weight above 1")
        row = found.rows[high][0 if is_above else 1]
        total, rounding = row.beyond(
            abs(rate),
            place if is_above else -place,
            d if bent else 0.0,
            closed=not is_above,  # an atom at the threshold lies below
        )
        log, relative = self._log_scale(index, high, place)
        if of_b:
            first, low = self._ends[1 if high else 0]
            log = log + (Extended(first) + Extended(low)) + self._length * place
            relative = relative + 8.0 * EXTENDED * (abs(first) + 1.0)
        # the rate is rounded, and so is the length
        relative = relative + 4.0 * UNIT * (1.0 + (abs(tilt) + d) * self.number)
        scale = np.exp(log).astype(float) * (1.0 + 2.0 * UNIT)
        weight = 1.0
        if bent:  # the largest value of e^(-r t) (1 - e^(-d t)), t at most the number of steps
            weight = min(d / (abs(rate) + d), -math.expm1(-d * self.number)) * (1.0 + 1e-12)
        error = scale * (weight * found.error + rounding) + np.abs(scale * total) * relative
        if bent:  # what rounding moves the threshold by counts with the mass beyond it
            error = error + scale * 1.01 * 4.0 * UNIT * d * np.abs(place)
        return scale * total, error, is_above

    def masses(
        self, c: FloatArray, of_b: tuple[bool, ...] = (False, True)
    ) -> tuple[list[_Masses], FloatArray]:
        """Masses of A and of B on both sides of thresholds, and by how much those may be moved."""
        size = c.size
        laws = [_Masses(*np.ones((2, size)), *np.full((2, size), np.inf)) for _ in of_b]

        def ask(
            found: TiltedSum, index: int, high: bool, place: FloatArray, at: npt.NDArray[np.intp]
        ) -> None:
            for law, is_b in zip(laws, of_b, strict=True):
                value, error, is_above = self._integral(found, index, high, place, of_b=is_b)
                value = np.clip(value, 0.0, 1.0)
                rest = 1.0 - value
                ways = (law.above, law.below, law.above_error, law.below_error)
                first, second = (0, 1) if is_above else (1, 0)
                ways[first][at], ways[second][at] = value, rest
                ways[first + 2][at], ways[second + 2][at] = error, error + UNIT

        up, down = self._groups(c, np.zeros(size), self.tilts.at(self.place_of(c)), ask)
        for law in laws:
            for outside, above in ((up < 0.0, 1.0), (down < 0.0, 0.0)):
                law.above[outside], law.below[outside] = above, 1.0 - above
                law.above_error[outside], law.below_error[outside] = 0.0, 0.0
        shift = 4.0 * UNIT * (np.maximum(np.minimum(up, down), 0.0) + np.abs(c))
        return laws, shift

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        laws, shift = self.masses(c)
        masses = (
            pair
            for law in laws
            for pair in ((law.above, law.above_error), (law.below, law.below_error))
        )
        return tails_of(masses, shift)

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        length, tilts = float(self._length), self.tilts
        place = (c - self.ends[0]) / length
        if not 0.0 <= place <= self.number:
            return (1.0, 0.0, 1.0, 0.0) if place < 0.0 else (0.0, 1.0, 0.0, 1.0)
        index = int(np.searchsorted(tilts.limit, place))
        found = self._tilted(index)
        if found is None:
            return 1.0, 1.0, 1.0, 1.0
        tilt, masses = float(tilts.tilt[index]), []
        log = self.number * float(tilts.log_scale[index]) - tilt * place
        for of_b in (False, True):
            rate = tilt - length if of_b else tilt
            is_above = rate >= 0.0
            row = found.rows[0][0 if is_above else 1]
            total = row.roughly(abs(rate), place if is_above else -place, closed=not is_above)
            mass = min(max(math.exp(log + c if of_b else log) * total, 0.0), 1.0)
            masses += [mass, 1.0 - mass] if is_above else [1.0 - mass, mass]
        return masses[0], masses[1], masses[2], masses[3]

    def _tilted(self, index: int) -> TiltedSum | None:
        """The law of a tilt; the last one is at hand."""
        if self._last[0] != index:
            tilt, log_scale = (float(x[index]) for x in (self.tilts.tilt, self.tilts.log_scale))
            self._last = index, tilted_sum(self.shape, self.number, tilt, log_scale)
        return self._last[1]

    def tilts_for(
        self, epsilon: FloatArray, *, of_b: bool, at_hand: int | None = None
    ) -> npt.NDArray[np.intp]:
        """Indices of the tilts for profiles of either order."""
        place, length = self.place_of(epsilon if of_b else -epsilon), float(self._length)
        return self.tilts.for_profile(place, self.number, length, of_b=of_b, at_hand=at_hand)

    def profile(
        self, epsilon: FloatArray, low: FloatArray, *, of_b: bool, at_hand: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B) at ε + low, or H_{e^ε}(B‖A) if ``of_b``, and a bound on absolute errors.

        By the tilt that is ``at_hand`` where that serves nearly as well as the best one.
        """
        value, error = np.zeros(epsilon.size), np.full(epsilon.size, 1.0)
        side = 1.0 if of_b else -1.0

        def ask(
            found: TiltedSum, index: int, high: bool, place: FloatArray, at: npt.NDArray[np.intp]
        ) -> None:
            value[at], error[at], _ = self._integral(
                found, index, high, place, of_b=of_b, bent=True
            )

        c = side * epsilon
        tilts = self.tilts_for(epsilon, of_b=of_b, at_hand=at_hand)
        up, down = self._groups(c, side * low, tilts, ask)
        beyond, whole = (down <= 0.0, up < 0.0) if of_b else (up <= 0.0, down < 0.0)
        value[beyond], error[beyond] = 0.0, 0.0
        value[whole] = -np.expm1(epsilon[whole] + low[whole])
        error[whole] = 4.0 * UNIT
        return value, error + SUBNORMAL * ~beyond


class LaplaceOrder(FiniteLosses):
    """One order of the pair: what questions on thresholds ask of a composed law.

    Parameters
    ----------
    steps : LaplaceSteps
        The steps.
    exchanged : bool
        Whether the pair is (B, A), of the loss with the other sign.
    """

    def __init__(self, steps: LaplaceSteps, exchanged: bool) -> None:
        super().__init__(steps.ends, exchanged)
        self.steps = steps
        self.is_symmetric = steps.shape.is_symmetric

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which losses A's mass above is expected to come to α; not proven."""
        tilts, quantile = self.steps.tilts, ndtri(alpha)
        if self.exchanged:
            ends = [np.interp(quantile + x, tilts.below_b, tilts.place) for x in (ROOM, -ROOM)]
            return -self.steps.loss_at(ends[0]), -self.steps.loss_at(ends[1])
        ends = [np.interp(-quantile + x, tilts.below_a, tilts.place) for x in (-ROOM, ROOM)]
        return self.steps.loss_at(ends[0]), self.steps.loss_at(ends[1])

    @property
    def has_atoms(self) -> bool:
        """Whether atoms count: those of many steps are met by no search."""
        return self.steps.number <= MOST_JUMPING

    @cached_property
    def jumps(self) -> FloatArray:
        """Losses with atoms that count, rising."""
        if not self.has_atoms:
            return np.zeros(0)
        found = self.steps.loss_at(np.arange(self.steps.number + 1.0))
        return -found[::-1] if self.exchanged else found

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which ε the profile is expected to come to δ; not proven."""
        tilts, log = self.steps.tilts, np.log(delta)
        if self.exchanged:
            known, place, sign = tilts.log_profile_b[::-1], tilts.place[::-1], 1.0
        else:
            known, place, sign = tilts.log_profile_a, tilts.place, -1.0
        ends = [sign * self.steps.loss_at(np.interp(log + x, known, place)) for x in (1.0, -1.0)]
        return np.maximum(ends[0], 0.0), np.maximum(ends[1], 0.0)

    def profile_most(self, epsilon: float, enough: float = 0.0) -> float:
        """A number not below the profile, by a tilt that serves there."""
        steps, of_b = self.steps, self.exchanged
        length, tilts = steps.length, steps.tilts
        (index,) = steps.tilts_for(np.array([epsilon]), of_b=of_b)
        # beyond the pole, if there is one
        at = max(int(index), tilts.of_b + 1) if of_b else min(int(index), tilts.of_a - 1)
        tilt = float(tilts.tilt[min(max(at, 0), tilts.tilt.size - 1)]) / length
        kinds = ((steps.shape, steps.number),)
        return bound_for(kinds, tilt, epsilon, enough, exchanged=of_b)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        if not self.exchanged:
            return self.steps.tails(c)
        found = self.steps.tails(-c)
        return Tails(
            found.b_below, found.b_above, found.a_below, found.a_above, found.error, found.shift
        )

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        if not self.exchanged:
            return self.steps.roughly(c)
        return self.steps.roughly(-c)[::-1]

    def profile_about(self, near: float) -> Callable[[float], float]:
        """About the profile at ε, by the tilt of ``near`` wherever that serves as well."""
        steps, of_b, none = self.steps, self.exchanged, np.zeros(1)
        (index,) = steps.tilts_for(np.array([near]), of_b=of_b)

        def about(epsilon: float) -> float:
            value, _ = steps.profile(np.array([epsilon]), none, of_b=of_b, at_hand=int(index))
            return float(value[0])

        return about

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        low = np.zeros(epsilon.size) if low is None else low
        return self.steps.profile(epsilon, low, of_b=self.exchanged)
