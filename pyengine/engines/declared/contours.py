"""Gaussian steps, their mixtures and epochs: rows of lines and of laws, proven or estimated."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyengine.engines.answers import PairQuestions, Questions
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.equal_steps import CLOSE, TELLING
from pyengine.engines.orders import both_orders
from pyengine.engines.pairs import enclosing_pairs, ordered_pair
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.engines.certified import CertifiedPair
    from pyengine.engines.functionals import RowEngine
    from pyengine.engines.row_sides import EstimatedSide, RowSide

    Sides = tuple[RowSide | None, RowSide | None]

__all__ = ["CertifiedEngine", "EstimateEngine"]

WORDS = ("spectral", "convolution")  # that ask one of the engines that estimate


def _are_smooth(problem: Problem) -> bool:
    """Whether all of several steps may be mixtures of normals, told without their engines."""
    laws = problem.laws
    return sum(number for _, number in laws) > 1 and all(
        law.mixtures() is not None or law.nodes(number) is not None for law, number in laws
    )


def _has_epochs(problem: Problem) -> bool:
    """Whether there are epochs among the steps, told without their engines."""
    return any(law.tabulated() is not None for law, _ in problem.laws)


def _is_law(problem: Problem) -> bool:
    """Whether the mechanism's own laws are asked about."""
    return not problem.is_relaxed and problem.given is None


