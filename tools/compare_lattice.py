"""The lattice engine beside other accountants: time and error of brackets, as ratios of one run.

Needs the extra ``peers``; prv-accountant is compared where it is installed.  Times are medians,
ours from nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import median_time

import pyengine as pe
from pyengine.caches import clear_cache

# noise 0.8, probability 0.001, 10,000 steps: delta at epsilon 1 (remove), and epsilon at delta 1e-6
# for both orders; two inversions in ball arithmetic agree in these digits.
DELTA, EPSILON = 5.31959137797466504814864298892e-7, 0.9471956873
seconds = partial(median_time, clock=time.perf_counter)


def ours(question: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    clear_cache()
    return question(*arguments, method="lattice", bounds=True, **keywords)


def line(name: str, value: str, target: str, met: bool) -> None:
    print(f"  {name:<46}{value:>14}   {target:<8}{'met' if met else 'MISSED'}", flush=True)


def against_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    their_time, theirs = seconds(
        lambda: (
            pld.from_gaussian_mechanism(
                0.8, value_discretization_interval=1e-5, sampling_prob=0.001, use_connect_dots=True
            )
            .self_compose(10_000)
            .get_delta_for_epsilon(1.0)
        ),
        3,
    )
    # theirs is the larger profile of both orders, and so is ours
    our_time, bounds = seconds(lambda: ours(pe.delta, mechanism, 1.0), 5)
    error, width = abs(theirs / DELTA - 1.0), (bounds.upper - bounds.lower) / bounds.upper
    print("dp-accounting, grid 1e-5; noise 0.8, probability 0.001, 10,000 steps, delta(1)")
    print(f"  {their_time:.3g} s, error {error:.1e}; {our_time:.3g} s, width {width:.1e}, ", end="")
    print(f"error {abs(bounds.value / DELTA - 1.0):.1e}")
    line("holds the truth", "", "", bounds.lower <= DELTA <= bounds.upper)
    line("times as fast", f"{their_time / our_time:.0f}", "10", their_time >= 10.0 * our_time)
    our_error = abs(bounds.value / DELTA - 1.0)
    line("times as accurate", f"{error / our_error:.0f}", "1", error > our_error)

    mechanism = pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(100)
    their_time, theirs = seconds(
        lambda: (
            pld.from_laplace_mechanism(1.0, sampling_prob=0.1)
            .self_compose(100)
            .get_delta_for_epsilon(1.0)
        )
    )
    our_time, bounds = seconds(lambda: ours(pe.delta, mechanism, 1.0), 5)
    print("dp-accounting, default; Laplace scale 1, probability 0.1, 100 steps, delta(1)")
    print(f"  {their_time:.3g} s, {theirs:.6g}; {our_time:.3g} s, [{bounds.lower:.9g}, ", end="")
    print(f"{bounds.upper:.9g}]")
    line("times as fast", f"{their_time / our_time:.1f}", "1", their_time > our_time)


def against_prv() -> None:
    try:
        from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant
    except ImportError:
        print("prv-accountant is not installed: left out")
        return

    def other() -> Any:
        accountant = PRVAccountant(
            prvs=[PoissonSubsampledGaussianMechanism(0.001, 0.8)],
            max_self_compositions=[10_000],
            eps_error=1e-3,
            delta_error=1e-10,
        )
        return accountant.compute_epsilon(delta=1e-6, num_self_compositions=[10_000])

    their_time, (low, _, high) = seconds(other, 1)
    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    our_time, bounds = seconds(lambda: ours(pe.epsilon, mechanism, 1e-6), 5)
    print("prv-accountant, eps_error 0.001; the same mechanism, two-sided epsilon(1e-6)")
    print(f"  {their_time:.3g} s, width {high - low:.1e}; {our_time:.3g} s, ", end="")
    print(f"width {bounds.upper - bounds.lower:.1e}")
    line("holds the truth", "", "", bounds.lower <= EPSILON + 1e-10 and bounds.upper >= EPSILON)
    line("times as fast", f"{their_time / our_time:.0f}", "100", their_time >= 100.0 * our_time)
    line("narrower", "", "", bounds.upper - bounds.lower < high - low)


def scaling() -> None:
    """Time against points and against steps."""
    print("Time against the tolerance: points grow like its inverse square root")
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        t, _ = seconds(lambda x=tolerance: ours(pe.delta, mechanism, 1.0, tolerance=x), 3)
        print(f"  {tolerance:7.0e} {t:8.3f} s")
    print("Time against the steps, at total noise kept: through the number of points only")
    for steps in (10**2, 10**3, 10**4, 10**5, 10**6):
        mechanism = pe.dp_sgd(1.0, 0.3 / np.sqrt(steps), steps)
        t, bounds = seconds(lambda m=mechanism: ours(pe.delta, m, 1.0), 3)
        print(f"  {steps:8d} {t:8.3f} s, width {(bounds.upper - bounds.lower) / bounds.upper:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true", help="leave out other programs")
    given = parser.parse_args()
    if not given.no_peers:
        against_dp_accounting()
        against_prv()
    scaling()


if __name__ == "__main__":
    main()
