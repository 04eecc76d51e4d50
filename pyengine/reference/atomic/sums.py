"""Compositions of steps with finitely many losses: exact sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_poly, ctx, fmpz

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.answers import BallAnswer
from pyengine.reference.atomic.finite import Masses
from pyengine.reference.balls import exact, lacking_digits, precision, spread
from pyengine.reference.recent import Recent

__all__ = ["Atoms", "ComposedAtoms", "composed"]

MOST_ATOMS = 400_000
MOST_DEGREE = 3_000_000
ROUNDS = 7
MOST_KEPT = 2


@dataclass
class ComposedAtoms:
    """Atoms in increasing order of loss, and sums over them from both ends."""

    p: list[arb]
    q: list[arb]
    only_p: arb
    only_q: arb
    lost: arb

    def __post_init__(self) -> None:
        self.above_p, self.above_q = _sums(self.p[::-1]), _sums(self.q[::-1])
        self.below_p, self.below_q = _sums(self.p), _sums(self.q)

    @cached_property
    def losses(self) -> list[arb]:
        """Loss log(q/p) of each atom."""
        return [(q / p).log() for p, q in zip(self.p, self.q, strict=True)]


class Atoms:
    """Questions on a composition of finite steps; see `pyengine.reference.answers.Pair`.

    Parameters
    ----------
    parts : list of (callable, int)
        What returns the masses of a step at the working precision, with the number of steps.
    """

    def __init__(self, parts: list[tuple[Callable[[], Masses], int]]) -> None:
        self.parts = parts
        self._kept: Recent[ComposedAtoms] = Recent(MOST_KEPT)

    def _law(self, bits: int) -> ComposedAtoms:
        """Compose at a precision."""
        return self._kept.get(
            bits, lambda: composed([(make(), steps) for make, steps in self.parts])
        )

    def _ask(
        self,
        digits: float,
        question: Callable[[ComposedAtoms], BallAnswer | None],
        enough: arb | None = None,
    ) -> BallAnswer:
        """Raise the precision until the answer has the digits."""
        bits = int(3.33 * digits) + 80
        for _ in range(ROUNDS):
            with precision(bits):
                answer = question(self._law(bits))
                if answer is not None and (
                    lacking_digits(answer.value, digits) <= 0
                    or (enough is not None and answer.value.rad() < enough)
                ):
                    return answer
            bits *= 2
        raise AccuracyError(f"{digits:g} digits were not reached; ask for fewer digits")

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""

        def question(law: ComposedAtoms) -> BallAnswer:
            level, rest = exact(alpha), exact(1 - alpha)
            p, q, above_p, above_q, below_p, below_q = _ordered(law, sign)
            only_p, only_q = (law.only_p, law.only_q) if sign > 0 else (law.only_q, law.only_p)
            size = len(p)
            # j atoms are rejected for sure, the next one in part.
            if alpha <= Fraction(1, 2):
                j = _first(size, lambda k: above_p[k + 1] > level)
            else:
                j = _first(size, lambda k: not below_p[size - k - 1] + only_p > rest)
            if j == size:
                gamma, beta = only_q + above_q[size], arb(0)
                return BallAnswer(gamma if wanted == "gamma" else beta, True, None)
            at = size - 1 - j
            slope = q[at] / p[at]
            # Atoms are sorted by midpoints: those in a wrong order have slopes within their balls.
            close = arb(2) ** (40 - min(ctx.prec, slope.rel_accuracy_bits() + 38))
            lost = spread(law.lost) + spread(close * (only_q + above_q[j] + level * slope))
            if wanted == "gamma":
                value = only_q + above_q[j] + (level - above_p[j]) * slope + lost
            else:
                less = (rest - below_p[at] - only_p) * slope
                value = below_q[at] + less + spread(law.lost) + spread(close * (below_q[at] + less))
                value = value.max(arb(0)) if value.overlaps(arb(0)) else value
            return BallAnswer(value, True, slope.log().mid())

        return self._ask(digits, question)

    def profile(
        self, epsilon: Fraction, sign: int, digits: float, enough: arb | None = None
    ) -> BallAnswer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""

        def question(law: ComposedAtoms) -> BallAnswer:
            scale = exact(epsilon).exp()
            a, b, only = (law.p, law.q, law.only_p) if sign > 0 else (law.q, law.p, law.only_q)
            total = only + spread(law.lost)
            for x, y in zip(a, b, strict=True):
                part = x - scale * y
                if not part < 0:
                    total += part if part > 0 else part.max(arb(0))
            return BallAnswer(total, True, None)

        return self._ask(digits, question, enough)

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """Return the epsilon >= 0 where the profile is delta, in (0, profile at 0)."""

        def question(law: ComposedAtoms) -> BallAnswer | None:
            goal = exact(delta)
            a, b, above_a, above_b, _, _ = _ordered(law, -sign)  # largest log dA/dB last
            # _ordered gives (P, Q) by log dQ/dP for 1: here B plays P and A plays Q.
            a, b, above_a, above_b = b, a, above_b, above_a
            only = law.only_p if sign > 0 else law.only_q
            size = len(a)

            def at(k: int) -> bool:
                """Whether the profile at the loss of the atom k from the top exceeds delta."""
                atom = size - 1 - k
                value = only + above_a[k] - above_b[k] * a[atom] / b[atom]
                return bool(value > goal)

            j = _first(size, at)
            if j == 0:
                return None
            inside = (only + above_a[j] - goal + spread(law.lost)) / above_b[j]
            return BallAnswer(inside.log(), True, None) if inside > 0 else None

        return self._ask(digits, question)

    def infinite(self, sign: int) -> arb:
        """Return the mass of A where B has none."""
        with precision(900):
            law = self._law(900)
            return law.only_p if sign > 0 else law.only_q

    def largest(self, sign: int) -> arb | None:
        """Return the supremum of log dA/dB where it is finite; None if there is none."""
        with precision(900):
            law = self._law(900)
            if law.lost != 0:
                return None
            if sign > 0:
                return (law.p[0] / law.q[0]).log()
            return (law.q[-1] / law.p[-1]).log()


def _ordered(
    law: ComposedAtoms, sign: int
) -> tuple[list[arb], list[arb], list[arb], list[arb], list[arb], list[arb]]:
    """Return A, B by increasing log dB/dA, sums of the k largest and of the k smallest."""
    if sign > 0:
        return law.p, law.q, law.above_p, law.above_q, law.below_p, law.below_q
    return law.q[::-1], law.p[::-1], law.below_q, law.below_p, law.above_q, law.above_p


def _first(size: int, holds: Callable[[int], bool]) -> int:
    """Return the first k in [0, size) where a monotone statement holds, else size."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _sums(values: list[arb]) -> list[arb]:
    result = [arb(0)]
    for value in values:
        result.append(result[-1] + value)
    return result


def composed(parts: list[tuple[Masses, int]]) -> ComposedAtoms:
    """Return the atoms of a composition of finite steps, each with a number of steps."""
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
    order = sorted(range(len(p)), key=lambda i: _loss(p[i], q[i]))
    return ComposedAtoms([p[i] for i in order], [q[i] for i in order], 1 - keep_p, 1 - keep_q, lost)


def _loss(p: arb, q: arb) -> arb:
    return (q / p).mid()


def _powers(one: Masses, steps: int) -> tuple[list[arb], list[arb]]:
    """Return the masses of all sums of losses of equal steps."""
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
