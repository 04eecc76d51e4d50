"""The worst strategy by dynamic programming: W = max over choices of E_B W(rR), state by state.

With W_0(r) = (r - 1)+ the value of a state is W(r) = (r - 1)+ + V(r).  V is stored at the nodes
x = log r = ih, tilted, that is, times e^{-θx}.  Proof and notation: `theory/adaptive`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.accounting.kernels import Kernel
from pyengine.engines.lattice.fft_convolution import FFT_ROUNDING
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["COARSER", "FFT_ROUNDING", "Recursion", "StatePlan", "Values", "length", "norm"]

FloatArray = npt.NDArray[np.float64]
ABOVE_OUTSIDE = 1.0 + 1e-9  # factor that covers the rounding of sums over a tail
COARSER = 8  # cells of the grid in one cell of the outline, which excludes choices
MOST_COMPUTED = 3  # choices computed for a state, roughly; the outline excludes the others
CLEAR = 1e3  # where a value is below this many times its error, no choice counts as the best


@dataclass(frozen=True)
class StatePlan:
    """States of a run with the choices that are allowed in each, as an acyclic graph.

    ``moves`` has for each state pairs of a choice, by its index, and the state it leads to, which
    has a smaller number; state 0 has no moves, and a run begins in the last state.  ``depth`` is
    the largest number of choices in a run.
    """

    moves: tuple[tuple[tuple[int, int], ...], ...]
    depth: int

    def most(self, gains: FloatArray) -> FloatArray:
        """Largest sum of gains over all paths from each state; shape (states, ...)."""
        total = np.zeros((len(self.moves), *gains.shape[1:]))
        for state, moves in enumerate(self.moves):
            for choice, then in moves:
                np.maximum(total[state], gains[choice] + total[then], out=total[state])
        return total

    def largest(self, gains: Sequence[Fraction]) -> tuple[int, ...]:
        """How often each choice is made on the path with the largest sum of gains >= 0."""
        total = [Fraction(0)] * len(self.moves)
        best = [-1] * len(self.moves)
        for state, moves in enumerate(self.moves):
            for number, (choice, then) in enumerate(moves):
                if best[state] < 0 or gains[choice] + total[then] > total[state]:
                    total[state], best[state] = gains[choice] + total[then], number
        counts, state = [0] * len(gains), len(self.moves) - 1
        while best[state] >= 0:
            choice, state = self.moves[state][best[state]]
            counts[choice] += 1
        return tuple(counts)

    def walk(
        self, kept: dict[int, Any], among: Callable[[int], Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Sequence[int], bool]]:
        """Go through all states in order: number, moves to try, and whether a later one needs it.

        ``kept`` holds the results that later states need; each is dropped after its last use.
        ``among`` selects the moves to try in a state, by their positions; all if not given.
        """
        uses = [0] * len(self.moves)
        for way in self.moves:
            for _, then in way:
                uses[then] += 1
        for state, way in enumerate(self.moves):
            yield state, range(len(way)) if among is None else among(state), uses[state] > 0
            for _, then in way:
                uses[then] -= 1
                if not uses[then]:
                    kept.pop(then, None)

    @property
    def depths(self) -> list[int]:
        """Largest number of choices that may still follow, for each state."""
        found: list[int] = []
        for way in self.moves:
            found.append(max((1 + found[then] for _, then in way), default=0))
        return found

    @property
    def products(self) -> int:
        """Number of convolutions of a value with a kernel in a recursion, about."""
        return sum(min(len(moves), MOST_COMPUTED) for moves in self.moves)


@dataclass(frozen=True, eq=False)
class Values:
    """V of one state at the nodes i = first <= 0, first + 1, ..., from upper or lower kernels.

    ``values`` are without error terms.  ``bounds`` are proven upper or lower bounds of the true V
    at r <= 1, nan elsewhere.  ``depth`` is the largest number of choices to come, and ``choices``
    the best one at each node, if requested.
    """

    first: int
    values: FloatArray
    bounds: FloatArray
    depth: int
    choices: npt.NDArray[np.int8] | None

    def down_to(self, lowest: int) -> Values:
        """The part at the nodes from ``lowest`` < 0 to 0."""
        part = slice(max(lowest - self.first, 0), 1 - self.first)
        return Values(
            max(self.first, lowest),
            self.values[part].copy(),
            self.bounds[part].copy(),
            self.depth,
            None if self.choices is None else self.choices[part],
        )


# Map: the worst strategy of a run that adapts | test_adaptive | theory/adaptive
class Recursion:
    """Values of all states, from one kernel for each choice, all upper or all lower, on one grid.

    The window has the nodes ``first`` < 0 < ``last``.  The tilt θ >= 1, a multiple of 1/8,
    determines where values are relatively accurate; the bounds hold for any tilt.  ``outline`` is
    the same recursion on every `COARSER`-th node: choices that it shows to be nowhere the best are
    not computed.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        spacing: float,
        first: int,
        last: int,
        tilt: float,
        outline: Recursion | None = None,
    ) -> None:
        self._first, self._last, self._spacing, self._tilt = first, last, spacing, tilt
        self._is_upper = kernels[0].is_upper
        self._x = np.arange(first, last + 1) * spacing
        count = self._x.size
        cut = [_within(kernel, count) for kernel in kernels]
        reach = max(max(-start, start + weights.size - 1) for start, weights in cut)
        self._size = length(count + reach)
        self._damping = fn.exp(-tilt * self._x)
        # (r - 1)+ <= W <= r bounds V and so its error
        self._most = fn.exp(np.minimum(self._x, 0.0)) * self._damping * (1.0 + 16.0 * UNIT)
        self._slack = max(kernel.slack for kernel in kernels)
        self._outline = outline
        if outline is not None:
            self._slack = max(self._slack, outline._slack)
            self._between = _CellChords(spacing, tilt)
        parts = [self._part(kernel, *pair) for kernel, pair in zip(kernels, cut, strict=True)]
        self._gain, self._spectrum, self._outside, self._mass, self._norm = zip(*parts, strict=True)

    def _part(
        self, kernel: Kernel, start: int, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray], float, float]:
        """Precomputed arrays of one choice.

        The gain E_B (rR - 1)+ - (r - 1)+, tilted; the FFT of the tilted weights; the contributions
        of R that leads out of the window, see `_lumps`; the sum and 2-norm of the tilted weights.
        """
        x, tilt = self._x, self._tilt
        at = -np.arange(self._first, self._last + 1) - kernel.first  # node of k = 1/r
        inside = (at >= 0) & (at < kernel.values.size)
        values = np.where(at < 0, 0.0, kernel.far)
        values[inside] = kernel.values[at[inside]]
        with np.errstate(over="ignore"):
            gain = values * fn.exp((1.0 - tilt) * x)
        if self._is_upper:  # V is linear in k from 0 to the first node
            below = at < 0
            slope = kernel.values[0] * fn.exp(-kernel.first * self._spacing)
            gain[below] = slope * self._damping[below]
        if not self._is_upper:  # W(r) >= r - 1 where the law's far mass is
            gain -= kernel.far * fn.exp(-kernel.rare) * self._damping * ABOVE_OUTSIDE
        # the law of the weights has r C'(1/r) up to the slack, which the bound must cover
        call = gain + np.maximum(fn.exp(x) - 1.0, 0.0) * self._damping
        error = (kernel.slack + (ELEMENTARY + 8.0) * UNIT) * ABOVE_OUTSIDE
        gain += error * call if self._is_upper else -error * call
        tilted = weights * fn.exp(tilt * self._spacing * np.arange(start, start + weights.size))
        cyclic = np.zeros(self._size)
        cyclic[np.arange(start, start + weights.size) % self._size] = tilted
        outside = self._lumps(kernel)
        mass = float(tilted.sum()) * (1.0 + UNIT * tilted.size)
        return gain, np.conj(np.fft.rfft(cyclic)), outside, mass, norm(tilted)

    def _lumps(self, kernel: Kernel) -> tuple[FloatArray, FloatArray]:
        """Contributions of R that leads below and above the window, tilted, for V = 1 there."""
        if not self._is_upper:
            return np.zeros(0), np.zeros(0)
        count = self._x.size
        j = np.arange(kernel.first, kernel.last + 1)
        above = np.cumsum(kernel.weights[::-1])[::-1]  # masses from j on
        below = np.cumsum(kernel.weights * fn.exp(j * self._spacing))  # means up to j
        node = np.arange(count)
        up = count - node - kernel.first  # index of the first j that leads above the window
        high = np.where(up < j.size, above[np.clip(up, 0, j.size - 1)], 0.0)
        down = -node - 1 - kernel.first  # index of the last j that leads below it
        low = np.where(down >= 0, below[np.clip(down, 0, j.size - 1)], 0.0)
        # V(r) <= V(r_0) r / r_0 for r <= r_0
        low = low * fn.exp(self._x - self._x[0])
        return low * self._damping * ABOVE_OUTSIDE, high * self._damping * ABOVE_OUTSIDE

    def run(
        self,
        plan: StatePlan,
        wanted: Sequence[int],
        *,
        with_choices: bool = False,
        among: Callable[[int], Sequence[int]] | None = None,
        tell: Callable[[tuple[int, ...]], object] | None = None,
        lowest: int | None = None,
    ) -> dict[int, Values]:
        """Values of the wanted states, only at nodes from ``lowest`` < 0 to 0 if that is given.

        ``among`` selects the moves to try in a state (for lower bounds any will do); ``tell`` is
        called state by state with the positions of the moves that were computed.
        """
        depth = plan.depths
        kept: dict[int, _KeptState] = {}
        found: dict[int, Values] = {}
        level = FFT_ROUNDING * fn.log2(self._size)
        rounding = (3.0 * level + (ELEMENTARY + 8.0) * UNIT) * (1.0 + 1e-9)
        for state, tried, is_used in plan.walk(kept, among):
            best = None
            if with_choices and state in wanted:
                best = np.full(self._x.size, -1, dtype=np.int8)
            race = _Race(self, plan.moves[state], kept, rounding, best)
            race.run(tried)
            if tell is not None:
                tell(tuple(race.computed))
            value, error = race.value, race.error
            np.minimum(value, self._most, out=value)
            error += 8.0 * UNIT * float(value.max())
            error = min(error, float(self._most.max()))
            if best is not None:
                best[value <= CLEAR * error] = -1
            if is_used:
                kept[state] = self._kept(value, error, race.winners(error))
            if state in wanted:
                whole = self._values(value, error, depth[state], best)
                found[state] = whole if lowest is None else whole.down_to(lowest)
        return found

    def _kept(self, value: FloatArray, error: float, winners: frozenset[int]) -> _KeptState:
        rough = None
        if self._outline is not None:
            rough = self._outline._kept(value[::COARSER].copy(), error, winners)
        return _KeptState(value, self._transform(value), error, norm(value), winners, rough)

    def _transform(self, value: FloatArray) -> npt.NDArray[np.complex128]:
        if not value.any():
            return np.zeros(0, dtype=np.complex128)
        return np.asarray(np.fft.rfft(value, self._size))

    def _after(self, choice: int, then: _KeptState, rounding: float) -> tuple[FloatArray, float]:
        """Tilted value of making one choice and then going on in a state, and its error bound."""
        error = then.error
        if not then.transform.size:  # V = 0: no choice follows
            return self._gain[choice], error * self._mass[choice]
        new = np.fft.irfft(self._spectrum[choice] * then.transform, self._size)[: then.value.size]
        new += self._gain[choice]
        if self._is_upper:
            ends = [float(then.value[i]) + error for i in (0, -1)]
            for end, node, lump in zip(ends, (0, -1), self._outside[choice], strict=True):
                new += lump * (end / self._damping[node])
        return new, error * self._mass[choice] + rounding * self._norm[choice] * then.norm

    def _values(
        self, value: FloatArray, error: float, depth: int, best: npt.NDArray[np.int8] | None
    ) -> Values:
        """Undo the tilt, and widen by rounding and by the slack of the kernels."""
        plain = value / self._damping
        side = 1.0 if self._is_upper else -1.0
        with np.errstate(over="ignore"):
            bounds = (value + side * error) / self._damping
        off = depth * self._slack * (1.0 + 1e-6) + 16.0 * UNIT
        bounds = bounds * (1.0 + side * off * (1.0 + off))
        bounds[self._x > 0.0] = math.nan
        return Values(self._first, plain, np.maximum(bounds, 0.0), depth, best)


