"""Figures and tables of the papers: the framework, and what must agree."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pyengine
from pyengine.cli import main
from pyengine.workbench.papers import NAMES, paper
from pyengine.workbench.papers import run as papers_run
from pyengine.workbench.papers.item import AGREES, DIFFERS, WITHIN, Item, Paper, Table, check

pytest.importorskip("matplotlib")

PAPERS = [paper(name) for name in NAMES]


@pytest.mark.parametrize(
    ("printed", "value", "verdict"),
    [
        ("0.593", 0.59349, AGREES),
        ("0.593", 0.59351, DIFFERS),
        ("1.20", 1.2049, AGREES),
        ("1.20", 1.2051, DIFFERS),
        ("120", 120.4, AGREES),
        ("9.66e-47", 9.664e-47, AGREES),
        ("3,342,306", 3342306.2, AGREES),
        ("0.5", float("nan"), DIFFERS),
    ],
)
def test_printed_digits(printed: str, value: float, verdict: str) -> None:
    assert check("a number", printed, value).verdict == verdict


def test_error_of_a_printed_number() -> None:
    assert check("a", "0.50", 0.52, error=0.02).verdict == WITHIN
    assert check("a", "0.50", 0.53, error=0.02).verdict == DIFFERS


def test_table() -> None:
    table = Table(("a", "b"), [("x", 1.0), ("y", None), ("x", 3)])
    assert table.where(a="x").column("b").tolist() == [1.0, 3.0]
    assert np.isnan(table.column("b")[1])
    assert table.distinct("a") == ["x", "y"]


@pytest.mark.parametrize("found", PAPERS, ids=NAMES)
def test_items_are_named_once(found: Paper) -> None:
    names = [item.name for item in found.items]
    assert found.name in NAMES
    assert len(names) == len(set(names))
    assert all(name.startswith(("figure_", "table_")) for name in names)
    for item in found.items:
        assert item.draw is not None or item.name.startswith("table_"), item.name


def test_hayes_table_2() -> None:
    item = paper("hayes2023").item("table_2")
    checks = list(item.checks(item.rows()))
    assert len(checks) == 36
    assert not [c for c in checks if c.verdict == DIFFERS]
    fano = [c for c in checks if c.what.startswith("Guo")]
    assert len(fano) == 12
    assert all(c.verdict == AGREES for c in fano)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Paper:
    """A paper of one figure that disagrees with what is printed."""

    def draw(table: Table, figure: object) -> None:
        figure.subplots().plot(table.column("x"))  # type: ignore[attr-defined]

    item = Item(
        "figure_1",
        "a line",
        lambda: Table(("x",), [(1.0,), (np.float64(2.5),)]),
        draw,
        lambda table: [check("last", "2.4", float(table.column("x")[-1]))],
    )
    made = Paper("hayes2023", "A. Author, A paper", (item,), "what needs a network")
    monkeypatch.setattr(papers_run, "paper", lambda _: made)
    return made


def test_run(small: Paper, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "papers"
    assert main(["papers", small.name, "-o", str(output), "--workers", "1"]) == 1
    printed = capsys.readouterr()
    assert "1 figures and tables" in printed.out
    assert "for no known reason" in printed.out
    directory = output / small.name
    assert sorted(path.name for path in directory.iterdir()) == [
        "figure_1.csv",
        "figure_1.png",
        "printed.csv",
    ]
    assert (directory / "figure_1.csv").read_text(encoding="utf-8") == "x\n1.0\n2.5\n"
    assert (directory / "figure_1.png").read_bytes().startswith(b"\x89PNG")
    with (directory / "printed.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["printed"], row["computed"], row["verdict"]) == ("2.4", "2.5", "differs")
    page = (output / "index.md").read_text(encoding="utf-8")
    assert "![Figure 1](hayes2023/figure_1.png)" in page
    assert "| last | 2.4 | 2.5 | differs |" in page
    assert "what needs a network" in page


def test_processes_make_the_same_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for output, workers in ((one, 1), (two, 2)):
        jobs = [("kaissis2023_bounding", "figure_1f"), ("kaissis2023_bounding", "figure_4")]
        for made in papers_run._results(jobs, workers):
            output.mkdir(exist_ok=True)
            for name, content in made.files.items():
                (output / name).write_bytes(content)
    names = sorted(path.name for path in one.iterdir())
    assert names == ["figure_1f.csv", "figure_1f.png", "figure_4.csv", "figure_4.png"]
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group: the command ends soon and says so, files are whole."""
    output = tmp_path / "papers"
    process = subprocess.Popen(
        [sys.executable, "-m", "pyengine", "papers", "hayes2023", "-o", str(output)],
        cwd=Path(pyengine.__file__).parents[1],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        # what runs in the background of a shell inherits deafness to interrupts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for _ in range(600):
        if list(output.glob("*/*.csv")):
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    message = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert message.endswith("pyengine: interrupted\n")
    assert "Traceback" not in message
    found = list((output / "hayes2023").iterdir())
    assert found
    assert all(path.suffix in {".csv", ".png"} for path in found)


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["papers", "nobody2023", "-o", str(tmp_path)]) == 2
    assert "NAME must be one of" in capsys.readouterr().err
    assert main(["papers", "-o", str(tmp_path), "--workers", "0"]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["papers", "-o", str(tmp_path / "file")]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_lebeda_proposition_11_and_table_1() -> None:
    found = paper("lebeda2024")
    exact = found.item("table_proposition_11")
    assert [c.verdict for c in exact.checks(exact.rows())] == [AGREES] * 4
    item = found.item("table_1")
    checks = list(item.checks(item.rows()))
    for made in checks:  # the accountant's slack is on the safe side, and at most 0.03
        assert made.value - 0.005 <= float(made.printed) <= made.value + 0.03
        assert made.verdict == AGREES or made.reason
    assert len(checks) == 8


def test_lebeda_figure_1_curves_cross_at_two_steps_only() -> None:
    table = paper("lebeda2024").item("figure_1").rows()
    for steps in table.distinct("steps"):
        add, remove = (
            table.where(steps=steps, adjacency=order).column("delta") for order in ("add", "remove")
        )
        assert np.any(remove > 1.01 * add)
        assert np.any(add > 1.01 * remove) == (steps == 2)


def test_lebeda_figure_3_each_pair_is_the_worst_somewhere() -> None:
    table = paper("lebeda2024").item("figure_3").rows()
    grid = np.linspace(0.0, 1.2, 97)
    curves = []
    for name in table.distinct("pair"):
        rows = table.where(pair=name)
        epsilon, delta = rows.column("epsilon"), rows.column("delta")
        assert np.all(np.diff(epsilon) > 0.0)
        assert np.all(np.diff(delta) <= 0.0)  # without a gap, down to 0
        assert delta[-1] == 0.0
        assert np.max(np.diff(epsilon)) < 0.04
        curves.append(np.interp(grid, epsilon, delta))
    worst = np.argmax(curves, axis=0)
    assert set(worst.tolist()) == {0, 1, 2}


def test_lebeda_figure_4_upper_curve_lies_above() -> None:
    table = paper("lebeda2024").item("figure_4").rows()
    for steps in table.distinct("steps"):
        upper, remove, add = (
            table.where(steps=steps, curve=name).column("delta")
            for name in ("upper", "remove", "add")
        )
        assert np.all(upper * 1.001 + 1e-12 >= np.maximum(remove, add))


def test_kaissis_explains_the_sampling_rate() -> None:
    """Figure 1f: at κ = 0.1 and one (ε, δ), γ is lower at p = 0.1 than at 0.9."""
    table = paper("kaissis2023_bounding").item("figure_1f").rows()
    low, high = (
        table.where(sampling_probability=rate, kappa=0.1).column("gamma")[0] for rate in (0.1, 0.9)
    )
    assert low < 0.9 * high


def test_kaissis_sampling_rates_agree_after_many_steps() -> None:
    """Figures 3 and 4: the trade-off functions differ after one step, not after 10,000."""
    spread = {}
    for name in ("figure_3", "figure_4"):
        table = paper("kaissis2023_bounding").item(name).rows()
        curves = [
            table.where(sampling_probability=rate, curve="add_remove").column("y")
            for rate in (0.1, 0.5, 0.9)
        ]
        spread[name] = float(np.max(np.ptp(curves, axis=0)))
    assert spread["figure_3"] > 0.2
    assert spread["figure_4"] < 0.01


def test_hayes_simulated_attacks_stay_below_gamma() -> None:
    hayes = paper("hayes2023")
    for name in ("figure_9", "figure_13"):
        table = hayes.item(name).rows()
        error = 4.0 * np.sqrt(table.column("attack") * (1.0 - table.column("attack")) / 10_000)
        assert np.all(table.column("attack") <= table.column("gamma") + error)
    shorter = hayes.item("figure_13").rows()
    for spent in (4.0, 10.0):
        long, short = (
            shorter.where(epsilon=spent, clipping=c).column("attack")[0]
            for c in ("C = 0.1", "C = 1")
        )
        assert short < 0.9 * long


def test_hayes_figure_5a() -> None:
    item = paper("hayes2023").item("figure_5a")
    checks = list(item.checks(item.rows()))
    assert [c.verdict for c in checks] == [WITHIN, WITHIN]


GALLERY = Path(__file__).parents[1] / "docs" / "papers"


@pytest.mark.parametrize("found", PAPERS, ids=NAMES)
def test_gallery_shows_every_item(found: Paper) -> None:
    """The pages in docs/papers are those of one whole run of ``pyengine papers``."""
    page = (GALLERY / "index.md").read_text(encoding="utf-8")
    for item in found.items:
        assert (GALLERY / found.name / f"{item.name}.csv").is_file()
        if item.draw is not None:
            assert (GALLERY / found.name / f"{item.name}.png").is_file()
            assert f"({found.name}/{item.name}.png)" in page
    with (GALLERY / found.name / "printed.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["item"] for row in rows} <= {item.name for item in found.items}
    for row in rows:
        again = check(row["number"], row["printed"], float(row["computed"]))
        assert (again.verdict == AGREES) == (row["verdict"] == AGREES), row
        assert row["verdict"] == AGREES or row["reason"], row


def test_titles_are_filled_evenly() -> None:
    """No line is a lone word, and nothing ends beside an equals sign or within (ε, δ)."""
    for name in NAMES:
        for item in paper(name).items:
            if item.draw is None:
                continue
            most = int(papers_run.CHARACTERS * item.size[0])
            lines = papers_run._filled(item.heading, most).split("\n")
            assert " ".join(lines).replace("\N{NO-BREAK SPACE}", " ") == item.heading
            assert max(map(len, lines)) < 2.5 * min(map(len, lines)), lines
            assert not any(line.endswith(("=", "(4,")) or line.startswith("=") for line in lines)
