"""Each error term of the certified rows dropped, and divided by a hundred: who sees it.

    python tools/audit_terms.py --points 14 --lines 24

Most terms lie far below others, where no comparison sees them.  So the kernel is compiled with
switches (``term_switches.py``), and each term is made to carry the error by itself: a choice of the
discretisation is made coarse, or one operation errs by as much as its term allows, all in one
direction, in units of 2^-36 in the place of those of rounding, and the term counts in that unit.
Rows at the thresholds of tests/data/dp_sgd_random.json are held against truths of 20 digits, as
``audit_certificate.py`` does, sums behind the rows against ball arithmetic, as ``audit_sums.py``
does.  Printed is how many lie outside of their bounds: with the term, without it, and with a
hundredth of it; of terms of sums the last two again where nothing errs but by rounding, with
nodes that miss 2^-66.  A term that nobody can miss is printed with the reason.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import audit_sums
import mpmath
from audit_certificate import outside
from compiling import ROOT
from flint import ctx
from term_switches import LOUD, LOUDER, UNIT, WIDE, Kernel, Term, build

BITS = 160
DOOR = ROOT / "tools" / "audit_sums.c"
FINE = {"miss": 2.0**-66}
SPARSE = {"miss": 2.0**-20}
IN_DOUBLE = {"close": 1e300}
IN_LONG_DOUBLE = {"close": 0.0, "doubles": 1e-8}
V, S, N, C = "shifted_values.c", "shifted.c", "shifted_nodes.c", "certified.c"
REAL = "real_nodes.c"
PART, PART_WIDE = LOUD / UNIT, LOUD / WIDE
TWICE = "the error of the mean counts these errors over all nodes, with a factor of 2"

TERMS = (
    Term("values of t left out", C, "f * (", "q->omitted[k]", "rows", {"omitted": -9.0}),
    Term("their integral", C, "pe_d_exp(rest) / next + ",
         "pe_integral_beyond(q, next, rest)", "rows",
         {"omitted": -9.0}),
    Term("aliases", C, "", "(k == 3 ? profile_alias : alias)", "rows", {"alias": 1e-3}),
    Term("aliases: their exponent", C, "rounded = ",
         "8.0 * U * (fabs(ln->theta_k[side]) + fabs(kept) + way)", "rows",
         {"alias": 1e-3, "exponent of an alias": LOUDER}, LOUDER / UNIT),
    Term("nodes of z, in the values", S, "s->slack += ", "2.0 * missed", "sums", SPARSE),
    Term("nodes of z, in log M", S, "s->log_m_error += ", "2.0 * missed", "sums", SPARSE),
    Term("log M: its terms", N, "", "2.0 * PE_WIDE_UNIT * error / whole", "sums",
         {"bell": 20.0 * LOUD}),
    Term("rotations: exponentials and depth", V, "U * (",
         "(177.0 + s->rounding + deep) * sums[0]", "sums", {"exponentials": 7.0 * LOUD}, PART),
    Term("rotations: angles", V, "", "8.0 * sums[1]", "sums", {"angles": 3.4 * LOUD}, PART),
    Term("rotations: the sum of their weights", V, "",
         "(8.0 + s->rounding) * of->size", "sums", {"weights": 7.0 * LOUD}, PART),
    Term("moments: terms and depth", V, "U * ", "(44.0 + 2.2 * of->depth + s->rounding)", "sums",
         {"moments": LOUD}, PART),
    Term("moments: the mean", V, "U * ", "4.0 * small_mean", "sums", {"mean": 3.5 * LOUD}, PART),
    Term("moments: log M in the mean", V, "", "s->log_m_error * small_mean", "sums",
         {"log M of a kind": LOUD}),
    Term("nodes: the mean", V, "", "high * s->mean_error", "sums", {"log W": LOUD}),
    Term("nodes: log W of large ones", V, "drift = ", "high * of->drift", "sums", {"log W": LOUD},
         1.0, TWICE),
    Term("nodes: log W of small ones", V, "",
         "high * fmin(2.0 * s->drift, high * s->bend)", "sums", {"log W": LOUD}, 1.0, TWICE),
    Term("nodes: weights", N, "s->rounding = fmax(s->rounding, ",
         "w.of_weight[u] * w.whole[u] / w.size[u] / U", "sums", {"bell": 20.0 * LOUD}, 1.0, TWICE),
    Term("nodes: sides in runs", REAL, "term->fixed = 6.0 + ", "OF_RUN", "sums",
         {"rise of a run": 2.5 * LOUD}, PART_WIDE),
    Term("nodes: density in runs", REAL, "20.0 + ", "OF_RUN", "sums",
         {"fall of a run": 2.5 * LOUD}, PART_WIDE),
    Term("rounding of the values, all of it", V, "", "(rotated + moments + mean + drift)", "sums",
         FINE),
    Term("logarithms of values", C, "", "r->of_log", "rows", {"log R": 3.0 * LOUD}, PART),
    Term("arguments of values", C, "", "8.0 * fabs(r->arg)", "rows",
         {"argument": 3.5 * LOUD}, PART),
    Term("phase of the mean", C, "", "4.0 * fabs(mean)", "rows",
         {"phase of the mean": 3.5 * LOUD}, PART),
    Term("real parts of values", C, "", "2.0 * fabs(r->b) / r->modulus", "rows",
         {"real part": LOUD}, PART),
    Term("errors of values", C, "", "r->error / (r->modulus - r->error)", "rows",
         {"exponentials": 7.0 * LOUD, "factor of rotations: exponentials and depth": PART}),
    Term("sums over kinds", C, "", "2.0 * U * (fabs(*re) + fabs(*im))", "rows",
         {"sums of kinds": LOUD}, PART),
    Term("error of the mean in a row", C, "v->error[i] + ", "t * c->mean_error", "rows",
         {"reference": 4.0 * LOUD}, PART),
    Term("weights of t", C, "", "(12.0 + 2.0 * fabs(v->im[i]) + 2.0 * fabs(v->re[i]))", "rows",
         {"weights of t": 10.0 * LOUD}, PART),
    Term("kernels", C, "c->uncertain[f] += ", "24.0 * U * c->line.mass[f]", "rows",
         {"kernels": 20.0 * LOUD}, PART),
    Term("sum over t: rotations", C, "U * (", "200.0", "rows",
         {**IN_DOUBLE, "rotations": 7.0 * LOUD}, PART),
    Term("sum over t: angles", C, "/ 16.0 + ", "8.0 * angle", "rows",
         {**IN_DOUBLE, "turn": 4.0 * LOUD}, PART),
    Term("sum over t: additions", C, "", "(double)q->line.nt / 16.0", "rows",
         {**IN_DOUBLE, "additions": LOUD}, PART),
    Term("sum over t: thresholds", C, "", "2.0 * last_time(&q->line) * (fabs(c[u]) + "
         "fabs(q->line.c_ref))", "rows", {**IN_DOUBLE, "threshold": LOUD}, PART),
    Term("long sum over t: angles", C, "(double)ln->nt + ", "8.0 * angle", "rows",
         {**IN_LONG_DOUBLE, "wide turn": 4.0 * LOUD}, PART_WIDE),
    Term("long sum over t: additions", C, "15.0 * 8.0 + ", "(double)ln->nt", "rows",
         {**IN_LONG_DOUBLE, "wide additions": LOUD}, PART_WIDE),
    Term("long sum over t: rotations", C, "PE_WIDE_UNIT * (16.0 + ", "15.0 * 8.0", "rows",
         {**IN_LONG_DOUBLE, "wide rotations": 7.0 * LOUD}, PART_WIDE),
    Term("removed mass in a row", C, "", "removed / size", "rows", {"lost": 1e-12}),
    Term("log M in a row", C, "(size - miss) + ", "q->log_m_error", "rows", {"log M of all": LOUD}),
    Term("row: the exponent", C, "wide = ", "4.0 * PE_WIDE_UNIT", "rows", {"exponent": 3.0 * LOUD},
         PART_WIDE),
    Term("row: the sum", C, "wide + ", "8.0 * U", "rows", {"sum": 7.0 * LOUD}, PART),
    Term("row: its logarithm", C, "", "2.0 * U * fabs(log_value[k])", "rows",
         {"log of a value": LOUD}, PART),
    Term("complement: the value", C, "", "4.0 * U * value", "rows", {"value": 3.0 * LOUD}, PART),
    Term("complement: the rest", C, "(rest - moved) * OUT + ", "8.0 * U", "rows",
         {"complement": 7.0 * LOUD}, PART),
    Term("profile: the difference", C, "", "8.0 * U * (value + fabs(apart))", "rows",
         {"profile": 7.0 * LOUD}, PART),
    Term("profile: its logarithm", C, "", "(8.0 + 8.0 * fabs(pe_d_log(rest)))", "rows",
         {"log of a profile": 7.0 * LOUD}, PART),
)  # fmt: skip

Judge = Callable[[Any], tuple[int, int]]


def on_sums(terms: int) -> Judge:
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


def on_rows(count: int) -> Judge:
    """Asks about rows at published thresholds."""
    data = json.loads((ROOT / "tests/data/dp_sgd_random.json").read_text(encoding="utf-8"))
    every = [p for p in data["points"] if "p_above" in p and min(p["p"]) > 1e-4]
    points = every[:: max(1, len(every) // count)]

    def judge(kernel: Any) -> tuple[int, int]:
        with mpmath.workdps(40):
            return outside(kernel, points)[:2]

    return judge


def asked(kernel: Kernel, judge: Judge, term: Term, factor: float) -> tuple[int, int]:
    """How many are asked, and outside, with a part of a term where it alone must hold."""
    with kernel.set_to({**term.loud, term.factor: factor * term.scale}) as library:
        return judge(library)


def asked_plainly(kernel: Kernel, judge: Judge, term: Term, factor: float) -> tuple[int, int]:
    """The same where nothing errs but by rounding."""
    with kernel.set_to({**FINE, term.factor: factor}) as library:
        return judge(library)


def main() -> int:
    """Print the table; 1 where something is outside with its term, or none without it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=12)
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--only", default="", help="terms whose name has this text")
    arguments = parser.parse_args()
    ctx.prec = BITS
    judges = {"rows": on_rows(arguments.points), "sums": on_sums(arguments.lines)}
    failed = 0
    print("| error term | asked | outside with it | dropped | a hundredth | by rounding | why |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        kernel = build(Path(folder), TERMS, [DOOR])
        for term in (term for term in TERMS if arguments.only in term.name):
            judge = judges[term.asks]
            (number, with_it), *rest = (asked(kernel, judge, term, x) for x in (1.0, 0.0, 0.01))
            dropped, part = (found[1] for found in rest)
            plainly = ""
            if term.asks == "sums":
                parts = [asked_plainly(kernel, judge, term, x)[1] for x in (0.0, 0.01)]
                plainly = f"{parts[0]}; {parts[1]}"
            failed += with_it > 0 or (dropped > 0) == bool(term.unseen)
            figures = f"{number} {term.asks} | {with_it} | {dropped} | {part} | {plainly}"
            print(f"| {term.name} | {figures} | {term.unseen} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
