"""Units of work: what one worker computes at a time, and the record of what became of it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from pyengine._version import __version__
from pyengine.mechanisms import Mechanism
from pyengine.tables.cells import Cell, auto, reference
from pyengine.tables.spec import Specification

__all__ = ["Unit", "cells_of", "solve", "units"]


@dataclass(frozen=True)
class Unit:
    """Values of one workflow, question and adjacency, in the order of the table.

    Parameters
    ----------
    index : int
        Place among the units of the table.
    workflow, question, adjacency : str
        What is asked about what.
    mechanism : Mechanism
        That of the workflow.
    values : tuple of str
        Arguments of the question, exact.
    engine, digits
        As in the specification.
    """

    index: int
    workflow: str
    mechanism: Mechanism
    question: str
    adjacency: str
    values: tuple[str, ...]
    engine: str
    digits: int

    def __str__(self) -> str:
        return f"{self.workflow}, {self.question}, {self.adjacency}, {', '.join(self.values)}"


def units(specification: Specification) -> list[Unit]:
    """Units of a table in the order of its rows.

    In double precision the values of a unit share an engine's transform; in arbitrary precision a
    value is a unit, as it takes long enough to be lost or done on its own.  What is a unit depends
    on the specification alone, as the last bits of a value may depend on its neighbours.
    """
    found: list[Unit] = []
    for workflow in specification.workflows:
        for grid in specification.grids:
            for adjacency in grid.adjacencies:
                whole = specification.engine == "auto"
                groups = [grid.values] if whole else [(value,) for value in grid.values]
                for values in groups:
                    unit = Unit(
                        len(found),
                        workflow.name,
                        workflow.mechanism,
                        grid.question,
                        adjacency,
                        values,
                        specification.engine,
                        specification.digits,
                    )
                    found.append(unit)
    return found


def solve(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """Compute units, and say how long each took and where.

    Parameters
    ----------
    batch : sequence of Unit
        What to compute.

    Returns
    -------
    list of dict
        One record for each, of texts and numbers only, as the journal keeps them.
    """
    return [_solve(unit) for unit in batch]


def _solve(unit: Unit) -> dict[str, Any]:
    start = time.perf_counter()
    question = (unit.mechanism, unit.question, unit.adjacency, unit.values)
    cells = reference(*question, unit.digits) if unit.engine == "reference" else auto(*question)
    return {
        "unit": unit.index,
        "cells": [astuple(cell) for cell in cells],
        "seconds": round(time.perf_counter() - start, 6),
        "where": f"{platform.node()}:{os.getpid()}",
        "pyengine": __version__,
    }


def cells_of(record: dict[str, Any]) -> list[Cell]:
    """Cells of a record."""
    return [Cell(*cell) for cell in record["cells"]]
