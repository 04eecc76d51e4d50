"""The package itself, from nothing: the yardstick of the time ratios."""

from __future__ import annotations

from collections.abc import Callable

from pyengine._support.caches import clear_cache
from pyengine._version import DISTRIBUTION
from pyengine.accounting.conformance.grid import Setting
from pyengine.api import delta, epsilon, gamma_bound
from pyengine.mechanisms import GaussianMechanism, Mechanism, dp_sgd, dp_sgd_allocated

__all__ = ["Pyengine"]

QUESTIONS: dict[str, Callable[..., float]] = {
    "gamma": gamma_bound,
    "delta": delta,
    "epsilon": epsilon,
}


class Pyengine:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = DISTRIBUTION
    methods = {"auto": ("gamma", "delta", "epsilon")}  # noqa: RUF012 - a constant

    def supports(self, method: str, setting: Setting) -> bool:  # noqa: ARG002
        """Every setting."""
        return True

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Answer one question from nothing."""
        clear_cache()
        adjacency = setting.adjacency
        if question == "gamma" and adjacency == "add_remove":
            adjacency = "add"
        run = _mechanism(setting)
        return float(QUESTIONS[question](run, at, adjacency=adjacency, method=method))


def _mechanism(setting: Setting) -> Mechanism:
    noise, p, steps = setting.noise_multiplier, setting.sampling_probability, setting.steps
    sizes = {"batch_size": setting.batch_size, "dataset_size": setting.dataset_size}
    if setting.scheme == "truncated_poisson":
        return GaussianMechanism(noise).truncated_poisson_sampled(p, **sizes).composed(steps)
    if setting.scheme == "without_replacement":
        return GaussianMechanism(noise).sampled_without_replacement(**sizes).composed(steps)
    if setting.scheme == "random_allocation":
        return dp_sgd_allocated(noise, steps // setting.epochs, setting.epochs)
    return dp_sgd(noise, p, steps, group_size=setting.group_size)
