"""Mechanisms with finitely many outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from pyengine._support import checks
from pyengine.mechanisms.core import Step
from pyengine.mechanisms.unsampled import UnsampledStep
from pyengine.mechanisms.words import Words

__all__ = [
    "AboveThreshold",
    "ExponentialMechanism",
    "FinitePair",
    "GenericMechanism",
    "LikelyAnswer",
    "RandomizedResponse",
    "from_probabilities",
    "normalised",
]

LARGEST_RANGE = 700  # e^700 is a double
MOST_QUERIES = 10**8
Thing = TypeVar("Thing", bound=Hashable)
NORMALISATION = 1e-12  # distance from 1 up to which a sum of doubles counts as 1


@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse(Step):
    """Randomized response: the true category, or else any other one with equal probability.

    Parameters
    ----------
    truth_probability : float or exact number
        Probability of reporting the true category, in [0, 1]; each other category is reported with
        probability ``(1 - truth_probability) / (categories - 1)``.
    categories : int
        Number of categories, >= 2.
    """

    truth_probability: checks.Number
    categories: int = 2

    def __init__(self, truth_probability: Any, categories: int = 2) -> None:
        vars(self).update(
            truth_probability=checks.probability("truth_probability", truth_probability),
            categories=checks.count("categories", categories, least=2),
        )

    def own_words(self) -> Words:
        """Label: the unit is one user's answer."""
        words = super().own_words()
        return words._replace(
            name="randomized response", unit="one user's answer", neighbours="input"
        )


@dataclass(frozen=True, init=False, repr=False)
class GenericMechanism(Step):
    """The least private mechanism that is (ε, δ)-DP.

    With probability δ it reveals which data it ran on; otherwise it is randomized response with
    truth probability e^ε/(1 + e^ε).  It dominates every (ε, δ)-DP mechanism.

    Parameters
    ----------
    epsilon : float or exact number
        In [0, ∞).
    delta : float or exact number
        In [0, 1].
    """

    epsilon: checks.Number
    delta: checks.Number = 0.0

    def __init__(self, epsilon: Any, delta: Any = 0.0) -> None:
        value = checks.non_negative("epsilon", epsilon)
        vars(self).update(epsilon=value, delta=checks.probability("delta", delta))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """ε if δ is 0, exactly; else None."""
        return Fraction(self.epsilon) if self.delta == 0 else None

    def own_words(self) -> Words:
        """Label: neighbours are those for which ε and δ were proven."""
        words = super().own_words()
        return words._replace(name="any (ε, δ)-private mechanism", neighbours="given")


@dataclass(frozen=True, init=False, repr=False)
class ExponentialMechanism(Step):
    """Any mechanism of bounded range ε, such as the exponential mechanism.

    Its pair dominates every such mechanism, also one that is chosen in view of earlier releases, so
    compositions are bounds for adaptive choices.  For mechanisms that are fixed beforehand
    `pyengine.duality.bounded_range_delta` is smaller, and optimal.

    Parameters
    ----------
    epsilon : float or exact number
        Bounded range, in [0, 700]: the exponential mechanism with weights e^{ε q/(2Δ)} has range ε
        for scores q of sensitivity Δ; with e^{ε q/Δ} for scores that no added record lowers.

    Notes
    -----
    Permute-and-flip with the same ε is ε-DP, and no bounded range below 2ε is known for it:
    account for it by ``GenericMechanism(epsilon)``.

    References
    ----------
    J. Dong, D. Durfee, R. Rogers, Optimal Differential Privacy Composition for Exponential
    Mechanisms and the Cost of Adaptivity (2019), arXiv:1909.13830, Definition 2.1; R. McKenna,
    D. Sheldon, Permute-and-Flip (2020), arXiv:2010.12603, Theorem 1.

    Examples
    --------
    >>> import pyengine as pe
    >>> steps = pe.ExponentialMechanism("0.1"), pe.GenericMechanism("0.1")
    >>> [round(pe.epsilon(step.composed(100), 1e-6), 3) for step in steps]
    [2.612, 4.775]
    """

    epsilon: checks.Number

    def __init__(self, epsilon: Any) -> None:
        value = checks.non_negative("epsilon", epsilon)
        if value > LARGEST_RANGE:
            raise ValueError(
                f"epsilon must be at most {LARGEST_RANGE}, got {checks.shown(epsilon)}"
            )
        vars(self).update(epsilon=value)

    def own_words(self) -> Words:
        """Label: neighbours are those for which the range was proven."""
        words = super().own_words()
        name = "exponential mechanism or another of bounded range"
        return words._replace(name=name, neighbours="given", known="upper bound")


