"""Questions on laws of few steps where one error term must cover the error alone.

The terms are in ``sector_switches.py``. Sums of two steps are compared with an integral of closed
forms, densities and rows of one step with closed forms, and rows of sums of two with laws of the
engine whose ends are negligible. Of laws of losses of means of ratios, epochs of one step are plain
Gaussian steps, whose losses are normal, so sums of two losses and rows of both together have closed
forms; rows of the mean of two ratios are compared with laws of the engine, too.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
from audit_sector import (
    DOORS,
    GRID,
    SOURCES,
    VALUES,
    Array,
    Law,
    added,
    joined,
    rows_of,
    step,
    summed,
    typed,
)
from compiling import doubles
from error_terms import Change, Kernel, Tally, Term, kernel, tally
from sector_switches import ERRING, SWITCHES, TERMS, signed

from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import _composed, _composed_epochs, _law_of
from pyengine.numerics.exact_numbers import in_two_doubles

ALL, TAILS = slice(0, 5), slice(0, 4)  # of the functionals


# ---- truths ------------------------------------------------------------------------------------

Step = tuple[float, float]  # noise and rate


def log_step_density(w: Array, one: Step) -> Array:
    """Log F of one step in 80-bit numbers, by its closed form."""
    long = np.longdouble
    mu, rate = 1 / long(one[0]), long(one[1])
    y = np.exp(w)
    beyond = np.where(y < long(1e-10), w + y / 2, np.log(np.expm1(y)))
    z = (beyond - np.log(rate) + np.log1p(-rate)) / mu + mu / 2
    constant = np.log(2 * long("3.14159265358979323846264338327950288")) / 2
    return y - beyond + w - z * z / 2 - constant - np.log(mu)


def log_sum_density(w: float, one: Step, other: Step) -> float:
    """Log F of the sum of two steps, by an integral with fine nodes."""
    spacing = min(1 / one[0], 1 / other[0], 1.0) / 24
    r = np.arange(-int(70.0 / spacing), int(70.0 / spacing) + 1) * np.longdouble(spacing)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logs = log_step_density(w - np.logaddexp(0, -r), one)
        logs = logs + log_step_density(w - np.logaddexp(0, r), other)
    logs = logs[np.isfinite(logs)]
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum() * np.longdouble(spacing)))


def step_row(one: Step, y: float, backward: bool) -> list[float]:
    """Logs of the functionals of one step in closed form, at the loss `y` beyond the smallest one.

    `y` is the threshold, a double, minus the smallest loss.
    """
    with mpmath.workdps(60):
        mu, p = 1 / mpmath.mpf(one[0]), mpmath.mpf(one[1])
        c = mpmath.mpf(y)
        ratio = (mpmath.exp(c) - 1 + p) / p
        if ratio <= 0:  # below the smallest loss, by rounding
            return [math.nan] * 5
        z = mpmath.log(ratio) / mu + mu / 2
        below = mpmath.ncdf(z), (1 - p) * mpmath.ncdf(z) + p * mpmath.ncdf(z - mu)
        above = mpmath.ncdf(-z), (1 - p) * mpmath.ncdf(-z) + p * mpmath.ncdf(mu - z)
        if backward:
            values = (below[1], above[1], below[0], above[0], above[1] - mpmath.exp(c) * above[0])
        else:
            values = (above[0], below[0], above[1], below[1], below[0] - mpmath.exp(-c) * below[1])
        return [float(mpmath.log(x)) if x > 0 else math.nan for x in values]


@cache
def normal_row(variance: float, c: float) -> list[float]:
    """Logs of the functionals of a normal loss with a given variance; both orders are the same."""
    with mpmath.workdps(60):
        v, x = mpmath.mpf(variance), mpmath.mpf(c)
        root = mpmath.sqrt(v)
        of_a, of_b = (x + v / 2) / root, (x - v / 2) / root
        below = mpmath.ncdf(of_a), mpmath.ncdf(of_b)
        profile = below[0] - mpmath.exp(-x) * below[1]
        values = (mpmath.ncdf(-of_a), below[0], mpmath.ncdf(-of_b), below[1], profile)
        return [float(mpmath.log(y)) if y > 0 else math.nan for y in values]


# ---- laws ----------------------------------------------------------------------------------------

Pairs = tuple[tuple[Step, Step], ...]
STEPS: Pairs = (
    ((1.0, 1e-3), (1.0, 1e-3)),
    ((0.5, 0.2), (2.0, 1e-4)),
    ((4.0, 0.05), (1.0, 1e-5)),
    ((6.0, 0.4), (3.0, 1e-3)),
)
DEPTH, SHALLOW, ENDING = -200.0, -20.0, -60.0
Depths = Sequence[tuple[float, ...]]
Found = list[tuple[Array, Array, Array]]


class Made(NamedTuple):
    """Laws of one step each, or of several together, and the steps."""

    steps: tuple[Step, ...]
    laws: tuple[Law, ...]


def ratio(kernel: Any, noise: float, _: float, deepest: float, steps: int = 1) -> Law:
    """Law of one ratio, of plain noise: no rate is used."""
    shift = doubles(in_two_doubles(1 / Fraction(noise)))
    numbers = ctypes.c_double(deepest), ctypes.c_double(float(steps))
    return Law(kernel, kernel.pe_sector_ratio, shift, *numbers)


def together(one: Law, other: Law) -> Law:
    """Law of both losses."""
    return joined(one, other, one.kernel.pe_sector_compose)


class Laws(NamedTuple):
    """Steps of the pairs whose laws are made, their ends, and how two of them become one law.

    Laws that are refused are left out.
    """

    make: Callable[..., Law]
    depths: Depths
    join: Callable[[Law, Law], Law] | None = None
    number: int = 2  # of the steps of a pair that are asked

    def of(self, kernel: Any, steps: Pairs) -> Iterator[Made]:
        """The laws of a kernel."""
        for pair in steps:
            for depth in self.depths:
                with suppress(ValueError):
                    some = pair[: self.number]
                    laws = tuple(
                        self.make(kernel, *one, end) for one, end in zip(some, depth, strict=True)
                    )
                    yield Made(some, laws if self.join is None else (self.join(*laws),))


def of_one_mean(kernel: Any, noise: float, rate: float, deepest: float) -> Law:
    """Law of the mean of two ratios of one noise."""
    one = ratio(kernel, noise, rate, deepest, 2)
    return added(one, one)


SINGLES = Laws(step, [(DEPTH,)], number=1)
SHALLOW_SINGLES = Laws(step, [(SHALLOW,)], number=1)
DEEP_PAIRS = Laws(step, [(DEPTH, DEPTH)])  # whose ends are negligible in sums
SHALLOW_PAIRS = Laws(step, [(SHALLOW, SHALLOW), (SHALLOW, 2 * DEPTH), (2 * DEPTH, SHALLOW)])
# sums that end where the probability above them matters
ADDED = Laws(step, [(2 * SHALLOW, 2 * SHALLOW), (3 * SHALLOW, 3 * SHALLOW)], added)
DEEP_LOSSES = Laws(ratio, [(DEPTH, DEPTH)])
SHALLOW_LOSSES = Laws(ratio, [(SHALLOW, SHALLOW), (SHALLOW, DEPTH), (DEPTH, SHALLOW)])
SHALLOW_RUNS = Laws(ratio, [(ENDING, ENDING), (2 * SHALLOW, 2 * SHALLOW)], together)
SHALLOW_MEANS = Laws(of_one_mean, [(2 * SHALLOW,)], number=1)


# ---- questions -----------------------------------------------------------------------------------

integral = cache(log_sum_density)
closed = cache(step_row)
Truth = Callable[[bool, Array], tuple[Array, Any]]


def inner(law: Law, number: int) -> Array:
    """Evenly spaced places of a law, its ends left out."""
    return np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number)


def rows_at(law: Law, c: Array, truth: Truth, every: slice = ALL) -> Found:
    """Rows at thresholds in both directions, beside truths, whose own errors are added."""
    found = []
    for backward in (False, True):
        asked = -c if backward else c
        rows, (true, unsure) = law.rows(backward, asked), truth(backward, asked)
        errors = rows[:, ERRORS:] + unsure
        found.append((rows[:, VALUES][:, every], errors[:, every], true[:, every]))
    return found


def of_rows(table: Array) -> tuple[Array, Array]:
    """Values of the engine as truths where they are known closely, and their errors."""
    error = table[:, ERRORS:]
    return table[:, VALUES], np.where(error < 1e-9, error, np.inf)


def sums(laws: Sequence[Made], number: int = 24) -> Found:
    """Sums of two steps over the whole range of their laws."""
    found = []
    for steps, (a, b) in laws:
        low = max(a.ends[0], b.ends[0])
        high = min(math.log(math.exp(a.ends[1]) + math.exp(b.ends[1])), a.ends[5], b.ends[5])
        if high - low < 0.01:
            continue
        near = low + np.geomspace(1e-3, high - low, number // 2)
        far = high - np.geomspace(1e-3, high - low, number // 2)
        w = np.round(np.concatenate([near, far]) / GRID) * GRID
        value, error = np.array([summed(a, b, float(x))[:2] for x in w]).T
        found.append((value, error, np.array([integral(float(x), *steps) for x in w])))
    return found


def sums_of_losses(laws: Sequence[Made], number: int = 24) -> Found:
    """Densities of the sum of two normal losses over the whole range of their laws."""
    found = []
    for steps, (a, b) in laws:
        variance = sum(noise**-2 for noise, _ in steps)
        low, high = a.ends[0] + b.ends[0], a.ends[1] + b.ends[1]
        w = np.round(np.linspace(low, high, number + 2)[1:-1] / GRID) * GRID
        value, error = np.array([summed(a, b, float(x), True)[:2] for x in w]).T
        truth = -((w + 0.5 * variance) ** 2) / (2.0 * variance)
        found.append((value, error, truth - 0.5 * math.log(2.0 * math.pi * variance)))
    return found


def densities(laws: Sequence[Made], number: int = 400) -> Found:
    """Values of panels of one step at random places."""
    rng, found = np.random.default_rng(20261125), []
    for (one,), (law,) in laws:
        low, high = law.ends[:2]
        w = rng.uniform(low, high, number)
        value, error = np.array([law.density(float(x))[:2] for x in w]).T
        found.append((value, error, log_step_density(w.astype(np.longdouble), one).astype(float)))
    return found


def step_rows_at(law: Law, one: Step, w: Array, every: slice = ALL) -> Found:
    """Rows of one step at given places."""
    c = math.log1p(-one[1]) + np.exp(w)

    def truth(backward: bool, _: Array) -> tuple[Array, float]:
        return np.array([closed(one, float(x), backward) for x in c]), 0.0

    return rows_at(law, c, truth, every)


def step_rows(laws: Sequence[Made], number: int = 30, every: slice = ALL) -> Found:
    """Rows of one step over the whole range of its law."""
    return [
        row for (one,), (law,) in laws for row in step_rows_at(law, one, inner(law, number), every)
    ]


def tails(laws: Sequence[Made]) -> Found:
    """Rows of one step without profiles."""
    return step_rows(laws, every=TAILS)


def rows_on_edges(laws: Sequence[Made], number: int = 30) -> Found:
    """Rows of one step next to the edges of panels' pieces."""
    found = []
    for (one,), (law,) in laws:
        edges = law.edges
        parts = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(4) / 4
        found += step_rows_at(law, one, parts.ravel()[1 :: max(1, parts.size // number)])
    return found


@cache
def deep_rows(steps: tuple[Step, ...], backward: bool, c: tuple[float, ...]) -> Array:
    """Rows of sums by laws of the engine whose ends are negligible."""
    law = _law_of(_composed, tuple((noise, p, 1) for noise, p in steps), DEPTH)
    return rows_of(law, backward, np.array(c))


def added_rows(laws: Sequence[Made], number: int = 30) -> Found:
    """Rows of sums of two steps over the whole range of their laws."""
    found = []
    for steps, (law,) in laws:

        def truth(backward: bool, c: Array, steps: Any = steps) -> tuple[Array, Array]:
            return of_rows(deep_rows(steps, backward, tuple(c)))

        floor = math.fsum(math.log1p(-p) for _, p in steps)
        found += rows_at(law, floor + np.exp(inner(law, number)), truth)
    return found


def rows_of_losses(laws: Sequence[Made], number: int = 40) -> Found:
    """Rows of two plain steps over the whole range of their law."""
    found = []
    for steps, (law,) in laws:
        variance = float(sum(1 / Fraction(noise) ** 2 for noise, _ in steps))

        def truth(_: bool, c: Array, variance: float = variance) -> tuple[Array, Array]:
            rows = np.array([normal_row(variance, float(x)) for x in c])
            # the variance is rounded there, which changes a density by its log
            return rows, 1e-15 * (1.0 + np.abs(rows))

        found += rows_at(law, inner(law, number), truth)
    return found


def rows_of_means(laws: Sequence[Made], number: int = 40) -> Found:
    """Rows of the mean of two ratios over the whole range of their law."""
    found = []
    for ((noise, _),), (law,) in laws:
        deep = _law_of(_composed_epochs, (((noise, 0.0), 2, 1),), DEPTH)

        def truth(backward: bool, c: Array, deep: Any = deep) -> tuple[Array, Array]:
            return of_rows(rows_of(deep, backward, c))

        found += rows_at(law, inner(law, number) - math.log(2.0), truth)
    return found


QUESTIONS: dict[str, tuple[Laws, Callable[[Sequence[Made]], Found]]] = {
    "densities": (SINGLES, densities),
    "sums": (DEEP_PAIRS, sums),
    "shallow sums": (SHALLOW_PAIRS, sums),
    "rows": (SINGLES, step_rows),
    "shallow rows": (SHALLOW_SINGLES, step_rows),
    "tails": (SINGLES, tails),
    "edges": (SINGLES, rows_on_edges),
    "rows of sums": (ADDED, added_rows),
    "sums of losses": (DEEP_LOSSES, sums_of_losses),
    "shallow sums of losses": (SHALLOW_LOSSES, sums_of_losses),
    "rows of losses": (SHALLOW_RUNS, rows_of_losses),
    "rows of means": (SHALLOW_MEANS, rows_of_means),
}


def switched(folder: Path, sizes: Sequence[Change] = ()) -> Kernel:
    """The kernel whose choices, operations and terms are set from Python."""
    found = kernel(folder, SOURCES, [DOORS], SWITCHES, TERMS, sizes)
    typed(found.library)
    return found


def judged(switched: Kernel, term: Term, part: float, steps: Pairs = STEPS) -> Tally:
    """Result with a part of a term that must cover the error alone, in both directions."""
    laws, ask = QUESTIONS[term.asks]
    errs, found = not ERRING.isdisjoint((*term.loud, *term.late)), []
    for sign in (1.0, -1.0) if errs else (1.0,):
        with switched.set_to(signed(term.with_part(part), sign)) as library:
            made = list(laws.of(library, steps))
            with switched.set_to(signed(term.late, sign)):
                found += ask(made)
    return tally(found)


def judged_as_it_is(switched: Kernel, asks: str, steps: Pairs = STEPS) -> Tally:
    """The same without switches, with the kernel of the engine."""
    laws, ask = QUESTIONS[asks]
    return tally(ask(list(laws.of(switched.library, steps))))
