"""Inversion on one vertical line left of zero, proven for every law that bounds its own transform.

S = log dQ/dP is the sum of independent losses, M(lambda) = E_P exp(lambda S).  With tilt < 0 and
lambda_k = tilt + i k h the trapezoidal sums

    (h/pi) Re sum' rho(lambda_k) M(lambda_k) exp(-lambda_k c) = F(c) + aliases,

    rho = -1/lambda:               F(c) = P(S <= c),
    rho = -1/(lambda - 1):         F(c) = E_P e^(S-c) 1{S <= c} = e^(-c) Q(S <= c),
    rho = 1/(lambda (lambda - 1)): F(c) = E_P (1 - e^(S-c))+

(the first terms halved), with aliases
sum_{m != 0} e^(tilt m T) F(c + m T), T = 2 pi/h, of one sign,
and F(x) <= min(1, exp(K(theta) - theta x)) for theta <= 0 bounds them.  What is cut off beyond the
last node is bounded by the parts' own bounds of their moduli.  Upper tails are complements, so that
working precision replaces a second line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import acb, acb_mat, arb

from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, log_magnitude, precision
from pyengine.reference.recent import Recent
from pyengine.reference.tails import BallTails

__all__ = ["LowerLineLaw", "Modulus", "Part", "PlainGaussian", "Reach"]

MOST_NODES = 60_000
MOST_KEPT = 2
LN2, LN10 = math.log(2), math.log(10)
TINY = 420 * LN10  # what is smaller than exp(-TINY) counts as known
STEP = 1e-3  # of differences of K in doubles, which plan only


@dataclass(frozen=True)
class Modulus:
    """Bounds that hold for all t >= T.

    Parameters
    ----------
    largest : arb
        On |M(tilt + i t)|.
    integral : arb
        On the integral over t from T to infinity of a decreasing bound of |M(tilt + i t)|.
    """

    largest: arb
    integral: arb


@dataclass(frozen=True)
class Reach:
    """What the values of a transform are wanted for.

    Parameters
    ----------
    tilt, spacing : arb
        The line Re lambda = tilt < 0 and the distance of its nodes, both exact.
    count : int
        Number of nodes t = 0, spacing, 2 spacing, ...
    depth : float
        The values are to have errors below exp(-depth) M(tilt).
    """

    tilt: arb
    spacing: arb
    count: int
    depth: float

    @property
    def top(self) -> float:
        """The largest t."""
        return float(self.spacing) * (self.count - 1)


class Part(Protocol):
    """The transform M(lambda) = E_P exp(lambda L) of one loss, for Re lambda < 0."""

    def log_moment(self, tilt: float) -> float:
        """Return log M(tilt) in double precision; plans, and enters no bound."""

    def values(self, reach: Reach) -> list[acb]:
        """Return balls that hold M at the nodes."""

    def modulus(self, tilt: arb, t: float, moment: arb) -> Modulus:
        """Return bounds on |M| from t on; ``moment`` is M(tilt)."""


class PlainGaussian:
    """The loss of N(0, 1) against N(mu, 1), mu = 1/noise: M = exp(mu^2 lambda (lambda - 1)/2).

    Parameters
    ----------
    noise : float or Fraction
        Noise multiplier, > 0.
    """

    def __init__(self, noise: float | Fraction) -> None:
        self.noise = noise

    def log_moment(self, tilt: float) -> float:
        """Return log M(tilt) in double precision."""
        return tilt * (tilt - 1) / (2 * float(self.noise) ** 2)

    def values(self, reach: Reach) -> list[acb]:
        """Return balls that hold M at the nodes."""
        half = 1 / (2 * exact(self.noise) ** 2)
        places = [acb(reach.tilt, k * reach.spacing) for k in range(reach.count)]
        return [(half * s * (s - 1)).exp() for s in places]

    def modulus(self, tilt: arb, t: float, moment: arb) -> Modulus:  # noqa: ARG002
        """Return bounds on |M| = M(tilt) exp(-mu^2 t^2/2) from t > 0 on."""
        square = 1 / exact(self.noise) ** 2
        largest = (moment * (-square * arb(t) ** 2 / 2).exp()).upper()
        return Modulus(largest, (largest / (square * arb(t))).upper())


class LowerLineLaw:
    """The total loss of independent parts; see `pyengine.reference.solve.Law`.

    Parameters
    ----------
    parts : tuple of (Part, int)
        The different losses, each with the number of times that it enters.
    floor : arb or None
        The infimum of the total loss, if there is one.
    """

    def __init__(self, parts: tuple[tuple[Part, int], ...], floor: arb | None = None) -> None:
        self.parts, self.floor = parts, floor
        self._kept: Recent[_Local] = Recent(MOST_KEPT)

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        return self.floor

    def log_moment(self, tilt: float) -> float:
        """Return K(tilt) in double precision."""
        return sum(number * part.log_moment(tilt) for part, number in self.parts)

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return K'(tilt) and K''(tilt) in double precision, by differences."""
        low, mid, high = (self.log_moment(tilt + k * STEP) for k in (-1, 0, 1))
        return (high - low) / (2 * STEP), max((high - 2 * mid + low) / STEP**2, 1e-12)

    def saddle(self, c: float) -> float:
        """Return a tilt <= -STEP with K'(tilt) about c."""
        low, high = -1.0, -2 * STEP
        while self.mean_variance(low)[0] > c and low > -1e6:
            low *= 2
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.mean_variance(middle)[0] > c else (middle, high)
        return high

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity of `BallTails` has about the given logarithm."""
        if name.startswith("h_"):
            log_target = min(log_target, -1e-3)
        depth = 12 - log_target
        mean, variance = self.mean_variance(-2 * STEP)
        sd = math.sqrt(variance)
        rising = name in ("p_below", "q_below", "h_pq")
        low, high = mean - sd, mean + sd
        for _ in range(60):  # a bracket, then halves
            if (self._log_of(name, low, depth) > log_target) == rising:
                low -= high - low
            elif (self._log_of(name, high, depth) > log_target) != rising:
                high += high - low
            else:
                break
        for _ in range(30):
            middle = (low + high) / 2
            above = self._log_of(name, middle, depth) > log_target
            low, high = (low, middle) if above == rising else (middle, high)
        return arb((low + high) / 2)

    def _log_of(self, name: str, c: float, depth: float) -> float:
        local = self.near(arb(c), 8.0, deep=depth)
        with precision(local.bits):
            value = getattr(local.at(arb(c)), name)
            return log_magnitude(value) if value > 0 else -math.inf

    def near(self, c: arb, depth: float, deep: float = 0.0) -> _Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth).

        With ``deep`` it suffices that upper quantities have an absolute error of exp(-deep).
        """
        place, deepest = float(c), max(depth, deep)
        return self._kept.get((place, deepest), lambda: _Local(self, place, deepest))

    def around(self, c: arb, depth: float) -> _Local:
        """Prepare evaluation over a range of thresholds; as `near`."""
        return self.near(c, depth)


