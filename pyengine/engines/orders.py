"""What one engine answers on both orders of a pair: adjacency ``add_remove``."""

from __future__ import annotations

from pyengine.engines.answers import Questions
from pyengine.engines.problem import Ask, Engine, Problem

__all__ = ["both_orders"]


def both_orders(engine: Engine, problem: Problem, ask: Ask) -> Questions:
    """Return an engine's own questions on both orders, else the hull of its pairs.

    Parameters
    ----------
    engine : Engine
        Supports the problem.
    problem : Problem
        Its adjacency is ``add_remove``.
    ask : callable
        As in `Engine.questions`.
    """
    whole = engine.questions(problem, ask)
    if whole is not None:
        return whole
    from pyengine.engines.exact.both import ExactBothOrders
    from pyengine.engines.exact.mixed import Enclosed
    from pyengine.engines.exact.threshold import ThresholdQuestions

    add, remove = (engine.pair(problem.ordered(order)) for order in ("add", "remove"))
    exact = (ThresholdQuestions, Enclosed)
    if isinstance(add, exact) and isinstance(remove, exact):
        return ExactBothOrders(add, remove)
    from pyengine.engines.hull import BothOrders
    from pyengine.engines.lattice import LatticeBothOrders, LatticePair

    if isinstance(add, LatticePair) and isinstance(remove, LatticePair):
        return LatticeBothOrders(add, remove)
    return BothOrders(add, remove)
