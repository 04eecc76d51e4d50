"""Conversion of Flower's strategies with central differential privacy."""

from __future__ import annotations

from typing import Any

from pyengine._support import checks
from pyengine.mechanisms import Composition, GaussianMechanism, GenericMechanism
from pyengine.mechanisms.words import worded

__all__ = ["from_flower"]

FIXED = (
    "DifferentialPrivacyServerSideFixedClipping",
    "DifferentialPrivacyClientSideFixedClipping",
)
ADAPTIVE = (
    "DifferentialPrivacyServerSideAdaptiveClipping",
    "DifferentialPrivacyClientSideAdaptiveClipping",
)
# attributes of the wrapped strategy, in both of Flower's interfaces
SHARES = ("fraction_fit", "fraction_train")
LEAST = ("min_fit_clients", "min_train_nodes")
AGGREGATING = ("aggregate_fit", "aggregate_train")  # its methods that make one update of all
MEAN = ("FedAvg", "FaultTolerantFedAvg")  # Flower's own classes whose update is a mean


def from_flower(strategy: Any, *, clients: int, rounds: int) -> Composition:
    """Mechanism of a strategy of Flower; neighbours differ by one client.

    Parameters
    ----------
    strategy : flwr.server.strategy.Strategy
        ``DifferentialPrivacyServerSideFixedClipping`` or
        ``DifferentialPrivacyClientSideFixedClipping``, of either interface.
    clients : int
        Number of clients that are connected in each round, at least as many as are sampled.
    rounds : int
        Number of rounds, >= 0.

    Returns
    -------
    Composition
        Gaussian noise on cohorts of fixed size, drawn without replacement, as Flower draws them.

    Raises
    ------
    ValueError
        For another strategy, and if the wrapped one samples another number of clients or is one
        of Flower's that does not average, such as ``FedAdam`` or ``FedMedian``.

    Notes
    -----
    Noise is scaled to ``clipping_norm / num_sampled_clients``.  So the guarantee needs two things
    that cannot be checked here: the wrapped strategy weights all clients equally (``FedAvg``
    weights them by their numbers of examples), and no client fails or is left out.  Statements say
    so.

    Adaptive clipping is refused: it clips to one norm and scales the noise to the next one, which
    may be smaller, so that the noise multiplier has no lower bound.

    Examples
    --------
    ``from_flower(DifferentialPrivacyServerSideFixedClipping(FedAvg(fraction_fit=0.1), 1.0, 0.5,
    100), clients=1000, rounds=50)`` is ``GaussianMechanism(1.0)`` on 100 of 1000 clients, 50 times.
    """
    names = [cls.__name__ for cls in type(strategy).__mro__]
    if any(name in ADAPTIVE for name in names):
        raise ValueError(
            "strategy must clip with a fixed norm: with adaptive clipping Flower scales the noise "
            "to the norm of the next round, so that no noise multiplier is kept"
        )
    if not any(name in FIXED for name in names):
        raise ValueError(
            f"strategy must be one of {' and '.join(FIXED)}, got {type(strategy).__name__}"
        )
    number = checks.count("rounds", rounds)
    every = checks.count("clients", clients, least=1)
    size = checks.count("strategy.num_sampled_clients", strategy.num_sampled_clients, least=1)
    if size > every:
        raise ValueError(
            f"clients must be at least the {size:,} that are sampled a round, got {every:,}"
        )
    if not _averages(strategy.strategy):
        raise ValueError(
            "strategy must wrap one that averages the updates, such as FedAvg, got "
            f"{type(strategy.strategy).__name__}: the noise is scaled to what one client moves a "
            "mean"
        )
    drawn = _cohort(strategy.strategy, every)
    if drawn is not None and drawn != size:
        raise ValueError(
            f"strategy must sample num_sampled_clients = {size:,} clients a round, but what it "
            f"wraps samples {drawn:,} of {every:,}"
        )
    noise = float(strategy.noise_multiplier)
    if noise == 0.0:
        return GenericMechanism(0, 1).composed(number)
    step = GaussianMechanism(noise).sampled_without_replacement(batch_size=size, dataset_size=every)
    words = step.words._replace(
        batches=f"each cohort is {size:,} of {every:,} clients, drawn anew and uniformly (without "
        "replacement); all clients of a cohort count equally, and none fails",
        unit=f"one client of {every:,}",
    )
    return worded(step, words).composed(number)


def _averages(inner: Any) -> bool:
    """Whether the update is a mean of the clients', as far as Flower's own classes tell."""
    own = [cls for cls in type(inner).__mro__ if cls.__module__.partition(".")[0] == "flwr"]
    makes = (cls.__name__ for cls in own if any(name in vars(cls) for name in AGGREGATING))
    return next(makes, "FedAvg") in MEAN


def _cohort(inner: Any, clients: int) -> int | None:
    """Number of clients that the wrapped strategy samples; None if unknown."""
    shares = [getattr(inner, name) for name in SHARES if hasattr(inner, name)]
    least = [int(getattr(inner, name)) for name in LEAST if hasattr(inner, name)]
    if not shares:
        return None
    return min(max(int(clients * shares[0]), *least, 0), clients)
