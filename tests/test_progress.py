"""A run that nobody watches says what it will take and where it is."""

from __future__ import annotations

import re
from pathlib import Path

from plugin_run import WORKERS, plugin_run

MODULE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_number(n):
    assert n != 1
"""


@WORKERS
def test_lines_instead_of_dots(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_module.py").write_text(MODULE)
    (tmp_path / "conftest.py").write_text("import progress\n\nprogress.EVERY = 0.0\n")
    code, printed = plugin_run(tmp_path, "progress", "--progress", *options)
    assert code == 1, printed
    assert "1 failed, 2 passed" in printed
    assert re.search(r"^3 tests; a whole run takes about \d+ min on 1 free cores?$", printed, re.M)
    assert re.findall(r"^0 min: ([1-3]) of 3 tests", printed, re.M)[-1] == "3"
    assert "0 min: 3 of 3 tests, 1 failed" in printed
    assert re.search(r"^FAILED \S*test_module.py::test_number\[1\]$", printed, re.M)
    assert re.search(r"^FAILED \S*test_module.py::test_number\[1\] - assert", printed, re.M)
    assert not re.search(r"\.\.|%", printed)
