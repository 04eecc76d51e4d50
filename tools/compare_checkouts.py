"""Processor time of γ, proven γ and many values, beside another checkout in one run.

    python tools/compare_checkouts.py --beside PATH

PATH is a checkout with its own ``.venv``, of any commit.  The Pythons of both are asked in turn,
and the least of the rounds counts: ratios hold where single times move with what else the machine
does.  Every mechanism is made anew; "kept" is a question to one that was asked before.  With
``--laplace`` proven δ, γ and ε of Laplace steps are asked instead.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# noise, rate and number of Laplace steps, and what is asked of them; δ at the ε of `GOAL`
STEPS = (10, 100, 300, 1000, 10_000)
MORE_STEPS = (20, 30, 60)  # where they are asked for
NOISES = (
    (1.0, 0.1),
    (10.0, 0.01),
    (1.0, 1.0),
    (0.5, 1e-3),
    (0.5, 1e-6),
    (0.3, 1e-3),
    (0.3, 1e-4),
    (0.25, 0.01),
    (0.2, 0.01),
    (0.2, 1e-4),
)
LAPLACE = [(*noise, steps) for noise in NOISES for steps in (*MORE_STEPS, *STEPS)]
GOAL = 1e-6
QUESTIONS: dict[str, tuple[str, float | None]] = {
    "δ": ("delta", None),
    "γ": ("gamma_bound", 1e-3),
    "ε": ("epsilon", GOAL),
}
ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "asv_bench" / "benchmarks"
SIX = runpy.run_path(str(BENCHMARKS / "workflows.py"))["WORKFLOWS"]
KAPPA = 1e-5
TURN = 0.02  # seconds that a turn takes at least
MANY = {
    "10,000 γ(κ)": ("gamma_bound", np.geomspace(1e-9, 0.5, 10_000)),
    "10,000 ε(δ)": ("epsilon", np.geomspace(1e-9, 1e-3, 10_000)),
    "10,000 δ(ε)": ("delta", np.linspace(0.0, 4.0, 10_000)),
}
KINDS = {
    "200 noises of 2 to 4": (2.0, 4.0, 0.05),
    "200 noises of 0.8 to 1.6": (0.8, 1.6, 0.01),
}


def actions() -> dict[str, Callable[[], Any]]:
    """Return what is timed, by names; only what every commit answers."""
    import pyengine as pe

    clear = runpy.run_path(str(BENCHMARKS / "cold.py"))["clear_cache"]
    found: dict[str, Callable[[], Any]] = {}

    def add(name: str, make: Callable[[], Any], ask: Callable[[Any], Any]) -> None:
        """Enter a question about what `make` makes, from nothing and kept."""
        made = make()

        def cold() -> None:
            clear()
            ask(make())

        found[name], found[f"kept {name}"] = cold, lambda: ask(made)

    for name, six in SIX.items():
        make = lambda six=six: pe.dp_sgd(*six)  # noqa: E731
        add(f"plain {name}", make, lambda made: pe.gamma_bound(made, KAPPA))
        add(f"proven {name}", make, lambda made: pe.gamma_bound(made, KAPPA, bounds=True))
    for name, (function, x) in MANY.items():
        ask = getattr(pe, function)
        add(name, lambda: pe.dp_sgd(0.8, 0.001, 10_000), lambda made, ask=ask, x=x: ask(made, x))
    for name, (low, high, rate) in KINDS.items():
        steps = [pe.dp_sgd(noise, rate, 1) for noise in np.linspace(low, high, 200)]
        kinds = pe.compose(*steps)
        add(name, lambda kinds=kinds: kinds, lambda made: pe.gamma_bound(made, 1e-3))
    return found


def laplace(noise: float, rate: float, steps: int) -> Any:
    """Return equal Laplace steps."""
    import pyengine as pe

    step: Any = pe.LaplaceMechanism(noise)
    return (step if rate == 1.0 else step.poisson_sampled(rate)).composed(steps)


def laplace_actions() -> dict[str, Callable[[], Any]]:
    """Return proven questions on Laplace steps, by names, from nothing and kept."""
    import pyengine as pe

    clear = runpy.run_path(str(BENCHMARKS / "cold.py"))["clear_cache"]
    found: dict[str, Callable[[], Any]] = {}
    for noise, rate, steps in LAPLACE:
        made = laplace(noise, rate, steps)
        # found when first asked, which is not timed
        epsilon = cache(lambda made=made: pe.epsilon(made, GOAL))
        for letter, (function, x) in QUESTIONS.items():

            def kept(
                made: Any = made,
                function: str = function,
                x: float | None = x,
                epsilon: Callable[[], float] = epsilon,
            ) -> None:
                getattr(pe, function)(made, epsilon() if x is None else x, bounds=True)

            def cold(kept: Callable[[], None] = kept) -> None:
                clear()
                kept()

            name = f"{letter} {noise:g} {rate:g} {steps}"
            found[name], found[f"kept {name}"] = cold, kept
    return found


def serve() -> None:
    """Answer each name on a line with the processor time of one question."""
    known = actions() | laplace_actions()
    for line in sys.stdin:
        ask = known[line.rstrip("\n")]
        ask()
        times, start = 0, time.process_time()
        while times == 0 or time.process_time() - start < TURN:
            for _ in range(10):
                ask()
            times += 10
        print((time.process_time() - start) / times, flush=True)


class Worker:
    """The Python of one checkout."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name: str) -> float:
        """Processor time of one question."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        print(name, file=asked, flush=True)
        return float(answers.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def measured(workers: list[Worker], names: list[str], rounds: int) -> dict[str, list[float]]:
    """Least times of each question, one for each worker."""
    least = {name: [float("inf")] * len(workers) for name in names}
    for _ in range(rounds):
        for name, times in least.items():
            for i, worker in enumerate(workers):
                times[i] = min(times[i], worker.seconds(name))
    return least


def ratio(above: float, below: float) -> str:
    return f"({above / below:.2f})"


def print_workflows(least: dict[str, list[float]], chosen: list[str]) -> None:
    """Print γ of the workflows; proven γ also beside plain γ there."""
    print("γ(κ) in microseconds: here, there (ratio); proven also beside plain γ there")
    print(f"{'':18}{'plain':>24}{'proven':>24}{'to plain':>10}{'kept':>22}{'kept proven':>22}")
    for name in chosen:
        line = f"{name:18}"
        for question, width in (
            (f"plain {name}", 24),
            (f"proven {name}", 24),
            (f"kept plain {name}", 22),
            (f"kept proven {name}", 22),
        ):
            here, *there = least[question]
            text = f"{1e6 * here:.1f}"
            if there:
                text += f", {1e6 * there[0]:.1f} {ratio(here, there[0])}"
            line += f"{text:>{width}}"
            if question.startswith("proven"):
                plain = least[f"plain {name}"][-1]
                line += f"{ratio(here, plain) if there else '':>10}"
        print(line)


def print_many(least: dict[str, list[float]]) -> None:
    """Print thousands of values, and many kinds of steps."""
    print("\nmany values or kinds in milliseconds: here, there (ratio)")
    print(f"{'':26}{'from nothing':>24}{'kept':>24}")
    for name in (*MANY, *KINDS):
        line = f"{name:26}"
        for question in (name, f"kept {name}"):
            here, *there = least[question]
            text = f"{1e3 * here:.3g}"
            if there:
                text += f", {1e3 * there[0]:.3g} {ratio(here, there[0])}"
            line += f"{text:>24}"
        print(line)


def print_laplace(least: dict[str, list[float]], cases: list[tuple[float, float, int]]) -> None:
    """Print brackets of Laplace steps."""
    print("\nproven questions on Laplace steps in milliseconds: here, there (ratio)")
    print(f"{'noise, rate, steps':22}" + f"{'from nothing':^20}{'kept':^20}" * len(QUESTIONS))
    print(" " * 22 + "".join(f"{letter:^40}" for letter in QUESTIONS))
    for case in cases:
        words = " ".join(f"{x:g}" for x in case[:2]) + f" {case[2]}"
        line = f"{words:22}"
        for letter in QUESTIONS:
            for how in ("", "kept "):
                here, *there = least[f"{how}{letter} {words}"]
                text = f"{1e3 * here:.2f}"
                if there:
                    text += f", {1e3 * there[0]:.2f} {ratio(here, there[0])}"
                line += f"{text:>20}"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="the other checkout, with its .venv")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each question")
    parser.add_argument("--only", nargs="+", choices=[*SIX], help="these workflows alone")
    parser.add_argument(
        "--laplace", nargs="*", type=int, help="Laplace steps alone: so many, or 10 to 10,000"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    pythons = [sys.executable]
    if given.beside is not None:
        python = given.beside.resolve() / ".venv" / "bin" / "python"
        if not python.exists():
            parser.error(f"--beside must be a checkout with .venv/bin/python, got {given.beside}")
        pythons.append(str(python))
    if given.laplace is not None:
        cases = [case for case in LAPLACE if case[2] in (given.laplace or STEPS)]
        workers = [Worker(python) for python in pythons]
        asked = [
            f"{how}{letter} {noise:g} {rate:g} {steps}"
            for noise, rate, steps in cases
            for letter in QUESTIONS
            for how in ("", "kept ")
        ]
        least = measured(workers, asked, given.rounds)
        for worker in workers:
            worker.close()
        print_laplace(least, cases)
        return
    chosen = given.only or list(SIX)
    names = [
        f"{how}{kind} {name}"
        for name in chosen
        for how in ("", "kept ")
        for kind in ("plain", "proven")
    ]
    many = (
        [] if given.only else [f"{how}{name}" for name in (*MANY, *KINDS) for how in ("", "kept ")]
    )
    workers = [Worker(python) for python in pythons]
    least = measured(workers, names + many, given.rounds)
    for worker in workers:
        worker.close()
    print_workflows(least, chosen)
    if many:
        print_many(least)


if __name__ == "__main__":
    main()
