"""Ordered pairs of laws (A, B) as the truth needs them, and operations on any pair.

Numbers are balls of python-flint (`arb`): midpoints with a radius that covers all rounding, at the
current working precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple

from flint import arb, ctx, fmpq

__all__ = ["Law", "Parts", "Point", "Reversed", "Sampled", "added_ends", "ball", "precision"]


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the working precision for a block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: float | int | Fraction) -> arb:
    """Enclose a double, an integer or a fraction: the exact number, not a rounding of it."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


class Parts(NamedTuple):
    """Masses of A and B where the loss log dB/dA is above and below a threshold."""

    a_above: arb
    a_below: arb
    b_above: arb
    b_below: arb


class Point(NamedTuple):
    """Densities of A and B, and the loss, at a point of the line on which a law lives."""

    a: arb
    b: arb
    loss: arb


class Law:
    """An ordered pair (A, B); the methods from `pieces` on are there for quadrature over it."""

    def at(self, c: arb) -> Parts:
        """Masses on both sides of the loss c; mass at c itself may be counted on either."""
        raise NotImplementedError

    def span(self) -> tuple[arb, arb]:
        """Losses that enclose all finite ones, except for masses far below every double."""
        raise NotImplementedError

    def infinite(self) -> tuple[arb, arb]:
        """Mass of A at loss -inf, and of B at loss inf."""
        return arb(0), arb(0)

    def unbounded(self) -> tuple[bool, bool]:
        """Whether there are finite losses below, and above, every number."""
        return False, False

    def ends(self) -> tuple[arb | None, arb | None]:
        """Infimum and supremum of all finite losses; None where there is none."""
        low, high = self.span()
        below, above = self.unbounded()
        return None if below else low, None if above else high

    def kinks(self) -> list[arb]:
        """Losses at which the masses are not smooth functions of the threshold."""
        raise NotImplementedError

    def pieces(self) -> list[tuple[arb, arb]]:
        """Intervals of the line in which densities and the loss are smooth."""
        raise NotImplementedError

    def point(self, x: arb) -> Point:
        """Densities and loss at a point inside a piece; the loss does not decrease."""
        raise NotImplementedError

    def place(self, c: arb) -> arb | None:
        """Point where the loss passes c; None if there is none."""
        raise NotImplementedError

    def atoms(self) -> list[tuple[arb, arb, arb]]:
        """Masses of A and B and the loss of all outcomes outside the pieces."""
        return []


class Reversed(Law):
    """The pair (B, A)."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def at(self, c: arb) -> Parts:
        a_above, a_below, b_above, b_below = self.law.at(-c)
        return Parts(b_below, b_above, a_below, a_above)

    def span(self) -> tuple[arb, arb]:
        low, high = self.law.span()
        return -high, -low

    def infinite(self) -> tuple[arb, arb]:
        below, above = self.law.infinite()
        return above, below

    def unbounded(self) -> tuple[bool, bool]:
        below, above = self.law.unbounded()
        return above, below

    def ends(self) -> tuple[arb | None, arb | None]:
        low, high = self.law.ends()
        return None if high is None else -high, None if low is None else -low


class Sampled(Law):
    """The pair (A, (1 - p) A + p B) of a pair (A, B)."""

    def __init__(self, law: Law, probability: arb) -> None:
        self.law, self.p, self.rest = law, probability, 1 - probability

    def _outer(self, c: arb) -> arb:
        return (self.rest + self.p * c.exp()).log()

    def _inner(self, c: arb) -> arb | None:
        """Loss before sampling; None where c lies below all losses."""
        value = c.exp() - self.rest
        return (value / self.p).log() if value.mid() > value.rad() else None

    def at(self, c: arb) -> Parts:
        inner = self._inner(c)
        if inner is None:
            return Parts(arb(1), arb(0), arb(1), arb(0))
        a_above, a_below, b_above, b_below = self.law.at(inner)
        return Parts(
            a_above,
            a_below,
            self.rest * a_above + self.p * b_above,
            self.rest * a_below + self.p * b_below,
        )

    def span(self) -> tuple[arb, arb]:
        low, high = self.law.span()
        alone = bool(self.law.infinite()[0] > 0)
        return (self.rest.log() if alone else self._outer(low)), self._outer(high)

    def infinite(self) -> tuple[arb, arb]:
        return arb(0), self.p * self.law.infinite()[1]

    def unbounded(self) -> tuple[bool, bool]:
        return False, self.law.unbounded()[1]

    def ends(self) -> tuple[arb | None, arb | None]:
        low, high = self.law.ends()
        alone = bool(self.law.infinite()[0] > 0)
        lowest = self.rest.log() if alone or low is None else self._outer(low)
        return lowest, None if high is None else self._outer(high)

    def kinks(self) -> list[arb]:
        lowest = [self.rest.log()] if self.law.unbounded()[0] else []
        return lowest + [self._outer(kink) for kink in self.law.kinks()]

    def pieces(self) -> list[tuple[arb, arb]]:
        return self.law.pieces()

    def point(self, x: arb) -> Point:
        a, b, loss = self.law.point(x)
        return Point(a, self.rest * a + self.p * b, self._outer(loss))

    def place(self, c: arb) -> arb | None:
        inner = self._inner(c)
        return None if inner is None else self.law.place(inner)

    def atoms(self) -> list[tuple[arb, arb, arb]]:
        return [(a, self.rest * a + self.p * b, self._outer(c)) for a, b, c in self.law.atoms()]


def added_ends(
    first: tuple[arb | None, arb | None], second: tuple[arb | None, arb | None], times: int = 1
) -> tuple[arb | None, arb | None]:
    """Ends of the sum of a loss and ``times`` others; None is beyond all numbers."""
    low, high = (
        None if x is None or y is None else x + times * y
        for x, y in zip(first, second, strict=True)
    )
    return low, high
