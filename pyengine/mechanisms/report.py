"""Mechanisms in words and numbers, for reports."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from pyengine.mechanisms.core import Composition, Mechanism, Step, compose, phases_of, steps_of
from pyengine.mechanisms.words import LOWER, Words, number_in_words, worded

__all__ = [
    "JOINTLY",
    "Label",
    "describe",
    "guaranteed",
    "in_words",
    "is_least",
    "label_of",
    "of_units",
    "shown_as_html",
    "step_in_words",
    "summary",
]

FEW = 4  # entries of a vector that a line shows
FIRST = 3  # kinds of steps that a summary shows
LONGEST = 160  # characters of one of them
NAMED = 80  # characters of a mechanism in a message
SAMPLING = (
    *("sampling_probability", "batch_size", "truncated_batch_size", "dataset_size"),
    *("steps_per_epoch", "selected"),
)

PRESENT = {
    "add_remove": "two data sets that differ by adding or removing it",
    "add": "two data sets, one with it and one without it, which is the null hypothesis",
    "remove": "two data sets, one with it, which is the null hypothesis, and one without it",
    "substitute": "two data sets that differ by another record in its place",
}
# Shown if kinds of steps protect different units, or have different neighbours.
JOINTLY = "all figures are for data that differ in each kind of step as said of it"

# How neighbouring data sets differ, by the key in `Words` and by the adjacency.
NEIGHBOURS = {
    "present": PRESENT,
    "in_place": {
        "add_remove": "two data sets, one with it and one with an empty record in its place",
        "add": "two data sets, one with it and one with an empty record in its place, which is "
        "the null hypothesis",
        "remove": "two data sets, one with it, which is the null hypothesis, and one with an empty "
        "record in its place",
        "substitute": "two data sets that differ by another record in its place",
    },
    "group": {
        "add_remove": "two data sets that differ by adding or removing all of them",
        "add": "two data sets, one with all of them and one with none, which is the null "
        "hypothesis",
        "remove": "two data sets, one with all of them, which is the null hypothesis, and one with "
        "none",
        "substitute": "two data sets that differ by others in their places",
    },
    "input": dict.fromkeys(PRESENT, "two inputs that this user may have"),
    "sampled_input": dict.fromkeys(
        PRESENT,
        "two inputs that this user may have, of which one is that of whoever is in no batch",
    ),
    "pair": {
        "add_remove": "the two laws that were given, without it and with it, in both orders",
        "add": "the two laws that were given, without it, which is the null hypothesis, and with "
        "it",
        "remove": "the two laws that were given, with it, which is the null hypothesis, and "
        "without it",
        "substitute": "the two laws that were given",
    },
    "given": dict.fromkeys(
        PRESENT, "two data sets that are neighbours where the parameters were found"
    ),
    "sampled_given": {
        word: f"{text}; the parameters were found for batches with and without it"
        for word, text in PRESENT.items()
    },
    "replaced_given": {
        word: f"{text}; the parameters were found for batches with it and with another record in "
        "its place"
        for word, text in PRESENT.items()
    },
}


class Label(NamedTuple):
    """What a number about one kind of step means and assumes.

    ``mechanism`` says what runs and how often; ``batches`` how they must have been drawn;
    ``protects`` the unit and the neighbours; ``known`` is "upper bound", "lower bound" or "".
    """

    mechanism: str
    batches: str
    protects: str
    known: str


def of_units(run: Composition, unit: str) -> Composition:
    """Return an equal run whose labels say ``unit``, such as client, in the place of record."""
    if unit == "record":
        return run
    parts = (
        worded(step, step.words._replace(whose=unit)).composed(n) for step, n in phases_of(run)
    )
    return compose(*parts)


def describe(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return the parameters of each kind of step.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.

    Returns
    -------
    list of dict
        For each kind of step ``mechanism``, the name of its class, its parameters, those of its
        sampling, and ``steps``, the number of repetitions.
    """
    return [{**step.described(), "steps": number} for step, number in steps_of(mechanism)]


