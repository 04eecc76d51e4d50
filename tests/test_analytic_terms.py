"""Error terms of analytic densities, each made to carry the error alone: enough, then missed."""

from __future__ import annotations

import math

import analytic_terms as tool
import audit_analytic
import numpy as np
import pytest
from analytic_terms import TERMS, Term
from thorough import sampled

# Those that few values miss, or none, where a hundredth of them is left: they are dropped.
SLACK = {
    "masses beyond the ends: the remainder",
    "log mean: the remainder",
    "transform: the remainder",
    "transform: the remainder, of its log",
    "transform: guess of the log mean",
    "log mean of nodes: the remainder",
    "lines: beyond the last node",
}


@pytest.fixture(autouse=True)
def _one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair whose panels are the fewest."""
    monkeypatch.setattr(tool, "EVERY", [tool.STRETCHED])


@sampled(3)
@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_enough_and_is_missed(term: Term) -> None:
    """A hundredth is asked for where it is missed as well, which is more than without the term."""
    kept = tool.judged(term, None)
    assert kept.asked > 0
    assert kept.outside == 0
    assert tool.judged(term, "0.0" if term.name in SLACK else "0.01").outside > 0


def test_slack_terms_are_terms() -> None:
    assert {term.name for term in TERMS} > SLACK


def test_the_whole_term_is_the_engine() -> None:
    """A factor of 1 says the same as no change, and a text that is gone is no change at all."""
    (term,) = (term for term in TERMS if term.name == "rules: the remainder")
    assert tool.judged(term, "1.0") == tool.judged(term, None)
    with pytest.raises(LookupError, match="is gone"):
        tool.judged(term._replace(text="no such text"), "1.0")


def test_choices_are_known_to_changed_functions() -> None:
    (term,) = (term for term in TERMS if term.name == "decay: flat mass")
    with tool.arranged(term, "0.01"):
        assert vars(term.owner)[term.method].__globals__["LIGHT"] == 1e-3
    assert vars(term.owner)[term.method].__globals__["LIGHT"] == 1e-30


def test_truths_are_those_of_closed_forms() -> None:
    """The integrals of the audit, for a normal step whose transform is known."""
    pair, tilt, t = audit_analytic.Pair("normal", "0.7"), 0.5, 2.0
    exact = complex(-0.5 * t * t * 0.49, t * (tilt * 0.49 - 0.245))
    found = audit_analytic.transform_of(pair, tilt, t)
    about = complex(float(found.real.mid()), float(found.imag.mid()))
    assert abs(about - np.exp(exact)) < 1e-14
    below, beyond = audit_analytic.Pair("normal", "0.5", ends=(-3.0, 4.0)).beyond()
    assert math.isclose(below, 0.5 * (math.erfc(3 / math.sqrt(2)) + math.erfc(4 / math.sqrt(2))))
    assert math.isclose(beyond, math.erfc(3.5 / math.sqrt(2)))


def test_random_claims_hold() -> None:
    rng = np.random.default_rng(5)
    pair = audit_analytic.Pair("logistic", "0.8", rate="0.3")
    claims = list(audit_analytic.claims_of(pair, (-4.0,), rng))
    known = [claim for claim in claims if not math.isnan(claim.error)]
    assert len(known) > 35
    assert len({claim.kind for claim in known}) > 10
    assert not [claim for claim in known if claim.is_outside]
