"""Random allocation of any mechanism: the law of an epoch with a record in some of its steps.

With the ratios Rᵢ = dB/dA of t steps, independent under A, the epoch's pair is that of Aᵗ and of
the mean of the products over all sets of k steps, whose ratio is e_k(R)/C(t, k), the elementary
symmetric polynomial: (R₁ + ... + R_t)/t for k = 1.  If a pair dominates one step, a kernel maps it
to the step, and the kernels of all steps map its epoch to that of the step.  So the epoch of a
dominating pair dominates.

Finitely many ratios: the numbers of steps with each ratio are multinomial, and e_k depends on them
alone (`allocated_finite`).  Otherwise means of ratios are formed by doubling, with cells merged or
split as in `epoch_bounds`, which gives a law below and one above (`OtherEpoch`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from pyengine._support.caches import kept
from pyengine.errors import AccuracyError
from pyengine.laws.base import Cells, EnclosedLaw, Enclosing, FloatArray, StepLaw
from pyengine.laws.epoch_bounds import (
    DEPTH,
    EVEN,
    LEAST_MASS,
    Mean,
    RatioStep,
    means,
    normal_scores,
)
from pyengine.laws.fine import Fine, logarithm
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.rounding import UNIT

__all__ = ["MOST_STATES", "OtherEpoch", "allocated_finite", "allocated_outcomes"]

Outcomes = list[tuple[Fraction, Fraction]]

MOST_STATES = 20_000  # different numbers of steps with each ratio
MOST_BITS = 1 << 27  # of the exact masses of all states
LARGEST_LOSS = 5000.0  # of a ratio that is formed to all digits
BELOW = Decimal("1e-400")  # smaller masses are rounded up to it
FARTHEST, TABLE = 512.0, 4097  # largest |loss| that is used, and points of tables of losses
BEYOND, TOLD = 1e-150, 1e-12  # mass beyond the ends of unbounded losses; most beyond `FARTHEST`
UNDERFLOW = 1e-290  # bound of all masses that underflow together
BINS = 256  # of losses among which nodes are distributed
LEAST_PART, MOST_PART = 0.25, 8.0  # nodes of a bin, relative to the mean
FARTHEST_MIDDLE = 12.0  # largest normal score of B's median under A
EXACT = Fraction(1, 1 << 50)  # relative error of the masses at infinite losses


# Map: random allocation of any mechanism | test_random_steps | theory/allocation
def allocated_outcomes(outcomes: Outcomes, steps: int, selected: int) -> FiniteLaw | None:
    """Return the law of an epoch of steps with exact probabilities; None for too many states.

    Parameters
    ----------
    outcomes : list of (Fraction, Fraction)
        Probability of each outcome without and with the record.
    steps, selected : int
        Number t of steps, and k of those with the record.
    """
    masses: dict[Fraction, Fraction] = {}
    for a, b in outcomes:
        if a:
            masses[b / a] = masses.get(b / a, Fraction(0)) + a
    ratios = sorted(masses)
    known = sum((masses[r] for r in ratios), Fraction(0))
    bottom = math.lcm(*(mass.denominator for mass in masses.values()))
    tops = [int(masses[r] * bottom) for r in ratios]
    states = math.comb(steps + len(ratios) - 1, len(ratios) - 1)
    bits = steps * (bottom.bit_length() + 1)
    if known != 1 or states > MOST_STATES or states * bits > MOST_BITS:
        return None
    whole, sets = bottom**steps, math.comb(steps, selected)
    powers = [_powers(top, steps) for top in tops]
    lost, rows = 0, []
    for ways, numbers in _multinomial(steps, len(ratios)):
        mass = ways
        for n, power in zip(numbers, powers, strict=True):
            mass *= power[n]
        ratio = _symmetric(ratios, numbers, selected) / sets
        if ratio:
            rows.append((ratio, _log_of_quotient(mass, whole)))
        else:
            lost += mass
    b_known = sum((r * mass for r, mass in masses.items()), Fraction(0))
    alone = Fraction(lost, whole), 1 - b_known**selected
    return FiniteLaw.from_atoms(
        [_log(ratio) for ratio, _ in rows],
        [log_a for _, log_a in rows],
        alone,
        digits=lambda: Fine.of([logarithm(ratio) for ratio, _ in rows]),
    )


def _powers(base: int, most: int) -> list[int]:
    powers = [1]
    for _ in range(most):
        powers.append(powers[-1] * base)
    return powers


def _multinomial(total: int, parts: int) -> Iterator[tuple[int, list[int]]]:
    """All counts of the parts that add up to a total, each with its multinomial coefficient."""
    if parts == 1:
        yield 1, [total]
        return
    for first in range(total + 1):
        ways = math.comb(total, first)
        for more, rest in _multinomial(total - first, parts - 1):
            yield ways * more, [first, *rest]


def _symmetric(ratios: list[Fraction], numbers: list[int], selected: int) -> Fraction:
    """Elementary symmetric polynomial of degree k of ratios with multiplicities ``numbers``."""
    if selected == 1:
        return sum((n * r for n, r in zip(numbers, ratios, strict=True)), Fraction(0))
    total = [Fraction(1)] + [Fraction(0)] * selected
    for n, r in zip(numbers, ratios, strict=True):
        part = [math.comb(n, j) * r**j for j in range(min(n, selected) + 1)]
        total = [
            sum((total[i - j] * part[j] for j in range(min(i, n) + 1)), Fraction(0))
            for i in range(selected + 1)
        ]
    return total[selected]


def _log_of_quotient(top: int, bottom: int) -> float:
    """Logarithm of a quotient of integers > 0, to two units of roundoff."""
    if bottom < 2 * top < 4 * bottom:
        return fn.log1p((top - bottom) / bottom)
    shift = top.bit_length() - bottom.bit_length()
    near = top / (bottom << shift) if shift > 0 else (top << -shift) / bottom
    return fn.log(near) + shift * fn.log(2.0)


def _log(ratio: Fraction) -> float:
    return _log_of_quotient(ratio.numerator, ratio.denominator)


def allocated_finite(law: FiniteLaw, steps: int, selected: int) -> FiniteLaw | None:
    """Return the law of an epoch of steps with finitely many losses; None for too many states.

    Parameters
    ----------
    law : FiniteLaw
        The law of one step.
    steps, selected : int
        Number t of steps, and k of those with the record.
    """
    if not law.loss.size:
        return law  # everything is revealed
    none = law.a_infinite > 0.0
    size = law.loss.size + none
    if math.comb(steps + size - 1, size - 1) > MOST_STATES:
        return None
    if np.abs(law.loss).max() > LARGEST_LOSS:
        return None
    fine = law.fine
    losses = [Decimal(x) for x in law.loss.tolist()] if fine is None else list(fine.losses)
    ratios = [Fraction(CONTEXT.exp(x)) for x in losses]
    logs = law.log_a.tolist()
    if none:
        ratios.insert(0, Fraction(0))
        logs.insert(0, fn.log(law.a_infinite))
    sets = math.comb(steps, selected)
    rows = []
    for ways, numbers in _multinomial(steps, size):
        log_a = fn.log_integer(ways) + math.fsum(n * x for n, x in zip(numbers, logs, strict=True))
        ratio = _symmetric(ratios, numbers, selected) / sets
        if ratio:
            rows.append((ratio, log_a))
    losses_off = ROUNDED * float(np.abs(law.loss).max()) + law.loss_error if fine is None else 0.0

    def digits() -> Fine:
        # the log of a mean of products of k ratios moves by at most k times the error of a loss
        assert fine is not None
        return Fine.of([logarithm(r) for r, _ in rows], 1.01 * selected * fine.error)

    made = FiniteLaw.from_atoms(
        [_log(ratio) for ratio, _ in rows],
        [log_a for _, log_a in rows],
        _alone(law, steps, selected),
        1.01 * selected * losses_off,
        digits=None if fine is None else digits,
    )
    depth = 2.0 + max(abs(x) for x in logs)
    off = steps * (law.error + LOG_ERROR * depth) + 4.0 * UNIT * (1.0 + steps * depth)
    return replace(made, error=made.error + off)


def _alone(law: StepLaw, steps: int, selected: int) -> tuple[Fraction, Fraction]:
    """Masses of A and of B alone in an epoch; that of A to 50 digits.

    A is alone if fewer than k steps have outcomes that are possible under B, and B if one of the k
    steps with the record has an outcome that is impossible under A.
    """
    few = law.finite()
    none, told = (few and few.alone) or tuple(map(Fraction, law.infinite()))
    b_alone = 1 - (1 - told) ** selected
    if not none:
        return Fraction(0), b_alone
    lost, share, rest = Decimal(0), as_decimal(none), as_decimal(1 - none)
    for j in range(selected):
        ways = CONTEXT.multiply(math.comb(steps, j), CONTEXT.power(share, steps - j))
        lost = CONTEXT.add(lost, CONTEXT.multiply(ways, CONTEXT.power(rest, j) if j else 1))
    return Fraction(max(lost, BELOW)), b_alone


# (nodes, smallest tolerance that they serve), for epochs of few steps and of more
NODES = ((2**13, 1e-6), (2**14, 0.0)), ((2**12, 1e-3), (2**13, 1e-4), (2**14, 0.0))
FEW_STEPS = 8


@dataclass(frozen=True)
class OtherEpoch(EnclosedLaw):
    """The pair of one epoch with each record in one of its steps, enclosed by two finite ones.

    Parameters
    ----------
    law : StepLaw
        The law of one step.
    steps : int
        Number t of steps, >= 2.
    """

    law: StepLaw
    steps: int

    @property
    def is_bracketed(self) -> bool:
        """True: engines use the enclosing laws."""
        return True

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Two laws with proven errors."""
        rows = NODES[self.steps > FEW_STEPS]
        nodes = next(n for n, width in rows if tolerance is None or width <= tolerance)
        below, above = self.law.enclosed(tolerance)
        found = _enclosed(below, self.steps, nodes)
        if above is below:
            return found
        return found._replace(above=_enclosed(above, self.steps, nodes).above)

    def support(self) -> tuple[float, float]:
        """That of a step; lower by log t if ratios may be 0."""
        low, high = self.law.support()
        return (low - fn.log(self.steps) if self.law.infinite()[0] > 0.0 else low), high


