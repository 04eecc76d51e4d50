"""Laplace steps: vertical lines and laws on panels, with proven bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyengine.answers import PairQuestions, Questions
from pyengine.engines.declared.sums import ExactEngine, LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem

if TYPE_CHECKING:
    from pyengine.engines.panels.ordered import OrderedLaw
    from pyengine.engines.panels.questions import PanelQuestions

__all__ = ["PanelEngine"]

Made = TypeVar("Made")

# relative widths of bounds that no other engine is asked to narrow: of lines, and of laws on panels
NARROW, WIDE = 1e-9, 1e-8


class PanelEngine(Engine):
    """Laplace steps, plain or on Poisson samples.

    Many steps have lines, of one kind or several; few ones of one kind polynomials on panels.  What
    neither answers narrowly is asked of deformed lines, and of exact sums or the lattice, as well.
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

        def sums() -> Questions:
            is_exact = ExactEngine().supports(problem)
            return ask(replace(problem, method="exact" if is_exact else "lattice"))

        add, remove = (_levels(problem.ordered(order)) for order in ("add", "remove"))
        found: Questions | None = None
        for pair in zip(add, remove, strict=True):
            found = PanelBothOrders(*pair, sums if found is None else _always(found))
        assert found is not None
        return found

    def pair(self, problem: Problem) -> PanelQuestions:
        return _levels(problem)[-1]


def _has_lines(problem: Problem) -> bool:
    from pyengine.engines.vertical_lines.range import line_order

    return line_order(problem.laws) is not None


def _has_panels(problem: Problem) -> bool:
    from pyengine.engines.panels.range import is_served

    return is_served(problem.laws)


def _levels(problem: Problem) -> list[PanelQuestions]:
    """Questions on the engines that serve, the first one last; each asks the one before it."""
    from pyengine.engines.panels.questions import PanelQuestions
    from pyengine.engines.panels.range import order_of
    from pyengine.engines.vertical_lines.deformation import DeformedOrder, is_deformed
    from pyengine.engines.vertical_lines.range import deformed_order, line_order

    # what each answer may be wide at most where another engine follows
    steps: list[tuple[OrderedLaw, float]] = []
    line = line_order(problem.laws)
    if line is not None:
        steps.append((line, NARROW))
    others: list[tuple[OrderedLaw, float]] = []
    if _has_panels(problem):
        others.append((order_of(problem.laws), WIDE))
    if not isinstance(line, DeformedOrder):
        deformed = deformed_order(problem.laws)
        if deformed is not None:
            # the quicker ones first
            others.insert(0 if is_deformed(deformed.kinds) else len(others), (deformed, WIDE))
    steps += others
    found: list[PanelQuestions] = []
    for law, width in reversed(steps):
        if not found:
            found.append(PanelQuestions(law, problem.tolerance, lambda: _sums(problem)))
        else:
            narrow = width if problem.tolerance is None else min(width, problem.tolerance)
            found.append(PanelQuestions(law, narrow, _always(found[-1])))
    return found


def _always(made: Made) -> Callable[[], Made]:
    """What is made already, as those take it that make it when it is asked."""
    return lambda: made


def _sums(problem: Problem) -> PairQuestions:
    sums = ExactEngine()
    return (sums if sums.supports(problem) else LatticeEngine()).pair(problem)
