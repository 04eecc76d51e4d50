"""Claims: the values of a file, with the questions that they are said to answer."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pyengine._support import checks
from pyengine.api import QUESTIONS
from pyengine.mechanisms import Mechanism
from pyengine.workbench.runs.grammar import ADJACENCIES, NamedRun, Phase, keys_of, phase, short
from pyengine.workbench.runs.makers import ALIASES, makers
from pyengine.workbench.runs.numbers import fraction, number_text
from pyengine.workbench.runs.texts import SEPARATORS, json_value
from pyengine.workbench.tables.models import model_text
from pyengine.workbench.tables.spec import argument_text
from pyengine.workbench.tables.specials import FUNCTIONS, Special, argument_of, special

__all__ = ["Claim", "ClaimsError", "read"]

SUFFIXES = (".csv", ".json", ".jsonl")
WORDS = ("mechanism", "runs", "participation", "sampling")  # keys of phases with words as values
STANDARD_INPUT = Path("-")
NUMBERS = ("value", "lower", "upper")
ASKED = ("question", "adjacency", "threat_model", "argument", "at")
# columns of our own tables that are not part of a claim
SILENT = ("error", "certainty", "engine", "message", "pyengine")
# a value may lie far below the smallest double, such as β = 1e-4333 of many steps
VALUE = re.compile(r"[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,5})?", re.ASCII)


class ClaimsError(ValueError):
    """A file that cannot be understood; the message says where and why."""


@dataclass(frozen=True)
class Claim:
    """One row of a file.

    Parameters
    ----------
    row : int
        Its number, from 1; the header does not count.
    workflow : str
        The name that the file gives the run, or its parameters.
    mechanism : Mechanism or Special
        What was asked about.
    question, adjacency, at : str
        The question, its adjacency, and its argument as exact text.
    value, lower, upper : str or None
        The numbers of the file: a decimal number, "inf" or "nan"; None if it has none.
    threat_model : str
        What the adversary knows.
    """

    row: int
    workflow: str
    mechanism: Mechanism | Special
    question: str
    adjacency: str
    at: str
    value: str | None
    lower: str | None
    upper: str | None
    threat_model: str = "dp"


def read(
    path: str | os.PathLike[str], *, doubles: bool = False, ignore: Collection[str] = ()
) -> list[Claim]:
    """Read the rows of a file.

    Parameters
    ----------
    path : str or path-like
        A ``.csv`` file with a header, a ``.jsonl`` file with an object on each line, or a ``.json``
        file with a list of objects, or with an object that has such a list in ``rows``; "-" is
        standard input, whose format is recognised by its beginning.  Columns are separated by
        commas, semicolons or tabs, with or without blanks around them.
    doubles : bool
        Whether numbers mean the nearest doubles, as in the program that computed the values;
        otherwise they are exact decimals.
    ignore : collection of str
        Columns to leave out.

    Returns
    -------
    list of Claim
        At least one with a value.

    Raises
    ------
    ClaimsError
        For anything that is not understood; nothing is skipped silently.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    name = "standard input" if path == STANDARD_INPUT else str(path)
    if path != STANDARD_INPUT and path.suffix not in SUFFIXES:
        raise ClaimsError(f"{path}: the name must end with {', '.join(SUFFIXES)}")
    content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    try:
        text = _text(content)
        rows = _rows(text, path.suffix or _suffix(text))
        claims = [
            _claim(number, {key: row[key] for key in row if key not in ignore}, doubles)
            for number, row in enumerate(rows, start=1)
        ]
    except (ValueError, csv.Error) as error:
        raise ClaimsError(f"{name}: {error}") from None
    if all(claim.value is None for claim in claims):
        raise ClaimsError(f"{name}: no row has a value")
    return claims


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not a UTF-8 text ({error})") from None


def _suffix(text: str) -> str:
    """Suffix for the format of a text: JSON list or object, JSON lines, or CSV."""
    start = text.lstrip()
    if start.startswith("["):
        return ".json"
    if not start.startswith("{"):
        return ".csv"
    try:
        json_value(text)
    except ValueError:
        return ".jsonl"
    return ".json" if '"rows"' in start.partition("[")[0] else ".jsonl"


