"""From a mechanism and an adjacency to the pair of laws, and to the orders to be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import partial
from typing import Any

from pyengine._support.caches import kept
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import (
    GaussianMixtureMechanism,
    GenericMechanism,
    Mechanism,
    RandomizedResponse,
    RandomlyAllocated,
    Step,
    step_in_words,
    steps_of,
)
from pyengine.reference.answers import Pair
from pyengine.reference.atomic.finite import FINITE, NOISE, Masses, masses, sampled, substituted
from pyengine.reference.atomic.laplace import LaplaceSource
from pyengine.reference.atomic.law import AtomicPair, Source
from pyengine.reference.atomic.legendre_pieces import MOST_PIECES, PiecesSource
from pyengine.reference.atomic.sums import FiniteSource
from pyengine.reference.gaussian.closed_form import (
    ClosedGaussian,
    NormalSource,
    SubstitutedNormalStep,
    applies,
)
from pyengine.reference.gaussian.law import SampledGaussianLaw, part_of
from pyengine.reference.gaussian.steps import EqualSteps
from pyengine.reference.inversion.allocation import AllocatedEpoch
from pyengine.reference.inversion.law import InvertedLaw
from pyengine.reference.inversion.line import Part, PlainGaussian
from pyengine.reference.inversion.normal_pair import Mixture, NormalPair
from pyengine.reference.mixed.atomic import JoinedSource, MixedSource
from pyengine.reference.mixed.many_laplace import ManyLaplace
from pyengine.reference.mixed.smooth import MixedLaw, SmoothMixture
from pyengine.reference.solve import Continuous

__all__ = ["ADJACENCIES", "SIGNS", "pair_of"]

ADJACENCIES = ("add", "remove", "add_remove", "substitute")
SIGNS = {"add": (1,), "remove": (-1,), "add_remove": (1, -1)}
# Unsampled steps, besides additive noise, whose orders have the same answers: they say what
# another record does.
SYMMETRIC = (RandomizedResponse, GenericMechanism)
Number = float | Fraction
Finite = list[tuple[Callable[[], Masses], int]]
Laplace = list[PiecesSource]


def pair_of(mechanism: Mechanism, adjacency: str) -> tuple[Pair | None, tuple[int, ...]]:
    """Return the pair (without the record, with it) and the orders whose worst is the answer.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency : str
        A word of `ADJACENCIES`.  ``substitute`` has a pair (with one record, with another).

    Returns
    -------
    pair : Pair or None
        None if both laws are the same.
    signs : tuple of int
        1 for (P, Q), -1 for (Q, P).

    Raises
    ------
    ValueError
        If the mechanism does not say what another record would do.
    AccuracyError
        If no ground truth exists for the mechanism.
    """
    steps = tuple((step, number) for step, number in steps_of(mechanism) if _moves(step))
    if adjacency != "substitute":
        symmetric = all(_is_additive(step) or type(step) in SYMMETRIC for step, _ in steps)
        signs = SIGNS["add"] if symmetric else SIGNS[adjacency]
        return (_pair(steps) if steps else None), signs
    for step, _ in steps:
        _check_substitution(step)
    fixed = sum(n for step, n in steps if step.scheme == "without_replacement")
    if fixed == 1 and len(steps) == 1:
        # One step: the larger of both orders, Theorem 15 of Lebeda et al. (2024).
        return _pair(steps), SIGNS["add_remove"]
    if fixed:
        raise AccuracyError(
            "no ground truth for several steps without replacement under substitution: which data "
            "sets are the worst is not known"
        )
    return (_substituted_pair(steps) if steps else None), SIGNS["add"]


@kept(16, grows=True)
def _pair(steps: tuple[tuple[Step, int], ...]) -> Pair:
    """Return the pair of steps for adjacency add or remove.

    Without replacement the record pushes another one out: the sensitivity is that of substitution.
    """
    if any(type(step) in ON_A_LINE for step, _ in steps):
        return _on_a_line(steps)
    gaussian: list[EqualSteps] = []
    laplace: Laplace = []
    finite: Finite = []
    for step, number in steps:
        base, share = step.inner, step.share
        base = _doubled(base) if step.scheme == "without_replacement" else base
        if base.noise is None:
            finite.append((partial(_masses, _finite(base), share), number))
        elif base.noise.family == "gaussian":
            gaussian.append(EqualSteps(base.noise.multiplier, share, number))
        else:
            laplace.append(PiecesSource(base.noise.multiplier, share, number, substituted=False))
    if not gaussian:
        return _without_gaussian(laplace, finite)
    phases = tuple(gaussian)
    if finite and not laplace and applies(phases):
        return AtomicPair(MixedSource(FiniteSource(finite), NormalSource(ClosedGaussian(phases))))
    return _with_gaussian(SampledGaussianLaw(phases), laplace, finite)


def _on_a_line(steps: tuple[tuple[Step, int], ...]) -> Pair:
    """Return the pair of steps of which some are mixtures or epochs of random allocation."""
    parts = ((ON_A_LINE.get(type(step), _gaussian_part)(step), number) for step, number in steps)
    return Continuous(InvertedLaw(tuple(parts)))


def _allocated_part(step: RandomlyAllocated) -> Part:
    if step.selected > 1:
        raise AccuracyError(
            f"no ground truth for an epoch with each record in {step.selected} of "
            f"{step.steps_per_epoch} steps: only bounds are known; ask pyengine.reference of what "
            "step.blocks() returns for an upper one"
        )
    if step.places is None:
        raise AccuracyError("no ground truth for random allocation of other than Gaussian noise")
    return AllocatedEpoch(step.places.noise_multiplier, step.steps_per_epoch)


def _mixture_part(step: GaussianMixtureMechanism) -> Part:
    return NormalPair(_mixture_of(step))


def _mixture_of(step: GaussianMixtureMechanism) -> Mixture:
    shifts = tuple(Fraction(shift) / Fraction(step.noise_multiplier) for shift in step.shifts)
    return Mixture(step.weights, shifts)


def _gaussian_part(step: Step) -> Part:
    plain = step.inner.noise
    if plain is None or plain.family != "gaussian":
        raise AccuracyError(
            "no ground truth for mixtures of Gaussians or random allocation beside steps that "
            f"are not Gaussian, got {step.inner!r}"
        )
    noise, share = Fraction(plain.multiplier), Fraction(step.share)
    noise /= 2 if step.scheme == "without_replacement" else 1
    return part_of(EqualSteps(noise, share, 1))


ON_A_LINE: dict[type[Step], Callable[[Any], Part]] = {
    GaussianMixtureMechanism: _mixture_part,
    RandomlyAllocated: _allocated_part,
}


@kept(16, grows=True)
def _substituted_pair(steps: tuple[tuple[Step, int], ...]) -> Pair:
    """Return the pair of steps, sampled or not, in which a record takes the place of another."""
    gaussian: list[tuple[Number, Number, int]] = []
    mixtures: list[tuple[Part, int]] = []
    laplace: Laplace = []
    finite: Finite = []
    for step, number in steps:
        if isinstance(step, GaussianMixtureMechanism):
            mixture = _mixture_of(step)
            mixtures.append((NormalPair(mixture, mixture), number))
            continue
        base, share = step.inner, step.share
        plain = _doubled(base) if share == 1 else base
        if plain.noise is None:
            sampled_ = step.scheme == "poisson"
            made = partial(substituted, base, share) if sampled_ else partial(_masses, plain, share)
            finite.append((made, number))
        elif plain.noise.family == "gaussian":
            gaussian.append((plain.noise.multiplier, share, number))
        else:
            noise = plain.noise.multiplier
            laplace.append(PiecesSource(noise, share, number, substituted=share != 1))
    if mixtures:
        parts = [*mixtures, *((_substituted_part(*row[:2]), row[2]) for row in gaussian)]
        return _with_gaussian(InvertedLaw(tuple(parts)), laplace, finite)
    if not gaussian:
        return _without_gaussian(laplace, finite)
    if all(share == 1 for _, share, _ in gaussian):
        phases = tuple(EqualSteps(*row) for row in gaussian)
        if finite and not laplace:
            return AtomicPair(
                MixedSource(FiniteSource(finite), NormalSource(ClosedGaussian(phases)))
            )
        return _with_gaussian(SampledGaussianLaw(phases), laplace, finite)
    if len(gaussian) == 1 and gaussian[0][2] == 1 and not laplace:
        source = NormalSource(SubstitutedNormalStep(*gaussian[0][:2]))
        return AtomicPair(MixedSource(FiniteSource(finite), source) if finite else source)
    law = InvertedLaw(tuple((_substituted_part(*row[:2]), row[2]) for row in gaussian))
    return _with_gaussian(law, laplace, finite)


def _substituted_part(noise: Number, share: Number) -> Part:
    """Return the transform of a sampled step, P the mirror image of Q (Lebeda et al., 2024)."""
    if share == 1:
        return PlainGaussian(noise)
    p = Fraction(share)
    mixture = Mixture((1 - p, p), (0, 1 / Fraction(noise)))
    return NormalPair(mixture, mixture)


def _with_gaussian(law: InvertedLaw, laplace: Laplace, finite: Finite) -> Pair:
    if not laplace and not finite:
        return Continuous(law)
    return SmoothMixture(MixedLaw(law, FiniteSource(finite), laplace))


def _without_gaussian(laplace: Laplace, finite: Finite) -> Pair:
    if not laplace:
        return AtomicPair(FiniteSource(finite))
    whole = [(part.noise, part.steps) for part in laplace if part.probability == 1]
    sampled = [part for part in laplace if part.probability != 1]
    steps = sum(part.pieces for part in laplace)
    if steps > MOST_PIECES and (sampled or not LaplaceSource.feasible(whole)):
        many = ManyLaplace(laplace)
        return _with_gaussian(InvertedLaw(((many, 1),), many.ends), [], finite)
    source: Source = LaplaceSource(whole) if whole else sampled.pop()
    for one in sampled:
        source = JoinedSource(one, source)
    return AtomicPair(MixedSource(FiniteSource(finite), source) if finite else source)


def _masses(base: Step, share: Number) -> Masses:
    one = masses(base)
    return one if share == 1 else sampled(one, share)


def _finite(base: Step) -> Step:
    if type(base) not in FINITE:
        raise AccuracyError(
            "no ground truth for mechanisms made of distributions or functions: they are in double "
            f"precision, got {base!r}"
        )
    return base


def _moves(step: Step) -> bool:
    """Whether a record changes the law at all."""
    still = type(step) is GaussianMixtureMechanism and max(step.shifts) == 0
    return step.share != 0 and not still


def _is_additive(step: Step) -> bool:
    return step.noise is not None or type(step) in NOISE


def _doubled(step: Step) -> Step:
    """Return the step with twice the sensitivity; one without a sensitivity as it is."""
    if not _is_additive(step):
        return step
    given = {field.name: getattr(step, field.name) for field in fields(step)}
    given["noise_multiplier"] = Fraction(given["noise_multiplier"]) / 2
    if "sensitivity" in given:  # that of a query with integer values
        given["sensitivity"] *= 2
    return type(step)(**given)


def _check_substitution(step: Step) -> None:
    allowed = _is_additive(step.inner) or type(step) is GaussianMixtureMechanism
    if step.scheme != "poisson":
        allowed = allowed or type(step.inner) in SYMMETRIC
    if not allowed:
        raise NotDefinedError(
            "adjacency 'substitute' needs a mechanism that says what another record does (additive "
            "noise, Gaussian mixtures; without Poisson sampling, also randomized response and the "
            f"generic mechanism), got {step_in_words(step)}"
        )
