"""Budgets: what is approved is proven, what is refused is not booked, whoever else is spending."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from thorough import ALL

import pyengine as pe
from pyengine.accounting.ledger import FileLedger, MemoryLedger, Release
from pyengine.analytic import exp, log, z
from pyengine.cli import main
from pyengine.targets import Advantage, EpsilonDelta, Gamma, GaussianDP, Target, TradeOff

mp = mpmath.MPContext()
mp.dps = 40


def gaussian_delta(mu: Any, epsilon: float) -> Any:
    """Balle and Wang, Theorem 8, by code that shares nothing with the package."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def total_mu(noises: list[float]) -> Any:
    return mp.sqrt(mp.fsum(1 / mp.mpf(noise) ** 2 for noise in noises))


def test_shares_of_gaussian_noise_meet_the_target_exactly() -> None:
    random_ = random.Random(1)
    for _ in range(300 if ALL else 12):
        epsilon, delta = random_.uniform(0.1, 4.0), 10.0 ** random_.uniform(-12, -3)
        weights = [random_.uniform(0.1, 5.0) for _ in range(random_.randint(1, 5))]
        budget = pe.Budget(EpsilonDelta(epsilon, delta))
        plan = budget.split([pe.GaussianMechanism] * len(weights), weights)
        mu = total_mu([share.noise for share in plan])
        found = gaussian_delta(mu, epsilon)
        assert delta * (1 - 1e-8) < found <= delta
        for share, weight in zip(plan, weights, strict=True):
            part = 1 / mp.mpf(share.noise) ** 2 / mu**2
            assert float(part) == pytest.approx(weight / sum(weights), rel=1e-10)


def joint_delta(noises: list[float], coins: list[Fraction], epsilon: float) -> Any:
    """δ of Gaussian releases and randomized response: the mean over the coins' ratios."""
    outcomes = {Fraction(1): Fraction(1)}  # masses without the record
    for truth in coins:
        more: dict[Fraction, Fraction] = {}
        for ratio, mass in outcomes.items():
            for part, turned in ((truth, 1 - truth), (1 - truth, truth)):
                key = ratio * turned / part
                more[key] = more.get(key, Fraction(0)) + mass * part
        outcomes = more
    whole = mp.mpf(0)
    for ratio, mass in outcomes.items():
        weight = mp.mpf(mass.numerator * ratio.numerator) / (mass.denominator * ratio.denominator)
        level = mp.exp(epsilon) * ratio.denominator / ratio.numerator
        rest = gaussian_delta(total_mu(noises), mp.log(level)) if noises else max(1 - level, 0)
        whole += weight * rest
    return whole


def test_random_releases_are_booked_while_they_fit() -> None:
    random_, refused = random.Random(7), 0
    for _ in range(300 if ALL else 8):
        epsilon, delta = random_.uniform(0.2, 4.0), 10.0 ** random_.uniform(-10, -2)
        budget = pe.Budget(EpsilonDelta(epsilon, delta))
        noises: list[float] = []
        coins: list[Fraction] = []
        for _ in range(6):
            noise, truth = random_.uniform(0.7, 8.0), Fraction(random_.randint(51, 75), 100)
            coin = random_.random() < 0.5
            held = (noises, [*coins, truth]) if coin else ([*noises, noise], coins)
            release = pe.RandomizedResponse(truth) if coin else pe.GaussianMechanism(noise)
            whole = joint_delta(*held, epsilon)
            assert abs(whole / delta - 1) > 1e-7  # no draw decides by rounding
            if whole < delta:
                budget.spend(release)
                noises, coins = held
                continue
            refused += 1
            with pytest.raises(pe.BudgetError):
                budget.spend(release)
        assert len(budget.releases) == len(noises) + len(coins)
    assert refused >= 8


def test_shares_of_pure_privacy_are_of_epsilon() -> None:
    plan = pe.Budget(EpsilonDelta(1.0, 0.0)).split([pe.LaplaceMechanism] * 3, [1, 2, 1])
    assert [share.noise for share in plan] == pytest.approx([4.0, 2.0, 4.0], rel=1e-10)
    assert math.fsum(1 / share.noise for share in plan) <= 1.0


def kinds() -> dict[str, Any]:
    return {
        "counts": pe.LaplaceMechanism,
        "mean": pe.GaussianMechanism,
        "training": lambda noise: pe.dp_sgd(noise, 0.01, 300),
    }


