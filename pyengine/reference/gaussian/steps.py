"""Steps of the Poisson-subsampled Gaussian mechanism with exact parameters.

Per step, without the record P = N(0, 1), with it Q = (1 - p) N(0, 1) + p N(mu, 1), mu = 1/noise.
The loss is L = log(1 - p) + Y with Y = log(1 + w) >= 0, w = odds * exp(mu z - mu^2/2),
odds = p / (1 - p); for p = 1, Y stands for L itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from pyengine.reference.balls import exact
from pyengine.reference.cumulants import Cumulants, log_upper_normal
from pyengine.reference.inversion.line import Part, PlainGaussian
from pyengine.reference.inversion.normal_pair import Mixture, NormalPair

__all__ = ["EqualSteps", "cumulants_of", "log_odds", "offset", "place_of", "single_threshold"]

SPAN = 45.0  # standard deviations at which planning truncates the normal law


@dataclass(frozen=True)
class EqualSteps:
    """Equal steps; noise > 0 and probability in (0, 1] are meant exactly."""

    noise: float | Fraction
    probability: float | Fraction
    steps: int

    @property
    def full_batch(self) -> bool:
        """Whether every record takes part in every step."""
        return self.probability == 1

    def part(self) -> Part:
        """Return one step, known by its transform."""
        noise, p = Fraction(self.noise), Fraction(self.probability)
        if p == 1:
            return PlainGaussian(noise)
        return NormalPair(Mixture((1 - p, p), (0, 1 / noise)))

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
    """Return the sum of n log(1 - p): the total loss less the sum of Y."""
    return sum((phase.shift() for phase in phases), arb(0))


def cumulants_of(phases: tuple[EqualSteps, ...], cut: float = SPAN) -> Cumulants:
    """Return the cumulants of the sum of Y, with z truncated to [-SPAN, cut]."""
    return Cumulants([(phase.part().measure(cut, SPAN), phase.steps) for phase in phases])


def log_odds(phase: EqualSteps) -> float:
    """Return log(p / (1 - p)) in double precision."""
    return math.log(phase.probability) - log_rest(phase)


def log_rest(phase: EqualSteps) -> float:
    """Return log(1 - p) in double precision; 1 - p is exact before it is rounded."""
    if phase.probability < 0.5:
        return math.log1p(-float(phase.probability))
    return math.log(1 - Fraction(phase.probability))


def place_of(phase: EqualSteps, loss: float) -> float:
    """Return the z where Y = log(1 + odds * exp(mu z - mu^2 / 2)) is ``loss``, for p < 1."""
    mu = 1 / float(phase.noise)
    return (loss + math.log(-math.expm1(-loss)) - log_odds(phase)) / mu + mu / 2


def single_threshold(phases: tuple[EqualSteps, ...], measure: str, log_tail: float) -> float:
    """Return a Y that exp(log_tail) steps exceed on average, for p < 1.

    Under P if ``measure`` starts with "p", else under Q.
    """

    def log_mass(loss: float) -> float:
        logs = []
        for phase in phases:
            z, count = place_of(phase, loss), math.log(phase.steps)
            if measure.startswith("p"):
                logs.append(count + log_upper_normal(z))
            else:
                logs.append(count + log_rest(phase) + log_upper_normal(z))
                shifted = log_upper_normal(z - 1 / float(phase.noise))
                logs.append(count + math.log(phase.probability) + shifted)
        return max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))

    low, high = -600.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if log_mass(math.exp(middle)) > log_tail else (low, middle)
    return math.exp(high)
