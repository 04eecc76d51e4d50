"""Random mechanisms and questions, for all audits, records, benchmarks and tests.

The draw is the same for the same seed. Families are functions that return Python text, so that
another checkout can ask the same questions; `made` turns a text into a mechanism. Numbers between
two limits have a uniform logarithm; ranges other than the ordinary ones are given as pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FAMILIES", "MIXED", "QUESTIONS", "Draw", "evenly", "made"]

QUESTIONS = ("delta", "epsilon", "gamma_bound", "trade_off")
Range = tuple[float, float]


def evenly(rng: Any, low: float, high: float) -> float:
    """A number between two whose logarithm is uniform, by any generator of uniform numbers."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


class Draw:
    """Numbers of a generator, or of a seed, rounded as people would write them."""

    def __init__(self, source: Any) -> None:
        is_seed = isinstance(source, int | list)
        self.random = np.random.default_rng(source) if is_seed else source

    def number(self, low: float, high: float) -> float:
        """A number between two."""
        return evenly(self.random, low, high)

    def real(self, low: float, high: float) -> str:
        """The same with four digits."""
        return f"{evenly(self.random, low, high):.4g}"

    def count(self, low: float, high: float) -> int:
        """An integer between two."""
        return max(round(float(self.real(low, high))), 1)

    def one_of(self, *items: Any) -> Any:
        """One of several choices."""
        return items[int(self.random.integers(len(items)))]

    def adjacency(self) -> str:
        """An order of neighbours, or both."""
        return str(self.one_of("add", "remove", "add_remove"))

    def question(
        self,
        delta: Range = (0.01, 10.0),
        epsilon: Range = (1e-12, 0.3),
        gamma_bound: Range = (1e-12, 0.5),
        trade_off: Range = (1e-4, 0.95),
    ) -> tuple[str, float]:
        """One of the four questions, and its argument."""
        question = self.one_of(*QUESTIONS)
        ranges = dict(zip(QUESTIONS, (delta, epsilon, gamma_bound, trade_off), strict=True))
        return question, float(self.real(*ranges[question]))


def made(*texts: str) -> Any:
    """The composition of mechanisms that are given as text."""
    import pyengine as pe  # the package under test may be another one

    return eval(" + ".join(texts), {"pe": pe})


def plain(d: Draw, noise: Range = (0.4, 20), steps: Range = (1, 200)) -> str:
    return f"pe.GaussianMechanism({d.real(*noise)}).composed({d.count(*steps)})"


def sgd(
    d: Draw, noise: Range = (0.5, 5), rate: Range = (1e-4, 0.3), steps: Range = (10, 1e5)
) -> str:
    return f"pe.dp_sgd({d.real(*noise)}, {d.real(*rate)}, {d.count(*steps)})"


def few_sgd(d: Draw) -> str:
    return sgd(d, (0.5, 5), (1e-4, 0.5), (1, 30))


def rare_sgd(d: Draw) -> str:
    return sgd(d, (0.4, 2), (1e-7, 1e-4), (10, 1e6))


def groups(
    d: Draw,
    noise: Range = (0.7, 5),
    rate: Range = (1e-4, 0.1),
    steps: Range = (10, 1e4),
    size: Range = (2, 8),
) -> str:
    records = d.count(*size)
    return f"{sgd(d, noise, rate, steps)[:-1]}, group_size={records})"


def truncated(d: Draw) -> str:
    n = d.count(200, 5000)
    b = d.count(0.02 * n, 0.2 * n)
    step = f"truncated_poisson_sampled({b}/{n}, batch_size={2 * b}, dataset_size={n})"
    return f"pe.GaussianMechanism({d.real(0.8, 4)}).{step}.composed({d.count(5, 2000)})"


def fixed_batches(d: Draw) -> str:
    n = d.count(200, 50_000)
    b = d.count(0.005 * n, 0.2 * n)
    step = f"sampled_without_replacement(batch_size={b}, dataset_size={n})"
    return f"pe.GaussianMechanism({d.real(1.5, 8)}).{step}.composed({d.count(5, 2000)})"


def laplace(d: Draw, noise: Range = (0.6, 15), steps: Range = (1, 100)) -> str:
    return f"pe.LaplaceMechanism({d.real(*noise)}).composed({d.count(*steps)})"


def sampled_laplace(d: Draw) -> str:
    step = f"pe.LaplaceMechanism({d.real(0.6, 8)}).poisson_sampled({d.real(0.003, 0.5)})"
    return f"{step}.composed({d.count(1, 1000)})"


def exponential(d: Draw, epsilon: Range = (0.02, 2), steps: Range = (1, 100)) -> str:
    return f"pe.ExponentialMechanism({d.real(*epsilon)}).composed({d.count(*steps)})"


def response(d: Draw, truth: Range = (0.52, 0.95), steps: Range = (1, 15)) -> str:
    return f"pe.RandomizedResponse({d.real(*truth)}).composed({d.count(*steps)})"


def generic(
    d: Draw, epsilon: Range = (0.03, 1), delta: Range = (1e-9, 1e-3), steps: Range = (1, 6)
) -> str:
    step = f"pe.GenericMechanism({d.real(*epsilon)}, {d.real(*delta)})"
    return f"{step}.composed({d.count(*steps)})"


def discrete(d: Draw) -> str:
    name = d.one_of("DiscreteGaussianMechanism", "DiscreteLaplaceMechanism")
    return f"pe.{name}({d.count(1, 15)}).composed({d.count(1, 15)})"


def vectors(d: Draw) -> str:
    counts = (d.random.multinomial(1000, d.random.dirichlet(np.ones(4))) for _ in range(2))
    p, q = ([f"{count}/1000" for count in each] for each in counts)
    return f"pe.from_probabilities({p}, {q}).composed({d.count(1, 6)})"


def allocation(d: Draw) -> str:
    return f"pe.dp_sgd_allocated({d.real(0.7, 4)}, {d.count(3, 200)}, epochs={d.count(1, 10)})"


FAMILIES: dict[str, Callable[[Draw], str]] = {
    each.__name__: each
    for each in (
        plain, sgd, few_sgd, rare_sgd, groups, truncated, fixed_batches, laplace, sampled_laplace,
        exponential, response, generic, discrete, vectors, allocation,
    )
}  # fmt: skip
MIXED = [name for name in FAMILIES if name != "allocation"]
