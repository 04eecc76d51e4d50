"""Rows of a table: what was asked and what the answer is, as one record of text each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from pyengine.tables.cells import Cell
from pyengine.tables.numbers import fraction, short
from pyengine.tables.spec import Specification
from pyengine.tables.units import Unit
from pyengine.tables.workflows import Phase, Workflow

__all__ = ["INTEGERS", "Row", "columns", "numeric", "parameters", "record", "rows"]

ALWAYS = ("noise_multiplier", "sampling_probability", "steps")
INTEGERS = ("steps", "sensitivity", "categories", "batch_size", "dataset_size")
ASKED = ("question", "adjacency", "argument", "at")
ANSWERED = tuple(field.name for field in fields(Cell))


@dataclass(frozen=True)
class Row:
    """One cell of a table and its coordinates.

    Parameters
    ----------
    workflow : Workflow
        The run.
    question, adjacency, argument, at : str
        What was asked: ``question`` at ``argument = at``.
    cell : Cell
        The answer.
    """

    workflow: Workflow
    question: str
    adjacency: str
    argument: str
    at: str
    cell: Cell


def rows(
    specification: Specification, units: Iterable[Unit], cells: Mapping[int, list[Cell]]
) -> Iterator[Row]:
    """Rows of a table in the order of its specification.

    Parameters
    ----------
    specification, units
        What was computed.
    cells : mapping
        The cells of each unit, by its index.
    """
    by_name = {workflow.name: workflow for workflow in specification.workflows}
    arguments = {grid.question: grid.argument for grid in specification.grids}
    for unit in units:
        workflow, argument = by_name[unit.workflow], arguments[unit.question]
        for at, cell in zip(unit.values, cells[unit.index], strict=True):
            yield Row(workflow, unit.question, unit.adjacency, argument, at, cell)


def parameters(specification: Specification) -> list[str]:
    """Parameters of the workflows that have a column: those that are single numbers."""
    found = dict.fromkeys(ALWAYS)
    for workflow in specification.workflows:
        if len(workflow.phases) == 1:
            for key, value in workflow.phases[0].parameters:
                if isinstance(value, str):
                    found[key] = None
    return list(found)


def columns(specification: Specification) -> list[str]:
    """Names of the columns of a table."""
    return ["workflow", "mechanism", *parameters(specification), *ASKED, *ANSWERED]


def numeric(specification: Specification) -> set[str]:
    """Columns that hold numbers which a double holds without loss."""
    if specification.engine == "reference":
        return set()
    return {*parameters(specification), "at", "value", "lower", "upper", "error"}


def record(row: Row, specification: Specification) -> list[str | None]:
    """Texts of a row, in the order of `columns`.

    In double precision a number is the shortest text that reads back as the double which the engine
    worked on; the reference shows what it was given.
    """
    as_text = str if specification.engine == "reference" else short
    mechanism = _mechanism(row.workflow)
    values: list[str | None] = [row.workflow.name, mechanism]
    for name in parameters(specification):
        # JSON says it all, and what is said twice may differ
        text = None if mechanism.startswith("[") else row.workflow.get(name)
        if text is not None:
            text = str(fraction(text).numerator) if name in INTEGERS else as_text(text)
        values.append(text)
    values += [row.question, row.adjacency, row.argument, as_text(row.at)]
    return values + [getattr(row.cell, name) for name in ANSWERED]


def _mechanism(workflow: Workflow) -> str:
    """Name of the kind, or JSON that tells all where columns cannot."""
    if len(workflow.phases) == 1:
        phase = workflow.phases[0]
        if all(isinstance(value, str) for _, value in phase.parameters):
            return phase.kind
    return json.dumps([_phase(phase) for phase in workflow.phases], separators=(",", ":"))


def _phase(phase: Phase) -> dict[str, object]:
    return {"mechanism": phase.kind, **dict(phase.parameters)}
