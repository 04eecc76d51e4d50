"""Speed and error beside other programs, as ratios within one run.

Needs the extra ``peers`` (``pip install '.[peers]'``); ``python tools/compare_peers.py`` takes a
minute and 2 GB.  Times are medians; "from nothing" means that no contour of the mechanism is
kept.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pyengine as pe
from pyengine.caches import clear_cache

WORKFLOWS = {
    "CIFAR-10 ResNet-9": (10.5, 4096 / 50000, 1000),
    "SNLI BERT": (1.15, 4096 / 549361, 405),
    "ImageNet": (2.5, 16384 / 1281167, 72_000),
    "Lebeda et al., Table 1": (0.8, 0.001, 10_000),
    "heavy-tailed": (0.6, 1e-4, 10**6),
    "full batch": (4.0, 1.0, 100),
}
KAPPA = 1e-5

# H(with || without) at epsilon; noise and probability are the exact doubles.  Two inversions in
# ball arithmetic (tests/reference) that agree in 30 digits.
PROFILES = {
    (0.8, 0.001, 10_000): (1.0, 5.31959137797465419894e-7),
    (0.6, 1e-4, 10**6): (2.0, 6.09261676367896775458e-7),
}
GRID = 1e-5  # discretisation of dp-accounting


def seconds(action: Callable[[], Any], least: int, budget: float = 2.0) -> float:
    """Median time of an action over at least so many runs."""
    times: list[float] = []
    while len(times) < least or (sum(times) < budget and len(times) < 50):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def from_nothing(question: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    clear_cache()
    return question(*arguments, **keywords)


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def line(name: str, value: str, target: str, met: bool) -> None:
    print(f"  {name:<44}{value:>22}   {target:<12}{verdict(met)}", flush=True)


def gamma_from_nothing() -> None:
    proven = partial(pe.gamma_bound, bounds=True)
    for title, question in (("", pe.gamma_bound), (" between proven bounds", proven)):
        print(f"One gamma({KAPPA:g}){title} from nothing")
        for name, parameters in WORKFLOWS.items():
            mechanism = pe.dp_sgd(*parameters)
            t = seconds(lambda m=mechanism, q=question: from_nothing(q, m, KAPPA), 15, 0.2)
            line(name, f"{1e3 * t:.3f} ms", "1 ms", t <= 1e-3)


def against_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution

    print(f"delta(epsilon) against dp-accounting, connect the dots, grid {GRID:g}")
    for (noise, probability, steps), (epsilon, truth) in PROFILES.items():
        mechanism = pe.dp_sgd(noise, probability, steps)

        def other(s: float = noise, p: float = probability, n: int = steps, e: float = epsilon):
            law = privacy_loss_distribution.from_gaussian_mechanism(
                s, value_discretization_interval=GRID, sampling_prob=p, use_connect_dots=True
            )
            return law.self_compose(n).get_delta_for_epsilon(e)

        start = time.perf_counter()
        theirs = other()
        their_time = time.perf_counter() - start
        ours = from_nothing(pe.delta, mechanism, epsilon)
        our_time = seconds(lambda m=mechanism, e=epsilon: from_nothing(pe.delta, m, e), 15, 0.2)
        their_error = abs(theirs / truth - 1.0)
        our_error = max(abs(ours / truth - 1.0), 2.0**-53)
        print(f"  noise {noise:g}, probability {probability:g}, {steps} steps, epsilon {epsilon:g}")
        print(f"    time: {their_time:.3g} s and {1e3 * our_time:.3g} ms;", end=" ")
        print(f"relative error: {their_error:.2g} and {our_error:.2g}")
        ratio, gain = their_time / our_time, their_error / our_error
        line("  times as fast", f"{ratio:.0f}", "1000", ratio >= 1000)
        line("  times as accurate", f"{gain:.2g}", "1000", gain >= 1000)


def arrays() -> None:
    print(
        "10,000 values on one mechanism (noise 0.8, probability 0.001, 10,000 steps), from nothing"
    )
    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    questions: dict[str, tuple[Callable[..., Any], Any]] = {
        "gamma(kappa), kappa from 1e-9 to 0.5": (pe.gamma_bound, np.geomspace(1e-9, 0.5, 10_000)),
        "delta(epsilon), epsilon from 0 to 3": (pe.delta, np.linspace(0.0, 3.0, 10_000)),
        "epsilon(delta), delta from 1e-9 to 1e-3": (pe.epsilon, np.geomspace(1e-9, 1e-3, 10_000)),
    }
    for name, (question, x) in questions.items():
        t = seconds(lambda q=question, x=x: from_nothing(q, mechanism, x), 3, 0.5)
        line(name, f"{1e3 * t:.1f} ms", "30 ms", t <= 0.03)


def heterogeneous() -> None:
    print("200 steps with different noise multipliers, gamma(1e-3) from nothing")
    for low, high, probability in ((2.0, 4.0, 0.05), (0.8, 1.6, 0.01)):
        noises = np.linspace(low, high, 200)
        mechanism = pe.compose(*(pe.dp_sgd(noise, probability, 1) for noise in noises))
        name = f"noise {low:g} to {high:g}, probability {probability:g}"
        try:
            t = seconds(lambda m=mechanism: from_nothing(pe.gamma_bound, m, 1e-3), 5, 0.5)
            line(name, f"{1e3 * t:.1f} ms", "20 ms", t <= 0.02)
        except pe.AccuracyError:
            line(name, "AccuracyError", "20 ms", False)


def imports() -> None:
    print("Imports in a new process, medians of 15, taken in turn")
    times: dict[str, list[float]] = {"pass": [], "import numpy": [], "import pyengine": []}
    for _ in range(15):
        for code, found in times.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(time.perf_counter() - start)
    bare, numpy, package = (statistics.median(found) for found in times.values())
    print(
        f"  python {1e3 * bare:.0f} ms, numpy {1e3 * numpy:.0f} ms, pyengine {1e3 * package:.0f} ms"
    )
    ratio = (package - bare) / (numpy - bare)
    line("import pyengine / import numpy, without python", f"{ratio:.2f}", "1.4", ratio < 1.4)


def profile() -> None:
    """Print where the time of the questions above goes."""
    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    for question, x in (
        (pe.gamma_bound, KAPPA),
        (pe.gamma_bound, np.geomspace(1e-9, 0.5, 10_000)),
        (pe.delta, np.linspace(0.0, 3.0, 10_000)),
    ):
        profiler = cProfile.Profile()
        profiler.enable()
        from_nothing(question, mechanism, x)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="also print profiles")
    parser.add_argument("--no-peers", action="store_true", help="leave out other programs")
    given = parser.parse_args()
    gamma_from_nothing()
    arrays()
    heterogeneous()
    imports()
    if not given.no_peers:
        against_dp_accounting()
    if given.profile:
        profile()


if __name__ == "__main__":
    main()