@pytest.mark.parametrize(
    "target",
    [
        EpsilonDelta(1.0, 1e-6),
        EpsilonDelta(0.3, 1e-3, adjacency="add"),
        TradeOff(0.01, 0.9),
        Gamma(0.01, 0.05),
        Advantage(0.2),
    ],
)
def test_a_plan_fits_in_any_order_and_nothing_beside_it(target: Target) -> None:
    budget = pe.Budget(target)
    booked = budget.spend(pe.GaussianMechanism(40.0), "before")
    plan = budget.split(kinds(), [1, 2, 3])
    assert [share.name for share in plan] == ["counts", "mean", "training"]
    for order in ((0, 1, 2), (2, 0, 1)):
        spent = pe.Budget(target)
        spent.spend(booked.mechanism)
        for i in order:
            spent.spend(plan[i].mechanism, plan[i].name)
        assert spent.target.is_met(spent.spent)
        less = sum((share.mechanism for share in plan), booked.mechanism)
        assert spent.spent == less
        before = spent.releases
        with pytest.raises(pe.BudgetError, match=r"not fit into .*: with it .*; nothing was"):
            spent.spend(pe.GaussianMechanism(20.0), "more")
        assert spent.releases == before


def test_gaussian_dp() -> None:
    budget = pe.Budget(GaussianDP(1.0))
    assert budget.split([pe.GaussianMechanism] * 2)[0].noise == pytest.approx(math.sqrt(2.0))
    assert budget.spend(pe.GaussianMechanism(1.25)).name == ""
    assert budget.remaining_noise() == pytest.approx(1 / math.sqrt(1 - 0.64), rel=1e-9)
    assert budget.achieved() == GaussianDP(0.8, bounds=True)
    assert budget.remaining_steps(pe.GaussianMechanism(10.0)) == 36
    with pytest.raises(pe.BudgetError, match="with it all releases have mu"):
        budget.spend(pe.GaussianMechanism(1.6))


def test_what_remains() -> None:
    budget = pe.Budget(EpsilonDelta(1.0, 1e-6))
    empty = budget.remaining_noise()
    assert gaussian_delta(1 / mp.mpf(empty), 1.0) <= 1e-6
    assert gaussian_delta(1 / (mp.mpf(empty) * (1 - 1e-8)), 1.0) > 1e-6
    # pure releases add up, but for what δ gives
    assert 1.0 < budget.remaining_epsilon() < 1.0 + 1e-5
    assert budget.remaining_epsilon(5e-7) == pytest.approx(1.0, rel=1e-5)
    assert budget.remaining_epsilon(1e-5) == 0.0
    budget.spend(pe.RandomizedResponse("3/5"))  # ε = log(3/2)
    assert budget.spent_epsilon(0.0) == pytest.approx(math.log(1.5), rel=1e-12)
    assert budget.spent_epsilon() <= budget.spent_epsilon(0.0)
    assert budget.remaining_epsilon() == pytest.approx(1.0 - math.log(1.5), abs=1e-5)
    steps = budget.remaining_steps(pe.dp_sgd(4.0, 0.01, 1))
    fits, not_ = (pe.dp_sgd(4.0, 0.01, n) for n in (steps, steps + 1))
    assert budget.allows(fits)
    assert not budget.allows(not_)
    assert budget.allows()
    assert budget.remaining_steps(pe.GaussianMechanism(0.5)) == 0
    assert pe.Budget(GaussianDP(1.0)).spent_epsilon(1e-5) == 0.0
    assert "1 release booked" in repr(budget)


def test_threads_cannot_overspend() -> None:
    budget = pe.Budget(GaussianDP(1.0))
    start = threading.Barrier(6)

    def spend() -> int:
        start.wait()
        number = 0
        try:
            while True:
                budget.spend(pe.GaussianMechanism(5.0))
                number += 1
        except pe.BudgetError:
            return number

    with ThreadPoolExecutor(6) as pool:
        counts = [future.result() for future in [pool.submit(spend) for _ in range(6)]]
    assert sum(counts) == len(budget.releases) == 25


