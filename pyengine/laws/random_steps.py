"""Random allocation of any mechanism: the law of an epoch with a record in some of its steps.

With the ratios Rᵢ = dB/dA of t steps, independent under A, the epoch's pair is that of Aᵗ and of
the mean of the products over all sets of k steps, whose ratio is e_k(R)/C(t, k), the elementary
symmetric polynomial: (R₁ + ... + R_t)/t for k = 1.  A pair that dominates one step has a kernel
that makes the step of it, and the kernels of all steps make the epoch: so the epoch of a pair that
dominates, dominates.

Finitely many ratios: numbers of steps that have each are multinomial, and e_k depends on them
alone (`allocated_finite`).  Others: the step is replaced by a pair on ratios h, 2h, ... that
dominates it, because its profile joins upper bounds of the step's own by chords; their sums stay on
the lattice (`allocated_sums`).  A lattice is made coarser by moving half the mass of every other
point to either side, which keeps the mean of the ratio: a spread of it dominates.  Outcomes whose
mass is below 1e-100 are told outright.  All terms are positive, so that sums have relative errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pyengine.errors import AccuracyError
from pyengine.laws.base import FloatArray, StepLaw
from pyengine.laws.fine import Fine, logarithm
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.laws.profile import upper_values
from pyengine.mechanisms.general import pair_of_profile
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.rounding import UNIT

__all__ = ["MOST_STATES", "allocated_finite", "allocated_law", "allocated_outcomes"]

Outcomes = list[tuple[Fraction, Fraction]]

MOST_STATES = 20_000  # numbers of steps of each ratio
MOST_BITS = 1 << 27  # of the exact masses of all of them
LARGEST_LOSS = 5000.0  # whose exponential is formed to all digits
PLACES = 8192  # at most so many ratios of a step
WIDEST = 1 << 13  # at most so many sums, from which on the lattice is made coarser
RARE = 1e-100
BELOW = Decimal("1e-400")  # stands for masses below it
UNDERFLOW = 1e-290  # more than all products lose that are below the doubles
LARGEST = 30.0  # losses whose exponentials are on a lattice
TOLD = (1e-20, 1e-17, 1e-15, 1e-13, 1e-12)  # mass under B of larger ones, which are told
FINEST = 1e-4  # of the variance of a step's ratio, what a cell of the lattice may add


# Map: random allocation of any mechanism | test_random_steps | theory/allocation
def allocated_outcomes(outcomes: Outcomes, steps: int, selected: int) -> FiniteLaw | None:
    """Return the law of an epoch of steps with exact probabilities; None where they are too many.

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
    """Numbers of each part that add up to a total, with the number of ways to have them."""
    if parts == 1:
        yield 1, [total]
        return
    for first in range(total + 1):
        ways = math.comb(total, first)
        for more, rest in _multinomial(total - first, parts - 1):
            yield ways * more, [first, *rest]


def _symmetric(ratios: list[Fraction], numbers: list[int], selected: int) -> Fraction:
    """Elementary symmetric polynomial of ratios that are there several times."""
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
    """Logarithm of a quotient of integers > 0, within two units."""
    if bottom < 2 * top < 4 * bottom:
        return fn.log1p((top - bottom) / bottom)
    shift = top.bit_length() - bottom.bit_length()
    near = top / (bottom << shift) if shift > 0 else (top << -shift) / bottom
    return fn.log(near) + shift * fn.log(2.0)


def _log(ratio: Fraction) -> float:
    return _log_of_quotient(ratio.numerator, ratio.denominator)


def allocated_finite(law: FiniteLaw, steps: int, selected: int) -> FiniteLaw | None:
    """Return the law of an epoch of steps of finitely many losses; None where they are too many.

    Parameters
    ----------
    law : FiniteLaw
        Of one step.
    steps, selected : int
        Number t of steps, and k of those with the record.
    """
    if not law.loss.size:
        return law  # all is told
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
        # a mean of products of k ratios moves by at most k times what a loss does
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


