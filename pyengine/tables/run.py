"""The whole way from a specification to files and a summary."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from datetime import datetime, timezone
from pathlib import Path

from pyengine._version import __version__
from pyengine.markup import latex_table, markdown_table
from pyengine.tables.cells import INTERNAL, Cell
from pyengine.tables.execute import Solve
from pyengine.tables.files import csv_text, jsonl_text, parquet_bytes, prepare, replace_all
from pyengine.tables.journal import Journal
from pyengine.tables.metadata import metadata_text
from pyengine.tables.picture import draws, picture
from pyengine.tables.printed import HEADS, notes, printed
from pyengine.tables.progress import Progress
from pyengine.tables.rows import INTEGERS, Row, columns, numeric, record, rows
from pyengine.tables.spec import Specification
from pyengine.tables.spread import spread
from pyengine.tables.summary import summary
from pyengine.tables.units import Unit, cells_of, solve, units

__all__ = ["JOURNAL", "Interrupted", "run"]

JOURNAL = "table.journal"


class Interrupted(KeyboardInterrupt):
    """An interrupt between two units of work; the message says how to go on."""


def run(
    specification: Specification,
    directory: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    restart: bool = False,
    solver: Solve[Unit] = solve,
) -> int:
    """Compute a table, write its files, print its summary.

    What is done goes to a journal at once, from which the next run goes on if this one is
    interrupted.  The files of the table appear together at the end; they depend on the
    specification and on the version of the package alone, except for ``metadata.json``.

    Parameters
    ----------
    specification : Specification
        What to compute.
    directory : str or path-like
        Where the files go; made if missing.
    workers : int, optional
        Number of processes, or of units that ``executor`` runs at a time; 0 for this process alone.
        By default this process works alone for a second, and then starts one process for each
        processor.
    dask : str, optional
        Address of the scheduler of a dask.distributed cluster that shall do the work.
    executor : Executor, optional
        Any executor of `concurrent.futures` that shall do the work; it is left open.
    restart : bool
        Whether to discard what an interrupted run left.
    solver : callable
        What the workers call with a list of units; they import it by name.

    Returns
    -------
    int
        0; 1 if a value was refused; 3 if one was lost to a defect of this package.

    Raises
    ------
    OSError
        If a file cannot be written; those of an older table are then as they were.
    JournalError
        If another run is at work in the directory, or one of another table was interrupted there.
    WorkersError
        If the workers are gone, or die again and again.
    Interrupted
        If a key was pressed.
    """
    start, clock = datetime.now(timezone.utc), time.perf_counter()
    work = units(specification)
    identity: dict[str, object] = {
        "specification": specification.sha256,
        "pyengine": __version__,
        "units": len(work),
    }
    if specification.inputs:
        identity["inputs"] = dict(specification.inputs)
    directory = Path(directory)
    prepare(directory)
    with Journal(directory / JOURNAL, identity, restart=restart) as journal:
        done = {found["unit"]: found for found in journal.found}
        todo = deque(unit for unit in work if unit.index not in done)
        before = sum(len(found["cells"]) for found in done.values())
        try:
            with Progress(specification.cells, "values", sys.stderr, before) as progress:
                for records in spread(todo, solver, workers=workers, dask=dask, executor=executor):
                    journal.append(records)
                    done.update((found["unit"], found) for found in records)
                    progress.advance(sum(len(found["cells"]) for found in records))
        except KeyboardInterrupt:
            kept = sum(len(found["cells"]) for found in journal.kept())
            if kept == 0:
                raise
            raise Interrupted(
                f"{kept} of {specification.cells} values are kept in {journal.path}; "
                "the same command goes on from there"
            ) from None
        ordered = [done[unit.index] for unit in work]
        cells = {found["unit"]: cells_of(found) for found in ordered}
        table = list(rows(specification, work, cells))
        contents = _contents(specification, table)
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        seconds = time.perf_counter() - clock
        text = metadata_text(specification, start, seconds, hashes, ordered)
        contents["metadata.json"] = text.encode()
        replace_all(directory, contents)
        journal.finish()
    return _report(specification, table, [directory / name for name in contents])


def _contents(specification: Specification, table: Sequence[Row]) -> dict[str, bytes]:
    """Files of a table that are the same whenever and wherever it is computed."""
    names = [*columns(specification), "pyengine"]
    records = [[*record(row, specification), __version__] for row in table]
    numbers = numeric(specification)
    contents = {}
    if "csv" in specification.formats:
        contents["table.csv"] = csv_text(names, records).encode()
    if "jsonl" in specification.formats:
        contents["table.jsonl"] = jsonl_text(names, records, numbers).encode()
    if "parquet" in specification.formats:
        contents["table.parquet"] = parquet_bytes(names, records, numbers, set(INTEGERS))
    if "markdown" in specification.formats:
        below = "".join(f"- {note}\n" for note in notes(table))
        text = markdown_table(HEADS, printed(table))
        contents["table.md"] = (f"{text}\n{below}" if below else text).encode()
    if "latex" in specification.formats:
        contents["table.tex"] = latex_table(HEADS, printed(table), notes(table)).encode()
    if draws(specification):
        contents["gamma.png"] = picture(specification, table)
    return contents


def _report(specification: Specification, table: Sequence[Row], files: Sequence[Path]) -> int:
    print(summary(specification, table))
    empty = [row.cell.message for row in table if row.cell == Cell(message=row.cell.message)]
    failed = sum(message.startswith(INTERNAL) for message in empty)
    refused = len(empty) - failed
    if refused:
        print(f"Refused: {refused} of {len(table)}; the column 'message' says why.")
    if failed:
        print(f"Failed by a defect of pyengine: {failed} of {len(table)}; please report 'message'.")
    print(f"\nAll {len(table)} rows: {', '.join(map(str, files))}")
    return 3 if failed else 1 if refused else 0
