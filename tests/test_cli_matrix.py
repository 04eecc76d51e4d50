"""Matrix mechanisms from files, by flags, phases and TOML."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.cli import main
from pyengine.workbench.runs.matrices import read_matrix

TREE = pe.tree_aggregation_matrix(8)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.save(tmp_path / "C.npy", TREE)
    np.savetxt(tmp_path / "C.csv", TREE, delimiter=",")
    (tmp_path / "run.toml").write_text(
        '[[phase]]\nnoise = 4\nmatrix = "C.npy"\n[[phase]]\nnoise = 2\nsteps = 3\n'
    )
    return tmp_path


def epsilon(capsys: pytest.CaptureFixture[str], *words: Any) -> float:
    assert main(["epsilon", "--delta", "1e-5", "--json", *map(str, words)]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    return float(row["value"])


@pytest.mark.parametrize("name", ["C.npy", "C.csv"])
def test_flags(name: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--noise", "4", "--matrix", files / name]
    truth = pe.epsilon(pe.matrix_mechanism("4", TREE), 1e-5)
    assert epsilon(capsys, *words) == pytest.approx(truth, rel=1e-9)
    more = ["--participation", "fixed_order", "--times", "2", "--separation", "4"]
    run = pe.matrix_mechanism("4", TREE, "fixed_order", times=2, separation=4)
    assert epsilon(capsys, *words, *more) == pytest.approx(pe.epsilon(run, 1e-5), rel=1e-9)
    assert pe.epsilon(run, 1e-5) > 1.1 * truth


def test_phases_and_toml(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of TOML names the matrix beside it, wherever the command runs."""
    run = pe.matrix_mechanism("4", TREE) + pe.GaussianMechanism("2").composed(3)
    truth = pe.epsilon(run, 1e-5)
    assert epsilon(capsys, "--file", files / "run.toml") == pytest.approx(truth, rel=1e-9)
    phases = [f"noise=4,matrix={files / 'C.npy'}", "noise=2,steps=3"]
    words = [word for phase in phases for word in ("--phase", phase)]
    assert epsilon(capsys, *words) == pytest.approx(truth, rel=1e-9)


def test_bins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "C.npy", np.eye(6))
    words = ["--noise", "2", "--matrix", tmp_path / "C.npy"]
    words += ["--participation", "balls_in_bins", "--bins", "3"]
    truth = pe.epsilon(pe.matrix_mechanism("2", np.eye(6), "balls_in_bins", bins=3), 1e-5)
    assert epsilon(capsys, *words) == pytest.approx(truth, rel=1e-9)
    # classes of one bin each: nothing is amplified, and each record is in two steps
    alone = pe.epsilon(pe.GaussianMechanism("2").composed(2), 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the command prints them
        assert epsilon(capsys, *words, "--classes", "3") == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--matrix", "none.npy"], "none.npy: No such file or directory"),
        (["--matrix", "C.txt"], "matrix must be a file .npy or .csv, got"),
        (["--matrix", "words.csv"], "words.csv: 'one' is no number"),
        (["--matrix", "ragged.csv"], "ragged.csv: "),
        (["--matrix", "empty.csv"], "expected numbers in rows and columns"),
        (["--matrix", "empty.npy"], "empty.npy: "),
        (["--matrix", "broken.npy"], "broken.npy: "),
        (["--matrix", "object.npy"], "object.npy: Object arrays cannot be loaded"),
        (["--matrix", "complex.npy"], "expected numbers in rows and columns, got complex128"),
        (["--matrix", "cube.npy"], "got float64 of shape (2, 2, 2)"),
        (["--matrix", "zero.npy"], "C must"),
        (["--matrix", "nan.npy"], "C must"),
        (["--matrix", "C.npy", "--steps", "3"], "a matrix takes no 'steps'"),
        (
            ["--matrix", "C.npy", "--times", "1.5"],
            "times must be a non-negative integer, got '1.5'",
        ),
        (["--matrix", "C.npy", "--times", "2"], "times"),
        (["--matrix", "C.npy", "--participation", "often"], "participation must be"),
        (["--times", "2"], "times needs matrix"),
    ],
)
def test_bad_files_and_words(
    words: list[str],
    message: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(files)
    (files / "words.csv").write_text("1,2\n3,one\n")
    (files / "ragged.csv").write_text("1,2\n3\n")
    for name in ("empty.csv", "empty.npy"):
        (files / name).write_text("")
    (files / "broken.npy").write_bytes((files / "C.npy").read_bytes()[:90])
    np.save(files / "object.npy", np.array([[None]], dtype=object), allow_pickle=True)
    np.save(files / "complex.npy", np.eye(2) * 1j)
    np.save(files / "cube.npy", np.ones((2, 2, 2)))
    np.save(files / "zero.npy", np.array([[1.0, 0.0]]))
    np.save(files / "nan.npy", np.array([[1.0, np.nan]]))
    noise = [] if words == ["--times", "2"] else ["--noise", "1"]
    assert main(["epsilon", "--delta", "1e-5", *(noise or ["--noise", "1"]), *words]) == 2
    assert message in capsys.readouterr().err


def test_noise_must_be_said(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epsilon", "--delta", "1e-5", "--matrix", str(files / "C.npy")]) == 2
    assert "matrix_mechanism needs noise" in capsys.readouterr().err


def test_whole_numbers_are_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "C.npy", np.array([[1, 0], [1, 1]], dtype=np.int8))
    found = read_matrix(tmp_path / "C.npy")
    assert found.dtype == np.float64
    assert found.tolist() == [[1.0, 0.0], [1.0, 1.0]]
