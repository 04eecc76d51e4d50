"""Exact sums against fractions, published exact values and each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from comparing import compared, comparing, left_out
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import all_together, power_of, profile, reversed_, vectors
from thorough import ALL, stored

import pyengine as pe
from pyengine.engines.exact.laplace import LaplaceSum
from pyengine.laws.composition import composition_law

# N-fold Laplace composition, mu = sensitivity/scale: kappa = P(S > c), gamma = Q(S > c) and
# delta = H_{e^c}(Q||P), from a trinomial mixture of Irwin-Hall laws in ball arithmetic.
LAPLACE = [
    (
        "1", 1, "0.3", "0.261022888380508023947304068604",
        "0.647655955140643282822589650485", "0.295311910281286565645179300969",
    ),
    (
        "1", 10, "3.3", "0.00532690867521527493696617750183",
        "0.574800617677684589696889180655", "0.430374066203252780821165609078",
    ),
    (
        "1", 10, "9.95", "5.62077828930461838597232216534e-8",
        "0.00123148560224139948504139438540", "5.38076354795618233643654325555e-5",
    ),
    (
        "0.25", 20, "1.7", "0.0171720081944788762468031166600",
        "0.147509890676668127403490565174", "0.0535112212097823819163670003801",
    ),
    (
        "0.6", 8, "0.05", "0.197372805100106321178729064022",
        "0.761507114297170276692227955799", "0.554014789084770195209964650068",
    ),
]  # fmt: skip


def between(bounds: Any, truth: Any, rounding: float = 4e-15) -> bool:
    """Whether the truth lies between bounds, and the value beside it.

    The arguments of a question are doubles, the truth's are not: hence some rounding.
    """
    low, value, high = (mpmath.mpf(float(x)) for x in bounds)
    slack = mpmath.mpf(truth) * rounding
    return bool(low - slack <= truth <= high + slack and low <= value <= high)


@pytest.mark.parametrize(("mu", "steps", "c", "kappa", "gamma", "delta"), LAPLACE)
def test_laplace_composition(
    mu: str, steps: int, c: str, kappa: str, gamma: str, delta: str
) -> None:
    mechanism = pe.LaplaceMechanism(1 / Fraction(mu)).composed(steps)
    ask: Any = {"method": "exact", "bounds": True}
    assert between(pe.gamma_bound(mechanism, float(kappa), **ask), mpmath.mpf(gamma))
    assert abs(pe.gamma_bound(mechanism, float(kappa)) / float(gamma) - 1) < 1e-15
    assert abs(pe.delta(mechanism, float(c)) / float(delta) - 1) < 4e-14  # of c rounded
    assert between(pe.delta(mechanism, float(c), **ask), mpmath.mpf(delta), 1e-13)
    found = pe.epsilon(mechanism, float(delta), **ask)
    assert found.lower * (1 - 1e-13) <= float(c) <= found.upper * (1 + 1e-13)
    for adjacency in ("add", "remove"):  # one law in both orders
        assert pe.delta(mechanism, float(c), adjacency=adjacency) == pe.delta(mechanism, float(c))


@pytest.mark.parametrize("has_atoms", [True, False])
@pytest.mark.parametrize(("ratio", "steps"), [("1e-6", 9), ("0.37", 16), ("20", 12)])
def test_coefficients_err_by_few_roundings(ratio: str, steps: int, has_atoms: bool) -> None:
    """The recursion in fractions: convolutions with atoms at 0 and 1, and with a uniform law."""
    mu = Fraction(float(ratio))
    whole = 2 * has_atoms + mu
    atoms, curve = [Fraction(1)], []
    for k in range(steps):
        grown = [[mu * mass] * (k + 1) for mass in atoms]
        for j, row in enumerate(curve):
            for i in range(k + 1):
                raised = Fraction(i, k) * row[i - 1] + Fraction(k - i, k) * row[i % k]
                grown[j][i] += mu * sum(row[:i]) / k + has_atoms * raised
                grown[j + 1][i] += mu * sum(row[i:]) / k + has_atoms * raised
        curve = [[x / whole for x in row] for row in grown]
        moved = zip([*atoms, Fraction(0)], [Fraction(0), *atoms], strict=True)
        atoms = [has_atoms * (x + y) / whole for x, y in moved]
    law = LaplaceSum(mu, steps, has_atoms=has_atoms)
    for exact, found in zip(curve, law._arrays["curve"].tolist(), strict=True):
        for x, y in zip(exact, found, strict=True):
            assert abs(Fraction(y) - x) <= Fraction(11 * steps, 2**53) * x


@pytest.mark.parametrize(
    ("steps", "epsilon", "kappa"), [(100, 1.0, 1e-300), (19, 30.0, 1e-300), (12, 0.5, 1e-280)]
)
def test_bounded_range_below_nearly_all_doubles(steps: int, epsilon: float, kappa: float) -> None:
    """Terms below all doubles once left bounds of two engines that did not meet."""
    meets_the_lattice(pe.ExponentialMechanism(epsilon).composed(steps), kappa)


def meets_the_lattice(run: pe.Mechanism, kappa: float) -> None:
    found: Any = pe.gamma_bound(run, kappa, bounds=True)
    lattice: Any = pe.gamma_bound(run, kappa, bounds=True, method="lattice")
    assert lattice.lower <= found.upper
    assert found.lower <= lattice.upper


@pytest.mark.parametrize("kappa", [1e-300, 1e-290, 1e-270])
def test_many_laplace_steps_below_nearly_all_doubles(kappa: float) -> None:
    """The same beside few losses."""
    meets_the_lattice(pe.LaplaceMechanism(1.0).composed(390) + pe.RandomizedResponse(0.6), kappa)


def over_ranges(epsilon: Any, steps: int, ends: Iterable[Any], gain: Callable[[Any], Any]) -> Any:
    """An integral over the loss of equal steps of bounded range, by the law of Irwin and Hall."""

    def law(x: Any) -> Any:  # of the place x of the loss 2 ε x - N ε
        terms = ((-1) ** k * mpmath.binomial(steps, k) * (x - k) ** (steps - 1)
                 for k in range(int(mpmath.floor(x)) + 1))  # fmt: skip
        return mpmath.exp(-epsilon * x) * mpmath.fsum(terms) / mpmath.factorial(steps - 1)

    whole = (epsilon / -mpmath.expm1(-epsilon)) ** steps
    return whole * mpmath.quad(lambda x: law(x) * gain(2 * epsilon * x - steps * epsilon), ends)


def range_profile(epsilon: float, steps: int, at: float) -> Any:
    mu, end = mpmath.mpf(epsilon), mpmath.mpf(at)
    low = (end + steps * mu) / (2 * mu)
    ends = [low, *(k for k in range(steps + 1) if k > low)]
    return over_ranges(mu, steps, ends, lambda x: mpmath.exp(x) - mpmath.exp(end))


def beside_laplace(epsilon: float, steps: int, noise: float, at: float) -> Any:
    """The profile of such steps and a Laplace step: the mean of the latter's over their losses."""
    mu, ratio, end = mpmath.mpf(epsilon), 1 / mpmath.mpf(noise), mpmath.mpf(at)

    def profile(x: Any) -> Any:
        return -mpmath.expm1(min((x - ratio) / 2, 0)) if x >= -ratio else -mpmath.expm1(x)

    corners = [(y - end + steps * mu) / (2 * mu) for y in (-ratio, ratio)]
    ends = sorted({*range(steps + 1), *(x for x in corners if 0 < x < steps)})
    return over_ranges(mu, steps, ends, lambda x: profile(end + x))


