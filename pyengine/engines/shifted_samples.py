"""Monte Carlo for records in random bins: the normal law N(0, I) beside a mean of N(mᵢ, I).

The law without the record is Q = N(0, I), that with it P = mean of N(mᵢ, I).  Importance samples
come from a shifted law with a parameter h >= 0: for P from the mean of N((1 + h) mᵢ, I), for Q
from N(-h m, I), m the mean of all mᵢ.  The weight w = d(target)/d(sampled) obeys log w <= K - h l
with a known K, l being the log ratio of the target to the other law (docs/estimates).  So
the variables are bounded, and the intervals of `pyengine.engines.intervals` are proven but for the
rounding of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pyengine._support.caches import kept
from pyengine.engines.answers import Answer, FloatArray, names
from pyengine.engines.intervals import empirical_bernstein
from pyengine.errors import AccuracyError

__all__ = ["CONFIDENCE", "DIGIT", "HITS", "Drawn", "answer_of", "bins_profile", "largest_of"]

NAME = "monte_carlo"
SEED, CONFIDENCE = 0, 0.99
SHIFTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)  # values of h that pilots try
PILOT, HITS = 4000, 20  # pilot samples, and the effective number of samples for a standard error
DIGIT = 0.25  # relative standard error above which no digit is known
WIDEST_RATIO = (
    2.0  # ratio of an interval's ends below which it is an answer without a standard error
)
WORK, FEWEST, MOST = 2e8, 2000, 400_000  # normal numbers of all samples, and numbers of samples
ROOM = 2**21  # normal numbers in memory at once


@dataclass(frozen=True, eq=False)
class _Bins:
    """The means mᵢ of the bins, rows of a matrix, one of which is drawn uniformly."""

    shifts: FloatArray

    @property
    def steps(self) -> int:
        """Dimension: normal numbers of one loss."""
        return int(self.shifts.shape[1])

    @property
    def square(self) -> float:
        """The largest |mᵢ|²."""
        return float(np.square(self.shifts).sum(axis=1).max()) * (1.0 + 1e-12)

    @property
    def square_of_mean(self) -> float:
        """|m|²."""
        return float(np.square(self.shifts.mean(axis=0)).sum()) * (1.0 + 1e-12)

    def drawn(self, rng: np.random.Generator, size: int, h: float, of_p: bool) -> FloatArray:
        """Losses log dP/dQ and the logs of the weights, as two rows."""
        x = rng.standard_normal((size, self.steps))
        if of_p:
            x += (1.0 + h) * self.shifts[rng.integers(0, len(self.shifts), size)]
            loss = self._log_ratio(x, 1.0)
            return np.array([loss, loss - self._log_ratio(x, 1.0 + h)])
        mean = self.shifts.mean(axis=0)
        x -= h * mean
        weight = h * (x @ mean) + 0.5 * h * h * float(mean @ mean)
        return np.array([self._log_ratio(x, 1.0), weight])

    def _log_ratio(self, x: FloatArray, scale: float) -> FloatArray:
        squares = np.square(self.shifts).sum(axis=1)
        exponents = scale * (x @ self.shifts.T) - 0.5 * scale * scale * squares
        top = exponents.max(axis=1)
        return np.asarray(top + np.log(np.exp(exponents - top[:, None]).mean(axis=1)))


def bins_profile(
    shifts: FloatArray, epsilon: FloatArray, adjacency: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower ends, values and upper ends of δ(ε), with confidence 99 %, for means in rows."""
    places = _Bins(shifts)
    sides = {"remove": [True], "add": [False], "add_remove": [True, False]}[adjacency]
    targets = [_OneTarget(places, of_p) for of_p in sides]
    failure = (1.0 - CONFIDENCE) / len(targets)
    found = answer_of(
        [largest_of([target.profile(float(x), failure) for target in targets]) for x in epsilon]
    )
    return found.lower, found.value, found.upper


class Drawn(NamedTuple):
    """A value, its interval, and its standard error; infinite where too few samples count."""

    value: float
    lower: float
    upper: float
    error: float


def largest_of(rows: Sequence[Drawn]) -> Drawn:
    """The largest of several values; known if all unknown ones are certainly smaller."""
    value, lower, upper, _ = map(max, zip(*rows, strict=True))
    known = [row for row in rows if row.error <= DIGIT * row.value]
    best = max(known, key=lambda row: row.value, default=None)
    if best is None or any(row.upper > best.value for row in rows if row not in known):
        return Drawn(value, lower, upper, math.inf)
    return Drawn(value, lower, upper, best.error)


