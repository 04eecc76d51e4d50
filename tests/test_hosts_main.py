"""The weekly look at the main branches of hosts, on checkouts made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

made: Any = pytest.importorskip("hosts_main")  # not in an installed package without its sources
WORKFLOW = Path(__file__).parent.parent / ".github" / "workflows" / "hosts.yml"


def checkouts(directory: Path) -> dict[str, Path]:
    """One file for each place, which defines all that is known; by repository and pattern."""
    files = {}
    for place in made.PLACES:
        path = place.files.replace("**/", "").replace("server*", "server").replace("*.py", "x.py")
        file = directory / place.repository.partition("/")[2] / path
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = "def {}(): pass" if place.names.startswith("[a-z]") else "class {}: pass"
        lines = [kind.format(name) for name in sorted(place.known)]
        if place.inside:
            lines = [f"class {place.inside}:", *(f"  {name} = 1" for name in place.known)]
        file.write_text("\n".join(["import torch", *lines, ""]), "utf-8")
        files[f"{place.repository} {place.files}"] = file
    return files


def test_what_is_known_is_not_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkouts(tmp_path)
    assert made.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing is new\n"


def test_new_names_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = checkouts(tmp_path)
    events = next(file for name, file in files.items() if "dp_event" in name)
    relations = next(file for name, file in files.items() if "privacy_accountant" in name)
    with events.open("a", encoding="utf-8") as file:
        file.write("class TriangularDpEvent: pass\nclass Helper: pass\n")
    with relations.open("a", encoding="utf-8") as file:
        file.write("  REPLACE_TWO = 4\n")
    next(file for name, file in files.items() if "flower" in name).unlink()
    assert made.main([str(tmp_path)]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.endswith("dp_event.py: TriangularDpEvent is new")
    assert second.endswith("privacy_accountant.py: REPLACE_TWO is new")
    assert third.startswith("adap/flower, ")
    assert "nothing of the names" in third


def test_all_hosts_are_fetched() -> None:
    text = WORKFLOW.read_text("utf-8")
    assert all(f" {place.repository} " in text for place in made.PLACES)
    assert "schedule" in text
