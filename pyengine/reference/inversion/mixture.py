"""One step of a mixture of Gaussians: the transform of its loss, in balls.

Without the records the law is N(0, 1), with them sum_j w_j N(c_j, 1), c_j >= 0 in units of the
noise, hence e^L = R(z) = sum_j w_j exp(c_j z - c_j^2/2), which increases with z.  Poisson sampling
of one record is w = (1 - p, p), c = (0, 1/noise); the sampling of k records of one user gives
binomial weights.

M(lambda) = E R(z)^lambda is a trapezoidal sum.  On the line Im z = y, with theta = y max(c) < pi,
all terms of R have arguments in [0, theta], hence R cos(theta/2) <= |R(z)| <= R and 0 <= arg R(z)
<= theta.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, precision, upper_normal
from pyengine.reference.cumulants import Array
from pyengine.reference.inversion.lower_line import Modulus, Reach
from pyengine.reference.inversion.two_lines import turned_sums

__all__ = ["MixtureStep"]

Number = float | Fraction
MOST_NODES = 60_000
CELLS = 600  # of the bound on the modulus
HEIGHTS = (0.3, 0.5, 0.7, 0.85)  # of pi/max(c): lines on which the modulus is bounded
LN2 = math.log(2)


class MixtureStep:
    """See `pyengine.reference.inversion.lower_line.Part`.

    Parameters
    ----------
    noise : float or Fraction
        Noise multiplier, > 0.
    weights, shifts : tuple of float or Fraction
        Positive weights that sum to 1, and the different shifts >= 0 in units of the sensitivity,
        at least one positive.
    """

    def __init__(
        self, noise: Number, weights: tuple[Number, ...], shifts: tuple[Number, ...]
    ) -> None:
        rows = sorted(zip(shifts, weights, strict=True))
        self.shifts = [Fraction(c) / Fraction(noise) for c, _ in rows]
        self.weights = [Fraction(w) for _, w in rows]
        self.largest = float(self.shifts[-1])

    @property
    def lightest(self) -> Fraction | None:
        """The weight at shift 0, whose log is the infimum of the loss; None if there is none."""
        return self.weights[0] if self.shifts[0] == 0 else None

    @cached_property
    def _coarse(self) -> tuple[Array, Array]:
        """Losses and log masses on a grid in doubles."""
        step = min(0.05, 0.3 / self.largest)
        z = np.arange(-45.0, 45.0 + self.largest, step)
        loss = np.full(z.shape, -np.inf)
        for c, w in zip(self.shifts, self.weights, strict=True):
            log_w = math.log(w.numerator) - math.log(w.denominator)
            loss = np.logaddexp(loss, log_w + float(c) * z - float(c) ** 2 / 2)
        return loss, -z * z / 2 + math.log(step / math.sqrt(2 * math.pi))

    def log_moment(self, tilt: float) -> float:
        """Return log M(tilt) in double precision."""
        loss, log_mass = self._coarse
        exponent = log_mass + tilt * loss
        top = float(exponent.max())
        return top + math.log(float(np.exp(exponent - top).sum()))

    def _ratio(self, z: acb) -> acb:
        total = acb(0)
        for c, w in zip(self.shifts, self.weights, strict=True):
            shift = exact(c)
            total += exact(w) * (shift * z - shift**2 / 2).exp()
        return total

    def values(self, reach: Reach) -> list[acb]:
        """Return balls that hold M at the nodes."""
        tilt, top = float(reach.tilt), reach.top
        depth = reach.depth + 10
        best, chosen = 0.0, 0.0
        for share in (0.2, 0.35, 0.5, 0.65, 0.8, 0.9):  # the strip |Im z| < share pi/max(c)
            y = share * math.pi / self.largest
            turn = share * math.pi
            cost = y * y / 2 + top * turn + tilt * math.log(math.cos(turn / 2))
            step = 2 * math.pi * y / (depth + cost + 1)
            if step > best:
                best, chosen = step, y
        bits = int((depth + top * 0.1) / LN2) + 100
        with precision(bits):
            low, high = self._window(tilt, depth)
            spacing, half = arb(best), arb(chosen)
            first, last = math.floor(low / best), math.ceil(high / best)
            if last - first > MOST_NODES:
                raise AccuracyError(
                    f"the transform of one step would take {last - first} nodes, at most "
                    f"{MOST_NODES} are feasible; more noise or fewer digits take less"
                )
            scale = spacing / (2 * arb.pi()).sqrt()
            losses, weights = [], []
            for k in range(first, last + 1):
                z = k * spacing
                losses.append(self._ratio(acb(z)).real.log())
                weights.append(scale * (-z * z / 2 + reach.tilt * losses[-1]).exp())
            sums = turned_sums(losses, weights, reach.spacing, reach.count)
            beyond = self._beyond(reach.tilt, first * spacing, last * spacing)
            # Trefethen and Weideman, Theorem 5.1, relative to M(tilt)
            theta = half * exact(self.shifts[-1])
            growth = 2 * (half**2 / 2).exp() * (theta / 2).cos() ** reach.tilt
            growth /= (2 * arb.pi() * half / spacing).exp() - 1
            if not growth < 1:
                raise AccuracyError("the sum over z is too coarse; ask for fewer digits")
            whole = ((sums[0].real + beyond) / (1 - growth)).upper()
            found = []
            for k, value in enumerate(sums):
                error = (beyond + growth * (k * reach.spacing * theta).exp() * whole).upper()
                found.append(
                    acb(arb(value.real, error), arb(value.imag, error) if k else arb(0, 0))
                )
        return found

    def _window(self, tilt: float, depth: float) -> tuple[float, float]:
        """Return where the terms phi R^tilt matter, in doubles."""
        loss, log_mass = self._coarse
        step = min(0.05, 0.3 / self.largest)
        z = -45.0 + step * np.arange(loss.size)
        goal = self.log_moment(tilt) - depth
        reach = math.sqrt(2 * depth) + self.largest * (1 - tilt) + 2
        low, high = -reach, reach
        exponent = log_mass + tilt * loss
        inside = z[exponent > goal - 3]
        if inside[0] > z[0] + 1:
            low = max(low, float(inside[0]) - 0.5)
        if inside[-1] < z[-1] - 1:
            high = min(high, float(inside[-1]) + 0.5)
        return low, high

    def _beyond(self, tilt: arb, low: arb, high: arb) -> arb:
        """Bound the integral of phi R^tilt over z <= low and z >= high, or a sum over nodes beyond.

        R >= w_0 exp(c_0 z - c_0^2/2) gives phi R^tilt <= w_0^tilt exp((tilt^2 - tilt) c_0^2/2)
        phi(z - tilt c_0) on the left; on the right R >= R(high).  Both
        bounds fall away from the middle, so a sum over nodes is at most the integral.
        """
        c, w = exact(self.shifts[0]), exact(self.weights[0])
        if not (low < tilt * c and high > 0):
            raise AccuracyError("the window of a sum is too narrow; ask for fewer digits")
        left = w**tilt * ((tilt**2 - tilt) * c**2 / 2).exp() * upper_normal(tilt * c - low)
        right = self._ratio(acb(high)).real ** tilt * upper_normal(high)
        return (left + right).upper()

    def modulus(self, tilt: arb, t: float, moment: arb) -> Modulus:
        """Return bounds on |M(tilt + i s)| for all s >= t.

        On the line Im z = y, |M(tilt + i s)| <= int phi(x) e^(y^2/2) |R|^tilt e^(-s arg R) dx,
        which falls as s grows, and e^(-t arg R)/arg R bounds the integral over s.
        """
        best: Modulus | None = None
        for share in HEIGHTS:
            found = self._line(tilt, arb(t), share * math.pi / self.largest)
            if best is None or found.largest < best.largest:
                best = found
        assert best is not None
        return Modulus(best.largest.min(moment.upper()), best.integral)

    def _line(self, tilt: arb, t: arb, y: float) -> Modulus:
        """Return the bounds of one line, cell by cell.

        All terms have non-negative imaginary parts, hence arg R >= Im R/|R| >= sin(c y) share(x)
        with the share of the last term in R(x), which increases with x.
        """
        low, high = self._window(float(tilt), 60.0 + float(t) * y * self.largest)
        width, height = arb((high - low) / CELLS), arb(y)
        first, last = exact(self.shifts[0]), exact(self.shifts[-1])
        lift = (last * height).sin()
        narrow = (last * height / 2).cos()
        largest, integral = arb(0), arb(0)
        edge, below = arb(low), upper_normal(-arb(low))
        for _ in range(CELLS):
            after = upper_normal(-(edge + width))
            middle = edge + width / 2
            radius = (width / 2 * (1 + arb(2) ** -40)).upper()
            ratio = self._ratio(acb(arb(middle.mid(), radius), height))
            real = self._ratio(acb(edge)).real
            size = arb(ratio.abs_lower()).max((real * narrow).lower())
            share = exact(self.weights[-1]) * (last * edge - last**2 / 2).exp() / real
            angle = arb(ratio.arg().lower()).max((lift * share).lower()).max(first * height)
            mass = (after - below).upper() * size**tilt * (-t * angle).exp()
            largest += mass
            integral += mass / angle
            edge, below = edge + width, after
        outer = self._beyond(tilt, arb(low), edge) * narrow**tilt
        largest += outer
        real = self._ratio(acb(edge)).real
        share = exact(self.weights[-1]) * (last * edge - last**2 / 2).exp() / real
        integral += outer / (lift * share)
        if first > 0:
            integral += outer / (first * height)
        else:
            # 1/arg R <= R(low)/(w sin(c y) exp(c x - c^2/2)), and phi(x) exp(-c x) is a normal
            # law's
            real = self._ratio(acb(arb(low))).real
            left = (exact(self.weights[0]) * narrow) ** tilt * real * (last**2).exp()
            left *= upper_normal(-(arb(low) + last)) / (exact(self.weights[-1]) * lift)
            integral += left
        scale = (height**2 / 2).exp()
        return Modulus((largest * scale).upper(), (integral * scale).upper())
