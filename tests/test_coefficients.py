"""The tables of normal.c are what the script named there prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tables(text: str) -> dict[str, list[float]]:
    found = re.findall(r"static const double (\w+)\[\d+\] = \{([^}]*)\};", text)
    return {
        name: [float.fromhex(item) for item in body.split(",") if item.strip()]
        for name, body in found
    }


def test_normal() -> None:
    script = ROOT / "tools" / "normal_coefficients.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    printed = tables(run.stdout)
    assert set(printed) == {
        f"{name}_{part}" for name in ("CENTRE", "NEAR", "FAR", "QUANTILE", "START") for part in "PQ"
    } | {"LEGENDRE_NODE", "LEGENDRE_WEIGHT"}
    assert printed == tables((ROOT / "csrc" / "normal.c").read_text(encoding="utf-8"))
