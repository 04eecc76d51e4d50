"""Mechanisms as values: what is released, how it is sampled, how often."""

from pyengine.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from pyengine.mechanisms.core import (
    Composition,
    Mechanism,
    PoissonSampled,
    SampledWithoutReplacement,
    Step,
    compose,
    steps_of,
)
from pyengine.mechanisms.dp_sgd import dp_sgd
from pyengine.mechanisms.finite import (
    FinitePair,
    GenericMechanism,
    RandomizedResponse,
    from_probabilities,
)
from pyengine.mechanisms.report import describe

__all__ = [
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
    "Step",
    "compose",
    "describe",
    "dp_sgd",
    "from_probabilities",
    "steps_of",
]
