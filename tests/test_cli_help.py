"""What people read: help on narrow terminals, suggestions, numbers, epochs, letters, the clock."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

import pyengine as pe
from pyengine.cli import grammar, main
from pyengine.cli.layout import laid_out
from pyengine.cli.main import COMMANDS, make_parser
from pyengine.cli.output import spelled
from pyengine.tables import progress

NAMES = (
    "gamma tradeoff delta epsilon calibrate budget statement report table verify plot schema "
    "schemes papers conformance doctor completion"
)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line on standard error, of a command that ends with exit code 2."""
    try:
        code: Any = main(list(arguments))
    except SystemExit as end:
        code = end.code
    assert code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("name", ["", *NAMES.split()])
def test_help_fits_the_terminal(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main([*([name] if name else []), "--help"])
    printed = capsys.readouterr().out
    for line in printed.splitlines():
        assert len(line) <= columns, line
    assert len(COMMANDS) >= 9
    # a command that goes over the end of a line can still be copied
    examples = re.sub(r" \\\n +", " ", printed)
    for line in re.findall(r"^  (pyengine (?:gamma|epsilon|calibrate) .*)$", examples, re.M):
        make_parser().parse_args(line.split("   ")[0].split()[1:])


def test_a_command_is_continued_between_words() -> None:
    """A shell keeps the blanks that begin a line within quotes: the label had six of them more."""
    line = '  pyengine plot gamma --run "two words of a label" noise=1,p=0.1 --noise 2 -o gamma.svg'
    for width in range(40, len(line)):
        printed = laid_out(line, width)
        assert shlex.split(printed.replace("\\\n", "")) == shlex.split(line)
        assert max(map(len, printed.splitlines())) <= width
    twice = "  pyengine gamma --noise 1 \\\n      --kappa 0.1"
    assert laid_out(twice, 30) == "  pyengine gamma --noise 1 \\\n      --kappa 0.1"


def test_text_that_fits_is_left_alone() -> None:
    text = "One line.\n\n  a  b\n  c  d\n"
    assert laid_out(text, 80) == text
    assert laid_out("word " * 30, 40).splitlines()[0] == "word word word word word word word word"
    colon = laid_out("word" + " word" * 8 + "\nothers:\nmore", 40)  # was taken for a heading
    assert colon.splitlines()[-1] == "word others: more"


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["help"], "usage: pyengine COMMAND [options]"),
        (["help", "epsilon"], "usage: pyengine epsilon [RUN] [options]\n\nThe smallest"),
    ],
)
def test_help_without_dashes(
    arguments: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(start)


def test_no_command_gets_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "examples:" in printed.err
    assert "  calibrate " in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["epsilon", "--noise", "1", "--detla", "1"], "no option --detla; did you mean '--delta'?"),
        (["epsilon", "--nosie", "1", "--delta", "1"], "no option --nosie; did you mean '--noise'?"),
        (["epsilon", "--format", "latex"], "no option --format; did you mean '--json'?"),
        (["tradeoff", "--fpr", "0.1"], "no option --fpr; did you mean '--alpha'?"),
        (["epsilon", "--proven"], "no option --proven; pyengine calibrate has it"),
        (["epsilon", "--vary", "p"], "no option --vary; pyengine calibrate has it"),
        (["epsilon", "--epsilon", "1"], "epsilon is what is asked for; give --delta"),
        (["gamma", "--gamma=1"], "gamma is what is asked for; give --kappa"),
        (["delta", "--rate", "0.01"], "did you mean '--sampling-probability'?"),
        (["delta", "--sigma", "1"], "did you mean '--noise-multiplier'?"),
        (["delta", "--s", "1"], "ambiguous option: --s could match"),
        (["--noise", "1"], "--noise goes after COMMAND: pyengine COMMAND --noise"),
        (["budget", "--noise", "1"], "goes after ACTION: pyengine budget ACTION --noise"),
        (["papers", "-o", "x", "--workers", "y"], "--workers: must be an integer >= 0, got 'y'"),
        (["explore", "--port", "x"], "--port must be a non-negative integer, got 'x'"),
        (["delta", "--noise", "1", "--selected", "3", "--epsilon", "1"], "needs steps_per_epoch"),
        (["delta", "--noise", "1", "--times", "3", "--epsilon", "1"], "times needs matrix"),
        (["delta", "--phase", "noise=1", "--phase", "p=1", "--epsilon", "1"], "phase 2: gaussian"),
        (["delta", "--noise", "1e5000", "--epsilon", "1"], "exponent has three digits at most"),
        (["tradeoff", "--noise", "1", "--alpha", "1", "--adjacency", "replace"], "'substitute'?"),
        (["help", "gama"], "got 'gama'; did you mean 'gamma'?"),
        (["gama"], "got 'gama'; did you mean 'gamma'?"),
        (["plot", "gama", "-o", "x.png"], "got 'gama'; did you mean 'gamma'?"),
        (
            ["epsilon", "--mechanism", "lapalce", "--noise", "1", "--delta", "1"],
            "did you mean 'laplace'?",
        ),
        (["epsilon", "--phase", "nois=1", "--delta", "1"], "did you mean 'noise'?"),
        (["epsilon", "--noise", "1", "--delta", "-1e-6"], "must lie in [0, 1], got -1e-6"),
        (["epsilon", "--noise", "-1e-3", "--delta", ".1"], "must be positive and finite"),
    ],
)
def test_slips_get_a_hint(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = said(capsys, *arguments)
    assert message in line
    assert line.startswith("pyengine")
    assert not re.search(r"Fraction|\w\(|<|choose from", line)


@pytest.mark.parametrize("spelling", ["--noise", "--nois", "--noise-m", "--noise-multiplier"])
def test_the_beginning_of_two_spellings_of_one_option_is_completed(
    spelling: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delta", spelling, "1", "--epsilon", "1"]) == 0
    assert "0.1269367375" in capsys.readouterr().out


CUT = pe.GaussianMechanism("1").truncated_poisson_sampled("0.1", batch_size=9, dataset_size=50)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--noise 1 --p 256/60000 --epochs 10", pe.dp_sgd("1", "256/60000", 2344)),
        ("--noise 1 --p 0.01 --epochs 0.5", pe.dp_sgd("1", "0.01", 50)),
        ("--noise 1 --epochs 3", pe.GaussianMechanism("1").composed(3)),
        ("--mechanism dp_sgd --noise 1 --p 0.1 --epochs 1", pe.dp_sgd("1", "0.1", 10)),
        (
            "--noise 1 --batch-size 100 --dataset-size 1050 --sampling without_replacement "
            "--epochs 2",
            pe.GaussianMechanism("1")
            .sampled_without_replacement(batch_size=100, dataset_size=1050)
            .composed(21),
        ),
        ("--phase noise=1,p=0.5,epochs=4", pe.dp_sgd("1", "0.5", 8)),
        ("--noise 1 --steps-per-epoch 20 --epochs 3", pe.dp_sgd_allocated("1", 20, 3)),
        ("--phase noise=1,steps_per_epoch=20,steps=3", pe.dp_sgd_allocated("1", 20, 3)),
        ("--noise 1 --p 0.1 --epochs 2 --group-size 3", pe.dp_sgd("1", "0.1", 20, group_size=3)),
        (
            "--noise 1 --p 0.1 --truncated-batch-size 9 --dataset-size 50 --epochs 2",
            CUT.composed(20),
        ),
        (
            "--noise 1 --batch-size 5 --dataset-size 50 --sampling poisson --steps 20 "
            "--truncated-batch-size 9",
            CUT.composed(20),
        ),
        (
            "--noise 1 --batch-size 10 --dataset-size 50 --sampling poisson --steps 2 "
            "--group-size 2",
            pe.dp_sgd("1", "1/5", 2, group_size=2),
        ),
    ],
)
def test_epochs(flags: str, expected: pe.Mechanism) -> None:
    parsed = make_parser().parse_args(["gamma", "--kappa", "0.1", *flags.split()])
    assert grammar.read_mechanism(parsed) == expected


