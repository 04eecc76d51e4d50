"""The ground truth of compositions of different mechanisms against sums, integrals and brackets."""

from __future__ import annotations

from typing import Any

import mpmath
import pytest
from outcomes import gaussian_delta, sampled_laplace_delta
from thorough import ALL, sampled, some

import pyengine as pe
from pyengine import reference
from pyengine.caches import clear_cache

RESPONSE = pe.RandomizedResponse("0.7", 3)
GENERIC = pe.GenericMechanism("1/2", "1/1000")
PAIR = pe.from_probabilities(["1/5", "0", "4/5"], ["1/10", "1/100", "89/100"])
GAUSSIAN = pe.GaussianMechanism("2")
LAPLACE = pe.LaplaceMechanism("2")
SAMPLED = LAPLACE.poisson_sampled("0.2")
MANY = pe.dp_sgd("1", "0.01", 1000)

PROVEN = {
    "Gaussian, response": pe.compose(GAUSSIAN.composed(3), RESPONSE.composed(4)),
    "one sampled Gaussian, pair": pe.compose(pe.dp_sgd("0.5", "1e-6", 1), PAIR.composed(2)),
    "narrow Gaussian, generic": pe.compose(
        pe.GaussianMechanism("50"), pe.GenericMechanism("20", "0.01")
    ),
    "DP-SGD, generic": pe.compose(MANY, GENERIC.composed(3)),
    "DP-SGD, discrete Gaussian": pe.compose(MANY, pe.DiscreteGaussianMechanism("3").composed(2)),
    "Laplace, response": pe.compose(LAPLACE.composed(5), RESPONSE.composed(3)),
    # knots of both parts lie at the same losses
    "Laplace, generic": pe.compose(pe.LaplaceMechanism("1").composed(2), pe.GenericMechanism("1")),
    "1,000 sampled Laplace": pe.LaplaceMechanism("1").poisson_sampled("0.01").composed(1000),
    "many kinds of Laplace": pe.compose(
        pe.LaplaceMechanism("1").poisson_sampled("0.05").composed(500),
        pe.LaplaceMechanism("2").poisson_sampled("0.01").composed(500),
        pe.LaplaceMechanism("10"),
        RESPONSE,
    ),
    "Gaussian, Laplace": pe.compose(GAUSSIAN, LAPLACE.composed(2)),
    "DP-SGD, sampled Laplace": pe.compose(MANY, SAMPLED),
    "DP-SGD, Laplace, response": pe.compose(MANY, LAPLACE, RESPONSE),
    "epoch, response, Laplace": pe.compose(
        pe.GaussianMechanism("2").randomly_allocated(8),
        RESPONSE,
        pe.LaplaceMechanism("3").composed(2),
    ),
}
ESTIMATED = {
    "sampled Laplace, pair": pe.compose(SAMPLED.composed(3), PAIR),
    "sampled Laplace, Laplace": pe.compose(SAMPLED.composed(2), pe.LaplaceMechanism("3")),
    "two kinds of sampled Laplace": pe.compose(
        SAMPLED, pe.LaplaceMechanism("3").poisson_sampled("0.01").composed(2)
    ),
}
QUESTIONS = (("gamma_bound", "1e-3"), ("trade_off", "0.3"), ("delta", "0.4"), ("epsilon", "0.02"))


@sampled(4)
@pytest.mark.parametrize(
    ("name", "adjacency"),
    [(name, word) for name in PROVEN for word in ("add", "remove")]
    + [(name, "remove") for name in ESTIMATED],
)
def test_lattice_brackets(name: str, adjacency: str) -> None:
    mechanism = {**PROVEN, **ESTIMATED}[name]
    # one integral of errors and one of profiles are enough to see that a law is right
    for question, at in some(QUESTIONS[adjacency == "remove" :], 2):
        digits = 12 if name in PROVEN else 6
        value = getattr(reference, question)(mechanism, at, adjacency=adjacency, digits=digits)
        assert value.certified == (name in PROVEN)
        bracket = getattr(pe, question)(
            mechanism,
            float(at),
            adjacency=adjacency,
            method="lattice",
            bounds=True,
            tolerance=1e-4,
        )
        assert bracket.lower <= value.upper
        assert value.lower <= bracket.upper


