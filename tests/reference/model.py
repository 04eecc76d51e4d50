"""Exact inputs of a reference point and the six quantities computed for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, fmpq

QUANTITIES = ("p_above", "p_below", "q_above", "q_below", "h_qp", "h_pq")


@dataclass(frozen=True)
class Phase:
    """Equal steps of a Poisson-subsampled Gaussian mechanism; doubles are meant exactly."""

    noise: float | Fraction
    probability: float | Fraction
    steps: int

    @property
    def full_batch(self) -> bool:
        """Whether every record takes part in every step."""
        return self.probability == 1

    def mu(self) -> arb:
        """Return the distance 1/noise of the two means at the working precision."""
        return 1 / _exact(self.noise)

    def exact_probability(self) -> arb:
        """Return p at the working precision."""
        return _exact(self.probability)

    def odds(self) -> arb:
        """Return p / (1 - p) at the working precision."""
        return self.exact_probability() / self.complement()

    def complement(self) -> arb:
        """Return 1 - p, rounded once."""
        return _exact(1 - Fraction(self.probability))

    def shift(self) -> arb:
        """Return the infimum of the loss of the phase, steps * log(1 - p) (0 if p = 1)."""
        return arb(0) if self.full_batch else self.steps * self.complement().log()


@dataclass(frozen=True)
class Point:
    """A composition, and the threshold c of the total privacy loss S."""

    phases: tuple[Phase, ...]
    threshold: float
    stratum: str = ""

    @property
    def total_steps(self) -> int:
        """Number of steps of all phases together."""
        return sum(phase.steps for phase in self.phases)

    def at(self, threshold: float) -> Point:
        """Return the same composition at another threshold."""
        return replace(self, threshold=threshold)

    def offset_threshold(self) -> arb:
        """Return c' = c - sum of n log(1 - p): the threshold of the sum of Y = L - log(1 - p)."""
        result = arb(self.threshold)
        for phase in self.phases:
            result -= phase.shift()
        return result


def _exact(number: float | Fraction) -> arb:
    numerator, denominator = number.as_integer_ratio()
    return arb(fmpq(numerator, denominator))


def six_quantities(line: tuple[arb, arb, arb], position: float, threshold: float) -> dict[str, arb]:
    """Turn the three contour integrals into tails and divergences, adding residues.

    The integrals, over 2 pi i, are of E/lambda, E/(lambda - 1) and E/(lambda (lambda - 1)) for E
    = exp(K_N(lambda) - lambda c), on a contour that crosses the real axis neither at 0 nor at
    1.  The results are P(S > c), P(S <= c), Q(S > c), Q(S <= c), H_{exp(c)}(Q || P) and
    H_{exp(-c)}(P || Q); the smaller one of each pair of tails carries no cancellation.
    """
    over_zero, over_one, over_both = line
    c = arb(threshold)
    scale = c.exp()
    over_one = over_one * scale
    p_above, p_below = (1 + over_zero, -over_zero) if position < 0 else (over_zero, 1 - over_zero)
    q_above, q_below = (1 + over_one, -over_one) if position < 1 else (over_one, 1 - over_one)
    if position > 1:
        h_qp, h_pq = scale * over_both, over_both - (-c).expm1()
    elif position > 0:
        h_qp, h_pq = scale * over_both + 1, over_both + 1
    else:
        h_qp, h_pq = scale * over_both - c.expm1(), over_both
    return dict(zip(QUANTITIES, (p_above, p_below, q_above, q_below, h_qp, h_pq), strict=True))
