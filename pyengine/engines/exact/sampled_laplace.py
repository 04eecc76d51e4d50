"""One Poisson-sampled Laplace step in closed form.

The loss l of the plain step lies in [-μ, μ], with A(l > g) = e^(-(g + μ)/2)/2 and
B(l <= g) = e^(-(μ - g)/2)/2 inside; sampling makes it L = log(1 - p + p e^l).  All formulas use the
distances of L from its ends low and high, so nothing cancels next to them:

    e^(l + μ) = 1 + G,  G = e^(low + μ) expm1(L - low)/p,   low = log(1 - p + p e^-μ),
    e^(l - μ) = 1 - K,  K = e^(L - μ) expm1(high - L)/p,    high = log(1 - p + p e^μ).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import SUBNORMAL, ClosedLaw, KnownProfile, Tails
from pyengine.laws.fine import left_of, sampled_decimal
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import two_doubles
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.sampled_loss import share_of

__all__ = ["SampledLaplace"]

FloatArray = npt.NDArray[np.float64]


class SampledLaplace(ClosedLaw):
    """The pair (P, (1 - p) P + p Q) of Laplace laws, or its reverse; see `ComposedLaw`.

    The ratio μ, sensitivity over scale, lies in (0, 40] and p in (0, 1), both exact.
    """

    is_light = True

    def __init__(self, ratio: Fraction, probability: float | Fraction, reversed_: bool) -> None:
        self._ratio, self._reversed = float(ratio), reversed_
        self._p, self._rest, self._log_p, *_ = share_of(probability)
        share = Fraction(probability)
        self._low = two_doubles(sampled_decimal(share, -ratio))
        self._high = two_doubles(sampled_decimal(share, ratio))
        # relative error of a mass: a few operations, with exponents up to μ and |log p|
        self._error = UNIT * (64.0 + 32.0 * self._ratio + 8.0 * abs(self._log_p))

    def support(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        low, high = self._low[0], self._high[0]
        return (-high, -low) if self._reversed else (low, high)

    def _gaps(
        self, loss: FloatArray, low: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Distances of a loss of the unreversed pair from the smallest and the largest one.

        Negative beyond them; relative error 4 u, and absolute error 4 u² (|loss| + |end|).
        """
        least, most = self._low, self._high
        above = loss - least[0]
        below = most[0] - loss
        above_left = left_of(loss, -least[0], above) + (low - least[1])
        below_left = left_of(most[0], -loss, below) + (most[1] - low)
        return above + above_left, below + below_left

    def _grown(self, above: FloatArray) -> FloatArray:
        """G at a distance from the smallest loss."""
        with np.errstate(over="ignore"):
            scale = fn.exp(self._low[0] + self._ratio - self._log_p)
            return np.asarray(scale * fn.expm1(np.maximum(above, 0.0)), dtype=np.float64)

    def _fallen(self, loss: FloatArray, below: FloatArray) -> FloatArray:
        """K at a loss and its distance from the largest one."""
        with np.errstate(over="ignore"):
            scale = fn.exp(loss - self._ratio - self._log_p)
            fallen = scale * fn.expm1(np.maximum(below, 0.0))
        return np.asarray(np.minimum(fallen, 1.0))

    def _to_largest(self, grown: FloatArray, fallen: FloatArray) -> FloatArray:
        """e^(l - μ): as 1 - K for K < 1/2, else from G, so that nothing cancels."""
        with np.errstate(over="ignore"):
            far = np.minimum((1.0 + grown) * fn.exp(-2.0 * self._ratio), 1.0)
        return np.where(fallen < 0.5, 1.0 - np.minimum(fallen, 0.5), far)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        p, rest, mu = self._p, self._rest, self._ratio
        loss = -c if self._reversed else c
        up, down = self._gaps(loss)
        inside = np.clip(loss, self._low[0], self._high[0])
        grown, fallen = self._grown(up), self._fallen(inside, down)
        ratio = self._to_largest(grown, fallen)
        with np.errstate(over="ignore", divide="ignore"):
            back = np.where(fallen < 0.5, fn.exp(-2.0 * mu) / ratio, 1.0 / (1.0 + grown))
        above, below = 0.5 * np.sqrt(back), 0.5 * np.sqrt(ratio)
        # the event is {L > loss}, or {L >= loss} if reversed; atoms are at both ends only
        if self._reversed:
            none, all_ = down < 0.0, up <= 0.0
        else:
            none, all_ = down <= 0.0, up < 0.0
        p_above = np.where(none, 0.0, np.where(all_, 1.0, above))
        q_below = np.where(none, 1.0, np.where(all_, 0.0, below))
        p_below = np.where(none, 1.0, np.where(all_, 0.0, 1.0 - above))
        q_above = np.where(none, 0.0, np.where(all_, 1.0, 1.0 - below))
        mixed_above = rest * p_above + p * q_above
        mixed_below = rest * p_below + p * q_below
        error = np.full(c.size, self._error)
        shift = self.shift(c)
        if self._reversed:
            return Tails(mixed_below, mixed_above, p_below, p_above, error, shift)
        return Tails(p_above, p_below, mixed_above, mixed_below, error, shift)

    def shift(self, c: FloatArray) -> FloatArray:
        """By the errors of the losses of both atoms."""
        return 16.0 * UNIT * (1.0 + np.abs(c))

    def profile(self, epsilon: FloatArray, low: FloatArray | None = None) -> KnownProfile:
        """H_{e^ε}(A‖B) at ε + low for any ε.

        For (P, mixture), at L = -ε, it is p e^(ε - μ) s (s - 1) with s² = 1 + G; for the reverse,
        at L = ε, it is p (1 - √(1 - K)) (docs/theory/finite, Lemma 5).
        """
        p, mu = self._p, self._ratio
        left = np.zeros(epsilon.size) if low is None else low
        if self._reversed:
            up, down = self._gaps(epsilon, left)
            inside = np.clip(epsilon, self._low[0], self._high[0])
            fallen = self._fallen(inside, down)
            root = np.sqrt(self._to_largest(self._grown(up), fallen))
            value = p * np.where(fallen < 0.5, fallen / (1.0 + root), 1.0 - root)
            gap, other, end = down, up, self._high[0]
        else:
            up, down = self._gaps(-epsilon, -left)
            grown = self._grown(up)
            root = np.sqrt(1.0 + grown)
            inside = np.clip(epsilon, -self._high[0], -self._low[0])
            value = p * fn.exp(inside - mu) * root * (grown / (root + 1.0))
            gap, other, end = up, down, self._low[0]
        value = np.where(other <= 0.0, -fn.expm1(np.minimum(epsilon + left, 0.0)), value)
        value = np.where(gap <= 0.0, 0.0, value)
        size = np.abs(epsilon) + abs(end)
        shift = UNIT * (UNIT * 16.0 * size + 4.0 * np.maximum(gap, 0.0))
        near = np.nextafter(-epsilon + 2.0 * shift, np.inf)
        tails = self.tails(near)
        below = tails.a_below
        error = (2.0 * self._error + 8.0 * UNIT * np.abs(epsilon)) * value + shift * below
        fall = fn.exp(np.minimum(epsilon, -self.support()[0])) * tails.b_below
        return KnownProfile(value, error + SUBNORMAL * (gap > -shift), fall)
