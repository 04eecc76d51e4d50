"""The approximations that the papers publish, by the words of ``method=``."""

from __future__ import annotations

from pyengine.answers import Questions
from pyengine.curves import OneOrder
from pyengine.engines.approximate import ApproximatePair, JoinedOrders
from pyengine.engines.clt import CltPair
from pyengine.engines.edgeworth import EdgeworthPair
from pyengine.engines.monte_carlo import MonteCarloPair
from pyengine.mechanisms import Mechanism

__all__ = ["published"]


def published(mechanism: Mechanism, adjacency: str, method: str) -> Questions:
    """Return what answers by ``edgeworth``, ``clt`` or ``monte_carlo``."""
    if method == "clt":
        return OneOrder(CltPair(mechanism, adjacency))
    pairs: dict[str, type[EdgeworthPair] | type[MonteCarloPair]] = {
        "edgeworth": EdgeworthPair,
        "monte_carlo": MonteCarloPair,
    }
    if adjacency == "add_remove":
        add, remove = (_pair(pairs[method], mechanism, order) for order in ("add", "remove"))
        return JoinedOrders(add, remove)
    return OneOrder(_pair(pairs[method], mechanism, adjacency))


def _pair(
    kind: type[EdgeworthPair] | type[MonteCarloPair], mechanism: Mechanism, adjacency: str
) -> ApproximatePair:
    return kind(mechanism, adjacency)
