"""High-precision numerical engine for differential privacy as hypothesis testing."""

from typing import TYPE_CHECKING

from pyengine._support import environment  # noqa: F401 first: it guards what comes from now on
from pyengine._support.lazy import MOVED, finder
from pyengine._version import __version__
from pyengine.api import Bounds, compose, delta, epsilon, gamma_bound, trade_off
from pyengine.errors import AccuracyError, ApproximationWarning, BudgetError, NotDefinedError
from pyengine.mechanisms import (
    Composition,
    GaussianMechanism,
    Mechanism,
    PoissonSampled,
    SampledWithoutReplacement,
    dp_sgd,
    dp_sgd_allocated,
    threat_models,
)
from pyengine.mechanisms import __all__ as _kinds

if TYPE_CHECKING:
    from pyengine import accounting as accounting
    from pyengine import calibration as calibration
    from pyengine import duality as duality
    from pyengine import reference as reference
    from pyengine import special
    from pyengine.accounting import (
        Budget,
        Filter,
        Odometer,
        adaptive,
        individual,
        last_iterate,
    )
    from pyengine.accounting import conformance as conformance
    from pyengine.accounting import interop as interop
    from pyengine.accounting.serialization import from_json, to_json
    from pyengine.api import approximations as approximations
    from pyengine.api import numba as numba
    from pyengine.api import typing as typing
    from pyengine.api.linking import get_include, get_library
    from pyengine.api.shuffled import shuffled_lower_bound
    from pyengine.calibration import Calibration, calibrate, targets
    from pyengine.calibration import gaussian_dp as gaussian_dp
    from pyengine.mechanisms import (
        AboveThreshold,
        AnalyticPair,
        DiscreteGaussianMechanism,
        DiscreteGaussianSum,
        DiscreteLaplaceMechanism,
        DistributionPair,
        ExponentialMechanism,
        FinitePair,
        GaussianMixtureMechanism,
        GaussianReleases,
        GenericMechanism,
        LaplaceMechanism,
        LikelihoodRatio,
        LikelyAnswer,
        Mechanisms,
        RandomizedResponse,
        RandomlyAllocated,
        Releases,
        RenyiCurve,
        RepeatAndSelect,
        RevealedMixture,
        Sensitivity,
        ShuffledRandomizer,
        SkellamMechanism,
        TruncatedPoissonSampled,
        ZeroConcentrated,
        banded_matrix_factorization,
        blt_coefficients,
        expressions,
        from_analytic_densities,
        from_distributions,
        from_log_likelihood_ratio,
        from_probabilities,
        from_profile,
        matrix_mechanism,
        matrix_sensitivity,
        noise_multiplier,
        pate_noisy_max,
        pate_votes,
        permute_and_flip,
        repeat_and_select,
        report_noisy_max,
        revealed_mixture,
        thresholded_histogram,
        toeplitz_mechanism,
        tree_aggregation_matrix,
    )
    from pyengine.threat import baselines as baselines
    from pyengine.threat import membership as membership
    from pyengine.threat import priors as priors
    from pyengine.threat import resilience as resilience
    from pyengine.threat.risks import GaussianFit, bayes_risk, gaussian_fit
    from pyengine.workbench import audit as audit
    from pyengine.workbench import explore as explore
    from pyengine.workbench import plots as plots
    from pyengine.workbench import report as report
    from pyengine.workbench import statement as statement
    from pyengine.workbench import tables as tables
    from pyengine.workbench.runs import load_run

    analytic = expressions

__all__ = [
    "AboveThreshold",
    "AccuracyError",
    "AnalyticPair",
    "ApproximationWarning",
    "Bounds",
    "Budget",
    "BudgetError",
    "Calibration",
    "Composition",
    "DiscreteGaussianMechanism",
    "DiscreteGaussianSum",
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
    "LikelyAnswer",
    "Mechanism",
    "Mechanisms",
    "NotDefinedError",
    "Odometer",
    "PoissonSampled",
    "RandomizedResponse",
    "RandomlyAllocated",
    "Releases",
    "RenyiCurve",
    "RepeatAndSelect",
    "RevealedMixture",
    "SampledWithoutReplacement",
    "Sensitivity",
    "ShuffledRandomizer",
    "SkellamMechanism",
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
    "get_include",
    "get_library",
    "individual",
    "last_iterate",
    "load_run",
    "matrix_mechanism",
    "matrix_sensitivity",
    "noise_multiplier",
    "pate_noisy_max",
    "pate_votes",
    "permute_and_flip",
    "repeat_and_select",
    "report_noisy_max",
    "revealed_mixture",
    "shuffled_lower_bound",
    "special",
    "targets",
    "threat_models",
    "thresholded_histogram",
    "to_json",
    "toeplitz_mechanism",
    "trade_off",
    "tree_aggregation_matrix",
]

# Imported when they are named: what DP-SGD does not need, and modules that need heavier packages.
_LATER = {
    "accounting": "Budget Filter Odometer adaptive individual last_iterate",
    "calibration": "Calibration calibrate",
    "api.linking": "get_include get_library",
    "threat.risks": "GaussianFit bayes_risk gaussian_fit",
    "workbench.runs": "load_run",
    "accounting.serialization": "from_json to_json",
    "api.shuffled": "shuffled_lower_bound",
    "mechanisms": " ".join({*_kinds} & {*__all__} - {*globals()}),
}
_LAZY = (
    "accounting analytic approximations audit baselines conformance duality explore interop "
    "membership numba plots priors reference report resilience special statement tables targets "
    "typing"
)

__getattr__ = finder(__name__, _LATER, {*_LAZY.split(), *MOVED})


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_LAZY.split()})
