"""Sampled Gaussian steps in which one record takes the place of another.

With mu = 1/noise, P = (1 - p) N(0, 1) + p N(-mu, 1) and Q is its mirror image (Lebeda et al., 2024,
Proposition 13); both orders have one law.  One step has a closed form.  More are inverted on a line
twice, with two discretisations that differ in every parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import acb, acb_mat, arb

from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, precision, spread, upper_normal
from pyengine.reference.cumulants import Array, Cumulants, away_from_poles
from pyengine.reference.knots import Point
from pyengine.reference.six import Six

__all__ = ["SubstitutedGaussianLaw", "SubstitutedNormalSource"]

Number = float | Fraction
Rows = tuple[tuple[Number, Number, int], ...]  # noise, probability (1: the record always), steps
MOST_PRODUCTS = 6e7
FAR, NEAR = 90.0, 0.05  # reach and spacing of what plans


class SubstitutedNormalSource:
    """What makes the law of one step; see `pyengine.reference.knots.Source`.

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

    def masses(self, c: arb) -> Point:
        """Return masses at a threshold: mu y = c/2 + asinh((1 - p) e^(mu²/2) sinh(c/2) / p)."""
        mu, p, rest = self.mu, self.p, self.rest
        y = (c / 2 + (rest / p * (mu**2 / 2).exp() * (c / 2).sinh()).asinh()) / mu
        zero, centre = arb(0), rest * upper_normal(y)
        under = rest * upper_normal(-y)
        return Point(
            centre + p * upper_normal(y + mu),
            zero,
            under + p * upper_normal(-y - mu),
            centre + p * upper_normal(y - mu),
            zero,
            under + p * upper_normal(mu - y),
        )


class _Cumulants(Cumulants):
    """Cumulants of the total loss, in double precision."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.shift = rows, 0.0

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


@dataclass(frozen=True)
class _Plan:
    """One discretisation: line, nodes in t, and spacing, offset and ends of the nodes in z."""

    tilt: float
    spacing: float
    count: int
    step: float
    shift: float
    windows: tuple[tuple[float, float], ...]
    bits: int


class SubstitutedGaussianLaw:
    """The total loss; see `pyengine.reference.solve.Law`.

    Parameters
    ----------
    rows : tuple of (noise, probability, int)
        Steps by kind; for probability 1 the noise is that of the doubled sensitivity.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._last: tuple[float, float, _Local] | None = None

    @cached_property
    def cumulants(self) -> Cumulants:
        """Double-precision cumulants that plan."""
        return _Cumulants(self.rows)

    def lowest(self) -> arb | None:
        """Return the infimum of the loss: there is none."""
        return None

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            name, log_target = ("q_above" if name == "h_qp" else "p_below"), min(log_target, -1e-3)
        return arb(self.cumulants.threshold(name, log_target))

    def near(self, c: arb, depth: float) -> _Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        place = float(c)
        if self._last is None or self._last[0] != place or self._last[1] < depth:
            plans = _plans(_Cumulants(self.rows), place, depth)
            self._last = place, depth, _Local([_Line(self.rows, plan) for plan in plans])
        return self._last[2]

    def around(self, c: arb, depth: float) -> _Local:
        """Prepare evaluation over a wide range of thresholds; as `near`."""
        return self.near(c, depth)


def _plans(cumulants: _Cumulants, c: float, depth: float) -> list[_Plan]:
    """Return two discretisations that share no parameter."""
    saddle = cumulants.saddle(c)
    spread_of = math.sqrt(cumulants.mean_variance(saddle)[1])
    plans = []
    for variant, (factor, finer) in enumerate(((1.0, 1.0), (1.15, 1.11))):
        tilt = away_from_poles(saddle, min(0.4, 2.0 / spread_of) * factor)
        tilt += 0.03 * variant / spread_of * math.copysign(1.0, tilt - 0.5)
        tail = cumulants.value(tilt) - tilt * c
        lost = depth + 8 + max(0.0, -tail, -tail - c)
        period = lost / min(abs(tilt), abs(tilt - 1))
        period = finer * max(period, _chernoff(cumulants, tilt, c, depth + 8, spread_of))
        reach = finer * _reach(cumulants, tilt, depth + 8, spread_of)
        steepest = max(1 / float(noise) for noise, _, _ in cumulants.rows)
        step = 2 * math.pi / (reach * steepest * 2 + 2 * math.sqrt(2 * depth + 20)) / finer
        windows = []
        for k, row in enumerate(cumulants.rows):
            if row[1] == 1:
                windows.append((0.0, 0.0))
                continue
            z, log_p, loss = cumulants.measure(k, NEAR)
            exponent = log_p + tilt * loss
            margin = depth + 12 + math.log(row[2]) + 20 * variant
            inside = z[exponent > exponent.max() - margin]
            if inside[0] < 2 - FAR or inside[-1] > FAR - 2:
                raise AccuracyError(f"no ground truth at a loss of {c:g}: it is too far out")
            windows.append((float(inside[0]) - 0.1, float(inside[-1]) + 0.1))
        count = int(reach * period / (2 * math.pi)) + 2
        nodes = sum((high - low) / step for low, high in windows)
        if count * max(nodes, 1.0) > MOST_PRODUCTS:
            raise AccuracyError(
                f"an inversion would take {count} x {nodes:.0f} values; more steps, or more noise, "
                "make the loss smoother"
            )
        bits = int((depth + abs(math.log(count * max(nodes, 2.0)))) / math.log(2)) + 70
        shift = 0.37 * step * variant
        plans.append(
            _Plan(
                tilt, 2 * math.pi / period, count, step, shift, tuple(windows), bits + 16 * variant
            )
        )
    return plans


