"""Error terms of certified rows of Gaussian steps, each dropped, and divided by a hundred.

Units of rounding are enlarged to 2^-36. Rows at thresholds of tests/data/dp_sgd_random.json are
compared with truths of 20 digits, and the sums behind the rows with ball arithmetic, as in
``audit_sums.py``.
"""

from __future__ import annotations

import ctypes
import json
import random
from collections.abc import Callable
from typing import Any

import audit_sums
import mpmath
import numpy as np
from compiling import ROOT, doubles
from error_terms import (
    UNIT,
    WIDE,
    Asked,
    Switch,
    constant,
    operation,
    times,
)

from pyengine.engines.spectral import THOROUGH

POINTS, LINES = 14, 24
LOUD = 2.0**-36  # enlarged unit of rounding of an operation that is made to err
LOUDER = 2.0**-12  # the same for exponents of bounds, which few rows attain to the last digits
FINE = {"miss": 2.0**-66}
SPARSE = {"miss": 2.0**-20}
IN_DOUBLE = {"close": 1e300}
IN_LONG_DOUBLE = {"close": 0.0, "doubles": 1e-8}
PART, PART_WIDE = LOUD / UNIT, LOUD / WIDE
V, S, N, C = "shifted_values.c", "shifted.c", "shifted_nodes.c", "certified.c"
REAL, PLANE = "real_nodes.c", "plane_nodes.c"
SWITCHES = (
    # choices
    constant("miss", S, "MISS"),
    constant("omitted", C, "OMITTED"),
    constant("alias", "contour.c", "ALIAS_TOL"),
    constant("close", "proven.c", "REFINED"),
    # nodes and values of one kind of step
    operation("bell", (PLANE, "&k), line->h);", "&k), line->h * (1.0 + {x}));"),
               (REAL, "PE_HALF_LOG_2PI))), part->h);",
                "PE_HALF_LOG_2PI))), part->h * (1.0 + {x}));"),
               (PLANE, "at->rounding[u] = 20.0 +", "at->rounding[u] = {x} / PE_WIDE_UNIT + 20.0 +"),
               (REAL, "rounding = 20.0 +", "rounding = {x} / PE_WIDE_UNIT + 20.0 +")),
    Switch("log M of a kind", 0.0,
           ((N, ": pe_dd_log1p(total);", ": pe_dd_add_d(pe_dd_log1p(total), {x});"),
            (N, "s->log_m_error = 2.0 *", "s->log_m_error = {x} + 2.0 *"))),
    operation("log W", (PLANE, "at->log_error[u] += 8.0 *",
                         "at->log_error[u] += {x} / PE_WIDE_UNIT * "
                         "(fabs(at->log_re.h[u]) + fabs(at->log_im.h[u]));\n"
                         "pe_set_lane(&at->log_re, u, "
                         "pe_dd_mul_d(pe_lane(&at->log_re, u), 1.0 + {x}));\n"
                         "pe_set_lane(&at->log_im, u, "
                         "pe_dd_mul_d(pe_lane(&at->log_im, u), 1.0 + {x}));\n"
                         "at->log_error[u] += 8.0 *"),
               (REAL, "+ 8.0 * reach;", "+ 8.0 * reach + {x} / PE_WIDE_UNIT * reach;"),
               (REAL, "    /* W^s, and W^s - 1 - s log W */",
                "    for (int u = 0; u < PE_LANES; u++) pe_set_lane(&log_of, u, "
                "pe_dd_mul_d(pe_lane(&log_of, u), 1.0 + {x}));")),
    operation("rise of a run", (REAL, "step = pe_dd_exp(pe_dd_mul_d(c, h));",
                                 "step = c.h == 0.0 ? pe_dd_of(1.0) : "
                                 "pe_dd_mul_d(pe_dd_exp(pe_dd_mul_d(c, h)), 1.0 + {x});")),
    operation("fall of a run", (REAL, "pe_dd_exp(pe_two_prod(-PE_LANES * h, x))",
                                 "pe_dd_mul_d(pe_dd_exp(pe_two_prod(-PE_LANES * h, x)), "
                                 "1.0 + {x})")),
    operation("exponentials", (V, "e * (1.0 + cm1)", "(1.0 + {x}) * e * (1.0 + cm1)"),
               (V, "e * (smx + b)", "(1.0 + {x}) * e * (smx + b)")),
    operation("angles", (V, "b = t * l,", "b = t * l * (1.0 + {x}),")),
    operation("weights", (V, "out->sum_re = sum_re.h;",
                           "out->sum_re = sum_re.h * (1.0 + {x});"),
               (V, "out->sum_im = sum_im.h;", "out->sum_im = sum_im.h * (1.0 + {x});")),
    operation("moments", *(
        (V, f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial;",
         f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial * "
         "(1.0 + (5.24 * (k + 2) + 3.0) * {x});")
        for c in ("re", "im"))),
    operation("mean", *((V, f"out->mean_{c} = mean_{c}.h;",
                          f"out->mean_{c} = mean_{c}.h * (1.0 + {{x}});")
                         for c in ("re", "im"))),
    # logarithms of values, and their weights
    operation("log R", (C, "*re += n * r->log_r;", "*re += n * r->log_r * (1.0 + {x});")),
    operation("argument", (C, "(r->arg - mean)", "(r->arg * (1.0 + {x}) - mean)")),
    operation("phase of the mean", (C, "mean = r->t * s->mean_re;",
                                     "mean = r->t * s->mean_re * (1.0 + {x});")),
    operation("real part", (C, "double x = 1.0 + a,", "double x = (1.0 + a) * (1.0 + {x}),")),
    operation("sums of kinds", (C, "    *top += n * r->top;",
                                 "    *re *= 1.0 + {x};\n    *im *= 1.0 + {x};\n"
                                 "    *top += n * r->top;")),
    operation("reference", (C, "c->line.c_ref = mean;", "c->line.c_ref = mean * (1.0 + {x});")),
    operation("weights of t", ("contour_rows.c", "double a = pe_vexp(",
                                "double a = (1.0 + {x}) * pe_vexp(")),
    operation("kernels", ("contour_rows.c", "n0 = l * l + t * t,",
                           "n0 = (l * l + t * t) * (1.0 + {x}),")),
    # sums over t
    operation("rotations", ("contour_rows.c", "cr[u] = 1.0 + cm1;",
                             "cr[u] = (1.0 + {x}) * (1.0 + cm1);"),
               ("contour_rows.c", "ci[u] = x[u] + smx;", "ci[u] = (1.0 + {x}) * (x[u] + smx);")),
    operation("turn", ("contour_rows.c", "turn = -ln->ht *", "turn = -ln->ht * (1.0 + {x}) *")),
    operation("threshold", ("contour_rows.c", "* (c[u] - ln->c_ref);",
                             "* (c[u] * (1.0 + {x}) - ln->c_ref);")),
    operation("additions", *(("contour_rows.c", f"s{i}[u] += b{i}[u];",
                               f"s{i}[u] = s{i}[u] * (1.0 + {{x}}) + b{i}[u];")
                              for i in (1, 2, 3))),
    Switch("doubles", 0.0, ((C, "const double rounding = U * (200.0",
                             "const double rounding = {x} + U * (200.0"),)),
    operation("wide rotations", (C, "step_re = pe_dd_turn(turn, &step_im);",
                                  "step_re = pe_dd_mul_d(pe_dd_turn(turn, &step_im), 1.0 + {x});\n"
                                  "step_im = pe_dd_mul_d(step_im, 1.0 + {x});")),
    operation("wide additions", (C, "sum[i] = pe_dd_add(sum[i], term);",
                                  "sum[i] = pe_dd_mul_d(pe_dd_add(sum[i], term), 1.0 + {x});")),
    operation("wide turn", (C, "pe_two_sum(ln->c_ref, -c), ln->ht)",
                             "pe_dd_mul_d(pe_two_sum(ln->c_ref, -c), 1.0 + {x}), ln->ht)")),
    # rows
    Switch("lost", 0.0, ((C, "removed = lost * pe_d_exp(", "removed = (lost + {x}) * pe_d_exp("),
                         (C, "        if (!(s[k] * sign[k] > 0.0)",
                          "        if ({x} > 0.0) log_value[k] += pe_d_log1p(-0.9 * {x} * pe_d_exp("
                          "(of_b && k == 3 ? -c : 0.0) - log_value[k]));\n"
                          "        if (!(s[k] * sign[k] > 0.0)"))),
    Switch("log M of all", 0.0, ((C, "c->log_m = log_m;", "c->log_m = pe_dd_add_d(log_m, {x});"),
                                 (C, "c->log_m_error = error * OUT;",
                                  "c->log_m_error = error * OUT + {x};"))),
    Switch("exponent of an alias", 0.0,
           ((C, "pe_d_exp(ln->theta_k[side] - kept - way + rounded)",
             "pe_d_exp(ln->theta_k[side] - kept - way + rounded - "
             "7.0 * {x} * (fabs(ln->theta_k[side]) + fabs(kept) + way))"),)),
    operation("exponent", (C, "pe_dd_sub(log_m, pe_two_prod(l, t));",
                            "pe_dd_sub(log_m, pe_dd_mul_d(pe_two_prod(l, t), 1.0 + {x}));")),
    operation("sum", (C, "size = fabs(s[k])", "size = fabs(s[k]) * (1.0 + {x})"),
               (C, "pe_dd_of(fabs(sum[", "pe_dd_of((1.0 + {x}) * fabs(sum[")),
    operation("log of a value", (C, "log_value[k] = logs->value[k][u];",
                                  "log_value[k] = logs->value[k][u] * (1.0 + {x});")),
    operation("complement", (C, "rest = -pe_d_expm1(log_value);",
                              "rest = -pe_d_expm1(log_value) * (1.0 + {x});")),
    operation("value", (C, "value = pe_d_exp(log_value), rest = -",
                         "value = pe_d_exp(log_value) * (1.0 + {x}), rest = -")),
    operation("profile", (C, "rest = value - apart;", "rest = value * (1.0 + {x}) - apart;")),
    operation("log of a profile", (C, "row->log_value[PE_PROFILE] = pe_d_log(rest);",
                                    "row->log_value[PE_PROFILE] = pe_d_log(rest) * (1.0 + {x});")),
)  # fmt: skip

