"""A few of the settings that tools/accuracy_by_mechanism.py asks by the hundred."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from batch_truth import epoch_profile, truncated_profile

import pyengine as pe


@pytest.mark.parametrize(
    ("noise", "steps", "epsilon", "adjacency"),
    [(8.0, 20, 0.05, "add"), (4.0, 10_000, 0.01, "add"), (7.0, 300, 0.02, "remove")],
)
def test_one_epoch_by_laplace_inversion(
    noise: float, steps: int, epsilon: float, adjacency: str
) -> None:
    truth = epoch_profile(noise, steps, epsilon, adjacency)
    found = pe.delta(
        pe.dp_sgd_allocated(noise, steps, 1), epsilon, adjacency=adjacency, bounds="estimated"
    )
    assert found.lower <= truth <= found.upper
    assert abs(found.value / truth - 1) < 2e-13


def test_truncated_samples_are_mixtures_of_known_laws() -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        records, p = int(rng.integers(20, 200)), Fraction(int(rng.integers(5, 40)), 100)
        batch = max(1, round(records * float(p) * float(rng.uniform(0.8, 1.6))))
        noise, epsilon = round(float(rng.uniform(0.6, 4.0)), 2), round(float(rng.uniform(0, 1)), 2)
        run = pe.GaussianMechanism(noise).truncated_poisson_sampled(
            p, batch_size=batch, dataset_size=records
        )
        for adjacency in ("add", "remove"):
            truth = truncated_profile(noise, p, batch, records, epsilon, adjacency)
            assert pe.delta(run, epsilon, adjacency=adjacency) == pytest.approx(
                float(truth), rel=1e-11, abs=1e-300
            )
