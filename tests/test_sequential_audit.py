"""Sequential audits: no gain in the mean from a true claim, few refusals of it, and power."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import thorough

import pyengine as pe
from pyengine import audit


@pytest.mark.parametrize("seed", thorough.some(range(320), 40))
def test_capital_does_not_grow_in_the_mean(seed: int) -> None:
    """Two pairs of runs of a claim that holds and is attained, all outcomes and random tests."""
    rng = np.random.default_rng([seed, 51])
    p, q = (x / x.sum() for x in rng.uniform(0.02, 1.0, (2, 3)))
    kind = int(rng.integers(3))
    claim: Any = pe.from_probabilities(p.tolist(), q.tolist())
    if kind == 1:
        epsilon, delta = float(rng.uniform(0, 2)), float(rng.choice([0.0, 0.1]))
        claim = pe.GenericMechanism(epsilon, delta)
        top = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        p = np.array([(1 - delta) * top, (1 - delta) * (1 - top), delta, 0.0])
        q = np.array([(1 - delta) * (1 - top), (1 - delta) * top, 0.0, delta])
    guess = rng.uniform(0, 1, p.size) if kind == 2 else (rng.uniform(0, 1, p.size) > 0.5) + 0.0
    mean, base = 0.0, audit.SequentialAudit(claim)
    for outcome in itertools.product(range(p.size), repeat=4):
        weight = q[outcome[0]] * q[outcome[1]] * p[outcome[2]] * p[outcome[3]]
        if weight == 0.0:
            continue
        fresh = _copy(base)
        fresh.update(guess[list(outcome[:2])], guess[list(outcome[2:])])
        mean += weight * math.exp(fresh.log_evidence)
    assert mean <= 1.0 + 1e-12


def _copy(test: audit.SequentialAudit) -> audit.SequentialAudit:
    """The same test before any pair."""
    made = object.__new__(audit.SequentialAudit)
    made.__dict__.update(test.__dict__)
    made._logs = np.zeros(test._logs.shape)
    made._pairs, made._highest, made._refuted_at = 0, 0.0, None
    return made


def test_true_claims_are_seldom_refuted() -> None:
    """400 streams of 300 pairs, looked at after each pair, at the level of 10 %."""
    rng = np.random.default_rng(52)
    base = audit.SequentialAudit(pe.GaussianMechanism(1.0), confidence=0.9)
    refuted = 0
    for _ in range(400):
        test = _copy(base)
        cut = float(rng.uniform(0.0, 2.0))
        refuted += test.update(rng.normal(1.0, 1.0, 300) > cut, rng.normal(0.0, 1.0, 300) > cut)
    assert refuted <= 60  # 40 in the mean at most; P(above 60) < 1e-3


def test_broken_claims_are_refuted() -> None:
    """In few pairs where the claim is far off, whether pairs come one by one or not."""
    rng = np.random.default_rng(53)
    with_record, without = rng.normal(1.0, 0.5, 3000) > 0.5, rng.normal(0.0, 0.5, 3000) > 0.5
    for claim in (
        pe.GaussianMechanism(1.0),
        pe.GenericMechanism(0.5, 1e-6),
        pe.dp_sgd(1.0, 0.1, 10),
    ):
        together = audit.SequentialAudit(claim, confidence=0.999)
        assert together.update(with_record, without)
        assert together.refuted_at is not None
        assert together.refuted_at < 1000
        apart = audit.SequentialAudit(claim, confidence=0.999)
        for one, other in zip(with_record[:1000], without[:1000], strict=True):
            if apart.update(one, other):
                break
        assert apart.refuted_at == together.refuted_at == apart.pairs
        assert apart.p_value <= 0.001
    reversed_ = audit.SequentialAudit(pe.GaussianMechanism(1.0))
    assert reversed_.update(~with_record, ~without)
    holds = audit.SequentialAudit(pe.GaussianMechanism(0.5))
    assert not holds.update(with_record, without)
    other = audit.SequentialAudit(pe.GaussianMechanism(1.0), adjacency="substitute")
    assert not other.update(with_record, without)
    assert other.log_evidence < 3.0


@pytest.mark.parametrize(
    ("guesses", "message"),
    [
        (([0.5, 2.0], [0.5, 0.5]), r"with_record must hold guesses in \[0, 1\]"),
        (([0.5, 0.5], [0.5]), "one guess for each"),
        (([math.nan], [0.5]), "must be finite"),
    ],
)
def test_wrong_guesses(guesses: tuple[Any, Any], message: str) -> None:
    test = audit.SequentialAudit(pe.GaussianMechanism(1.0))
    with pytest.raises(ValueError, match=message):
        test.update(*guesses)
    assert test.pairs == 0


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="confidence must lie"):
        audit.SequentialAudit(pe.GaussianMechanism(1.0), confidence=1.0)
    with pytest.raises(ValueError, match="adjacency"):
        audit.SequentialAudit(pe.GaussianMechanism(1.0), adjacency="add")
