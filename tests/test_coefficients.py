"""The tables of normal.c and the bounds of lane_trig.h are what the scripts named there print."""

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


def proved(source: str, path: Path) -> dict[str, tuple[float, int]]:
    """What the proof says of a changed header: its bound in units, and the exit code."""
    path.mkdir()
    (path / "tools").mkdir()
    (path / "csrc").mkdir()
    script = path / "tools" / "prove_lane_trig.py"
    script.write_bytes((ROOT / "tools" / "prove_lane_trig.py").read_bytes())
    (path / "csrc" / "lane_trig.h").write_text(source, encoding="utf-8")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    found = re.findall(r"(\w+) +proven +([\d.]+) u", run.stdout)
    return {name: (float(units), run.returncode) for name, units in found}


def test_lane_trig(tmp_path: Path) -> None:
    """The chapter on arithmetic says what is proven; a wrong coefficient is found."""
    source = (ROOT / "csrc" / "lane_trig.h").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "theory" / "arithmetic.md").read_text(encoding="utf-8")
    for number in ("1.75u", "(4.9+|b|)u", "(4.9+2.01|b|)u"):
        assert number in page
    (exp, code), (rotation, _) = proved(source, tmp_path / "same").values()
    assert code == 0
    assert 1.0 < exp <= 1.75
    assert 3.0 < rotation <= 4.9
    other = source.replace("p = p * r + 1.0 / 40320.0;", "p = p * r + 1.0 / 40321.0;")
    assert other != source
    (exp, code), _ = proved(other, tmp_path / "other").values()
    assert code == 1
    assert exp > 1.75
