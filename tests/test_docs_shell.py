"""Every ``pyengine`` command in the documentation runs, and prints what it is said to print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from pyengine.cli import main
from pyengine.cli.main import make_parser

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)

# Files that commands of a page read: the first block of that language on the page is one.
FILES = {
    "docs/batch_selection.md": {"C.csv": "text"},
    "docs/cli.md": {"run.toml": "toml"},
    "docs/cookbook.md": {"theirs.csv": "text"},
    "docs/report.md": {"run.toml": "toml"},
    "docs/tables.md": {"my.toml": "toml", "mine.csv": "text"},
}
# of commands that find something
CODES = {"pyengine verify mine.csv": 1, "pyengine verify theirs.csv": 1}
# Commands that need a cluster, other libraries, or minutes, or do not end: parsed, not run.  The
# table of the six workflows is what tests/test_cli.py makes by the same words.
ONLY_PARSED = re.compile(r"HOST|^pyengine (conformance|explore|papers|table -o)|--workers|<\(|>")


class Command(NamedTuple):
    line: str
    output: str | None  # None: not compared


def commands(text: str) -> list[Command]:
    found = []
    for language, block in BLOCK.findall(text):
        if language in ("sh", "bash"):
            lines = (re.sub(r"\s+#.*", "", line) for line in block.splitlines())
            found += [Command(line, None) for line in lines if line.startswith("pyengine ")]
        if language == "console":
            parts = re.split(r"^\$ (.*)\n", block, flags=re.M)[1:]
            found += [Command(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return found


WITH_COMMANDS = [page for page in PAGES if commands(page.read_text(encoding="utf-8"))]


def test_commands_are_found() -> None:
    names = {page.name for page in WITH_COMMANDS}
    assert names >= {"README.md", "batch_selection.md", "cli.md", "report.md", "tables.md"}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, language in FILES.get(str(page.relative_to(ROOT)), {}).items():
        blocks = [block for found, block in BLOCK.findall(text) if found == language]
        (tmp_path / name).write_text(blocks[0], encoding="utf-8")
    for command in commands(text):
        words = shlex.split(re.split(r"[<>|]", command.line)[0])[1:]
        if ONLY_PARSED.search(command.line):
            make_parser().parse_args(words)
            continue
        assert main(words) == CODES.get(command.line, 0), command.line
        printed = capsys.readouterr().out
        if command.output is not None:
            assert printed.strip() == command.output.strip(), command.line
        for word in words:
            if word.endswith((".png", ".svg")):
                assert (tmp_path / word).stat().st_size > 10_000
