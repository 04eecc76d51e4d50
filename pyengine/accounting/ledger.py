"""Where the releases of a budget are booked: in memory, or in a file that processes share.

Releases are numbered 0, 1, 2, …  Booking under a number is one atomic operation, which fails if the
number is taken; no lock is held while bounds are computed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from pyengine.accounting.serialization import from_json, to_json
from pyengine.calibration.targets import Target
from pyengine.mechanisms import Mechanism

__all__ = ["FileLedger", "Ledger", "MemoryLedger", "Release"]

MARK = 0x70654264  # application_id in SQLite's header: "peBd", marks the file of a budget
WAIT = 60.0  # seconds to wait while another connection locks the file
TABLES = """
CREATE TABLE target (one INTEGER PRIMARY KEY CHECK (one = 1), target TEXT NOT NULL);
CREATE TABLE release (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, mechanism TEXT NOT NULL
);
"""


class Release(NamedTuple):
    """A release that is booked in a budget.

    Parameters
    ----------
    name : str
        Its name; may be empty.
    mechanism : Mechanism
        The mechanism of the release.
    """

    name: str
    mechanism: Mechanism


class Ledger(Protocol):
    """A list of releases, which can be extended only if it has not changed since it was read."""

    def read(self) -> list[Release]:
        """All releases in the order in which they were booked."""

    def append(self, release: Release, number: int) -> bool:
        """Book a release under a number; False if the number has been taken meanwhile."""


class MemoryLedger:
    """Releases in memory.  Threads and signal handlers may share the list; no lock is taken."""

    def __init__(self) -> None:
        self._booked: dict[int, Release] = {}

    def read(self) -> list[Release]:
        """See `Ledger`."""
        found: list[Release] = []
        while (release := self._booked.get(len(found))) is not None:
            found.append(release)
        return found

    def append(self, release: Release, number: int) -> bool:
        """See `Ledger`."""
        return self._booked.setdefault(number, release) is release  # atomic


class FileLedger:
    """Releases in an existing SQLite database, which processes of one machine may share.

    ValueError for a file that holds no budget, or a damaged one; OSError for a file that cannot be
    opened, read or written, or that others keep locked for a minute.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: there is no such file")
        with self._opened() as database:
            found = database.execute("SELECT target FROM target").fetchall()
        target = from_json(found[0][0]) if found else None
        if not isinstance(target, Target):
            raise self._damaged()
        self.target = target

    @classmethod
    def made(
        cls, path: str | os.PathLike[str], target: Target, releases: Iterable[Release] = ()
    ) -> FileLedger:
        """Make a new file in one transaction; FileExistsError if the file exists."""
        rows = [(number, *_row(release)) for number, release in enumerate(releases)]
        text = to_json(target)
        with _connected(Path(path).absolute(), "rwc") as database:
            database.execute("BEGIN IMMEDIATE")
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                database.execute("ROLLBACK")
                raise FileExistsError(f"{path}: the file exists")
            for statement in TABLES.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {MARK}")
            database.execute("INSERT INTO target VALUES (1, ?)", (text,))
            database.executemany("INSERT INTO release VALUES (?, ?, ?)", rows)
            database.execute("COMMIT")
        return cls(path)

    def read(self) -> list[Release]:
        """See `Ledger`."""
        with self._opened() as database:
            rows = database.execute("SELECT * FROM release ORDER BY number").fetchall()
        if [row[0] for row in rows] != list(range(len(rows))):
            raise self._damaged()
        return [Release(name, from_json(text)) for _, name, text in rows]

    def append(self, release: Release, number: int) -> bool:
        """See `Ledger`."""
        row = (number, *_row(release))
        with self._opened() as database:
            try:
                database.execute("INSERT INTO release VALUES (?, ?, ?)", row)
            except sqlite3.IntegrityError:  # the number is taken
                return False
        return True

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        # one connection per operation, since threads and forks must not share a connection
        with _connected(self.path, "rw") as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != MARK:
                raise ValueError(f"path must be the file of a budget, got {self.path}")
            yield database

    def _damaged(self) -> ValueError:
        return ValueError(f"path must be the file of a budget, but {self.path} is damaged")


def _row(release: Release) -> tuple[str, str]:
    """Name and JSON text of a release; ValueError if it would not read back the same."""
    text = to_json(release.mechanism)
    if from_json(text) != release.mechanism:
        raise ValueError(f"mechanism must be the same when read back, got {release.mechanism!r}")
    return release.name, text


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection in autocommit mode: each statement is a transaction unless one is begun."""
    try:
        address = f"{path.as_uri()}?mode={mode}"
        with closing(sqlite3.connect(address, WAIT, uri=True, isolation_level=None)) as database:
            yield database
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: {error}") from None
    except sqlite3.DatabaseError:
        raise ValueError(f"path must be the file of a budget, got {path}") from None
