"""``pyengine verify``: what it reads, how it judges, what it says."""

from __future__ import annotations

import io
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyengine as pe
from pyengine.cli import main
from pyengine.workbench.tables.cells import Cell
from pyengine.workbench.verification.claims import Claim, ClaimsError, read
from pyengine.workbench.verification.verdicts import Rule, judge

HEAD = "noise_multiplier,sampling_probability,steps,question,adjacency,at,value\n"
RUN = pe.dp_sgd(noise_multiplier="0.8", sampling_probability="0.001", steps=10_000)
STRICT = Rule(Fraction(0))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "mine.csv"


def claim(question: str, value: str, lower: str | None = None, upper: str | None = None) -> Claim:
    return Claim(1, "run", RUN, question, "add", "1e-3", value, lower, upper)


def truth(value: str, error: str = "0") -> Cell:
    lower, upper = (Fraction(value) - Fraction(error), Fraction(value) + Fraction(error))
    return Cell(value, str(float(lower)), str(float(upper)), error, "proven", "test")


@pytest.mark.parametrize(
    ("question", "value", "word"),
    [
        ("gamma_bound", "0.5", "agrees"),
        ("gamma_bound", "0.75", "safe"),
        ("gamma_bound", "0.25", "UNSAFE"),
        ("delta", "0.75", "safe"),
        ("delta", "-0.25", "UNSAFE"),
        ("epsilon", "inf", "safe"),
        ("epsilon", "nan", "UNSAFE"),
        ("trade_off", "0.25", "safe"),
        ("trade_off", "0.75", "UNSAFE"),
        ("trade_off", "1.5", "UNSAFE"),
    ],
)
def test_safe_side(question: str, value: str, word: str) -> None:
    verdict = judge(claim(question, value), truth("0.5"), STRICT)
    assert verdict.word == word
    assert verdict.failed == (word == "UNSAFE")
    if value not in ("inf", "nan"):
        assert verdict.error == (float(value) - 0.5) / 0.5


@pytest.mark.parametrize(
    ("value", "rule", "word"),
    [
        ("0.49", Rule(Fraction("0.02")), "within tolerance"),
        ("0.4899", Rule(Fraction("0.02")), "UNSAFE"),
        ("0.9", Rule(Fraction("0.02")), "safe"),
        ("0.51", Rule(Fraction("0.02"), both_sides=True), "safe"),
        ("0.5101", Rule(Fraction("0.02"), both_sides=True), "TOO LOOSE"),
        ("inf", Rule(Fraction("0.02"), both_sides=True), "TOO LOOSE"),
    ],
)
def test_tolerance_is_relative(value: str, rule: Rule, word: str) -> None:
    verdict = judge(claim("epsilon", value), truth("0.5"), rule)
    assert verdict.word == word
    assert verdict.failed == (word in ("UNSAFE", "TOO LOOSE"))


def test_truth_with_an_error_decides_nothing_within_it() -> None:
    for value, word in (("0.4", "agrees"), ("0.6", "agrees"), ("0.3", "UNSAFE"), ("0.7", "safe")):
        assert judge(claim("delta", value), truth("0.5", "0.125"), STRICT).word == word


def test_zero_and_infinite_truths() -> None:
    assert judge(claim("delta", "0"), truth("0"), STRICT).word == "agrees"
    above = judge(claim("delta", "1e-30"), truth("0"), STRICT)
    assert (above.word, above.error) == ("safe", math.inf)
    infinite = Cell("inf", "inf", "inf", "0", "proven", "test")
    assert judge(claim("epsilon", "inf"), infinite, STRICT).word == "agrees"
    assert judge(claim("epsilon", "1e300"), infinite, Rule(Fraction(1, 2))).word == "UNSAFE"


@pytest.mark.parametrize(
    ("lower", "upper", "word"),
    [
        ("0.4", "0.6", "agrees"),
        ("0.5", "0.5", "agrees"),
        ("0.501", None, "WRONG BOUND"),
        (None, "0.499", "WRONG BOUND"),
        ("nan", None, "WRONG BOUND"),
        (None, "inf", "agrees"),
    ],
)
def test_claimed_bounds(lower: str | None, upper: str | None, word: str) -> None:
    verdict = judge(claim("gamma_bound", "0.5", lower, upper), truth("0.5"), STRICT)
    assert verdict.word == word


def test_no_truth_fails_and_no_value_does_not() -> None:
    nothing = Cell(message="too hard")
    assert judge(claim("delta", "0.5"), nothing, STRICT).failed
    missing = Claim(1, "run", RUN, "delta", "add", "1", None, None, None)
    assert not judge(missing, truth("0.5"), STRICT).failed


