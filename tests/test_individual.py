"""Individual accounting: each record's bounds against compositions of its own steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from thorough import ALL

import pyengine as pe
from pyengine.accounting.norm_laws import GRID, ROWS, WIDTH, Shape, _shifts, step_transforms
from pyengine.special import ndtr


def composed(norms: Any, noise: float, rate: float, steps: int) -> pe.Mechanism:
    """The steps of one record, for all other engines."""
    parts = [
        pe.GaussianMechanism(noise / min(u, 1.0)).poisson_sampled(rate).composed(steps)
        for u in norms
        if u > 0.0
    ]
    return pe.compose(*parts)


def call(mu: Any, log: Any) -> Any:
    """H_k of two normal laws at the distance μ, k = e^log."""
    return ndtr(0.5 * mu - log / mu) - np.exp(log) * ndtr(-0.5 * mu - log / mu)


def test_mixtures_of_two_norms_enclose_the_norms_between_them() -> None:
    """Lemmas 1 and 2: with a little less and a little more noise."""
    rng = np.random.default_rng(0)
    count, reach = 100_000, 8.0
    at = rng.integers(0, GRID.size - 1, count)
    noise = np.exp(rng.uniform(math.log(0.25), math.log(5.0), count))
    a, b = GRID[at] / noise, GRID[at + 1] / noise
    share = rng.random(count)
    mu = (1.0 - share) * a + share * b
    (a_up, a_down), (b_up, b_down) = _shifts(a, reach), _shifts(b, reach)
    log = rng.normal(0.0, 1.0, count) * mu * rng.choice([0.3, 1.0, 3.0], count)
    above = (1.0 - share) * call(a * (1.0 + a_up), log) + share * call(b * (1.0 + b_up), log)
    truth = call(mu, log)
    assert (above >= truth * (1.0 - 1e-13) - 1e-15).all()
    low = np.clip(log, -reach * a * (1.0 - 3.0 * WIDTH), reach * a * (1.0 - 3.0 * WIDTH))
    below = (1.0 - share) * call(a * (1.0 - a_down), low)
    below += share * call(b * (1.0 - b_down), low)
    assert (below <= call(mu, low) * (1.0 + 1e-11) + 1e-15).all()


@pytest.mark.parametrize("order", ["add", "remove"])
def test_masses_of_steps_lie_on_their_sides(order: str) -> None:
    """E e^{θL} of single steps, against integrals, between both laws and close to them."""
    shape = Shape(2.0**-12, 8.0, 2048, 16, 12.0)
    sides = [step_transforms(1.0, 0.02, shape, 40, 40, order, side) for side in (False, True)]
    x = np.array([-1.0, 1.0])
    low, high = (np.polynomial.chebyshev.chebval(x, side.mass[0]) for side in sides)
    z = np.linspace(-12.0, 18.0, 60_001)
    for i, mu in enumerate(GRID[[40 * ROWS, 41 * ROWS]]):
        ratio = np.log1p(0.02 * np.expm1(mu * z - 0.5 * mu * mu))
        power = 9.0 if order == "remove" else -8.0
        terms = np.exp(power * ratio - 0.5 * z * z) / math.sqrt(2.0 * math.pi)
        truth = math.log(float(terms.sum()) * (z[1] - z[0]))
        assert low[i] <= truth <= high[i]
        assert high[i] - low[i] < 0.01 * truth


CASES: list[tuple[float, float, int, int]] = [(1.0, 0.02, 100, 4), (2.0, 0.1, 10, 5)]
if ALL:
    CASES += [(0.7, 0.02, 20, 6), (1.0, 0.5, 1, 4), (4.0, 1.0, 1, 8), (1.0, 0.001, 1000, 5)]


@pytest.mark.parametrize(("noise", "rate", "steps", "columns"), CASES)
def test_random_records_against_their_own_compositions(
    noise: float, rate: float, steps: int, columns: int
) -> None:
    rng = np.random.default_rng(columns)
    size = 25 if ALL else 3
    norms = np.minimum(rng.lognormal(-0.8, 0.6, (size, columns)), 1.2)
    for adjacency in ("add_remove", "remove", "add") if ALL else ("add_remove",):
        run = pe.individual(
            norms, noise_multiplier=noise, rate=rate, steps=steps, adjacency=adjacency
        )
        for ask, found, level in (
            (pe.epsilon, run.epsilon(1e-5), 1e-5),
            (pe.gamma_bound, run.gamma_bound(1e-2), 1e-2),
        ):
            for i, row in enumerate(norms):
                own = composed(row, noise, rate, steps)
                truth = ask(own, level, adjacency=adjacency, bounds=True)
                assert found.lower[i] <= truth.upper, (adjacency, ask, i)
                assert truth.lower <= found.upper[i], (adjacency, ask, i)
                assert found.lower[i] <= found.value[i] <= found.upper[i]
                if not ALL:
                    assert found.upper[i] - found.lower[i] < 0.02 * truth.value


def test_norms_between_two_blocks() -> None:
    """Angles of transforms go on across the ends of blocks, whose steps have a share of both."""
    rng = np.random.default_rng(4)
    norms = np.minimum(rng.lognormal(-0.8, 0.6, (25, 4)), 1.2)[[3, 10]]  # 0.7487 in the last one
    run = pe.individual(norms, noise_multiplier=1.0, rate=0.5, adjacency="remove")
    for ask, found, level in (
        (pe.epsilon, run.epsilon(1e-1), 1e-1),
        (pe.gamma_bound, run.gamma_bound(1e-2), 1e-2),
    ):
        for i, row in enumerate(norms):
            truth = ask(composed(row, 1.0, 0.5, 1), level, adjacency="remove")
            assert found.lower[i] <= truth <= found.upper[i], (ask, i)


def test_equal_norms_are_dp_sgd() -> None:
    """Norms above the clipping norm, too; and no norm, no loss."""
    norms = np.array([[2.0, 7.0], [0.0, 0.0], [2.0, 2.0]])
    run = pe.individual(
        norms, noise_multiplier=1.0, rate=0.02, clip_norm=2.0, steps=200, adjacency="remove"
    )
    found = run.epsilon(1e-5)
    truth = pe.epsilon(pe.dp_sgd(1.0, 0.02, 400), 1e-5, adjacency="remove")
    assert found.lower[0] <= truth <= found.upper[0] < 1.003 * truth
    assert found.lower[1] == found.upper[1] == 0.0
    assert found.upper[2] == found.upper[0]
    more, no_more = run.above(1.01 * truth, 1e-5)
    assert not more.any()
    assert no_more.all()
    more, no_more = run.above(0.9 * truth, 1e-5)
    assert more.tolist() == [True, False, True]
    assert no_more.tolist() == [False, True, False]


def test_blocks_and_repeated_steps_are_one_sequence() -> None:
    rng = np.random.default_rng(3)
    norms = rng.lognormal(-1.0, 0.7, (5, 6))
    noise, rate = [1.0, 1.0, 2.0, 2.0, 2.0, 1.0], 0.05
    whole = pe.individual(norms, noise_multiplier=noise, rate=rate, steps=[1, 2, 1, 1, 3, 1])
    done: list[int] = []
    twice = np.repeat(norms, [1, 2, 1, 1, 3, 1], axis=1)
    parts = pe.individual(
        (twice[:, i : i + 4] for i in (0, 4, 8)),
        noise_multiplier=np.repeat(noise, [1, 2, 1, 1, 3, 1]),
        rate=rate,
        progress=done.append,
    )
    assert done == [4, 8, 9]
    assert whole.steps == parts.steps == 9
    for one, other in zip(whole.sums, parts.sums, strict=True):
        assert np.abs(one.moments - other.moments).max() < 1e-12
        assert (one.count == other.count).all()
    # sums of polynomials are those of the norms, as their squares show
    first = whole.sums[0]
    u = norms[:, [0, 1, 1, 5]]
    total = first.moments.reshape(5, -1) @ _squares().ravel()
    check_near("individual.moments", total, (np.minimum(u, 1.0) ** 2).sum(axis=1))


def _squares() -> Any:
    from pyengine.accounting.norm_sums import _powers

    return _powers(2)


def test_labels() -> None:
    run = pe.individual([[0.5, 1.0]], noise_multiplier=[1.0, 2.0], rate=0.1, steps=10)
    assert str(run) == (
        "DP-SGD, 20 steps, noise multiplier 1 at rate 0.1, noise multiplier 2 at rate 0.1, "
        "Poisson samples, add_remove neighbours; each of 1 records for itself, from its own "
        "gradient norms, which are taken as fixed beforehand; these values depend on the data "
        "and are not private"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"norms": [[1.0, -1.0]]}, "norms must be finite and >= 0"),
        ({"norms": [[1.0, math.nan]]}, "norms must be finite and >= 0"),
        ({"norms": [1.0, 0.25]}, r"norms must be of shape \(records, columns\), got 1 dim"),
        ({"norms": np.ones(3)}, r"norms must be of shape \(records, columns\), got 1 dim"),
        ({"norms": []}, "norms must have at least one record"),
        ({"norms": iter([np.ones((2, 1)), np.ones((3, 1))])}, "the same records in all blocks"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be finite and > 0"),
        ({"noise_multiplier": [1.0]}, "noise_multiplier must have one entry for each column"),
        ({"rate": 1.5}, "rate must"),
        ({"rate": [0.1, 0.1, 0.1]}, "rate must have one entry for each of 2 columns"),
        ({"steps": 1.5}, "steps must be integers"),
        ({"clip_norm": 0.0}, "clip_norm must be"),
        ({"adjacency": "substitute"}, "adjacency must be"),
    ],
)
def test_wrong_arguments(words: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"norms": [[1.0, 1.0]], "noise_multiplier": 1.0, "rate": 0.1, **words}
    with pytest.raises(ValueError, match=message):
        pe.individual(given.pop("norms"), **given)


def test_wrong_levels() -> None:
    run = pe.individual([[1.0]], noise_multiplier=1.0, rate=0.1)
    with pytest.raises(ValueError, match=r"delta must be in \[1e-30, 1\), got 0"):
        run.epsilon(0.0)
    with pytest.raises(ValueError, match=r"kappa must be in \[1e-30, 1\), got 1"):
        run.gamma_bound(1.0)
