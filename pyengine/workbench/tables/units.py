"""Units of work, which one worker computes at a time, and their records."""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from pyengine._version import __version__
from pyengine.mechanisms import Mechanism, as_mechanism
from pyengine.workbench.tables.cells import Cell, auto, reference
from pyengine.workbench.tables.spec import Specification
from pyengine.workbench.tables.specials import Special, special_cells

__all__ = ["Unit", "alike", "cells_of", "shard_of", "solve", "units"]

# A worker returns its records after this time, or after this many times the time of its slowest
# value, if that is longer: the first value often does work that the others share.
TOGETHER_SECONDS, TOGETHER_TIMES = 5.0, 3.0
SHARE = 4  # values in a unit in double precision: few, so that an interruption loses little


@dataclass(frozen=True)
class Unit:
    """Values of one workflow, question, adjacency and threat model, or of one special function.

    ``index`` is the position in the units of the table; values are exact texts.
    """

    index: int
    workflow: str
    mechanism: Mechanism | Special
    question: str
    adjacency: str
    values: tuple[str, ...]
    engine: str
    digits: int
    threat_model: str = "dp"

    def __str__(self) -> str:
        words = (self.workflow, self.question, self.adjacency, self.threat_model, *self.values)
        return ", ".join(word for word in words if word not in ("", "dp"))


def units(specification: Specification) -> list[Unit]:
    """Units of a table in the order of its rows.

    In double precision the values of a unit share work, and the last bits of a value may depend on
    the others; so the division into units never depends on the workers.  In arbitrary precision
    they do not, and each value is a unit, since it takes long.  Units that are `alike` are given to
    one worker.
    """
    found: list[Unit] = []
    share = SHARE if specification.engine == "auto" else 1
    how = (specification.engine, specification.digits)
    for workflow in specification.workflows:
        for grid in specification.grids:
            for adjacency, model in itertools.product(grid.adjacencies, grid.threat_models):
                asked = (workflow.name, workflow.mechanism, grid.question, adjacency)
                for values in _shares(grid.values, share):
                    found.append(Unit(len(found), *asked, values, *how, model))
    for function, points in specification.specials:
        asked_of = (function.name, function, function.function, "")
        for values in _shares(points, share):
            found.append(Unit(len(found), *asked_of, values, *how))
    return found


def _shares(values: Sequence[str], share: int) -> list[tuple[str, ...]]:
    return [tuple(values[i : i + share]) for i in range(0, len(values), share)]


def alike(one: Unit, other: Unit) -> bool:
    """Whether two units share most of their work: the same mechanism.

    In double precision it must also be the same question.
    """
    if one.engine != other.engine or as_mechanism(one.mechanism) is None:
        return False
    asked = [(unit.question, unit.adjacency, unit.threat_model) for unit in (one, other)]
    same = one.engine == "reference" or asked[0] == asked[1]
    return same and one.mechanism == other.mechanism


def shard_of(work: Sequence[Unit], index: int, number: int) -> list[Unit]:
    """The ``index``-th of ``number`` parts of a table, counted from 1.

    Units that are `alike` stay together unless a part would get more than its share.
    """
    largest = -(-len(work) // number)
    groups: list[list[Unit]] = []
    for unit in work:
        if groups and len(groups[-1]) < largest and alike(groups[-1][-1], unit):
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return [unit for group in groups[index - 1 :: number] for unit in group]


def solve(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """Compute units for some seconds, at least one.

    Returns a record for each computed unit, in order, with cells, time and worker; as texts and
    numbers only, for the journal.
    """
    start = time.monotonic()
    records: list[dict[str, Any]] = []
    for unit in batch:
        longest = max((record["seconds"] for record in records), default=0.0)
        enough = max(TOGETHER_SECONDS, TOGETHER_TIMES * longest)
        if records and time.monotonic() - start > enough:
            break
        records.append(_solve(unit))
    return records


def _solve(unit: Unit) -> dict[str, Any]:
    start = time.perf_counter()
    cells = _cells(unit)
    return {
        "unit": unit.index,
        "cells": [astuple(cell) for cell in cells],
        "seconds": round(time.perf_counter() - start, 6),
        "where": f"{platform.node()}:{os.getpid()}",
        "pyengine": __version__,
    }


def _cells(unit: Unit) -> list[Cell]:
    if isinstance(unit.mechanism, Special):
        return special_cells(unit.mechanism, unit.values, unit.engine, unit.digits)
    question = (unit.mechanism, unit.question, unit.adjacency, unit.values)
    if unit.engine == "reference":
        return reference(*question, unit.digits, unit.threat_model)
    return auto(*question, unit.threat_model)


def cells_of(record: dict[str, Any]) -> list[Cell]:
    """Cells of a record."""
    return [Cell(*cell) for cell in record["cells"]]
