"""Files of a table: CSV, JSON lines and Parquet, and atomic replacement of several files."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyengine._support.extras import needed

__all__ = ["csv_text", "jsonl_text", "parquet_bytes", "prepare", "replace_all"]

Record = Sequence[str | None]


def csv_text(columns: Sequence[str], records: Iterable[Record]) -> str:
    """Rows as CSV with a header; missing cells are empty."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in record] for record in records)
    return buffer.getvalue()


def jsonl_text(columns: Sequence[str], records: Iterable[Record], numeric: set[str]) -> str:
    """Rows as JSON, one object per line; missing cells are null.

    Cells of numeric columns are numbers, others strings.  As JSON has no infinity, an infinite
    number is the string "inf".
    """
    lines = []
    for record in records:
        cells = (
            f"{json.dumps(name)}: {_json(cell, name in numeric)}"
            for name, cell in zip(columns, record, strict=True)
        )
        lines.append(f"{{{', '.join(cells)}}}\n")
    return "".join(lines)


def _json(cell: str | None, number: bool) -> str:
    if number and cell not in (None, "inf"):
        return str(cell)  # unchanged, since the text of a double is valid JSON
    return json.dumps(cell, ensure_ascii=False)


def parquet_bytes(
    columns: Sequence[str], records: Iterable[Record], numeric: set[str], integer: set[str]
) -> bytes:
    """Rows as a Parquet file; needs pyarrow.

    Numeric columns become doubles, or 64-bit integers if also ``integer``; all others strings.
    """
    with needed("table.parquet", "parquet"):
        import pyarrow
        import pyarrow.parquet

    table = {}
    for name, cells in zip(columns, zip(*records, strict=True), strict=True):
        if name in numeric & integer:
            integers = [None if cell is None else int(float(cell)) for cell in cells]
            table[name] = pyarrow.array(integers, pyarrow.int64())
        elif name in numeric:
            doubles = [None if cell is None else float(cell) for cell in cells]
            table[name] = pyarrow.array(doubles, pyarrow.float64())
        else:
            table[name] = pyarrow.array(cells, pyarrow.string())
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(table), buffer)
    return buffer.getvalue()


def prepare(directory: Path) -> None:
    """Make a directory and check that it is writable, before its contents are computed."""
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    directory.mkdir(parents=True, exist_ok=True)
    probe = _temporary(directory / "probe")
    probe.touch(exist_ok=False)
    probe.unlink()


def replace_all(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write files atomically: at any time each has its complete old or new content.

    All new content is on the disk before the first file is renamed: if the disk is full or the
    program is interrupted, all old files stay intact.
    """
    pending = {directory / name: _temporary(directory / name) for name in contents}
    try:
        for (target, temporary), content in zip(pending.items(), contents.values(), strict=True):
            try:
                if target.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                with temporary.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                error.filename = str(target)  # missing if the disk is full
                raise
        for target, temporary in pending.items():
            temporary.replace(target)
        sync_directory(directory)
    finally:
        for temporary in pending.values():
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def sync_directory(directory: Path) -> None:
    """Flush a directory, so that new and removed names survive a power cut; not on Windows."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(target: Path) -> Path:
    """Return a name in the same directory (so that renaming is atomic) unique to this process."""
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
