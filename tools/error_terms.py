"""Tests error terms one by one: each must cover the error alone, and be missed when dropped.

Most terms of a bound are far below others, where no comparison can see them. So the code gets
switches: a factor before each term, a variable for each choice that can be made coarse, and an
added error for each operation. A term is tested with one coarse choice, or with one operation whose
error is as large as the term allows, in enlarged units of rounding. Then nothing may lie outside
its bounds with the term, and something must without it, or with a hundredth of it.

`kernel` compiles sources of the core with switches, `patched` puts them into functions of modules
of the package; both serve all terms. ``audits.py`` is the command; the other audits of this folder
have the terms and the questions.
"""

from __future__ import annotations
import __future__

import ast
import ctypes
import importlib
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from compiling import ROOT, compiled

from pyengine.caches import clear_cache

__all__ = [
    "Asked", "Change", "Claim", "Kernel", "Patched", "Switch", "Tally", "Term", "claims_of",
    "constant", "kernel", "operation", "patched", "report", "report_claims", "tally", "times",
]  # fmt: skip

Change = tuple[str, str, str]  # file, old text, new text with {x} for the switch
UNIT, WIDE = 2.0**-53, 2.0**-63  # of doubles, and of the wide numbers of the core


class Switch(NamedTuple):
    """A choice or an operation, its kind in the code, and the texts where it occurs."""

    name: str
    plain: Any
    changes: tuple[Change, ...]


class Term(NamedTuple):
    """An error term: the question that tests it, where its factor goes, and what makes it matter.

    Changes are texts with ``{x}`` for its factor; ``sizes`` are changes made before compilation.
    Loud switches are set so that the term must cover the error alone, late ones only while
    questions are asked. The scale is for operations whose errors have other units than those of
    rounding.
    """

    name: str
    asks: Any
    changes: tuple[Change, ...]
    loud: dict[str, Any] = {}  # noqa: RUF012 - nobody changes them
    late: dict[str, float] = {}  # noqa: RUF012
    scale: float = 1.0
    sizes: tuple[Change, ...] = ()

    @property
    def factor(self) -> str:
        """The switch that multiplies the term."""
        return f"factor of {self.name}"

    def with_part(self, part: float) -> dict[str, Any]:
        """Settings that leave a part of the term."""
        return {**self.loud, self.factor: part * self.scale}


def times(
    name: str,
    file: str,
    before: str,
    text: str,
    asks: Any,
    loud: Mapping[str, Any] | None = None,
    scale: float = 1.0,
) -> Term:
    """A term whose text follows another one."""
    change = (file, before + text, f"{before}({{x}} * ({text}))")
    return Term(name, asks, (change,), dict(loud or {}), {}, scale)


def operation(name: str, *changes: Change) -> Switch:
    """An operation with an error of as many units as the switch says."""
    return Switch(name, 0.0, changes)


def constant(name: str, file: str, of: str) -> Switch:
    """A constant of a source of the core, and its value there."""
    start = f"static const double {of} = "
    source = (ROOT / "csrc" / file).read_text(encoding="utf-8")
    text = source.partition(start)[2].partition(";")[0]
    plain = float.fromhex(text) if "x" in text else float(text)
    return Switch(name, plain, ((file, f"{start}{text};", f"#define {of} {{x}}\n"),))


# ---- changed texts -------------------------------------------------------------------------------


class _Edit(NamedTuple):
    """Position in a text, length of what is replaced, and the new text."""

    start: int
    length: int
    text: str
    order: tuple[int, int]  # order at one place: closing edits first, then outer ones

    @property
    def key(self) -> tuple[int, int, int]:
        return self.start, *self.order


def _parts(old: str, new: str) -> list[_Edit]:
    """Edits that turn an old text into a new one, without their common parts."""
    first = _same(old, new)
    last = min(_same(old[::-1], new[::-1]), len(old) - first, len(new) - first)
    gone, come = old[first : len(old) - last], new[first : len(new) - last]
    around = come.split(gone, 1) if gone else [come]
    if gone and len(around) == 2:  # other changes may be inside it
        return [
            _Edit(first, 0, around[0], (1, -len(gone))),
            _Edit(first + len(gone), 0, around[1], (0, len(gone))),
        ]
    return [_Edit(first, len(gone), come, (1, -len(gone)))]