def kept(profiles: Callable[..., Any], drawn: list[tuple[Any, ...]]) -> list[Any]:
    """Profiles of what a seed has drawn, which take a second; those of an ordinary run are kept."""

    def compute() -> list[str]:
        with mpmath.workdps(80):
            return [mpmath.nstr(profiles(*row), 40) for row in drawn]

    key = f"{profiles.__name__} of {drawn}"
    with mpmath.workdps(50):
        return [mpmath.mpf(x) for x in stored(key, compute)]


@pytest.mark.parametrize("seed", range(60 if ALL else 6))
def test_bounded_range_beside_a_laplace_step(seed: int) -> None:
    """They were on the lattice, with four to six digits."""
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(2):
        steps, noise = int(rng.integers(1, 7)), float(f"{10 ** rng.uniform(-0.3, 1):.4g}")
        epsilon = float(f"{10 ** rng.uniform(-2, 0.7):.4g}")
        at = float(rng.uniform(0.0, 0.7)) * (steps * epsilon + 1.0 / noise)
        drawn.append((epsilon, steps, noise, at))
    for (epsilon, steps, noise, at), truth in zip(drawn, kept(beside_laplace, drawn), strict=True):
        run = pe.ExponentialMechanism(epsilon).composed(steps) + pe.LaplaceMechanism(noise)
        bounds = pe.delta(run, at, bounds=True)
        assert bounds.lower <= truth <= bounds.upper
        # one step beside another is enclosed between finite sums
        assert bounds.upper - bounds.lower <= (1e-10 if steps > 1 else 1e-6) * bounds.upper


