"""A run that nobody watches says what it will take and where it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_number(n):
    assert n != 1
"""


@pytest.mark.parametrize(
    "options", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "workers"]
)
def test_lines_instead_of_dots(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_module.py").write_text(MODULE)
    (tmp_path / "conftest.py").write_text("import progress\n\nprogress.EVERY = 0.0\n")
    command = ["-m", "pytest", "-p", "progress", "-p", "no:cacheprovider", "--progress", *options]
    done = subprocess.run(
        [sys.executable, *command, f"--rootdir={tmp_path}", "."],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 1, printed
    assert "1 failed, 2 passed" in printed
    assert re.search(
        r"^3 tests; all of the suite take about \d+ min on 1 free cores?$", printed, re.M
    )
    assert re.findall(r"^0 min: ([1-3]) of 3 tests", printed, re.M)[-1] == "3"
    assert "0 min: 3 of 3 tests, 1 failed" in printed
    assert re.search(r"^FAILED \S*test_module.py::test_number\[1\]$", printed, re.M)
    assert re.search(r"^FAILED \S*test_module.py::test_number\[1\] - assert", printed, re.M)
    assert not re.search(r"\.\.|%", printed)
