"""Monte Carlo estimates of the test between both laws, with confidence intervals.

Algorithm 1 of Hayes et al. 2023 draws losses under A and sums the likelihood ratios of the largest
ones.  Memory is one number for each sample, not one for each sample and step.

Intervals: a pilot of independent samples chooses a threshold c and a range of the true one.  β is
bounded from below by the line of slope -e^c that touches the trade-off function, and from above by
the test at c, moved to the level α with a slope in that range; both are means of bounded variables
(docs/approximations).  `pyengine.engines.tilted` is for levels that are too small for this.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyengine._support.caches import cached_property, kept
from pyengine.engines.answers import PROFILE, Answer, ErrorCurve, LawQuestion, names
from pyengine.engines.approximate import ApproximatePair, FloatArray, warn_where
from pyengine.engines.intervals import (
    bennett_interval,
    deviation,
    empirical_bernstein,
    rank_range,
)
from pyengine.engines.inverse_cdf import loss_table, sample_losses
from pyengine.engines.loss_quadrature import losses
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics.bracketing import inverse_profile

__all__ = ["CONFIDENCE", "MOST_SAMPLES", "SAMPLES", "MonteCarloPair", "Sample", "pilot_of"]

NAME = "monte_carlo"
SAMPLES, SEED, CONFIDENCE = 10**6, 0, 0.99
MOST_SAMPLES = 10**10  # whose losses take 80 GB
PILOT, FEWEST = 8, 200  # the pilot has 1/PILOT as many samples, and at least FEWEST
PILOT_SEED = 0x9E3779B97F4A7C15  # xor of the pilot's seed and that of the samples


class Sample:
    """Losses drawn from A tilted by e^{λL}, λ >= 0, in decreasing order."""

    def __init__(
        self,
        mechanism: Mechanism,
        adjacency: str,
        samples: int,
        seed: int,
        tilt: float = 0.0,
        threads: int | None = None,
    ) -> None:
        terms = losses(mechanism, adjacency)
        self.largest = math.fsum(t.largest * t.steps for t in terms)
        kinds = [(s, n) for s, n in steps_of(mechanism) if getattr(s, "probability", 1.0) > 0.0]
        tables = [loss_table(s, n, tilt, reversed_=adjacency == "remove") for s, n in kinds]
        self.size, self.tilt = samples, tilt
        self.log_mgf = math.fsum(table.steps * table.log_mgf for table in tables)
        drawn = sample_losses(tables, samples, seed, threads)
        drawn.sort()
        self.loss = drawn[::-1]
        # index k: sums of A's and B's weights over the k largest losses, and of B's over the rest,
        # divided by the number of samples
        self.a_above = self._sums(-tilt, self.loss)
        self.b_above = self._sums(1.0 - tilt, self.loss)
        self.b_below = self._sums(1.0 - tilt, drawn)[::-1]

    def _sums(self, slope: float, loss: FloatArray) -> FloatArray:
        total = np.empty(self.size + 1)
        total[0] = 0.0
        weights = total[1:]
        np.multiply(loss, slope, out=weights)
        weights += self.log_mgf
        with np.errstate(over="ignore", under="ignore"):
            np.exp(weights, out=weights)
        weights /= self.size
        np.cumsum(weights, out=weights)
        return total

    def at(self, sums: FloatArray, rank: FloatArray) -> FloatArray:
        """Cumulative sums at fractional ranks, by linear interpolation."""
        rank = np.clip(rank, 0.0, self.size)
        k = np.minimum(rank.astype(np.int64), self.size - 1)
        return np.asarray(sums[k] + (rank - k) * (sums[k + 1] - sums[k]))

    def threshold(self, rank: FloatArray, *, up: bool) -> FloatArray:
        """The loss at a rank, rounded outwards: ∞ above the largest, -∞ below the smallest."""
        k = np.floor(rank).astype(np.int64) - 1 if up else np.ceil(rank).astype(np.int64)
        inside = (k >= 0) & (k < self.size)
        value = self.loss[np.clip(k, 0, self.size - 1)]
        return np.where(inside, value, math.inf if up else -math.inf)


def pilot_of(
    mechanism: Mechanism,
    adjacency: str,
    samples: int,
    seed: int,
    tilt: float = 0.0,
    threads: int | None = None,
) -> Sample:
    """Samples independent of those of the seed, by which thresholds may be chosen for those."""
    size = max(samples // PILOT, FEWEST)
    return Sample(mechanism, adjacency, size, seed ^ PILOT_SEED, tilt, threads)


@kept(4, grows=True)
def _plain(mechanism: Mechanism, adjacency: str, samples: int, seed: int) -> tuple[Sample, Sample]:
    pilot = pilot_of(mechanism, adjacency, samples, seed)
    return Sample(mechanism, adjacency, samples, seed), pilot


class MonteCarloPair(ApproximatePair):
    """Algorithm 1 of Hayes et al. 2023 on one ordered pair."""

    name = NAME

    def __init__(
        self,
        mechanism: Mechanism,
        adjacency: str,
        samples: int = SAMPLES,
        seed: int = SEED,
        confidence: float = CONFIDENCE,
        threads: int | None = None,
    ) -> None:
        if threads is None:
            self._sample, self._pilot = _plain(mechanism, adjacency, samples, seed)
        else:
            self._sample = Sample(mechanism, adjacency, samples, seed, threads=threads)
            self._pilot = pilot_of(mechanism, adjacency, samples, seed, threads=threads)
        self._failure, self.largest = 1.0 - confidence, self._sample.largest

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        s, rank = self._sample, alpha * self._sample.size
        # the paper prints the mean over the kept ratios; it means their sum over the sample size
        lower, upper = (np.clip(end, 0.0, 1.0 - alpha) for end in self._interval(alpha))
        beta = np.clip(1.0 - s.at(s.b_above, rank), lower, upper)
        gamma, c = np.maximum(1.0 - beta, alpha), s.threshold(rank, up=False)
        warn_where(np.minimum(beta, gamma), np.maximum(upper - beta, beta - lower), NAME)
        least, most = np.maximum(1.0 - upper, alpha), 1.0 - lower
        label = names(NAME, alpha.size)
        return ErrorCurve(
            Answer(beta, lower, upper, label), Answer(gamma, least, most, label.copy()), c
        )

    def _interval(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of β: by a line below T, and by a test near α, moved to α with the true slope."""
        s, pilot, failure = self._sample, self._pilot, 0.25 * self._failure
        fewest, most = (x * pilot.size for x in rank_range(alpha, pilot.size, failure))
        c = pilot.loss[np.minimum((alpha * pilot.size).astype(np.int64), pilot.size - 1)]
        with np.errstate(over="ignore", divide="ignore"):
            # e^c <= 1/α, as A(S > c) = α and E_A e^S = 1
            steepest = np.minimum(np.exp(pilot.threshold(fewest, up=True)), 1.0 / alpha)
            flattest = np.exp(pilot.threshold(most, up=False))
        rank = np.searchsorted(-s.loss, -c)  # how many losses are above c
        above, below, slope = rank / s.size, s.b_below[rank], np.exp(c)
        with np.errstate(over="ignore", invalid="ignore"):
            square = self._squares[rank]

            def mean(slope: FloatArray, side: float) -> FloatArray:
                """Bound of B(S <= c) + slope A(S > c)."""
                value = below + slope * above
                width = np.maximum(slope, np.exp(c))
                squares = square + slope * slope * above
                off = empirical_bernstein(value, squares, width, s.size, failure)
                return np.asarray(value + side * off - slope * alpha)

            lower = mean(slope, -1.0)
            upper = np.maximum(mean(flattest, 1.0), mean(steepest, 1.0))
        # no bound where the slope overflows
        return np.nan_to_num(lower, nan=0.0, neginf=0.0), np.nan_to_num(upper, nan=1.0, posinf=1.0)

    @cached_property
    def _squares(self) -> FloatArray:
        """Index k: sum of squares of B's weights but for the k largest losses, over the size."""
        s = self._sample
        with np.errstate(over="ignore", under="ignore"):
            squares = np.exp(2.0 * s.loss[::-1]) / s.size
            return np.concatenate([[0.0], np.cumsum(squares)])[::-1]

    def middle(self) -> tuple[float, float]:
        """A(S > 0) and B(S <= 0)."""
        s = self._sample
        rank = int(np.searchsorted(-s.loss, 0.0))
        return rank / s.size, float(s.b_below[rank])

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Estimates of the profile: sample means of (1 - e^{S+ε})₊, which is in [0, 1]."""
        s, small = self._sample, self._sample.loss[::-1]
        below = np.searchsorted(small, -epsilon)  # how many losses are smaller than -ε
        with np.errstate(over="ignore", invalid="ignore"):
            second = np.exp(epsilon + np.log(np.maximum(s.b_below[s.size - below], 1e-320)))
        value = below / s.size - np.where(below > 0, second, 0.0)
        return np.asarray(np.clip(value, 0.0, 1.0))

    def interval(
        self, question: LawQuestion[Any], x: FloatArray, value: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """By Bennett's inequality; for ε, those whose sample profile is consistent with δ."""
        s, failure = self._sample, self._failure
        if question is PROFILE:
            lower, upper = bennett_interval(value, value, np.ones(value.size), s.size, failure)
            return lower, np.minimum(upper, 1.0)
        # at the true ε the sample mean deviates from δ by no more than Bennett's inequality allows
        limit = math.log(2.0 / failure) / s.size

        def apart(e: FloatArray, side: float) -> FloatArray:
            mean = self.delta(e)
            far = deviation(mean, np.maximum(x, 1e-300)) > limit
            return (far & (side * (mean - x) > 0.0)).astype(np.float64)

        half = np.full(x.size, 0.5)
        lower = inverse_profile(lambda e: apart(e, 1.0), half, s.largest)
        upper = inverse_profile(lambda e: 1.0 - apart(e, -1.0), half, s.largest)
        exact = x == 0.0
        lower = np.where(exact, value, np.minimum(lower, value))
        upper = np.where(exact, value, np.maximum(upper, value))
        return lower, upper
