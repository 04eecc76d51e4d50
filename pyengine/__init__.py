"""High-precision numerical engine for differential privacy as hypothesis testing."""

from importlib import import_module
from types import ModuleType

from pyengine import special, threat_models
from pyengine._version import __version__
from pyengine.api import Bounds, delta, epsilon, gamma_bound, trade_off
from pyengine.errors import AccuracyError
from pyengine.mechanisms import (
    Composition,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    FinitePair,
    GaussianMechanism,
    GenericMechanism,
    LaplaceMechanism,
    Mechanism,
    PoissonSampled,
    RandomizedResponse,
    SampledWithoutReplacement,
    compose,
    dp_sgd,
    from_probabilities,
)

__all__ = [
    "AccuracyError",
    "Bounds",
    "Composition",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "FinitePair",
    "GaussianMechanism",
    "GenericMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "PoissonSampled",
    "RandomizedResponse",
    "SampledWithoutReplacement",
    "__version__",
    "compose",
    "delta",
    "dp_sgd",
    "epsilon",
    "from_probabilities",
    "gamma_bound",
    "special",
    "threat_models",
    "trade_off",
]

# Modules that need heavier packages or that few programs use: imported when they are named.
_LAZY = ("audit", "membership", "plots", "resilience", "tables")


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f"pyengine.{name}")
    raise AttributeError(f"module 'pyengine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_LAZY))
