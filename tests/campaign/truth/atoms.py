"""Laws of finitely many losses: every outcome with its masses under A and under B."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from math import comb

from flint import arb

from campaign.truth.law import Law, Parts, Sampled, added_ends, ball

__all__ = ["Atoms", "discrete_gaussian", "discrete_laplace", "pair_of_fractions", "power"]

Outcome = tuple[arb, arb]
Ends = tuple[arb | None, arb | None]


class Atoms(Law):
    """A pair of laws on finitely many outcomes, in any order, with their masses under A and B.

    ``left_out`` bounds the truncated masses; the ends are then those of all finite losses.
    """

    def __init__(
        self, outcomes: Iterable[Outcome], left_out: arb | None = None, ends: Ends | None = None
    ) -> None:
        self.left_out = arb(0) if left_out is None else left_out
        self._ends = ends
        finite, self._a_alone, self._b_alone = [], arb(0), arb(0)
        for a, b in outcomes:
            if a == 0:
                self._b_alone += b
            elif b == 0:
                self._a_alone += a
            else:
                finite.append(((b / a).log(), a, b))
        finite.sort(key=lambda outcome: outcome[0].mid())
        self.losses = [loss for loss, _, _ in finite]
        self._keys = [loss.mid() for loss in self.losses]
        self.masses = [(a, b) for _, a, b in finite]
        rest = arb(0, self.left_out.upper()) if self.left_out > 0 else arb(0)

        def sums(masses: Sequence[arb], first: arb) -> list[arb]:
            return list(accumulate(masses, initial=first + rest))

        self._a_below = sums([a for a, _ in self.masses], self._a_alone)
        self._b_below = sums([b for _, b in self.masses], arb(0))
        self._a_above = sums([a for a, _ in reversed(self.masses)], arb(0))[::-1]
        self._b_above = sums([b for _, b in reversed(self.masses)], self._b_alone)[::-1]

    def at(self, c: arb) -> Parts:
        i = bisect_left(self._keys, c.mid())
        return Parts(self._a_above[i], self._a_below[i], self._b_above[i], self._b_below[i])

    def span(self) -> tuple[arb, arb]:
        if not self.losses:
            return arb(0), arb(0)
        return self.losses[0], self.losses[-1]

    def ends(self) -> Ends:
        return self.span() if self._ends is None else self._ends

    def infinite(self) -> tuple[arb, arb]:
        return self._a_alone, self._b_alone

    def outcomes(self) -> list[Outcome]:
        """All outcomes, including those of infinite loss."""
        alone = [(self._a_alone, arb(0)), (arb(0), self._b_alone)]
        return self.masses + [(a, b) for a, b in alone if a > 0 or b > 0]

    def sampled(self, probability: arb) -> Atoms:
        """The pair (A, (1 - p) A + p B), again as atoms."""
        rest = 1 - probability
        mixed = [(a, rest * a + probability * b) for a, b in self.outcomes()]
        return Atoms(mixed, self.left_out, self._kept(Sampled(self, probability).ends()))

    def times(self, other: Atoms) -> Atoms:
        """The product of two pairs."""
        both = [(a * c, b * d) for a, b in self.outcomes() for c, d in other.outcomes()]
        ends = added_ends(self.ends(), other.ends())
        kept = ends if self.left_out > 0 or other.left_out > 0 else None
        return Atoms(both, self.left_out + other.left_out, kept)

    def _kept(self, ends: Ends) -> Ends | None:
        return ends if self.left_out > 0 else None


def compositions(total: int, parts: int) -> Iterable[tuple[int, ...]]:
    """Ways to write a number as an ordered sum of ``parts`` numbers >= 0."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in compositions(total - first, parts - 1):
            yield (first, *others)


def size_of_power(kinds: int, steps: int) -> int:
    """Number of outcomes that `power` makes."""
    return comb(steps + kinds - 1, kinds - 1)


