"""Error terms of the bounds beyond the last t, each dropped, and divided by a hundred.

The bounds of csrc/envelope.c (of a transform's modulus from some t on, of its integral, of log M at
any real power, of the mass that a cut removes) are computed by sums so fine that their error terms
are below rounding. They are compared with sums of doubles on other nodes, which are known to 1e-11.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from compiling import ROOT, doubles
from error_terms import Asked, Switch, constant, operation, times
from scipy.special import ndtr

DOOR = ROOT / "tools" / "audit_envelope.c"
KNOWN = 1e-9  # relative uncertainty of the truths and of the coarse bounds
T = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 6.0)
DIGITS = (0.1, 1.0, 2.5, 5.0, 9.0)
STEPS = tuple(
    itertools.product((0.7, 1.0, 1.9, 5.0), (0.9, 0.3, 0.04), (0, 1), (-1.5, 0.4, 0.75, 2.25))
)

E, H = "envelope.c", "shifted.h"
SWITCHES = (
    constant("widest", E, "WIDEST"),
    operation("short", (E, "last = ceil(s->x_high / h)", "last = ceil((s->x_high - {x}) / h)")),
    Switch("start", -2.0, ((E, "s->x_low - 2.0", "s->x_low + {x}"),)),
    Switch("farthest", 40.0, ((H, "PE_FARTHEST 40.0", "PE_FARTHEST {x}"),)),
)
WIDE, SHORT = {"widest": 12.0}, {"short": 9.0}
BARE = {**SHORT, "factor of modulus: edge of the sum": 0.0}
TERMS = (
    times("modulus: spacing", E, "sum * scale + ", "2.0 * size / waves", "modulus", WIDE),
    times("modulus: edge of the sum", E, "2.0 * size / waves + ", "side", "modulus",
          {**WIDE, **SHORT}),
    times("modulus: below the nodes", E, "side + ", "below", "modulus", {"start": 9.0}),
    times("modulus: beyond the edge", E, "below + ", "fmin(falls / t, rest)", "modulus", BARE),
    times("integral: what was summed", E, "return (", "lifted * over", "integral"),
    times("integral: beyond the edge", E, "lifted * over + ", "beyond", "integral", SHORT),
    times("log M: spacing", E, "pe_d_log(sum + ", "miss", "above", WIDE),
    times("log M: what lies outside", E, "sum + miss + ", "beyond", "above"),
    times("log M: rounding", E, "pe_d_log(sum + miss + beyond) + ", "1e-14 * (10.0 + reach)",
          "above"),
    times("removed mass", E, "sums[1] += part->terms.share.h * ",
          "pe_normals_above(&part->law.b, part->cut)", "removed", {"farthest": 6.0}),
)  # fmt: skip
# No case is known where one of these decides.
UNSEEN = ("modulus: edge of the sum", "integral: beyond the edge", "log M: rounding")


def _law(noise: float, p: float, backward: int) -> tuple[Any, Any, float]:
    """Logs of density and loss at fine nodes of z, and their spacing."""
    z = np.arange(-16.0, 17.0 + 40.0 / noise, 0.004)
    ratio = np.log1p(p * np.expm1(np.minimum(z / noise - 0.5 / noise**2, 700.0)))
    log_a = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    return (log_a + ratio, -ratio, 0.004) if backward else (log_a, ratio, 0.004)


@cache
def _moduli(step: tuple[float, float, int, float], t: tuple[float, ...]) -> Any:
    """|M(lambda + it)|/M(lambda), cached because terms ask for the same values."""
    log_a, loss, _ = _law(*step[:3])
    weight = np.exp(log_a + step[3] * loss)
    keep = weight > weight.max() * 1e-17
    weight, loss = weight[keep] / weight[keep].sum(), loss[keep]
    return np.array([abs(np.sum(weight * np.exp(1j * x * loss))) for x in t])


def _bounds(kernel: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Steps with both bounds at all t."""
    for step, digits in itertools.product(STEPS[::3], DIGITS):
        found = (ctypes.c_double * len(T))(), (ctypes.c_double * len(T))()
        given = [ctypes.c_double(x) for x in (*step[:2],)]
        rest = [ctypes.c_double(x) for x in (step[3], digits)]
        status = kernel.audit_envelope(
            *given, step[2], *rest, ctypes.c_size_t(len(T)), doubles(T), *found
        )
        if not status:
            yield step, np.array(found[0]), np.array(found[1])


def moduli(kernel: Any) -> Asked:
    """Bounds of the modulus from each t on, and how many lie below the modulus there or beyond."""
    asked = outside = 0
    for step, bound, _ in _bounds(kernel):
        truth = np.maximum.accumulate(_moduli(step, tuple(T))[::-1])[::-1]
        known = np.isfinite(bound)
        asked += int(known.sum())
        outside += int((known & (bound < truth * (1.0 - KNOWN))).sum())
    return Asked(asked, outside)


def integrals(kernel: Any) -> Asked:
    """Bounds of the integral from each t on with the kernel t'/t, up to t = 12."""
    grid = np.geomspace(T[0], 12.0, 600)
    asked = outside = 0
    for step, _, bound in _bounds(kernel):
        modulus = _moduli(step, tuple(grid.tolist()))
        for t, value in zip(T, bound, strict=True):
            later = grid >= t
            truth = t * np.trapezoid(modulus[later] / grid[later], grid[later])
            asked += bool(np.isfinite(value))
            outside += bool(value < truth * 0.99)  # the rule's own error is below 1e-3
    return Asked(asked, outside)


def _above(kernel: Any) -> Iterator[tuple[Any, Any]]:
    for step, digits in itertools.product(STEPS, (0.1, 1.0, 2.5, 5.0, 9.0, 40.0)):
        out = (ctypes.c_double * 4)()
        given = [ctypes.c_double(x) for x in step[:2]]
        rest = [ctypes.c_double(x) for x in (step[3], digits)]
        if not kernel.audit_above(*given, step[2], *rest, out):
            yield step, np.array(out)


def powers(kernel: Any) -> Asked:
    """Bounds of log M."""
    asked = outside = 0
    for step, out in _above(kernel):
        log_a, loss, h = _law(*step[:3])
        exponent = log_a + step[3] * loss
        top = exponent.max()
        truth = top + np.log(np.sum(np.exp(exponent - top)) * h)
        asked += bool(np.isfinite(out[0]))
        outside += bool(out[0] < truth - 1e-12 - 1e-13 * abs(top))
    return Asked(asked, outside)


def removed(kernel: Any) -> Asked:
    """Bounds of the probability under the sampled law that z is beyond the cut."""
    asked = outside = 0
    for step, out in _above(kernel):
        noise, p, backward, power = step
        if (backward == 0) != (power >= 0.5):
            continue  # the sampled law is the first one of the pair whose power is at least 1/2
        truth = (1.0 - p) * ndtr(-out[3]) + p * ndtr(1.0 / noise - out[3])
        asked += 1
        outside += bool(max(out[1], out[2]) < truth * (1.0 - KNOWN))
    return Asked(asked, outside)


JUDGES: dict[str, Callable[[Any], Asked]] = {
    "modulus": moduli,
    "integral": integrals,
    "above": powers,
    "removed": removed,
}
