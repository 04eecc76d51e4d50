"""Is a mechanism μ-Gaussian differentially private?  Comparison of two profiles at every ε.

T >= G_μ everywhere exactly where δ(ε) <= δ_μ(ε) at every ε >= 0 and in both orders of the pair.
Between two points of a grid both profiles are convex functions of e^ε: one stays below its chord,
the other above its tangents, so that a finite comparison covers all ε (docs/calibration).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._filter import root_above
from pyengine.errors import AccuracyError
from pyengine.mechanisms import GaussianMechanism, Mechanism, steps_of
from pyengine.numerics.rounding import LIBM, UNIT
from pyengine.search import Domain, NoiseSearch
from pyengine.special import log_ndtr

__all__ = ["least_mu", "log_excess"]

FloatArray = npt.NDArray[np.float64]

GRID = 65  # points of the first grid
TIGHT = 1e-12  # how far the bound on the largest ratio may lie above its value, relative
POINTS = 20_000  # of the finest grid: where the two profiles nearly agree, the bound stays loose
SMALLEST = 1e-290  # profiles below are not compared
ROUNDING = 8.0 * UNIT
FEW = 16  # different steps up to which μ² is summed exactly: denominators grow with their number


def log_excess(mechanism: Mechanism, mu: float, slack: float, **keywords: Any) -> float:
    """Log of a bound on the largest δ(ε)/δ_μ(ε), or of the ratio of both μ where it is known.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    mu : float
        Parameter of the Gaussian, finite.
    slack : float
        δ below which nothing is asked.
    **keywords
        Keywords of `pyengine.delta`, with bounds among them.

    Returns
    -------
    float
        At most 0 only where the mechanism is μ-GDP up to the slack, by the engines' bounds.
    """
    if keywords["adjacency"] in ("add", "remove"):  # the two curves are mirror images
        keywords = {**keywords, "adjacency": "add_remove"}
    own = _gaussian_mu(mechanism) if keywords["adjacency"] == "add_remove" else None
    if mu == 0.0:  # the two laws must agree
        distance = float(api.delta(mechanism, 0.0, **keywords).upper)
        return -math.inf if distance <= slack else math.inf
    everywhere = math.inf if own is None else math.log(own / mu) if own > 0.0 else -math.inf
    if own is not None and slack == 0.0:
        return everywhere
    end = _end(mechanism, mu, slack, **keywords)
    if end == 0.0 and slack == 0.0:  # nothing is released
        return -math.inf
    # both are asked for though either settles the sign: a search compares excesses, and two scales
    # in turn would send it the wrong way
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
    # each part errs by 4 units, and the root of their squares by two more: squares may be beyond
    # all doubles
    return math.hypot(*(math.sqrt(n) / float(s) for n, s in parts)) * (1.0 + ROUNDING)


def _end(mechanism: Mechanism, mu: float, slack: float, **keywords: Any) -> float:
    """The ε up to which the profiles are compared."""
    gaussian = GaussianMechanism(1.0 / mu)
    if slack > 0.0:  # δ is decreasing: from there on it stays below the slack
        return float(api.epsilon(gaussian, slack, adjacency="add", bounds=True).upper)
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
    """Both profiles at growing ε: an upper bound of one, a lower one of the Gaussian's."""

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
        slope = np.exp(epsilon + log_slope)
        # x errs by 2 units, and the slope by as many times x (x + 1) at most; the sum by its terms
        error = UNIT * (4.0 * x * (x + 1.0) + 4.0 * (epsilon + np.abs(log_slope)) + 4.0 * LIBM)
        return np.stack([epsilon, upper, lower, slope, error])


def _largest_log_ratio(mechanism: Mechanism, mu: float, end: float, **keywords: Any) -> float:
    """Log of a bound on the largest δ/δ_μ on [0, end]: halving where it may still be larger."""
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
        wide = bound > best * (1.0 + TIGHT)
        middle = 0.5 * (rows[0, :-1] + rows[0, 1:])[wide]
        middle = np.setdiff1d(middle, rows[0])
        if not middle.size or rows.shape[1] > POINTS:
            return math.log(top) if top > 0.0 else -math.inf
        rows = np.concatenate([rows, profiles.at(middle)], axis=1)
        rows = rows[:, np.argsort(rows[0])]


def _between(rows: FloatArray) -> FloatArray:
    """Bound on δ/δ_μ inside each interval of the grid: chord over tangents."""
    epsilon, upper, lower, slope, error = rows
    gap = np.diff(epsilon)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # (t_b - t_a) / t_a and (t_b - t_a) / t_b with t = e^ε; from its point on a tangent that is
        # too steep lies lower, towards its point one that is too flat
        fall_a = slope[:-1] * np.expm1(gap) * (1.0 + error[:-1])
        fall_b = slope[1:] * -np.expm1(-gap) * (1.0 - error[1:])
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
    """Return the smallest μ for which a mechanism is μ-GDP up to a slack, from above.

    Parameters
    ----------
    mechanism, slack, **keywords
        As in `log_excess`.
    start : float
        Where the search begins, > 0.

    Returns
    -------
    float
        0 where nothing is released.
    """
    keywords_add = {**keywords, "adjacency": "add_remove"}
    if slack == 0.0 and keywords["adjacency"] in ("add", "remove", "add_remove"):
        own = _gaussian_mu(mechanism)
        if own is not None:
            return own
    if float(api.delta(mechanism, 0.0, **keywords_add).upper) <= slack:
        return 0.0
    search = NoiseSearch(
        lambda mu: log_excess(mechanism, mu, slack, **keywords),
        lambda _: True,
        Domain(2.0**-60, 2.0**60, False),
        1e-9,
    )
    return search.boundary(start, grows=False)
