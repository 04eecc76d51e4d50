"""Mechanisms that others answer for: bounds by blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyengine.engines.answers import Questions
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, Step, steps_of

__all__ = ["BlocksEngine"]


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
