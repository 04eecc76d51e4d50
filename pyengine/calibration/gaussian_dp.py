"""Is a mechanism μ-Gaussian differentially private?  Comparison of two profiles at every ε.

T >= G_μ everywhere if and only if δ(ε) <= δ_μ(ε) at every ε >= 0 for both orders of the pair.
Both profiles are convex functions of e^ε: between two grid points one lies below its chord, the
other above its tangents, so that a finite comparison covers all ε (docs/calibration).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine.calibration.search import Domain, NoiseSearch, Unreachable
from pyengine.errors import AccuracyError
from pyengine.mechanisms import GaussianMechanism, Mechanism, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.gaussian_filter import root_above
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.special import log_ndtr

__all__ = ["largest_regret", "least_mu", "log_excess", "mu_from_below"]

FloatArray = npt.NDArray[np.float64]

GRID = 65  # points of the first grid
TIGHT = 1e-12  # accepted relative distance of the bound on the largest ratio from its value
LOOSE = 1e-2  # the same for the log of the ratio
POINTS = 20_000  # most points of a grid; if both profiles nearly agree, the bound stays loose
SMALLEST = 1e-290  # smaller δ are not compared
ROUNDING = 8.0 * UNIT
FAINT = 1e-12  # δ of the Gaussian at the end of the grid; beyond, it bounds the regret by itself
INSIDE = 1e-9  # relative distance of a δ from the slack
FOCUS = 5  # rounds of a search, each of which divides a range of ε by 16
REGRET, REGRET_FINEST = 1e-3, 1e-9  # width of the bounds on a regret, relative and absolute
FEW = 16  # different steps up to which μ² is summed exactly: denominators grow with their number


def log_excess(mechanism: Mechanism, mu: float, slack: float, **keywords: Any) -> float:
    """Log of a bound on the largest δ(ε)/δ_μ(ε), or of the ratio of both μ if that is smaller.

    It is at most 0 only if the mechanism is proven, by the engines' bounds, to be μ-GDP up to
    ``slack`` in δ.
    """
    keywords = {**keywords, "adjacency": _both(keywords["adjacency"])}
    own = _gaussian_mu(mechanism) if keywords["adjacency"] == "add_remove" else None
    if mu == 0.0:  # the two laws must agree
        distance = float(api.delta(mechanism, 0.0, **keywords).upper)
        return -math.inf if distance <= slack else math.inf
    everywhere = math.inf if own is None else fn.log(own / mu) if own > 0.0 else -math.inf
    if own is not None and slack == 0.0:
        return everywhere
    if slack > 0.0 and float(api.delta(mechanism, 0.0, **keywords).upper) <= slack:
        return -math.inf
    end = _end(mechanism, mu, slack, **keywords)
    if end == 0.0 and slack == 0.0:  # nothing is released
        return -math.inf
    # both are computed, though either may decide the sign: a search compares excesses, and would
    # be misled by a change of scale
    try:
        return min(everywhere, _largest_log_ratio(mechanism, mu, end, **keywords))
    except AccuracyError:
        if everywhere > 0.0:
            raise
        return everywhere


def _gaussian_mu(mechanism: Mechanism) -> float | None:
    """The smallest μ of a composition of Gaussian steps, rounded up; None for other mechanisms."""
    parts = []
    for step, number in steps_of(mechanism):
        noise = step.inner.noise
        sampled = step.scheme not in ("none", "poisson")
        if noise is None or noise.family != "gaussian" or sampled:
            return None
        if step.share > 0:
            parts.append((number, noise.multiplier))
    if len(parts) <= FEW:
        return root_above(sum((n / Fraction(s) ** 2 for n, s in parts), start=Fraction(0)))
    # scaled by the largest part, since squares may overflow; errors: 4 units of a part, 6 after
    # scaling, 7 of the root
    sizes = [math.sqrt(n) / float(s) for n, s in parts]
    top = max(sizes)
    root = math.sqrt(math.fsum((x / top) * (x / top) for x in sizes))
    return top * root * (1.0 + 2.0 * ROUNDING)


def _end(mechanism: Mechanism, mu: float, slack: float, **keywords: Any) -> float:
    """The ε up to which the profiles are compared."""
    gaussian = GaussianMechanism(1.0 / mu)
    if slack > 0.0:  # δ is decreasing: from there on either profile stays below the slack
        end = float(api.epsilon(gaussian, slack, adjacency="add", bounds=True).upper)
        try:
            return min(end, float(api.epsilon(mechanism, slack, **keywords).upper))
        except AccuracyError:
            return end
    end = float(api.epsilon(mechanism, 0.0, **keywords).upper)
    if end == math.inf:
        raise ValueError(
            "slack must be above 0 for mechanisms with unbounded losses that are not made of "
            f"Gaussian steps alone, got 0.0 for {mechanism!r}"
        )
    if float(api.delta(gaussian, end, adjacency="add")) < SMALLEST:
        raise AccuracyError(
            f"the profile of the Gaussian with mu={mu!r} is below {SMALLEST:g} at the largest loss "
            f"{end!r} of the mechanism; a slack above 0 would leave that range out"
        )
    return end


class _Profiles:
    """Upper bounds of the mechanism's profile and lower bounds of the Gaussian's."""

    def __init__(self, mechanism: Mechanism, mu: float, **keywords: Any) -> None:
        self._mechanism, self._mu, self._keywords = mechanism, mu, keywords
        self._gaussian = GaussianMechanism(1.0 / mu)

    def at(self, epsilon: FloatArray) -> FloatArray:
        """Rows ε, δ(ε), δ_μ(ε), its derivative by e^ε, times e^ε, and the error of that."""
        upper = api.delta(self._mechanism, epsilon, **self._keywords).upper
        lower = api.delta(self._gaussian, epsilon, adjacency="add", bounds=True).lower
        # d δ_μ / d e^ε = -Φ(-ε/μ - μ/2)
        x = epsilon / self._mu + 0.5 * self._mu
        log_slope = log_ndtr(-x)
        slope = fn.exp(epsilon + log_slope)
        # x errs by 2 units, and the slope by as many times x (x + 1) at most; the sum by its terms
        error = UNIT * (
            4.0 * x * (x + 1.0) + 4.0 * (epsilon + np.abs(log_slope)) + 4.0 * ELEMENTARY
        )
        return np.stack([epsilon, upper, lower, slope, error])


def _largest_log_ratio(mechanism: Mechanism, mu: float, end: float, **keywords: Any) -> float:
    """Log of a bound on the largest δ/δ_μ on [0, end]; intervals are halved where it is loose."""
    profiles = _Profiles(mechanism, mu, **keywords)
    rows = profiles.at(np.unique(np.linspace(0.0, end, GRID)))
    while True:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(rows[1] > 0.0, rows[1] / rows[2], 0.0)
        best = float(ratio.max())
        if not math.isfinite(best):
            return math.inf
        bound = _between(rows)
        top = max(best, float(bound.max(initial=0.0)))
        # if the log is far from 0, a search needs its sign and a few digits only
        far = LOOSE * abs(fn.log(best)) if best > 0.0 else 0.0
        wide = bound > best * fn.exp(min(max(TIGHT, far), 1.0))
        middle = 0.5 * (rows[0, :-1] + rows[0, 1:])[wide]
        middle = np.setdiff1d(middle, rows[0])
        if not middle.size or rows.shape[1] > POINTS:
            return fn.log(top) if top > 0.0 else -math.inf
        rows = np.concatenate([rows, profiles.at(middle)], axis=1)
        rows = rows[:, np.argsort(rows[0])]


def _between(rows: FloatArray) -> FloatArray:
    """Bound on δ/δ_μ inside each interval of the grid: chord of δ over tangents of δ_μ."""
    epsilon, upper, lower, slope, error = rows
    gap = np.diff(epsilon)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # (t_b - t_a) / t_a and (t_b - t_a) / t_b with t = e^ε; from its point on a tangent that is
        # too steep lies lower, towards its point one that is too flat
        fall_a = slope[:-1] * fn.expm1(gap) * (1.0 + error[:-1])
        fall_b = slope[1:] * -fn.expm1(-gap) * (1.0 - error[1:])
        # where the tangents cross, as a share of the interval in t; wherever that is put, the ratio
        # to the first tangent is monotone before it, and to the second one behind it
        cross = (lower[:-1] - lower[1:] - fall_b) / (fall_a - fall_b)
        cross = np.clip(np.where(np.isfinite(cross), cross, 0.5), 0.0, 1.0)
        tangent = np.minimum(lower[:-1] - fall_a * cross, lower[1:] + fall_b * (1.0 - cross))
        tangent -= ROUNDING * lower[:-1]
        chord = upper[:-1] + (upper[1:] - upper[:-1]) * cross
        bound = np.where(tangent > 0.0, chord / tangent, np.where(chord > 0.0, np.inf, 0.0))
    return np.where(np.isnan(bound), np.inf, bound * (1.0 + ROUNDING))


def least_mu(mechanism: Mechanism, start: float, slack: float, **keywords: Any) -> float:
    """Upper bound of the least μ for which a mechanism is μ-GDP up to a slack; inf if none."""
    keywords = {**keywords, "adjacency": _both(keywords["adjacency"])}
    own = _gaussian_mu(mechanism) if keywords["adjacency"] == "add_remove" else None
    if own is not None and slack == 0.0:
        return own
    if float(api.delta(mechanism, 0.0, **keywords).upper) <= slack:
        return 0.0
    search = NoiseSearch(
        lambda mu: log_excess(mechanism, mu, slack, **keywords),
        lambda _: True,
        Domain(2.0**-60, 2.0**60, False),
        1e-9,
    )
    try:
        found = float(search.boundary(start, grows=False))
    except Unreachable as end:
        if end.error is not None:
            raise end.error from None
        return math.inf
    return found if own is None else min(found, own)


def mu_from_below(mechanism: Mechanism, mu: float, slack: float, **keywords: Any) -> float:
    """Lower bound of all μ for which a mechanism is μ-GDP up to a slack; 0 if none is found.

    ``mu`` is the result of `least_mu`.  The bound is the largest of several numbers below it whose
    δ_μ(ε) is exceeded at some ε; it is close if a single ε is decisive.
    """
    keywords = {**keywords, "adjacency": _both(keywords["adjacency"])}
    if mu == 0.0 or float(api.delta(mechanism, 0.0, **keywords).lower) <= slack:
        return 0.0
    if mu == math.inf:
        return 0.0
    if slack == 0.0 and keywords["adjacency"] == "add_remove" and _gaussian_mu(mechanism):
        return mu * (1.0 - 2.0 * ROUNDING)  # ``mu`` is exact up to rounding
    low, high = 0.0, _end(mechanism, mu, slack, **keywords)
    if slack > 0.0:  # just inside of where the profile is above the slack
        inside = api.epsilon(mechanism, slack * (1.0 + INSIDE), **keywords)
        high = min(high, float(inside.lower))
    for _ in range(FOCUS):
        places = np.linspace(low, high, 33)
        rows = _both_profiles(mechanism, GaussianMechanism(1.0 / mu), places, **keywords)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(rows[1] > slack, rows[1] / rows[4], 0.0)
        at = int(np.argmax(ratio))
        low, high = float(places[max(at - 1, 0)]), float(places[min(at + 1, 32)])
    for gap in (1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.5):
        smaller = mu * (1.0 - gap)
        rows = _both_profiles(mechanism, GaussianMechanism(1.0 / smaller), places, **keywords)
        if ((rows[1] > rows[4]) & (rows[1] > slack)).any():
            return smaller
    return 0.0


def largest_regret(mechanism: Mechanism, mu: float, **keywords: Any) -> tuple[float, float]:
    """Bounds on the regret of reporting G_μ: the largest (δ_μ(ε) - δ(ε)) / (1 + e^ε).

    That is the smallest κ with T(α + κ) - κ <= G_μ(α) at all α, and the largest error of the Bayes
    risk over all priors; see docs/calibration.
    """
    if mu == 0.0:
        return 0.0, 0.0
    keywords = {**keywords, "adjacency": _both(keywords["adjacency"])}
    gaussian = GaussianMechanism(1.0 / mu)
    end = float(api.epsilon(gaussian, FAINT, adjacency="add", bounds=True).upper)
    rows = _both_profiles(mechanism, gaussian, np.unique(np.linspace(0.0, end, GRID)), **keywords)
    # beyond the end δ_μ is below what it is there, and 1 + e^ε is larger
    beyond = float(rows[4, -1] / (1.0 + fn.exp(min(end, 700.0)) * (1.0 - ROUNDING)))
    while True:
        weight = 1.0 + fn.exp(rows[0])
        lower = max(float(((rows[3] - rows[2]) / weight).max()) - ROUNDING, 0.0)
        most = _regret_between(rows)
        upper = max(float(most.max()), beyond, lower)
        wide = most > max(lower * (1.0 + REGRET), REGRET_FINEST)
        middle = np.setdiff1d(0.5 * (rows[0, :-1] + rows[0, 1:])[wide], rows[0])
        if not middle.size or rows.shape[1] > POINTS:
            return lower, upper
        more = _both_profiles(mechanism, gaussian, middle, **keywords)
        rows = np.concatenate([rows, more], axis=1)
        rows = rows[:, np.argsort(rows[0])]


def _both(adjacency: str) -> str:
    """Replace one order by both, which is equivalent: G_μ is symmetric."""
    return "add_remove" if adjacency in ("add", "remove") else adjacency


def _both_profiles(
    mechanism: Mechanism, gaussian: Mechanism, epsilon: FloatArray, **keywords: Any
) -> FloatArray:
    """Rows: ε, lower and upper bounds of δ(ε), lower and upper bounds of δ_μ(ε)."""
    own = api.delta(mechanism, epsilon, **keywords)
    other = api.delta(gaussian, epsilon, adjacency="add", bounds=True)
    return np.stack([epsilon, own.lower, own.upper, other.lower, other.upper])


def _regret_between(rows: FloatArray) -> FloatArray:
    """Bound on (δ_μ - δ) / (1 + t) inside each interval of the grid, with t = e^ε.

    Both profiles are convex in t: δ_μ lies below its chord, and δ above the lines through the two
    points before an interval and through the two behind it.  A chord less a line, over 1 + t, is
    monotone, so that it is the largest at an end or where the two lines meet; wherever that is put,
    the first line bounds δ before it and the second one behind it.
    """
    epsilon, lower, upper, _, most = rows
    gap = np.diff(epsilon)
    growth = fn.expm1(gap)  # (t_b - t_a) / t_a
    # what a line falls by along the interval: t' has slope >= -1, and δ does not grow
    before, behind = np.empty_like(gap), np.empty_like(gap)
    ratio = growth[1:] / -fn.expm1(-gap[:-1])  # of this interval's length to the one before
    before[1:] = np.maximum(upper[:-2] - lower[1:-1], 0.0) * ratio
    with np.errstate(over="ignore"):
        before[0] = fn.exp(epsilon[0]) * growth[0]
    behind[:-1] = np.maximum(lower[1:-1] - upper[2:], 0.0) / ratio
    behind[-1] = 0.0
    start, stop = lower[:-1], lower[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        # start - s before = stop + (1 - s) behind
        meet = (start - stop - behind) / (before - behind)
    meet = np.clip(np.where(np.isfinite(meet), meet, 0.5), 0.0, 1.0)
    chord = most[:-1] + (most[1:] - most[:-1]) * meet
    line = np.minimum(start - before * meet, stop + behind * (1.0 - meet))
    line = np.maximum(line, stop)  # δ does not grow
    with np.errstate(over="ignore"):
        weight = 1.0 + fn.exp(epsilon[:-1]) * (1.0 + growth * meet) * (1.0 - 2.0 * ROUNDING)
        ends = 1.0 + fn.exp(epsilon) * (1.0 - ROUNDING)
    at_ends = (most - lower) / ends
    rounded = ROUNDING * (1.0 + before + behind)
    found = np.maximum((chord - line + rounded) / weight, 0.0)
    return np.asarray(np.maximum(found, np.maximum(at_ends[:-1], at_ends[1:]) + ROUNDING))
