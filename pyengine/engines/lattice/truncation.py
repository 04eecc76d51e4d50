"""Ranges of the steps and window of the sum, chosen from the survey.

All numbers here are guesses; the composition certifies what they lead to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part, scaled_tail
from pyengine.engines.lattice.grid import Place
from pyengine.engines.lattice.partition import Term
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn

__all__ = ["Windows", "windows_at", "windows_of_sum", "windows_of_term"]

FloatArray = npt.NDArray[np.float64]
Range = tuple[float, float, npt.NDArray[np.bool_]]  # ends, and the atoms of the survey inside

SMALL = 1e-3  # what truncation and aliases may take of the tolerance
FACTORS = np.geomspace(2.0**-10, 64.0, 49)  # distances of tilts, in units of 1/sd
NOISE = 1e-12  # rounding of a tail sum, roughly, in parts of the tilted mass
SMALLER = (0.8, 0.6, 0.4, 0.2)  # tilts tried, as parts of the saddle point's
LIGHT = 16.0  # nats by which what is folded down must lie below the tilted mass


# Map: truncation of a lattice to a window | test_lattice | theory/lattice
def _window(
    found: CoarseCumulants, tilt: float, log_small: float
) -> tuple[float, float, float, float]:
    """Losses beyond which the tilted law has little mass, and the tilts of Chernoff's bounds."""
    total, _, variance = found.cumulants(tilt)
    deviation = math.sqrt(max(variance, 1e-300))
    ends = []
    for sign in (-1.0, 1.0):
        others = tilt + sign * FACTORS / deviation
        others = others[np.abs(others - tilt) * found.width < 600.0]
        if not others.size:
            others = np.array([tilt + sign * 300.0 / max(found.width, 1e-300)])
        edges = (found.many(others)[0] - total - log_small) / (others - tilt)
        best = int(np.argmin(sign * edges))
        ends += [float(edges[best]), float(others[best])]
    return ends[0], ends[2], ends[1], ends[3]


def _range(
    law: StepLaw,
    loss: FloatArray,
    log_a: FloatArray,
    tilt: float,
    log_scale: float,
    log_small: float,
    log_lost: float,
) -> Range:
    """Where one step's mass may be folded onto the ends of its range, and the atoms inside."""
    bare = fn.log_sums(log_a)
    # for a tilt <= 0, whatever the other steps do, a step adds no more than its bare mass
    outside = bare < log_lost if tilt <= 0.0 else bare + tilt * loss - log_scale < log_small
    low = int(np.argmin(outside))  # the first that must be inside
    above = fn.log_sums((log_a + tilt * loss - log_scale)[::-1])[::-1]
    bare = fn.log_sums((log_a + loss)[::-1])[::-1]
    outside = (above < log_small) & (bare + (tilt - 1.0) * loss - log_scale < log_small)
    high = loss.size - 1 - int(np.argmin(outside[::-1]))
    lowest, highest = law.support()
    inside = np.zeros(loss.size, dtype=np.bool_)
    inside[max(low - 2, 0) : high + 3] = True
    return (
        float(loss[low - 2]) if low >= 2 else max(lowest, float(loss[0]) - 1.0),
        float(loss[high + 2]) if high + 2 < loss.size else min(highest, float(loss[-1]) + 1.0),
        inside,
    )


