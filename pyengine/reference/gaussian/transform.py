"""The transform of one step on a vertical line, with proven errors.

f(z) = phi(z) (1 + w)^lambda, w = odds exp(mu z - mu^2/2).  On z + i tau with 0 <= mu tau <= pi/2,
1 + w turns by the angle a = arg(1 + w exp(i mu tau)) in [0, mu tau], so

    |f(z + i tau)| = phi exp(tau^2/2) |1 + w exp(i mu tau)|^tilt exp(-t a),

and on z - i tau the same with exp(+t a).  The first is decreasing in t, the second increasing.

For large tilts f has a second mode far out, where nothing happens in truth.  So the law of z is cut
off, half a spacing beyond the last node, and the bounds have a term for the vertical end of the
strip.
"""

from __future__ import annotations

import math

from flint import acb, acb_mat, arb

from pyengine.reference.balls import precision, spread, upper_normal
from pyengine.reference.gaussian.contour_bound import NormalStep, Path
from pyengine.reference.gaussian.plan_line import Contour, LineNodes, LinePlan
from pyengine.reference.gaussian.steps import EqualSteps

__all__ = ["Transform"]

INTEGRAL_BITS = 100
PIECES = 200


class Transform:
    """E exp(lambda Y) of one step.

    Parameters
    ----------
    phase : Phase
        The step.
    grid : Grid or None
        Nodes in z; None without sampling.
    contour : Contour or None
        Path for the bound beyond the last t.
    plan : Plan
        The line.
    """

    def __init__(
        self, phase: EqualSteps, grid: LineNodes | None, contour: Contour | None, plan: LinePlan
    ) -> None:
        self.mu = phase.mu()
        self.tilt = arb(plan.tilt)
        self.reach = plan.count * arb(plan.spacing)
        self.step = arb(plan.spacing)
        self.full = phase.full_batch
        self.repeats = phase.steps
        if grid is None or contour is None:
            return
        self.grid, self.contour = grid, contour
        self.first = arb(grid.start)
        self.last = self.first + (grid.nodes - 1) * arb(grid.spacing)
        end = (self.last + arb(grid.spacing) / 2).mid()
        self.step_law = NormalStep(self.mu, phase.odds(), end)
        self.nodes = [self.first + k * arb(grid.spacing) for k in range(grid.nodes)]
        self.losses = [self.step_law.w(z).log1p() for z in self.nodes]
        factor = arb(grid.spacing) / (2 * arb.pi()).sqrt()
        self.weights = [(-z * z / 2).exp() * factor for z in self.nodes]
        self.log_size = self.log_moment(self.tilt)

    def log_moment(self, theta: arb) -> arb:
        """Return log M at a real place, as a ball that holds it and all that is above."""
        if self.full:
            return self.mu**2 * theta * (theta - 1) / 2
        total = arb(0)
        for loss, weight in zip(self.losses, self.weights, strict=True):
            total += weight * (theta * loss).exp()
        relative, absolute = self._up(theta)
        share = 2 * relative
        if not share < 0.5:
            return arb("inf")
        above = self._truncated(theta) + 2 * (self._vertical(theta, arb(0)) + absolute)
        return ((total + above) / (1 - share)).log()

    def values(self, places: list[acb]) -> list[acb]:
        """Return enclosures of M at the nodes of the line, which start on the real axis."""
        if self.full:
            return [(self.mu**2 * s * (s - 1) / 2).exp() for s in places]
        error = spread(self._error())
        wide = acb(error, error)
        return [value + wide for value in self._sums(len(places))]

    def _sums(self, count: int) -> list[acb]:
        """Return the trapezoidal sums as entries of one product of two matrices."""
        giant = math.isqrt(count - 1) + 1
        tilted = [
            w * (self.tilt * loss).exp() for loss, w in zip(self.losses, self.weights, strict=True)
        ]
        small: list[acb] = []
        for loss in self.losses:
            small.extend(acb(0, k * self.step * loss).exp() for k in range(giant))
        columns = []
        for loss, weight in zip(self.losses, tilted, strict=True):
            leap = giant * self.step * loss
            columns.append([weight * acb(0, k * leap).exp() for k in range(giant)])
        large = [column[a] for a in range(giant) for column in columns]
        nodes = len(self.losses)
        product = acb_mat(giant, nodes, large) * acb_mat(nodes, giant, small)
        return list(product.entries())[:count]

    def _error(self) -> arb:
        """Bound the error of the trapezoidal rule and what lies left of its nodes."""
        rate = 2 * arb.pi() / arb(self.grid.spacing)
        down = arb(self.grid.down)
        grown = self._bound(self.grid.down, None, -4.0) / (rate * down).expm1()
        scale = self.log_size.exp()
        relative, absolute = self._up(self.tilt)
        beside = scale * (grown + relative) + absolute
        vertical = self._vertical(self.tilt, self.reach) + self._vertical(self.tilt, arb(0))
        return beside + vertical + self._truncated(self.tilt)

    def _vertical(self, theta: arb, t: arb) -> arb:
        """Bound what the end of the strip, of any width in use, adds below or above it.

        There the kernel of the rule is at most exp(-2 pi y / spacing); with y, the angle of
        1 + w e^{i mu y} grows and its modulus falls.
        """
        law = self.step_law
        w, rate = law.w(law.end), 2 * arb.pi() / arb(self.grid.spacing)
        piece = arb(max(self.grid.down, self._strip(float(theta)))) / PIECES
        total = arb(0)
        for k in range(PIECES):
            top = (k + 1) * piece
            turned = 1 + w * acb(0, self.mu * top).exp()
            exponent = top**2 / 2 + t * turned.arg() - rate * k * piece
            if theta < 0:
                exponent += theta * abs(turned).log()
            total += exponent.exp()
        return law.edge(theta.max(arb(0))) * piece * total

    def _up(self, theta: arb) -> tuple[arb, arb]:
        """Bound what the upper side of the strip adds to the error: relative to M, and absolute.

        |1 + w e^{ia}| lies between 1 + w cos(a) and 1 + w, and is at least (1 + w) cos(a/2).
        """
        up = arb(self._strip(float(theta)))
        unit = (up**2 / 2).exp() / (2 * arb.pi() / arb(self.grid.spacing) * up).expm1()
        if theta >= 0:
            return unit, arb(0)
        turn = self.mu * up
        half = (turn / 2).cos()
        w = self.step_law.w(self.last)
        inside = (half**theta).min(((1 + w) / (1 + w * turn.cos())) ** (-theta))
        outside = (((1 + w) * half) ** theta).min(arb(1)) * upper_normal(self.last)
        return unit * inside, unit * outside

    def _strip(self, theta: float) -> float:
        """Return the width of a strip, below pi/2 / mu, whose bound is nearly the best."""
        mu, w = float(self.mu), float(self.step_law.w(self.last))
        rate, top = 2 * math.pi / self.grid.spacing, min(1.57 / mu, 1e3)

        def log_bound(up: float) -> float:
            one = math.log(math.cos(mu * up / 2))
            two = math.log1p(w * math.cos(mu * up)) - math.log1p(w)
            return up * up / 2 + min(theta, 0.0) * max(one, two) - rate * up

        return min((top * 0.85**k for k in range(50)), key=log_bound)

    def _truncated(self, theta: arb) -> arb:
        """Bound the sum, or the integral, over z left of the nodes at a real place."""
        if not self.first < 0:
            return arb("inf")
        return self.step_law.left(self.first, theta, arb(1))

    def _bound(self, height: float, gain: float | None, log_goal: float) -> arb:
        """Bound the integral of |f| at the last t, relative to M, on a path of `paths`."""
        with precision(INTEGRAL_BITS):
            path = Path(
                step=self.step_law,
                tilt=self.tilt,
                reach=self.reach,
                log_size=self.log_size,
                height=arb(height),
                gain=None if gain is None else arb(gain),
            )
            return path.bound(self.first, arb(log_goal).exp())

    def log_bound_beyond(self) -> arb:
        """Return a bound on log |M(tilt + i t)| for all t from the last node on."""
        if self.full:
            return self.mu**2 * (self.tilt * (self.tilt - 1) - self.reach**2) / 2
        path = self.contour
        goal = path.log_ratio - math.log(1e3 * self.repeats)
        return self._bound(path.height, path.gain, goal).log() + self.log_size

    def log_far_constant(self) -> arb:
        """Return log C with |M(tilt + i t)| <= C / t for all t from the last node on.

        On the path at height tau = 1, or pi/2 / mu if that is lower, the angle is at least
        sin(mu tau)/2 min(w, 1), and exp(-x) <= 1/(e x).
        """
        mu, tilt = self.mu, self.tilt
        if self.full:
            # t exp(-mu^2 t^2/2) is at most 1 / (mu sqrt(e)).
            return mu**2 * tilt * (tilt - 1) / 2 - mu.log() - arb(0.5)
        height = arb(min(1.0, 1.5 / float(mu)))
        power = tilt if tilt > 0 else arb(0)
        law = self.step_law
        moments = (1 + self._power_moment(-arb(1))) * (power * law.w(law.end).log1p()).exp()
        size = moments * 2 / ((mu * height).sin() * arb(1).exp())
        size += law.end_of_path(tilt, height, arb(1))
        return (size * (height**2 / 2).exp()).log()

    def _power_moment(self, power: arb) -> arb:
        """Return E w^power."""
        return (power * self.step_law.odds.log() + self.mu**2 * power * (power - 1) / 2).exp()
