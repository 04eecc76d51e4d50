"""Composition of a finite law with a law in closed form: averages over the finite losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.exact.levels import SUBNORMAL, WEAK, ClosedLaw, ComposedLaw, Tails
from pyengine.laws.fine import left_of
from pyengine.numerics.rounding import UNIT

__all__ = ["Mixed", "Weights"]

FloatArray = npt.NDArray[np.float64]

MAX_POINTS = 1 << 19  # points of one evaluation of the closed form, to bound the memory


class Weights:
    """Finite losses with masses of both laws, and the relative error of the masses.

    ``digits`` returns the low parts of the losses and a bound of the error of double and low part
    together.  ``lowest`` is a lower and an upper bound of the infimum of all losses, some of which
    may be left out.
    """

    def __init__(
        self,
        loss: FloatArray,
        a: FloatArray,
        b: FloatArray,
        error: float,
        digits: Callable[[], tuple[FloatArray, float]] | None = None,
        lowest: tuple[float, float] | None = None,
    ) -> None:
        self._keep = (a > 0.0) | (b > 0.0)
        self.loss, self.a, self.b = loss[self._keep], a[self._keep], b[self._keep]
        self.error, self._digits = error, digits
        least = float(self.loss.min())
        self.lowest = (least, least) if lowest is None else lowest

    @cached_property
    def low(self) -> tuple[FloatArray, float] | None:
        """Low parts of the kept losses, and the error bound."""
        if self._digits is None:
            return None
        low, error = self._digits()
        return low[self._keep], error


class Mixed(ComposedLaw):
    """Composition of finite weights with another law; see `ComposedLaw`."""

    def __init__(self, weights: Weights, law: ClosedLaw) -> None:
        self._weights, self._law = weights, law

    def support(self) -> tuple[float, float]:
        """Sums of the smallest and of the largest losses."""
        low, high = self._law.support()
        loss = self._weights.loss
        return low + float(loss.min()), high + float(loss.max())

    def lowest(self) -> tuple[float, float]:
        """Lower and upper bound of the infimum of all losses."""
        low, high = self._law.lowest()
        least, most = self._weights.lowest
        size = 1.0 + abs(low) + float(np.abs(self._weights.loss).max())
        off = 2.0 * self._weights.error + 8.0 * UNIT * size
        return low + least - off, high + most + off

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        w = self._weights
        rows = []
        step = max(1, MAX_POINTS // w.loss.size)
        for start in range(0, c.size, step):
            part = c[start : start + step, None] - w.loss
            found = self._law.tails(part.ravel())
            shaped = [x.reshape(part.shape) for x in found]
            masses = (shaped[0] @ w.a, shaped[1] @ w.a, shaped[2] @ w.b, shaped[3] @ w.b)
            rows.append((*masses, shaped[4].max(axis=1), shaped[5].max(axis=1)))
        parts = [np.concatenate(column) for column in zip(*rows, strict=True)]
        error = parts[4] + w.error + UNIT * (w.loss.size + 4.0)
        # a loss errs as the log of a ratio of two masses, and c - loss is rounded
        size = np.abs(c) + float(np.abs(w.loss).max())
        shift = parts[5] + 2.0 * w.error + 8.0 * UNIT * (1.0 + size)
        return Tails(parts[0], parts[1], parts[2], parts[3], error, shift)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B), the other law's profile at ε + loss averaged over A, and its error."""
        w = self._weights
        size = np.abs(epsilon) + float(np.abs(w.loss).max())
        value, error = self._average(epsilon, None)
        shift = 4.0 * UNIT * size + 2.0 * w.error
        # a shift of the threshold changes the profile by at most the shift times A's mass below it
        tails = self.tails(-epsilon + 2.0 * shift)
        below = tails.a_below * (1.0 + tails.error)
        off = shift * below
        weak = error + off > WEAK * value
        if weak.any() and w.low is not None:
            low, loss_error = w.low
            value[weak], error[weak] = self._average(epsilon[weak], low)
            off[weak] = (1.01 * loss_error + 8.0 * UNIT**2 * size[weak]) * below[weak]
        relative = w.error + UNIT * (w.loss.size + 4.0)
        # next to the smallest loss, the threshold may be on either side of it
        beside = -epsilon + 2.0 * shift > self.support()[0]
        return value, error + 1.01 * relative * value + off + SUBNORMAL * beside

    def _average(
        self, epsilon: FloatArray, low: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """The other law's profile and its error, averaged over A."""
        w = self._weights
        values, errors = [], []
        step = max(1, MAX_POINTS // w.loss.size)
        for start in range(0, epsilon.size, step):
            at = epsilon[start : start + step, None]
            part = at + w.loss
            left = None if low is None else (left_of(at, w.loss, part) + low).ravel()
            value, error = self._law.profile(part.ravel(), left)
            values.append(value.reshape(part.shape) @ w.a)
            known = error.reshape(part.shape)
            errors.append(known @ w.a + SUBNORMAL * (known.max(axis=1) > 0.0))
        return np.concatenate(values), np.concatenate(errors)
