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
from pathlib import Path

import numpy as np
from bounds_tally import Case, Truth, campaign
from contour_truths import questions
from random_mechanisms import evenly

import pyengine as pe

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from few_step_truth import Composition, in_balls, inverted, saddle

THRESHOLDS = 8  # on one contour of the truth


def composition(rng: np.random.Generator) -> tuple[Composition, list[Truth]]:
    """Questions on one random composition; none where the truth is out of reach."""
    steps = 2 if rng.random() < 0.2 else int(evenly(rng, 3, 101))
    law = Composition(
        float(f"{evenly(rng, 0.5, 20.0):.4g}"),
        float(f"{evenly(rng, 1e-4, 1.0):.4g}"),
        steps,
    )
    right = bool(rng.random() < 0.5)
    scale = law.probability * math.sqrt(steps * math.expm1(min(law.noise**-2, 9.0)))
    first = (1.0 if right else -1.0) * scale * math.exp(rng.uniform(-4.0, 1.6))
    if steps == 2:
        sides = in_balls(law, first, right)
        return law, [] if sides is None else list(questions(sides, first, right))
    found = saddle(law, first, right)
    if found is None:
        return law, []
    lam, deviation = found
    c = first + deviation * np.concatenate([[0.0], rng.uniform(-1.2, 1.2, THRESHOLDS - 1)])
    rows, others = inverted(law, lam, deviation, c), None
    if rows is None:
        return law, []
    if rng.random() < 0.25:
        mirrored = saddle(law, -first, not right)
        others = mirrored and inverted(law, *mirrored, -c)
    asked = []
    for i, row in enumerate(rows):
        asked += questions(row, float(c[i]), right, others[i] if others else None)
    return law, asked


def case(rng: np.random.Generator, _: argparse.Namespace) -> Case:
    """A random composition with its truths."""
    law, asked = composition(rng)
    return Case(pe.dp_sgd(*law), f"{law}", asked)


def main() -> None:
    more = argparse.ArgumentParser(add_help=False)
    more.add_argument("--method", default="auto")
    campaign(__doc__, {"few steps": case}, more, answers=20_000)


if __name__ == "__main__":
    main()
