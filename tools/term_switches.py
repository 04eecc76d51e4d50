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
UNIT, WIDE = 2.0**-53, 2.0**-63  # of doubles, and LDBL_EPSILON


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
REAL = "real_nodes.c"
SWITCHES = (
    # choices
    _constant("miss", S, "MISS"),
    _constant("omitted", C, "OMITTED"),
    _constant("alias", "contour.c", "ALIAS_TOL"),
    _constant("close", "proven.c", "CLOSE"),
    # nodes and values of one kind of step
    _operation("bell", (N, "- PE_HALF_LOG_2PI) * s->h;",
                        "- PE_HALF_LOG_2PI) * s->h * (1.0L + {x});"),
               (REAL, "- PE_HALF_LOG_2PI) * h;", "- PE_HALF_LOG_2PI) * h * (1.0L + {x});"),
               *((file, "node->rounding = 20.0 +", "node->rounding = {x} / LDBL_EPSILON + 20.0 +")
                 for file in (N, REAL))),
    Switch("log M of a kind", 0.0,
           ((N, "logl(whole) : log1pl(total);", "logl(whole) : log1pl(total) + {x};"),
            (N, "s->log_m_error = (double)", "s->log_m_error = {x} + (double)"))),
    _operation("log W", (N, "+ 8.0 * reach;\n", "+ 8.0 * reach + {x} / LDBL_EPSILON * reach;\n"
                         "node->log_of.re *= 1.0L + {x};\nnode->log_of.im *= 1.0L + {x};\n"),
               (REAL, "+ 8.0 * reach;\n", "+ 8.0 * reach + {x} / LDBL_EPSILON * reach;\n"
                "l *= 1.0L + {x};\n")),
    _operation("rise of a run", (REAL, "1.0L : expl(c * h);",
                                 "1.0L : expl(c * h) * (1.0L + {x});")),
    _operation("fall of a run", (REAL, "fall = expl(-start * h);",
                                 "fall = expl(-start * h) * (1.0L + {x});")),
    _operation("exponentials", (V, "e * (1.0 + cm1)", "(1.0 + {x}) * e * (1.0 + cm1)"),
               (V, "e * (smx + b)", "(1.0 + {x}) * e * (smx + b)")),
    _operation("angles", (V, "b = t * l,", "b = t * l * (1.0 + {x}),")),
    _operation("weights", (V, "out->sum_re = (double)sum_re;",
                           "out->sum_re = (double)sum_re * (1.0 + {x});"),
               (V, "out->sum_im = (double)sum_im;", "out->sum_im = (double)sum_im * (1.0 + {x});")),
    _operation("moments", *(
        (V, f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial;",
         f"out->{c}[k] += pe_lane_sum({c}[k]) / factorial * "
         "(1.0 + (5.24 * (k + 2) + 3.0) * {x});")
        for c in ("re", "im"))),
    _operation("mean", *((V, f"out->mean_{c} = (double)mean_{c};",
                          f"out->mean_{c} = (double)mean_{c} * (1.0 + {{x}});")
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
    _operation("wide rotations", (C, "step_re = cosl(turn)", "step_re = (1.0L + {x}) * cosl(turn)"),
               (C, "step_im = sinl(turn)", "step_im = (1.0L + {x}) * sinl(turn)")),
    _operation("wide additions", (C, "sum[i] += (pe_wide)w[2 * i] * re - "
                                  "(pe_wide)w[2 * i + 1] * im;",
                                  "sum[i] = (sum[i] + (pe_wide)w[2 * i] * re - "
                                  "(pe_wide)w[2 * i + 1] * im) * (1.0L + {x});")),
    _operation("wide turn", (C, "const pe_wide turn = (pe_wide)ln->ht *",
                             "const pe_wide turn = (1.0L + {x}) * (pe_wide)ln->ht *")),
    # rows
    Switch("lost", 0.0, ((C, "removed = lost * exp(", "removed = (lost + {x}) * exp("),
                         (C, "        if (!(s[k] * sign[k] > 0.0)",
                          "        if ({x} > 0.0) log_value[k] += log1p(-0.9 * {x} * exp("
                          "(of_b && k == 3 ? -c : 0.0) - log_value[k]));\n"
                          "        if (!(s[k] * sign[k] > 0.0)"))),
    Switch("log M of all", 0.0, ((C, "c->log_m = log_m;", "c->log_m = log_m + {x};"),
                                 (C, "c->log_m_error = error * OUT;",
                                  "c->log_m_error = error * OUT + {x};"))),
    Switch("exponent of an alias", 0.0,
           ((C, "exp(ln->theta_k[side] - kept - way + rounded)",
             "exp(ln->theta_k[side] - kept - way + rounded - "
             "7.0 * {x} * (fabs(ln->theta_k[side]) + fabs(kept) + way))"),)),
    _operation("exponent", (C, "(pe_wide)l * (pe_wide)c;",
                            "(pe_wide)l * (pe_wide)c * (1.0L + {x});")),
    _operation("sum", (C, "size = fabs(s[k])", "size = fabs(s[k]) * (1.0 + {x})")),
    _operation("log of a value", (C, "log_value[k] = (double)(base + (pe_wide)shift + "
                                  "logl((pe_wide)size));",
                                  "log_value[k] = (double)(base + (pe_wide)shift + "
                                  "logl((pe_wide)size)) * (1.0 + {x});")),
    _operation("complement", (C, "rest = -expm1(log_value);",
                              "rest = -expm1(log_value) * (1.0 + {x});")),
    _operation("value", (C, "value = exp(log_value), rest = -",
                         "value = exp(log_value) * (1.0 + {x}), rest = -")),
    _operation("profile", (C, "rest = value - apart;", "rest = value * (1.0 + {x}) - apart;")),
    _operation("log of a profile", (C, "row->log_value[PE_PROFILE] = log(rest);",
                                    "row->log_value[PE_PROFILE] = log(rest) * (1.0 + {x});")),
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
