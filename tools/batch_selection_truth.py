"""Random settings of batch schemes against independent truth, as a table.

``python tools/batch_selection_truth.py`` draws settings of four families, asks for δ(ε) with an
estimate of its error, and compares it with tests/batch_truth.py or, for mixtures of normals,
tests/reference_mixtures/generate.py, which share no code with pyengine. It writes
docs/batch_selection_truth.md; ``--count`` and ``--seed`` change the draw, ``--family`` runs one
family.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import pyengine as pe

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reference_mixtures")]

from batch_truth import (  # noqa: E402
    NoTruthError,
    bounded_range_profile,
    epoch_profile,
    truncated_profile,
)
from generate import AGREE, drawn, profile  # noqa: E402
from test_normal_mixtures import mechanism_of  # noqa: E402

PAGE = ROOT / "docs" / "batch_selection_truth.md"
SEED = 20261122
Case = tuple[str, Callable[[], Any], Callable[[], tuple[float, float, float]]]


def rounded(x: float, digits: int = 4) -> float:
    """A short decimal number, exactly the same for both sides."""
    return float(f"{x:.{digits}g}")


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Log-uniform."""
    return rounded(math.exp(rng.uniform(math.log(low), math.log(high))))


def order(rng: np.random.Generator) -> str:
    """One order of neighbours."""
    return str(rng.choice(["add", "remove"]))


def one_epoch(rng: np.random.Generator) -> Case:
    """Random allocation: noise 0.7 to 8, 2 to 10^5 steps; δ from 0.3 down to 1e-18."""
    noise, steps = between(rng, 0.7, 8.0), int(between(rng, 2, 1e5))
    adjacency = order(rng)
    run = pe.dp_sgd_allocated(noise, steps, 1)
    epsilon = rounded(pe.epsilon(run, 10.0 ** -rng.uniform(0.5, 18.0), adjacency=adjacency))
    return (
        f"noise {noise:g}, {steps} steps, epsilon {epsilon:g}, {adjacency}",
        lambda: epoch_profile(noise, steps, epsilon, adjacency),
        lambda: pe.delta(run, epsilon, adjacency=adjacency, bounds="estimated"),
    )


def mixture(rng: np.random.Generator) -> Case:
    """Steps of mixtures, substitution and truncated samples, as their own tests draw them."""
    row = drawn(random.Random(int(rng.integers(2**32))))

    def truth() -> float:
        first = profile(row, 1.0, 1.0, 1.0)
        second = None if first is None else profile(row, 1.1, 1.6, 1.37)
        if first is None or second is None or not 1e-100 < first < 0.9:
            raise NoTruthError("too much work, or next to 0 or 1")
        if not abs(first - second) <= AGREE * first:
            raise NoTruthError(f"{first!r} and {second!r}")
        return first

    run, order_of = mechanism_of(row), {"adjacency": row["adjacency"]}
    return (
        str(row),
        truth,
        lambda: pe.delta(run, float(row["epsilon"]), **order_of, bounds="estimated"),
    )


def truncated(rng: np.random.Generator) -> Case:
    """One truncated Poisson sample: 20 to 600 records, batches limited to up to twice the mean."""
    noise, records = between(rng, 0.5, 6.0), int(rng.integers(20, 600))
    p = Fraction(int(rng.integers(1, 50)), 100)
    batch = int(np.clip(round(records * float(p) * rng.uniform(0.7, 2.0)), 1, records - 1))
    adjacency = order(rng)
    run = pe.GaussianMechanism(noise).truncated_poisson_sampled(
        p, batch_size=batch, dataset_size=records
    )
    epsilon = rounded(float(rng.uniform(0.02, 1.5)) / noise * float(p) ** 0.5)
    return (
        f"noise {noise:g}, p {p}, {batch} of {records}, epsilon {epsilon:g}, {adjacency}",
        lambda: truncated_profile(noise, p, batch, records, epsilon, adjacency),
        lambda: pe.delta(run, epsilon, adjacency=adjacency, bounds="estimated"),
    )


