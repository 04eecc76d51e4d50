"""Compositions of steps with finitely many losses, by all their atoms."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from flint import arb, arb_poly, fmpz

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.finite import Masses
from pyengine.reference.atomic.law import ThresholdMasses, grouped, hit
from pyengine.reference.balls import spread

__all__ = ["ComposedAtoms", "FiniteSource"]

MOST_ATOMS = 400_000  # limits time and memory
MOST_DEGREE = 3_000_000  # of a power of a polynomial, for losses on a lattice


@dataclass
class ComposedAtoms:
    """Atoms in increasing order of loss; see `pyengine.reference.atomic.law.AtomicLaw`.

    ``only_p``, ``only_q`` and ``lost`` are as in `pyengine.reference.atomic.finite.Masses`.
    """

    p: list[arb]
    q: list[arb]
    losses: list[arb]
    only_p: arb
    only_q: arb
    lost: arb

    cost = 1

    @cached_property
    def knots(self) -> list[arb]:
        """Losses, overlapping balls merged."""
        return grouped(self.losses) or [arb(0)]

    @cached_property
    def _starts(self) -> list[int]:
        """The index of the first atom of each knot, and the number of atoms."""
        starts = (bisect_left(self.losses, x.lower(), key=arb.mid) for x in self.knots)
        return [*starts, len(self.p)]

    @cached_property
    def _sums(self) -> list[list[arb]]:
        """Cumulative masses: of P from above and from below, of Q from above and from below."""
        lost = spread(self.lost)
        rows = (
            (self.p[::-1], lost),
            (self.p, lost + self.only_p),
            (self.q[::-1], lost + self.only_q),
            (self.q, lost),
        )
        return [list(accumulate(masses, initial=start)) for masses, start in rows]

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold; the mass left out widens both tails."""
        k, at = hit(self.knots, c)
        first, size = self._starts[k], len(self.p)
        after = self._starts[k + 1] if at else first
        p_above, p_below, q_above, q_below = self._sums
        return ThresholdMasses(
            p_above[size - after],
            sum(self.p[first:after], arb(0)),
            p_below[first],
            q_above[size - after],
            sum(self.q[first:after], arb(0)),
            q_below[first],
        )


class FiniteSource:
    """Steps with finitely many losses; see `pyengine.reference.atomic.law.Source`.

    ``parts`` are functions that return masses at the working precision, and numbers of steps.
    """

    certified = True

    def __init__(self, parts: list[tuple[Callable[[], Masses], int]]) -> None:
        self.parts = parts

    def bits(self, depth: float, variant: int) -> int:  # noqa: ARG002 - there is one
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 80

    def law(self, depth: float = 0.0, variant: int = 0) -> ComposedAtoms:  # noqa: ARG002
        """Return the law at the working precision."""
        return _composed([(make(), steps) for make, steps in self.parts])

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""
        low = high = arb(0)
        for make, steps in self.parts:
            one = make()
            losses = [(q / p).log() for p, q in zip(one.p, one.q, strict=True)]
            wide = arb("inf") if one.lost > 0 else arb(0)
            low += steps * min(losses, key=arb.mid, default=arb(0)) - wide
            high += steps * max(losses, key=arb.mid, default=arb(0)) + wide
        return low, high

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        keep_p = keep_q = arb(1)
        for make, steps in self.parts:
            one = make()
            keep_p *= (1 - one.only_p) ** steps
            keep_q *= (1 - one.only_q) ** steps
        return 1 - keep_p, 1 - keep_q


def _composed(parts: list[tuple[Masses, int]]) -> ComposedAtoms:
    """Return the atoms of a composition, from masses and numbers of steps."""
    p, q = [arb(1)], [arb(1)]
    keep_p, keep_q, lost = arb(1), arb(1), arb(0)
    for one, steps in parts:
        new_p, new_q = _powers(one, steps)
        if len(p) * len(new_p) > MOST_ATOMS and len(p) > 1:
            raise AccuracyError(
                f"the composition has more than {MOST_ATOMS} different losses; fewer steps, or "
                "fewer kinds of steps, have less"
            )
        p = [a * b for a in p for b in new_p]
        q = [a * b for a in q for b in new_q]
        keep_p *= (1 - one.only_p) ** steps
        keep_q *= (1 - one.only_q) ** steps
        lost += steps * one.lost
    losses = [(b / a).log() for a, b in zip(p, q, strict=True)]
    order = sorted(range(len(p)), key=lambda i: losses[i].mid())
    p, q, losses = ([row[i] for i in order] for row in (p, q, losses))
    return ComposedAtoms(p, q, losses, 1 - keep_p, 1 - keep_q, lost)


def _powers(one: Masses, steps: int) -> tuple[list[arb], list[arb]]:
    """Return the masses under P and Q of all sums of losses of equal steps."""
    kinds = len(one.p)
    if kinds == 0:
        return [], []
    if one.lattice:
        if (kinds - 1) * steps > MOST_DEGREE:
            raise AccuracyError(f"the composition has more than {MOST_DEGREE} different losses")
        p, q = arb_poly(one.p) ** steps, arb_poly(one.q) ** steps
        return list(p.coeffs()), list(q.coeffs())
    if math.comb(steps + kinds - 1, kinds - 1) > MOST_ATOMS:
        raise AccuracyError(
            f"{steps} steps with {kinds} losses that lie on no lattice have more than "
            f"{MOST_ATOMS} different sums; fewer steps have less"
        )
    rows = [(arb(1), arb(1), steps)]
    for a, b in zip(one.p[:-1], one.q[:-1], strict=True):
        powers_a, powers_b = _powers_of(a, steps), _powers_of(b, steps)
        rows = [
            (x * ways * powers_a[k], y * ways * powers_b[k], left - k)
            for x, y, left in rows
            for k, ways in enumerate(_binomials(left))
        ]
    last_a, last_b = _powers_of(one.p[-1], steps), _powers_of(one.q[-1], steps)
    return [x * last_a[n] for x, _, n in rows], [y * last_b[n] for _, y, n in rows]


def _powers_of(x: arb, most: int) -> list[arb]:
    return [x**k for k in range(most + 1)]


def _binomials(n: int) -> list[fmpz]:
    row = [fmpz(1)]
    for k in range(n):
        row.append(row[-1] * (n - k) // (k + 1))
    return row
