"""Steps of the Poisson-subsampled Gaussian mechanism with exact parameters.

Per step, without the record P = N(0, 1), with it Q = (1 - p) N(0, 1) + p N(mu, 1), mu = 1/noise.
The loss is L = log(1 - p) + Y with Y = log(1 + w) >= 0, w = odds * exp(mu z - mu^2/2),
odds = p / (1 - p); for p = 1, Y stands for L itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from pyengine.reference.balls import exact

__all__ = ["EqualSteps", "offset"]


@dataclass(frozen=True)
class EqualSteps:
    """Equal steps.

    Parameters
    ----------
    noise : float or Fraction
        Noise multiplier, > 0, meant exactly.
    probability : float or Fraction
        Sampling probability, in (0, 1], meant exactly.
    steps : int
        Number of steps, >= 1.
    """

    noise: float | Fraction
    probability: float | Fraction
    steps: int

    @property
    def full_batch(self) -> bool:
        """Whether every record takes part in every step."""
        return self.probability == 1

    def mu(self) -> arb:
        """Return the distance 1/noise of the two means at the working precision."""
        return 1 / exact(self.noise)

    def exact_probability(self) -> arb:
        """Return p at the working precision."""
        return exact(self.probability)

    def complement(self) -> arb:
        """Return 1 - p, rounded once."""
        return exact(1 - Fraction(self.probability))

    def odds(self) -> arb:
        """Return p / (1 - p) at the working precision."""
        return self.exact_probability() / self.complement()

    def shift(self) -> arb:
        """Return the infimum of the loss of the phase, steps * log(1 - p) (0 if p = 1)."""
        if self.full_batch:
            return arb(0)
        if self.probability < Fraction(1, 2):
            return self.steps * (-self.exact_probability()).log1p()
        return self.steps * self.complement().log()


def offset(phases: tuple[EqualSteps, ...]) -> arb:
    """Return the sum of n log(1 - p): what the total loss exceeds the sum of Y by."""
    return sum((phase.shift() for phase in phases), arb(0))
