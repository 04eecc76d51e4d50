"""The table of `tools/compare_checkouts.py`: a checkout beside itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "compare_checkouts.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_checkout_beside_itself(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    found = run("--beside", str(tmp_path), "--rounds", "3", "--only", "full_batch", "imagenet")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()[2:]
    assert [line.split()[0] for line in lines] == ["full_batch", "imagenet"]
    for line in lines:
        here_there = re.findall(r"([\d.]+), ([\d.]+) \(([\d.]+)\)", line)
        assert len(here_there) == 4
        for here, there, ratio in here_there:
            assert abs(float(here) / float(there) / float(ratio) - 1.0) < 0.06
            assert 0.2 < float(ratio) < 5.0
        assert len(re.findall(r"\([\d.]+\)", line)) == 5


def test_alone_and_with_a_wrong_path(tmp_path: Path) -> None:
    found = run("--rounds", "1", "--only", "full_batch")
    assert found.returncode == 0, found.stderr
    assert len(re.findall(r"\d+\.\d", found.stdout)) == 4
    assert "(" not in found.stdout.splitlines()[2]
    wrong = run("--beside", str(tmp_path))
    assert wrong.returncode == 2
    assert "--beside must be a checkout" in wrong.stderr


def test_laplace_steps() -> None:
    found = run("--rounds", "1", "--laplace", "1000")
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()[4:]
    assert len(lines) == 10
    for line in lines:
        assert line.split()[2] == "1000"
        assert len(re.findall(r"\d+\.\d\d\b", line)) >= 6