SUBSTITUTED = {
    "one sampled Gaussian": pe.dp_sgd("1", "0.1", 1),
    "one sampled Gaussian, discrete": pe.compose(
        pe.dp_sgd("1", "0.01", 1), pe.DiscreteLaplaceMechanism("2").poisson_sampled("0.3")
    ),
    "Gaussian, response": pe.compose(pe.GaussianMechanism("4"), RESPONSE),
    "sampled Gaussian": pe.dp_sgd("2", "0.3", 60),
    "few sampled Gaussian": pe.dp_sgd("1", "0.5", 5),
    "two sampled Gaussian": pe.dp_sgd("2", "0.2", 2),
    "sampled and unsampled Gaussian": pe.compose(MANY, pe.GaussianMechanism("4")),
    "sampled Laplace": pe.LaplaceMechanism("3").poisson_sampled("0.1").composed(5),
    "many sampled Laplace": pe.LaplaceMechanism("1").poisson_sampled("0.01").composed(1000),
    "sampled Gaussian, Laplace": pe.compose(pe.dp_sgd("2", "0.3", 60), pe.LaplaceMechanism("6")),
}


@pytest.mark.parametrize("name", SUBSTITUTED)
def test_substitution(name: str) -> None:
    mechanism = SUBSTITUTED[name]
    for question, at in some(QUESTIONS[list(SUBSTITUTED).index(name) % 2 :], 2):
        value = getattr(reference, question)(mechanism, at, adjacency="substitute", digits=8)
        assert value.certified == (name != "sampled Laplace")
        bracket = getattr(pe, question)(
            mechanism,
            float(at),
            adjacency="substitute",
            method="lattice",
            bounds=True,
            tolerance=1e-4,
        )
        assert bracket.lower <= value.upper
        assert value.lower <= bracket.upper


def test_substituted_gaussian_by_an_integral() -> None:
    """One step from the densities: Proposition 13 of Lebeda et al. (2024)."""
    with mpmath.workdps(40):
        p, epsilon = mpmath.mpf("0.1"), mpmath.mpf("0.2")

        def density(y: Any, at: int) -> Any:
            return (1 - p) * mpmath.npdf(y) + p * mpmath.npdf(y - at)

        edge = mpmath.findroot(lambda y: mpmath.log(density(y, 1) / density(y, -1)) - epsilon, 1)
        truth = mpmath.quad(
            lambda y: density(y, 1) - mpmath.exp(epsilon) * density(y, -1),
            [edge, edge + 1, edge + 3, edge + 8, edge + 20],
        )
        value = reference.delta(pe.dp_sgd("1", "0.1", 1), "0.2", adjacency="substitute")
        holds(value, truth, 30)


def test_substituted_laplace_by_an_integral() -> None:
    with mpmath.workdps(25):
        mu, p, epsilon = mpmath.mpf(1) / 3, mpmath.mpf("0.1"), mpmath.mpf("0.05")

        def density(y: Any, at: int) -> Any:
            both = (1 - p) * mpmath.exp(-mu * abs(y)) + p * mpmath.exp(-mu * abs(y - at))
            return mu / 2 * both

        edge = mpmath.findroot(
            lambda y: mpmath.log(density(y, 1) / density(y, -1)) - epsilon, mpmath.mpf("0.5")
        )
        assert 0 < edge < 1
        truth = mpmath.quad(
            lambda y: density(y, 1) - mpmath.exp(epsilon) * density(y, -1),
            [edge, 1, 5, 20, 100, 400],
        )
        run = pe.LaplaceMechanism("3").poisson_sampled("0.1")
        holds(reference.delta(run, "0.05", adjacency="substitute", digits=20), truth, 20)


