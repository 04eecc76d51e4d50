"""Audit of the certified rows: error terms made large, and dropped, against 20-digit truths.

The discretisation is chosen so fine that most error terms are far below rounding, where no test
sees them.  Here the kernel is compiled again with one choice made coarse at a time: the term must
then carry the error by itself (rows outside their bounds: none), and without it the rows must be
seen to fail.

    python tools/audit_certificate.py [--points 120]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
from compiling import CERTIFIED, ROOT, compiled

WIDTH, ERRORS = 12, 7
KEYS = {
    False: {0: "p_above", 1: "p_below", 2: "q_above", 3: "q_below"},
    True: {0: "q_below", 1: "q_above", 2: "p_below", 3: "p_above", 4: "h_qp"},
}
Change = tuple[str, str, str]  # file, old text, new text


class Term(NamedTuple):
    """An error term, how to make it matter, and how to drop it."""

    name: str
    coarse: tuple[Change, ...]
    dropped: tuple[Change, ...]


TERMS = (
    Term(
        "values of t left out",
        (("certified.c", "OMITTED = -34.0", "OMITTED = -9.0"),),
        (("certified.c", "f * (q->omitted[k] + ", "f * ("),),
    ),
    Term(
        "aliases",
        (("contour.c", "ALIAS_TOL = 1e-15", "ALIAS_TOL = 1e-3"),),
        (("certified.c", "(k == 3 ? profile_alias : alias)", "0.0"),),
    ),
    Term(
        "nodes of z: spacing and window",
        (("shifted.c", "MISS = 0x1p-56", "MISS = 0x1p-20"),),
        (
            ("shifted.c", "s->slack += 2.0 * missed;", ""),
            ("shifted.c", "s->log_m_error += 2.0 * missed;", ""),
        ),
    ),
    Term(
        "rounding of the values",
        (),
        (
            ("shifted_values.c", "(rotated + moments + mean + drift)", "0.0"),
            ("certified.c", "U * rounding)", "0.0 * rounding)"),
            ("certified.c", "24.0 * U * c->line.mass[f]", "0.0"),
            ("certified.c", "(12.0 + 2.0 * fabs(v->im[i]) + 2.0 * fabs(v->re[i])) * U", "0.0"),
            ("certified.c", "rounding * ln->mass[k]", "0.0"),
        ),
    ),
)


def build(folder: Path, changes: tuple[Change, ...], doors: Sequence[Path] = ()) -> Any:
    """Compile the kernel with texts changed; texts that are not there are passed over once."""
    sources = folder / "csrc"
    sources.mkdir()
    for source in (ROOT / "csrc").glob("*.[ch]"):
        text = source.read_text(encoding="utf-8")
        for name, old, new in changes:
            if name == source.name:
                text = text.replace(old, new)
        (sources / source.name).write_text(text, encoding="utf-8")
    files = [*(sources / f"{name}.c" for name in CERTIFIED), *doors]
    return compiled(folder / "kernel.so", files, sources)


def changed(changes: tuple[Change, ...]) -> bool:
    """Whether at least one text of the changes stands in the sources."""
    return not changes or any(
        old in (ROOT / "csrc" / name).read_text(encoding="utf-8") for name, old, _ in changes
    )


def doubles(values: Any) -> Any:
    """Return an array for C."""
    numbers = [float(value) for value in values]
    return (ctypes.c_double * len(numbers))(*numbers)


def rows(kernel: Any, point: dict[str, Any], backward: bool) -> np.ndarray[Any, Any]:
    """Certified rows of one point for the three functionals."""
    pair, out = ctypes.c_void_p(), (ctypes.c_double * WIDTH)()
    found = np.full((3, WIDTH), np.nan)
    numbers = [doubles(point[key]) for key in ("noise", "p", "steps")]
    status = kernel.pe_pair_new(
        ctypes.c_size_t(len(point["noise"])),
        *numbers,
        ctypes.c_int(backward),
        ctypes.c_double(3e7),
        ctypes.byref(pair),
    )
    c = doubles([-point["c"] if backward else point["c"]])
    for i, functional in enumerate((0, 1, 4)):
        if status == 0:
            kernel.pe_pair_certify(pair, functional, ctypes.c_size_t(1), c, out)
            found[i] = out
    kernel.pe_pair_free(pair)
    return found


def outside(kernel: Any, points: list[dict[str, Any]]) -> tuple[int, int, float]:
    """Rows compared, rows outside their bounds, and the largest error in units of its bound."""
    compared = wrong = 0
    worst = 0.0
    for point in points:
        for backward, keys in KEYS.items():
            for row in rows(kernel, point, backward):
                for which, key in keys.items():
                    error = row[ERRORS + which]
                    if key not in point or not error < 0.05 or float(point[key]) < 1e-300:
                        continue
                    digits = point[key].split("e")[0].replace(".", "").lstrip("0")
                    log = mpmath.log(mpmath.mpf(point[key]))
                    off = float(abs(mpmath.expm1(mpmath.mpf(row[2 + which]) - log)))
                    off = max(off - 10.0 ** (1 - len(digits)), 0.0)
                    compared += 1
                    wrong += off > error
                    worst = max(worst, off / error if error > 0.0 else float(off > 0.0) * 1e300)
    return compared, wrong, worst


def main(arguments: list[str]) -> int:
    """Print a table; fail where a term does not hold, or where nobody misses it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=120)
    count = parser.parse_args(arguments).points
    data = json.loads((ROOT / "tests/data/dp_sgd_random.json").read_text(encoding="utf-8"))
    every = [p for p in data["points"] if "p_above" in p and min(p["p"]) > 1e-4]
    points = every[:: max(1, len(every) // count)]
    failed = 0
    print("| error term | made large: rows, outside, largest error/bound | dropped: outside |")
    print("|---|---|---|")
    with mpmath.workdps(40):
        for term in TERMS:
            if not changed(term.coarse) or not changed(term.dropped):
                print(f"{term.name}: the text to change is gone", file=sys.stderr)
                return 2
            figures = []
            for changes in (term.coarse, term.coarse + term.dropped):
                with tempfile.TemporaryDirectory() as folder:
                    figures.append(outside(build(Path(folder), changes), points))
            (held, wrong, worst), (_, without, _) = figures
            failed += wrong > 0 or without == 0
            print(f"| {term.name} | {held}, {wrong}, {worst:.2g} | {without} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
