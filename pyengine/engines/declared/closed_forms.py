"""Closed forms: nothing released, single steps, and laws of a length."""

from __future__ import annotations

from pyengine.engines.answers import Questions
from pyengine.engines.closed_form import (
    ClosedForm,
    closed_form_step,
    has_closed_form,
)
from pyengine.engines.curves import NothingReleased
from pyengine.engines.pairs import GaussianRows, gaussian_rows
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import steps_of

__all__ = [
    "ClosedFormEngine",
    "NothingReleasedEngine",
    "RelaxedClosedFormEngine",
    "RelaxedLimitEngine",
]


class NothingReleasedEngine(Engine):
    """Gaussian steps that never look at the record, and the same in the relaxed threat model."""

    name = "closed_form"
    methods = ("auto", "exact", "lattice", "clt")
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed:
            return not problem.distances
        return problem.rows == [] and problem.method != "clt"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        return NothingReleased()


class ClosedFormEngine(Engine):
    """One sampled Gaussian step, one Gaussian batch of fixed size, and steps without sampling."""

    name = "closed_form"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return has_closed_form(problem.rows)
        return _single_batch(problem) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        rows, adjacency = problem.rows, problem.adjacency
        if rows is None:
            rows, adjacency = _single_batch(problem), "add_remove"
        assert rows is not None
        step = closed_form_step(rows, adjacency)
        return ClosedForm(step, problem.tolerance)


def _single_batch(problem: Problem) -> GaussianRows | None:
    """One Gaussian batch of fixed size with a record exchanged, as it is without the record.

    Both orders of that pair are attained, and together they have the largest profile (Theorem 15
    of Lebeda et al., 2024): what is asked is the hull of both (docs/theory/adjacency).
    """
    if problem.adjacency != "substitute" or problem.is_relaxed or problem.given is not None:
        return None
    steps = steps_of(problem.mechanism)
    if len(steps) != 1 or steps[0][1] != 1 or steps[0][0].scheme != "without_replacement":
        return None
    return gaussian_rows(problem.mechanism, "add")


class RelaxedClosedFormEngine(Engine):
    """Relaxed threat model: laws of a length."""

    name = "closed_form"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        return problem.is_relaxed and [number for _, number in problem.distances] == [1]

    def refusal(self, problem: Problem) -> Exception:
        if problem.is_relaxed:
            from pyengine.engines.relaxed.questions import no_closed_form

            return no_closed_form(problem.mechanism)
        return NotDefinedError(
            "method='closed_form' is available for Gaussian steps without sampling and for a "
            f"single sampled step, got {problem.mechanism}"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.relaxed.questions import RelaxedQuestions

        return RelaxedQuestions(problem.distances[0][0], problem.adjacency)


class RelaxedLimitEngine(Engine):
    """Relaxed threat model: squared lengths as if they were normal."""

    name = "clt"

    def supports(self, problem: Problem) -> bool:
        if not problem.is_relaxed or [number for _, number in problem.distances] != [1]:
            return False
        from pyengine.engines.relaxed.gaussian import GaussianDistance

        return isinstance(problem.distances[0][0], GaussianDistance)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.relaxed.gaussian import GaussianDistance
        from pyengine.engines.relaxed.limit import LimitQuestions

        pair = problem.distances[0][0]
        assert isinstance(pair, GaussianDistance)
        return LimitQuestions(pair, problem.adjacency)
