"""Accuracy of the default engines for each kind of mechanism, against their docstrings.

``python tools/accuracy_by_mechanism.py --questions 24 --seed 1`` asks random questions about every
kind of mechanism, compares each value with `pyengine.reference`, and prints a Markdown table. It
needs the extra ``reference``. Truths that take longer than ``--seconds`` are not used; the table
says how many there were, and how many of the others are only estimates of the reference.
"""

from __future__ import annotations

import argparse
import math
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

import pyengine as pe
from pyengine import reference
from pyengine._support.certainty import certainty
from pyengine.api import QUESTIONS, answers

Rng = np.random.Generator
DIGITS = 17


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def steps(rng: Rng, most: int) -> int:
    return round(log_uniform(rng, 1.0, most))


def noise(rng: Rng) -> float:
    return log_uniform(rng, 0.5, 8.0)


def rate(rng: Rng) -> float:
    return log_uniform(rng, 1e-3, 0.5)


def gaussian(rng: Rng) -> pe.Mechanism:
    return pe.GaussianMechanism(noise(rng)).composed(steps(rng, 1000))


def dp_sgd(rng: Rng) -> pe.Mechanism:
    return pe.dp_sgd(noise(rng), rate(rng), max(2, steps(rng, 10_000)))


def one_step(rng: Rng) -> pe.Mechanism:
    return pe.dp_sgd(noise(rng), rate(rng), 1)


def without_replacement(rng: Rng) -> pe.Mechanism:
    size = int(rng.integers(100, 10_000))
    batch = max(1, round(size * rate(rng)))
    step = pe.GaussianMechanism(noise(rng))
    sampled = step.sampled_without_replacement(batch_size=batch, dataset_size=size)
    return sampled.composed(steps(rng, 300))


def laplace(rng: Rng) -> pe.Mechanism:
    return pe.LaplaceMechanism(noise(rng)).composed(steps(rng, 30))


def sampled_laplace(rng: Rng) -> pe.Mechanism:
    return pe.LaplaceMechanism(noise(rng)).poisson_sampled(rate(rng)).composed(steps(rng, 20))


def discrete_gaussian(rng: Rng) -> pe.Mechanism:
    return pe.DiscreteGaussianMechanism(noise(rng)).composed(steps(rng, 20))


def discrete_laplace(rng: Rng) -> pe.Mechanism:
    return pe.DiscreteLaplaceMechanism(noise(rng)).composed(steps(rng, 20))


def randomized_response(rng: Rng) -> pe.Mechanism:
    return pe.RandomizedResponse(float(rng.uniform(0.3, 0.9))).composed(steps(rng, 300))


def generic(rng: Rng) -> pe.Mechanism:
    return pe.GenericMechanism(log_uniform(rng, 0.01, 1.0), 1e-8).composed(steps(rng, 300))


def vectors(rng: Rng) -> pe.Mechanism:
    p, q = (rng.dirichlet(np.ones(4)) for _ in range(2))
    return pe.from_probabilities(list(p), list(q)).composed(steps(rng, 10))


def mixture(rng: Rng) -> pe.Mechanism:
    return pe.compose(dp_sgd(rng), pe.LaplaceMechanism(noise(rng) + 1.0))


DP = ("add", "remove", "add_remove")
KINDS: dict[str, tuple[Callable[[Rng], pe.Mechanism], tuple[str, ...]]] = {
    "Gaussian, not sampled": (gaussian, DP),
    "DP-SGD, one step": (one_step, DP),
    "DP-SGD, more steps": (dp_sgd, DP),
    "DP-SGD, `substitute`": (dp_sgd, ("substitute",)),
    "Gaussian, without replacement": (without_replacement, DP),
    "Laplace, not sampled": (laplace, DP),
    "Laplace, Poisson-sampled": (sampled_laplace, DP),
    "discrete Gaussian": (discrete_gaussian, DP),
    "discrete Laplace": (discrete_laplace, DP),
    "randomized response": (randomized_response, DP),
    "generic (ε, δ)": (generic, DP),
    "two probability vectors": (vectors, DP),
    "DP-SGD with a Laplace step": (mixture, DP),
}


def argument(rng: Rng, question: str, mechanism: pe.Mechanism, adjacency: str) -> float:
    """An argument whose answer is neither trivial nor below 1e-12."""
    if question != "delta":
        return log_uniform(rng, 1e-9, 0.3)
    end = float(pe.epsilon(mechanism, 1e-10, adjacency=adjacency, tolerance=1e-2))
    return float(rng.uniform(0.0, min(end, 50.0)))


class TooLongError(Exception):
    """The reference takes longer than allowed."""


def truth(question: str, mechanism: pe.Mechanism, at: float, adjacency: str, seconds: int) -> Any:
    """Value of the reference with its error, or None."""

    def stop(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        ask = getattr(reference, question)
        return ask(mechanism, at, adjacency=adjacency, digits=DIGITS)
    except (pe.AccuracyError, TooLongError):
        return None
    finally:
        signal.alarm(0)


def measure(
    make: Callable[[Rng], pe.Mechanism],
    adjacencies: tuple[str, ...],
    rng: Rng,
    questions: int,
    seconds: int,
) -> str:
    """Cells of one row: engines, certainty, widths, errors, counts."""
    engines: set[str] = set()
    widths, errors, outside, refused, unknown, estimated = [], [], 0, 0, 0, 0
    for index in range(questions):
        question = tuple(QUESTIONS)[index % 4]
        adjacency = adjacencies[index // 4 % len(adjacencies)]
        mechanism = make(rng)
        try:
            at = argument(rng, question, mechanism, adjacency)
            bounds, names, _ = answers(question, mechanism, [at], adjacency=adjacency)
        except pe.AccuracyError:
            refused += 1
            continue
        lower, value, upper = (float(part[0]) for part in bounds)
        found = truth(question, mechanism, at, adjacency, seconds)
        if found is None or not 0 < found < math.inf:
            unknown += 1
            continue
        engines.add(names[0])
        widths.append((upper - lower) / 2.0 / value)
        errors.append(float(abs(found - value) / found))
        estimated += not found.certified
        outside += not (lower <= found.upper and found.lower <= upper)
    if not errors:
        return f"- | - | - | - | - | {refused} | {unknown} | 0"
    words = sorted({certainty(name) for name in engines})
    claimed = f"{np.median(widths):.0e}, {max(widths):.0e}"
    return (
        f"{', '.join(sorted(engines))} | {', '.join(words)} | {claimed} | {max(errors):.1e} | "
        f"{len(errors)} ({outside}) | {refused} | {unknown} | {estimated}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=24, help="of each kind (24)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="for one truth (60)")
    parser.add_argument("--kinds", nargs="*", metavar="NAME", help="only these kinds")
    arguments = parser.parse_args()
    print(
        "| mechanism | engines | bounds | half width, relative: median, largest | largest relative "
        "error | compared (outside) | refused | no truth | truth estimated |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (name, (make, adjacencies)) in enumerate(KINDS.items()):
        if arguments.kinds and name not in arguments.kinds:
            continue
        rng = np.random.default_rng([arguments.seed, number])
        row = measure(make, adjacencies, rng, arguments.questions, arguments.seconds)
        print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
