"""``pyengine gamma|tradeoff|delta|epsilon``, the grammar of mechanisms, and doctor."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import _core
from pyengine._support.decimals import number
from pyengine.cli import doctor, main
from pyengine.cli.main import make_parser
from pyengine.cli.output import RED, paint

RUN = ["--noise", "0.8", "--p", "0.001", "--steps", "10000"]
MECHANISM = pe.dp_sgd("0.8", "0.001", 10_000)
SELECTED = ["--steps-per-epoch", "20", "--selected", "3", "--epochs", "2"]


def ask(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == code
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


@pytest.mark.parametrize(
    ("command", "option", "at", "function", "keywords"),
    [
        ("gamma", "kappa", "1e-5", pe.gamma_bound, {}),
        ("gamma", "kappa", "1e-5", pe.gamma_bound, {"adjacency": "remove"}),
        ("tradeoff", "alpha", "0.1", pe.trade_off, {}),
        ("tradeoff", "alpha", "0.1", pe.trade_off, {"adjacency": "add"}),
        ("delta", "epsilon", "1", pe.delta, {}),
        ("delta", "epsilon", "1", pe.delta, {"method": "certified"}),
        ("epsilon", "delta", "1e-5", pe.epsilon, {"threat_model": "dp"}),
    ],
)
def test_questions(
    capsys: pytest.CaptureFixture[str],
    command: str,
    option: str,
    at: str,
    function: Any,
    keywords: dict[str, str],
) -> None:
    flags = [
        text for key, word in keywords.items() for text in (f"--{key.replace('_', '-')}", word)
    ]
    bounds = "estimated" if "method" in keywords else True
    expected = function(MECHANISM, float(at), bounds=bounds, **keywords)
    content = ask(capsys, command, *RUN, f"--{option}", at, "0.5", *flags)
    row = content["rows"][0]
    assert (row["lower"], row["value"], row["upper"]) == expected
    assert row[option] == float(at)
    assert content["pyengine"] == pe.__version__
    assert len(content["rows"]) == 2
    assert main([command, *RUN, f"--{option}", at, "--digits", "6", *flags]) == 0
    printed = capsys.readouterr().out
    assert f"{at}  " in printed
    assert number(expected.value, 6) in printed
    assert "at least" not in printed


def test_bounds_are_rounded_outwards(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bounds", "--digits", "5", "--verbose"]
    assert main(["gamma", *RUN, "--kappa", "1e-5", *words]) == 0
    kappa, value, lower, upper, certainty, engine = capsys.readouterr().out.splitlines()[-1].split()
    assert (kappa, value, engine) == ("1e-5", "2.6445e-5", "certified")
    assert (lower, upper) == ("2.6444e-5", "2.6445e-5")
    assert certainty == "proven"
    for x in (0.1, 1 / 3, 2e-300, 12345.6789, 1e22):
        assert float(number(x, 7, ROUND_FLOOR)) <= x <= float(number(x, 7, ROUND_CEILING))
    assert number(float("inf"), 5) == "inf"
    # between doubles that are farther apart than the digits, and where the next one overflows
    rng = np.random.default_rng(7)
    tiny = 5e-324 * rng.integers(1, 2000, 200).astype(float)
    for x in (5e-324, *tiny.tolist(), 2.0**-1022, 1.7976931348623157e308):
        for digits in (1, 4, 10, 15):
            low, high = (Decimal(number(x, digits, how)) for how in (ROUND_FLOOR, ROUND_CEILING))
            assert low <= Decimal(x) <= high


def test_arbitrary_precision(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flint")
    run = ["gamma", *RUN, "--kappa", "1e-5"]
    assert main([*run, "--digits", "25", "--bounds", "--verbose"]) == 0
    _, value, lower, upper, certainty, engine = capsys.readouterr().out.splitlines()[-1].split()
    # tests/data/dp_sgd_published.json
    assert value == "2.644485713746668253147468e-5"
    assert (lower, upper) == ("2.644485713746668253147468e-5", "2.644485713746668253147469e-5")
    assert (certainty, engine) == ("proven", "reference")
    content = ask(capsys, "epsilon", *RUN, "--delta", "0", "1e-5", "--digits", "20")
    assert content["rows"][0]["value"] == "inf"
    assert content["rows"][1]["value"].startswith("0.78238778113306")
    assert main([*run, "--digits", "20", "--method", "lattice"]) == 2
    assert "--digits above 15 takes --method auto" in capsys.readouterr().err
    other = ["gamma", *RUN, "--kappa", "0.1", "--digits", "20", "--adjacency", "substitute"]
    assert main(other) == 0
    out = capsys.readouterr().out
    value = float(out.splitlines()[-1].split()[1])
    bounds = pe.gamma_bound(pe.dp_sgd(0.8, 0.001, 10_000), 0.1, adjacency="substitute", bounds=True)
    assert bounds.lower <= value <= bounds.upper
    assert out.splitlines()[-1].split()[2] == "proven"


def test_without_the_reference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pe, "reference", raising=False)
    for name in [name for name in sys.modules if name.startswith("pyengine.reference")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    assert main(["gamma", *RUN, "--kappa", "0.1", "--digits", "20"]) == 2
    assert "needs flint: pip install 'pyengine-dp[reference]'" in capsys.readouterr().err


def test_named_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.csv").write_text("noise,rate,steps\n2,0.01,100\n1,0.02,9\n", "utf-8")
    runs = ["--run", "a", "noise=1,p=0.01,steps=10", "--run", "b", str(tmp_path / "b.csv")]
    assert main(["epsilon", *runs, "--delta", "1e-5", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["runs"]
    assert (first["run"], second["run"]) == ("a", "b")
    assert first["rows"][0]["value"] == pe.epsilon(pe.dp_sgd(1.0, 0.01, 10), 1e-5)
    both = pe.dp_sgd(2.0, 0.01, 100) + pe.dp_sgd(1.0, 0.02, 9)
    assert second["rows"][0]["value"] == pytest.approx(pe.epsilon(both, 1e-5), 1e-12)
    assert main(["epsilon", *runs, "--noise", "1", "--delta", "1e-5"]) == 2
    assert "give mechanisms by --run, or one by flags" in capsys.readouterr().err
    assert main(["epsilon", *runs[:3], *runs[:3], "--delta", "1e-5"]) == 2
    assert "two runs are named 'a'" in capsys.readouterr().err
    noises = [1.0 + i / 16 for i in range(20)]  # more than the name of a file may have
    long = ";".join(f"noise={noise},p=0.01,steps=10" for noise in noises)
    assert main(["epsilon", "--run", "a", long, "--delta", "1e-5", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    run = pe.compose(*(pe.dp_sgd(noise, 0.01, 10) for noise in noises))
    assert row["value"] == pe.epsilon(run, 1e-5)


def test_ranges_and_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    content = ask(capsys, "gamma", *RUN, "--kappa", "1e-6:1e-2:5", "1/8", "0", "1")
    kappas = [row["kappa"] for row in content["rows"]]
    assert kappas == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.125, 0.0, 1.0])
    content = ask(capsys, "delta", *RUN, "--epsilon", "0:4:5")
    assert [row["epsilon"] for row in content["rows"]] == [0, 1, 2, 3, 4]


def test_digits_beyond_the_bounds_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--mechanism", "discrete_gaussian", "--noise", "2", "--p", "0.1", "--steps", "20"]
    row = ask(capsys, "gamma", *run, "--kappa", "1e-3")["rows"][0]
    width = (row["upper"] - row["lower"]) / row["value"]
    assert 1e-9 < width < 1e-3  # the lattice certifies, and not to ten digits
    assert main(["gamma", *run, "--kappa", "1e-3"]) == 0
    shown = capsys.readouterr().out.splitlines()[-1].split()[1]
    assert abs(float(shown) - row["value"]) <= row["upper"] - row["lower"]
    assert len(shown.lstrip("0.")) <= 6


def test_refusal_costs_its_own_row_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(name: str, mechanism: Any, values: list[float], **words: str) -> Any:
        if 2.0 in values:
            raise pe.AccuracyError("no answer, try more noise")
        return pe.api.answers(name, mechanism, values, **words)

    monkeypatch.setattr("pyengine.cli.questions.answers", answers)
    content = ask(capsys, "delta", *RUN, "--epsilon", "1", "2", code=1)
    assert content["rows"][0]["value"] == pe.delta(MECHANISM, 1.0, bounds=True).value
    assert content["rows"][1]["value"] is None
    assert content["rows"][1]["message"] == "no answer, try more noise"
    assert main(["delta", *RUN, "--epsilon", "1", "2", "--bounds"]) == 1
    assert re.search(r"^2 +refused .*no answer, try", capsys.readouterr().out, re.M)


def _words(line: str) -> list[str]:
    return line.split()


FILE = """
[[phase]]
noise = 2
p = 0.01
steps = 100
[[phase]]
noise_multiplier = "1.0"
sampling_probability = "1/50"
steps = 1
"""
MIXTURES = """
[[phase]]
mechanism = "gaussian_mixture"
noise = 2
shifts = [0, 1, 2.5]
weights = ["1/2", 0.25, "1/4"]
steps = 100
[[phase]]
mechanism = "dp_sgd_allocated"
noise = 1
steps_per_epoch = 30
epochs = 2
"""
MIXTURE = pe.GaussianMixtureMechanism("2", ["0", "1", "2.5"], ["1/2", "1/4", "1/4"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--noise", "1.5"], pe.GaussianMechanism("1.5").composed(1)),
        (
            ["--noise", "1", "--p", "16384/1281167", "--steps", "9"],
            pe.dp_sgd("1", "16384/1281167", 9),
        ),
        (
            [
                "--phase",
                "noise=2,p=0.01,steps=100",
                "--phase",
                " noise = 1.0 , p = 1/50 , steps = 1",
            ],
            pe.dp_sgd("2", "0.01", 100) + pe.dp_sgd("1", "0.02", 1),
        ),
        (["--file", "run.toml"], pe.dp_sgd("2", "0.01", 100) + pe.dp_sgd("1", "0.02", 1)),
        (
            ["--file", "mixtures.toml"],
            MIXTURE.composed(100) + pe.dp_sgd_allocated("1", 30, 2),
        ),
        (
            ["--phase", "mechanism=gaussian_mixture,noise=2,shifts=0 1 2.5,weights=1/2 1/4 0.25"],
            MIXTURE.composed(1),
        ),
        (["--mechanism", "laplace", "--noise", "2"], pe.LaplaceMechanism("2").composed(1)),
        (
            ["--phase", "mechanism=discrete_gaussian,noise=2,sensitivity=3,p=0.5,steps=1"],
            pe.DiscreteGaussianMechanism("2", 3).poisson_sampled("0.5").composed(1),
        ),
        (
            ["--phase", "mechanism=randomized_response,truth_probability=0.75,categories=4"],
            pe.RandomizedResponse("0.75", 4).composed(1),
        ),
        (
            ["--phase", "mechanism=generic,epsilon=1,delta=1e-6,steps=3"],
            pe.GenericMechanism("1", "1e-6").composed(3),
        ),
        (
            _words(
                "--noise 1 --batch-size 10 --dataset-size 100 --sampling without_replacement "
                "--steps 5"
            ),
            pe.GaussianMechanism("1")
            .sampled_without_replacement(batch_size=10, dataset_size=100)
            .composed(5),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: pe.Mechanism
) -> None:
    from pyengine.cli.grammar import read_mechanism

    (tmp_path / "run.toml").write_text(FILE)
    (tmp_path / "mixtures.toml").write_text(MIXTURES)
    monkeypatch.chdir(tmp_path)
    parsed = make_parser().parse_args(["gamma", *arguments, "--kappa", "0.1"])
    assert read_mechanism(parsed) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no mechanism: give a run file, --noise or --phase"),
        (["--noise", "0"], "noise_multiplier must be positive and finite, got '0'"),
        (["--noise", "x"], "noise_multiplier must be a number or a fraction of two numbers"),
        (
            ["--noise", "1", "--p", "2", "--steps", "1"],
            "sampling_probability must lie in [0, 1], got '2'",
        ),
        (["--noise", "1", "--steps", "1.5"], "steps must be a non-negative integer, got '1.5'"),
        (["--p", "0.1"], "gaussian needs noise"),
        (["--noise", "1", "--phase", "noise=1"], "give the mechanism once"),
        (["--noise", "1", "--batch-size", "5"], "do not say how batches were drawn"),
        (
            _words("--noise 1 --p 0.1 --batch-size 5 --dataset-size 10 --steps 1"),
            "sampling_probability and batch_size both given (0.1 and 5); give one",
        ),
        (
            _words(
                "--noise 1 --p .1 --batch-size 5 --dataset-size 9 --truncated-batch-size 7 "
                "--steps 1"
            ),
            "give truncated_batch_size with p, or batch_size with sampling poisson",
        ),
        (["--phase", "noise"], "expected KEY=VALUE,..., got 'noise'"),
        (["--phase", "noise=1,noise=2"], "noise is given twice"),
        (
            ["--noise", "1", "--p", "2", "--sampling", "poisson", "--steps", "1"],
            "sampling_probability must lie in",
        ),
        (["--file", "history.json"], "history.json, line 1: unknown key 'history'; gaussian takes"),
        (["--file", "table.toml"], "line 3: unknown table [gamma]; did you mean 'gamma_bound'?"),
        (["--file", "mixed.toml"], "mechanisms[0]: unknown key 'phases'; phases are tables"),
        (["--phase", "noise=1,sigma=2"], "unknown key 'sigma'; gaussian takes noise, p, "),
        (
            ["--phase", "mechanism=cauchy"],
            "mechanism must be one of gaussian, laplace, discrete_gaussian",
        ),
        (["--file", "missing.toml"], "missing.toml: No such file or directory"),
        (["--file", "empty.toml"], "empty.toml: no run"),
        (
            ["--file", "broken.toml"],
            "broken.toml: not a run file: Expected ']]' at the end of an array declaration",
        ),
        (
            ["--file", "run.txt"],
            "run.txt: not a run file; pyengine reads TOML, JSON, YAML, and CSV",
        ),
        (["--file", "run.csv"], "run.csv, line 2: a sampled mechanism needs steps or epochs"),
        (["--file", "latin.toml"], "latin.toml: not a UTF-8 text"),
        (["--file", "deep.toml"], "deep.toml: not a run file: nested too deeply"),
        (["--file", "huge.toml"], "an integer has more than 4,300 digits"),
        (["--file", "twice.toml"], "twice.toml: not a run file"),
        (["--file", "other.toml"], "other.toml, line 1: no run: run must be tables [[run]], got 1"),
        (
            ["--file", "wrong.toml"],
            "wrong.toml, line 2: noise_multiplier must be a real number, got True",
        ),
        (["--file", "plain.toml"], "plain.toml, line 1: a phase must be a table, got 1"),
        (["--file", "pair.toml"], "pair.toml, line 1: FinitePair needs p"),
    ],
)
def test_wrong_mechanisms(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "history.json").write_text('{"history": [[1.0, 0.01, 100]]}')
    (tmp_path / "table.toml").write_text("noise = 1\nsteps = 2\n[gamma]\nkappa = 0.1\n")
    (tmp_path / "mixed.toml").write_text(
        'mechanism = "revealed_mixture"\nweights = [1]\nmechanisms = [{phases = [{noise = 1}]}]\n'
    )
    (tmp_path / "broken.toml").write_text("[[phase]\n")
    (tmp_path / "run.txt").write_text("a run of some steps\n")
    (tmp_path / "run.csv").write_text("noise,p\n1,2\n")
    (tmp_path / "latin.toml").write_bytes(b'a = "\xff"')
    (tmp_path / "deep.toml").write_text("a = " + "[" * 10_000 + "]" * 10_000)
    (tmp_path / "huge.toml").write_text("[[phase]]\nnoise = 1" + "0" * 5000)
    (tmp_path / "twice.toml").write_text("[[phase]]\nnoise = 1\nnoise = 2\n")
    (tmp_path / "other.toml").write_text("run = 1\n[[phase]]\nnoise = 1\n")
    (tmp_path / "wrong.toml").write_text("[[phase]]\nnoise = true\n")
    (tmp_path / "plain.toml").write_text("phase = [1, 2]\n")
    (tmp_path / "pair.toml").write_text('[[phase]]\nmechanism = "FinitePair"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["gamma", *arguments, "--kappa", "0.1"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("pyengine: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gamma", *RUN, "--kappa", ".1", "--mechanism", "gausian"], "matrix_mechanism; got 'gaus"),
        (["gamma", "--kappa", ".1", "--run", "b", "noise=1,stp=2"], "error: --run b: unknown key"),
        (["gamma", *RUN, "--kappa", "2"], "--kappa must lie in [0, 1], got 2"),
        (["gamma", *RUN, "--kappa", "-1e-3"], "--kappa must lie in [0, 1], got -1e-3"),
        (["delta", *RUN, "--epsilon", "1:2"], "expected a number or FROM:TO:COUNT, got '1:2'"),
        (["delta", *RUN, "--epsilon", "1:2:1"], "COUNT must be an integer from 2"),
        (["gamma", *RUN, "--kappa", "0:1:5"], "needs positive ends"),
        (["gamma", *RUN, "--kappa", "k"], "--kappa must be a number or a fraction"),
        (["gamma", *RUN, "--kappa", "0.1", "--digits", "0"], "--digits must be an integer >= 1"),
        (["gamma", *RUN, "--kappa", "0.1", "--adjacency", "replace"], "substitute; got 'replace'"),
        (["gamma", *RUN], "required: --kappa"),
    ],
)
def test_wrong_values(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        code = main(arguments)
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


def test_no_engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise pe.AccuracyError("nobody can")

    monkeypatch.setattr("pyengine.cli.questions._quickly", refuse)
    assert main(["gamma", *RUN, "--kappa", "0.1"]) == 1
    assert capsys.readouterr().err == "pyengine: refused: nobody can\n"


def commands() -> dict[str, Any]:
    parser = make_parser()
    (action,) = (
        action for action in parser._actions if action.choices and not action.option_strings
    )
    return dict(action.choices)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", sorted(commands()))
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert "examples:\n" in printed
    examples = re.findall(rf"^  (?:source <\()?(pyengine {command}.*)$", printed, re.M)
    assert examples
    assert max(map(len, printed.splitlines())) <= 100


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as narrow:
        narrow.setattr("pyengine.cli.output.terminal_width", lambda: 60)
        assert main(["doctor"]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 60
        assert not out.endswith("\n\n")
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert f"pyengine {pe.__version__}, Python " in printed
    assert "10 of 10 values are right within 1e-11" in printed
    assert printed.count("  ok\n") == 10
    assert doctor.LEVELS[_core.lib.pe_simd_level()] in printed
    content = ask(capsys, "doctor")
    assert len(content["tests"]) == 10
    assert all(test["right"] for test in content["tests"])
    assert content["packages"]["numpy"]


def test_doctor_finds_a_wrong_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gamma = pe.gamma_bound
    monkeypatch.setattr(pe.api, "gamma_bound", lambda *a, **k: gamma(*a, **k) * (1 + 2e-11))
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("WRONG") == 5
    assert "5 of 10 values are right" in printed


def test_gold_values_stand_in_the_tests_data() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    folder = Path(__file__).parent / "data"
    known = (folder / "dp_sgd_published.json").read_text() + (
        folder / "ncx2_known.json"
    ).read_text()
    gold = tomllib.loads(Path(doctor.__file__).with_name("gold.toml").read_text())["value"]
    assert len(gold) == 10
    for value in gold:
        assert f'"{value["truth"]}"' in known


def test_colour_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("text", RED, Terminal()) == f"{RED}text\033[0m"
    assert paint("text", RED, io.StringIO()) == "text"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("text", RED, Terminal()) == "text"


def test_fractions_in_json_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    content = ask(capsys, "gamma", "--noise", "1/3", "--kappa", "0.1")
    assert Fraction(content["mechanism"][0]["noise_multiplier"]) == Fraction(1, 3)


def test_reader_that_leaves() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = f"{sys.executable} -m pyengine gamma {' '.join(RUN)} --kappa 1e-9:1:5000 | head -n 1"
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program}"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert run.stderr == ""
    assert run.stdout.startswith("DP-SGD, noise multiplier 0.8, 10,000 steps at rate 0.001")


def test_relaxed_answers_stand_beside_those_of_dp(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tradeoff", "--noise", "1", "--p", "0.5", "--steps", "1", "--alpha", "0.1"]
    assert main([*words, "--threat-model", "relaxed"]) == 0
    printed = capsys.readouterr().out
    assert "threat model relaxed; differential privacy in column dp" in printed
    assert printed.splitlines()[-2].split() == ["α", "β", "dp", "certainty"]
    mechanism = pe.dp_sgd(1.0, 0.5, 1)
    row = printed.splitlines()[-1].split()
    assert float(row[1]) == pytest.approx(pe.trade_off(mechanism, 0.1, threat_model="relaxed"))
    assert float(row[2]) == pytest.approx(pe.trade_off(mechanism, 0.1))
    assert main([*words, "--threat-model", "relaxed", "--json", "--digits", "25"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["rows"]
    assert found["value"].startswith("0.81820133")
    assert found["dp"] == pe.trade_off(mechanism, 0.1)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["epsilon", "--mechanism", "laplace", "--noise", "1", "--delta", "1e-3"], "proven"),
        (["gamma", "--mechanism", "randomized_response", "--kappa", "0.1"], "proven"),
        (["gamma", *RUN, "--kappa", "0.1", "--method", "edgeworth"], "estimate"),
        (["gamma", *RUN, "--kappa", "0.1", "--method", "reference"], "proven"),
    ],
)
def test_one_word_for_proven_bounds_and_one_for_estimates(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same word in the table for people, in JSON and in the rows of `pyengine table`."""
    if "randomized_response" in arguments:
        arguments = ["gamma", "--kappa", "0.1", "--phase"]
        arguments += ["mechanism=randomized_response,truth_probability=0.75"]
    content = ask(capsys, *arguments)
    assert [row["certainty"] for row in content["rows"]] == [word]
    bounds = ["--bounds"] if word == "proven" else ["--bounds", "estimated"]
    assert main([*arguments, *bounds]) == 0
    heads, row = capsys.readouterr().out.splitlines()[-2:]
    assert heads.split()[2:] == ["lower", "upper", "certainty"]
    assert row.split()[4] == word


