"""Attacks with known theory at 10^5 trials, and the prior-aware attack on large problems.

    python tools/audit_report.py

Prints for each attack whether its errors lie within their bands of the theory, and the time and
peak memory of 10,000 candidates, 1,000 steps and 1,000 parameters.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator

import numpy as np

import pyengine as pe
from pyengine import audit, special

TRIALS = 100_000


def verdict(name: str, gap: audit.Gap) -> None:
    """Print one line."""
    print(
        f"{name:44s} within the bands: {gap.attained!s:5s} beyond the bound: {gap.violated!s:5s} "
        f"(excess {gap.excess:+.1e}, deficit {gap.deficit:+.1e})"
    )


def glir(size: int, dimension: int, noise: float) -> audit.Gap:
    """GLiR with known parameters; every record has susceptibility d."""
    rng = np.random.default_rng(1)
    law = audit.GradientDistribution.known(np.zeros(dimension), np.ones(dimension))
    scores = []
    for member in (0, 1):
        gradients = rng.normal(size=(TRIALS, dimension))
        gradients *= math.sqrt(dimension) / np.linalg.norm(gradients, axis=1, keepdims=True)
        others = rng.normal(size=(TRIALS, dimension)) * math.sqrt(size - member)
        means = (others + member * gradients) / size + noise * rng.normal(size=others.shape)
        scores.append(
            -audit.glir_log_p_values(
                means[None], gradients, law, batch_size=size, noise_ratio=noise
            )
        )
    effective = size + (noise * size) ** 2
    return audit.empirical_trade_off(*scores).compare(
        lambda alpha: special.one_step_sgd_beta(
            alpha, float(dimension), effective, float(dimension)
        )
    )


def canary(dimension: int, mu: float) -> audit.Gap:
    """Squared lengths of releases with and without a Dirac canary."""
    rng = np.random.default_rng(2)
    null, alternative = (
        audit.magnitude_scores(
            audit.dirac_canary(dimension, mu) * inserted + rng.normal(size=(TRIALS, dimension)),
            noise=1.0,
        )
        for inserted in (0, 1)
    )
    return audit.empirical_trade_off(null, alternative).compare(
        lambda alpha: special.relaxed_beta(alpha, float(dimension), mu)
    )


def prior_aware(count: int, steps: int, noise: float) -> None:
    """Orthogonal candidates, full batch: success beside its exact value and beside γ."""
    rng = np.random.default_rng(3)
    candidates = np.eye(count)
    truth = rng.integers(count, size=TRIALS)
    releases = candidates[truth][:, None] + rng.normal(0.0, noise, (TRIALS, steps, count))
    guesses = np.argmax(audit.inner_product_scores(releases, candidates), axis=1)
    successes = int(np.sum(guesses == truth))
    low, high = audit.clopper_pearson(successes, TRIALS, 1.0 - 0.05 / 3)  # three of them
    exact = audit.orthogonal_success(count, math.sqrt(steps) / noise)
    bound = pe.gamma_bound(pe.GaussianMechanism(noise).composed(steps), 1.0 / count)
    print(
        f"prior-aware, {count} candidates, {steps} steps: success [{low:.5f}, {high:.5f}], "
        f"theory {exact:.5f}, inside: {low <= exact <= high}, bound {bound:.5f}"
    )


def large(candidates: int = 10_000, steps: int = 1_000, parameters: int = 1_000) -> None:
    """Time and peak memory; the candidates' gradients differ from step to step."""
    rng = np.random.default_rng(4)
    base = rng.normal(size=(candidates, parameters)).astype(np.float64)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    releases = base[7] + rng.normal(0.0, 5.0, (steps, parameters))

    def stepwise() -> Iterator[np.ndarray]:
        for step in range(steps):
            yield np.roll(base, step % 2, axis=1) if step % 100 == 99 else base

    for name, arguments in (("full batch", {}), ("top qT", {"sampling_probability": 0.1})):
        start = time.perf_counter()
        scores = audit.inner_product_scores(releases, stepwise(), **arguments)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{candidates} candidates, {steps} steps, {parameters} parameters, {name}: "
            f"{seconds:.1f} s, peak memory {peak:.0f} MB, guess {int(np.argmax(scores))}"
        )


def main() -> None:
    """Print everything."""
    large()
    for size, dimension, noise in ((10, 5, 0.0), (50, 50, 0.0), (100, 20, 0.05), (8, 64, 0.1)):
        verdict(
            f"GLiR, n = {size}, d = {dimension}, noise ratio {noise}", glir(size, dimension, noise)
        )
    for dimension, mu in ((1, 1.0), (50, 2.0), (200, 4.0)):
        verdict(f"Dirac canary, d = {dimension}, mu = {mu}", canary(dimension, mu))
    for count, steps, noise in ((2, 1, 1.0), (10, 4, 4.0), (16, 4, 2.0)):
        prior_aware(count, steps, noise)


if __name__ == "__main__":
    main()