def _same(one: str, other: str) -> int:
    """Number of characters that two texts share from their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def changed(file: str, text: str, changes: Sequence[tuple[str, str]], *, once: bool) -> str:
    """A text with changes, given as places of the original text; KeyError if one is missing."""
    edits: list[_Edit] = []
    for old, new in changes:
        count = text.count(old)
        if not count or (once and count > 1):
            raise KeyError(f"{file}: not one text {old!r}")
        start = text.find(old)
        while start >= 0:
            edits += (x._replace(start=start + x.start) for x in _parts(old, new))
            start = text.find(old, start + len(old))
    made, at = [], 0
    for edit in sorted(edits, key=lambda x: x.key):
        if edit.start < at:
            raise KeyError(f"{file}: two changes of one text, {edit.text!r}")
        made += [text[at : edit.start], edit.text]
        at = edit.start + edit.length
    return "".join((*made, text[at:]))


def _all_changes(
    switches: Sequence[Switch], terms: Sequence[Term], name: Callable[[str], str]
) -> Iterator[Change]:
    """Changes with the variable of a switch filled in."""
    named = [(x.name, x.changes) for x in switches] + [(x.factor, x.changes) for x in terms]
    for switch, changes in named:
        for file, old, new in changes:
            yield file, old, new.replace("{x}", name(switch))


def _plain(switches: Sequence[Switch], terms: Sequence[Term]) -> dict[str, Any]:
    """Switches at rest."""
    return {x.name: x.plain for x in switches} | {x.factor: 1.0 for x in terms}


# ---- the core ------------------------------------------------------------------------------------


class Kernel:
    """Sources of the core whose switches are set from Python."""

    def __init__(self, library: Any, plain: Mapping[str, float]) -> None:
        self.library, self._names = library, list(plain)
        self._values = (ctypes.c_double * len(self._names)).in_dll(library, "audit_switch")
        self._values[:] = list(plain.values())

    @contextmanager
    def set_to(self, values: Mapping[str, float]) -> Iterator[Any]:
        """The library with some switches set, until the end of the block."""
        before = list(self._values)
        for name, value in values.items():
            self._values[self._names.index(name)] = value
        try:
            yield self.library
        finally:
            self._values[:] = before


def kernel(
    folder: Path,
    sources: Sequence[str],
    doors: Sequence[Path],
    switches: Sequence[Switch] = (),
    terms: Sequence[Term] = (),
    sizes: Sequence[Change] = (),
) -> Kernel:
    """Compile sources with entry points, all switches and a factor for each term."""
    switches = tuple(dict.fromkeys(switches))  # some are shared by audits
    plain = {**_plain(switches, terms), "none": 0.0}
    numbers = {name: i for i, name in enumerate(plain)}
    changes = list(sizes)
    changes += _all_changes(switches, terms, lambda name: f"audit_switch[{numbers[name]}]")
    copies = folder / "switched"
    copies.mkdir(parents=True)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "csrc").glob("*.[ch]")}
    for file in {change[0] for change in changes}:
        some = [change[1:] for change in changes if change[0] == file]
        texts[file] = "extern double audit_switch[];\n" + changed(
            file, texts[file], some, once=False
        )
    texts["switches.c"] = f"double audit_switch[{len(plain)}];\n"
    for file, text in texts.items():
        (copies / file).write_text(text, encoding="utf-8")
    files = [*(copies / f"{name}.c" for name in (*sources, "switches")), *doors]
    return Kernel(compiled(folder / "switched.so", files, copies), plain)


# ---- modules of the package ----------------------------------------------------------------------


class Patched:
    """Modules whose functions have switches; its attributes are the modules, by name."""

    def __init__(self, modules: Mapping[str, ModuleType], values: dict[str, Any]) -> None:
        self._modules, self.values = modules, values

    def __getattr__(self, name: str) -> Any:
        return self._modules[name]

    @contextmanager
    def set_to(self, values: Mapping[str, Any]) -> Iterator[Patched]:
        """Set some switches, and constants as module.NAME, until the end of the block."""
        before: list[tuple[dict[str, Any], str, Any]] = []
        try:
            for name, value in values.items():
                module, _, rest = name.partition(".")
                room = self.values if name in self.values else vars(self._modules[module])
                key = name if name in self.values else rest
                before.append((room, key, room[key]))
                room[key] = value
            clear_cache()
            yield self
        finally:
            for room, key, value in reversed(before):
                room[key] = value
            clear_cache()


@contextmanager
def patched(
    packages: Sequence[str],
    switches: Sequence[Switch] = (),
    terms: Sequence[Term] = (),
    **known: Any,
) -> Iterator[Patched]:
    """Add switches to functions of some packages, until the end of the block.

    The file of a change is that of the first package that has it; changed texts can use given
    names.
    """
    places = {}
    for package in reversed(packages):
        folder = Path(importlib.import_module(package).__file__ or "").parent
        places |= {path.name: f"{package}.{path.stem}" for path in folder.glob("[a-z]*.py")}
    modules = {name: importlib.import_module(of) for name, of in places.items()}
    values = _plain(switches, terms)
    known["SWITCH"] = values
    changes = list(_all_changes(switches, terms, lambda name: f"SWITCH[{name!r}]"))
    kept: list[tuple[Any, str, Any]] = []
    try:
        for file in {change[0] for change in changes}:
            some = [change[1:] for change in changes if change[0] == file]
            vars(modules[file]).update(known)
            for owner, name, new in _changed_functions(modules[file], file, some):
                kept += _put(owner, name, new)
        clear_cache()
        yield Patched({name.removesuffix(".py"): x for name, x in modules.items()}, values)
    finally:
        for owner, name, old in reversed(kept):
            setattr(owner, name, old)
        for file in {change[0] for change in changes}:
            for name in known:
                vars(modules[file]).pop(name, None)
        clear_cache()


def _changed_functions(
    module: ModuleType, file: str, changes: Sequence[tuple[str, str]]
) -> Iterator[tuple[Any, str, Any]]:
    """Functions and methods with changed texts: where they are, their names, and the new ones."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    trees = (ast.parse(text), ast.parse(changed(file, text, changes, once=True)))
    flags = __future__.annotations.compiler_flag
    levels: list[tuple[Any, Any, Any]] = [(module, *trees)]
    for owner, before, after in levels:
        for old, new in zip(before.body, after.body, strict=True):
            if ast.dump(old) == ast.dump(new):
                continue
            if isinstance(old, ast.ClassDef):
                levels.append((vars(module)[old.name], old, new))
                continue
            if not isinstance(old, ast.FunctionDef):
                raise KeyError(f"{file}: a change outside of functions, line {old.lineno}")
            made: dict[str, Any] = {}
            # super() needs to know the class
            within = ast.parse("def within(__class__):\n    ...\n    return 0")
            outer: Any = within.body[0]
            outer.body = [new, ast.Return(ast.Name(old.name, ast.Load()))]
            one = ast.fix_missing_locations(within)
            exec(compile(one, f"<changed {file}>", "exec", flags, True), vars(module), made)
            yield owner, old.name, made["within"](owner)


