"""Audit of the rows of smooth steps beside steps of few losses, in ball arithmetic.

    python tools/audit_products.py --sums 20000 --seed 1

Random smooth steps (plain and sampled Gaussian noise, groups, mixtures, truncated samples, batches
of fixed size) stand beside one or two kinds of randomized response, probability vectors or the
generic mechanism, whose exact masses are composed here as fractions of balls.  Of every row of
``engines/product.py`` it is asked whether the masses and losses of the few, the thresholds of the
smooth steps (on both sides), and the sums over the few of bounds of the smooth steps are within
what is claimed for them; where the smooth steps are plain noise, whose tails are normal, also each
of those bounds, and the whole functional.  A sum is outside where a ball lies beyond its bound.
Needs python-flint.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from audit_sums import Counts
from flint import arb, ctx, fmpq
from mixture_contour import fixed, group, mixture, plain, sampled, truncated

import pyengine as pe
from pyengine.engines.declared.contours import CertifiedEngine
from pyengine.engines.declared.products import ProductEngine
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, PROFILE
from pyengine.engines.problem import Problem
from pyengine.engines.product import ALL, FALLING, OF_B, TINY, ProductSide
from pyengine.engines.row_bounds import SLACK

BITS = 320  # losses of the generic mechanism are known to 190
THRESHOLDS = 6  # of one composition and functional
DEEPEST = -80.0  # log of a tail that places a threshold
SMOOTH = (plain, plain, sampled, group, mixture, truncated, fixed)


class Atom(NamedTuple):
    """One loss of the few with its masses; infinite where a law does not have it."""

    loss: arb
    a: arb
    b: arb


def _ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def _response(rng: np.random.Generator) -> tuple[pe.Mechanism, list[tuple[Any, Any]]]:
    truthful = Fraction(int(rng.integers(51, 99)), 100)
    return pe.RandomizedResponse(truthful), [(truthful, 1 - truthful), (1 - truthful, truthful)]


def _vectors(rng: np.random.Generator) -> tuple[pe.Mechanism, list[tuple[Any, Any]]]:
    size = int(rng.integers(2, 5))
    sides = [[int(x) for x in rng.integers(1, 60, size)] for _ in range(2)]
    p, q = ([Fraction(x, sum(side)) for x in side] for side in sides)
    return pe.from_probabilities(p, q), list(zip(p, q, strict=True))


def _generic(rng: np.random.Generator) -> tuple[pe.Mechanism, list[tuple[Any, Any]]]:
    epsilon, delta = float(rng.uniform(0.01, 3.0)), float(rng.uniform(1e-9, 0.05))
    odds, rest = arb(epsilon).exp(), 1 - arb(delta)
    more, less = rest * odds / (1 + odds), rest / (1 + odds)
    outcomes = [(arb(delta), arb(0)), (more, less), (less, more), (arb(0), arb(delta))]
    return pe.GenericMechanism(epsilon, delta), outcomes


FEW = (_response, _vectors, _generic)


class Few(NamedTuple):
    """Composed steps of few losses: the mechanism, its atoms and the masses that are infinite."""

    mechanism: pe.Mechanism
    atoms: list[Atom]
    lost: tuple[arb, arb]


def composed(rng: np.random.Generator) -> Few:
    """One or two kinds of steps, once to six times, by all ways to choose outcomes."""
    kinds, terms = [], [(arb(1), arb(1))]
    for make in rng.choice(np.array(FEW, dtype=object), int(rng.integers(1, 3))):
        step, outcomes = make(rng)
        number = int(rng.integers(1, 7 if len(outcomes) == 2 else 3))
        kinds.append(step.composed(number))
        sides = [tuple(x if isinstance(x, arb) else _ball(x) for x in row) for row in outcomes]
        power = list(_power(sides, number))
        terms = [(a * c, b * d) for (a, b), (c, d) in itertools.product(terms, power)]
    atoms = [Atom((b / a).log(), a, b) for a, b in terms if not (a == 0 or b == 0)]
    lost = (
        sum((a for a, b in terms if b == 0), arb(0)),
        sum((b for a, b in terms if a == 0), arb(0)),
    )
    return Few(pe.compose(*kinds), atoms, lost)


def _power(sides: list[tuple[Any, ...]], number: int) -> Iterator[tuple[arb, arb]]:
    """Masses of all multisets of outcomes."""
    for chosen in itertools.combinations_with_replacement(range(len(sides)), number):
        counts = [chosen.count(i) for i in range(len(sides))]
        ways = math.factorial(number) // math.prod(map(math.factorial, counts))
        both = []
        for law in (0, 1):
            mass = arb(ways)
            for side, count in zip(sides, counts, strict=True):
                mass *= side[law] ** count
            both.append(mass)
        yield both[0], both[1]


def _above(x: arb) -> arb:
    """The normal tail beyond x."""
    return (x / arb(2).sqrt()).erfc() / 2


def plain_values(mu: arb, c: arb) -> list[arb]:
    """All functionals of plain noise at a threshold of its loss: normal distribution functions."""
    z = c / mu + mu / 2
    below, above = _above(-z), _above(z)
    of_b, rest = _above(z - mu), _above(mu - z)
    values = {A_ABOVE: above, A_BELOW: below, B_ABOVE: of_b, PROFILE: below - (-c).exp() * rest}
    return [values.get(which, rest) for which in ALL]


class Audit:
    """Counts of sums over the few, and of the numbers that they are made of."""

    def __init__(self, *, silent: bool = False) -> None:
        self.sums, self.parts = Counts(silent=silent), Counts(silent=silent)
        self.left_out = 0

    def row(self, side: ProductSide, truth: Truth, functional: int, c: float) -> None:
        """One row, and all that stands behind it."""
        at = np.array([c])
        where = f"{truth.where}, functional {functional} at {c!r}"
        asked = [side._asked(at, sign)[0] for sign in (-1.0, 1.0)]
        found = [side._at(functional, at, sign) for sign in (-1.0, 1.0)]
        bounds = side._bounds(functional, at)[0]
        for i, atoms in enumerate(truth.groups):
            for atom in atoms:
                exact, middle = arb(c) - atom.loss, (asked[0][i] + asked[1][i]) / 2.0
                reach = (asked[1][i] - asked[0][i]) / 2.0
                self.parts.judge(_size(exact - arb(middle)), reach, f"{where}: threshold {i}")
        for which in ALL:
            ends = (1, 0) if which in FALLING else (0, 1)
            self._sums(side, truth, which, [found[k][which] for k in ends], bounds[which], where)
        if truth.mu is not None:
            self._plain(truth, asked, found, bounds, c, where)

    def _sums(
        self, side: ProductSide, truth: Truth, which: int, rows: Any, bounds: Any, where: str
    ) -> None:
        """Sums of the smooth steps' bounds, as they were given, with the exact masses."""
        law = 1 if which in OF_B else 0
        lost = truth.lost_of(which)
        for part, sign in ((0, 1.0), (1, -1.0)):
            logs = rows[part][part][0]
            if not np.isfinite(logs).any():
                continue
            exact = sum(
                (arb(x).exp() * mass for x, mass in zip(logs, truth.masses(law), strict=True)
                 if np.isfinite(x)),
                arb(0),
            )  # fmt: skip
            total = (exact + lost).log()
            if not np.isfinite(bounds[part]):
                continue
            if part == 1 and bounds[1] == 0.0:  # a probability is at most 1
                continue
            # by how much the bound was moved, and by how much it had to be
            own = float(side._mean(which, rows[part][part])[0])
            claimed = 2.0 * side._error + SLACK * (side._loss.size + abs(own))
            missed = _size(exact.log() - arb(own))
            beyond = sign * (arb(bounds[part]) - total) > 0
            tiny = own < math.log(TINY) + 40.0
            share = math.inf if beyond else missed if not tiny else 0.0
            self.sums.judge(share, claimed, f"{where}: sum of functional {which}, part {part}")

    def _plain(
        self, truth: Truth, asked: Any, found: Any, bounds: Any, c: float, where: str
    ) -> None:
        """Every bound of the smooth steps, and the whole functional, by normal tails."""
        assert truth.mu is not None
        for k, thresholds in enumerate(asked):
            for i, threshold in enumerate(thresholds):
                values = plain_values(truth.mu, arb(float(threshold)))
                for which in ALL:
                    low, high = (float(part[0][i]) for part in found[k][which])
                    self._between(
                        self.parts, low, values[which].log(), high, f"{where}: {which}, {i}"
                    )
        totals = [truth.lost_of(which) for which in ALL]
        for atoms in truth.groups:
            for atom in atoms:
                values = plain_values(truth.mu, arb(c) - atom.loss)
                for which in ALL:
                    totals[which] += values[which] * (atom.b if which in OF_B else atom.a)
        for which in ALL:
            low, high = map(float, bounds[which])
            self._between(self.sums, low, totals[which].log(), high, f"{where}: whole {which}")

    def _between(self, counts: Counts, low: float, value: arb, high: float, where: str) -> None:
        """A number between two bounds, beside half of what they are apart."""
        if not (math.isfinite(low) and math.isfinite(high)) or high < -700.0:
            self.left_out += 1
            return
        if high == 0.0:  # which every probability is below
            counts.judge(max(0.0, float((arb(low) - value).upper())), high - low, where)
        else:
            counts.judge(_size(value - (arb(low) + arb(high)) / 2), (high - low) / 2.0, where)


