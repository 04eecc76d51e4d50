"""Standard output and standard error that are full, closed or left by their reader; exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyengine.cli import main
from pyengine.tables import cells as table_cells

RUN = ["epsilon", "--noise", "1", "--p", "0.01", "--steps", "10", "--delta", "1e-6"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
SMALL = str(Path(__file__).parent / "data" / "small_table.toml")
COMMANDS = {"question": RUN, "help": ["--help"], "table": ["table", SMALL, "-o", "results"]}
RUNNING = ("question", "table")


def shell(arguments: list[str], redirection: str, directory: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in a shell."""
    run = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-m", "pyengine", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )
    return run.returncode, run.stdout, run.stderr


@FULL
@pytest.mark.parametrize("name", COMMANDS)
def test_full_output(name: str, tmp_path: Path) -> None:
    code, out, err = shell(COMMANDS[name], ">/dev/full", tmp_path)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[-1] == "pyengine: error: standard output: No space left on device"
    assert "Traceback" not in err
    if name == "table":  # the files do not hang on what becomes of the summary
        assert (tmp_path / "results" / "table.csv").is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_closed_output(name: str, tmp_path: Path) -> None:
    code, out, err = shell(COMMANDS[name], ">&-", tmp_path)
    assert (code, out) == (2, "")
    assert err == "pyengine: error: standard output is closed\n"
    assert list(tmp_path.iterdir()) == []  # said before any work


@FULL
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize("name", RUNNING)
def test_lost_messages_do_not_change_the_answer(
    name: str, redirection: str, tmp_path: Path
) -> None:
    code, out, _ = shell(COMMANDS[name], redirection, tmp_path)
    assert code == 0
    assert out
    assert "values in" not in out  # progress does not go astray


@FULL
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_errors_without_a_place(redirection: str, tmp_path: Path) -> None:
    wrong = [*RUN[:-1], "2"]
    assert shell(wrong, redirection, tmp_path)[:2] == (2, "")
    assert shell(["gama"], redirection, tmp_path)[:2] == (2, "")


@FULL
@pytest.mark.parametrize(
    "arguments",
    [
        [*RUN, "--json"],
        ["calibrate", "--noise", "1", "--steps", "9", "--vary", "p", "--advantage", ".1"],
        ["completion"],
        ["doctor"],
        ["gamma", "--help"],
        ["--version"],
    ],
)
def test_every_command_says_that_its_output_is_lost(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(arguments) == 2
    expected = "pyengine: error: standard output: No space left on device\n"
    assert capsys.readouterr().err == expected


def reader_leaves(arguments: list[str], directory: Path) -> tuple[int, str]:
    """Exit code and standard error of a command into a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as end:
        run = subprocess.run(
            [sys.executable, "-m", "pyengine", *arguments],
            stdout=end,
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory,
            check=False,
        )
    return run.returncode, run.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_reader_that_has_enough(name: str, tmp_path: Path) -> None:
    code, err = reader_leaves(COMMANDS[name], tmp_path)
    assert code == 0
    assert "error" not in err
    assert "Broken pipe" not in err


def test_reader_that_leaves_does_not_hide_a_finding(tmp_path: Path) -> None:
    pytest.importorskip("flint")
    (tmp_path / "mine.csv").write_text(
        "noise_multiplier,sampling_probability,steps,question,at,value\n"
        "1,0.5,1,epsilon,1e-5,0.001\n"
    )
    code, err = reader_leaves(["verify", "mine.csv", "--workers", "0"], tmp_path)
    assert code == 1
    assert "error" not in err


def test_slip_of_ours_is_no_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slip(*_: object, **__: object) -> None:
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("pyengine.cli.questions.answers", slip)
    assert main(RUN) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("pyengine: internal error: ValueError: operands could")


SPEC = """
[epsilon]
delta = [1e-5, 1e-6]
adjacency = ["add", "substitute"]

[[workflow]]
name = "a pair without substitution"
mechanism = "FinitePair"
p = [["1/2", "1/2"]]
q = [["1/4", "3/4"]]
steps = 1
"""


def test_undefined_questions_are_refused_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    arguments = ["table", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "out")]
    assert main([*arguments, "--workers", "0"]) == 1
    assert "Refused: 2 of 4" in capsys.readouterr().out
    assert "adjacency 'substitute' needs" in (tmp_path / "out" / "table.csv").read_text()


@pytest.mark.parametrize("slip", [ValueError("shapes differ"), ZeroDivisionError("by zero")])
def test_slips_of_ours_are_not_refused_cells(
    slip: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = table_cells.risk_answers

    def slips(question: str, mechanism: object, points: list[float], **words: object) -> object:
        if 1e-6 in points:
            raise slip
        return answers(question, mechanism, points, **words)

    monkeypatch.setattr(table_cells, "risk_answers", slips)
    text = SPEC.replace(', "substitute"', "")
    (tmp_path / "spec.toml").write_text(text)
    arguments = ["table", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "out")]
    assert main([*arguments, "--workers", "0"]) == 3
    printed = capsys.readouterr().out
    assert "Refused" not in printed
    assert "Failed by a defect of pyengine: 1 of 2" in printed
    table = (tmp_path / "out" / "table.csv").read_text()
    assert f"internal error: {type(slip).__name__}: {slip}" in table
    assert table.count("internal error") == 1  # its neighbour has its value
