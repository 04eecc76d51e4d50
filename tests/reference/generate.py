"""Draw the points, solve them, write the file as it grows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import flint
import numpy as np

from . import sampling, store
from .solve import UnresolvedError, solve

Record = dict[str, Any]


def provenance(seed: int, drawn: int) -> dict[str, Any]:
    """Return how the file was made."""
    return {
        "command": f"python -m tests.reference generate --seed {seed}",
        "python-flint": flint.__version__,
        "flint": flint.__FLINT_VERSION__,
        "numpy": np.__version__,
        "seed": seed,
        "drawn": drawn,
    }


def generate(path: Path, seed: int, limit: int, seconds: float, resume: bool) -> None:
    """Write up to `limit` points, stopping after `seconds`, and print progress.

    The file is replaced as a whole, every 25 draws; a draw depends on the seed and its own number
    only, so that one can resume after those that the file holds.
    """
    start = time.perf_counter()
    points: list[Record] = []
    failures: list[Record] = []
    first = 0
    if resume:
        first, points, failures = store.read(path)
    for number, (stratum, index) in enumerate(sampling.order()[:limit], 1):
        if number <= first:
            continue
        attempt(seed, stratum, index, points, failures)
        elapsed = time.perf_counter() - start
        if number % 25 == 0 or elapsed > seconds:
            store.write(path, provenance(seed, number), points, failures)
            counts = f"{number} draws: {len(points)} points, {len(failures)} failures"
            print(f"{counts}, {elapsed:.0f} s", flush=True)
        if elapsed > seconds:
            return
    store.write(path, provenance(seed, len(sampling.order()[:limit])), points, failures)


def retry(path: Path, seed: int, seconds: float) -> None:
    """Try the failures of a file again."""
    start = time.perf_counter()
    drawn, points, failures = store.read(path)
    left = list(failures)
    for old in failures:
        if time.perf_counter() - start > seconds:
            break
        left.remove(old)
        attempt(seed, old["stratum"], old["index"], points, left)
        store.write(path, provenance(seed, drawn), points, left)
        print(f"{len(points)} points, {len(left)} failures", flush=True)


@flint.ctx.workprec(53)  # whatever others set, that the points are the same
def attempt(
    seed: int, stratum: str, index: int, points: list[Record], failures: list[Record]
) -> None:
    """Draw and solve one point, and append it to the points or to the failures."""
    drawn = sampling.draw(seed, stratum, index)
    point = sampling.place(drawn)
    if point is None:
        failures.append(_refusal(drawn, index, "no double just above the infimum of S"))
        return
    group = [point, *sampling.neighbours(point)]
    try:
        answers = solve(group)
    except UnresolvedError as error:
        failures.append(_refusal(drawn, index, str(error), point.threshold))
        return
    solved = [(p, a) for p, a in zip(group, answers, strict=True) if a is not None]
    points.extend(store.record(*pair) for pair in solved)
    if solved[0][1].seconds > 10:
        print(f"slow: {solved[0][1].seconds:.1f} s {store.parameters(point)}", flush=True)


def _refusal(drawn: sampling.Draw, index: int, why: str, threshold: float | None = None) -> Record:
    return {
        "stratum": drawn.stratum,
        "index": index,
        "noise": [phase.noise for phase in drawn.phases],
        "p": [phase.probability for phase in drawn.phases],
        "steps": [phase.steps for phase in drawn.phases],
        "tail": [drawn.measure, drawn.log10_tail],
        "c": threshold,
        "why": why,
    }
