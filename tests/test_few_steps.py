"""Few steps of one kind against truth of another make: values lie between their bounds.

`tools/campaigns.py few-steps` asks tens of thousands of such questions; those here once lay
outside.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from bounds_tally import Tally, Truth

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines import sector


def assert_within(law: tuple[float, float, int], asked: Truth) -> None:
    for method in ("auto", "lattice"):
        tally = Tally(method=method)
        tally.judge(pe.dp_sgd(*law), [asked], f"{law}, {method}")
        assert set(tally.verdicts) == {"within"}


# Found by random questions to lie outside: the first, second and fourth because the Gaussians that
# centre the sums over z were resolved too coarsely, the third because the rounding of rotated sums
# was said not to grow beyond 16 steps, the next two because the nodes in z left high local
# frequencies unresolved on contours far to the left, the last ones because the window of z ended up
# to a spacing of the coarse grid before the last term that matters.
@pytest.mark.parametrize(
    ("law", "epsilon", "adjacency", "truth"),
    [
        ((5.3155, 0.11012, 17), 0.94812, "remove", "6.2073913040047802625766105e-22"),
        ((2.8125, 0.23551, 2), 0.023723, "remove", "0.037792434476852813614001734261893"),
        ((0.90259, 0.030451, 50), 0.0067856, "add", "0.11827104559359402212098242854"),
        ((4.9316, 0.17298, 2), 0.012368, "remove", "0.014624260193719522171778804190139"),
        (
            (2.243, 0.0003458, 3),
            7.434256649804487e-05,
            "add",
            "0.00007233874314140716091311941776",
        ),
        (
            (2.243, 0.0003458, 3),
            0.0001177519400850017,
            "add",
            "0.00005459375981959671311581691925",
        ),
        (
            (0.9547713944399933, 0.004467109256727344, 3),
            0.0131,
            "add",
            "6.86365098605109082051376549935e-13",
        ),
        (
            (0.9547713944399933, 0.004467109256727344, 3),
            0.01315,
            "add",
            "1.21058944391685288182873139122e-13",
        ),
        (
            (0.9547713944399933, 0.004467109256727344, 3),
            0.0132,
            "add",
            "1.38806595104251105878474374930e-14",
        ),
    ],
)
def test_found_outside(
    law: tuple[float, float, int], epsilon: float, adjacency: str, truth: str
) -> None:
    for order in (adjacency, "add_remove") if adjacency == "remove" else (adjacency,):
        assert_within(law, Truth("delta", epsilon, order, Decimal(truth)))


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the convolutions of laws with proven errors, which take up to a second each."""
    counted: list[int] = []
    plain = sector._convolve
    monkeypatch.setattr(sector, "_convolve", lambda a, b: counted.append(1) or plain(a, b))
    clear_cache()
    return counted


@pytest.mark.parametrize(("run", "epsilon"), [((0.448, 0.00043, 83), 2.29), ((0.8, 0.03, 30), 1.5)])
def test_beyond_the_largest_loss_there_is_nothing_to_compute(
    run: tuple[float, float, int], epsilon: float, sums: list[int]
) -> None:
    """The end of the support is looked at first: 6 s for an exact 0, and for the larger order."""
    mechanism = pe.dp_sgd(*run)
    assert pe.delta(mechanism, epsilon, adjacency="add", bounds=True) == (0.0, 0.0, 0.0)
    array = pe.delta(mechanism, [epsilon, 2 * epsilon], adjacency="add", bounds=True)
    assert array.upper.tolist() == [0.0, 0.0]
    assert not sums
    remove = pe.delta(mechanism, epsilon, adjacency="remove", bounds=True)
    made = len(sums)
    assert pe.delta(mechanism, epsilon, bounds=True) == remove
    assert len(sums) == made


@pytest.mark.parametrize(
    ("ask", "run", "x", "most"),
    [
        (pe.gamma_bound, (1.0, "256/60000", 20), 1e-7, 10),
        (pe.trade_off, (0.5, 0.2, 200), 2.6242532634426324e-4, 0),
        (pe.delta, (2.0, "256/60000", 1000), 0.5, 0),
        (pe.delta, (0.8, 0.02, 30), 1.7, 0),
        (pe.epsilon, (0.7, 0.01, 40), 1e-7, 0),
        (pe.gamma_bound, (0.43, 0.0354, 32), 6.85e-9, 0),
    ],
)
def test_of_both_orders_the_one_that_decides_is_known_closely(
    ask: Any, run: tuple[Any, ...], x: float, most: int, sums: list[int]
) -> None:
    """The other one needs a bound on the right side, for which no law is made."""
    mechanism = pe.dp_sgd(*run)
    found = ask(mechanism, x, adjacency="add_remove", bounds=True)
    assert len(sums) <= most
    assert found.upper - found.lower < 1e-9 * found.upper
    other = ask(mechanism, x, adjacency="add_remove", bounds=True, method="lattice")
    assert found.lower <= other.upper
    assert other.lower <= found.upper
