"""Compositions of which either law may show what the other one never does, beside a line.

A step may have a mass a of A at the loss -∞ and b of B at +∞.  Its finite losses, each law over
what is left of it, are a pair of laws with the loss moved by log((1 - a)/(1 - b)); these pairs are
composed on a line, and what is alone joins their masses (docs/theory/line).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import BELOW_DOUBLES, SUBNORMAL, Tails
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.ordered import RoughTails, tails_of
from pyengine.laws.base import StepLaw
from pyengine.laws.fine import Fine, lost_mass
from pyengine.laws.finite import LOG_ERROR, FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.rounding import UNIT

__all__ = ["AloneOrder", "Parted", "parted"]

FloatArray = npt.NDArray[np.float64]
Laws = list[tuple[StepLaw, int]]


class Alone(NamedTuple):
    """What one law of a composition shows and the other one never does.

    Parameters
    ----------
    mass, rest : float
        The mass and its complement to 1, each within 4 units.
    low, error : float
        What the mass has beyond its double, and a bound on the error of both together.
    """

    mass: float
    rest: float
    low: float
    error: float


class Parted(NamedTuple):
    """A composition of finite losses, and what was taken from it.

    Parameters
    ----------
    laws : list of (StepLaw, int)
        The steps, each law over what is left of it.
    of_a, of_b : Alone
        What A shows at the loss -∞, and B at +∞.
    moved : float
        By how much the loss was moved.
    """

    laws: Laws
    of_a: Alone
    of_b: Alone
    moved: float


def parted(laws: Laws) -> Parted | None:
    """Return a composition without the infinite losses of its finite laws.

    None where all that is alone is 0, or not known exactly, or everything.
    """
    if all(law.infinite() == (0.0, 0.0) for law, _ in laws):
        return None
    left: Laws = []
    masses: list[list[tuple[Fraction, int]]] = [[], []]
    moved = Decimal(0)
    for law, number in laws:
        if law.infinite() == (0.0, 0.0):
            left.append((law, number))
            continue
        finite = law.finite()
        if finite is None or finite.alone is None or not finite.loss.size:
            return None
        shift = _moved(finite.alone)
        left.append((_finite_part(finite, shift), number))
        moved = CONTEXT.add(moved, CONTEXT.multiply(Decimal(number), shift))
        for part, mass in zip(masses, finite.alone, strict=True):
            part.append((mass, number))
    of_a, of_b = (_alone(part) for part in masses)
    return Parted(left, of_a, of_b, float(moved))


def _moved(alone: tuple[Fraction, Fraction]) -> Decimal:
    """log((1 - a)/(1 - b))."""
    a, b = alone
    return Decimal(0) if a == b else CONTEXT.ln(as_decimal((1 - a) / (1 - b)))


def _alone(parts: list[tuple[Fraction, int]]) -> Alone:
    """1 - Π (1 - m)^N, and the product."""
    log = Decimal(0)
    for mass, number in parts:
        log = CONTEXT.add(log, CONTEXT.multiply(Decimal(number), CONTEXT.ln(as_decimal(1 - mass))))
    high, low, error = lost_mass(parts)
    return Alone(high, float(CONTEXT.exp(log)), low, error)


def _finite_part(law: FiniteLaw, shift: Decimal) -> FiniteLaw:
    """The pair of both laws' finite losses, each with the mass 1."""
    assert law.alone is not None
    log_a, log_b = (float(CONTEXT.ln(as_decimal(1 - mass))) for mass in law.alone)

    def digits() -> Fine:
        known = law.many_digits()
        return Fine.of([CONTEXT.add(x, shift) for x in known.losses], known.error)

    step = float(shift)
    return FiniteLaw(
        law.loss + step,
        law.log_a - log_a,
        law.log_b - log_b,
        error=law.error + LOG_ERROR * (1.0 + abs(log_a) + abs(log_b)),
        loss_error=law.loss_error + 16.0 * UNIT * (abs(step) + float(np.abs(law.loss).max())),
        ends=None if law.ends is None else (law.ends[0] + step, law.ends[1] + step),
        symmetric=law.symmetric,
        digits=None if law.digits is None else digits,
        alone=(Fraction(0), Fraction(0)),
    )


