"""Values of analytic densities next to what laws leave beyond their ends, down to 1e-300."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from outcomes import gaussian_delta
from thorough import ALL, some

import pyengine as pe
from pyengine.analytic import cosh, exp, lgamma, log, number, pi, z

pytest.importorskip("flint")

NORMAL = -z * z / 2 - log(2 * pi) / 2
LOGISTIC = -z - 2 * log(1 + exp(-z))
SECANT = -log(cosh(z)) - log(pi)


def moved(log_p: object, shift: object) -> pe.Mechanism:
    return pe.from_analytic_densities(log_p, log_p.at(z - shift))  # type: ignore[attr-defined]


def width(found: pe.Bounds) -> float:
    return (found.upper - found.lower) / found.value


@pytest.mark.parametrize("steps", [10, 300])
def test_normal_densities_are_the_gaussian_mechanism_down_to_tiny_values(steps: int) -> None:
    run = moved(NORMAL, "0.1").composed(steps)
    with mpmath.workdps(60):
        mu = mpmath.mpf("0.1") * mpmath.sqrt(steps)
        for sigmas in (10.0, 16.0, 22.0, 28.0, 36.0):
            epsilon = float(mu * (mu / 2 + sigmas))
            truth = gaussian_delta(mu, epsilon)
            found = pe.delta(run, epsilon, bounds=True)
            assert found.lower <= truth <= found.upper
            assert width(found) < 1e-8
            assert pe.delta(run, epsilon) == found.value
            known = pe.epsilon(run, float(truth), adjacency="remove", bounds=True)
            assert gaussian_delta(mu, known.lower) >= float(truth)
            assert gaussian_delta(mu, known.upper) <= float(truth)
        for log_kappa in (-40, -90, -180, -280):
            kappa = mpmath.mpf(10) ** log_kappa
            quantile = mpmath.findroot(
                lambda x, kappa=kappa: mpmath.log(mpmath.ncdf(x)) - mpmath.log(kappa),
                -mpmath.sqrt(-2 * mpmath.log(kappa)),
            )
            truth = mpmath.ncdf(quantile + mu)
            found = pe.gamma_bound(run, float(kappa), bounds=True)
            assert found.lower <= truth <= found.upper
            assert width(found) < 1e-8


def test_samples_of_normal_densities_are_dp_sgd_down_to_tiny_values() -> None:
    """Bounds of both meet where the usual law of the densities knows no digit."""
    run = moved(NORMAL, number(Fraction(1, 2))).poisson_sampled("0.1").composed(400)
    same = pe.dp_sgd(noise_multiplier=2, sampling_probability="0.1", steps=400)
    for function, arguments in (
        (pe.delta, (14.0, 22.0, 30.0)),
        (pe.gamma_bound, (1e-80, 1e-150)),
        (pe.epsilon, (1e-80, 1e-150)),
    ):
        for x in arguments:
            found, truth = (function(each, x, bounds=True) for each in (run, same))
            assert max(found.lower, truth.lower) <= min(found.upper, truth.upper)
            assert width(found) < 1e-8


def test_beyond_all_losses_nothing_is_left() -> None:
    """Losses of at most 0.5 cannot exceed 50 in 100 steps: 0, and a proof that it is tiny."""
    run = moved(SECANT, "0.5").composed(100)
    found = pe.delta(run, 51.0, bounds=True)
    assert found.lower == found.value == 0.0
    assert found.upper < 1e-300
    near = pe.delta(run, 49.0, bounds=True)
    assert 1e-90 < near.lower <= near.upper < 1e-70
    assert width(near) < 1e-8
    # what is removed beyond the ends of the law
    assert pe.delta(run, math.inf, bounds=True).upper < 1e-50
    at_zero = pe.gamma_bound(run, 0.0, adjacency="remove", bounds=True)
    assert at_zero.lower == 0.0
    assert at_zero.upper < 1e-50
    if ALL:
        with pytest.raises(pe.AccuracyError):
            pe.epsilon(run, 1e-318, bounds=True)  # nothing says how far losses beyond go
    arrays_are_answered_as_their_numbers(run)


def arrays_are_answered_as_their_numbers(run: pe.Mechanism) -> None:
    """Of the same law, which takes seconds."""
    kappa = np.array([0.0, 1e-100, 1e-9, 0.3, 1.0])
    found = pe.gamma_bound(run, kappa, adjacency="remove", bounds=True)
    assert (found.lower[2:-1] > 0.0).all()
    assert ((found.upper - found.lower)[2:-1] < 1e-8 * found.value[2:-1]).all()
    for i, each in enumerate(kappa.tolist()):
        assert pe.gamma_bound(run, each, adjacency="remove") == found.value[i]
    profile = pe.delta(run, np.array([1.0, 49.0, 60.0]), bounds=True)
    assert 1e-90 < profile.value[1] < 1e-70
    assert pe.delta(run, 49.0) == profile.value[1]


# Densities, and the log of how far out they are looked at; Cauchy's take 15 s.
NEAR = {"logistic": (LOGISTIC, 3.0), "Cauchy": (-log(pi) - log(1 + z * z), 56.0)}


@pytest.mark.parametrize("name", some(NEAR, 2))
def test_what_is_not_looked_at_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cauchy's law has e^-56 beyond e^56, which γ of less cannot leave aside, and δ can."""
    from pyengine.laws import analytic

    log_p, farthest = NEAR[name]
    monkeypatch.setattr(analytic, "FARTHEST", farthest)
    run = moved(log_p, "0.2718").composed(60)
    assert pe.delta(run, 20.0, adjacency="remove") == 0.0
    with pytest.raises(pe.AccuracyError, match="values below"):
        pe.gamma_bound(run, 1e-200, adjacency="remove")


def test_heavy_tails_know_what_their_usual_law_does_not() -> None:
    """Student's law of 19 degrees of freedom, against the lattice's estimates."""
    student = lgamma(10) - lgamma("9.5") - log(19 * pi) / 2 - 10 * log(1 + z * z / 19)
    run = moved(student, "0.3").composed(60)
    for kappa in some([1e-64, 1e-58], 2):
        found = pe.gamma_bound(run, kappa, adjacency="remove", bounds=True)
        rough = pe.gamma_bound(run, kappa, adjacency="remove", method="lattice", bounds="estimated")
        assert rough.lower <= found.lower <= found.upper <= rough.upper
        assert width(found) < 1e-8
