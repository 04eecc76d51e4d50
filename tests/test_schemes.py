"""Ways to draw batches at equal noise: the command, its table and its picture."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

import pyengine as pe
from pyengine.cli import main
from pyengine.workbench import schemes
from pyengine.workbench.schemes import SCHEMES, SchemeSetting, compare, figures

pytest.importorskip("matplotlib")
MEASURED = Path(__file__).parents[1] / "docs" / "schemes_measured.md"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_command_writes_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--noise", "1", "2", "--steps-per-epoch", "10:100:2", "--epochs", "10"]
    assert main(["schemes", *words, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    table = (tmp_path / "out" / "schemes.md").read_text(encoding="utf-8")
    assert table in printed
    page = MEASURED.read_text(encoding="utf-8").splitlines()
    for line in table.splitlines()[2:]:
        assert line in page
    rows = rows_of(tmp_path / "out" / "schemes.csv")
    assert len(rows) == 2 * 2 * 6
    for row in rows:  # no lower bound stands among the guarantees
        noise, epochs = float(row["noise"]), int(row["epochs"])
        if "shuffled" not in row["scheme"]:
            assert row["shuffled_at_least"] == ""
            continue
        promised = pe.epsilon(pe.GaussianMechanism(noise).composed(epochs), 1e-5)
        assert float(row["epsilon"]) == promised > float(row["shuffled_at_least"]) > 0.0
        assert "an empty record in its place" in row["protects"]
    assert all(row["batches"] and row["protects"] for row in rows)
    first = rows[0]
    truth = pe.epsilon(pe.dp_sgd(1.0, "1/10", 100), 1e-5, adjacency="remove")
    assert float(first["epsilon"]) == truth
    assert (first["engine"], first["certainty"]) == ("certified", "proven")
    picture = (tmp_path / "out" / "schemes.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


def test_what_nothing_answers_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(name: str, mechanism: pe.Mechanism, *words: Any, **more: Any) -> Any:
        if mechanism.parts[0][0].scheme == "without_replacement":
            raise pe.AccuracyError("no engine")
        return answers(name, mechanism, *words, **more)

    answers = schemes.answers
    monkeypatch.setattr(schemes, "answers", asked)
    words = ["--steps-per-epoch", "10", "--epochs", "1", "-o", str(tmp_path)]
    assert main(["schemes", *words]) == 1
    assert "| – |" in capsys.readouterr().out
    (refused,) = (row for row in rows_of(tmp_path / "schemes.csv") if row["epsilon"] == "nan")
    assert refused["engine"] == "refused: no engine"


def test_table_of_rows() -> None:
    setting = SchemeSetting(1.0, 10, 1)
    rows = list(compare([setting], 1e-5))
    assert [row.adjacency for row in rows] == ["remove", "add"] * 2 + ["add_remove"] * 2
    assert not any(math.isnan(row.epsilon) for row in rows)
    heads, cells = figures(rows)
    assert heads[3:] == [scheme.name for scheme in SCHEMES]
    assert cells[0][:4] == ["1", "10", "1", "2.8545 / 0.7455"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--noise", "0"], "noise must be positive and finite, got 0"),
        (["--steps-per-epoch", "2.5"], "--steps-per-epoch must be integers, got 2.5"),
        (["--epochs", "0"], "epochs must be an integer >= 1, got 0"),
        (["--delta", "0"], "delta must lie in (0, 1), got 0"),
        (["--delta", "2"], "--delta must lie in [0, 1], got 2"),
    ],
)
def test_bad_words(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schemes", *words, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
