"""DP-SGD: Poisson batches, gradients clipped record by record, Gaussian noise on their sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from data import Task
from models import FloatArray


@dataclass(frozen=True)
class Settings:
    """Parameters of a run: noise multiplier, clipping norm, sampling probability, steps, rate."""

    noise_multiplier: float = 1.0
    clip: float = 1.0
    sampling_probability: float = 0.2
    steps: int = 20
    learning_rate: float = 1.0


def clipped(gradients: FloatArray, clip: float) -> FloatArray:
    """Shorten gradients to the clipping norm."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300))


def train(
    task: Task, known: FloatArray, target: int | None, settings: Settings, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Train on the known records and, unless None, a target.

    Yields at each step the parameters and what the release says of the target: the noisy sum of
    gradients with those of the known records in the batch subtracted.  That is what the adversary
    of differential privacy sees, who knows everything else.
    """
    parameters = task.model.start.copy()
    expected = settings.sampling_probability * len(known)
    for _ in range(settings.steps):
        batch = known[rng.random(len(known)) < settings.sampling_probability]
        own = clipped(task.model.gradients(parameters, task.x[batch], task.y[batch]), settings.clip)
        deviation = settings.noise_multiplier * settings.clip
        seen = rng.normal(0.0, deviation, parameters.size)
        if target is not None and rng.random() < settings.sampling_probability:
            seen += target_gradients(task, parameters, np.array([target]), settings.clip)[0]
        yield parameters, seen
        parameters = parameters - settings.learning_rate * (own.sum(axis=0) + seen) / expected


def target_gradients(
    task: Task, parameters: FloatArray, records: FloatArray, clip: float
) -> FloatArray:
    """Clipped gradients of some records."""
    return clipped(task.model.gradients(parameters, task.x[records], task.y[records]), clip)
