"""Audit of rows of divided laws: their error terms, each dropped, and divided by a hundred.

Draws compositions of one to three kinds of few or rarely sampled steps, and thresholds that one
large loss decides, and asks for rows of docs/theory/divided_lines.md for all tails and the profile.
The truth is a convolution of positive terms, which shares no code with lines and is good to some
1e-12; its error is allowed for. Run by itself, it prints the error of the core's error function in
the plane.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
from compiling import FLAGS, ROOT, doubles
from convolution_rows import Convolution, bounded_steps
from error_terms import Rows, Switch, Term, constant, times
from random_mechanisms import evenly
from scipy.special import wofz

from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS
from pyengine.engines.pairs import GaussianPair
from pyengine.errors import AccuracyError

DOOR = ROOT / "tools" / "audit_divided.c"
WIDTH = 12
LEAST = math.log(1e-300)
MOST_KINDS = 3
LARGEST_RATE = 0.05
D, S, C, H = "divided.c", "shifted.c", "certified.c", "divided_parts.h"
FEW = "few = pe_d_exp(small.log_value[k] - top)"
SWITCHES = (
    constant("omitted shares", D, "OMITTED"),
    Switch("spared", 46.0, ((H, "PE_SPARED 46.0", "PE_SPARED {x}"),)),
    constant("miss", S, "MISS"),
    Switch("period", 38.0, ((D, "- base + 38.0)", "- base + {x})"),)),
    constant("far", D, "NEGLIGIBLE"),
    Switch("small losses", 0.0, ((C, FEW, f"{FEW} * (1.0 + {{x}} * small.error[k])"),)),
)
PATHS = "pe_d_exp(exponent + 1e-12"
TAPERED = "share * (of_error[k] + 2.0 * U) + size * (error[k] + 2.0 * U)"
TERMS = (
    # The truncation is less than a hundredth of its bound; it matters where sums end this early.
    times("divided: values of t left out", C, "f * (", "q->omitted[k]", "rows",
          {"omitted shares": -2.0}),
    times("divided: aliases", C, "", "(k == 3 ? profile_alias : alias)", "rows", {"period": 6.0}),
    Term("divided: paths without a large loss", "rows", ((C, PATHS, f"{{x}} * {PATHS}"),),
         {"spared": 6.0, "far": -1e9}),
    Term("divided: nodes of z above tapers", "rows",
         ((D, f"({TAPERED})", f"({{x}} * ({TAPERED}))"),
          (S, "s->log_m_error += 2.0 * missed;", "s->log_m_error += {x} * 2.0 * missed;"),
          (S, "s->slack += 2.0 * missed;", "s->slack += {x} * 2.0 * missed;")),
         {"miss": 2.0**-20}),
    Term("divided: line of paths without a large loss", "rows",
         ((C, "small.error[k] * few", "{x} * small.error[k] * few"),), {"small losses": 0.9}),
)  # fmt: skip


class Point(NamedTuple):
    """A composition, the order of its pair, a threshold, and rows of the convolution."""

    pair: GaussianPair
    c: float
    truth: np.ndarray[Any, Any]


def drawn(rng: np.random.Generator) -> Point | None:
    """A random threshold with its truth; None where no large loss decides."""
    kinds = [
        (evenly(rng, 0.2, 4.0), evenly(rng, 1e-7, LARGEST_RATE), int(evenly(rng, 2.0, 1e5)))
        for _ in range(rng.integers(1, MOST_KINDS + 1))
    ]
    reverse, total = bool(rng.random() < 0.5), sum(p * n for _, p, n in kinds)
    if rng.random() < 0.5:  # few samples, whose losses can also add up to a threshold
        few = evenly(rng, 0.3, 10.0) / total
        kinds, total = [(sd, few * p, n) for sd, p, n in kinds], few * total
    elif total > 1.0:
        return None
    if max(p for _, p, _ in kinds) > LARGEST_RATE:
        return None
    noise, rate, steps = zip(*kinds, strict=True)
    pair = GaussianPair(noise, rate, steps, reverse)
    c = evenly(rng, 0.01, 20.0 if total < 0.3 else 2.0) * (-1.0 if reverse else 1.0)
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


def row_at(library: Any, point: Point) -> np.ndarray[Any, Any]:
    """The row of the divided law; NaN where there is none."""
    pair, out = ctypes.c_void_p(), (ctypes.c_double * WIDTH)()
    found = np.full(WIDTH, np.nan)
    numbers = [doubles(column) for column in (point.pair.noise, point.pair.probability)]
    numbers.append(doubles(point.pair.steps))
    status = library.pe_pair_new(
        ctypes.c_size_t(len(point.pair.noise)),
        *numbers,
        ctypes.c_int(point.pair.reversed),
        ctypes.c_double(3e7),
        ctypes.byref(pair),
    )
    if status == 0 and library.audit_divided_row(pair, ctypes.c_double(point.c), out) == 0:
        found[:] = out
    library.pe_pair_free(pair)
    return found


def rows(library: Any, some: Sequence[Point]) -> Rows:
    """Values, errors and truths of all functionals; the truth's errors are added."""
    return [
        (row[2:ERRORS], row[ERRORS:] + point.truth[ERRORS:], point.truth[2:ERRORS])
        for point, row in ((point, row_at(library, point)) for point in some)
    ]


