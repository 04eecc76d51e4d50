"""Matrix mechanisms in specifications of tables."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import pyengine as pe
from pyengine.cli import main
from pyengine.workbench.tables.spec import SpecificationError, load, parse

TREE = pe.tree_aggregation_matrix(8)
TEXT = """
[[workflow]]
name = "tree"
noise = 4.5
matrix = "sub/C.npy"
participation = "fixed_order"
times = 2
separation = 4
[[workflow]]
name = "bins, then plain"
[[workflow.phase]]
noise_multiplier = "2"
matrix = "B.csv"
participation = "balls_in_bins"
bins = 3
[[workflow.phase]]
mechanism = "GaussianMechanism"
noise = 3
steps = 2

[epsilon]
delta = [1e-5]
adjacency = ["add_remove"]
"""
BINS = np.array([[1, 0.25, 0.25], [0.25, 1, 0.25], [0.25, 0.25, 1]])


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "sub" / "C.npy", TREE)
    np.savetxt(tmp_path / "B.csv", BINS, delimiter=",")
    (tmp_path / "my.toml").write_text(TEXT)
    return tmp_path / "my.toml"


def test_values_and_provenance(
    specification: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names start at the specification, wherever the command runs; rows can be verified alone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["table", str(specification), "-o", "out", "--workers", "0"]) == 0
    with open("out/table.csv", newline="") as file:
        rows = {row["workflow"]: float(row["value"]) for row in csv.DictReader(file)}
    runs = {
        "tree": pe.matrix_mechanism("4.5", TREE, "fixed_order", times=2, separation=4),
        "bins, then plain": pe.matrix_mechanism("2", BINS, "balls_in_bins", bins=3)
        + pe.GaussianMechanism(3).composed(2),
    }
    assert rows.keys() == runs.keys()
    for name, run in runs.items():
        assert rows[name] == pytest.approx(pe.epsilon(run, 1e-5), rel=1e-9)
    kept = json.loads(Path("out/metadata.json").read_text())["specification"]["inputs"]
    assert kept == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("sub/C.npy", "B.csv")
    }
    np.save(tmp_path / "sub" / "C.npy", 2 * TREE)
    changed = load(specification)
    assert dict(changed.inputs)["sub/C.npy"] != kept["sub/C.npy"]
    (tmp_path / "sub" / "C.npy").unlink()
    assert main(["verify", "out/table.csv"]) == 0


def test_another_matrix_does_not_go_on(
    specification: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyengine.workbench.tables.journal import Journal, JournalError
    from pyengine.workbench.tables.run import JOURNAL, run
    from pyengine.workbench.tables.units import solve, units

    before = load(specification)
    identity = {
        "specification": before.sha256,
        "pyengine": pe.__version__,
        "units": len(units(before)),
        "inputs": dict(before.inputs),
    }
    out = tmp_path / "out"
    out.mkdir()
    with Journal(out / JOURNAL, identity, restart=False) as journal:
        journal.append(solve(units(before)[:1]))
    np.save(tmp_path / "sub" / "C.npy", 2 * TREE)
    with pytest.raises(JournalError, match=r"inputs .*sub/C.npy.*, now"):
        run(load(specification), out, workers=0)
    assert run(before, out, workers=0) == 0
    assert "tree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sub/C.npy", "D.npy", "workflow 1: matrix .*D.npy: No such file"),
        ("sub/C.npy", "D.txt", r"workflow 1: matrix must be a file .npy or .csv"),
        ("times = 2", "times = 2.5", "workflow 1: times must be a non-negative integer, got '2.5'"),
        ("noise = 4.5", "", "workflow 1: matrix_mechanism needs noise"),
        ("times = 2", "steps = 2", "workflow 1: a matrix takes no 'steps'"),
        ('matrix = "sub/C.npy"', "matrix = 3", "workflow 1: matrix must be a word"),
    ],
)
def test_wrong_input(specification: Path, old: str, new: str, message: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(SpecificationError, match=message):
        parse(text, "my.toml", specification.parent)