def _size(x: arb) -> float:
    """A bound of a modulus."""
    return float(abs(x).upper())


class Truth:
    """The exact composition of the few, by the engine's atoms."""

    def __init__(self, few: Few, side: ProductSide, mu: arb | None, where: str, swap: bool) -> None:
        self.mu, self.where = mu, where
        atoms = [Atom(-x.loss, x.b, x.a) for x in few.atoms] if swap else few.atoms
        self.lost = few.lost[::-1] if swap else few.lost
        self.groups: list[list[Atom]] = [[] for _ in range(side._loss.size)]
        for atom in atoms:
            self.groups[int(np.abs(side._loss - float(atom.loss)).argmin())].append(atom)

    def masses(self, law: int) -> list[arb]:
        """Of the engine's atoms, under A or B."""
        return [sum((x[1 + law] for x in atoms), arb(0)) for atoms in self.groups]

    def lost_of(self, which: int) -> arb:
        """What infinite losses add to a functional."""
        if which in (A_BELOW, PROFILE):
            return self.lost[0]
        return self.lost[1] if which == B_ABOVE else arb(0)

    def judge_atoms(self, side: ProductSide, counts: Counts) -> None:
        """Masses and losses of the few."""
        for law, logs in ((0, side._log_a), (1, side._log_b)):
            for i, mass in enumerate(self.masses(law)):
                if logs[i] > math.log(TINY):
                    miss = _size(mass.log() - arb(float(logs[i])))
                    claimed = 2.0 * side._error + SLACK * (1.0 + abs(float(logs[i])))
                    counts.judge(miss, claimed, f"{self.where}: mass {i} of law {law}")
        for i, atoms in enumerate(self.groups):
            for atom in atoms:
                miss = _size(atom.loss - (arb(float(side._loss[i])) + arb(float(side._low[i]))))
                counts.judge(miss, float(side._loss_error), f"{self.where}: loss {i}")


