"""A run of pytest in a directory of its own, with one plugin of these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["WORKERS", "plugin_run"]

TESTS = Path(__file__).parent
WORKERS = pytest.mark.parametrize(
    "options", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "workers"]
)


def plugin_run(directory: Path, plugin: str, *options: str) -> tuple[int, str]:
    """Exit code, and all output."""
    command = ["-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", f"--rootdir={directory}"]
    done = subprocess.run(
        [sys.executable, *command, *options, "."],
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.returncode, done.stdout + done.stderr
