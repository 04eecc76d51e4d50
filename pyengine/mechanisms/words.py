"""Words of steps for people, which no answer hangs on."""

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
LONG = 10**12  # denominators that nobody reads
LOWER = "lower bound"
# keys of neighbours, those of which more is asked than that a record is added or removed
OWN = (
    *("replaced_given", "sampled_given", "given", "pair", "sampled_input", "input"),
    *("in_place", "group"),
)


class Words(NamedTuple):
    """What is true of a step besides its law: each scheme says it once, for all outputs.

    - ``size``: what is in a batch, after the number of steps: " of about 256 of 60,000 records"
    - ``neighbours``: in what two of them differ, a key of `pyengine.mechanisms.report.NEIGHBOURS`
    - ``counted``: "step", "epoch", "turn" or "release"
    - ``rate``: the sampling probability as ``batches`` and ``size`` have it
    - ``hidden``: parameters that the name says already
    - ``known``: "lower bound" where answers are no guarantee, "upper bound" where they are those of
      a mechanism that dominates this one
    - ``sizes``: of a batch and of the data set, where the rate is their quotient
    - ``given``: parameters as they were given, where the step does not hold them so
    - ``epochs``: a number of steps, and the epochs that they are
    - ``least``: arguments of `pyengine.shuffled_lower_bound`, where it says what certainly leaks
    - ``whose``: what joins batches: "record", or "client" with all its records
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
        """A text about records, as one about what joins batches here."""
        return text if self.whose == "record" else text.replace("record", self.whose)

    @property
    def protected(self) -> str:
        """The unit, with all that is protected of it."""
        return (
            self.unit if self.whose == "record" else f"{self.said(self.unit)}, with all its records"
        )


def neighbours_on_batches(word: str, *, replaces: bool = False) -> str:
    """Return the neighbours of what runs on batches, of those of what runs on one.

    Parameters are those of batches with and without the record or, where it ``replaces`` one that
    is pushed out, of batches with another record in its place.
    """
    if word == "given":
        return "replaced_given" if replaces else "sampled_given"
    return "sampled_input" if word == "input" else word


def worded(step: Step, words: Words) -> Step:
    """Return an equal step that is said in other words.

    Words are no part of a step's law: they matter to no comparison, no hash and no answer.
    """
    made = copy(step)
    object.__setattr__(made, "_words", words)
    return made


def of_all(several: Sequence[Words], joint: str) -> Words | None:
    """What is true of releases of which one step is made, in words without a name; None of none.

    ``joint`` stands between the ways in which their batches are drawn.
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
        neighbours=next((word for word in OWN if word in found), found[0]),
        known=LOWER if LOWER in known else max(known),
        whose=several[0].whose if alike else "record",
    )


def number_in_words(value: Any) -> str:
    """Return a number as it was written, if that was a decimal number."""
    from pyengine._support.decimals import written  # here: numbers need no words

    if isinstance(value, Fraction):
        context = Context(prec=30)
        quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if context.flags[Inexact]:
            near = written(float(value), ".6g")
            return f"{value} = {near}" if value.denominator < LONG else f"about {near}"
        return f"{quotient.normalize(context):f}"
    return written(value) if isinstance(value, float) else str(value)


def as_given(
    step: Step,
    steps: int,
    *,
    epochs: Any = None,
    sizes: tuple[int, int] | None = None,
    rate: str = "",
) -> Composition:
    """Return a step composed, in words that say batches and epochs as they were given.

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
    """The same words with the sampling rate as it was given."""
    batches = words.batches.replace(f"probability {words.rate}", f"probability {rate}")
    size = words.size.replace(f"rate {words.rate}", f"rate {rate}")
    return words._replace(batches=batches, size=size, rate=rate)


def shuffled_words(name: str, size: str = "", neighbours: str = "in_place", **more: Any) -> Words:
    """What is true of one step for each epoch of a loader that shuffles; the rest as in `Words`."""
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
