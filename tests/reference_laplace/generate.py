"""True answers for equal Laplace steps, plain and on Poisson samples.

Few steps come from `pyengine.reference`, which shares no code with the engines; many steps, whose
atoms weigh nothing, from an integral on a vertical line in long double, taken twice, on two lines
with two spacings and two periods; rows that differ by more than 1e-13 are left out.  From the
root of the repository:

    python tests/reference_laplace/generate.py few --mechanisms 60
    python tests/reference_laplace/generate.py substituted --mechanisms 30
    python tests/reference_laplace/generate.py many --rows 400
    python tests/reference_laplace/generate.py again

Each writes its part of tests/data/laplace_steps.json; the last one asks the line for the same rows
again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pyengine as pe
from pyengine import reference

WIDE = np.longdouble
DATA = Path(__file__).resolve().parents[1] / "data" / "laplace_steps.json"
AGREE = 1e-13
MOST_WORK = 3e7  # nodes times values of t
SECONDS = 40  # that one mechanism may take
NODES = 120
TURNS = 60.0  # of the phase over a step's support, up to which the line goes at least


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
    """A random mechanism; its numbers are those of the doubles next to the text."""
    p = "1" if rng.random() < 0.2 else f"{log_uniform(rng, 1e-6, 0.95):.4g}"
    steps = round(log_uniform(rng, 20 if p == "1" else least, most))
    return {"noise": f"{log_uniform(rng, 0.3, 100.0):.4g}", "p": p, "steps": steps}


class _TooLongError(Exception):
    """One mechanism took too long."""


def _alarm(*_: Any) -> None:
    raise _TooLongError


def few(count: int, seed: int, output: Path, orders: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of the reference: profiles, β and γ at random arguments of each order."""
    rng, rows, made, left_out = random.Random(seed), [], 0, 0
    method = "reference" if len(orders) > 1 else orders[0]
    signal.signal(signal.SIGALRM, _alarm)
    while made < count:
        row, found = drawn(rng, 3, 120), []
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
    return rows


@cache
def gauss() -> tuple[Any, Any]:
    """Gauss-Legendre nodes and weights in long double: thousands of steps multiply their errors."""
    s = np.polynomial.legendre.leggauss(NODES)[0].astype(WIDE)
    for _ in range(3):
        before, last = np.ones_like(s), s
        for n in range(1, NODES):
            before, last = last, ((2 * n + 1) * s * last - n * before) / (n + 1)
        slope = NODES * (before - s * last) / (1 - s * s)
        s = s - last / slope
    return s, 2 / ((1 - s * s) * slope * slope)


def nodes(row: dict[str, Any], adjacency: str) -> tuple[Any, Any]:
    """Probabilities of A and losses: two atoms, and Gauss nodes for the density."""
    mu, p = 1 / WIDE(float(row["noise"])), WIDE(float(row["p"]))
    s, weight = gauss()
    inner = np.concatenate([[-mu], mu * s, [mu]])
    mass = mu * weight * np.exp(-(inner[1:-1] + mu) / 2) / 4
    mass = np.concatenate([[WIDE(0.5)], mass, [np.exp(-mu) / 2]])
    loss = np.log1p(p * np.expm1(inner))
    return (mass, loss) if adjacency == "add" else (mass * np.exp(loss), -loss)


