"""What Lebeda, Regehr, Kamath and Steinke (2024) show, as numbers.

Avoiding Pitfalls for Privacy Accounting of Subsampled Mechanisms under Composition: propositions 9,
11 and 13, Theorem 15 as corrected, Table 1, and figures 1, 3 and 4.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import sampled_laplace_delta
from scipy import stats

import pyengine as pe
from pyengine.engines.exact import exact_questions
from pyengine.engines.vertical_lines.questions import LineQuestions
from pyengine.engines.vertical_lines.range import deformed_order
from pyengine.laws.composition import composition_law, step_law

DELTA = np.array([1e-7, 1e-6, 1e-5, 1e-4])


def test_proposition_11() -> None:
    """Randomized response at γ = 1/2, twice: add is worse at ε = log 4/3, remove at log 2."""
    response = pe.RandomizedResponse("3/4")
    for step in (
        response.poisson_sampled("1/2"),
        response.sampled_without_replacement(batch_size=1, dataset_size=2),
    ):
        twice, epsilon = step.composed(2), np.log([4.0 / 3.0, 2.0])
        add = pe.delta(twice, epsilon, adjacency="add", bounds=True)
        remove = pe.delta(twice, epsilon, adjacency="remove", bounds=True)
        assert add.value == pytest.approx([11 / 48, 1 / 16], rel=4e-16, abs=0)
        assert remove.value == pytest.approx([1 / 6, 1 / 8], rel=4e-16, abs=0)
        for bounds in (add, remove):
            assert (bounds.upper - bounds.lower < 1e-13).all()
        # realised by one pair for a single step, and by none for two
        grid = np.linspace(0.0, 1.0, 50)
        once = [pe.delta(step, grid, adjacency=a) for a in ("add", "remove")]
        assert (once[0] <= once[1] + 1e-15).all()
        worst = pe.delta(twice, epsilon)
        assert worst.tolist() == [add.value[0], remove.value[1]]


def two_steps(epsilon: float, ratio: float, p: float, first: str, second: str) -> Any:
    """Profile of two sampled Laplace steps, each in an order of its own, by quadrature."""
    with mpmath.workdps(25):
        mu, p, t = mpmath.mpf(ratio), mpmath.mpf(p), mpmath.exp(mpmath.mpf(epsilon))

        def grown(loss: Any) -> Any:
            return 1 - p + p * mpmath.exp(loss)

        def inner(loss: Any) -> Any:
            scale = grown(loss) if first == "add" else 1 / grown(loss)
            weight = 1 if first == "add" else grown(loss)
            return weight * sampled_laplace_delta(mu, p, t * scale, second)

        kinks = [-mu, mu]
        for end in (grown(mu), grown(-mu)):
            limit = 1 / (t * end) if second == "add" else end / t
            value = limit if first == "add" else 1 / limit
            loss = (value - 1 + p) / p
            if loss > 0 and -mu < mpmath.log(loss) < mu:
                kinks.append(mpmath.log(loss))
        atoms = inner(-mu) / 2 + inner(mu) * mpmath.exp(-mu) / 2
        return atoms + mpmath.quad(
            lambda loss: inner(loss) * mpmath.exp(-(loss + mu) / 2) / 4, sorted(kinks)
        )


@pytest.mark.parametrize(
    ("noise", "p", "below", "above"), [(1.0, 0.5, 0.1, 0.7), (2.0, 0.5, 0.1, 0.4)]
)
def test_figure_1(noise: float, p: float, below: float, above: float) -> None:
    """Two subsampled Laplace steps: the profiles of add and remove cross at some ε > 0."""
    step = pe.LaplaceMechanism(noise).poisson_sampled(p)
    sides = []
    for epsilon in (below, above):
        values = []
        for adjacency in ("add", "remove"):
            found = pe.delta(step.composed(2), epsilon, adjacency=adjacency, bounds=True)
            truth = two_steps(epsilon, 1 / noise, p, adjacency, adjacency)
            assert found.lower <= truth <= found.upper
            assert found.upper - found.lower <= 1e-6 * found.value
            values.append(found)
        sides.append(values)
    (add_below, remove_below), (add_above, remove_above) = sides
    assert add_below.lower > remove_below.upper
    assert remove_above.lower > add_above.upper
    grid = np.linspace(0.0, 2.0, 101)
    once = [pe.delta(step, grid, adjacency=a) for a in ("add", "remove")]
    assert (once[0] <= once[1] + 1e-15).all()


def test_figure_3() -> None:
    """Laplace noise of scale 2, one of two records, two queries: three curves, each the largest."""
    step = pe.LaplaceMechanism(2.0).sampled_without_replacement(batch_size=1, dataset_size=2)
    orders = {"PP": ("remove", "remove"), "QQ": ("add", "add"), "PQ": ("remove", "add")}
    grid = np.linspace(0.0, 1.2, 31)
    curves = {
        name: np.array([float(two_steps(x, 1.0, 0.5, *pair)) for x in grid.tolist()])
        for name, pair in orders.items()
    }
    for name in ("PP", "QQ"):
        law = deformed_order([(step_law(step, order), 1) for order in orders[name]])
        found = LineQuestions(law, None, None).profile(grid)
        assert (found.lower <= curves[name] + 1e-15).all()
        assert (found.upper >= curves[name] - 1e-15).all()
    for name, curve in curves.items():
        others = [other for of, other in curves.items() if of != name]
        assert (curve > np.maximum(*others) + 1e-9).any(), name
    # the truth lies between the largest of them and a pair that dominates all data sets
    found = pe.delta(step.composed(2), grid, adjacency="substitute", bounds=True)
    largest = np.max(list(curves.values()), axis=0)
    assert (found.lower >= largest * (1 - 1e-4)).all()
    assert (found.upper >= largest).all()
    assert (found.value >= largest).all()


def test_table_1() -> None:
    """10,000 steps at noise 0.8 and rate 0.001; printed values are exact ones plus slack."""
    gaussian = pe.GaussianMechanism("0.8")
    fixed = gaussian.sampled_without_replacement(batch_size=1, dataset_size=1000).composed(10_000)
    exact = pe.epsilon(fixed, DELTA)
    assert exact == pytest.approx([17.46294524, 15.2514764, 12.97590605, 10.61697516], abs=1e-8)
    printed = np.array([17.48, 15.26, 12.98, 10.62])
    assert ((printed - exact > 0) & (printed - exact < 0.03)).all()
    poisson = pe.epsilon(gaussian.poisson_sampled("0.001").composed(10_000), DELTA)
    expected = [1.17076284, 0.94719569, 0.78238778, 0.62860624]
    assert poisson == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("kind", [pe.GaussianMechanism, pe.LaplaceMechanism])
def test_proposition_9(kind: Any) -> None:
    """Without replacement needs exactly twice the noise of Poisson sampling."""
    steps = 2 if kind is pe.LaplaceMechanism else 50
    fixed = kind(1.5).sampled_without_replacement(batch_size=3, dataset_size=12).composed(steps)
    poisson = kind(0.75).poisson_sampled(0.25).composed(steps)
    epsilon = np.array([0.0, 0.4, 1.5])
    for adjacency in ("add", "remove"):
        ask: Any = {"adjacency": adjacency}
        assert (
            pe.delta(fixed, epsilon, **ask).tolist() == pe.delta(poisson, epsilon, **ask).tolist()
        )
        assert pe.gamma_bound(fixed, 0.01, **ask) == pe.gamma_bound(poisson, 0.01, **ask)
    if kind is pe.GaussianMechanism:
        assert pe.delta(fixed, 1.0) > 2 * pe.delta(
            kind(1.5).poisson_sampled(0.25).composed(steps), 1.0
        )


def normal_or_laplace(kind: str) -> Any:
    return stats.norm if kind == "gaussian" else stats.laplace


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["gaussian", "laplace"]),
    st.floats(0.2, 3.0),
    st.floats(0.05, 0.95),
    st.floats(-1.0, 1.0),
    st.floats(-1.0, 1.0),
    st.floats(0.2, 4.0),
)
def test_proposition_13(kind: str, scale: float, p: float, a: float, b: float, t: float) -> None:
    """Substitution under Poisson sampling: records of opposite sign dominate, at every order t."""
    z = np.linspace(-14.0 * max(scale, 1.0), 14.0 * max(scale, 1.0), 20_001)
    width = z[1] - z[0]
    density = normal_or_laplace(kind).pdf

    def law(x: float) -> Any:
        return (1 - p) * density(z, 0, scale) + p * density(z, x, scale)

    def divergence(first: float, second: float) -> float:
        return float(np.maximum(law(first) - t * law(second), 0.0).sum() * width)

    assert divergence(a, b) <= divergence(1.0, -1.0) + 1e-5
    step = (pe.GaussianMechanism if kind == "gaussian" else pe.LaplaceMechanism)(scale)
    sampled = step.poisson_sampled(p)
    if t >= 1.0:
        cells = step_law(sampled, "substitute").cells(np.array([-math.log(t)]))
        value = math.exp(cells.log_a[0]) - t * math.exp(cells.log_b[0])
        assert value == pytest.approx(divergence(1.0, -1.0), abs=1e-4)


@pytest.mark.parametrize("share", [1, 3, 9])
def test_theorem_15(share: int) -> None:
    """A single step without replacement: H((1-γ)Q+γP ‖ Q) at ε >= 0, which two data sets attain."""
    sigma, gamma = 1.3, share / 10
    step = pe.DiscreteGaussianMechanism(sigma, 2)
    fixed = step.sampled_without_replacement(batch_size=share, dataset_size=10)
    k = np.arange(-60, 61)
    weights = [np.exp(-((k - s) ** 2) / (2 * (2 * sigma) ** 2)) for s in (0, 4)]
    q, p = (w / w.sum() for w in weights)
    mixed = (1 - gamma) * q + gamma * p
    for epsilon in (0.0, 0.3, 1.0):
        t = math.exp(epsilon)
        expected = np.maximum(mixed - t * q, 0).sum()
        found = pe.delta(fixed, epsilon, adjacency="substitute", bounds=True)
        assert found.lower - 1e-13 <= expected <= found.upper + 1e-13
        assert found.value == pytest.approx(pe.delta(fixed, epsilon, adjacency="remove"), rel=1e-12)
        printed = np.maximum(mixed - t * p, 0).sum()
        if share == 1 and epsilon == 0.0:
            assert printed > 5 * expected  # it should vanish with the rate, but tends to H(Q ‖ P)


def test_substitution_composes_between_bounds() -> None:
    """Where no pair is known to be the worst, bounds enclose what all orders attain."""
    step = pe.RandomizedResponse("0.7").sampled_without_replacement(batch_size=1, dataset_size=3)
    epsilon = np.linspace(0.0, 1.5, 16)
    for steps in (2, 3, 5):
        found = pe.delta(step.composed(steps), epsilon, adjacency="substitute", bounds=True)
        for j in range(steps + 1):
            laws = [(step_law(step, "remove"), j), (step_law(step, "add"), steps - j)]
            real = exact_questions([part for part in laws if part[1]]).profile(epsilon)
            assert (found.upper >= real.lower - 1e-15).all()
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
        assert found.upper[3] > found.lower[3] * 1.01  # the gap that the paper leaves open
        beta = pe.trade_off(step.composed(steps), 0.2, adjacency="substitute", bounds=True)
        gamma = pe.gamma_bound(step.composed(steps), 0.2, adjacency="substitute", bounds=True)
        assert beta.lower == beta.value < beta.upper or beta.lower <= beta.value <= beta.upper
        assert gamma.lower <= gamma.value <= gamma.upper
        assert pe.epsilon(step.composed(steps), found.upper[3], adjacency="substitute") <= (
            epsilon[3] * (1 + 1e-9)
        )


def test_figure_4() -> None:
    """Gaussian noise 4, rate 0.05, 1,000 steps under substitution: a curve below and one above."""
    step = pe.GaussianMechanism(4.0).sampled_without_replacement(batch_size=1, dataset_size=20)
    epsilon = np.array([0.0, 2.0, 5.0, 8.0])
    found = pe.delta(step.composed(1000), epsilon, adjacency="substitute", bounds=True)
    below = pe.delta(step.composed(1000), epsilon, adjacency="remove")
    assert (found.lower >= below * (1 - 1e-4)).all()
    assert (found.upper > below).all()
    assert (found.upper[1:] > 1.2 * below[1:]).all()
    assert (found.upper < 1.0).all()


def test_plain_substitution_doubles_the_sensitivity() -> None:
    for mechanism, half in (
        (pe.GaussianMechanism(2.0), pe.GaussianMechanism(1.0)),
        (pe.LaplaceMechanism(2.0).composed(7), pe.LaplaceMechanism(1.0).composed(7)),
        (pe.DiscreteLaplaceMechanism(2.0, 3), pe.DiscreteLaplaceMechanism(1.0, 6)),
    ):
        found = pe.delta(mechanism, 0.7, adjacency="substitute")
        assert found == pytest.approx(pe.delta(half, 0.7), rel=1e-14)


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.from_probabilities([0.5, 0.5], [0.25, 0.75]),
        pe.RandomizedResponse(0.75).poisson_sampled(0.5),
        pe.GenericMechanism(1.0).poisson_sampled(0.5),
        pe.from_probabilities([0.5, 0.5], [0.25, 0.75]).sampled_without_replacement(
            batch_size=1, dataset_size=2
        ),
    ],
)
def test_substitution_undefined(mechanism: Any) -> None:
    with pytest.raises(ValueError, match="what another record does"):
        pe.delta(mechanism, 1.0, adjacency="substitute")
    assert composition_law(mechanism.composed(0), "substitute") == []