@pytest.mark.parametrize("seed", range(60 if ALL else 6))
def test_few_steps_of_bounded_range(seed: int) -> None:
    """They were on the lattice, with five or six digits."""
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(5):
        steps, epsilon = int(rng.integers(1, 13)), float(f"{10 ** rng.uniform(-6, 1.2):.4g}")
        drawn.append((epsilon, steps, float(rng.uniform() ** rng.choice([1, 3])) * steps * epsilon))
    for (epsilon, steps, at), truth in zip(drawn, kept(range_profile, drawn), strict=True):
        run = pe.ExponentialMechanism(epsilon).composed(steps)
        bounds = pe.delta(run, at, bounds=True)
        assert bounds.lower <= truth <= bounds.upper
        if at < 0.8 * steps * epsilon:
            assert bounds.upper - bounds.lower <= 1e-11 * bounds.upper


@pytest.mark.parametrize(
    "run",
    [
        pe.ExponentialMechanism(0.7847).composed(2),
        pe.ExponentialMechanism(0.2).composed(5),
        pe.ExponentialMechanism(0.5).composed(3) + pe.RandomizedResponse(0.7).composed(4),
    ],
    ids=["two", "five", "beside"],
)
def test_bounded_range_meets_the_lattice(run: pe.Mechanism) -> None:
    for ask, x in ((pe.gamma_bound, 1e-6), (pe.trade_off, 0.3), (pe.epsilon, 1e-4)):
        lattice: Any = ask(run, x, method="lattice", bounds=True)
        found: Any = ask(run, x, bounds=True)
        assert 0.0 < found.upper - found.lower <= 1e-11 * found.upper
        assert lattice.lower <= found.upper
        assert found.lower <= lattice.upper


def test_laplace_brackets_are_narrow() -> None:
    mechanism = pe.LaplaceMechanism(3.0).composed(100)
    for ask, x in ((pe.gamma_bound, 1e-12), (pe.delta, 20.0), (pe.trade_off, 0.3)):
        bounds = ask(mechanism, x, method="exact", bounds=True)
        assert 0 < bounds.upper - bounds.lower < 1e-10 * bounds.value


@pytest.mark.parametrize("noise", [2.0, 4.0, 0.7])
def test_laplace_below_the_last_atom(noise: float) -> None:
    """Where the largest loss alone decides, γ is κ e^(N μ)."""
    steps = 10
    mechanism = pe.LaplaceMechanism(noise).composed(steps)
    largest = math.exp(-steps / noise) / 2.0**steps
    for share in (0.001, 0.15, 0.999):
        found = pe.gamma_bound(mechanism, share * largest, bounds=True)
        assert found.value == pytest.approx(share / 2.0**steps, rel=1e-12)
        assert found.lower <= share / 2.0**steps * (1 + 1e-13)


@settings(max_examples=10 if ALL else 4, deadline=None)
@given(st.floats(0.05, 3.0), st.integers(1, 40), st.floats(1e-6, 1 - 1e-6), st.floats(0, 1))
def test_laplace_curves_are_dual(ratio: float, steps: int, alpha: float, share: float) -> None:
    """No tangent cuts the trade-off function, and the one at its own slope touches it."""
    mechanism = pe.LaplaceMechanism(1.0 / ratio).composed(steps)
    gamma = pe.gamma_bound(mechanism, alpha, bounds=True)
    grid = np.linspace(0.0, steps * ratio * max(share, 1e-3), 50)
    tangents = alpha * np.exp(grid) + pe.delta(mechanism, grid)
    assert (gamma.lower <= tangents * (1 + 1e-12)).all()
    back = 1.0 - np.exp(-grid) * (1.0 - alpha - pe.delta(mechanism, grid))
    assert (gamma.lower <= back * (1 + 1e-12)).all()
    beta = pe.trade_off(mechanism, alpha)
    assert pe.trade_off(mechanism, beta) == pytest.approx(alpha, rel=1e-9)  # symmetric


weights = st.lists(st.integers(0, 6), min_size=2, max_size=4)


