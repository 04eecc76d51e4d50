"""Mechanisms in words and numbers, for reports."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

from pyengine.mechanisms.core import Composition, Mechanism, Step, steps_of

__all__ = ["describe", "in_words", "step_in_words", "summary"]

SHORT = {"noise_multiplier": "noise", "sampling_probability": "p"}  # as the command line has them
FEW = 4  # entries of a vector that a line shows
FIRST = 3  # kinds of steps that a summary shows
LONGEST = 160  # characters of one of them


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


def summary(mechanism: Mechanism) -> str:
    """Return one line, whatever a mechanism is made of: what `repr` shows.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.

    Returns
    -------
    str
        A single step as of `step_in_words`, a composition as of `in_words`; what is long is cut.
    """
    if isinstance(mechanism, Step):
        return _cut(step_in_words(mechanism))
    parts = steps_of(mechanism)
    lines = [_cut(line) for line in in_words(Composition(tuple(parts[:FIRST])))]
    if parts[FIRST:]:
        steps = sum(number for _, number in parts[FIRST:])
        lines.append(f"and {steps:,} more of {len(parts) - FIRST:,} other kinds")
    return "; ".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def in_words(mechanism: Mechanism) -> list[str]:
    """Return one line for each kind of step, for people.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.

    Returns
    -------
    list of str
        Such as "Gaussian, noise 1, p 0.01, 1,000 steps"; "no steps" for the empty composition.
    """
    return [
        f"{step_in_words(step)}, {number:,} {step.unit}{'' if number == 1 else 's'}"
        for step, number in steps_of(mechanism)
    ] or ["no steps"]


def step_in_words(step: Step) -> str:
    """Return the kind of a step, its parameters and how it is sampled, for people."""
    values = step.described()
    words = [values.pop("mechanism").removesuffix("Mechanism")]
    allocated, selected = values.pop("steps_per_epoch", None), values.pop("selected", None)
    if allocated is not None:
        words = ["Gaussian"]
    cut = values.pop("truncated_batch_size", None)
    sizes = [values.pop(key) for key in ("batch_size", "dataset_size") if key in values]
    words += [f"{SHORT.get(key, key)} {_short(value)}" for key, value in values.items()]
    if cut is not None:
        words.append(f"at most {cut:,} of {sizes[0]:,} records in a batch")
    elif sizes:
        words.append(f"{sizes[0]:,} of {sizes[1]:,} records without replacement")
    if selected is not None:
        words.append(f"each record in {selected:,} of {allocated:,} steps (bounds, by blocks)")
    elif allocated is not None:
        words.append(f"each record in one of {allocated:,} steps")
    return ", ".join(words)


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        entries = [*map(_short, value[:FEW]), *(["..."] if len(value) > FEW else [])]
        return f"({', '.join(entries)})"
    if isinstance(value, Fraction):
        context = Context(prec=30)
        quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        exact = not context.flags[Inexact]
        # as it was written, if that was a decimal number
        return f"{quotient.normalize(context):f}" if exact else f"{value} = {float(value):.6g}"
    return f"{value:g}" if isinstance(value, float) else str(value)
