"""Specifications of tables: run files with questions."""

from __future__ import annotations

import hashlib
import importlib.resources
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyengine._support import checks
from pyengine.threat.risks import ASKED, REFERENCED
from pyengine.workbench.runs.files import RunFile, parse_runs, read_runs
from pyengine.workbench.runs.grammar import ADJACENCIES, NamedRun
from pyengine.workbench.runs.grids import spaced
from pyengine.workbench.runs.numbers import fraction, number_text
from pyengine.workbench.runs.texts import SpecificationError
from pyengine.workbench.tables.models import model_text
from pyengine.workbench.tables.specials import Special, specials

__all__ = [
    *("ENGINES", "FORMATS", "Grid", "Specification", "SpecificationError", "argument_text"),
    *("format_names", "load", "parse"),
]

BUILT_IN = "built-in workflows"
ENGINES = ("auto", "reference")
FORMATS = ("csv", "jsonl", "parquet", "markdown", "latex")
DIGITS, MOST_DIGITS = 30, 200
DEFAULTS = {"gamma_bound": "add"}  # default adjacencies other than "add_remove"


@dataclass(frozen=True)
class Grid:
    """One question with the exact texts of its argument's values, adjacencies, threat models."""

    question: str
    values: tuple[str, ...]
    adjacencies: tuple[str, ...]
    threat_models: tuple[str, ...] = ("dp",)

    @property
    def argument(self) -> str:
        """Name of the question's argument."""
        return ASKED[self.question].argument