@st.composite
def pairs(draw: Any) -> tuple[list[Fraction], list[Fraction]]:
    p = draw(weights.filter(any))
    q = draw(st.lists(st.integers(0, 6), min_size=len(p), max_size=len(p)).filter(any))
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(pairs(), min_size=1, max_size=2),
    st.integers(1, 3),
    st.fractions(0, 1, max_denominator=50),
    st.integers(1, 40),
)
def test_finite_pairs_against_fractions(
    steps: list[tuple[list[Fraction], list[Fraction]]], times: int, alpha: Fraction, tenths: int
) -> None:
    """Any pairs, zeros among them, composed with each other; every direction."""
    mechanism = pe.compose(*(pe.from_probabilities(p, q).composed(times) for p, q in steps))
    outcomes = all_together(*(vectors(*pair, Fraction) for pair in steps for _ in range(times)))
    ask: Any = {"method": "exact", "bounds": True}
    epsilon = math.log1p(tenths / 10.0)
    t = Fraction(math.exp(epsilon))
    for adjacency, these in (("add", outcomes), ("remove", reversed_(outcomes))):
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, **ask)
        assert found.lower - 1e-15 <= profile(these, t) <= found.upper + 1e-15
        assert found.upper - found.lower <= 1e-12
        x = float(alpha)
        gamma = pe.gamma_bound(mechanism, x, adjacency=adjacency, **ask)
        assert gamma.lower <= power_of(these, Fraction(x)) <= gamma.upper
        assert gamma.upper - gamma.lower <= 1e-12
        beta = pe.trade_off(mechanism, x, adjacency=adjacency, **ask)
        assert beta.lower <= 1 - power_of(these, Fraction(x)) <= beta.upper


@comparing(0.1)  # of many pairs ε is 0 or infinite
@settings(max_examples=25, deadline=None)
@given(pairs(), st.integers(1, 3), st.floats(1e-4, 1.0))
def test_epsilon_inverts_delta(
    pair: tuple[list[Fraction], list[Fraction]], steps: int, delta: float
) -> None:
    mechanism = pe.from_probabilities(*pair).composed(steps)
    for adjacency in ("add", "remove", "add_remove"):
        found = pe.epsilon(mechanism, delta, adjacency=adjacency, bounds=True)
        assert found.lower <= found.value <= found.upper
        (compared if 0 < found.lower <= found.upper < math.inf else left_out)()
        if found.upper < math.inf:
            assert pe.delta(mechanism, found.upper, adjacency=adjacency) <= delta * (1 + 1e-12)
        if found.lower > 0:
            below = pe.delta(mechanism, found.lower * (1 - 1e-9), adjacency=adjacency)
            assert below >= delta * (1 - 1e-9)


@settings(max_examples=5, deadline=None)
@given(pairs(), st.integers(1, 3))
def test_hull_of_both_orders(pair: tuple[list[Fraction], list[Fraction]], steps: int) -> None:
    """Convex, below both functions, symmetric, and touched by a line of each slope."""
    mechanism = pe.from_probabilities(*pair).composed(steps)
    alpha = np.linspace(0.0, 1.0, 17)
    hull = pe.trade_off(mechanism, alpha, bounds=True)
    both = [pe.trade_off(mechanism, alpha, adjacency=a) for a in ("add", "remove")]
    assert (hull.value <= np.minimum(*both) + 1e-12).all()
    assert (np.diff(hull.value, 2) >= -1e-12).all()
    assert (hull.lower <= hull.value).all()
    assert (hull.value <= hull.upper).all()
    assert (hull.upper - hull.lower <= 1e-9).all()
    inside = (hull.value > 1e-9) & (alpha > 0)
    mirrored = pe.trade_off(mechanism, hull.value[inside])
    # where the hull falls to 0 before 1, its mirror image starts below 1 at 0
    assert np.allclose(mirrored, alpha[inside], atol=1e-9)


@pytest.mark.parametrize("categories", [2, 5])
def test_randomized_response_is_a_lattice(categories: int) -> None:
    """Losses -ε, 0 and ε: 2 N + 1 values after N steps; against binomials for two categories."""
    steps, truth = 500, Fraction(3, 5)
    mechanism = pe.RandomizedResponse(truth, categories).composed(steps)
    ((law, _),) = composition_law(mechanism, "add")
    assert law.spacing() is not None
    found = pe.delta(mechanism, 2.0, method="exact", bounds=True)
    assert found.upper - found.lower < 1e-9 * found.value
    if categories == 2:
        with mpmath.workdps(40):
            p, q, e = mpmath.mpf(3) / 5, mpmath.mpf(2) / 5, mpmath.exp(2)
            truth_value = mpmath.fsum(
                mpmath.binomial(steps, k)
                * max(p**k * q ** (steps - k) - e * q**k * p ** (steps - k), 0)
                for k in range(steps + 1)
            )
        assert between(found, truth_value)


