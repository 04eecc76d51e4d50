"""One Gaussian batch of fixed size under substitution: the closed form of both orders together."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
from bounds_tally import TINY
from smooth_contour import batches
from thorough import ALL

import pyengine as pe
from pyengine.api import answers


def test_bounds_hold_the_truth_and_are_close() -> None:
    """Normal tails in 40 digits at the threshold of each answer."""
    asked = 0
    for index in range(300 if ALL else 12):
        run, truths = batches(np.random.default_rng([2, index]))
        for name in ("gamma_bound", "trade_off", "delta", "epsilon"):
            members = [one for one in truths if one.name == name]
            x = [one.argument for one in members]
            found, engines, proven = answers(name, run, x, adjacency="substitute")
            assert set(engines) == {"closed_form"}
            assert all(proven)
            for one, low, high in zip(members, found.lower, found.upper, strict=True):
                doubt = one.truth * Decimal(one.doubt)
                assert Decimal(low) - doubt <= one.truth <= Decimal(high) + doubt
                apart = (high - low) / float(one.truth)
                # an epsilon next to 0 has its digits from what the profile loses up to there
                assert apart <= (
                    5e-11 if name == "epsilon" else 1e-11 if one.truth > TINY else 1e-9
                )
                asked += 1
    assert asked > 1500


def test_it_is_both_orders_of_half_the_noise() -> None:
    """Where the record pushes another one out, the query moves twice as far."""
    batch = pe.GaussianMechanism("1.7").sampled_without_replacement(batch_size=3, dataset_size=20)
    half = pe.dp_sgd(Fraction("0.85"), Fraction(3, 20), 1)
    level = np.geomspace(1e-12, 0.9, 40)
    for name in ("gamma_bound", "trade_off", "epsilon"):
        question = getattr(pe, name)
        mine = question(batch, level, adjacency="substitute")
        assert (mine == question(half, level, adjacency="add_remove")).all()


def test_it_agrees_with_the_pair_of_the_maximum() -> None:
    """Masses on both sides of a threshold of that pair, which exact sums read."""
    batch = pe.GaussianMechanism(0.8).sampled_without_replacement(batch_size=2, dataset_size=9)
    for name, x in (("gamma_bound", [1e-6, 0.03, 0.4]), ("trade_off", [1e-3, 0.3, 0.7, 0.99])):
        question = getattr(pe, name)
        mine = question(batch, x, adjacency="substitute", bounds=True)
        other = question(batch, x, adjacency="substitute", method="exact", bounds=True)
        assert (mine.upper >= other.lower).all()
        assert (mine.lower <= other.upper).all()
        assert np.allclose(mine.value, other.value, rtol=1e-11, atol=0.0)


def test_two_batches_have_none() -> None:
    """Nor have batches of other noise, and a composition is left to its bounds."""
    batch = pe.GaussianMechanism(0.8).sampled_without_replacement(batch_size=2, dataset_size=9)
    laplace = pe.LaplaceMechanism(0.8).sampled_without_replacement(batch_size=2, dataset_size=9)
    for run in (batch.composed(2), laplace, pe.compose(batch, pe.GaussianMechanism(3.0))):
        engines = answers("delta", run, [0.5], adjacency="substitute")[1]
        assert set(engines) != {"closed_form"}
