"""Tests that take next to nothing but the outcomes of the largest likelihood ratio.

No step samples the record there, or nearly so.  Thresholds of such tests differ from the largest
loss by less than doubles do, and no row at one is known; but all ratios on the test are alike.
"""

from __future__ import annotations

import math

from pyengine._core import lib
from pyengine._support.caches import cached_property
from pyengine.engines.functionals import A_ABOVE, A_BELOW
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.row_bounds import SLACK

__all__ = ["NextToLargest"]

# What ratios may differ by on a test, as logs: relative widths of its bounds.
APART = (2.0**-48, 2.0**-44, 2.0**-40)
MOST_STEPS = 100  # of more, levels so small are hardly doubles
INWARDS = 1e-9  # relative, of logarithms in doubles that have some 1e-14
SMALLEST = -700.0  # log of levels below which doubles lose digits


class NextToLargest:
    """Bounds of errors at levels where dB/dA on the test, or dA/dB off it, is next to its largest.

    Losses of sampled Gaussian steps beyond the smallest one add up.  All n of them are at most y/n
    with A's probability of at least the product of those of each, and where that is no less than
    the level, the test that takes the outcomes of the smallest losses takes none beyond y.

    Parameters
    ----------
    pair : GaussianPair
        The ordered pair, as it is in doubles.

    Attributes
    ----------
    likely : float
        Logs of levels from there on have no bounds here.
    """

    def __init__(self, pair: GaussianPair) -> None:
        self._serves, self._pair = A_ABOVE if pair.reversed else A_BELOW, pair
        self.likely = -math.inf
        if 0 < sum(pair.steps) <= MOST_STEPS and 1.0 not in pair.probability:
            self.likely = _log_probability(pair, APART[-1])

    @cached_property
    def _known(self) -> tuple[list[float], float, float]:
        """The same for all distances, and bounds of the largest ratio's log; asked when needed."""
        without = self._pair._replace(reversed=False)
        _, low, high = largest_epsilon(without, self._pair.probability)
        return [_log_probability(self._pair, apart) for apart in APART], low, high

    def level(self, functional: int, log_tail: float) -> tuple[float, ...] | None:
        """Bounds of both errors at a level whose test's ratios, or those off it, are alike.

        Parameters
        ----------
        functional : int
            A's tail that is the level: `A_ABOVE`, or `A_BELOW` for one minus the level.
        log_tail : float
            The log of that tail, within 2 ulp.

        Returns
        -------
        tuple of float, or None
            Bounds of β and of γ, both values and a threshold; None where ratios are further apart.
        """
        if functional != self._serves or not SMALLEST < log_tail < self.likely:
            return None
        every, least, most = self._known
        apart = next(y for y, likely in zip(APART, every, strict=True) if log_tail < likely)
        moved = SLACK * (1.0 + abs(log_tail) + most)
        sign = 1.0 if functional == A_ABOVE else -1.0
        ratios = sorted((sign * (least - apart), sign * most))
        low = math.exp(log_tail + ratios[0] - moved) * (1.0 - SLACK)
        high = min(math.exp(log_tail + ratios[1] + moved) * (1.0 + SLACK), 1.0)
        own = low, high, low + 0.5 * (high - low)
        ends = math.nextafter(1.0 - high, 0.0), math.nextafter(1.0 - low, 2.0)
        rest = max(ends[0], 0.0), min(ends[1], 1.0), 1.0 - own[2]
        beta, gamma = (rest, own) if functional == A_ABOVE else (own, rest)
        return *beta[:2], *gamma[:2], beta[2], gamma[2], 0.5 * (ratios[0] + ratios[1])


def _log_probability(pair: GaussianPair, apart: float) -> float:
    """Log of a lower bound of A's probability that all losses together are at most `apart`."""
    number = sum(pair.steps)
    log_excess = math.log(math.expm1(apart / number))
    total = 0.0
    for noise, p, n in zip(pair.noise, pair.probability, pair.steps, strict=True):
        # e^s - 1 = p/(1 - p) e^(mu z - mu^2/2) is below that of apart/number up to this z
        z = (log_excess + math.log1p(-p) - math.log(p)) * noise + 0.5 / noise
        z -= INWARDS * (1.0 + abs(z))
        # with the record a step that samples it has another law, which is left out
        own = lib.pe_log_ndtr(z) + (math.log1p(-p) if pair.reversed else 0.0)
        total += n * own
    return total * (1.0 + INWARDS)
