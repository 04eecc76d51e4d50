"""Proven bounds of random epochs, held against the estimates, and how wide they are.

``python tools/epoch_widths.py [--count COUNT] [--seed SEED] [--tolerance TOLERANCE]`` draws runs of
1 to 100 epochs of random allocation (noise 0.3 to 20, 2 to 10,000 steps, all of them of every size
alike), an adjacency, a question and a value of 1e-2 to 1e-12, prints those whose estimate lies
outside of the bounds, those that are refused, and widths and times by the number of epochs.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

import numpy as np

import pyengine as pe

QUESTIONS = {
    "delta": pe.delta,
    "epsilon": pe.epsilon,
    "gamma": pe.gamma_bound,
    "beta": pe.trade_off,
}
SLACK = 1e-9  # of a value: more than what estimates err by, far less than bounds are wide


class Found(NamedTuple):
    """Width relative to the value, seconds of the processor, and whether the estimate is inside."""

    epochs: int
    width: float
    seconds: float
    inside: bool


def drawn(rng: np.random.Generator) -> tuple[pe.Mechanism, int, str, str, float]:
    """A run, its epochs, an adjacency, a question and its argument."""
    noise = math.exp(rng.uniform(math.log(0.3), math.log(20.0)))
    steps = int(math.exp(rng.uniform(math.log(2.0), math.log(1e4))))
    epochs = 1 if rng.random() < 0.3 else int(math.exp(rng.uniform(math.log(2.0), math.log(100.0))))
    run = pe.dp_sgd_allocated(noise, steps, epochs)
    adjacency = str(rng.choice(["add", "remove", "add_remove"]))
    question = str(rng.choice(list(QUESTIONS)))
    level = 10.0 ** rng.uniform(-12.0, -2.0)
    if question == "delta":
        return run, epochs, adjacency, question, pe.epsilon(run, level, adjacency=adjacency)
    return run, epochs, adjacency, question, level


def asked(run: pe.Mechanism, question: str, x: float, tolerance: float | None, **how: Any) -> Any:
    """Bounds and an estimate."""
    ask = QUESTIONS[question]
    sure = ask(run, x, bounds=True, tolerance=tolerance, **how)
    return sure, ask(run, x, bounds="estimated", **how).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=None)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    found: list[Found] = []
    refused = 0
    for _ in range(given.count):
        case = drawn(rng)
        run, epochs, adjacency, question, x = case
        start = time.process_time()
        try:
            sure, value = asked(run, question, x, given.tolerance, adjacency=adjacency)
        except pe.AccuracyError as error:
            refused += 1
            print("refused", case, error)
            continue
        seconds = time.process_time() - start
        slack = SLACK * abs(value)
        inside = sure.lower - slack <= value <= sure.upper + slack
        width = (sure.upper - sure.lower) / sure.upper if sure.upper > 0.0 else 0.0
        found.append(Found(epochs, width, seconds, inside))
        if not inside or width > 1e-2:
            print("wide" if inside else "OUTSIDE", case, sure, value)
    print(f"{len(found)} answered, {refused} refused, {sum(not f.inside for f in found)} outside")
    for low, high in ((1, 1), (2, 9), (10, 100)):
        group = [f for f in found if low <= f.epochs <= high]
        if not group:
            continue
        widths, seconds = (np.array([f[i] for f in group]) for i in (1, 2))
        print(
            f"{low} to {high} epochs: {len(group)}, width median {np.median(widths):.1e}, 9 in 10 "
            f"{np.quantile(widths, 0.9):.1e}, largest {widths.max():.1e}; seconds median "
            f"{np.median(seconds):.1f}, largest {seconds.max():.1f}"
        )


if __name__ == "__main__":
    main()
