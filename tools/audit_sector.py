"""Audit of laws with proven errors: their rows against other engines, their terms made to matter.

``python tools/audit_sector.py --points 4000`` draws compositions of one to three kinds of steps and
thresholds over the whole law, and holds rows of all five functionals against the convolution
engine, whose own errors are allowed for.  ``--terms`` compiles the kernel again with one choice
made coarse at a time, so that its error term must carry the error alone, and once more with the
term dropped: sums of two steps against an integral of closed forms, and rows of one step against
closed forms.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
from audit_certificate import Change, Term, doubles
from compiling import CERTIFIED, ROOT, compiled

from pyengine.engines.convolution import DEEP, _composed_law, bounded_steps
from pyengine.engines.functionals import ERRORS, call_kernel
from pyengine.engines.sector import _law_or_refusal
from pyengine.errors import AccuracyError
from pyengine.numerics.exact_numbers import in_two_doubles, log_of_rest
from pyengine.pairs import GaussianPair

from pyengine._core import lib  # isort: skip

WIDTH, VALUES = 12, slice(2, 7)
GRID = 2.0**-44
SOURCES = (
    *("sector_cells", "sector_laws", "sector_panels", "sector_rows", "sector_sums"),
    *("loss_law", "legendre", *CERTIFIED),
)
REACHED = -330.0  # log values down to which the convolution engine's deep law leaves nothing out
Array = np.ndarray[Any, Any]
Kinds = tuple[tuple[float, float, int], ...]


class Tally(NamedTuple):
    """How many values were asked and outside, and the error claimed in the median."""

    asked: int
    outside: int
    median: float


def tally(found: Sequence[tuple[Array, Array, Array]]) -> Tally:
    """Hold logs of values with relative errors against logs of truths."""
    asked, outside, claimed = 0, 0, [np.zeros(0)]
    for value, error, truth in found:
        good = (error < 0.5) & np.isfinite(truth) & np.isfinite(value)
        asked += int(good.sum())
        off = np.abs(np.expm1(truth[good] - value[good]))
        outside += int((off > error[good] * (1.0 + 1e-6) + 4e-16 * np.abs(truth[good])).sum())
        claimed.append(error[good])
    every = np.concatenate(claimed)
    return Tally(asked, outside, float(np.median(every)) if every.size else math.nan)


# ---- rows of whole compositions ----------------------------------------------------------------


def evenly(rng: np.random.Generator, low: float, high: float) -> float:
    """Random number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def drawn(rng: np.random.Generator) -> Kinds:
    """One to three kinds of steps, 2 to 300 in all."""
    number = int(rng.integers(1, 4))
    steps = evenly(rng, max(2, number), 300)
    return tuple(
        (evenly(rng, 0.2, 60.0), evenly(rng, 1e-7, 0.5), max(1, int(steps / number)))
        for _ in range(number)
    )


def rows_of(law: Any, kernel: Any, backward: bool, c: Array) -> Array:
    """Rows of a law of either engine."""

    def at(own: Any, _: int, n: int, x: Any, rows: Any) -> None:
        kernel(own, backward, n, x, rows)

    return call_kernel(at, law, 0, c)


def places(law: Any, floor: float, rng: np.random.Generator, number: int) -> Array:
    """Random losses over all of what a law has rows of."""
    w = np.linspace(-200.0, 6.5, 2000)
    within = np.isfinite(rows_of(law, lib.pe_sector_at, False, floor + np.exp(w))[:, 0])
    if not within.any():
        return np.zeros(0)
    ends = w[within].min() - 0.1, w[within].max() + 0.1
    found: Array = floor + np.exp(rng.uniform(*ends, number))
    return found