def power(law: Atoms, steps: int) -> Atoms:
    """The ``steps``-fold product of a pair: one outcome for each set of counts."""
    kinds = law.outcomes()
    if steps == 1 or len(kinds) == 1:
        return law if steps == 1 else Atoms([(kinds[0][0] ** steps, kinds[0][1] ** steps)])
    powers = []
    for a, b in kinds:  # a^n / n! and b^n / n! for all n
        ratios = [(a / n, b / n) for n in range(1, steps + 1)]
        powers.append(
            list(
                accumulate(
                    ratios, lambda x, y: (x[0] * y[0], x[1] * y[1]), initial=(arb(1), arb(1))
                )
            )
        )
    whole = arb.fac_ui(steps)
    outcomes = []
    for counts in compositions(steps, len(kinds)):
        a = b = whole
        for count, table in zip(counts, powers, strict=True):
            a, b = a * table[count][0], b * table[count][1]
        outcomes.append((a, b))
    ends = added_ends(law.ends(), law.ends(), steps - 1) if law.left_out > 0 else None
    return Atoms(outcomes, law.left_out * steps, ends)


def pair_of_fractions(p: Iterable[Fraction], q: Iterable[Fraction]) -> Atoms:
    """Pair of exact probabilities; outcomes of one ratio are put together, exactly."""
    merged: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
    for a, b in zip(p, q, strict=True):
        if a == b == 0:
            continue
        key = b / a if a else None
        old = merged.get(key, (Fraction(0), Fraction(0)))
        merged[key] = (old[0] + a, old[1] + b)
    return Atoms([(ball(a), ball(b)) for a, b in merged.values()])


def discrete_laplace(scale: Fraction, shift: int) -> Atoms:
    """Weights e^(-|k| / scale) around 0 and around ``shift``: shift + 1 different losses."""
    rate = 1 / ball(scale)
    base = (-rate).exp()
    unit = (1 - base) / (1 + base)
    # all k <= 0 have one ratio, and so have all k >= shift
    tail = unit / (1 - base)
    inner = [
        (unit * (-rate * k).exp(), unit * (-rate * (shift - k)).exp()) for k in range(1, shift)
    ]
    far = (-rate * shift).exp()
    return Atoms([(tail, tail * far), *inner, (tail * far, tail)])


def discrete_gaussian(scale: Fraction, shift: int, steps: int = 1) -> Atoms:
    """Weights e^(-k² / (2 scale²)) around 0 and around ``shift``, in ``steps`` repetitions.

    The loss of k is linear in k, so a repetition is described by the sum of its values.
    """
    rate = 1 / (2 * ball(scale) ** 2)
    reach = int(float(scale) * 44) + 2  # mass e^-960 lies beyond
    weights = [(-rate * (k * k)).exp() for k in range(-reach, reach + 1)]
    beyond = (-rate * (reach * reach)).exp() * 4 * (1 + ball(scale))  # above the sum of all others
    total = sum(weights, arb(0)) + arb(0, beyond.upper())
    law = [w / total for w in weights]
    sums = law
    for _ in range(steps - 1):
        sums = _convolved(sums, law)
    first = -reach * steps
    # log dB/dA of a sum s of n values is rate * shift * (2 s - n shift)
    outcomes = [
        (mass, mass * (rate * shift * (2 * (first + i) - steps * shift)).exp())
        for i, mass in enumerate(sums)
    ]
    # B is A shifted; beyond + shift ends where A's window does
    low = (-rate * (max(reach - shift, 0) ** 2)).exp() * 4 * (1 + ball(scale))
    return Atoms(outcomes, low * steps / total, (None, None))


def _convolved(x: list[arb], y: list[arb]) -> list[arb]:
    return [
        sum(
            (x[j] * y[i - j] for j in range(max(0, i - len(y) + 1), min(i + 1, len(x)))),
            arb(0),
        )
        for i in range(len(x) + len(y) - 1)
    ]