@given(
    question=st.sampled_from(["gamma_bound", "trade_off", "delta", "epsilon"]),
    value=st.fractions(0, 1, max_denominator=1000),
    exact=st.fractions(0, 1, max_denominator=1000),
    tolerance=st.fractions(0, 1, max_denominator=100),
)
def test_verdict_by_its_definition(
    question: str, value: Fraction, exact: Fraction, tolerance: Fraction
) -> None:
    cell = Cell(str(exact), str(exact), str(exact), "0", "proven", "test")
    verdict = judge(claim(question, str(value)), cell, Rule(tolerance))
    unsafe = exact - value if question != "trade_off" else value - exact
    assert verdict.failed == (unsafe > tolerance * exact)
    both = judge(claim(question, str(value)), cell, Rule(tolerance, both_sides=True))
    assert both.failed == (abs(unsafe) > tolerance * exact)


def test_reads_what_the_table_writes(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'formats = ["csv", "jsonl"]\n[epsilon]\ndelta = ["1e-5"]\nadjacency = ["add", "remove"]\n'
        '[[workflow]]\nname = "run"\nnoise_multiplier = [0.8, 1]\nsampling_probability = 0.001\n'
        'steps = 10_000\n[[workflow]]\nname = "pair"\nmechanism = "FinitePair"\n'
        'p = ["1/4", "3/4"]\nq = ["3/4", "1/4"]\nsteps = 7\n[[workflow]]\nname = "phases"\n'
        '[[workflow.phase]]\nmechanism = "GaussianMechanism"\nnoise_multiplier = 3\nsteps = 2\n'
        '[[workflow.phase]]\nmechanism = "GaussianMechanism"\nnoise_multiplier = 2\nsteps = 1\n'
    )
    assert main(["table", str(spec), "-o", str(tmp_path)]) == 0
    from_csv = read(tmp_path / "table.csv")
    assert from_csv == read(tmp_path / "table.jsonl")
    assert len(from_csv) == 8
    assert from_csv[0].mechanism == RUN
    assert from_csv[0].adjacency == "add"
    assert from_csv[4].mechanism == pe.from_probabilities(["1/4", "3/4"], ["3/4", "1/4"]).composed(
        7
    )
    phases = pe.GaussianMechanism("3").composed(2) + pe.GaussianMechanism("2").composed(1)
    assert from_csv[-1].mechanism == phases
    assert from_csv[-1].lower is not None
    for name in ("table.csv", "table.jsonl"):
        assert main(["verify", str(tmp_path / name), "--engine", "auto"]) == 0


def test_reads_json(tmp_path: Path) -> None:
    rows = [
        {"mechanism": "LaplaceMechanism", "noise_multiplier": 0.1, "steps": 3, "question": "delta",
         "at": 0.5, "value": 0.25, "lower": None, "engine": "mine"},
        {"mechanism": "RandomizedResponse", "truth_probability": "3/4", "steps": 1,
         "question": "epsilon", "at": "0", "value": "Infinity"},
    ]  # fmt: skip
    path = tmp_path / "mine.json"
    for content in (rows, {"rows": rows}):
        path.write_text(json.dumps(content))
        first, second = read(path)
        assert first.mechanism == pe.LaplaceMechanism("0.1").composed(3)
        assert (first.adjacency, first.at, first.value, first.lower) == (
            "add_remove", "0.5", "0.25", None
        )  # fmt: skip
        assert second.value == "inf"
    path.write_text('[{"mechanism": "GaussianMechanism", "noise_multiplier": 1, "steps": 1, '
                    '"question": "epsilon", "at": 1e-5, "value": NaN}]')  # fmt: skip
    assert read(path)[0].value == "nan"


