"""Ground truth, and the approximations that the papers publish."""

from __future__ import annotations

from dataclasses import replace

from pyengine.engines.answers import Questions
from pyengine.engines.curves import OneOrder
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import steps_of

__all__ = ["CentralLimitEngine", "EdgeworthEngine", "MonteCarloEngine", "ReferenceEngine"]


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

        return OneOrder(CltPair(problem.mechanism, problem.adjacency))


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