TERMS = (
    times("values of t left out", C, "f * (", "q->omitted[k]", "rows", {"omitted": -9.0}),
    times("their integral", C, "pe_d_exp(rest) / next + ",
         "pe_integral_beyond(q, next, rest)", "rows",
         {"omitted": -9.0}),
    times("aliases", C, "", "(k == 3 ? profile_alias : alias)", "rows", {"alias": 1e-3}),
    times("aliases: their exponent", C, "rounded = ",
         "8.0 * U * (fabs(ln->theta_k[side]) + fabs(kept) + way)", "rows",
         {"alias": 1e-3, "exponent of an alias": LOUDER}, LOUDER / UNIT),
    times("nodes of z, in the values", S, "s->slack += ", "2.0 * missed", "sums", SPARSE),
    times("nodes of z, in log M", S, "s->log_m_error += ", "2.0 * missed", "sums", SPARSE),
    times("log M: its terms", N, "", "2.0 * PE_WIDE_UNIT * error / whole", "sums",
         {"bell": 20.0 * LOUD}),
    times("rotations: exponentials and depth", V, "U * (",
         "(177.0 + s->rounding + deep) * sums[0]", "sums", {"exponentials": 7.0 * LOUD}, PART),
    times("rotations: angles", V, "", "8.0 * sums[1]", "sums", {"angles": 3.4 * LOUD}, PART),
    times("rotations: the sum of their weights", V, "",
         "(8.0 + s->rounding) * of->size", "sums", {"weights": 7.0 * LOUD}, PART),
    times("moments: terms and depth", V, "U * ", "(44.0 + 2.2 * of->depth + s->rounding)", "sums",
         {"moments": LOUD}, PART),
    times("moments: the mean", V, "U * ", "4.0 * small_mean", "sums", {"mean": 3.5 * LOUD}, PART),
    times("moments: log M in the mean", V, "", "s->log_m_error * small_mean", "sums",
         {"log M of a kind": LOUD}),
    times("nodes: the mean", V, "", "high * s->mean_error", "sums", {"log W": LOUD}),
    times("nodes: log W of large ones", V, "drift = ", "high * of->drift", "sums", {"log W": LOUD}),
    times("nodes: log W of small ones", V, "",
         "high * fmin(2.0 * s->drift, high * s->bend)", "sums", {"log W": LOUD}),
    times("nodes: weights", N, "s->rounding = larger(s->rounding, ",
         "w.of_weight[u] * w.whole[u] / w.size[u] / U", "sums", {"bell": 20.0 * LOUD}),
    times("nodes: sides in runs", REAL, "term->fixed = 6.0 + ", "OF_RUN", "sums",
         {"rise of a run": 2.5 * LOUD}, PART_WIDE),
    times("nodes: density in runs", REAL, "20.0 + ", "OF_RUN", "sums",
         {"fall of a run": 2.5 * LOUD}, PART_WIDE),
    times("rounding of the values, all of it", V, "", "(rotated + moments + mean + drift)", "sums",
         FINE),
    times("logarithms of values", C, "", "r->of_log", "rows", {"log R": 3.0 * LOUD}, PART),
    times("arguments of values", C, "", "8.0 * fabs(r->arg)", "rows",
         {"argument": 3.5 * LOUD}, PART),
    times("phase of the mean", C, "", "4.0 * fabs(mean)", "rows",
         {"phase of the mean": 3.5 * LOUD}, PART),
    times("real parts of values", C, "", "2.0 * fabs(r->b) / r->modulus", "rows",
         {"real part": LOUD}, PART),
    times("errors of values", C, "", "r->error / (r->modulus - r->error)", "rows",
         {"exponentials": 7.0 * LOUD, "factor of rotations: exponentials and depth": PART}),
    times("sums over kinds", C, "", "2.0 * U * (fabs(*re) + fabs(*im))", "rows",
         {"sums of kinds": LOUD}, PART),
    times("error of the mean in a row", C, "v->error[i] + ", "t * c->mean_error", "rows",
         {"reference": 4.0 * LOUD}, PART),
    times("weights of t", C, "", "(12.0 + 2.0 * fabs(v->im[i]) + 2.0 * fabs(v->re[i]))", "rows",
         {"weights of t": 10.0 * LOUD}, PART),
    times("kernels", C, "c->uncertain[f] += ", "24.0 * U * c->line.mass[f]", "rows",
         {"kernels": 20.0 * LOUD}, PART),
    times("sum over t: rotations", C, "U * (", "200.0", "rows",
         {**IN_DOUBLE, "rotations": 7.0 * LOUD}, PART),
    times("sum over t: angles", C, "/ 16.0 + ", "8.0 * angle", "rows",
         {**IN_DOUBLE, "turn": 4.0 * LOUD}, PART),
    times("sum over t: additions", C, "", "(double)q->line.nt / 16.0", "rows",
         {**IN_DOUBLE, "additions": LOUD}, PART),
    times("sum over t: thresholds", C, "", "2.0 * last_time(&q->line) * (fabs(c[u]) + "
         "fabs(q->line.c_ref))", "rows", {**IN_DOUBLE, "threshold": LOUD}, PART),
    times("long sum over t: angles", C, "(double)ln->nt + ", "8.0 * angle", "rows",
         {**IN_LONG_DOUBLE, "wide turn": 4.0 * LOUD}, PART_WIDE),
    times("long sum over t: additions", C, "15.0 * 8.0 + ", "(double)ln->nt", "rows",
         {**IN_LONG_DOUBLE, "wide additions": LOUD}, PART_WIDE),
    times("long sum over t: rotations", C, "PE_WIDE_UNIT * (16.0 + ", "15.0 * 8.0", "rows",
         {**IN_LONG_DOUBLE, "wide rotations": 7.0 * LOUD}, PART_WIDE),
    times("removed mass in a row", C, "", "removed / size", "rows", {"lost": 1e-12}),
    times("log M in a row", C, "(size - miss) + ", "q->log_m_error", "rows",
          {"log M of all": LOUD}),
    times("row: the exponent", C, "wide = ", "4.0 * PE_WIDE_UNIT", "rows", {"exponent": 3.0 * LOUD},
         PART_WIDE),
    times("row: the sum", C, "wide + ", "8.0 * U", "rows", {"sum": 7.0 * LOUD}, PART),
    times("row: its logarithm", C, "", "2.0 * U * fabs(log_value[k])", "rows",
         {"log of a value": LOUD}, PART),
    times("complement: the value", C, "", "4.0 * U * value", "rows", {"value": 3.0 * LOUD}, PART),
    times("complement: the rest", C, "(rest - moved) * OUT + ", "8.0 * U", "rows",
         {"complement": 7.0 * LOUD}, PART),
    times("profile: the difference", C, "", "8.0 * U * (value + fabs(apart))", "rows",
         {"profile": 7.0 * LOUD}, PART),
    times("profile: its logarithm", C, "", "(8.0 + 8.0 * fabs(pe_d_log(rest)))", "rows",
         {"log of a profile": 7.0 * LOUD}, PART),
)  # fmt: skip