def test_generic_mechanism_composes_as_the_theorem_of_kairouz_oh_and_viswanath() -> None:
    """Example: 1 - (1 - δ)^N (1 - δ_N), with binomial sums (Theorem 3.3 there)."""
    epsilon, delta, steps, i = 0.3, 1e-4, 6, 2
    mechanism = pe.GenericMechanism(epsilon, delta).composed(steps)
    at = (steps - 2 * i) * epsilon
    inner = (
        sum(
            math.comb(steps, k)
            * (math.exp((steps - k) * epsilon) - math.exp((steps - 2 * i + k) * epsilon))
            for k in range(i)
        )
        / (1 + math.exp(epsilon)) ** steps
    )
    expected = 1 - (1 - delta) ** steps * (1 - inner)
    assert pe.delta(mechanism, at) == pytest.approx(expected, rel=1e-13)
    lost = -math.expm1(steps * math.log1p(-delta))
    assert 0 < pe.epsilon(mechanism, lost * (1 + 1e-6)) <= steps * epsilon
    assert pe.epsilon(mechanism, lost * (1 - 1e-6)) == math.inf
    assert pe.epsilon(mechanism, 1e-4) == math.inf


def test_refusals_name_what_would_help() -> None:
    mixed = pe.compose(pe.LaplaceMechanism(1.0), pe.LaplaceMechanism(2.0).composed(2))
    with pytest.raises(pe.AccuracyError, match="equal Laplace steps"):
        pe.delta(mixed, 1.0, method="exact")
    with pytest.raises(pe.AccuracyError, match="products"):
        pe.delta(
            pe.DiscreteGaussianMechanism(1.0, 20).poisson_sampled(0.1).composed(50),
            1.0,
            method="exact",
        )
    with pytest.raises(pe.AccuracyError, match="infinite"):
        pe.delta(pe.LaplaceMechanism(1.0) + pe.GenericMechanism(1.0, 0.1), 1.0, method="exact")


def test_nothing_released() -> None:
    mechanism = pe.RandomizedResponse(0.75).composed(0)
    assert pe.delta(mechanism, 0.0) == 0.0
    assert pe.trade_off(mechanism, 0.25) == 0.75
    assert pe.epsilon(pe.RandomizedResponse(0.5), 0.0) == 0.0


def test_everything_released() -> None:
    for mechanism in (pe.RandomizedResponse(1.0), pe.GenericMechanism(1.0, 1.0)):
        assert pe.delta(mechanism, 5.0) == 1.0
        assert pe.epsilon(mechanism, 0.5) == math.inf
        assert pe.trade_off(mechanism, 0.0) == 0.0
        assert pe.gamma_bound(mechanism, 0.1) == 1.0


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.LaplaceMechanism("1.7").composed(12),
        pe.RandomizedResponse("0.62", 3).poisson_sampled("0.1").composed(8),
        pe.DiscreteLaplaceMechanism("1.3", 2).poisson_sampled("1/3").composed(3),
        pe.DiscreteGaussianMechanism("0.9", 2),
        pe.GenericMechanism("0.3", "1e-5").composed(4),
        pe.from_probabilities(["1/2", "1/3", "1/6"], ["1/5", "2/5", "2/5"]).composed(3),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_against_arbitrary_precision(mechanism: Any, adjacency: str) -> None:
    for question, x in (("delta", "0.25"), ("gamma_bound", "1e-7"), ("trade_off", "0.375")):
        truth = getattr(pe.reference, question)(mechanism, x, adjacency=adjacency, digits=20)
        found = getattr(pe, question)(
            mechanism, float(x), adjacency=adjacency, method="exact", bounds=True
        )
        assert between(found, truth, 1e-14)
        assert found.upper - found.lower <= 1e-10 * found.value + 1e-300


