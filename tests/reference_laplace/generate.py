"""True answers for equal Laplace steps, plain and on Poisson samples.

They come from `pyengine.reference`, which shares no code with the engines.  From the root of the
repository:

    python tests/reference_laplace/generate.py few --mechanisms 60
    python tests/reference_laplace/generate.py substituted --mechanisms 30
    python tests/reference_laplace/generate.py many --mechanisms 60

Each writes its part of tests/data/laplace_steps.json, where those of many steps are still of a line
in long double (this file at commit 1dedbf17).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
from pathlib import Path
from typing import Any

import pyengine as pe
from pyengine import reference

DATA = Path(__file__).resolve().parents[1] / "data" / "laplace_steps.json"
SECONDS = 40  # for one mechanism
BOTH = ("add", "remove")
# by part: the name of its method, orders, the least and the largest number of steps
PARTS = {
    "few": ("reference", BOTH, 3, 120),
    "substituted": ("substitute", ("substitute",), 3, 120),
    "many": ("line", BOTH, 150, 10_000),
}


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """A random number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def mechanism_of(row: dict[str, Any]) -> pe.Mechanism:
    """The mechanism of a row."""
    step: Any = pe.LaplaceMechanism(float(row["noise"]))
    if row["p"] != "1":
        step = step.poisson_sampled(float(row["p"]))
    return step.composed(row["steps"])


def drawn(rng: random.Random, least: int, most: int) -> dict[str, Any]:
    """A random mechanism; its numbers are the doubles nearest to the texts."""
    p = "1" if rng.random() < 0.2 else f"{log_uniform(rng, 1e-6, 0.95):.4g}"
    steps = round(log_uniform(rng, 20 if p == "1" else least, most))
    return {"noise": f"{log_uniform(rng, 0.3, 100.0):.4g}", "p": p, "steps": steps}


class _TooLongError(Exception):
    """One mechanism took too long."""


def _alarm(*_: Any) -> None:
    raise _TooLongError


def write(part: str, count: int, seed: int, output: Path) -> None:
    """Rows of the reference: profiles, β and γ at random arguments of each order."""
    rng, rows, made, left_out = random.Random(seed), [], 0, 0
    method, orders, least, most = PARTS[part]
    signal.signal(signal.SIGALRM, _alarm)
    while made < count:
        row, found = drawn(rng, least, most), []
        mechanism = mechanism_of(row)
        signal.alarm(SECONDS)
        try:
            for adjacency in orders:
                for _ in range(3):
                    goal = 10.0 ** -log_uniform(rng, 0.05, 250.0)
                    epsilon = pe.epsilon(mechanism, goal, adjacency=adjacency)
                    epsilon = round(epsilon, 2 - math.floor(math.log10(epsilon or 1.0)))
                    truth = reference.delta(mechanism, epsilon, adjacency=adjacency, digits=18)
                    found.append(("delta", adjacency, epsilon, truth))
                for _ in range(2):
                    level = 10.0 ** -log_uniform(rng, 0.02, 250.0)
                    truth = reference.gamma_bound(mechanism, level, adjacency=adjacency, digits=18)
                    found.append(("gamma", adjacency, level, truth))
                    level = rng.random()
                    truth = reference.trade_off(mechanism, level, adjacency=adjacency, digits=18)
                    found.append(("beta", adjacency, level, truth))
        except (_TooLongError, pe.AccuracyError):
            left_out += 1
        finally:
            signal.alarm(0)
        made += bool(found)
        for name, adjacency, argument, truth in found:
            question = {"name": name, "adjacency": adjacency, "argument": argument}
            digits = {"truth": str(truth), "method": method}
            rows.append({**row, **question, **digits})
        if found:
            _write(method, rows, output)
            print(f"{made} mechanisms, {len(rows)} rows, {left_out} not finished", flush=True)


def _write(method: str, rows: list[dict[str, Any]], output: Path) -> None:
    """Replace the rows of a method in the file."""
    known = json.loads(output.read_text(encoding="utf-8")) if output.exists() else []
    kept = [row for row in known if row["method"] != method]
    lines = ",\n".join(json.dumps(row) for row in kept + rows)
    output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--mechanisms", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=DATA)
    given = parser.parse_args()
    write(given.part, given.mechanisms, given.seed, given.output)


if __name__ == "__main__":
    main()
