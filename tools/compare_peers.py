"""Speed and error of δ beside dp-accounting, and of imports, as ratios within one run.

Needs the extra ``peers`` (``pip install '.[peers]'``); ``python tools/compare_peers.py`` takes a
minute and 2 GB.  Times are medians; "from nothing" means that no contour of the mechanism is
kept.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pyengine as pe
from pyengine.caches import clear_cache

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true", help="leave out other programs")
    given = parser.parse_args()
    imports()
    if not given.no_peers:
        against_dp_accounting()


if __name__ == "__main__":
    main()
