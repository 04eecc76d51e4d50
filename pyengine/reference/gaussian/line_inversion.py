"""Inversion on a vertical line in ball arithmetic, every error enclosed.

With M(lambda) = E_P exp(lambda Y) of one step and F(lambda) = prod M^n exp(-lambda c'), the tails
of S and both divergences are (1/2 pi i) times integrals of F over lambda, lambda - 1 or both
factors along Re lambda = tilt.  The errors (derived in docs/theory/ground_truth.md):

aliases
    The trapezoidal rule in t gives the answer plus positive terms (Poisson summation), bounded by
    Chernoff bounds at the tilts ``plan.beyond`` or by the residue at a pole.
nodes in z
    The trapezoidal rule in z for an integrand analytic in a strip; see `transform`.
what is left out in t
    |M| is bounded on a path z + i tau(z), decreasingly in t; see `transform`.
cut
    Where the normal law is cut off, its mass is added to the answer as an interval.
rounding
    Ball arithmetic.
"""

from __future__ import annotations

import math

from flint import acb, acb_mat, arb

from pyengine.reference.balls import precision, spread, upper_normal
from pyengine.reference.gaussian.plan_line import LinePlan
from pyengine.reference.gaussian.steps import EqualSteps, offset
from pyengine.reference.gaussian.transform import Transform
from pyengine.reference.tails import BallTails

__all__ = ["Line"]