class CertifiedEngine(Engine):
    """Gaussian steps on samples, their mixtures and epochs, by sums whose errors are theorems.

    What has no proof there the lattice answers, and what that refuses is estimated, unless proofs
    are asked for by name.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return True
        return _is_law(problem) and self._side(problem) is not None

    def _smooth(self, problem: Problem) -> RowSide | None:
        if not _are_smooth(problem):
            return None
        from pyengine.engines.smooth import SmoothSide, smooth_pair

        pair = smooth_pair(problem.laws)
        return None if pair is None else SmoothSide.of(pair, thorough=self._proves(problem))

    def _side(self, problem: Problem) -> RowSide | None:
        smooth = self._smooth(problem)
        if smooth is not None or not _has_epochs(problem):
            return smooth
        from pyengine.engines.certified_epochs import EpochSide

        return EpochSide.of(problem.laws)

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        import pyengine.engines.certified_hull as hulls  # names from it would take longer

        found: hulls.RowsOfOneOrder | hulls.CertifiedBothOrders
        if problem.adjacency != "add_remove":
            if problem.attained:
                return None
            found = hulls.RowsOfOneOrder(self._pair(problem))
        else:
            add, remove = (self._pair(problem.ordered(order)) for order in ("add", "remove"))
            other = partial(self._otherwise, problem, ask)
            found = hulls.CertifiedBothOrders(add, remove, other)
        if not self._proves(problem):
            found.quick = partial(EstimateEngine().found, problem)
        return found

    def _otherwise(self, problem: Problem, ask: Ask) -> Questions:
        """Both orders by the engines that answer what rows do not."""
        from pyengine.engines.handover import HandoverOfBoth

        found = [partial(both_orders, engine, problem, ask) for engine in self._others(problem)]
        return found[0]() if len(found) == 1 else HandoverOfBoth(*found)

    def _others(self, problem: Problem) -> tuple[Engine, ...]:
        """Who is asked in turn what rows do not say: for a value an estimate is the quicker one."""
        estimated = () if EstimateEngine.side(problem) is None else (EstimateEngine(),)
        if problem.method == self.name:
            return (LatticeEngine(),)
        if problem.proven:
            return LatticeEngine(), *estimated
        return *estimated, _ProvenEngine()

    def pair(self, problem: Problem) -> PairQuestions:
        return self._pair(problem)

    def _pair(self, problem: Problem) -> CertifiedPair:
        import pyengine.engines.certified as certified  # names from it would take longer

        private, public, proven = self._sides(problem)
        other, tolerance = partial(self._other_pair, problem), problem.tolerance
        if tolerance is None and not self._proves(problem):
            tolerance = CLOSE
        rows = problem.rows
        if rows and not self._proves(problem):
            near = ordered_pair(rows, problem.order)
            if min(near.noise) <= TELLING:
                from pyengine.engines.telling import TellingPair

                return TellingPair(near, public, tolerance, other, proven=proven)
        found = certified.CertifiedPair(private, public, tolerance, other, proven=proven)
        found.is_ordinary = problem.tolerance is None
        return found

    def _proves(self, problem: Problem) -> bool:
        """Whether bounds are wanted as narrow as they can be proven."""
        return problem.proven or problem.method == self.name

    def _other_pair(self, problem: Problem) -> PairQuestions:
        """One order by the engines that answer what rows do not."""
        from pyengine.engines.handover import Handover

        found = [partial(engine.pair, problem) for engine in self._others(problem)]
        return found[0]() if len(found) == 1 else Handover(*found)

    def _sides(self, problem: Problem) -> tuple[RowSide, RowSide, bool]:
        """The private and the public side, and whether rows of both prove bounds.

        Where rates are no doubles two pairs of doubles enclose the one that is asked about; the
        nearest one is enough for a value.
        """
        if problem.rows is None:
            side = self._side(problem)
            assert side is not None
            return side, side, True
        import pyengine.engines.gaussian as gaussian

        rates = [probability for _, _, probability, _ in problem.rows]
        private, public = enclosing_pairs(problem.rows, problem.order)
        if not self._proves(problem):
            near = ordered_pair(problem.rows, problem.order)
            side = gaussian.GaussianSide(near, rates, thorough=False)
            if private != public:
                side.name = "spectral"  # of other rates than those that are asked about
            return side, side, private == public
        public_side = gaussian.GaussianSide(public, rates)
        if private == public:
            return public_side, public_side, True
        return gaussian.GaussianSide(private, rates), public_side, True


def never(problem: Problem) -> Questions:
    """Nobody else is asked."""
    raise AccuracyError(f"no other engine is asked for {problem.mechanism}")


class _ProvenEngine(CertifiedEngine):
    """The same as narrow as it can be proven, whatever is asked for."""

    def _proves(self, problem: Problem) -> bool:
        return True

    def _others(self, problem: Problem) -> tuple[Engine, ...]:
        return (LatticeEngine(),)


class EstimateEngine(Engine):
    """Rows with estimated errors: of epochs, whose proofs take longer, and where none is had."""

    name = "convolution"
    methods = ("auto", "spectral")

    def supports(self, problem: Problem) -> bool:
        if problem.method != "auto":
            return problem.rows is not None or (_is_law(problem) and self._has_rows(problem))
        if problem.rows is not None or not _is_law(problem):
            return False
        if not _has_epochs(problem) and CertifiedEngine().supports(problem):
            return False
        return self._has_rows(problem)

    @classmethod
    def _has_rows(cls, problem: Problem) -> bool:
        return cls.side(replace(problem, method="auto")) is not None

    @staticmethod
    def side(problem: Problem) -> EstimatedSide | None:
        """Rows with estimated errors; None where there are none."""
        word = problem.method if problem.method in WORDS else "auto"
        if problem.rows is not None:
            from pyengine.engines.gaussian import GaussianSide

            rates = [probability for _, _, probability, _ in problem.rows]
            return GaussianSide(ordered_pair(problem.rows, problem.order), rates).estimated(word)
        epochs: RowEngine | None = None
        if _has_epochs(problem) and word != "spectral":
            from pyengine.engines.certified_epochs import tabulated_epochs
            from pyengine.engines.row_sides import EstimatedSide

            found = epochs = tabulated_epochs(problem.laws)
            named = word == "convolution"
            if found is not None and (
                named or found.epochs == 1 or found.law.nodes(found.epochs) is None
            ):
                return EstimatedSide(lambda: found, found.name, found.ends)
        if not _are_smooth(problem):
            return None
        from pyengine.engines.smooth import estimated_side, smooth_pair

        pair = smooth_pair(problem.laws)
        return None if pair is None else estimated_side(pair, word, epochs)

    def prover(self) -> Engine:
        return CertifiedEngine()

    def refusal(self, problem: Problem) -> Exception:
        return AccuracyError(
            f"method={problem.method!r} answers for several Gaussian steps, their mixtures and "
            "epochs; ask method='auto'"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        import pyengine.engines.certified_hull as hulls

        if problem.adjacency != "add_remove":
            return None if problem.attained else hulls.RowsOfOneOrder(self._pair(problem))
        add, remove = (self._pair(problem.ordered(order)) for order in ("add", "remove"))
        return hulls.CertifiedBothOrders(add, remove, partial(never, problem))

    def found(self, problem: Problem) -> Questions | None:
        """Questions on one order or on both; None where no row is estimated."""
        return None if self.side(problem) is None else self.questions(problem, never)

    def pair(self, problem: Problem) -> PairQuestions:
        return self._pair(problem)

    def _pair(self, problem: Problem) -> CertifiedPair:
        from pyengine.engines.estimated_pair import EstimatedPair

        side = self.side(problem)
        assert side is not None
        named = problem.method in WORDS
        advice = "method='auto' also asks the lattice" if named else "give a larger tolerance"
        found = EstimatedPair(side, problem.tolerance, advice)
        found.is_ordinary = problem.tolerance is None
        return found
