"""Compositions of laws: a finite one with any other, and two continuous ones by quadrature."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from flint import arb, ctx

from campaign.truth.atoms import Atoms
from campaign.truth.law import Law, Parts, added_ends

__all__ = ["Product", "TwoSteps"]


def added(first: Parts, second: Parts) -> Parts:
    return Parts(*(x + y for x, y in zip(first, second, strict=True)))


def weighted(a: arb, b: arb, parts: Parts) -> Parts:
    a_above, a_below, b_above, b_below = parts
    return Parts(a * a_above, a * a_below, b * b_above, b * b_below)


class Product(Law):
    """Product of a law of finitely many losses with any law: a finite sum of that law's masses."""

    def __init__(self, atoms: Atoms, law: Law) -> None:
        self.finite, self.law = atoms, law

    def at(self, c: arb) -> Parts:
        a_alone, b_alone = self.finite.infinite()
        below, above = self.law.infinite()
        # loss -inf takes all of its mass below, loss inf above
        total = Parts(arb(0), a_alone, b_alone, arb(0))
        for loss, (a, b) in zip(self.finite.losses, self.finite.masses, strict=True):
            total = added(total, weighted(a, b, self.law.at(c - loss)))
        del below, above  # they are in the masses of `law` already
        return total

    def span(self) -> tuple[arb, arb]:
        (low, high), (first, last) = self.law.span(), self.finite.span()
        return low + first, high + last

    def infinite(self) -> tuple[arb, arb]:
        pairs = zip(self.finite.infinite(), self.law.infinite(), strict=True)
        below, above = (1 - (1 - x) * (1 - y) for x, y in pairs)
        return below, above

    def unbounded(self) -> tuple[bool, bool]:
        return self.law.unbounded()

    def ends(self) -> tuple[arb | None, arb | None]:
        return added_ends(self.law.ends(), self.finite.ends())


ORDERS = 24, 36
GRADED = 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 28, 36, 46
DEPTH = 40  # halvings of a piece, at most
SHARP = -23  # log10 of the error of a piece relative to the whole


@cache
def rule(order: int, bits: int) -> list[tuple[arb, arb]]:
    """Nodes and weights of the Gauss-Legendre rule on [-1, 1] at a working precision."""
    assert bits == ctx.prec
    found = [arb.legendre_p_root(order, k, weight=True) for k in range(order)]
    return [(node.mid(), weight.mid()) for node, weight in found]


class TwoSteps(Law):
    """Product of two continuous laws: integrals over either one's line, adaptively.

    Both orders of integration are computed, whose nodes have nothing in common. Each mass is the
    ball that holds both results with the errors expected from two Gauss-Legendre rules: an
    estimate, not a proof.
    """

    def __init__(self, first: Law, second: Law) -> None:
        self.first, self.second = first, second
        self._orders = _Integral(first, second), _Integral(second, first)
        self._known: dict[tuple[int, int], Parts] = {}

    def at(self, c: arb) -> Parts:
        if not c.is_exact():
            return self._masses(c)
        mantissa, exponent = c.man_exp()
        key = int(mantissa), int(exponent)
        if key not in self._known:
            self._known[key] = self._masses(c)
        return self._known[key]

    def _masses(self, c: arb) -> Parts:
        both = (order.masses(c) for order in self._orders)
        return Parts(*(x.union(y) for x, y in zip(*both, strict=True)))

    def span(self) -> tuple[arb, arb]:
        (low, high), (first, last) = self.first.span(), self.second.span()
        return low + first, high + last

    def infinite(self) -> tuple[arb, arb]:
        pairs = zip(self.first.infinite(), self.second.infinite(), strict=True)
        below, above = (1 - (1 - x) * (1 - y) for x, y in pairs)
        return below, above

    def unbounded(self) -> tuple[bool, bool]:
        (a, b), (c, d) = self.first.unbounded(), self.second.unbounded()
        return a or c, b or d

    def ends(self) -> tuple[arb | None, arb | None]:
        return added_ends(self.first.ends(), self.second.ends())


