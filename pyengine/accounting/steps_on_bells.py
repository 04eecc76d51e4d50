"""One step applied to bells, and to (r - 1)+, as sums of bells with errors (theory/adaptive)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.accounting.bells import ALIASES, Bells, folded
from pyengine.accounting.kernels import GradedLaw
from pyengine.accounting.recursion import FFT_ROUNDING, length, norm
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["DAMPED", "MARGIN", "NEAR", "FirstStep", "StepOnBells", "first_step", "step_on_bells"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
Piece = tuple[int, FloatArray]  # first node, and coefficients
MARGIN = 400  # coarse nodes on which coefficients decay beyond the range of the law
FADING = 150  # the same for bells that are sums of finer ones
DAMPED = 1e-12  # regularization of the first step, relative to the largest squared FFT of a bell
DAMPED_STEP = 1e-14  # regularization of coefficients on coarser bells, likewise
NEAR = 600  # coarse nodes on each side of 0 that have most of the mass of a law
TINY = 1e-19  # smaller coefficients are set to 0


class StepOnBells:
    """One step applied to a bell, E_B B(rR), as a sum of bells with coefficients c, with errors.

    ``dense`` has the first node and the coefficients for the dense part of the law only.
    """

    def __init__(self, law: GradedLaw, bells: Bells) -> None:
        parts, tilt = bells.parts, bells.tilt
        self.far, self.slack = law.far, law.slack
        tilted = law.weights * fn.exp(tilt * bells.fine * law.index)
        self.mass = float(tilted.sum()) * (1.0 + (tilted.size + 8.0) * UNIT)
        size = np.abs(law.index)
        dense = size <= law.dense
        if bells.finer is None or bells.finer.finer is None:
            # fit the centre, which has most of the mass, apart: the rounding error grows with both
            # the mass and the number of nodes
            near = size <= min(NEAR * parts, law.dense)
            parted = [near, dense & ~near]
            fits = [_fitted(law.index[some], tilted[some], bells) for some in parted if some.any()]
            self.dense = _sum_of([piece for piece, _ in fits])
            weight = self.mass + float(np.abs(self.dense[1]).sum()) * 1.01
            residual = sum(off for _, off in fits) + bells.rounding * weight * bells.total
            self.residual = residual * fn.exp(tilt * bells.fine) * (1.0 + 1e-6)
        else:
            finer = step_on_bells(law, bells.finer)
            self.dense, self.residual = _coarser(finer, bells, bells.finer)
        pieces = [self.dense]
        if not dense.all():  # nodes farther out are nodes of bells: they shift the bells exactly
            node = -law.index[~dense][::-1] // parts
            moved = np.zeros(int(node[-1] - node[0]) + 1)
            moved[node - node[0]] = tilted[~dense][::-1]
            pieces.append((int(node[0]), moved))
        self.first, self.c = _sum_of(pieces)
        self.weight = float(np.abs(self.c).sum()) * (1.0 + self.c.size * UNIT)


def _sum_of(pieces: list[Piece]) -> Piece:
    """First node and coefficients of a sum of pieces."""
    begin = min(first for first, _ in pieces)
    found = np.zeros(max(first + c.size for first, c in pieces) - begin)
    for first, c in pieces:
        found[first - begin : first - begin + c.size] += c
    return begin, found


def _coarser(step: StepOnBells, bells: Bells, finer: Bells) -> tuple[Piece, float]:
    """The dense part on bells that are sums of finer ones, from its coefficients on these."""
    own, ratio = bells.of_finer, bells.parts // finer.parts
    first, c = step.dense
    made = np.convolve(own, c)
    begin = first - own.size // 2
    start, count = begin // ratio - FADING, made.size // ratio + 2 * FADING + 2
    target = np.zeros(length(count) * ratio)
    at = begin - start * ratio
    target[at : at + made.size] = made
    found, left, rounding = bells.from_finer(target, slice(0, count), DAMPED_STEP)
    off = math.sqrt(left.size) * rounding
    off += bells.sharing * float(own.sum()) * float(np.abs(c).sum() + np.abs(found).sum())
    # written in the finest bells, the bound of what is left is smallest
    of = finer
    while of.finer is not None:
        times = of.parts // of.finer.parts
        wide = np.zeros(left.size * times)
        wide[::times] = left
        left, of = np.convolve(wide, of.of_finer), of.finer
    apart = _largest_phase(np.abs(left), bells.parts // of.parts) * of.total
    most = _largest_phase(own, ratio)
    return (start, found), (most * step.residual + apart + off * finer.total) * (1.0 + 1e-6)


def _largest_phase(values: FloatArray, apart: int) -> float:
    """The largest sum over every ``apart``-th value, over all phases."""
    return max(float(values[phase::apart].sum()) for phase in range(apart))


class _Lumps(NamedTuple):
    """Masses at 0 and at one node of bells with the sum and mean of R of all masses beyond it."""

    node: int
    moved: float  # mass at the node
    rest: float  # mass at 0
    error: float  # from smoothing the kinks of (rR - 1)+ beyond the node


class FirstStep:
    """One step applied to (r - 1)+, E_B (rR - 1)+, as a sum of bells with its error.

    The dense part of the law is fitted together with lumps for the masses farther out, whose kinks
    are at nodes of bells.
    """

    def __init__(self, law: GradedLaw, bells: Bells) -> None:
        parts, tilt, h = bells.parts, bells.tilt, bells.spacing
        low, high = -int(law.index[-1]) // parts, -int(law.index[0]) // parts
        dense = law.dense // parts
        inner = max(low, -dense), min(high, dense)
        lumps = [_lumps(law, bells, -end) for end in inner if end not in (low, high)]
        first, cells = _circle(*inner, bells)
        begin, size = first * parts, cells * parts
        index = np.arange(begin, begin + size)
        wanted, lost = self._wanted(law, bells, index, inner, lumps)
        of_wanted, bell = np.fft.rfft(np.roll(wanted, begin % size)), _spectrum(bells, cells)
        damped = bell.shape + DAMPED * float(bell.shape.max())
        v = np.fft.irfft(folded(of_wanted * np.conj(bell.transform), cells) / damped, cells)
        m = np.arange(first, first + cells)
        left, error = bell.residual(of_wanted, wanted, v[m % cells], m)
        error += float(np.abs(left).max()) + lost
        self.start = min(first, low)
        node = np.arange(self.start, max(first + cells, high + 1))
        x = node * h
        value = np.zeros(node.size)
        outside = (node >= low) & (node <= high) & ((node < inner[0]) | (node > inner[1]))
        value[outside] = _gain(law, bells, np.asarray(-x[outside], np.float64))
        value[node > inner[1]] += law.far * (node[node > inner[1]] <= high)
        value *= fn.exp(x)
        for lump in lumps:
            between = (node * lump.node <= 0) & (np.abs(node) <= abs(lump.node))
            value[between] += math.copysign(1.0, lump.node) * lump.rest * fn.expm1(x[between])
        self.value = value * fn.exp(-tilt * x)
        self.value[first - self.start : first - self.start + cells] += v[m % cells]
        most = float(np.abs(self.value).max()) + float(np.abs(v).max())
        error += (bells.rounding + law.slack + 16.0 * ELEMENTARY * UNIT) * bells.total * most
        self.error = error * fn.exp(tilt * bells.fine) * (1.0 + 1e-6)

    def _wanted(
        self,
        law: GradedLaw,
        bells: Bells,
        index: npt.NDArray[np.int64],
        inner: tuple[int, int],
        lumps: list[_Lumps],
    ) -> tuple[FloatArray, float]:
        """The function to fit, tilted, and its error with that of the masses farther out.

        It is E (rR - 1)+ of the dense part with smoothed lumps, less E_g (r e^y - 1)+.
        """
        parts, tilt = bells.parts, bells.tilt
        x = index * bells.fine
        inside = np.flatnonzero((index >= inner[0] * parts) & (index <= inner[1] * parts))
        k = fn.exp(-x[inside])
        value = _gain(law, bells, np.asarray(-x[inside], np.float64))
        found = -(1.0 - sum(lump.rest for lump in lumps)) * bells.noisy_stop(index)
        for lump in lumps:
            value += lump.rest * np.maximum(math.copysign(1.0, lump.node) * (k - 1.0), 0.0)
            found += lump.moved * bells.noisy_stop(index + lump.node * parts)
        plain = value * fn.exp((1.0 - tilt) * x[inside])
        found *= fn.exp(-tilt * x)
        found[inside] += plain
        masses = law.weights * fn.exp(law.index * bells.fine)
        # beyond the law's range only left-out masses and the mass at R = 0 are missing
        lost = abs(float(law.weights.sum()) - 1.0) + abs(float(masses.sum()) - 1.0)
        most = float(np.abs(plain).max()) + sum(abs(x) for lump in lumps for x in lump[1:3])
        lost += 4.0 * masses.size * UNIT + (8.0 * ELEMENTARY + 64.0) * UNIT * most
        return found, lost + 2.0 * bells.rounding + sum(lump.error for lump in lumps)


def _gain(law: GradedLaw, bells: Bells, x: FloatArray) -> FloatArray:
    """V of a law less its A-mass at infinity, at log k = x within the range of the law."""
    k, at = fn.exp(law.index * bells.fine), fn.exp(x)
    cell = np.clip(np.searchsorted(k, at, side="right") - 1, 0, k.size - 2)
    call = law.values - law.far + np.maximum(1.0 - k, 0.0)  # linear between nodes of the law
    share = (at - k[cell]) / (k[cell + 1] - k[cell])
    value = call[cell] + share * (call[cell + 1] - call[cell])
    return np.asarray(value - np.maximum(1.0 - at, 0.0))


def _lumps(law: GradedLaw, bells: Bells, node: int) -> _Lumps:
    """The lumps for all masses of a law beyond one node of the bells."""
    parts, end = bells.parts, node * bells.parts
    far = law.index > end if node > 0 else law.index < end
    index, mass = law.index[far], law.weights[far]
    excess = float((mass * fn.expm1(index * bells.fine)).sum())
    moved = excess / fn.expm1(node * bells.spacing)
    at = np.arange(-bells.half, bells.half + 1)
    kink = bells.noisy_stop(at) * fn.exp(-bells.tilt * bells.fine * at)
    cells = bells.half // parts + 2
    wide = np.zeros((2 * cells + 1) * parts)
    wide[cells * parts + at] = kink
    most = wide.reshape(-1, parts).max(axis=1)  # largest value in each coarse cell
    places = index // parts
    tilted = np.zeros(int(places[-1] - places[0]) + 1)
    tilted[places - places[0]] = mass * fn.exp(bells.tilt * bells.fine * index)
    error = float(np.convolve(tilted, most).max()) * (1.0 + 1e-9)
    return _Lumps(node, moved, float(mass.sum()) - moved, error)


@kept(128)
def step_on_bells(law: GradedLaw, bells: Bells) -> StepOnBells:
    """The cached `StepOnBells` of a law."""
    return StepOnBells(law, bells)


@kept(64)
def first_step(law: GradedLaw, bells: Bells) -> FirstStep:
    """The cached `FirstStep` of a law."""
    return FirstStep(law, bells)


class _BellSpectrum:
    """The FFT of a bell on the fine grid of a circle of ``cells`` coarse cells."""

    def __init__(self, bells: Bells, cells: int) -> None:
        self._bells, self._cells = bells, cells
        bell = np.zeros(cells * bells.parts)
        bell[np.arange(-bells.half, bells.half + 1) % bell.size] = bells.values
        self.transform = np.fft.rfft(bell)
        self.square = np.abs(self.transform) ** 2
        self.shape = folded(self.square, cells).real

    def residual(
        self, target: ComplexArray, law: FloatArray, c: FloatArray, m: npt.NDArray[np.int64]
    ) -> tuple[FloatArray, float]:
        """A function less Σ c_m B_m, on the fine grid, and a bound of the 2-norm of its rounding.

        ``target`` is the FFT of the function, which is ``law`` itself or its convolution with
        a bell.  The bound is Lemma 7 of theory/adaptive: the FFT of c on the fine grid repeats that
        on the coarse one, so its error is that of the coarse FFT.
        """
        cells, parts = self._cells, self._bells.parts
        size = cells * parts
        placed = np.zeros(cells)
        placed[m % cells] = c
        stuffed = np.fft.fft(placed)[np.arange(size // 2 + 1) % cells]
        left = np.fft.irfft(target - stuffed * self.transform, size)
        level = FFT_ROUNDING * fn.log2(size) + 4.0 * UNIT
        both = float(np.abs(law).sum() + np.abs(c).sum())
        beyond = parts * float(self.square[ALIASES * cells :].max(initial=0.0))
        repeated = math.sqrt((float(self.shape.max()) + beyond) / parts)
        norms = norm(law) * float(self._bells.values.sum()) + norm(c) * repeated
        norms += both * norm(self._bells.values) + norm(left)
        return left, float(1.1 * level * norms)


@kept(64)
def _spectrum(bells: Bells, cells: int) -> _BellSpectrum:
    return _BellSpectrum(bells, cells)


def _circle(low: int, high: int, bells: Bells) -> tuple[int, int]:
    """First coarse node and number of cells, a power of two, of a circle around low..high."""
    around = bells.half // bells.parts + 2 + MARGIN
    return low - around, 1 << (high - low + 2 * around - 1).bit_length()


def _fitted(index: npt.NDArray[np.int64], tilted: FloatArray, bells: Bells) -> tuple[Piece, float]:
    """A law applied to a bell as a least-squares sum of bells, and a bound of the residual."""
    low, high = -int(index[-1]) // bells.parts, -int(index[0]) // bells.parts
    first, cells = _circle(low, high, bells)
    size, bell = cells * bells.parts, _spectrum(bells, cells)
    cyclic = np.zeros(size)
    cyclic[-index % size] = tilted
    of_law = np.fft.rfft(cyclic)
    m = np.arange(first, first + cells)
    c = np.fft.irfft(folded(of_law * bell.square, cells) / bell.shape, cells)[m % cells]
    c = np.where(np.abs(c) < TINY, 0.0, c)
    left, error = bell.residual(of_law * bell.transform, tilted, c, m)
    residual = float(np.abs(left.reshape(cells, bells.parts)).sum(axis=0).max())
    used = np.flatnonzero(c) if c.any() else [0]  # a part may have no mass
    low, high = int(used[0]), int(used[-1]) + 1
    return (first + low, c[low:high]), residual + math.sqrt(cells) * error
