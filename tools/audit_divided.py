"""Audit of rows of divided laws: their error terms made large, and dropped.

``python tools/audit_divided.py --points 40`` draws compositions of few or rarely sampled steps and
thresholds that one large loss decides, and asks rows of docs/theory/divided_lines.md for all
tails and the profile.  Truth are the sums of positive terms of the convolution engine, which
share no code with lines and are good to some 1e-12; what that may be off by is allowed for.  The
kernel is compiled again with one choice made coarse at a time, so that its term must carry the
error alone, and once more with the term dropped.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from audit_certificate import Change, build, doubles
from compiling import FLAGS, ROOT

from pyengine.engines.convolution import Convolution, bounded_steps
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

WIDTH = 12
LEAST = math.log(1e-300)


class Term(NamedTuple):
    """An error term, how to make it matter, and how to drop it."""

    name: str
    coarse: tuple[Change, ...]
    dropped: tuple[Change, ...]


TERMS = (
    Term("as it is", (), ()),
    Term(
        "values of t left out",
        (("divided.c", "OMITTED = -36.0", "OMITTED = -7.0"),),
        (("certified.c", "f * (q->omitted[k] + ", "f * ("),),
    ),
    Term(
        "aliases",
        (("divided.c", "- base + 38.0)", "- base + 6.0)"),),
        (("certified.c", "(k == 3 ? profile_alias : alias)", "0.0"),),
    ),
    Term(
        "paths without a large loss",
        (
            ("divided.c", "SPARED = 46.0", "SPARED = 6.0"),
            ("divided.c", "> log_value - 32.0", "> log_value + 1e9"),
        ),
        (("certified.c", "exp(exponent + 1e-12", "0.0 * exp(exponent + 1e-12"),),
    ),
    Term(
        "nodes of z above tapers",
        (("shifted.c", "MISS = 0x1p-56", "MISS = 0x1p-20"),),
        (
            ("divided.c", "share * (of_error[k] + 2.0 * U) + size * (error[k] + 2.0 * U)", "0.0"),
            ("shifted.c", "s->log_m_error += 2.0 * missed;", ""),
            ("shifted.c", "s->slack += 2.0 * missed;", ""),
        ),
    ),
)


class Point(NamedTuple):
    """A composition, the order of its pair, a threshold, and rows of the convolution engine."""

    pair: GaussianPair
    c: float
    truth: np.ndarray[Any, Any]


def drawn(rng: np.random.Generator) -> Point | None:
    """A random threshold with its truth; None where no large loss decides."""

    def evenly(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    noise, rate, steps = evenly(0.25, 4.0), evenly(1e-6, 0.05), int(evenly(2.0, 1e5))
    reverse = bool(rng.random() < 0.5)
    pair = GaussianPair((noise,), (rate,), (steps,), reverse)
    if rate * steps > 1.0:
        return None
    c = evenly(0.01, 20.0) * (-1.0 if reverse else 1.0)
    try:
        engine = Convolution(bounded_steps(GaussianPair(*pair[:3], False)), reversed=reverse)
        truth = engine.at(A_ABOVE, np.array([c]))[0]
    except AccuracyError:
        return None
    far = (A_BELOW, B_BELOW) if reverse else (A_ABOVE, B_ABOVE)
    return Point(pair, c, truth) if truth[2 + far[0]] > LEAST else None


def points(number: int, seed: int) -> list[Point]:
    """Points with truths."""
    rng = np.random.default_rng(seed)
    found: list[Point] = []
    while len(found) < number:
        point = drawn(rng)
        if point is not None:
            found.append(point)
    return found


def asked(kernel: Any, point: Point) -> np.ndarray[Any, Any]:
    """The row of the divided law; NaN where there is none."""
    pair, out = ctypes.c_void_p(), (ctypes.c_double * WIDTH)()
    found = np.full(WIDTH, np.nan)
    numbers = [doubles(column) for column in (point.pair.noise, point.pair.probability)]
    numbers.append(doubles(point.pair.steps))
    status = kernel.pe_pair_new(
        ctypes.c_size_t(len(point.pair.noise)),
        *numbers,
        ctypes.c_int(point.pair.reversed),
        ctypes.c_double(3e7),
        ctypes.byref(pair),
    )
    if status == 0 and kernel.audit_divided_row(pair, ctypes.c_double(point.c), out) == 0:
        found[:] = out
    kernel.pe_pair_free(pair)
    return found


class Tally(NamedTuple):
    """How many functionals were asked and outside, and the error claimed in the median."""

    asked: int
    outside: int
    median: float


def tally(kernel: Any, some: Sequence[Point]) -> Tally:
    """Hold rows against truths."""
    number, outside, claimed = 0, 0, []
    for point in some:
        row = asked(kernel, point)
        for functional in (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE):
            value, error = row[2 + functional], row[ERRORS + functional]
            truth, unsure = point.truth[2 + functional], point.truth[ERRORS + functional]
            if not error < 0.5 or not math.isfinite(truth):
                continue
            number += 1
            claimed.append(error)
            outside += abs(math.expm1(truth - value)) > (error + unsure) * (1.0 + 1e-6)
    return Tally(number, outside, float(np.median(claimed)) if claimed else math.nan)


def judged(changes: tuple[Change, ...], some: Sequence[Point], folder: Path) -> Tally:
    """Compile with changes, each of which has to be there, and hold rows against truths."""
    for name, old, _ in changes:
        assert old in (ROOT / "csrc" / name).read_text(encoding="utf-8"), (name, old)
    folder.mkdir(exist_ok=True)
    return tally(build(folder, changes, [ROOT / "tools" / "audit_divided.c"]), some)


PROGRAM = """
#include <stdio.h>
#include "taper.h"

int main(void) {{
    const pe_taper taper = {{0.0, 1.0, -1}};
    const double at[][2] = {{{places}}};
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {{
        const pe_tapered v = pe_taper_at(&taper, at[i][0], at[i][1]);
        printf("%.25Lg %.25Lg %.25Lg %.17g\\n", v.re, v.im, v.size, v.units);
    }}
}}
"""


def tapers(places: Sequence[tuple[float, float]], folder: Path) -> list[list[str]]:
    """erfc(x + iy)/2 as the core has it: both parts, a bound of moduli, and units of its error."""
    source, program = folder / "taper_values.c", folder / "taper_values"
    listed = ", ".join(f"{{{x!r}, {y!r}}}" for x, y in places)
    source.write_text(PROGRAM.format(places=listed), encoding="utf-8")
    core = ROOT / "csrc"
    command = [
        "gcc",
        *FLAGS,
        f"-I{core}",
        str(source),
        str(core / "taper.c"),
        "-o",
        str(program),
        "-lm",
    ]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in printed.splitlines()]


def main() -> int:
    """Print counts; 1 where a row is outside with its terms, or a dropped term is not missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    some = points(arguments.points, arguments.seed)
    failed = False
    for i, term in enumerate(TERMS):
        with tempfile.TemporaryDirectory() as folder:
            kept = judged(term.coarse, some, Path(folder) / f"kept{i}")
            counts = f"{kept.asked} asked, {kept.outside} outside"
            line = f"{term.name}: {counts}, {kept.median:.1e} claimed"
            failed |= kept.outside > 0
            if term.dropped:
                without = judged(term.coarse + term.dropped, some, Path(folder) / f"dropped{i}")
                line += f"; dropped: {without.outside} outside"
                failed |= without.outside == 0
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
