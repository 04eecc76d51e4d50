"""Gaussian steps composed with finite steps and with Laplace steps.

What is not Gaussian becomes atoms: finite steps have them, and the density of Laplace steps is
summed by Gauss's rule.  Every quantity of `BallTails` at c is then a sum over atoms of the
Gaussian one at c less the atom's loss.  One inversion serves all these places: on a line with the
tilt of the whole composition, the errors of all terms are small relative to their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.answers import BallAnswer
from pyengine.reference.atomic.legendre_pieces import PiecesSource
from pyengine.reference.atomic.sums import FiniteSource
from pyengine.reference.balls import exact, log_magnitude, precision, spread
from pyengine.reference.cumulants import Cumulants, WeightedLosses
from pyengine.reference.inversion.law import InvertedLaw
from pyengine.reference.recent import Recent
from pyengine.reference.solve import Continuous, Local
from pyengine.reference.tails import BallTails

__all__ = ["SmoothMixture"]

MOST_ATOMS = 40_000
MOST_KEPT = 2
ROUGH = 12.0  # digits of the atoms that plan
LN10 = math.log(10)


@dataclass(frozen=True)
class _FiniteMasses:
    """Masses under P and Q, losses, and what is left out or infinite."""

    p: list[arb]
    q: list[arb]
    losses: list[arb]
    only_p: arb
    only_q: arb
    lost: arb

    def without(self, least: arb) -> _FiniteMasses:
        """Return the atoms of more than so much mass; the others are left out."""
        rows = list(zip(self.p, self.q, self.losses, strict=True))
        kept = [row for row in rows if row[0] > least or row[1] > least]
        small = [row for row in rows if not (row[0] > least or row[1] > least)]
        lost = sum((p for p, _, _ in small), arb(0)) + sum((q for _, q, _ in small), arb(0))
        p, q, losses = ([row[k] for row in kept] for k in range(3))
        return _FiniteMasses(p, q, losses, self.only_p, self.only_q, self.lost + lost)


class MixedLaw:
    """The total loss of Gaussian steps with finite and Laplace ones; see `solve.Law`."""

    def __init__(
        self,
        gaussian: InvertedLaw,
        finite: FiniteSource,
        laplace: list[PiecesSource],
    ) -> None:
        self.gaussian, self.finite, self.laplace = gaussian, finite, laplace
        self._kept: Recent[Local] = Recent(MOST_KEPT)

    def atoms(self, depth: float, variant: int, bits: int) -> _FiniteMasses:
        """Return all that is not Gaussian as atoms."""
        with precision(bits):
            one = self.finite.law()
            p, q, losses = one.p, one.q, one.losses
            for source in self.laplace:
                new = source.law(depth, variant).atoms_and_nodes()
                if len(p) * len(new[0]) > MOST_ATOMS:
                    raise AccuracyError(
                        f"the composition takes sums of {len(p) * len(new[0])} terms, at most "
                        f"{MOST_ATOMS} are feasible; fewer steps, or fewer kinds of steps, take "
                        "less"
                    )
                p = [x * y for x in p for y in new[0]]
                q = [x * y for x in q for y in new[1]]
                losses = [x + y for x in losses for y in new[2]]
            if len(p) > MOST_ATOMS:
                raise AccuracyError(
                    f"the composition takes sums of {len(p)} terms, at most {MOST_ATOMS} are "
                    "feasible; fewer steps, or fewer kinds of steps, take less"
                )
            return _FiniteMasses(p, q, losses, one.only_p, one.only_q, one.lost)

    def _bits(self, depth: float, variant: int) -> int:
        """Return the precision of the atoms for a depth in decimal digits."""
        own = [source.bits(depth, variant) for source in self.laplace]
        return max([int(3.33 * depth) + 120, *own])

    @cached_property
    def cumulants(self) -> Cumulants:
        """Double-precision cumulants that plan."""
        atoms = self.atoms(ROUGH, 0, self._bits(ROUGH, 0))
        log_p = np.array([log_magnitude(p) for p in atoms.p])
        losses = np.array([float(loss.mid()) for loss in atoms.losses])
        inner = self.gaussian.cumulants
        return Cumulants([(inner, 1), (WeightedLosses(log_p, losses), 1)], inner.shift)

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        floor, least = self.gaussian.lowest(), self.finite.ends()[0]
        if floor is None or self.finite.infinite()[0] > 0 or not least.is_finite():
            return None
        return sum((source.ends()[0] for source in self.laplace), floor + least)

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            tail = "q_above" if name == "h_qp" else "p_below"
            name, log_target = tail, min(log_target, -1e-3)
        return arb(self.cumulants.threshold(name, log_target) + self.cumulants.shift)

    def near(self, c: arb, depth: float) -> Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        place = float(c)
        return self._kept.get((place, depth), lambda: self._made(place, depth))

    def _made(self, c: float, depth: float) -> Local:
        cumulants = self.cumulants
        tilt = cumulants.saddle(c - cumulants.shift)
        inner = self.gaussian.cumulants
        middle = arb(inner.mean_variance(tilt)[0] + inner.shift)
        return _MixedLocal(self._sums(c, depth), self.gaussian.around(middle, depth + 3))

    def _sums(self, c: float, depth: float) -> list[_FiniteMasses]:
        """Return the atoms that matter at a threshold, in both variants if there are two."""
        tail, digits = self.cumulants.chernoff(c - self.cumulants.shift), depth / LN10
        sums = []
        for variant in range(2 if self.laplace else 1):
            bits = self._bits(digits + 3, variant)
            atoms = self.atoms(digits + 3, variant, bits)
            with precision(bits):
                log_least = min(0.0, tail, tail + c) - depth - 8
                sums.append(atoms.without(arb(log_least).exp() / len(atoms.p)))
        return sums


class _MixedLocal:
    """Sums over atoms of what Gaussian steps do."""

    def __init__(self, sums: list[_FiniteMasses], local: Local) -> None:
        self.sums, self.local = sums, local
        self.certified = local.certified and len(sums) == 1
        self.bits = local.bits

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold."""
        with precision(self.bits):
            found = [self._at(atoms, c) for atoms in self.sums]
            if len(found) == 1:
                return BallTails(*found[0])
            return BallTails(*(y + spread(10 * (x - y)) for x, y in zip(*found, strict=True)))

    def _at(self, atoms: _FiniteMasses, c: arb) -> list[arb]:
        total = [arb(0)] * 6
        for p, q, loss in zip(atoms.p, atoms.q, atoms.losses, strict=True):
            six = self.local.at(c - loss)
            # P above and below, Q above and below, H(Q || P), H(P || Q)
            total[0] += p * six.p_above
            total[1] += p * six.p_below
            total[2] += q * six.q_above
            total[3] += q * six.q_below
            total[4] += q * six.h_qp
            total[5] += p * six.h_pq
        total[1] += atoms.only_p
        total[5] += atoms.only_p
        total[2] += atoms.only_q
        total[4] += atoms.only_q
        lost = spread(atoms.lost)
        return [value + lost for value in total]


