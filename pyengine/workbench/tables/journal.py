"""Journal of a run: finished work on the disk, with which an interrupted run can continue.

It is an SQLite file, which is safe against crashes, and whose lock keeps other processes out on
every system that Python runs on.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pyengine.workbench.tables.files import sync_directory

__all__ = ["Journal", "JournalError"]

MARK = 0x7065744A  # application_id in SQLite's header: "petJ", marks a journal
FOREIGN = "not a journal of this program; remove it"
PATIENCE = 1.0  # seconds to wait for processes that only look into the file
TABLES = (
    "CREATE TABLE run (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL)",
    "CREATE TABLE done (number INTEGER PRIMARY KEY, record TEXT NOT NULL)",
)


class JournalError(Exception):
    """A journal that this run cannot use; the message says why and what to do."""


class Journal:
    """An append-only list of records, which one process at a time may open.

    ``run`` identifies the run: a journal with another identity is not used.  ``restart`` discards
    the records of an interrupted run of any identity.  ``found`` has the records of earlier runs.
    JournalError if another process has the file open, or if it belongs to another run.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], *, restart: bool = False) -> None:
        self.path = path
        self.found: list[dict[str, Any]] = []
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        path.touch()
        self._file = path.stat().st_ino
        with self._failures():
            # isolation_level=None: transactions begin only with BEGIN
            self._database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            self._open(dict(run), restart)
        except BaseException:
            self._database.close()
            raise

    def _open(self, run: dict[str, Any], restart: bool) -> None:
        with self._failures():
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")  # from now to the end
            self._database.execute("PRAGMA synchronous = EXTRA")
            self._database.execute("BEGIN EXCLUSIVE")
            # another run may have finished and removed the file since it was opened here
            if not self.path.exists() or self.path.stat().st_ino != self._file:
                raise JournalError(f"{self.path}: another run was writing this table; try again")
            (mark,) = self._database.execute("PRAGMA application_id").fetchone()
            tables = self._database.execute("SELECT name FROM sqlite_master").fetchall()
            if tables and mark != MARK:
                raise JournalError(f"{self.path}: {FOREIGN}")
            if tables and not restart:
                self._compare(run)
                self.found = self.kept()
            else:
                for (name,) in tables:
                    self._database.execute(f'DROP TABLE "{name}"')
                for statement in TABLES:
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA application_id = {MARK}")
                self._database.execute("INSERT INTO run VALUES (1, ?)", (json.dumps(run),))
            self._database.execute("COMMIT")
        self._empty = not self.found

    def kept(self) -> list[dict[str, Any]]:
        """All records in the file."""
        with self._failures():
            rows = self._database.execute("SELECT record FROM done ORDER BY number").fetchall()
        return [json.loads(text) for (text,) in rows]

    def _compare(self, run: dict[str, Any]) -> None:
        found = json.loads(self._database.execute("SELECT identity FROM run").fetchone()[0])
        different = [key for key in run if found.get(key) != run[key]]
        if different:
            what = "; ".join(f"{key} {found.get(key)}, now {run[key]}" for key in different)
            raise JournalError(
                f"{self.path}: an interrupted run of another table left this ({what}); finish that "
                "run, write to another directory, or discard what it did with --restart"
            )

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records in one transaction, flushed to the disk; OSError if it is full."""
        self._empty = False  # first, in case of an interrupt
        rows = [(json.dumps(record, ensure_ascii=False),) for record in records]
        with self._failures():
            self._database.execute("BEGIN")
            try:
                self._database.executemany("INSERT INTO done (record) VALUES (?)", rows)
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def finish(self) -> None:
        """Mark the file for removal at the end: the table is complete and on the disk."""
        self._empty = True

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        held = True
        if self._empty:  # remove it while it is still locked, if the system can remove open files
            with suppress(PermissionError):  # Windows
                self.path.unlink()
                held = False
        self._database.close()
        if self._empty:
            if held:
                self.path.unlink(missing_ok=True)
            sync_directory(self.path.parent)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of SQLite into JournalError and OSError."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise JournalError(f"{self.path}: another run is writing this table") from None
            raise OSError(errno.EIO, str(error), str(self.path)) from None
        except sqlite3.DatabaseError:  # no SQLite file
            raise JournalError(f"{self.path}: {FOREIGN}") from None
