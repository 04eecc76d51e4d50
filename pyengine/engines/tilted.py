"""Monte Carlo at any level: losses from a law that is tilted to where the level is decided.

Every step's density under A is multiplied by e^{λL}.  The weights of A and B on the events asked
for are then bounded by their value at the threshold, and the relative error does not grow when κ
falls.  As in `pyengine.engines.monte_carlo` the true threshold c is a fixed number of unknown rank:
the mean of A's weights above c is κ, so Bennett's inequality says which ranks are possible, and
applied to B's weights on the side of c where they are bounded it gives γ.
"""

from __future__ import annotations

import math

import numpy as np

from pyengine.engines.intervals import bennett_interval, deviation
from pyengine.engines.measures import Loss, losses
from pyengine.engines.monte_carlo import Sample
from pyengine.mechanisms import Mechanism

__all__ = ["saddle_tilt", "tilted_gamma"]

STEEPEST = 1e4  # largest tilt times the range of a step's loss
FEWEST = 200  # samples of the pilot
ROUNDING = 1e-12  # of a bound that may be attained
OTHER = 0x9E3779B97F4A7C15  # bits that make the pilot's seed another one


def saddle_tilt(terms: list[Loss], kappa: float) -> float:
    """λ >= 0 such that A tilted by λ is centred about where A's tail is roughly κ."""

    def log_tail(tilt: float) -> float:
        k = slope = curvature = 0.0
        for t in terms:
            with np.errstate(divide="ignore"):
                exponent = np.log(t.under_a) + tilt * t.loss
            top = float(exponent.max())
            weight = np.exp(exponent - top)
            total = float(weight.sum())
            mean = float(weight @ t.loss) / total
            k += t.steps * (top + math.log(total))
            slope += t.steps * mean
            curvature += t.steps * float(weight @ (t.loss - mean) ** 2) / total
        mills = 1.0 + tilt * math.sqrt(0.5 * math.pi * curvature)
        return k - tilt * slope - math.log(2.0 * mills)

    target = math.log(kappa)
    # where κ is below the largest loss's atom, no tilt is large enough
    largest = STEEPEST / max(float(np.ptp(t.loss)) for t in terms)
    low, high = 0.0, min(1.0, largest)
    while high < largest and log_tail(high) > target:
        high = min(2.0 * high, largest)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_tail(middle) > target else (low, middle)
    return low


def tilted_gamma(
    mechanism: Mechanism,
    adjacency: str,
    kappa: float,
    samples: int,
    seed: int,
    confidence: float,
    threads: int | None = None,
) -> tuple[float, float, float]:
    """γ(κ) from tilted samples: estimate, lower and upper end of its interval.

    Parameters
    ----------
    mechanism, adjacency, samples, seed, threads
        As for `Sample`.
    kappa : float
        Level, in (0, 1).
    confidence : float
        Share of intervals that hold the truth, at least.
    """
    terms = losses(mechanism, adjacency)
    tilt = saddle_tilt(terms, kappa)
    pilot = Sample(
        mechanism, adjacency, max(samples // 8, FEWEST), seed ^ OTHER, tilt, threads
    )  # independent of the samples: it may choose what they are asked
    centre = float(pilot.loss[min(_rank(pilot, kappa)[0], pilot.size - 1)])
    s, failure = Sample(mechanism, adjacency, samples, seed, tilt, threads), 1.0 - confidence
    first, last = _ranks(s, kappa, centre, 0.5 * failure)
    k, part = _rank(s, kappa)
    rank = np.array([k + part])
    fewest, most = np.array([float(first)]), np.array([float(last)])
    if s.tilt >= 1.0:  # B's mass above the threshold is the small one, its terms are bounded there
        sums, ends, c = s.b_above, (fewest, most), s.threshold(most, up=False)
    else:
        c = np.minimum(s.threshold(fewest, up=True), -math.log(kappa))  # E_A e^S = 1
        sums, ends = s.b_below, (most, fewest)
    with np.errstate(over="ignore"):
        bound = np.exp(s.log_mgf + (1.0 - s.tilt) * c)
    low, high = (s.at(sums, end) for end in ends)
    lower, upper = bennett_interval(low, high, bound, s.size, 0.5 * failure)
    value = s.at(sums, rank)
    parts = (value, lower, upper) if s.tilt >= 1.0 else (1.0 - value, 1.0 - upper, 1.0 - lower)
    # dB/dA is at most e^{highest loss}: attained where κ is below that loss's probability
    with np.errstate(over="ignore"):
        most_of_all = kappa * np.exp(math.fsum(t.steps * t.highest for t in terms))
    ceiling = float(min(most_of_all * (1.0 + ROUNDING), 1.0))
    estimate, least, top = (min(max(float(part[0]), kappa), ceiling) for part in parts)
    return min(max(estimate, least), top), least, top


def _rank(s: Sample, kappa: float) -> tuple[int, float]:
    """How many losses, and which part of the next one, the estimate of A's tail needs for κ."""
    k = min(int(np.searchsorted(s.a_above, kappa, side="right")) - 1, s.size - 1)
    return k, min(float((kappa - s.a_above[k]) / (s.a_above[k + 1] - s.a_above[k])), 1.0)


def _ranks(s: Sample, kappa: float, centre: float, failure: float) -> tuple[int, int]:
    """Range of how many losses lie above the threshold of level κ, up to a failure probability.

    The weights at a threshold are bounded by their value there, which says nothing far below; that
    the threshold does not lie there is tested at one point that the samples had no part in.
    """
    limit = math.log(3.0 / failure) / s.size
    with np.errstate(over="ignore"):
        bound = np.exp(s.log_mgf - s.tilt * np.append(s.loss, -math.inf if s.tilt else 0.0))
        possible = deviation(s.a_above, kappa) <= limit * bound
    if s.tilt:
        point = centre - 1.0 / s.tilt
        rank = int(np.searchsorted(-s.loss, -point))  # losses above the point
        mean = s.a_above[rank]
        if mean > kappa and deviation(mean, kappa) > limit * math.exp(s.log_mgf - s.tilt * point):
            possible[rank + 1 :] = False
    found = np.flatnonzero(possible)
    return int(found[0]), int(found[-1])
