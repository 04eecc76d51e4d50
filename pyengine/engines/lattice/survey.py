"""First look at a composition: cumulants of its loss on a coarse, uneven lattice.

Nothing here enters a bound: tilts, windows and spacings are chosen from these numbers, and what is
chosen is then certified from the fine lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pyengine.laws.base import StepLaw

__all__ = ["ROOT_TWO_PI", "Part", "Survey", "scaled_tail", "survey"]

FloatArray = npt.NDArray[np.float64]
Part = tuple[StepLaw, int]

SMALLEST, LARGEST, PER_DECADE = 1e-12, 1e4, 40
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
LOG_TINY = -800.0
DEEPEST = 45.0  # the largest signed root that matters: e^{-w²/2} is below all doubles
ATOM = 1e-2  # (tilt sd)² of a tilted law that is an atom


def scaled_tail(x: float) -> float:
    """e^{x²/2} Φ(-x) for x >= 0: a tail's share of its saddle point value."""
    if x < 25.0:
        return 0.5 * math.exp(0.5 * x * x) * math.erfc(x / math.sqrt(2.0))
    return 1.0 / (ROOT_TWO_PI * (x + 1.0 / x))


@dataclass(frozen=True)
class Survey:
    """Atoms of each kind of step on the coarse lattice.

    Parameters
    ----------
    loss, log_mass : tuple of ndarray
        Mean loss log(b/a) and log A-mass of each cell with mass under both laws.
    steps : tuple of int
        Number of steps of each kind.
    """

    loss: tuple[FloatArray, ...]
    log_mass: tuple[FloatArray, ...]
    steps: tuple[int, ...]

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Cumulant function log E_A e^{tilt S} and its first two derivatives."""
        total, first, second = 0.0, 0.0, 0.0
        for loss, log_mass, steps in zip(self.loss, self.log_mass, self.steps, strict=True):
            weight = log_mass + tilt * loss
            top = float(weight.max())
            weight = np.exp(weight - top)
            norm = float(weight.sum())
            mean = float((weight * loss).sum()) / norm
            total += steps * (top + math.log(norm))
            first += steps * mean
            second += steps * float((weight * (loss - mean) ** 2).sum()) / norm
        return total, first, second

    def step_cumulants(self, tilt: float) -> list[tuple[float, float]]:
        """For each kind of step, log E_A e^{tilt L} and the mean of the tilted loss."""
        found = []
        for loss, log_mass in zip(self.loss, self.log_mass, strict=True):
            weight = log_mass + tilt * loss
            top = float(weight.max())
            weight = np.exp(weight - top)
            norm = float(weight.sum())
            found.append((top + math.log(norm), float((weight * loss).sum()) / norm))
        return found

    def root(self, tilt: float) -> float:
        """Signed root w of the tilt: the tail beyond its mean is about Φ(-|w|)."""
        total, mean, _ = self.cumulants(tilt)
        return math.copysign(math.sqrt(max(2.0 * (tilt * mean - total), 0.0)), tilt)

    def last_tilt(self, sign: float) -> float:
        """A tilt beyond which the law is that of its last atom, or far beyond all doubles."""
        tilt = sign * 0.25 / max(math.sqrt(self.cumulants(0.0)[2]), 1e-300)
        for _ in range(200):
            total, mean, variance = self.cumulants(tilt)
            if 2.0 * (tilt * mean - total) > DEEPEST**2 or variance * tilt * tilt < ATOM:
                break
            tilt *= 2.0
        return tilt

    def tilt_at(self, root: float) -> float:
        """The tilt with a given signed root, or the last one before the support ends."""
        return self._solve(lambda tilt: self.root(tilt) - root)

    def _solve(self, increasing: Callable[[float], float]) -> float:
        """Root of an increasing function of the tilt."""
        value = increasing(0.0)
        if value == 0.0:
            return 0.0
        sign = -1.0 if value > 0.0 else 1.0
        near, far = 0.0, self.last_tilt(sign)
        if sign * increasing(far) <= 0.0:
            return far
        # from the far end by halves, then by bisection
        while abs(far) > 1e-300 and sign * increasing(0.5 * far) >= 0.0:
            far *= 0.5
        near = 0.5 * far
        while abs(far - near) > 1e-4 * abs(far):
            middle = 0.5 * (near + far)
            if sign * increasing(middle) < 0.0:
                near = middle
            else:
                far = middle
        return 0.5 * (near + far)

    @property
    def width(self) -> float:
        """Range of the losses of one step that carry mass."""
        return max(float(x[-1] - x[0]) for x in self.loss)


@lru_cache(maxsize=256)
def survey(parts: tuple[Part, ...]) -> Survey:
    """Look at a composition of at least one step."""
    positive = np.geomspace(SMALLEST, LARGEST, int(PER_DECADE * math.log10(LARGEST / SMALLEST)) + 1)
    losses, masses, numbers = [], [], []
    for law, steps in parts:
        lowest, highest = law.support()
        edges = np.concatenate([-positive[::-1], [0.0], positive])
        edges = edges[(edges > lowest) & (edges < highest)]
        for end, towards in ((lowest, 1.0), (highest, -1.0)):
            if math.isfinite(end):  # the law may crowd at an end of its support
                near = end + towards * positive[positive < 0.2 * (1.0 + abs(end))]
                edges = np.concatenate([edges, [end], near[(near > lowest) & (near < highest)]])
        edges = np.unique(edges)
        cells = law.cells(edges)
        keep = (cells.log_a > LOG_TINY) & (cells.log_b > LOG_TINY)
        losses.append(cells.log_b[keep] - cells.log_a[keep])
        masses.append(cells.log_a[keep])
        numbers.append(steps)
    return Survey(tuple(losses), tuple(masses), tuple(numbers))
