"""Compositions in the relaxed threat model: products of the laws of each step's length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from scipy import integrate

import pyengine as pe
from pyengine.engines.relaxed.core import MagnitudePair
from pyengine.engines.relaxed.gaussian import GaussianDistance
from pyengine.engines.relaxed.laplace import LaplacePair
from pyengine.engines.relaxed.sampled import SampledPair

RELAXED: dict[str, Any] = {"threat_model": "relaxed"}


def two_steps(
    pair: MagnitudePair, density: Any, kinks: list[float], c: float
) -> tuple[float, float]:
    """P(L1 + L2 > c) and Q(L1 + L2 <= c): the second step by its tails, the first by quadrature.

    ``density`` holds the densities of the distance without and with the record, and the loss.
    """
    p, q, loss = density

    def alpha(x: float) -> float:
        rest = np.array([c - loss(x)])
        if rest[0] >= pair.highest:
            return 0.0
        if rest[0] < pair.lowest:
            return float(p(x))
        return float(p(x) * np.exp(pair.tails(rest).p_above[0]))

    def beta(x: float) -> float:
        rest = np.array([c - loss(x)])
        if rest[0] >= pair.highest:
            return float(q(x))
        if rest[0] < pair.lowest:
            return 0.0
        return float(q(x) * np.exp(pair.tails(rest).q_below[0]))

    words: dict[str, Any] = {"epsabs": 1e-13, "epsrel": 1e-11, "limit": 400}
    return tuple(  # type: ignore[return-value]
        sum(
            integrate.quad(f, low, high, **words)[0]
            for low, high in zip([0.0, *kinks], [*kinks, 45.0], strict=True)
        )
        for f in (alpha, beta)
    )


def folded_normal(mu: float, rate: float) -> Any:
    def p(x: float) -> float:
        return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)

    def ratio(x: float) -> float:
        return 1.0 - rate + rate * math.exp(-0.5 * mu * mu) * math.cosh(mu * x)

    return p, (lambda x: p(x) * ratio(x)), (lambda x: math.log(ratio(x)))


def folded_laplace(mu: float) -> Any:
    def ratio(x: float) -> float:
        return math.exp(min(x, mu) - mu) * math.cosh(min(x, mu))

    def p(x: float) -> float:
        return math.exp(-x)

    return p, (lambda x: p(x) * ratio(x)), (lambda x: math.log(ratio(x)))


def test_two_sampled_gaussian_steps() -> None:
    mu, rate = 1.5, 0.3
    pair = SampledPair(GaussianDistance(1, mu), rate)
    mechanism = pe.GaussianMechanism(1.0 / mu).poisson_sampled(rate).composed(2)
    for c in (-0.2, 0.0, 0.5, 1.5):
        # the inner edge of the second step's support is a kink of the integrands
        density = folded_normal(mu, rate)
        alpha, beta = two_steps(pair, density, _kinks(density[2], c, pair), c)
        found = pe.trade_off(mechanism, alpha, adjacency="add", bounds="estimated", **RELAXED)
        assert found.lower - 1e-9 <= beta <= found.upper + 1e-9
        assert found.upper - found.lower < 1e-3 * found.value
        back = pe.trade_off(mechanism, beta, adjacency="remove", bounds="estimated", **RELAXED)
        assert back.lower - 1e-9 <= alpha <= back.upper + 1e-9


def test_two_laplace_steps() -> None:
    mu = 1.0
    pair = LaplacePair(mu)
    mechanism = pe.LaplaceMechanism(1.0 / mu).composed(2)
    density = folded_laplace(mu)
    for c in (-0.7, 0.0, 0.6):
        alpha, beta = two_steps(pair, density, _kinks(density[2], c, pair, mu), c)
        found = pe.trade_off(mechanism, alpha, adjacency="add", bounds="estimated", **RELAXED)
        assert found.lower - 1e-9 <= beta <= found.upper + 1e-9
        assert found.upper - found.lower < 1e-3 * found.value


def _kinks(loss: Any, c: float, pair: MagnitudePair, *more: float) -> list[float]:
    """Distances of the first step at which the second one's loss reaches an end of its support."""
    grid = np.linspace(0.0, 20.0, 200_001)
    values = np.array([loss(x) for x in grid])
    ends = [c - end for end in (pair.lowest, pair.highest) if math.isfinite(end)]
    found = [grid[np.searchsorted(values, end)] for end in ends if values[0] < end < values[-1]]
    return sorted({*map(float, found), *more})


