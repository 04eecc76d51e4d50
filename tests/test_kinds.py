"""A loaded coin, entered as docs/developer/new_mechanism.md says, and all asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pyengine as pe
from pyengine._support import checks
from pyengine.api.dp_events import from_dp_event
from pyengine.api.histories import to_history
from pyengine.caches import clear_cache
from pyengine.cli.main import main
from pyengine.laws import kinds
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.mechanisms import GaussianMechanism, Noise, Step


@dataclass(frozen=True)
class LoadedCoin(Step):
    """A fair coin without the record, one that shows heads with another probability with it."""

    heads: checks.Number

    def __init__(self, heads: Any) -> None:
        object.__setattr__(self, "heads", checks.probability("heads", heads))


def outcomes(step: LoadedCoin) -> list[tuple[Fraction, Fraction]]:
    heads, half = Fraction(step.heads), Fraction(1, 2)
    return [(half, heads), (half, 1 - heads)]


@dataclass(frozen=True)
class NoisyMean(Step):
    """The mean of numbers in [0, 1] of a known count of records, with Gaussian noise."""

    records: int
    deviation: checks.Number

    @property
    def noise(self) -> Noise:
        """One record moves the mean by 1/records."""
        return Noise("gaussian", Fraction(self.deviation) * self.records)


MEAN = kinds.Kind(
    NoisyMean, lambda step, doubled: GaussianLaw(float(step.noise.multiplier) / (1 + doubled))
)
ENTRY = kinds.Kind(
    LoadedCoin,
    lambda step, _: FiniteLaw.from_fractions(outcomes(step)),
    "loaded_coin",
    outcomes=outcomes,
    is_trivial=lambda step: step.heads == 0.5,
    event=lambda module, step: module.CoinDpEvent(float(step.heads)),
    from_events={"CoinDpEvent": lambda event: LoadedCoin(event.heads)},
)
SPEC = """
[[workflow]]
name = "coins"
mechanism = "loaded_coin"
heads = ["3/4", "0.6"]
steps = 2

