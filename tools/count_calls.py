"""Python calls and processor time of one scalar γ, and of one γ of sampled Laplace noise.

    python tools/count_calls.py

It asks only what every commit answers, so that the Python of an old commit's environment can be
used beside this one's.  Times are the least of seven, calls those that the profiler counts.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable

import pyengine as pe

try:
    from pyengine.caches import clear_cache
except ImportError:  # a commit before there was that module
    from pyengine.engines.select import clear_cache  # type: ignore[import-not-found,no-redef]

SGD = pe.dp_sgd(1.0, 0.01, 1000)
LAPLACE = pe.LaplaceMechanism(2.0).poisson_sampled(0.2).composed(50)


def calls(ask: Callable[[], object]) -> int:
    """Calls behind a question, those of built-in functions included."""
    profile = cProfile.Profile()
    profile.enable()
    ask()
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def seconds(ask: Callable[[], object], times: int) -> float:
    """Processor time of a question."""
    found = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(times):
            ask()
        found.append((time.process_time() - start) / times)
    return min(found)


def main() -> None:
    """Print both, of mechanisms that were asked before and from nothing."""
    print(f"{'γ(κ)':32}{'calls':>10}{'time':>14}")
    for name, mechanism, method, often in (
        ("DP-SGD", SGD, "auto", 1000),
        ("sampled Laplace", LAPLACE, "auto", 20),
        ("the same, lattice", LAPLACE, "lattice", 20),
    ):
        pe.gamma_bound(mechanism, 1e-3, method=method)

        def kept() -> None:
            pe.gamma_bound(mechanism, 2e-3, method=method)  # noqa: B023

        def cold() -> None:
            clear_cache()
            pe.gamma_bound(mechanism, 1e-3, method=method)  # noqa: B023

        for how, ask, times in (("asked before", kept, often), ("from nothing", cold, 5)):
            ask()
            print(f"{f'{name}, {how}':32}{calls(ask):10}{1e6 * seconds(ask, times):11.1f} µs")


if __name__ == "__main__":
    main()