@dataclass(frozen=True, init=False, repr=False)
class AboveThreshold(Step):
    """Sparse vector with Gaussian noise: index of the first query above a noisy threshold.

    Noisy queries are compared with one noisy threshold until one exceeds it or all were asked; only
    its index is released.  Each query may depend on earlier comparisons.  Sparse vector with c
    answers is ``composed(c)``, with new noise on the threshold after each answer.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation σ of the noise on each query over the sensitivity of a query, in (0, ∞).
    threshold_noise : float or exact number
        Standard deviation τ of the noise on the threshold over that sensitivity, in (0, ∞).
    queries : int
        Largest number d of queries, in [1, 10^8].
    sides : {2, 1}
        1 if a record moves all queries in one direction, as counts under add and remove; else 2.

    Notes
    -----
    Each of the d + 1 outcomes distinguishes the data at most as well as one Gaussian release with
    μ² = 1/τ² + s²/σ² does, s the number of sides; the pair with the profile that follows from that
    dominates (docs, theory/choices).

    References
    ----------
    J. Lebensold, D. Precup, B. Balle, On the Privacy of Selection Mechanisms with Gaussian Noise
    (2024), arXiv:2402.06137; Y. Zhu, Y.-X. Wang, Improving Sparse Vector Technique with Renyi
    Differential Privacy (2020), for bounds by Rényi divergences.

    Examples
    --------
    >>> import pyengine as pe
    >>> step = pe.AboveThreshold(20.0, 10.0, queries=1000, sides=1)
    >>> print(f"{pe.epsilon(step.composed(5), 1e-6):.4f}")
    2.2796
    """

    noise_multiplier: checks.Number
    threshold_noise: checks.Number
    queries: int
    sides: int = 2

    def __init__(
        self, noise_multiplier: Any, threshold_noise: Any, queries: Any, sides: Any = 2
    ) -> None:
        if checks.count("sides", sides) not in (1, 2):
            raise ValueError(f"sides must be 1 or 2, got {checks.shown(sides)}")
        vars(self).update(
            noise_multiplier=checks.positive("noise_multiplier", noise_multiplier),
            threshold_noise=checks.positive("threshold_noise", threshold_noise),
            queries=checks.count("queries", queries, least=1, most=MOST_QUERIES),
            sides=checks.count("sides", sides),
        )

    def own_words(self) -> Words:
        """Label: one choice, with the number of queries."""
        return Words(
            f"first of {self.queries:,} queries above a threshold, Gaussian noise",
            super().own_words().batches,
            neighbours="given",
            counted="choice",
            hidden=("queries",),
            known="upper bound",
        )


@dataclass(frozen=True, init=False, repr=False)
class LikelyAnswer(UnsampledStep):
    """A function of a Gaussian release whose value is almost certain on the data at hand.

    It is no guarantee for other data: `missed` belongs to one data set, so answers depend on the
    data and are not private themselves.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise over the distance by which neighbours move the query, in
        (0, ∞); of several releases (Σ σᵢ⁻²)^-½.
    missed : float or exact number
        Upper bound, in [0, 1], of the probability of any other answer on the data at hand.

    Notes
    -----
    A test can use only sets of answers without the likely one, and their complements.  So the pair
    of the Gaussian release in which all losses between two tails are merged into one outcome
    dominates the law of the data at hand and that of any neighbour, in both orders (docs,
    theory/choices).

    Examples
    --------
    >>> import pyengine as pe
    >>> step = pe.LikelyAnswer(20.0, missed=1e-4)
    >>> print(f"{pe.epsilon(step.composed(1000), 1e-5):.4f}")
    0.5547
    """

    # on another batch another answer may be likely
    refusal: ClassVar[str] = "an answer that is likely on the data at hand cannot be sampled"
    noise_multiplier: checks.Number
    missed: checks.Number

    def __init__(self, noise_multiplier: Any, missed: Any) -> None:
        noise = checks.positive("noise_multiplier", noise_multiplier)
        vars(self).update(noise_multiplier=noise, missed=checks.probability("missed", missed))

    def own_words(self) -> Words:
        """Label: answers on the data at hand."""
        return Words(
            "likely answers of Gaussian noise on the data at hand",
            super().own_words().batches,
            neighbours="given",
            counted="answer",
            known="upper bound",
        )


