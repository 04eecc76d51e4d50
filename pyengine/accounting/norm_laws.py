"""Laws of one sampled Gaussian step, above and below, for all norms that a record may have.

Norms are not rounded: between two nodes of the grid of norms a step lies below a mixture of the
laws of both nodes with a little less noise, and above one with a little more (theory/individual,
Lemmas 1 and 2).  What a run needs of these laws are logarithms of their transforms, polynomials in
the norm on each block of nodes up to an error that is measured at every node.
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

BITS = 8  # of the mantissa: 2^8 nodes of the grid of norms in an octave
OCTAVES = 12  # the smallest node is 2^-12 of the clipping norm
PARTS = 4  # blocks in an octave
ROWS = (1 << BITS) // PARTS  # nodes in a block
BLOCKS = OCTAVES * PARTS
DEGREE = 9  # coefficients on a block
GRID: FloatArray = np.append(
    (2.0 ** np.arange(-OCTAVES, 0)[:, None] * (1.0 + np.arange(1 << BITS) / (1 << BITS))).ravel(),
    1.0,
)
WIDTH = 2.0**-BITS  # relative distance of nodes, at most
FLOOR = 1e-290  # added to V from above, so that no relative error is that of subnormal numbers
FINE = 96  # nodes of a law are 1 / 96 of their distance from 1 apart, at most
TILTED = 600.0  # largest exponent of a tilt


@dataclass(frozen=True)
class Shape:
    """Grid, tilt and number of frequencies of the laws of a run.

    The spacing h and the size n are powers of two, the tilt θ is positive.  Laws are summed modulo
    n h, and so many frequencies 2πf/n, f = 0, 1, ..., are summed.  Steps are described up to
    ``reach`` standard deviations of the noise.
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
        """Tilts of the bounds of what is beyond the period."""
        return self.tilt * np.array([1.25, 1.6, 2.2, 3.0])


