"""Write docs/theory/statements.md: statements of the book of proofs, their code and their tests.

    python tools/statements.py

A statement begins with a line such as ``**Lemma 2 (aliases).**``.  Behind its proof, which ends
with ∎, the page names the files that implement it and the tests that attack it, in one line:

    *Code* `csrc/contour.c` *Test* `tests/test_dp_sgd.py`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "theory"
PAGE = BOOK / "statements.md"
HEADING = re.compile(r"^#+ (.+)$")
STATEMENT = re.compile(r"^\*\*(?:Theorem|Lemma|Corollary) (\d+) \((.+?)\)\.\*\*")
MARK = re.compile(r"^\*Code\* (.+) \*Test\* (.+)$")
HEAD = """\
# All statements

`python tools/statements.py` makes this page of the lines behind each proof; `tests/test_book.py`
holds that each statement has a proof, and that all files and tests exist.

| statement | code | test |
|---|---|---|
"""


class Statement(NamedTuple):
    """One statement of the book."""

    chapter: str  # file name
    heading: str  # anchor of the section it stands in
    number: str
    name: str
    proven: bool
    code: tuple[str, ...]
    tests: tuple[str, ...]


def chapters() -> list[Path]:
    """Pages in the order of the book."""
    text = (BOOK / "index.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"```\{toctree\}\n:hidden:\n(.*?)```", text, re.S))
    return [path for name in listed.split() if (path := BOOK / f"{name}.md") != PAGE]


def anchor(heading: str) -> str:
    """As MyST makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def statements() -> Iterator[Statement]:
    """All statements, in the order of the book."""
    for path in chapters():
        heading, number, name, proven = "", "", "", False
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := HEADING.match(line):
                heading = found.group(1)
            if found := STATEMENT.match(line):
                if name:
                    raise ValueError(f"{path.name}: {number} ({name}) names no code and no test")
                number, name = found.groups()
                proven = False
            proven = proven or "∎" in line
            if name and (found := MARK.match(line)):
                code, tests = (tuple(re.findall(r"`([^`]+)`", part)) for part in found.groups())
                yield Statement(path.name, anchor(heading), number, name, proven, code, tests)
                name = ""
        if name:
            raise ValueError(f"{path.name}: {number} ({name}) names no code and no test")


def page() -> str:
    """Text of the page."""
    lines = (
        f"| [{s.chapter.removesuffix('.md')} {s.number}]({s.chapter}#{s.heading}) {s.name} | "
        f"{' '.join(f'`{name}`' for name in s.code)} | "
        f"{' '.join(f'`{name}`' for name in s.tests)} |\n"
        for s in statements()
    )
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