def holds(value: reference.Value, truth: Any, digits: int) -> None:
    assert abs(value - truth) <= value.error + abs(truth) * mpmath.mpf(10) ** -digits
    assert value.digits >= digits


def test_gaussian_and_response_by_a_sum() -> None:
    with mpmath.workdps(45):
        mu, epsilon = mpmath.mpf(1) / 2, mpmath.mpf("0.4")
        p = [mpmath.mpf(x) / 20 for x in (14, 3, 3)]
        q = [mpmath.mpf(x) / 20 for x in (3, 14, 3)]
        truth = mpmath.fsum(
            a * gaussian_delta(mu, epsilon + mpmath.log(b / a)) for a, b in zip(p, q, strict=True)
        )
        holds(reference.delta(pe.compose(GAUSSIAN, RESPONSE), "0.4", adjacency="add"), truth, 30)


def test_gaussian_and_laplace_by_an_integral() -> None:
    with mpmath.workdps(25):
        mu, epsilon = mpmath.mpf(1) / 2, mpmath.mpf("0.4")
        low = gaussian_delta(mu, epsilon - mu) / 2
        high = gaussian_delta(mu, epsilon + mu) * mpmath.exp(-mu) / 2
        middle = mpmath.quad(
            lambda x: gaussian_delta(mu, epsilon + x) * mpmath.exp(-(x + mu) / 2) / 4,
            [-mu, 0, mu],
        )
        value = reference.delta(pe.compose(GAUSSIAN, LAPLACE), "0.4", adjacency="add", digits=20)
        holds(value, low + middle + high, 20)


def test_two_kinds_of_laplace_by_an_integral() -> None:
    with mpmath.workdps(20):
        half, third, t = mpmath.mpf(1) / 2, mpmath.mpf(1) / 3, mpmath.exp(mpmath.mpf("0.2"))
        first, second = mpmath.mpf("0.2"), mpmath.mpf(1)

        def integrand(x: Any) -> Any:
            """The density of the unsampled step's ratio, Q's share, times the other's profile."""
            return (
                mpmath.exp((x - third) / 2)
                / 4
                * sampled_laplace_delta(half, first, t / mpmath.exp(x))
            )

        ends = [1 - first + first * mpmath.exp(s * half) for s in (-1, 1)]
        kinks = sorted({-third, third, *(mpmath.log(t / end) for end in ends)})
        inside = [x for x in kinks if -third <= x <= third]
        truth = mpmath.quad(integrand, inside) * second
        truth += mpmath.exp(-third) / 2 * sampled_laplace_delta(half, first, t * mpmath.exp(third))
        truth += sampled_laplace_delta(half, first, t / mpmath.exp(third)) / 2
        run = pe.compose(SAMPLED, pe.LaplaceMechanism("3"))
        holds(reference.delta(run, "0.2", adjacency="remove", digits=15), truth, 15)


def test_mass_of_one_law_only() -> None:
    run = PROVEN["narrow Gaussian, generic"]
    with mpmath.workdps(60):
        for free in (reference.gamma_bound(run, 0), reference.delta(run, float("inf"))):
            assert abs(free - mpmath.mpf("0.01")) < mpmath.mpf("1e-45")
    # the level is that of all outcomes that the other law can have
    assert reference.trade_off(run, "0.995", adjacency="add").upper < mpmath.mpf("1e-100")
    assert mpmath.isinf(reference.epsilon(run, "0.005"))
    mixed = pe.compose(MANY, GENERIC)
    assert reference.trade_off(mixed, "0.9995", adjacency="add") == 0
    assert reference.gamma_bound(mixed, "0.9995") == 1


def test_deep_levels() -> None:
    small = pe.reference.gamma_bound(pe.compose(MANY, RESPONSE), "1e-100", digits=15)
    assert small.certified
    assert small > mpmath.mpf("1e-100")
    free = reference.gamma_bound(PROVEN["DP-SGD, generic"], "1e-100", digits=40)
    with mpmath.workdps(40):  # the mass that only one law has is rejected at no level
        assert abs(free - (1 - mpmath.mpf("0.999") ** 3)) < mpmath.mpf("1e-39")


