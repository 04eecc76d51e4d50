"""The alarm for skipped tests rings, in one process and in several."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_run import WORKERS, plugin_run

MODULE = """
import pytest

def test_runs():
    pass

@pytest.mark.skipif(True, reason="not on this machine")
def test_marked():
    pass

def test_inside():
    pytest.importorskip("no_such_module")

@pytest.mark.xfail(strict=True)
def test_known():
    assert False
"""
WHOLE = 'import pytest\npytest.importorskip("another_module")\n\ndef test_runs():\n    pass\n'
ENTRY = '[[skip]]\nreason = "{}"\nwhy = "it is the test of this list"\n'


def outcome(directory: Path, reasons: list[str], *options: str) -> tuple[int, str]:
    (directory / "test_module.py").write_text(MODULE)
    (directory / "test_whole.py").write_text(WHOLE)
    listed = directory / "listed.toml"
    listed.write_text("\n".join(ENTRY.format(reason) for reason in reasons) or "skip = []\n")
    words = ("-q", "--only-listed-skips", f"--skips-list={listed}", *options)
    return plugin_run(directory, "listed_skips", *words)


@WORKERS
def test_unlisted_reasons_fail_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    every = ["not on .* machine", "could not import '(no_such|another)_module'.*"]
    part = ["not on", "could not import 'no_such_module'.*"]  # the whole text must be matched
    code, printed = outcome(tmp_path, every, *options)
    assert code == 0, printed
    assert "1 passed, 3 skipped, 1 xfailed" in printed
    code, printed = outcome(tmp_path, part, *options)
    assert code == 1, printed
    assert "test_module.py::test_marked: not on this machine" in printed
    assert "test_whole.py: could not import 'another_module'" in printed
    assert "test_inside" not in printed.partition("skipped for reasons")[2]


def test_an_entry_needs_a_why(tmp_path: Path) -> None:
    from listed_skips import LIST, allowed

    assert allowed(LIST, {})
    assert len(allowed(LIST, {"PYENGINE_PEERS": "1"})) < len(allowed(LIST, {}))
    path = tmp_path / "list.toml"
    path.write_text('[[skip]]\nreason = ".*"\nwhy = "because"\n')
    with pytest.raises(AssertionError):
        allowed(path, {})
