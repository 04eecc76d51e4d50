"""Random TOML, CSV, JSON and command lines: understood, or refused in words; never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from thorough import ALL

from pyengine.cli import main
from pyengine.cli.errors import FOUND, UNUSABLE
from pyengine.workbench.tables.spec import Specification, SpecificationError, parse
from pyengine.workbench.verification.claims import Claim, ClaimsError, read

COMMON = settings(
    max_examples=300 if ALL else 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

NUMBERS = st.one_of(
    st.sampled_from(
        [
            "0",
            "-0.0",
            "1",
            "-1",
            "0.5",
            "1e-5",
            "1e-400",
            "1e400",
            "9" * 400,
            "1/3",
            "1/0",
            "0.1/",
            "inf",
            "-inf",
            "nan",
            "+1",
            "1_000",
            "0x10",
            "1e",
            ".",
            "",
            " ",
            "1,5",
            "½",
            "٣",
            "1e9999999",
        ]
    ),
    st.floats().map(repr),
    st.integers(-(10**30), 10**30).map(str),
)
TEXT = st.text(max_size=12)
NAMES = st.sampled_from(
    [
        "name",
        "mechanism",
        "noise",
        "noise_multiplier",
        "p",
        "sampling_probability",
        "steps",
        "phase",
        "batch_size",
        "dataset_size",
        "truth_probability",
        "categories",
        "epsilon",
        "delta",
        "alpha",
        "kappa",
        "sensitivity",
        "adjacency",
        "threat_model",
        "question",
        "at",
        "value",
        "lower",
        "upper",
        "workflow",
        "argument",
        "engine",
        "digits",
        "formats",
        "special",
        "function",
        "p_b",
    ]
)
WORDS = st.sampled_from(
    [
        "gaussian",
        "laplace",
        "dp_sgd",
        "discrete_laplace",
        "randomized_response",
        "generic",
        "gamma_bound",
        "tradeoff",
        "trade_off",
        "add",
        "remove",
        "add_remove",
        "substitute",
        "dp",
        "relaxed",
        "relaxed 3",
        "auto",
        "reference",
        "csv",
        "ncx2_cdf",
        "FinitePair",
        "LaplaceMechanism",
    ]
)


# ---- TOML ----

QUOTED = TEXT.map(json.dumps)  # a JSON string without surrogates is a TOML one, too
LITERAL = st.one_of(
    WORDS.map(json.dumps),
    QUOTED,
    NUMBERS,
    st.sampled_from(["true", "1979-05-27", "07:32:00", "[]", "{}", "[[]]", "[1, [2]]"]),
)
VALUE = st.recursive(
    LITERAL, lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
)
PAIR = st.tuples(NAMES, VALUE).map(" = ".join)
HEAD = st.sampled_from(
    [
        "",
        "[[workflow]]",
        "[workflow]",
        "[[workflow.phase]]",
        "[gamma_bound]",
        "[delta]",
        "[epsilon]",
        "[trade_off]",
        "[[special]]",
        "[[phase]]",
        "[phase]",
        "[[gamma]]",
        "[a.b]",
    ]
)
BLOCK = st.tuples(HEAD, st.lists(PAIR, max_size=5, unique_by=lambda pair: pair.split(" = ")[0]))
TOML = st.lists(BLOCK, max_size=4).map(
    lambda blocks: "\n".join("\n".join([head, *pairs]) for head, pairs in blocks)
)
GOOD = """\
[[workflow]]
name = "a"
noise_multiplier = {}
sampling_probability = 0.5
steps = {}
[gamma_bound]
kappa = [{}]
adjacency = ["add"]
"""


def is_said(error: Exception, source: str) -> None:
    """A message names the source and fits into a few lines."""
    assert str(error).startswith((f"{source}: ", f"{source}, line "))
    assert len(str(error)) > len(source) + 5


def specification(text: str) -> None:
    try:
        found = parse(text, "my.toml")
    except SpecificationError as error:
        is_said(error, "my.toml")
    else:
        assert isinstance(found, Specification)
        assert found.cells >= 1


@COMMON
@given(st.one_of(TOML, st.text()))
@example("a = " + "[" * 5000)
@example("phase = [1]")
@example("[[workflow]]\nname = 'a'\nphase = [1]")
def test_specifications(text: str) -> None:
    specification(text)


@COMMON
@given(VALUE, VALUE, VALUE)
def test_specifications_with_one_wrong_value(noise: str, steps: str, kappa: str) -> None:
    specification(GOOD.format(noise, steps, kappa))


# ---- CSV and JSON ----

ROW: dict[str, Any] = {
    "question": "gamma_bound",
    "adjacency": "add",
    "noise_multiplier": "1",
    "sampling_probability": "0.01",
    "steps": "10",
    "at": "1e-3",
    "value": "2e-3",
}
CELL = st.one_of(NUMBERS, WORDS, TEXT)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), CELL),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)


def claims(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        found = read(path)
    except ClaimsError as error:
        is_said(error, str(path))
    else:
        assert found
        assert all(isinstance(claim, Claim) for claim in found)


def as_csv(rows: list[list[str]]) -> bytes:
    lines = [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@COMMON
@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.lists(st.one_of(NAMES, CELL), max_size=6), max_size=4).map(as_csv),
    )
)
def test_csv(tmp_path: Path, content: bytes) -> None:
    claims(tmp_path / "mine.csv", content)


@COMMON
@given(st.sampled_from(sorted(ROW)), CELL)
def test_csv_with_one_wrong_cell(tmp_path: Path, name: str, cell: str) -> None:
    row = {**ROW, name: cell}
    claims(tmp_path / "mine.csv", as_csv([list(row), list(row.values())]))


@COMMON
@given(st.sampled_from([".json", ".jsonl"]), st.one_of(JSON, st.lists(JSON)))
@example(".json", {"rows": [{**ROW, "steps": 10**400}]})
@example(".json", {"rows": [{**ROW, "value": float("nan")}]})
def test_json(tmp_path: Path, suffix: str, content: Any) -> None:
    claims(tmp_path / f"mine{suffix}", json.dumps(content).encode())


@COMMON
@given(st.sampled_from(sorted(ROW)), JSON)
def test_json_with_one_wrong_cell(tmp_path: Path, name: str, cell: Any) -> None:
    claims(tmp_path / "mine.json", json.dumps([{**ROW, name: cell}]).encode())


@pytest.mark.parametrize(
    "content", [b"[" * 50_000, b'{"rows":' * 9_000, b"\xff\xfe", b"", b"[1e99999]", b"9" * 5000]
)
def test_json_of_extremes(tmp_path: Path, content: bytes) -> None:
    for suffix in (".json", ".jsonl", ".csv"):
        claims(tmp_path / f"mine{suffix}", content)


# ---- the command line ----

QUESTIONS = {"gamma": "--kappa", "tradeoff": "--alpha", "delta": "--epsilon", "epsilon": "--delta"}
# few steps: what is wrong about a command line is found before its question is answered
STEPS = st.one_of(
    st.sampled_from(["1", "2", "3"]), TEXT, st.sampled_from(["0", "-1", "1.5", "nan"])
)
PHASE = st.lists(st.tuples(NAMES, st.one_of(CELL, STEPS)).map("=".join), max_size=4).map(",".join)
FLAG = st.one_of(
    st.tuples(st.just("--noise"), st.one_of(NUMBERS, st.sampled_from(["1", "2.5"]))),
    st.tuples(st.just("--p"), st.one_of(NUMBERS, st.sampled_from(["1", "0.1"]))),
    st.tuples(st.just("--steps"), STEPS),
    st.tuples(st.just("--mechanism"), WORDS),
    st.tuples(st.just("--batch-size"), NUMBERS),
    st.tuples(st.just("--dataset-size"), NUMBERS),
    st.tuples(st.just("--adjacency"), WORDS),
    st.tuples(st.just("--threat-model"), WORDS),
    st.tuples(st.just("--phase"), PHASE),
    st.tuples(st.just("--file"), TEXT),
    st.tuples(st.sampled_from(["--json", "--bounds", "--no-such-option", "-x", "--"])),
)
LINE = st.tuples(
    st.sampled_from(sorted(QUESTIONS)),
    st.lists(st.one_of(NUMBERS, TEXT), max_size=2),
    st.lists(FLAG, max_size=4),
).map(lambda t: [t[0], QUESTIONS[t[0]], *t[1], *(word for flag in t[2] for word in flag)])


def answered(arguments: list[str]) -> int:
    """Exit code of a command, with nothing on the terminal."""
    streams = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = main(arguments)
        except SystemExit as stopped:  # argparse
            code = int(stopped.code or 0)
    said = streams[1].getvalue()
    assert code in (0, FOUND, UNUSABLE), f"{shlex.join(arguments)}: {code}\n{said}"
    assert "Traceback" not in said, f"{shlex.join(arguments)}\n{said}"
    assert code == 0 or said.strip(), f"{shlex.join(arguments)}: {code} without a word"
    return code


@COMMON
@given(LINE)
@example(["gamma", "--kappa", "1e-3", "--noise", "1", "--p", "1e-400"])
@example(["epsilon", "--delta", "1e-400", "--noise", "1"])
@example(["delta", "--epsilon", "0", "9" * 400])
@example(["delta", "--epsilon", "0", "--noise", "1", "--steps", "9", "9" * 400])
def test_command_lines(arguments: list[str]) -> None:
    answered(arguments)


@COMMON
@given(st.one_of(TOML, st.binary(max_size=40).map(lambda b: b.decode("latin-1"))))
@example("phase = [1]")
@example("phase = [[]]")
@example("[[phase]]\nnoise = [1]")
@example("a = " + "[" * 5000)
def test_files_of_phases(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text.replace("steps = ", "steps = 1 #"), encoding="utf-8", errors="replace")
    answered(["gamma", "--kappa", "1e-3", "--file", str(path)])


def test_the_line_that_the_others_vary_is_good(tmp_path: Path) -> None:
    assert answered(["gamma", "--kappa", "1e-3", "--noise", "1", "--steps", "3"]) == 0
    assert parse(GOOD.format("1", "10", "1e-3"), "my.toml").cells == 1
    claims(tmp_path / "mine.csv", as_csv([list(ROW), list(ROW.values())]))
    assert read(tmp_path / "mine.csv")[0].value == "2e-3"
