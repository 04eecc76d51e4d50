"""High-precision numerical engine for differential privacy as hypothesis testing."""

from importlib import import_module
from types import ModuleType

from pyengine import special, targets, threat_models
from pyengine._version import __version__
from pyengine.api import Bounds, delta, epsilon, gamma_bound, trade_off
from pyengine.calibration import Calibration, calibrate
from pyengine.composing import compose
from pyengine.errors import AccuracyError, ApproximationWarning, NotDefinedError
from pyengine.mechanisms import (
    Composition,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    DistributionPair,
    ExponentialMechanism,
    FinitePair,
    GaussianMechanism,
    GaussianMixtureMechanism,
    GenericMechanism,
    LaplaceMechanism,
    LikelihoodRatio,
    Mechanism,
    PoissonSampled,
    RandomizedResponse,
    RandomlyAllocated,
    SampledWithoutReplacement,
    Sensitivity,
    ShuffledRandomizer,
    TruncatedPoissonSampled,
    banded_matrix_factorization,
    dp_sgd,
    dp_sgd_allocated,
    from_distributions,
    from_log_likelihood_ratio,
    from_probabilities,
    from_profile,
    matrix_mechanism,
    matrix_sensitivity,
    tree_aggregation_matrix,
)
from pyengine.serialization import from_json, to_json
from pyengine.shuffled import shuffled_lower_bound

__all__ = [
    "AccuracyError",
    "ApproximationWarning",
    "Bounds",
    "Calibration",
    "Composition",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "DistributionPair",
    "ExponentialMechanism",
    "FinitePair",
    "GaussianMechanism",
    "GaussianMixtureMechanism",
    "GenericMechanism",
    "LaplaceMechanism",
    "LikelihoodRatio",
    "Mechanism",
    "NotDefinedError",
    "PoissonSampled",
    "RandomizedResponse",
    "RandomlyAllocated",
    "SampledWithoutReplacement",
    "Sensitivity",
    "ShuffledRandomizer",
    "TruncatedPoissonSampled",
    "__version__",
    "banded_matrix_factorization",
    "calibrate",
    "compose",
    "delta",
    "dp_sgd",
    "dp_sgd_allocated",
    "epsilon",
    "from_distributions",
    "from_json",
    "from_log_likelihood_ratio",
    "from_probabilities",
    "from_profile",
    "gamma_bound",
    "matrix_mechanism",
    "matrix_sensitivity",
    "shuffled_lower_bound",
    "special",
    "targets",
    "threat_models",
    "to_json",
    "trade_off",
    "tree_aggregation_matrix",
]

# Modules that need heavier packages or that few programs use: imported when they are named.
_LAZY = (
    "approximations",
    "audit",
    "baselines",
    "conformance",
    "duality",
    "explore",
    "interop",
    "membership",
    "plots",
    "priors",
    "reference",
    "report",
    "resilience",
    "statement",
    "tables",
)


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f"pyengine.{name}")
    raise AttributeError(f"module 'pyengine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_LAZY))
