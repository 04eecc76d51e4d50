"""Which engine proves bounds of DP-SGD, and how closely, where questions are drawn evenly.

``python tools/proven_share.py --questions 1000`` draws noise multipliers of 0.2 to 100, rates of
1e-7 to 1, 1 to 10^8 steps and values of 1e-30 to 0.5, all evenly in their logarithms, an order and
a question; ε of δ(ε) is one where δ is such a value.  Widths are given of answers above 1e-30.
Of what lines do not prove it prints how many are few or rarely sampled steps, and how many are
estimated as closely.
`tools/second_contour.py` asks a million answers where a second contour knows the truth, which
leaves out few and rarely sampled steps; nothing is left out here, and nothing is held against
truth.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from typing import NamedTuple

import numpy as np

import pyengine as pe
from pyengine.api import QUESTIONS, answers

ORDERS = ("add", "remove", "add_remove")
LEAST, MOST = 1e-30, 0.5
NARROW = 1e-10
KINDS = ((1, 1, "one step"), (2, 50, "2 to 50 steps"), (51, 10**8, "more"))


def _evenly(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


class Found(NamedTuple):
    """One answer: how many steps and samples, by which engine, and relative widths.

    The widths are of what is proven, and, where no line proves it, of an estimate; NaN of what is
    not above `LEAST`.
    """

    steps: int
    samples: float
    engine: str
    width: float
    estimated: float
    question: str

    @property
    def is_left(self) -> bool:
        """Whether it is wide, or left to the lattice, or not proven."""
        return self.width > NARROW or self.engine in ("lattice", "unproven", "refused")


def _width(lower: float, upper: float) -> float:
    return (upper - lower) / upper if upper > LEAST else math.nan


def asked(rng: np.random.Generator, seconds: list[float]) -> Found | None:
    """One answer; None where δ is out of reach."""
    noise, rate = _evenly(rng, 0.2, 100.0), _evenly(rng, 1e-7, 1.0)
    steps = int(_evenly(rng, 1.0, 1e8))
    order, name = str(rng.choice(ORDERS)), str(rng.choice(list(QUESTIONS)))
    x = _evenly(rng, LEAST, MOST)
    run = pe.dp_sgd(noise, rate, steps)
    started = time.process_time()
    question = f"{name}(dp_sgd({noise!r}, {rate!r}, {steps}), "
    try:
        if name == "delta":
            x = pe.epsilon(run, x, adjacency=order)
            if x == 0.0:  # δ(0) is smaller
                return None
        question += f"{x!r}, adjacency={order!r})"
        started = time.process_time()
        bounds, engines, proven = answers(name, run, [x], adjacency=order)
    except pe.AccuracyError:
        seconds.append(time.process_time() - started)
        return Found(steps, steps * rate, "refused", math.inf, math.inf, question)
    seconds.append(time.process_time() - started)
    width = _width(float(bounds.lower[0]), float(bounds.upper[0]))
    engine, estimated = str(engines[0]) if proven[0] else "unproven", math.nan
    if engine in ("lattice", "unproven"):
        try:
            estimate = getattr(pe, name)(run, x, adjacency=order, bounds="estimated")
            estimated = _width(estimate.lower, estimate.upper)
        except pe.AccuracyError:
            estimated = math.inf
    return Found(steps, steps * rate, engine, width, estimated, question)


def main() -> None:
    """Print shares and widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print what is wide or not proven")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    seconds: list[float] = []
    found: list[Found] = []
    while len(found) < arguments.questions:
        answer = asked(rng, seconds)
        if answer is not None:
            found.append(answer)
            if arguments.list and answer.is_left:
                print(f"{answer.width:.1e} by {answer.engine}, {seconds[-1]:.2f} s", end=": ")
                print(answer.question, flush=True)
    for low, high, words in KINDS:
        some = [answer for answer in found if low <= answer.steps <= high]
        if not some:
            continue
        shares = Counter(answer.engine for answer in some)
        listed = ", ".join(f"{engine} {n / len(some):.1%}" for engine, n in shares.most_common())
        print(f"{words}: {len(some)} questions: {listed}")
        proven = [x.width for x in some if x.engine not in ("unproven", "refused")]
        widths = np.array([w for w in proven if not math.isnan(w)])
        if not widths.size:
            continue
        wide = float((widths > NARROW).mean())
        median = float(np.median(widths))
        print(f"  {widths.size} widths: median {median:.1e}, {wide:.1%} above {NARROW:g}")
    left = [x for x in found if x.engine in ("lattice", "unproven", "refused")]
    close = [x for x in left if x.estimated <= NARROW]
    few, rare = sum(x.steps <= 50 for x in left), sum(x.samples < 1.0 for x in left)
    print(
        f"not by lines nor in closed form: {len(left)}; of these {few} of at most 50 steps, "
        f"{rare} of a mean number of samples below 1, {len(close)} estimated within {NARROW:g}"
    )
    times = np.array(seconds)
    print(
        f"seconds: median {np.median(times):.4f}, 99 % {np.quantile(times, 0.99):.2f}, "
        f"largest {times.max():.1f}"
    )


if __name__ == "__main__":
    main()