class AloneOrder:
    """One order of the pair of a composition with infinite losses.

    Its profile is that of all masses, infinite losses included.

    Parameters
    ----------
    inner : LineOrder
        The composition of what is left, one order of it.
    parts : Parted
        What was taken from that very order.
    """

    is_deformed, losses = False, None

    def __init__(self, inner: LineOrder, parts: Parted) -> None:
        self.inner, self._of_a, self._of_b = inner, parts.of_a, parts.of_b
        self._moved, self.exchanged = parts.moved, inner.exchanged
        self.alone_masses = parts.of_a.mass, parts.of_b.mass
        self.first_alone = parts.of_a.mass, parts.of_a.low, parts.of_a.error

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""
        return self.inner.is_symmetric and self._of_a == self._of_b and self._moved == 0.0

    @property
    def work(self) -> float:
        """As of what is left."""
        return self.inner.work

    @property
    def least_known(self) -> float:
        """As of what is left."""
        return self.inner.least_known

    @property
    def has_atoms(self) -> bool:
        """As of what is left."""
        return self.inner.has_atoms

    @property
    def jumps(self) -> FloatArray:
        """As of what is left."""
        return np.asarray(self.inner.jumps - self._moved)

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""
        low, high = self.inner.support()
        return low - self._moved, high - self._moved

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest finite loss."""
        low, high = self.inner.lowest()
        off = [4.0 * UNIT * (abs(x) + abs(self._moved)) for x in (low, high)]
        return low - self._moved - off[0], high - self._moved + off[1]

    def infinite(self) -> tuple[float, float]:
        """Bounds on what is removed from either law, beside what is known to be alone."""
        return self.inner.infinite()

    def alone(self) -> tuple[float, float, float]:
        """Nothing that the profile does not have."""
        return 0.0, 0.0, 0.0

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which losses A's mass above is expected to come to α."""
        inside = np.minimum(alpha / self._of_a.rest, 1.0 - UNIT)
        low, high = self.inner.expected(inside)
        return low - self._moved, high - self._moved

    def expected_epsilon(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which ε the profile is expected to come to δ."""
        beyond = np.maximum(delta - self._of_a.mass, 1e-300) / self._of_a.rest
        low, high = self.inner.expected_epsilon(np.minimum(beyond, 1.0 - UNIT))
        return np.maximum(low + self._moved, 0.0), np.maximum(high + self._moved, 0.0)

    def profile_most(self, epsilon: float, enough: float = 0.0) -> float:
        """A number not below the profile, found quickly."""
        at, off = epsilon - self._moved, 4.0 * UNIT * (epsilon + abs(self._moved))
        left = max(enough - self._of_a.mass, 0.0) / self._of_a.rest
        if at < off and self._moved != 0.0:
            return 1.0
        inside = self.inner.profile_most(max(at - off, 0.0), left)
        return (self._of_a.mass + self._of_a.rest * inside) * (1.0 + 16.0 * UNIT)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        at = c + self._moved
        shift = self.inner.shift(at)
        shift = shift + 4.0 * UNIT * (np.abs(at) + abs(self._moved)) * (self._moved != 0.0)
        alone = (0.0, self._of_a.mass, self._of_b.mass, 0.0)
        rest = (self._of_a.rest, self._of_a.rest, self._of_b.rest, self._of_b.rest)
        masses = []
        for one, part, (inner, error) in zip(alone, rest, self.inner.masses(at), strict=True):
            mass = one + part * inner
            masses.append((mass, part * error + 16.0 * UNIT * mass))
        return tails_of(masses, shift)

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        a_above, a_below, b_above, b_below = self.inner.roughly(c + self._moved)
        return (
            self._of_a.rest * a_above,
            self._of_a.mass + self._of_a.rest * a_below,
            self._of_b.mass + self._of_b.rest * b_above,
            self._of_b.rest * b_below,
        )

    def profile_about(self, near: float) -> Callable[[float], float]:
        """About the profile at ε, by what serves at ``near`` wherever that serves as well."""
        about = self.inner.profile_about(max(near - self._moved, 0.0))

        def whole(epsilon: float) -> float:
            return self._of_a.mass + self._of_a.rest * about(max(epsilon - self._moved, 0.0))

        return whole

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B) with all masses, and a bound on its absolute error."""
        value, error = np.zeros((2, epsilon.size))
        finite = np.isfinite(epsilon)
        if self._moved == 0.0 and finite.any():
            value[finite], error[finite] = self.inner.profile(epsilon[finite])
        elif finite.any():
            some = epsilon[finite]
            value[finite], error[finite] = self._profile_beside(some - self._moved, some)
        found = self._of_a.mass + self._of_a.rest * value
        off = self._of_a.rest * error * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * found
        return found, off + SUBNORMAL * (0.0 < self._of_a.mass < BELOW_DOUBLES)

    def _profile_beside(self, at: FloatArray, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of what is left at numbers known to a rounding, which may be below 0."""
        off = 4.0 * UNIT * (np.abs(epsilon) + abs(self._moved))
        value, error = np.empty(at.size), np.empty(at.size)
        is_negative = at - off < 0.0
        rest = ~is_negative
        if rest.any():
            places = np.concatenate([at[rest] + off[rest], at[rest] - off[rest]])
            (lower, upper), (first, second) = (x.reshape(2, -1) for x in self.inner.profile(places))
            low, high = lower - first, upper + second
            value[rest], error[rest] = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * UNIT)
        if is_negative.any():
            # from the masses on both sides of the threshold, which is off by as little
            c, t = -at[is_negative], fn.exp(at[is_negative])
            tails = self.inner.tails(c)
            value[is_negative] = tails.a_below - t * tails.b_below
            both = tails.a_below + t * tails.b_below
            moved = off[is_negative] + tails.shift
            error[is_negative] = both * (tails.error + 8.0 * UNIT + 2.0 * moved)
        return value, error
