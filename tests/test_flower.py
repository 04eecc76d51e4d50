"""Strategies of Flower, by stand-ins with their fields: no Flower is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import pyengine as pe
from pyengine.interop import from_flower


def strategy(kind: str = "ServerSideFixedClipping", **fields: Any) -> Any:
    given = {
        "strategy": SimpleNamespace(fraction_fit=0.1, min_fit_clients=2),
        "noise_multiplier": 1.2,
        "clipping_norm": 0.5,
        "num_sampled_clients": 100,
        **fields,
    }
    made = type(f"DifferentialPrivacy{kind}", (), {})()
    made.__dict__.update(given)
    return made


@pytest.mark.parametrize("kind", ["ServerSideFixedClipping", "ClientSideFixedClipping"])
def test_fixed_clipping(kind: str) -> None:
    run = from_flower(strategy(kind), clients=1000, rounds=50)
    step = pe.GaussianMechanism(1.2).sampled_without_replacement(batch_size=100, dataset_size=1000)
    assert run == step.composed(50)
    words = run.parts[0][0].words
    assert words.unit == "one client of 1,000"
    assert "count equally" in words.batches


def test_ends() -> None:
    """All clients each round, the least number, the newer names, no noise and no rounds."""
    everyone = strategy(strategy=SimpleNamespace(fraction_train=1.0, min_train_nodes=2))
    run = from_flower(everyone, clients=100, rounds=3)
    assert run == pe.GaussianMechanism(1.2).composed(3)
    few = strategy(num_sampled_clients=2)
    assert from_flower(few, clients=10, rounds=1).parts[0][0].batch_size == 2
    assert from_flower(strategy(noise_multiplier=0.0), clients=1000, rounds=2) == (
        pe.GenericMechanism(0, 1).composed(2)
    )
    assert from_flower(strategy(), clients=1000, rounds=0) == pe.compose()
    silent = strategy(strategy=SimpleNamespace())
    assert from_flower(silent, clients=500, rounds=1).parts[0][0].dataset_size == 500


@pytest.mark.parametrize(
    ("made", "clients", "message"),
    [
        (strategy("ServerSideAdaptiveClipping"), 1000, "scales the noise to the norm of the next"),
        (SimpleNamespace(), 1000, "strategy must be one of"),
        (strategy(), 500, "but what it wraps samples 50 of 500"),
        (strategy(), 50, "clients must be at least the 100"),
    ],
)
def test_wrong_strategies(made: Any, clients: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_flower(made, clients=clients, rounds=1)


def wrapped(*names: str) -> Any:
    """An object of the last class, each of which derives from the one before, as Flower's do."""
    made: type = object
    for name in names:
        own = {} if name == "FedProx" else {"aggregate_fit": None}
        module = "theirs" if name == "Equal" else f"flwr.server.strategy.{name.lower()}"
        made = type(name, (made,), {**own, "__module__": module})
    found = made()
    found.__dict__.update(fraction_fit=0.1, min_fit_clients=2)
    return found


@pytest.mark.parametrize(
    "names",
    [
        ("Strategy", "FedAvg", "FedOpt", "FedAdam"),
        ("Strategy", "FedAvg", "FedAvgM"),
        ("Strategy", "FedAvg", "FedMedian"),
        ("Strategy", "FedAvg", "FedAvgM", "Equal"),
        ("Strategy", "DifferentialPrivacyServerSideFixedClipping"),
    ],
)
def test_strategies_that_do_not_average(names: tuple[str, ...]) -> None:
    """Of an update divided by its size, or kept as momentum, one client moves more than a mean."""
    with pytest.raises(ValueError, match=f"must wrap one that averages .*, got {names[-1]}:"):
        from_flower(strategy(strategy=wrapped(*names)), clients=1000, rounds=1)


@pytest.mark.parametrize(
    "names",
    [
        ("Strategy", "FedAvg"),
        ("Strategy", "FedAvg", "FedProx"),
        ("Strategy", "FedAvg", "Equal"),
        ("Strategy", "FedAvg", "FaultTolerantFedAvg"),
    ],
)
def test_strategies_that_average(names: tuple[str, ...]) -> None:
    made = from_flower(strategy(strategy=wrapped(*names)), clients=1000, rounds=1)
    assert made == from_flower(strategy(), clients=1000, rounds=1)
