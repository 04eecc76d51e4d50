"""One and several epochs of random allocation in ball arithmetic against published digits."""

from __future__ import annotations

from typing import Any

import mpmath
import pytest
from truth import load

import pyengine as pe
from pyengine import reference

NAMES = {"delta": "delta", "gamma": "gamma_bound", "epsilon": "epsilon", "beta": "trade_off"}
ROWS = load("random_allocation.json")
# The profile is one inversion; levels and inverses take several.
CHOSEN = [row for row in ROWS if row["question"] == "delta" and row["steps"] <= 100][:4] + [
    row for row in ROWS if row["question"] == "gamma" and row["steps"] == 10
][:1]


@pytest.mark.parametrize("row", CHOSEN)
def test_published_digits(row: dict[str, Any]) -> None:
    run = pe.dp_sgd_allocated(row["sigma"], row["steps"], row["epochs"])
    digits = min(row["digits"], 15)
    question = getattr(reference, NAMES[row["question"]])
    value = question(run, row["argument"], adjacency=row["adjacency"], digits=digits)
    assert value.certified
    with mpmath.workdps(60):
        truth = mpmath.mpf(row["value"])
        assert abs(value - truth) <= value.error + mpmath.mpf(10) ** -row["digits"] * truth
        assert value.error <= mpmath.mpf(10) ** -digits * truth


@pytest.mark.parametrize("row", ROWS)
def test_published_digits_in_double_precision(row: dict[str, Any]) -> None:
    run = pe.dp_sgd_allocated(float(row["sigma"]), row["steps"], row["epochs"])
    question = getattr(pe, NAMES[row["question"]])
    lower, value, upper = question(
        run, float(row["argument"]), adjacency=row["adjacency"], bounds="estimated"
    )
    with mpmath.workdps(40):
        truth = mpmath.mpf(row["value"])
        rounding = mpmath.mpf(10) ** (1 - row["digits"]) * truth
        assert lower - rounding <= truth <= upper + rounding
        assert abs(value - truth) <= 1e-12 * truth + rounding


def test_one_step_is_the_plain_mechanism() -> None:
    assert pe.GaussianMechanism(2.0).randomly_allocated(1) == pe.GaussianMechanism(2.0)
    assert pe.dp_sgd_allocated(2.0, 1, 3) == pe.GaussianMechanism(2.0).composed(3)


def test_two_steps_against_a_double_integral() -> None:
    """E (S/2 - e^ε)+ over the plane, with the inner integral in closed form."""
    run, epsilon = pe.dp_sgd_allocated("1.5", 2, 1), "0.3"
    value = reference.delta(run, epsilon, adjacency="remove", digits=10)
    with mpmath.workdps(20):
        mu, k = 1 / mpmath.mpf("1.5"), 2 * mpmath.exp(mpmath.mpf(epsilon))

        def inner(x: Any) -> Any:
            rest = k - mpmath.exp(mu * x - mu**2 / 2)
            if rest <= 0:
                return 1 - rest
            edge = mpmath.log(rest) / mu + mu / 2
            return mpmath.ncdf(mu - edge) - rest * mpmath.ncdf(-edge)

        corner = mpmath.log(k) / mu + mu / 2
        truth = (
            mpmath.quad(lambda x: mpmath.npdf(x) * inner(x), [-12, -4, 0, corner, corner + 3, 14])
            / 2
        )
        assert abs(value / truth - 1) < 1e-10


def test_epochs_beside_other_steps_lie_between_proven_bounds() -> None:
    run = pe.dp_sgd_allocated(1.0, 10, 1) + pe.LaplaceMechanism(2.0)
    truth = reference.delta(run, 1.0, digits=20)
    assert truth.certified
    found = pe.delta(run, 1.0, bounds=True)
    assert found.lower <= truth <= found.upper
    assert found.lower <= pe.delta(run, 1.0) <= found.upper


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pe.GaussianMechanism(1.0).randomly_allocated(0), "steps must be an integer >= 1"),
        (lambda: pe.dp_sgd_allocated(1.0, 0, 1), "steps_per_epoch must be an integer >= 1"),
        (lambda: pe.dp_sgd_allocated(-1.0, 2, 1), "noise_multiplier must be positive"),
        (
            lambda: pe.GaussianMechanism(1.0).randomly_allocated(5).poisson_sampled(0.1),
            "cannot be sampled again",
        ),
        (
            lambda: (
                pe.GaussianMechanism(1.0)
                .randomly_allocated(5)
                .sampled_without_replacement(batch_size=1, dataset_size=2)
            ),
            "cannot be sampled again",
        ),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("noise", [2.27, 20.0])
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_one_epoch_beside_little_leaves_a_function_that_falls_late(
    adjacency: str, noise: float
) -> None:
    mechanism = pe.GaussianMechanism(0.62).randomly_allocated(2) + pe.GaussianMechanism(noise)
    value = pe.delta(mechanism, 0.3, adjacency=adjacency)
    truth = pe.delta(mechanism, 0.3, adjacency=adjacency, method="reference")
    assert abs(value / truth - 1.0) < 1e-13


def test_the_reference_refuses_what_takes_gigabytes() -> None:
    """Four epochs of large noise, far out: 72,000 nodes of 10,000 bits took 12 GB and no end."""
    run = pe.dp_sgd_allocated(17.21624992968106, 15, 4)
    with pytest.raises(pe.AccuracyError, match="gigabytes"):
        reference.gamma_bound(run, 2.07156843223e-12, adjacency="remove", digits=14)
