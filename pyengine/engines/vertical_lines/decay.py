"""Upper bounds of the modulus of a tilted step's transform at high frequencies.

The density of losses of a Laplace step is at least a step function that falls and then grows: a
mixture of uniform laws that begin at one end of the branch or end at the other.  The transform of
a uniform law of length l has the modulus |sin(t l/2)/(t l/2)| at t, so that of the step is at most
1 less what these lack of their masses (docs/theory/laplace, Lemma 3).
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

CELLS = 48  # of the step function, on a branch
SAFE = 1.0 - 1e-9  # covers the rounding of a bound
LOBE = 0.21724  # bound of |sin(x)/x| beyond its first zero, π
LOBE_FROM = 5.2  # t l from which on |sin(t l/2)/(t l/2)| <= `LOBE`


class Strip(NamedTuple):
    """A bound constant + Σ weight e^(-fall t) of the modulus at the frequency t.

    Parameters
    ----------
    weight, fall : ndarray
        At least 0.
    constant : float
        At least 0.
    """

    weight: FloatArray
    fall: FloatArray
    constant: float

    def largest(self, frequency: FloatArray) -> FloatArray:
        """The bound at frequencies, and so from these on, as it falls."""
        with np.errstate(under="ignore"):
            return np.asarray(fn.exp(-frequency[:, None] * self.fall) @ self.weight + self.constant)


class Decay(NamedTuple):
    """Bounds of a tilted step's transform φ, φ(0) = 1, with that of its flat part, q.

    |φ(t) - q(t)| <= ``variation``/t + ``root``/sqrt(t).

    Parameters
    ----------
    mass, length : ndarray
        Uniform laws that the density contains: tilted masses, and lengths in losses.
    variation, root : float
        See above.
    flat : float
        Tilted mass of the flat part, which bounds |q|; 1 where bounds of |φ| need not use it.
    flat_masses : pair of float
        A's and B's mass of the flat part.
    strips : tuple of Strip
        Further bounds of |φ|.
    """

    mass: FloatArray
    length: FloatArray
    variation: float
    root: float = 0.0
    flat: float = 1.0
    flat_masses: tuple[float, float] = (1.0, 1.0)
    strips: tuple[Strip, ...] = ()

    def largest(self, frequency: FloatArray) -> FloatArray:
        """Bounds of |φ| at all frequencies from the given ones on."""
        turn = frequency[:, None] * self.length
        half = np.maximum(0.5 * np.minimum(turn, LOBE_FROM), 1e-9)
        inner = np.maximum(fn.sin(half) / half, LOBE)
        with np.errstate(divide="ignore"):
            envelope = np.where(turn <= LOBE_FROM, inner, np.minimum(LOBE, 2.0 / turn))
        lacking = ((1.0 - envelope) * self.mass).sum(axis=1)
        found = np.minimum(1.0 - SAFE * lacking + 1e-15, 1.0)
        with np.errstate(divide="ignore"):
            beside = self.variation / frequency + self.root / np.sqrt(frequency)
        # fmin: NaN is no bound
        found = np.fmin(found, self.flat + beside)
        for strip in self.strips:
            found = np.fmin(found, strip.largest(frequency) / SAFE)
        return np.asarray(found)

    def tail(self, frequency: FloatArray) -> FloatArray:
        """Bounds of the integral of |φ(t) - q(t)| dt/t from the given frequencies on."""
        return self.variation / frequency + 2.0 * self.root / np.sqrt(frequency)


def decay_of(shape: StepShape, tilt: float, log_mean: float) -> Decay:
    """Return the bounds for a step with A multiplied by e^(``tilt`` loss - ``log_mean``)."""
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
