"""Monte Carlo for records in random places: normal laws N(0, I) beside means of N(mᵢ, I).

The law without the record is Q = N(0, I), that with it P = mean of N(mᵢ, I); such steps are
composed.  With a number h >= 0 the samples come from a law that is moved to where a question is
decided: from the mean of N((1 + h) mᵢ, I) where the target is P, from N(-h m, I), m the mean of all
mᵢ, where it is Q.  The weight w = d(target)/d(sampled) obeys log w <= K - h l, l = log of the ratio
of the target to the other law, with a known K (docs/theory/allocation), so that the variables whose
means are asked for are bounded, and the intervals of `pyengine.engines.intervals` are proven but
for the rounding of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pyengine.answers import Answer, FloatArray, Questions, names
from pyengine.caches import cached_property, kept
from pyengine.engines.intervals import empirical_bernstein
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words, steps_of
from pyengine.numerics.bracketing import bisected

__all__ = ["ShiftedSampleQuestions", "bins_profile"]

NAME = "monte_carlo"
SEED, CONFIDENCE = 0, 0.99
MOVES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)  # values of h that a pilot tries
PILOT, HITS = 4000, 20
DIGIT = 0.25  # standard error, relative to a value, from which on no digit of it is known
CLEAR = 2.0  # ends of an interval, one over the other, that tell the value's size by themselves
WORK, FEWEST, MOST = 2e8, 2000, 400_000  # normal numbers of a sample of all, and its size
ROOM = 2**21  # numbers that are in memory at once
MOST_NORMALS = 1e6  # of one loss
CANDIDATES = tuple(4.0 * 0.75**j for j in range(32))  # relative distances that are tested in turn


@dataclass(frozen=True)
class _Places:
    """k of t places of shift μ each; a plain Gaussian step has one of one.

    The mean of |mᵢ|², the largest one, and |m|² of the mean m of all mᵢ are what bounds need.
    """

    mu: float
    steps: int
    selected: int

    @property
    def square(self) -> float:
        """|mᵢ|², which is the same for all i."""
        return self.selected * self.mu**2

    @property
    def square_of_mean(self) -> float:
        """|m|²."""
        return self.square * self.selected / self.steps

    def drawn(self, rng: np.random.Generator, size: int, h: float, of_p: bool) -> FloatArray:
        """Losses log dP/dQ and the logs of the weights, as two rows."""
        x = rng.standard_normal((size, self.steps))
        if of_p:  # by symmetry, the first places are as good as any others
            x[:, : self.selected] += (1.0 + h) * self.mu
            loss = self._log_ratio(x, self.mu)
            moved = loss if h == 0.0 else self._log_ratio(x, (1.0 + h) * self.mu)
            return np.array([loss, loss - moved])
        x -= h * self.mu * self.selected / self.steps
        loss = self._log_ratio(x, self.mu)
        mean = self.mu * self.selected / self.steps * x.sum(axis=1)
        return np.array([loss, h * mean + 0.5 * h * h * self.square_of_mean])

    def _log_ratio(self, x: FloatArray, mu: float) -> FloatArray:
        """Logarithm of the mean over all i of dN(mᵢ, I)/dN(0, I)."""
        t, k = self.steps, self.selected
        top = x.max(axis=1)
        y = np.exp(mu * (x - top[:, None]))
        if k == 1:
            sums = y.sum(axis=1)
        else:  # elementary symmetric polynomials: sums of positive terms
            rows = np.zeros((k + 1, x.shape[0]))
            rows[0] = 1.0
            for i in range(t):
                rows[1:] += y[:, i] * rows[:-1]
            sums = rows[k]
        log_choices = math.lgamma(t + 1) - math.lgamma(k + 1) - math.lgamma(t - k + 1)
        with np.errstate(divide="ignore"):
            found = np.log(sums) + mu * k * top - log_choices - 0.5 * k * mu * mu
        if not np.isfinite(found).all():
            raise AccuracyError(
                f"the losses of epochs with each record in {k} of {t} steps at a noise multiplier "
                f"of {1.0 / self.mu:g} leave the range of doubles"
            )
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Bins:
    """b places mᵢ, the rows of a matrix, one of them drawn uniformly."""

    shifts: FloatArray

    @property
    def steps(self) -> int:
        """Normal numbers of a loss."""
        return int(self.shifts.shape[1])

    @property
    def selected(self) -> int:
        """One place."""
        return 1

    @property
    def square(self) -> float:
        """The largest |mᵢ|²."""
        return float(np.square(self.shifts).sum(axis=1).max()) * (1.0 + 1e-12)

    @property
    def square_of_mean(self) -> float:
        """|m|²."""
        return float(np.square(self.shifts.mean(axis=0)).sum()) * (1.0 + 1e-12)

    def drawn(self, rng: np.random.Generator, size: int, h: float, of_p: bool) -> FloatArray:
        """As of `_Places`."""
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


_Parts = tuple[tuple[_Places | _Bins, int], ...]


def bins_profile(
    shifts: FloatArray, epsilon: FloatArray, adjacency: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower ends, values and upper ends of δ(ε), each interval of 99 %, of places in given rows."""
    parts = ((_Bins(shifts), 1),)
    sides = {"remove": [True], "add": [False], "add_remove": [True, False]}[adjacency]
    targets = [_OneTarget(parts, of_p) for of_p in sides]
    failure = (1.0 - CONFIDENCE) / len(targets)
    found = _answer(
        [_largest([target.profile(float(x), failure) for target in targets]) for x in epsilon]
    )
    return found.lower, found.value, found.upper


