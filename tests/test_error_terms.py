"""Error terms of all lines, each made to carry the error alone: enough, and then missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import analytic_terms
import audit_deformed
import audit_divided
import audit_envelope
import audit_sums
import audit_terms
import numpy as np
import pytest
import sector_terms
from audit_sector import tally
from compiling import CERTIFIED
from error_terms import Kernel, Term, changed, kernel, operation, patched, times
from flint import ctx
from sector_switches import SIZES
from thorough import ALL, sampled

Ask = Callable[[Term, float], Any]
CORE = (audit_terms, audit_envelope, audit_divided)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """The certified lines with the switches of three audits."""
    return kernel(
        tmp_path_factory.mktemp("core"),
        CERTIFIED,
        [tool.DOOR for tool in CORE],
        [switch for tool in CORE for switch in tool.SWITCHES],
        [term for tool in CORE for term in tool.TERMS],
    )


@pytest.fixture(scope="module")
def judges() -> Iterator[Any]:
    """Rows and sums with their truths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctx, "prec", audit_terms.BITS)
        patch.setattr(audit_sums, "VALUES", 64)
        patch.setattr(audit_sums, "RUNS", 4)
        yield audit_terms.judges_of(14, 6)


@pytest.fixture(scope="module")
def points() -> Any:
    """Points of divided laws, whose truths take seconds."""
    return audit_divided.points(14, 3)


@pytest.fixture(scope="module")
def sectors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Any, Kernel]:
    """Laws of few steps, compiled once for each number of places of the check."""
    folder = tmp_path_factory.mktemp("sectors")
    return {x: sector_terms.switched(folder / str(i), x) for i, x in enumerate(SIZES)}


@pytest.fixture(scope="module")
def lines() -> Any:
    """What is asked of lines of Laplace losses, with truths."""
    return audit_deformed.judges()


@contextmanager
def of_rows(fixture: Callable[[str], Any]) -> Iterator[Ask]:
    yield partial(audit_terms.asked, fixture("core"), fixture("judges"))


@contextmanager
def of_envelopes(fixture: Callable[[str], Any]) -> Iterator[Ask]:
    yield partial(audit_envelope.asked, fixture("core"))


@contextmanager
def of_divided(fixture: Callable[[str], Any]) -> Iterator[Ask]:
    yield partial(audit_divided.asked, fixture("core"), fixture("points"))


@contextmanager
def of_sectors(fixture: Callable[[str], Any]) -> Iterator[Ask]:
    kernels = fixture("sectors")
    yield lambda term, part: sector_terms.judged(kernels[term.sizes], term, part)


@contextmanager
def of_lines(fixture: Callable[[str], Any]) -> Iterator[Ask]:
    of = fixture("lines")
    with audit_deformed.switched() as engine:
        yield partial(audit_deformed.asked, engine, of)


@contextmanager
def of_densities(_: Callable[[str], Any]) -> Iterator[Ask]:
    """Of one pair, whose panels are the fewest."""
    with pytest.MonkeyPatch.context() as patch, analytic_terms.switched() as engine:
        patch.setattr(analytic_terms, "EVERY", [analytic_terms.STRETCHED])
        yield partial(analytic_terms.judged, engine)


class Audit(NamedTuple):
    """Terms, what asks them, and which are not missed where a hundredth, or nothing, is left."""

    terms: tuple[Term, ...]
    asking: Callable[[Callable[[str], Any]], Any]
    least: int  # that must be asked
    slack: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


AUDITS = {
    "rows": Audit(
        audit_terms.TERMS,
        of_rows,
        100,
        (
            "nodes of z, in the values",
            "nodes of z, in log M",
            "nodes: sides in runs",
            "profile: the difference",
        ),
        audit_terms.UNSEEN,
    ),
    "envelopes": Audit(audit_envelope.TERMS, of_envelopes, 50, (), audit_envelope.UNSEEN),
    "divided": Audit(
        audit_divided.TERMS,
        of_divided,
        4,
        (
            "divided: values of t left out",
            "divided: nodes of z above tapers",
            "divided: line of paths without a large loss",
        ),
    ),
    "sectors": Audit(
        sector_terms.TERMS,
        of_sectors,
        50,
        (
            "remainder of Gauss's rule on pieces",
            "pieces left out",
            "panels: between places of the check",
            "losses: remainder of Gauss's rule",
        ),
    ),
    "lines": Audit(audit_deformed.TERMS, of_lines, 20, audit_deformed.WORST),
    "densities": Audit(
        analytic_terms.TERMS,
        of_densities,
        1,
        (
            "masses beyond the ends: the remainder",
            "log mean: the remainder",
            "transform: the remainder",
            "transform: the remainder, of its log",
            "transform: guess of the log mean",
            "log mean of nodes: the remainder",
            "lines: beyond the last node",
        ),
    ),
}
ASKED = [(name, x) for name, of in AUDITS.items() for x in of.terms if x.name not in of.unseen]


@sampled(6)
@pytest.mark.parametrize(("name", "term"), ASKED, ids=lambda x: getattr(x, "name", x))
def test_a_term_is_enough_and_is_missed(
    name: str, term: Term, request: pytest.FixtureRequest
) -> None:
    """A hundredth is asked for where it is missed as well, which is more than without the term."""
    audit = AUDITS[name]
    with audit.asking(request.getfixturevalue) as ask:
        kept = ask(term, 1.0)
        assert kept.asked >= audit.least
        assert kept.outside == 0
        assert ask(term, 0.0 if term.name in audit.slack else 0.01).outside > 0


def test_named_terms_are_terms() -> None:
    for audit in AUDITS.values():
        assert {term.name for term in audit.terms} > {*audit.slack, *audit.unseen}


@pytest.mark.parametrize("asks", ["rows", "sums"])
def test_rows_hold_without_errors_put_in(asks: str, core: Kernel, judges: Any) -> None:
    """All switches at rest: the kernel is the engine's."""
    found = judges[asks](core.library)
    assert found.asked > 100
    assert found.outside == 0


@sampled(3)
@pytest.mark.parametrize("asks", sector_terms.QUESTIONS)
def test_few_steps_hold_without_errors_put_in(asks: str, sectors: Mapping[Any, Kernel]) -> None:
    found = sector_terms.judged_as_it_is(sectors[()], asks)
    assert found.asked > 50
    assert found.outside == 0


def test_lines_hold_without_errors_put_in(lines: Any) -> None:
    with audit_deformed.switched() as engine:
        for judge in lines.values():
            found = judge(engine)
            assert found.asked > 20
            assert found.outside == 0


def test_random_rows_of_divided_laws_hold_the_sums_of_positive_terms(core: Kernel) -> None:
    number = 30 if ALL else 8  # truths take seconds
    found = audit_divided.tally(core.library, audit_divided.points(number, 20261124))
    assert found.asked > number
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
