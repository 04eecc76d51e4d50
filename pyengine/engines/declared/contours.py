"""Gaussian steps, their mixtures and epochs: rows of lines and of laws; nodes of densities."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyengine.engines.answers import Questions
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.orders import both_orders
from pyengine.engines.pairs import enclosing_pairs
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.engines.certified import CertifiedPair
    from pyengine.engines.certified_epochs import TabulatedEpoch
    from pyengine.engines.row_sides import EstimatedSide, RowSide

__all__ = ["CertifiedEngine", "NodesEngine"]


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

    What has no proof there the lattice answers.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return True
        return _is_law(problem) and _side(problem) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        import pyengine.engines.certified_hull as hulls  # names from it would take longer

        if problem.adjacency != "add_remove":
            return None if problem.attained else self.pair(problem)
        add, remove = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
        other = partial(both_orders, LatticeEngine(), problem, ask)
        return hulls.CertifiedBothOrders(add, remove, other)

    def pair(self, problem: Problem) -> CertifiedPair:
        import pyengine.engines.certified as certified  # names from it would take longer

        other = partial(LatticeEngine().pair, problem)
        return certified.CertifiedPair(*_sides(problem), problem.tolerance, other)


def _side(problem: Problem) -> RowSide | None:
    """What has proven rows of steps that are not all Gaussian; None where nothing has."""
    if _are_smooth(problem):
        from pyengine.engines.smooth import SmoothSide, smooth_pair

        pair = smooth_pair(problem.laws)
        smooth = None if pair is None else SmoothSide.of(pair)
        if smooth is not None:
            return smooth
    if not _has_epochs(problem):
        return None
    from pyengine.engines.certified_epochs import EpochSide

    return EpochSide.of(problem.laws)


def _sides(problem: Problem) -> tuple[RowSide, RowSide]:
    """The private and the public side.

    Where rates are no doubles two pairs of doubles enclose the one that is asked about.
    """
    if problem.rows is None:
        side = _side(problem)
        assert side is not None
        return side, side
    import pyengine.engines.gaussian as gaussian

    rates = [probability for _, _, probability, _ in problem.rows]
    private, public = enclosing_pairs(problem.rows, problem.order)
    public_side = gaussian.GaussianSide(public, rates)
    if private == public:
        return public_side, public_side
    return gaussian.GaussianSide(private, rates), public_side


def never(problem: Problem) -> Questions:
    """Nobody else is asked."""
    raise AccuracyError(f"no other engine is asked for {problem.mechanism}")


class NodesEngine(Engine):
    """Nodes of densities, whose errors are estimates: of epochs, and where no line proves more.

    Proofs of epochs take twenty times as long.
    """

    name = "spectral"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None or not _is_law(problem):
            return False
        if not _has_epochs(problem) and CertifiedEngine().supports(problem):
            return False
        return _estimated(problem) is not None

    def prover(self) -> Engine:
        return CertifiedEngine()

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        import pyengine.engines.certified_hull as hulls

        if problem.adjacency != "add_remove":
            return None if problem.attained else self.pair(problem)
        add, remove = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
        return hulls.CertifiedBothOrders(add, remove, partial(never, problem))

    def pair(self, problem: Problem) -> CertifiedPair:
        from pyengine.engines.estimated_pair import EstimatedPair

        side = _estimated(problem)
        assert side is not None
        return EstimatedPair(side, problem.tolerance)


def _estimated(problem: Problem) -> EstimatedSide | None:
    """Rows with estimated errors; None where there are none."""
    found: TabulatedEpoch | None = None
    if _has_epochs(problem):
        from pyengine.engines.certified_epochs import tabulated_epochs
        from pyengine.engines.row_sides import EstimatedSide

        found = tabulated_epochs(problem.laws)
        if found is not None and (found.epochs == 1 or found.law.nodes(found.epochs) is None):
            return EstimatedSide(lambda: found, found.name, found.ends)
    if not _are_smooth(problem):
        return None
    from pyengine.engines.smooth import estimated_side, smooth_pair

    pair = smooth_pair(problem.laws)
    return None if pair is None else estimated_side(pair, found)
