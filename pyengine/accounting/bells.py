"""Bells: smooth basis functions at the nodes of a coarse grid for values W (theory/adaptive)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.accounting.recursion import FFT_ROUNDING, norm
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["ALIASES", "READ", "Bells", "folded", "noisy_stop", "normal_masses"]

FloatArray = npt.NDArray[np.float64]
WIDTH = 2.0  # standard deviation of the noise g, in coarse cells
REACH = 6.5  # cutoff of g, in standard deviations
ALIASES = 2  # aliases on each side that are summed; beyond them FFTs of bells are 0 in doubles
READ = 8  # points in a coarse cell at which values are tabulated


@dataclass(frozen=True)
class Bells:
    """A bell B at each node x = kh, tabulated on a fine grid of h / ``parts``.

    A bell is a hat function in r = e^x, smoothed by the noise g.  h and ``parts`` >= `READ` are
    powers of two; functions are stored tilted, that is, times e^{-θx}, θ >= 1.  If ``finer`` bells
    on the same fine grid are given, g is their noise convolved with a law q on their nodes, so that
    B is a sum of finer bells.
    """

    spacing: float
    parts: int
    tilt: float
    finer: Bells | None = None

    @property
    def fine(self) -> float:
        """Spacing of the fine grid."""
        return self.spacing / self.parts

    @cached_property
    def noise(self) -> FloatArray:
        """Masses of g at -n, ..., n fine spacings; its mean of e^y is 1 up to rounding."""
        if self.finer is None:
            return normal_masses(WIDTH * self.spacing, self.fine)
        more, inner, step = self.more_noise, self.finer.noise, self.finer.parts
        found = np.zeros((more.size - 1) * step + inner.size)
        for i, mass in enumerate(more):
            found[i * step : i * step + inner.size] += mass * inner
        return found

    @cached_property
    def more_noise(self) -> FloatArray:
        """Masses of q at the nodes of the finer bells."""
        finer = self._finer.spacing
        return normal_masses(WIDTH * math.sqrt(self.spacing**2 - finer**2), finer)

    @property
    def _finer(self) -> Bells:
        if self.finer is None:
            raise AssertionError("bells that are none of finer ones")
        return self.finer

    @cached_property
    def of_finer(self) -> FloatArray:
        """Coefficients b_j e^{-θjh}, -n <= j <= n, of B = Σ b_j B_j in finer bells of spacing h."""
        finer, more = self._finer.spacing, self.more_noise[::-1]
        hat = _hat(self.spacing, finer)
        found = np.convolve(hat, more)
        j = np.arange(-(found.size // 2), found.size // 2 + 1)
        return np.asarray(found * fn.exp(-self.tilt * finer * j))

    @property
    def sharing(self) -> float:
        """Relative rounding error of `of_finer`."""
        return (self.more_noise.size + 32.0 + 8.0 * ELEMENTARY) * UNIT

    def from_finer(
        self, target: FloatArray, used: slice, damped: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Least-squares approximation of a sum of finer bells by a sum of these bells.

        ``target`` has the coefficients of the finer bells, cyclically; ``used`` selects the nodes
        of the result; ``damped`` regularizes.  Returns the coefficients, the residual as
        coefficients of finer bells, and a bound of the 2-norm of its rounding.
        """
        own, size, step = self.of_finer, target.size, self.parts // self._finer.parts
        cells, reach = size // step, own.size // 2
        cyclic = np.zeros(size)
        cyclic[np.arange(-reach, reach + 1) % size] = own
        of_own, of_target = np.fft.rfft(cyclic), np.fft.rfft(target)
        shape = folded(np.abs(of_own) ** 2, cells, step // 2).real
        wanted = folded(of_target * np.conj(of_own), cells, step // 2)
        found = np.fft.irfft(wanted / (shape + damped * float(shape.max())), cells)[used].copy()
        stuffed = np.zeros(size)
        stuffed[used.start * step : used.stop * step : step] = found
        left = target - np.fft.irfft(np.fft.rfft(stuffed) * of_own, size)
        level = FFT_ROUNDING * fn.log2(size) * 3.0 + 16.0 * UNIT
        return found, left, level * norm(own) * norm(found) + 4.0 * UNIT * norm(target)

    @property
    def half(self) -> int:
        """Number of fine cells from the middle of a bell to its end."""
        return self.noise.size // 2 + self.parts

    @property
    def rounding(self) -> float:
        """Relative rounding error of `values`."""
        own = (self.noise.size + 16.0 + 4.0 * ELEMENTARY) * UNIT
        return own if self.finer is None else own + self.finer.rounding

    @cached_property
    def values(self) -> FloatArray:
        """B e^{-θx} at the fine nodes -half, ..., half."""
        hat = _hat(self.spacing, self.fine)
        bell = np.convolve(hat, self.noise[::-1])
        return np.asarray(
            bell * fn.exp(-self.tilt * self.fine * np.arange(-self.half, self.half + 1))
        )

    def at(self, part: int) -> tuple[int, FloatArray]:
        """First k, and B e^{-θx} at (k + part / parts) h from this k on, as far as it is not 0."""
        first = -((self.half + part) // self.parts)
        start = first * self.parts + part + self.half
        return first, self.values[start :: self.parts]

    @cached_property
    def total(self) -> float:
        """Upper bound of Σ_k B(x - kh) e^{-θ(x - kh)} over all x."""
        sums = max(float(self.at(part)[1].sum()) for part in range(self.parts))
        return sums * fn.exp(self.tilt * self.fine) * (1.0 + 2.0 * self.rounding)

    @cached_property
    def beside(self) -> tuple[FloatArray, FloatArray]:
        """Largest ratios of distant bells to the sum of the bells at 0 and at its neighbour.

        First for k = 1, 2, ...: B_k / (B_0 + B_1) over x <= h / 2; then the mirror image, with
        B_{-k} and B_{-1} over x >= -h / 2.
        """
        return self._most_beside(self.values), self._most_beside(self.values[::-1])

    def _most_beside(self, bell: FloatArray) -> FloatArray:
        """The largest B_k / (B_0 + B_1) at fine nodes up to h / 2, k = 1, 2, ...."""
        parts, end = self.parts, self.half + self.parts // 2 + 1  # x = h / 2 is the last
        both = bell[:end].copy()
        both[parts:] += bell[: end - parts]
        starts = range(parts, end, parts)
        return np.array([float((bell[: end - at] / both[at:]).max()) for at in starts])

    def noisy_stop(self, index: npt.NDArray[np.int64]) -> FloatArray:
        """E_g (r e^y - 1)+ - (r - 1)+ at r = e^x, x the fine nodes with these indices."""
        return noisy_stop(self.noise, self.fine, index)


def normal_masses(deviation: float, spacing: float) -> FloatArray:
    """Masses at -n, ..., n spacings of a discrete, truncated normal law with E e^y = 1."""
    n = int(REACH * deviation / spacing)
    y = np.arange(-n, n + 1) * spacing
    shift = 0.5 * deviation**2
    for _ in range(8):
        mass = fn.exp(-0.5 * ((y + shift) / deviation) ** 2)
        mass /= mass.sum()
        shift += fn.log(float((mass * fn.exp(y)).sum()))
    return np.asarray(mass)


def _hat(h: float, spacing: float) -> FloatArray:
    """The hat function, linear in r, with values 0, 1, 0 at x = -h, 0, h, at a finer spacing."""
    x = np.arange(round(h / spacing) + 1) * spacing
    fall = fn.expm1(h - x) * fn.exp(x) / fn.expm1(h)
    rise = fn.expm1(h - x) / fn.expm1(h)  # at -x
    return np.concatenate([rise[:0:-1], fall])


def noisy_stop(noise: FloatArray, spacing: float, index: npt.NDArray[np.int64]) -> FloatArray:
    """E (r e^y - 1)+ - (r - 1)+ for a law of y, at r = e^x, x nodes of the spacing of this law."""
    n = noise.size // 2
    y = np.arange(-n, n + 1)
    found = np.zeros(index.size)
    near = np.flatnonzero(np.abs(index) <= n)
    if near.size:
        # E (rR - 1)+ - (r - 1)+ is E (rR - 1)+ at r <= 1 and E (1 - rR)+ at r > 1
        mean = noise * fn.exp(y * spacing)
        above = np.append(np.cumsum(noise[::-1])[::-1], 0.0)
        high = np.append(np.cumsum(mean[::-1])[::-1], 0.0)
        below, low = (np.append(0.0, np.cumsum(each)) for each in (noise, mean))
        at = index[near]
        r, first = fn.exp(at * spacing), n - at  # index of y = -x
        put = below[first] - r * low[first]
        call = r * high[first] - above[first]
        found[near] = np.maximum(np.where(at > 0, put, call), 0.0)
    return found


def folded(spectrum: npt.NDArray[Any], cells: int, aliases: int = ALIASES) -> npt.NDArray[Any]:
    """Sums of a real function's half spectrum over frequencies that alias on the coarse nodes."""
    base = np.arange(cells // 2 + 1)
    total = spectrum[base].astype(np.complex128)
    for alias in range(1, aliases + 1):
        total += np.conj(spectrum[alias * cells - base])
        above = base + alias * cells
        total += np.where(
            above < spectrum.size, spectrum[np.minimum(above, spectrum.size - 1)], 0.0
        )
    return total
