"""Rows of a table: question and answer, as one record of texts each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from pyengine.workbench.runs.grammar import NamedRun
from pyengine.workbench.runs.numbers import fraction, short
from pyengine.workbench.tables.cells import Cell
from pyengine.workbench.tables.spec import Specification
from pyengine.workbench.tables.specials import Special
from pyengine.workbench.tables.units import Unit

__all__ = ["INTEGERS", "Row", "columns", "numeric", "parameters", "record", "rows"]

ALWAYS = ("noise_multiplier", "sampling_probability", "steps")
INTEGERS = (
    *("steps", "sensitivity", "summands", "categories", "batch_size", "dataset_size"),
    *("steps_per_epoch", "selected", "truncated_batch_size", "group_size"),
)
ASKED = ("question", "adjacency", "threat_model", "argument", "at")
ANSWERED = tuple(field.name for field in fields(Cell))


@dataclass(frozen=True)
class Row:
    """One cell of a table with its coordinates: ``question`` at ``argument = at``."""

    workflow: NamedRun | Special
    question: str
    adjacency: str
    threat_model: str
    argument: str
    at: str
    cell: Cell


def rows(
    specification: Specification, units: Iterable[Unit], cells: Mapping[int, list[Cell]]
) -> Iterator[Row]:
    """Rows of a table in the order of its specification; ``cells`` are by indices of units."""
    by_name = {workflow.name: workflow for workflow in specification.workflows}
    arguments = {grid.question: grid.argument for grid in specification.grids}
    for unit in units:
        source: NamedRun | Special
        if isinstance(unit.mechanism, Special):
            source, argument = unit.mechanism, unit.mechanism.argument
        else:
            source, argument = by_name[unit.workflow], arguments[unit.question]
        asked = (unit.question, unit.adjacency, unit.threat_model, argument)
        for at, cell in zip(unit.values, cells[unit.index], strict=True):
            yield Row(source, *asked, at, cell)


def parameters(specification: Specification) -> list[str]:
    """Names of the parameters with a column of their own: those that are single numbers."""
    found = dict.fromkeys(ALWAYS)
    for workflow in specification.workflows:
        for key in workflow.numbers or {}:
            found[key] = None
    for function, _ in specification.specials:
        found.update(dict.fromkeys(key for key, _ in function.parameters))
    return list(found)


def _asked(specification: Specification) -> list[str]:
    """Columns of the question; the threat model only if one is not the default."""
    models = {model for grid in specification.grids for model in grid.threat_models}
    hidden = set() if models - {"dp"} else {"threat_model"}
    return [name for name in ASKED if name not in hidden]


def columns(specification: Specification) -> list[str]:
    """Names of the columns of a table."""
    return ["workflow", "mechanism", *parameters(specification), *_asked(specification), *ANSWERED]


def numeric(specification: Specification) -> set[str]:
    """Names of the columns whose numbers are exactly doubles."""
    if specification.engine == "reference":
        return set()
    return {*parameters(specification), "at", "value", "lower", "upper", "error"}


def record(row: Row, specification: Specification) -> list[str | None]:
    """Texts of a row, in the order of `columns`.

    In double precision, a parameter is the shortest text of the double that the engine used; with
    the reference it is the text that was given.
    """
    as_text = str if specification.engine == "reference" else short
    mechanism = None if isinstance(row.workflow, Special) else _mechanism(row.workflow)
    values: list[str | None] = [row.workflow.name, mechanism]
    for name in parameters(specification):
        if isinstance(row.workflow, Special):
            text = row.workflow.get(name)
        else:  # empty if the column "mechanism" has all parameters as JSON
            text = (row.workflow.numbers or {}).get(name)
        if text is not None:
            text = str(fraction(text).numerator) if name in INTEGERS else as_text(text)
        values.append(text)
    asked = {**vars(row), "at": as_text(row.at)}
    if isinstance(row.workflow, Special):
        asked |= {"adjacency": None, "threat_model": None}
    values += [asked[name] for name in _asked(specification)]
    return values + [getattr(row.cell, name) for name in ANSWERED]


def _mechanism(run: NamedRun) -> str:
    """Name of the kind of mechanism, or JSON if its parameters do not fit into columns."""
    if run.numbers is not None:
        return run.kind
    return json.dumps(run.described, separators=(",", ":"))