def test_both_methods_for_many_laplace_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polynomials on pieces and the inversion of what is no atom, for the same steps."""
    from pyengine.reference import pairs

    run = pe.LaplaceMechanism("0.8").poisson_sampled("0.5").composed(100)

    def answers() -> list[reference.Value]:
        clear_cache()
        return [
            getattr(reference, question)(run, at, adjacency=adjacency, digits=3)
            for question, at in some(QUESTIONS, 4)
            for adjacency in (("add", "remove") if ALL else ("remove",))
        ]

    pieces = answers()
    monkeypatch.setattr(pairs, "MOST_PIECES", 50)
    inverted = answers()
    clear_cache()
    for one, two in zip(pieces, inverted, strict=True):
        assert one != two
        assert abs(one - two) <= one.error + two.error
        assert abs(one - two) < 1e-4 * one


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_beyond_all_losses_of_many_laplace_steps(adjacency: str) -> None:
    run = pe.LaplaceMechanism("2.4").poisson_sampled("2.9e-4").composed(545)
    assert reference.delta(run, "0.2", adjacency=adjacency) == 0
    mixed = pe.compose(run, RESPONSE)
    assert reference.delta(mixed, "3", adjacency=adjacency) == 0
    # response has losses of log(14/3) = 1.5404..., the others of less than 0.1
    assert reference.delta(mixed, "1.5", adjacency=adjacency, digits=10) > 0
    value = reference.delta(mixed, "1.55", adjacency=adjacency, digits=10)
    bounds = pe.delta(mixed, 1.55, adjacency=adjacency, bounds=True)
    assert value.certified
    assert bounds.lower <= value <= bounds.upper


def test_finite_steps_whose_sums_are_too_many_to_list() -> None:
    """Beside Gaussian steps each kind has its own transform."""
    run = pe.compose(MANY, RESPONSE.composed(300), pe.RandomizedResponse("0.6").composed(100))
    value = reference.delta(run, "5", adjacency="add", digits=12)
    bounds = pe.delta(run, 5, adjacency="add", bounds=True)
    assert value.certified
    assert bounds.lower <= value <= bounds.upper


def test_one_sampled_gaussian_step_beside_laplace() -> None:
    """Its transform hardly falls: what it does is integrated over the density of the others."""
    run = pe.compose(pe.dp_sgd("2", "0.1", 1), LAPLACE)
    for question, at in some(QUESTIONS, 2):
        value = getattr(reference, question)(run, at, adjacency="remove", digits=6)
        bounds = getattr(pe, question)(run, float(at), adjacency="remove", bounds=True)
        assert not value.certified
        assert bounds.lower <= value.upper
        assert value.lower <= bounds.upper


def test_steps_that_tell_all() -> None:
    run = pe.compose(MANY, RESPONSE, pe.GenericMechanism("1", "1"))
    for question, at in QUESTIONS:
        value = getattr(reference, question)(run, at)
        assert value == {"trade_off": 0, "epsilon": mpmath.inf}.get(question, 1)


def test_what_is_refused() -> None:
    many = RESPONSE.composed(300), pe.RandomizedResponse("0.6").composed(100)
    noisy = pe.compose(LAPLACE.composed(5), *many)
    with pytest.raises(pe.AccuracyError, match="fewer"):
        reference.delta(noisy, "0.1")
    rare = pe.compose(pe.dp_sgd("1", "1e-5", 11), PAIR)
    with pytest.raises(pe.AccuracyError, match="more steps or more noise"):
        reference.delta(rare, "0.1")
    kinds = [pe.LaplaceMechanism(k).poisson_sampled("0.1").composed(20) for k in (1, 2, 3)]
    with pytest.raises(pe.AccuracyError, match="fewer"):
        reference.delta(pe.compose(*kinds), "0.1", digits=5)
    with pytest.raises(pe.AccuracyError, match="falls too slowly"):
        reference.delta(pe.LaplaceMechanism("10").poisson_sampled("0.1").composed(200), "0.1")
