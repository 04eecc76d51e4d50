"""Profiles of compositions whose steps are mixtures of normals, to 13 digits or more.

Nothing here imports pyengine.  Each profile is an integral on a vertical line in long double, of
fixed fine nodes in z, summed over t until nothing is left, and is taken twice, on two lines with
two spacings and two periods; rows where both differ by more than 1e-13 are left out.  Needed is
numpy with 80-bit long doubles.  From the root of the repository:

    python tests/reference_mixtures/generate.py --rows 300   # tests/data/normal_mixtures.json

Steps of a row: weights and shifts (in units of the sensitivity) of A and of B, and of several such
pairs with the probability of each where a step is one of them and the release tells which one.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

WIDE = np.longdouble
DATA = Path(__file__).resolve().parents[1] / "data" / "normal_mixtures.json"
AGREE = 1e-13
MOST_WORK = 1.5e7  # nodes times values of t


def wide(x: Fraction) -> Any:
    """A fraction in long double, by its two leading parts."""
    high = WIDE(float(x))
    return high + WIDE(float(x - Fraction(float(x))))


def sides(row: dict[str, Any]) -> list[tuple[Fraction, list[Any], list[Any]]]:
    """Probability, A and B of each pair of a step, by exact weights."""
    noise = Fraction(row["noise"])
    if row["kind"] == "mixture":
        terms = zip(row["shifts"], row["weights"], strict=True)
        pairs = [(Fraction(c) / noise, Fraction(w)) for c, w in terms]
        found = [(Fraction(1), [(Fraction(0), Fraction(1))], pairs)]
    elif row["kind"] == "substitute":
        p = Fraction(row["p"])
        low = [(-1 / noise, p), (Fraction(0), 1 - p)]
        found = [(Fraction(1), low, [(-c, w) for c, w in low])]
    else:
        p, n, size = Fraction(row["p"]), row["dataset_size"], row["batch_size"]

        def below(trials: int, first: int) -> Fraction:
            terms = (math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(first))
            return sum(terms, Fraction(0))

        full = 1 - below(n - 1, size)
        inside = (1 - below(n, size + 1)) * size / (full * n)
        zero = [(Fraction(0), Fraction(1))]
        found = [
            (1 - full, zero, [(Fraction(0), 1 - p), (1 / noise, p)]),
            (full, zero, [(Fraction(0), 1 - inside), (2 / noise, inside)]),
        ]
    if row["adjacency"] == "remove":
        found = [(share, b, a) for share, a, b in found]
    return found


def nodes(row: dict[str, Any], finer: float) -> tuple[Any, Any]:
    """Logs of A's probabilities, and losses, at equally spaced z."""
    logs, losses = [], []
    for share, a, b in sides(row):
        shifts = [float(c) for c, _ in a + b]
        spread = max(max(shifts) - min(shifts), 0.2)
        h = min(0.08, 0.15 / spread) / finer
        z = np.arange(min(shifts) - 42.0, max(shifts) + 42.0, h).astype(WIDE)

        def log_of(side: list[Any], z: Any = z) -> Any:
            terms = np.array([np.log(wide(w)) + wide(c) * (z - wide(c) / 2) for c, w in side])
            top = terms.max(axis=0)
            return top + np.log(np.exp(terms - top).sum(axis=0))

        log_a, log_b = log_of(a), log_of(b)
        normal = np.log(WIDE(h)) - z * z / 2 - np.log(2 * WIDE(math.pi)) / 2
        logs.append(normal + log_a + np.log(wide(share)))
        losses.append(log_b - log_a)
    log = np.concatenate(logs)
    return log - np.log(np.exp(log).sum()), np.concatenate(losses)


def cumulants(log: Any, loss: Any, steps: int, at: float) -> tuple[Any, Any, Any]:
    """K, K' and K'' of the composed loss."""
    tilted = log + WIDE(at) * loss
    top = tilted.max()
    weight = np.exp(tilted - top)
    total = weight.sum()
    mean = (weight * loss).sum() / total
    second = (weight * (loss - mean) ** 2).sum() / total
    return steps * (top + np.log(total)), steps * mean, steps * second