@dataclass(frozen=True, eq=False)
class _KeptState:
    """V of a state as later states need it: tilted values, their FFT, error and 2-norm.

    ``winners`` are the choices that are the best somewhere; ``rough`` is the same for the outline.
    """

    value: FloatArray
    transform: npt.NDArray[np.complex128]
    error: float
    norm: float
    winners: frozenset[int]
    rough: _KeptState | None


class _CellChords:
    """Chords over cells of `COARSER` nodes, linear in r, of tilted functions."""

    def __init__(self, spacing: float, tilt: float) -> None:
        u = np.arange(COARSER) * spacing
        share = fn.expm1(u) / fn.expm1(COARSER * spacing)
        self._left = (1.0 - share) * fn.exp(-tilt * u)
        self._right = share * fn.exp(tilt * (COARSER * spacing - u))
        self.most = float((self._left + self._right).max()) * (1.0 + 64.0 * UNIT)

    def shares(self, value: FloatArray) -> FloatArray:
        """For each cell some κ <= 1 such that κ times the chord of the value lies below it."""
        cells = value[:-1].reshape(-1, COARSER)
        ends = value[::COARSER]
        chords = ends[:-1, None] * self._left
        chords += ends[1:, None] * self._right
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(chords > 0.0, cells / chords, 1.0).min(axis=1)
        return np.asarray(np.minimum(ratio, 1.0) * (1.0 - 64.0 * UNIT))


