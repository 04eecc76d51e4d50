"""From functionals at a threshold to questions with their truths, and the errors of these."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
from bounds_tally import Truth

__all__ = [
    "CLOSED",
    "FARTHEST",
    "LD",
    "LEAST_LOG",
    "PI",
    "doubted",
    "mass",
    "questions",
    "truths",
]

LD = np.longdouble
PI = LD("3.14159265358979323846264338327950288")  # not that of a double
CLOSED = 1e-24  # largest error of closed forms, as Decimal has 28 digits
LEAST_LOG = math.log(1e-300)
FARTHEST = 1e6  # losses, and epsilons
SMALLEST = Decimal("1e-290")
NEXT = Decimal("1e-9")

Sides = Mapping[str, Decimal]  # both masses beyond a threshold and the profile: p, q and h


def mass(log: Any) -> Decimal:
    """The number with this log, which may be far below all doubles."""
    if isinstance(log, mpmath.mpf):
        return Decimal(mpmath.nstr(mpmath.exp(log), 40))
    value = log if log < -600.0 else np.exp(log)
    high = float(value)
    exact = Decimal(high) + Decimal(float(value - LD(high)))
    return exact.exp() if log < -600.0 else exact


def questions(sides: Sides, c: float, right: bool, other: Sides | None = None) -> Iterator[Truth]:
    """Questions that the functionals at one threshold answer, corrected for rounded arguments."""
    p, q, h = sides["p"], sides["q"], sides["h"]
    level, power = (p, q) if right else (q, p)  # of the test that rejects on this side
    order = "add" if right else "remove"
    slope = Decimal(abs(c)).exp() if (c > 0) == right else (-Decimal(abs(c))).exp()
    if SMALLEST < level < Decimal("0.9") and power > SMALLEST:
        argument = float(level)
        yield Truth("gamma_bound", argument, order, power + slope * (Decimal(argument) - level))
    # the other order's test accepts on this side, with type-II error ``level``
    argument = float(1 - power)
    moved = (1 - Decimal(argument)) - power
    # both masses are known to 19 digits; their differences from 1 must keep some
    if NEXT < power < 1 - NEXT and level > SMALLEST:
        name = "remove" if right else "add"
        yield Truth("trade_off", argument, name, level + moved / slope)
    if (c > 0) != right or h < SMALLEST:
        return
    order = "remove" if right else "add"
    yield Truth("delta", abs(c), order, h)
    # d delta / d epsilon = -e^epsilon times the level
    argument = float(h)
    yield Truth(
        "epsilon", argument, order, Decimal(abs(c)) + (h - Decimal(argument)) / (slope * level)
    )
    if other is not None:
        yield Truth("delta", abs(c), "add_remove", max(h, other["h"]))


def doubted(sides: dict[str, Decimal], c: float, right: bool, off: float) -> Iterator[Truth]:
    """Questions on a threshold whose masses and profile have a relative error.

    Arguments are rounded, and answers moved along the slope. This turns an error of the other mass,
    or of the profile, into one of the answer, hundreds of times as large in far tails.
    """
    p, q, h = sides["p"], sides["q"], sides["h"]
    level, power = (p, q) if right else (q, p)
    moved = level * (Decimal(c) if right else -Decimal(c)).exp()  # by the slope at the threshold
    for one in questions(sides, c, right):
        factor, bent = 1.0, 0.0
        if one.name == "gamma_bound":
            factor = float((power + moved) / one.truth)
        elif one.name == "trade_off":
            factor = 1.0 + float(power / moved)
        elif one.name == "epsilon":
            if not one.truth > 0:  # the level was rounded to above the profile at 0
                continue
            factor = 1.0 + float(h / (moved * abs(Decimal(c))))
            # rounding the level also changes the slope, which matters next to 1
            way = one.truth - abs(Decimal(c))
            bent = float(4 * way * way * moved / min(h, 1 - h) / one.truth)
        yield one._replace(doubt=off * factor + bent)


def truths(rows: Any, c: Any, right: bool, mirrored: Any) -> Iterator[Truth]:
    """Questions at thresholds; for both orders where this one has the larger profile."""
    logs, off = rows
    for i, row in enumerate(logs):
        if not LEAST_LOG < float(row[2]) <= float(row[:2].max()) < 0.0:
            continue
        if max(abs(c[i]), -float(row.min())) > FARTHEST:  # beyond the range of Decimal
            continue
        p, q, h = (mass(value) for value in row)
        # the line of this order's slope that lies below both curves touches this one
        other = -math.inf if mirrored is None else float(mirrored[0][i, 2])  # where not known, too
        whole = other > -math.inf and float(row[2]) - other > 1e-9
        for one in doubted({"p": p, "q": q, "h": h}, float(c[i]), right, 4.0 * off):
            yield one
            if whole:
                yield one._replace(adjacency="add_remove")