def compared(kinds: Kinds, depth: float, c: Array, backward: bool) -> tuple[Array, Array, Array]:
    """Values, errors and truths of the five functionals; the truth's errors are added."""
    pair = GaussianPair(*zip(*kinds, strict=True), False)
    truth = _composed_law(bounded_steps(pair), DEEP)
    own = rows_of(_law_or_refusal(kinds, depth), lib.pe_sector_at, backward, c)
    other = rows_of(truth, lib.pe_law_at, backward, c)
    log_value, unsure = other[:, VALUES], other[:, ERRORS:]
    for large, small in ((0, 1), (1, 0), (2, 3), (3, 2)):  # both add up to 1
        known = log_value[:, small] < -2.0
        log_value[known, large] = np.log1p(-np.exp(log_value[known, small]))
    log_value[~((log_value > REACHED) & (unsure < 1e-3))] = np.nan
    return own[:, VALUES], own[:, ERRORS:] + np.nan_to_num(unsure, nan=np.inf), log_value


def campaign(least: int, seed: int, seconds: float = math.inf, each: int = 50) -> Iterator[Any]:
    """Compositions with what their rows are beside the truth, until enough are asked."""
    rng = np.random.default_rng(seed)
    asked, end = 0, time.process_time() + seconds
    while asked < least and time.process_time() < end:
        kinds, depth = drawn(rng), -760.0 if rng.random() < 0.2 else -200.0
        law = _law_or_refusal(kinds, depth)
        if isinstance(law, str):
            yield kinds, None
            continue
        floor = math.fsum(n * math.log1p(-p) for _, p, n in kinds)
        found = []
        try:
            for backward in (False, True):
                c = places(law, floor, rng, each)
                found.append(compared(kinds, depth, -c if backward else c, backward))
        except AccuracyError:
            continue
        asked += tally(found).asked
        yield kinds, found


# ---- the kernel by itself ----------------------------------------------------------------------


def build(folder: Path, changes: Sequence[Change] = ()) -> Any:
    """Compile the kernel with texts changed, each of which has to be there."""
    sources = folder / "csrc"
    sources.mkdir(parents=True)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "csrc").glob("*.[ch]")}
    for file, old, new in changes:
        assert old in texts[file], (file, old)
        texts[file] = texts[file].replace(old, new)
    for file, text in texts.items():
        (sources / file).write_text(text, encoding="utf-8")
    files = [*(sources / f"{name}.c" for name in SOURCES), ROOT / "tools" / "audit_sector.c"]
    kernel = compiled(folder / "kernel.so", files, sources)
    kernel.audit_sector_growth.restype = kernel.audit_sector_slope.restype = ctypes.c_double
    kernel.pe_sector_error.restype = ctypes.c_double
    return kernel


class Law:
    """A law of a kernel; ValueError where it is refused."""

    def __init__(self, kernel: Any, make: Callable[..., int], *arguments: Any) -> None:
        self.kernel, self.pointer = kernel, ctypes.c_void_p()
        if make(*arguments, ctypes.byref(self.pointer)):
            raise ValueError("refused")

    def __del__(self) -> None:
        self.kernel.pe_sector_free(self.pointer)

    @property
    def ends(self) -> tuple[float, ...]:
        """Low and high end, slope below, logs of both tails above, and what it is asked up to."""
        out = (ctypes.c_double * 6)()
        self.kernel.audit_sector_ends(self.pointer, out)
        return tuple(out)

    def density(self, w: float) -> list[float]:
        """Log F, its error, its bound by cells, and kappa."""
        out = (ctypes.c_double * 4)()
        self.kernel.audit_sector_density(self.pointer, ctypes.c_double(w), out)
        return list(out)

    def growth(self, w: float) -> float:
        """Upper bound of kappa up to w."""
        return float(self.kernel.audit_sector_growth(self.pointer, ctypes.c_double(w)))

    def slope(self, w: float) -> float:
        """Lower bound of the slope of log F up to w."""
        return float(self.kernel.audit_sector_slope(self.pointer, ctypes.c_double(w)))

    def rows(self, backward: bool, c: Array) -> Array:
        """Rows of all functionals."""
        out = (ctypes.c_double * (WIDTH * c.size))()
        n, asked = ctypes.c_size_t(c.size), doubles(c)
        self.kernel.pe_sector_at(self.pointer, int(backward), n, asked, out)
        return np.array(out).reshape(c.size, WIDTH)