def _put(owner: Any, name: str, new: Any) -> Iterator[tuple[Any, str, Any]]:
    """Replace a function wherever it is bound; yield each place with what was there."""
    old, owners = vars(owner)[name], [(owner, name)]
    if isinstance(owner, ModuleType):
        modules = [x for key, x in sys.modules.items() if key.startswith("pyengine.")]
        owners = [(x, key) for x in modules for key, y in vars(x).items() if y is old]
    elif hasattr(new, "__set_name__"):
        new.__set_name__(owner, name)
    for place, key in owners:
        setattr(place, key, new)
        yield place, key, old


# ---- what was found ------------------------------------------------------------------------------


class Asked(NamedTuple):
    """How many values were asked, and how many of them are outside."""

    asked: int
    outside: int


class Claim(NamedTuple):
    """An error and its claimed bound; a NaN error is unknown."""

    kind: str
    error: float
    bound: float
    where: str = ""

    @property
    def is_outside(self) -> bool:
        """Whether the error is larger."""
        return not self.error <= self.bound


Rows = Sequence[tuple[Any, Any, Any]]  # logs of values, relative errors, logs of truths


class Tally(NamedTuple):
    """How many values were asked and outside, and the median of the claimed errors."""

    asked: int
    outside: int
    median: float


def claims_of(found: Rows, kinds: Sequence[str], where: str = "") -> Iterator[Claim]:
    """Claims of rows for some kinds of columns, where something is claimed and known."""
    for value, error, truth in found:
        good = (error < 0.5) & np.isfinite(truth) & np.isfinite(value)
        off = np.abs(np.expm1(truth - value, where=good, out=np.zeros_like(value)))
        most = error * (1.0 + 1e-6) + 4e-16 * np.abs(truth)
        for i in zip(*np.nonzero(good), strict=True):
            yield Claim(kinds[i[-1] % len(kinds)], float(off[i]), float(most[i]), where)


