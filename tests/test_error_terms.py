"""Error terms of all lines, each made to carry the error alone: enough, and then missed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import analytic_terms
import audit_deformed
import audit_divided
import numpy as np
import pytest
import sector_terms
from audits import AUDITS, Size, core, lines, rows, sectors
from compiling import CERTIFIED
from error_terms import (
    Claim,
    Term,
    changed,
    kernel,
    operation,
    patched,
    report_claims,
    tally,
    times,
)
from thorough import sampled, some, stored

from pyengine.engines.pairs import GaussianPair


def divided(number: int, seed: int) -> list[audit_divided.Point]:
    """Points of divided laws, whose truths by convolution take seconds."""

    def compute() -> list[str]:
        found = audit_divided.points(number, seed)
        return [json.dumps([*x.pair[:3], x.pair.reversed, x.c, x.truth.tolist()]) for x in found]

    kept = stored(f"{number} points of divided laws by convolution, seed {seed}", compute)
    return [
        audit_divided.Point(GaussianPair(*map(tuple, columns), backward), c, np.array(truth))
        for *columns, backward, c, truth in map(json.loads, kept)
    ]


SOME = Size(14, 6, 4, partial(divided, 14, 3), [analytic_terms.STRETCHED])  # of fewest panels
ASKED = [(name, x) for name, of in AUDITS.items() for x in of.terms if x.name not in of.unseen]


@sampled(6)
@pytest.mark.parametrize(("name", "term"), ASKED, ids=lambda x: getattr(x, "name", x))
def test_a_term_is_enough_and_is_missed(name: str, term: Term) -> None:
    """A hundredth is asked for where it is missed as well, which is more than without the term."""
    audit = AUDITS[name]
    with audit.asking(SOME) as ask:
        kept = ask(term, 1.0)
        assert kept.asked >= audit.least
        assert kept.outside == 0
        assert ask(term, 0.0 if term.name in audit.slack else 0.01).outside > 0


def test_named_terms_are_terms() -> None:
    for audit in AUDITS.values():
        assert {term.name for term in audit.terms} > {*audit.slack, *audit.unseen}


@pytest.mark.parametrize("asks", ["rows", "sums"])
def test_rows_hold_without_errors_put_in(asks: str) -> None:
    """All switches at rest: the kernel is the engine's."""
    found = rows(SOME.points, SOME.lines, SOME.runs)[asks](core().library)
    assert found.asked > 100
    assert found.outside == 0


@sampled(3)
@pytest.mark.parametrize("asks", sector_terms.QUESTIONS)
def test_few_steps_hold_without_errors_put_in(asks: str) -> None:
    found = sector_terms.judged_as_it_is(sectors(), asks)
    assert found.asked > 50
    assert found.outside == 0


def test_lines_hold_without_errors_put_in() -> None:
    with audit_deformed.switched() as engine:
        for judge in lines().values():
            found = judge(engine)
            assert found.asked > 20
            assert found.outside == 0


def test_random_rows_of_divided_laws_hold_the_sums_of_positive_terms() -> None:
    found = tally(audit_divided.rows(core().library, some(divided(30, 20261124), 3)))
    assert found.asked > 20
    assert found.outside == 0


GONE = times("a term", "line.py", "no ", "such text", "nothing")


def test_a_text_that_is_gone_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyError, match="not one text"),
        patched([audit_deformed.PACKAGE], (), [GONE]),
    ):
        pass
    with pytest.raises(KeyError, match="not one text"):
        kernel(tmp_path, CERTIFIED, [], [operation("error", ("certified.c", "no such text", ""))])


def test_modules_are_as_they_were_when_a_block_ends() -> None:
    """Choices, functions and what stands for switches."""
    (term,) = (term for term in analytic_terms.TERMS if term.name == "decay: flat mass")
    with analytic_terms.switched() as engine:
        cells, decay = engine.cells, engine.cells.LossCells.decay
        with engine.set_to(term.with_part(0.01)):
            assert cells.LIGHT == decay.__globals__["LIGHT"] == 1e-3
        assert cells.LIGHT == 1e-30
    assert cells.LossCells.decay is not decay
    assert not hasattr(cells, "SWITCH")


def test_changes_may_stand_within_each_other() -> None:
    """The outer one of two that begin at one place is the outer one in the new text."""
    text = "return a + b * c;"
    some = [("a + b * c", "x * (a + b * c)"), ("a", "y * (a)"), ("b * c", "z * (b * c)")]
    found = changed("a file", text, some, once=True)
    assert found == "return x * (y * (a) + z * (b * c));"
    with pytest.raises(KeyError, match="two changes"):
        changed("a file", text, [("b * c", "d"), ("* c;", "e;")], once=True)


def test_tallies_count_what_is_outside() -> None:
    found = tally([(np.zeros(3), np.full(3, 1e-3), np.array([0.0, 2e-3, np.nan]))])
    assert (found.asked, found.outside) == (2, 1)


def test_random_claims_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    some = [Claim("a", 1.0, 2.0), "refused", Claim("a", float("nan"), 1.0), Claim("b", 3.0, 2.0)]
    assert report_claims(iter(some[:3]), 9) == 0
    assert report_claims(iter(some), 9) == 1
    printed = capsys.readouterr().out
    assert "outside: Claim(kind='b', error=3.0" in printed
    assert "2 asked, 1 outside; left out: {'refused': 1, 'not known': 1}" in printed
