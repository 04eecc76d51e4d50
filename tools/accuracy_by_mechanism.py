"""Accuracy of the default engines for each kind of mechanism, against their docstrings.

``python tools/accuracy_by_mechanism.py --questions 24 --seed 1`` asks random questions about every
kind of mechanism, compares each value with `pyengine.reference`, and prints a Markdown table. It
needs the extra ``reference``. δ of epochs of random allocation (estimates, as plain values are) and
of truncated samples is compared with ``tests/batch_truth.py``, which shares no code with pyengine.
Truths that take longer than ``--seconds`` are not used; the table says how many there were, and how
many of the others are not proven.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from answer_record import OutOfTimeError, limited
from random_mechanisms import evenly

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from batch_truth import NoTruthError, epoch_profile, truncated_profile

import pyengine as pe
from pyengine import reference
from pyengine._support.certainty import certainty
from pyengine.api import QUESTIONS, answers

Rng = np.random.Generator
DIGITS = 17
ROUNDING = 2.0**-52


class Truth(NamedTuple):
    """The true answer, an enclosure of it, and whether it is proven."""

    value: Any
    lower: Any
    upper: Any
    is_proven: bool


class Asked(NamedTuple):
    """A question about a mechanism, and what computes its truth."""

    mechanism: pe.Mechanism
    question: str
    at: float
    adjacency: str
    truth: Callable[[], Truth]
    proven: bool = True  # whether proven bounds are asked for


def steps(rng: Rng, most: int) -> int:
    return round(evenly(rng, 1.0, most))


def noise(rng: Rng) -> float:
    return evenly(rng, 0.5, 8.0)


def rate(rng: Rng) -> float:
    return evenly(rng, 1e-3, 0.5)


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
    return pe.GenericMechanism(evenly(rng, 0.01, 1.0), 1e-8).composed(steps(rng, 300))


def vectors(rng: Rng) -> pe.Mechanism:
    p, q = (rng.dirichlet(np.ones(4)) for _ in range(2))
    return pe.from_probabilities(list(p), list(q)).composed(steps(rng, 10))


def mixture(rng: Rng) -> pe.Mechanism:
    return pe.compose(dp_sgd(rng), pe.LaplaceMechanism(noise(rng) + 1.0))


DP = ("add", "remove", "add_remove")


def by_reference(
    make: Callable[[Rng], pe.Mechanism], adjacencies: tuple[str, ...] = DP
) -> Callable[[Rng, int], Asked]:
    """All questions and orders in turn, with arguments whose answers are not trivial or tiny."""

    def asked(rng: Rng, index: int) -> Asked:
        question = tuple(QUESTIONS)[index % 4]
        adjacency = adjacencies[index // 4 % len(adjacencies)]
        mechanism = make(rng)
        if question != "delta":
            at = evenly(rng, 1e-9, 0.3)
        else:
            end = float(pe.epsilon(mechanism, 1e-10, adjacency=adjacency, tolerance=1e-2))
            at = float(rng.uniform(0.0, min(end, 50.0)))

        def truth() -> Truth:
            ask = getattr(reference, question)
            found = ask(mechanism, at, adjacency=adjacency, digits=DIGITS)
            return Truth(found, found.lower, found.upper, found.certified)

        return Asked(mechanism, question, at, adjacency, truth)

    return asked


def beside(profile: Callable[[], Any], *, is_proven: bool) -> Callable[[], Truth]:
    """The truth by a profile of other code."""

    def truth() -> Truth:
        found = profile()
        return Truth(found, found * (1 - ROUNDING), found * (1 + ROUNDING), is_proven)

    return truth


def rounded(x: float) -> float:
    """A short decimal number, exactly the same for both sides."""
    return float(f"{x:.4g}")


def place(rng: Rng, run: pe.Mechanism, order: str) -> float:
    """An ε of a δ from 0.3 down to 1e-18."""
    return rounded(float(pe.epsilon(run, 10.0 ** -rng.uniform(0.5, 18.0), adjacency=order)))


def epoch(rng: Rng, index: int) -> Asked:
    """Noise 0.7 to 8, 2 to 10^5 steps."""
    sigma, number = rounded(evenly(rng, 0.7, 8.0)), int(evenly(rng, 2, 1e5))
    run, order = pe.dp_sgd_allocated(sigma, number, 1), DP[index % 2]
    at = place(rng, run, order)

    def profile() -> Any:
        return epoch_profile(sigma, number, at, order)

    return Asked(run, "delta", at, order, beside(profile, is_proven=False), proven=False)


def truncated(rng: Rng, index: int) -> Asked:
    """20 to 600 records, batches limited to up to twice the mean."""
    sigma, records = rounded(evenly(rng, 0.5, 6.0)), int(rng.integers(20, 600))
    p = Fraction(int(rng.integers(1, 50)), 100)
    batch = int(np.clip(round(records * float(p) * rng.uniform(0.7, 2.0)), 1, records - 1))
    run = pe.GaussianMechanism(sigma).truncated_poisson_sampled(
        p, batch_size=batch, dataset_size=records
    )
    order = DP[index % 2]
    at = place(rng, run, order)

    def profile() -> Any:
        return truncated_profile(sigma, p, batch, records, at, order)

    return Asked(run, "delta", at, order, beside(profile, is_proven=True))


KINDS: dict[str, Callable[[Rng, int], Asked]] = {
    "Gaussian, not sampled": by_reference(gaussian),
    "DP-SGD, one step": by_reference(one_step),
    "DP-SGD, more steps": by_reference(dp_sgd),
    "DP-SGD, `substitute`": by_reference(dp_sgd, ("substitute",)),
    "Gaussian, without replacement": by_reference(without_replacement),
    "Laplace, not sampled": by_reference(laplace),
    "Laplace, Poisson-sampled": by_reference(sampled_laplace),
    "discrete Gaussian": by_reference(discrete_gaussian),
    "discrete Laplace": by_reference(discrete_laplace),
    "randomized response": by_reference(randomized_response),
    "generic (ε, δ)": by_reference(generic),
    "two probability vectors": by_reference(vectors),
    "DP-SGD with a Laplace step": by_reference(mixture),
    "random allocation, one epoch": epoch,
    "truncated Poisson, one step": truncated,
}


def in_time(truth: Callable[[], Truth], seconds: float) -> Truth | None:
    """A truth, or None if there is none within some seconds of processor time."""
    try:
        with limited(seconds):
            return truth()
    except (pe.AccuracyError, NoTruthError, OutOfTimeError):
        return None


def measure(draw: Callable[[Rng, int], Asked], rng: Rng, questions: int, seconds: float) -> str:
    """Cells of one row: engines, certainty, widths, errors, counts."""
    engines: set[str] = set()
    words: set[str] = set()
    widths, errors, outside, refused, unknown, estimated = [], [], 0, 0, 0, 0
    for index in range(questions):
        try:
            mechanism, question, at, adjacency, truth, is_proof_asked = draw(rng, index)
            bounds, names, proven = answers(
                question, mechanism, [at], adjacency=adjacency, proven=is_proof_asked
            )
        except pe.AccuracyError:
            refused += 1
            continue
        lower, value, upper = (float(part[0]) for part in bounds)
        found = in_time(truth, seconds)
        if found is None or not 0 < found.value < math.inf:
            unknown += 1
            continue
        engines.add(names[0])
        words.add(certainty(proven[0]))
        widths.append((upper - lower) / 2.0 / value)
        errors.append(float(abs(found.value - value) / found.value))
        estimated += not found.is_proven
        outside += not (lower <= found.upper and found.lower <= upper)
    if not errors:
        return f"- | - | - | - | - | {refused} | {unknown} | 0"
    claimed = f"{np.median(widths):.0e}, {max(widths):.0e}"
    return (
        f"{', '.join(sorted(engines))} | {', '.join(sorted(words))} | {claimed} | "
        f"{max(errors):.1e} | {len(errors)} ({outside}) | {refused} | {unknown} | {estimated}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=24, help="of each kind (24)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="for one truth (60)")
    parser.add_argument("--kinds", nargs="*", metavar="NAME", help="only these kinds")
    arguments = parser.parse_args()
    print(
        "| mechanism | engines | bounds | half width, relative: median, largest | largest relative "
        "error | compared (outside) | refused | no truth | truth estimated |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (name, draw) in enumerate(KINDS.items()):
        if arguments.kinds and name not in arguments.kinds:
            continue
        rng = np.random.default_rng([arguments.seed, number])
        row = measure(draw, rng, arguments.questions, arguments.seconds)
        print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
