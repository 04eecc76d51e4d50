"""The pair of laws of a mechanism under an adjacency, and the orders (A, B) to ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import partial

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
    NormalTails,
    SubstitutedNormalStep,
    applies,
)
from pyengine.reference.gaussian.law import SampledGaussianLaw
from pyengine.reference.gaussian.steps import EqualSteps
from pyengine.reference.inversion.allocation import AllocatedEpoch
from pyengine.reference.inversion.law import InvertedLaw
from pyengine.reference.inversion.line import Part
from pyengine.reference.inversion.normal_pair import Mixture, NormalPair
from pyengine.reference.mixed.atomic import JoinedSource, MixedSource
from pyengine.reference.mixed.many_laplace import ManyLaplace
from pyengine.reference.solve import Continuous

__all__ = ["ADJACENCIES", "SIGNS", "pair_of"]

ADJACENCIES = ("add", "remove", "add_remove", "substitute")
SIGNS = {"add": (1,), "remove": (-1,), "add_remove": (1, -1)}
# Steps without sampling, besides additive noise, that have the same answers in both orders, and
# are defined under substitution.
SYMMETRIC = (RandomizedResponse, GenericMechanism)
Number = float | Fraction
Finite = list[tuple[Callable[[], Masses], int]]


def pair_of(mechanism: Mechanism, adjacency: str) -> tuple[Pair | None, tuple[int, ...]]:
    """Return the pair (P, Q) and the orders whose worst answer is the answer.

    P is the law without the record and Q the law with it; for ``substitute``, with one record and
    with another.  The pair is None if P = Q.  Order 1 is (P, Q), -1 is (Q, P).  Raises
    NotDefinedError where substitution is not defined, AccuracyError where there is no reference.
    """
    steps = tuple((step, number) for step, number in steps_of(mechanism) if _moves(step))
    if adjacency != "substitute":
        symmetric = all(_is_additive(step) or type(step) in SYMMETRIC for step, _ in steps)
        signs = SIGNS["add"] if symmetric else SIGNS[adjacency]
        return (_pair(steps, substitution=False) if steps else None), signs
    for step, _ in steps:
        _check_substitution(step)
    fixed = sum(n for step, n in steps if step.scheme == "without_replacement")
    if fixed == 1 and len(steps) == 1:
        # One step: the larger of both orders, Theorem 15 of Lebeda et al. (2024).
        return _pair(steps, substitution=False), SIGNS["add_remove"]
    if fixed:
        raise AccuracyError(
            "no ground truth for several steps without replacement under substitution: which data "
            "sets are the worst is not known"
        )
    return (_pair(steps, substitution=True) if steps else None), SIGNS["add"]


@kept(16, grows=True)
def _pair(steps: tuple[tuple[Step, int], ...], *, substitution: bool) -> Pair:
    """Return the pair of a composition for adjacency add or remove, or for substitution.

    In a batch without replacement the record takes the place of another one, so the sensitivity is
    that of substitution, twice that of adding.
    """
    phases: list[EqualSteps] = []
    lines: list[tuple[Part, int]] = []
    laplace: list[PiecesSource] = []
    finite: Finite = []
    closed: NormalTails | None = None
    for step, number in steps:
        share = step.share
        part = _own_part(step, substitution)
        if part is not None:
            lines.append((part, number))
            continue
        replaced = step.scheme == "without_replacement" or (substitution and share == 1)
        base = _doubled(step.inner) if replaced else step.inner
        sampled_against = substitution and share != 1
        if base.noise is None and substitution and step.scheme == "poisson":
            finite.append((partial(substituted, step.inner, share), number))
        elif base.noise is None:
            finite.append((partial(_masses, _finite(base), share), number))
        elif base.noise.family != "gaussian":
            noise = base.noise.multiplier
            laplace.append(PiecesSource(noise, share, number, substituted=sampled_against))
        elif sampled_against:
            # P is the mirror image of Q (Lebeda et al., 2024).
            p, shift = Fraction(share), 1 / Fraction(base.noise.multiplier)
            mixture = Mixture((1 - p, p), (0, shift))
            lines.append((NormalPair(mixture, mixture), number))
            closed = SubstitutedNormalStep(base.noise.multiplier, share)
        else:
            phases.append(EqualSteps(base.noise.multiplier, share, number))
            lines.append((phases[-1].part(), number))
    apart = [one for one in finite if not one[0]().p]
    if apart:  # no outcome is possible under both laws
        return AtomicPair(FiniteSource(apart))
    if not lines:
        return _without_gaussian(laplace, finite)
    normal: NormalTails | None = closed if sum(number for _, number in lines) == 1 else None
    if len(phases) == len(lines) and applies(tuple(phases)):
        normal = ClosedGaussian(tuple(phases))
    # the transform of a single sampled step hardly decays, so the closed form is needed
    single = len(phases) == len(lines) == phases[0].steps == 1 and not phases[0].full_batch
    few = sum(part.pieces for part in laplace) <= MOST_PIECES
    if normal is not None and (not laplace or (single and few)):
        return _atomic(NormalSource(normal), laplace, finite)
    if laplace:
        lines.append((ManyLaplace(laplace, others=True), 1))
    elif len(phases) == len(lines) and not finite:
        return Continuous(SampledGaussianLaw(tuple(phases)))
    return Continuous(InvertedLaw(tuple(lines), FiniteSource(finite)))


def _own_part(step: Step, substitution: bool) -> Part | None:
    """Return the transform of a Gaussian mixture or of an epoch of random allocation; else None."""
    if isinstance(step, GaussianMixtureMechanism):
        noise = Fraction(step.noise_multiplier)
        mixture = Mixture(step.weights, tuple(Fraction(shift) / noise for shift in step.shifts))
        return NormalPair(mixture, mixture if substitution else None)
    if not isinstance(step, RandomlyAllocated):
        return None
    if step.selected > 1:
        raise AccuracyError(
            f"no ground truth for an epoch with each record in {step.selected} of "
            f"{step.steps_per_epoch} steps: only bounds are known; ask pyengine.reference of what "
            "step.blocks() returns for an upper one"
        )
    if step.places is None:
        raise AccuracyError("no ground truth for random allocation of other than Gaussian noise")
    return AllocatedEpoch(step.places.noise_multiplier, step.steps_per_epoch)


def _without_gaussian(laplace: list[PiecesSource], finite: Finite) -> Pair:
    if not laplace:
        return AtomicPair(FiniteSource(finite))
    whole = [(part.noise, part.steps) for part in laplace if part.probability == 1]
    sampled = [part for part in laplace if part.probability != 1]
    steps = sum(part.pieces for part in laplace)
    if steps > MOST_PIECES and (sampled or not LaplaceSource.feasible(whole)):
        return Continuous(InvertedLaw(((ManyLaplace(laplace), 1),), FiniteSource(finite)))
    source: Source = LaplaceSource(whole) if whole else sampled.pop()
    return _atomic(source, sampled, finite)


def _atomic(source: Source, laplace: list[PiecesSource], finite: Finite) -> Pair:
    for one in laplace:
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
    """Whether the record changes the law of the step."""
    still = type(step) is GaussianMixtureMechanism and max(step.shifts) == 0
    return step.share != 0 and not still


def _is_additive(step: Step) -> bool:
    return step.noise is not None or type(step) in NOISE


def _doubled(step: Step) -> Step:
    """Return the step with twice the sensitivity; unchanged if it has none."""
    if not _is_additive(step):
        return step
    given = {field.name: getattr(step, field.name) for field in fields(step)}
    given["noise_multiplier"] = Fraction(given["noise_multiplier"]) / 2
    if "sensitivity" in given:  # of discrete noise on an integer query
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
