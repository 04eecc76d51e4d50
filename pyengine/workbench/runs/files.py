"""Run files: named runs, and the questions about them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pyengine._support import checks
from pyengine.mechanisms import Mechanism, as_mechanism
from pyengine.threat.risks import ASKED
from pyengine.workbench.runs.grammar import FILES, Beside, NamedRun, Phase, family, named, phase
from pyengine.workbench.runs.grids import choices
from pyengine.workbench.runs.makers import ALIASES
from pyengine.workbench.runs.numbers import Literal
from pyengine.workbench.runs.texts import Content, SpecificationError, read_text

__all__ = [
    *("OPTIONS", "RUNS", "SECTIONS", "VARIED", "RunFile", "Runs", "load_run", "parse_runs"),
    *("read_runs", "runs_of_tables"),
]

Made = TypeVar("Made")
RUNS = ("run", "workflow")  # names of tables with a run each
# Tables that say what is asked, with their keys.
SECTIONS: dict[str, tuple[str, ...]] = {
    "statement": (*("delta", "fpr", "kappa", "prior", "slack", "adjacency", "title", "groups"),),
    "target": (
        *("epsilon", "delta", "kappa", "gamma", "alpha", "beta", "advantage", "mu", "slack"),
        *("adjacency", "vary"),
    ),
    **{name: (asked.argument, "adjacency", "threat_model") for name, asked in ASKED.items()},
}
VARIED = ("noise", "p", "steps", "truth_probability")  # keys that `calibrate` finds
NESTED = ("base", "parts", "mechanisms")  # keys of phases that hold phases
OPTIONS = ("engine", "digits", "formats", "special")
WIRE = "schema"  # key of texts of `pyengine.to_json`
BUDGET = b"SQLite format 3\0"  # how the file of a budget begins


@dataclass(frozen=True)
class Runs:
    """A run, or a grid of runs, as one table for each phase.

    ``paths`` has the path of each table in the file.  ``where`` names the run in messages; it is
    empty for the only run of a file.
    """

    name: str
    tables: tuple[dict[str, Any], ...]
    paths: tuple[tuple[str | int, ...], ...]
    where: str = ""


@dataclass(frozen=True)
class RunFile:
    """The contents of a run file.

    ``sections`` are its other tables and values by name; ``whole`` is the mechanism of a text by
    `pyengine.to_json` or of the file of a budget.  ``inside`` are the file itself and those that
    refer to it, directly or not: it must not refer to any of them.
    """

    source: str
    described: tuple[Runs, ...]
    sections: dict[str, Any]
    directory: Path
    content: Content
    whole: Mechanism | None = field(default=None)
    inside: tuple[Path, ...] = ()

    @property
    def _beside(self) -> Beside:
        return Beside(self.directory, partial(_inner, self.inside))

    def runs(self) -> Iterator[NamedRun]:
        """All runs, with grids expanded; SpecificationError for a table that describes no run."""
        if self.whole is not None:
            yield NamedRun(Path(self.source).stem, (Phase(self.whole),))
        for each in self.described:
            yield from self._grid(each)

    def _grid(self, each: Runs) -> Iterator[NamedRun]:
        where = f"{each.where}: " if each.where else ""
        self._phases(each, each.tables, named)  # a wrong key is none of the grid
        try:
            found = choices(list(each.tables))
            for words, tables in found:
                at = f" ({words})" if words else ""
                phases = self._phases(each, tables, lambda table: phase(table, self._beside), at)
                yield NamedRun(f"{each.name}{at}" if each.name else words, tuple(phases))
        except SpecificationError:
            raise
        except ValueError as error:
            paths = each.paths or ((),)
            path = next((p for p in paths if self._key(p, str(error))), paths[0])
            raise self.error(f"{where}{error}", path, str(error)) from None

    def _phases(
        self,
        each: Runs,
        tables: Sequence[dict[str, Any]],
        make: Callable[[dict[str, Any]], Made],
        at: str = "",
    ) -> list[Made]:
        """Apply ``make`` to each phase; errors name the phase and the line."""
        found = []
        for number, table in enumerate(tables, start=1):
            try:
                found.append(make(table))
            except ValueError as error:
                where = f"{each.where}: " if each.where else ""
                place = f"phase {number}: " if len(tables) > 1 else ""
                path = each.paths[number - 1]
                raise self.error(f"{where}{place}{error}{at}", path, str(error)) from None
        return found

    def only(self) -> NamedRun:
        """The only run of the file; SpecificationError if there are none or several."""
        found = list(self.runs())
        if len(found) != 1:
            raise self.error(
                f"{len(found):,} runs where one is asked for; pyengine epsilon, delta, gamma, "
                "tradeoff, plot and table take several"
                if found
                else "no run: give the keys of one, such as noise, p and steps, or tables [[phase]]"
            )
        return found[0]

    def tables(self) -> list[dict[str, Any]]:
        """The tables of the phases of the only run, unchanged; a key may be missing."""
        if len(self.described) != 1:
            raise self.error("one run is asked for, said by its phases")
        self._phases(self.described[0], self.described[0].tables, named)
        return list(self.described[0].tables)

    def family(self, key: str, *, others: bool = False) -> Callable[[Any], Mechanism]:
        """The only run as a function of a key that is missing; see `grammar.family`."""
        tables = self.tables()
        if len([*islice(choices(tables), 2)]) > 1:
            raise self.error("one run is asked for here, got a grid: ask once for each of its runs")
        make = family(tables, key, self._beside, others=others)

        def placed(value: Any) -> Mechanism:
            try:
                return make(value)
            except SpecificationError:
                raise
            except ValueError as error:
                raise self.error(str(error), self.described[0].paths[0]) from None

        return placed

    def inputs(self) -> dict[str, str]:
        """SHA-256 of each other file that the phases refer to, by its name."""
        found = {}
        for each in self.described:
            for table in each.tables:
                for name in _names_of_files(table):
                    content = (self.directory / name).read_bytes()
                    found[name] = hashlib.sha256(content).hexdigest()
        return found

    def section(self, name: str) -> dict[str, Any]:
        """A table of `SECTIONS`; empty if there is none."""
        found: dict[str, Any] = self.sections.get(name, {})
        return found

    def error(
        self, message: str, path: tuple[str | int, ...] = (), about: str = ""
    ) -> SpecificationError:
        """Make the error for a table of the file; its message names the line."""
        line = self.content.lines(path, self._key(path, about or message))
        at = f", line {line}" if line else ""
        return SpecificationError(f"{self.source}{at}: {message}" if self.source else message)

    def _key(self, path: tuple[str | int, ...], message: str) -> str:
        """The key of a table that a message mentions first, or ""."""
        table: Any = self.content.value
        for part in path:
            try:
                table = table[part]
            except (KeyError, IndexError, TypeError):
                return ""
        if not isinstance(table, Mapping):
            return ""
        places: dict[str, int] = {}
        for key in table:
            for name in {key, str(ALIASES.get(key, key))}:
                found = re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", message)
                if found:
                    places[key] = min(found.start(), places.get(key, len(message)))
        return min(places, key=lambda key: places[key]) if places else ""


def load_run(path: str | os.PathLike[str]) -> Mechanism:
    r"""Read a mechanism from a run file, as all ``pyengine`` commands do.

    Parameters
    ----------
    path : str or path-like
        A file in TOML, JSON, YAML (which needs PyYAML) or CSV with the keys of one kind of step or
        a list ``phase`` of such tables; a text written by `to_json`; or the file of a `Budget`,
        which is read as the composition of everything booked.  The kind is recognized by the
        contents.  The command ``pyengine schema`` prints the JSON schema.

    Returns
    -------
    Mechanism
        Its numbers are exactly the decimals and fractions in the file.

    Raises
    ------
    ValueError
        For a file that holds no run or several; the message names the line.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyengine as pe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.csv")
    ...     _ = path.write_text("noise,rate,steps\n2,0.01,100\n1,1/50,900\n")
    ...     run = pe.load_run(path)
    >>> run == pe.dp_sgd("2", "0.01", 100) + pe.dp_sgd("1", "1/50", 900)
    True
    """
    return read_runs(path).only().mechanism


def _inner(inside: tuple[Path, ...], path: Path) -> Mechanism:
    """The mechanism of a file that a run file refers to."""
    if path.resolve() in inside:
        raise ValueError(f"{path} is made of itself")
    try:
        return read_runs(path, inside).only().mechanism
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def read_runs(path: str | os.PathLike[str], inside: tuple[Path, ...] = ()) -> RunFile:
    """Read a run file that the files ``inside`` refer to; errors as in `load_run`."""
    where = Path(path)
    found = where.read_bytes()
    if found.startswith(BUDGET):
        from pyengine.accounting import Budget

        try:
            spent = Budget.load(where).spent
        except ValueError as error:
            raise SpecificationError(f"{path}: {error}") from None
        empty = Content({}, lambda *_: None)
        return RunFile(str(path), (), {}, where.parent, empty, spent)
    try:
        text = found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecificationError(f"{path}: not a UTF-8 text ({error})") from None
    return parse_runs(text, str(path), where.parent, (*inside, where.resolve()))


def parse_runs(
    text: str, source: str, directory: Path = Path(), inside: tuple[Path, ...] = ()
) -> RunFile:
    """Read the text of a run file; file names in it are relative to ``directory``.

    SpecificationError for a text that is no run file.
    """
    suffix = Path(source).suffix.lower() if source else ""
    try:
        content = read_text(text, suffix)
    except ValueError as error:
        raise SpecificationError(f"{source}: {error}") from None
    make = partial(RunFile, source, directory=directory, content=content, inside=inside)
    try:
        value = content.value
        if not isinstance(value, dict):
            raise ValueError(f"not a run file, got {checks.shown(value)}")
        if WIRE in value:
            return make((), {}, whole=_whole(text, value))
        rest = dict(value)
        rest.pop("$schema", None)
        stem = Path(source).stem or "run"
        sections = {key: rest.pop(key) for key in list(rest) if _is_section(rest, key)}
        for key, table in rest.items():
            if isinstance(table, dict) and key not in (*NESTED, "words"):
                hint = checks.did_you_mean(key, tuple(SECTIONS))
                known = hint or f"; known are {', '.join(SECTIONS)}"
                raise make((), {}).error(f"unknown table [{key}]{known}", (key,))
        described = _described(rest, stem)
        made: RunFile = make(described, sections)
    except SpecificationError:
        raise
    except ValueError as error:
        raise make((), {}).error(str(error)) from None
    _check_sections(made)
    return made


def _is_section(content: Mapping[str, Any], key: str) -> bool:
    """Whether a key is a section or an option, and not a number of a phase of the same name."""
    if key not in OPTIONS and key not in SECTIONS:
        return False
    return key not in ("epsilon", "delta") or isinstance(content[key], dict | list)


def _whole(text: str, value: Mapping[str, Any]) -> Mechanism:
    """The mechanism in a text written by `pyengine.to_json`."""
    from pyengine.accounting.serialization import SCHEMA, from_json

    if value[WIRE] == SCHEMA:
        found = as_mechanism(from_json(text))
        if found is None:
            raise ValueError("the text holds no mechanism")
        return found
    raise ValueError(f"schema must be {SCHEMA!r} of pyengine.to_json, got {value[WIRE]!r}")


def _described(rest: dict[str, Any], stem: str) -> tuple[Runs, ...]:
    word = next((word for word in RUNS if word in rest), None)
    if word is None:
        if not rest:
            return ()
        return (_one(rest, stem, "", ()),)
    tables = rest.pop(word)
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"no run: {word} must be tables [[{word}]], got {checks.shown(tables)}")
    if rest:
        key = next(iter(rest))
        hint = checks.did_you_mean(key, (*RUNS, *OPTIONS, *SECTIONS))
        raise ValueError(f"unknown key {key!r} beside [[{word}]]{hint}")
    found = []
    for index, table in enumerate(tables):
        where = f"{word} {index + 1}"
        if not isinstance(table, dict):
            raise ValueError(f"{where} must be a table, got {checks.shown(table)}")
        inner = dict(table)
        name = inner.pop("name", stem if len(tables) == 1 else where)
        if not _is_word(name) or not name.strip() or not name.isprintable():
            raise ValueError(f"{where}: name must be a printable string, got {name!r}")
        found.append(_one(inner, name, where, (word, index)))
    seen: set[str] = set()
    for each in found:
        if each.name in seen:
            raise ValueError(f"two runs are named {each.name!r}")
        seen.add(each.name)
    return tuple(found)


def _is_word(value: Any) -> bool:
    """Whether a text stands in quotes, where the format has them."""
    return isinstance(value, str) and not isinstance(value, Literal)


def _one(table: dict[str, Any], name: str, where: str, path: tuple[str | int, ...]) -> Runs:
    if "phase" not in table:
        return Runs(name, (table,), (path,), where)
    said = f"{where}: " if where else ""
    for key in table:
        if key != "phase":
            raise ValueError(
                f"{said}unknown key {key!r} beside phases: write it into each [[phase]] that has it"
            )
    phases = table["phase"]
    if not isinstance(phases, list) or not phases:
        raise ValueError(f"{said}phase must be tables [[phase]], got {checks.shown(phases)}")
    for item in phases:
        if not isinstance(item, dict):
            raise ValueError(f"{said}a phase must be a table, got {checks.shown(item)}")
    return Runs(name, tuple(phases), tuple((*path, "phase", i) for i in range(len(phases))), where)


def _names_of_files(table: Mapping[str, Any]) -> Iterator[str]:
    """File names of matrices, votes and other run files in a table."""
    for key, value in table.items():
        if key in FILES and isinstance(value, str):
            yield value
        elif key in NESTED:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, dict):
                    yield from _names_of_files(item)


def _check_sections(made: RunFile) -> None:
    for name, allowed in SECTIONS.items():
        table = made.sections.get(name)
        if table is None:
            continue
        if not isinstance(table, dict):
            raise made.error(f"[{name}] must be a table, got {table!r}")
        for key in table:
            if key not in allowed:
                hint = checks.did_you_mean(key, allowed) or f"; it takes {', '.join(allowed)}"
                raise made.error(f"[{name}]: unknown key {key!r}{hint}", (name,), key)


def runs_of_tables(tables: list[dict[str, Any]], source: str = "") -> RunFile:
    """Return a RunFile with these phases, as if read from a file named ``source``."""
    described = Runs("", tuple(tables), ((),) * len(tables))
    return RunFile(source, (described,), {}, Path(), Content(None, lambda *_: None))
