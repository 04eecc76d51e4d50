"""Special functions and threat models in tables, and their verification."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

import pyengine as pe
from pyengine.workbench.tables.cells import Cell
from pyengine.workbench.tables.run import run
from pyengine.workbench.tables.spec import SpecificationError, parse
from pyengine.workbench.tables.specials import special, special_cells
from pyengine.workbench.tables.units import units
from pyengine.workbench.verification.claims import ClaimsError, read
from pyengine.workbench.verification.verdicts import Rule, judge

SPEC = """
engine = "{engine}"
[gamma_bound]
kappa = ["1e-3"]
adjacency = ["add"]
threat_model = ["relaxed", "dp", "relaxed( 30 )", "relaxed(2, mean)"]
[[workflow]]
name = "two noises"
[[workflow.phase]]
mechanism = "GaussianMechanism"
noise_multiplier = 1
steps = 1
[[workflow.phase]]
mechanism = "GaussianMechanism"
noise_multiplier = 2
steps = 1
[[special]]
function = "ncx2_sf"
x = [1, "100"]
df = [1, 2.5]
nc = "1/3"
[[special]]
function = "marcum_p"
name = "P"
b = 3
order = 1
a = [0, 2]
[[special]]
function = "ncx2_isf"
p = ["1e-5", 0.25]
df = 3
nc = 7
"""
TWO = pe.compose(pe.GaussianMechanism("1"), pe.GaussianMechanism("2"))


def table(directory: Path, engine: str) -> list[dict[str, str]]:
    assert run(parse(SPEC.format(engine=engine), "spec"), directory, workers=0) == 0
    with (directory / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_table(tmp_path: Path, engine: str) -> None:
    if engine == "reference":
        pytest.importorskip("flint")
    lines = table(tmp_path, engine)
    assert len(lines) == 4 + 4 + 2 + 2
    models = [line["threat_model"] for line in lines]
    assert models == ["relaxed", "dp", "relaxed(30)", "relaxed(2, mean)"] + [""] * 8
    relaxed = pe.threat_models.Relaxed
    for line, model in zip(lines, ["relaxed", "dp", relaxed(30), relaxed(2, "mean")], strict=False):
        value = pe.gamma_bound(TWO, 1e-3, threat_model=model)
        assert float(line["value"]) == pytest.approx(value, rel=1e-13)
    special = pe.special
    expected = [
        ("ncx2_sf (df=1)", special.ncx2_sf(1.0, 1.0, 1 / 3)),
        ("ncx2_sf (df=1)", special.ncx2_sf(100.0, 1.0, 1 / 3)),
        ("ncx2_sf (df=2.5)", special.ncx2_sf(1.0, 2.5, 1 / 3)),
        ("ncx2_sf (df=2.5)", special.ncx2_sf(100.0, 2.5, 1 / 3)),
        ("P (a=0)", special.marcum_p(1.0, 0.0, 3.0)),
        ("P (a=2)", special.marcum_p(1.0, 2.0, 3.0)),
        ("ncx2_isf", special.ncx2_isf(1e-5, 3.0, 7.0)),
        ("ncx2_isf", special.ncx2_isf(0.25, 3.0, 7.0)),
    ]
    for line, (name, value) in zip(lines[4:], expected, strict=True):
        assert (line["workflow"], line["mechanism"], line["adjacency"]) == (name, "", "")
        assert float(line["value"]) == pytest.approx(value, rel=1e-13)
        assert Fraction(line["lower"]) <= Fraction(line["value"]) <= Fraction(line["upper"])
        certainty = "proven" if engine == "reference" else "estimate"
        assert line["certainty"] == certainty


def test_estimated_errors_hold_the_truth(tmp_path: Path) -> None:
    pytest.importorskip("flint")
    fast = table(tmp_path / "auto", "auto")[4:]
    for line in fast:
        others = [line[key] for key in ("df", "nc", "order", "a") if line[key]]
        reference = pe.reference.special
        exact = [Fraction(float(text)) for text in others]
        at = Fraction(line["at"]) if line["argument"] != "p" else Fraction(float(line["at"]))
        if line["question"] == "marcum_p":
            truth = reference.marcum_q_complement(*exact, at)
        else:
            truth = getattr(reference, line["question"])(at, *exact)
        assert Fraction(line["lower"]) < Fraction(truth.decimal(40)) < Fraction(line["upper"])


def test_any_executor_changes_no_byte(tmp_path: Path) -> None:
    specification = parse(SPEC.format(engine="auto"), "spec")
    run(specification, tmp_path / "one", workers=0)
    with ThreadPoolExecutor(2) as executor:
        run(specification, tmp_path / "two", executor=executor, workers=2)
    for name in ("table.csv", "table.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_table_of_functions_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[[special]]\nfunction = "ncx2_cdf"\nx = [1, 2, 3]\ndf = 2\nnc = 0\n'
    specification = parse(text, "spec")
    assert (specification.cells, len(units(specification))) == (3, 1)
    run(specification, tmp_path, workers=0)
    assert "x =            1       2       3" in capsys.readouterr().out
    (line, *_) = (tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(line)
    assert row["mechanism"] is None
    assert row["value"] == pytest.approx(0.3934693402873666)
    assert "threat_model" not in row


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('function = "ncx2_sf"\nx = 1\ndf = 1', "special 1: nc is missing"),
        ('function = "ncx2_sf"\ndf = 1\nnc = 1', "special 1: x is missing"),
        ('function = "ncx2"\nx = 1', "function must be one of"),
        ('function = "ncx2_sf"\nx = 1\ndf = 0\nnc = 1', "df must be"),
        ('function = "ncx2_sf"\nx = -1\ndf = 1\nnc = 1', "x must be"),
        ('function = "ncx2_ppf"\np = 2\ndf = 1\nnc = 1', "p must"),
        ('function = "marcum_q"\nb = 1\norder = []\na = 1', "order must be a number or a list"),
        ('function = "marcum_q"\nb = [1, 1.0]\norder = 1\na = 1', "b holds a value twice"),
        ('function = "marcum_q"\nb = 1\norder = 1\na = 1\nc = 2', "unknown key 'c'"),
        ('function = "marcum_q"\nname = ""\nb = 1\norder = 1\na = 1', "name must be"),
    ],
)
def test_wrong_functions(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        parse(f"[[special]]\n{text}\n", "spec")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("3", "threat_model must be 'dp', 'relaxed'"),
        ('["strict"]', "threat_model must be 'dp'"),
        ('["relaxed(0)"]', "dimension"),
        ('["relaxed", "relaxed(1)"]', "threat_model holds a value twice"),
    ],
)
def test_wrong_threat_models(words: str, message: str) -> None:
    text = f"[delta]\nepsilon = [1]\nadjacency = ['add']\nthreat_model = {words}\n"
    text += "[[workflow]]\nname = 'a'\nmechanism = 'GaussianMechanism'\nnoise_multiplier = 1\n"
    with pytest.raises(SpecificationError, match=message):
        parse(f"{text}steps = 1\n", "spec")


def test_verify_reads_both(tmp_path: Path) -> None:
    lines = table(tmp_path, "auto")
    claims = read(tmp_path / "table.csv")
    assert [claim.threat_model for claim in claims[:4]] == [
        "relaxed",
        "dp",
        "relaxed(30)",
        "relaxed(2, mean)",
    ]
    special = claims[4]
    value = Fraction(lines[4]["value"])
    for error, word in (("0", "agrees"), ("1e-12", "within tolerance"), ("1e-3", "WRONG")):
        truth = str(float(value * (1 + Fraction(error))))
        cell = Cell(truth, truth, truth, "0", "proven", "reference")
        made = read_one(tmp_path, lines[4], special.value)
        assert judge(made, cell, Rule(Fraction("1e-9"))).word == word


def read_one(directory: Path, line: dict[str, str], value: str | None) -> object:
    row = {key: cell for key, cell in line.items() if cell and key not in ("lower", "upper")}
    path = directory / "one.json"
    path.write_text(json.dumps([{**row, "value": value}]), encoding="utf-8")
    (claim,) = read(path)
    return claim


def test_verify_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("question,at,df,nc,order,value\nncx2_sf,1,1,1,3,0.5\n", encoding="utf-8")
    with pytest.raises(ClaimsError, match="unknown key 'order'"):
        read(path)


def test_value_below_all_doubles_has_an_upper_bound() -> None:
    """1.7e-621 is 0 in double precision, and not without an error."""
    function = special("ncx2_sf", {"df": "0.5", "nc": "2"})
    (cell,) = special_cells(function, ["3000"], "auto", 30)
    assert (cell.value, cell.lower, cell.upper, cell.error) == ("0.0", "0.0", "5e-324", "5e-324")


def test_dp_sgd_is_a_mechanism_of_a_table(tmp_path: Path) -> None:
    """What every user writes first: the same table as without the word."""
    text = """
formats = ["csv"]
[gamma_bound]
kappa = ["1e-3"]
adjacency = ["add"]
[[workflow]]
name = "run"
noise_multiplier = ["1"]
sampling_probability = "0.01"
steps = [100]
"""
    for name, more in (("with", 'mechanism = "dp_sgd"\n'), ("without", "")):
        assert run(parse(text + more, "test"), tmp_path / name, workers=0) == 0
    first, second = (tmp_path / name / "table.csv" for name in ("with", "without"))
    assert first.read_bytes() == second.read_bytes()
