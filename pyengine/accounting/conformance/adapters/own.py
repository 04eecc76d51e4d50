"""The package itself, with empty caches: the yardstick of the time ratios."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from pyengine._support.caches import clear_cache
from pyengine._version import DISTRIBUTION
from pyengine.accounting.conformance.grid import Setting
from pyengine.api import delta, epsilon, gamma_bound
from pyengine.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    RandomizedResponse,
    Step,
    ZeroConcentrated,
    dp_sgd,
    dp_sgd_allocated,
    matrix_mechanism,
    repeat_and_select,
    tree_aggregation_matrix,
)

__all__ = ["Pyengine"]

QUESTIONS: dict[str, Callable[..., float]] = {
    "gamma": gamma_bound,
    "delta": delta,
    "epsilon": epsilon,
}
ALONE: dict[str, Callable[[float], Step]] = {
    "laplace": LaplaceMechanism,
    "discrete_laplace": DiscreteLaplaceMechanism,
    "discrete_gaussian": DiscreteGaussianMechanism,
    "randomized_response": lambda coin: RandomizedResponse(1 - Fraction(coin) / 2),
    "exponential": ExponentialMechanism,
    "zcdp": ZeroConcentrated,
}


class Pyengine:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = DISTRIBUTION
    methods = {"auto": ("gamma", "delta", "epsilon")}  # noqa: RUF012 - a constant

    def supports(self, method: str, setting: Setting) -> bool:  # noqa: ARG002
        """True for every setting."""
        return True

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Answer one question with empty caches."""
        clear_cache()
        adjacency = setting.adjacency
        if question == "gamma" and adjacency == "add_remove":
            adjacency = "add"
        run = _mechanism(setting)
        return float(QUESTIONS[question](run, at, adjacency=adjacency, method=method))


def _mechanism(setting: Setting) -> Mechanism:
    noise, p, steps = setting.noise_multiplier, setting.sampling_probability, setting.steps
    if setting.scheme in ALONE:
        return ALONE[setting.scheme](noise).composed(steps)
    if setting.scheme == "tree":
        return matrix_mechanism(noise, tree_aggregation_matrix(steps))
    if setting.scheme == "selection":
        run = repeat_and_select(GaussianMechanism(noise), "geometric", stopping=1.0 / setting.runs)
        return run.composed(steps)
    sizes = {"batch_size": setting.batch_size, "dataset_size": setting.dataset_size}
    if setting.scheme == "truncated_poisson":
        return GaussianMechanism(noise).truncated_poisson_sampled(p, **sizes).composed(steps)
    if setting.scheme == "without_replacement":
        return GaussianMechanism(noise).sampled_without_replacement(**sizes).composed(steps)
    if setting.scheme == "random_allocation":
        return dp_sgd_allocated(noise, steps // setting.epochs, setting.epochs)
    return dp_sgd(noise, p, steps, group_size=setting.group_size)
