"""Which lines serve which losses: what is chosen here makes bounds wide or narrow, never wrong.

On a line through λ the transform of A's law has its pole for A's masses at 0, and that for B's at
1.  Lines keep away from both, and stand where the smaller large deviation of both laws is a
multiple of `APART`, so that next to a loss there is one (docs/theory/line).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.vertical_lines.shapes import Kinds, cumulants
from pyengine.numerics import functions as fn
from pyengine.special import log_ndtr

__all__ = ["Choice", "choice_of"]

FloatArray = npt.NDArray[np.float64]

APART = 3.0
NEAREST = 1.5  # standard deviations between a line and a pole
LEAST_APART = 0.8  # deviations between both poles for which a line stands between them
FARTHEST = 40.0
SIDE, BETWEEN = 72, 41  # places of the table on either side of both poles, and between them
STEEPEST = 3e3  # tilts of the table, in standard deviations


@dataclass(frozen=True)
class Choice:
    """Lines in the order of the losses that they serve, and a table of cumulants.

    Parameters
    ----------
    line : ndarray of shape (n,)
        Where lines cross the real axis, increasing.
    limit : ndarray of shape (n - 1,)
        Losses between what two lines next to each other serve.
    line_log : ndarray of shape (n,)
        About the logarithm of the mean of e^(line S).
    tilt, log_mean, loss, variance : ndarray of shape (m,)
        Tilts, about the logarithms of the means there, and mean and variance of the tilted sum.
    below_a, below_b : ndarray of shape (m,)
        About the normal quantiles of what A and B have below the losses.
    log_profile_a, log_profile_b : ndarray of shape (m,)
        About the logarithms of the profiles of both orders with thresholds there.
    """

    line: FloatArray
    limit: FloatArray
    line_log: FloatArray
    tilt: FloatArray
    log_mean: FloatArray
    loss: FloatArray
    variance: FloatArray
    below_a: FloatArray
    below_b: FloatArray
    log_profile_a: FloatArray
    log_profile_b: FloatArray

    @property
    def log_weight(self) -> FloatArray:
        """Of lines for profiles, whose errors are about e^(that - c times the line)."""
        return np.asarray(self.line_log - fn.log(np.abs(self.line * (self.line - 1.0))))


@kept(64)
def choice_of(kinds: Kinds) -> Choice:
    """Return the lines for a composition."""
    _, _, spread = cumulants(kinds, np.array([0.0, 1.0]))
    unit = 1.0 / np.sqrt(spread)
    side = fn.sinh(np.linspace(0.0, fn.arcsinh(STEEPEST), SIDE))
    tilt = np.concatenate(
        [-unit[0] * side[::-1], np.linspace(0.0, 1.0, BETWEEN)[1:-1], 1.0 + unit[1] * side]
    )
    log_mean, loss, variance = cumulants(kinds, tilt)
    loss = np.maximum.accumulate(loss)
    of_a, of_b = SIDE - 1, SIDE + BETWEEN - 2
    roots = [
        _deviation((tilt - tilt[i]) * loss - (log_mean - log_mean[i]), i) for i in (of_a, of_b)
    ]
    first, second = roots
    apart = float(first[of_b])
    goals = np.arange(NEAREST, FARTHEST, APART)
    left = goals[goals <= apart - NEAREST]
    if not left.size and apart >= LEAST_APART:
        left = np.array([0.5 * apart])  # far from neither pole, and of a scale of at most 1
    chosen = [
        *_between(-goals, first[: of_a + 1], tilt[: of_a + 1]),
        *_between(left, first[of_a : of_b + 1], tilt[of_a : of_b + 1]),
        *_between(goals, second[of_b:], tilt[of_b:]),
    ]
    if left.size:  # next to the other pole, on its other side
        right = -goals[goals <= float(-second[of_a]) - NEAREST]
        chosen += _between(right, second[of_a : of_b + 1], tilt[of_a : of_b + 1])
    # tilts next to 1 as exact as next to 0
    line = np.unique(1.0 - (1.0 - np.array(chosen)))
    line_log = cumulants(kinds, line)[0]
    limit = np.diff(line_log) / np.diff(line)
    width = np.sqrt(variance)
    below = [
        _corrected(root, (tilt - tilt[i]) * width)
        for root, i in zip(roots, (of_a, of_b), strict=True)
    ]
    logs = [
        np.maximum.accumulate(log_ndtr(below[0]) - fn.log1p(np.maximum(-tilt, 0.0))),
        np.minimum.accumulate(log_ndtr(-below[1]) - fn.log1p(np.maximum(tilt - 1.0, 0.0))),
    ]
    return Choice(
        line, np.maximum.accumulate(limit), line_log, tilt, log_mean, loss, variance, *below, *logs
    )


def _deviation(rate: FloatArray, centre: int) -> FloatArray:
    """Signed roots of twice the large deviations, the sign that of index less ``centre``."""
    size = np.sqrt(2.0 * np.maximum(rate, 0.0))
    sign = np.sign(np.arange(rate.size) - centre)
    return np.asarray(np.maximum.accumulate(sign * size))


def _corrected(root: FloatArray, saddle: FloatArray) -> FloatArray:
    """Deviations whose normal tails are about those of the law, increasing (Barndorff-Nielsen)."""
    far = np.abs(root) > 0.2
    ratio = np.maximum(saddle[far] / root[far], 1e-300)
    moved = root[far] + fn.log(ratio) / root[far]
    found = np.interp(root, root[far], moved) if far.any() else root
    return np.asarray(np.maximum.accumulate(found))


def _between(goals: FloatArray, root: FloatArray, tilt: FloatArray) -> list[float]:
    """Tilts at the goals that lie inside of a part of the table."""
    goals = goals[(goals > root.min()) & (goals < root.max())]
    return [float(x) for x in np.interp(goals, root, tilt)]
