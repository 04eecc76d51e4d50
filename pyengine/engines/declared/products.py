"""Mechanisms that others answer for: smooth steps beside few losses, and bounds by blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyengine.answers import PairQuestions, Questions
from pyengine.engines.declared.contours import CertifiedEngine
from pyengine.engines.declared.sums import LatticeEngine
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, Step, compose, steps_of

if TYPE_CHECKING:
    from pyengine.engines.exact.finite import FiniteComposition

__all__ = ["BlocksEngine", "ProductEngine"]


class ProductEngine(Engine):
    """Several smooth steps beside steps of few losses: sums of certified rows, else the lattice."""

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        return self._parts(problem) is not None

    @staticmethod
    def may_support(problem: Problem) -> bool:
        """Whether steps of few losses stand beside others, told without any work."""
        from pyengine.laws.finite import FiniteLaw

        few = [isinstance(law, FiniteLaw) for law, _ in problem.laws]
        return any(few) and not all(few)

    @staticmethod
    def _parts(problem: Problem) -> tuple[FiniteComposition, Problem] | None:
        """Steps of few losses, and the same problem of the other steps."""
        if problem.is_relaxed or problem.given is not None or problem.adjacency == "substitute":
            return None
        from pyengine.engines.exact.kept import finite_composition
        from pyengine.engines.product import MOST_LOSSES
        from pyengine.laws.composition import step_law
        from pyengine.laws.finite import FiniteLaw

        few, others, smooth_steps = [], [], 0
        for step, number in steps_of(problem.mechanism):
            law = step_law(step, problem.order)
            if isinstance(law, FiniteLaw):
                few.append((law, number))
            else:
                others.append(step.composed(number))
                smooth_steps += number
        if not few or smooth_steps < 2 or any(not law.loss.size for law, _ in few):
            return None
        smooth = replace(problem, mechanism=compose(*others), proven=True)
        if not CertifiedEngine().has_lines(smooth):
            return None
        made = finite_composition(few)
        return None if isinstance(made, str) or made.size > MOST_LOSSES else (made, smooth)

    def questions(self, problem: Problem, ask: Ask) -> Questions | None:
        if problem.adjacency != "add_remove":
            return None
        from pyengine.engines.certified import WIDEST, CertifiedPair
        from pyengine.engines.hull import BothOrders
        from pyengine.engines.product_hull import LinesOfBoth, NothingKnown, ProductBothOrders

        on_a_lattice = replace(problem, method="lattice")
        orders = [problem.ordered(order) for order in ("add", "remove")]
        add, remove = (self._pair(order, NothingKnown) for order in orders)
        if not (isinstance(add, CertifiedPair) and isinstance(remove, CertifiedPair)):
            return ask(on_a_lattice)
        proven = LinesOfBoth(add, remove, lambda: ask(on_a_lattice))
        profiles = BothOrders(*(self.pair(order) for order in orders))
        widest = WIDEST if problem.tolerance is None else problem.tolerance
        return ProductBothOrders(proven, profiles, lambda: ask(on_a_lattice), widest)

    def pair(self, problem: Problem) -> PairQuestions:
        return self._pair(problem, lambda: LatticeEngine().pair(problem))

    def _pair(self, problem: Problem, otherwise: Callable[[], PairQuestions]) -> PairQuestions:
        from pyengine.engines.certified import CertifiedPair
        from pyengine.engines.product import ProductSide

        found = self._parts(problem)
        assert found is not None
        few, smooth = found
        private, public = CertifiedEngine().sides(smooth)
        if private is None or public is None:
            return otherwise()
        side = ProductSide(few, public)
        other = side if private is public else ProductSide(few, private)
        return CertifiedPair(other, side, problem.tolerance, otherwise)


class BlocksEngine(Engine):
    """Epochs with several random steps of a record, and selections: others bound them."""

    name = "blocks"
    methods = ("auto", "certified", "spectral", "convolution", "lattice", "reference")

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.adjacency == "substitute":
            return False
        if problem.rows is not None:  # Gaussian steps, which have laws
            return False
        return any(step.enclosing or step.repeated for step, _ in steps_of(problem.mechanism))

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.mechanisms import in_words

        return AccuracyError(
            "method='blocks' bounds epochs of random allocation with selected > 1, and selections "
            "among runs, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def prover(self) -> Engine:
        return _ProvenBlocks()

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.blocks import BlocksQuestions, dominated, dominating

        method = self._method(problem)

        def asked(mechanism: Mechanism) -> Questions:
            return ask(replace(problem, mechanism=mechanism, method=method))

        def best_of(step: Step) -> Mechanism:
            from pyengine.engines.selected import selected_pair  # here, as few runs need it

            run = replace(problem, method="certified", adjacency="add_remove", wanted=None)
            return selected_pair(
                step, lambda base, epsilon: ask(replace(run, mechanism=base)).profile(epsilon)
            )

        below = [partial(asked, mechanism) for mechanism in dominated(problem.mechanism)]
        return BlocksQuestions(asked(dominating(problem.mechanism, best_of)), below)

    def _method(self, problem: Problem) -> str:
        """By which the other mechanisms are asked."""
        return "auto" if problem.method == self.name else problem.method


class _ProvenBlocks(BlocksEngine):
    """The same from what is proven of the other mechanisms."""

    def _method(self, problem: Problem) -> str:
        return "certified"