PROGRAM = """
#include <stdio.h>
#include "taper.h"

int main(void) {{
    const pe_taper taper = {{0.0, 1.0, -1}};
    const double at[][2] = {{{places}}};
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {{
        pe_tapered v;
        double x[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) x[u] = at[i][0] + u;
        pe_taper_at(&taper, x, at[i][1], &v);
        printf("%a %a %a %a %a %a %a\\n", v.re[0], v.re_low[0], v.im[0], v.im_low[0], v.size[0],
               v.power[0], v.units[0]);
    }}
}}
"""


def scaled(parts: Sequence[float], power: float) -> Any:
    """The sum of some numbers times a power of two."""
    return mpmath.ldexp(mpmath.fsum(parts), int(power))


def tapers(
    places: Sequence[tuple[float, float]], folder: Path
) -> list[tuple[Any, Any, Any, float]]:
    """erfc(x + iy)/2 of the core: both parts, a bound of moduli, and the unit of its error."""
    source, program = folder / "taper_values.c", folder / "taper_values"
    listed = ", ".join(f"{{{x!r}, {y!r}}}" for x, y in places)
    source.write_text(PROGRAM.format(places=listed), encoding="utf-8")
    core = ROOT / "csrc"
    command = [
        "gcc",
        *FLAGS,
        f"-I{core}",
        str(source),
        *(str(core / name) for name in ("taper.c", "normal.c", "doubles.c")),
        "-o",
        str(program),
        "-lm",
    ]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    found = []
    with mpmath.workdps(40):
        for line in printed.splitlines():
            re, re_low, im, im_low, size, power, units = map(float.fromhex, line.split())
            parts = [scaled(part, power) for part in ((re, re_low), (im, im_low), (size,))]
            found.append((parts[0], parts[1], parts[2], units))
    return found


def print_tapers() -> None:
    """Print the error of the error function in the plane beside its bound, and its terms."""
    places = [(0.5 * i, 0.25 * j) for i in range(-10, 61) for j in range(5)]
    worst = 0.0
    with mpmath.workdps(40), tempfile.TemporaryDirectory() as folder:
        for (x, y), (re, im, size, units) in zip(places, tapers(places, Path(folder)), strict=True):
            off = abs(mpmath.mpc(re, im) - mpmath.erfc(mpmath.mpc(x, y)) / 2)
            claim = mpmath.mpf(units) * mpmath.mpf(2) ** -63 * mpmath.mpf(size)
            worst = max(worst, float(off / claim))
    print(f"{len(places)} values: {worst:.3f} of what is claimed at most")
    h, moduli = 0.40625, 0.0
    for x in np.linspace(0.0, 30.0, 601):
        for y in np.linspace(0.0, 1.0, 41):
            z = -y + 1j * x
            part = z.real / h - math.floor(z.real / h)
            half = abs(part - 0.5) > 0.25
            t = (np.arange(-20, 21) + 0.5 * half) * h
            terms = (h / math.pi * np.exp(-t * t) / np.abs(z - t)).sum()
            if x < math.pi / h:
                turned = (1.0 if half else -1.0) * np.exp(-2j * math.pi * z / h)
                terms += abs(2.0 * np.exp(-z * z) / (1.0 + turned))
            moduli = max(moduli, float(terms / abs(wofz(z))))
    print(f"moduli of terms add up to {moduli:.2f} of the function at most")


if __name__ == "__main__":
    print_tapers()
