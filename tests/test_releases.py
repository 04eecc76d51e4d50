"""Several releases of one sample, and revealed mixtures, against sums and integrals."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import thorough
from integrals import NODES, check_both_orders, of_laplace
from outcomes import Outcomes, all_together, generic, profile, response, sampled, vectors
from scipy import stats
from scipy.special import ndtr

import pyengine as pe
from pyengine.laws import releases
from pyengine.laws.composition import composition_law
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.mechanisms.releases import merged_noise

G = pe.GaussianMechanism
SEEDS = thorough.some(range(400), 16)


def sampled_profile(outcomes: Outcomes, mu: float, q: float, epsilon: float, *, add: bool) -> float:
    """H of finitely many outcomes beside N(0, 1) or N(μ, 1) on a sample: normal masses.

    For each outcome of masses (a, b): A has the density a φ(z), B (1 - q) a φ(z) + q b φ(z - μ).
    """
    total = 0.0
    for a, b in outcomes:
        e = math.exp(-epsilon if add else epsilon)
        level = e - (1.0 - q)  # B exceeds e A where q b e^{μz - μ²/2} > a level
        if b == 0.0 or a == 0.0:
            excess = max(q * b, 0.0) if a == 0.0 else max(-level * a, 0.0)
            both = (a, (1.0 - q) * a + q * b)
        else:
            z = -math.inf
            if level > 0.0:
                z = math.log(a * level / (q * b)) / mu + 0.5 * mu
            excess = q * b * ndtr(mu - z) - level * a * ndtr(-z)
            both = (a, (1.0 - q) * a + q * b)
        if add:  # H_{e^ε}(A‖B) = A - e^ε B + e^ε (B - e^-ε A)_+
            excess = both[0] - math.exp(epsilon) * both[1] + math.exp(epsilon) * excess
        total += excess
    return total


def two_noises(mus: tuple[float, float], q: float, epsilon: float) -> float:
    """Remove order of two Gaussian releases of one sample: closed in one, a trapezoid in both.

    The trapezoidal rule converges geometrically for what is analytic in the first release.
    """
    first, second = mus
    x = np.arange(-42.0, 42.0 + first, 1.0 / 64.0)
    weight = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) / 64.0
    ratio = np.exp(first * x - 0.5 * first * first)
    level = math.exp(epsilon) - (1.0 - q)
    z = np.log(level / (q * ratio)) / second + 0.5 * second
    return float(np.sum(weight * (q * ratio * ndtr(second - z) - level * ndtr(-z))))


def holds(bounds: Any, truth: float, rounding: float = 1e-11) -> None:
    assert bounds.lower - rounding * abs(truth) - 1e-15 <= truth
    assert truth <= bounds.upper + rounding * abs(truth) + 1e-15


@pytest.mark.parametrize("seed", SEEDS)
def test_two_noises_on_one_sample(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (float(x) for x in rng.uniform(0.5, 4.0, 2))
    q, epsilon = float(10.0 ** rng.uniform(-3, -0.02)), float(rng.uniform(0.05, 2.0))
    step = (G(one) + G(other)).poisson_sampled(q)
    found = pe.delta(step, epsilon, adjacency="remove", bounds=True)
    holds(found, two_noises((1.0 / one, 1.0 / other), q, epsilon))
    assert found.upper - found.lower < 1e-10 * found.upper + 1e-15


@pytest.mark.parametrize("seed", SEEDS)
def test_a_finite_release_beside_noise_on_one_sample(seed: int) -> None:
    rng = np.random.default_rng(seed + 1000)
    noise, truth = float(rng.uniform(0.5, 4.0)), float(rng.uniform(0.5, 0.95))
    q, epsilon = float(10.0 ** rng.uniform(-3, -0.02)), float(rng.uniform(0.02, 1.5))
    number = int(rng.integers(1, 4))
    run = pe.compose(pe.RandomizedResponse(truth).composed(number), G(noise))
    step = run.poisson_sampled(q)
    outcomes = all_together(*[response(truth)] * number)
    for adjacency in ("add", "remove"):
        found = pe.delta(step, epsilon, adjacency=adjacency, bounds=True)
        exact = sampled_profile(outcomes, 1.0 / noise, q, epsilon, add=adjacency == "add")
        holds(found, max(exact, 0.0), 1e-10)
        assert found.upper - found.lower < 1e-9 * found.upper + 1e-13


@pytest.mark.parametrize("seed", SEEDS)
def test_finite_releases_on_one_sample(seed: int) -> None:
    """Brute force over all outcomes, of one sample and of two."""
    rng = np.random.default_rng(seed + 2000)
    p, r = rng.dirichlet(np.ones(3), 2)
    truth, q = float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.01, 0.9))
    size, epsilon = int(rng.integers(1, 20)), float(rng.uniform(0.0, 1.0))
    pair = pe.from_probabilities(p, r)
    run = pair + pe.RandomizedResponse(truth)
    outcomes = all_together(vectors(pair.p, pair.q, float), response(truth))
    for step, rate in (
        (run.poisson_sampled(q), q),
        (run.sampled_without_replacement(batch_size=size, dataset_size=20), size / 20),
    ):
        one = sampled(outcomes, rate)
        for times in (1, 2):
            rows = all_together(*[one] * times)
            for adjacency in ("add", "remove"):
                exact = profile(rows, math.exp(epsilon), adjacency)
                found = pe.delta(step.composed(times), epsilon, adjacency=adjacency, bounds=True)
                holds(found, exact)


def beside_laplace(noise: float, scale: float, q: float, epsilon: float) -> float:
    """Remove order of Gaussian and Laplace noise: two atoms, and Gauss's rule between them."""
    outcomes = [(0.5, 0.5 * math.exp(-1.0 / scale)), (0.5 * math.exp(-1.0 / scale), 0.5)]
    place, weight = np.polynomial.legendre.leggauss(200)
    for x, w in zip(0.5 * (place + 1.0), 0.25 * weight / scale, strict=True):
        outcomes.append((w * math.exp(-x / scale), w * math.exp((x - 1.0) / scale)))
    return sampled_profile(outcomes, 1.0 / noise, q, epsilon, add=False)


