"""Write ``tests/data/adversaries_reference.csv.gz``: true trade-off functions of weak adversaries.

Run ``PYTHONPATH=. python tests/reference_adversaries/generate.py`` (five minutes, one core). The
points are drawn at random from one seed: dimensions from 1 to 10^9, effects from 1e-3 to 40, levels
from 1e-12 to 1 - 1e-12. ``add`` and ``remove`` come from pyengine.reference, with 25 digits on
which two computations agree; ``add_remove`` comes from hull.py, with 20 digits.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
from pathlib import Path

import mpmath as mp
from hull import log_hull

import pyengine as pe
from pyengine.reference.membership import log_one_step_trade_off
from pyengine.reference.relaxed import log_trade_off

OUT = Path(__file__).parents[1] / "data" / "adversaries_reference.csv.gz"
COLUMNS = ["kind", "adjacency", "alpha", "dimension", "noise", "steps", "probability"]
COLUMNS += ["batch_size", "susceptibility", "clip", "log_beta"]


def level(rng: random.Random) -> float:
    tail = 10.0 ** rng.uniform(-12, math.log10(0.5))
    return tail if rng.random() < 0.5 else 1.0 - tail


def dimension(rng: random.Random) -> int:
    return 1 if rng.random() < 0.3 else round(10.0 ** rng.uniform(0, 9))


def rate(rng: random.Random) -> float:
    draw = rng.random()
    if draw < 0.35:
        return 1.0
    return 10.0 ** rng.uniform(-4, 0) if draw < 0.8 else 1.0 - 10.0 ** rng.uniform(-6, -0.3)


def relaxed(rng: random.Random, kind: str) -> dict[str, object]:
    adjacency, alpha, p = rng.choice(("add", "remove")), level(rng), rate(rng)
    steps = 1 if p < 1.0 or kind == "laplace" or rng.random() < 0.7 else rng.randint(2, 10_000)
    noise = math.sqrt(steps) / 10.0 ** rng.uniform(-3, math.log10(40))
    d = 1 if kind == "laplace" else dimension(rng)
    make = pe.LaplaceMechanism if kind == "laplace" else pe.GaussianMechanism
    mechanism: pe.Mechanism = make(noise).poisson_sampled(p)
    if steps > 1:
        mechanism = mechanism.composed(steps)
    log_beta = log_trade_off(mechanism, alpha, adjacency=adjacency, dimension=d, digits=25)
    return {
        "kind": kind,
        "adjacency": adjacency,
        "alpha": alpha,
        "dimension": d,
        "noise": noise,
        "steps": steps,
        "probability": p,
        "log_beta": mp.nstr(log_beta, 25),
    }


def hull(rng: random.Random) -> dict[str, object]:
    kind, alpha, p = rng.choice(("gaussian", "laplace")), level(rng), rate(rng)
    if rng.random() < 0.5:
        alpha = rng.uniform(0.02, 0.98)
    noise = 1.0 / 10.0 ** rng.uniform(-1.5, 1.0)
    return {
        "kind": kind,
        "adjacency": "add_remove",
        "alpha": alpha,
        "dimension": 1,
        "noise": noise,
        "steps": 1,
        "probability": p,
        "log_beta": mp.nstr(log_hull(kind, noise, p, alpha), 20),
    }


def membership(rng: random.Random) -> dict[str, object]:
    while True:
        d, n = dimension(rng), float(round(10.0 ** rng.uniform(0.5, 6)))
        k = d * 10.0 ** rng.uniform(-1, 1)
        noise = 0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-4, 1)
        clip = 10.0 ** rng.uniform(-1, 2)
        size = n + (noise * n / clip) ** 2
        mu = (d + (2 * size - 1) * k) / (size * math.sqrt(2 * d + 4 * size * k))
        if 1e-3 <= mu <= 40:
            break
    alpha = level(rng)
    log_beta = log_one_step_trade_off(
        alpha, batch_size=n, parameters=d, susceptibility=k, noise=noise, clip=clip, digits=25
    )
    return {
        "kind": "membership",
        "alpha": alpha,
        "dimension": d,
        "noise": noise,
        "batch_size": n,
        "susceptibility": k,
        "clip": clip,
        "log_beta": mp.nstr(log_beta, 25),
    }


def main() -> None:
    rng = random.Random(11)
    makers = (
        (350, lambda: relaxed(rng, "gaussian")),
        (120, lambda: relaxed(rng, "laplace")),
        (300, lambda: membership(rng)),
        (160, lambda: hull(rng)),
    )
    rows = []
    for number, make in makers:
        rows += [make() for _ in range(number)]
        print(len(rows), flush=True)
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with open(OUT, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write(buffer.getvalue().encode())


if __name__ == "__main__":
    main()
