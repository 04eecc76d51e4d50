"""Laplace steps: vertical lines and laws on panels, with proven bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyengine.answers import PairQuestions, Questions
from pyengine.engines.declared.sums import ExactEngine, LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem

if TYPE_CHECKING:
    from pyengine.engines.panels.questions import PanelQuestions

__all__ = ["PanelEngine"]

NARROW = 1e-9  # relative width of a line's bounds that laws on panels are not asked to narrow


class PanelEngine(Engine):
    """Laplace steps, plain or on Poisson samples.

    Many steps have lines, of one kind or several; few ones of one kind polynomials on panels.  What
    neither answers narrowly is asked of exact sums or the lattice as well.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.attained:
            return False
        return _has_panels(problem) or _has_lines(problem)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.panels.questions import PanelBothOrders, PanelOneOrder

        if problem.adjacency != "add_remove":
            return PanelOneOrder(self.pair(problem))

        def both(
            way: Callable[[Problem], PanelQuestions], then: Callable[[], Questions]
        ) -> Questions:
            add, remove = (way(problem.ordered(order)) for order in ("add", "remove"))
            return PanelBothOrders(add, remove, then)

        def sums() -> Questions:
            is_exact = ExactEngine().supports(problem)
            return ask(replace(problem, method="exact" if is_exact else "lattice"))

        def panels() -> Questions:
            return both(_panels, sums)

        if _has_lines(problem):
            return both(_lines, panels if _has_panels(problem) else sums)
        return panels()

    def pair(self, problem: Problem) -> PanelQuestions:
        return _lines(problem) if _has_lines(problem) else _panels(problem)


def _has_lines(problem: Problem) -> bool:
    from pyengine.engines.laplace_lines.range import line_order

    return line_order(problem.laws) is not None


def _has_panels(problem: Problem) -> bool:
    from pyengine.engines.panels.range import is_served

    return is_served(problem.laws)


def _lines(problem: Problem) -> PanelQuestions:
    """Questions on lines, else on panels where they serve."""
    from pyengine.engines.laplace_lines.range import line_order
    from pyengine.engines.panels.questions import PanelQuestions

    order = line_order(problem.laws)
    assert order is not None
    if not _has_panels(problem):
        return PanelQuestions(order, problem.tolerance, lambda: _sums(problem))
    narrow = NARROW if problem.tolerance is None else min(NARROW, problem.tolerance)
    return PanelQuestions(order, narrow, lambda: _panels(problem))


def _panels(problem: Problem) -> PanelQuestions:
    """Questions on panels, else on sums of positive terms or the lattice."""
    from pyengine.engines.panels.questions import PanelQuestions
    from pyengine.engines.panels.range import order_of

    return PanelQuestions(order_of(problem.laws), problem.tolerance, lambda: _sums(problem))


def _sums(problem: Problem) -> PairQuestions:
    sums = ExactEngine()
    return (sums if sums.supports(problem) else LatticeEngine()).pair(problem)
