"""The kinds of mechanisms: names, constructors and laws, one entry each.

Files, the command line, JSON, the laws of steps and the events of other libraries look here; a new
mechanism is a class and an entry (docs, developer/new_mechanism).  Sampling and composition are
made of any kind, and have no entries.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw, sampled_law
from pyengine.laws.bounded_range import BoundedRangeLaw
from pyengine.laws.density import DensityLaw, density_law, ratio_law
from pyengine.laws.discrete import generic_law, noise_law, outcomes_of_response, substituted_law
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.laws.mixture import GaussianMixtureLaw
from pyengine.laws.substituted import SubstitutedGaussian, SubstitutedLaplace
from pyengine.mechanisms import (
    AnalyticPair,
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
    RandomizedResponse,
    RandomlyAllocated,
    ShuffledRandomizer,
    Step,
    TruncatedPoissonSampled,
    allocated_epoch,
    from_probabilities,
)
from pyengine.numerics.exact_numbers import in_two_doubles

__all__ = ["Kind", "kind_of_step", "kinds", "named_kinds", "register"]

Outcomes = list[tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class Kind:
    """One kind of mechanism.

    Parameters
    ----------
    mechanism : type
        Its class, derived from `Step`.
    law : callable
        From an unsampled step, and whether noise is shifted by twice the sensitivity (one record
        takes the place of another), to the ordered pair without and with the record.
    word : str or None
        What it is called in files and on the command line, besides the name of its class; None for
        what is made of functions, which only Python can hold.
    make : callable, optional
        Makes a step of named numbers, which may be text; the class if not given.
    vectors : tuple of str
        Parameters that are lists of numbers.
    is_flag : bool
        Whether the command line can hold its parameters.
    read : callable, optional
        Makes a step of what JSON holds; ``make`` if not given.
    outcomes : callable, optional
        Probabilities of each outcome without and with the record, where they are rational.
    replaces : bool
        Whether it says what another record in the place of one does.
    substituted : callable, optional
        From a step and a Poisson sampling probability to the pair of that.
    distance : callable, optional
        Total variation between noise and noise shifted by twice the sensitivity, of continuous
        noise that is sampled without replacement.
    is_trivial : callable, optional
        Whether a step releases nothing about the record, where its `Step.share` does not say so.
    event : callable, optional
        From the module of events of dp_accounting and a step to the event; None where that one has
        none.
    from_events : mapping
        By the names of further events of dp_accounting, what makes mechanisms of them.
    """

    mechanism: type[Step]
    law: Callable[[Any, bool], StepLaw]
    word: str | None = None
    make: Callable[..., Step] | None = None
    vectors: tuple[str, ...] = ()
    is_flag: bool = True
    read: Callable[..., Step] | None = None
    outcomes: Callable[[Any], Outcomes] | None = None
    replaces: bool = False
    substituted: Callable[[Any, Any], StepLaw] | None = None
    distance: Callable[[Any], float] | None = None
    is_trivial: Callable[[Any], bool] | None = None
    event: Callable[[Any, Any], Any] | None = None
    from_events: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.mechanism.__name__

    @property
    def maker(self) -> Callable[..., Step]:
        """What makes a step of named numbers."""
        return self.make or self.mechanism

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(inspect.signature(self.maker).parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of those without defaults."""
        given = inspect.signature(self.maker).parameters.values()
        return tuple(item.name for item in given if item.default is item.empty)


_KINDS: dict[type[Step], Kind] = {}


def register(kind: Kind) -> None:
    """Enter a kind; all that can be asked of mechanisms can be asked of it from then on."""
    _KINDS[kind.mechanism] = kind


def kinds() -> list[Kind]:
    """Return all kinds."""
    return list(_KINDS.values())


def named_kinds() -> dict[str, Kind]:
    """Return the kinds that files can name, by the names of their classes."""
    return {kind.name: kind for kind in _KINDS.values() if kind.word is not None}


