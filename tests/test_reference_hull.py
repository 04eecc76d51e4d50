"""The hull of both orders where divergences are 0 or 1 to all digits that were asked for."""

from __future__ import annotations

import mpmath
import pytest
from thorough import some

import pyengine as pe

pytest.importorskip("flint")


@pytest.mark.parametrize("digits", some([30, 10], 2))
def test_hull_lies_below_both_functions_where_beta_is_tiny(digits: int) -> None:
    # both divergences differ from 1 by some 1e-57 here
    run = pe.dp_sgd("0.7", "0.1", 10_000)

    hull, remove, add = (
        pe.reference.trade_off(run, "0.05", adjacency=adjacency, digits=digits)
        for adjacency in ("add_remove", "remove", "add")
    )
    assert hull.lower <= remove.upper < add.lower
    assert hull.digits >= digits
    fast = pe.trade_off(pe.dp_sgd(0.7, 0.1, 10_000), 0.05)
    assert fast == pytest.approx(float(hull), rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("mechanism", "alpha", "beta"),
    [
        # the level lies within the atom of the largest loss, above which both divergences are zero
        (pe.LaplaceMechanism("2/3"), "0.05", "1 - 0.05 e^1.5"),
        (pe.GenericMechanism(1), "0.05", "1 - 0.05 e"),
        # the edge of an atom lies exactly at the level
        (pe.LaplaceMechanism("2/3"), "0.5", "e^-1.5 / 2"),
    ],
)
def test_hull_of_symmetric_laws(mechanism: pe.Mechanism, alpha: str, beta: str) -> None:
    value = pe.reference.trade_off(mechanism, alpha)
    with mpmath.workdps(50):
        e = mpmath.e
        truth = {
            "1 - 0.05 e^1.5": 1 - mpmath.mpf("0.05") * e ** mpmath.mpf("1.5"),
            "1 - 0.05 e": 1 - mpmath.mpf("0.05") * e,
            "e^-1.5 / 2": e ** mpmath.mpf("-1.5") / 2,
        }[beta]
        assert abs(value - truth) <= value.error + mpmath.mpf("1e-45")
    assert value.certified
    assert value.digits >= 30


def test_hull_within_the_atom_of_the_largest_loss() -> None:
    run = pe.LaplaceMechanism("1").poisson_sampled("0.25")
    hull = pe.reference.trade_off(run, "1e-3", digits=12)
    with mpmath.workdps(30):
        ratio = mpmath.mpf("0.75") + mpmath.e / 4
        assert abs(hull - (1 - mpmath.mpf("1e-3") * ratio)) <= hull.error + mpmath.mpf("1e-20")


def test_divergence_beyond_the_largest_loss_is_enclosed() -> None:
    for mechanism in (pe.LaplaceMechanism("2/3"), pe.GenericMechanism("3/2")):
        value = pe.reference.delta(mechanism, "3/2")
        assert value.certified
        assert value.lower <= 0 <= value.upper < mpmath.mpf("1e-400")


def test_laplace_knots_that_coincide() -> None:
    # two steps of one noise and a step of half the noise have knots at the same losses
    run = pe.compose(pe.LaplaceMechanism("2").composed(2), pe.LaplaceMechanism("1"))
    truth = pe.reference.trade_off(run, "0.1")
    fast = pe.trade_off(run, 0.1, method="lattice", bounds=True, tolerance=1e-5)
    assert fast.lower <= truth <= fast.upper
