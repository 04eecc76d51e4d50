"""Noise that meets (ε, δ), beside dp-accounting's calibration, as ratios within one run.

Needs the extra ``peers`` (``pip install '.[peers]'``).  Times are medians; ours start from nothing,
theirs are one run each.  The second table is the time of one scalar question.  With ``--random``
only mechanisms tried and processor time for random targets, which every parameter of DP-SGD and of
sampled Laplace noise is to meet, are counted.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from functools import partial
from typing import Any

import numpy as np
from timing import median_time

import pyengine as pe
from pyengine.caches import clear_cache

# epsilon, delta, probability, steps; the noise to ten digits, as tests/data/README.md says
CASES = [
    (1.0, 1e-6, 0.01, 10_000, 4.302106466),
    (4.0, 1e-5, 0.01, 100, 0.590501823),
    (4.0, 1e-5, 0.5, 100, 5.511152140),
    (4.0, 1e-5, 0.99, 100, 10.705414115),
]
KAPPA = 0.1
CALLS = 10_000
seconds = partial(median_time, clock=time.perf_counter)


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def ours(epsilon: float, delta: float, probability: float, steps: int) -> Any:
    clear_cache()
    target = pe.targets.EpsilonDelta(epsilon, delta)
    return pe.calibrate(lambda noise: pe.dp_sgd(noise, probability, steps), target)


def theirs(epsilon: float, delta: float, probability: float, steps: int) -> float:
    import dp_accounting
    from dp_accounting import pld

    def event(noise: float) -> Any:
        step = dp_accounting.PoissonSampledDpEvent(
            probability, dp_accounting.GaussianDpEvent(noise)
        )
        return dp_accounting.SelfComposedDpEvent(step, steps)

    return float(
        dp_accounting.calibrate_dp_mechanism(pld.PLDAccountant, event, epsilon, delta, tol=1e-9)
    )


def calibrations(peers: bool) -> None:
    for epsilon, delta, probability, steps, noise in CASES:
        our_time, found = seconds(partial(ours, epsilon, delta, probability, steps), 9)
        print(f"({epsilon:g}, {delta:g}), probability {probability:g}, {steps} steps")
        right = abs(found.value - noise) <= 1e-9 and found.achieved.delta <= delta
        gamma = pe.gamma_bound(found.mechanism, KAPPA)
        print(f"  noise {found.value:.9f}, known {noise:.9f}: {verdict(right)}")
        print(f"  achieved delta / delta - 1 = {found.achieved.delta / delta - 1:.1e};", end=" ")
        print(f"gamma({KAPPA:g}) = {gamma:.6f}; {found.evaluations} mechanisms tried")
        print(f"  time {1e3 * our_time:.2f} ms, at most 20: {verdict(our_time <= 0.02)}")
        if peers:
            their_time, other = seconds(
                lambda c=(epsilon, delta, probability, steps): theirs(*c), 1
            )
            ratio = their_time / our_time
            print(f"  dp-accounting: noise {other:.9f}, {their_time:.2f} s;", end=" ")
            print(f"{ratio:.0f} times as fast, at least 100: {verdict(ratio >= 100)}", flush=True)


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


def random_calibrations(count: int) -> None:
    rng = random.Random(1)
    tried, spent, off = [], 0.0, 0.0
    for _ in range(count):
        make, target, integer, true = random_target(rng)
        clear_cache()
        start = time.process_time()
        found = pe.calibrate(make, target, integer=integer)
        spent += time.process_time() - start
        assert target.excess(found.mechanism) <= 0.0
        tried.append(found.evaluations)
        if not integer:
            off = max(off, abs(float(found) / true - 1.0))
    print(f"{count} targets: {np.mean(tried):.2f} mechanisms tried,", end=" ")
    print(f"median {np.median(tried):.0f},", end=" ")
    print(f"largest {max(tried)}; {1e3 * spent / count:.2f} ms of processor time each;", end=" ")
    print(f"farthest from the known parameter {off:.0e}")


def scalars() -> None:
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    probabilities = [1e-4 * (1 + i / CALLS) for i in range(CALLS)]
    epsilons = [1.0 + i / CALLS for i in range(CALLS)]
    print(f"One call with a float, mean of {CALLS} different ones on one mechanism")
    for question, arguments in (
        (pe.gamma_bound, probabilities),
        (pe.trade_off, probabilities),
        (pe.delta, epsilons),
        (pe.epsilon, probabilities),
    ):
        question(mechanism, arguments[0])
        time_all, _ = seconds(lambda q=question, a=arguments: [q(mechanism, x) for x in a], 1)
        print(f"  {question.__name__:<12} {1e6 * time_all / CALLS:6.1f} µs", end="")
        slow = question is pe.gamma_bound
        print(f", below 20: {verdict(time_all / CALLS < 2e-5)}" if slow else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true", help="leave out dp-accounting")
    parser.add_argument("--random", type=int, default=0, help="random targets that are counted")
    given = parser.parse_args()
    if given.random:
        random_calibrations(given.random)
        return
    calibrations(not given.no_peers)
    scalars()


if __name__ == "__main__":
    main()