def test_one_step_on_the_lattice_is_the_closed_form() -> None:
    alpha = np.array([0.2, 0.4, 0.6])
    cases = [
        (pe.GaussianMechanism(1.0), 1),
        (pe.GaussianMechanism(0.7).poisson_sampled(0.2), 10),
        (pe.GaussianMechanism(0.3), 10**6),
        (pe.LaplaceMechanism(1.0), 1),
        (pe.LaplaceMechanism(0.5).poisson_sampled(0.3), 1),
    ]
    for mechanism, dimension in cases:
        model = pe.threat_models.Relaxed(dimension)
        for adjacency in ("add", "remove", "add_remove"):
            keywords: dict[str, Any] = {"adjacency": adjacency, "threat_model": model}
            closed = pe.trade_off(mechanism, alpha, **keywords)
            lattice = pe.trade_off(
                mechanism, alpha, method="lattice", bounds="estimated", **keywords
            )
            assert np.all(lattice.lower <= closed * (1.0 + 1e-13))
            assert np.all(closed <= lattice.upper * (1.0 + 1e-13))
            assert np.all(lattice.upper - lattice.lower <= 1e-3 * closed)


def test_dp_implies_the_relaxed_guarantee() -> None:
    """Figure 1e of the paper, and a mixed composition."""
    alpha = np.linspace(0.02, 0.98, 9)
    sampled = pe.GaussianMechanism(5.0).poisson_sampled(0.4).composed(30)
    relaxed = pe.trade_off(sampled, alpha, bounds="estimated", **RELAXED)
    assert np.all(relaxed.lower >= pe.trade_off(sampled, alpha))
    mixed = pe.compose(pe.GaussianMechanism(3.0).composed(7), pe.LaplaceMechanism(2.0))
    relaxed = pe.trade_off(mixed, alpha, adjacency="add", bounds="estimated", **RELAXED)
    dp = pe.trade_off(mixed, alpha, adjacency="add", bounds=True)
    assert np.all(relaxed.lower >= dp.lower)
    # the Gaussian steps alone, summed, are part of it
    part = pe.GaussianMechanism(3.0).composed(7)
    assert np.all(relaxed.lower <= pe.trade_off(part, alpha, adjacency="add", **RELAXED))


def test_no_log_and_no_closed_form() -> None:
    sampled = pe.GaussianMechanism(5.0).poisson_sampled(0.4).composed(30)
    with pytest.raises(pe.AccuracyError, match="closed form"):
        pe.resilience.log_trade_off(sampled, 0.1)
    with pytest.raises(pe.AccuracyError, match="closed form"):
        pe.trade_off(sampled, 0.1, method="closed_form", **RELAXED)


def test_end_of_the_range() -> None:
    """As α → 1 the slope of two Laplace steps tends to e to the extreme losses."""
    rest = 1e-9
    alpha = 1.0 - rest
    steps = pe.LaplaceMechanism(1.0).composed(2)
    for adjacency, loss in (("add", -2.0), ("remove", -2.0 * math.log(math.cosh(1.0)))):
        found = pe.trade_off(steps, alpha, adjacency=adjacency, bounds="estimated", **RELAXED)
        expected = math.exp(loss) * (1.0 - alpha)
        assert found.lower <= expected * (1.0 + 1e-3)
        assert found.upper >= expected * (1.0 - 1e-12)
        check_near("limits.end_of_range", found.value, expected)
