"""Write docs/developer/map.md: where each formula is, what tests it, and where it is explained.

    python tools/formula_map.py

Each formula has a comment of one line at its one place in the code:

    Map: FORMULA | TEST | PAGE

TEST is a file of tests/, PAGE one below docs/, both without their extensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "developer" / "map.md"
SOURCES = (*sorted((ROOT / "pyengine").rglob("*.py")), *sorted((ROOT / "csrc").glob("*.[ch]")))
MARK = re.compile(r"^\s*(?:#|/\*) Map: (.+?) \| (.+?) \| (.+?)(?: \*/)?$", re.M)
HEAD = """\
# Where each formula stands

Each formula has one place in the code, which names it in a comment beginning with `Map:`; this page
is made of those comments by `python tools/formula_map.py`, and
`tests/test_formula_map.py` checks it.
`grep -rn "Map: .*WORDS" pyengine csrc` finds the place.

| formula | code | test | page |
|---|---|---|---|
"""


class Place(NamedTuple):
    """One formula."""

    formula: str
    file: str
    test: str
    page: str


def places() -> Iterator[Place]:
    """All formulas, in the order of the files."""
    for path in SOURCES:
        for found in MARK.finditer(path.read_text(encoding="utf-8")):
            formula, test, page = found.groups()
            file = path.relative_to(ROOT).as_posix()
            yield Place(formula, file, f"tests/{test}.py", f"docs/{page}.md")


def page() -> str:
    """Text of the page, by formula."""
    rows = sorted(places(), key=lambda place: place.formula.lower())
    lines = (
        f"| {place.formula} | `{place.file}` | `{place.test}` | "
        f"[{place.page.removeprefix('docs/')}](../{place.page.removeprefix('docs/')}) |\n"
        for place in rows
    )
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