class _Found(NamedTuple):
    """A value in its interval, and its standard error, inf where no digit is known."""

    value: float
    lower: float
    upper: float
    error: float


def _largest(rows: Sequence[_Found]) -> _Found:
    """The largest of several values, known where those that are not known are smaller."""
    value, lower, upper, _ = map(max, zip(*rows, strict=True))
    known = [row for row in rows if row.error <= DIGIT * row.value]
    best = max(known, key=lambda row: row.value, default=None)
    if best is None or any(row.upper > best.value for row in rows if row not in known):
        return _Found(value, lower, upper, math.inf)
    return _Found(value, lower, upper, best.error)


def _parts(mechanism: Mechanism) -> _Parts:
    found: list[tuple[_Places | _Bins, int]] = []
    for step, number in steps_of(mechanism):
        if step.places is not None:
            noise, steps, selected = step.places
            found.append((_Places(1.0 / float(noise), steps, selected), number))
        elif step.noise is not None and step.noise.family == "gaussian":
            mu = math.sqrt(number) / float(step.noise.multiplier)
            found.append((_Places(mu, 1, 1), 1))
        else:
            raise NotDefinedError(
                "method='monte_carlo' takes random allocation beside plain Gaussian steps, got "
                f"{' and '.join(in_words(mechanism))}"
            )
    normals = sum(places.steps * number for places, number in found)
    if normals > MOST_NORMALS:
        raise AccuracyError(
            f"one loss of {' and '.join(in_words(mechanism))} takes {normals:,} normal numbers, at "
            f"most {MOST_NORMALS:,.0f} are feasible"
        )
    return tuple(found)


