"""The hull of both orders where both divergences are 1 to all digits that were asked for."""

from __future__ import annotations

import pytest

import pyengine as pe

pytest.importorskip("flint")


@pytest.mark.parametrize("digits", [10, 30])
def test_hull_lies_below_both_functions_where_beta_is_tiny(digits: int) -> None:
    # both divergences differ from 1 by some 1e-57 here
    run = pe.dp_sgd("0.7", "0.1", 10_000)

    def beta(adjacency: str) -> pe.reference.Value:
        return pe.reference.trade_off(run, "0.05", adjacency=adjacency, digits=digits)

    assert beta("add_remove").lower <= beta("remove").upper < beta("add").lower
    assert beta("add_remove").digits >= digits
    fast = pe.trade_off(pe.dp_sgd(0.7, 0.1, 10_000), 0.05)
    assert fast == pytest.approx(float(beta("add_remove")), rel=1e-9, abs=0.0)