@pytest.mark.parametrize("seed", thorough.some(range(400), 40))
def test_laplace_noise_beside_gaussian_on_one_sample(seed: int) -> None:
    """Between a law below and one above, which are next to each other."""
    rng = np.random.default_rng(seed + 3000)
    noise, scale = (float(x) for x in rng.uniform(0.6, 5.0, 2))
    q = float(10.0 ** rng.uniform(-2.5, -0.02))
    epsilon = float(rng.uniform(0.05, 1.5)) * min(1.0, 6.0 * q)
    step = (G(noise) + pe.LaplaceMechanism(scale)).poisson_sampled(q)
    assert step.words.known == ""
    truth = beside_laplace(noise, scale, q, epsilon)
    found = pe.delta(step, epsilon, adjacency="remove", bounds=True)
    holds(found, truth)
    assert found.upper <= found.lower * (1.0 + 1e-3)


@pytest.mark.parametrize("seed", thorough.some(range(400), 80))
def test_many_releases_on_one_sample(seed: int) -> None:
    """δ of the sample is q δ(log(1 + (e^ε - 1)/q)) of all records, which other engines answer."""
    rng = np.random.default_rng(seed + 4000)
    q, epsilon = float(rng.uniform(0.02, 0.9)), float(rng.uniform(0.01, 1.0))
    number = int(rng.integers(2, 6))
    run = pe.LaplaceMechanism(float(rng.uniform(2.0, 8.0))).composed(number)
    if seed % 2:
        run += pe.ExponentialMechanism(float(rng.uniform(0.1, 0.5)))
    if seed % 3:
        run += G(float(rng.uniform(1.0, 5.0)))
    inner = math.log1p(math.expm1(epsilon) / q)
    truth = q * float(pe.delta(run, inner, adjacency="remove"))
    found = pe.delta(run.poisson_sampled(q), epsilon, adjacency="remove", bounds=True)
    holds(found, truth, 1e-6)
    assert found.upper <= found.lower * (1.0 + 5e-2) + 1e-14


