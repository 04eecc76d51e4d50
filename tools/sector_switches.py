"""Switches of laws of few steps: choices, added errors, and error terms.

An operation that rounds gets an error as large as its term allows, in units of 2^-36, always in one
direction; the term uses the same unit. Such errors are added when values are asked, not while a law
is made: polynomials would be fitted to the wrong values, with the same error.
"""

from __future__ import annotations

from error_terms import UNIT, WIDE, Change, Switch, Term, operation

__all__ = ["ERRING", "SIZES", "SWITCHES", "TERMS", "signed"]

LOUD = 2.0**-36
S, P, R, L = "sector_sums.c", "sector_panels.c", "sector_rows.c", "sector_laws.c"
PIECES = "sector_pieces.c"
PART, PART_WIDE = LOUD / UNIT, LOUD / WIDE


def _checks(number: int) -> tuple[Change, ...]:
    """Panels checked at few places, with polynomials of all degrees below the number of places."""
    return (
        ("sector.h", "PE_SECTOR_CHECKS = 64", f"PE_SECTOR_CHECKS = {number}"),
        (P, "DEGREE = 12, HIGHEST_DEGREE = CHECKS - 8", "DEGREE = 2, HIGHEST_DEGREE = CHECKS"),
    )


# Where a polynomial has a coefficient more, which is nothing at 16 places, and the same distance
# from nothing at all of 38.
FEW, SOME = _checks(16), _checks(38)
SIZES = ((), FEW, SOME)


def _choice(name: str, plain: float, file: str, old: str, new: str) -> Switch:
    return Switch(name, plain, ((file, old, new),))


