"""Each term of the bounds beyond the last t dropped, and divided by a hundred: who sees it.

    python tools/audit_envelope.py

The bounds of csrc/envelope.c (of a transform's modulus from some t on, of its integral, of log M at
any real power, of what a cut removes) are formed by sums so fine that their error terms lie below
rounding.  Here the kernel is compiled with one choice made coarse, so that a term carries the error
by itself, and once more with the term dropped, or a hundredth of it.  They are held against sums of
doubles on nodes of their own, which are known to 1e-11.  Printed is how many bounds lie below the
truth: with the term, without it, with a hundredth of it.  An argument chooses terms by their names.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from audit_certificate import Change, build, doubles
from compiling import ROOT
from scipy.special import ndtr

DOOR = ROOT / "tools" / "audit_envelope.c"
KNOWN = 1e-9  # relative; what the truths and the coarse bounds leave open
T = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 6.0)
DIGITS = (0.1, 1.0, 2.5, 5.0, 9.0)
STEPS = tuple(
    itertools.product((0.7, 1.0, 1.9, 5.0), (0.9, 0.3, 0.04), (0, 1), (-1.5, 0.4, 0.75, 2.25))
)

Judge = Callable[[Any], tuple[int, int]]


class Term(NamedTuple):
    """A term, its text, what stands before it, and the choices that make it matter."""

    name: str
    text: str
    before: str
    coarse: tuple[Change, ...]
    judge: str

    def changed(self, factor: str) -> tuple[Change, ...]:
        """The source with a part of the term."""
        new = f"{self.before}{factor} * ({self.text})"
        return (*self.coarse, ("envelope.c", self.before + self.text, new))


WIDE = ("envelope.c", "WIDEST = 0.5", "WIDEST = 12.0")
SHORT = ("envelope.c", "last = ceil(s->x_high / h)", "last = ceil((s->x_high - 9.0) / h)")
BARE = ("envelope.c", "2.0 * size / waves + side + below", "2.0 * size / waves + below")
LATE = ("envelope.c", "s->x_low - 2.0", "s->x_low + 9.0")
CUT = ("shifted.h", "PE_FARTHEST 40.0", "PE_FARTHEST 6.0")
TERMS = (
    Term("modulus: spacing", "2.0 * size / waves", "sum * scale + ", (WIDE,), "modulus"),
    Term("modulus: edge of the sum", "side", "2.0 * size / waves + ", (WIDE, SHORT), "modulus"),
    Term("modulus: below the nodes", "below", "side + ", (LATE,), "modulus"),
    Term("modulus: beyond the edge", "fmin(falls / t, rest)", "below + ", (SHORT, BARE), "modulus"),
    Term("integral: what was summed", "lifted * over", "return (", (), "integral"),
    Term("integral: beyond the edge", "beyond", "lifted * over + ", (SHORT,), "integral"),
    Term("log M: spacing", "miss", "pe_d_log(sum + ", (WIDE,), "above"),
    Term("log M: what lies outside", "beyond", "sum + miss + ", (), "above"),
    Term("log M: rounding", "1e-14 * (10.0 + reach)",
         "pe_d_log(sum + miss + beyond) + ", (), "above"),
    Term("removed mass", "pe_normals_above(&part->law.b, part->cut)",
         "sums[1] += part->terms.share.h * ", (CUT,), "removed"),
)  # fmt: skip


def _law(noise: float, p: float, backward: int) -> tuple[Any, Any, float]:
    """Logs of density and loss at fine nodes of z, and their spacing."""
    z = np.arange(-16.0, 17.0 + 40.0 / noise, 0.004)
    ratio = np.log1p(p * np.expm1(np.minimum(z / noise - 0.5 / noise**2, 700.0)))
    log_a = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    return (log_a + ratio, -ratio, 0.004) if backward else (log_a, ratio, 0.004)


def _moduli(step: tuple[float, float, int, float], t: Any) -> Any:
    """|M(lambda + it)|/M(lambda)."""
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


def moduli(kernel: Any) -> tuple[int, int]:
    """Bounds of the modulus from each t on, and how many lie below what it is there or later."""
    asked = outside = 0
    for step, bound, _ in _bounds(kernel):
        truth = np.maximum.accumulate(_moduli(step, T)[::-1])[::-1]
        known = np.isfinite(bound)
        asked += int(known.sum())
        outside += int((known & (bound < truth * (1.0 - KNOWN))).sum())
    return asked, outside


def integrals(kernel: Any) -> tuple[int, int]:
    """Bounds of the integral from each t on with the kernel t'/t, up to t = 12."""
    grid = np.geomspace(T[0], 12.0, 600)
    kept: dict[Any, Any] = {}
    asked = outside = 0
    for step, _, bound in _bounds(kernel):
        if step not in kept:
            kept[step] = _moduli(step, grid)
        for t, value in zip(T, bound, strict=True):
            later = grid >= t
            truth = t * np.trapezoid(kept[step][later] / grid[later], grid[later])
            asked += bool(np.isfinite(value))
            outside += bool(value < truth * 0.99)  # the rule's own error is below 1e-3
    return asked, outside


