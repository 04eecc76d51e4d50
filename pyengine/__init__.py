"""High-precision numerical engine for differential privacy as hypothesis testing."""

from pyengine import special
from pyengine._version import __version__
from pyengine.api import Bounds, delta, epsilon, gamma_bound, trade_off
from pyengine.errors import AccuracyError
from pyengine.mechanisms import (
    Composition,
    GaussianMechanism,
    Mechanism,
    PoissonSampled,
    compose,
    dp_sgd,
)

__all__ = [
    "AccuracyError",
    "Bounds",
    "Composition",
    "GaussianMechanism",
    "Mechanism",
    "PoissonSampled",
    "__version__",
    "compose",
    "delta",
    "dp_sgd",
    "epsilon",
    "gamma_bound",
    "special",
    "trade_off",
]
