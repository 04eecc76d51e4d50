"""``pyengine calibrate``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.cli import main
from pyengine.cli.calibrate import _is_proven


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["calibrate", *arguments, "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_noise(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--p", "0.01", "--steps", "10000", "--epsilon", "1", "--delta", "1e-6"]
    assert main(["calibrate", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "noise 4.302106466",
        "achieves epsilon 1, delta 9.999999982e-7 (adjacency add_remove), proven",
        "DP-SGD, noise multiplier 4.302106466, 10,000 steps at rate 0.01",
        "batches: each record joins each batch independently with probability 0.01 "
        "(Poisson sampling)",
        "protects: one record: two data sets that differ by adding or removing it "
        "(adjacency add_remove)",
    ]
    content = ask(capsys, *arguments, "--digits", "4")
    assert content["value"] == 4.303  # rounded up: 4.302 would not do
    assert content["unrounded"] == pytest.approx(4.302106466, rel=1e-9)
    assert pe.delta(pe.dp_sgd(4.303, 0.01, 10_000), 1.0) <= 1e-6
    assert pe.delta(pe.dp_sgd(4.302, 0.01, 10_000), 1.0) > 1e-6


@pytest.mark.parametrize(
    ("key", "arguments", "better"),
    [
        ("noise", ["--p", "0.01", "--steps", "1000"], 1e-9),
        ("p", ["--noise", "1", "--steps", "1000"], -1e-9),
        ("steps", ["--noise", "1", "--p", "0.01"], 0),
    ],
)
@pytest.mark.parametrize(
    ("target", "question"),
    [
        (["--epsilon", "2", "--delta", "1e-6"], lambda m: pe.delta(m, 2.0) <= 1e-6),
        (["--kappa", "1e-3", "--gamma", "0.005"], lambda m: pe.gamma_bound(m, 1e-3) <= 0.005),
        (["--alpha", "0.1", "--beta", "0.8"], lambda m: pe.trade_off(m, 0.1) >= 0.8),
        (["--advantage", "0.1"], lambda m: pe.delta(m, 0.0) <= 0.1),
    ],
)
def test_targets(
    capsys: pytest.CaptureFixture[str],
    key: str,
    arguments: list[str],
    better: float,
    target: list[str],
    question: Any,
) -> None:
    value = ask(capsys, "--vary", key, *arguments, *target)["value"]
    fixed = {"noise": "1", "p": "0.01", "steps": "1000"}

    def mechanism(x: float) -> pe.Mechanism:
        numbers = {**fixed, key: x}
        return pe.dp_sgd(numbers["noise"], numbers["p"], int(float(numbers["steps"])))

    assert question(mechanism(value))
    beyond = value + 1 if key == "steps" else value * (1 - 1e5 * better)
    assert not question(mechanism(beyond))


def test_phases_and_several_targets(capsys: pytest.CaptureFixture[str]) -> None:
    phases = ["--phase", "p=0.01,steps=100", "--phase", "noise=3,p=0.02,steps=900"]
    one = ["--epsilon", "2", "--delta", "1e-6"]
    other = ["--kappa", "1e-3", "--gamma", "0.002"]
    both = ask(capsys, *phases, *one, *other)
    assert [figure["target"] for figure in both["achieved"]] == ["EpsilonDelta", "Gamma"]
    assert len(both["mechanism"]) == 2
    values = [ask(capsys, *phases, *target)["value"] for target in (one, other)]
    assert both["value"] == max(values)


def test_words(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["calibrate", "--p", "0.1", "--steps", "10"]
    for target, words in (
        (["--kappa", "0.1", "--gamma", "0.2"], "achieves gamma(0.1) 0."),
        (["--alpha", "0.1", "--beta", "0.7"], "achieves beta(0.1) 0.7"),
        (["--advantage", "0.2"], "achieves advantage 0."),
        (["--mu", "1"], "achieves mu 0.99999"),
        (["--epsilon", "1", "--delta", "1e-6", "--adjacency", "add"], "(adjacency add)"),
    ):
        assert main([*run, *target]) == 0
        assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--p", "0.1", "--steps", "10"], "no target"),
        (["--p", "0.1", "--epsilon", "1"], "--epsilon and --delta go together"),
        (["--p", "0.1", "--slack", "1"], "--slack goes with --mu"),
        (
            ["--noise", "1", "--advantage", "0.1"],
            "noise is given in every phase; omit it in the phase where it is to be found, or have",
        ),
        (
            ["--p", "0.1 0.2", "--steps", "9", "--advantage", "0.1"],
            "here, got a grid: ask once for",
        ),
        (["--p", "0.1", "--advantage", "2"], "--advantage must lie in [0, 1], got 2"),
        (["--p", "0.1", "--advantage", "x"], "--advantage must be a number"),
        (["--p", "0.1", "--steps", "9", "--kappa", "0.1", "--gamma", "0.05"], "within reach"),
        (
            ["--p", "0.1", "--steps", "1", "--epsilon", "0", "--delta", "0"],
            "no finite noise meets it",
        ),
        (["--p", "0.1", "--advantage", "0.1", "--digits", "16"], "--digits must be at most 15"),
        (["--p", "0.1", "--advantage", "0.1", "--adjacency", "x"], "adjacency must be one of"),
        (["--p", "0.1", "--advantage", "0.1"], "a sampled mechanism needs steps or epochs"),
        (["--p", ".1", "--steps", "9", "--advantage", "1.1"], "must lie in [0, 1], got 1.1"),
        # advice that works: noise is what is found
        (["--epsilon", "1", "--delta", "1e-5"], "give a run file, --steps or --phase"),
        (["--vary", "steps", "--epsilon", "1", "--delta", "1e-5"], "a run file, --noise or"),
        (
            ["--p", "0.1", "--steps", "9", "--epsilon", "1e-5", "--delta", "1"],
            "meets the target epsilon 1e-5, delta 1: δ = 1 is no constraint. Were ε and δ swapped?",
        ),
        (
            ["--vary", "steps", "--noise", "1e9", "--p", "1e-9", "--epsilon", "9", "--delta", ".5"],
            "every number of steps from 1e3 to 9e15 meets the target",
        ),
    ],
)
def test_wrong_input(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.startswith("pyengine: error: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--p", "0.1", "--steps", "10", "--delta", "0", "--epsilon", "1"],
        ["--p", "0.1", "--steps", "10", "--alpha", "0.1", "--beta", "0.9"],
    ],
)
def test_what_is_out_of_reach_is_said_in_words(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith("pyengine: error: target must be ")
    assert message.count("\n") == 1
    assert not re.search(r"[A-Za-z]\(|=|Fraction", message)


def test_whether_a_target_is_proven_to_be_met_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    two = ["--epsilon", "1", "--delta", "1e-6", "--kappa", "1e-3", "--gamma", ".1"]
    found = ask(capsys, "--p", "0.01", "--steps", "9", *two, "--alpha", ".1", "--beta", ".5")
    assert [each["certainty"] for each in found["achieved"]] == ["proven"] * 3
    fit = ["--p", "0.1", "--steps", "9", "--mu", "0.5", "--slack", "1e-6"]
    closed = ["--steps", "1000", "--mu", "1"]
    for question in (fit, closed, [*fit, "--proven"], [*closed, "--proven"]):
        assert ask(capsys, *question)["achieved"][0]["certainty"] == "proven"
    profile = pe.from_profile(lambda e: 0.1 * np.exp(-e), epsilon=np.linspace(0.0, 9.0, 50))
    assert not _is_proven(pe.targets.GaussianDP(1.0, 1e-3), profile)
    pure = ["--mechanism", "laplace", "--epsilon", "1", "--delta", "0"]
    assert ask(capsys, *pure)["achieved"][0]["certainty"] == "proven"


def test_errors_of_a_file_name_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text("p = 1.5\nsteps = 9\n", encoding="utf-8")
    assert main(["calibrate", str(path), "--epsilon", "1", "--delta", "1e-6"]) == 2
    assert (
        "run.toml, line 1: sampling_probability must lie in [0, 1], got '1.5'"
        in capsys.readouterr().err
    )
