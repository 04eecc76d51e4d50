"""How far the transform of a tilted Laplace step is below 1 far out.

The density of losses is at least a step function that falls and then grows.  That is a mixture of
uniform laws that begin at one end of the branch or end at the other one, and the transform of a
uniform law of length l at a frequency t is at most |sin(t l/2)/(t l/2)|; so the transform of the
step is at most 1 less what the uniform laws lack (docs/theory/laplace).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.numerics import functions as fn

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.laplace_shapes import StepShape

__all__ = ["Decay", "Strip", "decay_of"]

FloatArray = npt.NDArray[np.float64]

CELLS = 48
SAFE = 1.0 - 1e-9  # for the rounding of bounds
LOBE = 0.21724  # |sin(x)/x| from its first zero on is at most this
LOBE_FROM = 5.2  # twice a place from which on |sin(x)/x| is at most that


class Strip(NamedTuple):
    """A bound constant + sum of weight e^(-fall t) on the modulus at the frequency t.

    Parameters
    ----------
    weight, fall : ndarray
        See above, neither below 0.
    constant : float
        See above.
    """

    weight: FloatArray
    fall: FloatArray
    constant: float

    def largest(self, frequency: FloatArray) -> FloatArray:
        """The bound at frequencies, which falls."""
        with np.errstate(under="ignore"):
            return np.asarray(fn.exp(-frequency[:, None] * self.fall) @ self.weight + self.constant)


class Decay(NamedTuple):
    """What is known of the transform of a tilted step, divided by its value at 0.

    At the frequency t it is that of the flat part of the law and at most ``variation``/t and
    ``root``/sqrt(t) beside that.

    Parameters
    ----------
    mass, length : ndarray
        Uniform laws that are parts of the density.
    variation, root : float
        See above.
    flat : float
        Mass of the flat part; 1 where what is beside it has no part in bounds of the modulus.
    flat_masses : pair of float
        What A and B have of it.
    strips : tuple of Strip
        Further bounds of the modulus.
    """

    mass: FloatArray
    length: FloatArray
    variation: float
    root: float = 0.0
    flat: float = 1.0
    flat_masses: tuple[float, float] = (1.0, 1.0)
    strips: tuple[Strip, ...] = ()

    def largest(self, frequency: FloatArray) -> FloatArray:
        """Bounds on the modulus of the transform at all frequencies from given ones on."""
        turn = frequency[:, None] * self.length
        half = np.maximum(0.5 * np.minimum(turn, LOBE_FROM), 1e-9)
        inner = np.maximum(fn.sin(half) / half, LOBE)
        with np.errstate(divide="ignore"):
            envelope = np.where(turn <= LOBE_FROM, inner, np.minimum(LOBE, 2.0 / turn))
        lacking = ((1.0 - envelope) * self.mass).sum(axis=1)
        found = np.minimum(1.0 - SAFE * lacking + 1e-15, 1.0)
        with np.errstate(divide="ignore"):
            beside = self.variation / frequency + self.root / np.sqrt(frequency)
        # what is no number bounds nothing
        found = np.fmin(found, self.flat + beside)
        for strip in self.strips:
            found = np.fmin(found, strip.largest(frequency) / SAFE)
        return np.asarray(found)

    def tail(self, frequency: FloatArray) -> FloatArray:
        """Bounds on the integral of what is beside the flat part over t, from t on."""
        return self.variation / frequency + 2.0 * self.root / np.sqrt(frequency)


def decay_of(shape: StepShape, tilt: float, log_mean: float) -> Decay:
    """Return what is known of a step with the law's e^(``tilt`` loss - ``log_mean``)-fold."""
    mu, slope = float(shape.distance), float(shape.slope)
    v = np.linspace(0.0, 2.0 * mu, CELLS + 1)
    away = fn.log1p(fn.expm1(v) / slope)
    end = away[-1]
    masses, lengths, variation = [], [], 0.0
    for origin, sign, falling, rising in shape.branches:
        low, high = float(falling), float(rising)
        base, rate = tilt * float(origin) - log_mean, tilt * sign
        # terms y^-(3/2), y^-(1/2) and y^(1/2) of the density of losses, with y = e^v
        parts = (low * (slope - 1.0), low + high * (slope - 1.0), high)
        tilted = fn.exp(base + rate * away)
        ends = max(tilted[0], tilted[-1])
        variation += parts[0] * max(tilted[0], tilted[-1] * fn.exp(-3.0 * mu))
        variation += parts[1] * max(tilted[0], tilted[-1] * fn.exp(-mu))
        variation += parts[2] * ends * fn.exp(mu)
        falls = parts[0] * fn.exp(-1.5 * v) + parts[1] * fn.exp(-0.5 * v)
        least = 0.25 * falls[1:] * np.minimum(tilted[1:], tilted[:-1])
        down = np.minimum.accumulate(least)
        up = np.minimum.accumulate(least[::-1])[::-1]
        bottom = float(least.min())
        drop, rise = -np.diff(down), np.diff(up)
        lengths += [away[1:-1], end - away[1:-1], np.array([end])]
        masses += [drop * away[1:-1], rise * (end - away[1:-1]), np.array([bottom * end])]
    return Decay(np.concatenate(masses), np.concatenate(lengths), float(variation) * (1.0 + 1e-9))