class _Integral:
    """Masses of a product of two laws by integrals over the line of the first."""

    def __init__(self, first: Law, second: Law) -> None:
        self.first, self.second = first, second

    def masses(self, c: arb) -> Parts:
        total = Parts(arb(0), arb(0), arb(0), arb(0))
        for a, b, loss in self.first.atoms():
            total = added(total, weighted(a, b, self.second.at(c - loss)))
        # where the second law's masses change, however fast: its loss may vary over 1e-9 only
        passed = [self.second.point(x).loss for x in self._resolved()]
        splits = [self.first.place(c - loss) for loss in (*self.second.kinks(), *passed)]
        points = [x.mid() for x in splits if x is not None]
        pending: list[tuple[arb, arb, int]] = []
        for low, high in self.first.pieces():
            low, high = low.mid(), high.mid()
            cuts = sorted({low, high, *(x for x in points if low < x < high)}, key=float)
            for left, right in pairwise(cuts):
                number = max(1, int(float(right - left) / 6) + 1)
                width = (right - left) / number
                pending += [
                    ((left + width * i).mid(), (left + width * (i + 1)).mid(), 0)
                    for i in range(number)
                ]
        coarse = [self._integral(c, left, right, 8) for left, right, _ in pending]
        rough = total
        for parts in coarse:
            rough = added(rough, parts)
        small = arb(10) ** SHARP
        while pending:
            left, right, depth = pending.pop()
            if self._negligible(c, left, right, rough, small):
                total = Parts(
                    *(
                        t + arb(0, (r * small).abs_upper())
                        for t, r in zip(total, rough, strict=True)
                    )
                )
                continue
            few, many = (self._integral(c, left, right, order) for order in ORDERS)
            errors = [abs(x - y).mid() for x, y in zip(few, many, strict=True)]
            fine = all(
                bool(error <= (r * small).mid()) for error, r in zip(errors, rough, strict=True)
            )
            if fine or depth >= DEPTH:
                total = Parts(
                    *(t + m + arb(0, e) for t, m, e in zip(total, many, errors, strict=True))
                )
                continue
            middle = ((left + right) / 2).mid()
            pending += [(left, middle, depth + 1), (middle, right, depth + 1)]
        return total

    def _resolved(self) -> list[arb]:
        """Points of the second law's line between which its masses are smooth enough."""
        found: list[arb] = []
        for low, high in self.second.pieces():
            for end, sign in ((low.mid(), 1), (high.mid(), -1)):
                steps = [(end + sign * step).mid() for step in GRADED]
                found += [x for x in steps if low.mid() < x < high.mid()]
        return found

    def _integral(self, c: arb, left: arb, right: arb, order: int) -> Parts:
        half, middle = (right - left) / 2, (right + left) / 2
        total = Parts(arb(0), arb(0), arb(0), arb(0))
        for node, weight in rule(order, ctx.prec):
            a, b, loss = self.first.point((middle + half * node).mid())
            width = weight * half
            total = added(total, weighted(a * width, b * width, self.second.at(c - loss)))
        return total

    def _negligible(self, c: arb, left: arb, right: arb, rough: Parts, small: arb) -> bool:
        """Whether a piece cannot matter: densities and masses at its ends and middle are tiny."""
        points = [self.first.point(x) for x in (left, ((left + right) / 2).mid(), right)]
        a = max((p.a.mid() for p in points), key=float) * (right - left)
        b = max((p.b.mid() for p in points), key=float) * (right - left)
        ends = self.second.at(c - points[0].loss), self.second.at(c - points[-1].loss)
        bounds = weighted(
            arb(a),
            arb(b),
            Parts(*(x if x.mid() > y.mid() else y for x, y in zip(*ends, strict=True))),
        )
        return all(
            bool(bound.mid() * 1000 <= (r * small).mid())
            for bound, r in zip(bounds, rough, strict=True)
        )
