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
    from pyengine.engines.hull import joined

    return joined(*(engine.pair(problem.ordered(order)) for order in ("add", "remove")))
