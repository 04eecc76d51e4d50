"""Events of dp_accounting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from pyengine._support.extras import needed
from pyengine.laws.kinds import kind_of_step, kinds
from pyengine.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GaussianMixtureMechanism,
    GenericMechanism,
    LaplaceMechanism,
    Mechanism,
    RandomizedResponse,
    Step,
    ZeroConcentrated,
    compose,
    permute_and_flip,
    repeat_and_select,
    steps_of,
)
from pyengine.mechanisms.mixture import repeated_draws
from pyengine.mechanisms.words import Words, worded
from pyengine.numerics.selection import stopping_of

__all__ = [
    "best_of",
    "discrete_gaussian",
    "from_dp_event",
    "to_dp_event",
    "with_replacement",
]


def from_dp_event(event: Any) -> Mechanism:
    """Make the mechanism that a tree of dp_accounting events describes.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        ``NoOp``, ``NonPrivate``, ``EpsilonDelta``, ``ZCDp``, ``Gaussian``, ``Laplace``,
        ``DiscreteLaplace``, ``DiscreteGaussian``, ``RandomizedResponse``, ``ExponentialMechanism``,
        ``PermuteAndFlip``, ``MixtureOfGaussians``, ``SingleEpochTreeAggregation`` and
        ``TruncatedSubsampledGaussian`` events, ``PoissonSampled`` and
        ``SampledWithoutReplacement`` ones of them, ``RandomAllocation`` ones,
        ``SampledWithReplacement`` ones of Gaussian noise, ``RepeatAndSelect``, ``SelfComposed`` and
        ``Composed`` ones of all these.

    Returns
    -------
    Mechanism
        Exact: parameters are the doubles of the event, or exact functions of them.  Gaussian
        events that share one sample become one Gaussian mechanism, whose noise multiplier is
        rounded once.  Some events become a mechanism that dominates them: truncated samples
        (without noise, samples that are not truncated); ``ZCDp``, and ``DiscreteGaussian`` with a
        dimension other than 1 (their zCDP curve); ``RepeatAndSelect``; and
        ``SampledWithReplacement``, where a draw of the record displaces another one.

    Raises
    ------
    ValueError
        For any other event, by its name.

    Notes
    -----
    The event does not say which data sets are neighbours; the questions' ``adjacency`` does.
    Tree events are for records that keep their places: with them ``add`` and ``remove`` compare a
    record with an empty one, which dp_accounting calls ``REPLACE_SPECIAL``.

    Examples
    --------
    With dp_accounting installed, ``from_dp_event(SelfComposedDpEvent(PoissonSampledDpEvent(0.01,
    GaussianDpEvent(1.0)), 1000))`` is ``pyengine.dp_sgd(1.0, 0.01, 1000)``.
    """
    return _made(event, 1)


def _made(event: Any, moves: int) -> Mechanism:
    """The mechanism of an event; zCDP curves are for ``moves`` records that move a query."""
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        return _made(event.event, moves).composed(event.count)
    if name == "ComposedDpEvent":
        return compose(*(_made(part, moves) for part in event.events))
    if name == "DiscreteGaussianDpEvent":
        return discrete_gaussian(event, moves)
    if name == "NoOpDpEvent":
        return compose()
    if name == "PoissonSampledDpEvent":
        return _poisson(event)
    if name == "SampledWithoutReplacementDpEvent":
        return _without_replacement(event)
    further = {word: make for kind in kinds() for word, make in kind.from_events.items()}
    make = _MAKERS.get(name, further.get(name))
    if make is None:
        raise _not_exact(event)
    return make(event)


def _not_exact(event: Any, why: str = "") -> ValueError:
    reason = f": {why}" if why else ""
    return ValueError(f"event must have an exact counterpart, got {type(event).__name__}{reason}")


def _poisson(event: Any) -> Mechanism:
    inner = event.event
    if type(inner).__name__ == "PoissonSampledDpEvent":
        # a sample of a sample; the product is exact
        both = Fraction(event.sampling_probability) * Fraction(inner.sampling_probability)
        step = _one_sample(inner.event, event)
        return compose() if step is None or both == 0 else step.poisson_sampled(both)
    step = _one_sample(inner, event)
    if step is None or event.sampling_probability == 0:
        return compose()
    return step.poisson_sampled(event.sampling_probability)


def _without_replacement(event: Any) -> Mechanism:
    step = _one_sample(event.event, event, moves=2)  # another record is pushed out
    if step is None:
        return compose()
    return step.sampled_without_replacement(
        batch_size=event.sample_size, dataset_size=event.source_dataset_size
    )


def _one_sample(inner: Any, outer: Any, moves: int = 1) -> Step | None:
    """One step for an event on a single sample; None if it releases nothing."""
    run = _made(inner, moves)
    if not steps_of(run):
        return None
    try:
        return compose(run).on_one_sample()
    except ValueError as error:
        raise _not_exact(outer, f"a sample of {type(inner).__name__}: {error}") from None


def _mixture(event: Any) -> Mechanism:
    noise, shifts, weights = event.standard_deviation, event.sensitivities, event.sampling_probs
    if noise == 0:  # it reveals whether anything moved
        moves = sum((Fraction(w) for c, w in zip(shifts, weights, strict=True) if c), Fraction(0))
        return (
            GenericMechanism(0, 1).poisson_sampled(min(moves, Fraction(1))) if moves else compose()
        )
    if not any(shifts):
        return compose()
    return GaussianMixtureMechanism(noise, shifts, weights)


def _tree(event: Any) -> Mechanism:
    """A record is in one leaf, and in the nodes above it."""
    counts = event.step_counts
    longest = max(counts) if isinstance(counts, Sequence) else counts
    words = Words(
        "tree aggregation",
        "none are drawn: each record is in one leaf of a tree, and in the nodes above it",
        neighbours="in_place",
    )
    step = worded(_noisy(GaussianMechanism)(event), words)
    return step.composed(int(longest).bit_length())


def _truncated(event: Any) -> Mechanism:
    size, records = int(event.truncated_batch_size), int(event.dataset_size)
    # without noise it reveals who is in the batch; truncation makes that no more likely
    if size >= records or not event.noise_multiplier:
        return _noisy(GaussianMechanism)(event).poisson_sampled(event.sampling_probability)
    return GaussianMechanism(event.noise_multiplier).truncated_poisson_sampled(
        event.sampling_probability, batch_size=size, dataset_size=records
    )


def with_replacement(event: Any, moved: int = 2) -> Mechanism:
    """Return the mechanism of a ``SampledWithReplacement`` event with Gaussian noise.

    Each draw of the record moves the sum by ``moved`` clipping norms: 2 if another record would be
    drawn in its place, 1 if that record is empty.
    """
    step = _one_sample(event.event, event)
    draws, records = int(event.sample_size), int(event.source_dataset_size)
    if step is None or draws == 0:
        return compose()
    if step == GenericMechanism(0, 1):
        return step.poisson_sampled(1 - Fraction(records - 1, records) ** draws)
    if step.noise is None or step.noise.family != "gaussian":
        raise _not_exact(event, "only Gaussian noise on a sample with replacement has a mechanism")
    return repeated_draws(step.noise.multiplier, draws, Fraction(1, records), moved)


def _allocated(event: Any) -> Mechanism:
    step = _one_sample(event.event, event)
    selected, steps = int(event.num_selected), int(event.num_steps)
    if step is None or selected == 0:
        return compose()
    return step.randomly_allocated(steps, selected)


def _selected(event: Any) -> Mechanism:
    return best_of(from_dp_event(event.event), event)


def best_of(base: Mechanism, event: Any) -> Mechanism:
    """The best of several runs, with the number of runs of a ``RepeatAndSelect`` event."""
    mean, shape = float(event.mean), float(event.shape)
    if not steps_of(base):
        return compose()
    if shape == math.inf:
        return repeat_and_select(base, "poisson", mean=mean)
    if mean == 1.0:  # one run, always
        return base
    stopping = stopping_of(mean, shape)
    if shape == 1.0:
        return repeat_and_select(base, "geometric", stopping=stopping)
    return repeat_and_select(base, "negative_binomial", shape=shape, stopping=stopping)


def discrete_gaussian(event: Any, times: int = 1) -> Mechanism:
    """Return the mechanism of a ``DiscreteGaussian`` event.

    Its zCDP curve, for a dimension other than 1, is for ``times`` records that move the query.
    """
    moves = int(event.sensitivity) if event.dimension == 1 else Fraction(event.sensitivity)
    if moves == 0:  # the integer does not move
        return compose()
    if event.sigma == 0:
        return GenericMechanism(0, 1)
    if event.dimension == 1:
        return DiscreteGaussianMechanism(Fraction(event.sigma) / moves, int(moves))
    return ZeroConcentrated((times * moves / Fraction(event.sigma)) ** 2 / 2)


def _noisy(make: Callable[[float], Step]) -> Callable[[Any], Step]:
    def convert(event: Any) -> Step:
        return make(event.noise_multiplier) if event.noise_multiplier else GenericMechanism(0, 1)

    return convert


def _discrete_laplace(event: Any) -> Mechanism:
    if event.noise_parameter == 0:
        return GenericMechanism(0, 1)
    # weights exp(-a |k|): b = 1/a
    noise = 1 / (Fraction(event.noise_parameter) * event.sensitivity)
    return DiscreteLaplaceMechanism(noise, event.sensitivity)


def _randomized_response(event: Any) -> Mechanism:
    if event.num_buckets == 1:
        return compose()
    # with probability p a uniform bucket, which may be the true one
    p = Fraction(event.noise_parameter)
    return RandomizedResponse(1 - p + p / event.num_buckets, event.num_buckets)


_MAKERS: dict[str, Callable[[Any], Mechanism]] = {
    "NonPrivateDpEvent": lambda _: GenericMechanism(0, 1),
    "EpsilonDeltaDpEvent": lambda event: GenericMechanism(event.epsilon, event.delta),
    "ZCDpEvent": lambda event: ZeroConcentrated(event.rho, event.xi),
    "ExponentialMechanismDpEvent": lambda event: ExponentialMechanism(event.epsilon),
    "PermuteAndFlipDpEvent": lambda event: permute_and_flip(event.epsilon),
    "RepeatAndSelectDpEvent": _selected,
    "RandomAllocationDpEvent": _allocated,
    "SampledWithReplacementDpEvent": with_replacement,
    "GaussianDpEvent": _noisy(GaussianMechanism),
    "LaplaceDpEvent": _noisy(LaplaceMechanism),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _randomized_response,
    "MixtureOfGaussiansDpEvent": _mixture,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
}


def to_dp_event(mechanism: Mechanism) -> Any:
    """Make a tree of dp_accounting events that describes a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        Steps with additive noise or randomized response, sampled or not, and Gaussian mixtures,
        composed.

    Returns
    -------
    dp_accounting.DpEvent
        The same mechanism, with parameters rounded to doubles.

    Raises
    ------
    ImportError
        If dp_accounting is not installed.
    ValueError
        For a step that has no event, by its name.
    """
    with needed("a DpEvent", "peers"):
        from dp_accounting import dp_event

    events = [
        event if number == 1 else dp_event.SelfComposedDpEvent(event, number)
        for step, number in steps_of(mechanism)
        for event in [_event(dp_event, step)]
    ]
    if not events:
        return dp_event.NoOpDpEvent()
    return events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)


def _event(module: Any, step: Step) -> Any:
    if step.scheme == "poisson":
        return module.PoissonSampledDpEvent(float(step.share), _event(module, step.inner))
    if step.scheme == "without_replacement":
        sizes = step.described()
        return module.SampledWithoutReplacementDpEvent(
            sizes["dataset_size"], sizes["batch_size"], _event(module, step.inner)
        )
    kind = kind_of_step(step)
    found = kind.event(module, step) if kind is not None and kind.event is not None else None
    if found is not None:
        return found
    raise ValueError(f"mechanism must have an event of dp_accounting, got {type(step).__name__}")
