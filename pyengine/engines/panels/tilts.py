"""Which tilts serve which losses: what is chosen here makes bounds wide or narrow, never wrong.

A tilt θ serves the places at which its Chernoff bound is the least one, as that is what its error
is multiplied by.  With the large deviations I_A and I_B of both laws, tilts are those at which the
root of twice the smaller one is a multiple of `APART`, so that next to a place there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.panels.one_step import remainder
from pyengine.engines.panels.shape import StepShape
from pyengine.special import log_ndtr

__all__ = ["SPARED", "Tilts", "budget_for", "corrected", "deviation", "panels_for", "tilts_of"]

FloatArray = npt.NDArray[np.float64]

APART = 3.0
SPARED = 3.0  # logarithm of how much larger an error may be where rough values are asked
FARTHEST = 39.0  # standard deviations: a normal tail beyond is below all doubles
NEXT_TO_ENDS = np.array([0.01, 0.3])  # places at which the last tilts have their means
NODES = 64
PLACES = 321  # of a table of tilts, twice
LARGEST = 1e5  # of all tilts
ENOUGH = 4e-12  # of the sum of all steps' errors
SIZES = (16, 24, 32, 40)
MORE_SIZES = (*SIZES, 48, 56)  # next to a singularity
NEAR, CLOSE = 0.1, 0.005  # a singularity, in lengths of the support
MOST_LEVELS = 11


@dataclass(frozen=True)
class Tilts:
    """Tilts in the order of the places that they serve.

    Parameters
    ----------
    tilt : ndarray of shape (n,)
        The tilts, increasing.
    log_scale : ndarray of shape (n,)
        The logarithm of the mean of e^(tilt x) of one step.
    limit : ndarray of shape (n - 1,)
        Places between what two tilts next to each other serve.
    of_a, of_b : int
        Index of the tilt 0 and of that which makes B of A.
    place, below_a, below_b : ndarray
        Places, increasing, and about the normal quantiles of what A and B have below them.
    log_profile_a, log_profile_b : ndarray
        About the logarithms of the profiles of both orders whose threshold is there.
    """

    tilt: FloatArray
    log_scale: FloatArray
    limit: FloatArray
    of_a: int
    of_b: int
    place: FloatArray
    below_a: FloatArray
    below_b: FloatArray
    log_profile_a: FloatArray
    log_profile_b: FloatArray

    def at(self, place: FloatArray) -> npt.NDArray[np.intp]:
        """Index of the tilt that serves a place."""
        return np.searchsorted(self.limit, place)

    def for_profile(
        self,
        place: FloatArray,
        number: int,
        length: float,
        *,
        of_b: bool,
        at_hand: int | None = None,
    ) -> npt.NDArray[np.intp]:
        """Index of the tilt for the profile of either order, whose error is the smallest.

        That is the Chernoff bound times the largest weight of the tilted integral.  A tilt that is
        ``at_hand`` serves where it is not much larger.
        """
        served = np.arange(self.of_b, self.tilt.size) if of_b else np.arange(self.of_a + 1)
        tilt = self.tilt[served]
        rate = np.abs(tilt - (length if of_b else 0.0))
        weight = np.minimum(length / (rate + length), -np.expm1(-length * number))
        cost = number * self.log_scale[served] - place[:, None] * tilt + np.log(weight)
        if at_hand is not None:
            cost[:, at_hand - served[0]] -= SPARED
        return np.asarray(served[np.argmin(cost, axis=1)])


@kept(64)
def tilts_of(shape: StepShape, number: int) -> Tilts:
    """Return the tilts for a number of steps."""
    d = float(shape.length)
    scale = 8.0 + 3.0 * d
    grid = scale * np.sinh(np.linspace(-1.0, 1.0, PLACES) * np.arcsinh(LARGEST / scale))
    theta = np.unique(np.concatenate([grid, [0.0, d], d + grid]))
    log_mean, slope, spread = _cumulants(shape, theta)
    of_a, of_b = np.searchsorted(theta, [0.0, d])
    place = np.maximum.accumulate(number * slope)
    deviations = [
        deviation(number, (theta - theta[i]) * slope - (log_mean - log_mean[i]), i)
        for i in (of_a, of_b)
    ]
    of_first, of_second = deviations
    chosen = [
        *_steps(theta[: of_a + 1], of_first[: of_a + 1], -FARTHEST),
        *_steps(theta[of_a : of_b + 1], of_first[of_a : of_b + 1], of_first[of_b] - 0.5 * APART),
        *_steps(theta[of_b:], of_second[of_b:], FARTHEST),
    ]
    # next to the ends, where hardly any step has another loss than the least or the largest one
    ends = np.concatenate([NEXT_TO_ENDS, number - NEXT_TO_ENDS[::-1]])
    known = (np.abs(of_first) < FARTHEST) | (np.abs(of_second) < FARTHEST)
    ends = ends[(ends > place[known].min()) & (ends < place[known].max())]
    tilt = np.unique([0.0, d, *chosen, *np.interp(ends, place, theta)])
    scales = _cumulants(shape, tilt)[0]
    # where the Chernoff bounds of both are the same
    limit = number * np.diff(scales) / np.diff(tilt)
    first, second = (int(i) for i in np.searchsorted(tilt, [0.0, d]))
    # by Barndorff-Nielsen's formula; the profile has the tail's mass, each loss for its excess
    width = np.sqrt(number) * spread
    below = [
        corrected(root, (theta - theta[i]) * width)
        for root, i in zip(deviations, (of_a, of_b), strict=True)
    ]
    logs = [
        np.maximum.accumulate(log_ndtr(below[0]) - np.log1p(np.maximum(-theta, 0.0) / d)),
        np.minimum.accumulate(log_ndtr(-below[1]) - np.log1p(np.maximum(theta - d, 0.0) / d)),
    ]
    return Tilts(tilt, scales, limit, first, second, place, *below, *logs)


def corrected(root: FloatArray, saddle: FloatArray) -> FloatArray:
    """Return deviations whose normal tails are about those of the law, increasing."""
    far = np.abs(root) > 0.2
    ratio = np.maximum(saddle[far] / root[far], 1e-300)
    moved = root[far] + np.log(ratio) / root[far]
    found = np.interp(root, root[far], moved) if far.any() else root
    return np.asarray(np.maximum.accumulate(found))


def _cumulants(shape: StepShape, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Logarithms of the mean of e^(θ x) of one step, their slopes, and the standard deviations."""
    x, mass = shape.nodes(NODES)
    x = np.concatenate([[0.0], x, [1.0]])
    mass = np.concatenate([shape.atoms[:1], mass, shape.atoms[1:]]).astype(float)
    top = np.maximum(theta, 0.0)
    terms = mass * np.exp(theta[:, None] * x - top[:, None])
    total = terms.sum(axis=1)
    mean = (terms @ x) / total
    spread = np.sqrt(np.maximum((terms @ (x * x)) / total - mean * mean, 1e-300))
    return top + np.log(total), mean, spread