def test_sampling_without_replacement_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--batch-size", "100", "--dataset-size", "10000", "--sampling", "without_replacement"]
    assert main(["epsilon", "--noise", "1", *sizes, "--steps", "3", "--delta", "1e-6"]) == 0
    heading, batches, _ = capsys.readouterr().out.splitlines()[:3]
    assert heading.endswith("3 steps of 100 of 10,000 records, without replacement")
    assert batches.startswith("batches: each batch is 100 of 10,000 records, drawn anew")


@pytest.mark.parametrize(
    ("command", "run", "side"),
    [
        (["epsilon", "--delta", "1e-5"], SELECTED, "upper"),
        (["tradeoff", "--alpha", "1e-5"], SELECTED, "lower"),
        (
            ["epsilon", "--delta", "1e-5", "--adjacency", "substitute"],
            _words(
                "--batch-size 10 --dataset-size 1000 --sampling without_replacement --steps 1000"
            ),
            "upper",
        ),
    ],
)
def test_a_value_that_is_only_a_bound_says_so(
    capsys: pytest.CaptureFixture[str], command: list[str], run: list[str], side: str
) -> None:
    """With all its digits: rounded to two, an upper bound may lie below itself, or far above."""
    assert main([*command, "--noise", "1", *run, "--bounds", "estimated"]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.endswith(f"  {side} bound"), row
    _, value, lower, upper, *_ = row.split()
    assert float(lower) <= float(value) <= float(upper)
    assert abs(float(value) / float(upper if side == "upper" else lower) - 1.0) < 1e-9


SIZED = "--noise 1 --batch-size 50 --dataset-size 1000 --sampling poisson --steps 9"
RATE = "--noise 1 --p 0.05 --steps 9"
LARGE = "δ = 0.5 is large: publishing one of n records at random is (0, 1/n)-DP, so choose δ well"
OF_N = "is at least 1/n for n = 1,000 records, where even publishing one record at random is (0, δ)"


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        (f"epsilon {SIZED} --delta 1e-6 0.002", f"δ = 0.002 {OF_N}"),
        (f"epsilon {SIZED} --delta 0.001", f"δ = 0.001 {OF_N}"),
        (f"epsilon {SIZED} --delta 0.0009", ""),
        (f"epsilon {RATE} --delta 0.01", ""),
        (f"epsilon {RATE} --delta 0.5", LARGE),
        (f"epsilon {RATE} --delta 0.5 --digits 20", LARGE),
        (
            "epsilon --noise 0.02 --delta 1e-5",
            "ε = 1,462.29 protects nobody: are two arguments swapped",
        ),
        ("epsilon --noise 1 --delta 0", ""),  # inf, as it must be
        (f"delta {RATE} --epsilon 0.1", ""),
        (f"statement {RATE} --delta 0.5 --fpr 0.1 --kappa 0.1", LARGE),
        (f"statement {SIZED} --delta 0.1 --fpr 0.1 --kappa 0.1 --format latex", f"δ = 0.1 {OF_N}"),
        ("calibrate --steps 9 --epsilon 0.01 --delta 0.5", LARGE),
        (
            "calibrate --batch-size 50 --dataset-size 1000 --sampling poisson --steps 9 "
            "--epsilon 1 --delta 0.002",
            f"δ = 0.002 {OF_N}",
        ),
        ("calibrate --steps 9 --epsilon 2000 --delta 1e-5", "ε = 2,000 protects nobody"),
    ],
)
def test_remarks(line: str, remark: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a figure protects nobody, or is asked at a δ where none does."""
    assert main(line.split()) == 0
    printed = capsys.readouterr()
    assert "remark" not in printed.out
    assert printed.err.startswith(f"pyengine: remark: {remark}" if remark else "")
    assert printed.err.count("\n") == bool(remark)
    if "--format" in line:
        return
    as_json = ["--format", "json"] if line.startswith("statement") else ["--json"]
    assert main([*line.split(), *as_json]) == 0
    found = json.loads(capsys.readouterr().out)["remarks"]
    assert [f"pyengine: remark: {text}" for text in found] == printed.err.splitlines()
