"""Whoever has a formula finds its code, its test and its page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
made = pytest.importorskip("formula_map")  # not in an installed package without its sources


def test_page_is_up_to_date() -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run python tools/formula_map.py"


def test_files_exist_and_formulas_stand_once() -> None:
    found = list(made.places())
    assert len(found) > 20
    for place in found:
        for name in (place.file, place.test, place.page):
            assert (ROOT / name).is_file(), place
        assert re.match(r"tests/test_\w+\.py$", place.test), place
    assert max(Counter(place.formula for place in found).values()) == 1


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("Theorem 15 of Lebeda et al.", "pyengine/laws/substituted.py"),
        ("Prop. 9", "pyengine/laws/kinds.py"),
        ("eq. 8 of Leemann", "pyengine/threat/membership/step.py"),
        ("the aliasing bound", "csrc/contour.c"),
    ],
)
def test_one_search_leads_to_the_one_place(words: str, file: str) -> None:
    assert [place.file for place in made.places() if words in place.formula] == [file]


def test_the_tour_names_each_file_once() -> None:
    text = (ROOT / "docs" / "developer" / "tour.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:pyengine|csrc)/[\w/]+\.\w+)`", text)
    assert len(named) > 20
    for name in named:
        assert (ROOT / name).is_file(), name
    assert max(Counter(named).values()) == 1, Counter(named).most_common(3)
