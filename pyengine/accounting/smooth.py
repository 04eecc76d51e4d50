"""The worst strategy on coarse grids: W between sums of bells whose coefficients are kept.

Names are those of `theory/adaptive`.  Laws of steps have nodes on a fine grid, of spacing h / M; g
is a little noise on it, normal of deviation 2h, cut off.  A bell B is the mean over g of the
function that is 1 at a node, 0 at all others and linear in r between them; B_k(x) = B(x - kh).
Kept are the f_k of S = Σ f_k B_k.  What follows is the proof; errors are those of S e^{-θx}.

(a) Let ρ be the largest Σ e^{-θx} |E_Q B(x + log R) - Σ c_m B_m(x)| over all x of x_0 + hZ.  Then
E_Q S is Σ (c * f)_k B_k up to ρ max |f_k| e^{-θkh}: all is linear in f.  It is linear in r between
fine nodes, too, so the largest sum at fine x_0 times e^{θh/M} is no smaller than ρ.  A law is the
sum of near and of far losses, each with a c and a ρ of its own: rounding, which the 2-norm bounds,
counts once for each node in the sum, and near losses, which have most of the mass, have few.

(b) Σ max_a f^a_k B_k >= max_a Σ f^a_k B_k, as B_k >= 0.

(c) Let f_k = f_k^{a(k)} for any choices a(k), and b_k the largest B_k / (B_0 + B_1) at x <= h / 2,
k > 0.  Where a(i) != a(i + 1) subtract Σ_{j>i} (f_j - f_j^{a(i)})+ b_{j-i} from f_i and f_{i+1}, or
the same from the other side if it is more: the sum is then at most max_a Σ f^a_k B_k.  Let the node
nearest to x be in a run l, ..., i of nodes of one choice a.  In Σ (f_j - f_j^a) B_j only j > i and
j < l count, and x <= (i + 1/2) h, so that what is taken from f_i and f_{i+1} is enough for all
j > i; for j < l alike.  Ratios of functions that are linear in r are largest at fine nodes.

(d) W_s <= (1 + λ)^n (S_s + e_s r^θ + m_s r) after n steps.  W is convex, so that laws bound its
means; λ is their slack, m_s the sum of the masses at infinity that they leave out, and
e_s = max_a (e_{s-a} E_Q R^θ + ρ max |f| e^{-θkh}), plus rounding and what the coefficients outside
of a window are, where f is taken to be that of (r - 1)+.  One step before the end
E_Q (rR - 1)+ itself is fitted by bells, with a measured error.  Lower values are alike, with (c).

(e) Many steps to come make W smooth, and the grid coarser.  A hat of a coarser grid is a sum of
hats of a finer one; if its g is the finer g and some q on the finer nodes, its bell is Σ b_j B_j.
So Σ f_k B_k is a sum of coarser bells up to the largest difference of f and what coarser
coefficients make of b, times the largest Σ B_k.  That is done after a step, which makes the corners
smooth that maxima have left.

c is a choice: transforms are weighed over the frequencies that the nodes cannot tell apart, which
makes ρ about e^{-2π²} times the step's transform at π / h.  Of order h² are (b) and (c) alone; as
fine coefficients swing about their sums the a(k) of (c) are those of the largest sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.accounting.kernels import GradedLaw
from pyengine.accounting.recursion import CLEAR, FFT_ROUNDING, StatePlan, length, norm
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = [
    "READ",
    "Bells",
    "FirstStep",
    "SmoothRecursion",
    "SmoothValues",
    "StepOnBells",
    "first_step",
]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
WIDTH = 2.0  # standard deviation of g, in nodes
REACH = 6.5  # of g, in standard deviations
MARGIN = 400  # nodes on which coefficients of a step fade out beyond those of its law
DAMPED = 1e-12  # of the largest square of a bell's transform: keeps first coefficients small
ALIASES = 2  # on each side: transforms of bells vanish beyond, in doubles
NEAR = 600  # nodes about 0 that have most of the mass of a law
READ = 8  # places of a cell at which values are read off


@dataclass(frozen=True)
class Bells:
    """A bell about each node x = kh, on a grid of so many parts of h.

    h and ``parts`` >= `READ` are powers of two; functions are kept times e^{-θx}, θ >= 1.  With
    bells that are ``finer``, on the same fine grid, g is their noise and that of some q on their
    nodes, so that B is a sum of theirs.
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
        """Masses of g at -n, ..., n fine spacings; the mean of e^y is 1, up to rounding."""
        if self.finer is None:
            return _normal_masses(WIDTH * self.spacing, self.fine)
        more, inner, step = self.more_noise, self.finer.noise, self.finer.parts
        found = np.zeros((more.size - 1) * step + inner.size)
        for i, mass in enumerate(more):
            found[i * step : i * step + inner.size] += mass * inner
        return found

    @cached_property
    def more_noise(self) -> FloatArray:
        """Masses of q at the nodes of the finer bells."""
        finer = self._finer.spacing
        return _normal_masses(WIDTH * math.sqrt(self.spacing**2 - finer**2), finer)

    @property
    def _finer(self) -> Bells:
        if self.finer is None:
            raise AssertionError("bells that are none of finer ones")
        return self.finer

    @cached_property
    def of_finer(self) -> FloatArray:
        """Coefficients of B = Σ b_j B_j in the finer bells, times e^{-θjh}, -n <= j <= n."""
        finer, more = self._finer.spacing, self.more_noise[::-1]
        hat = _hat(self.spacing, finer)
        found = np.convolve(hat, more)
        j = np.arange(-(found.size // 2), found.size // 2 + 1)
        return np.asarray(found * fn.exp(-self.tilt * finer * j))

    @property
    def half(self) -> int:
        """Fine nodes from the middle of a bell to its end."""
        return self.noise.size // 2 + self.parts

    @property
    def rounding(self) -> float:
        """Relative error of the bells."""
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
        """From some k on, B e^{-θx} at (k + part / parts) h, for all k where it is not 0."""
        first = -((self.half + part) // self.parts)
        start = first * self.parts + part + self.half
        return first, self.values[start :: self.parts]

    @cached_property
    def total(self) -> float:
        """Σ_k B(x - kh) e^{-θ(x - kh)}, from above."""
        sums = max(float(self.at(part)[1].sum()) for part in range(self.parts))
        return sums * fn.exp(self.tilt * self.fine) * (1.0 + 2.0 * self.rounding)

    @cached_property
    def beside(self) -> tuple[FloatArray, FloatArray]:
        """The most of what bells of nodes k = 1, 2, ... of either side are nearer to 0 than to 1.

        Over the sum of the bells of 0 and its neighbour there: of those at kh for x <= h / 2, of
        those at -kh for x >= -h / 2.
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
        """Mean of (r e^y - 1)+ over g, less (r - 1)+, at fine nodes."""
        return _noisy_stop(self.noise, self.fine, index)


def _normal_masses(deviation: float, spacing: float) -> FloatArray:
    """Masses of about a normal law, cut off, at -n, ..., n spacings; the mean of e^y is 1."""
    n = int(REACH * deviation / spacing)
    y = np.arange(-n, n + 1) * spacing
    shift = 0.5 * deviation**2
    for _ in range(8):
        mass = fn.exp(-0.5 * ((y + shift) / deviation) ** 2)
        mass /= mass.sum()
        shift += fn.log(float((mass * fn.exp(y)).sum()))
    return np.asarray(mass)


def _hat(h: float, spacing: float) -> FloatArray:
    """The function that is linear in r between 0, 1 and 0 at x = -h, 0, h, at a finer spacing."""
    x = np.arange(round(h / spacing) + 1) * spacing
    fall = fn.expm1(h - x) * fn.exp(x) / fn.expm1(h)
    rise = fn.expm1(h - x) / fn.expm1(h)  # at -x
    return np.concatenate([rise[:0:-1], fall])


def _noisy_stop(noise: FloatArray, spacing: float, index: npt.NDArray[np.int64]) -> FloatArray:
    """Mean of (r e^y - 1)+ over some noise, less (r - 1)+, at nodes of its spacing."""
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
        r, first = fn.exp(at * spacing), n - at  # place of y = -x
        put = below[first] - r * low[first]
        call = r * high[first] - above[first]
        found[near] = np.maximum(np.where(at > 0, put, call), 0.0)
    return found


class StepOnBells:
    """One choice: what its law makes of a bell, as a sum of bells, with errors."""

    def __init__(self, law: GradedLaw, bells: Bells) -> None:
        parts, tilt = bells.parts, bells.tilt
        self.far, self.slack = law.far, law.slack
        tilted = law.weights * fn.exp(tilt * bells.fine * law.index)
        self.mass = float(tilted.sum()) * (1.0 + (tilted.size + 8.0) * UNIT)
        # a part with most of the mass on few nodes, as its rounding counts at each of them
        size = np.abs(law.index)
        dense, near = size <= law.dense, size <= min(NEAR * parts, law.dense)
        pieces = [
            _fitted(law.index[some], tilted[some], bells)
            for some in (near, dense & ~near)
            if some.any()
        ]
        if not dense.all():  # farther out nodes are those of bells, and move these
            node = -law.index[~dense][::-1] // parts
            moved = np.zeros(int(node[-1] - node[0]) + 1)
            moved[node - node[0]] = tilted[~dense][::-1]
            pieces.append((int(node[0]), moved, 0.0))
        self.first = min(first for first, _, _ in pieces)
        self.c = np.zeros(max(first + c.size for first, c, _ in pieces) - self.first)
        for first, c, _ in pieces:
            self.c[first - self.first : first - self.first + c.size] += c
        self.weight = float(np.abs(self.c).sum()) * (1.0 + self.c.size * UNIT)
        residual = sum(residual for _, _, residual in pieces)
        residual += bells.rounding * (self.mass + self.weight) * bells.total
        self.residual = residual * fn.exp(tilt * bells.fine) * (1.0 + 1e-6)


class _Lumps(NamedTuple):
    """Masses at 0 and at a node of bells that have the sum and the mean of all farther out."""

    node: int
    moved: float  # at the node
    rest: float  # at 0
    error: float  # of kinks farther out, which bells make noisy


class FirstStep:
    """What the law of a choice makes of (r - 1)+, as a sum of bells, with its error.

    Near nodes are fitted with lumps for those farther out, whose kinks are at nodes of bells.
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
        v = np.fft.irfft(_folded(of_wanted * np.conj(bell.transform), cells) / damped, cells)
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
        """E (rR - 1)+ of near nodes and noisy lumps less the mean over the noise, tilted.

        With its error and that of what is farther out.
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
        # at r beyond the law only masses that are left out, and those of R = 0, are missing
        lost = abs(float(law.weights.sum()) - 1.0) + abs(float(masses.sum()) - 1.0)
        most = float(np.abs(plain).max()) + sum(abs(x) for lump in lumps for x in lump[1:3])
        lost += 4.0 * masses.size * UNIT + (8.0 * ELEMENTARY + 64.0) * UNIT * most
        return found, lost + 2.0 * bells.rounding + sum(lump.error for lump in lumps)


def _gain(law: GradedLaw, bells: Bells, x: FloatArray) -> FloatArray:
    """V of a law less what is told, at places of log k within it."""
    k, at = fn.exp(law.index * bells.fine), fn.exp(x)
    cell = np.clip(np.searchsorted(k, at, side="right") - 1, 0, k.size - 2)
    call = law.values - law.far + np.maximum(1.0 - k, 0.0)  # linear between nodes of the law
    share = (at - k[cell]) / (k[cell + 1] - k[cell])
    value = call[cell] + share * (call[cell + 1] - call[cell])
    return np.asarray(value - np.maximum(1.0 - at, 0.0))


def _lumps(law: GradedLaw, bells: Bells, node: int) -> _Lumps:
    """Lumps for all nodes of a law beyond one of the bells."""
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
    most = wide.reshape(-1, parts).max(axis=1)  # in each cell of a kink
    places = index // parts
    tilted = np.zeros(int(places[-1] - places[0]) + 1)
    tilted[places - places[0]] = mass * fn.exp(bells.tilt * bells.fine * index)
    error = float(np.convolve(tilted, most).max()) * (1.0 + 1e-9)
    return _Lumps(node, moved, float(mass.sum()) - moved, error)


@kept(128)
def _step(law: GradedLaw, bells: Bells) -> StepOnBells:
    """That of a law, which is one object as long as it is kept."""
    return StepOnBells(law, bells)


@kept(64)
def first_step(law: GradedLaw, bells: Bells) -> FirstStep:
    """The same of one step before the end."""
    return FirstStep(law, bells)


@dataclass(frozen=True, eq=False)
class SmoothValues:
    """e^ε W of one state at x = -ε, ε = 0, h / 8, 2 h / 8, ..., and a proven bound on its side."""

    values: FloatArray
    bounds: FloatArray


@dataclass(frozen=True, eq=False)
class _KeptBells:
    """Coefficients of a state, less those of (r - 1)+, and bounds of errors in W e^{-θx}."""

    value: FloatArray
    transform: ComplexArray
    error: float
    norm: float
    most: float
    far: float
    by: SmoothRecursion


# Map: the worst strategy on coarse grids | test_adaptive_smooth | theory/adaptive
class SmoothRecursion:
    """Values of states on one side of the true ones, from coefficients of bells.

    ``laws`` are of that side, one for each choice.  The window's nodes are first < 0 < last;
    beyond, coefficients are those of (r - 1)+.  States with few choices to come, up to its
    ``depth``, are those of a recursion with ``finer`` bells.
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
        self._steps = [_step(law, bells) for law in laws]
        reach = max(max(-step.first, step.first + step.c.size - 1) for step in self._steps)
        self._size = length(self._count + reach + 1)
        self._level = FFT_ROUNDING * fn.log2(self._size) * 3.0 + 16.0 * UNIT
        self._spectra, self._gains, self._left_out = zip(
            *(self._part(step, reach) for step in self._steps), strict=True
        )
        self._begins = [] if finer is not None else [self._begin(law) for law in laws]
        self._norms = [norm(step.c) for step in self._steps]
        self._slack = max(step.slack for step in self._steps)
        x = np.arange(first, last + 1) * bells.spacing
        self._stop = _stopped(x, bells.tilt)  # coefficients of (r - 1)+, and their most beyond
        self._beyond = fn.exp((1.0 - bells.tilt) * float(x[-1]))

    def _part(self, step: StepOnBells, reach: int) -> tuple[ComplexArray, FloatArray, float]:
        """Transform of c; what c makes of (r - 1)+ less that, and the most of it that is left out.

        The latter with the rounding of both.
        """
        h, tilt, count = self._bells.spacing, self._bells.tilt, self._count
        place = np.zeros(self._size)
        m = np.arange(step.first, step.first + step.c.size)
        place[m % self._size] = step.c
        x = np.arange(self._first - 2 * reach, self._first + count + 2 * reach) * h
        stop = _stopped(x, tilt)
        size = length(x.size + step.c.size)
        wide = np.zeros(size)
        wide[m % size] = step.c
        gain = np.fft.irfft(np.fft.rfft(wide) * np.fft.rfft(stop, size), size)[: x.size] - stop
        level = FFT_ROUNDING * fn.log2(size) * 3.0 + 16.0 * UNIT
        rounding = level * norm(step.c) * norm(stop) + (4.0 * ELEMENTARY + 8.0) * UNIT * step.weight
        gain = gain[reach:-reach]
        # farther right (r - 1)+ is linear, and so is what becomes of it
        farthest = float(x[-1 - reach])
        parts = [
            (step.c * fn.exp((tilt - off) * (h * m - farthest)), fn.exp((off - tilt) * farthest))
            for off in (0.0, 1.0)
        ]
        end = sum(
            abs(float(part.sum()) - own) + (m.size + 16.0) * UNIT * float(np.abs(part).sum())
            for part, own in parts
        )
        inside = slice(reach, reach + count)
        outside = np.concatenate([gain[:reach], gain[reach + count :]])
        left_out = max(float(np.abs(outside).max()), end) + rounding
        return np.fft.rfft(place), gain[inside].copy(), left_out

    def _begin(self, law: GradedLaw) -> tuple[FloatArray, float]:
        """Coefficients of one step before (r - 1)+, and their error with what is left out."""
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
        """Values of the states that are wanted, at ``count`` ε.

        ``among`` leads from a state to the numbers of the moves that are tried there, of a lower
        bound; ``tell`` is called with the numbers of the moves that are the best ones somewhere,
        state by state.
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
        """The recursion of states of so many choices to come."""
        if self._finer is None or depth > self._finer._depth:
            return self
        return self._finer._of_depth(depth)

    def _kept(self, value: FloatArray, error: float, far: float) -> _KeptBells:
        most = max(float(np.abs(value + self._stop).max()), self._beyond) * (1.0 + 1e-9)
        transform = np.fft.rfft(value, self._size)
        return _KeptBells(value, transform, error, norm(value), most, far, self)

    def _after(self, choice: int, then: _KeptBells | None) -> tuple[FloatArray, float, float]:
        """Coefficients of one choice, an error of W e^{-θx}, and the A-mass at infinity."""
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
        off += float(np.abs(whole[self._count :]).max())
        value = whole[: self._count] + self._gains[choice]
        return value, error + off * self._bells.total, step.far + then.far

    def _coarser(self, fine: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of about the sum of bells that finer ones have, and its error."""
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
        gain = _noisy_stop(self._bells.more_noise, bells.spacing, k[near])
        target[near] -= gain * fn.exp(-tilt * bells.spacing * k[near])
        place = np.zeros(size)
        place[np.arange(-reach, reach + 1) % size] = own
        of_own, of_target = np.fft.rfft(place), np.fft.rfft(target)
        shape = _folded(np.abs(of_own) ** 2, cells, step // 2).real
        wanted = _folded(of_target * np.conj(of_own), cells, step // 2)
        v = np.fft.irfft(wanted / (shape + DAMPED * float(shape.max())), cells)
        inside = slice(self._first - first, self._first - first + self._count)
        value = v[inside].copy()
        stuffed = np.zeros(size)
        stuffed[inside.start * step : inside.stop * step : step] = value
        made = np.fft.irfft(np.fft.rfft(stuffed) * of_own, size)
        level = FFT_ROUNDING * fn.log2(size) * 3.0 + 16.0 * UNIT
        off = float(np.abs(target - made).max()) + level * norm(own) * norm(value)
        off += 2.0 * self._bells.rounding * float(own.sum()) * float(np.abs(value).max())
        off += (8.0 * ELEMENTARY * UNIT + self._bells.rounding) * float(np.abs(target).max())
        return value, off * bells.total

    def _best(self, values: list[FloatArray], error: float) -> tuple[FloatArray, list[int]]:
        """Coefficients of the best choices, and which ones these are.

        Upper ones are the maxima.  Where neighbours belong to different choices lower ones are
        less, by so much that the sum of bells lies below that of one of the two everywhere.
        """
        if len(values) == 1:
            return values[0], [0]
        # coefficients may swing about their sums, by which lower values choose
        shown = values if self._is_upper else [self._sums(each) for each in values]
        value, most = values[0].copy(), shown[0].copy()
        owner = np.zeros(value.size, dtype=np.int64)
        for number in range(1, len(values)):
            better = shown[number] > most
            owner[better] = number
            np.copyto(most, shown[number], where=better)
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
        """What a sum of bells is at the nodes of its coefficients."""
        first, bell = self._bells.at(0)
        return np.convolve(value, bell)[-first : -first + value.size]

    def _read(
        self, value: FloatArray, error: float, far: float, depth: int, count: int, spacing: float
    ) -> SmoothValues:
        """e^ε W at ε = 0, and so many places of a spacing; beyond the window its error is known."""
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


TINY = 1e-19  # coefficients below it are 0


def _stopped(x: npt.NDArray[np.floating[Any]], tilt: float) -> FloatArray:
    """(r - 1)+ e^{-θx}."""
    right = np.maximum(x, 0.0)
    return np.asarray(fn.exp((1.0 - tilt) * right) * -fn.expm1(-right))


def _folded(spectrum: npt.NDArray[Any], cells: int, aliases: int = ALIASES) -> npt.NDArray[Any]:
    """Sums over the frequencies that the coarse nodes cannot tell apart, from half of all."""
    base = np.arange(cells // 2 + 1)
    total = spectrum[base].astype(np.complex128)
    for alias in range(1, aliases + 1):
        total += np.conj(spectrum[alias * cells - base])
        above = base + alias * cells
        total += np.where(
            above < spectrum.size, spectrum[np.minimum(above, spectrum.size - 1)], 0.0
        )
    return total


class _BellSpectrum:
    """A bell on the fine grid of so many cells, which is a circle: its transform."""

    def __init__(self, bells: Bells, cells: int) -> None:
        self._bells, self._cells = bells, cells
        bell = np.zeros(cells * bells.parts)
        bell[np.arange(-bells.half, bells.half + 1) % bell.size] = bells.values
        self.transform = np.fft.rfft(bell)
        self.square = np.abs(self.transform) ** 2
        self.shape = _folded(self.square, cells).real

    def residual(
        self, target: ComplexArray, law: FloatArray, c: FloatArray, m: npt.NDArray[np.int64]
    ) -> tuple[FloatArray, float]:
        """A function, of a transform, less Σ c_m B_m, and the 2-norm of its rounding.

        The function is the values of ``law`` or what they make of the bell.  By Lemma 7 of
        theory/adaptive; the transform of c, whose error is that of the coarse grid,
        repeats, and all of its repetitions meet one bell.
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
    """First coarse node, and number of cells, about those from which bells come together."""
    around = bells.half // bells.parts + 2 + MARGIN
    return low - around, 1 << (high - low + 2 * around - 1).bit_length()


def _fitted(
    index: npt.NDArray[np.int64], tilted: FloatArray, bells: Bells
) -> tuple[int, FloatArray, float]:
    """First node and coefficients of what a law makes of a bell, and the residual."""
    low, high = -int(index[-1]) // bells.parts, -int(index[0]) // bells.parts
    first, cells = _circle(low, high, bells)
    size, bell = cells * bells.parts, _spectrum(bells, cells)
    place = np.zeros(size)
    place[-index % size] = tilted
    of_law = np.fft.rfft(place)
    m = np.arange(first, first + cells)
    c = np.fft.irfft(_folded(of_law * bell.square, cells) / bell.shape, cells)[m % cells]
    c = np.where(np.abs(c) < TINY, 0.0, c)
    left, error = bell.residual(of_law * bell.transform, tilted, c, m)
    residual = float(np.abs(left.reshape(cells, bells.parts)).sum(axis=0).max())
    used = np.flatnonzero(c) if c.any() else [0]  # few losses leave a part without any mass
    low, high = int(used[0]), int(used[-1]) + 1
    return first + low, c[low:high], residual + math.sqrt(cells) * error
