"""Sizes of a step's integrand on turned lines, in double precision and for planning only."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable

import numpy as np

from pyengine.reference.cumulants import Array
from pyengine.reference.gaussian.steps import EqualSteps, log_odds

__all__ = ["LINES", "TURN", "IntegrandSizes"]

# angle between neighbouring lines of `rotated_transform`: dyadic, so that multiples are exact
TURN = 3 / 64
LINES = 17  # the largest angle, 16 * 3/64, is below pi/4
TINY = -40.0  # log w below which Y = log(1 + w) equals w in doubles


class IntegrandSizes:
    """log B(angle, s) of one step of a phase; see `pyengine.reference.gaussian.rotated_transform`.

    ``depth`` is the natural log of the relative accuracy for which the grid reaches far enough.
    """

    def __init__(self, phase: EqualSteps, depth: float) -> None:
        self.steps = phase.steps
        self.mu = mu = 1 / float(phase.noise)
        self.low = log_odds(phase) - mu * mu / 2
        self.angles = TURN * np.arange(LINES)
        far = math.sqrt(2 * depth)
        near = np.linspace(-far - 0.8 / mu, far, 160)
        z = np.concatenate([near, np.linspace(far, 4.5 * far, 50)[1:]])
        log_w = mu * z + self.low
        small = log_w < TINY
        v = np.where(small, log_w, np.log(np.logaddexp(0.0, np.maximum(log_w, TINY))))
        self.r = np.exp(v)
        turned = v + 1j * self.angles[:, None]
        loss = np.exp(np.maximum(v, TINY) + 1j * self.angles[:, None])
        rest = -np.expm1(-loss)
        place = (np.where(small, turned, loss + np.log(rest)) - self.low) / mu
        self.log_g = np.real(-(place**2) / 2) + np.log(np.abs(loss / rest))
        self.log_g += np.log(np.gradient(v)) - math.log(mu * math.sqrt(2 * math.pi))

    def log_bound(self, line: int, s: Array, every: int = 1) -> Array:
        """Return log B on a line for several s, by every ``every``-th node; inf off the grid."""
        exponent = self.log_g[line, ::every] + s[..., None] * self.r[::every] + math.log(every)
        top = exponent.max(axis=-1)
        result: Array = top + np.log(np.exp(exponent - top[..., None]).sum(axis=-1))
        angle = self.angles[line]
        mode = (self.low * math.cos(angle) + self.mu**2 * s) / math.cos(2 * angle)
        return np.where((mode > self.r[-1]) | (exponent[..., -1] > top - 60), np.inf, result)

    def table(self, places: Array, lines: Iterable[int], every: int = 1) -> Array:
        """Return log B for some lines (first axis) at several lambda."""
        return np.array(
            [
                self.log_bound(abs(line), np.real(places * cmath.exp(1j * TURN * line)), every)
                for line in lines
            ]
        )

    def start(self, angle: float, depth: float) -> float:
        """Return a log r below which |g| is below about exp(-depth)."""
        return min(self.low - self.mu * math.sqrt(2 * depth + (angle / self.mu) ** 2), -3.0)

    def stop(self, angle: float, s: float, depth: float) -> float:
        """Return a log r above which |g| exp(s r) is below about exp(-depth)."""
        square, size = math.cos(2 * angle), 2 * self.mu**2
        half = (2 * self.low * math.cos(angle) + size * s) / 2
        rest = self.low**2 - size * depth
        r = (half + math.sqrt(max(half**2 - square * rest, 20 * square * size))) / square
        return math.log(max(r, 6.0))