def _alone(law: FiniteLaw, steps: int, selected: int) -> tuple[Fraction, Fraction]:
    """What A shows alone in an epoch, to 50 digits, and B.

    A does where fewer steps than have the record show what B may show as well, and B where one of
    those that have it does.
    """
    none, told = law.alone or tuple(map(Fraction, law.infinite()))
    b_alone = 1 - (1 - told) ** selected
    if not none:
        return Fraction(0), b_alone
    lost, share, rest = Decimal(0), as_decimal(none), as_decimal(1 - none)
    for j in range(selected):
        ways = CONTEXT.multiply(math.comb(steps, j), CONTEXT.power(share, steps - j))
        lost = CONTEXT.add(lost, CONTEXT.multiply(ways, CONTEXT.power(rest, j) if j else 1))
    return Fraction(max(lost, BELOW)), b_alone


class _RatioSums(NamedTuple):
    """Sums of ratios on a lattice, of some steps.

    Parameters
    ----------
    steps : int
        How many.
    first : int
        The first sum, in spacings.
    mass : ndarray
        Masses under A of the sums from there on.
    spacing : Fraction
        That of the lattice.
    told : float
        Bound on the mass under A of what is told outright.
    told_sum : float
        Bound on the integral of the sum over it, whose mean is at most the number of steps.
    error : float
        Relative error of the masses.
    """

    steps: int
    first: int
    mass: FloatArray
    spacing: Fraction
    told: float
    told_sum: float
    error: float


def allocated_law(law: StepLaw, steps: int) -> FiniteLaw:
    """Return a law that dominates an epoch of steps with the record in one of them.

    Parameters
    ----------
    law : StepLaw
        Of one step.
    steps : int
        Number t of steps.

    Raises
    ------
    AccuracyError
        For masses that are estimates, and losses so large that the lattice would be too coarse.
    """
    if not (law.has_cells and law.is_proven):
        raise AccuracyError(
            "random allocation has a law for Gaussian noise and for mechanisms whose losses have "
            "proven masses: poisson_sampled is answered"
        )
    one, b_told = _step(law)
    total = one
    for bit in bin(steps)[3:]:
        total = _coarser(total)
        total = _cut(_added(total, total))
        if bit == "1":
            total = _coarser(total)
            while one.spacing < total.spacing:
                one = _halved(one)
            total = _cut(_added(total, one))
    place = total.first + np.arange(total.mass.size)
    scale = total.spacing / steps
    kept = np.flatnonzero((total.mass > 0.0) & (place > 0))
    nothing = float(total.mass[place == 0].sum()) + total.told + UNDERFLOW
    b_told += (total.told_sum + UNDERFLOW) / steps
    with np.errstate(under="ignore"):
        loss = fn.log(place[kept] * float(scale))
    made = FiniteLaw.from_atoms(
        loss, fn.log(total.mass[kept]), (Fraction(nothing), Fraction(b_told)), 8.0 * UNIT
    )
    return replace(made, error=made.error + 1.01 * total.error + 4.0 * UNIT)


def _step(law: StepLaw) -> tuple[_RatioSums, float]:
    """A pair on a lattice of ratios that dominates one step, and the mass that B has alone.

    Of losses without a bound, or with a large one, those beyond some loss are told; as few as
    leave the lattice fine enough.
    """
    low, high = law.limits()
    places = [(high, False)] if high < LARGEST else []
    edges = np.arange(0.0, LARGEST, 0.02)
    above = np.cumsum(fn.exp(law.cells(edges).log_b)[::-1])[::-1][1:]
    for level in TOLD:
        at = int(np.searchsorted(-above, -level))
        if at < edges.size and edges[at] < high:
            places.append((float(edges[at]), True))
    for place, is_cut in places:
        found = _on_lattice(law, low, place, is_cut=is_cut)
        if found is not None:
            return found
    raise AccuracyError(
        f"random allocation of losses from {low:.6g} to {high:.6g} has a lattice of ratios that is "
        "too coarse for what they tell: more noise, or poisson_sampled, is answered"
    )


