"""How many of 1,000 seeded Monte Carlo runs have intervals that hold the truth.

Prints one line per mechanism, κ, variant and confidence: the share that is stated, the one found,
and the interval's median width relative to γ.  Run with ``python tools/monte_carlo_coverage.py``.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import pyengine as pe
from pyengine.approximations import monte_carlo_gamma

MECHANISMS = {
    "noise 2, p 0.2, 20 steps": pe.dp_sgd(2.0, 0.2, 20),
    "noise 1, p 0.01, 100 steps": pe.dp_sgd(1.0, 0.01, 100),
    "Laplace, noise 2, 8 steps": pe.LaplaceMechanism(2.0).composed(8),
}
KAPPAS = (0.3, 0.02, 1e-6)
CONFIDENCES = (0.5, 0.9, 0.99)


def main() -> None:
    """Count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=2000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", pe.ApproximationWarning)
    fewest = 1.0
    for name, mechanism in MECHANISMS.items():
        for kappa in KAPPAS:
            truth = pe.gamma_bound(mechanism, kappa)
            for tilted in (False, True):
                for confidence in CONFIDENCES:
                    ends = [
                        monte_carlo_gamma(
                            mechanism,
                            kappa,
                            samples=arguments.samples,
                            seed=seed,
                            confidence=confidence,
                            tilted=tilted,
                            threads=1,
                        )
                        for seed in range(arguments.runs)
                    ]
                    held = np.mean([end.lower <= truth <= end.upper for end in ends])
                    width = np.median([(end.upper - end.lower) / truth for end in ends])
                    fewest = min(fewest, held - confidence)
                    print(
                        f"{name}, kappa {kappa:g}, {'tilted' if tilted else 'plain'}: stated "
                        f"{confidence:g}, held {held:.3f}, relative width {width:.3g}",
                        flush=True,
                    )
    print(f"smallest excess over the stated share: {fewest:.3f}")


if __name__ == "__main__":
    main()