def kind_of_step(step: Step) -> Kind | None:
    """Return the entry of an unsampled step; None for what has none."""
    return next((_KINDS[base] for base in type(step).__mro__ if base in _KINDS), None)


def _halved(noise: Any, doubled: bool) -> Fraction:
    """Noise over a sensitivity that is ``doubled``."""
    return Fraction(noise) / (2 if doubled else 1)


def _mixture_law(step: GaussianMixtureMechanism, _: bool) -> StepLaw:
    noise = Fraction(step.noise_multiplier)
    numbers = [Fraction(c) / noise for c in step.shifts] + [Fraction(w) for w in step.weights]
    highs, lows = zip(*map(in_two_doubles, numbers), strict=True)
    count = len(step.shifts)
    return GaussianMixtureLaw(highs[:count], highs[count:], lows)


def _gaussian_law(step: GaussianMechanism, doubled: bool) -> StepLaw:
    high, low = in_two_doubles(step.noise_multiplier)
    scale = 0.5 if doubled else 1.0
    return GaussianLaw(scale * high, low=scale * low)


def _substituted_gaussian(step: GaussianMechanism, p: float | Fraction) -> StepLaw:
    high, low = in_two_doubles(step.noise_multiplier)
    return SubstitutedGaussian(high, p, low)


def _outcomes_of_pair(step: FinitePair) -> Outcomes:
    return [(Fraction(a), Fraction(b)) for a, b in zip(step.p, step.q, strict=True)]


def _finite_if_it_is(density: DensityLaw) -> StepLaw:
    return density.as_finite() or density


def _epoch_law(step: RandomlyAllocated, _: bool) -> StepLaw:
    from pyengine.laws.allocation import AllocatedLaw  # here, as few runs need it

    if step.selected > 1:
        raise AccuracyError(
            f"the law of an epoch with each record in {step.selected} of {step.steps_per_epoch} "
            "steps is not known, only bounds: ask method='auto', or 'monte_carlo'"
        )
    high, low = in_two_doubles(step.mechanism.noise_multiplier)
    return AllocatedLaw(high, step.steps_per_epoch, low)


def _analytic_law(step: AnalyticPair, _: bool) -> StepLaw:
    from pyengine.laws.analytic import AnalyticLaw  # here, as few runs need it

    return AnalyticLaw(step)


def _truncated_law(step: TruncatedPoissonSampled, _: bool) -> StepLaw:
    """Samples of the others below the largest size, and full ones, where records are displaced."""
    from pyengine.laws.truncated import RevealedMixtureLaw, truncation  # here, as few runs need it

    found = truncation(step.probability, step.batch_size, step.dataset_size)
    below = sampled_law(_gaussian_law(step.mechanism, doubled=False), step.probability)
    if found.full == 0:
        return below
    full = sampled_law(_gaussian_law(step.mechanism, doubled=True), found.inside)
    if found.rest == 0:
        return full
    return RevealedMixtureLaw(below, full, found.rest, found.full)


def _shuffled_law(step: ShuffledRandomizer, _: bool) -> StepLaw:
    from pyengine.laws.shuffled import shuffled_law  # here, as few runs need it

    return shuffled_law(step.local_epsilon, step.users)


def _truncated_event(module: Any, step: TruncatedPoissonSampled) -> Any:
    return module.TruncatedSubsampledGaussianDpEvent(
        dataset_size=step.dataset_size,
        sampling_probability=float(step.probability),
        truncated_batch_size=step.batch_size,
        noise_multiplier=float(step.mechanism.noise_multiplier),
    )


def _read_pair(p: Any, q: Any) -> FinitePair:
    """Pair of these very probabilities, which were normalised before they were written."""
    checked = from_probabilities(p, q)
    if all(isinstance(entry, float) for entry in (*p, *q)):
        return FinitePair(tuple(p), tuple(q))
    return checked


def _read_epoch(noise_multiplier: Any, steps_per_epoch: Any, selected: Any = 1) -> Step:
    return RandomlyAllocated(GaussianMechanism(noise_multiplier), steps_per_epoch, selected)


