"""Specifications of tables: TOML in, checked values out."""

from __future__ import annotations

import hashlib
import importlib.resources
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyengine import _checks, _toml
from pyengine.engines.registry import ADJACENCIES
from pyengine.risks import ASKED, REFERENCED
from pyengine.tables.matrices import plain_tables
from pyengine.tables.models import model_text
from pyengine.tables.numbers import Literal, fraction, number_text
from pyengine.tables.specials import Special, specials
from pyengine.tables.workflows import Workflow, workflows

__all__ = [
    "ENGINES",
    "FORMATS",
    "Grid",
    "Specification",
    "SpecificationError",
    "argument_text",
    "format_names",
    "load",
    "parse",
]

BUILT_IN = "built-in workflows"
ENGINES = ("auto", "reference")
FORMATS = ("csv", "jsonl", "parquet", "markdown", "latex")
DIGITS, MOST_DIGITS = 30, 200


class SpecificationError(ValueError):
    """A specification that cannot be computed; the message says where and why."""


@dataclass(frozen=True)
class Grid:
    """One question, the exact text of its argument's values, adjacencies and threat models."""

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
    """What to compute, and the text that said so.

    Parameters
    ----------
    source : str
        Where the text came from, for messages and reports.
    text : str
        The TOML text.
    workflows, grids : tuple
        In the order of the text.
    engine : str
        A word of `ENGINES`.
    digits : int
        Significant digits of the reference.
    formats : tuple of str
        Words of `FORMATS`: the files to write.
    specials : tuple of (Special, tuple of str)
        Special functions, each with the values of its argument.
    inputs : tuple of (str, str)
        Files of matrices, by the names in the text, with their SHA-256.
    """

    source: str
    text: str
    workflows: tuple[Workflow, ...]
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
        A TOML file; None for the workflows that come with the package.

    Returns
    -------
    Specification
        Checked: every value is in its domain.

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
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecificationError(f"{path}: not a UTF-8 text ({error})") from None
    return parse(text, str(path), Path(path).parent)


def parse(text: str, source: str, directory: Path = Path()) -> Specification:
    """Check the text of a specification.

    Parameters
    ----------
    text : str
        The TOML text.
    source : str
        Where it comes from, for messages.
    directory : Path
        Where the names of matrices start.

    Returns
    -------
    Specification
        As of `load`.

    Raises
    ------
    SpecificationError
        As in `load`.
    """
    try:
        content = _content(text, source)
        allowed = ("engine", "digits", "formats", "workflow", "special", *ASKED)
        _only(content, allowed, "the specification")
        functions = _specials(content.get("special", []))
        grids = tuple(_grid(name, value) for name, value in content.items() if name in ASKED)
        alone = bool(functions) and "workflow" not in content and not grids
        inputs: dict[str, str] = {}
        runs = () if alone else _workflows(content, directory, inputs)
        _differ([run.name for run in runs] + [function.name for function, _ in functions])
        if not grids and not alone:
            raise ValueError(f"no question: add one of [{'], ['.join(ASKED)}]")
        engine = _checks.choice("engine", content.get("engine", "auto"), ENGINES)
        if "digits" in content and engine != "reference":
            raise ValueError('digits needs engine = "reference"')
        beyond = [grid.question for grid in grids if grid.question not in REFERENCED]
        if engine == "reference" and beyond:
            raise ValueError(
                f'[{beyond[0]}] has no engine = "reference", which answers {", ".join(REFERENCED)}'
            )
        digits = _digits(content.get("digits", DIGITS))
        formats = format_names(content.get("formats", ["csv", "jsonl"]))
    except ValueError as error:  # a TOML syntax error is one, too
        raise SpecificationError(f"{source}: {error}") from None
    files = tuple(inputs.items())
    return Specification(source, text, runs, grids, engine, digits, formats, functions, files)


def _digits(value: Any) -> int:
    digits = _checks.count("digits", value, least=1)
    if digits > MOST_DIGITS:
        raise ValueError(f"digits must be at most {MOST_DIGITS}, got {value!r}")
    return digits


def format_names(value: Any) -> tuple[str, ...]:
    """Check a list of words of `FORMATS`; raises SpecificationError for anything else."""
    try:
        if not isinstance(value, list) or not value:
            raise ValueError(f"formats must be a list of {', '.join(FORMATS)}; got {value!r}")
        names = [_checks.choice("formats", name, FORMATS) for name in value]
    except ValueError as error:
        raise SpecificationError(str(error)) from None
    return tuple(name for name in FORMATS if name in names)