def ask(rng: np.random.Generator, audit: Audit) -> None:
    """Rows of one composition in one order."""
    few, make = composed(rng), SMOOTH[int(rng.integers(len(SMOOTH)))]
    kind, order = make(rng), str(rng.choice(["add", "remove"]))
    steps = max(2, kind.steps)
    run = pe.compose(kind.step.composed(steps), few.mechanism)
    parts = ProductEngine._parts(Problem(run, order))
    if parts is None:
        audit.left_out += 1
        return
    sides = [side for side in CertifiedEngine().sides(parts[1]) if side is not None]
    mu = None
    if make is plain:
        shift = kind.pairs[0][2][0][0]  # 1 / noise
        mu = _ball(shift) * arb(steps).sqrt()
    for smooth in sides[:1]:
        side = ProductSide(parts[0], smooth)
        truth = Truth(few, side, mu, f"{run}, {order}", order == "remove")
        truth.judge_atoms(side, audit.parts)
        for functional in (A_ABOVE, A_BELOW, PROFILE):
            targets = rng.uniform(DEEPEST, -1e-3, THRESHOLDS)
            start = smooth.threshold(functional, targets)
            moved = start + rng.choice(side._loss, THRESHOLDS)
            for c in moved[np.isfinite(moved)]:
                audit.row(side, truth, functional, float(c))


def main() -> int:
    """Print what was found; 1 if a sum or a number is outside of its bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sums", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ctx.prec = BITS
    audit, index = Audit(), 0
    while audit.sums.sums < arguments.sums:
        ask(np.random.default_rng([arguments.seed, index]), audit)
        index += 1
    for name, counts in (("sums over the few", audit.sums), ("numbers behind them", audit.parts)):
        shares = sorted(counts.shares)
        print(
            f"{counts.sums} {name}: {counts.outside} outside; error beside its bound: "
            f"median {shares[len(shares) // 2]:.1e}, largest {shares[-1]:.2g}"
        )
    print(f"of {index} compositions; left out: {audit.left_out} without a bound on both sides")
    return 1 if audit.sums.outside or audit.parts.outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
