"""A composition as a sum over the numbers of its steps that have large losses.

Where one step of large loss competes with many of small losses, no exponential tilt has its mass
near the threshold.  The outcomes are then divided by how many steps of each kind have a loss in
each of two or three intervals: every part is a composition of its own, with a tilt of its own, and
what has very many large steps is bounded.  All choices here rest on the survey;
docs/theory/lattice proves what is made of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn

__all__ = ["GOOD", "Partition", "Rest", "RestrictedLaw", "Tail", "Term"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RestrictedLaw(StepLaw):
    """The pair (A, B) on the outcomes with low < L <= high: two measures of mass below 1.

    The ends may be infinite; infinite losses belong to no interval.
    """

    law: StepLaw
    low: float
    high: float

    @property
    def whole(self) -> StepLaw:
        """The step that is cut."""
        return self.law

    @property
    def is_above_cuts(self) -> bool:
        """Whether nothing of the step is above."""
        return self.high == math.inf

    def support(self) -> tuple[float, float]:
        """Support of the whole, cut."""
        lowest, highest = self.law.support()
        return max(lowest, self.low), min(highest, self.high)

    def support_error(self) -> float:
        """That of the whole."""
        return self.law.support_error()

    def limits(self) -> tuple[float, float]:
        """Limits of the whole, cut."""
        lowest, highest = self.law.limits()
        return max(lowest, self.low), min(highest, self.high)

    def left_out(self) -> float:
        """That of the whole, at most."""
        return self.law.left_out()

    def infinite(self) -> tuple[float, float]:
        """None: masses at infinite losses belong to no interval."""
        return 0.0, 0.0

    def spacing(self) -> tuple[float, float] | None:
        """Lattice of the whole."""
        return self.law.spacing()

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of the whole with the ends among the edges, without those beyond them.

        An edge's rounding depends on the edge alone, so that adjoining intervals share no outcome.
        """
        ends = np.array([x for x in (self.low, self.high) if math.isfinite(x)])
        inner = np.union1d(edges, ends)
        whole = self.law.cells(inner)
        left, right = np.append(-math.inf, inner), np.append(inner, math.inf)
        kept = np.flatnonzero((left >= self.low) & (right <= self.high))
        home = np.searchsorted(edges, right[kept])
        log_a, log_b = (np.full(edges.size + 1, -math.inf) for _ in range(2))
        error, ratio, finer = (np.zeros(edges.size + 1) for _ in range(3))
        log_a[home], log_b[home] = whole.log_a[kept], whole.log_b[kept]
        error[home], ratio[home] = whole.error[kept], whole.ratio_error[kept]
        finer[home] = whole.log_ratio[kept]
        shift = whole.shift[np.searchsorted(inner, edges)]
        for end, off in zip(ends, whole.shift[np.searchsorted(inner, ends)], strict=True):
            at = int(np.searchsorted(edges, end))
            beside = slice(max(at - 1, 0), at + 1)
            shift[beside] = np.maximum(shift[beside], off)
        return Cells(log_a, log_b, error, shift, ratio, finer)


class Term(NamedTuple):
    """One part of the sum: e^log_weight times a composition, with its tilt."""

    log_weight: float
    parts: tuple[Part, ...]
    survey: CoarseCumulants
    tilt: float
    excess: float = 0.0  # nats by which its Chernoff bound exceeds the tail, at worst


class Rest(NamedTuple):
    """More than ``most`` large steps, and the tilt of the bound on what they have."""

    tilt: float
    most: int


class Partition(NamedTuple):
    """A composition as a sum of terms, and what is only bounded.

    ``unseen`` are parts of steps with too little mass for the survey, and ``faint`` are terms with
    too little mass to be composed.
    """

    parts: tuple[Part, ...]
    terms: tuple[Term, ...]
    rest: Rest | None = None
    unseen: tuple[StepLaw, ...] = ()
    faint: tuple[Term, ...] = ()

    @classmethod
    def of(
        cls,
        parts: tuple[Part, ...],
        terms: Sequence[Term],
        rest: Rest | None,
        unseen: tuple[StepLaw, ...],
        least: float,
    ) -> Partition:
        """Those of terms apart whose excess is below ``least``.

        Their bounds are made of masses of steps, so that all of those have to be in other terms.
        """
        composed = [term for term in terms if term.excess >= least]
        laws = {law for term in composed for law, _ in term.parts}
        faint: list[Term] = []
        for term in terms:
            if term.excess < least:
                is_known = all(law in laws for law, _ in term.parts)
                (faint if is_known else composed).append(term)
        return cls(parts, tuple(composed), rest, unseen, tuple(faint))


