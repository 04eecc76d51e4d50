"""The alarm itself: it rings where it should, and recording only ever tightens."""

from __future__ import annotations

import math
from pathlib import Path

import error_budget
import pytest


@pytest.fixture
def budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text('[part]\n"error" = 2.0\n', encoding="utf-8")
    monkeypatch.setattr(error_budget, "PATH", path)
    monkeypatch.setattr(error_budget, "_recorded", error_budget._load())
    monkeypatch.setattr(error_budget, "_worst", {})
    monkeypatch.delenv("PYENGINE_ERROR_BUDGET", raising=False)
    return path


@pytest.mark.usefixtures("budget")
def test_alarm() -> None:
    error_budget.check("part.error", 8.0)
    with pytest.raises(AssertionError, match="exceeds 4 times"):
        error_budget.check("part.error", 8.1)
    for wrong in (math.nan, -1.0):
        with pytest.raises(AssertionError, match="must be a number"):
            error_budget.check("part.error", wrong)
    with pytest.raises(AssertionError, match="no entry"):
        error_budget.check("part.unknown", 0.0)
    with pytest.raises(AssertionError, match=r"section\.name"):
        error_budget.check("part", 0.0)


def test_record(budget: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENGINE_ERROR_BUDGET", "record")
    error_budget.check("other.new", 1e-14)
    error_budget.check("other.new", 1.234e-13)
    error_budget.check("other.exact", 0.0)
    error_budget.check("part.error", 3.0)  # worse than the entry: not raised
    entries = error_budget._load()
    assert 1.234e-13 <= entries["other"]["new"] <= 1.4e-13
    assert entries["other"]["exact"] == 0.0
    assert entries["part"]["error"] == 2.0
    monkeypatch.setattr(error_budget, "_worst", {})
    error_budget.check("part.error", 0.5)
    assert error_budget._load()["part"]["error"] == 0.5
    assert budget.read_text(encoding="utf-8").startswith("# The largest error")
