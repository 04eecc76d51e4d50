"""Numbers on the command line: decimal or fraction, lists and ranges."""

from __future__ import annotations

from fractions import Fraction

from pyengine._support import checks
from pyengine.cli.errors import CommandError, user_errors
from pyengine.workbench.runs.grids import spaced

__all__ = ["read_exact", "read_numbers", "read_probabilities", "read_probability"]


def read_numbers(name: str, texts: list[str], *, logarithmic: bool) -> list[str]:
    """Read ``1e-5``, ``1/60000`` or ``FROM:TO:COUNT`` as decimal strings or fractions.

    Ranges are evenly spaced, or ``logarithmic``: in the logarithm.
    """
    values: list[str] = []
    with user_errors():
        for text in texts:
            if ":" in text:
                values += spaced(f"--{name}", text, logarithmic=logarithmic)
            else:
                checks.exact(f"--{name}", text)
                values.append(text.strip())
    return values


def read_exact(name: str, text: str, upper: float) -> Fraction:
    """One number in [0, 1], or in [0, inf) by the upper end."""
    with user_errors():
        exact = checks.exact(f"--{name}", text)
    if exact < 0 or checks.as_double(exact) > upper:
        interval = "[0, 1]" if upper == 1.0 else "[0, inf)"
        raise CommandError(f"--{name} must lie in {interval}, got {checks.said(text)}")
    return exact


def read_probabilities(name: str, texts: list[str]) -> list[float]:
    """Values of `read_numbers` as floats in [0, 1]."""
    found = [Fraction(text) for text in read_numbers(name, texts, logarithmic=True)]
    if not all(0 <= value <= 1 for value in found):
        raise CommandError(f"--{name} must lie in [0, 1], got {checks.said(' '.join(texts))}")
    return [float(value) for value in found]


def read_probability(name: str, text: str) -> float:
    """One number in [0, 1]."""
    found = read_probabilities(name, [text])
    if len(found) > 1:
        raise CommandError(f"--{name} must be one number, got {checks.said(text)}")
    return found[0]