def profile(row: dict[str, Any], moved: float, period: float) -> float | None:
    """E_A max(0, 1 - e^{S + epsilon}) on a line near the saddle point; None beyond the work."""
    mass, loss = nodes(row, row["adjacency"])
    steps, c = row["steps"], -WIDE(row["argument"])

    def tilted(at: float) -> tuple[Any, Any]:
        log = np.log(mass) + WIDE(at) * loss
        top = log.max()
        weight = np.exp(log - top)
        return top + np.log(weight.sum()), weight / weight.sum()

    def slope(at: float) -> float:
        mean = (tilted(at)[1] * loss).sum()
        return float(steps * mean - c - 1 / WIDE(at) - 1 / (WIDE(at) - 1))

    width = float(loss.max() - loss.min())
    low, high = -1.0 / width, -1e-12 / width
    while slope(low) > 0.0:
        low *= 2.0
        if low * width < -1e4:
            return None
    for _ in range(60):
        middle = -math.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    at = moved * low
    k, weight = tilted(at)
    mean = (weight * loss).sum()
    spread = math.sqrt(float(steps * (weight * (loss - mean) ** 2).sum()))
    # as long as the sum of the atoms has a mass, the integrand does not fall
    if steps * math.log(float(weight[0] + weight[-1])) > -46.0:
        return None
    spacing = WIDE(2.0 * math.pi / (period * (60.0 * spread + 60.0 / abs(at))))
    total, block, first, quiet, t = WIDE(0), 64, 0, 0, np.zeros(1)
    # what a step's density has next to its atoms comes back at multiples of the turns between them
    while quiet < 2 or float(t[-1]) * width < TURNS:
        if (first + block) * loss.size > MOST_WORK:
            return None
        t = np.arange(first, first + block).astype(WIDE) * spacing
        if float(t[-1]) * width > NODES:  # beyond, the nodes resolve no turns
            return None
        turn = np.outer(t, loss)
        transform = (np.cos(turn) * weight).sum(1) + 1j * (np.sin(turn) * weight).sum(1)
        s = WIDE(at) + 1j * t
        term = np.exp(steps * np.log(transform) - 1j * t * c) / (s * (s - 1))
        if first == 0:
            term[0] *= WIDE(0.5)
        total += term.real.sum()
        quiet = quiet + 1 if np.abs(term).max() * block < 1e-20 * abs(total) else 0
        first += block
    value = steps * k - WIDE(at) * c + np.log(total * spacing / WIDE(math.pi))
    return float(np.exp(value))


def many(count: int, seed: int, output: Path) -> list[dict[str, Any]]:
    """Rows of the vertical line: profiles of both orders."""
    rng, rows, left_out = random.Random(seed), [], 0
    while len(rows) < count:
        row = drawn(rng, 40, 10_000)
        row["name"], row["adjacency"] = "delta", rng.choice(["add", "remove"])
        goal = 10.0 ** -log_uniform(rng, 0.05, 300.0)
        mechanism = mechanism_of(row)
        epsilon = pe.epsilon(mechanism, goal, adjacency=row["adjacency"])
        row["argument"] = round(epsilon, 2 - math.floor(math.log10(epsilon or 1.0)))
        first = profile(row, 1.0, 1.0) if epsilon > 0.0 else None
        second = None if first is None else profile(row, 1.1, 1.6)
        usable = first is not None and second is not None and 1e-300 < first < 0.9
        if not usable or not abs(first - second) <= AGREE * first:
            left_out += 1
            continue
        rows.append({**row, "truth": repr(first), "method": "line"})
        if len(rows) % 10 == 0:
            _write("line", rows, output)
            print(f"{len(rows)} rows, {left_out} left out", flush=True)
    return rows


def again(output: Path) -> list[dict[str, Any]]:
    """The rows of the vertical line, their truths computed anew."""
    rows = [r for r in json.loads(output.read_text(encoding="utf-8")) if r["method"] == "line"]
    kept = []
    for row in rows:
        first, second = profile(row, 1.0, 1.0), profile(row, 1.1, 1.6)
        if first is not None and second is not None and abs(first - second) <= AGREE * first:
            kept.append({**row, "truth": repr(first)})
    print(f"{len(kept)} of {len(rows)} rows")
    return kept


def _write(method: str, rows: list[dict[str, Any]], output: Path) -> None:
    """Put the rows of a method in the place of those of the file."""
    known = json.loads(output.read_text(encoding="utf-8")) if output.exists() else []
    kept = [row for row in known if row["method"] != method]
    lines = ",\n".join(json.dumps(row) for row in kept + rows)
    output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["few", "substituted", "many", "again"])
    parser.add_argument("--mechanisms", type=int, default=60)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=DATA)
    given = parser.parse_args()
    if given.part == "many":
        _write("line", many(given.rows, given.seed, given.output), given.output)
        return
    if given.part == "again":
        _write("line", again(given.output), given.output)
        return
    orders = ("add", "remove") if given.part == "few" else ("substitute",)
    method = "reference" if given.part == "few" else "substitute"
    _write(method, few(given.mechanisms, given.seed, given.output, orders), given.output)


if __name__ == "__main__":
    main()