PAIR = "--phase mechanism=FinitePair,p=1,q=1"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--noise 1 --p 0.1 --epochs 1 --steps 3",
            "steps and epochs both given (3 and 1); give one",
        ),
        (
            "--noise 1 --p 0 --epochs 1",
            "sampling_probability must be positive where epochs are given, got 0",
        ),
        (
            "--noise 1 --batch-size 0 --dataset-size 10 --epochs 1 --sampling poisson",
            "batch_size must be an integer >= 1, got '0'",
        ),
        ("--noise 1 --p 0.1 --epochs -1", "epochs must be >= 0"),
        (
            "--noise 1 --batch-size 3 --epochs 1 --sampling poisson",
            "needs batch_size and dataset_size",
        ),
        ("--noise 1 --batch-size 3 --epochs 1", "add --sampling poisson (each record joins"),
        ("--noise 1 --dataset-size 3 --epochs 1", "do not say how batches were drawn"),
        ("--noise 1 --batch-size 3 --dataset-size 9", "--sampling without_replacement (batches of"),
        (
            "--phase noise=1,batch_size=3,dataset_size=9,steps=1",
            '; in a file: sampling = "poisson"',
        ),
        (
            "--mechanism laplace --noise 1 --batch-size 3 --dataset-size 9 --steps 1",
            "do not say how",
        ),
        ("--mechanism dp_sgd --noise 1 --p 0.1", "a sampled mechanism needs steps or epochs"),
        ("--noise 1 --p 0.1", "a sampled mechanism needs steps or epochs"),
        ("--phase noise=1,p=0.1", "needs steps or epochs; for a single batch give steps 1"),
        ("--noise 1 --batch-size 3 --dataset-size 9 --sampling poisson", "needs steps or epochs"),
        (
            "--noise 1 --batch-size 3 --dataset-size 9 --sampling without_replacement",
            "needs steps or epochs",
        ),
        ("--mechanism dp_sgd --noise 1 --steps 3", "dp_sgd needs p"),
        ("--noise 1 --steps 3 --group-size 2", "group_size needs p"),
        ("--noise 1 --sampling shuffle --steps 3", "shuffle needs batch_size and dataset_size"),
        ("--phase noise=1,p=0.1,sampling=shuffle,steps=3", "of Gaussian noise only, got noise 1"),
        (
            "--noise 1 --truncated-batch-size 2 --p 0.1 --steps 1",
            "truncated_batch_size needs dataset_size",
        ),
        (
            "--noise 1 --truncated-batch-size 2 --dataset-size 9 --steps 1",
            "truncated_batch_size needs p",
        ),
        (
            "--mechanism laplace --noise 1 --truncated-batch-size 2 --dataset-size 9 --p 0.1 "
            "--steps 1",
            "must be a GaussianMechanism",
        ),
        (
            "--mechanism laplace --noise 1 --group-size 2",
            "unknown key 'group_size'; laplace takes noise",
        ),
        ("--mechanism dp_sgd_allocated --noise 1 --epochs 2", "needs steps_per_epoch"),
        ("--mechanism dp_sgd_allocated --noise 1 --steps-per-epoch 2", "allocation needs epochs"),
        ("--noise 1 --steps-per-epoch 5", "random allocation needs epochs"),
        (
            "--noise 1 --steps-per-epoch 5 --steps 2 --epochs 2",
            "steps and epochs both given (2 and 2); give one",
        ),
        ("--noise 1 --steps-per-epoch 5 --p 0.1 --epochs 1", "cannot be sampled again"),
        ("--phase mechanism=gaussian_mixture,noise=1,shifts=0,weights=2", r"weights must lie in"),
        ("--noise 1 --sampling poisson --steps 1", "poisson needs batch_size and dataset_size"),
        (
            "--noise 1 --p 0.1 --batch-size 1 --dataset-size 9 --sampling poisson --steps 1",
            "sampling_probability and batch_size both given (0.1 and 1); give one",
        ),
        (
            "--noise 1 --batch-size 9 --dataset-size 3 --sampling poisson --steps 1",
            "batch_size must be at most dataset_size = 3, got 9",
        ),
        ("--phase noise=1,batch_size=1,dataset_size=3,sampling=poison", "did you mean 'poisson'"),
        # the p of this mechanism is a list
        (f"{PAIR},sampling_probability=2,steps=1", "sampling_probability must lie in [0, 1], got"),
        (f"{PAIR},noise=1", "FinitePair takes p, q, sampling_probability, batch_size,"),
    ],
)
def test_wrong_epochs(flags: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in said(capsys, "gamma", "--kappa", "0.1", *flags.split())


def test_letters_that_a_terminal_does_not_have() -> None:
    assert spelled("κ  γ(κ)", "ascii") == "kappa  gamma(kappa)"
    assert spelled("κ  γ(κ)", "utf-8") == spelled("κ  γ(κ)", "iso-8859-7") == "κ  γ(κ)"


def test_columns_of_an_ascii_terminal_are_aligned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        monkeypatch.setattr("sys.stdout", file)
        assert main(["gamma", "--noise", "1", "--kappa", "1e-5"]) == 0
    heads, row = (tmp_path / "out").read_text(encoding="ascii").splitlines()[-2:]
    assert heads.split() == ["kappa", "gamma", "certainty"]
    assert heads.index("gamma") == row.index(row.split()[1])


def test_a_log_goes_on_while_a_value_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.REPORT_SECONDS <= 60.0
    assert progress.LOOK_SECONDS <= 1.0
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.02)
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.02)
    stream = io.StringIO()
    with progress.Progress(2, "values", stream) as bar:
        deadline = time.monotonic() + 30.0
        while stream.getvalue().count("\n") < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert stream.getvalue().count("\n") >= 4
        bar.advance(2)
    assert stream.getvalue().splitlines()[-1].startswith("2/2 values in ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


GRID = ["--noise", "0.8 1", "--p", "1/100", "--epochs", "1:2"]


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize(
    "words",
    [
        ["epsilon", *GRID, "--delta", "1e-5", "--bounds", "--verbose"],
        ["statement", *GRID[2:], "--noise", "1", "--epochs", "1", "--delta", "1e-5", "--estimate"],
        ["calibrate", "--p", "0.01", "--steps", "10", "--epsilon", "1", "--delta", "1e-6"],
        ["table", "run.toml", "-o", "out", "--workers", "0"],
        ["verify", "out.csv", "--engine", "auto"],
    ],
    ids=lambda words: words[0],
)
def test_answers_fit_the_terminal(
    words: list[str], columns: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    run = "noise = [1, 2]\np = 0.01\nsteps = 3\n[epsilon]\ndelta = '1e-9:1e-5:5'\n"
    Path("run.toml").write_text(f"[[run]]\nname = 'a run of a few steps'\n{run}")
    Path("out.csv").write_text("noise,p,steps,question,at,value\n1,0.01,3,epsilon,1e-5,9\n")
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    assert main(words) == 0
    printed = stream.getvalue()
    assert printed.count("\n") >= 4
    assert max(map(len, printed.splitlines())) <= columns


def words_of_all_options() -> list[list[str]]:
    """Every option of every command with texts that are wrong, or of which no double comes near.

    Beside it stands what makes the rest of the line right, so that it is the option that is read.
    """
    rest = {
        "gamma": ["--kappa", ".1"],
        "tradeoff": ["--alpha", ".1"],
        "delta": ["--epsilon", "1"],
        "epsilon": ["--delta", "1e-5"],
        "calibrate": ["--epsilon", "1", "--delta", "1e-5"],
        "statement": ["--delta", "1e-5"],
        "report": ["--delta", "1e-5", "-o", "nowhere/x.html"],
        "plot": ["-o", "nowhere/x.png"],
    }
    steps = {"calibrate": ["--p", ".1", "--steps", "1"]}
    found = []
    parsers = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, parser in parsers.choices.items():
        for action in parser._actions:
            if action.nargs == 0 or not action.option_strings or action.dest == "output":
                continue
            option = action.option_strings[-1]
            beside = [*rest.get(name, []), *steps.get(name, ["--noise", "1"])]
            if name in ("schemes", "table", "papers", "conformance", "doctor", "completion"):
                beside = []
            for at in [i for i, word in enumerate(beside) if word == option]:
                del beside[at : at + 2]
            found += [
                [name, *beside, option, text] for text in ("nonsense", "1e400", "", "1:1e400:3")
            ]
    return found


def test_no_option_shows_its_insides(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in any option is said in words, and is never a defect of ours."""
    monkeypatch.chdir(tmp_path)
    refused = 0
    for words in words_of_all_options():
        try:
            code: Any = main(words)
        except SystemExit as end:
            code = end.code
        err = capsys.readouterr().err
        assert code in (0, 1, 2), (words, err)
        refused += code == 2
        for line in err.splitlines()[-1:]:
            assert not re.search(r"Fraction|\w\(\w|<\w|object at|Traceback|Error:", line), (
                words,
                line,
            )
    assert refused > 150