class _LawStep(RatioStep):
    """Likelihood ratio of one step with any law that has cells, on nodes; it may be 0."""

    def __init__(self, law: StepLaw, steps: int) -> None:
        self.law, self._finite, self._none = law, law.finite(), law.infinite()[0]
        grid = np.linspace(-FARTHEST, FARTHEST, TABLE)
        cells = law.cells(grid)
        mass = fn.exp(cells.log_a) + fn.exp(cells.log_b)
        ends: list[float] = []
        self._places: list[float] = []
        for sign, end, beyond in zip((-1.0, 1.0), law.support(), (mass, mass[::-1]), strict=True):
            room = 4.0 * law.support_error() + 1e-12 * min(abs(end), FARTHEST) + 16.0 * UNIT
            if abs(end) < FARTHEST:
                ends.append(end + sign * room)
                self._places += [end + sign * room, end - sign * room]
            else:
                if beyond[0] > TOLD:
                    raise AccuracyError(
                        f"random allocation takes losses up to {FARTHEST:g}, and those of this "
                        f"step go to {abs(end):.3g}: use more noise"
                    )
                out = int(np.searchsorted(np.cumsum(beyond), BEYOND))
                ends.append(-sign * float(grid[max(out - 1, 0)]))
        self._table = np.unique(np.append(np.linspace(ends[0], ends[1], TABLE), self._places))
        cells = law.cells(self._table)
        self._score, of_b = (
            normal_scores(np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:])
            for mass in (fn.exp(cells.log_a), fn.exp(cells.log_b))
        )
        middle = float(np.interp(0.0, of_b, self._score))
        self.mu = min(max(middle, 0.0), FARTHEST_MIDDLE)  # normal score under A of B's median
        self._low = ends[0]  # smallest loss of a single step
        if self._none > 0.0:
            self._places += [ends[0], *_smallest(ends[0], steps)]
            ends[0] = min(self._places)
        self.ends = np.array(ends)

    def _between(self, number: int, score: FloatArray, place: FloatArray) -> FloatArray:
        """Losses of nodes, as dense as `scores` have it, but with limits for each bin of losses."""
        middle = 0.5 * self.mu
        half = EVEN + middle
        low, high = max(score[0], -DEPTH), min(score[-1], DEPTH + self.mu)
        first, last = np.interp([low, high], score, place).tolist()
        x = np.linspace(first, last, BINS + 1)
        z = np.clip(np.interp(x, place, score), low, high) - middle
        size = np.abs(z)
        far = np.sign(z) * half * (2.0 - half / np.maximum(size, half))
        part = np.diff(np.where(size <= half, z, far))
        mean = float(part.mean())
        sums = np.append(0.0, np.cumsum(np.clip(part, LEAST_PART * mean, MOST_PART * mean)))
        return np.asarray(np.interp(np.linspace(0.0, sums[-1], number), sums, x))

    def nodes(self, log_ratio: FloatArray) -> FloatArray:
        """As for a Gaussian step, with nodes on both sides of either end."""
        return super().nodes(np.append(log_ratio, self._places))

    def edges(self, number: int) -> FloatArray:
        """Losses of the nodes for the step itself."""
        nodes = self.nodes(self._between(number, self._score[1:-1], self._table[1:-1]))
        return nodes[nodes >= self._low]

    def placed(self, number: int, score: FloatArray, mean: FloatArray) -> FloatArray:
        """Nodes for a mean, whose values at some normal scores are given; with 0 if it may be 0."""
        place = fn.log(np.maximum(mean, LEAST_MASS))
        nodes = np.asarray(fn.exp(self.nodes(self._between(number, score, place))))
        return np.append(0.0, nodes) if self._none > 0.0 else nodes

    def outside(self, cells: Cells) -> float:
        """Bound on the mass of either law beyond the first and the last edge."""
        out = [float(fn.exp(x[i])) for x in (cells.log_a, cells.log_b) for i in (0, -1)]
        return 1.01 * sum(out) + self.law.left_out()

    def on_nodes(self, number: int, way: int) -> Mean:
        """The step itself on nodes; a law of few losses stays as it is."""
        few = self._finite
        if few is None or few.loss.size > number:
            found = super().on_nodes(number, way)
        else:
            least = float(few.log_a.min()) + min(float(few.loss.min()), 0.0)
            error = few.error + LOG_ERROR * (2.0 - least) + 4.0 * UNIT
            off = few.support_error() + 4.0 * UNIT
            mass = fn.exp(few.log_a)
            found = Mean(fn.exp(few.loss), mass, error, off, few.left_out() + UNDERFLOW)
        if self._none == 0.0:
            return found
        mass = np.append(self._none, found.mass)
        return replace(found, ratio=np.append(0.0, found.ratio), mass=mass)


