"""Monte Carlo at any level: importance sampling of losses from an exponentially tilted law.

Every step's density under A is multiplied by e^{λL}, normalised.  The weights of A and B beyond
the threshold are then at most those at it, and relative errors do not grow when κ falls.  Intervals
are those of `pyengine.engines.monte_carlo`; the range of the true threshold comes from Bennett's
inequality, as the mean of A's weights above it is κ.
"""

from __future__ import annotations

import math

import numpy as np

from pyengine.engines.intervals import deviation, empirical_bernstein
from pyengine.engines.loss_quadrature import Loss, losses
from pyengine.engines.monte_carlo import Sample, pilot_of
from pyengine.mechanisms import Mechanism
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected

__all__ = ["saddle_tilt", "tilted_gamma"]

STEEPEST = 1e4  # largest tilt, times the range of a step's loss
STEPS_DOWN = (1.0, 2.0, 4.0)  # points below the centre, in 1/λ, tested to be below the threshold
ROUNDING = 1e-12  # relative, of the bound κ e^{highest loss}, which may be attained


def _cumulants(terms: list[Loss], tilt: float) -> tuple[float, float, float]:
    """Logarithm of E_A e^{λS}, and mean and variance of S under A tilted by λ."""
    k = slope = curvature = 0.0
    for t in terms:
        with np.errstate(divide="ignore"):
            exponent = fn.log(t.under_a) + tilt * t.loss
        top = float(exponent.max())
        weight = fn.exp(exponent - top)
        total = float(weight.sum())
        mean = float(weight @ t.loss) / total
        k += t.steps * (top + fn.log(total))
        slope += t.steps * mean
        curvature += t.steps * float(weight @ (t.loss - mean) ** 2) / total
    return k, slope, curvature


def saddle_tilt(terms: list[Loss], kappa: float) -> float:
    """λ >= 0 such that the mean of S under A tilted by λ is about the threshold of level κ."""

    def log_tail(tilt: float) -> float:
        k, slope, curvature = _cumulants(terms, tilt)
        mills = 1.0 + tilt * math.sqrt(0.5 * math.pi * curvature)
        return k - tilt * slope - fn.log(2.0 * mills)

    target = fn.log(kappa)
    # for κ below the mass of the largest loss no tilt is large enough
    largest = STEEPEST / max(float(np.ptp(t.loss)) for t in terms)
    low, high = 0.0, min(1.0, largest)
    while high < largest and log_tail(high) > target:
        high = min(2.0 * high, largest)
    found, _ = bisected(lambda tilt: log_tail(float(tilt)) > target, low, high, rounds=60)
    return float(found)


def tilted_gamma(
    mechanism: Mechanism,
    adjacency: str,
    kappa: float,
    samples: int,
    seed: int,
    confidence: float,
    threads: int | None = None,
) -> tuple[float, float, float]:
    """γ(κ) from tilted samples: an estimate, and the ends of a confidence interval."""
    terms = losses(mechanism, adjacency)
    tilt = saddle_tilt(terms, kappa)
    pilot = pilot_of(mechanism, adjacency, samples, seed, tilt, threads)
    s, failure = Sample(mechanism, adjacency, samples, seed, tilt, threads), 1.0 - confidence
    known = _known(pilot, kappa, _cumulants(terms, tilt)[1], 0.25 * failure)
    c = float(pilot.loss[min(_rank(pilot, kappa)[0], pilot.size - 1)])
    lower, upper = _interval(s, kappa, c, known, 0.25 * failure)
    k, part = _rank(s, kappa)
    rank = np.array([k + part])
    value = s.at(s.b_above, rank)[0] if tilt >= 1.0 else 1.0 - s.at(s.b_below, rank)[0]
    # γ <= κ e^{highest loss}, attained for κ below that loss's probability
    with np.errstate(over="ignore"):
        most_of_all = kappa * fn.exp(math.fsum(t.steps * t.highest for t in terms))
    ceiling = float(min(most_of_all * (1.0 + ROUNDING), 1.0))
    estimate, least, top = (min(max(float(x), kappa), ceiling) for x in (value, lower, upper))
    return min(max(estimate, least), top), least, top


