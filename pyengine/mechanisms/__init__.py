"""Mechanisms as values: what is released, how it is sampled, how often.

The parts of DP-SGD are imported with the package, all other mechanisms on first use.
"""

from typing import TYPE_CHECKING

from pyengine._support import checks
from pyengine._support.environment import guarded
from pyengine._support.lazy import finder
from pyengine.mechanisms.core import (
    Composition,
    Mechanism,
    Noise,
    PoissonSampled,
    SampledWithoutReplacement,
    Stage,
    Step,
    as_mechanism,
    checked_mechanism,
    compose,
    steps_of,
)
from pyengine.mechanisms.dp_sgd import dp_sgd, dp_sgd_allocated
from pyengine.mechanisms.gaussian import GaussianMechanism

if TYPE_CHECKING:
    from pyengine.mechanisms.additive import (
        DiscreteGaussianMechanism,
        DiscreteGaussianSum,
        DiscreteLaplaceMechanism,
        LaplaceMechanism,
        SkellamMechanism,
    )
    from pyengine.mechanisms.analytic import AnalyticPair, from_analytic_densities
    from pyengine.mechanisms.batches import RandomlyAllocated, TruncatedPoissonSampled
    from pyengine.mechanisms.choices import (
        pate_noisy_max,
        pate_votes,
        permute_and_flip,
        report_noisy_max,
        thresholded_histogram,
    )
    from pyengine.mechanisms.curves import RenyiCurve, ZeroConcentrated
    from pyengine.mechanisms.finite import (
        AboveThreshold,
        ExponentialMechanism,
        FinitePair,
        GenericMechanism,
        LikelyAnswer,
        RandomizedResponse,
        from_probabilities,
    )
    from pyengine.mechanisms.general import (
        DistributionPair,
        LikelihoodRatio,
        from_distributions,
        from_log_likelihood_ratio,
        from_profile,
    )
    from pyengine.mechanisms.many import Mechanisms
    from pyengine.mechanisms.matrix import (
        banded_matrix_factorization,
        blt_coefficients,
        matrix_mechanism,
        toeplitz_mechanism,
        tree_aggregation_matrix,
    )
    from pyengine.mechanisms.mixture import GaussianMixtureMechanism
    from pyengine.mechanisms.multiplier import noise_multiplier
    from pyengine.mechanisms.participation import Sensitivity, matrix_sensitivity
    from pyengine.mechanisms.releases import GaussianReleases, Releases
    from pyengine.mechanisms.report import Label, describe, in_words, label_of, step_in_words
    from pyengine.mechanisms.revealed import RevealedMixture, revealed_mixture
    from pyengine.mechanisms.selection import RepeatAndSelect, repeat_and_select
    from pyengine.mechanisms.shuffled import ShuffledRandomizer

__all__ = [
    "AboveThreshold",
    "AnalyticPair",
    "Composition",
    "DiscreteGaussianMechanism",
    "DiscreteGaussianSum",
    "DiscreteLaplaceMechanism",
    "DistributionPair",
    "ExponentialMechanism",
    "FinitePair",
    "GaussianMechanism",
    "GaussianMixtureMechanism",
    "GaussianReleases",
    "GenericMechanism",
    "Label",
    "LaplaceMechanism",
    "LikelihoodRatio",
    "LikelyAnswer",
    "Mechanism",
    "Mechanisms",
    "Noise",
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
    "Stage",
    "Step",
    "TruncatedPoissonSampled",
    "ZeroConcentrated",
    "as_mechanism",
    "banded_matrix_factorization",
    "blt_coefficients",
    "checked_mechanism",
    "compose",
    "describe",
    "dp_sgd",
    "dp_sgd_allocated",
    "from_analytic_densities",
    "from_distributions",
    "from_log_likelihood_ratio",
    "from_probabilities",
    "from_profile",
    "in_words",
    "label_of",
    "matrix_mechanism",
    "matrix_sensitivity",
    "noise_multiplier",
    "pate_noisy_max",
    "pate_votes",
    "permute_and_flip",
    "repeat_and_select",
    "report_noisy_max",
    "revealed_mixture",
    "step_in_words",
    "steps_of",
    "thresholded_histogram",
    "toeplitz_mechanism",
    "tree_aggregation_matrix",
]

_LATER = {
    "additive": "DiscreteGaussianMechanism DiscreteGaussianSum DiscreteLaplaceMechanism "
    "LaplaceMechanism SkellamMechanism",
    "analytic": "AnalyticPair from_analytic_densities",
    "batches": "RandomlyAllocated TruncatedPoissonSampled",
    "choices": "pate_noisy_max pate_votes permute_and_flip report_noisy_max thresholded_histogram",
    "curves": "RenyiCurve ZeroConcentrated",
    "finite": "AboveThreshold ExponentialMechanism FinitePair GenericMechanism LikelyAnswer "
    "RandomizedResponse from_probabilities",
    "general": "DistributionPair LikelihoodRatio from_distributions from_log_likelihood_ratio "
    "from_profile",
    "matrix": "banded_matrix_factorization blt_coefficients matrix_mechanism toeplitz_mechanism "
    "tree_aggregation_matrix",
    "many": "Mechanisms",
    "mixture": "GaussianMixtureMechanism",
    "multiplier": "noise_multiplier",
    "participation": "Sensitivity matrix_sensitivity",
    "releases": "GaussianReleases Releases",
    "report": "Label describe in_words label_of step_in_words",
    "revealed": "RevealedMixture revealed_mixture",
    "selection": "RepeatAndSelect repeat_and_select",
    "shuffled": "ShuffledRandomizer",
}

__getattr__ = finder(__name__, _LATER)


def _shown(mechanism: Mechanism) -> str:
    from pyengine.mechanisms.report import summary

    return summary(mechanism)


def _shown_as_html(mechanism: Mechanism) -> str:
    from pyengine.mechanisms.report import shown_as_html

    return shown_as_html(mechanism)


Mechanism._repr_html_ = guarded(_shown_as_html)  # type: ignore[attr-defined]
Mechanism.__repr__ = guarded(_shown)  # type: ignore[method-assign]


def _on_one_sample(self: Composition) -> Step:
    from pyengine.mechanisms.releases import on_one_sample

    return on_one_sample(self)


def _randomly_allocated(self: Step, steps: int, selected: int = 1) -> Mechanism:
    from pyengine.mechanisms.batches import RandomlyAllocated

    epoch = RandomlyAllocated(self, checks.count("steps", steps, least=1), selected)
    if epoch.selected == epoch.steps_per_epoch:
        return self if epoch.steps_per_epoch == 1 else self.composed(epoch.selected)
    return epoch


_on_one_sample.__doc__ = Composition.on_one_sample.__doc__
Composition.on_one_sample = guarded(_on_one_sample)  # type: ignore[method-assign]
_randomly_allocated.__doc__ = Step.randomly_allocated.__doc__
Step.randomly_allocated = guarded(_randomly_allocated)  # type: ignore[method-assign]
