"""Files of a table: CSV and JSON text, and writing that replaces all files or none."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pyengine.tables.rows import Row

__all__ = ["csv_text", "json_text", "prepare", "replace_all"]

COLUMNS = [field.name for field in fields(Row)]


def csv_text(rows: Sequence[Row], provenance: Mapping[str, str]) -> str:
    """Rows as CSV with a header; floats as the shortest text that reads back as the same double.

    Parameters
    ----------
    rows : sequence of Row
        What to write.
    provenance : mapping
        Further columns, the same in every row: a table that is joined with others still says what
        made each number.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*COLUMNS, *provenance])
    for row in rows:
        writer.writerow([*(_cell(getattr(row, name)) for name in COLUMNS), *provenance.values()])
    return buffer.getvalue()


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def json_text(rows: Sequence[Row], metadata: Mapping[str, Any]) -> str:
    """Metadata and rows as one JSON object, ``rows`` with one line each.

    JSON knows no infinity: an infinite number is the string "inf".
    """
    head = json.dumps(dict(metadata), indent=2, ensure_ascii=False, allow_nan=False)
    lines = [json.dumps(_record(row), ensure_ascii=False, allow_nan=False) for row in rows]
    body = ",\n    ".join(lines)
    return f'{head[:-2]},\n  "rows": [\n    {body}\n  ]\n}}\n'


def _record(row: Row) -> dict[str, Any]:
    return {
        key: "inf" if isinstance(value, float) and value == math.inf else value
        for key, value in asdict(row).items()
    }


def prepare(directory: Path) -> None:
    """Make a directory and see whether it can be written, before work goes into its contents.

    Raises
    ------
    OSError
        If it cannot.
    """
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    directory.mkdir(parents=True, exist_ok=True)
    probe = _temporary(directory / "probe")
    probe.touch(exist_ok=False)
    probe.unlink()


def replace_all(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write files such that each holds its old or its new content at any time, never a part.

    All new content is on the disk before the first name changes hands: a full disk or an interrupt
    leaves every old file as it was.

    Parameters
    ----------
    directory : Path
        An existing directory.
    contents : mapping
        Content of each file name.

    Raises
    ------
    OSError
        If writing fails.
    """
    pending = {directory / name: _temporary(directory / name) for name in contents}
    try:
        for (target, temporary), content in zip(pending.items(), contents.values(), strict=True):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in pending.items():
            temporary.replace(target)
    finally:
        for temporary in pending.values():
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()


def _temporary(target: Path) -> Path:
    """Return a name beside a file, where a rename is atomic, that no other process uses."""
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
