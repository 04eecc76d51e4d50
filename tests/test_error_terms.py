"""Error terms that lie far below rounding: made to matter, and missed where they are too small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from flint import ctx

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import audit_terms as tool
from audit_certificate import build

BITS = 160
POINTS = 14


@pytest.mark.parametrize(
    ("name", "factor"),
    [("aliases", "0.01"), ("values of t left out", "0.01"), ("their integral", "0.0")],
)
def test_a_part_of_a_term_is_missed(
    name: str, factor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctx, "prec", BITS)
    (term,) = (term for term in tool.TERMS if term.name == name)
    judge = tool.on_rows(POINTS)
    for folder, changes, missed in (
        (tmp_path / "whole", term.coarse, False),
        (tmp_path / "part", term.changed(factor), True),
    ):
        folder.mkdir()
        asked, outside = judge(build(folder, changes))
        assert asked > 100
        assert (outside > 0) == missed