def label_of(mechanism: Mechanism, adjacency: str = "add_remove") -> list[Label]:
    """Return the label of each kind of step: what numbers about it mean and assume."""
    return [
        Label(
            _line(step, number),
            step.words.said(step.words.batches),
            f"{step.words.protected}: "
            + step.words.said(NEIGHBOURS[step.words.neighbours][adjacency]),
            "upper bound" if _is_replaced(step, adjacency) else step.words.known,
        )
        for step, number in phases_of(mechanism)
    ]


def is_least(mechanism: Mechanism) -> bool:
    """Whether answers are lower bounds of what leaks."""
    return any(step.words.known == LOWER for step, _ in phases_of(mechanism))


def guaranteed(label: Iterable[Label]) -> None:
    """Refuse labels of lower bounds of what leaks, where answers must be guarantees."""
    label = list(label)
    if any(each.known == LOWER for each in label):
        shown = _cut("; ".join(each.mechanism for each in label), NAMED)
        raise ValueError(
            f"mechanism must be one whose answers are upper bounds, got {shown}: that is the least "
            "that leaks, and no guarantee"
        )


def _is_replaced(step: Step, adjacency: str) -> bool:
    """Whether substitution is bounded by that of an empty record, as for epochs."""
    return adjacency == "substitute" and step.scheme == "allocated"


def summary(mechanism: Mechanism) -> str:
    """Return what `repr` shows: one line, truncated if it is long."""
    if isinstance(mechanism, Step):
        return _cut(step_in_words(mechanism))
    phases = phases_of(mechanism)
    lines = [_cut(_line(step, number)) for step, number in phases[:FIRST]]
    if phases[FIRST:]:
        steps = sum(number for _, number in phases[FIRST:])
        lines.append(f"and {steps:,} more of {len(phases) - FIRST:,} other kinds")
    return "; ".join(lines) or "no steps"


def shown_as_html(mechanism: Mechanism) -> str:
    """Return a table of the label, for notebooks: mechanism, batches, what is protected."""
    from pyengine._support.markup import html_table

    label = label_of(mechanism)
    columns = {
        "Mechanism": summary(mechanism).split("; "),
        "Batches": dict.fromkeys(each.batches for each in label),
        "Protects": dict.fromkeys(each.protects for each in label),
    }
    return html_table((), [[head, "\n".join(lines)] for head, lines in columns.items() if lines])


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def in_words(mechanism: Mechanism) -> list[str]:
    """Return a line for each kind of step: "DP-SGD, noise multiplier 1, 10 steps at rate 0.1"."""
    return [_line(step, number) for step, number in phases_of(mechanism)] or ["no steps"]


def step_in_words(step: Step) -> str:
    """Return a step in words: its kind, its parameters and its sampling."""
    size = step.words.said(step.words.size)
    return f"{_named(step)},{size}" if size else _named(step)


def epochs_in_words(words: Words, number: int) -> str:
    """Return how many epochs the steps are, if epochs were given; else an empty text."""
    if words.epochs is None or words.epochs[0] == 0 or number % words.epochs[0]:
        return ""
    given = Fraction(words.epochs[1]) * (number // words.epochs[0])
    return number_in_words(given) if given.denominator > 1 else f"{int(given):,}"


def _line(step: Step, number: int) -> str:
    words = step.words
    epochs = epochs_in_words(words, number)
    several = "" if number == 1 else "s"
    passes = f" ({epochs} epoch{'' if epochs == '1' else 's'})" if epochs else ""
    return f"{_named(step)}, {number:,} {words.counted}{several}{passes}{words.said(words.size)}"


def _named(step: Step) -> str:
    """Name and parameters of a step, without those of the sampling."""
    described = step.described()
    values = {k: v for k, v in described.items() if k not in (*SAMPLING, "mechanism")}
    shown = {key: value for key, value in values.items() if key not in step.words.hidden}
    words = (f"{key.replace('_', ' ')} {_short(value)}" for key, value in shown.items())
    return ", ".join((step.words.name, *words))


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        entries = [number_in_words(float(entry)) for entry in value[:FEW]]
        return f"({', '.join([*entries, *(['...'] if len(value) > FEW else [])])})"
    return f"{value:,}" if isinstance(value, int) else number_in_words(value)
