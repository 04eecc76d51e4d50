"""Two runs of a point, and the digits on which they agree."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flint import arb, ctx

from . import closed_form, hyperbola, line
from .line import NotFeasibleError
from .model import QUANTITIES, Point
from .saddle import Cumulants

LINES, REST = ["L0", "L1"], ["H0", "H1", "H2", "T2", "T3", "H3", "H4", "H5", "T4", "T5"]
BOTH_METHODS_SHARE = 4
SMALLEST = 1e-305
MOST_DIGITS = 30
ENOUGH_DIGITS = 15
GOOD_DIGITS = 17
PATIENCE, MOST_SECONDS = 3.0, 25.0
Run = Callable[[], list[dict[str, arb]]]


@dataclass(frozen=True)
class Answer:
    """Values and digits by quantity, how they were found, and the seconds it took."""

    values: dict[str, str]
    digits: dict[str, int]
    method: str
    seconds: float


class UnresolvedError(Exception):
    """No two runs agreed on enough digits."""


def solve(points: list[Point]) -> list[Answer | None]:
    """Return the reference values of a composition at thresholds near to each other.

    The transforms are made for the first threshold, and `UnresolvedError` tells that no two runs
    agree on 15 digits of all its quantities above 1e-305; another threshold has None then.
    """
    start = time.process_time()
    if closed_form.applies(points[0]):
        return [_enclosed(point, start) for point in points]
    done: list[tuple[str, list[dict[str, arb]]]] = []
    reasons: list[str] = []
    best: list[Answer | None] = []
    fewest_best = 0
    for name, run in _runs(points):
        spent = time.process_time() - start
        if spent > MOST_SECONDS or (best and spent > PATIENCE):
            break
        try:
            done.append((name, run()))
        except NotFeasibleError as error:
            reasons.append(str(error))
            continue
        for other, values in done[:-1]:
            fewest = min(agreed_digits(values[0], done[-1][1][0]).values())
            if fewest < ENOUGH_DIGITS:
                reasons.append(f"{other} and {name} agree on {fewest} digits")
            elif fewest > fewest_best:
                pairs = zip(values, done[-1][1], strict=True)
                best = [_answer(a, b, f"{other}+{name}", start) for a, b in pairs]
                fewest_best = fewest
        if fewest_best >= GOOD_DIGITS:
            break
    if not best:
        raise UnresolvedError("; ".join(reasons))
    return best


def _answer(one: dict[str, arb], other: dict[str, arb], method: str, start: float) -> Answer | None:
    digits = agreed_digits(one, other) if one and other else {}
    if not digits or min(digits.values()) < ENOUGH_DIGITS:
        return None
    return Answer(_strings(other, digits), digits, method, time.process_time() - start)


def _runs(points: list[Point]) -> Iterator[tuple[str, Run]]:
    """Yield runs in the order of preference; for one point in four, both methods first."""
    point = points[0]
    cumulants = Cumulants(point.phases)
    sequence = LINES + REST
    if len(point.phases) > 10:
        sequence = LINES
    elif zlib.crc32(repr(point.threshold).encode()) % BOTH_METHODS_SHARE == 0:
        sequence = ["L0", "H0", "L1", *REST[1:]]
    for name in sequence:
        module = hyperbola if name[0] == "H" else line
        variant = module.VARIANTS[int(name[1])]

        def run(module=module, variant=variant) -> list[dict[str, arb]]:
            return module.evaluate(points, module.plan(point, cumulants, variant))

        yield name, run


def agreed_digits(one: dict[str, arb], other: dict[str, arb]) -> dict[str, int]:
    """Return the digits on which two runs agree, radii included, for all that is not tiny."""
    result = {}
    before, ctx.prec = ctx.prec, 200
    try:
        for name in QUANTITIES:
            a, b = one[name], other[name]
            if abs(b.mid()) < SMALLEST:
                continue
            gap = (abs(a.mid() - b.mid()) + a.rad() + b.rad()) / abs(b.mid())
            size = min(max(float(gap.mid()), 10.0**-MOST_DIGITS), 1.0)
            result[name] = int(-math.log10(size))
    finally:
        ctx.prec = before
    return result


def _strings(values: dict[str, arb], digits: dict[str, int]) -> dict[str, str]:
    return {
        name: values[name].mid().str(min(21, digits[name] + 2), radius=False) for name in digits
    }


def _enclosed(point: Point, start: float) -> Answer:
    """Return closed-form values with the digits that their enclosures prove."""
    before, ctx.prec = ctx.prec, 256
    try:
        while True:
            balls = closed_form.evaluate(point)
            kept = {k: v for k, v in balls.items() if not abs(v) < SMALLEST}
            bits = min(v.rel_accuracy_bits() for v in kept.values())
            if bits >= 100 or ctx.prec > 20000:
                break
            ctx.prec *= 2
        digits = {
            k: min(MOST_DIGITS, int(v.rel_accuracy_bits() * math.log10(2))) for k, v in kept.items()
        }
        if min(digits.values()) < ENOUGH_DIGITS:
            raise UnresolvedError(f"closed form: {digits}")
        seconds = time.process_time() - start
        return Answer(_strings(kept, digits), digits, "closed_form", seconds)
    finally:
        ctx.prec = before
