"""Integrals of the modulus of a step's integrand on paths beside the real axis, from above."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flint import acb, arb

from pyengine.reference.balls import exact, upper_normal
from pyengine.reference.cumulants import TAPER

__all__ = ["Path", "StepLaw"]

TAILS = 2.0**-64  # what the tails may add to a bound, relative to M
FURTHER = 200


@dataclass(frozen=True)
class StepLaw:
    """phi(z) W(z) and w(z) = odds exp(mu z - mu^2/2) of one step."""

    mu: arb
    odds: arb
    cut: arb | None
    stiffness: arb = field(init=False)

    def __post_init__(self) -> None:
        stiffness = arb(1) if self.cut is None else 1 + 1 / exact(TAPER) ** 2
        object.__setattr__(self, "stiffness", stiffness)

    def w(self, z: Any) -> Any:
        """Return exp(Y) - 1."""
        return (self.mu * z - self.mu**2 / 2).exp() * self.odds

    def taper(self, z: Any) -> Any:
        """Return W."""
        if self.cut is None:
            return arb(1)
        return ((z - self.cut) / (exact(TAPER) * arb(2).sqrt())).erfc() / 2

    def beyond(self, z: arb, power: arb) -> arb:
        """Bound the integral of phi W exp(power mu (x - z)) over x > z, power >= 0."""
        height = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
        rate = z - power * self.mu
        if self.cut is not None and z > self.cut:
            away = (z - self.cut) / exact(TAPER)
            height *= (-(away**2) / 2).exp() / 2
            rate += away / exact(TAPER)
        return height / rate if rate > 0 else arb("inf")


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

    step: StepLaw
    tilt: arb
    reach: arb
    log_size: arb
    height: arb
    gain: arb | None

    def bound(self, low: arb, top: arb) -> arb:
        """Bound the integral of |f| along the path, relative to exp(log_size).

        Parameters
        ----------
        low, top : arb
            Ends of the part that is integrated; they are moved out until the rest is small.
        """
        left, right = self._left(low), self._right(top)
        for _ in range(FURTHER):
            if left < TAILS:
                break
            low -= 1
            left = self._left(low)
        for _ in range(FURTHER):
            if right < TAILS:
                break
            top += 1
            right = self._right(top)
        inside: arb = acb.integral(
            self._modulus,
            acb(low.mid()),
            acb(top.mid()),
            rel_tol=arb(2) ** (-70 if self.gain is not None else -6),
            abs_tol=arb(0),
        ).real
        return inside / (2 * arb.pi()).sqrt() + left + right

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
        exponent = step.stiffness * tau**2 / 2 + self.tilt * (one + two) / 2
        exponent += -z * z / 2 - sign * self.reach * angle
        value: acb = (exponent - self.log_size).exp() * (1 + slope**2 / 2) * step.taper(z)
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
        """Bound the integral left of z; there 1 <= |1 + w e^{i mu tau}| <= 1 + w."""
        w = self.step.w(z)
        tau, _ = self._tau(w)
        size: arb = upper_normal(-z) * self._stretch()
        size *= (self.step.stiffness * tau**2 / 2).exp()
        if self.tilt > 0:
            size *= (self.tilt * w.log1p()).exp()
        if self.gain is None:
            size *= (self.reach * w * (self.step.mu * tau).sin()).exp()
        return size * (-self.log_size).exp()

    def _right(self, z: arb) -> arb:
        """Bound the integral right of z.

        There (1 + w) cos(mu height/2) <= |1 + w e^{i mu tau}| <= 1 + w, and the angle grows along
        the first kind of path.
        """
        step = self.step
        w = step.w(z)
        size: arb = (self.tilt * w.log1p() + step.stiffness * self.height**2 / 2).exp()
        if self.tilt < 0:
            size *= step.beyond(z, arb(0)) / (step.mu * self.height / 2).cos() ** (-self.tilt)
        else:
            size *= step.beyond(z, self.tilt)
        if self.gain is None:
            size *= (self.reach * step.mu * self.height).exp()
        else:
            angle = (1 + w * acb(0, step.mu * self._tau(w)[0]).exp()).arg()
            size *= (-self.reach * angle).exp()
        return size * self._stretch() * (-self.log_size).exp()

    def _stretch(self) -> arb:
        """Bound |1 + i tau'| by |tau'| <= mu gain reach mu."""
        if self.gain is None:
            return arb(1)
        return 1 + (self.gain * self.reach * self.step.mu**2) ** 2 / 2
