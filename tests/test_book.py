"""The book of proofs: statements have proofs, code and tests that exist, and all of it is short."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
made = pytest.importorskip("statements")  # not in an installed package without its sources

MOST_WORDS = 25_000


def test_page_is_up_to_date() -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run python tools/statements.py"


def test_statements_have_proofs_code_and_tests() -> None:
    found = list(made.statements())
    assert len(found) > 10
    for statement in found:
        assert statement.proven, statement
        assert statement.code, statement
        assert statement.tests, statement
        for name in statement.code:
            assert (ROOT / name).is_file(), statement
        for name in statement.tests:
            path, _, test = name.partition("::")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {test or 'test_'}" in text, statement
    assert max(Counter((s.chapter, s.name) for s in found).values()) == 1


def test_the_book_has_all_its_pages() -> None:
    listed = {*made.chapters(), made.PAGE, made.BOOK / "index.md"}
    assert set(made.BOOK.glob("*.md")) == listed


def test_the_book_is_short() -> None:
    """Words have a letter or a digit, formulas included; the table that is made repeats names."""
    pages = sorted(set(made.BOOK.glob("*.md")) - {made.PAGE})
    text = " ".join(page.read_text(encoding="utf-8") for page in pages)
    assert sum(re.search(r"\w", word) is not None for word in text.split()) <= MOST_WORDS


def test_displayed_formulas_stand_alone() -> None:
    """Without an empty line on both sides a formula is set as text."""
    for page in made.BOOK.glob("*.md"):
        lines = page.read_text(encoding="utf-8").splitlines()
        for before, line, after in zip(lines, lines[1:], [*lines[2:], ""], strict=False):
            if line.startswith("$$") and line.count("$$") == 2:
                assert not before, (page.name, line)
                assert not after, (page.name, line)


def test_code_names_chapters_that_exist() -> None:
    """Docstrings and comments say in which chapter a proof stands."""
    book, seen = made.BOOK, set()
    for part, ending in (("pyengine", "py"), ("csrc", "[ch]"), ("tests", "py")):
        for path in (ROOT / part).rglob(f"*.{ending}"):
            seen |= set(re.findall(r"\btheory/([a-z_]+)", path.read_text(encoding="utf-8")))
    assert len(seen) > 10
    assert not [name for name in seen if not (book / f"{name}.md").exists()]
