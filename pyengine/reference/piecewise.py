"""The law of sampled Laplace steps, piece by piece in Legendre polynomials.

With P the law without the record, a step has loss L = log(1 - p + p exp(l)), where l is the loss
of the plain Laplace step: atoms at both ends a < b of the range of L, and a smooth density between.
So the total loss of n steps, less n a, has atoms at multiples of D = b - a, and a density that is
analytic between them.  One more step takes the density on [jD, (j+1)D] to

    A_a f_j + A_b f_(j-1) + (part of g * f_j) + (part of g * f_(j-1)) + atoms times g,

which is a fixed linear map of the values at the nodes of two neighbouring pieces: all pieces and
all steps share two matrices.  All terms are positive.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, arb_mat

from pyengine.reference.balls import exact

__all__ = ["Pieces"]


class Pieces:
    """Tails of the total loss under P and Q, in one discretisation.

    Parameters
    ----------
    noise, probability : float or Fraction
        Of every step; probability in (0, 1).
    steps : int
        Number of steps.
    order : int
        Number of nodes on a piece.
    """

    def __init__(
        self, noise: float | Fraction, probability: float | Fraction, steps: int, order: int
    ) -> None:
        self.steps, self.order = steps, order
        mu, self.p = 1 / exact(noise), exact(probability)
        self.rest = exact(1 - Fraction(probability))
        self.mu = mu
        low = (self.rest + self.p * (-mu).exp()).log()
        high = (self.rest + self.p * mu.exp()).log()
        self.low, self.width = low, high - low
        self.start = steps * low
        self.nodes = [arb.legendre_p_root(order, k, weight=True) for k in range(order - 1, -1, -1)]
        atom_low, atom_high = arb(1) / 2, (-mu).exp() / 2
        same, before = self._maps()
        points = [self._point(x) for x, _ in self.nodes]
        step_density = arb_mat(order, 1, [self._density(s) for s in points])
        atoms = [arb(1)]
        pieces = arb_mat(order, 0)
        for n in range(steps):
            columns = [pieces[i, j] for i in range(order) for j in range(n)]
            here = arb_mat(order, n + 1, _padded(columns, order, n, after=True))
            left = arb_mat(order, n + 1, _padded(columns, order, n, after=False))
            row = arb_mat(1, n + 1, atoms)
            pieces = atom_low * here + atom_high * left + same * here + before * left
            pieces += step_density * row
            atoms = [
                (atom_low * atoms[j] if j <= n else arb(0))
                + (atom_high * atoms[j - 1] if j > 0 else arb(0))
                for j in range(n + 2)
            ]
        self._finish(pieces, atoms, points)

    def _point(self, x: arb) -> arb:
        return (1 + x) / 2

    def _density(self, s: arb) -> arb:
        """Return the density of (L - a) / D at s in (0, 1), under P."""
        grown = (self.low + s * self.width).exp()
        excess = grown - self.rest
        odds = excess / self.p  # exp(l)
        return self.width * grown / excess / (odds.sqrt() * (self.mu / 2).exp() * 4)

    def _maps(self) -> tuple[arb_mat, arb_mat]:
        """Return the maps of node values on a piece, and on the one before it, by convolution."""
        order = self.order
        at_nodes = [_legendre(x, order) for x, _ in self.nodes]
        self._inverse = arb_mat(
            order,
            order,
            [
                (2 * k + 1) * weight * row[k] / 2
                for k in range(order)
                for row, (_, weight) in zip(at_nodes, self.nodes, strict=True)
            ],
        )
        self._series: dict[tuple[str, int], list[arb]] = {}
        same, before = [], []
        for x, _ in self.nodes:
            s = self._point(x)
            same.append(self._moments(s, arb(0), s))
            before.append(self._moments(1 + s, s, arb(1)))
        flat_same = [value for row in same for value in row]
        flat_before = [value for row in before for value in row]
        return (
            arb_mat(order, order, flat_same) * self._inverse,
            arb_mat(order, order, flat_before) * self._inverse,
        )

    def _moments(self, s: arb, start: arb, stop: arb) -> list[arb]:
        """Return the integrals of g(y) P_k(2 (s - y) - 1) over start < y < stop, all k."""
        half = (stop - start) / 2
        factors, rows = [], []
        for x, weight in self.nodes:
            y = start + half * (1 + x)
            factors.append(half * weight * self._density(y))
            rows += _legendre(2 * (s - y) - 1, self.order)
        product = arb_mat(1, self.order, factors) * arb_mat(self.order, self.order, rows)
        return list(product.entries())

    def _finish(self, pieces: arb_mat, atoms: list[arb], points: list[arb]) -> None:
        """Keep masses of atoms and pieces, and node values, under P and Q."""
        self.atoms_p = atoms
        self.atoms_q = [mass * (self.start + j * self.width).exp() for j, mass in enumerate(atoms)]
        n, order = self.steps, self.order
        self.values_p = [[pieces[i, j] for i in range(order)] for j in range(n)]
        self.values_q = [
            [
                value * (self.start + (j + s) * self.width).exp()
                for value, s in zip(row, points, strict=True)
            ]
            for j, row in enumerate(self.values_p)
        ]
        self.masses_p = [self._integral(row) for row in self.values_p]
        self.masses_q = [self._integral(row) for row in self.values_q]

    def _integral(self, row: list[arb]) -> arb:
        return sum((v * w for v, (_, w) in zip(row, self.nodes, strict=True)), arb(0)) / 2

    def _part(self, law: str, piece: int, s: arb) -> arb:
        """Return the integral over the first part, up to s, of a piece."""
        found = self._series.get((law, piece))
        if found is None:
            row = (self.values_p if law == "p" else self.values_q)[piece]
            column = self._inverse * arb_mat(self.order, 1, row)
            found = self._series[law, piece] = column.entries()
        at = _legendre(2 * s - 1, self.order + 1)
        total = found[0] * s
        for k in range(1, self.order):
            total += found[k] * (at[k + 1] - at[k - 1]) / (2 * k + 1) / 2
        return total

    def tails(self, c: arb) -> tuple[arb, arb, arb, arb]:
        """Return P(S > c), P(S <= c), Q(S > c), Q(S <= c) for c between knots."""
        place = (c - self.start) / self.width
        j = int(float(place.mid()) // 1)
        if j < 0 or j >= self.steps:
            inside = [sum(self.atoms_p, arb(0)) + sum(self.masses_p, arb(0))]
            inside.append(sum(self.atoms_q, arb(0)) + sum(self.masses_q, arb(0)))
            zero = arb(0)
            if j < 0:
                return inside[0], zero, inside[1], zero
            return zero, inside[0], zero, inside[1]
        part_p = self._part("p", j, place - j)
        part_q = self._part("q", j, place - j)
        return (
            self.above("p", j + 1, closed=True) + self.masses_p[j] - part_p,
            self.below("p", j, closed=True) + part_p,
            self.above("q", j + 1, closed=True) + self.masses_q[j] - part_q,
            self.below("q", j, closed=True) + part_q,
        )

    def above(self, law: str, knot: int, *, closed: bool) -> arb:
        """Return the mass above a knot, with its atom if closed."""
        atoms, masses = self._of(law)
        first = knot if closed else knot + 1
        return sum(atoms[first:], arb(0)) + sum(masses[knot:], arb(0))

    def below(self, law: str, knot: int, *, closed: bool) -> arb:
        """Return the mass below a knot, with its atom if closed."""
        atoms, masses = self._of(law)
        stop = knot + 1 if closed else knot
        return sum(atoms[:stop], arb(0)) + sum(masses[:knot], arb(0))

    def _of(self, law: str) -> tuple[list[arb], list[arb]]:
        if law == "p":
            return self.atoms_p, self.masses_p
        return self.atoms_q, self.masses_q

    def knot(self, j: int) -> arb:
        """Return the loss at a knot."""
        return self.start + j * self.width


def _legendre(x: arb, count: int) -> list[arb]:
    """Return P_0(x), P_1(x), ..."""
    values = [arb(1), x]
    for k in range(1, count - 1):
        values.append(((2 * k + 1) * x * values[k] - k * values[k - 1]) / (k + 1))
    return values[:count]


def _padded(entries: list[arb], rows: int, columns: int, *, after: bool) -> list[arb]:
    """Return the entries of a matrix with a column of zeros put before or after the others."""
    result = []
    for i in range(rows):
        row = entries[i * columns : (i + 1) * columns]
        result += [*row, arb(0)] if after else [arb(0), *row]
    return result
