"""Terms of the bounds beyond the last t: made to matter, and missed where they are dropped."""

from __future__ import annotations

from pathlib import Path

import audit_envelope as tool
import pytest

MISSED = (
    "modulus: spacing",
    "modulus: below the nodes",
    "modulus: beyond the edge",
    "log M: spacing",
    "log M: what lies outside",
    "removed mass",
)


@pytest.mark.parametrize("name", MISSED)
def test_a_hundredth_of_a_term_is_missed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("modulus"):
        monkeypatch.setattr(tool, "STEPS", tool.STEPS[::5])
    (term,) = (term for term in tool.TERMS if term.name == name)
    source = (tool.ROOT / "csrc" / "envelope.c").read_text(encoding="utf-8")
    assert term.before + term.text in source
    for factor, missed in ((None, False), ("0.01", True)):
        folder = tmp_path / str(factor)
        folder.mkdir()
        asked, outside = tool.judged(term, factor, folder)
        assert asked > 50
        assert (outside > 0) == missed
