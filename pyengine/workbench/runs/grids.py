"""Grids of runs: lists and ranges in place of single numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.workbench.runs.grammar import COUNTS, Table, default_word
from pyengine.workbench.runs.makers import ALLOCATED, Maker, maker_of, renamed
from pyengine.workbench.runs.numbers import number_text

__all__ = ["MANY", "choices", "spaced"]

MANY = 1_000_000  # most runs of a grid; more are assumed to be a mistake
MOST = 100_000  # most values of a range


def choices(tables: Sequence[Table]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each combination of values from the lists and ranges: its words, and the phases.

    Without lists there is one combination, with no words.  ValueError for an empty list or range,
    and for more than a million runs.
    """
    phases, axes, number = [], [], 1
    for index, table in enumerate(tables):
        maker = maker_of(table.get("mechanism", default_word(table)))
        phases.append(renamed(table, maker.parameters))
        for key, value in phases[-1].items():
            several = _several(maker, key, value)
            if several is not None:
                if not several:
                    raise ValueError(f"{key} must be a number or a list of numbers, got {value!r}")
                # in random allocation, an epoch is one step
                name = "steps" if key == "epochs" and maker.word == ALLOCATED else key
                axes.append((index, key, name, several))
                number *= len(several)
    if number > MANY:
        raise ValueError(f"a grid must have at most {MANY:,} runs, got {number:,}")
    for chosen in itertools.product(*(several for *_, several in axes)):
        words = []
        made = [dict(table) for table in phases]
        for (index, key, name, _), value in zip(axes, chosen, strict=True):
            made[index][key] = value
            where = f"phase {index + 1} " if len(phases) > 1 else ""
            words.append(f"{where}{name}={_in_words(key, value)}")
        yield ", ".join(words), made


def _several(maker: Maker, key: str, value: Any) -> list[Any] | None:
    """The values of a key that has several; None for a single value."""
    if key == "mechanism" or key in maker.nested:
        return None
    if key in maker.vectors:  # a list is a single value, a list of lists several
        nested = isinstance(value, list) and value and all(isinstance(v, list) for v in value)
        return value if nested else None
    if isinstance(value, list):
        return value
    if not isinstance(value, str) or key in maker.texts or key == "sampling":
        return None
    if ":" in value:
        return spaced(key, value, logarithmic=True, whole=key in COUNTS)
    parts = value.split()
    return parts if len(parts) > 1 and "/" not in parts else None


def spaced(name: str, text: str, *, logarithmic: bool, whole: bool = False) -> list[str]:
    """Texts of the values of a range ``FROM:TO:COUNT``, or ``FROM:TO`` for integers.

    The values are evenly spaced, in the logarithm if ``logarithmic``.  For ``whole`` numbers,
    ``FROM:TO`` are all integers in between, ends included.  ValueError for anything else.
    """
    parts = text.split(":")
    if len(parts) == 2 and whole:
        low, high = (checks.count(name, part) for part in parts)
        if not low <= high < low + MOST:
            raise ValueError(f"{name} {text}: from {low:,} to {high:,} is no range of numbers")
        return [str(value) for value in range(low, high + 1)]
    if len(parts) != 3:
        raise ValueError(f"{name}: expected a number or FROM:TO:COUNT, got {text!r}")
    import numpy as np

    first, last = (checks.as_double(checks.exact(name, part)) for part in parts[:2])
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError(f"{name} {text}: the ends of a range must be finite doubles")
    count = checks.exact(name, parts[2])
    if count.denominator != 1 or not 2 <= count <= MOST:
        raise ValueError(f"{name} {text}: COUNT must be an integer from 2 to {MOST}")
    if logarithmic and not (first > 0.0 and last > 0.0):
        raise ValueError(f"{name} {text}: a range in the logarithm needs positive ends")
    space = np.geomspace if logarithmic else np.linspace
    values = [float(value) for value in space(first, last, int(count))]
    if whole:
        return list(dict.fromkeys(str(round(value)) for value in values))
    texts = [written(value, ".15g") for value in values]  # 1e-5, not 9.999999999999999e-6
    for end in (0, -1):
        texts[end] = texts[end] if float(texts[end]) == values[end] else repr(values[end])
    return texts


def _in_words(key: str, value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(number_text(key, entry) for entry in value)}]"
    if isinstance(value, Mapping):
        raise ValueError(f"{key} must be a number, got {value!r}")
    return number_text(key, value) if not isinstance(value, bool) else str(value)
