"""Laws with knots composed with finite steps, and with sampled Laplace steps of another kind.

Both condition on the loss x of the first part: the masses at c are a sum over its atoms, and an
integral over its density, of the masses of the rest at c - x.
"""

from __future__ import annotations

from itertools import pairwise

from flint import arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.law import AtomicLaw, Source, ThresholdMasses, grouped
from pyengine.reference.atomic.legendre_pieces import Pieces, PiecesSource
from pyengine.reference.atomic.sums import ComposedAtoms, FiniteSource
from pyengine.reference.balls import spread

__all__ = ["JoinedSource", "MixedSource"]

MOST_KNOTS = 200_000
MOST_VALUES = 300_000  # evaluations of the rest for one threshold, times their cost


class MixedSource:
    """The law of finite steps and a rest; see `pyengine.reference.atomic.law.Source`."""

    def __init__(self, finite: FiniteSource, rest: Source) -> None:
        self.finite, self.rest = finite, rest
        self.certified = rest.certified

    def bits(self, depth: float, variant: int) -> int:
        """Return the working precision for a depth in decimal digits."""
        return self.rest.bits(depth, variant)

    def law(self, depth: float, variant: int) -> AtomicLaw:
        """Return the law at the working precision."""
        rest = self.rest.law(depth, variant)
        finite = self.finite.law()
        _check(len(finite.p) * len(rest.knots), len(finite.p) * rest.cost)
        return AtomMixture(finite, rest)

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""
        one, two = self.finite.ends(), self.rest.ends()
        return one[0] + two[0], one[1] + two[1]

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return self.finite.infinite()


def _check(knots: int, values: float) -> None:
    if knots > MOST_KNOTS:
        raise AccuracyError(
            f"the composition has {knots} atoms, at most {MOST_KNOTS} are feasible; fewer steps, "
            "or fewer kinds of steps, have less"
        )
    if values > MOST_VALUES:
        raise AccuracyError(
            f"the composition takes sums of {values:.0f} terms, at most {MOST_VALUES} are "
            "feasible; fewer steps, or fewer kinds of steps, take less"
        )


class AtomMixture:
    """The law of finite steps and a rest, by a sum over the atoms of the finite steps."""

    def __init__(self, finite: ComposedAtoms, rest: AtomicLaw) -> None:
        self.finite, self.rest = finite, rest
        self.cost = len(finite.p) * rest.cost

    @cached_property
    def knots(self) -> list[arb]:
        """Places of atoms and kinks."""
        return grouped(x + loss for loss in self.finite.losses for x in self.rest.knots)

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        finite = self.finite
        total = [arb(0)] * 6
        for p, q, loss in zip(finite.p, finite.q, finite.losses, strict=True):
            _add(total, self.rest.masses(c - loss), p, q)
        lost = spread(finite.lost)
        p_above, p_at, p_below, q_above, q_at, q_below = total
        return ThresholdMasses(
            p_above + lost,
            p_at,
            p_below + lost + finite.only_p,
            q_above + lost + finite.only_q,
            q_at,
            q_below + lost,
        )


class JoinedSource:
    """The law of sampled Laplace steps of one kind and a rest; an estimate.

    See `pyengine.reference.atomic.law.Source`.
    """

    certified = False

    def __init__(self, first: PiecesSource, rest: Source) -> None:
        self.first, self.rest = first, rest

    def bits(self, depth: float, variant: int) -> int:
        """Return the working precision for a depth in decimal digits."""
        return max(self.first.bits(depth, variant), self.rest.bits(depth, variant))

    def law(self, depth: float, variant: int) -> AtomicLaw:
        """Return the law at the working precision."""
        rest = self.rest.law(depth, variant)
        steps, knots = self.first.pieces, len(rest.knots)
        order = self.first.order(depth, variant)
        _check((steps + 1) * knots, (steps + knots) * order * rest.cost)
        return Joined(self.first.law(depth, variant), rest)

    def ends(self) -> tuple[arb, arb]:
        """Return the smallest and the largest loss."""
        one, two = self.first.ends(), self.rest.ends()
        return one[0] + two[0], one[1] + two[1]

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return self.rest.infinite()


class Joined:
    """The law of sampled Laplace steps and a rest: a sum over atoms and an integral over pieces.

    The integral is split at the knots of the rest, with Gauss's rule of the pieces on each part.
    """

    def __init__(self, first: Pieces, rest: AtomicLaw) -> None:
        self.first, self.rest = first, rest
        self.cost = (first.pieces + len(rest.knots)) * first.order * rest.cost

    @cached_property
    def knots(self) -> list[arb]:
        """Places of atoms and kinks."""
        return grouped(x + y for x in self.first.knots for y in self.rest.knots)

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        first = self.first
        total = [arb(0)] * 6
        for p, q, knot in zip(*first.atoms, first.knots, strict=True):
            _add(total, self.rest.masses(c - knot), p, q)
        for j in range(first.pieces):
            for low, high in self._parts(j, c):
                for s, weight in first.nodes:
                    place = low + (high - low) * s
                    scale = weight * (high - low)
                    there = self.rest.masses(c - first.start - (j + place) * first.width)
                    p, q = (density * scale for density in first.densities(j, place))
                    _add(total, there, p, q)
        return ThresholdMasses(*total)

    def _parts(self, j: int, c: arb) -> list[tuple[arb, arb]]:
        """Return the parts of [0, 1] of piece j, split where c - loss is a knot of the rest."""
        first = self.first
        places = [(c - knot - first.start) / first.width - j for knot in self.rest.knots]
        inside = [place for place in reversed(places) if 0 < place < 1]
        ends = [arb(0), *inside, arb(1)]
        return list(pairwise(ends))


def _add(total: list[arb], point: ThresholdMasses, p: arb, q: arb) -> None:
    for k, mass in enumerate(point):
        if mass != 0:
            total[k] += (p if k < 3 else q) * mass
