"""Laplace steps without sampling: exact sums over the knots of a spline.

With mu = 1/noise, a step has loss -mu with P-mass 1/2, mu with P-mass exp(-mu)/2, and in between
the density exp(-(x + mu)/2)/4.  Multiplied by exp(x/2) these are two equal atoms and a uniform
density.  So exp(S/2) dP of n steps is [A (1 + E) + B (1 - E) I]^n applied to the unit mass at
-n mu, with A = exp(-mu/2)/2, B = exp(-mu/2)/4, the shift E by 2 mu and the integration I.  The law
of -S under Q is that of S under P.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, arb_poly, fmpz, fmpz_poly

from pyengine.errors import AccuracyError
from pyengine.reference.atomic.law import ThresholdMasses, hit
from pyengine.reference.balls import exact

__all__ = ["LaplaceSource"]

MOST_KNOTS = 3000  # limits the time
MOST_STEPS = 1200  # limits the time, and the working precision: 4 bits for each step


class LaplaceSource:
    """The law of Laplace steps without sampling; see `pyengine.reference.atomic.law.Source`.

    ``parts`` are noise multipliers and numbers of steps.
    """

    certified = True

    def __init__(self, parts: list[tuple[float | Fraction, int]]) -> None:
        self.total = sum(steps for _, steps in parts)
        if not self.feasible(parts):
            raise AccuracyError(
                f"exact sums of Laplace steps have at most {MOST_KNOTS} knots, for at most "
                f"{MOST_STEPS} steps"
            )
        self.parts = parts

    @staticmethod
    def feasible(parts: list[tuple[float | Fraction, int]]) -> bool:
        """Whether there are at most `MOST_KNOTS` knots and `MOST_STEPS` steps."""
        knots = math.prod(steps + 1 for _, steps in parts)
        return knots <= MOST_KNOTS and sum(steps for _, steps in parts) <= MOST_STEPS

    def bits(self, depth: float, variant: int) -> int:  # noqa: ARG002 - there is one
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 80 + 4 * self.total

    def law(self, depth: float, variant: int) -> Spline:  # noqa: ARG002 - the precision says it
        """Return the law at the working precision."""
        return Spline(self.parts)

    def ends(self) -> tuple[arb, arb]:
        """Return the smallest and the largest loss."""
        top = exact(sum(Fraction(steps) / Fraction(noise) for noise, steps in self.parts))
        return -top, top

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)


class Spline:
    """exp(S/2) dP as atoms and truncated powers at its knots, at the working precision.

    The coefficients at a knot are those of the m-fold integrals I^m of the unit mass there, m = 0,
    1, ...; m = 0 is the atom.
    """

    def __init__(self, parts: list[tuple[float | Fraction, int]]) -> None:
        knots: dict[Fraction, list[arb]] = {Fraction(0): [arb(1)]}
        for noise, steps in parts:
            mu = 1 / Fraction(noise)
            rows = _rows(exact(mu), steps)
            moved: dict[Fraction, list[arb]] = {}
            for x, a in knots.items():
                for k, b in enumerate(rows):
                    y, row = x + (2 * k - steps) * mu, _product(a, b)
                    moved[y] = (
                        [u + v for u, v in zip(moved[y], row, strict=True)] if (y in moved) else row
                    )
            knots = moved
        places = sorted(knots)
        self.knots = [exact(x) for x in places]
        self.atoms = [(-exact(x) / 2).exp() * knots[x][0] for x in places]
        self.sums = [_tails(knots[x]) for x in places]
        self.cost = len(places)
        self._found: dict[int, tuple[arb, arb]] = {}  # tails at knots

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold; those of Q are those of P mirrored."""
        k, at = hit(self.knots, c)
        last = len(self.knots) - 1
        if at:
            p_below, p_at = self._under_p(k)
            q_above, q_at = self._under_p(last - k)
        else:
            p_below, p_at = self._below(c, k), arb(0)
            q_above, q_at = self._below(-c, last + 1 - k), arb(0)
        p_above = 1 - p_below - p_at if k < last or not at else arb(0)
        q_below = 1 - q_above - q_at if k > 0 or not at else arb(0)
        return ThresholdMasses(p_above, p_at, p_below, q_above, q_at, q_below)

    def _under_p(self, k: int) -> tuple[arb, arb]:
        if k not in self._found:
            self._found[k] = self._below(self.knots[k], k), self.atoms[k]
        return self._found[k]

    def _below(self, c: arb, count: int) -> arb:
        """Return P(S < c) for a c above the first ``count`` knots."""
        if count == len(self.knots):
            return arb(1)
        total = arb(0)
        for x, (whole, upper) in zip(self.knots[:count], self.sums[:count], strict=True):
            y = (c - x) / 2
            total += (-x / 2).exp() * (whole - (-y).exp() * upper(y))
        return total


def _tails(row: list[arb]) -> tuple[arb, arb_poly]:
    """Return the constant and the polynomial by which a knot x with coefficients ``row`` counts.

    With y = (c - x)/2 it adds exp(-x/2) (constant - exp(-y) polynomial(y)) to P(S < c).  The last
    factor is row[0] plus the sum over m >= 1 of row[m] 2^m P(m, y), where P(m, y) is the
    regularised lower incomplete gamma function.
    """
    total, factors = arb(0), [arb(0)] * (len(row) - 1)
    for m in range(len(row) - 1, 0, -1):
        total += row[m] * arb(2) ** m
        factors[m - 1] = total / arb.fac_ui(m - 1)
    return row[0] + total, arb_poly(factors)


def _rows(mu: arb, steps: int) -> list[list[arb]]:
    """Return the coefficients of equal steps: row k for the power E^k, column m for I^m."""
    a, b = (-mu / 2).exp() / 2, (-mu / 2).exp() / 4
    rows = [[arb(0)] * (steps + 1) for _ in range(steps + 1)]
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([1, -1])
    for m in range(steps + 1):
        factor = a ** (steps - m) * b**m * fmpz(math.comb(steps, m))
        for k, whole in enumerate((plus ** (steps - m) * minus**m).coeffs()):
            rows[k][m] = factor * whole
    return rows


def _product(a: list[arb], b: list[arb]) -> list[arb]:
    result = [arb(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result
