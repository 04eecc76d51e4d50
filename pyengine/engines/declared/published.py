"""Ground truth, approximations that the papers publish, and bounds by blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyengine.engines.answers import Questions
from pyengine.engines.curves import Dominated
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, Step, steps_of

__all__ = [
    "BlocksEngine",
    "CentralLimitEngine",
    "EdgeworthEngine",
    "MonteCarloEngine",
    "ReferenceEngine",
]


class ReferenceEngine(Engine):
    """Arbitrary precision."""

    name = "reference"  # certifies most values, but not all of them

    def supports(self, problem: Problem) -> bool:
        return problem.given is None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.ground_truth import GroundTruth

        return GroundTruth(problem.mechanism, problem.adjacency, problem.threat_model)


class ApproximationEngine(Engine):
    """Base of the approximations that the papers publish."""

    def supports(self, problem: Problem) -> bool:
        return not problem.is_relaxed and problem.given is None

    def refusal(self, problem: Problem) -> Exception:
        return NotDefinedError(
            f"method={problem.method!r} does not answer for threat_model='relaxed'"
        )


class EdgeworthEngine(ApproximationEngine):
    """Expansion about the normal law."""

    name = "edgeworth"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.edgeworth import EdgeworthPair

        return in_orders(EdgeworthPair, problem.mechanism, problem.adjacency)


class CentralLimitEngine(ApproximationEngine):
    """One Gaussian in the place of all steps."""

    name = "clt"

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.mechanisms import in_words

        return NotDefinedError(
            "method='clt' of the relaxed threat model covers Gaussian steps without sampling, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.clt import CltPair

        return CltPair(problem.mechanism, problem.adjacency)


class MonteCarloEngine(ApproximationEngine):
    """Random losses under a tilted law."""

    name = "monte_carlo"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.blocks import dominating
        from pyengine.engines.monte_carlo import MonteCarloPair

        places = [step.places for step, _ in steps_of(problem.mechanism)]
        if any(places) and problem.adjacency != "substitute":
            from pyengine.engines.allocated_samples import AllocatedSampleQuestions

            above = replace(problem, mechanism=dominating(problem.mechanism), method="auto")
            above = replace(above, tolerance=None, wanted=None)
            return AllocatedSampleQuestions(
                problem.mechanism,
                problem.adjacency,
                lambda order: ask(above.ordered(order)),
                problem.wanted,
            )
        return in_orders(MonteCarloPair, problem.mechanism, problem.adjacency)


class BlocksEngine(Engine):
    """Others bound them: epochs with several random steps of a record, and selections.

    So with any epoch of random allocation where another record takes the place of one.
    """

    name = "blocks"
    methods = ("auto", "certified", "lattice", "reference")

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None:
            return False
        if problem.adjacency == "substitute":
            from pyengine.engines.replaced import needs_the_rest

            return needs_the_rest(problem.mechanism)
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
        from pyengine.engines.blocks import NAME, dominated, dominating

        method = self._method(problem)

        def asked(mechanism: Mechanism, problem: Problem = problem) -> Questions:
            return ask(replace(problem, mechanism=mechanism, method=method))

        def best_of(step: Step) -> Mechanism:
            from pyengine.engines.selected import selected_pair  # here, as few runs need it

            run = replace(problem, method="certified", adjacency="add_remove", wanted=None)
            return selected_pair(
                step, lambda base, epsilon: ask(replace(run, mechanism=base)).profile(epsilon)
            )

        if problem.adjacency == "substitute":
            from pyengine.engines.replaced import ThroughTheRest, needs_the_rest, summed

            above = dominating(problem.mechanism)
            if not needs_the_rest(above):  # all runs of a selection
                return Dominated(asked(above), [], NAME)

            def of(order: str) -> Questions:
                one = replace(problem, adjacency=order)
                return self.questions(one, ask) if self.supports(one) else asked(one.mechanism, one)

            def lower() -> Questions:
                try:
                    return asked(summed(problem.mechanism))
                except NotDefinedError as error:  # of other steps, so that it tells nothing
                    raise AccuracyError(str(error)) from error

            through = ThroughTheRest(of("add"), of("remove"))
            return Dominated(through, [partial(of, "add_remove"), lower], NAME)
        below = [partial(asked, mechanism) for mechanism in dominated(problem.mechanism)]
        return Dominated(asked(dominating(problem.mechanism, best_of)), below, NAME)

    def _method(self, problem: Problem) -> str:
        """By which the other mechanisms are asked."""
        return "auto" if problem.method == self.name else problem.method


class _ProvenBlocks(BlocksEngine):
    """The same from what is proven of the other mechanisms."""

    def _method(self, problem: Problem) -> str:
        return "certified"
