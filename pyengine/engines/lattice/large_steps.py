"""A composition as a sum over the number of steps with large negative losses.

Where a tail comes from one large step as well as from many small ones, no exponential tilt puts the
mass near the threshold.  Then outcomes are divided by the number of steps of each kind with a loss
in each of two or three intervals: every term is a composition with its own tilt, and terms with
very many large steps are only bounded.  All choices here come from the survey; the proof for
whatever is chosen is Theorem 8 of docs/theory/lattice.
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

    ``low`` and ``high`` may be infinite; infinite losses belong to no interval.
    """

    law: StepLaw
    low: float
    high: float

    @property
    def whole(self) -> StepLaw:
        """The unrestricted step."""
        return self.law

    @property
    def is_above_cuts(self) -> bool:
        """Whether this is the interval of the small steps, with the largest losses."""
        return self.high == math.inf

    def support(self) -> tuple[float, float]:
        """Support of the whole step within the interval."""
        lowest, highest = self.law.support()
        return max(lowest, self.low), min(highest, self.high)

    def support_error(self) -> float:
        """As the whole step."""
        return self.law.support_error()

    def limits(self) -> tuple[float, float]:
        """Limits of the whole step within the interval."""
        lowest, highest = self.law.limits()
        return max(lowest, self.low), min(highest, self.high)

    def left_out(self) -> float:
        """As the whole step: an upper bound."""
        return self.law.left_out()

    def infinite(self) -> tuple[float, float]:
        """Zero: infinite losses belong to no interval."""
        return 0.0, 0.0

    def spacing(self) -> tuple[float, float] | None:
        """As the whole step."""
        return self.law.spacing()

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of the whole step inside the interval, whose ends are added to the edges.

        The rounding of an edge depends on the edge alone, so adjoining intervals are disjoint.
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
    """One term of the sum: e^log_weight times a composition, with its tilt."""

    log_weight: float
    parts: tuple[Part, ...]
    survey: CoarseCumulants
    tilt: float
    excess: float = 0.0  # largest log of its Chernoff bound over the tail at the given losses


class Rest(NamedTuple):
    """All terms with more than ``most`` large steps, and the tilt of their bound."""

    tilt: float
    most: int


class Partition(NamedTuple):
    """A composition as a sum of terms that are composed, and of what is only bounded.

    ``unseen`` are restricted steps without an atom in the survey; ``faint`` are terms with too
    little mass to be composed.
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
        """Terms with an excess below ``least`` become ``faint``.

        Their bounds need moments of their steps, so every such step has to occur in another term.
        """
        composed = [term for term in terms if term.excess >= least]
        laws = {law for term in composed for law, _ in term.parts}
        faint: list[Term] = []
        for term in terms:
            if term.excess < least:
                is_known = all(law in laws for law, _ in term.parts)
                (faint if is_known else composed).append(term)
        return cls(parts, tuple(composed), rest, unseen, tuple(faint))


TILTS = 96  # tilts tried, besides 0
# distances of a cut from the mean loss of a step, relative to c minus the mean of the sum
CUTS = np.array(
    [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0, 1.05, 1.1, 1.3, 1.6, 2.0]
)
MOST_LARGE = 12  # largest number of large steps in a term
MOST_TERMS = 60
NEGLIGIBLE = 25.0  # nats below the tail, from which terms are bounded and not composed
# nats by which Chernoff's bound with one tilt may exceed a tail that is not divided: rounding is
# then far below tolerances
GOOD = 7.0
SLACK = 1.0  # nats given up for a tilt nearer to 0, whose window is narrower
SLIGHT = 4.0  # nats below the tail, from which the precision of a term matters little
BETTER = 2.0  # least gain, in nats, of one more interval
FEW = 0.0  # log of ρ (Theorem 8) below which the sum over more large steps is bounded
LOG_FACTORIAL = np.array([fn.log(float(math.factorial(k))) for k in range(MOST_LARGE + 2)])


class Tail:
    """Estimated lower tail of a composition, and its division into terms.

    A Chernoff bound with one tilt may exceed the tail by ``allowed`` nats.
    """

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
        """The tilts tried, from 0 downwards."""
        farthest = max(self.mean - self.lowest, 2.0 * self.deviation)
        near = min(self.deviation, farthest)
        return -np.append(0.0, np.geomspace(1e-2 / farthest, 3e3 / near, TILTS))

    @cached_property
    def _sums(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each kind, tilts × atoms: logs of the tilted mass before an atom, and from it on."""
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
        """For each tilt and cut, logs of Π a_i^{N_i} and of ρ = Σ N_i b_i/a_i (Theorem 8)."""
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
        """Losses of one step: its mean, plus a share of c minus the mean of the sum."""
        return self.mean / self.steps + share * np.minimum(c - self.mean, 0.0)

    def whole(self, c: FloatArray) -> FloatArray:
        """Chernoff's bound of log A(S <= c) with the best tilt for each c."""
        total = self.survey.many(self.tilts)[0]
        return np.asarray(np.min(total[:, None] - self.tilts[:, None] * c, axis=0))

    def log_tail(self, c: FloatArray, coarse: bool = False) -> FloatArray:
        """The same for the sum over the number of large steps, each term with its best tilt."""
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
        """The terms to compose for losses c, given estimates of log A(S <= c)."""
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
        """Excess over the tail at the worst loss, minimised over tilts, and the best tilt."""
        worst = np.max(log_moment[:, None] - shape, axis=1)
        worst = np.where(np.isnan(worst), math.inf, worst)
        best = int(np.argmin(worst))
        return float(worst[best]), float(self.tilts[best])

    def _mildest(self, log_moment: FloatArray, shape: FloatArray) -> tuple[float, float]:
        """The same for the tilt nearest to 0 with an excess within `SLACK` or below -`SLIGHT`.

        A tilt nearer to 0 has a narrower window; a term far below the tail may be less precise.
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
            # the sum of all further terms is at most twice the first one
            more = np.where(odds < FEW, more + fn.log(2.0), math.inf)
        return self._excess(more, shape)

    def _divided(
        self, given: tuple[float, ...], candidates: list[float], shape: FloatArray
    ) -> Iterator[tuple[float, tuple[float, ...], int]]:
        """For each candidate as one more cut: excess, cuts, and largest number of large steps."""
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
        """For each interval below the first cut, log Σ N_i b_i/a_i over kinds, at all tilts."""
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
        """Log moments at all tilts of the losses in (low, high]."""
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
        """The terms: all numbers of steps of each kind in each interval, ``most`` of them large."""
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
                continue  # no atom of the survey there
            found = CoarseCumulants(tuple(loss), tuple(log_mass), tuple(n for _, n in parts))
            excess, tilt = self._mildest(log_weight + log_moment, shape)
            yield Term(log_weight, tuple(parts), found, tilt, excess)


def _counts(classes: int, most: int) -> Iterator[tuple[int, ...]]:
    """All tuples of ``classes`` counts >= 0 with a sum of at most ``most``."""
    for total in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(classes), total):
            yield tuple(chosen.count(i) for i in range(classes))


def _log_multinomial(number: int, row: tuple[int, ...]) -> float:
    """Log of number!/((number - sum)! row!)."""
    ways = Fraction(math.perm(number, sum(row)), math.prod(math.factorial(k) for k in row))
    return fn.log(ways.numerator)