def test_level_inside_the_first_atom() -> None:
    """β keeps its digits where nearly all of an atom is above the level."""
    truth, alpha = 0.7580464386350747, 0.9999998207472784
    bounds = pe.trade_off(
        pe.RandomizedResponse(truth), alpha, adjacency="remove", method="exact", bounds=True
    )
    exact = (1 - Fraction(alpha)) * (1 - Fraction(truth)) / Fraction(truth)
    assert bounds.lower <= exact <= bounds.upper


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize(
    ("mechanism", "delta", "truth"),
    [
        (pe.GenericMechanism(1.0, 1e-5), 1e-5, 1.0),
        (pe.GenericMechanism(0.009165023213729332, 4.8e-09), 4.8e-09, 0.009165023213729332),
        (pe.GenericMechanism(0.5, "1/4").composed(3), 0.578125, 1.5),
        (pe.from_probabilities(["1/4", "3/4", "0"], ["0", "3/4", "1/4"]), 0.25, 0.0),
        (pe.GenericMechanism(3.0, 1.0).poisson_sampled(0.4), 0.4, 0.0),
    ],
    ids=str,
)
def test_epsilon_where_delta_is_the_mass_alone(
    mechanism: pe.Mechanism, delta: float, truth: float, adjacency: str
) -> None:
    """ε jumps to infinity there, and δ is the double itself, not one within rounding of it."""
    found = pe.epsilon(mechanism, delta, adjacency=adjacency, bounds=True)
    assert found.lower <= truth <= found.upper < truth + 1e-13
    assert found.value == pytest.approx(truth, rel=1e-13, abs=1e-300)
    below = math.nextafter(delta, 0.0)
    if mechanism != pe.GenericMechanism(3.0, 1.0).poisson_sampled(0.4) or adjacency != "add":
        found = pe.epsilon(mechanism, below, adjacency=adjacency, bounds=True)
        assert found == (math.inf, math.inf, math.inf)


@pytest.mark.parametrize(
    "step",
    [
        pe.from_probabilities(["1"], ["1"]),
        pe.from_probabilities(["1/3", "2/3"], ["1/3", "2/3"]),
        pe.from_probabilities(["1"], ["1"]).poisson_sampled(2e-05),
        pe.RandomizedResponse("1/2"),
        pe.GenericMechanism(0, 0),
    ],
    ids=str,
)
def test_steps_that_tell_nothing_have_no_delta(step: pe.Mechanism) -> None:
    for adjacency in ("add", "remove", "add_remove"):
        for steps in (1, 3):
            found = pe.delta(step.composed(steps), 0.0, adjacency=adjacency, bounds=True)
            assert found.lower == found.value == 0.0
            assert found.upper < 1e-300


@pytest.mark.parametrize("epsilon", [50.0, math.inf])
@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_a_mass_that_is_no_double_lies_between_its_bounds(steps: int, epsilon: float) -> None:
    """Beyond the largest finite loss δ is the mass that tells all: two doubles, rounded to one."""
    random = np.random.default_rng(20261122)
    for _ in range(40):
        delta = float(10.0 ** random.uniform(-5.0, -0.01))
        mechanism = pe.GenericMechanism(0.1, delta).composed(steps)
        found = pe.delta(mechanism, epsilon, adjacency="remove", bounds=True)
        truth = 1 - (1 - Fraction(delta)) ** steps
        assert Fraction(found.lower) <= truth <= Fraction(found.upper)
        assert found.upper - found.lower <= 4.0 * 2.0**-52 * found.value


def test_one_laplace_step_is_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """No threshold is looked for: each float took some 50 evaluations of tails."""
    monkeypatch.setattr(LaplaceSum, "tails", None)
    rng = np.random.default_rng(5)
    with mpmath.workdps(350):
        for _ in range(300):
            noise = float(np.exp(rng.uniform(np.log(0.026), np.log(1e4))))
            most = mpmath.exp(1 / mpmath.mpf(noise))
            corner = [float(1 / (2 * most)), 0.5][rng.integers(2)]
            beside = corner * (1.0 + 1e-15 * rng.normal())
            level = min(float(rng.choice([10.0 ** rng.uniform(-300, 0), corner, beside])), 1.0)
            alpha = mpmath.mpf(level)
            if alpha <= 1 / (2 * most):
                gamma = most * alpha
            else:
                gamma = 1 - (1 / (4 * most * alpha) if level <= 0.5 else (1 - alpha) / most)
            for adjacency in ("add", "add_remove"):
                mechanism = pe.LaplaceMechanism(noise)
                asked: Any = {"adjacency": adjacency, "bounds": True}
                found = pe.gamma_bound(mechanism, level, **asked)
                other = pe.trade_off(mechanism, level, **asked)
                assert found.lower <= gamma <= found.upper
                assert other.lower <= 1 - gamma <= other.upper
                assert found.upper - found.lower < 1e-14 * found.upper
                assert other.upper - other.lower < 1e-14 * other.upper