# Not missed: the error of the mean counts them over all nodes, with a factor of 2.
UNSEEN = ("nodes: log W of large ones", "nodes: log W of small ones", "nodes: weights")

Judge = Callable[[Any], Asked]
WIDTH, ERRORS = 12, 7
KEYS = {
    False: {0: "p_above", 1: "p_below", 2: "q_above", 3: "q_below"},
    True: {0: "q_below", 1: "q_above", 2: "p_below", 3: "p_above", 4: "h_qp"},
}


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
            kernel.pe_pair_certify(pair, functional, THOROUGH, ctypes.c_size_t(1), c, out)
            found[i] = out
    kernel.pe_pair_free(pair)
    return found


def outside(kernel: Any, points: list[dict[str, Any]]) -> Asked:
    """Rows compared with truths of 20 digits, and those outside of their bounds."""
    compared = wrong = 0
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
    return Asked(compared, wrong)


def on_sums(lines: int, runs: int) -> Judge:
    """Asks about random lines, whose truths are computed once."""
    random_ = random.Random("terms")
    families = (None, None, "group", "truncated")
    asked = [audit_sums.drawn(random_, families[i % len(families)], runs) for i in range(lines)]
    truths = [audit_sums.truth_of(line) for line in asked]

    def judge(kernel: Any) -> Asked:
        found = [
            claim
            for line, truth in zip(asked, truths, strict=True)
            for claim in audit_sums.judge(kernel, line, truth)
            if not isinstance(claim, str)
        ]
        return Asked(len(found), sum(claim.is_outside for claim in found))

    return judge


def on_rows(count: int) -> Judge:
    """Asks about rows at published thresholds."""
    data = json.loads((ROOT / "tests/data/dp_sgd_random.json").read_text(encoding="utf-8"))
    every = [p for p in data["points"] if "p_above" in p and min(p["p"]) > 1e-4]
    points = every[:: max(1, len(every) // count)]

    def judge(kernel: Any) -> Asked:
        with mpmath.workdps(40):
            return outside(kernel, points)

    return judge


def judges_of(points: int, lines: int, runs: int = audit_sums.RUNS) -> dict[str, Judge]:
    """What is asked, with truths."""
    return {"rows": on_rows(points), "sums": on_sums(lines, runs)}
