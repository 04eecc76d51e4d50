"""Audit DP-SGD on scikit-learn's digits from a single training run with many canaries.

python examples/audit_dp_sgd/one_run.py

Each canary is in or out by a fair coin.  Two kinds are tried: digits with a wrong label, and
gradients of one coordinate each (Dirac canaries), which no data make.  The auditor sees the noisy
sums and knows the other records, scores each canary by the inner product of its gradients with what
is left of the sums, and names those with the highest and the lowest scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from data import Task, load
from models import FloatArray
from training import Settings, clipped, target_gradients

import pyengine as pe
from pyengine import audit

Gradients = Callable[[FloatArray], FloatArray]  # of all canaries, at some parameters


def scores(
    task: Task,
    known: FloatArray,
    canaries: Gradients,
    inside: FloatArray,
    settings: Settings,
    rng: np.random.Generator,
) -> FloatArray:
    """Train once, and score every canary by what the noisy sums say of it."""
    parameters = task.model.start.copy()
    p, expected = settings.sampling_probability, settings.sampling_probability * len(known)
    found = np.zeros(len(inside))
    for _ in range(settings.steps):
        own = target_gradients(task, parameters, known, settings.clip)
        extra = canaries(parameters)
        sampled = rng.random(len(known)) < p
        taken = inside & (rng.random(len(inside)) < p)
        noise = rng.normal(0.0, settings.noise_multiplier * settings.clip, parameters.size)
        release = own[sampled].sum(axis=0) + extra[taken].sum(axis=0) + noise
        # half of the canaries are there, each in a share p of the batches
        found += extra @ (release - p * own.sum(axis=0) - 0.5 * p * extra.sum(axis=0))
        parameters = parameters - settings.learning_rate * release / expected
    return found


def mislabelled(task: Task, records: FloatArray, settings: Settings) -> Gradients:
    """Records of the data with the label of the next class."""
    x, y = task.x[records], (task.y[records] + 1) % 10
    return lambda parameters: clipped(task.model.gradients(parameters, x, y), settings.clip)


def dirac(task: Task, number: int, settings: Settings) -> Gradients:
    """Gradients of the largest norm in one coordinate each."""
    fixed = settings.clip * np.eye(number, task.model.start.size)
    return lambda _: fixed


def guessed(score: FloatArray, inside: FloatArray, guesses: int) -> int:
    """Number of right guesses: the highest half are said to be in, the lowest half out."""
    order = np.argsort(score)
    half = guesses // 2
    return int(np.sum(~inside[order[:half]]) + np.sum(inside[order[-half:]]))


def main() -> None:
    """Print what one run of each kind proves, beside the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--canaries", type=int, default=600, help="records that are in or out")
    parser.add_argument("--guesses", type=int, default=100, help="of them, half in and half out")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    task, settings = load("digits"), Settings()
    if not 2 <= given.guesses <= given.canaries <= min(len(task.x) // 2, task.model.start.size):
        parser.error("needs 2 <= guesses <= canaries <= 650")
    rng = np.random.default_rng(given.seed)
    order = rng.permutation(len(task.x))
    records, known = order[: given.canaries], order[given.canaries :]
    run = pe.dp_sgd(settings.noise_multiplier, settings.sampling_probability, settings.steps)
    quiet = pe.dp_sgd(3 * settings.noise_multiplier, settings.sampling_probability, settings.steps)
    truth = pe.epsilon(run, given.delta)
    print(f"digits, {given.canaries} canaries, {given.guesses} guesses; DP-SGD with noise ", end="")
    print(f"{settings.noise_multiplier:g}, p {settings.sampling_probability:g}, ", end="")
    print(f"{settings.steps} steps: epsilon {truth:.3f} at delta {given.delta:g}")
    kinds = {
        "wrong labels": mislabelled(task, records, settings),
        "Dirac": dirac(task, given.canaries, settings),
    }
    for name, canaries in kinds.items():
        inside = rng.random(given.canaries) < 0.5
        score = scores(task, known, canaries, inside, settings, rng)
        guesses = 2 * (given.guesses // 2)
        right = guessed(score, inside, guesses)
        bound = audit.one_run(right, guesses, given.canaries, delta=given.delta)
        claims = [
            audit.one_run_p_value(right, guesses, given.canaries, against=claim)
            for claim in (run, quiet)
        ]
        print(f"{name}: {right} of {guesses} right; epsilon >= {bound.epsilon:.3f}, ", end="")
        print(f"mu >= {bound.mu:.3f} (epsilon >= {bound.epsilon_of_mu:.3f} if Gaussian)")
        print(f"  p-value of the run as it is: {claims[0]:.3g}; of three times the noise: ", end="")
        print(f"{claims[1]:.3g}")


if __name__ == "__main__":
    main()
