"""Labels of steps in words; no answer depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from pyengine._support import checks

if TYPE_CHECKING:
    from pyengine.mechanisms.core import Composition, Step

__all__ = [
    *("LONG", "LOWER", "UNITS"),
    *("Words", "as_given", "neighbours_on_batches", "number_in_words", "of_all"),
    *("shuffled_words", "worded"),
]

UNITS = ("record", "user", "client")
LONG = 10**12  # a fraction is shown if its denominator is smaller
ZEROS = 20  # decimal places up to which a decimal number is written without an exponent
LOWER = "lower bound"
# keys of neighbours besides "present": the first one that occurs is that of a joint label
PRECEDENCE = (
    *("replaced_given", "sampled_given", "given", "pair", "sampled_input", "input"),
    *("in_place", "group"),
)


class Words(NamedTuple):
    """Label of a step: what is true of it besides its law, in words, for every kind of output.

    - ``name``: what it is called
    - ``batches``: how they are drawn, a clause
    - ``size``: what is in a batch, after the number of steps: " of about 256 of 60,000 records"
    - ``neighbours``: how data sets differ, a key of `pyengine.mechanisms.report.NEIGHBOURS`
    - ``counted``: "step", "epoch", "turn" or "release"
    - ``rate``: the sampling probability as ``batches`` and ``size`` show it
    - ``hidden``: parameters that are not shown, as the name contains them
    - ``known``: "lower bound" if answers are no guarantee, "upper bound" if they are those of a
      dominating mechanism
    - ``sizes``: of a batch and of the data set, if the rate is their quotient
    - ``given``: parameters as they were given, if the step holds others
    - ``epochs``: a number of steps, and how many epochs they are
    - ``least``: arguments of `pyengine.shuffled_lower_bound` for a lower bound of what leaks
    - ``whose``: the unit that joins batches: "record", or "client" with all its records
    """

    name: str
    batches: str
    size: str = ""
    unit: str = "one record"
    neighbours: str = "present"
    counted: str = "step"
    rate: str = ""
    hidden: tuple[str, ...] = ()
    known: str = ""
    sizes: tuple[int, int] | None = None
    given: tuple[tuple[str, str], ...] = ()
    epochs: tuple[int, str] | None = None
    least: tuple[checks.Number, int] | None = None
    whose: str = "record"

    def said(self, text: str) -> str:
        """Replace "record" in a text by the unit that joins batches."""
        return text if self.whose == "record" else text.replace("record", self.whose)

    @property
    def protected(self) -> str:
        """The protected unit in words."""
        return (
            self.unit if self.whose == "record" else f"{self.said(self.unit)}, with all its records"
        )


def neighbours_on_batches(word: str, *, replaces: bool = False) -> str:
    """Return the key of neighbours of a sampled step, from that of the step on one batch.

    Given parameters must hold for batches with and without the record or, if it ``replaces`` one
    that is pushed out, for batches with another record in its place.
    """
    if word == "given":
        return "replaced_given" if replaces else "sampled_given"
    return "sampled_input" if word == "input" else word


def worded(step: Step, words: Words) -> Step:
    """Return an equal step with another label, which comparisons, hashes and answers ignore."""
    made = copy(step)
    object.__setattr__(made, "_words", words)
    return made


def of_all(several: Sequence[Words], joint: str) -> Words | None:
    """Join the labels of releases that make one step, without a name; None if there are none.

    ``joint`` separates their descriptions of batches.
    """
    if not several:
        return None
    whose = {each.whose for each in several}
    alike = len(whose) == 1
    batches = [each.batches if alike else each.said(each.batches) for each in several]
    units = [each.unit if alike else each.protected for each in several]
    found = [each.neighbours for each in several]
    known = {each.known for each in several}
    return Words(
        "",
        joint.join(dict.fromkeys(batches)),
        unit=" or ".join(dict.fromkeys(units)),
        neighbours=next((word for word in PRECEDENCE if word in found), found[0]),
        known=LOWER if LOWER in known else max(known),
        whose=several[0].whose if alike else "record",
    )


def number_in_words(value: Any) -> str:
    """Return a number as text: an exact decimal as it was written, else a fraction or 6 digits."""
    from pyengine._support.decimals import written  # here, as only labels need it

    if isinstance(value, Fraction):
        context = Context(prec=30)
        quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if context.flags[Inexact]:
            near = written(float(value), ".6g")
            return f"{value} = {near}" if value.denominator < LONG else f"about {near}"
        shortest = quotient.normalize(context)
        return f"{shortest:f}" if abs(shortest.adjusted()) <= ZEROS else written(shortest, "e")
    return written(value) if isinstance(value, float) else str(value)


def as_given(
    step: Step,
    steps: int,
    *,
    epochs: Any = None,
    sizes: tuple[int, int] | None = None,
    rate: str = "",
) -> Composition:
    """Compose a step, with a label that shows sizes, rate and epochs as they were given.

    ``rate``, or the quotient of ``sizes``, is the sampling probability.
    """
    if epochs is None and sizes is None and not rate:
        return step.composed(steps)
    words = step.words
    if sizes is not None and words.rate:
        batch, records = sizes
        size = words.size
        if size == f" at rate {words.rate}":
            size = f" of about {batch:,} of {records:,} records"
        given = ("batch size", f"{batch:,}"), ("dataset size", f"{records:,}")
        words = words._replace(size=size, sizes=sizes, given=(*words.given, *given))
        words = _at_rate(words, f"{batch:,}/{records:,}")
    elif rate and words.rate:
        given_rate = ("sampling probability", rate)
        words = _at_rate(words._replace(given=(*words.given, given_rate)), rate)
    if epochs is not None and steps:
        value = checks.number("epochs", epochs)
        passes = number_in_words(value) if isinstance(value, float) else str(value)
        words = words._replace(epochs=(steps, passes), given=(*words.given, ("epochs", passes)))
    return (step if words == step.words else worded(step, words)).composed(steps)


def _at_rate(words: Words, rate: str) -> Words:
    """The same label with the sampling rate as it was given."""
    batches = words.batches.replace(f"probability {words.rate}", f"probability {rate}")
    size = words.size.replace(f"rate {words.rate}", f"rate {rate}")
    return words._replace(batches=batches, size=size, rate=rate)


def shuffled_words(name: str, size: str = "", neighbours: str = "in_place", **more: Any) -> Words:
    """Label of one step for each epoch of a shuffling loader; ``more`` are fields of `Words`."""
    return Words(
        f"{name} on shuffled batches",
        "all records are shuffled once an epoch and cut into batches; each epoch counts as one "
        "step, without amplification",
        size,
        neighbours=neighbours,
        counted="epoch",
        known="upper bound",
        **more,
    )