def deviation(number: int, rate: FloatArray, centre: int) -> FloatArray:
    """Return signed roots of twice the large deviations, the sign that of index less ``centre``."""
    size = np.sqrt(2.0 * number * np.maximum(rate, 0.0))
    sign = np.sign(np.arange(rate.size) - centre)
    return np.asarray(np.maximum.accumulate(sign * size))


def _steps(theta: FloatArray, deviation: FloatArray, last: float) -> list[float]:
    """Tilts at multiples of `APART` from 0 to ``last``, as far as there are any."""
    if not deviation.size:
        return []
    least, most = float(deviation.min()), float(deviation.max())
    count = int(min(abs(last), max(abs(least), abs(most))) / APART)
    goals = np.copysign(APART * np.arange(1.0, count + 1.0), last)
    goals = goals[(goals > least) & (goals < most)] if last else goals[:0]
    return [float(x) for x in np.interp(goals, deviation, theta)]


def budget_for(shape: StepShape) -> float:
    """Return what one change of a law may lose of the last one, for the `power` of a step.

    More where singularities are near, as the many short panels then hold little but rounding.
    """
    return 4e-13 if shape.gap > NEAR else 4e-12


def panels_for(
    shape: StepShape, tilt: float, log_scale: float, number: int
) -> tuple[int, int] | None:
    """Return level and number of coefficients of panels for so many steps; None where none do."""
    enough = ENOUGH / number
    # of many panels nearly all have few degrees, whatever the panels next to a singularity have
    growth, sizes = (1.0, MORE_SIZES) if shape.gap < CLOSE else (1.5, SIZES)
    options = sorted(
        product(range(shape.pieces - 1, MOST_LEVELS), sizes),
        key=lambda pair: 2.0 ** pair[0] * float(pair[1]) ** growth,
    )
    known: dict[int, FloatArray] = {}
    for finer, size in options:
        if finer not in known:
            # next to the ends of a piece the density changes most
            panels = 1 << finer
            ends = np.unique([0, panels // shape.pieces - 1, panels // shape.pieces, panels - 1])
            ends = ends[(ends >= 0) & (ends < panels)]
            known[finer] = remainder(shape, tilt, log_scale, -finer, np.array(sizes), ends)
        if known[finer][sizes.index(size)] <= 0.5 * enough:
            return -finer, size
    return None