def profile(row: dict[str, Any], moved: float, period: float, finer: float) -> float | None:
    """E_A max(0, 1 - e^{S + epsilon}) on a line near the saddle point; None if too costly."""
    log, loss = nodes(row, finer)
    steps, c = row["steps"], WIDE(-float(row["epsilon"]))

    def slope(at: float) -> float:
        return float(cumulants(log, loss, steps, at)[1] - c - 1 / WIDE(at) - 1 / WIDE(at - 1))

    low, high = -1.0, -1e-12
    while slope(low) > 0.0:
        low *= 2.0
        if low < -1e4:
            return None
    for _ in range(50):
        middle = -math.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    at = moved * low
    k, _, variance = cumulants(log, loss, steps, at)
    spread = math.sqrt(float(variance))
    spacing = WIDE(2.0 * math.pi / (period * (60.0 * spread + 60.0 / abs(at) + 60.0)))
    tilted = np.exp(log + WIDE(at) * loss - k / steps)
    kept = tilted > 1e-26
    tilted, loss = tilted[kept], loss[kept]
    total, block, first, quiet = WIDE(0), 128, 0, 0
    while quiet < 2:
        if (first + block) * loss.size > MOST_WORK:
            return None
        t = np.arange(first, first + block).astype(WIDE) * spacing
        turn = np.outer(t, loss)
        transform = (np.cos(turn) * tilted).sum(1) + 1j * (np.sin(turn) * tilted).sum(1)
        s = WIDE(at) + 1j * t
        term = np.exp(steps * np.log(transform) - 1j * t * c) / (s * (s - 1))
        if first == 0:
            term[0] *= WIDE(0.5)
        total += term.real.sum()
        quiet = quiet + 1 if np.abs(term).max() * block < 1e-20 * abs(total) else 0
        first += block
    value = k - WIDE(at) * c + np.log(total * spacing / WIDE(math.pi))
    return float(np.exp(value))


def drawn(rng: random.Random) -> dict[str, Any]:
    """A random question."""

    def log_uniform(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    row: dict[str, Any] = {
        "kind": rng.choice(["mixture", "mixture", "substitute", "truncated"]),
        "noise": f"{log_uniform(0.4, 20.0):.3g}",
        "steps": int(log_uniform(2, 3000)),
        "adjacency": rng.choice(["add", "remove"]),
        "epsilon": f"{log_uniform(1e-3, 8.0):.3g}",
    }
    if row["kind"] == "mixture":
        count = rng.randint(1, 4)
        row["shifts"] = sorted({f"{rng.uniform(0.05, 3.0):.2f}" for _ in range(count)}, key=float)
        rest = [rng.randint(1, 1000) for _ in row["shifts"]]
        if rng.random() < 0.8:
            row["shifts"].insert(0, "0")
            rest.insert(0, int(log_uniform(10, 10**6)))
        row["weights"] = [f"{w}/{sum(rest)}" for w in rest]
    elif row["kind"] == "substitute":
        row["adjacency"], row["p"] = "substitute", f"{log_uniform(1e-4, 0.9):.3g}"
    else:
        n = rng.randint(40, 400)
        row["p"] = f"{max(2.0 / n, log_uniform(1e-3, 0.8)):.3g}"
        row["dataset_size"] = n
        row["batch_size"] = max(1, min(n - 1, int(n * float(row["p"]) * rng.uniform(0.8, 1.5))))
    return row


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=DATA)
    given = parser.parse_args()
    rng, rows, left_out = random.Random(given.seed), [], 0
    while len(rows) < given.rows:
        row = drawn(rng)
        first = profile(row, 1.0, 1.0, 1.0)
        second = None if first is None else profile(row, 1.1, 1.6, 1.37)
        usable = first is not None and second is not None and 1e-100 < first < 0.9
        if not usable or not abs(first - second) <= AGREE * first:
            left_out += 1
            continue
        rows.append({**row, "delta": repr(first)})
        if len(rows) % 10 == 0:
            given.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            print(f"{len(rows)} rows, {left_out} left out", flush=True)
    given.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