@dataclass(frozen=True, init=False, repr=False)
class FinitePair(Step):
    """Two probability vectors on the same outcomes; made by `from_probabilities`.

    Parameters
    ----------
    p, q : tuple of float or exact number
        Probabilities of each outcome without and with the record.
    """

    p: tuple[checks.Number, ...]
    q: tuple[checks.Number, ...]

    def __init__(self, p: Any, q: Any) -> None:
        # doubles that sum to 1 within 2^-52, as after a division by their sum, stay as they are
        first, second = _vector("p", p, 2.0**-52), _vector("q", q, 2.0**-52)
        if len(first) != len(second):
            raise ValueError(f"q must have as many entries as p, {len(first)}, got {len(second)}")
        vars(self).update(p=first, q=second)

    def own_words(self) -> Words:
        """Label: two probability vectors, and neighbours are the pair."""
        words = super().own_words()
        name = f"two probability vectors of {len(self.p):,} outcomes"
        return words._replace(name=name, neighbours="pair", hidden=("p", "q"))


def from_probabilities(p: Any, q: Any) -> FinitePair:
    """Make a mechanism from two probability vectors.

    Parameters
    ----------
    p, q : sequence of float or exact number, of one length
        Probability of each outcome without and with the record, each in [0, 1]; the sum of each
        vector is 1 within 1e-12 and exactly 1 if all its entries are exact.  An outcome that is
        possible under one law only has infinite loss.

    Returns
    -------
    FinitePair
        Doubles are divided by their sum.

    Raises
    ------
    ValueError
        For vectors that are not probabilities or differ in length.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.from_probabilities(["1/4", "3/4"], ["3/4", "1/4"]).q
    (Fraction(3, 4), Fraction(1, 4))
    """
    return FinitePair(_vector("p", p), _vector("q", q))


def normalised(things: Sequence[Thing], weights: Sequence[checks.Number]) -> dict[Thing, Fraction]:
    """Exact positive weights that sum to 1, equal things merged; the largest absorbs rounding."""
    rows: dict[Thing, Fraction] = {}
    for thing, weight in zip(things, weights, strict=True):
        rows[thing] = rows.get(thing, Fraction(0)) + Fraction(weight)
    total = sum(rows.values(), Fraction(0))
    exactly = all(isinstance(weight, Fraction) for weight in weights)
    if total != 1 and (exactly or abs(total - 1) > NORMALISATION):
        raise ValueError(f"weights must sum to 1, got a sum of {float(total)!r}")
    rows[max(rows, key=lambda thing: rows[thing])] += 1 - total
    return {thing: weight for thing, weight in rows.items() if weight > 0}


def _vector(name: str, values: Any, room: float = 0.0) -> tuple[checks.Number, ...]:
    """Check a probability vector; doubles are divided by their sum unless it is 1 ± ``room``."""
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} must be a sequence of probabilities, got {checks.shown(values)}")
    try:
        entries = tuple(checks.probability(f"{name}[{i}]", v) for i, v in enumerate(values))
    except TypeError:
        raise ValueError(
            f"{name} must be a sequence of probabilities, got {checks.shown(values)}"
        ) from None
    if not entries:
        raise ValueError(f"{name} must have at least one entry, got {checks.shown(values)}")
    total = sum((Fraction(entry) for entry in entries), Fraction(0))
    if all(isinstance(entry, Fraction) for entry in entries):
        if total != 1:
            raise ValueError(f"{name} must add up to 1, got a sum of {total}")
        return entries
    if not abs(total - 1) <= NORMALISATION:
        raise ValueError(f"{name} must add up to 1, got a sum of {float(total)!r}")
    if room and abs(total - 1) <= room:
        return entries
    return tuple(float(Fraction(entry) / total) for entry in entries)
