"""Journal of a campaign: one line of JSON for each question, so that a run can be resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["Journal", "read"]


def read(path: Path) -> list[dict[str, Any]]:
    """All records of a journal, without an incomplete last line."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


class Journal:
    """Records on disk, one JSON object a line, of a single campaign, named by its seed."""

    def __init__(self, path: Path, seed: str) -> None:
        self.path, self.seed = path, seed
        other = {record["seed"] for record in read(path)} - {seed}
        if other:
            raise ValueError(f"seed must be that of the journal, {other.pop()!r}, got {seed!r}")

    def done(self) -> set[int]:
        """Indices of the questions that were asked."""
        return {record["index"] for record in read(self.path)}

    def add(self, record: dict[str, Any]) -> None:
        """Append a record; it is on disk when this returns."""
        self._mend()
        line = json.dumps({"seed": self.seed, **record}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _mend(self) -> None:
        """Cut off a last line that is not whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists() or self.path.stat().st_size == 0:
            return
        with self.path.open("rb+") as file:
            file.seek(-1, 2)
            if file.read(1) == b"\n":
                return
            file.seek(0)
            whole = file.read().rpartition(b"\n")[0]
            file.truncate(len(whole) + 1 if whole else 0)
