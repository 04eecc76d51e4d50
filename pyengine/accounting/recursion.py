"""The worst strategy by dynamic programming: W = max over choices of E_B W(rR), state by state.

With W_0(r) = (r - 1)+ the value of a state is W(r) = (r - 1)+ + V(r), and V is kept at the nodes
x = log r = ih, times e^{-θx}.  `theory/adaptive` has the proof; the names are those of that page.
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
ABOVE_OUTSIDE = 1.0 + 1e-9  # what the rounding of sums over a tail may lose
COARSER = 8  # nodes of a recursion in a cell of the one that says which choices are never best
MOST_COMPUTED = 3  # choices of a state that are computed, roughly; the outline shows the others
CLEAR = 1e3  # times its error: a value from which on it tells which choice is best


@dataclass(frozen=True)
class StatePlan:
    """States of a run: what may still be chosen, and where each choice leads.

    ``moves`` are for each state the choices, by their index, and the states that they lead to,
    which come before it; state 0 has none.  ``depth`` is the largest number of choices on the way
    there.
    """

    moves: tuple[tuple[tuple[int, int], ...], ...]
    depth: int

    def most(self, gains: FloatArray) -> FloatArray:
        """Largest total of gains over all ways from each state; shape (states, ...)."""
        total = np.zeros((len(self.moves), *gains.shape[1:]))
        for state, moves in enumerate(self.moves):
            for choice, then in moves:
                np.maximum(total[state], gains[choice] + total[then], out=total[state])
        return total

    def largest(self, gains: Sequence[Fraction]) -> tuple[int, ...]:
        """How often each choice is made on the way of the largest total of gains >= 0."""
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
        """All states, the numbers of the moves that are tried, and whether a later one needs it.

        ``kept`` holds what later states need of one, which is dropped after the last of these;
        ``among`` says which moves are tried, all if not given.
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
        """Largest number of choices on the way from each state to one without any."""
        found: list[int] = []
        for way in self.moves:
            found.append(max((1 + found[then] for _, then in way), default=0))
        return found

    @property
    def products(self) -> int:
        """About how many products of a value and a kernel are computed."""
        return sum(min(len(moves), MOST_COMPUTED) for moves in self.moves)


@dataclass(frozen=True, eq=False)
class Values:
    """V of one state at nodes i = first <= 0, first + 1, ..., of laws on one side of the true ones.

    ``bounds`` are proven for the true V on that side, at r < 1 only, nan elsewhere; ``depth`` is
    the largest number of choices to come, ``choices`` the best one at each node, if that was asked
    for.
    """

    first: int
    values: FloatArray
    bounds: FloatArray
    depth: int
    choices: npt.NDArray[np.int8] | None

    def down_to(self, lowest: int) -> Values:
        """Those at the nodes from ``lowest`` < 0 to 0."""
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
    """The values of all states from kernels of one side and one grid, one for each choice.

    The window's nodes are first < 0 < last.  The tilt θ >= 1, a multiple of 1/8, decides where
    values keep their digits; no bound rests on it.  ``outline`` has the same upper bounds on every
    `COARSER`-th node: what it shows to be nowhere the best choice is not computed.
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
        # W lies between (r - 1)+ and r: so neither values nor errors grow beyond
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
        """What one choice needs at every state.

        E_B (rR - 1)+ - (r - 1)+; the transform of the tilted weights; what V at both ends adds for
        R that leads out of the window; the sum of the tilted weights, and their 2-norm.
        """
        x, tilt = self._x, self._tilt
        at = -np.arange(self._first, self._last + 1) - kernel.first  # node of k = 1/r
        inside = (at >= 0) & (at < kernel.values.size)
        values = np.where(at < 0, 0.0, kernel.far if self._is_upper else 0.0)
        values[inside] = kernel.values[at[inside]]
        with np.errstate(over="ignore"):
            gain = values * fn.exp((1.0 - tilt) * x)
        if self._is_upper:  # V is linear in k from 0 to the first node
            below = at < 0
            slope = kernel.values[0] * fn.exp(-kernel.first * self._spacing)
            gain[below] = slope * self._damping[below]
        # what the weights have is within the slack of r C'(1/r), and the bound is to have it
        call = gain + np.maximum(fn.exp(x) - 1.0, 0.0) * self._damping
        error = (kernel.slack + (ELEMENTARY + 8.0) * UNIT) * ABOVE_OUTSIDE
        gain += error * call if self._is_upper else -error * call
        tilted = weights * fn.exp(tilt * self._spacing * np.arange(start, start + weights.size))
        place = np.zeros(self._size)
        place[np.arange(start, start + weights.size) % self._size] = tilted
        outside = self._lumps(kernel)
        mass = float(tilted.sum()) * (1.0 + UNIT * tilted.size)
        return gain, np.conj(np.fft.rfft(place)), outside, mass, norm(tilted)

    def _lumps(self, kernel: Kernel) -> tuple[FloatArray, FloatArray]:
        """What V = 1 at the lowest and the highest node adds beyond them, tilted."""
        if not self._is_upper:
            return np.zeros(0), np.zeros(0)
        count = self._x.size
        j = np.arange(kernel.first, kernel.last + 1)
        above = np.cumsum(kernel.weights[::-1])[::-1]  # masses from j on
        below = np.cumsum(kernel.weights * fn.exp(j * self._spacing))  # means up to j
        node = np.arange(count)
        up = count - node - kernel.first  # of the first j that leads above the window
        high = np.where(up < j.size, above[np.clip(up, 0, j.size - 1)], 0.0)
        down = -node - 1 - kernel.first  # of the last j that leads below it
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
        """Values of the states that are wanted, from the node ``lowest`` < 0 on.

        ``among`` leads from a state to the numbers of the moves that are tried there, of a lower
        bound; ``tell`` is called with the numbers of the moves that were computed, state by state.
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
        """Value of one choice, and a bound on its error in the tilted coordinate."""
        error = then.error
        if not then.transform.size:  # nothing can be chosen afterwards
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
        """The value of a state with its bounds: rounding, and what the laws are off by."""
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
    """V of a state as later ones need it: tilted, its transform, error and 2-norm.

    ``winners`` are the choices that were the best ones somewhere; ``rough`` is the same on the
    nodes of the outline.
    """

    value: FloatArray
    transform: npt.NDArray[np.complex128]
    error: float
    norm: float
    winners: frozenset[int]
    rough: _KeptState | None


