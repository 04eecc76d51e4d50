"""Computation of a table, from a specification to files and a summary."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
import textwrap
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyengine._support.markup import in_markdown, latex_table, markdown_table, terminal_width
from pyengine._version import __version__
from pyengine.workbench.tables.cells import INTERNAL, Cell
from pyengine.workbench.tables.execute import Solve
from pyengine.workbench.tables.files import (
    csv_text,
    jsonl_text,
    parquet_bytes,
    prepare,
    replace_all,
)
from pyengine.workbench.tables.journal import Journal, JournalError
from pyengine.workbench.tables.picture import draws, picture
from pyengine.workbench.tables.printed import HEADS, notes, printed
from pyengine.workbench.tables.progress import Progress
from pyengine.workbench.tables.rows import INTEGERS, Row, columns, numeric, record, rows
from pyengine.workbench.tables.spec import Specification
from pyengine.workbench.tables.spread import spread
from pyengine.workbench.tables.summary import summary
from pyengine.workbench.tables.units import Unit, cells_of, shard_of, solve, units

__all__ = ["JOURNAL", "Interrupted", "merge", "run"]

PACKAGES = ("numpy", "cffi", "python-flint", "mpmath", "pyarrow", "distributed")
JOURNAL = "table.journal"
SHARD = "table.shard-{}-of-{}.journal"


class Interrupted(KeyboardInterrupt):
    """An interrupt by the user; the message says how to continue."""


def run(
    specification: Specification,
    directory: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    restart: bool = False,
    shard: tuple[int, int] | None = None,
    solver: Solve[Unit] = solve,
) -> int:
    """Compute a table, write its files and print its summary; or compute a shard of it.

    Finished work is written to a journal at once, with which the next run continues if this one is
    interrupted.  The files of the table are replaced together at the end; they depend only on the
    specification and the version of the package, except for ``metadata.json``.

    Parameters
    ----------
    specification : Specification
        The table to compute.
    directory : str or path-like
        Directory for the files; made if missing.
    workers : int, optional
        Number of processes, or of units that ``executor`` runs in parallel; 0 for this process
        only.  By default this process works alone for a second, and then starts one process for
        each processor.
    dask : str, optional
        Address of the scheduler of a dask.distributed cluster that does the work.
    executor : Executor, optional
        An executor of `concurrent.futures` that does the work; it is not shut down.
    restart : bool
        Whether to discard the work of an interrupted run.
    shard : tuple of int, optional
        (i, n): compute only the i-th of n parts, 1 <= i <= n, and keep it in a journal of its own,
        from which `merge` makes the table.
    solver : callable
        Function that the workers call with a list of units; they import it by name.

    Returns
    -------
    int
        0; 1 if a value was refused; 3 if one was lost to a defect of this package.

    Raises
    ------
    OSError
        If a file cannot be written; the files of an older table then stay intact.
    JournalError
        If another run is using the directory, or a run of another table was interrupted there.
    WorkersError
        If the workers are gone or crash repeatedly.
    Interrupted
        If the user interrupts the run.

    Notes
    -----
    Other threads may compute tables in other directories at the same time.
    """
    began = time.perf_counter()
    work = units(specification)
    mine = work if shard is None else shard_of(work, *shard)
    name = JOURNAL if shard is None else SHARD.format(*shard)
    directory = Path(directory)
    prepare(directory)
    with Journal(
        directory / name, _identity(specification, work, shard), restart=restart
    ) as journal:
        done = {found["unit"]: found for found in journal.found}
        todo = deque(unit for unit in mine if unit.index not in done)
        before = sum(len(found["cells"]) for found in done.values())
        cells = sum(len(unit.values) for unit in mine)
        try:
            with Progress(cells, "values", sys.stderr, before) as progress:
                for records in spread(todo, solver, workers=workers, dask=dask, executor=executor):
                    journal.append(records)
                    done.update((found["unit"], found) for found in records)
                    progress.advance(sum(len(found["cells"]) for found in records))
                made = None if shard else _Finished(specification, work, done, progress)
        except KeyboardInterrupt:
            kept = sum(len(found["cells"]) for found in journal.kept())
            if kept == 0:
                raise
            raise Interrupted(
                f"{kept} of {cells} values are kept in {journal.path}; "
                "the same command goes on from there"
            ) from None
        if made is not None:
            files = made.write(directory, time.perf_counter() - began)
            journal.finish()
    if made is not None:
        return _report(specification, made.table, files)
    assert shard is not None
    print(
        f"Shard {shard[0]} of {shard[1]}: all {cells} values are in {directory / name}; "
        "once all shards are done, --merge makes the table"
    )
    return 0


def merge(specification: Specification, directory: str | os.PathLike[str]) -> int:
    """Combine the shards of a table: write its files, print its summary and remove the shards.

    Parameters
    ----------
    specification : Specification
        The specification of all shards.
    directory : str or path-like
        Directory of the journals of all shards, and for the files.

    Returns
    -------
    int
        As for `run`.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    JournalError
        If a shard is missing, unfinished, in use, or of another table or version.
    """
    began = time.perf_counter()
    work = units(specification)
    directory = Path(directory)
    pattern = re.compile(re.escape(SHARD).replace(r"\{\}", r"([1-9]\d*)"))
    files = [path for path in directory.iterdir() if pattern.fullmatch(path.name)]
    shards = sorted(tuple(map(int, pattern.findall(path.name)[0])) for path in files)
    numbers = {number for _, number in shards}
    if len(numbers) != 1:
        found = (
            f"shards of {' and of '.join(map(str, sorted(numbers)))}" if numbers else "no shards"
        )
        raise JournalError(f"{directory}: {found} of a table; all of one number are needed")
    (number,) = numbers
    done: dict[int, Any] = {}
    with ExitStack() as stack:
        journals = []
        for shard in shards:
            identity = _identity(specification, work, shard)
            journals.append(
                stack.enter_context(Journal(directory / SHARD.format(*shard), identity))
            )
            done.update((found["unit"], found) for found in journals[-1].found)
        missing = [
            index
            for index in range(1, number + 1)
            if any(unit.index not in done for unit in shard_of(work, index, number))
        ]
        if missing:
            raise JournalError(
                f"{directory}: not done: shard {', '.join(map(str, missing))} of {number}; "
                "run each again with --shard, which goes on where it was"
            )
        with Progress(specification.cells, "values", sys.stderr, specification.cells) as progress:
            made = _Finished(specification, work, done, progress)
        files = made.write(directory, time.perf_counter() - began)
        for journal in journals:
            journal.finish()
    return _report(specification, made.table, files)


def _identity(
    specification: Specification, work: Sequence[Unit], shard: tuple[int, ...] | None
) -> dict[str, object]:
    """The identity of a run, by which it recognizes its journal."""
    identity: dict[str, object] = {
        "specification": specification.sha256,
        "pyengine": __version__,
        "units": len(work),
    }
    if specification.inputs:
        identity["inputs"] = dict(specification.inputs)
    if shard is not None:
        identity["shard"] = list(shard)
    return identity


class _Finished:
    """Rows and files of a table whose units are all computed."""

    def __init__(
        self,
        specification: Specification,
        work: Sequence[Unit],
        done: Mapping[int, dict[str, Any]],
        progress: Progress,
    ) -> None:
        self._specification = specification
        self._ordered = [done[unit.index] for unit in work]
        cells = {found["unit"]: cells_of(found) for found in self._ordered}
        self.table = list(rows(specification, work, cells))
        self._contents = _contents(specification, self.table, progress)

    def write(self, directory: Path, seconds: float) -> list[Path]:
        """Write all files, and return their paths."""
        contents = {**self._contents, "metadata.json": self._metadata(seconds).encode()}
        replace_all(directory, contents)
        return [directory / name for name in contents]

    def _metadata(self, seconds: float) -> str:
        """Software, specification, times and hashes as JSON; it differs from run to run."""
        start = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        asked = {key: getattr(self._specification, key) for key in ("source", "sha256", "text")}
        head = {
            "pyengine": __version__,
            "python": platform.python_version(),
            "packages": {name: version for name in PACKAGES if (version := _version(name))},
            "platform": platform.platform(),
            "machine": platform.machine(),
            "processors": os.cpu_count(),
            "time": start.isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "specification": {**asked, "inputs": dict(self._specification.inputs)},
            "sha256": {k: hashlib.sha256(data).hexdigest() for k, data in self._contents.items()},
        }
        lines = []
        for found in self._ordered:
            kept = {key: found[key] for key in ("unit", "cells", "seconds", "where")}
            lines.append(json.dumps({**kept, "cells": len(kept["cells"])}))
        text = json.dumps(head, indent=2, ensure_ascii=False, allow_nan=False)
        body = ",\n    ".join(lines)
        return f'{text[:-2]},\n  "units": [\n    {body}\n  ]\n}}\n'


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _contents(
    specification: Specification, table: Sequence[Row], progress: Progress
) -> dict[str, bytes]:
    """The files of a table that depend only on the specification and the version."""
    progress.stage("making files")
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
        below = "".join(f"- {in_markdown(note)}\n" for note in notes(table))
        text = markdown_table(HEADS, printed(table))
        contents["table.md"] = (f"{text}\n{below}" if below else text).encode()
    if "latex" in specification.formats:
        contents["table.tex"] = latex_table(HEADS, printed(table), notes(table)).encode()
    if draws(specification):
        progress.stage("drawing the picture")
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
    said = f"All {len(table)} rows: {', '.join(map(str, files))}"
    columns = terminal_width() or len(said)
    print(f"\n{textwrap.fill(said, columns, break_long_words=False, break_on_hyphens=False)}")
    return 3 if failed else 1 if refused else 0
