"""Random mechanisms of all families, for audits, records and tests: the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FAMILIES", "MIXED", "Draw", "evenly"]


def evenly(rng: Any, low: float, high: float) -> float:
    """A number between two whose logarithm is uniform, of NumPy's generator or of Python's."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


class Draw:
    """Numbers of a generator, rounded as people would write them."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def real(self, low: float, high: float) -> str:
        """A number between two, its logarithm even."""
        return f"{evenly(self.random, low, high):.4g}"

    def count(self, low: float, high: float) -> int:
        """A whole number between two, its logarithm even."""
        return max(round(float(self.real(low, high))), 1)

    def one_of(self, *items: Any) -> Any:
        """One of some."""
        return items[int(self.random.integers(len(items)))]


def plain(d: Draw) -> str:
    return f"pe.GaussianMechanism({d.real(0.4, 20)}).composed({d.count(1, 200)})"


def sgd(d: Draw) -> str:
    return f"pe.dp_sgd({d.real(0.5, 5)}, {d.real(1e-4, 0.3)}, {d.count(10, 1e5)})"


def few_sgd(d: Draw) -> str:
    return f"pe.dp_sgd({d.real(0.5, 5)}, {d.real(1e-4, 0.5)}, {d.count(1, 30)})"


def rare_sgd(d: Draw) -> str:
    return f"pe.dp_sgd({d.real(0.4, 2)}, {d.real(1e-7, 1e-4)}, {d.count(10, 1e6)})"


def groups(d: Draw) -> str:
    size = d.count(2, 8)
    return (
        f"pe.dp_sgd({d.real(0.7, 5)}, {d.real(1e-4, 0.1)}, {d.count(10, 1e4)}, group_size={size})"
    )


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


def laplace(d: Draw) -> str:
    return f"pe.LaplaceMechanism({d.real(0.6, 15)}).composed({d.count(1, 100)})"


def sampled_laplace(d: Draw) -> str:
    step = f"pe.LaplaceMechanism({d.real(0.6, 8)}).poisson_sampled({d.real(0.003, 0.5)})"
    return f"{step}.composed({d.count(1, 1000)})"


def exponential(d: Draw) -> str:
    return f"pe.ExponentialMechanism({d.real(0.02, 2)}).composed({d.count(1, 100)})"


def response(d: Draw) -> str:
    return f"pe.RandomizedResponse({d.real(0.52, 0.95)}).composed({d.count(1, 15)})"


def generic(d: Draw) -> str:
    return f"pe.GenericMechanism({d.real(0.03, 1)}, {d.real(1e-9, 1e-3)}).composed({d.count(1, 6)})"


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