@dataclass(frozen=True)
class Specification:
    """A table to compute, with the text that specifies it.

    Parameters
    ----------
    source : str
        Source of the text, for messages and reports.
    text : str
        The TOML text.
    workflows, grids : tuple
        Runs and questions in the order of the text.
    engine : str
        One of `ENGINES`.
    digits : int
        Significant digits of the reference.
    formats : tuple of str
        Some of `FORMATS`: the files to write.
    specials : tuple of (Special, tuple of str)
        Special functions, each with the values of its argument.
    inputs : tuple of (str, str)
        Names of other files in the text, such as matrices, with their SHA-256.
    """

    source: str
    text: str
    workflows: tuple[NamedRun, ...]
    grids: tuple[Grid, ...]
    engine: str = "auto"
    digits: int = DIGITS
    formats: tuple[str, ...] = ("csv", "jsonl")
    specials: tuple[tuple[Special, tuple[str, ...]], ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def cells(self) -> int:
        """Number of values of the table."""
        points = sum(
            len(grid.values) * len(grid.adjacencies) * len(grid.threat_models)
            for grid in self.grids
        )
        return len(self.workflows) * points + sum(len(values) for _, values in self.specials)


def load(path: str | os.PathLike[str] | None) -> Specification:
    """Read a specification.

    Parameters
    ----------
    path : str, path-like or None
        A run file with questions; None for the workflows that come with the package.

    Returns
    -------
    Specification
        The specification, all of whose values are in their domains.

    Raises
    ------
    SpecificationError
        For text that is no valid specification.
    OSError
        For a file that cannot be read.
    """
    if path is None:
        resource = importlib.resources.files("pyengine.tables").joinpath("workflows.toml")
        return parse(resource.read_text(encoding="utf-8"), BUILT_IN)
    read = read_runs(path)
    return _checked(read, Path(path).read_bytes().decode("utf-8", "replace"))


def parse(text: str, source: str, directory: Path = Path()) -> Specification:
    """Read the text of a specification.

    Parameters
    ----------
    text : str
        Text of a run file.
    source : str
        Source of the text, for messages.
    directory : Path
        Directory to which names of other files are relative.

    Returns
    -------
    Specification
        As returned by `load`.

    Raises
    ------
    SpecificationError
        As in `load`.
    """
    return _checked(parse_runs(text, source, directory), text)


def _checked(file: RunFile, text: str) -> Specification:
    content = file.sections
    try:
        functions = _specials(content.get("special", []))
        grids = tuple(_grid(name, value) for name, value in content.items() if name in ASKED)
        runs = tuple(file.runs())
        alone = bool(functions) and not runs and not grids
        _differ([run.name for run in runs] + [function.name for function, _ in functions])
        if not runs and not alone:
            raise ValueError("no run: add one with [[run]], or a special function with [[special]]")
        if not grids and not alone:
            raise ValueError(f"no question: add one of [{'], ['.join(ASKED)}]")
        engine = checks.choice("engine", content.get("engine", "auto"), ENGINES)
        if "digits" in content and engine != "reference":
            raise ValueError('digits needs engine = "reference"')
        beyond = [grid.question for grid in grids if grid.question not in REFERENCED]
        if engine == "reference" and beyond:
            raise ValueError(
                f'[{beyond[0]}] has no engine = "reference", which answers {", ".join(REFERENCED)}'
            )
        digits = _digits(content.get("digits", DIGITS))
        formats = format_names(content.get("formats", ["csv", "jsonl"]))
    except SpecificationError:
        raise
    except ValueError as error:
        name = next((name for name in ASKED if str(error).startswith(f"[{name}]")), "")
        raise file.error(str(error), (name,) if name else ()) from None
    files = tuple(file.inputs().items())
    return Specification(file.source, text, runs, grids, engine, digits, formats, functions, files)


def _digits(value: Any) -> int:
    return checks.count("digits", value, least=1, most=MOST_DIGITS)


def format_names(value: Any) -> tuple[str, ...]:
    """Check a list of words of `FORMATS`; raises ValueError for anything else."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"formats must be a list of {', '.join(FORMATS)}; got {value!r}")
    names = [checks.choice("formats", name, FORMATS) for name in value]
    return tuple(name for name in FORMATS if name in names)


def _differ(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two runs are named {name!r}")
        seen.add(name)


def _specials(tables: Any) -> tuple[tuple[Special, tuple[str, ...]], ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError(f"special must be tables [[special]], got {tables!r}")
    found = []
    for index, table in enumerate(tables, start=1):
        try:
            found += specials(table)
        except ValueError as error:
            raise ValueError(f"special {index}: {error}") from None
    return tuple(found)


def _grid(question: str, table: Any) -> Grid:
    where = f"[{question}]"
    argument = ASKED[question].argument
    values = table.get(argument)
    if isinstance(values, str) and ":" in values:
        values = spaced(argument, values, logarithmic=ASKED[question].upper == 1.0)
    elif isinstance(values, str):
        values = [values]
    if not isinstance(values, list) or not values:
        raise ValueError(f"{where}: {argument} must be a list of numbers, got {values!r}")
    words = ", ".join(repr(word) for word in ADJACENCIES)
    try:
        adjacencies = _words(table, "adjacency", DEFAULTS.get(question, "add_remove"), words)
        grid = Grid(
            question,
            tuple(argument_text(question, value) for value in values),
            tuple(checks.choice("adjacency", word, ADJACENCIES) for word in adjacencies),
            tuple(map(model_text, _words(table, "threat_model", "dp", "words"))),
        )
        for key, found in (
            (argument, tuple(map(fraction, grid.values))),
            ("adjacency", grid.adjacencies),
            ("threat_model", grid.threat_models),
        ):
            if len(set(found)) < len(found):
                raise ValueError(f"{key} holds a value twice")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return grid


def _words(table: dict[str, Any], key: str, default: str, allowed: str) -> list[Any]:
    """The words in an entry of a table, which may be one word or a list."""
    found = table.get(key, default)
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not found:
        raise ValueError(f"{key} must be a list of {allowed}; got {found!r}")
    return found


def argument_text(question: str, value: object) -> str:
    """Return the exact text of a question's argument; ValueError if it is outside the domain."""
    name, upper = ASKED[question].argument, ASKED[question].upper
    interval = "[0, 1]" if upper == 1.0 else "[0, inf)"
    text = "inf" if str(value).lstrip("+") == "inf" else number_text(name, value)
    if (
        text == "inf"
        or not 0 <= fraction(text) <= upper
        or checks.as_double(fraction(text)) == math.inf
    ):
        raise ValueError(f"{name} must lie in {interval}, got {value!r}")
    return text
