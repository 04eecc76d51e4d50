"""Sampled Gaussian steps in which one record takes the place of another.

With mu = 1/noise, P = (1 - p) N(0, 1) + p N(-mu, 1) and Q is its mirror image (Lebeda et al., 2024,
Proposition 13); both orders have one law.  One step has a closed form.  More are inverted on a line
twice, with two discretisations that differ in every parameter.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.law import ThresholdMasses
from pyengine.reference.balls import exact, upper_normal
from pyengine.reference.cumulants import Array
from pyengine.reference.inversion.two_lines import Measured, RotatedPlan, turned_sums

__all__ = ["SubstitutedGaussianLaw", "SubstitutedNormalSource"]

Number = float | Fraction
Rows = tuple[tuple[Number, Number, int], ...]  # noise, probability (1: the record always), steps
FAR, NEAR = 90.0, 0.05  # reach and spacing of what plans


class SubstitutedNormalSource:
    """What makes the law of one step; see `pyengine.reference.atomic.law.Source`.

    Parameters
    ----------
    noise, probability : float or Fraction
        Probability in (0, 1).
    """

    certified = True

    def __init__(self, noise: Number, probability: Number) -> None:
        self.noise, self.probability = noise, probability

    def bits(self, depth: float, variant: int) -> int:  # noqa: ARG002 - there is one
        """Return the working precision for a depth in decimal digits."""
        return int(3.33 * depth) + 100

    def law(self, depth: float, variant: int) -> SubstitutedNormal:  # noqa: ARG002
        """Return the law at the working precision."""
        return SubstitutedNormal(self.noise, self.probability, depth)

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        return -arb("inf"), arb("inf")

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""
        return arb(0), arb(0)


class SubstitutedNormal:
    """Tails of one step by the normal law."""

    cost = 1

    def __init__(self, noise: Number, probability: Number, depth: float) -> None:
        self.mu, self.p = 1 / exact(noise), exact(probability)
        self.rest, self.depth = exact(1 - Fraction(probability)), depth

    @cached_property
    def knots(self) -> list[arb]:
        """Places between which answers are searched."""
        reach = math.ceil(math.sqrt(2 * 2.303 * (self.depth + 20)))
        y = self.mu + reach
        top = self._log_ratio(y) - self._log_ratio(-y)
        return [-top.mid(), arb(0), top.mid()]

    def _log_ratio(self, y: arb) -> arb:
        return (self.rest + self.p * (self.mu * y - self.mu**2 / 2).exp()).log()

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold: mu y = c/2 + asinh((1 - p) e^(mu²/2) sinh(c/2) / p)."""
        mu, p, rest = self.mu, self.p, self.rest
        y = (c / 2 + (rest / p * (mu**2 / 2).exp() * (c / 2).sinh()).asinh()) / mu
        zero, centre = arb(0), rest * upper_normal(y)
        under = rest * upper_normal(-y)
        return ThresholdMasses(
            centre + p * upper_normal(y + mu),
            zero,
            under + p * upper_normal(-y - mu),
            centre + p * upper_normal(y - mu),
            zero,
            under + p * upper_normal(mu - y),
        )


