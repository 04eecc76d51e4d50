"""Random menus: bounds of `pyengine.adaptive` beside a second program on another grid.

``python tools/adaptive_campaign.py --count 2000 --seed 1`` draws menus of one to three steps, plain
or sampled Gaussian, Laplace or randomized response, up to 5 steps, limits of all sorts, both orders
of neighbours and δ from 0.1 to 1e-5, and prints how many values of tests/adaptive_truth.py lie
outside of the bounds.  A menu takes about a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import pyengine as pe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from adaptive_truth import drawn, is_outside, judged

TOLERANCE = 1e-4
OTHERS = ("outside", "refused", "vague")


def main() -> int:
    """Print the counts; 1 if a value is outside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="menus")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    counts: Counter[tuple[str, str]] = Counter()
    farthest, start = 0.0, time.monotonic()
    for _ in range(given.count):
        if time.monotonic() - start > given.seconds:
            break
        case = drawn(rng)
        try:
            found, value, error = judged(case, TOLERANCE)
        except pe.AccuracyError as refusal:
            counts["refused", case.sort] += 1
            print(case, refusal, flush=True)
            continue
        for group in {case.sort, case.order, *(choice.kind for choice in case.menu)}:
            counts["asked", group] += 1
        if is_outside(found, value, error):
            counts["outside", case.sort] += 1
            print("outside:", case, found, value, error, flush=True)
        elif error > TOLERANCE * value:
            counts["vague", case.sort] += 1
        elif value > 0.0:
            farthest = max(farthest, abs(found.value / value - 1.0))
        asked = counts["asked", "add"] + counts["asked", "remove"]
        if asked % 50 == 0:
            print(f"{asked:,} asked", flush=True)
    asked, (outside, refused, vague) = (
        counts["asked", "add"] + counts["asked", "remove"],
        (sum(k for (what, _), k in counts.items() if what == name) for name in OTHERS),
    )
    print(
        f"{asked:,} menus, {refused} refused, {outside} outside; {vague} where the second program "
        f"has no four digits; values at most {farthest:.1e} apart in the others"
    )
    for (what, group), k in sorted(counts.items()):
        print(f"  {what}, {group}: {k:,}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