def _discrete_laplace_event(module: Any, step: DiscreteLaplaceMechanism) -> Any:
    parameter = 1 / (Fraction(step.noise_multiplier) * step.sensitivity)
    return module.DiscreteLaplaceDpEvent(float(parameter), step.sensitivity)


def _response_event(module: Any, step: RandomizedResponse) -> Any:
    share = Fraction(step.categories, step.categories - 1)
    parameter = (1 - Fraction(step.truth_probability)) * share
    if parameter > 1:
        return None
    return module.RandomizedResponseDpEvent(float(parameter), step.categories)


def _mixture_event(module: Any, step: GaussianMixtureMechanism) -> Any:
    parts = ([float(x) for x in numbers] for numbers in (step.shifts, step.weights))
    return module.MixtureOfGaussiansDpEvent(float(step.noise_multiplier), *parts)


for _kind in (
    Kind(
        GaussianMechanism,
        _gaussian_law,
        "gaussian",
        replaces=True,
        substituted=_substituted_gaussian,
        distance=lambda step: math.erf(1.0 / (float(step.noise_multiplier) * math.sqrt(2.0))),
        event=lambda module, step: module.GaussianDpEvent(float(step.noise_multiplier)),
    ),
    Kind(
        LaplaceMechanism,
        lambda step, doubled: LaplaceLaw(_halved(step.noise_multiplier, doubled)),
        "laplace",
        replaces=True,
        substituted=lambda step, p: SubstitutedLaplace(float(step.noise_multiplier), p),
        distance=lambda step: -math.expm1(-1.0 / float(step.noise_multiplier)),
        event=lambda module, step: module.LaplaceDpEvent(float(step.noise_multiplier)),
    ),
    Kind(
        DiscreteGaussianMechanism,
        noise_law,
        "discrete_gaussian",
        replaces=True,
        substituted=substituted_law,
    ),
    Kind(
        DiscreteLaplaceMechanism,
        noise_law,
        "discrete_laplace",
        replaces=True,
        substituted=substituted_law,
        event=_discrete_laplace_event,
    ),
    Kind(
        RandomizedResponse,
        lambda step, _: FiniteLaw.from_fractions(outcomes_of_response(step)),
        "randomized_response",
        outcomes=outcomes_of_response,
        replaces=True,
        event=_response_event,
    ),
    Kind(GenericMechanism, lambda step, _: generic_law(step), "generic", replaces=True),
    Kind(
        FinitePair,
        lambda step, _: FiniteLaw.from_fractions(_outcomes_of_pair(step)),
        "from_probabilities",
        make=from_probabilities,
        vectors=("p", "q"),
        is_flag=False,  # its p is not that of sampling
        read=_read_pair,
        outcomes=_outcomes_of_pair,
    ),
    Kind(
        GaussianMixtureMechanism,
        _mixture_law,
        "gaussian_mixture",
        vectors=("shifts", "weights"),
        event=_mixture_event,
    ),
    Kind(TruncatedPoissonSampled, _truncated_law, event=_truncated_event),
    Kind(RandomlyAllocated, _epoch_law, "dp_sgd_allocated", make=allocated_epoch, read=_read_epoch),
    Kind(
        ExponentialMechanism,
        lambda step, _: BoundedRangeLaw(float(step.epsilon)),
        "exponential",
        is_trivial=lambda step: step.epsilon == 0,
    ),
    Kind(
        ShuffledRandomizer,
        _shuffled_law,
        "shuffled_randomizer",
        replaces=True,
        is_trivial=lambda step: step.local_epsilon == 0,
    ),
    Kind(DistributionPair, lambda step, _: _finite_if_it_is(density_law(step))),
    Kind(AnalyticPair, _analytic_law, is_trivial=lambda step: bool(step.log_p == step.log_q)),
    Kind(LikelihoodRatio, lambda step, _: _finite_if_it_is(ratio_law(step))),
):
    register(_kind)
