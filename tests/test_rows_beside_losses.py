"""Many rare sampled Gaussian steps beside few losses, by rows of the steps alone."""

from __future__ import annotations

import pytest

import pyengine as pe
from pyengine.engines.vertical_lines.inner import PiecesOrder, RowsOrder
from pyengine.engines.vertical_lines.mixed import WeightedOrder
from pyengine.engines.vertical_lines.range import may_have_rows, order_on_pieces, order_on_rows
from pyengine.laws.composition import composition_law

# the mechanism, the question and where, by orders in which lines of all steps know too little
ASKED = {
    "delta": (
        pe.dp_sgd(0.576, 3e-8, 6536) + pe.RandomizedResponse(0.79).composed(7),
        ("delta", 1.42, "add"),
        1e-10,
    ),
    "steps and noise": (
        pe.dp_sgd(1.8, 1e-6, 350_000)
        + pe.dp_sgd(1.9, 2.5e-4, 3)
        + pe.RandomizedResponse(0.8).composed(2),
        ("delta", 0.092, "add"),
        1e-10,
    ),
    "trade-off": (
        pe.dp_sgd(2.79, 2.35e-8, 1900) + pe.RandomizedResponse(0.954).composed(6),
        ("trade_off", 2.3e-6, "remove"),
        1e-10,
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_rows_of_the_steps_meet_the_lattice(name: str) -> None:
    """Another engine, which knows some four digits or refuses."""
    mechanism, (question, x, adjacency), width = ASKED[name]
    ask = getattr(pe, question)
    found = ask(mechanism, x, adjacency=adjacency, bounds=True)
    assert found.upper - found.lower <= width * found.upper
    other = ask(mechanism, x, adjacency=adjacency, method="lattice", tolerance=0.3, bounds=True)
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_few_steps_have_laws_and_many_have_rows(adjacency: str) -> None:
    few = composition_law(pe.dp_sgd(1.25, 0.01, 4) + pe.RandomizedResponse(0.8), adjacency)
    many = composition_law(pe.dp_sgd(1.25, 0.01, 400_000) + pe.RandomizedResponse(0.8), adjacency)
    assert order_on_pieces(many) is None
    orders = (order_on_pieces(few), PiecesOrder), (order_on_rows(tuple(many)), RowsOrder)
    for order, sort in orders:
        assert isinstance(order, WeightedOrder)
        assert type(order.inner) is sort
    assert may_have_rows(many)
    assert not may_have_rows(composition_law(pe.dp_sgd(1.25, 0.01, 400_000), adjacency))
