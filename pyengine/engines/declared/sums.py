"""Sums of positive terms and lattices: any steps, with proven bounds."""

from __future__ import annotations

from pyengine.answers import PairQuestions
from pyengine.engines.problem import Engine, Problem
from pyengine.errors import AccuracyError

__all__ = ["ExactEngine", "LatticeEngine"]


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

    def bounds_all(self, problem: Problem) -> bool:
        return True

    def pair(self, problem: Problem) -> PairQuestions:
        from pyengine.engines.exact import exact_questions

        return exact_questions(problem.laws)


class LatticeEngine(Engine):
    """Any steps, on a lattice of losses between two roundings.

    Parameters
    ----------
    most_points : int, optional
        Points that a lattice may have; all that fit if not given.
    """

    name = "lattice"
    methods = ("auto",)
    certified = True

    def __init__(self, most_points: int | None = None) -> None:
        self._most_points = most_points

    def supports(self, problem: Problem) -> bool:
        return True

    def bounds_all(self, problem: Problem) -> bool:
        return sum(number for _, number in problem.laws) == 1  # no lattice at all: see `pair`

    def pair(self, problem: Problem) -> PairQuestions:
        from pyengine.engines.exact import disjoint_questions
        from pyengine.engines.exact.single import SingleStep
        from pyengine.engines.exact.threshold import ThresholdQuestions
        from pyengine.engines.lattice import TOLERANCE, LatticePair

        told_apart = disjoint_questions(problem.laws, "lattice")
        if told_apart is not None:
            return told_apart
        tolerance = TOLERANCE if problem.tolerance is None else problem.tolerance
        pair = LatticePair(problem.laws, tolerance, problem.wanted, self._most_points)
        if sum(number for _, number in pair.parts) == 1:  # one edge is all that it takes
            return ThresholdQuestions(SingleStep(pair.parts[0][0]), "lattice")
        return pair