def test_values_below_the_smallest_double(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No double can be safe there but 0."""
    pytest.importorskip("flint")
    # β of 10,000 steps at noise 0.7, to 30 digits; also in gold/gaussian
    beta = "2.17415502983195798510849951516e-4333"
    rows = [
        f"0.7,1,10000,trade_off,add,0.05,{value}\n" for value in (beta, "0", "1e-4332", "5e-324")
    ]
    written.write_text(HEAD + "".join(rows))
    assert main(["verify", str(written)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:-2]] == ["agrees", "safe", "UNSAFE", "UNSAFE"]
    assert "2.174155030e-4333" in lines[1]


def test_doubles(written: Path) -> None:
    written.write_text(HEAD + "0.1,1,3,delta,add,0.3,0.5\n")
    (exact,) = read(written)
    (rounded,) = read(written, doubles=True)
    assert exact.mechanism == pe.GaussianMechanism("0.1").composed(3)
    assert rounded.mechanism == pe.GaussianMechanism(Fraction(0.1)).composed(3)
    assert Fraction(rounded.at) == Fraction(0.3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row has a value"),
        (HEAD, "no row has a value"),
        (HEAD + "1,0.1,10,epsilon,add,1e-5,\n", "no row has a value"),
        (HEAD + "1,0.1,10,epsilon,add,1e-5\n", "row 1: must have 7 cells"),
        (HEAD + "1,0.1,10,epsilon,add,1e-5,1,2\n", "row 1: must have 7 cells"),
        (HEAD + "1,0.1,10,eps,add,1e-5,1\n", "row 1: question must be one of 'trade_off'"),
        (HEAD + "1,0.1,10,epsilon,up,1e-5,1\n", "row 1: adjacency must be one of 'add'"),
        (HEAD + "1,0.1,10,epsilon,add,2,1\n", "row 1: delta must lie in [0, 1], got '2'"),
        (
            HEAD + "1,0.1,10,epsilon,add,1e-5,one\n",
            "row 1: value must be a decimal number, got 'one'",
        ),
        (HEAD + "1,0.1,10,epsilon,add,1e-5,1/3\n", "row 1: value must be a decimal number"),
        (HEAD + "1,0.1,,epsilon,add,1e-5,1\n", "row 1: a sampled mechanism needs steps or epochs"),
        (HEAD + "-1,0.1,1,epsilon,add,1e-5,1\n", "row 1: noise_multiplier must be positive"),
        (HEAD.replace("value", "at") + "1,0.1,1,epsilon,add,1,1\n", "names a column twice"),
        (HEAD.replace("at,", "x,") + "1,0.1,1,epsilon,add,1,1\n", "row 1: at is missing"),
        (
            HEAD.replace("steps", "steps,mechanism") + "1,0.1,1,Cauchy,epsilon,add,1,1\n",
            "row 1: mechanism must be one of gaussian, ",
        ),
        (
            HEAD.replace("steps", "steps,seconds") + "1,0.1,1,9,epsilon,add,1,1\n",
            "row 1: unknown column 'seconds' (--ignore it?)",
        ),
        (
            HEAD.replace("steps", "argument,steps") + "1,1,kappa,1,epsilon,add,0,1\n",
            "row 1: argument must be one of 'delta'; got 'kappa'",
        ),
    ],
)
def test_bad_input(
    written: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    written.write_text(text)
    assert main(["verify", str(written)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"pyengine: error: {written}: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine.json", "{}", "must be a list of rows"),
        ("mine.json", "[3]", "row 1: must be an object, got 3"),
        ("mine.json", "[", "Expecting value"),
        ("mine.json", "[" * 10_000 + "]" * 10_000, "nested too deeply"),
        ("mine.json", '[{"at": 1, "at": 2}]', "the key 'at' is given twice"),
        ("mine.json", f'[{{"steps": 1{"0" * 5000}}}]', "an integer has more than 4,300 digits"),
        ("mine.jsonl", '{"rows": ' * 10_000, "line 1: nested too deeply"),
        ("mine.jsonl", "{}\n{\n", "line 2: "),
        ("mine.jsonl", '{"question": 3, "at": 1}', "row 1: question must be one of"),
        ("mine.txt", "", "the name must end with .csv, .json, .jsonl"),
    ],
)
def test_bad_json(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ClaimsError, match="mine") as caught:
        read(path)
    assert message in str(caught.value)


def test_missing_file_and_bad_options(
    tmp_path: Path, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err.endswith("none.csv: No such file or directory\n")
    written.write_text(HEAD + "1,0.1,10,epsilon,add,1e-5,1\n")
    for option, value, message in (
        ("--tolerance", "x", "--tolerance must be a number"),
        ("--tolerance", "-1", "--tolerance must be >= 0, got '-1'"),
        ("--digits", "0", "--digits must lie in [1, 200], got 0"),
    ):
        assert main(["verify", str(written), f"{option}={value}"]) == 2
        assert message in capsys.readouterr().err


MINE = HEAD + (
    "0.8,0.001,10000,epsilon,add_remove,1e-5,0.79\n"
    "0.8,0.001,10000,epsilon,add_remove,1e-5,0.782387781\n"
    "0.8,0.001,10000,gamma_bound,add,1e-5,7.9e-13\n"
    "0.8,0.001,10000,trade_off,add,1e-5,0.9999\n"
    "0.8,0.001,10000,trade_off,add,1e-5,\n"
)


def test_command(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written.write_text(MINE)
    assert main(["verify", str(written), "--engine", "auto"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "row", "workflow", "question", "adjacency", "at", "value", "truth", "error", "verdict"
    ]  # fmt: skip
    assert [line.split("  ")[-1].strip() for line in lines[1:-2]] == [
        "safe", "within tolerance", "UNSAFE", "safe", "no value"
    ]  # fmt: skip
    assert "+9.7e-3" in lines[1]
    assert "2.644485714e-5  -1.0e0" in lines[3]
    counts = lines[-1].partition(";")[0]
    assert counts == "1 UNSAFE, 1 no value, 2 safe, 1 within tolerance"

    assert main(["verify", str(written), "--engine", "auto", "--failures"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 4

    assert main(["verify", str(written), "--engine", "auto", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["failed"] for row in found["rows"]] == [False, False, True, False, False]
    assert found["rows"][2]["truth"].startswith("2.64448571")
    assert found["count"]["UNSAFE"] == 1


def test_reference_is_the_truth(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flint")
    written.write_text(
        HEAD + "1,0.01,1000,gamma_bound,add,1e-3,0.00406844788114256585600747542888\n"
        "1,0.01,1000,gamma_bound,add,1e-3,0.00406844788114256585600747542890\n"
    )
    arguments = ["verify", str(written), "--tolerance", "0", "--digits", "40", "--workers", "0"]
    assert main(arguments) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 UNSAFE, 1 safe"


def test_exit_codes(written: Path) -> None:
    written.write_text("".join(MINE.splitlines(keepends=True)[:3]))
    assert main(["verify", str(written), "--engine", "auto"]) == 0
    assert main(["verify", str(written), "--engine", "auto", "--tolerance", "0"]) == 1
    assert main(["verify", str(written), "--engine", "auto", "--both-sides"]) == 1
    loose = ["--engine", "auto", "--both-sides", "--tolerance", "1/100"]
    assert main(["verify", str(written), *loose]) == 0


def test_truth_that_is_not_known(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pe.AccuracyError("too hard")

    monkeypatch.setattr("pyengine.workbench.tables.cells.risk_answers", refuse)
    written.write_text("".join(MINE.splitlines(keepends=True)[:2]))
    assert main(["verify", str(written), "--engine", "auto"]) == 1
    assert "NO TRUTH: too hard" in capsys.readouterr().out


def test_ignored_column(written: Path) -> None:
    written.write_text(
        HEAD.replace("steps", "steps,seconds") + "0.8,1e-3,10000,5,epsilon,add_remove,1e-5,0.8\n"
    )
    arguments = ["verify", str(written), "--engine", "auto"]
    assert main(arguments) == 2
    assert main([*arguments, "--ignore", "seconds"]) == 0


ROWS = """noise_multiplier,sampling_probability,steps,question,at,value
0.8,0.001,10000,epsilon,1e-5,0.79
0.8,0.001,10000,delta,1,5.4e-7
"""
OBJECT = {
    "noise_multiplier": 0.8,
    "sampling_probability": 0.001,
    "steps": 10_000,
    "question": "epsilon",
    "at": 1e-5,
    "value": 0.79,
}


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        ROWS.replace(",", ";"),
        ROWS.replace(",", " ; ").replace("0.79", "0.79  "),
        ROWS.replace(",", ", "),
        ROWS.replace(",", "\t"),
        "\n" + ROWS.replace("\n", "\r\n  \r\n"),
        ROWS.replace("epsilon,", '"epsilon", '),
        json.dumps([OBJECT, OBJECT]),
        json.dumps({"rows": [OBJECT, OBJECT]}, indent=1),
        f"{json.dumps(OBJECT)}\n{json.dumps(OBJECT)}\n\n",
    ],
)
def test_standard_input(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert main(["verify", "-", "--engine", "auto", "--workers", "0"]) == 0
    assert "2 safe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "standard input: no row has a value"),
        (ROWS.replace("steps,", "steps;"), "standard input: the header must have one kind of sep"),
        (ROWS.replace("0.79", "0,79"), "row 1: must have 6 cells"),
        (ROWS.replace(",", ";").replace("0.79", "0,79"), "value must be a decimal number"),
        ("[1]", "standard input: row 1: must be an object"),
    ],
)
def test_wrong_standard_input(
    text: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["verify", "-"]) == 2
    assert message in capsys.readouterr().err
