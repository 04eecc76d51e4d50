"""Events of dp_accounting for settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pyengine.accounting.conformance.grid import Setting

__all__ = ["event", "relation_of", "takes"]

RELATIONS = {"add_remove": "ADD_OR_REMOVE_ONE", "substitute": "REPLACE_ONE"}
ALONE: dict[str, tuple[str, Callable[[float], tuple[float, ...]]]] = {  # events and their arguments
    "laplace": ("LaplaceDpEvent", lambda noise: (noise,)),
    "discrete_laplace": ("DiscreteLaplaceDpEvent", lambda noise: (1.0 / noise, 1)),
    "discrete_gaussian": ("DiscreteGaussianDpEvent", lambda noise: (noise, 1)),
    "randomized_response": ("RandomizedResponseDpEvent", lambda coin: (coin, 2)),
    "exponential": ("ExponentialMechanismDpEvent", lambda epsilon: (epsilon,)),
    "zcdp": ("ZCDpEvent", lambda rho: (rho,)),
}


def event(setting: Setting) -> Any | None:
    """Event of all steps of a setting, as dp_accounting documents them; None if it has none."""
    import dp_accounting

    module: Any = dp_accounting.dp_event
    noise, p, k = setting.noise_multiplier, setting.sampling_probability, setting.group_size
    if setting.scheme in ALONE:
        name, parameters = ALONE[setting.scheme]
        if not hasattr(module, name):  # an older version of dp_accounting
            return None
        return module.SelfComposedDpEvent(getattr(module, name)(*parameters(noise)), setting.steps)
    gaussian = module.GaussianDpEvent(noise)
    sizes = setting.dataset_size, setting.batch_size
    if setting.scheme == "poisson":
        step = module.PoissonSampledDpEvent(p, gaussian)
    elif setting.scheme == "group":
        weights = [math.comb(k, i) * p**i * (1.0 - p) ** (k - i) for i in range(k + 1)]
        step = module.MixtureOfGaussiansDpEvent(noise, [float(i) for i in range(k + 1)], weights)
    elif setting.scheme == "truncated_poisson":
        step = module.TruncatedSubsampledGaussianDpEvent(sizes[0], p, sizes[1], noise)
    elif setting.scheme == "without_replacement":
        step = module.SampledWithoutReplacementDpEvent(*sizes, gaussian)
    elif setting.scheme == "selection":
        step = module.RepeatAndSelectDpEvent(gaussian, mean=setting.runs, shape=1.0)
    elif setting.scheme == "tree":
        return module.SingleEpochTreeAggregationDpEvent(noise, setting.steps)
    else:
        return None
    return module.SelfComposedDpEvent(step, setting.steps)


def relation_of(setting: Setting) -> str:
    """Name of dp_accounting's neighbouring relation for a setting.

    In a tree a record is replaced by an empty one, as its leaf stays.
    """
    return "REPLACE_SPECIAL" if setting.scheme == "tree" else RELATIONS[setting.adjacency]


def takes(accountant: Any, setting: Setting) -> bool:
    """Whether a new accountant of dp_accounting has the setting's neighbours and its event.

    Without ``neighboring_relation`` it is taken to be for adding or removing a record, and without
    ``supports`` for Poisson samples.
    """
    relation = getattr(accountant, "neighboring_relation", None)
    if getattr(relation, "name", RELATIONS["add_remove"]) != relation_of(setting):
        return False
    if not hasattr(accountant, "supports"):
        return setting.scheme == "poisson"
    made = event(setting)
    return made is not None and bool(accountant.supports(made))