def _smallest(low: float, steps: int) -> list[float]:
    """Nodes just below the smallest positive value of each mean that is formed, as losses.

    Without them a mean could lie between 0 and its smallest node, and mass would be moved to 0.
    """
    means_of = {(steps >> k) & ~odd for k in range(steps.bit_length()) for odd in (0, 1)} - {0}
    return [low - fn.log(j) - 1e-12 * (2 * j.bit_length() + (j & 1)) for j in means_of]


@kept(32)
def _enclosed(law: StepLaw, steps: int, nodes: int) -> Enclosing:
    below, above = means(_LawStep(law, steps), steps, nodes)
    alone = _alone(law, steps, 1)
    return Enclosing(_finite(below, steps, alone, 0), _finite(above, steps, alone, 1))


def _finite(mean: Mean, steps: int, alone: tuple[Fraction, Fraction], way: int) -> FiniteLaw:
    """The law of a mean; lost mass is revealed in the law above, else in its heaviest atom."""
    kept_ones = mean.mass * mean.ratio > LEAST_MASS
    rare = float(mean.mass[~kept_ones & (mean.ratio > 0.0)].sum())
    lost = 1.01 * (steps * mean.lost + rare + mean.mass.size * LEAST_MASS)
    ratio, mass = mean.ratio[kept_ones], mean.mass[kept_ones]
    error = mean.error + 2.0 * UNIT
    if way:
        off = 1 + steps * EXACT
        alone = alone[0] * off + Fraction(lost), alone[1] * off + Fraction(lost)
    else:
        off = 1 - steps * EXACT
        alone = alone[0] * off, alone[1] * off
        error += 1.01 * lost / float((mass * np.minimum(ratio, 1.0)).max())
    made = FiniteLaw.from_atoms(fn.log(ratio), fn.log(mass), alone, mean.off + 4.0 * UNIT)
    return replace(made, error=made.error + error)