class _Sample:
    """Samples: log ratios l of the target to the other law, decreasing, and logs of weights."""

    def __init__(self, places: _Bins, of_p: bool, h: float, size: int, seed: int) -> None:
        rng = np.random.default_rng([seed, int(of_p), int(1000 * h), size])
        total = np.empty((2, size))
        chunk = max(1, ROOM // places.steps)
        for first in range(0, size, chunk):
            count = min(chunk, size - first)
            total[:, first : first + count] = places.drawn(rng, count, h, of_p)
        half = 0.5 * h * places.square
        self.bound = half * (1.0 + h) if of_p else half + 0.5 * h * h * places.square_of_mean
        ratio = total[0] if of_p else -total[0]
        order = np.argsort(-ratio)
        self.h, self.size, self.log_weight = h, size, total[1][order]
        self.ratio = ratio[order]
        self._falling = -self.ratio

    def above(self, x: float) -> int:
        """Number of log ratios above x."""
        return int(np.searchsorted(self._falling, -x))

    def profile(self, epsilon: float) -> tuple[float, float, float]:
        """Sample means of X = w(1 - e^{ε-l})₊ and of X², and an upper bound of X."""
        above = self.above(epsilon)
        gap = epsilon - self.ratio[:above]
        terms = np.exp(self.log_weight[:above]) * -np.expm1(gap)
        h = self.h  # factor: log of the maximum of e^{-hu}(1 - e^{-u}) over u > 0
        factor = h * math.log(h) - (1.0 + h) * math.log1p(h) if h else 0.0
        largest = math.exp(min(self.bound - h * epsilon + factor, 700.0))
        return self._moments(terms, largest)

    def _moments(self, terms: FloatArray, largest: float) -> tuple[float, float, float]:
        return float(terms.sum()) / self.size, float(terms @ terms) / self.size, largest

    def error(self, moments: tuple[float, float, float]) -> float:
        """Standard error of a sample mean; infinite for fewer than `HITS` effective samples."""
        mean, square, _ = moments
        variance = max(square / self.size - mean * mean / self.size, 0.0)
        # effective number mean² size/square; squares near underflow count as none
        enough = mean * mean * self.size >= HITS * square >= 1e-290
        return math.sqrt(variance) if enough else math.inf

    def far(self, moments: tuple[float, float, float], failure: float, size: int = 0) -> float:
        """Largest distance of mean and sample mean on one side, for ``size`` samples if given."""
        mean, square, largest = (np.array([x]) for x in moments)
        return float(empirical_bernstein(mean, square, largest, size or self.size, failure)[0])


@kept(32, grows=True)
def _sampled(places: _Bins, of_p: bool, h: float, size: int, seed: int) -> _Sample:
    return _Sample(places, of_p, h, size, seed)


class _OneTarget:
    """The profile of one law, P or Q, against the other, from samples."""

    def __init__(self, places: _Bins, of_p: bool) -> None:
        self._places, self._of_p = places, of_p
        self.size = int(min(max(WORK / (9.0 * places.steps), FEWEST), MOST))

    def _pilots(self) -> list[_Sample]:
        size = min(PILOT, self.size)
        return [_sampled(self._places, self._of_p, h, size, SEED + 1) for h in SHIFTS]

    def _main(self, h: float) -> _Sample:
        return _sampled(self._places, self._of_p, h, self.size, SEED)

    def _chosen(self, epsilon: float, failure: float) -> tuple[_Sample, _Sample, _Sample]:
        """Pilots for the value, for its lower and for its upper end."""
        pilots = self._pilots()
        rows = [(pilot, pilot.profile(epsilon)) for pilot in pilots]
        seen = [row for row in rows if row[0].above(epsilon) >= HITS] or rows[-1:]
        sharpest = min(seen, key=lambda row: math.sqrt(row[1][1]) / max(row[1][0], 1e-300))
        estimate = sharpest[1][0]

        def end(row: tuple[_Sample, tuple[float, float, float]], side: float) -> float:
            mean = max(row[1][0], estimate) if side > 0.0 else row[1][0]
            return mean + side * row[0].far(row[1], failure, self.size)

        lowest = max(rows, key=lambda row: end(row, -1.0))
        highest = min(rows, key=lambda row: end(row, 1.0))
        return sharpest[0], lowest[0], highest[0]

    def profile(self, epsilon: float, failure: float) -> Drawn:
        """Value and interval, which fails with probability at most ``failure``."""
        value, low, high = (self._main(pilot.h) for pilot in self._chosen(epsilon, 0.5 * failure))
        below, above = low.profile(epsilon), high.profile(epsilon)
        lower = max(below[0] - low.far(below, 0.5 * failure), 0.0)
        upper = min(above[0] + high.far(above, 0.5 * failure), 1.0)
        moments = value.profile(epsilon)
        return Drawn(min(max(moments[0], lower), upper), lower, upper, value.error(moments))


def answer_of(rows: Sequence[Drawn]) -> Answer:
    """Values with intervals; refused where neither interval nor standard error gives a digit."""
    for row in rows:
        if row.error > DIGIT * row.value and row.upper > WIDEST_RATIO * row.lower:
            raise AccuracyError(
                f"too few samples tell of this value: with a confidence of {CONFIDENCE} it lies "
                f"between {row.lower:.3g} and {row.upper:.3g}, and no digit of it is known; "
                "method='auto' bounds it"
            )
    value, lower, upper = (np.array([row[i] for row in rows]) for i in range(3))
    return Answer(value, lower, upper, names(NAME, value.size))
