"""Each error term of the certified rows dropped, and divided by a hundred: who sees it.

    python tools/audit_terms.py --points 12 --lines 40

The kernel is compiled again with one term changed.  Terms of the discretisation, which lie far
below rounding, are first made to matter by one coarse choice; then rows at the thresholds of
tests/data/dp_sgd_random.json are held against truths of 20 digits, as ``audit_certificate.py``
does.  Terms of rounding are asked of the sums behind the rows, in ball arithmetic, as
``audit_sums.py`` does.  Printed is how many rows or sums lie outside of their bounds: with the
term, without it, and with a hundredth of it.  A term that nobody misses is printed as such, and is
no failure: it guards what the others guard as well.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import audit_sums
import mpmath
from audit_certificate import ROOT, Change, build, outside
from flint import ctx

BITS = 160
DOOR = "audit_sums.c"
LATE = ("certified.c", "OMITTED = -34.0", "OMITTED = -9.0")
ALIASED = ("contour.c", "ALIAS_TOL = 1e-15", "ALIAS_TOL = 1e-3")
SPARSE = ("shifted.c", "MISS = 0x1p-56", "MISS = 0x1p-20")


class Term(NamedTuple):
    """An error term: its file, what it is, the text around it, and who is asked about it."""

    name: str
    file: str
    text: str
    before: str = ""
    coarse: tuple[Change, ...] = ()

    def changed(self, factor: str) -> tuple[Change, ...]:
        """The source with a part of the term."""
        new = f"{self.before}({factor} * ({self.text}))"
        return (*self.coarse, (self.file, self.before + self.text, new))


TERMS = (
    Term("values of t left out", "certified.c", "q->omitted[k]", "f * (", (LATE,)),
    Term("their integral", "certified.c", "integral_beyond(q, next, rest)",
         "exp(rest) / next + ", (LATE,)),
    Term("aliases", "certified.c", "(k == 3 ? profile_alias : alias)", "", (ALIASED,)),
    Term("nodes of z, in the values", "shifted.c", "missed;", "s->slack += ", (SPARSE,)),
    Term("nodes of z, in log M", "shifted.c", "2.0 * missed;", "s->log_m_error += ", (SPARSE,)),
    Term("rounding of log M", "shifted.c", "2.0 * eps * error * scale", "s->log_m_error = "),
    Term("rotations: exponentials and depth", "shifted_values.c",
         "(177.0 + s->rounding + deep) * sums[0]", "U * ("),
    Term("rotations: angles", "shifted_values.c", "8.0 * sums[1]"),
    Term("rotations: the sum of their weights", "shifted_values.c",
         "(8.0 + s->rounding) * of->size"),
    Term("rotations: errors of log W", "shifted_values.c", "high * of->drift", "drift = "),
    Term("moments: terms and depth", "shifted_values.c",
         "(44.0 + 2.2 * of->depth + s->rounding)", "U * "),
    Term("moments: the mean", "shifted_values.c", "4.0 * high * hypot(of->mean_re, of->mean_im)",
         "U * "),
    Term("moments: error of the mean", "shifted_values.c", "high * s->mean_error"),
    Term("moments: errors of log W", "shifted_values.c",
         "high * fmin(2.0 * s->drift, high * s->bend)"),
)  # fmt: skip
WHOLE = (
    Term("rounding of the values, all of it", "shifted_values.c",
         "(rotated + moments + mean + drift)"),
)  # fmt: skip


def on_sums(terms: int) -> Callable[[Any], tuple[int, int]]:
    """Asks about random lines, whose truths are computed once."""
    random_ = random.Random("terms")
    families = (None, None, "group", "truncated")
    asked = [audit_sums.drawn(random_, families[i % len(families)]) for i in range(terms)]
    truths = [audit_sums.truth_of(line) for line in asked]

    def judge(kernel: Any) -> tuple[int, int]:
        counts = audit_sums.Counts(silent=True)
        for line, truth in zip(asked, truths, strict=True):
            audit_sums.judge(kernel, line, truth, counts)
        return counts.sums, counts.outside

    return judge


def on_rows(count: int) -> Callable[[Any], tuple[int, int]]:
    """Asks about rows at published thresholds."""
    data = json.loads((ROOT / "tests/data/dp_sgd_random.json").read_text(encoding="utf-8"))
    every = [p for p in data["points"] if "p_above" in p and min(p["p"]) > 1e-4]
    points = every[:: max(1, len(every) // count)]

    def judge(kernel: Any) -> tuple[int, int]:
        with mpmath.workdps(40):
            return outside(kernel, points)[:2]

    return judge


def main() -> int:
    """Print the table; 1 where something is outside with its term, 2 where a text is gone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=12)
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--only", default="", help="terms whose name has this text")
    arguments = parser.parse_args()
    ctx.prec = BITS
    rows, sums = on_rows(arguments.points), on_sums(arguments.lines)
    failed = 0
    print("| error term | asked | outside with it | dropped | a hundredth of it |")
    print("|---|---|---|---|---|")
    for term in (term for term in (*TERMS, *WHOLE) if arguments.only in term.name):
        text = (ROOT / "csrc" / term.file).read_text(encoding="utf-8")
        if term.before + term.text not in text:
            print(f"{term.name}: the text to change is gone", file=sys.stderr)
            return 2
        judge, what = (rows, "rows") if term.coarse else (sums, "sums")
        found = []
        for changes in (term.coarse, term.changed("0.0"), term.changed("0.01")):
            # a text ends with its semicolon where it ends a statement
            closed = tuple((name, old, new.replace(";))", "));")) for name, old, new in changes)
            with tempfile.TemporaryDirectory() as folder:
                found.append(judge(build(Path(folder), closed, [ROOT / "tools" / DOOR])))
        (number, with_it), (_, dropped), (_, part) = found
        failed += with_it > 0
        print(f"| {term.name} | {number} {what} | {with_it} | {dropped} | {part} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
