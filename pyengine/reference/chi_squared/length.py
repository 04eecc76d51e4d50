"""Laws of the length of the output, for the relaxed threat model.

P (without the record) and Q (with it) are laws of a distance, squared for Gaussian noise.  The
likelihood ratio increases with it, so a threshold of the loss is one of the distance, and all
answers follow from tails there.  Nothing is proven; each answer is computed twice (see
`pyengine.reference.chi_squared.noncentral`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.law import ThresholdMasses
from pyengine.reference.balls import exact
from pyengine.reference.chi_squared.ncx2 import Curve, proven
from pyengine.reference.chi_squared.noncentral import RUNS, solve, tails

__all__ = ["LengthSource"]

LOWEST = -2000.0  # log of a distance below all relevant ones
LN10 = math.log(10)
MOST_DEPTH = 1500  # decimal digits of tails
SPARE = 160  # working bits beyond those aimed at in an inversion
LOST = 40  # bits that FLINT's 0F1 may lose before the series is summed instead


@dataclass(frozen=True)
class LengthSource:
    """Gaussian noise of some dimension, or Laplace noise, on a Poisson sample.

    ``square`` is the square of the effect mu = sensitivity / (standard deviation or scale); the
    probability lies in (0, 1].  See `pyengine.reference.atomic.law.Source`.
    """

    square: Fraction
    probability: Fraction
    dimension: int
    laplace: bool

    certified = False

    def bits(self, depth: float, variant: int) -> int:
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 20 + SPARE + 16 * variant

    def law(self, depth: float, variant: int) -> LaplaceLength | GaussianLength:
        """Return the law at the working precision."""
        if self.laplace:
            return LaplaceLength(self)
        if depth > MOST_DEPTH:
            raise AccuracyError(f"the answer would take {depth:.0f} digits of tails, too many")
        return GaussianLength(self, depth, RUNS[variant])

    def ends(self) -> tuple[arb, arb]:
        """Return the smallest and the largest loss."""
        mu = self.effect()
        low = -mu if self.laplace else -mu * mu / 2
        return self.loss(low.exp()), self.loss(mu.cosh()) if self.laplace else arb("inf")

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)

    def effect(self) -> arb:
        """Return the effect mu at the working precision."""
        return exact(self.square).sqrt()

    def loss(self, ratio: arb) -> arb:
        """Return the loss on the sample at a place with a likelihood ratio without sampling."""
        p = exact(self.probability)
        return ratio.log() if p == 1 else (p * (ratio - 1)).log1p()

    def ratio(self, loss: arb) -> arb:
        """Return the likelihood ratio without sampling for a loss: the inverse of `loss`."""
        p = exact(self.probability)
        return loss.exp() if p == 1 else loss.expm1() / p + 1

    def masses(self, p: tuple[arb, arb, arb], q: tuple[arb, arb, arb]) -> ThresholdMasses:
        """Return the masses on the sample, from those above, at and below without sampling."""
        share = exact(self.probability)
        mixed = (share * b + (1 - share) * a for a, b in zip(p, q, strict=True))
        return ThresholdMasses(*p, *mixed)


class LaplaceLength:
    """The law for Laplace noise: for distances above mu the loss is constant and the largest.

    See `pyengine.reference.atomic.law.AtomicLaw`.
    """

    cost = 1

    def __init__(self, source: LengthSource) -> None:
        self.source, self.mu, self.knots = source, source.effect(), list(source.ends())

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        low, high = self.knots
        none, most = arb(0), (-self.mu).exp()
        if c < low:
            return self.source.masses((arb(1), none, none), (arb(1), none, none))
        if c > high:
            return self.source.masses((none, none, arb(1)), (none, none, arb(1)))
        atom = most, most * self.mu.cosh()
        if c.overlaps(high):
            p, q = ((none, mass, 1 - mass) for mass in atom)
            return self.source.masses(p, q)
        # the likelihood ratio is exp(-mu) (1 + exp(2 x)) / 2
        x = (2 * self.source.ratio(c) / most - 1).log() / 2
        p_above, q_below = (-x).exp(), most * x.sinh()
        return self.source.masses((p_above, none, -(-x).expm1()), (1 - q_below, none, q_below))


class GaussianLength:
    """The law for Gaussian noise, without atoms; see `pyengine.reference.atomic.law.AtomicLaw`."""

    cost = 1

    def __init__(self, source: LengthSource, depth: float, run: Curve) -> None:
        self.source, self.depth, self.run = source, depth, run
        self.mu, self.half = source.effect(), arb(source.dimension) / 2

    @cached_property
    def knots(self) -> list[arb]:
        """The smallest loss, one in the middle, and one with a negligible mass above it."""
        d, square, depth = (
            self.source.dimension,
            float(self.source.square),
            2 * (50 + LN10 * (self.depth + 20)),
        )
        middle = d + square
        top = d + 4 * square + 4 * depth + 4 * math.sqrt(d * depth)
        losses = [
            self.source.loss((self._log_ratio(arb(x)) - self.mu**2 / 2).exp())
            for x in (middle, top)
        ]
        return [self.source.ends()[0], *losses]

    def _log_ratio(self, x: arb) -> arb:
        """Return the log of the likelihood ratio without sampling, plus mu^2/2."""
        return _0f1(self.half, self.mu**2 * x / 4).log()

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold."""
        ratio = self.source.ratio(c)
        if not ratio > (-(self.mu**2) / 2).exp():
            none = arb(0)
            return self.source.masses((arb(1), none, none), (arb(1), none, none))
        goal, bits = ratio.log() + self.mu**2 / 2, ctx.prec
        if goal.rad() > arb(2) ** ((SPARE - bits) // 2):  # too inexact for the place of a threshold
            return ThresholdMasses(*[arb("nan")] * 6)
        x = self._distance(goal.mid())
        found = [self._tails(x, lam, bits) for lam in (arb(0), exact(self.source.square))]
        p, q = ((above, arb(0), below) for below, above in found)
        return self.source.masses(p, q)

    def _tails(self, x: arb, lam: arb, bits: int) -> tuple[arb, arb]:
        """Return the masses of chi^2_d(lam) below and above x."""
        d = 2 * self.half
        upper = bool(x > d + lam)
        tail = proven(x, d, lam, "sf" if upper else "cdf", bits - SPARE + 20)
        if tail is None:
            return tails(x, d, lam, self.run, bits - SPARE)
        return (1 - tail, tail) if upper else (tail, 1 - tail)

    def _distance(self, goal: arb) -> arb:
        """Return the squared distance where the log likelihood ratio plus mu^2/2 is ``goal``."""
        square, a = self.mu**2 / 4, self.half

        def gap(x: arb, _: int) -> arb:  # at the working precision
            return _0f1(a, square * x).log() - goal

        # log 0F1(; a; z) grows at least like that of a = d/2 beyond z = w² + 2 a w
        w = max(float(goal), 1e-300)
        high = math.log((w * w + 2.0 * float(a) * w + 1e-290) / float(square)) + 5.0
        return solve(gap, LOWEST, high, ctx.prec - SPARE // 2)


def _0f1(a: arb, z: arb) -> arb:
    """0F1(; a; z) for positive arguments; by its series where FLINT's method cancels."""
    found = z.hypgeom_0f1(a)
    if found.rel_accuracy_bits() > ctx.prec - LOST:
        return found
    term = total = arb(1)
    for k in range(1, 1_000_000):
        term = term * z / (k * (a + k - 1))
        total += term
        if term < total * arb(2) ** -ctx.prec:
            return total
    raise AccuracyError("a likelihood ratio has too many terms; take a smaller effect")