def bounded_range(rng: np.random.Generator) -> Case:
    """1 to 12 exponential mechanisms chosen beforehand; the only error bound is 1e-11."""
    width, steps = between(rng, 0.01, 6.0), int(rng.integers(1, 13))
    epsilon = rounded(width * steps * float(rng.uniform(0.0, 0.9)))

    def asked() -> tuple[float, float, float]:
        value = pe.duality.bounded_range_delta(epsilon, range_per_step=width, steps=steps)
        return value * (1.0 - 1e-11), value, value * (1.0 + 1e-11)

    return (
        f"range {width:g}, {steps} steps, epsilon {epsilon:g}",
        lambda: bounded_range_profile(width, steps, epsilon),
        asked,
    )


FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Case], int, str]] = {
    "random allocation, one epoch": (one_epoch, 400, "Laplace inversion, 30 digits"),
    "steps of mixtures, spectral": (mixture, 120, "two lines in long double, 13 digits"),
    "truncated Poisson, one step": (truncated, 200, "mixture of closed profiles, 60 digits"),
    "exponential mechanism": (bounded_range, 200, "search over the outer parameter"),
}


@dataclass
class Outcome:
    """Results for the settings of one family."""

    settings: int = 0
    no_truth: int = 0
    refused: int = 0
    outside: int = 0
    errors: list[float] = field(default_factory=list)
    smallest: float = 1.0


def cases(make: Callable[[np.random.Generator], Case], seed: int, count: int) -> Iterator[Case]:
    """Settings, each with a generator of its own."""
    for index in range(count):
        yield make(np.random.default_rng([seed, index]))


def judged(name: str, seed: int, count: int, seconds: float) -> Outcome:
    """Ask the settings of a family, and print those that fail."""
    found, end = Outcome(), time.monotonic() + seconds
    for words, truth, ask in cases(FAMILIES[name][0], seed, count):
        if time.monotonic() > end:
            break
        found.settings += 1
        try:
            lower, value, upper = ask()
        except pe.AccuracyError as error:
            found.refused += 1
            print(f"{name}: {words}: refused: {error}", flush=True)
            continue
        try:
            true = truth()
        except (NoTruthError, pe.AccuracyError) as error:
            found.no_truth += 1
            print(f"{name}: {words}: no truth: {error}", flush=True)
            continue
        if true == 0 or value == 0.0:
            continue
        found.errors.append(abs(float(value / true - 1)))
        found.smallest = min(found.smallest, float(true))
        if not lower * (1 - 2.0**-52) <= true <= upper * (1 + 2.0**-52):
            found.outside += 1
            print(f"{name}: {words}: {lower!r} {value!r} {upper!r}, truth {true}", flush=True)
    return found


def row(name: str, found: Outcome) -> str:
    """One line of the table."""
    errors = found.errors or [math.nan]
    return (
        f"| {name} | {FAMILIES[name][2]} | {found.settings} | {found.no_truth} | {found.refused} | "
        f"{found.outside} | {max(errors):.1e} | {float(np.median(errors)):.1e} | "
        f"{found.smallest:.0e} |"
    )


HEAD = (
    "| scheme | truth | settings | without truth | refused | outside of bounds | largest error | "
    "median | smallest δ |\n|---|---|---|---|---|---|---|---|---|"
)


def written(lines: dict[str, str]) -> str:
    """The page with these rows instead of older ones of the same families."""
    old = PAGE.read_text(encoding="utf-8").splitlines()[2:] if PAGE.exists() else []
    rows = {line.split("|")[1].strip(): line for line in old} | lines
    return "\n".join([HEAD, *(rows[name] for name in FAMILIES if name in rows)]) + "\n"


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, help="settings of each family")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--family", choices=FAMILIES, help="only this one; other rows stay")
    parser.add_argument("--seconds", type=float, default=1e9, help="for each family at most")
    arguments = parser.parse_args()
    for name in [arguments.family] if arguments.family else FAMILIES:
        count = arguments.count or FAMILIES[name][1]
        line = row(name, judged(name, arguments.seed, count, arguments.seconds))
        print(line, flush=True)
        PAGE.write_text(written({name: line}), encoding="utf-8")


if __name__ == "__main__":
    main()