def _folded(loss: FloatArray, log_a: FloatArray, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Masses inside a range, with what is beyond it at its ends, for the larger of both laws."""
    first, last = np.flatnonzero(inside)[[0, -1]]
    kept = log_a[inside].copy()
    kept[0] = fn.log_sum(log_a[: first + 1])
    if last + 1 < loss.size:
        beyond = fn.log_sum((log_a + loss)[last + 1 :]) - loss[last]
        kept[-1] = fn.logaddexp(kept[-1], beyond)
    return kept


class Windows(NamedTuple):
    """Ranges of the steps, and ends and outer tilts of the window, for a tilt."""

    tilt: float
    ranges: list[Range]
    window: tuple[float, float, float, float]

    @property
    def width(self) -> float:
        """Width of the window."""
        return self.window[1] - self.window[0]


def windows_at(
    parts: tuple[Part, ...], found: CoarseCumulants, place: Place, tilt: float, log_small: float
) -> Windows:
    """Ranges of the steps and window of the sum with a given tilt."""
    log_each = log_small - fn.log(sum(found.steps))
    total = found.cumulants(tilt)[0]
    log_value = min(total - tilt * place.reach[0], place.log_least) if place.outer else 0.0
    each = [
        (law, loss, log_a, *cumulants)
        for (law, _), loss, log_a, cumulants in zip(
            parts, found.loss, found.log_mass, found.step_cumulants(tilt), strict=True
        )
    ]
    ranges = [
        _range(law, loss, log_a, tilt, scale, log_each, log_each + log_value)
        for law, loss, log_a, scale, _ in each
    ]
    window = _window(_cut(found, ranges), tilt, log_small)
    if place.outer:
        # a step beyond what takes the sum out of reach, whatever the others do, may lie nearer
        top = place.reach[1]
        if top == math.inf:
            _, mean, variance = found.cumulants(0.0)
            top = max(mean + 2.0 * math.sqrt(variance), 0.0)
        room = 1.1 * (top - window[0])
        ranges = [
            _lowered(loss, ranges[i], mean + room, log_a + tilt * loss[0] - scale, tilt)
            for i, (_, loss, log_a, scale, mean) in enumerate(each)
        ]
        window = _window(_cut(found, ranges), tilt, log_small)
    s_low, s_high, tilt_low, tilt_high = window
    return Windows(tilt, ranges, (min(s_low, place.reach[0]), s_high, tilt_low, tilt_high))


def windows_of_sum(
    parts: tuple[Part, ...], found: CoarseCumulants, tilt: float, log_small: float, log_lost: float
) -> Windows:
    """Ranges and window of a sum that is to be one step of others.

    What is outside counts at the ends of the window, and A's mass below as lost: tilts of at most 0
    below and of at least 1 above bound it for both laws.  It is to be below ``log_small`` tilted,
    and below ``log_lost`` as it is.
    """
    total, _, variance = found.cumulants(tilt)
    away = FACTORS / math.sqrt(max(variance, 1e-300))
    least, most = min(tilt, 0.0), max(tilt, 1.0)
    below = np.append(least - away, tilt - away)
    below = below[(below <= 0.0) & ((tilt - below) * found.width < 600.0)]
    if not below.size:
        below = np.array([least - 300.0 / max(found.width, 1e-300)])
    above = np.append(most + away, most)
    above = above[(above > tilt) & ((above - tilt) * found.width < 600.0)]
    if not above.size:
        above = np.array([most + 300.0 / max(found.width, 1e-300)])
    logs = found.many(below)[0]
    low = float(np.max((log_small + total - logs) / (tilt - below)))
    bare = below < 0.0
    if bare.any():
        low = min(low, float(np.max((logs[bare] - log_lost) / below[bare])))
    tilt_low = float(below[np.argmin((tilt - below) * low + logs)])
    ends = (found.many(above)[0] - total - log_small) / (above - tilt)
    high = float(np.min(ends))
    tilt_high = float(above[np.argmin(ends)])
    log_each = log_small - fn.log(sum(found.steps))
    ranges = [
        _range(law, loss, log_a, tilt, scale, log_each, log_lost - fn.log(sum(found.steps)))
        for (law, _), loss, log_a, (scale, _) in zip(
            parts, found.loss, found.log_mass, found.step_cumulants(tilt), strict=True
        )
    ]
    return Windows(tilt, ranges, (low, high, tilt_low, tilt_high))


def _cut(found: CoarseCumulants, ranges: list[Range]) -> CoarseCumulants:
    """The survey with each step folded onto its range."""
    return CoarseCumulants(
        tuple(loss[r[2]] for loss, r in zip(found.loss, ranges, strict=True)),
        tuple(
            _folded(loss, log_a, r[2])
            for loss, log_a, r in zip(found.loss, found.log_mass, ranges, strict=True)
        ),
        found.steps,
    )


def _lowered(
    loss: FloatArray, given: Range, ceiling: float, log_a: FloatArray, tilt: float
) -> Range:
    """A range without what lies above a ceiling, unless folding gives much tilted mass.

    ``log_a`` is that of all masses as they were at the first loss.
    """
    low, high, inside = given
    away = loss - loss[0]
    folded = fn.log_sums(log_a[::-1])[::-1] + tilt * away
    of_b = fn.log_sums((log_a + away)[::-1])[::-1] + (tilt - 1.0) * away
    folded = np.maximum(folded, of_b)
    heavy = np.flatnonzero(folded > -LIGHT)
    if heavy.size:
        ceiling = max(ceiling, float(loss[min(int(heavy[-1]) + 1, loss.size - 1)]))
    kept = inside & (loss <= ceiling)
    last = int(np.flatnonzero(inside)[-1])
    if ceiling >= high or np.count_nonzero(kept) < 2 or kept[last]:
        return given
    return low, float(loss[np.flatnonzero(kept)[-1]]), kept


def windows_of_term(term: Term, place: Place, tolerance: float, alone: bool) -> Windows:
    """Ranges and window that take a small part of the tolerance.

    The saddle point needs the fewest digits, but where single large steps matter its tilted law is
    wider than that of a smaller tilt: of those at which rounding does not matter, the narrowest,
    unless the term is one of several.
    """
    found = term.survey
    total, _, variance = found.cumulants(place.tilt)
    share = min(scaled_tail(abs(place.tilt) * math.sqrt(max(variance, 1e-300))), 1.0)
    if place.outer:
        share *= -fn.expm1(-min(1.0 / (1.0 + abs(place.tilt)), 0.3 * math.sqrt(variance)))
    share = max(share, 1e-300)
    log_small = fn.log(max(SMALL * tolerance * share / (1.0 + abs(place.tilt)), 1e-300)) - 3.0
    best = windows_at(term.parts, found, place, place.tilt, min(log_small - term.excess, -3.0))
    if not (place.outer and alone) or place.tilt == 0.0:
        return best
    allowed = fn.log(0.05 * tolerance * share / NOISE)
    low = place.reach[0]
    tail = min(place.log_least, total - place.tilt * low)
    for factor in SMALLER:
        tilt = factor * place.tilt
        excess = found.cumulants(tilt)[0] - tilt * low - tail
        if excess > allowed:
            break
        other = windows_at(term.parts, found, place, tilt, log_small - excess)
        if other.width < best.width:
            best = other
    return best
