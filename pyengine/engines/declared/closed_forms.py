"""Closed forms: nothing released, single steps, and laws of a length."""

from __future__ import annotations

from pyengine.answers import Questions
from pyengine.curves import NothingReleased
from pyengine.engines.closed_form import (
    ClosedForm,
    ClosedFormPair,
    closed_form_step,
    has_closed_form,
)
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import NotDefinedError

__all__ = [
    "ClosedFormEngine",
    "NothingReleasedEngine",
    "RelaxedClosedFormEngine",
    "RelaxedLimitEngine",
]


class NothingReleasedEngine(Engine):
    """Gaussian steps that never look at the record, and the same in the relaxed threat model."""

    name = "closed_form"
    methods = ("auto", "spectral", "convolution", "exact", "lattice", "clt")
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed:
            return not problem.distances
        return problem.rows == [] and problem.method != "clt"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        return NothingReleased()


class ClosedFormEngine(Engine):
    """One sampled Gaussian step, and Gaussian steps without sampling."""

    name = "closed_form"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        return problem.rows is not None and has_closed_form(problem.rows)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        assert problem.rows is not None
        step = closed_form_step(problem.rows, problem.adjacency)
        return ClosedForm(ClosedFormPair(step, problem.tolerance))


class RelaxedClosedFormEngine(Engine):
    """Relaxed threat model: laws of a length."""

    name = "closed_form"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        return problem.is_relaxed and [number for _, number in problem.distances] == [1]

    def refusal(self, problem: Problem) -> Exception:
        if problem.is_relaxed:
            from pyengine.relaxed.questions import no_closed_form

            return no_closed_form(problem.mechanism)
        return NotDefinedError(
            "method='closed_form' is available for Gaussian steps without sampling and for a "
            f"single sampled step, got {problem.mechanism}"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.relaxed.questions import relaxed_closed_form

        return relaxed_closed_form(problem.distances[0][0], problem.adjacency)


class RelaxedLimitEngine(Engine):
    """Relaxed threat model: squared lengths as if they were normal."""

    name = "clt"

    def supports(self, problem: Problem) -> bool:
        if not problem.is_relaxed or [number for _, number in problem.distances] != [1]:
            return False
        from pyengine.relaxed.gaussian import GaussianDistance

        return isinstance(problem.distances[0][0], GaussianDistance)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.relaxed.gaussian import GaussianDistance
        from pyengine.relaxed.limit import LimitQuestions

        pair = problem.distances[0][0]
        assert isinstance(pair, GaussianDistance)
        return LimitQuestions(pair, problem.adjacency)
