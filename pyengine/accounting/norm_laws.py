"""Upper and lower laws of one sampled Gaussian step, for all gradient norms of a record.

Norms are not rounded: for a norm between two nodes of the grid, the step is bounded above by
a mixture of the laws of both nodes with a little less noise, and below by one with a little more
(theory/individual, Lemmas 1 and 2).  A run needs the logarithms of the transforms of these laws;
on each block of nodes they are polynomials in the norm, up to an error computed at every node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.accounting.kernels import values_below
from pyengine.accounting.recursion import FFT_ROUNDING
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, ERFC, UNIT
from pyengine.special import ndtr

__all__ = [
    "BITS",
    "BLOCKS",
    "DEGREE",
    "GRID",
    "OCTAVES",
    "ROWS",
    "Shape",
    "Transforms",
    "basis",
    "step_transforms",
]

FloatArray = npt.NDArray[np.float64]

BITS = 8  # bits of the mantissa that select a node: 2^8 nodes of norms in an octave
OCTAVES = 12  # the smallest node is 2^-12 of the clipping norm
PARTS = 4  # blocks in an octave
ROWS = (1 << BITS) // PARTS  # nodes in a block
BLOCKS = OCTAVES * PARTS
DEGREE = 9  # coefficients of a polynomial on a block
GRID: FloatArray = np.append(
    (2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(1 << BITS) / (1 << BITS))).ravel(),
    1.0,
)
WIDTH = 2.0**-BITS  # largest relative distance of neighbouring norms
FLOOR = 1e-290  # added to upper bounds of V, which avoids subnormal numbers
FINE = 96  # neighbouring nodes x = log k of a law differ by at most |x| / 96, or by one spacing
TILTED = 600.0  # largest exponent of a tilt


@dataclass(frozen=True)
class Shape:
    """Grid, tilt and number of frequencies of the laws of a run.

    The spacing h and the size n are powers of two, the tilt θ is positive.  Losses are taken modulo
    n h, and the inversion sums over the ``frequencies`` 2πf/n, f = 0, 1, ....  The laws of steps
    cover losses up to ``reach`` standard deviations of the noise.
    """

    spacing: float
    tilt: float
    size: int
    frequencies: int
    reach: float

    @property
    def period(self) -> float:
        """The length n h."""
        return self.size * self.spacing

    @property
    def farther(self) -> FloatArray:
        """Larger tilts, for Chernoff bounds of the mass beyond the period."""
        return self.tilt * np.array([1.25, 1.6, 2.2, 3.0])


@dataclass(frozen=True, eq=False)
class Transforms:
    """Logarithms of the transforms of laws, as Chebyshev series in the norm on each block.

    - ``mass``: coefficients of log Σ a_j e^{θjh}, a the law's A-masses; (blocks, `DEGREE`)
    - ``ratios``: those of log(transform / this sum) at f = 1, 2, ...; (blocks, `DEGREE`, f)
    - ``beyond``: those of a bound of log |ratio| at all higher frequencies
    - ``farther``: those of bounds of the log sums at the tilts `Shape.farther`
    - ``far``: largest A-mass where the likelihood ratio is infinite
    - ``each``: error of the log for one step, at f = 0, 1, ...; (blocks, f)
    - ``square``: further error for one step, divided by the square of its norm; (f,)
    - ``slack``: λ: the law's call function bounds that of the step up to a factor 1 ± λ
    """

    mass: FloatArray
    ratios: npt.NDArray[np.complex128]
    beyond: FloatArray
    farther: FloatArray
    far: float
    each: FloatArray
    square: FloatArray
    slack: float


def basis() -> FloatArray:
    """Chebyshev polynomials at all nodes of a block and its end; shape (`ROWS` + 1, `DEGREE`)."""
    x = 2.0 * np.arange(ROWS + 1) / ROWS - 1.0
    return np.asarray(np.polynomial.chebyshev.chebvander(x, DEGREE - 1))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Proven bounds of V at k = e^x for steps of several μ, one row for each μ."""

    mu: FloatArray
    rate: float
    order: str

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds; shape (μ, x)."""
        sign = 1.0 if self.order == "remove" else -1.0
        log, error = _normal_log(sign * x, self.rate)
        weight = self.rate * fn.exp(np.minimum(np.where(np.isfinite(log), log, -750.0), 0.0))
        if sign < 0.0:  # V_add(k) = k V_remove(1/k)
            weight = weight * fn.exp(x)
        size = np.where(np.isfinite(log), np.abs(log), math.inf)
        mu = self.mu[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            z = size / mu
            near = np.asarray(ndtr(0.5 * mu - z))
            alive = z - 0.5 * mu < 37.5
            other = fn.exp(np.where(alive, size, 0.0)) * np.asarray(ndtr(-z - 0.5 * mu))
            doubt = 64.0 + 2.0 * ERFC + 8.0 * (z + 0.5 * mu + 1.0) * (z + mu + 1.0)
            doubt = UNIT * near * (doubt + np.where(alive, size, 0.0) * error)
        found = np.where(alive, near - other, 0.0)
        doubt = np.where(alive, doubt, 1e-300)
        doubt = np.where(np.isfinite(size), doubt, 0.0)
        up = weight * (1.0 + (2.0 * ELEMENTARY + 8.0) * UNIT)
        down = weight * (1.0 - (2.0 * ELEMENTARY + 8.0) * UNIT)
        return np.maximum(found - doubt, 0.0) * down, np.maximum(found + doubt, 0.0) * up

    def log(self, x: FloatArray) -> FloatArray:
        """|log k'| of the two normal laws at k = e^x."""
        sign = 1.0 if self.order == "remove" else -1.0
        return np.abs(_normal_log(sign * x, self.rate)[0])


