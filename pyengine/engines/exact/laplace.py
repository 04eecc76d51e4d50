"""Composition of equal steps of Laplace noise or of bounded range, exactly, in Bernstein form.

With x = (S + N μ) / (2 μ) in [0, N], A's law of one step is e^(-μ x) / 2 times the measure
ν = δ_0 + δ_1 + μ 1_(0,1), and B's is its mirror image.  The N-fold convolution of ν has atoms at
the integers and polynomials between them, whose Bernstein coefficients are sums of positive
numbers; so are all integrals against them.  A step of bounded range ε = μ has no atoms: its law is
e^(-μ x) / (1 - e^(-μ)) times μ 1_(0,1) (docs/theory/finite, Lemma 4).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.exact.levels import SUBNORMAL, ClosedLaw, Parts, Tails
from pyengine.laws.fine import left_of, two_parts
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LaplaceSum", "laplace_composition"]

FloatArray = npt.NDArray[np.float64]

KEPT = 64  # compositions in the cache
MAX_STEPS = 400  # the relative error grows with N²/2 roundings
MAX_RATIO = 40.0  # largest μ: the exponential series needs about 2 μ + 40 terms
STEP_ERROR = 16.0 * UNIT  # relative error of a product or quotient with e^μ
MAX_LOG = 640.0  # largest log of (2 + μ)^N, whose inverse, the smallest coefficient, is a double
MAX_RANGES = 20  # most steps without atoms: the smallest coefficient is of the order 1/(N - 1)!
LOST = 1e3 * SUBNORMAL  # absolute error of sums with terms below the normal doubles


def _elevated(coefficients: FloatArray) -> FloatArray:
    """Bernstein coefficients of the same polynomials with the degree raised by one."""
    degree = coefficients.shape[1]
    share = np.arange(degree + 1.0) / degree
    out = np.zeros((coefficients.shape[0], degree + 1))
    out[:, 1:] += share[1:] * coefficients
    out[:, :-1] += (1.0 - share[:-1]) * coefficients
    return out


def _smoothed(coefficients: FloatArray) -> FloatArray:
    """Convolution with the uniform law on (0, 1): one more interval, degree raised by one."""
    intervals, size = coefficients.shape
    out = np.zeros((intervals + 1, size + 1))
    out[:-1, 1:] += np.cumsum(coefficients, axis=1)
    out[1:, :-1] += np.cumsum(coefficients[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(out / size)


def _powers(rate: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Integrals over (0, 1) of cosh and sinh of rate (1 - s) against each Bernstein polynomial.

    The integral of (1 - s)^i B_k is a quotient of factorials, so both are power series of positive
    terms.  ``rate`` has shape (m,), the results (m, size).
    """
    falling = size - 1.0 - np.arange(float(size))
    term = np.full((rate.size, size), 1.0 / size)
    even, odd = term.copy(), np.zeros_like(term)
    largest, rest = float(rate.max(initial=0.0)), 1.0  # each term is at most rest / size
    for i in range(1, int(2.0 * MAX_RATIO) + 60):
        term *= rate[:, None] / i
        term *= (falling + i) / (size + i)
        if i % 2:
            odd += term
        else:
            even += term
        rest *= largest / i
        if rest <= 1e-20:
            break
    return even, odd


class _Place(NamedTuple):
    """Places x in [0, N]: interval j, and the lengths t and 1 - t of it below and above x.

    ``y`` is the distance of x from the nearer end, the upper one if ``flip``; ``near`` is that of
    the loss, negative beyond the end.
    """

    x: FloatArray
    j: npt.NDArray[np.intp]
    t: FloatArray
    rest: FloatArray
    y: FloatArray
    near: FloatArray
    flip: npt.NDArray[np.bool_]

    def mirrored(self, steps: int) -> _Place:
        """The places N - x, exactly."""
        j = steps - 1 - self.j
        return _Place(steps - self.x, j, self.rest, self.t, self.y, self.near, ~self.flip)


