"""Numbers on the command line: decimal or fraction, lists and ranges."""

from __future__ import annotations

import math
from fractions import Fraction

from pyengine import _checks
from pyengine.cli.errors import CommandError

__all__ = ["read_numbers", "read_probabilities", "read_probability"]

MOST = 100_000  # values of one range


def read_numbers(name: str, texts: list[str], *, logarithmic: bool) -> list[str]:
    """Values of ``1e-5``, ``1/60000`` and ``FROM:TO:COUNT``, each as a decimal string or fraction.

    Parameters
    ----------
    name : str
        Option that holds them, for messages.
    texts : list of str
        As typed.
    logarithmic : bool
        Whether a range is evenly spaced in the logarithm.

    Returns
    -------
    list of str
        At least one.
    """
    values: list[str] = []
    for text in texts:
        parts = text.split(":")
        if len(parts) == 1:
            _number(name, text)
            values.append(text.strip())
        elif len(parts) == 3:
            values += _range(name, text, parts, logarithmic)
        else:
            raise CommandError(f"--{name}: expected a number or FROM:TO:COUNT, got {text!r}")
    return values


def read_probabilities(name: str, texts: list[str]) -> list[float]:
    """Values of `read_numbers` as floats in [0, 1]."""
    found = [Fraction(text) for text in read_numbers(name, texts, logarithmic=True)]
    if not all(0 <= value <= 1 for value in found):
        raise CommandError(f"--{name} must lie in [0, 1], got {' '.join(texts)}")
    return [float(value) for value in found]


def read_probability(name: str, text: str) -> float:
    """One number in [0, 1]."""
    found = read_probabilities(name, [text])
    if len(found) > 1:
        raise CommandError(f"--{name} must be one number, got {text}")
    return found[0]


def _range(name: str, text: str, parts: list[str], logarithmic: bool) -> list[str]:
    import numpy as np

    first, last = (_checks.as_double(_number(name, part)) for part in parts[:2])
    if not (math.isfinite(first) and math.isfinite(last)):
        raise CommandError(f"--{name} {text}: the ends of a range must be finite doubles")
    count = _number(name, parts[2])
    if count.denominator != 1 or not 2 <= count <= MOST:
        raise CommandError(f"--{name} {text}: COUNT must be an integer from 2 to {MOST}")
    if logarithmic and not (first > 0.0 and last > 0.0):
        raise CommandError(f"--{name} {text}: a range in the logarithm needs positive ends")
    space = np.geomspace if logarithmic else np.linspace
    return [repr(float(value)) for value in space(first, last, int(count))]


def _number(name: str, text: str) -> Fraction:
    try:
        return _checks.exact(f"--{name}", text)
    except ValueError as error:
        raise CommandError(str(error)) from None