class _Race:
    """The maximum over the choices of one state, computing only those that may be the best.

    ``kept`` has the states that they lead to; ``rounding`` is the relative rounding error of
    a convolution; ``best`` receives the best choice at each node, if it is not None.
    """

    def __init__(
        self,
        recursion: Recursion,
        choices: Sequence[tuple[int, int]],
        kept: dict[int, _KeptState],
        rounding: float,
        best: npt.NDArray[np.int8] | None,
    ) -> None:
        self._recursion, self._choices, self._kept = recursion, choices, kept
        self._rounding, self._best = rounding, best
        self.value, self.error = np.zeros(recursion._x.size), 0.0
        self.computed: list[int] = []
        self._coarse: list[FloatArray] = []

    def run(self, tried: Sequence[int]) -> None:
        """Compute first the choices that are likely to be the best, then those not excluded."""
        outline = self._recursion._outline
        doubtful = [n for n in tried if self._kept[self._choices[n][1]].transform.size]
        if outline is None or len(doubtful) < 2:
            for number in tried:
                self._compute(number)
            return
        hopeful = {
            n
            for n in tried
            if n not in doubtful or self._choices[n][0] in self._kept[self._choices[n][1]].winners
        }
        for number in tried:
            if number in hopeful:
                self._compute(number)
        for number in tried:
            if number not in hopeful and not self._is_below(outline, number):
                self._compute(number)

    def _compute(self, number: int) -> None:
        choice, then = self._choices[number]
        recursion = self._recursion
        new, doubt = recursion._after(choice, self._kept[then], self._rounding)
        self.error = max(self.error, doubt)
        if self._best is not None:
            self._best[new > self.value] = choice
        np.maximum(self.value, new, out=self.value)
        self.computed.append(number)
        if recursion._outline is not None:
            self._coarse.append(new[::COARSER].copy())
        self._shares: FloatArray | None = None

    def _is_below(self, outline: Recursion, number: int) -> bool:
        """Whether a choice is nowhere above the value, up to its error, which is increased for it.

        Between nodes of the outline the choice lies below its chords, and the value lies above κ
        times its own chords.
        """
        choice, then = self._choices[number]
        rough = self._kept[then].rough
        if rough is None or not self.computed:
            return False
        if self._shares is None:
            self._shares = self._recursion._between.shares(self.value)
        new, doubt = outline._after(choice, rough, self._rounding)
        margin = 2.0 * self._rounding * outline._norm[choice] * rough.norm
        ends = self.value[::COARSER]
        below = new[:-1] <= self._shares * ends[:-1] + margin
        below &= new[1:] <= self._shares * ends[1:] + margin
        if not below.all():
            return False
        self.error = max(self.error, self._recursion._between.most * (doubt + margin))
        return True

    def winners(self, error: float) -> frozenset[int]:
        """Choices that are the best somewhere."""
        top = self.value[::COARSER]
        clear = top > CLEAR * error
        return frozenset(
            self._choices[number][0]
            for number, new in zip(self.computed, self._coarse, strict=False)
            if ((new >= top) & clear).any()
        )


def norm(values: FloatArray) -> float:
    """Upper bound of the 2-norm."""
    return math.sqrt(float((values * values).sum())) * (1.0 + 64.0 * UNIT)


def _within(kernel: Kernel, count: int) -> tuple[int, FloatArray]:
    """First index and weights of the kernel nodes that can lead from the window into the window."""
    start, stop = max(kernel.first, 1 - count), min(kernel.last, count - 1)
    return start, kernel.weights[start - kernel.first : stop + 1 - kernel.first]


def length(least: int) -> int:
    """The smallest FFT length 2^k or 3 2^k that is at least ``least``."""
    power = 1 << max(least - 1, 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power
