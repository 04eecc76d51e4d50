"""The conformance kit: truths, processes, time limits, tables, JSON and picture."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import pyengine as pe
from pyengine.accounting.conformance.adapters import KNOWN, find
from pyengine.accounting.conformance.adapters.own import Pyengine
from pyengine.accounting.conformance.report import as_objects, groups
from pyengine.cli import main
from pyengine.conformance import Case, Result, load, run

pytest.importorskip("matplotlib")

ADAPTER = '''
import os, time
import pyengine
from pyengine.accounting.conformance.adapters.own import Pyengine


class Loose(Pyengine):
    """Safe, and talkative."""

    distribution = "numpy"
    methods = {"by half": ("delta",), "silent": ()}

    def answer(self, method, setting, question, at):
        print("computing")
        return 1.5 * super().answer("auto", setting, question, at)


class Wrong(Pyengine):
    distribution = "numpy"
    methods = {"guess": ("gamma", "epsilon")}

    def answer(self, method, setting, question, at):
        return float("nan") if question == "epsilon" else at / 2


class Broken(Pyengine):
    distribution = "numpy"
    methods = {"slow": ("delta",), "raises": ("delta",), "dies": ("delta",), "well": ("delta",)}

    def answer(self, method, setting, question, at):
        if method == "slow":
            time.sleep(60)
        if method == "raises":
            raise OverflowError("math range error")
        if method == "dies":
            os._exit(3)
        return super().answer("auto", setting, question, at)


class OnlyGroups(Pyengine):
    """Safe, for groups alone."""

    distribution = "numpy"
    methods = {"groups": ("delta",)}

    def supports(self, method, setting):
        assert method == "groups"
        return setting.scheme == "group"

    def answer(self, method, setting, question, at):
        assert setting.group_size == 2
        return 2 * super().answer("auto", setting, question, at)


class Silent:
    """Says nothing of schemes, and so is asked about Poisson samples."""

    distribution = "numpy"
    methods = {"any": ("delta",)}

    def answer(self, method, setting, question, at):
        assert setting.scheme == "poisson"
        return 1.0


class Unknown(Pyengine):
    distribution = "no-such-distribution"
'''


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peer.py").write_text(ADAPTER)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)


def some(question: str, setting: str = "a") -> list[Case]:
    return [c for c in load() if (c.question, c.setting.name) == (question, setting)]


POISSON = ("a", "b", "c1", "c2")
SCHEMES = ("group", "truncated", "fixed", "replaced", "epoch", "epochs")
ALONE = ("laplace", "integers", "geometric", "coins", "tree", "choices", "best", "curve")
# How far bounds from above may be from what is attained, which is what the grid has of these.
ABOVE = {"choices": 0.5, "best": 6900.0, "curve": 4e-5}


def test_truths() -> None:
    """The engines know nothing of these values; grid.json says what made them."""
    cases = load()
    assert list(dict.fromkeys(case.setting.name for case in cases)) == [
        *POISSON,
        *SCHEMES,
        *ALONE,
    ]
    own = Pyengine()
    for case in cases:
        value = own.answer("auto", case.setting, case.question, float(case.at))
        if case.setting.name in ABOVE:
            assert 1.0 <= value / float(case.truth) <= 1.0 + ABOVE[case.setting.name], case
            continue
        digits = "1e-11" if case.setting.name == "epochs" else "1e-12"
        assert abs(Decimal(value) / Decimal(case.truth) - 1) < Decimal(digits), case
        if case.setting.scheme == "poisson" and case.question == "gamma":
            # what an accountant of both orders must answer, too
            setting = case.setting
            run = pe.dp_sgd(setting.noise_multiplier, setting.sampling_probability, setting.steps)
            both = pe.gamma_bound(run, float(case.at), adjacency="add_remove")
            assert both == pytest.approx(value, rel=1e-12)


def test_truths_are_those_of_the_shared_files() -> None:
    """Groups and allocation are in files of truths, too, whose makers are other programs."""
    data = Path(__file__).parent / "data"
    mixtures = json.loads((data / "gaussian_mixture.json").read_text())
    allocated = json.loads((data / "random_allocation.json").read_text())
    (mixture,) = (
        m
        for m in mixtures
        if m["group"] == 2 and m["question"] + m["adjacency"] == "deltaremove" and m["steps"] == 100
    )
    (group,) = some("delta", "group")
    assert (float(mixture["argument"]), group.setting.group_size) == (float(group.at), 2)
    assert abs(Decimal(mixture["value"]) / Decimal(group.truth) - 1) < Decimal("1e-14")
    published = {
        (row["question"], float(row["argument"])): row["value"]
        for row in allocated
        if (row["sigma"], row["steps"], row["epochs"]) == ("1", 100, 5)
        and (row["question"] == "gamma") == (row["adjacency"] == "add")
    }
    several = [case for case in load() if case.setting.name == "epochs"]
    assert len(several) == 3
    for case in several:
        assert published[case.question, float(case.at)] == case.truth


def test_what_is_attained_is_less_where_the_pair_only_dominates() -> None:
    """A bound between both is no error of a tighter accountant."""
    bounded = [case for case in load() if case.attained]
    assert {case.setting.name for case in bounded} == {"truncated"}
    for case in bounded:
        low, high = float(case.attained), float(case.truth)
        assert 0.0 < low < high
        assert not Result("x", "", "m", case, 0.5 * (low + high), None, "").unsafe
        assert Result("x", "", "m", case, 0.999 * low, None, "").unsafe
    # a record that moves alone is a Poisson sample, at the chance to stay in the batch
    case = some("delta", "truncated")[0]
    size, n, p = case.setting.batch_size, case.setting.dataset_size, Fraction(1, 128)
    weights = [math.comb(n - 1, k) * p**k * (1 - p) ** (n - 1 - k) for k in range(size)]
    inside = sum(w * p for w in weights)
    more = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(size + 1)]
    inside += (1 - sum(more)) * Fraction(size, n)
    alone = pe.dp_sgd(case.setting.noise_multiplier, inside, 1)
    assert pe.delta(alone, float(case.at)) == pytest.approx(float(case.attained), rel=1e-12)


def test_settings_in_words() -> None:
    words = {case.setting.name: case.setting.words for case in load()}
    assert words["a"] == "noise 0.8, p 0.001, 10,000 steps"
    assert words["group"] == "noise 2, p 0.1, groups of 2, 100 steps"
    assert words["truncated"] == "noise 1, p 0.0078125, cut to 20 of 2,048, 1 step"
    assert words["fixed"] == "noise 2, p 0.03125, 256 of 8,192 without replacement, 200 steps"
    assert words["replaced"] == (
        "noise 1, p 0.125, 16 of 128 without replacement, 1 step, substitution"
    )
    assert words["epochs"] == "noise 1, p 0.01, random allocation, 5 x 100 steps"
    assert words["integers"] == "discrete Gaussian noise 5, 20 steps"
    assert words["coins"] == (
        "a coin in place of a bit with probability 0.9, 20 steps, substitution"
    )
    assert words["tree"] == "noise 5 on the nodes of a tree, 64 steps"
    assert words["best"] == "noise 4, the best of 10 runs (geometric mean), 1 step"


@pytest.mark.usefixtures("peer")
def test_answers() -> None:
    cases = [some("delta")[0], some("gamma")[2], some("epsilon")[0]]
    results, absent = run(["pyengine", "peer:Loose", "peer:Wrong"], cases)
    assert not absent
    found = {(r.accountant, r.method, r.case.question): r for r in results}
    assert len(results) == len(found) == 6
    own = found["pyengine", "auto", "delta"]
    assert own.error == pytest.approx(0.0, abs=1e-12)
    assert not own.unsafe
    assert own.version == pe.__version__
    loose = found["peer:Loose", "by half", "delta"]
    assert loose.error == pytest.approx(0.5, rel=1e-9)
    assert not loose.unsafe
    assert loose.seconds is not None
    wrong = found["peer:Wrong", "guess", "gamma"]
    assert wrong.unsafe
    assert found["peer:Wrong", "guess", "epsilon"].unsafe  # NaN is no bound


@pytest.mark.usefixtures("peer")
def test_what_goes_wrong_costs_one_answer() -> None:
    results, absent = run(
        ["peer:Broken", "peer:Unknown", "peer:Missing", "nobody"], some("delta")[:1], limit=5.0
    )
    assert [(r.method, r.message) for r in results] == [
        ("slow", "no answer in 5 s"),
        ("raises", "OverflowError: math range error"),
        ("dies", "its process ended with code 3"),
        ("well", ""),
    ]
    assert [r.value is None for r in results] == [True, True, True, False]
    assert not any(r.unsafe for r in results)
    assert "no-such-distribution" in absent["peer:Unknown"]
    assert "has no class Missing" in absent["peer:Missing"]
    assert "must be one of pyengine, dp_accounting" in absent["nobody"]


@pytest.mark.usefixtures("peer")
def test_what_is_not_supported_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [some("delta", "b")[0], some("delta", "group")[0], some("delta", "epoch")[0]]
    results, absent = run(["pyengine", "peer:OnlyGroups", "peer:Silent"], cases)
    assert not absent
    found = {(r.accountant, r.case.setting.name): r for r in results}
    assert {where for where, r in found.items() if not r.supported} == {
        ("peer:OnlyGroups", "b"),
        ("peer:OnlyGroups", "epoch"),
        ("peer:Silent", "group"),
        ("peer:Silent", "epoch"),
    }
    assert found["peer:OnlyGroups", "group"].error == pytest.approx(1.0, rel=1e-9)
    assert found["peer:Silent", "b"].value == 1.0
    assert all(
        found["pyengine", s].error == pytest.approx(0.0, abs=1e-12) for s in ("b", "group", "epoch")
    )
    rows = [row for _, lines in groups(results, str) for row in lines]
    assert [row[3:] for row in rows].count(["\N{EN DASH}", "", "", "", ""]) == 4
    assert [row["supported"] for row in as_objects(results)].count(False) == 4
    assert main(["conformance", "peer:OnlyGroups", "--settings", "group", "epoch"]) == 0
    printed = capsys.readouterr().out
    assert "group: noise 2, p 0.1, groups of 2, 100 steps" in printed
    assert "0 of 1 answers are unsafe" in printed


def result(value: float | None, question: str = "gamma", accountant: str = "other") -> Result:
    case = some(question)[0]
    return Result(
        accountant, "1.0", "m", case, value, 0.5 if value else None, "" if value else "why"
    )


def test_report() -> None:
    truth = float(some("gamma")[0].truth)
    results = [
        result(truth, accountant="pyengine"),
        result(truth * 0.5),
        result(truth * 20),
        result(None),
        result(float("inf")),
    ]
    ((setting, rows),) = groups(results, lambda word: f"<{word}>")
    assert setting.name == "a"
    assert [row[4] for row in rows] == ["0", "-50 %", "x 20", "", "x inf"]
    assert [row[-1] for row in rows] == ["", "<UNSAFE>", "", "why", ""]
    assert [row[6] for row in rows] == ["1x", "1x", "1x", "", "1x"]
    objects = as_objects(results)
    assert [row["unsafe"] for row in objects] == [False, True, False, False, False]
    assert objects[1]["relative_error"] == pytest.approx(-0.5)
    assert objects[3]["time_ratio"] is None


def test_rounding_is_not_unsafe() -> None:
    truth = float(some("gamma")[0].truth)
    assert not result(truth * (1 - 1e-12)).unsafe
    assert result(truth * (1 - 1e-8)).unsafe


@pytest.mark.usefixtures("peer")
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    picture = tmp_path / "errors.png"
    arguments = ["conformance", "peer:Loose", "peer:Wrong", "nobody:None", "--settings", "a"]
    assert main([*arguments, "--picture", str(picture)]) == 1
    printed = capsys.readouterr()
    assert f"pyengine {pe.__version__}, peer:Loose " in printed.out
    assert "a: noise 0.8, p 0.001, 10,000 steps" in printed.out
    assert "γ(1e-5)   2.6444857e-5   peer:Wrong guess" in printed.out
    assert "6 of 8 answers are unsafe" in printed.out
    assert "nobody:None takes no part" in printed.err
    with Image.open(picture) as image:
        assert image.size[0] > 1000
        assert len(image.convert("RGB").getcolors(10**6) or []) > 50
    assert main(["conformance", "peer:Loose", "--settings", "a", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["rows"]) == 8 + 2
    assert {row["accountant"] for row in content["rows"]} == {"pyengine", "peer:Loose"}


def test_the_guide_s_accountant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path(__file__).parents[1] / "docs" / "accountants.md"
    code = re.search(r"^```python\n(import math.*?)^```", guide.read_text("utf-8"), re.M | re.S)
    assert code is not None
    (tmp_path / "mine.py").write_text(code.group(1), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["conformance", "mine:MyAccountant", "--settings", "a"]) == 1
    assert "2 of 2 answers are unsafe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nobody:None", "--settings", "a"],
            "no accountant takes part: pip install 'pyengine-dp[peers]'",
        ),
        (["opacsu"], "prv_accountant, riskcal, or module:Class; got 'opacsu'"),
        (
            ["--settings", "z"],
            f"--settings must be among {', '.join((*POISSON, *SCHEMES, *ALONE))}; got 'z'",
        ),
        (["--time-limit", "0"], "--time-limit must be positive and finite, got '0'"),
        (["--picture", "errors.gif"], "--picture must end in .png, .svg, .pdf"),
    ],
)
def test_wrong_input(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "riskcal", None)
    with pytest.raises(ImportError):
        find("riskcal")
    assert set(KNOWN) == {
        "pyengine",
        "dp_accounting",
        "gdpnum",
        "opacus",
        "prv_accountant",
        "riskcal",
    }
