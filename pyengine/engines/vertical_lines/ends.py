"""The transform of a Laplace step far up a line, as contributions of the two ends of its loss.

Between its atoms a step has the density f(y) at the distance y from the least loss, analytic to the
right of its singularity.  So the transform, up to e^(s l_0), is a_0 + P(s) + e^(s d) (a_1 - Q(s)),
where P and Q are the integrals of f(y) e^(s y) and f(d + y) e^(s y) along a ray on which the
exponential decays: neither oscillates.  Both are sums of Gauss's rules on panels of the ray
(docs/theory/laplace, Lemmas 6 and 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property, kept
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.gauss import gauss_nodes
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = [
    "LEAST_HEIGHT",
    "NODES",
    "EndTransforms",
    "RayWeights",
    "end_bounds",
    "end_transforms",
    "ways_left",
]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
Indices = npt.NDArray[np.int64]

NODES = 16  # of Gauss's rule on a panel; panels double in length from the second on
SHARP = 0.25  # largest length of the first panel, in distances of the singularity
SHORT = 1.5  # largest |s y| on the first panel
REACH = 64.0  # |s y| at the end of a ray
LEAST_HEIGHT = 64.0  # smallest Im s: rays end at |y| <= 1, away from singularities near 2πi
RATIOS = np.array([1.3, 1.8, 2.5, 3.5, 5.0, 8.0])  # parameters ρ of Bernstein ellipses
WIDEST = 1.5  # largest Im y for which the bounds of f hold
VALUES = 64.0  # roundings of a value of f and of its term
DECAY = 0.65  # least -cos(arg s + arg y): |e^(s y)| <= e^(-0.65 |s y|) on a ray
FAR = 1e3  # stands for the distance of the singularity where there is none
HEIGHTS = 400  # cells of the integrals in `end_bounds`


class EndTransforms(NamedTuple):
    """P and Q at points s, and bounds of their absolute errors."""

    low: ComplexArray
    high: ComplexArray
    low_error: FloatArray
    high_error: FloatArray


def _lengths(shape: LaplaceShape) -> tuple[float, float, float]:
    """κ, the length d, and the distance G of the singularity below the least loss."""
    slope, length = float(shape.slope), float(shape.length)
    rest = 1.0 / slope
    return slope, length, -fn.log1p(-rest) if rest < 1.0 else FAR


def _density(shape: LaplaceShape, y: ComplexArray) -> ComplexArray:
    """The density κ e^y r^(-3/2)/4, r = 1 + κ (e^y - 1), at y and at d + y: of shape (2, n)."""
    slope, length, _ = _lengths(shape)
    grown, whole = fn.complex_expm1(y), fn.complex_exp(y)
    low = 1.0 + slope * grown
    up = slope * fn.exp(length)
    high = fn.exp(2.0 * float(shape.distance)) + up * grown
    values = [
        slope * whole / (low * fn.complex_root(low)),
        up * whole / (high * fn.complex_root(high)),
    ]
    return 0.25 * np.array(values, dtype=np.complex128)


@dataclass(frozen=True, eq=False)
class RayWeights:
    """Nodes of shape (n,) and weights of shape (rows, kinds, n), as real and imaginary parts."""

    node_real: FloatArray
    node_imag: FloatArray
    real: FloatArray
    imag: FloatArray

    @classmethod
    def joined(cls, rays: Sequence[RayWeights]) -> RayWeights:
        """Concatenate rays along their nodes."""
        parts = ((ray.node_real, ray.node_imag, ray.real, ray.imag) for ray in rays)
        return cls(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    @property
    def core(self) -> Any:
        """The C struct, valid while this object lives."""
        return self._core[0]

    @cached_property
    def _core(self) -> tuple[Any, list[Any]]:
        """The C struct, and the buffers that it points to."""
        parts = [
            array(part.reshape(-1))
            for part in (self.node_real, self.node_imag, self.real, self.imag)
        ]
        _, kinds, size = self.real.shape
        return ffi.new("pe_ray *", (*parts, size, kinds)), parts

    @classmethod
    def of(cls, node: ComplexArray, weight: ComplexArray) -> RayWeights:
        """Split complex nodes and weights."""
        return cls(
            *(np.ascontiguousarray(x) for x in (node.real, node.imag, weight.real, weight.imag))
        )

    def sums(self, factor: ComplexArray, panels: Indices, row: Indices) -> ComplexArray:
        """Σ weight e^(factor node) over the first ``panels`` panels, of shape (n, kinds)."""
        _, kinds, size = self.real.shape
        out = np.empty((factor.size, kinds), dtype=np.complex128)
        lib.pe_ray_sums(
            factor.size,
            array(np.ascontiguousarray(factor).view(np.float64)),
            _integers(panels * (NODES // 8)),
            _integers(row),
            size,
            array(self.node_real),
            array(self.node_imag),
            kinds,
            array(self.real),
            array(self.imag),
            array(out.view(np.float64).reshape(-1), writable=True),
        )
        return out


def _integers(x: Indices) -> Any:
    """A C buffer of int64."""
    return ffi.from_buffer("int64_t[]", np.ascontiguousarray(x, dtype=np.int64))


# Map: ends of Laplace steps on rays | test_deformed_lines | theory/laplace
def end_transforms(shape: LaplaceShape, s: ComplexArray, angle: float) -> EndTransforms:
    """Return P and Q at points s by sums along the ray y = r e^(i angle).

    Parameters
    ----------
    shape : LaplaceShape
        The step.
    s : ndarray
        Points with Im s at least `LEAST_HEIGHT`; `NODES` next to each other share their bounds.
    angle : float
        In radians, such that cos(arg s + angle) <= -`DECAY`.
    """
    gap = _lengths(shape)[2]
    size = fn.modulus(s)
    least, most = float(size.min()), float(size.max())
    first, last = min(SHARP * gap, SHORT / most), REACH / least
    count = max(1, math.ceil(fn.log2(last / first)))
    edges = np.concatenate([[0.0], np.ldexp(last, np.arange(-count, 1))])
    rule = gauss_nodes(NODES)
    place, weight = rule.place[0], rule.weight[0]
    width = np.diff(edges)
    ray = complex(fn.cos(angle), fn.sin(angle))
    y = np.asarray(ray * (edges[:-1, None] + width[:, None] * place).ravel(), np.complex128)
    step = (ray * width[:, None] * weight).ravel()
    terms = np.asarray((_density(shape, y) * step)[None], np.complex128)
    # panels that begin beyond |s y| = `REACH` are left out, which `_left_out` bounds
    used = np.searchsorted(edges[:-1], REACH / size)
    total = RayWeights.of(y, terms).sums(s, used, np.zeros(s.size, dtype=np.int64))
    moduli = fn.modulus(terms[0]).reshape(2, -1, NODES).sum(axis=2)
    # |e^(s y)| is largest at the start of a panel; exponents round, and the points s were rounded
    exponent = size[:, None] * edges[:-1]
    chain = (VALUES + 0.25 * NODES * (count + 1.0) + 16.0 * exponent) * UNIT
    off = (chain * fn.exp(-DECAY * exponent)) @ moduli.T
    off += _left_out(shape, s, ray, edges, used)
    return EndTransforms(total[:, 0], total[:, 1], off[:, 0], off[:, 1])


def _left_out(
    shape: LaplaceShape, s: ComplexArray, ray: complex, edges: FloatArray, used: Indices
) -> FloatArray:
    """Bounds of the quadrature error of P and Q, and of the integral beyond the ``used`` panels."""
    slope, length, gap = _lengths(shape)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    major, minor = half * 0.5 * (RATIOS + 1.0 / RATIOS), half * 0.5 * (RATIOS - 1.0 / RATIOS)
    along = fn.hypot(major * ray.real, minor * ray.imag)  # half-width of the ellipse in Re y
    up = fn.hypot(major * ray.imag, minor * ray.real)
    inside = middle * ray.imag + up <= WIDEST
    furthest = middle * ray.real + along
    nearest = middle * ray.real - along
    rule = 8.0 * half * fn.power(RATIOS, -2.0 * NODES) / (1.0 - 1.0 / RATIOS)
    bounds = []
    for start in (0.0, length):
        singular = start + gap
        foci = [fn.modulus(edges[i : edges.size - 1 + i, None] * ray + singular) for i in (0, 1)]
        distance = 0.5 * (foci[0] + foci[1]) - major
        # |e^z - 1| >= |z| min(1, e^(Re z)) sin(1.5)/1.5, and at least e^(Re z) - 1
        lowest = nearest + singular
        away = np.maximum(
            0.66 * distance * fn.exp(np.minimum(lowest, 0.0)), fn.expm1(np.minimum(lowest, 50.0))
        )
        least = slope * fn.exp(-gap) * away if gap < FAR else fn.exp(start + nearest)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = 0.25 * slope * fn.exp(start + furthest) / (least * np.sqrt(least))
        bounds.append(np.where(inside & (least > 0.0), most * rule, np.inf))
    # largest Re s y on an ellipse, for `NODES` points s together: it grows with the cosine
    first = np.arange(0, s.size, NODES)
    size = fn.modulus(s)
    cosine = np.maximum.reduceat((s * ray).real / size, first)[:, None, None]
    exponent = middle * cosine + fn.hypot(major * cosine, minor * np.sqrt(1.0 - cosine * cosine))
    sizes = [which.reduceat(size, first)[:, None, None] for which in (np.minimum, np.maximum)]
    exponent *= np.where(exponent > 0.0, sizes[1], sizes[0])
    grown = fn.exp(np.minimum(exponent, 600.0))
    most_used = np.maximum.reduceat(used, first)[:, None, None]
    counted = np.arange(half.size)[:, None] < most_used
    number = np.diff(np.append(first, s.size))
    rules = [
        np.repeat(np.where(counted, b * grown, 0.0).min(axis=2).sum(axis=1), number) for b in bounds
    ]
    back, up = ways_left(shape, s, ray, edges[used])
    return (np.stack(rules, axis=1) + back + up) * (1.0 + 1e-9)


def ways_left(
    shape: LaplaceShape, s: ComplexArray, ray: complex, end: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of the integrals that replace the rest of a ray, which stops at the radius ``end``.

    First from there to the imaginary axis at the same height, then up that axis; arrays of shape
    (points, 2) for P and Q.
    """
    slope, length, _ = _lengths(shape)
    height = end * ray.imag
    across = np.maximum((s * (end * ray)).real, -s.imag * height)
    back, up = [], []
    for start in (0.0, length):
        # |r| >= |Im r| and |r| >= r(start) - change of r from there; on the axis |f| <= f(start)
        sine = fn.sin(height)
        near = 0.25 * fn.exp(-0.5 * (start - end)) / np.sqrt(slope) / (sine * np.sqrt(sine))
        up_to = slope * fn.exp(start)
        least = _ratio(shape, start) * (1.0 - 1e-12) - up_to * fn.expm1(end)
        known = np.maximum(least, 1e-100)
        flat = 0.25 * up_to * fn.exp(end) / (known * np.sqrt(known))
        near = np.minimum(near, np.where(least > 0.0, flat, np.inf))
        back.append(np.minimum(near, 1e300) * end * fn.exp(across))
        ratio = _ratio(shape, start)
        peak = 0.25 * up_to / (ratio * math.sqrt(ratio))
        up.append(peak * fn.exp(-s.imag * height) / s.imag)
    return np.stack(back, axis=1), np.stack(up, axis=1)