[delta]
epsilon = [0.1]
adjacency = ["add"]
"""


@pytest.fixture(autouse=True)
def _entered() -> Iterator[None]:
    before = dict(kinds._KINDS)
    kinds.register(ENTRY)
    kinds.register(MEAN)
    yield
    kinds._KINDS.clear()
    kinds._KINDS.update(before)
    clear_cache()


def test_every_question() -> None:
    coin = LoadedCoin("3/4")
    assert pe.delta(coin, 0.0) == 0.25
    assert pe.trade_off(coin, 0.5, adjacency="add") == 0.25
    assert pe.gamma_bound(coin, 0.5) == 0.75
    assert pe.epsilon(coin, 0.0, adjacency="remove") == pytest.approx(
        0.40546510810816444, rel=1e-15
    )
    twice = coin.composed(2)
    assert pe.delta(twice, 0.0) == pytest.approx(float(Fraction(9, 16) - Fraction(1, 4)), rel=1e-15)
    sampled = coin.poisson_sampled("1/2")
    assert pe.delta(sampled, 0.0) == pytest.approx(0.125, rel=1e-15)
    assert pe.delta(LoadedCoin(0.5), 0.0) == 0.0
    beta, lower, upper = (
        pe.trade_off(twice + pe.GaussianMechanism(2.0), 0.3),
        *pe.trade_off(twice + pe.GaussianMechanism(2.0), 0.3, bounds=True)[::2],
    )
    assert lower <= beta <= upper
    for method in ("auto", "certified", "exact", "lattice"):
        assert pe.delta(twice, 0.1, method=method, tolerance=1e-6) == pytest.approx(
            pe.delta(twice, 0.1), rel=1e-9
        )


def test_noise_of_its_own_is_taken_up_by_the_engines_of_such_noise() -> None:
    """Whichever class says that its noise is Gaussian."""
    mean, known = NoisyMean(100, Fraction(1, 50)), GaussianMechanism(2)
    for make in (
        lambda step: step,
        lambda step: step.poisson_sampled(0.1).composed(20),
        lambda step: step.sampled_without_replacement(batch_size=1, dataset_size=10).composed(3),
    ):
        own, other = make(mean), make(known)
        assert pe.delta(own, 0.5) == pe.delta(other, 0.5)
        assert pe.gamma_bound(own, 1e-3, bounds=True) == pe.gamma_bound(other, 1e-3, bounds=True)
    many = [step.poisson_sampled(0.1).composed(1000) for step in (mean, known)]
    assert len({pe.delta(one, 0.5, method="edgeworth", adjacency="add") for one in many}) == 1
    relaxed = {"threat_model": "relaxed", "adjacency": "add"}
    assert pe.trade_off(mean, 0.1, **relaxed) == pe.trade_off(known, 0.1, **relaxed)
    assert to_history(mean.poisson_sampled(0.1)) == [(2.0, 0.1, 1)]
    truth = pe.reference.delta(known, "0.5", digits=20)
    assert pe.reference.delta(mean, "0.5", digits=20) == pytest.approx(truth, rel=1e-19)


def test_what_another_record_does_is_not_said() -> None:
    with pytest.raises(pe.NotDefinedError, match="what another record does"):
        pe.delta(LoadedCoin(0.75), 0.1, adjacency="substitute")


def test_calibration() -> None:
    noise = pe.calibrate(
        lambda s: LoadedCoin(0.75) + pe.GaussianMechanism(s), pe.targets.EpsilonDelta(1.0, 0.2)
    )
    assert pe.delta(LoadedCoin(0.75) + pe.GaussianMechanism(noise), 1.0) <= 0.2


def test_json() -> None:
    for coin in (LoadedCoin("1/3"), LoadedCoin(0.7).poisson_sampled(0.1).composed(3)):
        assert pe.from_json(pe.to_json(coin)) == coin
    assert json.loads(pe.to_json(LoadedCoin(0.7)))["mechanism"][0]["mechanism"] == "LoadedCoin"


@pytest.mark.parametrize("name", ["loaded_coin", "LoadedCoin"])
def test_command_line(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    phase = ["--phase", f"mechanism={name},heads=3/4,steps=2"]
    assert main(["delta", *phase, "--epsilon", "0", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert row["value"] == pytest.approx(5 / 16, rel=1e-15)
    assert row["certainty"] == "proven"
    file = tmp_path / "run.toml"
    file.write_text(f'[[phase]]\nmechanism = "{name}"\nheads = "3/4"\nsteps = 2\n', "utf-8")
    assert main(["delta", "--file", str(file), "--epsilon", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [row]
    assert main(["delta", "--phase", f"mechanism={name},tails=3", "--epsilon", "0"]) == 2
    assert f"unknown key 'tails'; {name} takes heads, p, " in capsys.readouterr().err


def test_table(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC, "utf-8")
    assert main(["table", str(spec), "-o", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out" / "table.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["mechanism"] for row in rows] == ["LoadedCoin"] * 2
    for row, heads in zip(rows, ("3/4", "0.6"), strict=True):
        truth = pe.delta(LoadedCoin(heads).composed(2), 0.1, adjacency="add")
        assert float(row["value"]) == truth


def test_events_of_another_library() -> None:
    from pyengine.api.dp_events import _event

    module: Any = SimpleNamespace(CoinDpEvent=type("CoinDpEvent", (SimpleNamespace,), {}))
    made = type("CoinDpEvent", (), {})()
    made.heads = 0.75
    assert from_dp_event(made) == LoadedCoin(0.75)
    module.CoinDpEvent = lambda heads: ("coin", heads)
    assert _event(module, LoadedCoin(0.75)) == ("coin", 0.75)


def test_words() -> None:
    assert pe.mechanisms.step_in_words(LoadedCoin("3/4")) == "LoadedCoin, heads 0.75"
    assert kinds.kind_of_step(LoadedCoin(0.1)) is ENTRY
