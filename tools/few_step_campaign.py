"""Random questions of two to a hundred steps against independent truth.

Run ``python tools/few_step_campaign.py --questions 20000``.  Composition i of a seed is always
the same: what failed can be asked again with ``--first i --questions 1``.  Truth is that of
``tests/few_step_truth.py``, and shares no code with the engines; where it has none, the composition
is counted and left.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pyengine as pe

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from few_step_truth import Composition, Sides, in_balls, inverted, saddle

SMALLEST = Decimal("1e-290")
NEXT = Decimal("1e-9")
THRESHOLDS = 8  # on one contour of the truth


class Asked(NamedTuple):
    """A question with its true answer."""

    name: str
    argument: float
    adjacency: str
    truth: Decimal


def questions(sides: Sides, c: float, right: bool, other: Sides | None) -> Iterator[Asked]:
    """What the functionals at one threshold answer, corrected for the rounding of arguments."""
    p, q, h = sides["p"], sides["q"], sides["h"]
    level, power = (p, q) if right else (q, p)  # of the test that rejects on this side
    order = "add" if right else "remove"
    slope = Decimal(abs(c)).exp() if (c > 0) == right else (-Decimal(abs(c))).exp()
    if SMALLEST < level < Decimal("0.9") and power > SMALLEST:
        argument = float(level)
        yield Asked("gamma_bound", argument, order, power + slope * (Decimal(argument) - level))
    # the other order's test accepts on this side, with type-II error ``level``
    argument = float(1 - power)
    moved = (1 - Decimal(argument)) - power
    # both masses are known to 19 digits, of which their differences from 1 must keep some
    if NEXT < power < 1 - NEXT and level > SMALLEST:
        name = "remove" if right else "add"
        yield Asked("trade_off", argument, name, level + moved / slope)
    if (c > 0) != right or h < SMALLEST:
        return
    order = "remove" if right else "add"
    yield Asked("delta", abs(c), order, h)
    # d delta / d epsilon = -e^epsilon times the level
    argument = float(h)
    yield Asked(
        "epsilon", argument, order, Decimal(abs(c)) + (h - Decimal(argument)) / (slope * level)
    )
    if other is not None:
        yield Asked("delta", abs(c), "add_remove", max(h, other["h"]))


def compositions(seed: int, index: int) -> tuple[Composition, list[Asked]] | None:
    """Questions on one random composition; None where the truth is out of reach."""
    rng = np.random.default_rng([seed, index])
    steps = 2 if rng.random() < 0.2 else int(math.exp(rng.uniform(math.log(3), math.log(101))))
    law = Composition(
        float(f"{math.exp(rng.uniform(math.log(0.5), math.log(20.0))):.4g}"),
        float(f"{math.exp(rng.uniform(math.log(1e-4), 0.0)):.4g}"),
        steps,
    )
    right = bool(rng.random() < 0.5)
    scale = law.probability * math.sqrt(steps * math.expm1(min(law.noise**-2, 9.0)))
    first = (1.0 if right else -1.0) * scale * math.exp(rng.uniform(-4.0, 1.6))
    if steps == 2:
        sides = in_balls(law, first, right)
        return None if sides is None else (law, list(questions(sides, first, right, None)))
    found = saddle(law, first, right)
    if found is None:
        return None
    lam, deviation = found
    c = first + deviation * np.concatenate([[0.0], rng.uniform(-1.2, 1.2, THRESHOLDS - 1)])
    rows, others = inverted(law, lam, deviation, c), None
    if rows is None:
        return None
    if rng.random() < 0.25:
        mirrored = saddle(law, -first, not right)
        others = mirrored and inverted(law, *mirrored, -c)
    asked = []
    for i, row in enumerate(rows):
        asked += questions(row, float(c[i]), right, others[i] if others else None)
    return law, asked


def judge(law: Composition, asked: Asked, method: str = "auto") -> tuple[str, str]:
    """Verdict on one question, and what to print of it."""
    question: Any = getattr(pe, asked.name)
    where = (
        f"pe.{asked.name}(pe.dp_sgd{tuple(law)}, {asked.argument!r}, "
        f"adjacency={asked.adjacency!r}, method={method!r})"
    )
    given = {"adjacency": asked.adjacency, "method": method, "bounds": True}
    try:
        bounds = question(pe.dp_sgd(*law), asked.argument, **given)
    except pe.AccuracyError:
        return "refused", where
    truth = asked.truth
    if Decimal(bounds.lower) <= truth <= Decimal(bounds.upper):
        return "within", where
    miss = float((Decimal(bounds.value) - truth) / truth)
    claim = (bounds.upper - bounds.lower) / 2.0 / float(truth)
    return "OUTSIDE", f"{where}: truth {truth:.20e}, off by {miss:.2e}, claimed {claim:.2e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="composition to begin with")
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--method", default="auto")
    arguments = parser.parse_args()
    verdicts: Counter[str] = Counter()
    index = arguments.first
    while sum(verdicts.values()) - verdicts["no truth"] < arguments.questions:
        found = compositions(arguments.seed, index)
        if found is None:
            verdicts["no truth"] += 1
        for asked in found[1] if found else ():
            verdict, text = judge(found[0], asked, arguments.method)
            verdicts[verdict] += 1
            if verdict == "OUTSIDE":
                print(f"{index}: {verdict} {text}", flush=True)
        index += 1
        if index % 50 == 0:
            print(index, dict(verdicts), flush=True)
    print(index, dict(verdicts))


if __name__ == "__main__":
    main()