class _Local:
    """One line, with all that is left out in its balls."""

    certified = True

    def __init__(self, law: LowerLineLaw, c: float, depth: float) -> None:
        """Plan in doubles, compute in balls."""
        self.law = law
        mean, variance = law.mean_variance(-2 * STEP)
        tilt = -math.sqrt(depth) / 2 / math.sqrt(variance)
        if c < mean:
            tilt = min(tilt, law.saddle(c))
        tilt = max(min(tilt, -0.05), -1e5)
        _, variance = law.mean_variance(tilt)
        sd = math.sqrt(variance)
        k_tilt = law.log_moment(tilt)
        size = k_tilt - tilt * c  # log of the terms' scale
        lower = min(size, 0.0) - math.log(1 + abs(tilt) * sd) - 2  # log of the smallest lower one
        need = depth - min(lower, 0.0) + max(size, 0.0)
        self.far, period = _period(law, tilt, c, sd, depth, lower)
        period = max(period, (depth - lower) / -tilt, 2 * abs(c - mean))
        self.tilt = arb(tilt)
        with precision(int(2 * need / LN2) + 200):
            top = _top(law, self.tilt, size, depth - lower, sd)
        nodes = top * period / (2 * math.pi) + 2
        if not nodes < MOST_NODES + 1:  # infinite where no tilt bounds the aliases
            raise AccuracyError(
                f"an inversion would take {nodes:.10g} nodes, at most {MOST_NODES} are feasible; "
                "more steps make the loss smoother, and fewer digits need fewer nodes"
            )
        count = int(nodes)
        lost = max(size, 0.0) + math.log(count)
        self.bits = int((depth - lower + lost) / LN2) + 90
        self.count, self.period, self.top = count, period, top
        with precision(self.bits):
            self._compute(depth - lower + lost + 5)

    def _compute(self, depth: float) -> None:
        law = self.law
        self.spacing = (2 * arb.pi() / arb(self.period)).mid()
        self.count = int(float(arb(self.top) / self.spacing)) + 2
        reach = Reach(self.tilt, self.spacing, self.count, depth)
        power = [acb(1)] * self.count
        moments: list[arb] = []
        for part, number in law.parts:
            values = part.values(reach)
            moments.append(values[0].real.upper())
            power = [x * y**number for x, y in zip(power, values, strict=True)]
        self.rest = self._rest(moments)
        # The Chernoff factor of the aliases from below, at the tilt found by the plan.
        at_far = Reach(self.far, self.spacing, 1, 20.0)
        self.far_moment = arb(1)
        for part, number in law.parts:
            self.far_moment *= part.values(at_far)[0].real ** number
        places = [acb(self.tilt, k * self.spacing) for k in range(self.count)]
        power = [power[0] / 2, *power[1:]]
        rows = [-x / s for x, s in zip(power, places, strict=True)]
        rows += [-x / (s - 1) for x, s in zip(power, places, strict=True)]
        rows += [x / (s * (s - 1)) for x, s in zip(power, places, strict=True)]
        self._rows = acb_mat(3, self.count, rows)

    def _rest(self, moments: list[arb]) -> arb:
        """Bound the sum of spacing |M / lambda| over the nodes that are left out.

        The bounds of the moduli decrease in t, hence the sum is at most its first term and the
        integral from there, taken of the part whose integral is known, with the others' largest.
        """
        t = float((self.count * self.spacing).lower())
        best: arb | None = None
        found = []
        for (part, number), moment in zip(self.law.parts, moments, strict=True):
            found.append((part.modulus(self.tilt, t, moment), number))
        for index in range(len(found)):
            total = (found[index][0].integral + self.spacing * found[index][0].largest).upper()
            for other, (modulus, number) in enumerate(found):
                total *= modulus.largest ** (number - (other == index))
            total = (total / arb(t)).upper()
            best = total if best is None or total < best else best
        assert best is not None
        return best

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold."""
        with precision(self.bits):
            count, tilt, spacing = self.count, self.tilt, self.spacing
            giant = math.isqrt(count - 1) + 1
            steps = [acb(0, -k * spacing * c).exp() for k in range(giant)]
            leaps = [acb(0, -k * giant * spacing * c).exp() for k in range(giant)]
            turns = [x * y for x in leaps for y in steps][:count]
            sums = self._rows * acb_mat(count, 1, turns)
            factor = (-tilt * c).exp()
            error = (self._aliases(c) + factor * self.rest / arb.pi()).upper()
            below_p, below_q, h_pq = (
                _positive(sums[k, 0].real * factor * spacing / arb.pi() + arb(0, error))
                for k in range(3)
            )
            grow = c.exp()
            below_q *= grow
            above_p, above_q = _positive(1 - below_p), _positive(1 - below_q)
            return BallTails(
                above_p, below_p, above_q, below_q, _positive(grow * (h_pq - 1) + 1), h_pq
            )

    def _aliases(self, c: arb) -> arb:
        period = 2 * arb.pi() / self.spacing
        right = (self.tilt * period).exp()
        left = ((self.far - self.tilt) * period).exp()
        chernoff = self.far_moment * (-self.far * c).exp()
        return (right / (1 - right) + chernoff * left / (1 - left)).upper()


def _positive(ball: arb) -> arb:
    """Cut a ball that holds a non-negative number at zero."""
    if ball.is_finite() and not ball > 0:
        high = abs(ball).upper()
        return arb(high / 2, high / 2 * (1 + arb(2) ** -40))
    return ball


def _period(
    law: LowerLineLaw, tilt: float, c: float, sd: float, depth: float, lower: float
) -> tuple[arb, float]:
    """Return the tilt that bounds the aliases from below, and the period that it asks for."""
    best, far = math.inf, tilt - 1
    for k in range(24):
        gap = 0.3 / sd * 100 ** (k / 23)
        chernoff = law.log_moment(tilt - gap) - (tilt - gap) * c
        needed = (chernoff - lower + depth) / gap
        if needed < best:
            best, far = needed, tilt - gap
    return arb(far), best


def _top(law: LowerLineLaw, tilt: arb, size: float, depth: float, sd: float) -> float:
    """Return a t from which on the moduli's bound is below exp(-depth)."""
    t = 3.0 / sd
    moments = [arb(part.log_moment(float(tilt))).exp() * 1.01 for part, _ in law.parts]
    start = law.log_moment(float(tilt))
    while True:
        total = size - start
        for (part, number), moment in zip(law.parts, moments, strict=True):
            total += number * log_magnitude(part.modulus(tilt, t, moment).largest)
        if total < -depth:
            return t
        t *= 1.08
        if t > 1e9:
            raise AccuracyError("the transform falls too slowly; more steps make the loss smoother")
