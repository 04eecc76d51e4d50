"""The law of equal sampled Laplace steps, by a polynomial on each piece of its density.

A step has loss L = log(1 - p + p exp(l)), where l is the loss of the Laplace step without sampling.
Under P (without the record), L has atoms at both ends a < b of its range and a smooth density g
between.  So the total loss of n steps, less n a, has atoms at multiples of D = b - a and a density
that is analytic between them: f_j on [jD, (j+1)D].  One more step maps f_j to

    A_a f_j + A_b f_(j-1) + (part of g * f_j) + (part of g * f_(j-1)) + atoms times g,

where A_a and A_b are the atoms of the step.  This is linear in the values of f_j and f_(j-1) at the
nodes, with two matrices that are the same for all pieces and steps.  All terms are positive.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, arb_mat

from pyengine.errors import AccuracyError
from pyengine.reference.atomic.law import ThresholdMasses
from pyengine.reference.balls import Ball, exact

__all__ = ["MOST_PIECES", "Pieces", "PiecesSource"]

MOST_PIECES = 150  # of all steps; above it `pyengine.reference.mixed.many_laplace` answers
MOST_ORDER = 260  # nodes on a piece, which limits the time
SMOOTH = 20.0  # assumed gain of accuracy per node where singularities are far away


class PiecesSource:
    """The law of equal sampled Laplace steps; see `pyengine.reference.atomic.law.Source`.

    The probability lies in (0, 1], or in (0, 1) if ``substituted``: then P is not the law without
    the record but that with another one.
    """

    certified = False

    def __init__(
        self,
        noise: float | Fraction,
        probability: float | Fraction,
        steps: int,
        *,
        substituted: bool = False,
    ) -> None:
        self.noise, self.probability, self.steps = noise, probability, steps
        self.substituted = substituted
        self.pieces = 2 * steps if substituted else steps

    def order(self, depth: float, variant: int = 0) -> int:
        """Return the number of nodes on a piece for a depth in decimal digits.

        The nearest singularity of the density lies left of the piece and sets the ellipse.
        """
        rate = SMOOTH
        away = self.nearest()
        if away < math.inf:
            rate = min(rate, 1 + 2 * away + 2 * (away * (1 + away)) ** 0.5)
        order = int((depth + 6) * 2.303 / math.log(rate)) + 12 if rate > 1 else MOST_ORDER + 1
        if order > MOST_ORDER:
            raise AccuracyError(
                f"{depth:.0f} digits would need polynomials of degree {order} on each piece; "
                "ask for fewer digits or add noise"
            )
        return order + 9 * variant

    def nearest(self) -> float:
        """Return how far left of a piece its density is singular, in widths of a piece."""
        if self.probability == 1:
            return math.inf
        mu, p = 1 / float(self.noise), float(self.probability)
        rest = float(1 - Fraction(self.probability))
        start = rest + p * math.exp(-mu)
        width = mu + math.log((rest * math.exp(-mu) + p) / start)
        return math.log(start / rest) / width

    def bits(self, depth: float, variant: int) -> int:
        """Return the working precision for a depth in decimal digits."""
        # the radii of Legendre recurrences grow by 1.3 bits for each degree
        return int(3.4 * depth) + 90 + 2 * self.order(depth, variant) + 3 * self.steps + 8 * variant

    def law(self, depth: float, variant: int) -> Pieces:
        """Return the law at the working precision."""
        return Pieces(self.step(), self.steps, self.order(depth, variant))

    def step(self) -> SampledStep | SubstitutedStep:
        """Return one step at the working precision."""
        return (SubstitutedStep if self.substituted else SampledStep)(self.noise, self.probability)

    def ends(self) -> tuple[arb, arb]:
        """Return the smallest and the largest loss."""
        step = self.step()
        low = self.steps * step.low
        return low, low + self.pieces * step.width

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)


class SampledStep:
    """One sampled step without and with the record, probability in (0, 1].

    ``low`` is the smallest loss, ``width`` the width of each piece of the density of the loss, and
    ``atoms`` are the masses under P at low, low + width, and so on.
    """

    def __init__(self, noise: float | Fraction, probability: float | Fraction) -> None:
        self.mu, self.p = 1 / exact(noise), exact(probability)
        self.rest = exact(1 - Fraction(probability))
        self.low = (self.rest + self.p * (-self.mu).exp()).log()
        self.width = (self.rest + self.p * self.mu.exp()).log() - self.low
        self.atoms = [arb(1) / 2, (-self.mu).exp() / 2]

    def density(self, piece: int, s: Ball) -> Ball:  # noqa: ARG002 - there is one
        """Return the density of (L - low) / width at s in (0, 1), under P."""
        grown = (self.low + s * self.width).exp()
        excess = grown - self.rest
        odds = excess / self.p  # exp(l)
        return self.width * grown / excess / (odds.sqrt() * (self.mu / 2).exp() * 4)


class SubstitutedStep:
    """One sampled step with one record at -1 or another at 1, in sensitivities; p in (0, 1).

    P = (1 - p) Lap(0) + p Lap(-1), and Q is its mirror image.  The loss is constant below -1 and
    above 1; for 0 < x < 1 it is given by (1 - p + p w) e^L = 1 - p + p w e^(2 mu x), w = exp(-mu).
    """

    def __init__(self, noise: float | Fraction, probability: float | Fraction) -> None:
        mu, self.p = 1 / exact(noise), exact(probability)
        self.rest = exact(1 - Fraction(probability))
        self.w = (-mu).exp()
        self.start = self.rest + self.p * self.w
        self.width = ((self.rest + self.p / self.w) / self.start).log()
        self.low = -self.width
        self.atoms = [(self.rest * self.w + self.p) / 2, arb(0), self.w * self.start / 2]

    def density(self, piece: int, s: Ball) -> Ball:
        """Return the density of L / width + 1 - piece at s in (0, 1), under P."""
        loss = (s if piece else 1 - s) * self.width
        grown = self.start * loss.exp()
        excess = grown - self.rest
        right = self.width * self.start * (self.p * self.w / excess).sqrt() * grown / excess / 4
        # Q's density at a loss is P's at minus that loss.
        return right if piece else right * loss.exp()


class Pieces:
    """The law of the total loss of equal steps under P and Q, with ``order`` nodes on a piece."""

    cost = 1

    def __init__(self, step: SampledStep | SubstitutedStep, steps: int, order: int) -> None:
        self.order = order
        each = len(step.atoms) - 1
        self.pieces = steps * each
        self.width, self.start = step.width, steps * step.low
        self.nodes = _nodes(order)
        self._ratios = _ratios(order + 2)
        self._to_legendre = _to_legendre(self.nodes)
        maps = _maps(step, order)
        densities = [
            arb_mat(order, 1, [step.density(piece, s) for s, _ in self.nodes])
            for piece in range(each)
        ]
        atoms = [arb(1)]
        pieces = arb_mat(order, 0)
        for n in range(steps):
            count = (n + 1) * each
            shifted = [_shifted(pieces, count, k) for k in range(each + 1)]
            new = arb_mat(order, count)
            for k, mass in enumerate(step.atoms):
                new += mass * shifted[k]
            for k, (same, before) in enumerate(maps):
                new += same * shifted[k] + before * shifted[k + 1]
                row = [arb(0)] * k + atoms + [arb(0)] * (each - 1 - k)
                new += densities[k] * arb_mat(1, count, row)
            pieces = new
            atoms = [
                sum(
                    (
                        mass * atoms[j - k]
                        for k, mass in enumerate(step.atoms)
                        if 0 <= j - k <= n * each
                    ),
                    arb(0),
                )
                for j in range(count + 1)
            ]
        self._finish(pieces, atoms)

    def _finish(self, pieces: arb_mat, atoms: list[arb]) -> None:
        """Store atoms, Legendre series of densities and integrals, and masses, under P and Q."""
        n, order = self.pieces, self.order
        self.knots = [self.start + j * self.width for j in range(n + 1)]
        grown = [knot.exp() for knot in self.knots]
        within = [(s * self.width).exp() for s, _ in self.nodes]
        values_q = arb_mat(
            order, n, [pieces[i, j] * grown[j] * within[i] for i in range(order) for j in range(n)]
        )
        self.atoms = atoms, [mass * scale for mass, scale in zip(atoms, grown, strict=True)]
        # Legendre series of the density of s in [0, 1] on each piece, and of its integral from 0
        series = [_columns(self._to_legendre * law) for law in (pieces, values_q)]
        self._densities = [[_column(one) for one in law] for law in series]
        self._integrals = [[_column(_integral(one)) for one in law] for law in series]
        self._below, self._above = [], []
        for law in (0, 1):
            parts = [one[0] for one in series[law]]
            below, above = [arb(0)], [arb(0)]
            for j in range(n):
                below.append(below[-1] + self.atoms[law][j] + parts[j])
                above.append(above[-1] + self.atoms[law][n - j] + parts[n - 1 - j])
            self._below.append(below)
            self._above.append(above[::-1])

    def _legendre(self, s: arb, count: int) -> arb_mat:
        """Return the first ``count`` Legendre polynomials at 2 s - 1, as a row."""
        return arb_mat(1, count, _legendre(2 * s - 1, self._ratios, count))

    def densities(self, j: int, s: arb) -> tuple[arb, arb]:
        """Return the densities of s in [0, 1] on piece j under P and Q."""
        row = self._legendre(s, self.order)
        p, q = self._densities
        return (row * p[j])[0, 0], (row * q[j])[0, 0]

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        place = (c - self.start) / self.width
        j = math.floor(float(place.mid()) + 0.5)
        away = place - j
        if 0 <= j <= self.pieces and away.overlaps(arb(0)):
            return ThresholdMasses(*(mass for law in (0, 1) for mass in self._at(law, j)))
        j = j if away > 0 else j - 1
        row = self._legendre(place - j, self.order + 1) if 0 <= j < self.pieces else None
        return ThresholdMasses(*(mass for law in (0, 1) for mass in self._inside(law, j, row)))

    def _at(self, law: int, j: int) -> tuple[arb, arb, arb]:
        return self._above[law][j], self.atoms[law][j], self._below[law][j]

    def _inside(self, law: int, j: int, row: arb_mat | None) -> tuple[arb, arb, arb]:
        """Return masses above, at and below a point inside piece j.

        ``row`` has the Legendre polynomials there; None for a point outside all pieces.
        """
        below, above, atoms = self._below[law], self._above[law], self.atoms[law]
        if row is None:  # beyond the ends
            if j < 0:
                return above[0] + atoms[0], arb(0), arb(0)
            return arb(0), arb(0), below[-1] + atoms[-1]
        part = (row * self._integrals[law][j])[0, 0]
        upto = below[j] + atoms[j] + part
        return above[j] - part, arb(0), upto


def _maps(step: SampledStep | SubstitutedStep, order: int) -> list[tuple[arb_mat, arb_mat]]:
    """Return two matrices for each piece of a step: convolution with it, on values at the nodes.

    The convolution of two functions on [0, 1] lies on [0, 2].  The first matrix gives it on [0, 1]:
    at s, the integral over y = s (1 - x) with Gauss nodes x, the polynomial taken at s - y = s x.
    The second gives it on [1, 2]: at the node 1 - s there, y = 1 - s (1 - x) and the polynomial is
    taken at 1 - s x, where odd Legendre polynomials have the opposite sign.
    """
    nodes, ratios = _nodes(order), _ratios(order)
    to_legendre = _to_legendre(nodes)
    entries = to_legendre.entries()
    signed = [-x if k // order % 2 else x for k, x in enumerate(entries)]
    pieces = range(len(step.atoms) - 1)
    same, before = ([list[arb]() for _ in pieces] for _ in range(2))
    for s, _ in nodes:
        polynomials = (_legendre(2 * s * x - 1, ratios, order) for x, _ in nodes)
        at = arb_mat(order, order, [value for row in polynomials for value in row])
        for piece in pieces:
            left = [s * weight * step.density(piece, s * (1 - x)) for x, weight in nodes]
            right = [s * weight * step.density(piece, 1 - s * (1 - x)) for x, weight in nodes]
            same[piece] += (arb_mat(1, order, left) * at).entries()
            before[piece] = (arb_mat(1, order, right) * at).entries() + before[piece]
    return [
        (
            arb_mat(order, order, same[piece]) * to_legendre,
            arb_mat(order, order, before[piece]) * arb_mat(order, order, signed),
        )
        for piece in pieces
    ]


def _nodes(order: int) -> list[tuple[arb, arb]]:
    """Return the Gauss-Legendre nodes and weights on [0, 1], in ascending order."""
    return [
        ((1 + x) / 2, weight / 2)
        for x, weight in (
            arb.legendre_p_root(order, k, weight=True) for k in range(order - 1, -1, -1)
        )
    ]


def _ratios(count: int) -> list[tuple[arb, arb]]:
    """Return (2k+1)/(k+1) and k/(k+1), for the recurrence of Legendre polynomials."""
    return [(arb(2 * k + 1) / (k + 1), arb(k) / (k + 1)) for k in range(count)]


def _legendre(x: arb, ratios: list[tuple[arb, arb]], count: int) -> list[arb]:
    """Return P_0(x), ..., P_(count-1)(x); the radii grow by 1.3 bits for each degree."""
    values = [arb(1), x]
    for one, two in ratios[1 : count - 1]:
        values.append(one * x * values[-1] - two * values[-2])
    return values[:count]


def _to_legendre(nodes: list[tuple[arb, arb]]) -> arb_mat:
    """Return the matrix from values at the nodes to the Legendre coefficients in 2 s - 1."""
    order = len(nodes)
    ratios = _ratios(order)
    at_nodes = [_legendre(2 * s - 1, ratios, order) for s, _ in nodes]
    return arb_mat(
        order,
        order,
        [
            (2 * k + 1) * weight * row[k]
            for k in range(order)
            for row, (_, weight) in zip(at_nodes, nodes, strict=True)
        ],
    )


def _column(series: list[arb]) -> arb_mat:
    return arb_mat(len(series), 1, series)


def _columns(matrix: arb_mat) -> list[list[arb]]:
    columns = matrix.ncols()
    entries = matrix.entries()
    return [entries[j::columns] for j in range(columns)]


def _integral(series: list[arb]) -> list[arb]:
    """Return the Legendre series of the integral from 0 to s of a series in 2 s - 1."""
    result = [arb(0)] * (len(series) + 1)
    result[0] += series[0] / 2
    result[1] += series[0] / 2
    for k in range(1, len(series)):
        part = series[k] / (2 * (2 * k + 1))
        result[k + 1] += part
        result[k - 1] -= part
    return result


def _shifted(matrix: arb_mat, columns: int, by: int) -> arb_mat:
    """Return a matrix moved ``by`` columns to the right, padded with zeros to so many columns."""
    own = matrix.ncols()
    before, after = [arb(0)] * by, [arb(0)] * (columns - by - own)
    entries = matrix.entries()
    rows = (entries[i * own : (i + 1) * own] for i in range(matrix.nrows()))
    return arb_mat(matrix.nrows(), columns, [x for row in rows for x in (*before, *row, *after)])
