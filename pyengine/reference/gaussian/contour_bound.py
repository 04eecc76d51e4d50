"""Integrals of the modulus of a step's integrand on paths beside the real axis, from above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from flint import acb, arb

from pyengine.reference.balls import upper_normal

__all__ = ["NormalStep", "Path"]

Ball = TypeVar("Ball", arb, acb)
FURTHER = 200


@dataclass(frozen=True)
class NormalStep:
    """phi(z) and w(z) = odds exp(mu z - mu^2/2) of one step, on z < end."""

    mu: arb
    odds: arb
    end: arb

    def w(self, z: Ball) -> Ball:
        """Return exp(Y) - 1."""
        return (self.mu * z - self.mu**2 / 2).exp() * self.odds

    def left(self, z: arb, power: arb, share: arb) -> arb:
        """Bound the integral of phi |1 + share w|^power over x < z < 0, 0 < share <= 1.

        log(1 + share w) is convex: for a negative power it is at least its tangent at z.
        """
        w = share * self.w(z)
        size: arb = (power * w.log1p()).exp()
        plain = upper_normal(-z)
        if power >= 0:
            return size * plain
        rate = -z + power * self.mu * w / (1 + w)
        return plain.min(size * _density(z) / rate) if rate > 0 else plain

    def edge(self, power: arb) -> arb:
        """Return phi (1 + w)^power at the end, for power >= 0."""
        return _density(self.end) * (power * self.w(self.end).log1p()).exp()

    def end_of_path(self, power: arb, height: arb, t: arb) -> arb:
        """Bound the integral of |f| from the end up to a height, less exp(height^2/2).

        1 + w exp(i mu y) has turned by at least (2/pi) mu y w / (1 + w), and its modulus falls.
        """
        w = self.w(self.end)
        share = w / (1 + w)
        size: arb = _density(self.end) * height.min(arb.pi() / (2 * self.mu * t * share))
        modulus = 1 + w if power >= 0 else abs(1 + w * acb(0, self.mu * height).exp())
        return size * (power * modulus.log()).exp()


def _density(z: arb) -> arb:
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


@dataclass(frozen=True)
class Path:
    """z + i tau(z) with tau = 1 / (1/(gain reach Y') + 1/height), or z - i height (gain None).

    Parameters
    ----------
    step : StepLaw
        The step.
    tilt, reach : arb
        Real part of the line, and the least t on the first kind of path, the greatest on the
        second.
    log_size : arb
        A scale for the result.
    height, gain : arb, arb or None
        Shape; mu * height <= pi/2.
    """

    step: NormalStep
    tilt: arb
    reach: arb
    log_size: arb
    height: arb
    gain: arb | None

    def bound(self, low: arb, goal: arb) -> arb:
        """Bound the integral of |f| along the path, relative to exp(log_size).

        Parameters
        ----------
        low : arb
            Left end of the part that is integrated; it is moved out until the rest is small.
        goal : arb
            What the bound may exceed the integral by.
        """
        left = self._left(low)
        for _ in range(FURTHER):
            if left < goal:
                break
            low -= 1
            left = self._left(low)
        inside: arb = acb.integral(
            self._modulus,
            acb(low.mid()),
            acb(self.step.end.mid()),
            rel_tol=goal,
            abs_tol=goal,
        ).real
        return inside / (2 * arb.pi()).sqrt() + left + self._end()

    def _modulus(self, z: acb, analytic: bool) -> acb:
        """Return |f| as a function that is analytic in z."""
        step = self.step
        w = step.w(z)
        sign = -1 if self.gain is None else 1
        tau, slope = self._tau(w)
        turn = acb(0, 1) * step.mu * tau
        one = (1 + w * turn.exp()).log(analytic=analytic)
        two = (1 + w * (-turn).exp()).log(analytic=analytic)
        angle = (one - two) * acb(0, -0.5)
        exponent = tau**2 / 2 + self.tilt * (one + two) / 2
        exponent += -z * z / 2 - sign * self.reach * angle
        value: acb = (exponent - self.log_size).exp() * (1 + slope**2 / 2)
        return value

    def _tau(self, w: Any) -> tuple[Any, Any]:
        """Return tau and its derivative; |1 + i tau'| <= 1 + tau'^2/2."""
        if self.gain is None:
            return self.height, arb(0)
        beta = self.gain * self.reach * self.step.mu
        lift = self.height + (self.height + beta) * w
        tau = self.height * beta * w / lift
        return tau, self.step.mu * self.height**2 * beta * w / lift**2

    def _left(self, z: arb) -> arb:
        """Bound the integral left of z; there 1 + w cos(mu tau) <= |1 + w e^{i mu tau}| <= 1 + w.

        Height and angle are largest at z; the angle is at most w sin(mu tau) and mu tau.
        """
        w = self.step.w(z)
        tau, _ = self._tau(w)
        turn = self.step.mu * tau
        share = turn.cos() if self.tilt < 0 else arb(1)
        size = self.step.left(z, self.tilt, share) * self._stretch() * (tau**2 / 2).exp()
        if self.gain is None:
            size *= (self.reach * turn.min(w * turn.sin())).exp()
        result: arb = size * (-self.log_size).exp()
        return result

    def _end(self) -> arb:
        """Bound the way back to the real axis where the law is cut off."""
        if self.gain is None:
            return arb(0)
        tau, _ = self._tau(self.step.w(self.step.end))
        size: arb = self.step.end_of_path(self.tilt, tau, self.reach)
        size *= (tau**2 / 2 - self.log_size).exp()
        return size

    def _stretch(self) -> arb:
        """Bound |1 + i tau'| by |tau'| <= mu gain reach mu."""
        if self.gain is None:
            return arb(1)
        return 1 + (self.gain * self.reach * self.step.mu**2) ** 2 / 2
