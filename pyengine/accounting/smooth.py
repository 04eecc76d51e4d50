"""The worst strategy on coarse grids: bounds of W as sums of bells, stored by their coefficients.

Proof and notation: `theory/adaptive`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.accounting.bells import Bells, noisy_stop
from pyengine.accounting.kernels import GradedLaw
from pyengine.accounting.recursion import CLEAR, FFT_ROUNDING, StatePlan, length, norm
from pyengine.accounting.steps_on_bells import (
    DAMPED,
    MARGIN,
    StepOnBells,
    first_step,
    step_on_bells,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["SmoothRecursion", "SmoothValues"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
MIDDLE = 6  # nodes on each side of a bell's middle that are used to compare two sums


@dataclass(frozen=True, eq=False)
class SmoothValues:
    """e^ε W of one state at x = -ε, ε = 0, h/8, 2h/8, ..., and proven upper or lower bounds."""

    values: FloatArray
    bounds: FloatArray


@dataclass(frozen=True, eq=False)
class _KeptBells:
    """Coefficients of a state less those of (r - 1)+, and bounds of errors in W e^{-θx}."""

    value: FloatArray
    transform: ComplexArray
    error: float
    norm: float
    peak: float
    most: float
    far: float
    by: SmoothRecursion


# Map: the worst strategy on coarse grids | test_adaptive_smooth | theory/adaptive
class SmoothRecursion:
    """Upper or lower values of all states, as coefficients of bells.

    ``laws`` are the upper or lower laws of the choices.  The window has the nodes ``first`` < 0 <
    ``last``; beyond it, coefficients are those of (r - 1)+.  States with at most ``finer._depth``
    choices to come are computed by the recursion ``finer`` on finer bells.
    """

    def __init__(
        self,
        laws: Sequence[GradedLaw],
        bells: Bells,
        first: int,
        last: int,
        *,
        is_upper: bool,
        finer: SmoothRecursion | None = None,
        depth: float = math.inf,
    ) -> None:
        self._bells, self._first, self._is_upper = bells, first, is_upper
        self._finer, self._depth = finer, depth
        self._count = last - first + 1
        self._steps = [step_on_bells(law, bells) for law in laws]
        # room so that what leaves the window on one side does not wrap around to the other
        left, right = (
            min(max(each), self._count - 1)
            for each in zip(
                *((-step.first, step.first + step.c.size - 1) for step in self._steps), strict=True
            )
        )
        self._size = length(self._count + left + right)
        self._level = FFT_ROUNDING * fn.log2(self._size) * 3.0 + 16.0 * UNIT
        x = np.arange(first, last + 1) * bells.spacing
        self._stop = _stopped(x, bells.tilt)  # coefficients of (r - 1)+; their largest beyond
        self._beyond = fn.exp((1.0 - bells.tilt) * float(x[-1]))
        self._spectra, self._dropped, self._gains, self._left_out = zip(
            *(self._part(step) for step in self._steps), strict=True
        )
        self._begins = [] if finer is not None else [self._begin(law) for law in laws]
        self._norms = [norm(step.c) for step in self._steps]
        self._slack = max(step.slack for step in self._steps)

    def _part(self, step: StepOnBells) -> tuple[ComplexArray, float, FloatArray, float]:
        """Precomputed arrays of one choice.

        The FFT of c without coefficients that lead across the whole window, and the sum of their
        absolute values; the convolution of c with (r - 1)+, less (r - 1)+; and a bound of it
        outside the window, with its rounding.
        """
        h, tilt, count, first = self._bells.spacing, self._bells.tilt, self._count, self._first
        m = np.arange(step.first, step.first + step.c.size)
        inner = np.abs(m) < count
        cyclic = np.zeros(self._size)
        cyclic[m[inner] % self._size] = step.c[inner]
        dropped = float(np.abs(step.c[~inner]).sum()) * (1.0 + m.size * UNIT)
        # extended to the right as far as c reaches; terms from left of the window see e^x - 1
        reach, near = max(int(m[-1]), 0), m >= first
        start, x = max(step.first, first), np.arange(first, first + count + reach) * h
        stop = _stopped(np.arange(first + count + reach - start) * h, tilt)
        size = length(stop.size + m.size)
        made = np.fft.rfft(step.c[near], size) * np.fft.rfft(stop, size)
        gain = -_stopped(x, tilt)
        gain[start - first :] += np.fft.irfft(made, size)[: stop.size]
        level = FFT_ROUNDING * fn.log2(size) * 3.0 + 16.0 * UNIT
        off = level * norm(step.c) * norm(stop) + (4.0 * ELEMENTARY + 8.0) * UNIT * step.weight
        end, farthest = 0.0, float(x[-1])
        for sign, rate in ((1.0, 1.0 - tilt), (-1.0, -tilt)):
            across = step.c[~near] * fn.exp(rate * h * (first - m[~near]))
            gain += sign * float(across.sum()) * fn.exp(rate * (x - first * h))
            off += (across.size + 16.0) * UNIT * float(np.abs(across).sum())
            # farther right (r - 1)+ is linear in r, and so is its convolution
            whole = step.c * fn.exp(rate * (farthest - h * m))
            end += abs(float(whole.sum()) - fn.exp(rate * farthest))
            end += (m.size + 16.0) * UNIT * float(np.abs(whole).sum())
        # to the left (rR - 1)+ r^-θ is at most R^θ times the largest (r - 1)+ r^-θ
        most = 1.0
        if tilt > 1.0:
            most = fn.exp((tilt - 1.0) * fn.log(tilt - 1.0) - tilt * fn.log(tilt))
        left = most * float(np.abs(step.c[~near]).sum())
        off += max(end, left, float(np.abs(gain[count:]).max(initial=0.0)))
        gain = gain[:count].copy()
        return np.fft.rfft(cyclic), dropped, gain, off

    def _begin(self, law: GradedLaw) -> tuple[FloatArray, float]:
        """Coefficients of a run's last step less those of (r - 1)+; their error with truncation."""
        step = first_step(law, self._bells)
        value = np.zeros(self._count)
        at = step.start - self._first
        low, high = max(at, 0), min(at + step.value.size, self._count)
        value[low:high] = step.value[low - at : high - at]
        outside = np.abs(np.concatenate([step.value[: low - at], step.value[high - at :]]))
        left_out = float(outside.max(initial=0.0)) * self._bells.total
        return value, step.error + left_out

    def run(
        self,
        plan: StatePlan,
        wanted: Sequence[int],
        count: int,
        spacing: float,
        *,
        among: Callable[[int], Sequence[int]] | None = None,
        tell: Callable[[tuple[int, ...]], object] | None = None,
    ) -> dict[int, SmoothValues]:
        """Values of the wanted states at ``count`` ε of the given spacing.

        ``among`` selects the moves to try in a state (for lower bounds any will do); ``tell`` is
        called state by state with the positions of the moves that are the best somewhere.
        """
        depth = plan.depths
        kept: dict[int, _KeptBells] = {}
        found: dict[int, SmoothValues] = {}
        for state, tried, is_used in plan.walk(kept, among):
            way = plan.moves[state]
            if not way:
                if tell is not None:
                    tell(())
                continue
            level = self._of_depth(depth[state])
            parts = [level._after(way[number][0], kept.get(way[number][1])) for number in tried]
            error, far = max(part[1] for part in parts), max(part[2] for part in parts)
            value, best = level._best([part[0] for part in parts], error)
            error += 8.0 * UNIT * float(np.abs(value).max())
            if tell is not None:
                tell(tuple(tried[i] for i in best))
            if state in wanted:
                found[state] = level._read(value, error, far, depth[state], count, spacing)
            if is_used:
                kept[state] = level._kept(value, error, far)
        return found

    def _of_depth(self, depth: int) -> SmoothRecursion:
        """The recursion that computes states with up to ``depth`` choices to come."""
        if self._finer is None or depth > self._finer._depth:
            return self
        return self._finer._of_depth(depth)

    def _kept(self, value: FloatArray, error: float, far: float) -> _KeptBells:
        most = max(float(np.abs(value + self._stop).max()), self._beyond) * (1.0 + 1e-9)
        transform = np.fft.rfft(value, self._size)
        peak = float(np.abs(value).max())
        return _KeptBells(value, transform, error, norm(value), peak, most, far, self)

    def _after(self, choice: int, then: _KeptBells | None) -> tuple[FloatArray, float, float]:
        """Coefficients of a choice followed by ``then``, error in W e^{-θx}, A-mass at infinity."""
        step = self._steps[choice]
        if self._finer is not None and (then is None or then.by is not self):
            value, error, far = self._finer._after(choice, then)
            value, off = self._coarser(value)
            return value, error + off, far
        if then is None:
            value, error = self._begins[choice]
            return value, error, step.far
        whole = np.fft.irfft(self._spectra[choice] * then.transform, self._size)
        error = step.mass * then.error + step.residual * then.most
        off = self._level * self._norms[choice] * then.norm + self._left_out[choice]
        off += float(np.abs(whole[self._count :]).max()) + self._dropped[choice] * then.peak
        value = whole[: self._count] + self._gains[choice]
        return value, error + off * self._bells.total, step.far + then.far

    def _coarser(self, fine: FloatArray) -> tuple[FloatArray, float]:
        """Approximate coefficients on finer bells by ones on these bells; with the error."""
        finer = self._finer
        if finer is None:
            raise AssertionError("no finer bells")
        bells, tilt, step = finer._bells, self._bells.tilt, self._bells.parts // finer._bells.parts
        own = self._bells.of_finer
        reach = own.size // 2
        first = min(finer._first, self._first * step) - reach - MARGIN * step
        last = max(finer._first + finer._count, (self._first + self._count) * step)
        first, cells = first // step, (last + reach) // step + MARGIN - first // step
        cells = length(cells)
        size, start = cells * step, first * step
        target = np.zeros(size)
        at = finer._first - start
        target[at : at + fine.size] = fine
        k = np.arange(start, start + size)
        near = np.flatnonzero(np.abs(k) <= self._bells.more_noise.size)
        gain = noisy_stop(self._bells.more_noise, bells.spacing, k[near])
        target[near] -= gain * fn.exp(-tilt * bells.spacing * k[near])
        inside = slice(self._first - first, self._first - first + self._count)
        value, left, off = self._bells.from_finer(target, inside, DAMPED)
        off += float(np.abs(left).max())
        off += 2.0 * self._bells.sharing * float(own.sum()) * float(np.abs(value).max())
        off += (8.0 * ELEMENTARY * UNIT + self._bells.rounding) * float(np.abs(target).max())
        return value, off * bells.total

    def _best(self, values: list[FloatArray], error: float) -> tuple[FloatArray, list[int]]:
        """Combine the coefficients of several choices, and list those that are the best somewhere.

        Upper coefficients are the maxima.  Lower ones are those of the larger sum; where
        neighbours belong to different choices they are reduced so much that the sum of bells
        nowhere exceeds that of one of the two choices.
        """
        if len(values) == 1:
            return values[0], [0]
        value = values[0].copy()
        owner = np.zeros(value.size, dtype=np.int64)
        for number in range(1, len(values)):
            # coefficients may oscillate about their sums, so lower values compare the sums
            apart = values[number] - value
            better = (apart if self._is_upper else self._sums(apart)) > 0.0
            owner[better] = number
            np.copyto(value, values[number], where=better)
        clear = value > CLEAR * error
        best = np.unique(owner[clear]) if clear.any() else owner[[int(np.argmax(value))]]
        if not self._is_upper:
            change = np.flatnonzero(owner[1:] != owner[:-1])
            right, left = self._bells.beside
            whole = np.array(values)
            less = np.zeros(change.size)
            for sides, own, start, sign in ((right, change, 1, 1), (left, change + 1, 0, -1)):
                total = np.zeros(change.size)
                for k in range(sides.size):
                    j = change + start + sign * k
                    inside = (j >= 0) & (j < value.size)
                    at = np.clip(j, 0, value.size - 1)
                    more = np.maximum(value[at] - whole[owner[own], at], 0.0)
                    total += np.where(inside, sides[k] * more, 0.0)
                np.maximum(less, total, out=less)
            less *= 1.0 + 2.0 * self._bells.rounding
            np.subtract.at(value, change, less)
            np.subtract.at(value, change + 1, less)
        return value, [int(number) for number in best]

    def _sums(self, value: FloatArray) -> FloatArray:
        """Approximate values of a sum of bells at the coarse nodes."""
        first, bell = self._bells.at(0)
        return np.convolve(value, bell[-first - MIDDLE : MIDDLE + 1 - first], mode="same")

    def _read(
        self, value: FloatArray, error: float, far: float, depth: int, count: int, spacing: float
    ) -> SmoothValues:
        """Values and bounds of e^ε W at ε = 0, spacing, ...; valid beyond the window, too."""
        bells = self._bells
        read = round(bells.spacing / spacing)
        part = bells.parts // read
        found = np.zeros(count)
        for phase in range(read):
            first, bell = bells.at(phase * part)
            sums = np.convolve(value, bell)  # at nodes from self._first + first... of x / h
            places = -np.arange(-phase % read, count, read)  # x in parts of h
            node = (places - phase) // read
            at = node - self._first - first
            inside = (at >= 0) & (at < sums.size)
            found[-places[inside]] = sums[at[inside]]
        epsilon = np.arange(count) * spacing
        off = error + (
            8.0 * bells.half / bells.parts * UNIT + bells.rounding
        ) * bells.total * float(np.abs(value).max())
        stop = bells.noisy_stop(-np.arange(count) * part) * fn.exp(epsilon)
        with np.errstate(over="ignore"):
            weight = fn.exp((1.0 - bells.tilt) * epsilon)
        side = 1.0 if self._is_upper else -1.0
        plain = found * weight + stop
        bounds = plain + side * (off * weight + 4.0 * bells.rounding * np.abs(stop))
        bounds += far if self._is_upper else 0.0
        slack = depth * self._slack * (1.0 + 1e-6) + 32.0 * ELEMENTARY * UNIT
        bounds *= 1.0 + side * slack * (1.0 + slack)
        return SmoothValues(plain, np.maximum(bounds, 0.0))


def _stopped(x: npt.NDArray[np.floating[Any]], tilt: float) -> FloatArray:
    """(r - 1)+ e^{-θx}."""
    right = np.maximum(x, 0.0)
    return np.asarray(fn.exp((1.0 - tilt) * right) * -fn.expm1(-right))
