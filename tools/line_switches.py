"""The lines of Laplace losses with switches: choices, errors put in, and factors of terms.

For ``tools/audit_deformed.py``.  A copy of the package ``pyengine.engines.vertical_lines`` has a
number of a dictionary in the place of each operation that may be made to err and of each error
term; choices are constants of its modules.  `Term` is that of ``term_switches.py``.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from compiling import ROOT
from term_switches import Change, Switch, Term

from pyengine.caches import clear_cache

__all__ = ["LOUD", "SWITCHES", "SwitchedLines", "build"]

LOUD = 2.0**-26  # what stands for a unit of rounding where an operation is made to err
PACKAGE = "pyengine.engines.vertical_lines"
COPY = "switched_lines"
ADDED = f"from {COPY}.switches import SWITCH\n"
FUTURE = "from __future__ import annotations\n"


def _operation(name: str, *changes: Change) -> Switch:
    """An operation whose result is off by a number of units of the switch."""
    return Switch(name, 0.0, changes)


E, D, T, N, L = "ends.py", "deformed.py", "tilted.py", "nodes.py", "line.py"
C = "corners.py"
SHARED = ("laplace_shapes", "gauss")  # modules that the copy takes from the package
SWITCHES = (
    # one step
    _operation("masses", (N, "[shape.atoms]\n", "[shape.atoms * (1.0 + 47.0 * {x})]\n")),
    _operation("losses", (N, "[np.array([extended(end) for end in shape.ends])]",
                          "[np.array([extended(end) for end in shape.ends]) "
                          "+ 60.0 * {x} * float(shape.length)]")),
    _operation("tilted losses", (T, "exponent = Extended(tilt) * nodes.loss\n",
                                 "exponent = Extended(tilt) * nodes.loss + 180.0 * {x} * abs(tilt) "
                                 "* float(nodes.loss[1] - nodes.loss[0]) "
                                 "* (np.arange(nodes.loss.size) == 1)\n")),
    _operation("sums of a transform", (T, "        # terms are at most |t",
                                       "        x *= 1.0 + 18.0 * {x}\n"
                                       "        y *= 1.0 + 18.0 * {x}\n"
                                       "        # terms are at most |t")),
    # P and Q
    _operation("values of P and Q", (E, "(_density(shape, y) * step)[None]",
                                     "(_density(shape, y) * step)[None] * (1.0 + 50.0 * {x} "
                                     "+ 0.25 * NODES * (count + 1.0) * {x})")),
    _operation("exponents of P and Q", (E, ".sums(s, used,", ".sums(s * (1.0 + 6.0 * {x}), used,")),
    # below the turn
    _operation("terms below the turn", (D, "terms = value * kernels\n",
                                        "terms = value * kernels * "
                                        "(1.0 + {x} * (0.25 * t.size + 50.0))\n")),
    _operation("nodes below the turn",
               (D, "composed(self._steps, t)", "composed(self._steps, t * (1.0 + {x}))"),
               (D, "self._atoms_transform(t)", "self._atoms_transform(t * (1.0 + {x}))"),
               (D, "s = tilt + 1j * t\n", "s = tilt + 1j * t * (1.0 + {x})\n")),
    _operation("atoms below the turn", (D, "total *= one**n",
                                        "total *= (one * np.exp(10.5 * {x})) ** n")),
    _operation("angles of atoms", (D, "np.exp(1j * t[:, None] * apart)",
                                   "np.exp(1j * t[:, None] * apart * (1.0 + 3.5 * {x}))")),
    _operation("without atoms", (D, "value - atoms, error", "(value - atoms) * (1.0 + 1.9 * {x}), "
                                 "error")),
    _operation("angles", (D, "self._low.at(z, kernels)", "self._low.at(z * (1.0 + 7.0 * {x}), "
                          "kernels)")),
    _operation("centre", (D, "c.astype(Extended) - self._centre).astype(np.float64))\n        x =",
                          "c.astype(Extended) - self._centre * (1.0 + 3.5 * {x}))"
                          ".astype(np.float64))\n        x =")),
    _operation("threshold", (D, "return self._all_sums(z, x, self._panels",
                             "return self._all_sums(z + 3.5 * {x} * c, x, self._panels")),
    # beyond the turn
    _operation("ends beyond the turn", (D, "factor = shares + added\n",
                                        "factor = (shares + added) * (1.0 + 15.0 * {x})\n")),
    _operation("logarithms beyond the turn", (C, "table = (number - j)",
                                              "table = (1.0 + 5.5 * {x}) * (number - j)")),
    _operation("parts of atoms", (C, "part = added / shares\n",
                                  "part = added / shares * (1.0 + 35.0 * {x})\n")),
    _operation("terms beyond the turn", (D, "weights = terms[:, None, :] * kernels\n",
                                         "weights = terms[:, None, :] * kernels * (1.0 + {x} * "
                                         "(90.0 + NODES * panels.size))\n")),
    _operation("distances", (D, "distances,\n            self._reach",
                             "array((x * (1.0 + 3.5 * {x})).reshape(-1)),\n"
                             "            self._reach")),
    _operation("places", (D, "(self._places.place - c.astype(Extended)[:, None])",
                          "(self._places.place + 7.5 * {x} * self._span "
                          "- c.astype(Extended)[:, None])")),
    # nodes of the rules that have no weight in the ones that are put in their place
    Switch("unused nodes", 0.0,
           ((D, "RATIO ** (-2.0 * NODES)", "RATIO ** (-2.0 * (NODES - {x}))"),)),
    # atoms
    _operation("atoms", (D, "        return np.asarray(np.exp(self._places.log_atom))",
                         "        return np.asarray(np.exp(self._places.log_atom)) * (1.0 + {x} * "
                         "(16.0 * self._number + 8.0 * self._places.place.size + 30.0))")),
    _operation("logarithms of atoms", (D, "corners.log_terms(_atoms(corners, step), n)",
                                       "corners.log_terms(_atoms(corners, step) "
                                       "** (1.0 + 3.5 * {x}), n)")),
    # the scale
    _operation("means", (D, "log = (self._log_mean - moved)",
                         "log = (self._log_mean * (1.0 + 3.5 * {x}) - moved)")),
    _operation("exponent", (D, "moved = Extended(self.tilt) * c.astype(Extended)",
                            "moved = Extended(self.tilt) * c.astype(Extended) * "
                            "(1.0 + 3.5 * {x})")),
    _operation("scale", (D, "return log, self._log_error",
                         "return log * (1.0 + 0.9 * {x}), self._log_error")),
    # lines that are not deformed
    _operation("plain: terms", (L, "weight = value * kernels\n",
                                "weight = value * kernels * (1.0 + 0.9 * {x} * "
                                "chain_error(t.size) / UNIT)\n")),
    _operation("plain: angles", (L, "return self._sums.at(self._distance(c), kernels)",
                                 "return self._sums.at(self._distance(c) * (1.0 + 0.9 * {x} * "
                                 "ANGLE_ERROR / UNIT), kernels)")),
    _operation("plain: centre", (L, "(c.astype(Extended) - self._centre).astype",
                                 "(c.astype(Extended) - self._centre * (1.0 + 3.5 * {x})).astype")),
    _operation("plain: threshold", (L, "return np.asarray((c.astype(Extended)",
                                    "return np.asarray((c.astype(Extended) * (1.0 + 3.5 * {x})")),
    _operation("plain: poles", (L, "row += sign * np.exp(np.minimum(constant + apart * c, 300.0))",
                                "row += sign * np.exp(np.minimum(constant + apart * c, 300.0)) * "
                                "(1.0 + 15.0 * {x} * np.abs(apart * c))")),
    _operation("plain: constants", (L, "constant = -float(self._log_mean) - fall",
                                    "constant = 7.0 * {x} * (1.0 + abs(float(self._log_mean)) "
                                    "+ fall) - float(self._log_mean) - fall")),
    _operation("composed: angles", (L, "return modulus * np.exp(1j * angle), error",
                                    "return modulus * np.exp(1j * angle + 11.0 * {x} * "
                                    "(1.0 + np.abs(angle))), error")),
    _operation("composed: logarithms", (L, "modulus = np.exp(log)\n",
                                        "modulus = np.exp(log * (1.0 + 3.5 * {x}))\n")),
    _operation("plain: means", (L, "log = (self._log_mean - moved)",
                                "log = (self._log_mean * (1.0 + 3.5 * {x}) - moved)")),
    _operation("plain: exponent", (L, "moved = Extended(self.tilt) * c.astype(Extended)",
                                   "moved = Extended(self.tilt) * c.astype(Extended) * "
                                   "(1.0 + 3.5 * {x})")),
    _operation("plain: scale", (L, "return log, self._log_error",
                                "return log * (1.0 + 0.9 * {x}), self._log_error")),
)  # fmt: skip


class SwitchedLines:
    """The copy of the package, whose switches and constants are set from Python."""

    def __init__(self, modules: dict[str, ModuleType], values: dict[str, float]) -> None:
        self._modules, self._values = modules, values

    def __getattr__(self, name: str) -> Any:
        """A module of the copy."""
        return self._modules[name]

    @contextmanager
    def set_to(self, values: dict[str, Any]) -> Iterator[None]:
        """Set some switches, and constants as module.NAME, until the end of the block."""
        before: dict[str, Any] = {}
        try:
            for name, value in values.items():
                module, _, constant = name.partition(".")
                if name in self._values:
                    before[name], self._values[name] = self._values[name], value
                else:
                    before[name] = getattr(self._modules[module], constant)
                    setattr(self._modules[module], constant, value)
            clear_cache()
            yield
        finally:
            for name, value in before.items():
                module, _, constant = name.partition(".")
                if name in self._values:
                    self._values[name] = value
                else:
                    setattr(self._modules[module], constant, value)
            clear_cache()


def build(folder: Path, terms: Sequence[Term]) -> SwitchedLines:
    """Make the copy, with one factor for each term; KeyError if a text is gone or there twice."""
    changes = [(*change, switch.name) for switch in SWITCHES for change in switch.changes]
    for term in terms:
        new = term.before + "({x} * (" + term.text + "))"
        changes.append((term.file, term.before + term.text, new, term.factor))
    values = {switch.name: switch.plain for switch in SWITCHES} | {
        term.factor: 1.0 for term in terms
    }
    sources = ROOT / "pyengine" / "engines" / "vertical_lines"
    texts = {
        path.name: path.read_text(encoding="utf-8")
        for path in sources.glob("*.py")
        if path.stem not in SHARED
    }
    for file in texts:
        texts[file] = _changed(texts[file], [change[1:] for change in changes if change[0] == file])
    for file in {change[0] for change in changes}:
        texts[file] = texts[file].replace(FUTURE, FUTURE + ADDED, 1)
    texts["switches.py"] = f"SWITCH = {values!r}\n"
    copy = folder / COPY
    copy.mkdir()
    for file, text in texts.items():
        text = text.replace(PACKAGE, COPY)
        for name in SHARED:
            text = text.replace(f"{COPY}.{name}", f"{PACKAGE}.{name}")
        (copy / file).write_text(text, encoding="utf-8")
    return _loaded(folder, [name.removesuffix(".py") for name in texts])


def _changed(text: str, changes: Sequence[tuple[str, str, str]]) -> str:
    """A text with all changes, which are places of it as it was; from the last one on."""
    found = []
    for old, new, name in changes:
        if text.count(old) != 1:
            raise KeyError(f"{name}: not one text {old!r}")
        # what old and new have in common may belong to another change
        first = _same(old, new)
        last = min(_same(old[::-1], new[::-1]), len(old) - first)
        part = new[first : len(new) - last].replace("{x}", f"SWITCH[{name!r}]")
        found.append((text.index(old) + first, len(old) - first - last, part))
    for start, length, part in sorted(found, reverse=True):
        text = text[:start] + part + text[start + length :]
    return text


def _same(one: str, other: str) -> int:
    """How many characters two texts have in common from the first one on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _loaded(folder: Path, names: Sequence[str]) -> SwitchedLines:
    """Import a copy; one that was there before is forgotten."""
    for name in [name for name in sys.modules if name.partition(".")[0] == COPY]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        modules = {name: importlib.import_module(f"{COPY}.{name}") for name in names}
    finally:
        sys.path.remove(str(folder))
    return SwitchedLines(modules, modules["switches"].SWITCH)