@thorough.sampled(2)
@pytest.mark.parametrize("seed", thorough.some(range(200), 71))
def test_two_laplace_releases_of_one_sample_by_integrals(seed: int) -> None:
    """All questions, by 25 digits of E (R₁R₂ - c)+: closed in one, an integral over the other."""
    rng = np.random.default_rng(seed + 5000)
    mus = [float(x) for x in np.exp(rng.uniform(-2.0, 0.7, 2))]
    q, part = float(10.0 ** rng.uniform(-2.0, -0.02)), float(rng.uniform(0.05, 0.9))
    run = pe.LaplaceMechanism(1 / Fraction(mus[0])) + pe.LaplaceMechanism(1 / Fraction(mus[1]))
    step = run.poisson_sampled(q)
    with mp.workdps(25):
        first, second = (of_laplace(mp.mpf(mu)) for mu in mus)

        def above(level: Any) -> tuple[Any, Any]:
            """E (1 - q + q R₁R₂ - level)+ and the mass above the level."""
            c = (level - 1 + mp.mpf(q)) / mp.mpf(q)
            value = tail = mp.mpf(0)
            for ratio, weight in first.atoms:
                more, mass = second.above(c / ratio)
                value, tail = value + weight * ratio * more, tail + weight * mass
            (ends, density), *_ = first.pieces
            corners = [mp.log(c) - mp.log(x) for x in second.corners] if c > 0 else []
            knots = sorted([*ends, *(x for x in corners if ends[0] < x < ends[1])])
            for low, high in itertools.pairwise(knots):
                for node, share in NODES:
                    x = (low + high) / 2 + (high - low) / 2 * node
                    weight = (high - low) / 2 * share * density(x)
                    more, mass = second.above(c / mp.exp(x))
                    value, tail = value + weight * mp.exp(x) * more, tail + weight * mass
            return mp.mpf(q) * value, tail

        most = math.log1p(q * math.expm1(sum(mus)))
        check_both_orders(step, part * most, above, 1e-3, slopes=1 + seed % 2)


def test_one_sample_leaks_more_than_two() -> None:
    apart = pe.dp_sgd(2.0, 0.01, 30) + pe.LaplaceMechanism(4.0).poisson_sampled(0.01).composed(30)
    step = (G(2.0) + pe.LaplaceMechanism(4.0)).poisson_sampled(0.01)
    found = pe.epsilon(step.composed(30), 1e-5, bounds=True)
    assert pe.epsilon(apart, 1e-5) * 1.01 < found.lower


def test_noise_of_several_releases_is_exact_where_it_is_a_fraction() -> None:
    assert merged_noise([(2.0, 4)]) == 1.0
    assert isinstance(merged_noise([(2.0, 4)]), float)
    assert merged_noise([(Fraction(1, 3), 1), (Fraction(1, 4), 1)]) == Fraction(1, 5)
    for rows in ([(1.0, 1), (2.0, 1)], [(Fraction(1, 3), 7), (0.1, 10**6)], [(1e-150, 2)]):
        square = 1 / sum(n / Fraction(x) ** 2 for x, n in rows)
        noise = Fraction(merged_noise(rows))
        # the same side of each double near it, and of the middles between these
        near = float(noise)
        for double in (near, math.nextafter(near, 0.0), math.nextafter(near, math.inf)):
            assert (Fraction(double) < noise) == (Fraction(double) ** 2 < square)
        assert abs(noise**2 / square - 1) < Fraction(1, 2**4000)


def test_releases_of_one_noise_are_one_release() -> None:
    four = G(2.0).composed(4).poisson_sampled(0.01).composed(100)
    assert pe.epsilon(four, 1e-5) == pe.epsilon(pe.dp_sgd(1.0, 0.01, 100), 1e-5)
    whole = (G(1.0) + G(2.0)).poisson_sampled(1)
    assert whole == G(1.0) + G(2.0)
    assert pe.compose().poisson_sampled(0.5) == pe.compose()
    assert G(1.0).composed(1).poisson_sampled(0.5) == G(1.0).poisson_sampled(0.5)


def test_samples_of_their_own_leak_less_than_one() -> None:
    """So that two samples are no way to account for one: gradients and a count of the clipped."""
    noise = (1.0 - 1.0 / 400.0) ** -0.5  # with a second noise of 20 as much as noise 1
    one = (G(noise) + G(20.0)).poisson_sampled(0.01).composed(1000)
    two = pe.dp_sgd(noise, 0.01, 1000) + pe.dp_sgd(20.0, 0.01, 1000)
    below, above = pe.epsilon(two, 1e-5, bounds=True), pe.epsilon(one, 1e-5, bounds=True)
    assert below.upper < above.lower
    assert f"{below.upper:.4f} {above.upper:.4f}" == "1.8245 1.8282"


