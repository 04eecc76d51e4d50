"""Gaussian steps, their mixtures and epochs: contours and convolutions, estimated or proven."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyengine.answers import PairQuestions, Questions
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.gaussian import GaussianPairQuestions
from pyengine.engines.orders import both_orders
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.engines.row_questions import BothOrdersOfRows, OneOrderOfRows
from pyengine.errors import AccuracyError
from pyengine.pairs import enclosing_pairs, ordered_pair

if TYPE_CHECKING:
    from pyengine.engines.allocation import EpochQuestions
    from pyengine.engines.certified import CertifiedPair, CertifiedSide
    from pyengine.engines.smooth import SmoothPairQuestions, SmoothSide

    Sides = tuple[CertifiedSide | None, CertifiedSide | None]

__all__ = ["CertifiedEngine", "EpochEngine", "GaussianEngine", "HandoverEngine", "SmoothEngine"]

# Of a lattice that is to prove what another engine has answered: more of them take longer than
# that answer was worth waiting for.
PROVING_POINTS = 2**21


def _are_smooth(problem: Problem) -> bool:
    """Whether all of several steps may be mixtures of normals, told without their engines."""
    laws = problem.laws
    return sum(number for _, number in laws) > 1 and all(
        law.mixtures() is not None or law.nodes(number) is not None for law, number in laws
    )


def _has_epochs(problem: Problem) -> bool:
    """Whether there are epochs among the steps, told without their engines."""
    return any(law.tabulated() is not None for law, _ in problem.laws)


class GaussianEngine(Engine):
    """Gaussian steps on samples: the spectral engine, else the convolution, else what proves.

    Parameters
    ----------
    is_last : bool
        Whether nobody is asked what both refuse.
    """

    name = "spectral"
    methods = ("auto", "convolution")

    def __init__(self, *, is_last: bool = False) -> None:
        self._prover: Engine | None = None
        if not is_last:
            last = GaussianEngine(is_last=True)
            self._prover = CertifiedEngine(HandoverEngine(LatticeEngine(PROVING_POINTS), last))

    def supports(self, problem: Problem) -> bool:
        return problem.rows is not None

    def prover(self) -> Engine | None:
        return self._prover

    def refusal(self, problem: Problem) -> Exception:
        return AccuracyError(
            f"method={problem.method!r} answers for Gaussian noise, plain, on a Poisson sample or "
            "without replacement; ask method='auto'"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        if problem.adjacency != "add_remove":
            return OneOrderOfRows(self.pair(problem))
        return BothOrdersOfRows(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> GaussianPairQuestions:
        assert problem.rows is not None
        pair = ordered_pair(problem.rows, problem.order)
        rates = [probability for _, _, probability, _ in problem.rows]
        return GaussianPairQuestions(pair, problem.method, problem.tolerance, problem.wanted, rates)


class HandoverEngine(Engine):
    """An engine's answers, and those of a second one where it refuses them.

    Parameters
    ----------
    first, second : Engine
        Both engines.
    """

    def __init__(self, first: Engine, second: Engine) -> None:
        self._first, self._second = first, second

    def pair(self, problem: Problem) -> PairQuestions:
        from pyengine.engines.handover import Handover

        return Handover(lambda: self._first.pair(problem), lambda: self._second.pair(problem))

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        if problem.adjacency != "add_remove":
            return None
        from pyengine.engines.handover import HandoverOfBoth

        return HandoverOfBoth(
            lambda: both_orders(self._first, problem, ask),
            lambda: both_orders(self._second, problem, ask),
        )


class EpochEngine(Engine):
    """One epoch of random allocation, or several equal ones if asked by name: convolutions."""

    name = "convolution"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or not _has_epochs(problem):
            return False
        from pyengine.engines.allocation import tabulated_epochs

        found = tabulated_epochs(problem.laws)
        if found is None or found.epochs == 1 or problem.method == self.name:
            return found is not None
        return found.law.nodes(found.epochs) is None  # which the spectral engine would need

    def refusal(self, problem: Problem) -> Exception:
        return GaussianEngine().refusal(problem)

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        from pyengine.engines.smooth import SmoothBothOrders

        if problem.adjacency != "add_remove":
            return OneOrderOfRows(self.pair(problem))
        return SmoothBothOrders(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> EpochQuestions:
        from pyengine.engines.allocation import EpochQuestions, tabulated_epochs

        engine = tabulated_epochs(problem.laws)
        assert engine is not None
        return EpochQuestions(engine, problem.tolerance)


class SmoothEngine(Engine):
    """Steps whose sides are mixtures of normals: spectral engine, convolution, else what proves."""

    name = "spectral"
    methods = ("auto", "convolution")

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or not _are_smooth(problem):
            return False
        from pyengine.engines.bounded_mixtures import bounded_mixtures
        from pyengine.engines.smooth import smooth_pair

        pair = smooth_pair(problem.laws)
        if pair is None or problem.method != "convolution":
            return pair is not None
        return bounded_mixtures(pair) is not None

    def prover(self) -> Engine:
        return CertifiedEngine(LatticeEngine(PROVING_POINTS))

    def refusal(self, problem: Problem) -> Exception:
        bounded = " whose losses are bounded below" if problem.method == "convolution" else ""
        return AccuracyError(
            f"method={problem.method!r} answers for several Gaussian steps, their mixtures and "
            f"samples of them{bounded}; ask method='auto'"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        from pyengine.engines.smooth import SmoothBothOrders

        if problem.adjacency != "add_remove":
            return None if problem.attained else OneOrderOfRows(self.pair(problem))
        return SmoothBothOrders(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> SmoothPairQuestions:
        from pyengine.engines.allocation import tabulated_epochs
        from pyengine.engines.smooth import SmoothPairQuestions, smooth_pair

        pair = smooth_pair(problem.laws)
        assert pair is not None
        epochs = tabulated_epochs(problem.laws) is not None
        other: Engine = EpochEngine() if epochs else CertifiedEngine()

        def otherwise() -> PairQuestions:
            from pyengine.engines.unproven import UnprovenPair

            found = other.pair(problem)
            return found if problem.has_proven_masses else UnprovenPair(found)

        asked = otherwise if problem.method == "auto" else None
        return SmoothPairQuestions(pair, problem.method, problem.tolerance, asked)


class CertifiedEngine(Engine):
    """Gaussian steps on samples, their mixtures and epochs, by sums whose errors are theorems.

    Parameters
    ----------
    otherwise : Engine, optional
        Answers what has no proof there; the lattice if not given.
    """

    name = "certified"
    certified = True

    def __init__(self, otherwise: Engine | None = None) -> None:
        self._otherwise = otherwise

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return True
        known = not problem.is_relaxed and problem.given is None
        return known and self._side(problem) is not None

    def has_lines(self, problem: Problem) -> bool:
        """Whether its rows are those of lines, many of which take little time."""
        return self.supports(problem) and (
            problem.rows is not None or self._smooth(problem) is not None
        )

    @staticmethod
    def _smooth(problem: Problem) -> SmoothSide | None:
        if not _are_smooth(problem):
            return None
        from pyengine.engines.smooth import SmoothSide, smooth_pair

        pair = smooth_pair(problem.laws)
        return None if pair is None else SmoothSide.of(pair)

    def _side(self, problem: Problem) -> CertifiedSide | None:
        smooth = self._smooth(problem)
        if smooth is not None or not _has_epochs(problem):
            return smooth
        from pyengine.engines.certified_epochs import EpochSide

        return EpochSide.of(problem.laws)

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        if problem.adjacency != "add_remove":
            return None
        add, remove = (problem.ordered(order) for order in ("add", "remove"))
        first, second = self.sides(add), self.sides(remove)
        other = self._otherwise or LatticeEngine()
        if None in first or None in second:
            return both_orders(other, problem, ask)
        import pyengine.engines.certified_hull as certified  # names from it would take longer

        return certified.CompletedBothOrders(
            _pair(add, first, partial(other.pair, add)),
            _pair(remove, second, partial(other.pair, remove)),
            lambda: both_orders(other, problem, ask),
        )

    def pair(self, problem: Problem) -> PairQuestions:
        other, sides = self._otherwise or LatticeEngine(), self.sides(problem)
        return (
            other.pair(problem)
            if None in sides
            else _pair(problem, sides, partial(other.pair, problem))
        )

    def sides(self, problem: Problem) -> Sides:
        """Sides of Gaussian steps, else of others; None where nothing is proven of a step."""
        if problem.rows is None:
            side = self._side(problem)
            return side, side
        import pyengine.engines.certified as certified

        private, public = enclosing_pairs(problem.rows, problem.adjacency)
        side_of = certified.GaussianSide(public)
        return side_of if private == public else certified.GaussianSide(private), side_of


def _pair(problem: Problem, sides: Sides, otherwise: Callable[[], PairQuestions]) -> CertifiedPair:
    import pyengine.engines.certified as certified  # names from it would take longer

    private, public = sides
    assert private is not None
    assert public is not None
    return certified.CertifiedPair(private, public, problem.tolerance, otherwise)
