"""A Monte Carlo loop under Numba that asks pyengine: errors of the best test, drawn and exact.

python -m examples.numba_monte_carlo
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

import pyengine as pe

NOISE, DRAWS = 1.25, 200_000

pe.numba.register()  # Numba does so itself where the package is installed


@numba.njit
def missed(run: Any, noise: float, alpha: float, draws: int, rng: Any) -> tuple[float, float]:
    """How often the best test of level α misses the record, drawn, and the β(α) of the run."""
    threshold = -noise * pe.special.ndtri(alpha)
    count = 0
    for _ in range(draws):
        count += 1.0 + noise * rng.standard_normal() <= threshold
    return count / draws, pe.numba.trade_off(run, alpha)


def main() -> None:
    """Print both at five levels."""
    run = pe.numba.prepare(pe.GaussianMechanism(NOISE))
    print("alpha   drawn    exact    apart in standard errors")
    rng = np.random.default_rng(1)
    for alpha in (0.01, 0.05, 0.1, 0.25, 0.5):
        drawn, exact = missed(run, NOISE, alpha, DRAWS, rng)
        apart = (drawn - exact) / math.sqrt(exact * (1.0 - exact) / DRAWS)
        print(f"{alpha:<7} {drawn:.5f}  {exact:.5f}  {apart:+.1f}")


if __name__ == "__main__":
    main()
