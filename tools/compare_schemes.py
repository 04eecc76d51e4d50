"""Schemes of batches beside the accountants that have them: time from nothing, and error.

``python tools/compare_schemes.py`` needs dp-accounting (mixtures of Gaussians) and PLD_accounting
(random allocation), ``pip install dp-accounting PLD_accounting``; what is not installed is left
out.  ε at δ = 1e-5, of whichever order of the neighbours is larger.  Errors are distances from
`pyengine`'s value, which itself errs by less than what stands in the last column; both accountants
are asked with the settings that they come with.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

from timing import median_time

import pyengine as pe
from pyengine.caches import clear_cache

DELTA = 1e-5
EPOCHS = ((1.0, 100, 1), (1.0, 10_000, 1))  # 100 epochs took PLD_accounting over 17 minutes
MIXTURES = (
    (1.0, (0.0, 1.0, 2.0), (0.9, 0.09, 0.01), 100),
    (2.0, (0.0, 1.0), (0.99, 0.01), 1000),
    (1.0, (0.0, 1.0, 2.0, 3.0), (0.7, 0.2, 0.09, 0.01), 1),
)


class Line(NamedTuple):
    """One question: times in seconds, ε of both, and the relative width of our bounds."""

    words: str
    ours: float
    theirs: float
    value: float
    other: float
    width: float

    def __str__(self) -> str:
        """As a row of a table."""
        error = abs(self.other / self.value - 1.0)
        return (
            f"| {self.words} | {self.value:.12g} | {1e3 * self.ours:.2f} | {self.width:.0e} | "
            f"{self.other:.6g} | {1e3 * self.theirs:.0f} | {error:.1e} | "
            f"{self.theirs / self.ours:,.0f} | {error / max(self.width, 1e-16):.0e} |"
        )


HEAD = (
    "| question | ε | ms | width | theirs | ms | error | times as fast | error is larger by |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def asked(words: str, run: pe.Mechanism, theirs: Callable[[], float], runs: int) -> Line:
    """Both answers of one question."""

    def ours() -> Any:
        clear_cache()
        return pe.epsilon(run, DELTA, bounds="estimated")

    ours()  # modules that are imported when they are first asked
    mine, (lower, value, upper) = median_time(ours, 9)
    other_time, other = median_time(theirs, runs)
    return Line(words, mine, other_time, value, other, (upper - lower) / value)


def of_epochs(noise: float, steps: int, epochs: int, runs: int) -> Line:
    """Random allocation beside PLD_accounting."""
    import PLD_accounting as pld

    params = pld.PrivacyParams(sigma=noise, num_steps=steps, num_epochs=epochs, delta=DELTA)
    config = pld.AllocationSchemeConfig()
    return asked(
        f"random allocation, noise {noise:g}, {steps} steps, {epochs} epochs",
        pe.dp_sgd_allocated(noise, steps, epochs=epochs),
        lambda: pld.gaussian_allocation_epsilon_configurable(params=params, config=config),
        runs,
    )


def of_mixtures(
    noise: float, shifts: tuple[float, ...], weights: tuple[float, ...], steps: int, runs: int
) -> Line:
    """A mixture of Gaussians beside dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def theirs() -> float:
        made = pld.from_mixture_gaussian_mechanism(noise, list(shifts), list(weights))
        return float(made.self_compose(steps).get_epsilon_for_delta(DELTA))

    mixture = pe.GaussianMixtureMechanism(noise, shifts, weights)
    return asked(
        f"mixture at {', '.join(f'{s:g}' for s in shifts)}, noise {noise:g}, {steps} steps",
        mixture.composed(steps) if steps > 1 else mixture,
        theirs,
        runs,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each question to the others")
    runs = parser.parse_args().runs
    print(HEAD)
    if importlib.util.find_spec("PLD_accounting"):
        for case in EPOCHS:
            print(of_epochs(*case, runs), flush=True)
    if importlib.util.find_spec("dp_accounting"):
        for mixture in MIXTURES:
            print(of_mixtures(*mixture, runs), flush=True)


if __name__ == "__main__":
    main()
