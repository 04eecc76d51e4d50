"""Mechanisms of which only samples of the trade-off function are known.

Between two samples a convex function lies below their chord, and above the extensions of the
chords on both sides.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.numerics import functions as fn
from pyengine.numerics.point_hull import lower_hull
from pyengine.numerics.rounding import UNIT

__all__ = ["SampledTradeOff"]

FloatArray = npt.NDArray[np.float64]
NAME = "sampled"
ROUNDING = 1e-9  # relative error of a slope up to which samples count as convex


class SampledTradeOff(Questions):
    """Answers from samples (α, β) of a trade-off function, exact up to rounding.

    Parameters
    ----------
    points : array_like, shape (n, 2), n >= 2
        Distinct levels and type-II errors of the optimal tests, in [0, 1], in any order; H0 is the
        data without the record.  (1, 0) is added to them.
    adjacency : {"add", "remove", "add_remove"}
        The neighbours of the answers.

    Raises
    ------
    ValueError
        If no convex decreasing function passes through the points.

    Notes
    -----
    Values are the safe ends of the bounds: γ, δ and ε from above, β from below.  Bounds hold for
    every trade-off function through the samples; for ``add`` and ``remove`` they are optimal.
    """

    def __init__(self, points: npt.ArrayLike, adjacency: str = "add") -> None:
        if adjacency == "substitute":
            raise ValueError(
                "adjacency must be 'add', 'remove' or 'add_remove' for samples, got 'substitute'"
            )
        forward = _ordered(points)
        backward = _mirrored(forward)
        # a trade-off function may be arbitrarily steep next to 0, but its value at 0 is known
        self._start = forward[0, 1] if adjacency == "add" and forward[0, 0] == 0.0 else None
        lower, upper = [], []
        for way, samples in (("add", forward), ("remove", backward)):
            if adjacency in (way, "add_remove"):
                lower.append(_vertices(samples))
                upper.append(_with_start(samples))
        self._lower = lower[0] if len(lower) == 1 else _hull(np.concatenate(lower))
        self._upper = upper[0] if len(upper) == 1 else _hull(np.concatenate(upper))

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """β and γ between the lines and the chords."""
        low = np.minimum(np.interp(alpha, *self._lower.T), 1.0 - alpha)
        high = np.minimum(np.interp(alpha, *self._upper.T), 1.0 - alpha)
        low = np.minimum(low, high)
        if self._start is not None:
            low[alpha == 0.0] = self._start
        engine = names(NAME, alpha.size)
        # from the same points, with the safe bound of each
        gamma = np.maximum(1.0 - low, alpha)
        return ErrorCurve(
            Answer(low, low.copy(), high, engine),
            Answer(gamma, np.maximum(1.0 - high, alpha), gamma.copy(), engine.copy()),
        )

    def _other(self, lower: bool) -> FloatArray:
        """Points of the trade-off function whose conjugate is the profile for this adjacency."""
        points = self._lower if lower else self._upper
        # T(P, Q) is conjugate to H(Q‖P), the profile of the other order: take the inverse function
        return _mirrored(points)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) = max over α of 1 - β(α) - e^ε α, attained at a vertex."""
        with np.errstate(over="ignore", invalid="ignore"):
            factor = fn.exp(epsilon)
            upper = _conjugate(self._other(lower=True), factor)
            lower = _conjugate(self._other(lower=False), factor)
        return Answer(upper, np.minimum(lower, upper), upper.copy(), names(NAME, epsilon.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε with δ(ε) <= δ: the largest over the vertices."""
        upper = _inverse(self._other(lower=True), delta)
        lower = _inverse(self._other(lower=False), delta)
        return Answer(upper, np.minimum(lower, upper), upper.copy(), names(NAME, delta.size))


def _conjugate(points: FloatArray, factor: FloatArray) -> FloatArray:
    alpha, beta = points.T
    moved = np.where(alpha > 0.0, factor[:, None] * alpha, 0.0)  # 0 times inf is 0 here
    found: FloatArray = np.maximum((1.0 - beta - moved).max(axis=1), 0.0)
    return found


def _inverse(points: FloatArray, delta: FloatArray) -> FloatArray:
    alpha, beta = points.T
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = fn.log((1.0 - beta - delta[:, None]) / alpha)
    needed = np.where(1.0 - beta - delta[:, None] > 0.0, needed, 0.0)
    found: FloatArray = np.maximum(needed.max(axis=1), 0.0)
    return found


def _ordered(points: npt.ArrayLike) -> FloatArray:
    """Check the samples, sort them by α, and add (1, 0)."""
    array = checks.real_array("trade-off function", points, 0.0, 1.0)
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] < 2:
        raise ValueError(
            f"trade-off function must be an array of shape (n, 2), n >= 2, got {array.shape}"
        )
    array = array[np.argsort(array[:, 0], kind="stable")]
    if array[-1, 0] < 1.0:
        array = np.append(array, [[1.0, 0.0]], axis=0)
    alpha, beta = array.T
    repeated = np.flatnonzero(np.diff(alpha) == 0.0)
    if repeated.size:
        raise ValueError(
            f"trade-off function must have distinct α, got {float(alpha[repeated[0]])!r} twice"
        )
    above = np.flatnonzero(beta > 1.0 - alpha + 4 * UNIT)
    if above.size:
        at = above[0]
        raise ValueError(
            f"trade-off function must satisfy β <= 1 - α, got {float(beta[at])!r} at "
            f"{float(alpha[at])!r}"
        )
    slope = np.diff(beta) / np.diff(alpha)
    # error of a slope: that of a difference of two rounded numbers
    known = ROUNDING * np.abs(slope) + 4 * UNIT / np.diff(alpha)
    bent = np.flatnonzero(np.diff(slope) < -(known[1:] + known[:-1]))
    if bent.size:
        raise ValueError(
            "trade-off function must be convex, but its samples turn down at α = "
            f"{float(alpha[bent[0] + 1])!r}"
        )
    return array


def _mirrored(points: FloatArray) -> FloatArray:
    """Points of the inverse function; it is 0 from the largest type-II error on."""
    swapped = points[:, ::-1]
    swapped = swapped[np.lexsort((swapped[:, 1], swapped[:, 0]))]
    first = np.append(True, np.diff(swapped[:, 0]) > 0.0)  # the lowest one of each α
    swapped = swapped[first]
    return swapped if swapped[-1, 0] == 1.0 else np.append(swapped, [[1.0, 0.0]], axis=0)


def _with_start(samples: FloatArray) -> FloatArray:
    """Vertices of the chords, from (0, 1) if T(0) is not known."""
    if samples[0, 0] == 0.0:
        return samples
    return np.concatenate([[[0.0, 1.0]], samples])


def _vertices(samples: FloatArray) -> FloatArray:
    """Vertices of the largest function below all convex functions through the samples."""
    alpha, beta = samples.T
    slope = np.diff(beta) / np.diff(alpha)
    corners = [samples]
    if alpha[0] > 0.0:
        corners.append(np.array([[0.0, min(beta[0] - slope[0] * alpha[0], 1.0)]]))
    for i in range(len(alpha) - 1):
        left = slope[i - 1] if i else -np.inf
        right = slope[i + 1] if i + 1 < len(slope) else 0.0
        corners.append(_corner(samples[i], samples[i + 1], left, right, slope[i]))
    found = np.concatenate(corners)
    found = found[np.argsort(found[:, 0], kind="stable")]
    # never below 0, and decreasing
    found[:, 1] = np.minimum.accumulate(np.maximum(found[:, 1], 0.0))
    return found


def _corner(
    first: FloatArray, second: FloatArray, left: float, right: float, chord: float
) -> FloatArray:
    """Where the line of slope ``left`` through one sample meets that of ``right`` through the next.

    These extend the neighbouring chords; at the ends they are vertical and horizontal.
    """
    (a, b), (c, d) = first, second
    if not left < chord < right:
        return np.empty((0, 2))  # the three chords are on one line
    meeting = a if left == -np.inf else (d - b + left * a - right * c) / (left - right)
    x = min(max(meeting, a), c)
    return np.array([[x, d + right * (x - c)]])


def _hull(points: FloatArray) -> FloatArray:
    """Vertices of the lower convex hull."""
    order = points[np.lexsort((points[:, 1], points[:, 0]))]
    return np.array(lower_hull(map(tuple, order.tolist())))
