"""Questions on laws of few steps where one error term must cover the error alone.

The terms are in ``sector_switches.py``. Sums of two steps are compared with an integral of closed
forms, densities and rows of one step with closed forms, and rows of sums of two with laws of the
engine whose ends are negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sector_epochs as epochs
from audit_sector import (
    DOORS,
    GRID,
    SOURCES,
    VALUES,
    Array,
    Law,
    added,
    rows_of,
    step,
    summed,
    typed,
)
from error_terms import Change, Kernel, Tally, Term, kernel, tally
from sector_switches import ERRING, SWITCHES, TERMS, signed

from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import _composed, _law_of

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


# ---- error terms -------------------------------------------------------------------------------

Pairs = tuple[tuple[Step, Step], ...]
STEPS: Pairs = (
    ((1.0, 1e-3), (1.0, 1e-3)),
    ((0.5, 0.2), (2.0, 1e-4)),
    ((4.0, 0.05), (1.0, 1e-5)),
    ((6.0, 0.4), (3.0, 1e-3)),
)
DEPTH, SHALLOW = -200.0, -20.0
Found = list[tuple[Array, Array, Array]]

integral = cache(log_sum_density)
closed = cache(step_row)


class Made(NamedTuple):
    """Laws of one step each, or of their sum, and the steps."""

    steps: tuple[Step, ...]
    laws: tuple[Law, ...]


def made(kernel: Any, steps: Sequence[Step], depths: Sequence[float]) -> Iterator[Made]:
    """Laws that end at given depths, unless one is refused."""
    try:
        laws = tuple(step(kernel, *one, depth) for one, depth in zip(steps, depths, strict=True))
    except ValueError:
        return
    yield Made(tuple(steps), laws)


def deep_pairs(kernel: Any, steps: Pairs) -> list[Made]:
    """Laws whose ends are negligible in sums."""
    return [laws for pair in steps for laws in made(kernel, pair, (DEPTH, DEPTH))]


def shallow_pairs(kernel: Any, steps: Pairs) -> list[Made]:
    """Laws whose ends matter in sums."""
    depths = ((SHALLOW, SHALLOW), (SHALLOW, 2 * DEPTH), (2 * DEPTH, SHALLOW))
    return [laws for pair in steps for depth in depths for laws in made(kernel, pair, depth)]


def singles(kernel: Any, steps: Pairs, depth: float = DEPTH) -> list[Made]:
    """Laws of the first step of each pair."""
    return [laws for one, _ in steps for laws in made(kernel, (one,), (depth,))]


def shallow_singles(kernel: Any, steps: Pairs) -> list[Made]:
    """Laws of one step whose ends matter."""
    return singles(kernel, steps, SHALLOW)


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
        value, error, truth = [], [], []
        for w in np.round(np.concatenate([near, far]) / GRID) * GRID:
            out = summed(a, b, float(w))
            value.append(out[0])
            error.append(out[1])
            truth.append(integral(float(w), *steps))
        found.append((np.array(value), np.array(error), np.array(truth)))
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


def rows_at(law: Law, one: Step, w: Array, every: slice = ALL) -> Found:
    """Rows of one step at given places, in both directions."""
    found = []
    for backward in (False, True):
        c = math.log1p(-one[1]) + np.exp(w)
        rows = law.rows(backward, -c if backward else c)
        truth = np.array([closed(one, float(x), backward) for x in c])
        found.append((rows[:, VALUES][:, every], rows[:, ERRORS:][:, every], truth[:, every]))
    return found


def step_rows(laws: Sequence[Made], number: int = 30, every: slice = ALL) -> Found:
    """Rows of one step over the whole range of its law."""
    found = []
    for (one,), (law,) in laws:
        w = np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number)
        found += rows_at(law, one, w, every)
    return found


def tails(laws: Sequence[Made]) -> Found:
    """Rows of one step without profiles."""
    return step_rows(laws, every=TAILS)


def rows_on_edges(laws: Sequence[Made], number: int = 30) -> Found:
    """Rows of one step next to the edges of panels' pieces."""
    found = []
    for (one,), (law,) in laws:
        edges = law.edges
        parts = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(4) / 4
        found += rows_at(law, one, parts.ravel()[1 :: max(1, parts.size // number)])
    return found


def added_pairs(kernel: Any, steps: Pairs) -> list[Made]:
    """Laws of sums of two steps that end where the probability above them matters."""
    found = []
    depths = ((2 * SHALLOW, 2 * SHALLOW), (3 * SHALLOW, 3 * SHALLOW))
    parts = (laws for pair in steps for depth in depths for laws in made(kernel, pair, depth))
    for pair, laws in parts:
        with suppress(ValueError):
            found.append(Made(pair, (added(*laws),)))
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
        floor = math.fsum(math.log1p(-p) for _, p in steps)
        c = floor + np.exp(np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number))
        for backward in (False, True):
            asked = -c if backward else c
            own, truth = law.rows(backward, asked), deep_rows(steps, backward, tuple(asked))
            unsure = np.where(truth[:, ERRORS:] < 1e-9, truth[:, ERRORS:], np.inf)
            found.append((own[:, VALUES], own[:, ERRORS:] + unsure, truth[:, VALUES]))
    return found


class Question(NamedTuple):
    """Laws, and what is asked of them."""

    laws: Callable[[Any, Pairs], list[Any]]
    ask: Callable[[Sequence[Any]], Found]


QUESTIONS = {
    "densities": Question(singles, densities),
    "sums": Question(deep_pairs, sums),
    "shallow sums": Question(shallow_pairs, sums),
    "rows": Question(singles, step_rows),
    "shallow rows": Question(shallow_singles, step_rows),
    "tails": Question(singles, tails),
    "edges": Question(singles, rows_on_edges),
    "rows of sums": Question(added_pairs, added_rows),
    "sums of losses": Question(epochs.deep_losses, epochs.sums_of_losses),
    "shallow sums of losses": Question(epochs.shallow_losses, epochs.sums_of_losses),
    "rows of losses": Question(epochs.shallow_runs, epochs.rows_of_losses),
    "rows of means": Question(epochs.shallow_means, epochs.rows_of_means),
}


def switched(folder: Path, sizes: Sequence[Change] = ()) -> Kernel:
    """The kernel whose choices, operations and terms are set from Python."""
    found = kernel(folder, SOURCES, [DOORS], SWITCHES, TERMS, sizes)
    typed(found.library)
    return found


def judged(switched: Kernel, term: Term, part: float, steps: Pairs = STEPS) -> Tally:
    """Result with a part of a term that must cover the error alone, in both directions."""
    question, found = QUESTIONS[term.asks], []
    errs = not ERRING.isdisjoint((*term.loud, *term.late))
    for sign in (1.0, -1.0) if errs else (1.0,):
        with switched.set_to(signed(term.with_part(part), sign)) as library:
            laws = question.laws(library, steps)
            with switched.set_to(signed(term.late, sign)):
                found += question.ask(laws)
    return tally(found)


def judged_as_it_is(switched: Kernel, asks: str, steps: Pairs = STEPS) -> Tally:
    """The same without switches, with the kernel of the engine."""
    question = QUESTIONS[asks]
    return tally(question.ask(question.laws(switched.library, steps)))
