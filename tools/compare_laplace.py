"""Equal Laplace steps: δ by laws on panels beside the lattice and dp-accounting, in one run.

Needs dp-accounting for its column, which is left out elsewhere (extra ``peers``).  Times are the
least of three of processor time, from nothing; dp-accounting's grid is its default one, 1e-4.
Ours and dp-accounting's δ are the larger one of both orders.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import time
from collections.abc import Callable
from typing import Any

from compare_checkouts import GOAL, QUESTIONS, laplace

import pyengine as pe
from pyengine.caches import clear_cache

CASES = (
    (1.0, 0.1),
    (2.0, 0.2),
    (10.0, 0.01),
    (100.0, 1.0),
    (1.0, 1.0),
    (0.5, 1e-3),
    (0.5, 1e-6),
    (0.3, 1e-3),
)
STEPS = (10, 100, 1000, 10_000)


def seconds(action: Callable[[], Any], least: int) -> tuple[float, Any]:
    times = []
    for _ in range(least):
        clear_cache()
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
    return min(times), result


def ours(mechanism: Any, name: str, x: float, method: str, least: int) -> tuple[float, Any]:
    ask: Any = getattr(pe, name)
    return seconds(lambda: ask(mechanism, x, method=method, bounds=True), least)


def theirs(noise: float, p: float, steps: int, epsilon: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_laplace_mechanism(noise, sampling_prob=p)
    return step.self_compose(steps).get_delta_for_epsilon(epsilon)


def line(noise: float, p: float, steps: int, name: str, x: float, least: int) -> str:
    """Times and widths of one question; dp-accounting's for δ."""
    mechanism = laplace(noise, p, steps)
    cells = [f"{noise:5g} {p:5g} {steps:7d}   {name:11}"]
    found = {}
    for method in ("auto", "lattice"):
        spent, found[method] = ours(mechanism, name, x, method, least)
        upper = found[method].upper
        width = (upper - found[method].lower) / upper if upper else 0.0
        cells.append(f"{1e3 * spent:8.1f} {width:8.0e}   ")
    if name == "delta" and importlib.util.find_spec("dp_accounting") is not None:
        spent, value = seconds(lambda: theirs(noise, p, steps, x), least)
        cells.append(f"{1e3 * spent:8.1f} {abs(value / found['auto'].value - 1.0):8.0e}")
    return " ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=3, help="runs of which the least time counts")
    given = parser.parse_args()
    print(
        "noise     p       N   question   panels ms  width   lattice ms  width   dp-acc. ms  error"
    )
    for (noise, p), steps in itertools.product(CASES, STEPS):
        epsilon = pe.epsilon(laplace(noise, p, steps), GOAL)
        for name, x in QUESTIONS.values():
            level = epsilon if x is None else x
            print(line(noise, p, steps, name, level, given.least), flush=True)


if __name__ == "__main__":
    main()