TILTS = 96
CUTS = np.array(
    [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0, 1.05, 1.1, 1.3, 1.6, 2.0]
)
MOST_LARGE = 12  # steps of large loss that are counted
MOST_TERMS = 60
NEGLIGIBLE = 25.0  # nats below the tail, for what is bounded and not composed
GOOD = 7.0  # nats by which one tilt may miss a tail: its rounding is then far below tolerances
SLACK = 1.0  # nats given up for a narrower window
SLIGHT = 4.0  # nats below the tail, where a term's own precision matters little
BETTER = 2.0  # nats that one more interval must gain
FEW = 0.0  # log odds of large steps up to which the sum over their number is a short one
LOG_FACTORIAL = np.array([fn.log(float(math.factorial(k))) for k in range(MOST_LARGE + 2)])


class Tail:
    """Lower tail of a composition, roughly; one tilt may miss it by so many nats as are allowed."""

    def __init__(
        self, parts: tuple[Part, ...], found: CoarseCumulants, allowed: float = GOOD
    ) -> None:
        self.parts, self.survey, self.steps = parts, found, sum(found.steps)
        self.allowed = allowed
        _, self.mean, variance = found.cumulants(0.0)
        self.deviation = math.sqrt(max(variance, 1e-300))
        self.lowest = sum(n * float(x[0]) for n, x in zip(found.steps, found.loss, strict=True))

    @cached_property
    def tilts(self) -> FloatArray:
        """Tilts tried, from 0 to where the farthest one counts."""
        farthest = max(self.mean - self.lowest, 2.0 * self.deviation)
        near = min(self.deviation, farthest)
        return -np.append(0.0, np.geomspace(1e-2 / farthest, 3e3 / near, TILTS))

    @cached_property
    def _sums(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each kind, logs of tilted masses before and from each atom on."""
        sums = []
        none = np.full((self.tilts.size, 1), -math.inf)
        for loss, log_mass in zip(self.survey.loss, self.survey.log_mass, strict=True):
            weight = log_mass + self.tilts[:, None] * loss
            back = fn.log_sums(weight[:, ::-1])[:, ::-1]
            sums.append(
                (
                    np.hstack([none, fn.log_sums(weight)]),
                    np.hstack([back, none]),
                )
            )
        return sums

    def _moments(self, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of the moment of all steps above each cut, and of the sum of odds at or below it."""
        shape = (self.tilts.size, cuts.size)
        base, odds = np.zeros(shape), np.full(shape, -math.inf)
        for loss, (below, above), number in zip(
            self.survey.loss, self._sums, self.survey.steps, strict=True
        ):
            at = np.searchsorted(loss, cuts, side="right")
            base += number * above[:, at]
            with np.errstate(invalid="ignore"):
                odds = fn.logaddexp(odds, fn.log(number) + below[:, at] - above[:, at])
        return base, np.where(np.isnan(odds), math.inf, odds)

    def _cuts(self, share: float | FloatArray, c: FloatArray) -> FloatArray:
        """Losses of a step that take it some way to a total of c."""
        return self.mean / self.steps + share * np.minimum(c - self.mean, 0.0)

    def whole(self, c: FloatArray) -> FloatArray:
        """Chernoff's bound of log A(S <= c) with one tilt."""
        total = self.survey.many(self.tilts)[0]
        return np.asarray(np.min(total[:, None] - self.tilts[:, None] * c, axis=0))

    def log_tail(self, c: FloatArray, coarse: bool = False) -> FloatArray:
        """The same of the sum over the number of steps below the best cut."""
        best = self.whole(c)
        for share in CUTS[1:12:4] if coarse else CUTS[CUTS <= 1.0]:
            base, odds = self._moments(self._cuts(share, c))
            base -= self.tilts[:, None] * c
            values = []
            for k in range(MOST_LARGE + 2):
                with np.errstate(invalid="ignore"):
                    moment = base + (k * odds if k else 0.0) - LOG_FACTORIAL[k]
                if k > MOST_LARGE:
                    moment = np.where(odds < FEW, moment, math.inf)
                values.append(np.min(np.where(np.isnan(moment), math.inf, moment), axis=0))
            values[-1] += NEGLIGIBLE
            best = np.fmin(best, fn.log_sum(values, axis=0))
        return best

    # ---- choice of the intervals -----------------------------------------------------------------

    def division(self, c: FloatArray, log_tail: FloatArray) -> Partition:
        """Parts of the composition for the losses c, at which the tail is roughly given."""
        shape = self.tilts[:, None] * c + log_tail  # what a moment is compared with
        plain = self._excess(self.survey.many(self.tilts)[0], shape)
        whole = Partition(self.parts, (Term(0.0, self.parts, self.survey, plain[1], plain[0]),))
        found: tuple[float, tuple[float, ...], int] = (plain[0], (), 0)
        if plain[0] > self.allowed:
            far = np.unique(self._cuts(CUTS[:, None], c))[::-1]
            for _ in range(2):
                better = min(self._divided(found[1], far.tolist(), shape), default=found)
                if better[0] > found[0] - BETTER:
                    break
                found = better
        _, cuts, most = found
        if not cuts:
            return whole
        terms = sorted(self._listed(cuts, most, shape), key=lambda term: -term.excess)
        if len(terms) > MOST_TERMS or not terms:
            return whole
        ends = (math.inf, *cuts, -math.inf)
        unseen = tuple(
            RestrictedLaw(law, low, high)
            for i, (law, _) in enumerate(self.parts)
            for high, low in itertools.pairwise(ends)
            if not self._mask(i, low, high).any()
        )
        rest = None if self.steps <= most else self._rest_of(cuts[0], most, shape)
        return Partition.of(self.parts, terms, rest, unseen, -NEGLIGIBLE)

    def _rest_of(self, cut: float, most: int, shape: FloatArray) -> Rest:
        base, odds = (x[:, 0] for x in self._moments(np.array([cut])))
        return Rest(self._rest(base, odds, most, shape)[1], most)

    def _excess(self, log_moment: FloatArray, shape: FloatArray) -> tuple[float, float]:
        """Least excess over the tail at the worst of the losses, and its tilt."""
        worst = np.max(log_moment[:, None] - shape, axis=1)
        worst = np.where(np.isnan(worst), math.inf, worst)
        best = int(np.argmin(worst))
        return float(worst[best]), float(self.tilts[best])

    def _mildest(self, log_moment: FloatArray, shape: FloatArray) -> tuple[float, float]:
        """The same for the tilt nearest to 0 that is nearly as good or good enough.

        Its window is narrower, and what lies far below the tail may be less precise.
        """
        worst = np.max(log_moment[:, None] - shape, axis=1)
        worst = np.where(np.isnan(worst), math.inf, worst)
        first = int(np.argmax(worst <= max(float(worst.min()) + SLACK, -SLIGHT)))
        return float(worst[first]), float(self.tilts[first])

    def _rest(
        self, base: FloatArray, odds: FloatArray, most: int, shape: FloatArray
    ) -> tuple[float, float]:
        with np.errstate(invalid="ignore"):
            more = base + (most + 1) * odds - LOG_FACTORIAL[most + 1]
            # the sum of all further terms is at most the first one's double
            more = np.where(odds < FEW, more + fn.log(2.0), math.inf)
        return self._excess(more, shape)

    def _divided(
        self, given: tuple[float, ...], candidates: list[float], shape: FloatArray
    ) -> Iterator[tuple[float, tuple[float, ...], int]]:
        """Excess, cuts and largest number of large steps, for one more cut."""
        for cut in candidates:
            if cut in given or cut <= self.lowest:
                continue
            cuts = tuple(sorted((*given, cut), reverse=True))
            base, odds = (x[:, 0] for x in self._moments(np.array(cuts[:1])))
            most = next(
                (
                    k
                    for k in range(1, MOST_LARGE + 1)
                    if k >= self.steps or self._rest(base, odds, k, shape)[0] < -NEGLIGIBLE
                ),
                0,
            )
            if not most or math.comb(most + len(cuts), most) > MOST_TERMS:
                continue
            shares = self._shares(cuts)
            total = -math.inf
            for counts in _counts(len(shares), most):
                with np.errstate(invalid="ignore"):
                    log_moment = base + sum(
                        k * share - LOG_FACTORIAL[k]
                        for k, share in zip(counts, shares, strict=True)
                        if k
                    )
                total = float(fn.logaddexp(total, self._excess(log_moment, shape)[0]))
            yield total, cuts, most

    def _shares(self, cuts: tuple[float, ...]) -> list[FloatArray]:
        """Log odds of each interval below the first cut, all kinds of steps together."""
        ends = (*cuts, -math.inf)
        shares = [np.full(self.tilts.size, -math.inf) for _ in cuts]
        for i, number in enumerate(self.survey.steps):
            above = self._inside(i, cuts[0], math.inf)
            for j in range(len(cuts)):
                inside = self._inside(i, ends[j + 1], ends[j])
                with np.errstate(invalid="ignore"):
                    shares[j] = fn.logaddexp(shares[j], fn.log(number) + inside - above)
        return shares

    def _mask(self, kind: int, low: float, high: float) -> npt.NDArray[np.bool_]:
        loss = self.survey.loss[kind]
        return (loss > low) & (loss <= high)

    def _inside(self, kind: int, low: float, high: float) -> FloatArray:
        """Log moments of the losses in an interval."""
        if low == -math.inf or high == math.inf:
            below, above = self._sums[kind]
            end = high if low == -math.inf else low
            at = int(np.searchsorted(self.survey.loss[kind], end, side="right"))
            return below[:, at] if low == -math.inf else above[:, at]
        mask = self._mask(kind, low, high)
        weight = (
            self.survey.log_mass[kind][mask] + self.tilts[:, None] * self.survey.loss[kind][mask]
        )
        return np.asarray(fn.log_sum(weight, axis=1))

    def _listed(self, cuts: tuple[float, ...], most: int, shape: FloatArray) -> Iterator[Term]:
        """Every number of steps of each kind in each interval, but for more than ``most`` large."""
        kinds, classes = len(self.parts), len(cuts)
        ends = (math.inf, *cuts, -math.inf)
        logs = [
            [self._inside(i, ends[j + 1], ends[j]) for j in range(classes + 1)]
            for i in range(kinds)
        ]
        for counts in _counts(kinds * classes, most):
            rows = [counts[i * classes : (i + 1) * classes] for i in range(kinds)]
            if any(sum(row) > n for row, n in zip(rows, self.survey.steps, strict=True)):
                continue
            log_weight, log_moment = 0.0, np.zeros(self.tilts.size)
            parts: list[Part] = []
            loss, log_mass = [], []
            for i, (row, (law, number)) in enumerate(zip(rows, self.parts, strict=True)):
                numbers = (number - sum(row), *row)
                log_weight += _log_multinomial(number, row)
                for j, count in enumerate(numbers):
                    if count:
                        mask = self._mask(i, ends[j + 1], ends[j])
                        parts.append((RestrictedLaw(law, ends[j + 1], ends[j]), count))
                        loss.append(self.survey.loss[i][mask])
                        log_mass.append(self.survey.log_mass[i][mask])
                        log_moment = log_moment + count * logs[i][j]
            if any(not x.size for x in loss):
                continue  # no mass there that the survey can see
            found = CoarseCumulants(tuple(loss), tuple(log_mass), tuple(n for _, n in parts))
            excess, tilt = self._mildest(log_weight + log_moment, shape)
            yield Term(log_weight, tuple(parts), found, tilt, excess)


def _counts(classes: int, most: int) -> Iterator[tuple[int, ...]]:
    """All numbers of things in classes, up to a total."""
    for total in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(classes), total):
            yield tuple(chosen.count(i) for i in range(classes))


def _log_multinomial(number: int, row: tuple[int, ...]) -> float:
    """Log of number!/((number - sum)! row!)."""
    ways = Fraction(math.perm(number, sum(row)), math.prod(math.factorial(k) for k in row))
    return fn.log(ways.numerator)