def step(kernel: Any, noise: float, rate: float, deepest: float, steps: int = 2) -> Law:
    """Law of one step."""
    p = Fraction(rate)
    parts = (in_two_doubles(1 / Fraction(noise)), in_two_doubles(p / (1 - p)), log_of_rest(rate))
    numbers = (ctypes.c_double(x) for x in (rate, deepest, float(steps)))
    return Law(kernel, kernel.pe_sector_step, *map(doubles, parts), *numbers)


def added(one: Law, other: Law) -> Law:
    """Law of a sum."""
    return Law(one.kernel, one.kernel.pe_sector_convolve, one.pointer, other.pointer)


def summed(one: Law, other: Law, w: float) -> list[float]:
    """Log F of a sum at a multiple of GRID, its error, and what ends and lines lack of it."""
    out = (ctypes.c_double * 3)()
    if one.kernel.audit_sector_sum(one.pointer, other.pointer, ctypes.c_double(w), out):
        return [math.nan] * 3
    return list(out)


def composed(kernel: Any, kinds: Kinds, deepest: float) -> Law:
    """Law of all steps."""
    steps = sum(number for _, _, number in kinds)
    found: Law | None = None
    for noise, rate, number in kinds:
        one = power = step(kernel, noise, rate, deepest, steps)
        for bit in bin(number)[3:]:
            power = added(power, power)
            power = added(power, one) if bit == "1" else power
        found = power if found is None else added(found, power)
    assert found is not None
    return found


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

    `y` is the double that the threshold is, less the smallest loss.
    """
    with mpmath.workdps(60):
        mu, p = 1 / mpmath.mpf(one[0]), mpmath.mpf(one[1])
        c = mpmath.mpf(y)
        z = (mpmath.log((mpmath.exp(c) - 1 + p) / p)) / mu + mu / 2
        below = mpmath.ncdf(z), (1 - p) * mpmath.ncdf(z) + p * mpmath.ncdf(z - mu)
        above = mpmath.ncdf(-z), (1 - p) * mpmath.ncdf(-z) + p * mpmath.ncdf(mu - z)
        if backward:
            values = (below[1], above[1], below[0], above[0], above[1] - mpmath.exp(c) * above[0])
        else:
            values = (above[0], below[0], above[1], below[1], below[0] - mpmath.exp(-c) * below[1])
        return [float(mpmath.log(x)) if x > 0 else math.nan for x in values]


# ---- error terms -------------------------------------------------------------------------------

STEPS: tuple[tuple[Step, Step], ...] = (
    ((1.0, 1e-3), (1.0, 1e-3)),
    ((0.5, 0.2), (2.0, 1e-4)),
    ((4.0, 0.05), (1.0, 1e-5)),
    ((6.0, 0.4), (3.0, 1e-3)),
)
DEPTH, SHALLOW = -200.0, -20.0
Found = list[tuple[Array, Array, Array]]


def sums(kernel: Any, depths: Sequence[tuple[float, float]], number: int) -> Found:
    """Sums of two steps whose laws end at given depths, over all of what they have."""
    found = []
    for one, other in STEPS:
        for depth in depths:
            a, b = step(kernel, *one, depth[0]), step(kernel, *other, depth[1])
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
                truth.append(integral(float(w), one, other))
            found.append((np.array(value), np.array(error), np.array(truth)))
    return found


integral = cache(log_sum_density)
closed = cache(step_row)


def deep_sums(kernel: Any) -> Found:
    """Sums where ends do not count."""
    return sums(kernel, [(DEPTH, DEPTH)], 24)


def shallow_sums(kernel: Any) -> Found:
    """Sums where the ends of laws count."""
    return sums(kernel, [(SHALLOW, SHALLOW), (SHALLOW, 2 * DEPTH), (2 * DEPTH, SHALLOW)], 24)


def step_rows(kernel: Any, depth: float = SHALLOW, number: int = 30) -> Found:
    """Rows of one step over all of what its law has."""
    found = []
    for one, _ in STEPS:
        law = step(kernel, *one, depth)
        floor = math.log1p(-one[1])
        w = np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number)
        for backward in (False, True):
            c = floor + np.exp(w)
            rows = law.rows(backward, -c if backward else c)
            truth = np.array([closed(one, float(x), backward) for x in c])
            found.append((rows[:, VALUES], rows[:, ERRORS:], truth))
    return found


def deep_step_rows(kernel: Any) -> Found:
    """Rows of one step where its ends do not count."""
    return step_rows(kernel, DEPTH)


class Sector(NamedTuple):
    """A term, and where it is looked for."""

    term: Term
    ask: Callable[[Any], Found]


S, P, R = "sector_sums.c", "sector_panels.c", "sector_rows.c"
# polynomials that do not resolve the law
BAD = (
    (P, "far < 2e-15 * size", "far < 1e-6 * size"),
    (P, "alpha < 1e-6", "alpha < 0.1"),
    ("sector.h", "PE_SECTOR_TERMS = 24", "PE_SECTOR_TERMS = 12"),
)
TERMS = (
    Sector(Term("as it is, sums", (), ()), deep_sums),
    Sector(Term("as it is, rows", (), ()), deep_step_rows),
    Sector(
        Term(
            "remainder of the trapezoidal rule",
            ((S, "EXPONENT = 44.0;", "EXPONENT = 12.0;"),),
            ((S, "s->lost = rest + lost;", "s->lost = lost;"),),
        ),
        deep_sums,
    ),
    Sector(
        Term(
            "nodes below low ends",
            (),
            (
                (S, "double beyond = a->", "double beyond = -INFINITY + a->"),
                (S, "(beyond, b->cells.top[0]", "(beyond, -INFINITY + b->cells.top[0]"),
            ),
        ),
        shallow_sums,
    ),
    Sector(
        Term(
            "nodes above high ends",
            (),
            ((S, "above + log(m->h * (double)n)", "-INFINITY"),),
        ),
        shallow_sums,
    ),
    Sector(
        Term(
            "nodes passed over",
            ((S, "NOTHING = 46.0;", "NOTHING = 14.0;"),),
            ((S, "(beyond, top - NOTHING", "(beyond, -INFINITY + top - NOTHING"),),
        ),
        deep_sums,
    ),
    Sector(
        Term("errors of both laws", BAD, ((S, "error[i + l] += a->off[p];", ""),)),
        deep_sums,
    ),
    Sector(
        Term(
            "probability below the low end",
            (),
            ((R, ": a->cells.top[0] - log(a->low_slope)", ": -INFINITY"),),
        ),
        step_rows,
    ),
    Sector(
        Term(
            "probability above the high end",
            (),
            ((R, "a->tail[of_b] - floor", "-INFINITY"),),
        ),
        step_rows,
    ),
)  # fmt: skip


def judged(kept: Sector, folder: Path, *, dropped: bool) -> Tally:
    """What comes of the coarse kernel, with the term or without it."""
    changes = kept.term.coarse + (kept.term.dropped if dropped else ())
    return tally(kept.ask(build(folder, changes)))


def main() -> int:
    """Print counts; 1 where a value is outside with its terms, or a dropped term is not missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--terms", action="store_true")
    arguments = parser.parse_args()
    failed = False
    if arguments.terms:
        for kept in TERMS:
            with tempfile.TemporaryDirectory() as folder:
                found = judged(kept, Path(folder) / "kept", dropped=False)
                counts = f"{found.asked} asked, {found.outside} outside"
                line = f"{kept.term.name}: {counts}, {found.median:.1e} claimed"
                failed |= found.outside > 0
                if kept.term.dropped:
                    without = judged(kept, Path(folder) / "dropped", dropped=True)
                    line += f"; dropped: {without.outside} outside"
                    failed |= without.outside == 0
            print(line, flush=True)
        return int(failed)
    every, refused = [], 0
    for kinds, found in campaign(arguments.points, arguments.seed):
        if found is None:
            refused += 1
            continue
        every += found
        if tally(found).outside:
            print("outside:", kinds)
    total = tally(every)
    print(f"{total.asked} asked, {total.outside} outside, {total.median:.1e} claimed")
    print(f"{refused} laws refused")
    return int(total.outside > 0)


if __name__ == "__main__":
    sys.exit(main())