def _interval(
    s: Sample, kappa: float, c: float, known: tuple[float, float], failure: float
) -> tuple[float, float]:
    """Bounds of γ; c and the ``known`` range of the threshold must be independent of ``s``.

    The weights of B, and those of A times the slope, are divided by B's weight at c.  B's are then
    at most 1 above c for tilts >= 1, and below c for smaller tilts; means are taken on that side.
    """
    beyond = s.loss > c
    with np.errstate(over="ignore", under="ignore"):
        unit = fn.exp(min(s.log_mgf + (1.0 - s.tilt) * c, 709.0))
        of_a, of_b = (fn.exp((shift - s.tilt) * (s.loss - c)) for shift in (0.0, 1.0))

    def bound(log_slope: float, side: float) -> float:
        """B(S > c) + slope (κ - A(S > c)), plus ``side`` times the bound of its error."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = at_slope(log_slope, side)
        return found if math.isfinite(found) else side * math.inf  # an overflow bounds nothing

    def at_slope(log_slope: float, side: float) -> float:
        slope = fn.exp(min(log_slope - c, 709.0))  # in units of e^c
        if s.tilt >= 1.0:
            drawn, sign, whole = np.where(beyond, of_b - slope * of_a, 0.0), 1.0, 0.0
        else:
            drawn, sign, whole = np.where(beyond, slope * of_a, of_b), -1.0, 1.0
        mean, square = drawn.mean(keepdims=True), np.square(drawn).mean(keepdims=True)
        width = np.array([max(slope, 1.0)])
        off = empirical_bernstein(mean, square, width, s.size, failure)
        middle = whole + sign * unit * float(mean[0]) + kappa * fn.exp(min(log_slope, 709.0))
        return middle + side * unit * float(off[0])

    return min(bound(x, -1.0) for x in known), bound(c, 1.0)


def _rank(s: Sample, kappa: float) -> tuple[int, float]:
    """Number of largest losses, and fraction of the next one, with A-weights that sum to κ."""
    k = min(int(np.searchsorted(s.a_above, kappa, side="right")) - 1, s.size - 1)
    rest, weight = float(kappa - s.a_above[k]), float(s.a_above[k + 1] - s.a_above[k])
    # rest >= weight only where the last weight is lost in the rounding of the sum
    return k, rest / weight if rest < weight else 1.0


def _known(s: Sample, kappa: float, centre: float, failure: float) -> tuple[float, float]:
    """Range of the threshold of level κ, up to a failure probability.

    Weights above a threshold are bounded by the weight at it, which is useless far below; that the
    threshold is not there is tested at fixed points, independent of the samples.
    """
    limit = fn.log((2.0 + len(STEPS_DOWN)) / failure) / s.size
    with np.errstate(over="ignore"):
        bound = fn.exp(s.log_mgf - s.tilt * np.append(s.loss, -math.inf if s.tilt else 0.0))
        possible = deviation(s.a_above, kappa) <= limit * bound
    lowest = -math.inf
    for step in STEPS_DOWN if s.tilt else ():
        point = centre - step / s.tilt
        rank = int(np.searchsorted(-s.loss, -point))  # losses above the point
        mean = s.a_above[rank]
        largest = fn.exp(min(s.log_mgf - s.tilt * point, 709.0))
        if mean > kappa and deviation(mean, kappa) > limit * largest:
            lowest = max(lowest, point)
            possible[rank + 1 :] = False
    found = np.flatnonzero(possible)  # possible numbers of losses above the threshold
    if not found.size:  # happens with at most the failure probability
        return -math.inf, -fn.log(kappa)
    first, last = (np.array([float(found[i])]) for i in (0, -1))
    lowest = max(float(s.threshold(last, up=False)[0]), lowest)
    # e^c <= 1/κ, as E_A e^S = 1
    return lowest, min(float(s.threshold(first, up=True)[0]), -fn.log(kappa))