class Line:
    """One transform of a composition, ready for any threshold.

    Parameters
    ----------
    phases : tuple of Phase
        The composition.
    plan : Plan
        The discretisation; sharp near the threshold that it was made for, valid everywhere.
    """

    certified = True

    def __init__(self, phases: tuple[EqualSteps, ...], plan: LinePlan) -> None:
        self.plan = plan
        self.bits = plan.bits
        self.steps = sum(phase.steps for phase in phases)
        with precision(plan.bits):
            self._prepare(phases)

    def _prepare(self, phases: tuple[EqualSteps, ...]) -> None:
        plan = self.plan
        self.offset = offset(phases)
        self.tilt, self.spacing = arb(plan.tilt), arb(plan.spacing)
        self.reach = plan.count * self.spacing
        places = [acb(self.tilt, k * self.spacing) for k in range(plan.count)]
        power = [acb(1)] * plan.count
        self.log_tail, self.log_scale = arb(0), arb(0)
        self.log_beyond = [arb(0), arb(0)]
        for phase, grid, contour in zip(phases, plan.grids, plan.contours, strict=True):
            one = Transform(phase, grid, contour, plan)
            values = one.values(places)
            power = [a * _power(b, phase.steps) for a, b in zip(power, values, strict=True)]
            self.log_tail += phase.steps * one.log_bound_beyond()
            self.log_scale += phase.steps * one.log_far_constant()
            for side, theta in enumerate(plan.beyond):
                if theta is not None:
                    self.log_beyond[side] += phase.steps * one.log_moment(arb(theta))
        power[0] /= 2
        rows = [a / s for a, s in zip(power, places, strict=True)]
        rows += [a / (s - 1) for a, s in zip(power, places, strict=True)]
        rows += [a / (s * (s - 1)) for a, s in zip(power, places, strict=True)]
        self._kernels = acb_mat(3, plan.count, rows)
        self.lost_p, self.lost_q = self._lost(phases)

    def _lost(self, phases: tuple[EqualSteps, ...]) -> tuple[arb, arb]:
        """Return bounds on the mass that is cut off from P and from Q."""
        lost_p, lost_q = arb(0), arb(0)
        for phase in phases:
            if not phase.full_batch:
                under_p = upper_normal(arb(self.plan.cut))
                shifted = upper_normal(arb(self.plan.cut) - phase.mu())
                p = phase.exact_probability()
                lost_p += phase.steps * under_p
                lost_q += phase.steps * ((1 - p) * under_p + p * shifted)
        return lost_p, lost_q

    def at(self, c: arb) -> BallTails:
        """Return enclosures of tails and divergences at a threshold.

        Parameters
        ----------
        c : arb
            The threshold of the total loss.
        """
        with precision(self.plan.bits):
            return self._at(c)

    def _at(self, c: arb) -> BallTails:
        tilt = self.tilt
        threshold = c - self.offset
        sums = self._kernels * acb_mat(self.plan.count, 1, self._turns(threshold))
        scale = (-tilt * threshold).exp() * self.spacing / arb.pi()
        tail = self._tail(threshold)
        over_zero = sums[0, 0].real * scale + tail
        over_one = sums[1, 0].real * scale + tail
        over_both = sums[2, 0].real * scale + tail / self.reach
        zero, one, both = self._aliases(threshold, c)
        grow = c.exp()
        over_zero += zero
        over_one = (over_one + one) * grow
        over_both += both
        p, q = 1 - spread(self.lost_p), 1 - spread(self.lost_q)
        if self.plan.tilt < 0:
            p_above, p_below = p + over_zero, -over_zero
        else:
            p_above, p_below = over_zero, p - over_zero
        if self.plan.tilt < 1:
            q_above, q_below = q + over_one, -over_one
        else:
            q_above, q_below = over_one, q - over_one
        # dQ = exp(S) dP, also for laws that are cut off, whose total masses are p and q.
        if self.plan.tilt > 1:
            h_qp, h_pq = grow * over_both, over_both - q / grow + p
        elif self.plan.tilt > 0:
            h_qp, h_pq = grow * over_both + q, over_both + p
        else:
            h_qp, h_pq = grow * (over_both - p) + q, over_both
        lost_p, lost_q = spread(self.lost_p), spread(self.lost_q)
        return BallTails(
            p_above + lost_p,
            p_below + lost_p,
            q_above + lost_q,
            q_below + lost_q,
            h_qp + lost_q,
            h_pq + lost_p,
        )

    def _turns(self, threshold: arb) -> list[acb]:
        """Return exp(-i t c') at the nodes, each of two factors, so that radii do not pile up."""
        count = self.plan.count
        giant = math.isqrt(count - 1) + 1
        steps = [acb(0, -k * self.spacing * threshold).exp() for k in range(giant)]
        leaps = [acb(0, -k * giant * self.spacing * threshold).exp() for k in range(giant)]
        return [a * b for a in leaps for b in steps][:count]

    def _tail(self, threshold: arb) -> arb:
        """Bound the nodes left out, and their conjugates, for a kernel of size 1/t.

        Up to t = far the bound at the last node serves; from there on the power of 1/t.
        """
        log_front = -self.tilt * threshold - arb.pi().log()
        far = ((self.log_scale - self.log_tail + 40) / self.steps).exp()
        if not far > self.reach:
            far = self.reach
        near = self.log_tail.exp() * ((far / self.reach).log() + 1 / arb(self.plan.count))
        rest = (self.log_scale - self.steps * far.log()).exp() / self.steps
        return spread(log_front.exp() * (near + rest))

    def _aliases(self, threshold: arb, c: arb) -> tuple[arb, arb, arb]:
        """Bound the aliases of the three integrals."""
        period = 2 * arb.pi() / self.spacing
        tilt = self.tilt
        chernoff = []
        for theta, log_moment in zip(self.plan.beyond, self.log_beyond, strict=True):
            if theta is None:
                chernoff.append(arb("inf"))
            else:
                gap = abs(arb(theta) - tilt)
                size = (log_moment - arb(theta) * threshold).exp()
                chernoff.append(size * _geometric(gap * period))
        below, above = chernoff
        # By the residue at 0 or at 1: |tail| <= 1 beyond the threshold, on the side of the pole.
        at_zero = _geometric(abs(tilt) * period)
        at_one = (-c).exp() * _geometric(abs(tilt - 1) * period)
        if self.plan.tilt < 0:
            p, q = below + at_zero, below + at_one
            both = below + at_zero
        elif self.plan.tilt < 1:
            p, q = at_zero + above, below + at_one
            both = at_zero + at_one
        else:
            p, q = at_zero + above, at_one + above
            both = at_one + above
        return spread(p), spread(q), spread(both)


def _geometric(rate: arb) -> arb:
    """Return the sum of exp(-j rate) over j >= 1."""
    return 1 / rate.expm1() if rate > 0 else arb("inf")


def _power(base: acb, exponent: int) -> acb:
    result = base**exponent
    if result.is_finite():
        return result
    return acb(spread(abs(base) ** exponent), spread(abs(base) ** exponent))
