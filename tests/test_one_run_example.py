"""The audit of real data from one training run, as a reader of the docs runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "examples/audit_dp_sgd/one_run.py"


def example(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLE, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_what_one_run_proves() -> None:
    """Dirac canaries refute three times the noise, and nothing refutes the truth."""
    pytest.importorskip("sklearn")
    run = example("--seed", "1")
    assert run.returncode == 0, run.stderr
    found = re.findall(r"epsilon >= ([\d.]+), mu", run.stdout)
    assert len(found) == 2
    assert 0.5 < float(found[1]) < 6.616
    claims = re.findall(r"as it is: ([\d.e-]+); of three times the noise: ([\d.e-]+)", run.stdout)
    assert all(float(truth) > 0.05 for truth, _ in claims)
    assert float(claims[1][1]) < 0.01


def test_bad_words() -> None:
    pytest.importorskip("sklearn")
    run = example("--canaries", "700")
    assert run.returncode == 2
    assert "needs 2 <= guesses <= canaries <= 650" in run.stderr
