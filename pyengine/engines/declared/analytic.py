"""Analytic densities of users: vertical lines, with proven bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyengine.engines.answers import Questions
from pyengine.engines.curves import Unproven
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError
from pyengine.mechanisms import steps_of

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.questions import LineQuestions

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
        from pyengine.engines.vertical_lines.range import line_order

        return line_order(problem.laws) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.analytic_lines.far import FarQuestions

        near, known = self._asked(problem, ask, far=False)
        return FarQuestions(
            near, known, problem.tolerance, lambda: self._asked(problem, ask, far=True)
        )

    def pair(self, problem: Problem) -> LineQuestions:
        return self._pair(problem, far=False)

    def _asked(self, problem: Problem, ask: Ask, *, far: bool) -> tuple[Questions, float]:
        """Questions on laws that end near or far out, and what they know to be small alone."""
        from pyengine.engines.vertical_lines.questions import LineBothOrders

        if problem.adjacency != "add_remove":
            pair = self._pair(problem, far)
            return pair, pair.law.least_known
        add, remove = (self._pair(problem.ordered(order), far) for order in ("add", "remove"))
        asked = LineBothOrders(add, remove, lambda: ask(replace(problem, method="lattice")))
        return asked, max(pair.law.least_known for pair in (add, remove))

    def _pair(self, problem: Problem, far: bool) -> LineQuestions:
        from pyengine.engines.vertical_lines.questions import LineQuestions
        from pyengine.engines.vertical_lines.range import line_order

        law = line_order(problem.laws, far=far)
        if law is None:
            raise AccuracyError(
                "values so small are asked of laws that end far out, of which these densities have "
                "no lines; method='lattice' estimates"
            )
        return LineQuestions(
            law, problem.tolerance, lambda: Unproven(LatticeEngine().pair(problem))
        )