class SmoothMixture(Continuous):
    """Questions on Gaussian steps with others; see `pyengine.reference.answers.Pair`."""

    def __init__(self, law: MixedLaw) -> None:
        super().__init__(law)
        self.mixed = law

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""
        with precision(900):
            free = self.infinite(sign)
            if not exact(1 - alpha) > free:
                return BallAnswer(arb(0) if wanted == "beta" else arb(1), True, None)
        with self._explained():
            return super().trade_off(alpha, sign, wanted, digits)

    def profile(
        self, epsilon: Fraction, sign: int, digits: float, enough: arb | None = None
    ) -> BallAnswer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""
        with self._explained():
            return super().profile(epsilon, sign, digits, enough)

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """Return the epsilon >= 0 where the profile is delta, in (0, profile at 0)."""
        with self._explained():
            return super().epsilon(delta, sign, digits)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what makes a sum over Laplace steps inaccurate."""
        try:
            yield
        except AccuracyError as error:
            if not self.mixed.laplace:
                raise
            raise AccuracyError(
                f"{error}; beside Laplace steps, few or rarely sampled Gaussian steps make the "
                "total loss too uneven, more of them make it smooth"
            ) from None

    def infinite(self, sign: int) -> arb:
        """Return the mass of A where B has none."""
        with precision(900):
            only_p, only_q = self.mixed.finite.infinite()
            return only_p if sign > 0 else only_q
