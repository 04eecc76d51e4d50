"""Questions on laws of losses of means of ratios.

Epochs of one step are plain Gaussian steps, whose losses are normal, so sums of two losses and rows
of both together have closed forms. Rows of the mean of two ratios are compared with laws of the
engine whose ends are negligible.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
from audit_sector import GRID, VALUES, Array, Law, added, joined, rows_of, summed
from compiling import doubles

from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import _composed_epochs, _law_of
from pyengine.numerics.exact_numbers import in_two_doubles

__all__ = [
    "deep_losses",
    "rows_of_losses",
    "rows_of_means",
    "shallow_losses",
    "shallow_means",
    "shallow_runs",
    "sums_of_losses",
]

Step = tuple[float, float]  # noise, and a rate that is not used here
Pairs = Sequence[tuple[Step, Step]]
Found = list[tuple[Array, Array, Array]]
DEEP, SHALLOW, ENDING = -200.0, -20.0, -60.0


class Run(NamedTuple):
    """Laws, and the noise of both steps."""

    noise: tuple[float, float]
    laws: tuple[Law, ...]


def ratio(kernel: Any, noise: float, deepest: float, steps: int = 1) -> Law:
    """Law of one ratio."""
    shift = doubles(in_two_doubles(1 / Fraction(noise)))
    numbers = ctypes.c_double(deepest), ctypes.c_double(float(steps))
    return Law(kernel, kernel.pe_sector_ratio, shift, *numbers)


def together(one: Law, other: Law) -> Law:
    """Law of both losses."""
    return joined(one, other, one.kernel.pe_sector_compose)


def _pairs(kernel: Any, steps: Pairs, depths: Sequence[tuple[float, float]]) -> Iterator[Run]:
    for (one, _), (other, _) in steps:
        for depth in depths:
            with suppress(ValueError):
                laws = tuple(
                    ratio(kernel, noise, deepest)
                    for noise, deepest in zip((one, other), depth, strict=True)
                )
                yield Run((one, other), laws)


def deep_losses(kernel: Any, steps: Pairs) -> list[Run]:
    """Laws of plain steps whose ends are negligible in sums."""
    return list(_pairs(kernel, steps, [(DEEP, DEEP)]))


def shallow_losses(kernel: Any, steps: Pairs) -> list[Run]:
    """Laws of plain steps whose ends matter in sums."""
    return list(_pairs(kernel, steps, [(SHALLOW, SHALLOW), (SHALLOW, DEEP), (DEEP, SHALLOW)]))


def shallow_runs(kernel: Any, steps: Pairs) -> list[Run]:
    """Laws of both losses that end where the rest matters."""
    found = []
    for run in _pairs(kernel, steps, [(ENDING, ENDING), (2.0 * SHALLOW, 2.0 * SHALLOW)]):
        with suppress(ValueError):
            found.append(Run(run.noise, (together(*run.laws),)))
    return found


def shallow_means(kernel: Any, steps: Pairs) -> list[Run]:
    """Laws of the mean of two ratios of one noise that end where the rest matters."""
    found = []
    for (noise, _), _ in steps:
        with suppress(ValueError):
            one = ratio(kernel, noise, 2.0 * SHALLOW, 2)
            found.append(Run((noise, noise), (added(one, one),)))
    return found


def sums_of_losses(runs: Sequence[Run], number: int = 24) -> Found:
    """Densities of the sum of two normal losses over the whole range of their laws."""
    found = []
    for noise, (a, b) in runs:
        variance = sum(x**-2 for x in noise)
        low, high = a.ends[0] + b.ends[0], a.ends[1] + b.ends[1]
        w = np.round(np.linspace(low, high, number + 2)[1:-1] / GRID) * GRID
        value, error = np.array([summed(a, b, float(x), True)[:2] for x in w]).T
        truth = -((w + 0.5 * variance) ** 2) / (2.0 * variance)
        found.append((value, error, truth - 0.5 * math.log(2.0 * math.pi * variance)))
    return found


@cache
def normal_row(variance: float, c: float) -> list[float]:
    """Logs of the functionals of a normal loss with a given variance; both orders are the same."""
    with mpmath.workdps(60):
        v, x = mpmath.mpf(variance), mpmath.mpf(c)
        root = mpmath.sqrt(v)
        of_a, of_b = (x + v / 2) / root, (x - v / 2) / root
        below = mpmath.ncdf(of_a), mpmath.ncdf(of_b)
        profile = below[0] - mpmath.exp(-x) * below[1]
        values = (mpmath.ncdf(-of_a), below[0], mpmath.ncdf(-of_b), below[1], profile)
        return [float(mpmath.log(y)) if y > 0 else math.nan for y in values]


def rows_of_losses(runs: Sequence[Run], number: int = 40) -> Found:
    """Rows of two plain steps over the whole range of their law."""
    found = []
    for noise, (law,) in runs:
        variance = sum(1 / Fraction(x) ** 2 for x in noise)
        c = np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number)
        for backward in (False, True):
            asked = -c if backward else c
            rows = law.rows(backward, asked)
            truth = np.array([normal_row(float(variance), float(x)) for x in asked])
            # the variance is rounded there, which changes a density by its log
            unsure = 1e-15 * (1.0 + np.abs(truth))
            found.append((rows[:, VALUES], rows[:, ERRORS:] + unsure, truth))
    return found


def rows_of_means(runs: Sequence[Run], number: int = 40) -> Found:
    """Rows of the mean of two ratios over the whole range of their law."""
    found = []
    for (noise, _), (law,) in runs:
        truths = _law_of(_composed_epochs, (((noise, 0.0), 2, 1),), DEEP)
        c = np.linspace(law.ends[0] + 1e-3, law.ends[1] - 1e-3, number) - math.log(2.0)
        for backward in (False, True):
            asked = -c if backward else c
            own = law.rows(backward, asked)
            truth = rows_of(truths, backward, asked)
            unsure = np.where(truth[:, ERRORS:] < 1e-9, truth[:, ERRORS:], np.inf)
            found.append((own[:, VALUES], own[:, ERRORS:] + unsure, truth[:, VALUES]))
    return found
