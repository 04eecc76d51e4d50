"""Inversion on two vertical lines that share no parameter: an estimate.

The second line answers, ten times the difference of both is the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from flint import acb, acb_mat, arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.balls import precision, spread
from pyengine.reference.cumulants import Cumulants, away_from_poles
from pyengine.reference.recent import Recent
from pyengine.reference.solve import Local
from pyengine.reference.tails import BallTails

__all__ = ["LineTransform", "Measured", "RotatedPlan", "TwoLines", "turned_sums"]

MOST_PRODUCTS = 6e7
MOST_TURNS = 2e4
MOST_KEPT = 2


class Measured(Cumulants):
    """Cumulants in double precision that know the transform away from the real axis, too."""

    steepest: float

    def log_size(self, tilt: float, t: float) -> float:
        """Return log |E exp((tilt + i t) S)|."""
        raise NotImplementedError


@dataclass(frozen=True)
class RotatedPlan:
    """One discretisation of a line.

    Parameters
    ----------
    tilt, spacing, count
        The line Re lambda = tilt, and its nodes.
    depth : float
        The relative error is to be exp(-depth).
    reach : float
        The last t.
    bits, variant : int
        Working precision; 0 or 1, by which all other choices differ.
    """

    tilt: float
    spacing: float
    count: int
    depth: float
    reach: float
    bits: int
    variant: int

    def check(self, nodes: float) -> None:
        """Raise AccuracyError if a transform of so many nodes takes too long."""
        if self.count * max(nodes, 1.0) > MOST_PRODUCTS:
            raise AccuracyError(
                f"an inversion would take {self.count} x {nodes:.0f} values; more steps, or more "
                "noise, make the loss smoother"
            )


class LineTransform(Protocol):
    """What is inverted."""

    def cumulants(self) -> Measured:
        """Return cumulants that plan."""

    def values(self, plan: RotatedPlan) -> list[acb]:
        """Return E exp(lambda S) at the nodes of a line."""

    def lost(self, plan: RotatedPlan) -> tuple[arb, arb]:
        """Return bounds on the mass under P and under Q that the values leave out."""


class TwoLines:
    """The total loss of a composition; see `pyengine.reference.solve.Law`.

    Parameters
    ----------
    transform : Transform
        Of the total loss.
    ends : tuple of arb, optional
        The smallest and the largest loss, where there are such.
    """

    def __init__(self, transform: LineTransform, ends: tuple[arb, arb] | None = None) -> None:
        self.transform, self.ends = transform, ends
        self._kept: Recent[_BothLines] = Recent(MOST_KEPT)

    @cached_property
    def cumulants(self) -> Measured:
        """Double-precision cumulants that plan."""
        return self.transform.cumulants()

    def lowest(self) -> arb | None:
        """Return the infimum of the loss; None if there is none."""
        return None if self.ends is None else self.ends[0]

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity has about the given logarithm."""
        if name.startswith("h_"):
            name, log_target = ("q_above" if name == "h_qp" else "p_below"), min(log_target, -1e-3)
        return arb(self.cumulants.threshold(name, log_target))

    def near(self, c: arb, depth: float) -> Local:
        """Prepare evaluation near a threshold to a relative error of exp(-depth)."""
        if self.ends is not None and c > self.ends[1]:
            return _Beyond(self.ends[1], int(depth / math.log(2)) + 64)
        place = float(c)
        return self._kept.get((place, depth), lambda: self._made(place, depth))

    def _made(self, place: float, depth: float) -> _BothLines:
        lines = []
        for plan in _plans(self.cumulants, place, depth):
            with precision(plan.bits):
                lost = self.transform.lost(plan)
                lines.append(_Line(plan, self.transform.values(plan), lost))
        return _BothLines(lines)

    def around(self, c: arb, depth: float) -> Local:
        """Prepare evaluation over a wide range of thresholds; as `near`."""
        return self.near(c, depth)


