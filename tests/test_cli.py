"""The command line: what it writes, says and returns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import api
from pyengine.cli import main
from pyengine.tables import cells as table_cells
from pyengine.tables import run as table_run
from pyengine.workbench.tables.progress import Progress

pytest.importorskip("matplotlib")

SPEC = """
[gamma_bound]
kappa = ["1/1000"]
adjacency = ["add", "remove"]

[epsilon]
delta = [1e-5]
adjacency = ["add_remove"]

[[workflow]]
name = "my run"
noise_multiplier = 1.0
sampling_probability = "256/25600"
steps = 1000
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def test_table(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "deep" / "down"
    assert main(["table", str(spec), "-o", str(output)]) == 0
    printed = capsys.readouterr()
    run = pe.dp_sgd(1.0, "1/100", 1000)  # no double: its bounds enclose those of both neighbours
    expected = [
        pe.gamma_bound(run, 1e-3, bounds=True),
        pe.gamma_bound(run, 1e-3, adjacency="remove", bounds=True),
        pe.epsilon(run, 1e-5, bounds=True),
    ]
    with (output / "table.csv").open(encoding="utf-8", newline="") as file:
        cells = [[float(row[key]) for key in pe.Bounds._fields] for row in csv.DictReader(file)]
    assert cells == [list(bounds) for bounds in expected]
    lines = (output / "table.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [[row[key] for key in pe.Bounds._fields] for row in rows] == cells
    assert {row["engine"] for row in rows} == {"certified"}
    assert {row["pyengine"] for row in rows} == {pe.__version__}
    metadata = json.loads((output / "metadata.json").read_text(encoding="utf-8"))
    assert metadata["pyengine"] == pe.__version__
    assert metadata["python"] == platform.python_version()
    assert metadata["packages"]["numpy"] == np.__version__
    assert metadata["platform"] == platform.platform()
    assert metadata["machine"] == platform.machine()
    assert metadata["specification"]["text"] == SPEC
    assert metadata["time"].endswith("+00:00")
    assert [unit["cells"] for unit in metadata["units"]] == [1, 1, 1]
    for name in ("table.csv", "table.jsonl", "gamma.png"):
        found = hashlib.sha256((output / name).read_bytes()).hexdigest()
        assert metadata["sha256"][name] == found
    assert sorted(path.name for path in output.iterdir()) == [
        "gamma.png",
        "metadata.json",
        "table.csv",
        "table.jsonl",
    ]
    assert f"{expected[0].value:.4g}" in printed.out
    assert f"{expected[2].value:.4f}" in printed.out
    assert str(output / "table.csv") in printed.out
    assert printed.err.startswith("3/3 values in ")
    assert printed.err.count("\n") == 1


def test_no_picture_without_gamma(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.replace('["1/1000"]', "[0]"), encoding="utf-8")
    assert main(["table", str(path), "-o", str(tmp_path / "out")]) == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["metadata.json", "table.csv", "table.jsonl"]


def test_refused_values(
    spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answers(name: str, *question: Any, **keywords: Any) -> Any:
        if name == "epsilon":
            raise pe.AccuracyError("no answer, try more noise")
        return api.answers(name, *question, **keywords)

    monkeypatch.setattr(table_cells, "risk_answers", answers)
    assert main(["table", str(spec), "-o", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out
    assert "Refused: 1 of 3" in printed
    assert "my run  refused" in printed
    assert "no answer, try more noise" in (tmp_path / "out" / "table.csv").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("steps = 1000", "steps = 1.5"), "steps must be a non-negative integer, got '1.5'"),
        (("[epsilon]", "[epsilons]"), "unknown table [epsilons]; did you mean 'epsilon'?"),
        (("[epsilon]", "[epsilon"), "spec.toml"),
    ],
)
def test_wrong_specification_touches_nothing(
    spec: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    message: str,
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "table.csv").write_text("old")
    spec.write_text(SPEC.replace(*change), encoding="utf-8")
    assert main(["table", str(spec), "-o", str(output)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("pyengine: error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert [path.read_text() for path in output.iterdir()] == ["old"]
    assert main(["table", str(spec), "-o", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ("missing.toml", "out", "missing.toml: No such file or directory"),
        (".", "out", "Is a directory"),
        ("spec.toml", "spec.toml", "spec.toml: Not a directory"),
        ("spec.toml", "spec.toml/out", "Not a directory"),
    ],
)
def test_wrong_paths(
    spec: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
    output: str,
    message: str,
) -> None:
    folder = spec.parent
    assert main(["table", str(folder / source), "-o", str(folder / output)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["spec.toml"]


def test_without_matplotlib(
    spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["table", str(spec), "-o", str(tmp_path / "out")]) == 2
    assert "pip install 'pyengine-dp[table]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "line", "extra"),
    [
        (["--formats", "parquet"], "", "parquet"),
        (["--dask", "tcp://127.0.0.1:1"], "", "dask"),
        ([], 'engine = "reference"', "reference"),
    ],
)
def test_without_other_packages(
    spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
    extra: str,
) -> None:
    spec.write_text(line + SPEC.replace('["1/1000"]', "[0]"), encoding="utf-8")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["table", str(spec), "-o", str(tmp_path / "out"), *arguments]) == 2
    assert f"pip install 'pyengine-dp[{extra}]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_verify_without_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["verify", str(tmp_path / "mine.csv")]) == 2
    assert "pip install 'pyengine-dp[reference]'" in capsys.readouterr().err


def test_interrupt(
    spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table_run, "spread", interrupted)
    assert main(["table", str(spec), "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "pyengine: interrupted\n"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("arguments", [["tables"], ["table"], ["table", "a", "b", "-o", "c"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: pyengine" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["table", "--help"], ["--version"]])
def test_information(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "pyengine" in capsys.readouterr().out


def test_module_and_ascii_terminal(tmp_path: Path) -> None:
    """``python -m pyengine`` from elsewhere, where Greek letters cannot be printed."""
    import matplotlib.font_manager  # writes its cache, which takes seconds and is announced

    run = subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8=0", "-m", "pyengine", "table", "-o", "out"],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONIOENCODING": "ascii", "PATH": "", "MPLCONFIGDIR": matplotlib.get_cachedir()},
    )
    assert b"Lebeda et al. 2024   1.1708   0.9472   0.7824   0.6286" in run.stdout
    assert run.stderr.endswith((b" s\n", b"/s\n"))  # the latter from a second on
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "gamma.png",
        "metadata.json",
        "table.csv",
        "table.jsonl",
    }


def test_columns_stay_columns_without_greek_letters() -> None:
    asked = ["statement", "--noise", "1", "--p", ".01", "--steps", "9", "--delta", "1e-5"]
    run = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "pyengine", *asked],
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    rows = [line for line in run.stdout.decode("ascii").splitlines() if "  proven, " in line]
    assert rows[0].startswith("epsilon at delta = 1e-5 ")
    assert len(rows) == 6
    assert len({row.index("proven") for row in rows}) == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("columns", [20, 40, 60, 120])
def test_progress_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    with Progress(8000, "values", stream, done=2000) as progress:
        for _ in range(60):
            progress.advance(100)
        progress.stage("the picture")
    paints = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n")
    assert max(map(len, paints.splitlines())) <= columns
    if columns >= 40:
        assert "8000/8000" in paints.splitlines()[-1]
        assert "values" in paints


def test_progress_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = Terminal()
    with Progress(4, "values", stream) as progress:
        progress.advance(4)
    assert stream.getvalue().startswith("4/4 values in ")
    assert stream.getvalue().count("\n") == 1


def test_progress_tells_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pyengine.workbench.tables.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with Progress(8000, "values", stream, done=2000) as progress:
        now[0] = 40.0
        progress.advance(1000)
        assert stream.getvalue().endswith(
            "3000/8000 values in 40.0 s (2000 from an earlier run), 25/s, 200 s left\n"
        )
        now[0] = 3e4
        progress.advance(1)
        assert ", 149,820 s left\n" in stream.getvalue()


def test_progress_reports_to_a_log_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pyengine.workbench.tables.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pyengine.workbench.tables.progress.LOOK_SECONDS", 60.0)
    stream = io.StringIO()
    with Progress(100, "values", stream) as progress:
        for _ in range(100):
            now[0] += 1.0
            progress.advance(1)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0] == "31/100 values in 31.0 s, 1/s, 69 s left"
    assert lines[-1].startswith("100/100 values in 100.0 s")


def test_progress_is_quiet_elsewhere() -> None:
    stream = io.StringIO()
    with Progress(4, "values", stream) as progress:
        progress.advance(4)
        assert stream.getvalue() == ""
    assert stream.getvalue().startswith("4/4 values in ")
