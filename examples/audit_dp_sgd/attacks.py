"""Three attacks on one task, each with the bound that theory gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from data import Task
from models import FloatArray
from training import Settings, target_gradients, train

import pyengine as pe
from pyengine import audit, special

CANDIDATES = 10
Tick = Callable[[], None]


@dataclass(frozen=True)
class Reconstruction:
    """Success of the prior-aware attack beside the bound γ(1/n)."""

    successes: int
    trials: int
    bound: float


def membership(task: Task, settings: Settings, runs: int, seed: int, tick: Tick) -> audit.Finding:
    """Likelihood ratio attack on a record, trained on or not, against the bound of DP-SGD."""
    rng = np.random.default_rng(seed)
    target = _atypical(task)
    known = np.delete(np.arange(len(task.x)), target)
    scores: dict[bool, list[float]] = {False: [], True: []}
    for member in (False, True):
        for _ in range(runs):
            path = list(train(task, known, target if member else None, settings, rng))
            score = audit.log_likelihood_scores(
                np.array([seen for _, seen in path]),
                (
                    target_gradients(task, parameters, np.array([target]), settings.clip)
                    for parameters, _ in path
                ),
                noise=settings.noise_multiplier * settings.clip,
                sampling_probability=settings.sampling_probability,
            )
            scores[member].append(float(score[0]))
            tick()
    mechanism = pe.dp_sgd(settings.noise_multiplier, settings.sampling_probability, settings.steps)
    return audit.Finding(
        "likelihood ratio",
        audit.empirical_trade_off(scores[False], scores[True]),
        lambda alpha: pe.trade_off(mechanism, alpha, adjacency="add"),
    )


def reconstruction(
    task: Task, settings: Settings, runs: int, seed: int, tick: Tick
) -> Reconstruction:
    """Prior-aware attack: tells which one of ten records was trained on."""
    rng = np.random.default_rng(seed)
    successes = 0
    for _ in range(runs):
        candidates = rng.choice(len(task.x), CANDIDATES, replace=False)
        known = np.setdiff1d(np.arange(len(task.x)), candidates)
        right = int(rng.integers(CANDIDATES))
        path = list(train(task, known, int(candidates[right]), settings, rng))
        scores = audit.log_likelihood_scores(
            np.array([seen for _, seen in path]),
            (
                target_gradients(task, parameters, candidates, settings.clip)
                for parameters, _ in path
            ),
            noise=settings.noise_multiplier * settings.clip,
            sampling_probability=settings.sampling_probability,
        )
        successes += int(np.argmax(scores)) == right
        tick()
    mechanism = pe.dp_sgd(settings.noise_multiplier, settings.sampling_probability, settings.steps)
    return Reconstruction(successes, runs, pe.gamma_bound(mechanism, 1.0 / CANDIDATES))


def gradient_likelihood_ratio(
    task: Task, batch: int, runs: int, seed: int, tick: Tick
) -> audit.Finding:
    """GLiR on one step without noise; the gradients' law is estimated from all records."""
    rng = np.random.default_rng(seed)
    gradients = task.model.gradients(task.model.start, task.x, task.y)
    gradients = gradients[:, gradients.std(axis=0) > 0.0]  # the rest says nothing of a record
    law = audit.GradientDistribution.estimated(gradients)
    p_values: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(runs):
        drawn = rng.choice(len(gradients), batch + 1, replace=False)
        mean = gradients[drawn[:batch]].mean(axis=0)
        both = gradients[[drawn[batch], drawn[0]]]  # not in the batch, in the batch
        without, within = audit.glir_log_p_values(mean, both, law, batch_size=batch)
        p_values[False].append(without)
        p_values[True].append(within)
        tick()
    worst = float(law.susceptibility(gradients).max())
    return audit.Finding(
        f"GLiR, batch {batch}",
        audit.empirical_trade_off(-np.array(p_values[False]), -np.array(p_values[True])),
        lambda alpha: special.one_step_sgd_beta(alpha, float(law.dimension), float(batch), worst),
    )


def _atypical(task: Task) -> int:
    """The record with the largest gradient at the start."""
    gradients: FloatArray = task.model.gradients(task.model.start, task.x, task.y)
    return int(np.argmax(np.linalg.norm(gradients, axis=1)))
