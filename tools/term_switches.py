"""The kernel of the certified lines with switches: choices, errors put in, and factors of terms.

For ``tools/audit_terms.py``.  One compilation serves all terms: in a copy of the sources each
choice that may be made coarse, each operation that may be made to err, and each error term has a
number of an array in its place, which the audit sets from one question to the next.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from compiling import CERTIFIED, ROOT, compiled

__all__ = ["SWITCHES", "Kernel", "Switch", "Term", "build", "switched"]

Change = tuple[str, str, str]  # file, old text, new text with {x} for the switch
LOUD = 2.0**-36  # what stands for a unit of rounding where an operation is made to err
LOUDER = 2.0**-12  # the same of exponents of bounds, which few rows attain to the last digits
UNIT, WIDE = 2.0**-53, 2.0**-63  # of doubles, and PE_WIDE_UNIT


class Switch(NamedTuple):
    """A choice or an operation, what it is in the kernel, and the texts that it stands in."""

    name: str
    plain: float
    changes: tuple[Change, ...]


class Term(NamedTuple):
    """An error term: its file, the text around it, and what is set so that it alone must hold.

    ``scale`` is what the term is multiplied by where operations err by units of LOUD; ``asks`` says
    whether sums or rows are looked at.
    """

    name: str
    file: str
    before: str
    text: str
    asks: str
    loud: dict[str, float]
    scale: float = 1.0
    unseen: str = ""  # why nobody misses it, where nobody does

    @property
    def factor(self) -> str:
        """Its switch, which multiplies it."""
        return f"factor of {self.name}"


def _operation(name: str, *changes: Change) -> Switch:
    """An operation whose result is multiplied by one more than the switch."""
    return Switch(name, 0.0, changes)


def _constant(name: str, file: str, constant: str) -> Switch:
    """A number that stands in a source, and its value there."""
    start = f"static const double {constant} = "
    source = (ROOT / "csrc" / file).read_text(encoding="utf-8")
    text = source.partition(start)[2].partition(";")[0]
    plain = float.fromhex(text) if "x" in text else float(text)
    return Switch(name, plain, ((file, f"{start}{text};", f"#define {constant} {{x}}\n"),))


V, S, N, C = "shifted_values.c", "shifted.c", "shifted_nodes.c", "certified.c"
REAL, PLANE = "real_nodes.c", "plane_nodes.c"
SWITCHES = (
    # choices
    _constant("miss", S, "MISS"),
    _constant("omitted", C, "OMITTED"),
    _constant("alias", "contour.c", "ALIAS_TOL"),
    _constant("close", "proven.c", "CLOSE"),
    # nodes and values of one kind of step
    _operation("bell", (PLANE, "&k), line->h);", "&k), line->h * (1.0 + {x}));"),
               (REAL, "PE_HALF_LOG_2PI))), part->h);",
                "PE_HALF_LOG_2PI))), part->h * (1.0 + {x}));"),
               (PLANE, "at->rounding[u] = 20.0 +", "at->rounding[u] = {x} / PE_WIDE_UNIT + 20.0 +"),
               (REAL, "rounding = 20.0 +", "rounding = {x} / PE_WIDE_UNIT + 20.0 +")),
    Switch("log M of a kind", 0.0,
           ((N, ": pe_dd_log1p(total);", ": pe_dd_add_d(pe_dd_log1p(total), {x});"),
            (N, "s->log_m_error = 2.0 *", "s->log_m_error = {x} + 2.0 *"))),
    _operation("log W", (PLANE, "at->log_error[u] += 8.0 *",
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
    _operation("rise of a run", (REAL, "step = pe_dd_exp(pe_dd_mul_d(c, h));",
                                 "step = c.h == 0.0 ? pe_dd_of(1.0) : "
                                 "pe_dd_mul_d(pe_dd_exp(pe_dd_mul_d(c, h)), 1.0 + {x});")),
    _operation("fall of a run", (REAL, "pe_dd_exp(pe_two_prod(-PE_LANES * h, x))",
                                 "pe_dd_mul_d(pe_dd_exp(pe_two_prod(-PE_LANES * h, x)), "
                                 "1.0 + {x})")),
    _operation("exponentials", (V, "e * (1.0 + cm1)", "(1.0 + {x}) * e * (1.0 + cm1)"),
               (V, "e * (smx + b)", "(1.0 + {x}) * e * (smx + b)")),
    _operation("angles", (V, "b = t * l,", "b = t * l * (1.0 + {x}),")),
    _operation("weights", (V, "out->sum_re = sum_re.h;",
                           "out->sum_re = sum_re.h * (1.0 + {x});"),
               (V, "out->sum_im = sum_im.h;", "out->sum_im = sum_im.h * (1.0 + {x});")),
    _operation("moments", *(
        (V, f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial;",
         f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial * "
         "(1.0 + (5.24 * (k + 2) + 3.0) * {x});")
        for c in ("re", "im"))),
    _operation("mean", *((V, f"out->mean_{c} = mean_{c}.h;",
                          f"out->mean_{c} = mean_{c}.h * (1.0 + {{x}});")
                         for c in ("re", "im"))),
    # logarithms of values, and their weights
    _operation("log R", (C, "*re += n * r->log_r;", "*re += n * r->log_r * (1.0 + {x});")),
    _operation("argument", (C, "(r->arg - mean)", "(r->arg * (1.0 + {x}) - mean)")),
    _operation("phase of the mean", (C, "mean = r->t * s->mean_re;",
                                     "mean = r->t * s->mean_re * (1.0 + {x});")),
    _operation("real part", (C, "double x = 1.0 + a,", "double x = (1.0 + a) * (1.0 + {x}),")),
    _operation("sums of kinds", (C, "    *top += n * r->top;",
                                 "    *re *= 1.0 + {x};\n    *im *= 1.0 + {x};\n"
                                 "    *top += n * r->top;")),
    _operation("reference", (C, "c->line.c_ref = mean;", "c->line.c_ref = mean * (1.0 + {x});")),
    _operation("weights of t", ("contour_rows.c", "double a = pe_vexp(",
                                "double a = (1.0 + {x}) * pe_vexp(")),
    _operation("kernels", ("contour_rows.c", "n0 = l * l + t * t,",
                           "n0 = (l * l + t * t) * (1.0 + {x}),")),
    # sums over t
    _operation("rotations", ("contour_rows.c", "cr[u] = 1.0 + cm1;",
                             "cr[u] = (1.0 + {x}) * (1.0 + cm1);"),
               ("contour_rows.c", "ci[u] = x[u] + smx;", "ci[u] = (1.0 + {x}) * (x[u] + smx);")),
    _operation("turn", ("contour_rows.c", "turn = -ln->ht *", "turn = -ln->ht * (1.0 + {x}) *")),
    _operation("threshold", ("contour_rows.c", "* (c[u] - ln->c_ref);",
                             "* (c[u] * (1.0 + {x}) - ln->c_ref);")),
    _operation("additions", *(("contour_rows.c", f"s{i}[u] += b{i}[u];",
                               f"s{i}[u] = s{i}[u] * (1.0 + {{x}}) + b{i}[u];")
                              for i in (1, 2, 3))),
    Switch("doubles", 0.0, ((C, "const double rounding = U * (200.0",
                             "const double rounding = {x} + U * (200.0"),)),
    _operation("wide rotations", (C, "step_re = pe_dd_turn(turn, &step_im);",
                                  "step_re = pe_dd_mul_d(pe_dd_turn(turn, &step_im), 1.0 + {x});\n"
                                  "step_im = pe_dd_mul_d(step_im, 1.0 + {x});")),
    _operation("wide additions", (C, "sum[i] = pe_dd_add(sum[i], term);",
                                  "sum[i] = pe_dd_mul_d(pe_dd_add(sum[i], term), 1.0 + {x});")),
    _operation("wide turn", (C, "pe_two_sum(ln->c_ref, -c), ln->ht)",
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
    _operation("exponent", (C, "pe_dd_sub(log_m, pe_two_prod(l, t));",
                            "pe_dd_sub(log_m, pe_dd_mul_d(pe_two_prod(l, t), 1.0 + {x}));")),
    _operation("sum", (C, "size = fabs(s[k])", "size = fabs(s[k]) * (1.0 + {x})"),
               (C, "pe_dd_of(fabs(sum[", "pe_dd_of((1.0 + {x}) * fabs(sum[")),
    _operation("log of a value", (C, "log_value[k] = logs->value[k][u];",
                                  "log_value[k] = logs->value[k][u] * (1.0 + {x});")),
    _operation("complement", (C, "rest = -pe_d_expm1(log_value);",
                              "rest = -pe_d_expm1(log_value) * (1.0 + {x});")),
    _operation("value", (C, "value = pe_d_exp(log_value), rest = -",
                         "value = pe_d_exp(log_value) * (1.0 + {x}), rest = -")),
    _operation("profile", (C, "rest = value - apart;", "rest = value * (1.0 + {x}) - apart;")),
    _operation("log of a profile", (C, "row->log_value[PE_PROFILE] = pe_d_log(rest);",
                                    "row->log_value[PE_PROFILE] = pe_d_log(rest) * (1.0 + {x});")),
)  # fmt: skip


class Kernel:
    """The kernel whose switches are set from Python."""

    def __init__(self, library: Any, names: Sequence[str], plain: Sequence[float]) -> None:
        self.library, self._names = library, list(names)
        self._values = (ctypes.c_double * len(self._names)).in_dll(library, "audit_switch")
        self._values[:] = list(plain)

    @contextmanager
    def set_to(self, values: dict[str, float]) -> Iterator[Any]:
        """The library with some switches set, until the end of the block."""
        before = list(self._values)
        for name, value in values.items():
            self._values[self._names.index(name)] = value
        try:
            yield self.library
        finally:
            self._values[:] = before


def switched(
    folder: Path,
    changes: Sequence[tuple[str, str, str, str]],
    plain: dict[str, float],
    sources: Sequence[str],
    doors: Sequence[Path],
) -> Kernel:
    """Compile sources with texts changed; ``{x}`` in a new one is the switch that is named last.

    KeyError if a text is gone.
    """
    copies = folder / "switched"
    copies.mkdir(parents=True)
    names = list(plain)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "csrc").glob("*.[ch]")}
    for file, old, new, name in changes:
        if old not in texts[file]:
            raise KeyError(f"{name}: {file} has no text {old!r}")
        switch = f"audit_switch[{names.index(name)}]" if name else ""
        texts[file] = texts[file].replace(old, new.replace("{x}", switch))
    for file in {change[0] for change in changes}:
        texts[file] = "extern double audit_switch[];\n" + texts[file]
    texts["switches.c"] = f"double audit_switch[{len(names)}];\n"
    for file, text in texts.items():
        (copies / file).write_text(text, encoding="utf-8")
    files = [*(copies / f"{name}.c" for name in (*sources, "switches")), *doors]
    library = compiled(folder / "switched.so", files, copies)
    return Kernel(library, names, list(plain.values()))


def build(folder: Path, terms: Sequence[Term], doors: Sequence[Path]) -> Kernel:
    """Compile the kernel with all switches and one for each term; KeyError if a text is gone."""
    changes = [(*change, switch.name) for switch in SWITCHES for change in switch.changes]
    for term in terms:
        new = term.before + "({x} * (" + term.text + "))"
        changes.append((term.file, term.before + term.text, new, term.factor))
    plain = {switch.name: switch.plain for switch in SWITCHES}
    plain |= {term.factor: 1.0 for term in terms}
    return switched(folder, changes, plain, CERTIFIED, doors)
