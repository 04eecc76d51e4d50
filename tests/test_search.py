"""The search of a boundary where engines give no answers on the way, and its ways to fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pyengine.calibration.search import Domain, NoiseSearch, Unbounded, Unreachable
from pyengine.errors import AccuracyError

REALS = Domain(1e-300, 1e300, False)


def search(excess: Callable[[float], float], domain: Domain = REALS) -> NoiseSearch:
    return NoiseSearch(excess, lambda _: True, domain, 1e-9)


def known(low: float, high: float, root: float) -> Callable[[float], float]:
    """A growing excess that is known between two points only."""

    def excess(x: float) -> float:
        if not low <= x <= high:
            raise AccuracyError(f"nothing is known at {x!r}")
        return math.log(x / root)

    return excess


@pytest.mark.parametrize("start", [1e-2, 0.6, 3.0, 40.0])
def test_a_start_at_which_nothing_is_known(start: float) -> None:
    found = search(known(0.5, 2.5, 1.25)).boundary(start, True)
    assert 1.25 * (1.0 - 1e-9) <= found <= 1.25


def test_a_start_far_from_all_that_is_known() -> None:
    with pytest.raises(AccuracyError, match=r"nothing is known at 1e-09"):
        search(known(0.5, 2.0, 1.0)).boundary(1e-9, True)
    with pytest.raises(AccuracyError, match=r"nothing is known at 1e-09"):
        search(known(0.5, 2.0, 1.0)).undirected(1e-9, monotone=True)


def test_what_lies_before_the_edge_of_the_known_is_found() -> None:
    """Growing steps jump over the boundary into what is not known."""
    found = search(known(0.5, 2.01, 2.0)).boundary(0.6, True)
    assert 2.0 * (1.0 - 1e-9) <= found <= 2.0
    found = search(lambda x: -known(0.5, 2.01, 0.501)(x)).boundary(1.9, False)
    assert 0.501 <= found <= 0.501 * (1.0 + 1e-9)


def test_a_target_that_is_met_up_to_the_edge_of_the_known() -> None:
    with pytest.raises(AccuracyError, match=r"still met at 2\.\d+, and no engine answers beyond"):
        search(known(0.5, 2.5, 4.0)).boundary(1.0, True)


def test_what_meets_the_target_though_no_engine_answers() -> None:
    """Engines took seconds to refuse, for each point of a search for the edge of the known."""
    asked: list[float] = []

    def excess(x: float) -> float:
        asked.append(x)
        return known(0.5, 2.5, 4.0)(x)

    capped = search(excess)
    capped.ceiling = lambda _: -0.1
    with pytest.raises(Unbounded, match=r"every parameter from .* to 1e300 meets"):
        capped.boundary(1.0, True)
    assert sum(x > 2.5 for x in asked) == 1  # one refusal tells
    capped = search(known(0.5, 2.5, 4.0))
    capped.ceiling = lambda _: 0.1  # says nothing
    with pytest.raises(AccuracyError, match="still met at"):
        capped.boundary(1.0, True)


def test_a_target_that_is_missed_up_to_the_edge_of_the_known() -> None:
    with pytest.raises(Unreachable) as error:
        search(known(0.5, 2.5, 0.25)).boundary(1.0, True)
    assert 0.5 <= error.value.best <= 0.51
    assert "nothing is known" in str(error.value.error)


def test_a_gap_inside_of_the_bracket() -> None:
    def excess(x: float) -> float:
        if 1.5 < x < 3.0:
            raise AccuracyError("a gap")
        return math.log(x / 2.0)

    asked = search(excess)
    assert asked.ask(4.0) > 0.0
    with pytest.raises(AccuracyError, match=r"met at .* missed at .* answers at .* between: a gap"):
        asked.boundary(1.0, True)


def test_integers() -> None:
    asked: list[float] = []

    def excess(x: float) -> float:
        asked.append(x)
        return math.log(x / 12345.5)

    assert search(excess, Domain(1.0, 1e9, True)).boundary(3.0, True) == 12345.0
    assert all(x == int(x) for x in asked)
    assert len(asked) < 20


def test_a_direction_that_no_value_tells() -> None:
    with pytest.raises(Unbounded, match=r"every parameter from .* to .* meets the target"):
        search(lambda _: -1.0).undirected(1.0, monotone=True)
    with pytest.raises(Unreachable):
        search(lambda _: 1.0).undirected(1.0, monotone=True)
