"""The ground truth of every mechanism against enumeration, closed forms and mpmath quadrature."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from outcomes import (
    Outcomes,
    all_together,
    number,
    power_of,
    profile,
    reversed_,
    sampled_gaussian_delta,
    sampled_laplace_delta,
    vectors,
)
from thorough import ALL, stored

import pyengine as pe
from pyengine import reference

DATA = Path(__file__).parent / "data"
LAPLACE = json.loads((DATA / "laplace_published.json").read_text(encoding="utf-8"))["points"]
NCX2 = json.loads((DATA / "ncx2_known.json").read_text(encoding="utf-8"))
RESPONSE = pe.RandomizedResponse("0.7", 3)
PAIR = pe.from_probabilities(["1/5", "3/10", "1/2"], ["2/5", "7/20", "1/4"])


def holds(value: reference.Value, truth: Any, digits: float = 25) -> None:
    """The enclosure holds the truth, and is narrow."""
    with mpmath.workdps(60):
        slack = abs(truth) * mpmath.mpf(10) ** -digits
        assert abs(value - truth) <= value.error + slack
        assert value.error <= abs(value) * mpmath.mpf(10) ** (1 - digits)


@pytest.mark.parametrize("row", LAPLACE, ids=lambda row: f"{row['mu']}-{row['steps']}-{row['c']}")
def test_laplace_published(row: dict[str, Any]) -> None:
    mechanism = pe.LaplaceMechanism(1 / Fraction(row["mu"])).composed(row["steps"])
    for value, truth in (
        (reference.gamma_bound(mechanism, row["kappa"]), row["gamma"]),
        (reference.delta(mechanism, row["c"]), row["delta"]),
        (reference.epsilon(mechanism, row["delta"]), row["c"]),
    ):
        assert value.certified
        with mpmath.workdps(40):
            holds(value, mpmath.mpf(truth))


def outcomes(step: pe.Mechanism, steps: int) -> Outcomes:
    """All outcomes of a composition, one by one."""
    one = [("7/10", "3/20"), ("3/20", "7/10"), ("3/20", "3/20")]
    if step != RESPONSE:
        one = [("1/5", "2/5"), ("3/10", "7/20"), ("1/2", "1/4")]
    return all_together(*[vectors(*zip(*one, strict=True), Fraction)] * steps)


@pytest.mark.parametrize("step", [RESPONSE, PAIR], ids=["response", "pair"])
@pytest.mark.parametrize("alpha", ["1/1000", "0.1", "0.37", "0.8", "0.999"])
def test_finite_by_enumeration(step: pe.Mechanism, alpha: str) -> None:
    pairs, mechanism = outcomes(step, 4), step.composed(4)
    with mpmath.workdps(60):
        truth = number(power_of(pairs, Fraction(alpha)))
        holds(reference.gamma_bound(mechanism, alpha), truth)
        holds(reference.trade_off(mechanism, alpha, adjacency="add"), 1 - truth)
        truth = number(power_of(reversed_(pairs), Fraction(alpha)))
        holds(reference.gamma_bound(mechanism, alpha, adjacency="remove"), truth)


@pytest.mark.parametrize("epsilon", ["0", "0.25", "1.5"])
def test_finite_profile_by_enumeration(epsilon: str) -> None:
    with mpmath.workdps(60):
        rows = [(number(p), number(q)) for p, q in outcomes(PAIR, 4)]
        for adjacency in ("add", "remove"):
            truth = profile(rows, mpmath.exp(mpmath.mpf(epsilon)), adjacency)
            holds(reference.delta(PAIR.composed(4), epsilon, adjacency=adjacency), truth)


def test_generic_mechanism() -> None:
    mechanism = pe.GenericMechanism("0.5", "1/1000")
    with mpmath.workdps(40):
        holds(reference.delta(mechanism, "0.5"), mpmath.mpf(1) / 1000)
        holds(reference.epsilon(mechanism, "1/1000"), mpmath.mpf("0.5"), 24)
        assert mpmath.isinf(reference.epsilon(mechanism, "1/1001"))
        holds(reference.gamma_bound(mechanism, 0), mpmath.mpf(1) / 1000)
        kappa = mpmath.mpf("0.01")
        truth = mpmath.exp(mpmath.mpf("0.5")) * kappa + mpmath.mpf(1) / 1000
        holds(reference.gamma_bound(mechanism, "0.01"), truth)


def test_noise_without_a_largest_loss() -> None:
    noise = pe.DiscreteGaussianMechanism("1")
    for mechanism in (noise, noise + pe.LaplaceMechanism("1"), noise + pe.GaussianMechanism("1")):
        assert mpmath.isinf(reference.epsilon(mechanism, 0))
    flip = pe.RandomizedResponse("0.75") + pe.LaplaceMechanism("1")
    with mpmath.workdps(40):
        holds(reference.epsilon(flip, 0), mpmath.log(3) + 1)


def discrete_profile(weight: Callable[[int], Any], shift: int, epsilon: Any, reach: int) -> Any:
    total = mpmath.fsum(weight(k) for k in range(-reach, reach + 1))
    return mpmath.fsum(
        max(weight(k - shift) - mpmath.exp(epsilon) * weight(k), 0) / total
        for k in range(-reach, reach + 1)
    )


def test_discrete_noise_by_summation() -> None:
    with mpmath.workdps(50):
        sigma, b = mpmath.mpf("1.5"), mpmath.mpf(3)
        truth = discrete_profile(
            lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)), 1, mpmath.mpf("0.2"), 60
        )
        holds(reference.delta(pe.DiscreteGaussianMechanism("1.5"), "0.2"), truth)
        truth = discrete_profile(lambda k: mpmath.exp(-abs(k) / b), 2, mpmath.mpf("0.2"), 400)
        holds(reference.delta(pe.DiscreteLaplaceMechanism("1.5", 2), "0.2"), truth)


def test_two_gaussian_steps_by_quadrature() -> None:
    with mpmath.workdps(32):
        noise, p, epsilon = mpmath.mpf(1), mpmath.mpf("0.1"), mpmath.mpf("0.1")

        def integrand(z: Any) -> Any:
            ratio = 1 - p + p * mpmath.exp(z / noise - 1 / (2 * noise**2))
            return (
                mpmath.npdf(z)
                * ratio
                * sampled_gaussian_delta(1 / noise, p, mpmath.exp(epsilon) / ratio)
            )

        kink = mpmath.log((mpmath.exp(epsilon) / (1 - p) - 1 + p) / p) * noise + 1 / (2 * noise)
        near = [kink + mpmath.mpf(x) for x in (-2, -1, -0.5, -0.25, 0, 0.5, 1, 2, 4, 7)]
        truth = mpmath.quad(integrand, [-12, -6, -3, *near, 14])
        value = reference.delta(pe.dp_sgd("1", "0.1", 2), "0.1", adjacency="remove", digits=14)
        assert value.certified
        holds(value, truth, 14)


def test_sampled_laplace_by_quadrature() -> None:
    step = pe.LaplaceMechanism("1").poisson_sampled("0.25")
    with mpmath.workdps(17):
        mu, p, epsilon = mpmath.mpf(1), mpmath.mpf("0.25"), mpmath.mpf("0.05")
        t = mpmath.exp(epsilon)
        one = reference.delta(step, "0.05", adjacency="remove", digits=12)
        holds(one, sampled_laplace_delta(mu, p, t), 11)

        def ratio(x: Any) -> Any:
            return 1 - p + p * mpmath.exp(abs(x) - abs(x - mu))

        def integrand(x: Any) -> Any:
            r = ratio(x)
            return mpmath.exp(-abs(x)) / 2 * r * sampled_laplace_delta(mu, p, t / r)

        low, high = ratio(mpmath.mpf(0)), ratio(mu)
        odds = [(t / end - 1 + p) / p for end in (low, high)]
        kinks = [(mpmath.log(x) + mu) / 2 for x in odds if x > 0]
        places = sorted([0, mu, *(x for x in kinks if 0 < x < mu)])
        key = "delta at 0.05 of two sampled Laplace steps (1, 0.25), remove, by quadrature"
        ends = [-60, -20, -5, *places, 5, 20, 60]
        truth = mpmath.mpf(stored(key, lambda: str(mpmath.quad(integrand, ends))))
        holds(reference.delta(step.composed(2), "0.05", adjacency="remove", digits=12), truth, 11)


def test_sampling_without_replacement() -> None:
    gaussian = pe.GaussianMechanism("2").sampled_without_replacement(batch_size=1, dataset_size=8)
    same = pe.GaussianMechanism("1").poisson_sampled("1/8")
    for adjacency in ("add", "remove"):
        one = reference.trade_off(gaussian.composed(200), "0.01", adjacency=adjacency, digits=20)
        two = reference.trade_off(same.composed(200), "0.01", adjacency=adjacency, digits=20)
        assert one == two
    joined = reference.delta(gaussian, "0.1", adjacency="substitute")
    assert joined == reference.delta(gaussian, "0.1", adjacency="add_remove")
    with pytest.raises(pe.AccuracyError, match="worst is not known"):
        reference.delta(gaussian.composed(2), "0.1", adjacency="substitute")


def test_substitution_doubles_the_sensitivity() -> None:
    for kind in (pe.GaussianMechanism, pe.LaplaceMechanism):
        one = reference.gamma_bound(kind("2").composed(3), "0.01", adjacency="substitute")
        assert one == reference.gamma_bound(kind("1").composed(3), "0.01")
    with pytest.raises(ValueError, match="substitute"):
        reference.delta(PAIR, "0.1", adjacency="substitute")


@settings(max_examples=4 if ALL else 2, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    noise=st.floats(0.8, 8.0),
    p=st.floats(1e-3, 0.9),
    steps=st.integers(3000, 10**7),
    kappa=st.floats(1e-9, 0.9),
    epsilon=st.floats(0.0, 3.0),
)
def test_duality(noise: float, p: float, steps: int, kappa: float, epsilon: float) -> None:
    """γ(κ) <= κ e^ε + δ(ε) for every ε, and κ <= γ(κ) <= 1, for enclosures."""
    mechanism = pe.dp_sgd(noise, p, steps)
    gamma = reference.gamma_bound(mechanism, kappa, digits=12)
    profile = reference.delta(mechanism, epsilon, adjacency="remove", digits=12)
    with mpmath.workdps(40):
        assert gamma.lower <= mpmath.mpf(kappa) * mpmath.exp(epsilon) + profile.upper
        assert gamma.upper >= kappa
        assert gamma.lower <= 1
    finer = reference.gamma_bound(mechanism, kappa, digits=25)
    assert gamma.certified
    assert finer.certified
    assert gamma.lower <= finer.upper
    assert finer.lower <= gamma.upper


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: reference.delta(m, -1), "epsilon"),
        (lambda m: reference.delta(m, "one"), "epsilon"),
        (lambda m: reference.epsilon(m, 2), "delta"),
        (lambda m: reference.trade_off(m, "1.5"), "alpha"),
        (lambda m: reference.gamma_bound(m, float("nan")), "kappa"),
        (lambda m: reference.trade_off(m, 0.5, digits=0), "digits"),
        (lambda m: reference.trade_off(m, 0.5, digits=201), "digits must be at most 200"),
        (lambda m: reference.trade_off(m, 0.5, adjacency="both"), "adjacency"),
        (lambda _: reference.trade_off("mechanism", 0.5), "mechanism"),
        (lambda _: reference.special.ncx2_cdf(-1, 1, 1), "x"),
        (lambda _: reference.special.ncx2_cdf(1, 0, 1), "df"),
        (lambda _: reference.special.marcum_q(1, 1, 1, digits=300), "digits"),
    ],
)
def test_bad_input(call: Callable[[pe.Mechanism], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(pe.dp_sgd("1", "0.01", 1000))


def test_edges() -> None:
    mechanism = pe.dp_sgd("1", "0.01", 1000)
    assert reference.gamma_bound(mechanism, 0) == 0
    assert reference.gamma_bound(mechanism, 1) == 1
    assert reference.epsilon(mechanism, 1) == 0
    assert mpmath.isinf(reference.epsilon(mechanism, 0))
    assert reference.delta(mechanism, float("inf")) == 0
    with mpmath.workdps(40):
        floor = -1000 * mpmath.log(mpmath.mpf(99) / 100)
        holds(reference.epsilon(mechanism, 0, adjacency="add"), floor)
    silent = pe.dp_sgd("1", 0, 1000)
    with mpmath.workdps(60):
        assert abs(reference.gamma_bound(silent, "1/3") - mpmath.mpf(1) / 3) < mpmath.mpf("1e-50")
    assert reference.epsilon(silent, 0) == 0
    assert reference.delta(pe.dp_sgd("1", "0.5", 0), 0) == 0


@pytest.mark.parametrize("row", NCX2["points"], ids=lambda row: row["tag"])
def test_noncentral_chi_squared(row: dict[str, Any]) -> None:
    tail = reference.special.ncx2_cdf if row["small"] == "cdf" else reference.special.ncx2_sf
    value = tail(float(row["x"]), float(row["d"]), float(row["lam"]))
    with mpmath.workdps(50):
        log = mpmath.mpf(row["log_small"])
        assert abs(mpmath.log(value) - log) <= mpmath.mpf(10) ** -29 * max(1, abs(log))
    assert value.digits >= 30


def test_noncentral_chi_squared_inverses() -> None:
    special = reference.special
    with mpmath.workdps(40):
        x = special.ncx2_ppf("1e-12", "4.83", "449.76")
        holds(special.ncx2_cdf(x.decimal(35), "4.83", "449.76"), mpmath.mpf("1e-12"))
        x = special.ncx2_isf("1e-12", "4.83", "449.76")
        holds(special.ncx2_sf(x.decimal(35), "4.83", "449.76"), mpmath.mpf("1e-12"))
        q = special.marcum_q("1/2", 1, 2)
        holds(q, mpmath.ncdf(-1) + mpmath.ncdf(-3))
        holds(special.marcum_q_complement("1/2", 1, 2), 1 - q)
