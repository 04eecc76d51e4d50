"""Which engine proves bounds, and how closely, where questions are drawn evenly.

    python tools/reach.py [--questions 800] [--seed 1] [--list]
    python tools/reach.py --epochs [--questions 300] [--tolerance TOLERANCE]

DP-SGD: noise multipliers of 0.2 to 100, rates of 1e-7 to 1, 1 to 10^8 steps and values of 1e-30 to
0.5, all evenly in their logarithms.  Epochs of random allocation: noise 0.3 to 20, 2 to 10,000
steps, 1 to 100 epochs, values of 1e-12 to 1e-2; estimates must lie within bounds there.  An order
and a question are drawn, and ε of δ(ε) is one where δ is such a value.  Printed are shares of
engines, relative widths of answers above 1e-30 and seconds of the processor, by the number of steps
or of epochs.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from typing import NamedTuple

import numpy as np
from random_mechanisms import evenly

import pyengine as pe
from pyengine.api import QUESTIONS, answers

ORDERS = ("add", "remove", "add_remove")
LEAST, NARROW = 1e-30, 1e-10
SLACK = 1e-9  # of a value: more than estimates of epochs err by, far less than bounds are wide
STEPS = ((1, 1, "one step"), (2, 50, "2 to 50 steps"), (51, 10**8, "more steps"))
EPOCHS = ((1, 1, "one epoch"), (2, 9, "2 to 9 epochs"), (10, 100, "10 to 100 epochs"))


class Drawn(NamedTuple):
    """A run, the number that it is listed by, and a question."""

    run: pe.Mechanism
    number: int
    order: str
    question: str
    x: float


class Found(NamedTuple):
    """An answer: by which engine, its relative width, seconds, and whether the estimate is inside.

    The width is NaN of what is not above `LEAST`.
    """

    number: int
    engine: str
    width: float
    seconds: float
    inside: bool = True


def of_steps(rng: np.random.Generator) -> Drawn:
    """A question on DP-SGD."""
    noise, rate = evenly(rng, 0.2, 100.0), evenly(rng, 1e-7, 1.0)
    steps = int(evenly(rng, 1.0, 1e8))
    order, name = str(rng.choice(ORDERS)), str(rng.choice(list(QUESTIONS)))
    return Drawn(pe.dp_sgd(noise, rate, steps), steps, order, name, evenly(rng, LEAST, 0.5))


def of_epochs(rng: np.random.Generator) -> Drawn:
    """A question on epochs of random allocation."""
    noise, steps = evenly(rng, 0.3, 20.0), int(evenly(rng, 2.0, 1e4))
    epochs = 1 if rng.random() < 0.3 else int(evenly(rng, 2.0, 100.0))
    order, name = str(rng.choice(ORDERS)), str(rng.choice(list(QUESTIONS)))
    run = pe.dp_sgd_allocated(noise, steps, epochs)
    return Drawn(run, epochs, order, name, evenly(rng, 1e-12, 1e-2))


def answered(drawn: Drawn, tolerance: float | None, *, compares: bool) -> Found | None:
    """An answer; None where δ is out of reach."""
    run, number, order, name, x = drawn
    started = time.process_time()
    try:
        if name == "delta":
            x = pe.epsilon(run, x, adjacency=order)
            if x == 0.0:  # δ(0) is smaller
                return None
        started = time.process_time()
        bounds, engines, proven = answers(name, run, [x], adjacency=order, tolerance=tolerance)
    except pe.AccuracyError:
        return Found(number, "refused", math.inf, time.process_time() - started)
    seconds = time.process_time() - started
    lower, upper = float(bounds.lower[0]), float(bounds.upper[0])
    inside = True
    if compares:
        value = float(getattr(pe, name)(run, x, adjacency=order, bounds="estimated").value)
        inside = lower - SLACK * abs(value) <= value <= upper + SLACK * abs(value)
    width = (upper - lower) / upper if upper > LEAST else math.nan
    return Found(number, str(engines[0]) if proven[0] else "unproven", width, seconds, inside)


def show(words: str, some: list[Found]) -> None:
    """Print what came of a group."""
    shares = Counter(x.engine for x in some)
    listed = ", ".join(f"{engine} {n / len(some):.1%}" for engine, n in shares.most_common())
    outside = sum(not x.inside for x in some)
    print(f"{words}: {len(some)} questions: {listed}; {outside} estimates outside")
    widths = np.array([x.width for x in some if x.engine not in ("unproven", "refused")])
    widths = widths[~np.isnan(widths)]
    if widths.size:
        median, most = np.quantile(widths, [0.5, 0.9])
        wide = float((widths > NARROW).mean())
        print(f"  {widths.size} widths: median {median:.1e}, 9 in 10 {most:.1e}, largest", end=" ")
        print(f"{widths.max():.1e}, {wide:.1%} above {NARROW:g}")
    seconds = np.array([x.seconds for x in some])
    print(
        f"  seconds: median {np.median(seconds):.4f}, 99 % {np.quantile(seconds, 0.99):.2f},",
        end=" ",
    )
    print(f"largest {seconds.max():.1f}")


def main() -> int:
    """Print shares, widths and times; 1 where an estimate is outside."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", action="store_true", help="of random allocation")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--list", action="store_true", help="print what is wide or not proven")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    found: list[Found] = []
    while len(found) < given.questions:
        drawn = of_epochs(rng) if given.epochs else of_steps(rng)
        one = answered(drawn, given.tolerance, compares=given.epochs)
        if one is None:
            continue
        found.append(one)
        if not one.inside or (given.list and not one.width <= NARROW):
            print(one, *drawn[2:], drawn.run, flush=True)
    for low, high, words in EPOCHS if given.epochs else STEPS:
        some = [x for x in found if low <= x.number <= high]
        if some:
            show(words, some)
    return int(not all(x.inside for x in found))


if __name__ == "__main__":
    raise SystemExit(main())