def _plans(cumulants: Measured, c: float, depth: float) -> list[RotatedPlan]:
    """Return two discretisations that share no parameter."""
    saddle = cumulants.saddle(c)
    sd = math.sqrt(cumulants.mean_variance(saddle)[1])
    if not sd > 1e-9 * abs(c):
        raise AccuracyError(f"no ground truth at a loss of {c:g}, at the end of all losses")
    plans = []
    for variant, (factor, finer) in enumerate(((1.0, 1.0), (1.15, 1.11))):
        tilt = away_from_poles(saddle, min(0.4, 2.0 / sd) * factor)
        tilt += 0.03 * variant / sd * math.copysign(1.0, tilt - 0.5)
        tail = cumulants.value(tilt) - tilt * c
        missing = depth + 8 + max(0.0, -tail, -tail - c)
        period = missing / min(abs(tilt), abs(tilt - 1))
        period = finer * max(period, _chernoff(cumulants, tilt, c, depth + 8, sd))
        reach = finer * _reach(cumulants, tilt, depth + 8, sd)
        count = int(reach * period / (2 * math.pi)) + 2
        bits = int((depth + math.log(count) + 8) / math.log(2)) + 70 + 16 * variant
        plans.append(RotatedPlan(tilt, 2 * math.pi / period, count, depth, reach, bits, variant))
    return plans


def _chernoff(cumulants: Measured, tilt: float, c: float, depth: float, sd: float) -> float:
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


def _reach(cumulants: Measured, tilt: float, depth: float, sd: float) -> float:
    """Return a t beyond which the transform is small, from where it falls the last time."""
    size, t, last = cumulants.value(tilt), 1.0 / sd, 1.0 / sd
    quiet = 0
    while quiet < 8:
        t *= 1.15
        small = cumulants.log_size(tilt, t) - size < -depth
        quiet = quiet + 1 if small else 0
        last = last if small else t
        if t * cumulants.steepest > MOST_TURNS:
            raise AccuracyError(
                "the transform falls too slowly; more steps make the loss smoother, and fewer "
                "digits need less of it"
            )
    return 1.15 * last


class _Line:
    """Tails and divergences by one trapezoidal rule."""

    def __init__(self, plan: RotatedPlan, power: list[acb], lost: tuple[arb, arb]) -> None:
        self.plan, self.lost = plan, [spread(mass) for mass in lost]
        self.tilt, self.spacing = arb(plan.tilt), arb(plan.spacing)
        places = [acb(self.tilt, k * self.spacing) for k in range(plan.count)]
        power = [power[0] / 2, *power[1:]]
        kernels = [x / s for x, s in zip(power, places, strict=True)]
        kernels += [x / (s - 1) for x, s in zip(power, places, strict=True)]
        kernels += [x / (s * (s - 1)) for x, s in zip(power, places, strict=True)]
        self._kernels = acb_mat(3, plan.count, kernels)

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
        lost_p, lost_q = self.lost
        found = [p_above, p_below, q_above, q_below, h_qp, h_pq]
        lost = [lost_p, lost_p, lost_q, lost_q, lost_q, lost_p]
        return [x + y for x, y in zip(found, lost, strict=True)]


class _Beyond:
    """Where no loss is larger than the threshold."""

    certified = True

    def __init__(self, top: arb, bits: int) -> None:
        self.top, self.bits = top, bits

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold; NaN where there are larger losses."""
        if not c > self.top:
            return BallTails(*[arb("nan")] * 6)
        return BallTails(arb(0), arb(1), arb(0), arb(1), arb(0), -(-c).expm1())


class _BothLines:
    """Two lines: the second one answers, ten times their difference is the error."""

    certified = False

    def __init__(self, lines: list[_Line]) -> None:
        self.lines = lines
        self.bits = lines[-1].plan.bits

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold."""
        with precision(self.bits):
            one, two = (line.at(c) for line in self.lines)
            return BallTails(*(y + spread(10 * (x - y)) for x, y in zip(one, two, strict=True)))


def turned_sums(losses: list[arb], weights: list[arb], spacing: arb, count: int) -> list[acb]:
    """Return the sums of weight exp(i t loss) at t = 0, spacing, ..., by a product of matrices."""
    giant = math.isqrt(count - 1) + 1
    small: list[acb] = []
    columns = []
    for loss, weight in zip(losses, weights, strict=True):
        small.extend(acb(0, j * spacing * loss).exp() for j in range(giant))
        leap = giant * spacing * loss
        columns.append([weight * acb(0, j * leap).exp() for j in range(giant)])
    large = [column[j] for j in range(giant) for column in columns]
    nodes = len(losses)
    product = acb_mat(giant, nodes, large) * acb_mat(nodes, giant, small)
    return list(product.entries())[:count]