@dataclass(frozen=True, eq=False)
class Transforms:
    """Logarithms of the transforms of all norms of some blocks of the grid, as polynomials on each.

    - ``mass``: coefficients of log Σ a_j e^{θjh}, a the law's A-masses; (blocks, `DEGREE`)
    - ``ratios``: of the log of the transform over that sum, at f = 1, 2, ...; (blocks, `DEGREE`, f)
    - ``beyond``: of a bound of the log of |ratio| at all higher frequencies
    - ``farther``: of bounds of the logs of the sums at the tilts `Shape.farther`
    - ``far``: largest A-mass where the likelihood ratio is infinite
    - ``each``: by how much a step's log may be off, at f = 0, 1, ...; (blocks, f)
    - ``square``: by how much more, over the square of the norm
    - ``slack``: λ: the law's call function is on its side of the step's up to a factor 1 ± λ
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
    """V of steps of several μ at k = e^x, between proven bounds: one row for each μ."""

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
    """Logarithm of k' with k - 1 = p (k' - 1), k = e^x, and its error in units."""
    y = fn.expm1(x) / rate
    inside = y > -1.0 + 8.0 * ELEMENTARY * UNIT
    y = np.where(inside, y, 0.0)
    log = np.where(inside, fn.log1p(y), -math.inf)
    condition = np.where(y < 0.0, 1.0 / (1.0 + y), 1.0)
    return log, (ELEMENTARY + 2.0) * condition + ELEMENTARY


def _shifts(mu: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
    """Relative η above and below by which μ of a node is moved: Lemmas 1 and 2, rounded upwards."""
    r = 1.03 * WIDTH
    top = r * r * mu * mu / 32.0 * fn.exp(1.1 * mu * mu * r)
    half = 0.5 * mu
    ratio = fn.exp((half + reach) * 1.05 * r * (half + reach))
    low = r * r * reach * reach / 8.0 * ratio
    return 1.1 * top + 32.0 * UNIT, 1.1 * low + 32.0 * UNIT


def _index(mu: float, rate: float, shape: Shape, order: str) -> npt.NDArray[np.int64]:
    """Nodes between which all steps up to a μ have what is described of them."""
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
    """0, 1, 2, ..., that are farther apart where they are larger, until one is beyond a number."""
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
    """Transforms of laws above or below a step, of norms in the blocks from first to last.

    Noise and norms are over the clipping norm; block 0 begins at 2^-`OCTAVES`.
    """
    parts: list[npt.NDArray[np.complex128]] = []
    each: list[FloatArray] = []
    square = np.zeros(shape.frequencies)
    far, slack = 0.0, 0.0
    count = shape.frequencies
    edge: npt.NDArray[np.complex128] | None = None  # what a step before the first node is mixed of
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
            # laws too small for the grid, as good as none: R = 1 lies below every step
            columns = np.zeros_like(columns)
            fitted, miss, doubt = fitted * 0.0, miss * 0.0, doubt * 0.0
        if edge is not None:  # bounds of both nodes about the end of a block hold for both
            excess = columns[0, count:].real - edge[count:].real
            parts[-1][0, count:] += np.maximum(excess, 0.0)
            columns[0, count:] = np.maximum(columns[0, count:].real, edge[count:].real)
            fitted[0, count:] += np.maximum(-excess, 0.0)
        rising = columns if edge is None else np.vstack([edge, columns])
        smallest = nodes[:-1] if edge is None else np.append(GRID[block * ROWS - 1], nodes[:-1])
        square = np.maximum(square, _bend(rising[:, :count], smallest))
        each.append(doubt + miss[:count])
        fitted[0, count:] += miss[count:]  # bounds stay bounds
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
    """B-masses at the nodes, the largest A-mass beyond them, and λ."""
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
    """Values below, that vanish where a row is not described: convex up to there.

    From both ends a chord touches the function; before it touches, the chord is taken.
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
    """Coefficients of all columns, and what they miss at the nodes.

    The angles in the columns are made to continue those of the node before: a step between both
    has a share of either, and a whole turn between them would not vanish.
    """
    if edge is not None:
        apart = (edge[1:count] - columns[0, 1:count]).imag
        columns[:, 1:count] += 2j * math.pi * np.rint(apart / (2.0 * math.pi))
    pairs = np.ascontiguousarray(columns).view(np.float64)  # products of real matrices
    fitted = (_inverse() @ pairs).view(np.complex128)
    off = (basis() @ fitted.view(np.float64) - pairs).view(np.complex128)
    miss = np.sqrt(_squares(off).max(axis=0) + 1e-300) * 1.001
    return fitted, miss + 64.0 * UNIT * (np.abs(fitted.real) + np.abs(fitted.imag)).sum(axis=0)


@kept(1)
def _inverse() -> FloatArray:
    """Takes values at all nodes of a block to the coefficients of the closest polynomial."""
    return np.asarray(np.linalg.pinv(basis()))


def _squares(values: npt.NDArray[np.complex128]) -> FloatArray:
    """Squares of moduli, to a few units where they are no smaller than all doubles."""
    return np.asarray(values.real * values.real + values.imag * values.imag)


def _bend(columns: npt.NDArray[np.complex128], nodes: FloatArray) -> FloatArray:
    """What logs of mixtures of two nodes and mixtures of logs differ by, over the norm's square."""
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
    """What is a polynomial in the norm, at all nodes, and its rounding.

    Bounds at a node are those of both nodes beside it, too.
    """
    x: FloatArray = index * np.float64(shape.spacing)
    count, n = shape.frequencies, shape.size
    tilted = weights * fn.exp((1.0 + shape.tilt) * x)
    mass = tilted.sum(axis=1)
    place = np.zeros((weights.shape[0], n))
    at = index % n
    turns = index // n
    for number in range(int(turns[0]), int(turns[-1]) + 1):  # no node twice in one turn
        turn = turns == number
        place[:, at[turn]] += tilted[:, turn]
    spectrum = np.fft.rfft(place, axis=1)
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
    """The largest of each value and of those beside it."""
    wide = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.maximum.reduce([wide[:-2], wide[1:-1], wide[2:]]))
