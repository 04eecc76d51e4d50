"""Mixtures of Gaussians: several records of one user, or several copies of one, in a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, SampledWithoutReplacement, Step, compose
from pyengine.mechanisms.finite import GenericMechanism, normalised
from pyengine.mechanisms.words import LONG, Words, number_in_words, worded

__all__ = ["GaussianMixtureMechanism", "binomial_weights", "group_sample"]

RARE = Fraction(1, 10**40)  # total probability of the largest numbers of draws, which are merged
MOST_RECORDS = 1000  # in a group of k, whose exact weights are k + 1 binomial probabilities
MOST_DRAWS = 10_000  # expected draws of one record in a batch
PLACES = 1024  # binary digits of the probabilities of numbers of draws
LEAST_WEIGHT = Fraction(1, 2**1074)  # the smallest positive double


@dataclass(frozen=True, init=False, repr=False)
class GaussianMixtureMechanism(Step):
    """A query with Gaussian noise that moves by a random multiple of its sensitivity.

    With the records the query moves by ``shifts[j]`` sensitivities with probability
    ``weights[j]``, and the release does not show which j it was.  The pair N(0, 1) and
    Σ wⱼ N(cⱼ/σ, 1) dominates all neighbours whose records move the query by at most cⱼ
    sensitivities in case j.  Under ``substitute`` the pair is Σ wⱼ N(-cⱼ/σ, 1) and
    Σ wⱼ N(cⱼ/σ, 1), if the other records have the same shifts and weights.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation σ of the noise divided by the sensitivity, in (0, ∞).
    shifts : sequence of float or exact number
        cⱼ in units of the sensitivity, finite and >= 0.  Equal shifts are counted together.
    weights : sequence of float or exact number
        Probability of each shift, 0 or in [2^-1074, 1], with the sum 1 (to 1e-12 for floats: the
        largest one absorbs the rounding, and floats count as exact from then on).

    Raises
    ------
    ValueError
        For a negative shift, weights that do not sum to 1 or are below 2^-1074, or sequences of
        different lengths.

    References
    ----------
    C. A. Choquette-Choo, A. Ganesh, T. Steinke, A. Thakurta, Privacy Amplification for Matrix
    Mechanisms (2024), Section 3, for mixtures of Gaussians as dominating pairs.

    Examples
    --------
    >>> import pyengine as pe
    >>> pair = pe.GaussianMixtureMechanism(1, shifts=[0, 1], weights=["0.99", "0.01"])
    >>> f"{pe.delta(pair, 0.5):.8f} {pe.delta(pe.dp_sgd(1, '0.01', 1), 0.5):.8f}"
    '0.00000022 0.00000022'
    """

    noise_multiplier: checks.Number
    shifts: tuple[checks.Number, ...]
    weights: tuple[checks.Number, ...]

    def __init__(
        self, noise_multiplier: Any, shifts: Sequence[Any], weights: Sequence[Any]
    ) -> None:
        noise = checks.positive("noise_multiplier", noise_multiplier)
        places = [checks.non_negative("shifts", c) for c in _entries("shifts", shifts)]
        parts = [checks.probability("weights", w) for w in _entries("weights", weights)]
        if len(places) != len(parts):
            raise ValueError(
                f"weights must have one entry for each of {len(places)} shifts, got {len(parts)}"
            )
        kept = sorted(normalised(places, parts).items())
        if min(part for _, part in kept) < LEAST_WEIGHT:
            raise ValueError(
                "weights must be 0 or at least 2^-1074, got a smaller one: add it to that of a "
                "larger shift, which is less private"
            )
        vars(self).update(
            noise_multiplier=noise,
            shifts=tuple(place for place, _ in kept),
            weights=tuple(part for _, part in kept),
        )

    def own_words(self) -> Words:
        """Label: the records of a user move the sum by random shifts."""
        return Words(
            "Gaussian mixture",
            "the records of a user move each step's sum by shifts of these weights, drawn anew in "
            "each step",
            unit="all records of one user",
            neighbours="group",
        )

    @property
    def share(self) -> checks.Number:
        """0 if all shifts are 0, else 1."""
        return 1 if any(self.shifts) else 0

    def poisson_sampled(self, probability: checks.NumberLike) -> Step:
        """Run on a Poisson sample of the users: with probability 1 - p the shift is 0."""
        share = Fraction(checks.rate("probability", probability))
        weights = [1 - share, *(share * Fraction(w) for w in self.weights)]
        return GaussianMixtureMechanism(self.noise_multiplier, (0, *self.shifts), weights)

    def sampled_without_replacement(
        self, *, batch_size: int, dataset_size: int
    ) -> SampledWithoutReplacement:
        """Refuse: a mixture does not say how far the record that is pushed out moves the sum."""
        raise ValueError(
            "a Gaussian mixture cannot be sampled without replacement: it does not say what the "
            f"record that is pushed out of the batch moves; got batch_size={batch_size!r}, "
            f"dataset_size={dataset_size!r}"
        )


def _entries(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} must be a sequence of numbers, got {checks.shown(values)}")
    entries = checks.listed(name, values)
    if not entries:
        raise ValueError(f"{name} must have at least one entry, got {checks.shown(values)}")
    return entries


def binomial_weights(trials: int, probability: checks.Number) -> list[checks.Number]:
    """Probabilities of 0, 1, ..., ``trials`` successes: exact, or floats if p is a float."""
    p = Fraction(probability)
    masses = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    return [*masses] if isinstance(probability, Fraction) else [float(mass) for mass in masses]


def _binomial_masses(trials: int, probability: Fraction) -> Iterator[Fraction]:
    """Probabilities of 0, 1, ... successes; rounded down if exact ones exceed `PLACES` digits."""
    if trials * probability.denominator.bit_length() <= PLACES:
        yield from cast("list[Fraction]", binomial_weights(trials, probability))
        return
    if probability == 1:
        yield from (Fraction(count == trials) for count in range(trials + 1))
        return
    odds, mass = probability / (1 - probability), Fraction(1)
    for bit in f"{trials:b}":
        mass = _below(mass * mass * (1 - probability if bit == "1" else 1))
    for count in range(trials + 1):
        yield Fraction(math.floor(mass * 2**PLACES), 2**PLACES)
        mass = _below(mass * odds * (trials - count) / (count + 1))


def _below(value: Fraction) -> Fraction:
    """Round a number in (0, 1] down to `PLACES` significant binary digits."""
    places = PLACES + value.denominator.bit_length() - value.numerator.bit_length()
    return Fraction(math.floor(value * 2**places), 2**places)


def group_sample(noise_multiplier: checks.Number, probability: checks.Number, size: int) -> Step:
    """Gaussian noise on Poisson samples that each record of a user joins independently."""
    if size > MOST_RECORDS:
        raise ValueError(
            f"group_size must be at most {MOST_RECORDS:,} where samples are drawn, got "
            f"{checks.shown(size)}"
        )
    step = GaussianMixtureMechanism(
        noise_multiplier, range(size + 1), binomial_weights(size, probability)
    )
    rate = number_in_words(probability)
    words = Words(
        f"DP-SGD, groups of {size:,} records",
        f"each record, of the user and of others, joins each batch independently with probability "
        f"{rate} (Poisson sampling)",
        f" at rate {rate}",
        f"up to {size:,} records of one user",
        "group",
        rate=rate,
        hidden=("shifts", "weights"),
        given=(("group size", f"{size:,}"),),
    )
    return worded(step, words)


def repeated_draws(
    noise_multiplier: checks.Number, draws: int, rate: Fraction, moved: int
) -> Composition:
    """Gaussian noise on the sum of a batch that is drawn with replacement; the pair dominates.

    The largest numbers of draws of the record, of total probability below 1e-40, count as one draw
    more than the others, and a mechanism is added that reveals everything with that probability:
    larger shifts, and revealing them, are less private.  The mass that rounding loses is treated
    alike.  Each draw, of probability ``rate``, moves the sum by ``moved`` clipping norms: by 2 if
    the record takes the place of another one.
    """
    if draws * rate > MOST_DRAWS:
        raise ValueError(
            f"batch_size must give each record at most {MOST_DRAWS:,} draws on average, got "
            f"{checks.shown(draws)} at a rate of {checks.shown(rate)}"
        )
    weights: list[Fraction] = []
    rest, masses = Fraction(1), _binomial_masses(draws, rate)
    while len(weights) <= draws and rest >= RARE:
        weights.append(next(masses))
        rest -= weights[-1]
    if len(weights) > draws:  # mass lost by rounding goes to the largest shift
        weights[-1] += rest
        rest = Fraction(0)
    if rest > 0:
        weights.append(rest)
    shown = rate if rate.denominator < LONG else f"about {float(rate):.6g}"
    several = f"{draws:,} draws with replacement, each of a record at a rate of {shown}"
    words = Words(
        "DP-SGD",
        f"each batch is {several} at most",
        f" of {several}",
        hidden=("shifts", "weights"),
        known="upper bound",
    )
    shifts = [moved * j for j in range(len(weights))]
    step = worded(GaussianMixtureMechanism(noise_multiplier, shifts, weights), words)
    if not rest:
        return step.composed(1)
    rare = words._replace(name="the rarest numbers of draws", hidden=("epsilon", "delta"))
    return compose(step, worded(GenericMechanism(0, rest), rare))
