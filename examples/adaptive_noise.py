"""DP-SGD whose noise falls when the loss stands still, under a filter that admits each step.

python -m examples.adaptive_noise

`Optimizer` stands for the one of Opacus: the accountant's hook reads the same attributes of both.
With Opacus the lines are the same: ``engine.accountant.take_filter(budget)`` after
``make_private``, and ``scheduler.step(loss)`` after ``optimizer.step()``.

What the scheduler sees has noise, too: the sum of clipped losses of the batch, released beside its
gradients.  Both together are one Gaussian release of the noise `together`, and the menu holds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import pyengine as pe
from pyengine.interop import HistoryAccountant

FloatArray = npt.NDArray[np.float64]

RATE = 0.02  # of the Poisson samples
LEVELS = (2.0, 1.5, 1.0)  # of the gradients' noise
LOSS_NOISE, LOSS_CLIP = 8.0, 4.0
TARGET = pe.targets.EpsilonDelta(2.0, 1e-5)


def together(noise: float) -> float:
    """Noise of one release that is as bad as gradients and loss of one batch, rounded down."""
    return math.floor(1e4 / math.hypot(1.0 / noise, 1.0 / LOSS_NOISE)) / 1e4


class Optimizer:
    """Logistic regression by DP-SGD; what Opacus' optimizer shows its hook."""

    accumulated_iterations = 1

    def __init__(self, records: FloatArray, labels: FloatArray, rng: np.random.Generator) -> None:
        self.records, self.labels, self.rng = records, labels, rng
        self.weights = np.zeros(records.shape[1])
        self.noise_multiplier = LEVELS[0]
        self.expected_batch_size = RATE * labels.size
        self.grad_samples: list[FloatArray] = []
        self.hook: Callable[[Any], None] | None = None

    def step(self) -> float:
        """One step on a Poisson sample; the batch's mean loss, with noise."""
        batch = self.rng.random(self.labels.size) < RATE
        x, y = self.records[batch], self.labels[batch]
        margin = y * (x @ self.weights)
        gradients = -(y / (1.0 + np.exp(margin)))[:, None] * x
        gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1))[:, None]
        noise = self.noise_multiplier * self.rng.standard_normal(self.weights.size)
        self.weights -= 2.0 * (gradients.sum(axis=0) + noise) / self.expected_batch_size
        losses = np.minimum(np.logaddexp(0.0, -margin), LOSS_CLIP)
        released = losses.sum() + LOSS_NOISE * LOSS_CLIP * self.rng.standard_normal()
        self.grad_samples = [gradients]
        if self.hook is not None:
            self.hook(self)
        return float(released) / self.expected_batch_size


class LossScheduler:
    """Takes the next level of noise where a moving mean of the released loss no longer falls."""

    def __init__(self, optimizer: Optimizer, patience: int = 40) -> None:
        self.optimizer, self.patience = optimizer, patience
        self.mean, self.best, self.waited = math.nan, math.inf, 0

    def step(self, loss: float) -> None:
        """Look at a released loss."""
        self.mean = loss if math.isnan(self.mean) else 0.9 * self.mean + 0.1 * loss
        self.waited = 0 if self.mean < self.best else self.waited + 1
        self.best = min(self.best, self.mean)
        level = LEVELS.index(self.optimizer.noise_multiplier)
        if self.waited >= self.patience and level + 1 < len(LEVELS):
            self.optimizer.noise_multiplier, self.waited = LEVELS[level + 1], 0


def train(budget: pe.Filter, seed: int = 1) -> tuple[HistoryAccountant, float]:
    """Train until the filter admits no step; the accountant, and the share of right answers."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(10)
    records = rng.standard_normal((5000, 10))
    labels = np.where(records @ truth + rng.logistic(size=5000) > 0.0, 1.0, -1.0)
    accountant = HistoryAccountant()
    accountant.take_filter(budget)
    optimizer = Optimizer(records, labels, rng)
    optimizer.hook = accountant.get_optimizer_hook_fn(RATE)
    scheduler = LossScheduler(optimizer)
    while accountant.allows(noise_multiplier=optimizer.noise_multiplier, sample_rate=RATE):
        scheduler.step(optimizer.step())
    return accountant, float((np.sign(records @ optimizer.weights) == labels).mean())


def made_filter(target: pe.targets.Target = TARGET) -> pe.Filter:
    """A filter of all levels; costs are the squares of what they release, in whole numbers."""
    menu = [pe.GaussianMechanism(together(s)).poisson_sampled(RATE) for s in LEVELS]
    costs = [round(8.0 * math.expm1(together(s) ** -2)) for s in LEVELS]
    return pe.Filter(menu, target, costs=costs)


def main() -> None:
    """Train, and print what was done and what holds of it."""
    budget = made_filter()
    accountant, right = train(budget)
    for noise, rate, steps in accountant.history:
        print(f"{steps:4} steps with noise {noise:g} at rate {rate:g}")
    print(f"{100 * right:.0f} % right; cost {budget.spent} of {budget.budget}")
    print(f"epsilon {accountant.get_epsilon(1e-5):.3f} at delta 1e-5, whatever the loss said")


if __name__ == "__main__":
    main()
