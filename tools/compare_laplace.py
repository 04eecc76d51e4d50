"""Equal Laplace steps: δ and ε with proven bounds beside dp-accounting, from nothing, in one run.

    PYTHONPATH=. python tools/compare_laplace.py

Needs dp-accounting (extra ``peers``), whose grid is its default one, 1e-4; PYTHONPATH says which
checkout is measured if the environment has another one.  Both are asked in turn, and the ratio is
the median over the rounds of processor time, each from nothing; a composition of dp-accounting is
made once a round and counts for both questions.  Ours and dp-accounting's δ are the larger one of
both orders.  With ``--lattice`` the lattice is asked as well.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from compare_checkouts import GOAL, laplace
from dp_accounting.pld import privacy_loss_distribution as pld

import pyengine as pe
from pyengine.caches import clear_cache

GRID = tuple(itertools.product((0.5, 1.0, 3.0), (0.01, 0.1, 1.0)))
MORE = ((2.0, 0.2), (10.0, 0.01), (100.0, 1.0), (0.5, 1e-3), (0.5, 1e-6), (0.3, 1e-3))
STEPS = (10, 100, 1000, 10_000)
QUESTIONS = {"delta": "get_delta_for_epsilon", "epsilon": "get_epsilon_for_delta"}


class Times(NamedTuple):
    """A question at a level, its seconds here and there, and what came of it."""

    level: float
    here: float
    there: float
    ours: Any
    theirs: float


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def ours(noise: float, p: float, steps: int, name: str, x: float, method: str) -> Any:
    """Bounds of a mechanism that is made anew, from nothing."""
    clear_cache()
    ask: Any = getattr(pe, name)
    return ask(laplace(noise, p, steps), x, method=method, bounds=True)


def theirs(noise: float, p: float, steps: int) -> Any:
    return pld.from_laplace_mechanism(noise, sampling_prob=p).self_compose(steps)


def one_round(noise: float, p: float, steps: int, asked: dict[str, float]) -> dict[str, Times]:
    """All questions on both sides."""
    making, law = seconds(partial(theirs, noise, p, steps))
    found = {}
    for name, x in asked.items():
        here, bounds = seconds(partial(ours, noise, p, steps, name, x, "auto"))
        there, value = seconds(partial(getattr(law, QUESTIONS[name]), x))
        found[name] = Times(x, here, making + there, bounds, value)
    return found


def rounds(noise: float, p: float, steps: int, budget: float, most: int) -> dict[str, list[Times]]:
    """Rounds until the budget of seconds is spent."""
    asked = {"delta": pe.epsilon(laplace(noise, p, steps), GOAL), "epsilon": GOAL}
    found: dict[str, list[Times]] = {name: [] for name in asked}
    spent, count = 0.0, 0
    while count < most and spent < budget:
        used, parts = seconds(partial(one_round, noise, p, steps, asked))
        for name, part in parts.items():
            found[name].append(part)
        spent, count = spent + used, count + 1
    return found


def width(bounds: Any) -> float:
    return (bounds.upper - bounds.lower) / bounds.upper if bounds.upper else 0.0


def row(found: list[Times]) -> tuple[float, list[str]]:
    """The ratio, and what is printed of a question."""
    ratio = statistics.median(each.here / each.there for each in found)
    here = 1e3 * statistics.median(each.here for each in found)
    there = 1e3 * statistics.median(each.there for each in found)
    bounds, value = found[-1].ours, found[-1].theirs
    off = abs(value / bounds.value - 1.0)
    cells = [f"{here:.1f}", f"{width(bounds):.0e}", f"{there:.1f}", f"{off:.0e}", f"{ratio:.2f}"]
    return ratio, cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="the most of each row")
    parser.add_argument("--budget", type=float, default=0.6, help="seconds of a row")
    parser.add_argument("--lattice", action="store_true", help="ask the lattice as well")
    parser.add_argument("--only", default="", help="rows that begin so, as 0.5,0.01")
    given = parser.parse_args()
    print("noise, rate, N, question | ms here | width | ms dp-accounting | off | ratio")
    slower, widest, ratios = 0, 0.0, []
    for (noise, p), steps in itertools.product(GRID + MORE, STEPS):
        if not f"{noise:g},{p:g},{steps},".startswith(given.only):
            continue
        for name, found in rounds(noise, p, steps, given.budget, given.rounds).items():
            ratio, cells = row(found)
            if given.lattice:
                asked = partial(ours, noise, p, steps, name, found[-1].level, "lattice")
                spent, bounds = seconds(asked)
                cells += [f"lattice {1e3 * spent:.1f}", f"{width(bounds):.0e}"]
            print(" | ".join([f"{noise:g}, {p:g}, {steps}, {name}", *cells]), flush=True)
            slower += ratio > 1.0
            widest = max(widest, width(found[-1].ours))
            ratios.append(ratio)
    print(
        f"{len(ratios)} rows, {slower} slower, widest {widest:.0e}, "
        f"median ratio {statistics.median(ratios):.3f}, largest {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
