"""What a release says of itself: one version, one date, and a README for indices."""

from __future__ import annotations

import re
import runpy
import sys
from datetime import date
from pathlib import Path

import pytest

import pyengine
from pyengine.cli import main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
VERSION = pyengine.__version__


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def headings() -> list[str]:
    return re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.M)


def test_one_version_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(rf"^version: {re.escape(VERSION)}$", text_of("CITATION.cff"), re.M)
    assert f'version: "{VERSION}"' in text_of("docs/developer/conda/recipe.yaml")
    project = tomllib.loads(text_of("pyproject.toml"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "pyengine._version.__version__"
    }
    with pytest.raises(SystemExit):
        main(["--version"])
    assert re.match(rf"pyengine {re.escape(VERSION)}( \(commit [^)]+\))?$", capsys.readouterr().out)


def test_a_release_has_a_section_and_a_date() -> None:
    """A development version has neither, and both lists go on with what was released before."""
    found = headings()
    assert found[0] == "Unreleased"
    for heading in found[1:]:
        number, day = heading.split(" - ")
        assert re.fullmatch(r"\d+\.\d+\.\d+", number)
        date.fromisoformat(day)
    released = re.search(r"^date-released: (.*)$", text_of("CITATION.cff"), re.M)
    if ".dev" in VERSION:
        assert released is None
    else:
        assert released is not None
        assert found[1] == f"{VERSION} - {released[1]}"


def test_the_readme_of_an_index_has_no_dead_links() -> None:
    make = runpy.run_path(str(ROOT / "csrc" / "build_readme.py"))["long_description"]
    relative = r"\]\((?!https?://)"
    assert re.search(relative, text_of("README.md"))
    plain = make(ROOT / "README.md", None)
    assert not re.search(relative, plain)
    assert "(accuracy, with the bad regions)" in plain
    linked = make(ROOT / "README.md", "https://example.org/source/")
    assert "[tables](https://example.org/source/docs/tables.md)" in linked
    assert not re.search(relative, linked)
    targets = re.findall(r"https://example\.org/source/([^)\s]+)", linked)
    assert len(targets) > 10
    assert all((ROOT / target.partition("#")[0]).exists() for target in targets)