SWITCHES = (
    # choices
    _choice("exponent", 36.0, S, "static const double EXPONENT = 36.0;", "#define EXPONENT {x}"),
    _choice("nothing", 38.0, S, "static const double NEGLIGIBLE = 38.0;",
            "#define NEGLIGIBLE {x}"),
    _choice("resolved", 2e-15, P, "far < 2e-15 * size", "far < {x} * size"),
    _choice("off", 1e-6, P, "alpha < 1e-6", "alpha < {x}"),
    _choice("coefficients", 20.0, P, "for (int k = 0; k < TERMS; k++) {\n        double sum",
            "for (int k = 0; k < (int){x}; k++) {\n        double sum"),
    _choice("wave", 0.0, P, "memset(coef, 0, TERMS * sizeof(double));",
            "memset(coef, 0, TERMS * sizeof(double));\n"
            "    const int wave = CHECKS < TERMS ? CHECKS : CHECKS / 2 < TERMS ? CHECKS / 2 : 0;\n"
            "    for (int j = 0; j <= wave; j++) coef[j] = {x} * of->power[wave][j];"),
    Switch("rule", 16.0, ((R, "make_rule(&r, RULE)", "make_rule(&r, (int){x})"),
                          (R, "i < RULE", "i < (int){x}"),
                          (R, "32.0 * pe_d_log(rho)", "2.0 * {x} * pe_d_log(rho)"))),
    _choice("digits of a threshold", 2.0**80, R, "place at = {.high = w.h, .low = w.l,",
            "const double digits = nearbyint(w.h * {x}) / {x};\n"
            "place at = {.high = digits, .low = pe_dd_add_d(w, -digits).h,"),
    # values of panels
    operation("recurrence", (S, "return c + x * b;",
                          "return (c + x * b * (1.0 + {x})) * (1.0 + {x});")),
    operation("place", (S, "return (high + low) * scale;",
                     "return (high + low) * scale * (1.0 + {x});")),
    operation("sum of both", (S, "rest[i] += value[i];", "rest[i] += value[i] * (1.0 + {x});")),
    operation("parts",
           (PIECES, "= -pe_dd_add_d(of_a, -high_a).h;",
            "= -pe_dd_add_d(of_a, -high_a).h - {x} * 0x1p-9 * (1.0 + fabs(high_a));"),
           (PIECES, "= -pe_dd_add_d(of_b, -high_b).h;",
            "= -pe_dd_add_d(of_b, -high_b).h - {x} * 0x1p-9 * (1.0 + fabs(high_b));")),
    # densities that polynomials are fitted to
    operation("density", (P, "(value[i] - whole) + rest[i];",
                       "((value[i] - whole) + rest[i]) * (1.0 + 1.9 * {x});")),
    operation("root", (L, "{.t = pe_dd_add(log_em1, s->offset),",
                    "{.t = pe_dd_add_d(pe_dd_add(log_em1, s->offset), "
                    "15.0 * {x} * (fabs(s->offset.h) - log_em1.h)),")),
    # sums
    operation("exponential", (S, "const double e = weight[i] *",
                           "const double e = (1.0 + 7.9 * {x}) * weight[i] *")),
    operation("difference", (S, "t->whole[at + (size_t)l] + t->rest[at + (size_t)l];",
                          "(t->whole[at + (size_t)l] + t->rest[at + (size_t)l]) * (1.0 + {x});")),
    operation("addition", (S, "of->sum[l] += of->rest[l];",
                        "of->sum[l] = (of->sum[l] + of->rest[l]) * (1.0 + 1.9 * {x});")),
    operation("log of a sum", (S, "log_sum[l] = pe_d_log(",
                            "log_sum[l] = (1.0 + 3.9 * {x}) * pe_d_log(")),
    # rows
    operation("rule's weight", (R, "= q->r->w[i] * pe_d_exp(",
                             "= (1.0 + {x}) * q->r->w[i] * pe_d_exp(")),
    operation("exponent of the rule", (R, "pe_d_exp(e[i] - top);",
                                    "pe_d_exp((e[i] - top) * (1.0 + {x}));")),
    operation("weight under B", (R, "*error = 4.0 * UNIT * fabs(y);\n        return y;",
                              "*error = 4.0 * UNIT * fabs(y);\n        "
                              "return y * (1.0 + 3.9 * {x});")),
    operation("gain below", (R, ": q->at.y * -pe_d_expm1(distance);",
                          ": q->at.y * -pe_d_expm1(distance) * (1.0 + 19.0 * {x});"),
           (R, "y_log = pe_d_log(-pe_d_expm1(-x));",
            "y_log = pe_d_log(-pe_d_expm1(-x)) * (1.0 + 7.9 * {x});")),
    operation("gain above", (R, ": q->at.y * pe_d_expm1(distance);",
                          ": q->at.y * pe_d_expm1(distance) * (1.0 + 9.9 * {x});")),
    operation("term of the rule", (R, "e[i] = value + weight;",
                                "e[i] = value + weight + 2.9 * {x} * (fabs(value) + "
                                "fabs(weight));")),
    operation("piece", (R, "accumulate(&q->sum, top, sum * half);",
                     "accumulate(&q->sum, top, sum * half * (1.0 + 15.9 * {x}));")),
    operation("pieces before", (R, "q->pieces += 1.0;",
                             "q->pieces += 1.0;\n    q->sum.total *= 1.0 + 7.9 * {x};")),
    operation("integral beyond an edge", (R, "more->total * factor,",
                                       "more->total * factor * (1.0 + 1.9 * {x}),")),
    operation("gain of all below an edge", (R, "gained = -pe_d_expm1(-x);",
                                         "gained = -pe_d_expm1(-x) * (1.0 + 13.9 * {x});")),
    operation("gain of all above an edge", (R, "is_large ? -pe_d_expm1(-x) : pe_d_expm1(x),",
                                         "(1.0 + 17.9 * {x}) * "
                                         "(is_large ? -pe_d_expm1(-x) : pe_d_expm1(x)),")),
    operation("integrals together", (R, "m->total = sum.total;",
                                  "m->total = sum.total * (1.0 + 7.9 * {x});")),
    operation("log of all", (R, "return log_of_mass(&m);",
                          "return log_of_mass(&m) * (1.0 + 7.9 * {x});")),
    operation("floor", (R, "return log_sum + floor +",
                     "return log_sum + floor * (1.0 + 3.9 * {x}) +")),
    operation("complement", (R, "value[large] = pe_d_log1p(-share);",
                          "value[large] = pe_d_log1p(-share) + 11.9 * {x};")),
    operation("loss", (R, "pe_two_sum(own, -a->floor)",
                    "pe_dd_add_d(pe_dd_mul_d(pe_dd_of(own), 1.0 + {x}), -a->floor)")),
    operation("log of a loss", (R, "y : pe_dd_log(y);",
                            "y : pe_dd_mul_d(pe_dd_log(y), 1.0 + {x});")),
)  # fmt: skip

