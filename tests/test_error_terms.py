"""Error terms of certified rows, each made to carry the error alone: enough, and then missed."""

from __future__ import annotations

from typing import Any

import audit_sums
import audit_terms as tool
import pytest
from flint import ctx
from term_switches import Kernel, build
from thorough import sampled

BITS = 160
POINTS = 14
LINES = 6
MISSED = [term for term in tool.TERMS if not term.unseen]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """The kernel with all switches, compiled once."""
    return build(tmp_path_factory.mktemp("terms"), tool.TERMS, [tool.DOOR])


@pytest.fixture(scope="module")
def judges() -> Any:
    """Rows and sums with their truths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctx, "prec", BITS)
        patch.setattr(audit_sums, "VALUES", 64)
        patch.setattr(audit_sums, "RUNS", 4)
        yield {"rows": tool.on_rows(POINTS), "sums": tool.on_sums(LINES)}


@sampled(3)
@pytest.mark.parametrize("term", MISSED, ids=lambda term: term.name)
def test_a_term_is_enough_and_is_missed(term: tool.Term, kernel: Kernel, judges: Any) -> None:
    judge = judges[term.asks]
    asked, outside = tool.asked(kernel, judge, term, 1.0)
    assert asked > 100
    assert outside == 0
    assert tool.asked(kernel, judge, term, 0.0)[1] > 0


PARTS = [
    "aliases",
    "rotations: angles",
    "moments: terms and depth",
    "error of the mean in a row",
    "long sum over t: rotations",
    "removed mass in a row",
    "row: its logarithm",
]


@pytest.mark.parametrize("name", PARTS)
def test_a_hundredth_is_missed(name: str, kernel: Kernel, judges: Any) -> None:
    (term,) = (term for term in MISSED if term.name == name)
    assert tool.asked(kernel, judges[term.asks], term, 0.01)[1] > 0


def test_without_errors_put_in_nothing_is_outside(kernel: Kernel, judges: Any) -> None:
    """All switches at rest: the kernel is the engine's."""
    for judge in judges.values():
        with kernel.set_to({}) as library:
            asked, outside = judge(library)
        assert asked > 100
        assert outside == 0
