"""How many random questions on mixtures of normals each fast engine leaves to the next one.

``python tools/mixture_reach.py`` draws 600 questions as tests/reference_mixtures/generate.py does,
whatever their values are, asks the engines in turn until one answers, and prints how many each has
left by number of steps, and processor times.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyengine as pe

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reference_mixtures")]

from generate import drawn  # noqa: E402
from test_normal_mixtures import mechanism_of  # noqa: E402

QUESTIONS, SEED = 600, 7
ENGINES = ("spectral", "convolution", "lattice")
KINDS = {"2 to 9 steps": 2, "10 to 99": 10, "100 to 3,000": 100}


def answers(row: dict[str, Any], method: str) -> bool:
    """Whether an engine answers a question within its error limits."""
    try:
        pe.delta(
            mechanism_of(row), float(row["epsilon"]), adjacency=row["adjacency"], method=method
        )
    except pe.AccuracyError:
        return False
    return True


def main() -> None:
    rng = random.Random(SEED)
    asked: Counter[str] = Counter()
    left: dict[str, Counter[str]] = {engine: Counter() for engine in ENGINES}
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(QUESTIONS):
        row = drawn(rng)
        kind = [name for name, least in KINDS.items() if row["steps"] >= least][-1]
        asked[kind] += 1
        for engine in ENGINES:
            begun = time.process_time()
            answered = answers(row, engine)
            times[engine].append(time.process_time() - begun)
            if answered:
                break
            left[engine][kind] += 1
    for kind, number in asked.items():
        rest = ", ".join(f"{left[engine][kind]} by {engine}" for engine in ENGINES)
        print(f"{kind}: of {number} left {rest}")
    for engine in ENGINES:
        median, most = statistics.median(times[engine]), max(times[engine])
        print(f"{engine}: {len(times[engine])} asked, {sum(left[engine].values())} left, ", end="")
        print(f"processor time {1e3 * median:.2f} ms (median) to {most:.1f} s")


if __name__ == "__main__":
    main()