class _Cumulants(Measured):
    """Cumulants of the total loss, in double precision."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.shift = rows, 0.0
        self.steepest = sum(1 / float(noise) for noise, _, _ in rows)

    def measure(self, row: int, spacing: float) -> tuple[Array, Array, Array]:
        """Return nodes, log masses under P and losses of one step."""
        noise, probability, _ = self.rows[row]
        mu, p = 1 / float(noise), float(probability)
        z = np.arange(-FAR, FAR, spacing)
        rest = math.log(1 - Fraction(probability))
        a = np.logaddexp(rest, math.log(p) - mu * z - mu * mu / 2)
        b = np.logaddexp(rest, math.log(p) + mu * z - mu * mu / 2)
        return z, a - z * z / 2 + math.log(spacing / math.sqrt(2 * math.pi)), b - a

    @cached_property
    def _measures(self) -> list[tuple[Array, Array] | None]:
        return [
            None if row[1] == 1 else self.measure(k, NEAR)[1:] for k, row in enumerate(self.rows)
        ]

    def value(self, tilt: float) -> float:
        """Return K(tilt)."""
        return sum(n * self._one(k, tilt)[0] for k, (_, _, n) in enumerate(self.rows))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return K'(tilt) and K''(tilt)."""
        found = [(n, self._one(k, tilt)) for k, (_, _, n) in enumerate(self.rows)]
        return sum(n * one[1] for n, one in found), sum(n * one[2] for n, one in found)

    def _one(self, row: int, tilt: float) -> tuple[float, float, float]:
        measure = self._measures[row]
        if measure is None:
            square = 1 / float(self.rows[row][0]) ** 2
            return square * tilt * (tilt - 1) / 2, square * (tilt - 0.5), square
        log_p, loss = measure
        exponent = log_p + tilt * loss
        top = float(exponent.max())
        weight = np.exp(exponent - top)
        total = float(weight.sum())
        mean = float(weight @ loss) / total
        return top + math.log(total), mean, float(weight @ (loss - mean) ** 2) / total

    def log_size(self, tilt: float, t: float) -> float:
        """Return log |M(tilt + i t)| of all steps."""
        total = 0.0
        for k, (noise, probability, steps) in enumerate(self.rows):
            mu = 1 / float(noise)
            if probability == 1:
                total += steps * mu * mu * (tilt * (tilt - 1) - t * t) / 2
                continue
            _, log_p, loss = self.measure(k, min(0.05, 5.0 / (2 * t * mu + 25.0)))
            exponent = log_p + tilt * loss
            top = exponent.max()
            size = abs(np.sum(np.exp(exponent - top + 1j * t * loss)))
            total += steps * (top + math.log(max(float(size), 1e-300)))
        return total


class SubstitutedGaussianLaw:
    """The transform of the total loss; see `pyengine.reference.inversion.two_lines.Transform`.

    Parameters
    ----------
    rows : tuple of (noise, probability, int)
        Steps by kind; for probability 1 the noise is that of the doubled sensitivity.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def cumulants(self) -> Measured:
        """Return cumulants that plan."""
        return _Cumulants(self.rows)

    def lost(self, plan: RotatedPlan) -> tuple[arb, arb]:  # noqa: ARG002 - whatever the plan
        """Return bounds on the mass that is left out: none."""
        return arb(0), arb(0)

    def values(self, plan: RotatedPlan) -> list[acb]:
        """Return E exp(lambda S) at the nodes of a line."""
        power = [acb(1)] * plan.count
        for k, (noise, probability, steps) in enumerate(self.rows):
            if probability == 1:
                square = 1 / exact(noise) ** 2
                places = [acb(arb(plan.tilt), j * arb(plan.spacing)) for j in range(plan.count)]
                values = [(square * s * (s - 1) / 2).exp() for s in places]
            else:
                values = self._one(k, plan)
            power = [x * y**steps for x, y in zip(power, values, strict=True)]
        return power

    def _one(self, row: int, plan: RotatedPlan) -> list[acb]:
        """Return the transform of one step, as entries of one product of two matrices."""
        noise, probability, steps = self.rows[row]
        finer = 1.0 + 0.11 * plan.variant
        width = (
            2
            * math.pi
            / (2 * plan.reach / float(noise) + 2 * math.sqrt(2 * plan.depth + 20))
            / finer
        )
        z, log_p, loss = _Cumulants(self.rows).measure(row, NEAR)
        exponent = log_p + plan.tilt * loss
        margin = plan.depth + 12 + math.log(steps) + 20 * plan.variant
        inside = z[exponent > exponent.max() - margin]
        if inside[0] < 2 - FAR or inside[-1] > FAR - 2:
            raise AccuracyError("no ground truth at so large a loss; ask for a larger value")
        first, last = math.floor((inside[0] - 0.1) / width), math.ceil((inside[-1] + 0.1) / width)
        plan.check(last - first)
        mu, p, rest = 1 / exact(noise), exact(probability), exact(1 - Fraction(probability))
        step, shift = arb(width), arb(0.37 * width * plan.variant)
        factor = step / (2 * arb.pi()).sqrt()
        losses, weights = [], []
        for k in range(first, last + 1):
            y = k * step + shift
            a, b = (rest + p * (s * mu * y - mu**2 / 2).exp() for s in (-1, 1))
            losses.append((b / a).log())
            weights.append(factor * (-y * y / 2 + arb(plan.tilt) * losses[-1]).exp() * a)
        return turned_sums(losses, weights, arb(plan.spacing), plan.count)
