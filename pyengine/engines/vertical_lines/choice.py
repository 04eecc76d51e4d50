"""Which lines serve which losses.  All is estimated: a poor choice widens bounds, no more.

The signed root w of twice the rate function λ K' - K, from A's pole 0 or B's pole 1, is about the
normal quantile of the saddle's loss K'(λ).  Lines stand where w = ±(`NEAREST` + k `APART`), so
that every loss has a saddle near a line and no line is next to a pole (docs/theory/line).
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

# signed roots w, in standard deviations
APART = 3.0  # between two lines
NEAREST = 1.5  # between a pole and the nearest line
LEAST_APART = 0.8  # between both poles, for one line between them
FARTHEST = 40.0  # e^(-40²/2) is below all doubles
SIDE, BETWEEN = 72, 41  # tilts of the table on each side of both poles, and between them
WIDEST = 6.0  # distance of the roots of two tilts of the table between which there is another,
REFINEMENTS = 12  # found by so many halvings
STEEPEST = 3e3  # largest distance of a tilt from its pole, times the deviation of S there


@dataclass(frozen=True)
class Choice:
    """Lines, increasing like the losses that they serve, and a table of cumulants: estimates.

    Parameters
    ----------
    line : ndarray of shape (n,)
        Where lines cross the real axis.
    limit : ndarray of shape (n - 1,)
        The losses at which one line takes over from the one before.
    line_log : ndarray of shape (n,)
        K at the lines.
    tilt, log_mean, loss, variance : ndarray of shape (m,)
        λ, K(λ), K'(λ) and K''(λ).
    below_a, below_b : ndarray of shape (m,)
        Normal quantiles of A(S <= loss) and B(S <= loss).
    log_profile_a, log_profile_b : ndarray of shape (m,)
        Logarithms of the profiles of (A, B) and (B, A) with the threshold at the loss.
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
        """Log of e^K/|λ (λ - 1)|: times e^(-λ c) about the scale of a line's profile errors."""
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
    tables = _tables(kinds, tilt)
    chosen, *others = (np.array(_lines(table)) for table in tables[::-1])
    for other in others:  # the nearest lines of the first table serve losses before that mode
        own = np.setdiff1d(other, chosen)
        chosen = np.concatenate([chosen, own[own < 0.0][-1:], own[own > 1.0][:1]])
    tilt, log_mean, loss, variance = tables[-1]
    of_a, of_b = _poles(tilt)
    roots = [_deviations(tables[-1], i) for i in (of_a, of_b)]
    # 1 - λ is a double as well as λ
    line = np.unique(1.0 - (1.0 - chosen))
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


def _tables(kinds: Kinds, tilt: FloatArray) -> list[FloatArray]:
    """Tilts, K, K' and K'', and a table with more tilts where a mode far out takes over.

    Roots far apart then lie between two tilts, and losses with roots between these have their
    saddles there; those next to the poles may be served better by lines of the first table.
    """
    table = np.array([tilt, *cumulants(kinds, tilt)])
    np.maximum.accumulate(table[2], out=table[2])
    tables = [table]
    for _ in range(REFINEMENTS):
        wide = np.zeros(table.shape[1] - 1, dtype=np.bool_)
        for pole in _poles(table[0]):
            root = _deviations(table, pole)
            nearer = np.minimum(np.abs(root[1:]), np.abs(root[:-1]))
            wide |= (np.diff(root) > WIDEST) & (nearer < FARTHEST)
        if not wide.any():
            break
        at = np.flatnonzero(wide)
        tilt = 0.5 * (table[0, at] + table[0, at + 1])
        table = np.insert(table, at + 1, np.array([tilt, *cumulants(kinds, tilt)]), axis=1)
        np.maximum.accumulate(table[2], out=table[2])
        tables[1:] = [table]
    return tables


def _poles(tilt: FloatArray) -> tuple[int, int]:
    """Indices of the tilts 0 and 1."""
    return int(np.searchsorted(tilt, 0.0)), int(np.searchsorted(tilt, 1.0))


def _lines(table: FloatArray) -> list[float]:
    """Tilts whose roots are those of lines, by interpolation in a table."""
    tilt = table[0]
    of_a, of_b = _poles(tilt)
    first, second = (_deviations(table, i) for i in (of_a, of_b))
    apart = float(first[of_b])
    goals = np.arange(NEAREST, FARTHEST, APART)
    left = goals[goals <= apart - NEAREST]
    if not left.size and apart >= LEAST_APART:
        left = np.array([0.5 * apart])  # halfway between the poles
    chosen = [
        *_between(-goals, first[: of_a + 1], tilt[: of_a + 1]),
        *_between(left, first[of_a : of_b + 1], tilt[of_a : of_b + 1]),
        *_between(goals, second[of_b:], tilt[of_b:]),
    ]
    if left.size:  # next to the other pole, on its other side
        right = -goals[goals <= float(-second[of_a]) - NEAREST]
        chosen += _between(right, second[of_a : of_b + 1], tilt[of_a : of_b + 1])
    return chosen


def _deviations(table: FloatArray, centre: int) -> FloatArray:
    """Signed roots w of twice the rates from the pole of index ``centre``, negative before it."""
    tilt, log_mean, loss, _ = table
    rate = (tilt - tilt[centre]) * loss - (log_mean - log_mean[centre])
    size = np.sqrt(2.0 * np.maximum(rate, 0.0))
    sign = np.sign(np.arange(rate.size) - centre)
    return np.asarray(np.maximum.accumulate(sign * size))


def _corrected(root: FloatArray, saddle: FloatArray) -> FloatArray:
    """Barndorff-Nielsen's w + log(u/w)/w of w = ``root`` and u = ``saddle``, made increasing."""
    far = np.abs(root) > 0.2
    ratio = np.maximum(saddle[far] / root[far], 1e-300)
    moved = root[far] + fn.log(ratio) / root[far]
    found = np.interp(root, root[far], moved) if far.any() else root
    return np.asarray(np.maximum.accumulate(found))


def _between(goals: FloatArray, root: FloatArray, tilt: FloatArray) -> list[float]:
    """Tilts at which the root takes those of the ``goals`` that lie within its range."""
    goals = goals[(goals > root.min()) & (goals < root.max())]
    return [float(x) for x in np.interp(goals, root, tilt)]
