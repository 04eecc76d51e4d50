"""What the repository holds and a command makes: the list of it, and a sample of it made anew.

The list is the table of docs/developer/testing.md.  Other tests make more of it anew, as that table
says.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import math
import random
import re
import shlex
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from thorough import ALL, some

pytest.importorskip("flint")
pytest.importorskip("matplotlib")

from campaign.truth.law import precision
from comparing import compared, comparing, left_out
from test_papers_published import alike

import pyengine as pe
from pyengine.cli.main import make_parser

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
if not (ROOT / "tools" / "accuracy_by_mechanism.py").exists():  # a package without its sources
    pytest.skip("the sources are not here", allow_module_level=True)

NEIGHBOURS = ("generate", "hull", "truth")  # modules of one name in several directories
PRINTED = 1.06  # errors in the tables have two digits


def script(name: str) -> Any:
    """A script of the repository; modules beside it are its own."""
    path, kept = ROOT / name, list(sys.path)
    known = {each: sys.modules.pop(each) for each in NEIGHBOURS if each in sys.modules}
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = kept
        for each in NEIGHBOURS:
            sys.modules.pop(each, None)
        sys.modules.update(known)
    return module


# ---- the list


def made() -> list[list[str]]:
    """Rows of the table: files, command, test, how often."""
    page = (ROOT / "docs" / "developer" / "testing.md").read_text(encoding="utf-8")
    part = page.split("## What commands make")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def files_of(row: list[str]) -> set[Path]:
    return {path for name in re.findall(r"`([^`]+)`", row[0]) for path in ROOT.glob(name)}


@pytest.mark.parametrize("row", made(), ids=lambda row: row[0])
def test_files_commands_and_tests_exist(row: list[str]) -> None:
    assert len(row) == 4, row
    assert all(row), row
    for name in re.findall(r"`([^`]+)`", row[0]):
        assert list(ROOT.glob(name)), name
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`([^`]+)`", row[1]):
        words = [word for word in shlex.split(command) if "=" not in word]
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", targets, re.M), command
        elif words[:2] == ["python", "-m"]:
            module = ROOT / Path(*words[2].split("."))
            assert module.is_dir() or module.with_suffix(".py").is_file(), command
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file(), command
        else:
            assert words[0] == "pyengine", command
            make_parser().parse_args(words[1:])
    for name in re.findall(r"`([^`]+)`", row[2]):
        path, _, test = name.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"def {test or 'test_'}" in text, name


def test_kinds_have_their_truths() -> None:
    """Tests and commands of the table exist, and each kind has 300 random settings and more."""
    page = (ROOT / "docs" / "developer" / "testing.md").read_text(encoding="utf-8")
    part = page.split("| kind | test or command | settings | truth |")[1].split("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in part.splitlines()[2:]]
    assert len(rows) >= 18
    for kind, asked, settings, _ in rows:
        names = re.findall(r"`([^`]+)`", asked)
        assert names, kind
        for name in names:
            path, _, test = name.partition("::")
            if test:
                assert f"def {test}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), name
            else:
                assert (ROOT / shlex.split(name)[1]).is_file(), name
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", settings)]
        assert numbers, kind
        assert min(numbers) >= 300, kind


def test_no_made_file_is_forgotten() -> None:
    """Pictures and data of the docs, of the gold tables and of the tests are all in the list."""
    listed = {path for row in made() for path in files_of(row)}
    kept = [
        path
        for part in ("docs", "gold", "tests/data")
        for kind in ("png", "svg", "csv", "csv.gz", "json", "*_measured.md")
        for path in (ROOT / part).rglob(kind if "*" in kind else f"*.{kind}")
        if not re.search(r"/_|metadata\.json$", path.relative_to(ROOT).as_posix())
    ]
    assert len(kept) > 50
    assert not [path for path in kept if path not in listed]


# ---- tables of the docs


def rows_of(name: str) -> list[list[str]]:
    lines = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in x.strip("|").split("|")] for x in lines if x[:2] == "| "]


def test_adaptive_gain() -> None:
    """Rényi columns anew; as many steps keep the target, and 2 % more do not."""
    tool = script("tools/adaptive_gain.py")
    rows = tool.read()
    assert [(row.epsilon, row.delta) for row in rows] == [case[1:] for case in tool.CASES]
    small = 0
    for row, (menu, epsilon, delta) in zip(rows, tool.CASES, strict=True):
        assert row.menu == " ".join(f"{noise:g}/{rate:g}" for noise, rate in menu)
        assert row.renyi == tool.renyi_steps(menu, epsilon, delta)
        assert tool.renyi_steps(menu, epsilon, delta, row.noise + 1e-3) >= row.steps
        assert tool.renyi_steps(menu, epsilon, delta, row.noise - 1e-3) < row.steps
        assert row.renyi < row.steps <= row.fixed
        if row.steps > (1000 if ALL else 230):
            continue
        small += 1
        words: dict[str, Any] = {"bounds": True, "tolerance": 1e-2}
        steps = tool.mechanisms(menu)
        assert pe.delta(pe.adaptive(steps, row.steps), epsilon, **words).upper <= delta
        more = math.ceil(1.02 * row.steps) + 1
        assert pe.delta(pe.adaptive(steps, more), epsilon, **words).lower > delta
    assert small > 1


MECHANISMS = {row[0]: row for row in rows_of("accuracy_by_mechanism.md")[1:]}
QUICK = ("Gaussian, not sampled", "DP-SGD, one step", "truncated Poisson, one step")
QUICK += ("discrete Laplace", "randomized response", "two probability vectors") if ALL else ()


def test_accuracy_by_mechanism_has_all_kinds() -> None:
    assert list(MECHANISMS) == list(script("tools/accuracy_by_mechanism.py").KINDS)


@pytest.mark.parametrize("name", QUICK)
def test_accuracy_by_mechanism(name: str) -> None:
    """The row anew: the same words and counts, and errors of that size at most."""
    tool = script("tools/accuracy_by_mechanism.py")
    rng = tool.np.random.default_rng([1, list(tool.KINDS).index(name)])
    row = tool.measure(tool.KINDS[name], rng, 24, 60)
    new, old = [cell.strip() for cell in row.split("|")], MECHANISMS[name][1:]
    assert new[:2] + new[4:] == old[:2] + old[4:]
    for one, other in zip([*new[2].split(","), new[3]], [*old[2].split(","), old[3]], strict=True):
        assert float(one) <= 4 * float(other)


def test_accuracy_measured() -> None:
    """Some points: each answer is within the largest error and claim of its row."""
    tool = script("docs/figures/accuracy.py")
    points = json.loads((DATA / "dp_sgd_random.json").read_text(encoding="utf-8"))["points"]
    page = (ROOT / "docs" / "accuracy_measured.md").read_text(encoding="utf-8")
    assert page.startswith(f"{len(points)} points, ")
    rows = {tuple(row[:3]): row[3:] for row in rows_of("accuracy_measured.md")}
    seen = set()
    for point in some(points[::60], 3):
        for r in tool.measure(point):
            if r.engine == "refused":
                continue
            size = "below 1e-30" if r.truth < tool.SPLIT else "above 1e-30"
            key = (tool.SYMBOLS[r.question], r.engine.replace("_", " "), size)
            _, _, error, claim, _ = rows[key]
            assert r.error <= PRINTED * float(error), (key, point)
            assert r.claim <= PRINTED * float(claim), (key, point)
            seen.add(key)
    assert len(seen) >= 5


def test_readme_says_what_was_measured() -> None:
    page = (ROOT / "docs" / "accuracy_measured.md").read_text(encoding="utf-8")
    points, answered, refused = re.findall(r"\d+", page.splitlines()[0])
    above, below = (
        max((row[5] for row in rows_of("accuracy_measured.md") if size in row), key=float)
        for size in ("above 1e-30", "below 1e-30")
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"On {int(points):,} random points" in readme
    assert f"{int(answered) - int(refused):,} proven answers were compared" in readme
    assert f"is {above} above 1e-30 and {below} below; {refused} questions were refused" in readme


def test_adjacency_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = script("docs/figures/adjacency.py")
    kept, made = tool.OUTPUT, tmp_path / "adjacency.png"
    monkeypatch.setattr(tool, "OUTPUT", made)
    tool.main()
    assert alike(made.read_bytes(), kept)


# ---- data of the tests


def packed(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / name, "rt", encoding="ascii") as file:
        return list(csv.DictReader(file))


def test_normal_mixtures() -> None:
    """The questions are those of the seed; some of the answers."""
    tool, rng = script("tests/reference_mixtures/generate.py"), random.Random(1)
    rows = json.loads((DATA / "normal_mixtures.json").read_text(encoding="utf-8"))
    for row in rows:
        asked = {key: value for key, value in row.items() if key != "delta"}
        assert any(asked == tool.drawn(rng) for _ in range(1000)), row
    for row in some(rows[::20], 4):
        assert tool.profile(row, 1.0, 1.0, 1.0) == pytest.approx(float(row["delta"]), rel=1e-13)


@comparing(0.7)
def test_laplace_steps() -> None:
    """What a line in long double once said of many steps is proven; some take too many nodes."""
    tool = script("tests/reference_laplace/generate.py")
    rows = json.loads((DATA / "laplace_steps.json").read_text(encoding="utf-8"))
    lines = [row for row in rows if row["method"] == "line"]
    for row in some(lines[10::20], 3):
        run, order = tool.mechanism_of(row), row["adjacency"]
        try:
            truth = pe.reference.delta(run, row["argument"], adjacency=order, digits=16)
        except pe.AccuracyError:
            left_out()
            continue
        assert truth.certified
        assert float(row["truth"]) == pytest.approx(float(truth), rel=1e-13)
        compared()


def test_ncx2_reference() -> None:
    """The points are those of the seed, and some of them to the last digit."""
    tool = script("tests/reference_ncx2/generate.py")
    rows = packed("ncx2_reference.csv.gz")
    drawn = [p for p in tool.points(random.Random(tool.SEED)) if 1e-300 < p[3] < 1e300]
    assert [(row["stratum"], row["df"], row["nc"], row["x"]) for row in rows] == [
        (tag, repr(d), repr(lam), repr(x)) for tag, d, lam, x in drawn
    ]
    known = [row for row in rows if row["stratum"] != "df below 1/2"]
    with precision(200):
        for row in some(known[::200], 4):
            at = (float(row["x"]), float(row["df"]), float(row["nc"]))
            tail, density = tool.inversion(*at, row["side"], "0.25", 0.7, 15.3)
            assert tail.str(30, radius=False) == row["tail"]
            assert tail.log().str(30, radius=False) == row["log_tail"]
            assert density.log().str(30, radius=False) == row["log_pdf"]


def test_ncx2_compositions() -> None:
    """By the reference, whose error is that of 30 digits, of values near 1 too."""
    truth = pe.reference
    with mpmath.workdps(40):
        for row in some(packed("ncx2_compositions.csv.gz")[::20], 2):
            p, a, b = (float(row[key]) for key in ("p", "a", "b"))
            if row["kind"] == "marcum":
                upper = row["side"] == "sf"
                q = truth.special.marcum_q if upper else truth.special.marcum_q_complement
                value = mpmath.log(q(p, a, b))
            elif row["kind"] == "sgd":
                value = truth.membership.log_one_step_trade_off(
                    p, parameters=int(a), batch_size=b, susceptibility=float(row["c"])
                )
            else:
                man, exp = truth.special.ncx2_isf(p, a, 0, digits=50).man_exp
                at = Fraction(man) * Fraction(2) ** exp, a, Fraction(b) ** 2
                above = truth.special.ncx2_sf(*at)
                value = mpmath.log1p(-above)
                if above > 0.5:
                    value = mpmath.log(truth.special.ncx2_cdf(*at))
            assert abs(value / mpmath.mpf(row["log_value"]) - 1) < 1e-27, row


def test_adversaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """All points are drawn again, and every 100th is computed."""
    tool, rng = script("tests/reference_adversaries/generate.py"), random.Random(11)
    rows, number = packed("adversaries_reference.csv.gz"), 0

    def some_of(compute: Callable[..., Any]) -> Callable[..., Any]:
        def value(*arguments: Any, **more: Any) -> Any:
            if number % (10 if ALL else 100) == 0:
                return compute(*arguments, **more)
            return tool.mp.nan

        return value

    for name in ("log_trade_off", "log_one_step_trade_off", "log_hull"):
        monkeypatch.setattr(tool, name, some_of(getattr(tool, name)))
    for count, make in (
        (350, lambda: tool.relaxed(rng, "gaussian")),
        (120, lambda: tool.relaxed(rng, "laplace")),
        (300, lambda: tool.membership(rng)),
        (160, lambda: tool.hull(rng)),
    ):
        for _ in range(count):
            again, kept = make(), dict(rows[number])
            value, old = again.pop("log_beta"), kept.pop("log_beta")
            assert {key: str(cell) for key, cell in again.items()} == {
                key: cell for key, cell in kept.items() if cell
            }
            assert value in (old, "nan"), (number, value, old)
            number += 1
    assert number == len(rows)
