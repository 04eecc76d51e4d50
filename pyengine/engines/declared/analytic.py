"""Analytic densities of users: vertical lines, with proven bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyengine.answers import Questions
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.mechanisms import steps_of

if TYPE_CHECKING:
    from pyengine.engines.panels.questions import PanelQuestions

__all__ = ["AnalyticEngine"]


class AnalyticEngine(Engine):
    """Steps of analytic densities, samples of them, and compositions of them with Gaussian steps.

    What its lines do not know narrowly the lattice estimates.
    """

    name = "certified"
    methods = ("auto",)
    certified = True
    needs_masses = False

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.adjacency == "substitute":
            return False
        if not any(step.inner.is_analytic for step, _ in steps_of(problem.mechanism)):
            return False
        from pyengine.engines.analytic_lines.range import analytic_order

        return analytic_order(problem.laws) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.panels.questions import PanelBothOrders, PanelOneOrder

        if problem.adjacency != "add_remove":
            return PanelOneOrder(self.pair(problem))
        add, remove = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
        return PanelBothOrders(add, remove, lambda: ask(replace(problem, method="lattice")))

    def pair(self, problem: Problem) -> PanelQuestions:
        from pyengine.engines.analytic_lines.range import analytic_order
        from pyengine.engines.panels.questions import PanelQuestions
        from pyengine.engines.unproven import UnprovenPair

        law = analytic_order(problem.laws)
        assert law is not None
        return PanelQuestions(
            law, problem.tolerance, lambda: UnprovenPair(LatticeEngine().pair(problem))
        )
