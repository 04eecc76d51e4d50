"""Noise that meets (ε, δ), beside dp-accounting's calibration, as ratios within one run.

Needs the extra ``peers`` (``pip install '.[peers]'``).  Times are medians; ours start from nothing,
theirs are one run each.  The second table is the time of one scalar question.  With ``--random``
only mechanisms tried and processor time for random targets, which every parameter of DP-SGD and of
sampled Laplace noise is to meet, are counted, with ``--proven`` judged by proven bounds.
With ``--slopes`` as well, the search is told the slope of the excess where it was first asked, as
exactly as that says, and what that takes is not counted: what derivatives would save at most.
``--saddle`` prints how exact the slope of log δ by the noise is that a saddle point gives.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from timing import median_time

import pyengine as pe
from pyengine import calibration
from pyengine.caches import clear_cache
from pyengine.search import NoiseSearch

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


def random_calibrations(count: int, bounds: bool | str) -> None:
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


class TaughtSearch(NoiseSearch):
    """A search that knows the slope at its first point, moved by up to ``doubt`` of it."""

    doubt = 0.0

    def _beyond(self, edge: float, up: bool) -> float | None:
        """Where the slope at the first point leads, and a little further."""
        usual = super()._beyond(edge, up)
        if len(self.points) > 1 or not math.isfinite(self.points[edge]):
            return usual
        other = self._step(edge, 1.0 + max(1e-4, self.domain.integer / edge))
        try:
            change = (self.excess(other) - self.points[edge]) / math.log(other / edge)
        except pe.AccuracyError:
            return usual
        change *= 1.0 + random.Random(edge).choice([-1.0, 1.0]) * self.doubt
        way = -self.points[edge] / change if change else math.inf
        way *= 1.0 + 2.0 * self.doubt
        found = self._step(edge, math.exp(way)) if abs(way) < 1.0 else edge
        return found if found != edge and (found > edge) == up else usual


def log_mean(noise: float, rate: float, steps: int, power: np.ndarray[Any, Any]) -> Any:
    """Logarithm of the mean of e^(power S) under the law without the record."""
    z = np.linspace(-12.0, 12.0 + float(power.max()) / noise, 4001)
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + z / noise - 0.5 / noise**2)
    terms = power[:, None] * loss - 0.5 * z * z
    top = terms.max(axis=1)
    mean = np.exp(terms - top[:, None]).sum(axis=1) * (z[1] - z[0]) / math.sqrt(2.0 * math.pi)
    return steps * (np.log(mean) + top)


def saddles(count: int) -> None:
    """The slope of log δ by the logarithm of the noise, beside a difference of two δ."""
    rng, off = random.Random(1), []
    while len(off) < count:
        noise, rate = math.exp(rng.uniform(-0.7, 3.0)), math.exp(rng.uniform(-9.0, -0.7))
        steps, goal = int(math.exp(rng.uniform(3.0, 11.0))), 10.0 ** rng.uniform(-12.0, -0.5)
        epsilon = pe.epsilon(pe.dp_sgd(noise, rate, steps), goal, adjacency="remove")
        if not 1e-3 < epsilon < 50.0:
            continue
        power = 1.0 + np.geomspace(1e-3, 300.0, 400)
        size = log_mean(noise, rate, steps, power) - power * epsilon
        at = power[np.argmin(size - np.log(power * (power - 1.0)))][None]
        grown = noise * 1.0001
        found = log_mean(grown, rate, steps, at) - log_mean(noise, rate, steps, at)
        both = [
            pe.delta(pe.dp_sgd(x, rate, steps), epsilon, adjacency="remove") for x in (noise, grown)
        ]
        off.append(abs(float(found[0]) / math.log(both[1] / both[0]) - 1.0))
    parts = np.quantile(off, [0.1, 0.5, 0.9])
    print(f"relative errors of {count} slopes at the saddle point:", end=" ")
    print(", ".join(f"{x:.1e}" for x in parts), "(10, 50 and 90 %)")


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
    parser.add_argument("--proven", action="store_true", help="judge those by proven bounds")
    parser.add_argument("--slopes", type=float, help="relative error of slopes that are told")
    parser.add_argument("--saddle", type=int, default=0, help="slopes at saddle points to judge")
    given = parser.parse_args()
    if given.slopes is not None:
        TaughtSearch.doubt = given.slopes
        calibration.NoiseSearch = TaughtSearch  # type: ignore[misc]
    if given.saddle:
        saddles(given.saddle)
        return
    if given.random:
        random_calibrations(given.random, given.proven or "estimated")
        return
    calibrations(not given.no_peers)
    scalars()


if __name__ == "__main__":
    main()