def tally(found: Rows) -> Tally:
    """Compare logs of values and their relative errors with logs of truths."""
    claims = list(claims_of(found, ("",)))
    median = statistics.median(claim.bound for claim in claims) if claims else math.nan
    return Tally(len(claims), sum(claim.is_outside for claim in claims), median)


def report(
    terms: Sequence[Term],
    ask: Callable[[Term, float], Any],
    missed: Callable[[Term, int, int], bool],
    only: str = "",
) -> int:
    """Print the table of terms; 1 if a value is outside with its term, or a term is not missed.

    ``ask`` counts values asked and outside with a part of a term; ``missed`` judges the counts
    without it and with a hundredth of it.
    """
    failed = 0
    print("| error term | asked | outside with it | dropped | a hundredth |")
    print("|---|---|---|---|---|")
    for term in terms:
        if only in term.name:
            (number, with_it), *rest = (ask(term, part)[:2] for part in (1.0, 0.0, 0.01))
            dropped, part = (found[1] for found in rest)
            failed += with_it > 0 or number == 0 or not missed(term, dropped, part)
            print(f"| {term.name} | {number} | {with_it} | {dropped} | {part} |", flush=True)
    return int(failed > 0)


def report_claims(claims: Iterator[Claim | str], least: int) -> int:
    """Print claims by kind, and why there are none where that is so; 1 if one is outside."""
    every: dict[str, list[Claim]] = {}
    left_out: dict[str, int] = {}
    asked = failed = 0
    for claim in claims:
        if isinstance(claim, str) or math.isnan(claim.error):
            why = claim if isinstance(claim, str) else "not known"
            left_out[why] = left_out.get(why, 0) + 1
            continue
        every.setdefault(claim.kind, []).append(claim)
        asked += 1
        if claim.is_outside:
            failed += 1
            print("outside:", claim, flush=True)
        if asked >= least:
            break
    print("| claim | asked | outside | largest error/bound | median | bound, median |")
    print("|---|---|---|---|---|---|")
    for kind, some in sorted(every.items()):
        parts = [claim.error / claim.bound if claim.bound else 0.0 for claim in some]
        counts = f"{len(some)} | {sum(claim.is_outside for claim in some)}"
        figures = max(parts), statistics.median(parts), statistics.median(x.bound for x in some)
        print(f"| {kind} | {counts} | {' | '.join(f'{x:.2g}' for x in figures)} |")
    print(f"{asked} asked, {failed} outside; left out: {left_out or 'none'}")
    return int(failed > 0)
