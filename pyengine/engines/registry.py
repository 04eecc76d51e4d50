"""The choice of an engine.

The first engine of `pyengine.engines.declared` answers that the word of ``method=`` considers and
that supports the problem.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyengine.engines.answers import Questions
from pyengine.engines.curves import Unproven
from pyengine.engines.declared import ENGINES
from pyengine.engines.problem import Engine, Problem
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import THREAT_MODELS, ThreatModel, threat_model_of

__all__ = ["ADJACENCIES", "ENGINES", "METHODS", "THREAT_MODELS", "questions", "questions_on_pair"]

ADJACENCIES = ("add", "remove", "add_remove", "substitute")
METHODS = (
    "auto",
    "certified",
    "closed_form",
    "exact",
    "lattice",
    "blocks",
    "reference",
    "edgeworth",
    "clt",
    "monte_carlo",
    "spectral",
    "convolution",
)
FORMER = ("spectral", "convolution")  # engines of earlier versions: "auto"


def considered(method: str) -> list[Engine]:
    """Return the engines that a word of ``method=`` considers, in the order of the registry."""
    return [engine for engine in ENGINES if method in engine.words]


def _chosen(problem: Problem) -> Engine:
    """The first engine that supports a problem."""
    method = problem.method
    for engine in ENGINES:
        if method in engine.words and engine.supports(problem):
            return engine
    # an adjacency that is not defined is reported before an engine's refusal
    if problem.is_relaxed:
        _ = problem.distances
    elif problem.method != "closed_form":
        _ = problem.laws
    raise considered(problem.method)[-1].refusal(problem)


def questions(
    mechanism: Mechanism,
    *,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,
    wanted: str | None = None,
) -> Questions:
    """Return the `Questions` on a mechanism, by the engine that is chosen for it.

    Words are those of `ADJACENCIES`, `METHODS` and `THREAT_MODELS`; the tolerance is the largest
    relative width of bounds, of both errors of a trade-off function or of the one that is wanted.
    Where ``method="auto"`` estimates, `Questions.proving` has proven bounds; answers without a
    proof stay estimates, as each says.  An adjacency that the mechanism does not define raises
    `ValueError`; where no engine answers `AccuracyError` is raised.
    """
    model = threat_model_of(threat_model)
    method = "auto" if method in FORMER else method
    problem = Problem(mechanism, adjacency, method, model, tolerance, wanted)
    asked = _of_first_engine(problem)
    asked.within = lambda other: _of_first_engine(replace(problem, tolerance=other))
    return asked


def _of_first_engine(problem: Problem) -> Questions:
    """Questions of the chosen engine, with those of its prover attached where it estimates."""
    engine = _chosen(problem)
    asked = _asked_of(engine, problem)
    by_name = problem.method == engine.name and engine.prover() is not None
    if engine.certified or not (problem.method == "auto" or by_name):
        return asked
    estimates = partial(_asked_of, engine, problem)

    def proving() -> Questions:
        found = _proofs(engine, problem)
        # where the prover refuses the estimate remains
        found.otherwise = estimates
        return found

    asked.prover = proving
    if not by_name and engine.prover() is not None:  # before anything is refused
        asked.otherwise = partial(_proofs, engine, problem)
    return asked


def _proofs(engine: Engine, problem: Problem) -> Questions:
    """Questions with proven bounds of what an engine estimates."""
    prover = engine.prover()
    if prover is not None and prover.supports(problem):
        return _asked_of(prover, problem)
    return answered(replace(problem, method="certified"))


def answered(problem: Problem) -> Questions:
    """Questions on a problem by its engine."""
    return _asked_of(_chosen(problem), problem)


def _asked_of(engine: Engine, problem: Problem) -> Questions:
    """Questions on a problem by one engine, checked against the tolerance."""
    if problem.tolerance is None:
        return _unjudged(engine, problem)
    from pyengine.engines.within import WithinTolerance

    only_bounds = engine.only_bounds or bool(problem.attained)

    def make(tolerance: float) -> Questions:
        # bounds that are apart by nature do not come closer with the accuracy of each
        is_of_use = not only_bounds or engine.narrows(problem)
        return _unjudged(engine, replace(problem, tolerance=tolerance if is_of_use else None))

    return WithinTolerance(make, problem.tolerance, problem.wanted, only_bounds=only_bounds)


def _unjudged(engine: Engine, problem: Problem) -> Questions:
    """Questions by one engine without that check; unproven where the steps' masses are."""
    found = engine.questions(problem, answered)
    if engine.certified and engine.needs_masses and not problem.has_proven_masses:
        return Unproven(found)
    return found


def questions_on_pair(problem: Problem) -> Questions:
    """Return the questions on one ordered pair of laws."""
    return _chosen(problem).pair(problem)
