"""The kinds of mechanisms: names, constructors and laws, one entry each.

Files, the command line, JSON, the laws of steps and the events of other libraries look here; a new
mechanism is a class and an entry (docs, developer/new_mechanism).  Sampling and composition work
with any kind, and have no entries.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pyengine._support.caches import kept
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.laws.base import StepLaw, sampled_law
from pyengine.laws.bounded_range import BoundedRangeLaw
from pyengine.laws.density import DensityLaw, density_law, ratio_law
from pyengine.laws.discrete import generic_law, noise_law, outcomes_of_response, substituted_law
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.laws.mixture import GaussianMixtureLaw, SubstitutedMixture
from pyengine.laws.substituted import (
    SubstitutedGaussian,
    SubstitutedLaplace,
    spliced_density,
)
from pyengine.mechanisms import (
    AboveThreshold,
    AnalyticPair,
    DiscreteGaussianMechanism,
    DiscreteGaussianSum,
    DiscreteLaplaceMechanism,
    DistributionPair,
    ExponentialMechanism,
    FinitePair,
    GaussianMechanism,
    GaussianMixtureMechanism,
    GaussianReleases,
    GenericMechanism,
    LaplaceMechanism,
    LikelihoodRatio,
    LikelyAnswer,
    Mechanism,
    RandomizedResponse,
    RandomlyAllocated,
    Releases,
    RenyiCurve,
    RepeatAndSelect,
    RevealedMixture,
    ShuffledRandomizer,
    SkellamMechanism,
    Step,
    TruncatedPoissonSampled,
    ZeroConcentrated,
    compose,
    steps_of,
)
from pyengine.mechanisms.revealed import MOST_PARTS
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import BEYOND, in_two_doubles

__all__ = [
    "Kind",
    "added_law",
    "kind_of_step",
    "kinds",
    "named_kinds",
    "plain_law",
    "register",
]

Outcomes = list[tuple[Fraction, Fraction]]
FARTHEST_SHIFT = 1e150  # of a mixture: its square is a double


@dataclass(frozen=True)
class Kind:
    """One kind of mechanism.

    Parameters
    ----------
    mechanism : type
        Its class, derived from `Step`.
    law : callable
        From an unsampled step, and whether noise is shifted by twice the sensitivity (for a
        replaced record), to the ordered pair without and with the record.
    word : str or None
        Its name in files and on the command line, besides that of its class; None for mechanisms
        made of functions, which only Python can hold.
    make : callable, optional
        Makes a step from named numbers, which may be text; the class if not given.
    vectors : tuple of str
        Parameters that are lists of numbers.
    nested : tuple of str
        Parameters that are mechanisms, which files hold as lists of steps.
    texts : tuple of str
        Parameters that are words.
    doubles : mapping
        Parameters that are doubles, and whether decimal numbers in files are rounded "up" or "down"
        to them: in the direction that leaks more.
    outcomes : callable, optional
        From a step to the rational probabilities of each outcome without and with the record; None
        for a step without such.
    replaces : bool
        Whether the parameters also define what replacing a record does.
    substituted : callable, optional
        From a step and a Poisson sampling probability to the pair for a replaced record.
    distance : callable, optional
        Total variation between noise and noise shifted by twice the sensitivity, for continuous
        noise that is sampled without replacement.
    is_trivial : callable, optional
        Whether a step releases nothing about the record, if `Step.share` does not show it.
    event : callable, optional
        From the events module of dp_accounting and a step to the event; None if it has none.
    from_events : mapping
        Names of further events of dp_accounting, and functions that make mechanisms from them.
    joined : callable, optional
        From steps and how often each runs to one law of all of them, where a composition knows more
        than the laws of its steps.  Sampled steps keep their own laws.
    """

    mechanism: type[Step]
    law: Callable[[Any, bool], StepLaw]
    word: str | None = None
    make: Callable[..., Step] | None = None
    vectors: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    doubles: Mapping[str, str] = field(default_factory=dict)
    outcomes: Callable[[Any], Outcomes | None] | None = None
    replaces: bool = False
    substituted: Callable[[Any, Any], StepLaw] | None = None
    distance: Callable[[Any], float] | None = None
    is_trivial: Callable[[Any], bool] | None = None
    event: Callable[[Any, Any], Any] | None = None
    from_events: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    joined: Callable[[list[tuple[Step, int]]], StepLaw] | None = None

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.mechanism.__name__

    @property
    def maker(self) -> Callable[..., Step]:
        """Function that makes a step from named numbers."""
        return self.make or self.mechanism


_KINDS: dict[type[Step], Kind] = {}


def register(kind: Kind) -> None:
    """Register a kind; from then on all questions, files and commands work with it."""
    _KINDS[kind.mechanism] = kind


def kinds() -> list[Kind]:
    """Return all kinds."""
    return list(_KINDS.values())


def named_kinds() -> dict[str, Kind]:
    """Return the kinds that files and JSON can hold, by the names of their classes."""
    return {kind.name: kind for kind in _KINDS.values() if kind.word is not None}


def kind_of_step(step: Step) -> Kind | None:
    """Return the entry of an unsampled step; None if it has none."""
    return next((_KINDS[base] for base in type(step).__mro__ if base in _KINDS), None)


@kept(256)
def added_law(step: Step) -> StepLaw:
    """Return the ordered pair of one step, sampled or not: without the record and with it."""
    inner = step.inner
    share = 1 if inner is step else step.share
    outcomes = _outcomes_of(inner)
    if outcomes is not None:
        p = Fraction(share)
        return FiniteLaw.from_fractions((a, (1 - p) * a + p * b) for a, b in outcomes)
    # Map: Prop. 9 of Lebeda et al. (2024): half the noise | test_lebeda | theory/adjacency
    # without replacement the record pushes another one out: the pair is that of a replaced record
    law = plain_law(inner, doubled=step.scheme == "without_replacement")
    if isinstance(law, FiniteLaw) and share != 1:
        return law.poisson_sampled(share)
    return sampled_law(law, share)


def plain_law(step: Step, *, doubled: bool) -> StepLaw:
    """Return the pair of an unsampled step; ``doubled`` takes twice the sensitivity of noise."""
    kind = kind_of_step(step)
    if kind is None:
        raise NotDefinedError(f"mechanism must have a law of its loss, got {step!r}")
    return kind.law(step, doubled)


def _halved(noise: Any, doubled: bool) -> Fraction:
    """Noise multiplier for the sensitivity, or for twice that if ``doubled``."""
    return Fraction(noise) / (2 if doubled else 1)


def _mixture_law(step: GaussianMixtureMechanism, substitutes: bool) -> StepLaw:
    noise = Fraction(step.noise_multiplier)
    if substitutes and len(step.shifts) == 1:
        return _gaussian_law(GaussianMechanism(noise / Fraction(step.shifts[0])), doubled=True)
    if substitutes and len(step.shifts) == 2 and step.shifts[0] == 0:
        gaussian = GaussianMechanism(noise / Fraction(step.shifts[1]))
        return _substituted_gaussian(gaussian, step.weights[1])
    numbers = [Fraction(c) / noise for c in step.shifts] + [Fraction(w) for w in step.weights]
    highs, lows = zip(*map(in_two_doubles, numbers), strict=True)
    count = len(step.shifts)
    if highs[count - 1] > FARTHEST_SHIFT:
        raise AccuracyError(BEYOND)
    found = GaussianMixtureLaw(highs[:count], highs[count:], lows)
    return SubstitutedMixture(found) if substitutes else found


def _gaussian_law(step: GaussianMechanism, doubled: bool) -> StepLaw:
    high, low = _noise_of(step)
    scale = 0.5 if doubled else 1.0
    return GaussianLaw(scale * high, low=scale * low)


def _noise_of(step: GaussianMechanism) -> tuple[float, float]:
    """The noise as two doubles; 1/noise and 2/noise do not overflow."""
    high, low = in_two_doubles(step.noise_multiplier)
    if high < 2.0 * sys.float_info.min:
        raise AccuracyError(BEYOND)
    return high, low


def _substituted_gaussian(step: GaussianMechanism, p: float | Fraction) -> StepLaw:
    high, low = _noise_of(step)
    return SubstitutedGaussian(high, p, low)


def _gaussian_distance(step: GaussianMechanism) -> float:
    return math.erf(1.0 / (float(step.noise_multiplier) * math.sqrt(2.0)))


def _gaussian_event(module: Any, step: GaussianMechanism) -> Any:
    return module.GaussianDpEvent(float(step.noise_multiplier))


def _outcomes_of_pair(step: FinitePair) -> Outcomes:
    return [(Fraction(a), Fraction(b)) for a, b in zip(step.p, step.q, strict=True)]


def _finite_if_it_is(density: DensityLaw) -> StepLaw:
    return density.as_finite() or density


def _epoch_law(step: RandomlyAllocated, _: bool) -> StepLaw:
    from pyengine.laws.allocation import AllocatedLaw, PairedLaw  # here, as few runs need it

    found = step.places
    if found is None:
        return _epoch_of_others(step)
    high, low = in_two_doubles(found.noise_multiplier)
    if found.has_pairs:
        return PairedLaw(high, step.steps_per_epoch)
    if step.selected > 1:
        raise AccuracyError(
            f"the law of an epoch with each record in {step.selected} of {step.steps_per_epoch} "
            "steps is not known, only bounds: ask method='auto', or 'monte_carlo'"
        )
    return AllocatedLaw(high, step.steps_per_epoch, low)


def _epoch_of_others(step: RandomlyAllocated) -> StepLaw:
    """Law of an epoch of other noise: exact for few outcomes, else enclosed by two laws."""
    from pyengine.laws import random_steps  # here, as few runs need it

    sizes = step.steps_per_epoch, step.selected
    outcomes = _outcomes_of(step.mechanism)
    if outcomes is not None:
        exact = random_steps.allocated_outcomes(outcomes, *sizes)
        if exact is not None:
            return exact
    law = added_law(step.mechanism)
    if isinstance(law, FiniteLaw):
        finite = random_steps.allocated_finite(law, *sizes)
        if finite is not None:
            return finite
    if step.selected > 1:
        longest = -(-step.steps_per_epoch // step.selected)
        raise AccuracyError(
            f"an epoch with each record in {step.selected} of {step.steps_per_epoch} steps has a "
            f"law for Gaussian noise and for few outcomes: ask for {step.selected} epochs of "
            f"{longest} steps, with the record in one of each, which leak no less"
        )
    if not ((law.has_cells or law.is_bracketed) and law.is_proven):
        raise AccuracyError(
            "random allocation has a law for Gaussian noise and for mechanisms whose losses have "
            "proven masses: use poisson_sampled for others"
        )
    return random_steps.OtherEpoch(law, step.steps_per_epoch)


def _analytic_law(step: AnalyticPair, _: bool) -> StepLaw:
    from pyengine.laws.analytic import AnalyticLaw  # here, as few runs need it

    return AnalyticLaw(step)


def _truncated_law(step: TruncatedPoissonSampled, substitutes: bool) -> StepLaw:
    """Batches that are not full, which are Poisson samples, and full ones that displace records."""
    from pyengine.laws.revealed import revealed_law  # here, as few runs need it
    from pyengine.laws.truncated import truncation

    found = truncation(step.probability, step.batch_size, step.dataset_size)
    gaussian = step.mechanism
    twice = _gaussian_law(gaussian, doubled=True)
    if substitutes and step.probability != 1:
        below: StepLaw = _substituted_gaussian(gaussian, step.probability)
    else:
        below = twice if substitutes else _gaussian_law(gaussian, doubled=False)
        below = sampled_law(below, step.probability)
    if found.full == 0:
        return below
    if substitutes:
        # as without replacement: neighbouring batches differ by a replaced record
        full: StepLaw = spliced_density(twice, found.inside, _gaussian_distance(gaussian))
    else:
        full = sampled_law(twice, found.inside)
    if found.rest == 0:
        return full
    return revealed_law((below, full), (Fraction(found.rest), Fraction(found.full)))


def _skellam_law(step: SkellamMechanism, doubled: bool) -> StepLaw:
    from pyengine.laws.integer_sums import skellam_law  # here, as few runs need it

    return skellam_law(step, doubled)


def _gaussian_sum_law(step: DiscreteGaussianSum, doubled: bool) -> StepLaw:
    from pyengine.laws.integer_sums import gaussian_sum_law  # here, as few runs need it

    return gaussian_sum_law(step, doubled)


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


def _outcomes_of(step: Step) -> Outcomes | None:
    kind = kind_of_step(step)
    return None if kind is None or kind.outcomes is None else kind.outcomes(step)


def _outcomes_of_releases(step: Releases) -> Outcomes | None:
    from pyengine.laws.releases import outcomes_together  # here, as few runs need it

    found = [(_outcomes_of(part), number) for part, number in step.parts]
    rational = [(outcomes, number) for outcomes, number in found if outcomes is not None]
    return outcomes_together(rational) if len(rational) == len(found) else None


def _releases_law(step: Releases, doubled: bool) -> StepLaw:
    from pyengine.laws.releases import sum_law  # here, as few runs need it

    parts = [(plain_law(part, doubled=doubled), number) for part, number in step.parts]
    return sum_law(parts, or_enclosed=True)


def _mixture_of_mechanisms(step: RevealedMixture, _: bool) -> StepLaw:
    from pyengine.laws.revealed import revealed_law  # here, as few runs need it

    shares = tuple(Fraction(weight) for weight in step.weights)
    try:
        laws = tuple(map(_whole_law, step.mechanisms))
    except AccuracyError as error:
        raise AccuracyError(
            "a revealed mixture of compositions is answered by what may be drawn, up to "
            f"{MOST_PARTS} compositions, and not on samples: use fewer kinds or draws"
        ) from error
    return revealed_law(laws, shares)


def _above_threshold_law(step: AboveThreshold, _: bool) -> StepLaw:
    from pyengine.laws.above_threshold import above_threshold_law  # here, as few runs need it

    return above_threshold_law(step)


def _likely_answer_law(step: LikelyAnswer, _: bool) -> StepLaw:
    from pyengine.laws.above_threshold import likely_answer_law  # here, as few runs need it

    found = likely_answer_law(step)
    gaussian = GaussianMechanism(step.noise_multiplier)
    return _gaussian_law(gaussian, doubled=False) if found is None else found


def _whole_law(mechanism: Mechanism) -> StepLaw:
    """The pair of all steps together; unsampled Gaussian steps are merged first."""
    from pyengine.laws.releases import sum_law  # here, as few runs need it

    steps = [(step, number) for step, number in steps_of(mechanism) if step.share > 0]
    gaussian = [
        (step.noise.multiplier, number)
        for step, number in steps
        if step.noise is not None and step.noise.family == "gaussian"
    ]
    parts = [
        (added_law(step), number)
        for step, number in steps
        if step.noise is None or step.noise.family != "gaussian"
    ]
    if gaussian:
        noises, times = zip(*gaussian, strict=True)
        parts.append((added_law(GaussianReleases(noises, times)), 1))
    return sum_law(parts)


def _selection_law(step: RepeatAndSelect, _: bool) -> StepLaw:
    raise AccuracyError(
        f"the law of the {step.words.name} is not known, only bounds: ask method='auto', for the "
        "adjacencies 'add', 'remove' and 'add_remove'"
    )


def _curves_law(steps: list[tuple[Step, int]]) -> StepLaw:
    """The pair of the sum of all curves."""
    from pyengine.laws.renyi import CurvePart, curve_law, joined_curve  # here, as few runs need it

    parts = []
    for step, number in steps:
        found = step.described()
        orders = found.get("orders", ())
        values = found["values"] if orders else (found["rho"], found["xi"])
        parts.append(CurvePart(orders, values, found["delta"], number))
    return curve_law(joined_curve(parts))


def _curve_law(step: Step, _: bool) -> StepLaw:
    return _curves_law([(step, 1)])


def _epoch(
    noise_multiplier: Any = None,
    steps_per_epoch: Any = None,
    selected: Any = 1,
    noise_multipliers: Any = None,
    times: Any = None,
    base: Mechanism | None = None,
) -> Step:
    """Make an epoch of one Gaussian release per batch, of several, or of another step."""
    if steps_per_epoch is None:
        raise ValueError("dp_sgd_allocated needs steps_per_epoch")
    several = noise_multipliers is not None
    ways = (noise_multiplier is not None, several, base is not None)
    if sum(ways) != 1 or (times is not None and not several):
        raise ValueError("give noise_multiplier, or noise_multipliers and times, or base")
    if base is not None:
        steps = list(steps_of(base))
        if [number for _, number in steps] != [1]:
            raise ValueError("base must be one step, which is run on each batch")
        run = steps[0][0]
    else:
        run = (
            GaussianReleases(noise_multipliers, times)
            if several
            else GaussianMechanism(noise_multiplier)
        )
    epoch = RandomlyAllocated(run, steps_per_epoch, selected)
    return epoch if epoch.steps_per_epoch > 1 else epoch.mechanism


def _releases(parts: Mechanism) -> Step:
    """All steps on one sample; makes a `Releases` again from what it describes."""
    steps = list(steps_of(parts))
    gaussian = [
        number
        for step, number in steps
        if step.noise is not None and step.noise.family == "gaussian"
    ]
    if len(steps) > 1 and gaussian in ([], [1]):
        return Releases(steps)
    return compose(parts).on_one_sample()


def _event_if_known(module: Any, name: str, *fields: Any) -> Any:
    """Event of this name in dp_accounting; None for a version without it."""
    made = getattr(module, name, None)
    return None if made is None else made(*fields)


def _generic_event(module: Any, step: GenericMechanism) -> Any:
    return _event_if_known(module, "EpsilonDeltaDpEvent", float(step.epsilon), float(step.delta))


def _exponential_event(module: Any, step: ExponentialMechanism) -> Any:
    return _event_if_known(module, "ExponentialMechanismDpEvent", float(step.epsilon))


def _concentrated_event(module: Any, step: ZeroConcentrated) -> Any:
    if step.delta:
        return None
    return _event_if_known(module, "ZCDpEvent", float(step.rho), float(step.xi))


def _discrete_gaussian_event(module: Any, step: DiscreteGaussianMechanism) -> Any:
    sigma = float(Fraction(step.noise_multiplier) * step.sensitivity)
    return _event_if_known(module, "DiscreteGaussianDpEvent", sigma, step.sensitivity, 1)


def _epoch_event(module: Any, step: RandomlyAllocated) -> Any:
    kind = kind_of_step(step.mechanism)
    inner = kind.event(module, step.mechanism) if kind is not None and kind.event else None
    if inner is None:
        return None
    sizes = step.selected, step.steps_per_epoch
    return _event_if_known(module, "RandomAllocationDpEvent", inner, *sizes)


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
        distance=_gaussian_distance,
        event=_gaussian_event,
    ),
    Kind(
        LaplaceMechanism,
        lambda step, doubled: LaplaceLaw(_halved(step.noise_multiplier, doubled)),
        "laplace",
        replaces=True,
        substituted=lambda step, p: SubstitutedLaplace(float(step.noise_multiplier), p),
        distance=lambda step: -fn.expm1(-1.0 / float(step.noise_multiplier)),
        event=lambda module, step: module.LaplaceDpEvent(float(step.noise_multiplier)),
    ),
    Kind(
        DiscreteGaussianMechanism,
        noise_law,
        "discrete_gaussian",
        replaces=True,
        substituted=substituted_law,
        event=_discrete_gaussian_event,
    ),
    Kind(
        DiscreteLaplaceMechanism,
        noise_law,
        "discrete_laplace",
        replaces=True,
        substituted=substituted_law,
        event=_discrete_laplace_event,
    ),
    Kind(SkellamMechanism, _skellam_law, "skellam", replaces=True),
    Kind(DiscreteGaussianSum, _gaussian_sum_law, "discrete_gaussian_sum", replaces=True),
    Kind(
        RandomizedResponse,
        lambda step, _: FiniteLaw.from_fractions(outcomes_of_response(step)),
        "randomized_response",
        outcomes=outcomes_of_response,
        replaces=True,
        event=_response_event,
    ),
    Kind(
        GenericMechanism,
        lambda step, _: generic_law(step),
        "generic",
        replaces=True,
        event=_generic_event,
    ),
    Kind(
        FinitePair,
        lambda step, _: FiniteLaw.from_fractions(_outcomes_of_pair(step)),
        "from_probabilities",
        vectors=("p", "q"),
        outcomes=_outcomes_of_pair,
    ),
    Kind(
        GaussianMixtureMechanism,
        _mixture_law,
        "gaussian_mixture",
        vectors=("shifts", "weights"),
        replaces=True,
        event=_mixture_event,
    ),
    Kind(
        GaussianReleases,
        _gaussian_law,
        "gaussian_releases",
        vectors=("noise_multipliers", "times"),
        replaces=True,
        substituted=_substituted_gaussian,
        distance=_gaussian_distance,
        event=_gaussian_event,
    ),
    Kind(
        RenyiCurve,
        _curve_law,
        "renyi_curve",
        vectors=("orders", "values"),
        doubles={"orders": "down", "values": "up"},
        replaces=True,
        joined=_curves_law,
    ),
    Kind(
        ZeroConcentrated,
        _curve_law,
        "zero_concentrated",
        replaces=True,
        is_trivial=lambda step: step.rho == step.xi == step.delta == 0,
        event=_concentrated_event,
        joined=_curves_law,
    ),
    Kind(
        RepeatAndSelect,
        _selection_law,
        "repeat_and_select",
        nested=("base",),
        texts=("runs",),
        doubles={"mean": "up", "shape": "up", "stopping": "down", "probability": "up"},
    ),
    Kind(
        RevealedMixture,
        _mixture_of_mechanisms,
        "revealed_mixture",
        vectors=("weights",),
        nested=("mechanisms",),
    ),
    Kind(
        Releases,
        _releases_law,
        "releases",
        make=_releases,
        nested=("parts",),
        outcomes=_outcomes_of_releases,
    ),
    Kind(TruncatedPoissonSampled, _truncated_law, replaces=True, event=_truncated_event),
    Kind(
        RandomlyAllocated,
        _epoch_law,
        "dp_sgd_allocated",
        make=_epoch,
        vectors=("noise_multipliers", "times"),
        nested=("base",),
        event=_epoch_event,
    ),
    Kind(
        ExponentialMechanism,
        lambda step, _: BoundedRangeLaw(step.epsilon),
        "exponential",
        replaces=True,  # the range holds for the neighbours it was proven for, in both orders
        is_trivial=lambda step: step.epsilon == 0,
        event=_exponential_event,
    ),
    # in both orders, for any neighbours that move a query by at most its sensitivity
    Kind(AboveThreshold, _above_threshold_law, "above_threshold", replaces=True),
    Kind(
        LikelyAnswer,
        _likely_answer_law,
        "likely_answer",
        replaces=True,
        is_trivial=lambda step: step.missed == 0,
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