ERRING = {switch.name for switch in SWITCHES if switch.plain == 0.0}


def signed(switches: dict[str, float], sign: float) -> dict[str, float]:
    """Switches whose errors have a sign."""
    return {name: x * (sign if name in ERRING else 1.0) for name, x in switches.items()}


# polynomials that do not resolve the law
BAD = {"resolved": 1e-6, "off": 0.1, "coefficients": 12.0}
WAVE = {"wave": 1e-9, "resolved": 1e-3, "off": 0.1, "coefficients": 14.0}  # with FEW and SOME
DENSITY = {"density": LOUD, "off": 1e-2}  # to which polynomials are fitted
FITTED = "factor of panels: logs less their whole parts"
THRESHOLD = "factor of thresholds: the loss"
REMAINDER = ((S, "pe_d_exp(leaves + SLACK)", "{x} * pe_d_exp(leaves + SLACK)"),)
BEYOND = ((S, "weight[j] * pe_d_exp(", "{x} * weight[j] * pe_d_exp("),)
TERMS = (
    Term("remainder of Gauss's rule on pieces", "sums", REMAINDER, {"exponent": 9.0}),
    Term("growth on ellipses of that rule", "sums",
           ((S, "at->turn_a * pe_sector_kappa", "{x} * at->turn_a * pe_sector_kappa"),
            (S, "at->turn_b * pe_sector_kappa", "{x} * at->turn_b * pe_sector_kappa")),
           {"exponent": 9.0}),
    Term("nodes beyond panels", "shallow sums", BEYOND),
    Term("pieces left out", "sums",
           ((S, "k->left += pe_d_exp(all + SLACK);", "k->left += {x} * pe_d_exp(all + SLACK);"),),
           {"nothing": 8.0}),
    Term("errors of both laws", "sums",
           ((S, "a->whole[p], a->off[p], t->", "a->whole[p], {x} * a->off[p], t->"),), BAD),
    Term("probability below the low end", "shallow rows",
           ((R, ": a->below[of_b]", ": pe_d_log({x}) + a->below[of_b]"),)),
    Term("probability above the high end", "shallow rows",
           ((R, "a->tail[of_b] - floor", "pe_d_log({x}) + a->tail[of_b] - floor"),)),
    Term("probability above the high end of a sum", "rows of sums",
           ((L, "c->tail[of_b] = fmin(all", "c->tail[of_b] = pe_d_log({x}) + fmin(all"),)),
    Term("probability between the last panel of a sum and its end", "rows of sums",
           ((L, "cells->top[i] + pe_d_log(cells->width)", "pe_d_log({x}) + cells->top[i] + "
             "pe_d_log(cells->width)"),)),
    # panels
    Term("panels: between places of the check", "densities",
           ((P, "2.0 * pe_d_pow(rho, -LOW", "{x} * 2.0 * pe_d_pow(rho, -LOW"),),
           WAVE, sizes=FEW),
    Term("panels: distance at places of the check", "densities",
           ((P, "fabs(miss[i]) + error[i]", "{x} * fabs(miss[i]) + error[i]"),), BAD),
    Term("panels: largest value beside that at places", "densities",
           ((P, "1.0 / pe_d_cos(PI * degree", "(1.0 - {x}) + {x} / pe_d_cos(PI * degree"),),
           WAVE, sizes=SOME),
    Term("panels: error of the law that is checked", "densities",
           ((P, "+ error[i]);", "+ {x} * error[i]);"),),
           {**DENSITY, FITTED: PART}),
    # rounding of densities of one step, and of panels
    Term("panels: logs less their whole parts", "densities",
           ((P, "2.0 * UNIT * fabs(value[i])", "{x} * 2.0 * UNIT * fabs(value[i])"),),
           DENSITY, scale=PART),
    Term("density of a step: root of its exponent", "densities",
           ((L, "16.0 * PE_WIDE_UNIT * (slope",
             "{x} * 16.0 * PE_WIDE_UNIT * (slope"),),
           {"root": LOUD, "off": 1e-2}, scale=PART_WIDE),
    Term("rounding of panels: Horner's rule", "densities",
           ((P, "UNIT * (all + slope)", "UNIT * ({x} * all + slope)"),), {"off": 1e-2},
           {"recurrence": LOUD}, PART),
    Term("rounding of panels: places", "densities",
           ((P, "UNIT * (all + slope)", "UNIT * (all + {x} * slope)"),), {"off": 1e-2},
           {"place": LOUD}, PART),
    Term("rounding of panels: values of both added", "sums",
           ((P, "of_parts * slope + sum)", "of_parts * slope + {x} * sum)"),), {"off": 1e-2},
           {"sum of both": LOUD}, PART),
    Term("rounding of panels: parts of places", "sums",
           ((P, "(of_parts * slope + sum)", "({x} * of_parts * slope + sum)"),), {"off": 1e-2},
           {"parts": LOUD}, PART),
    # rounding of sums
    Term("rounding of sums: additions", "sums",
           ((S, "(of_sums + of_terms", "({x} * of_sums + of_terms"),), {},
           {"addition": LOUD}, PART),
    Term("rounding of sums: exponentials", "sums",
           ((S, "of_sums + of_terms +", "of_sums + {x} * of_terms +"),), {},
           {"exponential": LOUD}, PART),
    Term("rounding of sums: differences of exponents", "sums",
           ((S, "(size_t)l] + UNIT * (less", "(size_t)l] + {x} * UNIT * (less"),), {},
           {"difference": LOUD}, PART),
    Term("rounding of sums: logarithm", "sums",
           ((S, "+ of_logs) * UNIT", "+ {x} * of_logs) * UNIT"),), {},
           {"log of a sum": LOUD}, PART),
    # rows
    Term("remainder of Gauss's rule", "rows",
           ((R, "return best + 1e-9;", "return best + 1e-9 + pe_d_log({x});"),), {"rule": 4.0}),
    Term("rows: what panels are off by", "rows",
           ((R, "pe_d_expm1(a->off[panel])", "{x} * pe_d_expm1(a->off[panel])"),),
           {**DENSITY, FITTED: PART}),
    Term("rows: a side by the other one", "shallow rows",
           ((R, "own = share * error[small]", "own = {x} * share * error[small]"),)),
    # rounding of rows
    Term("rounding of rows: nodes and weights of the rule", "rows",
           ((R, "+ RULE_ERROR;", "+ {x} * RULE_ERROR;"),), {}, {"rule's weight": LOUD},
           LOUD / 1e-14),
    Term("rounding of rows: weights under B", "rows",
           ((R, "*error = 4.0 * UNIT * fabs(y);", "*error = {x} * 4.0 * UNIT * fabs(y);"),), {},
           {"weight under B": LOUD}, PART),
    Term("rounding of rows: gains below", "rows",
           ((R, "*error = (20.0 + 8.0", "*error = {x} * (20.0 + 8.0"),), {},
           {"gain below": LOUD}, PART),
    Term("rounding of rows: gains above", "rows",
           ((R, "*error = (16.0 + (x", "*error = {x} * (16.0 + (x"),), {},
           {"gain above": LOUD}, PART),
    Term("rounding of rows: terms", "rows",
           ((R, "off[i] += 3.0 * UNIT", "off[i] += {x} * 3.0 * UNIT"),), {},
           {"term of the rule": LOUD}, PART),
    Term("rounding of rows: exponents", "rows",
           ((R, "UNIT * fabs(e[i] - top)", "{x} * UNIT * fabs(e[i] - top)"),), {},
           {"exponent of the rule": LOUD}, PART),
    Term("rounding of rows: pieces", "rows",
           ((R, "UNIT * (16.0 + 8.0 * fabs(log_sum)", "UNIT * ({x} * 16.0 + 8.0 * fabs(log_sum)"),),
           {}, {"piece": LOUD}, PART),
    Term("rounding of rows: additions", "rows",
           ((R, "+ 8.0 * q->pieces", "+ {x} * 8.0 * q->pieces"),), {}, {"pieces before": LOUD},
           PART),
    Term("rounding of rows: integrals beyond edges", "rows",
           ((R, "pe_d_log(UNIT * units)", "pe_d_log({x} * UNIT * units)"),), {},
           {"integral beyond an edge": LOUD}, PART),
    Term("rounding of rows: gains of what is below an edge", "rows",
           ((R, "gained, of_x + 4.0", "gained, {x} * (of_x + 4.0)"),), {},
           {"gain of all below an edge": LOUD}, PART),
    Term("rounding of rows: gains of what is above an edge", "rows",
           ((R, "(x + 1.0) * of_x + 4.0 * fabs(q->at.y) + 8.0",
             "{x} * ((x + 1.0) * of_x + 4.0 * fabs(q->at.y) + 8.0)"),), {},
           {"gain of all above an edge": LOUD}, PART),
    Term("rounding of rows: integrals together", "rows",
           ((R, "pe_d_log(8.0 * UNIT)", "pe_d_log({x} * 8.0 * UNIT)"),), {},
           {"integrals together": LOUD}, PART),
    Term("rounding of rows: logarithm", "rows",
           ((R, "+ 8.0 * fabs(log_sum)", "+ {x} * 8.0 * fabs(log_sum)"),), {},
           {"log of all": LOUD}, PART),
    Term("rounding of rows: smallest loss", "rows",
           ((R, "+ 4.0 * fabs(floor))", "+ {x} * 4.0 * fabs(floor))"),), {},
           {"floor": LOUD}, PART),
    Term("rounding of rows: complement", "rows",
           ((R, "+ 12.0 * UNIT;", "+ {x} * 12.0 * UNIT;"),),
           {"factor of rounding of rows: nodes and weights of the rule": 1e4},
           {"complement": LOUD}, PART),
    # thresholds
    Term("thresholds: the loss", "rows",
           ((R, "((fabs(own) + of_floor) / (is",
             "({x} * (fabs(own) + of_floor) / (is"),), {}, {"loss": LOUD}, PART_WIDE),
    Term("thresholds: its logarithm", "tails",
           ((R, "+ 4.0 + fabs(at.high))", "+ {x} * (4.0 + fabs(at.high)))"),), {},
           {"log of a loss": LOUD}, PART_WIDE),
    Term("thresholds: in tails", "tails",
           ((R, "+ pe_d_log(q.at.off);", "+ pe_d_log(q.at.off) + pe_d_log({x});"),),
           {THRESHOLD: PART_WIDE},
           {"loss": LOUD}),
    Term("thresholds: in profiles", "rows",
           ((R, "pe_d_log(q.at.off * turn) + most",
             "pe_d_log({x}) + pe_d_log(q.at.off * turn) + most"),),
           {THRESHOLD: PART_WIDE}, {"loss": LOUD}),
    Term("thresholds: on ends of pieces", "edges",
           ((R, "q->at.off += fabs(q->at.low);", "q->at.off += {x} * fabs(q->at.low);"),), {},
           {"digits of a threshold": 2.0**30}),
    # losses of means of ratios
    Term("losses: remainder of Gauss's rule", "sums of losses",
           REMAINDER, {"exponent": 9.0}),
    Term("losses: nodes beyond the panels", "shallow sums of losses", BEYOND),
    Term("losses: probability below the first edge", "rows of losses",
           ((R, "a->below[of_b];", "a->below[of_b] + pe_d_log({x});"),)),
    Term("losses: probability above the last edge", "rows of losses",
           ((L, "fmin(all + 1e-6, 0.0);\n    }",
             "fmin(all + 1e-6, 0.0) + pe_d_log({x});\n    }"),)),
    Term("losses: cells below the first edge", "rows of losses",
           ((L, "cells->top[i] = fmax(cells->top[i], bound);\n        }\n        end = first;",
             "cells->top[i] = fmax(cells->top[i], bound + pe_d_log({x}));\n        }\n"
             "        end = first;"),)),
)  # fmt: skip
