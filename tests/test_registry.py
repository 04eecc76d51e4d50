"""The registry of engines: what each declares is true, and a new one takes an entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.engines import registry
from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.engines.problem import Engine, Problem

MECHANISMS = {
    "gaussian": pe.GaussianMechanism(1.0),
    "nothing": pe.GaussianMechanism(1.0).poisson_sampled(0.0),
    "one step": pe.GaussianMechanism(1.0).poisson_sampled(0.1),
    "steps": pe.dp_sgd(1.0, 0.05, 30),
    "without replacement": pe.GaussianMechanism(1.5)
    .sampled_without_replacement(batch_size=3, dataset_size=70)
    .composed(4),
    "laplace": pe.LaplaceMechanism(1.0),
    "sampled laplace": pe.LaplaceMechanism(2.0).poisson_sampled(0.2).composed(2),
    "response": pe.RandomizedResponse(1.0).composed(3),
    "mixed": pe.RandomizedResponse(1.0) + pe.GaussianMechanism(2.0),
}
FAST = ("auto", "closed_form", "exact", "certified")


def test_every_word_has_an_engine() -> None:
    own = {engine.name for engine in registry.ENGINES}
    further = {word for engine in registry.ENGINES for word in engine.methods}
    words = set(registry.METHODS) - set(registry.FORMER)
    assert own | further == words | {"spectral"}  # the name of estimates, which no word asks for
    for method in words:
        assert registry.considered(method)


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("model", pe.threat_models.THREAT_MODELS)
def test_what_engines_declare(kind: str, model: str) -> None:
    """An engine that supports a problem prepares it; a refusal is an error that advises."""
    mechanism, adversary = MECHANISMS[kind], pe.threat_models.threat_model_of(model)
    answered = set()
    for adjacency in ("add", "remove", "add_remove"):
        for method in FAST:
            problem = Problem(mechanism, adjacency, method, adversary)
            if model == "relaxed" and kind in ("response", "mixed", "without replacement"):
                with pytest.raises(pe.NotDefinedError, match="covers"):
                    _ = problem.distances
                return
            for engine in registry.considered(method):
                if not engine.supports(problem):
                    assert isinstance(engine.refusal(problem), pe.AccuracyError | ValueError)
                    continue
                made = engine.questions(problem, registry.answered)
                asked: Any = made or engine.pair(problem.ordered(problem.order))
                assert {"trade_off", "profile", "epsilon"} <= set(dir(asked))
                if engine.certified and engine.name in ("closed_form", "exact"):
                    assert asked.profile(np.array([0.0, 0.3])).certified.all()
                answered.add(engine.name)
    assert answered


@pytest.mark.parametrize("name", ["trade_off", "gamma_bound", "delta", "epsilon"])
def test_the_certified_method_takes_engines_that_prove(name: str) -> None:
    for engine in registry.considered("certified"):
        assert engine.certified
    for mechanism in MECHANISMS.values():
        _, engines, proven = pe.api.answers(
            name, mechanism, [0.2], adjacency="add", method="certified", tolerance=1e-2
        )
        assert proven == [True], engines


class _HalfPair(Questions):
    """The pair of a coin: B is A, but for a half of its mass that A never shows."""

    def trade_off(self, alpha: Any) -> ErrorCurve:
        beta = 0.5 * (1.0 - alpha)
        return ErrorCurve(
            self._sure(beta), self._sure(1.0 - beta), np.full(alpha.size, -np.log(2.0))
        )

    def profile(self, epsilon: Any) -> Answer:
        return self._sure(np.maximum(0.0, 1.0 - 0.5 * np.exp(epsilon)))

    def epsilon(self, delta: Any) -> Answer:
        return self._sure(np.maximum(0.0, np.log(2.0 * (1.0 - delta))))

    @staticmethod
    def _sure(value: Any) -> Answer:
        return Answer(value, value.copy(), value.copy(), names("toy", value.size), True)


class _Toy(Engine):
    """Answers for randomized response of one strength, which no other engine then sees."""

    name = "exact"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        return problem.mechanism == pe.RandomizedResponse(0.625)

    def pair(self, problem: Problem) -> Any:
        assert problem.adjacency in ("add", "remove")
        return _HalfPair()


def test_a_new_engine_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Docs: developer/new_engine.md.  All questions, bounds and their certainty follow from it."""
    monkeypatch.setattr(registry, "ENGINES", (_Toy(), *registry.ENGINES))
    toy, other = pe.RandomizedResponse(0.625), pe.RandomizedResponse(0.5)
    assert pe.trade_off(toy, 0.25, adjacency="add") == 0.375
    assert pe.delta(toy, 0.0) == 0.5
    assert pe.delta(other, 0.0) != 0.5
    for method in ("auto", "certified", "exact"):
        bounds, engines, proven = pe.api.answers(
            "gamma_bound", toy, [0.25], adjacency="remove", method=method
        )
        assert (float(bounds.value[0]), engines, proven) == (0.625, ["toy"], [True])
    assert pe.delta(toy, 0.0, method="lattice") != 0.5
