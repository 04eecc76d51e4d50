"""Steps of all kinds on one line, with proven bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from pyengine.engines.answers import Questions
from pyengine.engines.declared.sums import ExactEngine, LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem

if TYPE_CHECKING:
    from pyengine.engines.vertical_lines.ordered import OrderedLaw
    from pyengine.engines.vertical_lines.questions import LineQuestions
    from pyengine.engines.vertical_lines.range import Laws

__all__ = ["LineEngine"]

Made = TypeVar("Made")

# relative widths of bounds that no others are asked to narrow: of lines, of deformed ones, and of
# lines beside which there are laws on pieces
NARROW, WIDE, CLOSE = 1e-9, 1e-8, 1e-10
MOST_WORK = 2**26  # of a value on a line before which laws on pieces are asked


class LineEngine(Engine):
    """Steps of one kind or several whose sum has lines, deformed ones where they are few.

    What those do not answer narrowly is asked of exact sums or the lattice, as well.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.attained:
            return False
        steps = sum(number for _, number in problem.laws)
        if steps < 2 or all(law.finite() is not None for law, _ in problem.laws):
            return False  # what neither engine serves, told without importing them
        return _has_lines(problem)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        if problem.adjacency != "add_remove":
            return self.pair(problem)

        def sums() -> Questions:
            return ask(replace(problem, method=_after_lines(problem).name))

        add, remove = (_levels(problem.ordered(order)) for order in ("add", "remove"))
        asked: Callable[[], Questions] = sums
        # the first ones are the last of each
        both = min(len(add), len(remove))
        for pair in zip(add[len(add) - both :], remove[len(remove) - both :], strict=True):
            asked = cache(partial(_of_both, *pair, asked))
        return asked()

    def pair(self, problem: Problem) -> LineQuestions:
        return _levels(problem)[-1]()


def _of_both(
    add: Callable[[], LineQuestions],
    remove: Callable[[], LineQuestions],
    otherwise: Callable[[], Questions],
) -> Questions:
    from pyengine.engines.vertical_lines.questions import LineBothOrders

    return LineBothOrders(add(), remove(), otherwise)


def _has_lines(problem: Problem) -> bool:
    from pyengine.engines.vertical_lines.range import line_order, order_on_nodes

    if line_order(problem.laws) is not None:
        return True
    return order_on_nodes(tuple(problem.laws)) is not None


def _levels(problem: Problem) -> list[Callable[[], LineQuestions]]:
    """What makes questions on the engines that serve, the first one last; each asks one before."""
    from pyengine.engines.vertical_lines.deformation import DeformedOrder
    from pyengine.engines.vertical_lines.range import (
        deformed_order,
        line_order,
        may_have_nodes,
        order_on_pieces,
        work_of,
    )

    # what each answer may be wide at most where another engine follows
    steps: list[tuple[OrderedLaw, float]] = []
    line = line_order(problem.laws)
    if line is not None:
        steps.append((line, NARROW))
    if not isinstance(line, DeformedOrder):
        deformed = deformed_order(problem.laws)
        if deformed is not None:
            steps.append((deformed, WIDE))
    pieces = order_on_pieces(problem.laws)
    if pieces is not None and line is not None and work_of(line) > MOST_WORK:
        steps.insert(0, (pieces, CLOSE))
    elif pieces is not None:
        if steps:
            steps[-1] = (steps[-1][0], CLOSE)
        steps.append((pieces, WIDE))
    laws = [(_always(law), width) for law, width in steps]
    if may_have_nodes(problem.laws):
        last = steps[-1][0] if steps else None
        if last is not None:
            laws[-1] = (_always(last), CLOSE)
        laws.append((partial(_nodes_or, last, tuple(problem.laws)), WIDE))
    found: list[Callable[[], LineQuestions]] = []
    for law, width in reversed(laws):
        narrow = width if problem.tolerance is None else min(width, problem.tolerance)
        if found:
            found.append(cache(partial(_on, law, narrow, found[-1])))
        else:
            found.append(cache(partial(_on, law, problem.tolerance, partial(_sums, problem))))
    return found


def _nodes_or(last: OrderedLaw | None, laws: Laws) -> OrderedLaw:
    """The law on nodes; without one the last engine is asked again, if less closely than before."""
    from pyengine.engines.vertical_lines.range import order_on_nodes

    found = order_on_nodes(laws) or last
    assert found is not None
    return found


def _on(
    law: Callable[[], OrderedLaw], tolerance: float | None, otherwise: Callable[[], Questions]
) -> LineQuestions:
    from pyengine.engines.vertical_lines.questions import LineQuestions

    return LineQuestions(law(), tolerance, otherwise)


def _always(made: Made) -> Callable[[], Made]:
    """What is made already, as those take it that make it when it is asked."""
    return lambda: made


def _sums(problem: Problem) -> Questions:
    return _after_lines(problem).pair(problem)


def _after_lines(problem: Problem) -> Engine:
    """Which engine is asked for what lines do not know narrowly."""
    exact = ExactEngine()
    return exact if exact.supports(problem) else LatticeEngine()
