"""Journal of a run: what is done, line by line on the disk, so that an interrupted run goes on.

The first line names the run, each further one holds what became of one unit of work.  A line counts
once its newline is there; what follows the last whole line is what a crash left and is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pyengine.tables.files import sync_directory

__all__ = ["Journal", "JournalError"]


class JournalError(Exception):
    """A journal that this run must not touch; the message says why and what to do."""


class Journal:
    """An append-only file of JSON lines that one process at a time may hold.

    Parameters
    ----------
    path : Path
        The file; made if missing.
    run : mapping
        What the run is: a journal of another one is left alone.
    restart : bool
        Whether to forget what an interrupted run left, whatever its specification.

    Attributes
    ----------
    found : list
        What earlier runs finished, one record a line.

    Raises
    ------
    JournalError
        If another process holds the file, or it belongs to another run.
    OSError
        If it cannot be read or written.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], *, restart: bool = False) -> None:
        self.path = path
        self.found: list[dict[str, Any]] = []
        self._empty = True
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._lock()
            self._open(dict(run), restart)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{self.path}: another run is writing this table") from None
        if os.fstat(self._descriptor).st_nlink == 0:  # it finished while this one opened the file
            raise JournalError(f"{self.path}: another run was writing this table; try again")

    def _open(self, run: dict[str, Any], restart: bool) -> None:
        records, good = ([], 0) if restart else self._whole_lines()
        if records:
            self._compare(records[0], run)
        elif not restart and b"\n" in self.path.read_bytes():
            raise JournalError(f"{self.path}: not a journal of this program; remove it")
        self.found = records[1:]
        os.ftruncate(self._descriptor, good)
        self._empty = not self.found
        if good == 0:
            self._write([run])
            sync_directory(self.path.parent)

    def _whole_lines(self) -> tuple[list[dict[str, Any]], int]:
        """Records up to the first that is torn, and where the last of them ends."""
        records: list[dict[str, Any]] = []
        good = 0
        for line in self.path.read_bytes().splitlines(keepends=True):
            record = _record(line)
            if record is None:
                break
            records.append(record)
            good += len(line)
        return records, good

    def kept(self) -> list[dict[str, Any]]:
        """All records that are in the file now."""
        return self._whole_lines()[0][1:]

    def _compare(self, found: dict[str, Any], run: dict[str, Any]) -> None:
        different = [key for key in run if found.get(key) != run[key]]
        if different:
            what = "; ".join(f"{key} {found.get(key)}, now {run[key]}" for key in different)
            raise JournalError(
                f"{self.path}: an interrupted run of another table left this ({what}); finish that "
                "run, write to another directory, or discard what it did with --restart"
            )

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines and wait until they are on the disk.

        Raises
        ------
        OSError
            If the disk is full; the file then ends where it did before.
        """
        self._empty = False  # first: an interrupt may come between the two
        self._write(records)

    def _write(self, records: Iterable[Mapping[str, Any]]) -> None:
        data = b"".join(
            json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            for record in records
        )
        end = os.fstat(self._descriptor).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, end)
            error.filename = error.filename or str(self.path)
            raise

    def finish(self) -> None:
        """Remove the file: the table that it led to is on the disk."""
        self.path.unlink()
        self._empty = False
        sync_directory(self.path.parent)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._empty:  # nothing to go on from
            self.path.unlink()
        os.close(self._descriptor)


def _record(line: bytes) -> dict[str, Any] | None:
    """A whole line, or None for what a crash left."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
