"""High-precision numerical engine for differential privacy as hypothesis testing."""

from typing import TYPE_CHECKING

from pyengine import (
    _environment,  # noqa: F401 first: it guards what is imported from now on
    threat_models,
)
from pyengine._lazy import finder
from pyengine._version import __version__
from pyengine.api import Bounds, delta, epsilon, gamma_bound, trade_off
from pyengine.composing import compose
from pyengine.errors import (
    AccuracyError,
    ApproximationWarning,
    BudgetError,
    NotDefinedError,
)
from pyengine.mechanisms import (
    Composition,
    GaussianMechanism,
    Mechanism,
    PoissonSampled,
    SampledWithoutReplacement,
    dp_sgd,
    dp_sgd_allocated,
)

if TYPE_CHECKING:
    from pyengine import special, targets
    from pyengine.accounting import Budget, Filter, Odometer, adaptive
    from pyengine.calibration import Calibration, calibrate
    from pyengine.mechanisms import (
        AnalyticPair,
        DiscreteGaussianMechanism,
        DiscreteLaplaceMechanism,
        DistributionPair,
        ExponentialMechanism,
        FinitePair,
        GaussianMixtureMechanism,
        GaussianReleases,
        GenericMechanism,
        LaplaceMechanism,
        LikelihoodRatio,
        RandomizedResponse,
        RandomlyAllocated,
        Releases,
        RenyiCurve,
        RevealedMixture,
        Sensitivity,
        ShuffledRandomizer,
        TruncatedPoissonSampled,
        ZeroConcentrated,
        banded_matrix_factorization,
        blt_coefficients,
        from_analytic_densities,
        from_distributions,
        from_log_likelihood_ratio,
        from_probabilities,
        from_profile,
        matrix_mechanism,
        matrix_sensitivity,
        noise_multiplier,
        revealed_mixture,
        toeplitz_mechanism,
        tree_aggregation_matrix,
    )
    from pyengine.risks import GaussianFit, bayes_risk, gaussian_fit
    from pyengine.serialization import from_json, to_json
    from pyengine.shuffled import shuffled_lower_bound

__all__ = [
    "AccuracyError",
    "AnalyticPair",
    "ApproximationWarning",
    "Bounds",
    "Budget",
    "BudgetError",
    "Calibration",
    "Composition",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "DistributionPair",
    "ExponentialMechanism",
    "Filter",
    "FinitePair",
    "GaussianFit",
    "GaussianMechanism",
    "GaussianMixtureMechanism",
    "GaussianReleases",
    "GenericMechanism",
    "LaplaceMechanism",
    "LikelihoodRatio",
    "Mechanism",
    "NotDefinedError",
    "Odometer",
    "PoissonSampled",
    "RandomizedResponse",
    "RandomlyAllocated",
    "Releases",
    "RenyiCurve",
    "RevealedMixture",
    "SampledWithoutReplacement",
    "Sensitivity",
    "ShuffledRandomizer",
    "TruncatedPoissonSampled",
    "ZeroConcentrated",
    "__version__",
    "adaptive",
    "banded_matrix_factorization",
    "bayes_risk",
    "blt_coefficients",
    "calibrate",
    "compose",
    "delta",
    "dp_sgd",
    "dp_sgd_allocated",
    "epsilon",
    "from_analytic_densities",
    "from_distributions",
    "from_json",
    "from_log_likelihood_ratio",
    "from_probabilities",
    "from_profile",
    "gamma_bound",
    "gaussian_fit",
    "matrix_mechanism",
    "matrix_sensitivity",
    "noise_multiplier",
    "revealed_mixture",
    "shuffled_lower_bound",
    "special",
    "targets",
    "threat_models",
    "to_json",
    "toeplitz_mechanism",
    "trade_off",
    "tree_aggregation_matrix",
]

# Imported when they are named: what DP-SGD does not need, and modules that need heavier packages.
_LATER = {
    "accounting": ("Budget", "Filter", "Odometer", "adaptive"),
    "calibration": ("Calibration", "calibrate"),
    "mechanisms": (
        "AnalyticPair",
        "DiscreteGaussianMechanism",
        "DiscreteLaplaceMechanism",
        "DistributionPair",
        "ExponentialMechanism",
        "FinitePair",
        "GaussianMixtureMechanism",
        "GaussianReleases",
        "GenericMechanism",
        "LaplaceMechanism",
        "LikelihoodRatio",
        "RandomizedResponse",
        "RandomlyAllocated",
        "Releases",
        "RenyiCurve",
        "RevealedMixture",
        "Sensitivity",
        "ShuffledRandomizer",
        "TruncatedPoissonSampled",
        "ZeroConcentrated",
        "banded_matrix_factorization",
        "blt_coefficients",
        "from_analytic_densities",
        "from_distributions",
        "from_log_likelihood_ratio",
        "from_probabilities",
        "from_profile",
        "matrix_mechanism",
        "matrix_sensitivity",
        "noise_multiplier",
        "revealed_mixture",
        "toeplitz_mechanism",
        "tree_aggregation_matrix",
    ),
    "risks": ("GaussianFit", "bayes_risk", "gaussian_fit"),
    "serialization": ("from_json", "to_json"),
    "shuffled": ("shuffled_lower_bound",),
}
_LAZY = (
    "accounting",
    "analytic",
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
    "special",
    "statement",
    "tables",
    "targets",
)


__getattr__ = finder(__name__, _LATER, _LAZY)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAZY})