def _ratio(shape: LaplaceShape, start: float) -> float:
    """The function r of the density at y = 0, or at y = d: 1 or e^(2 μ)."""
    return fn.exp(2.0 * float(shape.distance)) if start else 1.0


def _spread(low: float, high: float, count: int) -> FloatArray:
    """``count`` numbers from ``low`` to ``high``, equally spaced in their logarithms."""
    found = np.asarray(fn.exp(np.linspace(fn.log(low), fn.log(high), count)))
    found[-1] = high
    return found


@kept(128)
def end_bounds(shape: LaplaceShape, height: float) -> tuple[float, float]:
    """Return bounds of |P| and |Q| wherever Im s is at least ``height``.

    By integrals along the imaginary axis, where |f(i r)| and |f(d + i r)| fall until r = π: cells
    with the largest value on each, and beyond π the value at 0.
    """
    slope, length, gap = _lengths(shape)
    r = np.concatenate([[0.0], _spread(1e-9 * min(gap, 1.0), math.pi, HEIGHTS)])
    fall = fn.exp(-height * r)
    cells = fall[:-1] * -fn.expm1(-height * np.diff(r)) / height
    half = fn.sin(0.5 * r[:-1])
    sines = half * half
    found = []
    for start in (0.0, length):
        # |e^(start + i r) - e^-gap|^2 is (e^start - e^-gap)^2 and 4 e^(start - gap) sin^2(r/2)
        base = _ratio(shape, start)
        square = base * base + 4.0 * slope * fn.exp(start) * max(slope - 1.0, 0.0) * sines
        root = np.sqrt(np.sqrt(square))
        f = 0.25 * slope * fn.exp(start) / (root * root * root)
        found.append(float((f * cells).sum() + f[0] * fall[-1] / height) * (1.0 + 1e-9))
    return found[0], found[1]
