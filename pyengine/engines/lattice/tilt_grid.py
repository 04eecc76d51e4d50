"""A fixed grid of tilts (rungs) at which a composition is computed, and the cache of results.

Rungs stand at signed roots w = 0, -2, -4, ... of the tilt for lower tails, and at odd w between the
means of A and B.  The grid is fixed, so answers do not depend on earlier questions.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import Cache, cached_property, kept
from pyengine.engines.lattice.central_tails import MiddleTails
from pyengine.engines.lattice.coarse_cumulants import (
    DEEPEST,
    ROOT_TWO_PI,
    CoarseCumulants,
    Part,
    scaled_tail,
    survey,
)
from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.large_steps import GOOD, Partition, Tail, Term
from pyengine.engines.lattice.lower_tails import LowerTails
from pyengine.engines.lattice.plan import (
    MOST_POINTS,
    Layout,
    Place,
    common_lattice,
    landmarks_of,
    make_layout,
)
from pyengine.errors import AccuracyError
from pyengine.laws.base import largest_finite
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["STEP", "TiltGrid", "rungs_of"]

FloatArray = npt.NDArray[np.float64]

STEP = 2.0  # distance of rungs, in w
LAST = 2.0 * DEEPEST  # of the last rung: lower tails are far below all doubles from there on
OVERLAP = 1.5  # largest distance of an answer from its rung, in w
CHECKED_LOSSES = 10  # losses at which Chernoff's bound with one tilt is compared with the tail
TABLE_ROWS = 80  # rows of the table of a divided tail
LOG_ROUNDING = 256.0  # rounding of log masses, in u per nat
FINE_PER_DECADE = 120  # losses per decade in the survey for a divided tail
COMB = 2.0  # nats by which Chernoff's bound with one tilt may exceed the tail of a comb
MANY_OF_TWO = 10_000  # least number of steps with nearly always one of two losses for a comb
LEAST_LOSS, LARGEST_LOSS = 1e-150, 1e150  # squares of losses, times steps, must be doubles
NO_TILTS = (
    "the lattice has no doubles for the tilts of these steps, whose largest losses are too far "
    "from the others"
)
NEGLIGIBLE_TERM = 10.0  # nats below the largest term, from which a term does not limit the spacing
HOPELESS = 32.0  # needed points over `MOST_POINTS`: brackets would be a thousand times too wide

_compositions: Cache[LowerTails | MiddleTails] = Cache(256, lambda tails: tails.bytes)


class TiltGrid:
    """The rungs of one ordered composition of at least one step."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        largest = max(largest_finite(law.support()) for law, _ in parts)
        if largest > 0.0 and not LEAST_LOSS <= largest <= LARGEST_LOSS:
            raise AccuracyError(
                "the lattice takes squares of losses, and resolves steps of which the largest loss "
                f"lies between {LEAST_LOSS:.0e} and {LARGEST_LOSS:.0e}; here it is {largest:.1e}"
            )
        self.survey: CoarseCumulants = survey(parts)
        if not all(loss.size for loss in self.survey.loss):
            raise AccuracyError(NO_TILTS)
        if not any(loss.size > 1 for loss in self.survey.loss):
            has_sums = all(law.finite() is not None for law, _ in parts)
            raise AccuracyError(
                "in doubles these steps have only one loss, which leaves the lattice nothing to "
                "resolve" + (": method='exact' answers" if has_sums else "")
            )
        with np.errstate(over="ignore", invalid="ignore"):
            cumulants = self.survey.cumulants(0.0)
        if not all(map(math.isfinite, (*cumulants, self.lowest))):
            raise AccuracyError(NO_TILTS)
        self._end = -float(self._lower[0][0])
        if not math.isfinite(self._end):
            raise AccuracyError(NO_TILTS)
        # the table may end much deeper, where a mode far out takes over from all others at once
        self._end = min(self._end, LAST)
        self.lower_rungs = max(math.ceil((self._end - 0.5 * STEP) / STEP) + 1, 1)

    @cached_property
    def _tail(self) -> Tail | None:
        """The lower tail, if Chernoff's bound with one tilt is too far above it; else None."""
        tail = Tail(self.parts, self.survey, self._allowed)
        away = tail.mean - tail.lowest
        if not away > 0.0:  # nearly all mass has the smallest loss
            return None
        c = tail.mean - np.geomspace(min(tail.deviation, 0.5 * away), away, CHECKED_LOSSES)
        whole = tail.whole(c)
        parts = tail.log_tail(c, coarse=True)
        if np.any((whole - parts > tail.allowed) & (parts > -0.5 * DEEPEST**2)):
            return Tail(self.parts, survey(self.parts, FINE_PER_DECADE), tail.allowed)
        return None

    @cached_property
    def _allowed(self) -> float:
        """Nats by which Chernoff's bound with one tilt may exceed the lower tail.

        With many steps that nearly always have one of two losses, the sum is a comb of isolated
        atoms.  Its transform does not decay, and its rounding grows with the number of steps at
        every frequency.
        """
        heavy = landmarks_of(Term(0.0, self.parts, self.survey, 0.0))
        numbers = [number for law, number in self.parts if law in heavy]
        return COMB if max(numbers, default=0) > MANY_OF_TWO else GOOD

    @cached_property
    def _lower(self) -> tuple[FloatArray, FloatArray]:
        """Signed roots of lower tails, increasing, and the losses at these."""
        roots, _, means = self.survey.table
        tail = self._tail
        if tail is None:
            return roots, means
        away = tail.mean - tail.lowest
        c = tail.mean - np.geomspace(min(0.02 * tail.deviation, 0.5 * away), away, TABLE_ROWS)
        log_tail = np.minimum.accumulate(tail.log_tail(c))
        root = -np.sqrt(-2.0 * np.minimum(log_tail, 0.0))
        deep = root < -DEEPEST
        kept = int(np.argmax(deep)) + 1 if deep.any() else root.size
        own = np.array([root[:kept][::-1], c[:kept][::-1]])
        upper = roots > 0.0
        return (
            np.concatenate([own[0], [0.0], roots[upper]]),
            np.concatenate([own[1], [tail.mean], means[upper]]),
        )

    def _loss_at(self, root: float) -> float:
        """The loss at a signed root."""
        return float(np.interp(root, *self._lower))

    def place(self, rung: int, outer: bool) -> Place:
        """Place of rung 0, 1, ..."""
        if (rung, outer) not in self._places:
            found = self._place(rung, outer)
            if any(map(math.isnan, (found.tilt, *found.reach))):
                raise AccuracyError(NO_TILTS)
            self._places[rung, outer] = found
        return self._places[rung, outer]

    @cached_property
    def _places(self) -> dict[tuple[int, bool], Place]:
        return {}

    def _place(self, rung: int, outer: bool) -> Place:
        found = self.survey
        if outer:
            root = max(-STEP * rung, -self._end)
            tilt = found.tilt_at(root) if rung else 0.0
            top = math.inf if rung == 0 else self._loss_at(root + OVERLAP)
            is_last = rung == self.lower_rungs - 1
            low = self.lowest if is_last else self._loss_at(root - OVERLAP)
            least = math.inf
            if self._tail is not None:
                least = float(self._tail.log_tail(np.array([low]))[0])
            return Place(tilt, True, (low, top), least)
        last = found.root(1.0)
        if last <= STEP:
            return Place(
                0.5, False, (self.survey.mean_at(-OVERLAP), self.survey.mean_at(last + OVERLAP))
            )
        root = min(1.0 + STEP * rung, last - 0.5)
        tilt = min(found.tilt_at(root), 1.0)
        return Place(
            tilt,
            False,
            (self.survey.mean_at(root - OVERLAP - 0.5), self.survey.mean_at(root + OVERLAP + 0.5)),
        )

    @property
    def lowest(self) -> float:
        """The smallest loss of the sum in the survey."""
        survey = self.survey
        return sum(n * float(x[0]) for n, x in zip(survey.steps, survey.loss, strict=True))

    def division(self, rung: int, outer: bool) -> Partition:
        """The terms to compose at a rung."""
        place = self.place(rung, outer)
        if not outer or self._tail is None:
            return Partition(self.parts, (Term(0.0, self.parts, self.survey, place.tilt),))
        if (rung, outer) not in self._divisions:
            root = max(-STEP * rung, -self._end)
            c = np.array([place.reach[0], self._loss_at(root), self._loss_at(root + OVERLAP)])
            self._divisions[rung, outer] = self._tail.division(c, self._tail.log_tail(c))
        return self._divisions[rung, outer]

    @cached_property
    def _divisions(self) -> dict[tuple[int, bool], Partition]:
        return {}

    @cached_property
    def marks(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Halfway between successive lower rungs: loss, estimated logs of A, B and the profile."""
        found = self.survey
        roots = -STEP * (np.arange(max(self.lower_rungs - 1, 1)) + 0.5)
        if self._tail is not None:
            return self._marks_of(self._tail, np.asarray(roots, dtype=np.float64))
        tilts = np.interp(roots, found.table[0], found.table[1])
        total, mean, variance = found.many(tilts)
        deviation = np.sqrt(np.maximum(variance, 1e-300))
        value = total - tilts * mean
        tails = [
            self._shares(tilt, sd)
            for tilt, sd in zip(tilts.tolist(), deviation.tolist(), strict=True)
        ]
        a, b, profile = (fn.log([tail[name] for tail in tails]) for name in ("a", "b", "profile"))
        return mean, value + a, value + mean + b, value + profile

    def _slope(self, mean: float, c: FloatArray) -> FloatArray:
        """Derivative of the log of the lower tail, from the table of its roots."""
        roots, losses = self._lower
        near = 0.03 * (mean - c)
        below, above = (np.interp(c + step, losses, -0.5 * roots**2) for step in (-near, near))
        return np.asarray(np.maximum((above - below) / (2.0 * near), 1e-9))

    def _marks_of(
        self, tail: Tail, roots: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The same for a divided tail, from its slope."""
        c = np.interp(roots, *self._lower)
        slope = self._slope(tail.mean, c)
        log_a = -0.5 * roots**2 - 1.0
        log_b = log_a + c + fn.log(slope / (1.0 + slope))
        return c, log_a, log_b, log_a - fn.log1p(slope)

    @staticmethod
    def _shares(tilt: float, deviation: float) -> dict[str, float]:
        """Tails of A and B and the profile at the saddle point, relative to e^{K(λ) - λc}."""
        a = scaled_tail(abs(tilt) * deviation)
        b = scaled_tail(abs(1.0 - tilt) * deviation)
        return {"a": a, "b": b, "profile": max(a - b, b * min(deviation, 1.0) * 0.3)}

    def near_end(self, distance: float) -> int:
        """The first lower rung within ``distance`` of the smallest loss, or the last rung."""
        losses = self.marks[0]
        near = np.flatnonzero(losses - self.lowest < distance)
        return min(int(near[0]) + 1 if near.size else self.lower_rungs - 1, self.lower_rungs - 1)

    def middle_rungs(self) -> int:
        """Number of rungs between the means."""
        return max(math.ceil((self.survey.root(1.0) - 1.0) / STEP) + 1, 1)

    def first_spacing(self, rung: int, outer: bool, share: str, tolerance: float) -> float:
        """Spacing expected to give a bracket of a relative width.

        Splitting and merging together change the variance by N h²/4, and so the profile by half of
        that times the density of A.
        """
        common = common_lattice(self.parts)
        if common is not None:  # no loss lies between its points
            return common
        terms = self.division(rung, outer).terms
        largest = max(term.excess for term in terms)
        loss = self._loss_at(max(-STEP * rung, -self._end))
        slope = abs(terms[0].tilt)
        if outer and rung and self._tail is not None:
            slope = float(self._slope(self._tail.mean, np.array([loss]))[0])
        if share == "epsilon":  # relative errors of the profile are slope × ε times those of ε
            share, tolerance = "profile", tolerance * min(max(slope * abs(loss), 1.0), 16.0)
        spacing = min(
            self._term_spacing(term, share, tolerance)
            for term in terms
            if term.excess >= largest - NEGLIGIBLE_TERM
        )
        if outer and rung and self._tail is not None:
            density = {"a": slope, "b": 1.0 + slope, "profile": slope * (1.0 + slope)}[share]
            spacing = min(spacing, math.sqrt(4.0 * tolerance / (self._tail.steps * density)))
        return max(spacing, self.least_spacing(rung))

    def least_spacing(self, rung: int) -> float:
        """Spacing below which a cell is narrower than the rounding of log masses, roughly."""
        return LOG_ROUNDING * UNIT * (4.0 + (STEP * rung) ** 2)

    def _term_spacing(self, term: Term, share: str, tolerance: float) -> float:
        found, tilt = term.survey, term.tilt
        variance = found.cumulants(tilt)[2]
        deviation = math.sqrt(max(variance, 1e-300))
        tails = self._shares(tilt, deviation)
        if not 0.0 < deviation * tails[share] < math.inf:
            raise AccuracyError(NO_TILTS)
        coefficient = sum(found.steps) / (8.0 * ROOT_TWO_PI * deviation * tails[share])
        spacing = math.sqrt(0.5 * tolerance / coefficient)
        # a cell wider than the law of a step would merge nearly all of it
        narrowest = math.sqrt(max(_least_variance(found, tilt, variance), 1e-300))
        return min(spacing, 0.25 * deviation, 0.25 / (1.0 + abs(tilt)), 0.5 * narrowest)

    def tails(
        self, rung: int, outer: bool, spacing: float, tolerance: float, limit: int
    ) -> LowerTails | MiddleTails:
        """The composition on a rung with about the given spacing, cached."""
        key = (self.parts, rung, outer, spacing, tolerance, limit)
        return _compositions.get_or_make(
            key, lambda: self._compose(rung, outer, spacing, tolerance, limit)
        )

    def spacing(
        self, rung: int, outer: bool, spacing: float, tolerance: float, limit: int
    ) -> float:
        """The actual spacing of the lattice for a requested one."""
        return self._layout(rung, outer, spacing, tolerance, limit).plans[0].spacing

    def _layout(
        self, rung: int, outer: bool, spacing: float, tolerance: float, limit: int
    ) -> Layout:
        place, division = self.place(rung, outer), self.division(rung, outer)
        return make_layout(division, place, spacing, tolerance, limit)

    def _compose(
        self, rung: int, outer: bool, spacing: float, tolerance: float, limit: int
    ) -> LowerTails | MiddleTails:
        layout = self._layout(rung, outer, spacing, tolerance, limit)
        first = layout.plans[0]
        needed = first.points * first.spacing / spacing
        if needed > HOPELESS * MOST_POINTS:
            raise AccuracyError(
                f"a bracket of relative width {tolerance:g} is likely to need some {needed:.0e} "
                f"lattice points, at most {MOST_POINTS} are laid out: ask for a level further from "
                "the ends of the loss, or for each kind of steps apart"
            )
        return (LowerTails if outer else MiddleTails)(compose_on(self.parts, layout))


def _least_variance(found: CoarseCumulants, tilt: float, variance: float) -> float:
    """Smallest tilted variance of a kind of steps with 1e-5 or more of that of the sum."""
    least = variance
    for loss, log_mass, steps in zip(found.loss, found.log_mass, found.steps, strict=True):
        own = CoarseCumulants((loss,), (log_mass,), (1,)).cumulants(tilt)[2]
        if own * steps > 1e-5 * variance:
            least = min(least, own)
    return least


@kept(8, grows=True)
def rungs_of(parts: tuple[Part, ...]) -> TiltGrid:
    """The grid of a composition, kept with its survey and places."""
    return TiltGrid(parts)