class _CellChords:
    """Chords over `COARSER` nodes of functions that are convex in r, in the tilted coordinate."""

    def __init__(self, spacing: float, tilt: float) -> None:
        u = np.arange(COARSER) * spacing
        share = fn.expm1(u) / fn.expm1(COARSER * spacing)
        self._left = (1.0 - share) * fn.exp(-tilt * u)
        self._right = share * fn.exp(tilt * (COARSER * spacing - u))
        self.most = float((self._left + self._right).max()) * (1.0 + 64.0 * UNIT)

    def shares(self, value: FloatArray) -> FloatArray:
        """For each cell some κ <= 1: κ times the chord of the value lies below the value."""
        cells = value[:-1].reshape(-1, COARSER)
        ends = value[::COARSER]
        chords = ends[:-1, None] * self._left
        chords += ends[1:, None] * self._right
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(chords > 0.0, cells / chords, 1.0).min(axis=1)
        return np.asarray(np.minimum(ratio, 1.0) * (1.0 - 64.0 * UNIT))


class _Race:
    """The choices of one state: those computed that may be the best ones somewhere.

    ``kept`` are the states that they lead to, ``rounding`` that of a product, relative; ``best``
    takes the best choice at each node.
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
        """Compute all that may be the best."""
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
        """Whether a choice is nowhere better than the value and its error, which may grow for it.

        Between nodes of the outline the choice lies below its chords, and κ times the chords of
        the value below the value.
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
        """Choices that are the best ones somewhere."""
        top = self.value[::COARSER]
        clear = top > CLEAR * error
        return frozenset(
            self._choices[number][0]
            for number, new in zip(self.computed, self._coarse, strict=False)
            if ((new >= top) & clear).any()
        )


def norm(values: FloatArray) -> float:
    """The 2-norm, from above."""
    return math.sqrt(float((values * values).sum())) * (1.0 + 64.0 * UNIT)


def _within(kernel: Kernel, count: int) -> tuple[int, FloatArray]:
    """First index and weights of the nodes that lead from the window into it."""
    start, stop = max(kernel.first, 1 - count), min(kernel.last, count - 1)
    return start, kernel.weights[start - kernel.first : stop + 1 - kernel.first]


def length(least: int) -> int:
    """The smallest length 2^k or 3 2^k that is not below."""
    power = 1 << max(least - 1, 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power