@pytest.mark.parametrize("in_file", [False, True])
def test_a_release_between_is_counted(
    in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one books after the bound was computed and before the release is."""
    budget = pe.Budget(GaussianDP(1.0), tmp_path / "b" if in_file else None)
    kind = FileLedger if in_file else MemoryLedger
    append, other = kind.append, Release("other", pe.compose(pe.GaussianMechanism(1.25)))

    def late(self: Any, release: Release, number: int) -> bool:
        monkeypatch.setattr(kind, "append", append)
        assert append(self, other, number)
        return bool(append(self, release, number))

    monkeypatch.setattr(kind, "append", late)
    with pytest.raises(pe.BudgetError):
        budget.spend(pe.GaussianMechanism(1.25))
    assert [release.name for release in budget.releases] == ["other"]


PROCESS = """
import sys, pyengine as pe
budget = pe.Budget.load(sys.argv[1])
number = 0
try:
    while True:
        budget.spend(pe.GaussianMechanism(5.0), sys.argv[2])
        number += 1
except pe.BudgetError:
    print(number)
"""


def test_processes_cannot_overspend(tmp_path: Path) -> None:
    path = tmp_path / "shared.budget"
    budget = pe.Budget(GaussianDP(1.0), path)
    commands = [[sys.executable, "-c", PROCESS, str(path), name] for name in "ab"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    counts = [int(process.communicate(timeout=100)[0]) for process in running]
    assert sum(counts) == len(budget.releases) == 25
    for name, number in zip("ab", counts, strict=True):
        assert sum(release.name == name for release in budget.releases) == number


def test_files(tmp_path: Path) -> None:
    path, copied = tmp_path / "one.budget", tmp_path / "two.budget"
    target = EpsilonDelta(1.0, 1e-6, adjacency="add")
    budget = pe.Budget(target, path)
    budget.spend(pe.dp_sgd(4.0, "1/300", 100), "training")
    budget.save(copied)
    budget.spend(pe.LaplaceMechanism(20), "counts")
    again, copied_one = pe.Budget.load(path), pe.Budget.load(copied)
    assert again.releases == budget.releases
    assert copied_one.releases == budget.releases[:1]
    assert again.target == budget.target == EpsilonDelta(1.0, 1e-6, adjacency="add", bounds=True)
    assert again.path == path
    again.spend(pe.LaplaceMechanism(30))
    assert len(budget.releases) == 3
    assert pickle.loads(pickle.dumps(budget)).releases == budget.releases
    for existing in (path, copied):
        with pytest.raises(FileExistsError, match="exists"):
            pe.Budget(target, existing)
        with pytest.raises(FileExistsError, match="exists"):
            budget.save(existing)


def test_memory_has_no_copies() -> None:
    budget = pe.Budget(GaussianDP(1.0))
    assert copy.copy(budget) is budget
    assert copy.deepcopy({"b": budget})["b"] is budget
    with pytest.raises(TypeError, match="would spend it twice"):
        pickle.dumps(budget)


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        (lambda: pe.duality.GaussianFilter(1), lambda x: x.spend(1)),
        (lambda: _filter(1), lambda x: x.spend(0)),
        (lambda: pe.Budget(GaussianDP(1.0)), lambda x: _fits(x, pe.GaussianMechanism(1.0))),
    ],
)
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x, x])[1]])
def test_a_copy_spends_no_second_budget(made: Any, fits: Any, twin: Any) -> None:
    """The budget of one release is there once, whichever of the copies is asked first."""
    for order in (0, 1):
        budget = made()
        pair = [budget, twin(budget)]
        assert fits(pair[order])
        assert not fits(pair[1 - order])
        assert not fits(pair[order])
    odometer = pe.Odometer([pe.GaussianMechanism(1.0)])
    twin(odometer).spend(0)
    assert odometer.spent == 1


def _filter(steps: int) -> pe.Filter:
    """Within which so many releases fit."""
    step = pe.GaussianMechanism(1.0)
    return pe.Filter([step], EpsilonDelta(1.0, 1.01 * pe.delta(step.composed(steps), 1.0)))


def _fits(budget: pe.Budget, release: pe.Mechanism) -> bool:
    try:
        budget.spend(release)
    except pe.BudgetError:
        return False
    return True


@pytest.mark.parametrize("spent", [0, 1, 2])
def test_a_pickle_of_a_filter_is_a_checkpoint(spent: int) -> None:
    """It has what was spent, so that the rest of the run keeps the target."""
    for budget, release in (
        (pe.duality.GaussianFilter(2), 1),
        (_filter(4), 0),
    ):
        for _ in range(spent):
            assert budget.spend(release)
        again = pickle.loads(pickle.dumps(budget))
        assert again.spent == budget.spent
        assert [again.spend(release) for _ in range(5)] == [k + spent < 4 for k in range(5)]


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process wrote before it died is not seen, and the budget goes on."""
    path = tmp_path / "b"
    budget = pe.Budget(GaussianDP(1.0), path)
    budget.spend(pe.GaussianMechanism(5.0))
    dying = sqlite3.connect(path, isolation_level=None)
    dying.execute("BEGIN IMMEDIATE")
    dying.execute("INSERT INTO release VALUES (1, 'lost', '{}')")
    assert len(budget.releases) == 1
    dying.close()
    budget.spend(pe.GaussianMechanism(5.0))
    assert [release.name for release in pe.Budget.load(path).releases] == ["", ""]
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    try:
        monkeypatch.setattr("pyengine.accounting.ledger.WAIT", 0.01)
        with pytest.raises(OSError, match="locked"):
            pe.Budget.load(path)
    finally:
        held.close()


def test_files_that_are_no_budgets(tmp_path: Path) -> None:
    text, empty, other = (tmp_path / name for name in ("text", "empty", "other"))
    text.write_text("no database, and long enough to be read as one" * 50, encoding="utf-8")
    empty.touch()
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    for path in (text, empty, other):
        with pytest.raises(ValueError, match="path must be the file of a budget"):
            pe.Budget.load(path)
    with pytest.raises(FileExistsError):
        pe.Budget(GaussianDP(1.0), other)
    with pytest.raises(FileNotFoundError):
        pe.Budget.load(tmp_path / "none")
    with pytest.raises(OSError, match="unable to open"):
        pe.Budget(GaussianDP(1.0), tmp_path / "no" / "such" / "folder")
    damaged = tmp_path / "damaged"
    pe.Budget(GaussianDP(1.0), damaged).spend(pe.GaussianMechanism(3.0))
    with sqlite3.connect(damaged) as database:
        database.execute("UPDATE release SET number = 7")
    database.close()
    with pytest.raises(ValueError, match="damaged"):
        pe.Budget.load(damaged).spend(pe.GaussianMechanism(9.0))


def test_what_is_not_proven_or_not_written_is_not_booked(tmp_path: Path) -> None:
    budget = pe.Budget(EpsilonDelta(1.0, 1e-2), tmp_path / "b")
    log_p = -z - 2 * log(1 + exp(-z))
    holds_functions = pe.from_analytic_densities(log_p, log_p.at(z - "0.1"))
    with pytest.raises(ValueError, match="holds functions"):
        budget.spend(holds_functions.composed(50))
    with pytest.raises(pe.AccuracyError, match="no engine proves bounds"):
        budget.spend(holds_functions)
    assert budget.releases == ()
    budget.spend(pe.from_probabilities([0.4, 0.6], [0.6, 0.4]))
    assert pe.Budget.load(tmp_path / "b").spent == budget.spent
    # exact weights of 900 digits: the file could not be read again
    budget.spend(pe.dp_sgd(10_000.0, "0.0667", 1, group_size=220))
    assert pe.Budget.load(tmp_path / "b").spent == budget.spent
    with pytest.raises(ValueError, match="numbers of at most 4,300 digits"):
        budget.spend(pe.GaussianMechanism("1000." + "3" * 4300))
    assert len(budget.releases) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: pe.Budget(1.0), "target must be a single target"),
        (lambda _: pe.Budget(EpsilonDelta([1.0, 2.0], 1e-6)), "target must be a single target"),
        (lambda b: b.spend("laplace"), "must be"),
        (lambda b: b.spend(pe.LaplaceMechanism(1), name=1), "name must be a printable text"),
        (lambda b: b.spend(pe.LaplaceMechanism(1), "a\nspent: 0"), "name must be a printable"),
        (lambda b: b.split([]), "planned must hold one or more callables"),
        (lambda b: b.split([1.0]), "planned must hold one or more callables"),
        (lambda b: b.split([pe.LaplaceMechanism], [1, 2]), "weights must be one for each of 1"),
        (lambda b: b.split([pe.LaplaceMechanism], [0]), "weights must be positive"),
        (lambda b: b.remaining_epsilon(2.0), "delta must"),
        (lambda _: pe.Budget(GaussianDP(1)).spent_epsilon(), "delta must be given for a target"),
        (lambda b: b.remaining_steps(pe.dp_sgd(1.0, 0.0, 1)), "all|any|none"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    budget = pe.Budget(EpsilonDelta(1.0, 1e-6))
    with pytest.raises(ValueError, match=message):
        call(budget)
    assert budget.releases == ()


def test_figures_of_refusals_are_rounded_so_that_they_hold() -> None:
    for noise in np.linspace(1.0, 2.0, 8):
        budget = pe.Budget(GaussianDP(0.3))
        with pytest.raises(pe.BudgetError) as caught:
            budget.spend(pe.GaussianMechanism(noise))
        found = re.search(r"releases have mu ([\d.]+), slack 0", str(caught.value))
        assert found is not None
        assert 1.0 / noise <= float(found[1]) < 1.0 / noise + 1e-5


def test_parameters_that_add_up_to_epsilon_fit() -> None:
    """Bounds are rounded up, by which .5 and .5 would not fit into 1."""
    budget = pe.Budget(EpsilonDelta(1.0, 0.0))
    for release in (pe.LaplaceMechanism(4), pe.GenericMechanism("1/4"), pe.LaplaceMechanism("8/3")):
        budget.spend(release)
    with pytest.raises(pe.BudgetError, match=r"have epsilon 1\.125, delta 0"):
        budget.spend(pe.LaplaceMechanism(4))
    budget.spend(pe.GenericMechanism(0.125))
    with pytest.raises(pe.BudgetError, match=r"have epsilon 1\.0000000000000002, delta 0"):
        budget.spend(pe.GenericMechanism(2.0**-52))
    assert not EpsilonDelta(1.0, 0.0).is_met(pe.LaplaceMechanism(math.nextafter(1.0, 0.0)))
    assert EpsilonDelta(1.0, 0.0).is_met(pe.LaplaceMechanism(1.0))
    replaced = EpsilonDelta(1.0, 0.0, adjacency="substitute")
    assert not replaced.is_met(pe.LaplaceMechanism(1.5))


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert main(["budget", *arguments, "--json"]) == code
        content: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert content.pop("proven", True) is True
        return content

    target = said("new", "b", "--epsilon", "1", "--delta", "1e-6")["target"]
    assert target == {
        "target": "EpsilonDelta", "adjacency": "add_remove", "epsilon": 1.0, "delta": 1e-6
    }  # fmt: skip
    shares = ["--share", "a", "1", "mechanism=laplace", "--share", "b", "3", "p=0.01,steps=100"]
    plan = said("split", "b", *shares)["split"]
    one, two = (repr(share["noise"]) for share in plan)
    assert said("spend", "b", "--name", "a", "--mechanism", "laplace", "--noise", one)["booked"]
    rest = said("remaining", "b")
    assert rest["spent_epsilon"] == {
        "epsilon": pytest.approx(1 / float(one), rel=1e-4),
        "delta": 1e-6,
    }
    assert rest["remaining"]["epsilon"] == pytest.approx(1 - 1 / float(one), rel=1e-5)
    assert rest["remaining"]["noise"] > 4.2  # that of a budget of which nothing is spent
    left = said("remaining", "b", "--p", "0.01", "--steps", "100")["remaining"]["noise"]
    assert left == pytest.approx(float(two), rel=1e-8)
    assert said("spend", "b", "--noise", two, "--p", "0.01", "--steps", "100")["booked"]
    refused = said("spend", "b", "--noise", "9", code=1)
    assert refused["booked"] is False
    assert "nothing was booked" in refused["reason"]
    shown = said("show", "b")
    assert [release["name"] for release in shown["releases"]] == ["a", ""]
    assert 0.999e-6 < shown["spent"]["delta"] <= 1e-6
    assert "in view of" in shown["assumption"]
    assert said("remaining", "b", "--vary", "steps", "--noise", "9")["remaining"] == {"steps": 0}
    said("new", "g", "--mu", "1/2")
    assert said("remaining", "g")["remaining"]["noise"] == pytest.approx(2.0, rel=1e-10)
    assert said("spend", "g", "--noise", "4")["booked"]  # beside it no ε-DP release is 1/2-GDP
    assert set(said("remaining", "g")["remaining"]) == {"noise"}
    said("new", "p", "--epsilon", "1", "--delta", "0")
    assert said("spend", "p", "--mechanism", "laplace", "--noise", "2")["booked"]
    assert set(said("remaining", "p")["remaining"]) == {"epsilon"}
    assert said("spend", "p", "--mechanism", "laplace", "--noise", "2")["booked"]
    assert said("remaining", "p")["remaining"] == {"epsilon": 0.0}
    for wrong, message in (
        (["new", "b", "--mu", "1"], "exists"),
        (["new", "c", "--mu", "1", "--advantage", "0.1"], "one target"),
        (["show", "none"], "no such file"),
        (["split", "b", *shares[:4], *shares[:4]], "a name of its own"),
        (["spend", "b"], "no mechanism"),
    ):
        assert main(["budget", *wrong]) == 2
        assert message in capsys.readouterr().err
    assert Fraction(1, 2) == Fraction(said("show", "g")["target"]["mu"])


def test_names_of_other_programs_forge_no_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b"
    pe.Budget(EpsilonDelta(1.0, 1e-6), path).spend(pe.GaussianMechanism(50.0), "honest")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE release SET name = 'x\nspent: nothing\x1b[2J'")
    assert main(["budget", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "'x\\nspent: nothing\\x1b[2J': Gaussian" in shown
    (spent,) = (line for line in shown.splitlines() if line.startswith("spent"))
    assert spent.startswith("spent: ε = 0.07096068299 at δ = 1e-6")