def _split(
    coefficients: FloatArray, t: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients on (0, t) and (t, 1) with rest = 1 - t, by de Casteljau's algorithm."""
    work = coefficients
    left, right = np.empty_like(work), np.empty_like(work)
    t, rest = t[:, None], rest[:, None]
    last = work.shape[1] - 1
    for r in range(last + 1):
        left[:, r], right[:, last - r] = work[:, 0], work[:, last - r]
        work = rest * work[:, :-1] + t * work[:, 1:]
    return left, right


# Map: the sum of equal Laplace losses | test_exact | theory/finite
class LaplaceSum(ClosedLaw):
    """The sum of N equal losses with ratio μ; both orders have the same law.

    μ is sensitivity over scale of Laplace noise, or without atoms the range ε.
    """

    name = "exact"

    def __init__(self, exact_ratio: Fraction, steps: int, *, has_atoms: bool = True) -> None:
        ratio = float(exact_ratio)
        self.ratio, self.steps = ratio, steps
        self._has_formulas = has_atoms and steps == 1
        self._end = two_parts(steps * exact_ratio)  # the largest loss
        atoms, curve = np.ones(1), np.zeros((0, 1))
        whole = 2.0 + ratio if has_atoms else ratio
        for k in range(steps):
            grown = np.zeros((k + 1, k + 1))
            if k:
                grown += ratio * _smoothed(curve)
                if has_atoms:
                    raised = _elevated(curve)
                    grown[:-1] += raised
                    grown[1:] += raised
            grown += ratio * atoms[:, None]
            curve = grown / whole
            atoms = (np.append(atoms, 0.0) + np.append(0.0, atoms)) * has_atoms / whole
        self.atoms, self.curve = atoms, curve
        # roundings: a cumulative sum and a few operations per step, and the integrals
        self.error = UNIT * (0.5 * steps**2 + 16.0 * steps + 200.0)
        if has_atoms:
            log_whole = fn.log1p(0.5 * ratio)
        else:  # depends on the rounding of μ as well
            log_whole = fn.log(-ratio / fn.expm1(-ratio))
            self.error += 16.0 * UNIT * steps
        self.scale = fn.exp(steps * log_whole)
        # whether masses next to the ends may underflow before they are scaled
        underflows = not has_atoms or steps * (ratio + fn.log(2.0 + ratio)) > MAX_LOG
        # N levels of the recursion, N coefficients: each may underflow once
        lost = LOST + SUBNORMAL * steps**2
        self._lost = lost * max(self.scale, 1.0) if underflows else 0.0
        even, odd = _powers(np.array([ratio]), steps)
        j = np.arange(float(steps))
        self._cosh, self._sinh = curve @ even[0], curve @ odd[0]
        masses = fn.exp(-ratio * (j + 1.0)) * (self._cosh + self._sinh)
        self._atom_masses = atoms * fn.exp(-ratio * np.arange(steps + 1.0))
        self._below = np.concatenate([[0.0], np.cumsum(masses)])
        self._above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        self._tallest = np.append(curve.max(axis=1), 0.0)  # bound of each interval's polynomial

    @staticmethod
    def available(ratio: float, steps: int, *, has_atoms: bool = True) -> bool:
        """Whether the sums are short enough and stay within the range of doubles."""
        if not has_atoms:
            return 1 <= steps <= MAX_RANGES and SUBNORMAL < ratio <= MAX_RATIO
        return (
            1 <= steps <= MAX_STEPS
            and 0.0 < ratio <= MAX_RATIO
            and steps * fn.log(2.0 + ratio) <= MAX_LOG
        )

    def support(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        return -self._end[0], self._end[0]

    def _gap(self, c: FloatArray, low: FloatArray) -> FloatArray:
        """Distance of c + low from the nearer end, negative beyond it; relative error 4 u."""
        end, end_low = self._end
        high = end - np.abs(c)
        return np.asarray(high + (left_of(end, -np.abs(c), high) + (end_low - np.sign(c) * low)))

    def _place(self, c: FloatArray, low: FloatArray | None = None) -> _Place:
        """Place of a loss, measured from the nearer end to keep its digits there."""
        steps = float(self.steps)
        near = self._gap(c, np.zeros(c.size) if low is None else low)
        with np.errstate(over="ignore"):  # the ratio may be tiny
            y = np.clip(near / (2.0 * self.ratio), 0.0, 0.5 * steps)
        j = np.minimum(np.floor(y), steps - 1.0)
        t = y - j
        flip = c > 0.0
        place = _Place(y, j.astype(np.intp), t, 1.0 - t, y, near, flip)
        if not flip.any():
            return place
        mirrored = place.mirrored(self.steps)
        x, j, t, rest = (np.where(flip, x, y) for x, y in zip(mirrored[:4], place[:4], strict=True))
        return _Place(x, j, t, rest, y, near, flip)

    def _atoms_above(self, place: _Place) -> npt.NDArray[np.bool_]:
        """Mask of atoms above each place, both measured from the place's nearer end."""
        n = np.arange(self.steps + 1.0)
        y, near, flip = (x[:, None] for x in (place.y, place.near, place.flip))
        beyond = near < 0.0
        return np.asarray(np.where(flip, (self.steps - n < y) & ~beyond, (n > y) | beyond))

    def _curve_masses(
        self, place: _Place, below: FloatArray, above: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A's masses above and below a place, without atoms and without `scale`."""
        x, j, t, rest = place[:4]
        left, right = _split(self.curve[j], t, rest)
        parts = []
        for coefficients, integrals, width, end in (
            (right, above, rest, j + 1.0),
            (left, below, t, x),
        ):
            part = (coefficients * integrals).sum(axis=1)
            parts.append(width * fn.exp(-self.ratio * end) * part)
        return self._above[j + 1] + parts[0], self._below[j] + parts[1]

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        place = self._place(c)
        rates = self.ratio * np.concatenate([place.t, place.rest])
        below, above = np.split(np.add(*_powers(rates, self.steps)), 2)
        a_above, a_below = self._curve_masses(place, below, above)
        b_below, b_above = self._curve_masses(place.mirrored(self.steps), above, below)
        atoms, over = self._atom_masses, self._atoms_above(place)
        for masses, where, these in (
            (a_above, over, atoms),
            (a_below, ~over, atoms),
            (b_above, over, atoms[::-1]),
            (b_below, ~over, atoms[::-1]),
        ):
            masses += np.where(where, these, 0.0).sum(axis=1)
            masses *= self.scale
        # rounding of x shifts c, and that of the ratio changes masses
        shift = np.full(c.size, 8.0 * UNIT * self.steps * self.ratio)
        error = self.error + shift
        if self._lost:
            least = np.min([a_above, a_below, b_above, b_below], axis=0)
            with np.errstate(divide="ignore"):
                lost = self._lost / least
            error = error + np.where(place.near > 0.0, lost, 0.0)  # beyond both ends 0 is exact
        return Tails(a_above, a_below, b_above, b_below, error, shift)

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B) at ε + low for any ε, and a bound of its absolute error.

        The integral of 2 e^(-μx) sinh(μ (x - y)) over y < x; ``low`` is at most an ulp of ε.
        """
        low = np.zeros(epsilon.size) if low is None else low
        place = self._place(-epsilon, -low)
        x, j, t, rest = place[:4]
        rate = self.ratio
        left, _ = _split(self.curve[j], t, rest)
        even, odd = _powers(rate * t, self.steps)
        fall = fn.exp(-rate * x)
        inner = self._below[j] + fall * t * (left * (even + odd)).sum(axis=1)
        total = 2.0 * fall * t * (left * odd).sum(axis=1)
        i = np.arange(float(self.steps))
        drop = -fn.expm1(-2.0 * rate * np.maximum(x[:, None] - (i + 1.0), 0.0))
        whole = drop * self._cosh + (2.0 - drop) * self._sinh
        whole = np.where(i < j[:, None], fn.exp(-rate * (i + 1.0)) * whole, 0.0)
        total += whole.sum(axis=1)
        n = np.arange(self.steps + 1.0)
        drop = -fn.expm1(-2.0 * rate * np.maximum(x[:, None] - n, 0.0))
        total += (self._atom_masses * drop).sum(axis=1)
        value = self.scale * total
        beyond = place.near <= 0.0
        value[(epsilon > 0.0) & beyond] = 0.0
        whole = (epsilon < 0.0) & beyond
        value[whole] = -fn.expm1(epsilon[whole] + low[whole])
        gap = np.where(whole, 1.0, place.near)
        # error of the distance from the nearer end, and of mirroring
        end = self._end[0]
        shift = UNIT * (4.0 * np.maximum(gap, 0.0) + UNIT * (8.0 * (end + np.abs(epsilon))))
        shift += UNIT * 8.0 * end * (epsilon < 0.0)
        # A's mass up to the place, plus atoms and density within the error of the place
        moved = np.minimum(shift, rate) / rate + 8.0 * UNIT * x  # no overflow of a quotient
        atoms = np.where(n <= (x + moved)[:, None], self._atom_masses, 0.0).sum(axis=1)
        density = fall * np.maximum(self._tallest[j], self._tallest[j + 1])
        below = self.scale * (inner + atoms + moved * density) * (gap > -shift)
        # rounding of the ratio
        error = self.error + 8.0 * UNIT * self.steps * (1.0 + rate)
        lost = max(self._lost, SUBNORMAL)
        return value, value * error + shift * below + lost * (gap > -shift)

    def _exponential(self) -> float:
        """The exponential of the largest loss; relative error 8 u."""
        high, low = self._end
        return fn.exp(high) * (1.0 + low)

    def formulas(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray] | None:
        """For one step, the trade-off function is a line, a hyperbola and a line.

        Its slope is continuous, so rounding of the two junctions has an effect of second order.
        """
        if not self._has_formulas:
            return None
        rest, most = 1.0 - alpha, self._exponential()
        first, last = 2.0 * most * alpha <= 1.0, alpha > 0.5
        with np.errstate(over="ignore"):
            inner = 0.25 / (most * np.where(first, 1.0, alpha))
        middle = -self.ratio - 2.0 * fn.log(2.0 * alpha)
        own = np.where(first, alpha * most, np.where(last, rest / most, inner))
        off = STEP_ERROR * own + SUBNORMAL * (own > 0.0)
        other = 1.0 - own
        far = off + 2.0 * UNIT * (own > 0.0)
        known, rest_of = (own, own - off, own + off), (other, other - far, other + far)
        beta, gamma = (
            tuple(np.where(first, x, y) for x, y in zip(*rows, strict=True))
            for rows in ((rest_of, known), (known, rest_of))
        )
        return beta, gamma, np.where(first, self.ratio, np.where(last, -self.ratio, middle))


@kept(KEPT)
def laplace_composition(ratio: Fraction, steps: int, has_atoms: bool = True) -> LaplaceSum:
    """Composition of equal steps of Laplace noise, or of bounded range."""
    return LaplaceSum(ratio, steps, has_atoms=has_atoms)