def _on_lattice(
    law: StepLaw, low: float, high: float, *, is_cut: bool
) -> tuple[_RatioSums, float] | None:
    """As `_step`, with losses above a largest one told; None for a lattice that is too coarse."""
    off = law.support_error()
    least, most = (
        fn.exp(low - off) * (1.0 - 8.0 * UNIT),
        fn.exp(high + off) * (1.0 + 8.0 * UNIT),
    )
    a_alone, _ = law.infinite()
    if a_alone > 0.0 or law.left_out() > 0.0:
        least = 0.0
    power = math.ceil(math.log2(max(most - least, 1e-9) / (PLACES - 2)))
    unit = Fraction(2) ** power
    first = round(Fraction(least) / unit)
    if first > 0:  # the smallest ratio, which may have an atom, is on the lattice
        unit = Fraction(least) / first
    last = math.ceil(Fraction(most) / unit)
    k = np.arange(max(first, 1), last + 1)
    t = np.asarray(k * float(unit), dtype=np.float64)
    edges = fn.log(t)
    value, alone = upper_values(law, edges, t)
    if not is_cut:
        value[-1] = alone  # no finite ratio is larger
    rows = [(Fraction(0), Fraction(1))]
    rows += [(j * unit, Fraction(x)) for j, x in zip(k.tolist(), value.tolist(), strict=True)]
    if first > 0:  # no ratio is smaller
        rows[1] = first * unit, 1 - first * unit
    masses = pair_of_profile(rows)
    told = float(masses[-1][0]) * (1.0 + 2.0**-50)
    begin = first if masses[0][1] == 0 else 0
    mass = np.zeros(last + 1 - begin)
    for with_record, without in masses[:-1]:
        if without:
            mass[int(with_record / without / unit) - begin] = float(without)
    mean = float(mass @ (begin + np.arange(mass.size)) * float(unit))
    spread = float(mass @ ((begin + np.arange(mass.size)) * float(unit) - mean) ** 2)
    if float(unit) ** 2 > 4.0 * FINEST * spread:
        return None
    return _RatioSums(1, begin, mass, unit, 0.0, 0.0, 2.0 * UNIT), told


def _added(first: _RatioSums, second: _RatioSums) -> _RatioSums:
    """Sums of both, on their common lattice."""
    with np.errstate(under="ignore"):
        mass = np.convolve(first.mass, second.mass)
    terms = min(first.mass.size, second.mass.size) + 2
    return _RatioSums(
        first.steps + second.steps,
        first.first + second.first,
        mass,
        first.spacing,
        first.told + second.told + UNDERFLOW,
        first.told_sum + second.told_sum + first.told * second.steps + second.told * first.steps,
        first.error + second.error + 1.01 * terms * UNIT,
    )


def _coarser(sums: _RatioSums) -> _RatioSums:
    """The same on a lattice that has not too many points."""
    while sums.mass.size > WIDEST:
        sums = _halved(sums)
    return sums


def _cut(sums: _RatioSums) -> _RatioSums:
    """The same without what is rare at both ends, which is told."""
    place = sums.first + np.arange(sums.mass.size)
    weight = sums.mass * np.maximum(place / max(float(place[-1]), 1.0), 1.0 / sums.steps)
    below, above = np.cumsum(weight + sums.mass), np.cumsum((weight + sums.mass)[::-1])
    start = int(np.searchsorted(below, RARE, side="right"))
    stop = sums.mass.size - int(np.searchsorted(above, RARE, side="right"))
    if start >= stop:
        return sums
    gone = np.concatenate([sums.mass[:start], sums.mass[stop:]])
    where = np.concatenate([place[:start], place[stop:]])
    return sums._replace(
        first=sums.first + start,
        mass=sums.mass[start:stop],
        told=sums.told + 1.01 * float(gone.sum()),
        told_sum=sums.told_sum + 1.01 * float(gone @ where) * float(sums.spacing),
    )


def _halved(sums: _RatioSums) -> _RatioSums:
    """Half the masses of odd places go to either side."""
    mass = np.concatenate([np.zeros(sums.first & 1), sums.mass])
    first = sums.first - (sums.first & 1)
    if not mass.size & 1:
        mass = np.append(mass, 0.0)
    even, odd = mass[::2].copy(), 0.5 * mass[1::2]
    even[:-1] += odd
    even[1:] += odd
    return sums._replace(
        first=first // 2, mass=even, spacing=2 * sums.spacing, error=sums.error + 4.0 * UNIT
    )
