"""Error terms of laws of few steps, each made to carry the error alone: enough, then missed."""

from __future__ import annotations

import pytest
import sector_terms as tool
from sector_switches import SIZES, TERMS, Sector
from term_switches import Kernel
from thorough import sampled

Kernels = dict[tuple[tool.Change, ...], Kernel]
# Those that few values miss, or none, where a hundredth of them is left: they are dropped.
SLACK = {
    "remainder of Gauss's rule on pieces",
    "pieces left out",
    "panels: between places of the check",
    "rounding of sums: differences of exponents",
    "losses: remainder of Gauss's rule",
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """The kernel with all switches, compiled once for each number of places of the check."""
    folder = tmp_path_factory.mktemp("terms")
    return {sizes: tool.switched(folder / str(i), sizes) for i, sizes in enumerate(SIZES)}


@sampled(3)
@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_enough_and_is_missed(term: Sector, kernels: Kernels) -> None:
    """A hundredth is asked for where it is missed as well, which is more than without the term."""
    kernel = kernels[term.sizes]
    kept = tool.judged(kernel, term, 1.0)
    assert kept.asked > 50
    assert kept.outside == 0
    assert tool.judged(kernel, term, 0.0 if term.name in SLACK else 0.01).outside > 0


def test_slack_terms_are_terms() -> None:
    assert {term.name for term in TERMS} > SLACK


@sampled(3)
@pytest.mark.parametrize("asks", tool.QUESTIONS)
def test_without_errors_put_in_nothing_is_outside(asks: str, kernels: Kernels) -> None:
    """All switches at rest: the kernel is the engine's."""
    found = tool.judged_as_it_is(kernels[()], asks)
    assert found.asked > 50
    assert found.outside == 0
