"""What a release says of itself: one version, one date, and a README for indices."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import sys
import tarfile
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


def test_archives_have_the_same_bytes(tmp_path: Path) -> None:
    """Whoever writes them, and whenever."""
    write = runpy.run_path(str(ROOT / "csrc" / "build_archive.py"))["write_archive"]
    hashes = set()
    for number, name in enumerate(("b", "a")):
        tree = tmp_path / str(number) / "package-1.0"
        (tree / "inner").mkdir(parents=True)
        for file in (name, "a", "b", "run"):  # in another order
            (tree / "inner" / file).write_text(file)
            os.utime(tree / "inner" / file, (1e9 + number, 1e9 + number))
        (tree / "inner" / "run").chmod(0o775 if number else 0o700)
        (tree / "inner" / "a").chmod(0o664 if number else 0o600)
        target = tmp_path / f"{number}.tar.gz"
        write(tree, target, 1_700_000_000)
        hashes.add(hashlib.sha256(target.read_bytes()).hexdigest())
    assert len(hashes) == 1
    with tarfile.open(target) as archive:
        assert archive.getnames()[:2] == ["package-1.0", "package-1.0/inner"]
        assert {entry.mtime for entry in archive} == {1_700_000_000}
        assert archive.getmember("package-1.0/inner/run").mode == 0o755