def _chernoff(cumulants: _Cumulants, tilt: float, c: float, depth: float, sd: float) -> float:
    """Return a period beyond which both tails are small by Chernoff's bound."""
    start = cumulants.value(tilt)
    longest = 0.0
    for sign in (1, -1):
        periods = []
        for away in np.geomspace(0.3, 30.0, 24):
            gap = float(away) / sd
            change = cumulants.value(tilt + sign * gap) - start - sign * gap * c
            periods.append((change + depth) / gap)
        longest = max(longest, min(periods))
    return longest


def _reach(cumulants: _Cumulants, tilt: float, depth: float, sd: float) -> float:
    """Return a t beyond which the transform is small, from where it falls the last time."""
    size, t, last = cumulants.value(tilt), 1.0 / sd, 1.0 / sd
    quiet = 0
    while quiet < 8:
        t *= 1.15
        small = cumulants.log_size(tilt, t) - size < -depth
        quiet = quiet + 1 if small else 0
        last = last if small else t
        if t * sum(1 / float(noise) for noise, _, _ in cumulants.rows) > 2e4:
            raise AccuracyError("the transform falls too slowly; more steps make the loss smoother")
    return 1.15 * last


class _Line:
    """Tails and divergences by one trapezoidal rule."""

    def __init__(self, rows: Rows, plan: _Plan) -> None:
        self.plan = plan
        with precision(plan.bits):
            self.tilt, self.spacing = arb(plan.tilt), arb(plan.spacing)
            places = [acb(self.tilt, k * self.spacing) for k in range(plan.count)]
            power = [acb(1)] * plan.count
            for (noise, probability, steps), window in zip(rows, plan.windows, strict=True):
                if probability == 1:
                    square = 1 / exact(noise) ** 2
                    values = [(square * s * (s - 1) / 2).exp() for s in places]
                else:
                    values = self._transform(noise, probability, window)
                power = [x * y**steps for x, y in zip(power, values, strict=True)]
            power[0] /= 2
            kernels = [x / s for x, s in zip(power, places, strict=True)]
            kernels += [x / (s - 1) for x, s in zip(power, places, strict=True)]
            kernels += [x / (s * (s - 1)) for x, s in zip(power, places, strict=True)]
            self._kernels = acb_mat(3, plan.count, kernels)

    def _transform(
        self, noise: Number, probability: Number, window: tuple[float, float]
    ) -> list[acb]:
        """Return M at the nodes of the line, as entries of one product of two matrices."""
        mu, p, rest = 1 / exact(noise), exact(probability), exact(1 - Fraction(probability))
        step, count = arb(self.plan.step), self.plan.count
        factor = step / (2 * arb.pi()).sqrt()
        giant = math.isqrt(count - 1) + 1
        small: list[acb] = []
        columns = []
        first = math.floor(window[0] / self.plan.step)
        for k in range(first, math.ceil(window[1] / self.plan.step) + 1):
            z = k * step + arb(self.plan.shift)
            a, b = (rest + p * (s * mu * z - mu**2 / 2).exp() for s in (-1, 1))
            loss = (b / a).log()
            weight = factor * (-z * z / 2 + self.tilt * loss).exp() * a
            small.extend(acb(0, j * self.spacing * loss).exp() for j in range(giant))
            leap = giant * self.spacing * loss
            columns.append([weight * acb(0, j * leap).exp() for j in range(giant)])
        large = [column[j] for j in range(giant) for column in columns]
        nodes = len(columns)
        product = acb_mat(giant, nodes, large) * acb_mat(nodes, giant, small)
        return list(product.entries())[:count]

    def at(self, c: arb) -> list[arb]:
        """Return tails and divergences at a threshold, without any bound of their error."""
        count, tilt = self.plan.count, self.plan.tilt
        giant = math.isqrt(count - 1) + 1
        steps = [acb(0, -k * self.spacing * c).exp() for k in range(giant)]
        leaps = [acb(0, -k * giant * self.spacing * c).exp() for k in range(giant)]
        turns = [x * y for x in leaps for y in steps][:count]
        sums = self._kernels * acb_mat(count, 1, turns)
        scale, grow = (-self.tilt * c).exp() * self.spacing / arb.pi(), c.exp()
        zero, one, both = (sums[k, 0].real * scale for k in range(3))
        one *= grow
        p_above, p_below = (1 + zero, -zero) if tilt < 0 else (zero, 1 - zero)
        q_above, q_below = (1 + one, -one) if tilt < 1 else (one, 1 - one)
        if tilt > 1:
            h_qp, h_pq = grow * both, both - 1 / grow + 1
        elif tilt > 0:
            h_qp, h_pq = grow * both + 1, both + 1
        else:
            h_qp, h_pq = grow * (both - 1) + 1, both
        return [p_above, p_below, q_above, q_below, h_qp, h_pq]


class _Local:
    """Two lines: the second one answers, ten times their difference is the error."""

    certified = False

    def __init__(self, lines: list[_Line]) -> None:
        self.lines = lines
        self.bits = lines[-1].plan.bits

    def at(self, c: arb) -> Six:
        """Return tails and divergences at a threshold."""
        with precision(self.bits):
            one, two = (line.at(c) for line in self.lines)
            return Six(*(y + spread(10 * (x - y)) for x, y in zip(one, two, strict=True)))
