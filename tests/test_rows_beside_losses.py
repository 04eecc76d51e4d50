"""Many rare sampled Gaussian steps beside few losses, by rows of the steps alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thorough import ALL

import pyengine as pe
from pyengine.engines import sector
from pyengine.engines.lattice import LatticePair
from pyengine.engines.vertical_lines.inner import PiecesOrder, RowsOrder
from pyengine.engines.vertical_lines.mixed import WeightedOrder
from pyengine.engines.vertical_lines.ordered import Inner
from pyengine.engines.vertical_lines.range import (
    line_order,
    may_have_rows,
    order_on_pieces,
    order_on_rows,
)
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


INNER = {
    "laws on pieces": (order_on_pieces, pe.dp_sgd(0.8, 1e-4, 40)),
    "rows": (lambda laws: order_on_rows(tuple(laws)), pe.dp_sgd(1.1, 1e-5, 60_000)),
    "lines": (line_order, pe.dp_sgd(0.9, 0.02, 3000)),
}


@pytest.mark.parametrize("name", INNER)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_means_of_all_stages_hold_what_the_last_one_knows(name: str, adjacency: str) -> None:
    """From far below to far above, where most that is known are Chernoff's bounds."""
    make, steps = INNER[name]
    laws = composition_law(steps + pe.RandomizedResponse(0.9).composed(9), adjacency)
    order = make(laws)
    inner = order.inner if isinstance(order, WeightedOrder) else order
    assert isinstance(inner, Inner)
    assert inner.stages > 1
    far, near = (41, 21) if ALL else (15, 7)
    c = np.concatenate([np.linspace(-8.0, 8.0, far), np.linspace(-0.05, 0.05, near)])
    last = [*inner.masses(c), inner.profile(-c)]
    for stage in range(inner.stages):
        which = slice(None, None, 1 if stage < inner.stages - 1 else 8)  # the last one is itself
        found = [*inner.masses_at(stage, c[which]), inner.profile_at(stage, -c[which])]
        for (value, error), (close, off) in zip(found, last, strict=True):
            known = np.isfinite(error) & np.isfinite(off[which])
            assert known.mean() > 0.5
            apart = np.abs(value - close[which])[known]
            assert (apart <= (error + off[which])[known] * (1.0 + 1e-9) + 1e-300).all()


def test_terms_that_do_not_count_make_no_deep_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside twelve responses most thresholds lie where the steps have next to no mass."""
    made = []
    own = sector.call_kernel

    def rows(kernel: Any, c: Any, law: Any, *given: Any) -> Any:
        made.append(law)
        return own(kernel, c, law, *given)

    monkeypatch.setattr(sector, "call_kernel", rows)
    mechanism = pe.dp_sgd(0.5398, 1.108e-7, 14) + pe.RandomizedResponse(0.5213).composed(12)
    found = pe.delta(mechanism, 0.04745, adjacency="add", bounds=True)
    assert found.upper - found.lower <= 1e-11 * found.upper
    assert len(set(made)) == 1


NOTHING = {
    "generic": (pe.GenericMechanism(0.1, 1e-5) + pe.dp_sgd(0.94, 3.6e-4, 647), 0.08, "add"),
    "noise": (pe.ExponentialMechanism(0.021).composed(6) + pe.LaplaceMechanism(6.4), 0.11, "add"),
    "both": (
        pe.GenericMechanism(0.24, 5e-8) + pe.ExponentialMechanism(0.032).composed(99),
        0.3,
        None,
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_epsilon_zero_composes_no_lattice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where δ is above δ(0) lines prove it."""

    def none(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(LatticePair, "__init__", none)
    mechanism, delta, adjacency = NOTHING[name]
    assert pe.delta(mechanism, 0.0, adjacency=adjacency or "add_remove") < delta
    found = pe.epsilon(mechanism, delta, adjacency=adjacency or "add_remove", bounds=True)
    assert (found.lower, found.upper) == (0.0, 0.0)


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
