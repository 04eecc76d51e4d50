"""Sums of positive terms and lattices: any steps, with proven bounds."""

from __future__ import annotations

from pyengine.engines.answers import Questions
from pyengine.engines.hull import Between
from pyengine.engines.problem import Engine, Problem
from pyengine.errors import AccuracyError

__all__ = ["LOOSEST", "ExactEngine", "LatticeEngine"]

LOOSEST = 1e-2  # relative width of bounds that are an answer where none narrower are had


class ExactEngine(Engine):
    """Finitely many losses, Laplace steps, and few steps of both: sums of positive terms."""

    name = "exact"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        from pyengine.engines.exact import exact_refusal

        return exact_refusal(problem.laws) is None

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.engines.exact import exact_refusal

        return AccuracyError(exact_refusal(problem.laws))

    def pair(self, problem: Problem) -> Questions:
        from pyengine.engines.exact import exact_questions

        return exact_questions(problem.laws)


class LatticeEngine(Engine):
    """Any steps, on a lattice of losses between two roundings.

    Steps that are known between two laws only are composed twice, once with each.

    Parameters
    ----------
    most_points : int, optional
        Points that a lattice may have; all that fit if not given.
    side : {0, 1} or None
        Which of two laws stands for a step that they enclose: the one below or the one above; None
        for both.
    """

    name = "lattice"
    methods = ("auto",)
    certified = True

    def __init__(self, most_points: int | None = None, side: int | None = None) -> None:
        self._most_points, self._side = most_points, side

    def supports(self, problem: Problem) -> bool:
        return True

    def pair(self, problem: Problem) -> Questions:
        from pyengine.engines.exact import disjoint_questions
        from pyengine.engines.exact.single import SingleStep
        from pyengine.engines.exact.threshold import ThresholdQuestions
        from pyengine.engines.lattice import TOLERANCE, LatticePair

        laws = problem.laws
        tolerance = TOLERANCE if problem.tolerance is None else problem.tolerance
        if _has_enclosed(problem):
            if self._side is None:
                return Between(*(side.pair(problem) for side in self._sides()))
            # two brackets, and what lies between them, have to fit
            tolerance *= 0.25
            laws = [(law.enclosed(problem.tolerance)[self._side], number) for law, number in laws]
        told_apart = disjoint_questions(laws, "lattice")
        if told_apart is not None:
            return told_apart
        loosest = LOOSEST if problem.tolerance is None else 0.0
        pair = LatticePair(laws, tolerance, problem.wanted, self._most_points, loosest)
        if sum(number for _, number in pair.parts) == 1:  # one edge is all that it takes
            return ThresholdQuestions(SingleStep(pair.parts[0][0]), "lattice")
        return pair

    def _sides(self) -> tuple[LatticeEngine, LatticeEngine]:
        return LatticeEngine(self._most_points, 0), LatticeEngine(self._most_points, 1)


def _has_enclosed(problem: Problem) -> bool:
    """Whether a step is known between two laws only."""
    return not all(law.has_cells for law, _ in problem.laws)
