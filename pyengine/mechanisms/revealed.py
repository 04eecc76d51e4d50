"""One of several mechanisms, drawn at random; the release shows which one ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, Mechanism, Step, compose, phases_of, steps_of
from pyengine.mechanisms.finite import normalised
from pyengine.mechanisms.report import describe, summary
from pyengine.mechanisms.words import Words, number_in_words, of_all

__all__ = ["MOST_PARTS", "RevealedMixture", "parts_of", "revealed_mixture"]

SHOWN = 3  # mechanisms that a name lists
MOST_PARTS = 512  # compositions that are answered one by one


@dataclass(frozen=True, init=False, repr=False)
class RevealedMixture(Step):
    """One of several mechanisms, drawn at random and named in the release; see `revealed_mixture`.

    Parameters
    ----------
    weights : sequence of float or exact number
        Probability of each mechanism.
    mechanisms : sequence of Mechanism
        The mechanisms.
    """

    weights: tuple[checks.Number, ...]
    mechanisms: tuple[Mechanism, ...]

    def __init__(self, weights: Any, mechanisms: Any) -> None:
        parts = checks.listed("weights", weights)
        shares = [checks.probability("weights", weight) for weight in parts]
        things = checks.listed("mechanisms", mechanisms)
        if len(shares) != len(things) or not things:
            raise ValueError(
                f"mechanisms must have one entry for each of at least one weight, got "
                f"{len(things)} for {len(shares)}"
            )
        for thing in things:
            if not isinstance(thing, Mechanism):
                raise ValueError(f"mechanisms must hold Mechanisms, got {checks.shown(thing)}")
        alone = [
            phases_of(thing)[0][0] if isinstance(thing, Composition) and thing.steps == 1 else thing
            for thing in things
        ]
        kept = sorted(normalised(alone, shares).items(), key=lambda row: (-row[1], repr(row[0])))
        vars(self).update(
            weights=tuple(share for _, share in kept), mechanisms=tuple(thing for thing, _ in kept)
        )

    @property
    def share(self) -> checks.Number:
        """0 where no mechanism releases anything about the record, else 1."""
        several = (step.share for thing in self.mechanisms for step, _ in steps_of(thing))
        return 1 if any(several) else 0

    @property
    def within(self) -> tuple[Mechanism, ...]:
        """The mechanisms of which one runs."""
        return self.mechanisms

    @property
    def revealed(self) -> tuple[tuple[checks.Number, Mechanism], ...]:
        """Probabilities and mechanisms."""
        return tuple(zip(self.weights, self.mechanisms, strict=True))

    def poisson_sampled(self, probability: checks.NumberLike) -> Step:
        """Run whichever mechanism is drawn on a Poisson sample; the draw ignores the records."""
        return self._of(_sampler(thing).poisson_sampled(probability) for thing in self.mechanisms)

    def sampled_without_replacement(self, *, batch_size: int, dataset_size: int) -> Step:
        """Run whichever mechanism is drawn on a batch of fixed size."""
        return self._of(
            _sampler(thing).sampled_without_replacement(
                batch_size=batch_size, dataset_size=dataset_size
            )
            for thing in self.mechanisms
        )

    def _of(self, mechanisms: Iterable[Mechanism]) -> Step:
        return RevealedMixture(self.weights, tuple(mechanisms))

    def described(self) -> dict[str, Any]:
        """The weights, and parameters of all steps of each mechanism."""
        own = {"mechanism": type(self).__name__, "weights": self.weights}
        return {**own, "mechanisms": tuple(tuple(describe(thing)) for thing in self.mechanisms)}

    def own_words(self) -> Words:
        """Label: weights and mechanisms, and what holds for all of them."""
        shown = [
            f"{number_in_words(float(weight))}: {summary(thing)}"
            for weight, thing in zip(self.weights[:SHOWN], self.mechanisms, strict=False)
        ]
        if self.weights[SHOWN:]:
            shown.append(f"{len(self.weights) - SHOWN:,} more")
        several = [step.words for thing in self.mechanisms for step, _ in phases_of(thing)]
        words = of_all(several, "; or ") or super().own_words()
        drawn = "by the mechanism that is drawn: " * ("; or " in words.batches)
        return words._replace(
            name=f"one of several mechanisms, which is public ({'; '.join(shown)})",
            batches=drawn + words.batches,
            hidden=("weights", "mechanisms"),
        )


def _sampler(thing: Mechanism) -> Step | Composition:
    if isinstance(thing, Step | Composition):
        return thing
    raise ValueError(f"mechanisms must hold steps and compositions, got {checks.shown(thing)}")


def revealed_mixture(mechanisms: Any) -> RevealedMixture:
    """Run one of several mechanisms, drawn at random and named in the release.

    Parameters
    ----------
    mechanisms : sequence of (number, Mechanism)
        Each with its probability, in [0, 1]; the sum is 1, to 1e-12 for floats (the largest one
        absorbs the rounding).  The draw must not depend on the records.

    Returns
    -------
    RevealedMixture
        A step that composes.  Its profile is δ(ε) = Σ wᵢ δᵢ(ε), in each order of the neighbours.

    Raises
    ------
    ValueError
        For weights that are not probabilities or do not sum to 1, and for values that are not
        mechanisms; an `AccuracyError`, when a question is asked, if more than 512 compositions may
        be drawn and some neither have finitely many outcomes nor are Gaussian on all records.

    Notes
    -----
    The draw is public.  A mixture whose draw stays hidden leaks less, and is another mechanism
    (`GaussianMixtureMechanism` for Gaussian noise).

    Examples
    --------
    >>> import pyengine as pe
    >>> strong, weak = pe.GaussianMechanism(1.0), pe.GaussianMechanism(4.0)
    >>> either = pe.revealed_mixture([("1/10", strong), ("9/10", weak)])
    >>> parts = pe.delta(strong, 1.0) / 10 + pe.delta(weak, 1.0) * 9 / 10
    >>> abs(pe.delta(either, 1.0) / parts - 1) < 1e-12
    True
    >>> either.composed(20).steps
    20

    A run of one to three epochs, the number of which is drawn and published:

    >>> epochs = pe.revealed_mixture([("1/3", pe.dp_sgd(1, 0.01, 100 * k)) for k in (1, 2, 3)])
    >>> print(f"{pe.epsilon(epochs, 1e-5):.4f}")
    0.9798
    """
    rows = checks.listed("mechanisms", mechanisms)
    try:
        pairs = [(weight, thing) for weight, thing in rows]
    except (TypeError, ValueError):
        raise ValueError(
            f"mechanisms must be pairs of a probability and a Mechanism, got {checks.shown(rows)}"
        ) from None
    return RevealedMixture([weight for weight, _ in pairs], [thing for _, thing in pairs])


def parts_of(mechanism: Mechanism) -> list[tuple[Fraction, Mechanism]]:
    """Return the compositions that may be drawn, with their probabilities, most likely first.

    Empty if no step reveals a draw, or if there are more than `MOST_PARTS` compositions.
    """
    steps = phases_of(mechanism)
    drawn = [(step.revealed, number) for step, number in steps if step.revealed]
    count = math.prod(math.comb(number + len(rows) - 1, number) for rows, number in drawn)
    if not drawn or count > MOST_PARTS:
        return []
    rest = compose(*(step.composed(number) for step, number in steps if not step.revealed))
    found = {rest: Fraction(1)}
    for rows, number in drawn:
        before, found = found, {}
        for mechanism, share in before.items():
            for times in _counts(len(rows), number):
                whole = compose(
                    mechanism,
                    *(thing.composed(k) for (_, thing), k in zip(rows, times, strict=True)),
                )
                own = share * math.factorial(number)
                for (weight, _), k in zip(rows, times, strict=True):
                    own *= Fraction(weight) ** k / math.factorial(k)
                found[whole] = found.get(whole, Fraction(0)) + own
    return sorted(((share, whole) for whole, share in found.items()), key=lambda row: -row[0])


def _counts(kinds: int, number: int) -> Iterator[tuple[int, ...]]:
    """All ways in which ``number`` draws fall on the kinds: the count of each."""
    if kinds == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for rest in _counts(kinds - 1, number - first):
            yield (first, *rest)
