"""Composition of equal steps of Laplace noise or of bounded range, exactly, in Bernstein form.

With x = (S + N μ) / (2 μ) in [0, N], A's law of one step is e^(-μ x) / 2 times the measure
ν = δ_0 + δ_1 + μ 1_(0,1), and B's is its mirror image.  The N-fold convolution of ν has atoms at
the integers and polynomials between them, whose Bernstein coefficients are sums of positive
numbers; so are all integrals against them.  A step of bounded range ε = μ has no atoms: its law is
e^(-μ x) / (1 - e^(-μ)) times μ 1_(0,1) (docs/theory/finite, Lemma 4).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property, kept
from pyengine._support.status import finished
from pyengine.engines.exact.levels import (
    SUBNORMAL,
    Calls,
    ClosedLaw,
    KnownProfile,
    LawTests,
    Parts,
    Tails,
    masses_from,
    profile_from,
)
from pyengine.engines.functionals import array
from pyengine.laws.fine import two_parts
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LaplaceSum", "laplace_composition"]

FloatArray = npt.NDArray[np.float64]

KEPT = 64  # compositions in the cache
KERNELS = [ffi.addressof(lib, f"pe_laplace_sum_{x}") for x in ("tails", "profile", "roughly")]
NUMBERS = ("steps", "ratio", "scale", "error", "lost")  # of the C core's struct
MAX_STEPS: int = lib.PE_LAPLACE_STEPS  # that the core has room for
FEW = 200  # steps whose coefficients take little memory
MAX_RATIO = 40.0  # largest μ: the exponential series needs about 2 μ + 40 terms
STEP_ERROR = 16.0 * UNIT  # relative error of a product or quotient with e^μ
MAX_LOG = 640.0  # largest log of (2 + μ)^N, whose inverse, the smallest coefficient, is a double
MAX_RANGES = 20  # most steps without atoms: the smallest coefficient is of the order 1/(N - 1)!
LOST = 1e3 * SUBNORMAL  # absolute error of sums with terms below the normal doubles


def _exponentials(rate: float, size: int) -> tuple[FloatArray, FloatArray]:
    """Integrals over (0, 1) of cosh and sinh of rate (1 - s) against each Bernstein polynomial."""
    even, odd = np.empty(size), np.empty(size)
    lib.pe_bernstein_exponentials(rate, size, array(even, writable=True), array(odd, writable=True))
    return even, odd


# Map: the sum of equal Laplace losses | test_exact | theory/finite
class LaplaceSum(ClosedLaw):
    """The sum of N equal losses with ratio μ; both orders have the same law.

    μ is sensitivity over scale of Laplace noise, or without atoms the range ε.
    """

    name = "exact"
    is_narrowed = True

    def __init__(self, exact_ratio: Fraction, steps: int, *, has_atoms: bool = True) -> None:
        ratio = float(exact_ratio)
        self.ratio, self.steps, self.is_light = ratio, steps, steps <= FEW
        self._has_atoms, self._has_formulas = has_atoms, has_atoms and steps == 1
        self._end = two_parts(steps * exact_ratio)  # the largest loss
        curve, atoms = np.empty((steps, steps)), np.empty(steps + 1)
        rooms = array(curve.reshape(-1), writable=True), array(atoms, writable=True)
        finished(lib.pe_laplace_sum_law(steps, ratio, has_atoms, *rooms), "Laplace steps")
        # roundings: a few operations per step and per mean, and the integrals
        self.error = UNIT * (16.0 * steps + 200.0)
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
        self.lost = lost * max(self.scale, 1.0) if underflows else 0.0
        even, odd = (curve @ integrals for integrals in _exponentials(ratio, steps))
        fall = fn.exp(-ratio * np.arange(steps + 1.0))
        masses = fall[1:] * (even + odd)
        self._arrays = {
            "curve": curve,
            "atoms": atoms * fall,
            "even": even,
            "odd": odd,
            "below": np.concatenate([[0.0], np.cumsum(masses)]),
            "above": np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]]),
            "tallest": np.append(curve.max(axis=1), 0.0),  # bound of each interval's polynomial
        }

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

    @cached_property
    def _core(self) -> Any:
        rows = {name: array(row.reshape(-1)) for name, row in self._arrays.items()}
        numbers = {
            name: getattr(self, name) for name in ("steps", "ratio", "scale", "error", "lost")
        }
        return ffi.new("pe_laplace_sum *", {"end": self._end, **numbers, **rows})

    @property
    def calls(self) -> Calls:
        """Functions of this law for the C core."""
        return Calls(self._core, *KERNELS)

    @cached_property
    def tests(self) -> LawTests:
        """Tests {S > c} for the C core, which finds the thresholds."""
        room = 8.0 * UNIT * (1.0 + self._end[0])
        return LawTests(self, self.calls, self.jumps, has_atoms=self._has_atoms, room=room)

    @property
    def jumps(self) -> FloatArray:
        """Losses of the atoms."""
        if not self._has_atoms:
            return np.zeros(0)
        return self.ratio * np.arange(-float(self.steps), self.steps + 1.0, 2.0)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        return masses_from(lib.pe_laplace_sum_tails, self._core, c)

    def profile(self, epsilon: FloatArray, low: FloatArray | None = None) -> KnownProfile:
        """H_{e^ε}(A‖B) at ε + low for any ε."""
        return profile_from(lib.pe_laplace_sum_profile, self._core, epsilon, low)

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
