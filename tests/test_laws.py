"""Laws of single steps against densities, sums and each other; pairs given in general terms."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from campaign.truth import lines
from campaign.truth.law import ball, precision
from comparing import compared, comparing, left_out
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from thorough import ALL

import pyengine as pe
from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.pair import LatticePair
from pyengine.laws.base import StepLaw
from pyengine.laws.composition import composition_law, step_law
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.substituted import SubstitutedGaussian, SubstitutedLaplace

EDGES = np.linspace(-3.0, 3.0, 241)
BESIDE_ATOMS = EDGES + 0.00314159  # no atom of the mechanisms below lies on one of them

ADDITIVE = [
    pe.GaussianMechanism(1.3),
    pe.LaplaceMechanism(0.8),
    pe.DiscreteGaussianMechanism(1.1, 2),
    pe.DiscreteLaplaceMechanism(0.9, 3),
]
PAIRS = [
    pe.RandomizedResponse(0.6, 4),
    pe.GenericMechanism(0.8, 0.01),
    pe.from_probabilities([0.5, 0.3, 0.2, 0.0], [0.1, 0.3, 0.4, 0.2]),
    pe.from_distributions(stats.logistic(), stats.logistic(0.7)),
]


def name(step: Any) -> str:
    """The mechanism without addresses, which differ between two runs."""
    return re.sub(r" object at 0x\w+", "", repr(step))


def sampled(step: Any) -> list[Any]:
    fixed = step.sampled_without_replacement(batch_size=1, dataset_size=5)
    return [step, step.poisson_sampled(0.2), fixed]


@pytest.mark.parametrize("step", [s for m in ADDITIVE + PAIRS for s in sampled(m)], ids=name)
@pytest.mark.parametrize("adjacency", ["add", "remove", "substitute"])
def test_cells_are_laws(step: Any, adjacency: str) -> None:
    """Masses add up to 1, and the masses of both laws differ by the loss of their cell."""
    try:
        law = step_law(step, adjacency)
    except ValueError:
        assert adjacency == "substitute"
        assert any(repr(pair) in repr(step) for pair in PAIRS)
        return
    assert isinstance(law, StepLaw)
    cells = law.cells(EDGES)
    for logs, lost in zip((cells.log_a, cells.log_b), law.infinite(), strict=True):
        assert math.isclose(np.exp(logs).sum() + lost, 1.0, rel_tol=1e-12)
    with np.errstate(invalid="ignore"):
        loss = cells.log_b - cells.log_a
    filled = np.isfinite(cells.log_a)
    assert (filled == np.isfinite(cells.log_b)).all()
    low = np.append(-np.inf, EDGES - cells.shift) - 2 * cells.error
    high = np.append(EDGES + cells.shift, np.inf) + 2 * cells.error
    assert ((low <= loss) & (loss <= high))[filled].all()
    lowest, highest = law.support()
    assert lowest <= highest
    outside = (np.append(EDGES, np.inf) < lowest - 1e-9) | (
        np.append(-np.inf, EDGES) > highest + 1e-9
    )
    assert not filled[outside].any()


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=repr)
def test_orders_are_mirror_images(mechanism: Any) -> None:
    for step in sampled(mechanism):
        edges = BESIDE_ATOMS
        add = step_law(step, "add").cells(edges)
        remove = step_law(step, "remove").cells(-edges[::-1])
        for one, other in ((add.log_a, remove.log_b), (add.log_b, remove.log_a)):
            assert np.exp(one) == pytest.approx(np.exp(other[::-1]), rel=1e-11, abs=1e-15)
        assert np.isfinite(add.log_a).sum() >= 2


@comparing(0.9)
@settings(max_examples=40, deadline=None)
@given(st.floats(0.2, 5.0), st.floats(0.01, 0.99), st.sampled_from(["gaussian", "laplace"]))
def test_substituted_laws_against_distribution_functions(noise: float, p: float, kind: str) -> None:
    """Masses against those of the hostile campaign, which are found in other ways."""
    law_of, truth_of = (
        (SubstitutedGaussian, lines.SubstitutedGaussian)
        if kind == "gaussian"
        else (SubstitutedLaplace, lines.SubstitutedLaplace)
    )
    law = law_of(noise, p)
    edges = np.array([-1.0, -0.3, -0.01, 0.02, 0.5])
    with precision(400):
        truth = truth_of(1 / ball(noise), ball(p))
        ends = [float(end) for end in truth.span()]
        if kind == "laplace" and np.abs(np.subtract.outer(ends, edges)).min() < 1e-9:
            left_out()  # an atom lies beside an edge
            return
        parts = [truth.at(ball(float(edge))) for edge in edges]
        a = np.diff([0, *(part.a_below for part in parts), 1]).astype(float)
        b = np.diff([0, *(part.b_below for part in parts), 1]).astype(float)
    compared()
    cells = law.cells(edges)
    assert np.exp(cells.log_a) == pytest.approx(a, rel=1e-11, abs=1e-14)
    assert np.exp(cells.log_b) == pytest.approx(b, rel=1e-11, abs=1e-14)
    mirrored = law.cells(-edges[::-1])
    assert np.exp(mirrored.log_b[::-1]) == pytest.approx(a, rel=1e-11, abs=1e-14)


def test_discrete_noise_adds_up() -> None:
    """Against sums with the noise written out, far into the tails."""
    sigma, shift = Fraction(5, 2), 2
    ((law, _),) = composition_law(pe.DiscreteGaussianMechanism(sigma / shift, shift), "add")
    k = np.arange(-400.0, 401.0)
    log_weight = -(k**2) / (2 * float(sigma) ** 2)
    log_total = np.logaddexp.reduce(log_weight)
    loss = (2 * shift * k - shift**2) / (2 * float(sigma) ** 2)
    for threshold in (-20.0, -1.0, 0.1, 3.0, 30.0):
        cells = law.cells(np.array([threshold]))
        expected = np.logaddexp.reduce(log_weight[loss > threshold]) - log_total
        assert cells.log_a[1] == pytest.approx(expected, rel=1e-13)
    laplace = pe.DiscreteLaplaceMechanism("1.5", 2)
    ((law, _),) = composition_law(laplace, "add")
    ratio = 1 / 1.5
    assert law.support() == pytest.approx((-ratio, ratio), rel=1e-15)
    base = math.exp(-1 / 3)
    cells = law.cells(np.array([0.0]))
    assert math.exp(cells.log_a[1]) == pytest.approx(base**2 / (1 + base), rel=1e-14)


@pytest.mark.parametrize(
    ("p", "q", "breakpoints"),
    [
        (stats.norm(0, 1), stats.norm(1, 1), ()),
        (stats.norm(0, 1), stats.norm(0, 1.5), ()),
        (stats.laplace(0, 1), stats.laplace(0.8, 1), ()),
        (stats.logistic(0, 1), stats.logistic(1, 2), ()),
        (stats.t(3), stats.t(3, loc=0.5), ()),
        (stats.uniform(0, 1), stats.uniform(0.25, 1), ()),
        (stats.triang(0.5), stats.uniform(0, 1), (0.5,)),
        (stats.gamma(2.0), stats.gamma(3.0), ()),
    ],
)
def test_distributions(p: Any, q: Any, breakpoints: Any) -> None:
    """Masses of {L > x} against the tails of both distributions, whatever the loss's shape."""
    law = step_law(pe.from_distributions(p, q, breakpoints=breakpoints), "add")
    low, high = law.support()
    edges = np.linspace(max(low, -3.0) - 0.25, min(high, 3.0) + 0.25, 12)
    cells = law.cells(edges)
    z = np.concatenate([d.ppf(np.linspace(1e-12, 1 - 1e-12, 200_001)) for d in (p, q)])
    z = np.unique(z)
    middle = 0.5 * (z[1:] + z[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = q.logpdf(middle) - p.logpdf(middle)
    between = 0
    for logs, d in ((cells.log_a, p), (cells.log_b, q)):
        masses = np.diff(d.cdf(z))
        for i, edge in enumerate(edges):
            above = masses[loss > edge].sum()
            found = np.exp(logs[i + 1 :]).sum() + (law.infinite()[1] if d is q else 0.0)
            check_near("quadrature.distributions", found, above, absolute=True)
            between += 1e-3 < above < 1 - 1e-3
    assert between >= 4
    assert (cells.error < 1e-9).all()


@pytest.mark.parametrize(
    ("p", "q", "truth"),
    [
        (
            stats.norm(0, 1),
            stats.norm(0.75, 1.5),
            lambda: lines.TwoVariances(ball(0.75), ball(1.5)),
        ),
        (
            stats.norm(0, 1),
            stats.norm(0.75, 0.5),
            lambda: lines.TwoVariances(ball(0.75), ball(0.5)),
        ),
        (stats.logistic(0, 1), stats.logistic(0.75, 1), lambda: lines.Logistic(ball(0.75))),
        (stats.laplace(0, 1), stats.laplace(0.75, 1), lambda: lines.Laplace(ball(0.75))),
        (stats.cauchy(0, 1), stats.cauchy(0.75, 1), lambda: lines.CauchyPair(ball(0.75))),
    ],
    ids=["wider", "narrower", "logistic", "laplace", "cauchy"],
)
def test_distributions_against_distribution_functions(p: Any, q: Any, truth: Any) -> None:
    """Masses to the digits that are claimed, against those of the hostile campaign."""
    edges = np.array([-0.61, -0.3, -0.02, 0.013, 0.27, 0.62])
    cells = step_law(pe.from_distributions(p, q), "add").cells(edges)
    with precision(300):
        law = truth()
        # the true edges lie within a shift of the given ones
        low, high = (
            [
                law.at(ball(float(edge)) + sign * ball(float(shift) + 1e-16))
                for edge, shift in zip(edges, cells.shift, strict=True)
            ]
            for sign in (-1, 1)
        )
        for logs, below in ((cells.log_a, "a_below"), (cells.log_b, "b_below")):
            first = [0, *(getattr(part, below) for part in low), 1]
            last = [0, *(getattr(part, below) for part in high), 1]
            least = np.subtract(first[1:], last[:-1]).astype(float)
            most = np.subtract(last[1:], first[:-1]).astype(float)
            masses = np.exp(logs)
            assert (masses >= least * (1 - cells.error) - 1e-15).all()
            assert (masses <= most * (1 + cells.error) + 1e-15).all()
            assert (most - least < 1e-8).all()
            assert (most > 1e-3).sum() >= 4


def test_likelihood_ratio_is_the_same_law() -> None:
    ratio = pe.from_log_likelihood_ratio(lambda x: x - 0.5, stats.norm())
    gaussian = step_law(pe.GaussianMechanism(1.0), "add").cells(EDGES)
    for other in (ratio, pe.from_distributions(stats.norm(), stats.norm(1.0))):
        cells = step_law(other, "add").cells(EDGES)
        assert cells.log_a == pytest.approx(gaussian.log_a, abs=1e-11)
        assert cells.log_b == pytest.approx(gaussian.log_b, abs=1e-11)


def test_different_supports_are_infinite_losses() -> None:
    pair = pe.from_distributions(stats.uniform(0, 1), stats.uniform(0.25, 1))
    assert step_law(pair, "add").infinite() == pytest.approx((0.25, 0.25), abs=1e-12)
    assert step_law(pair, "remove").infinite() == pytest.approx((0.25, 0.25), abs=1e-12)
    half = pe.from_log_likelihood_ratio(
        lambda x: -math.inf if x < 0 else math.log(1.5), stats.norm(), infinite_mass=0.25
    )
    assert step_law(half, "add").infinite() == pytest.approx((0.5, 0.25), abs=1e-9)
    finite = pe.from_probabilities(["1/2", "1/2", "0"], ["0", "1/2", "1/2"])
    assert step_law(finite, "add").infinite() == (0.5, 0.5)
    assert pe.delta(finite, 5.0) == 0.5
    assert pe.epsilon(finite, 0.25) == math.inf
    sampled_law = step_law(finite.poisson_sampled("1/2"), "add")
    assert sampled_law.infinite() == (0.0, 0.25)
    assert sampled_law.support() == pytest.approx((-math.log(2), 0.0))


def test_constant_losses_are_atoms() -> None:
    """Densities with finitely many ratios are answered by exact sums."""
    shifted = pe.from_distributions(stats.uniform(0, 1), stats.uniform(0.01, 1))
    truth = pe.from_probabilities([0.01, 0.99, 0.0], [0.0, 0.99, 0.01])
    for adjacency in ("add", "remove", "add_remove"):
        for steps in (1, 10):
            ask: Any = {"adjacency": adjacency, "bounds": True}
            found = pe.delta(shifted.composed(steps), 0.5, **ask)
            assert found.value == pytest.approx(1 - 0.99**steps, rel=1e-11)
            assert found.upper - found.lower < 1e-11
            exact = pe.trade_off(truth.poisson_sampled(0.1).composed(steps), 0.4, **ask)
            sampled_pair = pe.trade_off(shifted.poisson_sampled(0.1).composed(steps), 0.4, **ask)
            assert sampled_pair.value == pytest.approx(exact.value, rel=1e-10)


class Unnormalised(type(stats.norm(0, 1))):  # type: ignore[misc]
    def logpdf(self, x: Any) -> Any:
        return super().logpdf(x) + math.log(1.1)


class OnlyDensity:
    def logpdf(self, x: Any) -> Any:
        return -x * x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pe.from_distributions(stats.norm(), 3.0), "q must be a frozen continuous"),
        (lambda: pe.from_distributions(stats.poisson(2.0), stats.norm()), "must be continuous"),
        (lambda: pe.from_distributions(OnlyDensity(), stats.norm()), "has no ppf, isf, support"),
        (
            lambda: pe.from_distributions(stats.norm(), stats.norm(), breakpoints=[math.nan]),
            "breakpoints",
        ),
        (
            lambda: step_law(pe.from_distributions(stats.norm(), Unnormalised(stats.norm)), "add"),
            "q must have total mass 1, got 1.1",
        ),
        (lambda: pe.from_log_likelihood_ratio(1.0, stats.norm()), "must be callable"),  # type: ignore[arg-type]
        (
            lambda: step_law(pe.from_log_likelihood_ratio(lambda x: x, stats.norm()), "add"),
            "q must have total mass 1, got 1.64872",
        ),
        (
            lambda: step_law(pe.from_log_likelihood_ratio(str, stats.norm()), "add"),
            "Numba can compile",
        ),
        (
            lambda: step_law(
                pe.from_log_likelihood_ratio(lambda x: math.inf if x > 3 else 0.0, stats.norm()),
                "add",
            ),
            "number or -inf",
        ),
        (
            lambda: pe.from_log_likelihood_ratio(lambda x: 0.0 * x, stats.norm(), infinite_mass=2),
            "infinite_mass must lie",
        ),
        (lambda: pe.from_probabilities([0.5, 0.6], [0.5, 0.5]), "p must add up to 1"),
        (lambda: pe.from_probabilities([0.5, 0.5], [1.5, -0.5]), r"q\[0\] must lie in"),
        (lambda: pe.from_probabilities([1.0], [0.5, 0.5]), "as many entries"),
        (lambda: pe.from_probabilities([math.nan, 1.0], [0.5, 0.5]), "NaN"),
        (lambda: pe.from_profile(0.5), "must be callable"),  # type: ignore[arg-type]
        (lambda: pe.from_profile(lambda e: 1.5 - e), "must lie in"),
        (lambda: pe.from_profile(lambda e: 0.1 + 0.1 * min(e, 1.0)), "must not increase"),
        (lambda: pe.from_profile(lambda e: 0.5 if e < 1 else 0.0), "convex"),
        (lambda: pe.from_profile(lambda e: 0.5, epsilon=[0.5, 1.0]), "increase from 0"),  # noqa: ARG005
    ],
)
def test_bad_pairs(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_profile_dominates() -> None:
    """Chords lie above the profile in both orders, by less for a finer grid."""
    tight = pe.GaussianMechanism(2.0)
    epsilon = np.array([0.0, 0.011, 0.5, 1.0, 2.0])
    truth = pe.delta(tight, epsilon)
    excess = []
    for steps in (50, 400):
        grid = np.linspace(0.0, 5.0, steps + 1)
        pair = pe.from_profile(lambda e: pe.delta(tight, e), epsilon=grid)
        for adjacency in ("add", "remove"):
            found = pe.delta(pair, epsilon, adjacency=adjacency)
            assert (found >= truth * (1 - 1e-12)).all()
        excess.append((found / truth - 1).max())
        gamma = pe.gamma_bound(pair, [0.01, 0.3])
        assert (gamma >= pe.gamma_bound(tight, [0.01, 0.3])).all()
    assert excess[1] < excess[0] / 30 < 0.1


def test_profile_with_mass_at_infinity() -> None:
    exact = pe.GenericMechanism(1.0, 0.01)
    pair = pe.from_profile(lambda e: pe.delta(exact, e), epsilon=[0.0, 0.5, 1.0, 2.0])
    grid = np.array([0.0, 0.25, 1.0, 3.0, 50.0])
    assert pe.delta(pair, grid) == pytest.approx(pe.delta(exact, grid), rel=1e-12)
    assert pe.epsilon(pair, 0.005) == math.inf
    dented = pe.from_profile(lambda e: 0.5 if e < 1 else 0.0, convexify=True)
    assert pe.delta(dented, 0.0) <= 0.5
    assert pe.delta(dented, 1.01) == 0.0


def test_ratios_that_rounding_cannot_tell_apart_are_one_atom() -> None:
    p = [0.1, 0.2, 0.7]
    q = [0.3, math.nextafter(0.6, 1.0), 0.1]
    law = step_law(pe.from_probabilities(p, q), "add")
    assert law.support()[0] < 0 < law.support()[1]
    assert law.spacing() is not None  # of the two values that are left


def test_an_edge_that_the_loss_tends_to_in_heavy_tails() -> None:
    """The loss of shifted Cauchy laws is 0 at one point, and tends to 0 from both sides far out."""
    law = step_law(pe.from_distributions(stats.cauchy(0, 1), stats.cauchy(0.75, 1)), "add")
    cells = law.cells(np.array([-0.02, 0.0, 0.013]))
    assert np.exp(cells.log_a[:2]).sum() == pytest.approx(stats.cauchy.cdf(0.375), rel=1e-12)
    assert np.exp(cells.log_b[:2]).sum() == pytest.approx(stats.cauchy.cdf(-0.375), rel=1e-12)
    # losses are rounded where the log densities are some -1,370, at the last quantiles
    assert cells.shift.max() < 3e-12


def test_a_loss_that_tends_to_its_largest_value() -> None:
    """Beside 1 a β of shifted logistic laws is that of the largest loss, from any side."""
    shift = 0.4048441355022095
    pair = pe.from_distributions(stats.logistic(0, 1), stats.logistic(shift, 1))
    alpha = 1.0 - 2.0**-53
    with mpmath.workdps(40):
        q = mpmath.mpf(2) ** -53  # β is the mass of the one law beyond the quantile of the other
        truth = 1 / (1 + mpmath.exp(shift) * (1 - q) / q)
    for adjacency in ("add", "remove"):
        found = pe.trade_off(pair, alpha, adjacency=adjacency, bounds="estimated")
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower < 1e-9 * truth


@pytest.mark.parametrize(
    ("p", "q", "largest"),
    [
        (stats.norm(0, 1), stats.norm(1, 1), math.inf),
        (stats.logistic(0, 1), stats.logistic(0.4, 1), 0.4),
        (stats.beta(2, 3), stats.beta(3, 3), math.inf),
        (stats.uniform(0, 1), stats.uniform(0.3, 1), math.inf),
    ],
)
def test_largest_epsilon_of_densities(p: Any, q: Any, largest: float) -> None:
    found = pe.epsilon(pe.from_distributions(p, q), 0.0, adjacency="add", bounds="estimated")
    assert found.lower <= largest <= found.upper
    assert found.value == pytest.approx(largest, rel=1e-9)


def test_a_mass_below_all_doubles_that_its_ratio_makes_count() -> None:
    """Far out e^ε A is half of B, though A's mass there is no double."""
    p, q = stats.norm(0, 1), stats.norm(0.541680658432067, 1.4798096009854178)
    found = pe.epsilon(pe.from_distributions(p, q), 1.3165447772211437e-149, bounds="estimated")
    assert found.lower <= 422.80041560096320455 <= found.upper
    assert found.upper - found.lower < 1e-4


@pytest.mark.parametrize("noise", [0.11, 0.9, 7.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_uncertain_gaussian_noise(noise: float, sign: int) -> None:
    """A noise off by as much as is said moves edges by the shift and B's masses by the error."""
    units = 1e9  # so much that nothing else counts
    law = GaussianLaw(noise, units)
    edges = np.linspace(-8.0, 8.0, 23)
    cells = law.cells(edges)
    with mpmath.workdps(40):
        mu = 1 / mpmath.mpf(noise)
        other = 1 / (mpmath.mpf(noise) * (1 + sign * mpmath.mpf(units) * mpmath.mpf(2) ** -53))
        z = [mpmath.mpf(x) / mu + mu / 2 for x in edges.tolist()]
        for x, place, shift in zip(edges.tolist(), z, cells.shift.tolist(), strict=True):
            assert abs(other * place - other**2 / 2 - x) <= shift
        ends = [-mpmath.inf, *z, mpmath.inf]
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            for mean, log_mass in ((0, cells.log_a[i]), (other, cells.log_b[i])):
                right = low > mean
                mass = mpmath.ncdf(mean - low if right else high - mean)
                mass -= mpmath.ncdf(mean - high if right else low - mean)
                assert abs(mpmath.expm1(mpmath.mpf(float(log_mass)) - mpmath.log(mass))) <= (
                    1.01 * cells.error[i]
                )


def test_joined_noise_is_within_its_uncertainty() -> None:
    """Plain Gaussian steps as one: their noise against 50 digits."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        parts: list[Part] = [
            (GaussianLaw(float(10.0 ** rng.uniform(-2.0, 2.0))), int(10.0 ** rng.uniform(0.0, 6.0)))
            for _ in range(int(rng.integers(1, 9)))
        ]
        ((law, number),) = LatticePair(parts).parts
        assert number == 1
        assert isinstance(law, GaussianLaw)
        with mpmath.workdps(50):
            square = mpmath.fsum(n / mpmath.mpf(own.noise_multiplier) ** 2 for own, n in parts)
            off = abs(law.noise_multiplier * mpmath.sqrt(square) - 1)
            assert off <= (law.uncertainty - 4.0) * mpmath.mpf(2) ** -53


def cauchy_gamma(shift: float, kappa: float) -> mpmath.mpf:
    """γ(κ) of Cauchy noise: the test is an interval around the largest likelihood ratio."""
    with mpmath.workdps(60):
        s = mpmath.mpf(shift)
        middle = (s + mpmath.sqrt(s * s + 4)) / 2
        largest = (1 + middle**2) / (1 + (middle - s) ** 2)

        def masses(part: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
            ratio = largest * (1 - part)  # 1 + x^2 = ratio (1 + (x - s)^2)
            a, b, c = 1 - ratio, 2 * ratio * s, 1 - ratio * (1 + s * s)
            root = mpmath.sqrt(b * b - 4 * a * c)
            low, high = sorted([(-b + root) / (2 * a), (-b - root) / (2 * a)])
            first, second = (mpmath.atan(high - m) - mpmath.atan(low - m) for m in (0, s))
            return first / mpmath.pi, second / mpmath.pi

        low, high = mpmath.mpf(10) ** -50, 1 - 1 / largest
        for _ in range(300):
            middle = mpmath.sqrt(low * high)
            if masses(middle)[0] < kappa:
                low = middle
            else:
                high = middle
        return masses(high)[1]


def test_where_the_loss_turns_in_heavy_tails() -> None:
    """The turn is found to the last places, though the nodes reach 1e298."""
    rng = np.random.default_rng(20261122)
    for _ in range(2 if ALL else 1):
        shift = float(rng.uniform(0.2, 2.5))
        mechanism = pe.from_distributions(stats.cauchy(0, 1), stats.cauchy(shift, 1))
        for kappa in 10.0 ** rng.uniform(-11.0, -2.0, 3):
            truth = cauchy_gamma(shift, kappa)
            for adjacency in ("remove", "add_remove"):
                found = pe.gamma_bound(mechanism, kappa, adjacency=adjacency, bounds="estimated")
                assert found.lower <= truth <= found.upper, (shift, kappa, adjacency)
                assert found.upper - found.lower <= 1e-8 * found.value


def test_levels_where_the_loss_has_reached_its_limit() -> None:
    """What rounding makes of a loss next to its limit is in the bounds."""
    rng = np.random.default_rng(20261123)
    for shift in rng.uniform(0.05, 3.0, 3):
        mechanism = pe.from_distributions(stats.logistic(0, 1), stats.logistic(shift, 1))
        kappa = 10.0 ** rng.uniform(-200.0, -15.0, 20)
        lower, _, upper = pe.gamma_bound(mechanism, kappa, adjacency="remove", bounds="estimated")
        for k, low, high in zip(kappa, lower, upper, strict=True):
            with mpmath.workdps(40):
                odds = (1 - mpmath.mpf(k)) / mpmath.mpf(k)  # e^t for the test x > t
                truth = 1 / (1 + odds * mpmath.exp(-mpmath.mpf(shift)))
                assert low <= truth <= high, (shift, k)
            assert high - low <= 1e-11 * high