def _content(text: str, source: str) -> dict[str, Any]:
    try:
        return _toml.loads(text, parse_float=Literal)
    except ValueError as error:
        # what TOML's parser says of another format would mislead
        suffix = Path(source).suffix
        is_other = suffix in (".yaml", ".yml", ".json", ".csv", ".jsonl")
        why = f"got {suffix}" if is_other else error
        raise ValueError(f"not a specification, which is TOML with [[workflow]]: {why}") from None


def _workflows(
    content: Mapping[str, Any], directory: Path, inputs: dict[str, str]
) -> tuple[Workflow, ...]:
    tables = content.get("workflow")
    if not isinstance(tables, list) or not tables:
        raise ValueError("no workflow: add one with [[workflow]]")
    return tuple(
        run
        for index, table in enumerate(tables, start=1)
        for run in _grid_of(index, table, directory, inputs)
    )


def _differ(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two workflows are named {name!r}")
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


def _grid_of(index: int, table: Any, directory: Path, inputs: dict[str, str]) -> list[Workflow]:
    where = f"workflow {index}"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, got {table!r}")
    rest = dict(table)
    if "name" not in rest:
        raise ValueError(f"{where}: name is missing")
    name = rest.pop("name")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"{where}: name must be a printable string, got {name!r}")
    phases = [rest]
    if "phase" in rest:
        phases = rest.pop("phase")
        _only(rest, (), f"{where} has phases, so that everything belongs into one of them")
        if not isinstance(phases, list) or not all(isinstance(item, dict) for item in phases):
            raise ValueError(f"{where}: phase must be a list of tables, got {phases!r}")
    try:
        plain: list[dict[str, object]] = []
        for item in phases:
            tables, files = plain_tables(item, directory)
            plain += tables
            inputs.update(files)
        return list(workflows(name, plain))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _grid(question: str, table: Any) -> Grid:
    where = f"[{question}]"
    argument = ASKED[question].argument
    _only(table, (argument, "adjacency", "threat_model"), where)
    values = table.get(argument)
    if not isinstance(values, list) or not values:
        raise ValueError(f"{where}: {argument} must be a list of numbers, got {values!r}")
    adjacencies = table.get("adjacency")
    if not isinstance(adjacencies, list) or not adjacencies:
        words = ", ".join(repr(word) for word in ADJACENCIES)
        raise ValueError(f"{where}: adjacency must be a list of {words}; got {adjacencies!r}")
    try:
        grid = Grid(
            question,
            tuple(argument_text(question, value) for value in values),
            tuple(_checks.choice("adjacency", word, ADJACENCIES) for word in adjacencies),
            _models(table.get("threat_model", ["dp"])),
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if len(set(map(fraction, grid.values))) < len(values):
        raise ValueError(f"{where}: {argument} holds a value twice")
    if len(set(adjacencies)) < len(adjacencies):
        raise ValueError(f"{where}: adjacency holds a value twice")
    return grid


def _models(words: Any) -> tuple[str, ...]:
    if not isinstance(words, list) or not words:
        raise ValueError(f"threat_model must be a list of words, got {words!r}")
    models = tuple(map(model_text, words))
    if len(set(models)) < len(models):
        raise ValueError("threat_model holds a value twice")
    return models


def argument_text(question: str, value: object) -> str:
    """Exact text of a question's argument, in its domain.

    Raises
    ------
    ValueError
        For anything else.
    """
    name, upper = ASKED[question].argument, ASKED[question].upper
    interval = "[0, 1]" if upper == 1.0 else "[0, inf)"
    text = "inf" if str(value).lstrip("+") == "inf" else number_text(name, value)
    if text == "inf" or not 0 <= fraction(text) <= upper or _double(text) == math.inf:
        raise ValueError(f"{name} must lie in {interval}, got {value!r}")
    return text


def _double(text: str) -> float:
    return _checks.as_double(fraction(text))


def _only(table: Any, allowed: Collection[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            names = f"; allowed: {', '.join(allowed)}" if allowed else ""
            hint = _checks.did_you_mean(key, tuple(allowed))
            raise ValueError(f"{where}: unknown key {key!r}{names}{hint}")