def _normal_log(x: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """Log of k' with k - 1 = p (k' - 1), k = e^x, -∞ if k' <= 0, and its error in units UNIT."""
    y = fn.expm1(x) / rate
    inside = y > -1.0 + 8.0 * ELEMENTARY * UNIT
    y = np.where(inside, y, 0.0)
    log = np.where(inside, fn.log1p(y), -math.inf)
    condition = np.where(y < 0.0, 1.0 / (1.0 + y), 1.0)
    return log, (ELEMENTARY + 2.0) * condition + ELEMENTARY


def _shifts(mu: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
    """Relative changes η of μ for upper and lower laws: Lemmas 1 and 2, rounded up."""
    r = 1.03 * WIDTH
    top = r * r * mu * mu / 32.0 * fn.exp(1.1 * mu * mu * r)
    half = 0.5 * mu
    ratio = fn.exp((half + reach) * 1.05 * r * (half + reach))
    low = r * r * reach * reach / 8.0 * ratio
    return 1.1 * top + 32.0 * UNIT, 1.1 * low + 32.0 * UNIT


def _index(mu: float, rate: float, shape: Shape, order: str) -> npt.NDArray[np.int64]:
    """Nodes, in spacings, that cover the losses of all steps up to ``mu`` within the reach."""
    far = shape.reach * mu
    high = fn.log1p(rate * fn.expm1(far)) if far < 30.0 else far + fn.log(rate)
    low = fn.log1p(rate * fn.expm1(-far))
    limit = TILTED / (1.0 + float(shape.farther[-1]))
    high, low = min(high, limit), max(low, -limit)
    if order == "add":
        high, low = -low, -high
    below, above = (_spread(max(end, 0.0) / shape.spacing) for end in (-low, high))
    return np.concatenate([-below[:0:-1], above])


def _spread(reach: float) -> npt.NDArray[np.int64]:
    """Integers 0, 1, 2, ... beyond ``reach``, with gaps that double from octave to octave."""
    parts = [np.arange(2 * FINE)]
    while parts[-1][-1] < reach:
        step = 1 << len(parts)
        parts.append(np.arange(FINE * step, 2 * FINE * step, step))
    found = np.concatenate(parts)
    return found[: int(np.searchsorted(found, reach)) + 2]


# Map: laws of one step of all norms | test_individual | theory/individual
@kept(256)
def step_transforms(
    noise: float, rate: float, shape: Shape, first: int, last: int, order: str, is_upper: bool
) -> Transforms:
    """Transforms of upper or lower laws of a step, for norms in the blocks ``first`` to ``last``.

    Noise and norms are in units of the clipping norm; block 0 begins at 2^-`OCTAVES`.
    """
    parts: list[npt.NDArray[np.complex128]] = []
    each: list[FloatArray] = []
    square = np.zeros(shape.frequencies)
    far, slack = 0.0, 0.0
    count = shape.frequencies
    edge: npt.NDArray[np.complex128] | None = None  # last node of the previous block
    for block in range(first, last + 1):
        nodes = GRID[block * ROWS : (block + 1) * ROWS + 1]
        mu = nodes / noise
        up, down = _shifts(mu, shape.reach)
        rows = _Rows(mu * (1.0 + up) if is_upper else mu * (1.0 - down), rate, order)
        index = _index(float(rows.mu[-1]), rate, shape, order)
        weights, ends, off = _weights(rows, index, shape, is_upper)
        columns, doubt = _columns(weights, index, shape)
        far, slack = max(far, ends), max(slack, off)
        fitted, miss = _fitted(columns, edge, count)
        if not is_upper and miss[0] > 0.1 * columns[:, 0].real.max():
            # too small for the grid: use R = 1, a lower bound of every step
            columns = np.zeros_like(columns)
            fitted, miss, doubt = fitted * 0.0, miss * 0.0, doubt * 0.0
        if edge is not None:  # make the bounds valid between the blocks, too
            excess = columns[0, count:].real - edge[count:].real
            parts[-1][0, count:] += np.maximum(excess, 0.0)
            columns[0, count:] = np.maximum(columns[0, count:].real, edge[count:].real)
            fitted[0, count:] += np.maximum(-excess, 0.0)
        rising = columns if edge is None else np.vstack([edge, columns])
        smallest = nodes[:-1] if edge is None else np.append(GRID[block * ROWS - 1], nodes[:-1])
        square = np.maximum(square, _bend(rising[:, :count], smallest))
        each.append(doubt + miss[:count])
        fitted[0, count:] += miss[count:]  # so that polynomials of bounds are bounds
        parts.append(fitted)
        edge = columns[-2]
    found = np.array(parts)
    return Transforms(
        np.ascontiguousarray(found[:, :, 0].real),
        np.ascontiguousarray(found[:, :, 1:count]),
        np.ascontiguousarray(found[:, :, count].real),
        np.ascontiguousarray(found[:, :, count + 1 :].real),
        far,
        np.array(each),
        square,
        slack,
    )


def _weights(
    rows: _Rows, index: npt.NDArray[np.int64], shape: Shape, is_upper: bool
) -> tuple[FloatArray, float, float]:
    """B-masses at the nodes, shape (μ, nodes), the largest A-mass beyond them, and the slack λ."""
    x: FloatArray = index * np.float64(shape.spacing)
    k = fn.exp(x)
    middle = int(np.searchsorted(index, 0))
    gaps = k[:-1] * fn.expm1(np.diff(x))
    if is_upper:
        values = rows.at(x)[1] + FLOOR
        left = values[:, :1] / k[0]
    else:
        values = values_below(rows, x)
        values = _cut(rows, values, x, k, middle, shape.reach)
        left = np.zeros((values.shape[0], 1))
    zero = np.zeros((values.shape[0], 1))
    slopes = np.hstack([left, np.diff(values, axis=1) / gaps, zero])
    weights = np.diff(slopes, axis=1)
    weights[:, middle] += 1.0
    np.maximum(weights, 0.0, out=weights)
    far = values[:, -1] if is_upper else np.zeros(values.shape[0])
    above = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    summed = np.cumsum((gaps * above[:, 1:])[:, ::-1], axis=1)[:, ::-1]
    summed = np.hstack([summed, zero]) + far[:, None]
    call = values + np.where(index < 0, -fn.expm1(np.minimum(x, 0.0)), 0.0)
    total = summed[:, 0] + k[0] * above[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(call > 0.0, summed / call, np.where(summed > 0.0, math.inf, 1.0))
    if is_upper:
        off = max(1.0 - float(ratio.min()), 1.0 - float(total.min()))
    else:
        off = max(float(ratio.max()) - 1.0, float(total.max()) - 1.0)
    slack = max(off, 0.0) + UNIT * (2.0 * x.size + 3.0 * ELEMENTARY + 16.0)
    return weights, float(far.max()), slack * (1.0 + 1e-6)


def _cut(
    rows: _Rows, values: FloatArray, x: FloatArray, k: FloatArray, middle: int, reach: float
) -> FloatArray:
    """Lower values set to 0 beyond the reach of each row, keeping them convex.

    From each end of the reach the tangent to the function is drawn; up to the point where it
    touches, the function is replaced by it.
    """
    inside = rows.log(x) <= reach * rows.mu[:, None] * (1.0 - 3.0 * WIDTH)
    inside[:, [0, -1]] = False
    count = x.size
    low = np.argmax(inside, axis=1)
    high = count - 1 - np.argmax(inside[:, ::-1], axis=1)
    known = inside.any(axis=1) & (low < middle) & (high > middle)
    place = np.arange(count)
    found = values.copy()
    for end, side in ((low, place <= middle), (high, place >= middle)):
        part = place[side]
        beyond = part <= end[:, None] if end is low else part >= end[:, None]
        gap = np.abs(k[part] - k[end][:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(beyond, math.inf, values[:, part] / gap)
        touch = part[np.argmin(slope, axis=1)]
        least = slope.min(axis=1)[:, None]
        least = np.where(np.isfinite(least), least, 0.0)
        before = part < touch[:, None] if end is low else part > touch[:, None]
        line = np.where(beyond, 0.0, least * gap * (1.0 - 4.0 * UNIT))
        found[:, part] = np.where(before, line, found[:, part])
    return np.where(known[:, None], found, 0.0)


def _fitted(
    columns: npt.NDArray[np.complex128], edge: npt.NDArray[np.complex128] | None, count: int
) -> tuple[npt.NDArray[np.complex128], FloatArray]:
    """Chebyshev coefficients of all columns, and their largest errors at the nodes.

    Phases are first unwrapped so that they continue those of the node before the block: a step
    between both nodes takes a share of each, in which a jump of 2π would not cancel.
    """
    if edge is not None:
        apart = (edge[1:count] - columns[0, 1:count]).imag
        columns[:, 1:count] += 2j * math.pi * np.rint(apart / (2.0 * math.pi))
    pairs = np.ascontiguousarray(columns).view(np.float64)  # real matrix products suffice
    fitted = (_inverse() @ pairs).view(np.complex128)
    off = (basis() @ fitted.view(np.float64) - pairs).view(np.complex128)
    miss = np.sqrt(_squares(off).max(axis=0) + 1e-300) * 1.001
    return fitted, miss + 64.0 * UNIT * (np.abs(fitted.real) + np.abs(fitted.imag)).sum(axis=0)


@kept(1)
def _inverse() -> FloatArray:
    """Matrix from values at all nodes of a block to least-squares Chebyshev coefficients."""
    return np.asarray(np.linalg.pinv(basis()))


def _squares(values: npt.NDArray[np.complex128]) -> FloatArray:
    """Squares of moduli, accurate to a few units in the last place unless they underflow."""
    return np.asarray(values.real * values.real + values.imag * values.imag)


def _bend(columns: npt.NDArray[np.complex128], nodes: FloatArray) -> FloatArray:
    """Bound of |log of a mixture of two nodes - mixture of the logs|, over the squared norm."""
    logs = columns.copy()
    logs[:, 1:] += columns[:, :1]
    sizes = fn.exp(logs.real - logs.real.min(axis=0))
    values = sizes * fn.turn(logs.imag)
    apart = fn.modulus(np.diff(values, axis=0))
    least = 0.5 * (sizes[1:] + sizes[:-1] - apart)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(least > 0.0, 0.125 * (apart / least) ** 2, math.inf)
    found[np.isnan(found)] = math.inf
    return np.asarray((found / nodes[:, None] ** 2).max(axis=0) * 1.01)


def _columns(
    weights: FloatArray, index: npt.NDArray[np.int64], shape: Shape
) -> tuple[npt.NDArray[np.complex128], FloatArray]:
    """The columns to be fitted, as in `Transforms`, at all nodes of a block, and their rounding.

    Bounds at a node are made to hold at both neighbouring nodes, too.
    """
    x: FloatArray = index * np.float64(shape.spacing)
    count, n = shape.frequencies, shape.size
    tilted = weights * fn.exp((1.0 + shape.tilt) * x)
    mass = tilted.sum(axis=1)
    cyclic = np.zeros((weights.shape[0], n))
    at = index % n
    turns = index // n
    for number in range(int(turns[0]), int(turns[-1]) + 1):  # += needs distinct indices
        turn = turns == number
        cyclic[:, at[turn]] += tilted[:, turn]
    spectrum = np.fft.rfft(cyclic, axis=1)
    spectrum /= mass[:, None]
    ratio = spectrum[:, :count]
    rounding = (FFT_ROUNDING * fn.log2(n) + UNIT * (index.size / 64.0 + 8.0)) * 1.01
    size = fn.modulus(ratio)
    found = np.empty((mass.size, count + 1 + shape.farther.size), dtype=np.complex128)
    found[:, 0] = fn.log(mass)
    found[:, 1:count] = fn.log(size[:, 1:count]) + 1j * np.unwrap(
        fn.arctan2(ratio[:, 1:count].imag, ratio[:, 1:count].real), axis=0
    )
    rest = np.sqrt(_squares(spectrum[:, count:]).max(axis=1, initial=0.0))
    beyond = np.minimum(rest + rounding, 1.0)
    found[:, count] = _about(fn.log(np.maximum(beyond, 1e-300)))
    for i, tilt in enumerate(shape.farther):
        logs = fn.log((weights * fn.exp((1.0 + tilt) * x)).sum(axis=1))
        found[:, count + 1 + i] = _about(logs)
    smallest = size[:, :count].min(axis=0)
    smallest[0] = 1.0
    with np.errstate(divide="ignore"):
        doubt = np.where(smallest > 4.0 * rounding, 2.0 * rounding / smallest, math.inf)
    doubt += UNIT * (4.0 * ELEMENTARY + 16.0 + (1.0 + shape.tilt) * np.abs(x).max() * 2.0)
    return found, doubt


def _about(values: FloatArray) -> FloatArray:
    """The largest of each value and its two neighbours."""
    wide = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.maximum.reduce([wide[:-2], wide[1:-1], wide[2:]]))
