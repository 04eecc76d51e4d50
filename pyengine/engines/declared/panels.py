"""Equal Laplace steps: laws on panels, with proven bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyengine.answers import PairQuestions, Questions
from pyengine.engines.declared.sums import ExactEngine, LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem

if TYPE_CHECKING:
    from pyengine.engines.panels.questions import PanelQuestions

__all__ = ["PanelEngine"]


class PanelEngine(Engine):
    """Equal Laplace steps, plain or on Poisson samples: polynomials on panels, else the lattice."""

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.attained:
            return False
        from pyengine.engines.panels.range import is_served

        return is_served(problem.laws)

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        if problem.adjacency != "add_remove":
            return None
        from pyengine.engines.panels.questions import PanelBothOrders

        def otherwise() -> Questions:
            sums = ExactEngine().supports(problem)
            return ask(replace(problem, method="exact" if sums else "lattice"))

        add, remove = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
        return PanelBothOrders(add, remove, otherwise)

    def pair(self, problem: Problem) -> PanelQuestions:
        from pyengine.engines.panels.questions import PanelQuestions
        from pyengine.engines.panels.range import order_of

        def otherwise() -> PairQuestions:
            sums = ExactEngine()
            return (sums if sums.supports(problem) else LatticeEngine()).pair(problem)

        return PanelQuestions(order_of(problem.laws), problem.tolerance, otherwise)