def _rows(text: str, suffix: str) -> Iterator[dict[str, Any]]:
    if suffix == ".csv":
        yield from _csv_rows(text)
        return
    if suffix == ".jsonl":
        found: Any = []
        for number, line in enumerate(text.strip().splitlines(), start=1):
            try:
                found.append(json_value(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    else:
        found = json_value(text)
        if isinstance(found, dict):
            found = found.get("rows")
    if not isinstance(found, list):
        raise ValueError("must be a list of rows, or an object with one in 'rows'")
    for number, row in enumerate(found, start=1):
        if not isinstance(row, dict):
            raise ValueError(f"row {number}: must be an object, got {row!r}")
        yield {key: cell for key, cell in row.items() if cell is not None}


def _csv_rows(text: str) -> Iterator[dict[str, Any]]:
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    mark = _separator(lines[0] if lines else "")
    reader = csv.DictReader(lines, strict=True, delimiter=mark, skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or []]
    reader.fieldnames = names
    if len(set(names)) < len(names):
        raise ValueError(f"the header names a column twice: {', '.join(names)}")
    for number, row in enumerate(reader, start=1):
        if None in row or None in row.values():
            raise ValueError(f"row {number}: must have {len(names)} cells, as the header has")
        yield {key: cell.strip() for key, cell in row.items() if cell.strip()}


def _separator(header: str) -> str:
    """Return the separator of the columns, which no name of a column has."""
    found = [mark for mark in SEPARATORS if mark in header]
    if len(found) > 1:
        raise ValueError(f"the header must have one kind of separator, got {header.strip()!r}")
    return found[0] if found else ","


def _claim(number: int, row: Mapping[str, Any], doubles: bool) -> Claim:
    try:
        for key in ("question", "at"):
            if key not in row:
                raise ValueError(f"{key} is missing")
        question = checks.choice("question", row["question"], (*QUESTIONS, *FUNCTIONS))
        asked = _special if question in FUNCTIONS else _question
        workflow, mechanism, adjacency, at, model = asked(row, question, doubles)
        at = _double(at) if doubles else at
        value, lower, upper = (_claimed(name, row.get(name)) for name in NUMBERS)
        said = (value, lower, upper, model)
        return Claim(number, workflow, mechanism, question, adjacency, at, *said)
    except ValueError as error:
        raise ValueError(f"row {number}: {error}") from None


Asked = tuple[str, Mechanism | Special, str, str, str]  # run, mechanism, adjacency, at, model


def _question(row: Mapping[str, Any], question: str, doubles: bool) -> Asked:
    argument = row.get("argument", QUESTIONS[question].argument)
    checks.choice("argument", argument, (QUESTIONS[question].argument,))
    adjacency = checks.choice("adjacency", row.get("adjacency", "add_remove"), ADJACENCIES)
    at = argument_text(question, row["at"])
    run = _workflow(row, doubles)
    return run.name, run.mechanism, adjacency, at, model_text(row.get("threat_model", "dp"))


def _special(row: Mapping[str, Any], function: str, doubles: bool) -> Asked:
    """Return the claim's parts for a special function, without adjacency; threat model "dp"."""
    argument = FUNCTIONS[function][0]
    checks.choice("argument", row.get("argument", argument), (argument,))
    rest = {
        key: _rounded(key, cell) if doubles else cell
        for key, cell in row.items()
        if key not in ("question", "argument", "at", *NUMBERS, *SILENT, "workflow")
    }
    name = str(row.get("workflow") or "")
    made = special(function, rest, name)
    words = ", ".join(f"{key} {value}" for key, value in made.parameters)
    return name or words, made, "", argument_of(function, row["at"]), "dp"


def _workflow(row: Mapping[str, Any], doubles: bool) -> NamedRun:
    """Return the run of a row: a mechanism's name with parameters in other columns, or JSON."""
    rest = {
        key: cell
        for key, cell in row.items()
        if key not in (*ASKED, *NUMBERS, *SILENT, "workflow", "mechanism")
    }
    mechanism = row.get("mechanism")
    if isinstance(mechanism, str) and mechanism.lstrip().startswith("["):
        mechanism = json_value(mechanism)
    if isinstance(mechanism, list):
        if rest:
            raise ValueError(f"unknown column {next(iter(rest))!r} beside a list of phases")
        if not mechanism or not all(isinstance(item, dict) for item in mechanism):
            raise ValueError(f"mechanism must be a name or a list of objects, got {mechanism!r}")
        phases = mechanism
    else:
        # empty cells were dropped: not every mechanism of a table has all parameters
        phases = [rest if mechanism is None else {"mechanism": mechanism, **rest}]
    try:
        made = tuple(phase(_doubled(table) if doubles else table) for table in phases)
    except ValueError as error:
        unknown = [key for key in rest if key not in _all_parameters()]
        if unknown:
            hint = checks.did_you_mean(unknown[0], (*ASKED, *NUMBERS, *_all_parameters()))
            raise ValueError(f"unknown column {unknown[0]!r} (--ignore it?){hint}") from None
        raise ValueError(str(error)) from None
    name = row.get("workflow") or "; ".join(map(_in_words, made))
    return NamedRun(str(name), made)


def _all_parameters() -> set[str]:
    return {*ALIASES, *(name for maker in makers().values() for name in keys_of(maker))}


def _in_words(made: Phase) -> str:
    lines = []
    for step in made.described:
        words = [f"{short(key)} {step[key]}" for key in step if isinstance(step[key], str)][1:]
        lines.append(f"{step['mechanism'].removesuffix('Mechanism')} {', '.join(words)}")
    return "; ".join(lines)


def _doubled(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: cell if isinstance(cell, str) and key in WORDS else _rounded(key, cell)
        for key, cell in table.items()
    }


def _rounded(key: str, cell: Any) -> Any:
    if isinstance(cell, list):
        return [_rounded(key, entry) for entry in cell]
    if isinstance(cell, dict):
        return _doubled(cell)
    return _double(number_text(key, cell))


def _double(text: str) -> str:
    """Exact text of the double nearest to a number."""
    return str(Fraction(checks.as_double(fraction(text))))


def _claimed(name: str, cell: Any) -> str | None:
    if cell is None:
        return None
    word = str(cell).strip().lower().lstrip("+")
    if word in ("inf", "infinity", "nan"):
        return word[:3]
    if isinstance(cell, bool) or not VALUE.fullmatch(text := str(cell).strip()):
        raise ValueError(f"{name} must be a decimal number, got {cell!r}")
    return text