class _Sample:
    """Log ratios l of the target to the other law, in decreasing order, with logs of weights."""

    def __init__(self, parts: _Parts, of_p: bool, h: float, size: int, seed: int) -> None:
        rng = np.random.default_rng([seed, int(of_p), int(1000 * h), size])
        total = np.zeros((2, size))
        self.bound = 0.0
        for places, number in parts:
            chunk = max(1, ROOM // places.steps)
            for _ in range(number):
                for first in range(0, size, chunk):
                    count = min(chunk, size - first)
                    total[:, first : first + count] += places.drawn(rng, count, h, of_p)
            half = 0.5 * h * places.square
            own = half * (1.0 + h) if of_p else half + 0.5 * h * h * places.square_of_mean
            self.bound += number * own
        ratio = total[0] if of_p else -total[0]
        order = np.argsort(-ratio)
        self.h, self.size, self.log_weight = h, size, total[1][order]
        self.ratio = ratio[order]
        self._falling = -self.ratio

    def above(self, x: float) -> int:
        """How many ratios are above a number."""
        return int(np.searchsorted(self._falling, -x))

    def profile(self, epsilon: float) -> tuple[float, float, float]:
        """Sample means of w(1 - e^{ε-l})₊ and of its square, and the largest value possible."""
        above = self.above(epsilon)
        gap = epsilon - self.ratio[:above]
        terms = np.exp(self.log_weight[:above]) * -np.expm1(gap)
        h = self.h  # the largest e^{-hu}(1 - e^{-u})
        factor = h * math.log(h) - (1.0 + h) * math.log1p(h) if h else 0.0
        largest = math.exp(min(self.bound - h * epsilon + factor, 700.0))
        return self._moments(terms, largest)

    def target(self, c: float) -> tuple[float, float, float]:
        """As above, of the target's mass beyond c."""
        above = self.above(c)
        largest = math.exp(min(self.bound - self.h * c, 700.0))
        return self._moments(np.exp(self.log_weight[:above]), largest)

    def other(self, c: float) -> tuple[float, float, float]:
        """As above, of the other law's mass beyond c."""
        above = self.above(c)
        largest = math.exp(min(self.bound - (1.0 + self.h) * c, 700.0))
        return self._moments(np.exp(self.log_weight[:above] - self.ratio[:above]), largest)

    def _moments(self, terms: FloatArray, largest: float) -> tuple[float, float, float]:
        return float(terms.sum()) / self.size, float(terms @ terms) / self.size, largest

    def error(self, moments: tuple[float, float, float]) -> float:
        """Standard error of a sample mean; inf where too few samples say anything of it."""
        mean, square, _ = moments
        variance = max(square / self.size - mean * mean / self.size, 0.0)
        # as many equal samples would say as much; squares near the end of doubles say nothing
        enough = mean * mean * self.size >= HITS * square >= 1e-290
        return math.sqrt(variance) if enough else math.inf

    def far(self, moments: tuple[float, float, float], failure: float, size: int = 0) -> float:
        """How far the mean may lie from the sample mean, on one side; of more samples if said."""
        mean, square, largest = (np.array([x]) for x in moments)
        return float(empirical_bernstein(mean, square, largest, size or self.size, failure)[0])


@kept(32, grows=True)
def _sampled(parts: _Parts, of_p: bool, h: float, size: int, seed: int) -> _Sample:
    return _Sample(parts, of_p, h, size, seed)


class _OneTarget:
    """Questions on the hockey-stick divergence of one law from the other."""

    def __init__(self, parts: _Parts, of_p: bool) -> None:
        self._parts, self._of_p = parts, of_p
        normals = sum(places.steps * (places.selected + 8) * n for places, n in parts)
        self.size = int(min(max(WORK / max(normals, 1), FEWEST), MOST))

    def _pilots(self) -> list[_Sample]:
        size = min(PILOT, self.size)
        return [_sampled(self._parts, self._of_p, h, size, SEED + 1) for h in MOVES]

    def _main(self, h: float) -> _Sample:
        return _sampled(self._parts, self._of_p, h, self.size, SEED)

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

    def profile(self, epsilon: float, failure: float) -> _Found:
        """Value and interval, whose ends fail together with probability ``failure`` at most."""
        value, low, high = (self._main(pilot.h) for pilot in self._chosen(epsilon, 0.5 * failure))
        below, above = low.profile(epsilon), high.profile(epsilon)
        lower = max(below[0] - low.far(below, 0.5 * failure), 0.0)
        upper = min(above[0] + high.far(above, 0.5 * failure), 1.0)
        moments = value.profile(epsilon)
        return _Found(min(max(moments[0], lower), upper), lower, upper, value.error(moments))

    def estimated(self, epsilon: float) -> float:
        """The pilots' estimate of the profile."""
        return self._chosen(epsilon, 0.01)[0].profile(epsilon)[0]

    def epsilon(self, delta: float, failure: float) -> _Found:
        """ε at a δ in (0, 1): candidates that the pilots choose are tested in turn.

        They are tested from the safest one on, until one fails: the first wrong one passes with the
        probability of a single test at most.
        """
        near, _ = _crossing(self.estimated, delta)
        value, _ = _crossing(
            lambda x: self._main(self._chosen(x, failure)[0].h).profile(x)[0], delta
        )
        lower, upper = 0.0, math.inf
        for part in CANDIDATES:
            point = near - part * max(near, 0.1)
            if self.profile(point, failure).lower <= delta:
                break
            lower = max(point, 0.0)
        for part in CANDIDATES:
            point = near + part * max(near, 0.1)
            if self.profile(point, failure).upper > delta:
                break
            upper = max(point, 0.0)
        # the value is known where the profile there is
        there = self.profile(value, failure)
        known = there.error <= DIGIT * there.value
        value = min(max(value, 0.0, lower), upper)
        return _Found(value, lower, upper, 0.0 if known else math.inf)

    def gamma_below(self, alpha: float, c: float, failure: float) -> tuple[float, float, float]:
        """Estimate, its standard error and lower bound of γ, the target's mass of tests of level α.

        The pilot moves the threshold until the upper bound of its level should not be above α; if
        it is, nothing is known but that γ >= α.
        """
        pilot = self._chosen(c, failure)[0]

        def highest(x: float) -> float:
            moments = pilot.other(x)
            return moments[0] + 2.0 * pilot.far(moments, failure, self.size)

        point, _ = _crossing(highest, alpha)
        sample = self._main(pilot.h)
        at = _crossing(lambda x: sample.other(x)[0], alpha)[0]
        value, *_ = estimate = sample.target(at)
        level = sample.other(at)
        # γ moves with its level by no more than in proportion
        error = sample.error(estimate) + value * sample.error(level) / alpha
        moments = sample.other(point)
        if not moments[0] + sample.far(moments, 0.5 * failure) <= alpha:
            return value, error, alpha
        moments = sample.target(point)
        return value, error, max(moments[0] - sample.far(moments, 0.5 * failure), alpha)


def _crossing(f: object, level: float) -> tuple[float, float]:
    """Where a decreasing function crosses a level, between -1000 and 1000, and its value there."""
    assert callable(f)
    low, high = -1.0, 1.0
    while f(low) < level and low > -1e3:
        low *= 2.0
    while f(high) > level and high < 1e3:
        high *= 2.0
    found = float(bisected(lambda x: f(float(x)) > level, low, high, rounds=40)[1])
    return found, float(f(found))


class ShiftedSampleQuestions(Questions):
    """Questions on epochs of random allocation, each with a proven interval of 99 %.

    Parameters
    ----------
    mechanism : Mechanism
        Random allocation, k >= 1 steps of a record in each epoch, beside plain Gaussian steps.
    adjacency : {"add", "remove", "add_remove"}
        The neighbours.
    wanted : {"beta", "gamma"} or None
        Which error of a trade-off function is to be known; None for both.

    Raises
    ------
    AccuracyError
        Where neither the samples nor the interval tell a digit of a value.

    Notes
    -----
    Each value's interval holds the truth with probability 0.99 at least, for itself; the samples of
    several values are the same ones.
    """

    def __init__(self, mechanism: Mechanism, adjacency: str, wanted: str | None = None) -> None:
        self._parts, self._adjacency = _parts(mechanism), adjacency
        self._wanted = wanted

    @cached_property
    def _with(self) -> _OneTarget:
        return _OneTarget(self._parts, True)

    @cached_property
    def _without(self) -> _OneTarget:
        return _OneTarget(self._parts, False)

    def _sides(self, *, of_b: bool) -> list[_OneTarget]:
        """Targets: A of each order for profiles, B for tests."""
        if self._adjacency == "add_remove":
            return [self._with, self._without]
        return [self._with if (self._adjacency == "remove") != of_b else self._without]

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α)."""
        rows = [self._gamma(float(x)) for x in alpha]
        gamma = _answer(
            rows if self._wanted == "gamma" else [row._replace(error=0.0) for row in rows]
        )
        low, high = 1.0 - gamma.upper, np.minimum(1.0 - gamma.lower, 1.0 - alpha)
        value = np.clip(1.0 - gamma.value, low, high)
        if self._wanted == "gamma":
            return Answer(value, low, high, gamma.engine.copy()), gamma
        found = zip(value.tolist(), low.tolist(), high.tolist(), rows, strict=True)
        return _answer([_Found(x, least, most, row.error) for x, least, most, row in found]), gamma

    def _gamma(self, alpha: float) -> _Found:
        if alpha in (0.0, 1.0):
            return _Found(alpha, alpha, alpha, 0.0)
        sides = self._sides(of_b=True)
        failure = (1.0 - CONFIDENCE) / (2.0 * len(sides))

        def line(c: float) -> float:
            return alpha * math.exp(c) + max(side.estimated(c) for side in sides)

        slopes = np.linspace(-4.0, min(-math.log(alpha), 40.0), 33).tolist()
        c = min(slopes, key=line)
        step = slopes[1] - slopes[0]
        c = min(np.linspace(c - step, c + step, 9).tolist(), key=line)
        tops = [side.profile(c, 2.0 * failure) for side in sides]
        upper = min(alpha * math.exp(c) + max(top.upper for top in tops), 1.0)
        below = [side.gamma_below(alpha, c, failure) for side in sides]
        lower = max(low for _, _, low in below)
        value, error, _ = max(below)
        if len(sides) == 2:  # the hull may lie on a line between both curves
            on_line = min(alpha * math.exp(c) + max(top.value for top in tops), 1.0)
            if on_line > value:
                value, error = on_line, max(top.error for top in tops)
        upper = max(upper, alpha)
        value = min(max(value, lower, alpha), upper)
        return _Found(value, min(max(lower, alpha), upper), upper, error)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        sides = self._sides(of_b=False)
        failure = (1.0 - CONFIDENCE) / len(sides)
        return _answer(
            [_largest([side.profile(float(x), failure) for side in sides]) for x in epsilon]
        )

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        sides = self._sides(of_b=False)
        failure = (1.0 - CONFIDENCE) / len(sides)
        found = []
        for x in map(float, delta):
            if x in (0.0, 1.0):
                end = 0.0 if x else math.inf
                found.append(_Found(end, end, end, 0.0))
            else:
                found.append(_largest([side.epsilon(x, failure) for side in sides]))
        return _answer(found)


def _answer(rows: Sequence[_Found]) -> Answer:
    """Values in their intervals; refused where neither these nor the samples tell a digit."""
    for row in rows:
        if row.error > DIGIT * row.value and row.upper > CLEAR * row.lower:
            raise AccuracyError(
                f"too few samples tell of this value: with a confidence of {CONFIDENCE} it lies "
                f"between {row.lower:.3g} and {row.upper:.3g}, and no digit of it is known; "
                "method='auto' bounds it"
            )
    value, lower, upper = (np.array([row[i] for row in rows]) for i in range(3))
    return Answer(value, lower, upper, names(NAME, value.size))
