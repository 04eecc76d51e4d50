"""How many random questions on mixtures of normals the spectral engine leaves to the lattice.

``python tools/mixture_reach.py`` draws 600 questions as tests/reference_mixtures/generate.py does,
whatever their values are, and prints how many are refused by number of steps, and processor times.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path

import pyengine as pe

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reference_mixtures")]

from generate import drawn  # noqa: E402
from test_normal_mixtures import mechanism_of  # noqa: E402

QUESTIONS, SEED = 600, 7
KINDS = {"2 to 9 steps": 2, "10 to 99": 10, "100 to 3,000": 100}


def main() -> None:
    rng, asked, refused, times = random.Random(SEED), [], [], []
    for _ in range(QUESTIONS):
        row = drawn(rng)
        kind = [name for name, least in KINDS.items() if row["steps"] >= least][-1]
        asked.append(kind)
        begun = time.process_time()
        try:
            pe.delta(
                mechanism_of(row),
                float(row["epsilon"]),
                adjacency=row["adjacency"],
                method="spectral",
            )
        except pe.AccuracyError:
            refused.append(kind)
        times.append(time.process_time() - begun)
    for kind in KINDS:
        print(f"{kind}: {refused.count(kind)} of {asked.count(kind)} left to the lattice")
    print(f"all: {len(refused)}; median time {1e3 * statistics.median(times):.2f} ms")


if __name__ == "__main__":
    main()