def _above(kernel: Any) -> Iterator[tuple[Any, Any]]:
    for step, digits in itertools.product(STEPS, (0.1, 1.0, 2.5, 5.0, 9.0, 40.0)):
        out = (ctypes.c_double * 4)()
        given = [ctypes.c_double(x) for x in step[:2]]
        rest = [ctypes.c_double(x) for x in (step[3], digits)]
        if not kernel.audit_above(*given, step[2], *rest, out):
            yield step, np.array(out)


def powers(kernel: Any) -> tuple[int, int]:
    """Bounds of log M."""
    asked = outside = 0
    for step, out in _above(kernel):
        log_a, loss, h = _law(*step[:3])
        exponent = log_a + step[3] * loss
        top = exponent.max()
        truth = top + np.log(np.sum(np.exp(exponent - top)) * h)
        asked += bool(np.isfinite(out[0]))
        outside += bool(out[0] < truth - 1e-12 - 1e-13 * abs(top))
    return asked, outside


def removed(kernel: Any) -> tuple[int, int]:
    """Bounds of the probability under the sampled law that z is beyond the cut."""
    asked = outside = 0
    for step, out in _above(kernel):
        noise, p, backward, power = step
        if (backward == 0) != (power >= 0.5):
            continue  # the sampled law is the first one of the pair whose power is at least 1/2
        truth = (1.0 - p) * ndtr(-out[3]) + p * ndtr(1.0 / noise - out[3])
        asked += 1
        outside += bool(max(out[1], out[2]) < truth * (1.0 - KNOWN))
    return asked, outside


JUDGES: dict[str, Judge] = {
    "modulus": moduli,
    "integral": integrals,
    "above": powers,
    "removed": removed,
}


def judged(term: Term, factor: str | None, folder: Path) -> tuple[int, int]:
    """What was asked, and what was outside; with the whole term where no factor is given."""
    changes = term.coarse if factor is None else term.changed(factor)
    return JUDGES[term.judge](build(folder, changes, [DOOR]))


def main() -> int:
    """Print the table; 1 where something is outside with its term, 2 where a text is gone."""
    text = (ROOT / "csrc" / "envelope.c").read_text(encoding="utf-8")
    failed = 0
    print("| term | asked | outside with it | dropped | a hundredth of it |")
    print("|---|---|---|---|---|")
    for term in TERMS:
        if len(sys.argv) > 1 and sys.argv[1] not in term.name:
            continue
        if term.before + term.text not in text:
            print(f"{term.name}: the text to change is gone", file=sys.stderr)
            return 2
        found = []
        for factor in (None, "0.0", "0.01"):
            with tempfile.TemporaryDirectory() as folder:
                found.append(judged(term, factor, Path(folder)))
        (number, with_it), (_, dropped), (_, part) = found
        failed += with_it > 0
        print(f"| {term.name} | {number} | {with_it} | {dropped} | {part} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
