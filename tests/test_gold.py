"""The gold-standard tables: complete, precise, and what the reference says today."""

from __future__ import annotations

import csv
import hashlib
import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from thorough import ALL

from pyengine.laws.kinds import named_kinds
from pyengine.workbench.tables.cells import Cell
from pyengine.workbench.tables.spec import Specification, load
from pyengine.workbench.tables.specials import FUNCTIONS
from pyengine.workbench.tables.units import Unit, cells_of, solve, units
from pyengine.workbench.verification.claims import Claim, read
from pyengine.workbench.verification.verdicts import Rule, judge

GOLD = Path(__file__).parents[1] / "gold"
SETS = sorted(path.parent.name for path in GOLD.glob("*/spec.toml"))
DIGITS = 30
# Workflows whose cells take many seconds; `make accuracy` takes them, too.
SLOW = (
    "rarely sampled",
    "heavy tails",
    "sampled (",
    "two phases",
    "Hayes: Figure 5, q = 0.01",
    "discrete Gaussian (noise_multiplier=3.5",
    "sampled discrete Gaussian (steps=3)",
    "sampled Laplace",
    "Lebeda: Figure 3",
    "estimated: ",
    "random allocation",
)


@cache
def specification(name: str) -> Specification:
    return load(str(GOLD / name / "spec.toml"))


@cache
def claims(name: str) -> list[Claim]:
    return read(GOLD / name / "table.csv")


@cache
def lines(name: str) -> list[dict[str, str]]:
    with (GOLD / name / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", SETS)
def test_table_is_the_one_of_its_specification(name: str) -> None:
    asked = [
        (unit.workflow, unit.mechanism, unit.question, unit.adjacency, unit.values)
        for unit in units(specification(name))
    ]
    found = [
        (claim.workflow, claim.mechanism, claim.question, claim.adjacency, (claim.at,))
        for claim in claims(name)
    ]
    assert found == asked


@pytest.mark.parametrize("name", SETS)
def test_thirty_digits(name: str) -> None:
    for line in lines(name):
        assert (line["engine"], line["message"]) == ("reference", "")
        assert line["certainty"] in ("proven", "estimate")
        value, lower, upper, error = (
            Decimal(line[key]) for key in ("value", "lower", "upper", "error")
        )
        assert lower <= value <= upper
        assert error <= value * Decimal(10) ** (1 - DIGITS)


def test_the_set_is_large_and_covers_the_mechanisms() -> None:
    everything = [line for name in SETS for line in lines(name)]
    assert len(everything) >= 500
    assert sum(path.stat().st_size for path in GOLD.rglob("*.*")) < 5e6
    vectors = {"FinitePair", "GaussianMixtureMechanism"}  # JSON tells them
    unknown = {"ExponentialMechanism", "ShuffledRandomizer"}  # to the reference
    # made of others, which the tables have
    unknown |= {"GaussianReleases", "Releases", "RevealedMixture", "RepeatAndSelect"}
    unknown |= {"RenyiCurve", "ZeroConcentrated"}  # bounds, without a truth of their own
    unknown |= {
        "SkellamMechanism",
        "DiscreteGaussianSum",
        "AboveThreshold",
        "LikelyAnswer",
    }  # to the reference, too
    assert {line["mechanism"] for line in everything} >= set(named_kinds()) - vectors - unknown
    assert any("FinitePair" in line["mechanism"] for line in everything)
    assert any(line["mechanism"].startswith("[") for line in everything)  # phases
    assert {line["question"] for line in everything} >= set(FUNCTIONS)
    assert any(line.get("batch_size") for line in everything)
    for kind in ("GaussianMechanism", "LaplaceMechanism", "RandomizedResponse"):
        assert any(
            line["mechanism"] == kind and line.get("sampling_probability") for line in everything
        )


def sample(size: int, *, slow: bool = ALL) -> list[tuple[str, int]]:
    """Cells that change when the tables do, and only then."""
    seed = hashlib.sha256(b"".join((GOLD / name / "table.csv").read_bytes() for name in SETS))
    chosen = random.Random(seed.hexdigest())
    cells = [
        (name, index)
        for name in SETS
        for index, claim in enumerate(claims(name))
        if slow or not claim.workflow.startswith(SLOW)
    ]
    return chosen.sample(cells, size)


def answer(claim: Claim, engine: str) -> Cell:
    asked = (claim.mechanism, claim.question, claim.adjacency, (claim.at,))
    (record,) = solve([Unit(0, claim.workflow, *asked, engine, DIGITS, claim.threat_model)])
    (cell,) = cells_of(record)
    return cell


@pytest.mark.parametrize(("name", "index"), sample(60 if ALL else 4))
def test_a_sample_regenerates(name: str, index: int) -> None:
    claim, line = claims(name)[index], lines(name)[index]
    cell = answer(claim, "reference")
    assert cell.value is not None, cell.message
    if line["value"] == "inf":
        assert cell.value == "inf"
        return
    distance = abs(Fraction(cell.value) - Fraction(line["value"]))
    assert distance <= Fraction(cell.error or "") + Fraction(line["error"])
    assert cell.certainty == line["certainty"]


def test_the_engines_agree_with_a_sample() -> None:
    """Double precision beside gold: what it answers is within its bounds."""
    answered = 0
    for name, index in sample(60, slow=True):
        claim = claims(name)[index]
        cell = answer(claim, "auto")
        if cell.value is None:
            continue
        answered += 1
        verdict = judge(claim, cell, Rule(Fraction(0)))
        if verdict.failed and verdict.error is not None and abs(verdict.error) > 0.5:
            # a jump, such as an epsilon that is infinite below the delta of a mechanism: the double
            # nearest to an input lies on its other side, and the next one does not
            after = replace(claim, at=repr(math.nextafter(float(claim.at), math.inf)))
            verdict = judge(claim, answer(after, "auto"), Rule(Fraction(0)))
        # gold has an error, too, and the double nearest to an input is not the input
        if verdict.failed:
            assert verdict.error is not None, (claim, cell)
            assert abs(verdict.error) < 1e-13, (claim, cell)
    assert answered >= 50