def test_allocation_and_substitution_of_several_noises() -> None:
    run, noise = G(1.0) + G(2.0), 2.0 / math.sqrt(5.0)
    epoch = run.randomly_allocated(10)
    assert pe.delta(epoch, 0.3) == pytest.approx(
        pe.delta(G(noise).randomly_allocated(10), 0.3), rel=1e-12
    )
    twice = run.randomly_allocated(10, selected=2)
    assert pe.epsilon(twice, 1e-5) == pytest.approx(
        pe.epsilon(G(noise).randomly_allocated(10, selected=2), 1e-5), rel=1e-9
    )
    for make in (
        lambda m: m.poisson_sampled(0.1),
        lambda m: m.sampled_without_replacement(batch_size=3, dataset_size=30),
    ):
        found = pe.delta(make(run), 0.3, adjacency="substitute", bounds=True)
        holds(found, pe.delta(make(G(noise)), 0.3, adjacency="substitute"), 1e-9)
    assert run.randomly_allocated(1) == run


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: pe.dp_sgd(1.0, 0.1, 3).poisson_sampled(0.1), "must not draw samples of their own"),
        (lambda: (G(1) + G(2).randomly_allocated(3)).poisson_sampled(0.1), "already samples"),
        (
            lambda: (G(1) + pe.GaussianMixtureMechanism(1, [0, 1], [0.5, 0.5])).poisson_sampled(
                0.1
            ),
            "must be sampled alone",
        ),
        (lambda: pe.dp_sgd(1, 0.1, 2).randomly_allocated(4), "must not draw samples of their own"),
        (lambda: pe.GaussianReleases([]), "at least one noise multiplier"),
        (lambda: pe.GaussianReleases([1, 2], [1]), "one entry for each"),
        (lambda: pe.GaussianReleases([1, -2]), "noise_multipliers must be positive"),
        (lambda: pe.revealed_mixture([(0.5, G(1))]), "weights must sum to 1"),
        (lambda: pe.revealed_mixture([("1/2", G(1)), ("1/2", 3)]), "must hold Mechanisms, got 3"),
        (lambda: pe.revealed_mixture([G(1)]), "pairs of a probability and a Mechanism"),
        (lambda: pe.revealed_mixture([]), "at least one weight"),
        (
            lambda: pe.revealed_mixture([(1, pe.dp_sgd(1, 0.1, 1))]).poisson_sampled(0.1),
            "single step",
        ),
    ],
)
def test_what_is_wrong_is_said(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask()


def test_what_has_no_law_is_refused() -> None:
    rough = pe.from_distributions(stats.norm(0, 1), stats.norm(0.5, 1)) + pe.LaplaceMechanism(4.0)
    with pytest.raises(pe.AccuracyError, match="need proven masses"):
        pe.delta(rough.poisson_sampled(0.1), 0.1)


def closed_profile(thing: dict[str, Any], epsilon: float, *, add: bool) -> float:
    """Profile of one mechanism of `menu`, by its closed form or a sum over its outcomes."""
    if "mu" in thing:
        rows = thing.get("outcomes", [(1.0, 1.0)])
        return sampled_profile(rows, thing["mu"], thing.get("rate", 1.0), epsilon, add=add)
    if "scale" in thing:
        return max(-math.expm1(0.5 * (epsilon - 1.0 / thing["scale"])), 0.0)
    return float(profile(thing["outcomes"], math.exp(epsilon), "add" if add else "remove"))


def menu(rng: np.random.Generator) -> list[tuple[pe.Mechanism, dict[str, Any]]]:
    """Mechanisms, and what their profiles follow from."""
    noises, (truth, rate) = rng.uniform(0.5, 4.0, 4).tolist(), rng.uniform(0.5, 0.9, 2).tolist()
    number, p, delta = int(rng.integers(1, 4)), float(rng.uniform(0.01, 0.5)), 0.01 * rate
    epsilon = float(rng.uniform(0.0, 1.0))
    both = math.hypot(1.0 / noises[1], 1.0 / noises[2])
    coins = pe.RandomizedResponse(truth).composed(number)
    return [
        (G(noises[0]), {"mu": 1.0 / noises[0]}),
        (G(noises[1]) + G(noises[2]), {"mu": both}),
        (pe.dp_sgd(noises[0], p, 1), {"mu": 1.0 / noises[0], "rate": p}),
        (coins, {"outcomes": all_together(*[response(truth)] * number)}),
        (pe.GenericMechanism(epsilon, delta), {"outcomes": generic(epsilon, delta, math.exp)}),
        (pe.LaplaceMechanism(noises[3]), {"scale": noises[3]}),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_revealed_mixtures(seed: int) -> None:
    """The profile is the mean of the profiles; of two runs, the mean over all pairs."""
    rng = np.random.default_rng(seed + 3000)
    drawn = menu(rng)
    chosen = rng.permutation(len(drawn))[: int(rng.integers(2, 5))]
    weights = [
        Fraction(int(w), 100) for w in rng.multinomial(100, rng.dirichlet(np.ones(len(chosen))))
    ]
    rows = [(w, *drawn[i]) for w, i in zip(weights, chosen, strict=True)]
    mixture = pe.revealed_mixture([row[:2] for row in rows])
    epsilon = float(rng.uniform(0.0, 2.0))
    for adjacency in ("add", "remove"):
        truth = sum(
            float(w) * closed_profile(thing, epsilon, add=adjacency == "add")
            for w, _, thing in rows
        )
        found = pe.delta(mixture, epsilon, adjacency=adjacency, bounds=True)
        holds(found, truth, 1e-10)
        twice = pe.delta(mixture.composed(2), epsilon, adjacency=adjacency, bounds=True)
        low = high = 0.0
        for (v, one, _), (w, other, _) in itertools.product(rows, rows):
            if v and w:
                part = pe.delta(pe.compose(one, other), epsilon, adjacency=adjacency, bounds=True)
                low, high = low + float(v * w) * part.lower, high + float(v * w) * part.upper
        assert twice.lower <= high * (1.0 + 1e-12)
        assert low <= twice.upper * (1.0 + 1e-12) + 1e-15


def test_what_a_finite_mixture_tells_surely_is_exact() -> None:
    """Weights of more digits than are kept of numbers that are not exact."""
    from pyengine.laws.kinds import added_law

    tells, coin = pe.from_probabilities([1, 0], [0, 1]), pe.RandomizedResponse("3/4")
    generic = pe.GenericMechanism(1, "1e-30")
    for small in (Fraction(1, 10**70), Fraction(1, 3**200), Fraction(2, 7)):
        law = added_law(pe.revealed_mixture([(1 - small, tells), (small, coin)]))
        assert isinstance(law, FiniteLaw)
        assert law.alone == (1 - small, 1 - small)
        law = added_law(pe.revealed_mixture([(1 - small, generic), (small, tells)]))
        assert isinstance(law, FiniteLaw)
        assert law.alone == ((1 - small) * Fraction(1, 10**30) + small,) * 2


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_of_finite_mixtures_by_brute_force(seed: int) -> None:
    """Up to three runs of coins and vectors, some beside noise: all outcomes of all draws."""
    rng = np.random.default_rng(seed + 5000)
    p, r = rng.dirichlet(np.ones(3), 2)
    pair, truth = pe.from_probabilities(p, r), float(rng.uniform(0.5, 0.9))
    share = Fraction(int(rng.integers(1, 100)), 100)
    mixture = pe.revealed_mixture([(share, pair), (1 - share, pe.RandomizedResponse(truth))])
    runs, epsilon = int(rng.integers(1, 4)), float(rng.uniform(0.0, 1.5))
    draw = [(float(share) * a, float(share) * b) for a, b in zip(pair.p, pair.q, strict=True)]
    draw += [(float(1 - share) * a, float(1 - share) * b) for a, b in response(truth)]
    outcomes = all_together(*[draw] * runs)
    noise = float(rng.uniform(0.5, 4.0))
    for adjacency in ("add", "remove"):
        add = adjacency == "add"
        exact = closed_profile({"outcomes": outcomes}, epsilon, add=add)
        holds(pe.delta(mixture.composed(runs), epsilon, adjacency=adjacency, bounds=True), exact)
        beside = mixture.composed(runs) + G(noise)
        exact = closed_profile({"outcomes": outcomes, "mu": 1.0 / noise}, epsilon, add=add)
        found = pe.delta(beside, epsilon, adjacency=adjacency, bounds=True)
        holds(found, exact, 1e-10)


def test_random_outcomes_of_a_mixture_by_brute_force() -> None:
    """All questions of a mixture of finite pairs: that of the pair on disjoint outcomes."""
    p, r = pe.from_probabilities(["1/2", "1/2"], ["1/4", "3/4"]), pe.RandomizedResponse("2/3")
    mixture = pe.revealed_mixture([("1/3", p), ("2/3", r)])
    joint = pe.from_probabilities(["1/6", "1/6", "4/9", "2/9"], ["1/12", "3/12", "2/9", "4/9"])
    alpha = np.linspace(0.0, 1.0, 21)
    for times in (1, 3):
        one, other = mixture.composed(times), joint.composed(times)
        np.testing.assert_allclose(pe.trade_off(one, alpha), pe.trade_off(other, alpha), atol=1e-14)
        assert pe.epsilon(one, 1e-3) == pytest.approx(pe.epsilon(other, 1e-3), rel=1e-13)
    sampled = mixture.poisson_sampled("1/5")
    assert pe.delta(sampled, 0.05) == pytest.approx(
        pe.delta(joint.poisson_sampled("1/5"), 0.05), rel=1e-13
    )
    batch = mixture.sampled_without_replacement(batch_size=1, dataset_size=5)
    assert pe.delta(batch, 0.05) == pytest.approx(pe.delta(sampled, 0.05), rel=1e-13)


def test_json_and_words() -> None:
    both = pe.RandomizedResponse("3/4").composed(3) + G("3/2")
    mixture = pe.revealed_mixture([("1/3", both), ("2/3", pe.dp_sgd(1, "1/10", 1))])
    for made in (
        (G(1.0) + G("1/3")).poisson_sampled(0.1),
        G(1.0).composed(3).sampled_without_replacement(batch_size=1, dataset_size=9).composed(4),
        (G(1.0) + G(2.0)).randomly_allocated(7),
        both.poisson_sampled("1/7").composed(5),
        mixture,
        mixture.composed(3),
    ):
        text = pe.to_json(made)
        json.loads(text)
        assert pe.from_json(text) == made
    assert repr((G(1.0) + G(2.0)).poisson_sampled(0.01).composed(1000)) == (
        "DP-SGD with 2 Gaussian releases of each batch, noise multipliers (1, 2), 1,000 steps at "
        "rate 0.01"
    )
    assert len(repr(mixture)) <= 160
    with pytest.raises(ValueError, match="parts must be a sequence"):
        pe.from_json(
            '{"schema": "pyengine/1", "mechanism": [{"mechanism": "Releases", "parts": 3}]}'
        )


def test_moved_cells_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ((curve, _),) = composition_law(pe.ZeroConcentrated("1/20"), "add")
    assert isinstance(curve, FiniteLaw)
    asked: list[int] = []

    class Counted(GaussianLaw):
        def cells(self, edges: Any) -> Any:
            asked.append(edges.size)
            return super().cells(edges)

    law = releases.SumLaw(curve, Counted(2.0))
    generator = np.random.default_rng(20261128)
    for spread in (1e-9, 1.0, 30.0):
        for number in (1, 8):
            edges = np.sort(generator.normal(0.0, spread, number))
            asked.clear()
            found = law.cells(edges)
            assert len(asked) == 1
            with monkeypatch.context() as patched:
                patched.setattr(releases, "MOST_TOGETHER", 0)
                expected = law.cells(edges)
            assert len(asked) == 1 + curve.loss.size > 5000
            assert np.array_equal(found.shift, expected.shift)
            off = found.error + expected.error
            for one, other in ((found.log_a, expected.log_a), (found.log_b, expected.log_b)):
                some = np.isfinite(other)
                assert np.array_equal(some, np.isfinite(one))
                assert (np.abs(np.expm1(one[some] - other[some])) <= off[some]).all()
                heavy = some & (other > -50.0)
                assert (off[heavy] < 1e-11).all()
