"""Error terms of Laplace lines, each made to carry the error alone: enough, and then missed."""

from __future__ import annotations

from typing import Any

import audit_deformed as tool
import pytest
from line_switches import SwitchedLines, build
from thorough import sampled


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> SwitchedLines:
    """The lines with all switches."""
    return build(tmp_path_factory.mktemp("lines"), tool.TERMS)


@pytest.fixture(scope="module")
def judges() -> Any:
    """What is asked, with its truths."""
    return tool.judges()


@sampled(3)
@pytest.mark.parametrize("term", tool.TERMS, ids=lambda term: term.name)
def test_a_term_is_enough_and_is_missed(term: tool.Term, lines: SwitchedLines, judges: Any) -> None:
    """A hundredth of it as well."""
    judge = judges[term.asks]
    asked, outside = tool.asked(lines, judge, term, 1.0)
    assert asked > 20
    assert outside == 0
    assert tool.asked(lines, judge, term, 0.0)[1] > 0
    assert term.name in tool.WORST or tool.asked(lines, judge, term, 0.01)[1] > 0


def test_without_errors_put_in_nothing_is_outside(lines: SwitchedLines, judges: Any) -> None:
    """All switches at rest: the lines are the engine's."""
    for judge in judges.values():
        with lines.set_to({}):
            asked, outside = judge(lines)
        assert asked > 20
        assert outside == 0


def test_a_text_that_is_gone_is_told(tmp_path: Any) -> None:
    term = tool.TERMS[0]._replace(text="no such text")
    with pytest.raises(KeyError, match="not one text"):
        build(tmp_path, [term])
