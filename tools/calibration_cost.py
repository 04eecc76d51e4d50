"""Mechanisms that calibration tries, and processor time, for random targets.

    python tools/calibration_cost.py --count 60 [--proven]

A parameter of DP-SGD or of sampled Laplace noise, drawn at random, is to meet what a mechanism has
whose parameter is known; each search starts from nothing.  With ``--proven`` targets are judged by
proven bounds.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import replace
from typing import Any

import numpy as np

import pyengine as pe
from pyengine.caches import clear_cache


def random_target(rng: random.Random) -> tuple[Any, Any, bool, Any]:
    """A mechanism of one parameter, a target met at a known value, whether that is an integer."""
    while True:
        noise, rate = math.exp(rng.uniform(-0.7, 3.0)), math.exp(rng.uniform(-9.0, -0.7))
        steps = int(math.exp(rng.uniform(3.0, 11.0)))
        laplace = rng.random() < 0.2

        def made(noise: float, rate: float, steps: int, laplace: bool = laplace) -> Any:
            if laplace:
                return pe.LaplaceMechanism(noise).poisson_sampled(rate).composed(steps)
            return pe.dp_sgd(noise, rate, steps)

        which = rng.choice(["noise", "noise", "rate", "steps"])
        ways = {
            "noise": lambda x: made(x, rate, steps),  # noqa: B023
            "rate": lambda x: made(noise, x, steps),  # noqa: B023
            "steps": lambda x: made(noise, rate, x),  # noqa: B023
        }
        mechanism = made(noise, rate, steps)
        goal = 10.0 ** rng.uniform(-12.0, -0.5)
        kind = rng.choice(["delta", "delta", "gamma"])
        if kind == "delta":
            epsilon = pe.epsilon(mechanism, goal)
            if not 1e-3 < epsilon < 50.0:
                continue
            target: Any = pe.targets.EpsilonDelta(epsilon, goal)
        else:
            gamma = pe.gamma_bound(mechanism, goal)
            if not 1.01 * goal < gamma < 0.99:
                continue
            target = pe.targets.Gamma(goal, gamma)
        true = {"noise": noise, "rate": rate, "steps": steps}[which]
        return ways[which], target, which == "steps", true


def report(count: int, bounds: bool | str) -> None:
    rng = random.Random(1)
    tried: list[int] = []
    spent: list[float] = []
    off = 0.0
    for _ in range(count):
        make, target, integer, true = random_target(rng)
        target = replace(target, bounds=bounds)
        clear_cache()
        start = time.process_time()
        found = pe.calibrate(make, target, integer=integer)
        spent.append(time.process_time() - start)
        assert target.excess(found.mechanism) <= 0.0
        tried.append(found.evaluations)
        if not integer:
            off = max(off, abs(float(found) / true - 1.0))
    print(f"{count} targets: {np.mean(tried):.2f} mechanisms tried,", end=" ")
    print(f"median {np.median(tried):.0f},", end=" ")
    print(f"largest {max(tried)}; {1e3 * np.mean(spent):.2f} ms of processor time each,", end=" ")
    print(f"median {1e3 * np.median(spent):.2f};", end=" ")
    print(f"farthest from the known parameter {off:.0e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--proven", action="store_true")
    given = parser.parse_args()
    report(given.count, given.proven or "estimated")
