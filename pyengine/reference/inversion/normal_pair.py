"""The transform of a step whose laws are mixtures of shifted normal laws, with proven errors.

P = sum_i v_i N(-d_i, 1) and Q = sum_j w_j N(c_j, 1), all shifts >= 0, or P = N(0, 1).  With phi the
standard normal density the densities are phi A and phi B, A = sum_i v_i exp(-d_i z - d_i^2/2) and
B = sum_j w_j exp(c_j z - c_j^2/2), and the loss log(B/A) increases with z.  A Poisson-sampled
Gaussian step has v = 1, d = 0, w = (1 - p, p) and c = (0, 1/noise); under substitution P is the
mirror image of Q.  The transform is the integral over z of phi A^(1 - lambda) B^lambda.

On Im z = y with y max(c, d) <= pi/2 all terms of B have arguments in [0, c y], hence beta = arg B
is in [0, c y] and grows with y, |B| falls with y, and beta >= (2/pi) y B'/B at the real point
below, as sin x >= 2x/pi; so for 1/A with alpha = -arg A.  The modulus of the integrand there is

    phi exp(y^2/2) |A|^(1 - tilt) |B|^tilt exp(-t (alpha + beta)),

and on Im z = -y it is the same with exp(+t (alpha + beta)).

For large tilts the integrand has further modes far out, which are irrelevant to the answer.  So the
law of z is truncated half a spacing beyond the first and the last node, and the bounds have terms
for the vertical ends of the strip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.reference.balls import exact, precision, spread, upper_normal
from pyengine.reference.cumulants import Array, NormalGrid, normal_places
from pyengine.reference.inversion.line import LineNodes, Modulus, NotFeasibleError, turned_sums

__all__ = ["Mixture", "NormalPair"]

INTEGRAL_BITS = 100  # working precision of bounds
PIECES = 100  # of a vertical end
COARSE = 0.2, 0.4  # largest spacing in z of the planning grid; the second over the largest shift
Number = float | Fraction


class Mixture:
    """B / ``least``, B = sum_j w_j exp(c_j z - c_j^2/2).

    ``least`` is the weight of the shift 0, or 1 if no shift is 0 (``one`` tells which), so that the
    quotient is 1 + a sum over positive shifts, or that sum.  Weights are positive and sum to 1;
    shifts are different, >= 0, and at least one is positive.
    """

    def __init__(self, weights: tuple[Number, ...], shifts: tuple[Number, ...]) -> None:
        rows = sorted((Fraction(c), Fraction(w)) for c, w in zip(shifts, weights, strict=True))
        self.whole = rows
        self.one = rows[0][0] == 0
        self.least = rows[0][1] if self.one else Fraction(1)
        self.rows = [(w / self.least, c) for c, w in rows if c > 0]
        self.largest = float(rows[-1][0])
        self._doubles = [
            (math.log(r.numerator) - math.log(r.denominator) - float(c) ** 2 / 2, float(c))
            for r, c in self.rows
        ]

    def log(self, z: Array) -> Array:
        """Return the logarithm at real z in double precision."""
        total = np.zeros_like(z) if self.one else np.full_like(z, -np.inf)
        for log_r, c in self._doubles:
            total = np.logaddexp(total, log_r + c * z)
        return total

    def log_turned(self, z: Array, height: Any) -> Any:
        """Return the logarithm at z + i height in double precision."""
        exponents = [log_r + c * z for log_r, c in self._doubles]
        top = np.maximum.reduce([*exponents, np.zeros_like(z)] if self.one else exponents)
        total = np.exp(-top) if self.one else np.zeros_like(z)
        total = total + 0j
        for exponent, (_, c) in zip(exponents, self._doubles, strict=True):
            total += np.exp(exponent - top + 1j * c * height)
        return top + np.log(total)

    def slope(self, z: Array) -> Array:
        """Return the derivative of the logarithm in double precision."""
        total, result = self.log(z), np.zeros_like(z)
        for log_r, c in self._doubles:
            result += c * np.exp(log_r + c * z - total)
        return result

    def balls(self) -> _BallMixture:
        """Return the same function in ball arithmetic at the working precision."""
        return _BallMixture(
            [(exact(r).log() - exact(c) ** 2 / 2, exact(c)) for r, c in self.rows], self.one
        )

    def beyond(self, z: arb) -> arb:
        """Return the mass above z of sum_j w_j N(c_j, 1)."""
        masses = (exact(w) * upper_normal(z - exact(c)) for c, w in self.whole)
        return sum(masses, arb(0))


@dataclass(frozen=True)
class _BallMixture:
    """A `Mixture` in balls: rows of log weight - c^2/2 and shift c; ``one`` adds 1."""

    rows: list[tuple[arb, arb]]
    one: bool

    def at(self, z: Any) -> Any:
        """Return the value at a real or complex z."""
        return sum(((log_r + c * z).exp() for log_r, c in self.rows), arb(int(self.one)))

    def log(self, z: arb) -> arb:
        """Return the logarithm at a real z, with small relative error where it is small."""
        inner: arb = sum(((log_r + c * z).exp() for log_r, c in self.rows), arb(0))
        return inner.log1p() if self.one else inner.log()

    def slopes(self, z: Any) -> tuple[Any, Any]:
        """Return the first two derivatives of the logarithm."""
        terms = [((log_r + c * z).exp(), c) for log_r, c in self.rows]
        total = sum((term for term, _ in terms), arb(int(self.one)))
        mean = sum((c * term for term, c in terms), arb(0)) / total
        square = sum((c * c * term for term, c in terms), arb(0)) / total
        return mean, square - mean * mean


@dataclass(frozen=True)
class _Path:
    """The path z + i tau(z), 1/tau = 1/(gain t L'(z)) + 1/height; tau = height without a gain."""

    gain: float | None
    height: float


class NormalPair:
    """The step of B (``upper``) and A(-z) (``lower``; by default 1, so that P = N(0, 1)).

    See `pyengine.reference.inversion.line.Part`.
    """

    highest = math.inf

    def __init__(self, upper: Mixture, lower: Mixture | None = None) -> None:
        self.upper, self.lower = upper, lower
        self.largest = max(upper.largest, lower.largest if lower else 0.0)
        self.ratio = upper.least / (lower.least if lower else 1)

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        if self.lower is not None or not self.upper.one:
            return -arb("inf"), arb("inf")
        return exact(self.ratio - 1).log1p(), arb("inf")

    def measure(self, cut: float, span: float) -> NormalGrid:
        """Return the law of the loss less its offset on a grid of z up to the cut, in doubles."""
        z, log_mass = normal_places(cut, cut if self.lower else span, self.largest)
        loss = self.upper.log(z)
        if self.lower:
            below = self.lower.log(-z)
            log_mass, loss = log_mass + below + math.log(self.lower.least), loss - below
        return NormalGrid(log_mass, loss, z)

    def nodes(
        self, measure: NormalGrid, tilts: list[float], reach: float, depth: float, cut: float
    ) -> NormalNodes:
        """Choose the nodes in z; see `pyengine.reference.inversion.line.Part`."""
        low = -cut
        if self.lower is None:
            low = min(self.largest - cut, *(measure.window(tilt, depth + 8)[0] for tilt in tilts))
        sizes = self.sizes(measure, tilts[0])
        down, up = sizes.strip(reach, depth), sizes.strip(0.0, depth)
        step = min(sizes.spacing(down, reach, depth), sizes.spacing(up, 0.0, depth))
        while sizes.log_end(down, reach, step) > -depth:
            step *= 0.93
            if step < 1e-6:
                raise NotFeasibleError("a second mode")
        step = float(np.float32(step))
        first = math.floor(low / step)
        return NormalNodes(first * step, step, math.ceil(cut / step) - first + 1)

    def sizes(self, measure: NormalGrid, tilt: float) -> _PairSizes:
        """Return sizes of the transform on a line, in double precision."""
        return _PairSizes(self, measure, tilt)


class _PairSizes:
    """Moduli of the transform of one step off the real axis, in doubles on a coarse grid of z.

    ``weight`` is the tilted law on the grid, normalised; ``slope`` the derivative of the loss.
    """

    def __init__(self, pair: NormalPair, measure: NormalGrid, tilt: float) -> None:
        self.pair, self.tilt = pair, tilt
        wide = min(COARSE[0], COARSE[1] / pair.largest)
        every = max(1, round(wide / float(measure.z[1] - measure.z[0])))
        z, loss = measure.z[::-every][::-1], measure.loss[::-every][::-1]
        exponent = measure.log_mass[::-every][::-1] + tilt * loss
        exponent -= exponent.max() + math.log(float(np.exp(exponent - exponent.max()).sum()))
        self._ends = [(float(z[k]), float(exponent[k])) for k in (0, -1)]
        self.z, self.log_weight = z, exponent
        self.weight = np.exp(self.log_weight)
        upper, lower = pair.upper, pair.lower
        self._log_upper = upper.log(self.z)
        self._log_lower = lower.log(-self.z) if lower else np.zeros_like(self.z)
        self.slope = upper.slope(self.z) + (lower.slope(-self.z) if lower else 0.0)

    def _change_and_angle(self, tau: Any) -> tuple[Array, Array]:
        """Return log |A^(1 - tilt) B^tilt| at z + i tau less that at z, and alpha + beta there."""
        upper = self.pair.upper.log_turned(self.z, tau)
        log_change, angle = self.tilt * (upper.real - self._log_upper), upper.imag
        if self.pair.lower:
            lower = self.pair.lower.log_turned(-self.z, tau)
            log_change += (1 - self.tilt) * (lower.real - self._log_lower)
            angle = angle + lower.imag
        return log_change, angle

    def log_ratio(self, tau: Any, t: float, slope: Any = 0.0) -> float:
        """Return the log of the integral of the modulus along z + i tau, over M(tilt)."""
        log_change, angle = self._change_and_angle(tau)
        growth = tau**2 / 2 + log_change - t * angle + np.log1p(slope**2 / 2)
        if growth.max() < 1:
            # as log1p, since the result is multiplied by the number of steps
            change = float(self.weight @ np.expm1(growth))
            if change > -0.9:
                return math.log1p(change)
        total = self.log_weight + growth
        top = float(total.max())
        return top + math.log(float(np.sum(np.exp(total - top))))

    def log_end(self, down: float, t: float, step: float) -> float:
        """Return the log of the error from the vertical ends of the lower strip, over M(tilt)."""
        worst = -math.inf
        for z, log_weight in self._ends:
            y = np.linspace(0.0, down, 60)
            place = np.full_like(y, z)
            upper = self.pair.upper.log_turned(place, y)
            size, angle = self.tilt * (upper.real - upper.real[0]), upper.imag
            if self.pair.lower:
                lower = self.pair.lower.log_turned(-place, y)
                size = size + (1 - self.tilt) * (lower.real - lower.real[0])
                angle = angle + lower.imag
            top = float(np.max(y * y / 2 + t * angle + size - 2 * math.pi * y / step))
            worst = max(worst, log_weight + max(top, 0.0))
        return worst

    def spacing(self, height: float, t: float, depth: float) -> float:
        """Return the spacing of nodes for errors of exp(-depth), from a strip below the axis."""
        growth = self.log_ratio(height, -t)
        return 2 * math.pi * height / (depth + max(growth, 0.0))

    def strip(self, t: float, depth: float) -> float:
        """Return the height of the strip with the widest spacing."""
        wide = math.sqrt(2 * depth)
        return max(self._heights(wide), key=lambda height: self.spacing(height, t, depth))

    def lowest(self, t: float, rate: float) -> float:
        """Return the height of the strip with the smallest error bound for spacing 2 pi/rate."""
        return min(self._heights(rate), key=lambda y: self.log_ratio(y, -t) - rate * y)

    def _heights(self, wide: float) -> list[float]:
        top = min(math.pi / 2 / self.pair.largest * 0.99, 1e3)
        return [min(wide * float(x), top) for x in np.geomspace(0.003, 1.0, 30)]

    def _decay(self, t: float, path: _Path) -> float:
        assert path.gain is not None
        lift = path.gain * t * self.slope
        tau = path.height * lift / (path.height + lift)
        return self.log_ratio(tau, t, np.gradient(tau, self.z))

    def best(self, t: float) -> tuple[float, _Path]:
        """Return the log of the best bound on |M(tilt + i t)| / M(tilt), and its path."""
        top = math.pi / 2 / self.pair.largest
        trials = [
            _Path(gain, height * top)
            for gain in (0.15, 0.3, 0.5, 0.7, 0.9, 1.0)
            for height in (0.1, 0.25, 0.5, 0.75, 0.98)
        ]
        values = [self._decay(t, path) for path in trials]
        best = int(np.argmin(values))
        return values[best], trials[best]

    def placed(self, nodes: NormalNodes, line: LineNodes) -> PlacedPair:
        """Return the transform at the nodes of a line, at the working precision."""
        return PlacedPair(self, nodes, line)


@dataclass(frozen=True)
class NormalNodes:
    """Equidistant nodes in z."""

    start: float
    spacing: float
    count: int


class PlacedPair:
    """The transform on a line, by the trapezoidal rule in z.

    See `pyengine.reference.inversion.line.PlacedPart`.
    """

    def __init__(self, sizes: _PairSizes, nodes: NormalNodes, line: LineNodes) -> None:
        self.pair, self.line, self.sizes = sizes.pair, line, sizes
        self.spacing = arb(nodes.spacing)
        first = arb(nodes.start)
        last = first + (nodes.count - 1) * self.spacing
        self.ends = ((first - self.spacing / 2).mid(), (last + self.spacing / 2).mid())
        upper, lower = self.pair.upper.balls(), self.pair.lower and self.pair.lower.balls()
        self._front = exact(self.pair.lower.least) if self.pair.lower else arb(1)
        factor = self.spacing / (2 * arb.pi()).sqrt() * self._front
        self.losses, self.weights = list[arb](), list[arb]()
        for k in range(nodes.count):
            z = first + k * self.spacing
            exponent, loss = -z * z / 2, upper.log(z)
            if lower:
                below = lower.log(-z)
                exponent, loss = exponent + below, loss - below
            self.losses.append(loss)
            self.weights.append(exponent.exp() * factor)
        with precision(INTEGRAL_BITS):
            self._upper = self.pair.upper.balls()
            self._lower = self.pair.lower.balls() if self.pair.lower else None

    @property
    def lost(self) -> tuple[arb, arb]:
        """The masses of P and Q outside of ``ends``."""
        left, right = self.ends
        upper, lower = self.pair.upper, self.pair.lower
        # the mass of P below z is that of its mirror image, the mixture `lower`, above -z
        of_q = upper.beyond(right) + _below(upper, left)
        of_p = lower.beyond(-left) + _below(lower, -right) if lower else None
        return upper_normal(right) + upper_normal(-left) if of_p is None else of_p, of_q

    @cached_property
    def log_size(self) -> arb:
        """Log of the trapezoidal sum at the tilt of the line, about log M(tilt)."""
        return self._sum(self.line.tilt).log()

    def _sum(self, theta: arb) -> arb:
        return sum(
            (w * (theta * loss).exp() for loss, w in zip(self.losses, self.weights, strict=True)),
            arb(0),
        )

    def log_above(self, theta: arb) -> arb:
        """Return a ball whose upper end is at least log M at a real theta."""
        total = self._sum(theta)
        return (total + self._error(theta, arb(0), total)).log()

    def values(self) -> list[acb]:
        """Return balls that enclose M at the nodes of the line, of which the first is real."""
        line = self.line
        tilted = [
            w * (line.tilt * loss).exp() for loss, w in zip(self.losses, self.weights, strict=True)
        ]
        error = spread(self._error(line.tilt, line.reach, self.log_size.exp()))
        wide = acb(error, error)
        return [x + wide for x in turned_sums(self.losses, tilted, line.spacing, line.count)]

    def _error(self, theta: arb, reach: arb, size: arb) -> arb:
        """Bound the error of the trapezoidal rule for 0 <= t <= reach; M(theta) is about ``size``.

        Above the axis the modulus decreases with t, so t = 0 bounds it; below the axis t = reach.
        """
        sizes, rate = self.sizes, 2 * arb.pi() / self.spacing
        if theta != self.line.tilt:
            sizes = _PairSizes(self.pair, self._cut_law, float(theta))
        total = arb(0)
        # for t = 0 both sides of the axis are alike
        for t in (arb(0), reach):
            height = sizes.lowest(float(t), float(rate))
            inside = self._integral(theta, -t, _Path(None, height), size, -4.0)
            total += inside / (rate * height).expm1()
            total += sum((self._vertical(end, theta, t, height) for end in self.ends), arb(0))
        return total

    @cached_property
    def _cut_law(self) -> NormalGrid:
        """The law of the loss in double precision."""
        left, right = (float(end) for end in self.ends)
        return self.pair.measure(right, -left)

    def _density(self, z: arb) -> arb:
        return (-z * z / 2).exp() / (2 * arb.pi()).sqrt() * self._front

    def _sizes(self, end: arb, theta: arb, low: arb, high: arb) -> arb:
        """Bound |A|^(1 - theta) |B|^theta at z = end, for heights in [low, high]."""
        size: arb = abs(self._upper.at(acb(end, low if theta >= 0 else high))) ** theta
        if self._lower:
            size *= abs(self._lower.at(acb(-end, low if theta <= 1 else high))) ** (1 - theta)
        return size

    def _angle(self, end: arb, height: arb) -> arb:
        angle: arb = self._upper.at(acb(end, height)).arg()
        return angle + self._lower.at(acb(-end, height)).arg() if self._lower else angle

    def _steepness(self, z: arb) -> arb:
        slope: arb = self._upper.slopes(z)[0]
        return slope + self._lower.slopes(-z)[0] if self._lower else slope

    def _vertical(self, end: arb, theta: arb, t: arb, top: float) -> arb:
        """Bound the error from the vertical end of the strip at z = end, up to the height ``top``.

        It is the end below the axis, or either end for t = 0; the kernel of the rule there is at
        most exp(-2 pi y / spacing).
        """
        with precision(INTEGRAL_BITS):
            rate, piece = 2 * arb.pi() / self.spacing, arb(top) / PIECES
            total = arb(0)
            for k in range(PIECES):
                low, high = k * piece, (k + 1) * piece
                exponent = high**2 / 2 - rate * low
                if t > 0:
                    exponent += t * self._angle(end, high)
                total += exponent.exp() * self._sizes(end, theta, low, high)
            return (self._density(end) * piece * total).upper()

    def _integral(self, theta: arb, t: arb, path: _Path, size: arb, log_goal: float) -> arb:
        """Bound the integral of the modulus along a path, to exp(``log_goal``) times ``size``."""
        with precision(INTEGRAL_BITS):
            goal = arb(log_goal).exp()
            log_size = size.log()

            def modulus(z: acb, analytic: bool) -> acb:
                exponent, _, slope = self._modulus(z, theta, t, path, analytic)
                value: acb = (exponent - log_size).exp() * (1 + slope**2 / 2)
                return value

            return self._integrated(modulus, goal) * size

    def _integrated(self, function: Any, goal: arb) -> arb:
        left, right = (acb(end) for end in self.ends)
        value: arb = acb.integral(function, left, right, rel_tol=goal, abs_tol=goal).real
        return value * self._front / (2 * arb.pi()).sqrt()

    def _modulus(
        self, z: acb, theta: arb, t: arb, path: _Path, analytic: bool
    ) -> tuple[acb, acb, Any]:
        """Return the log of the modulus up to a constant, alpha + beta, and tau', analytic in z."""
        height = arb(path.height)
        if path.gain is None:
            tau, slope = height, arb(0)
        else:
            mean, variance = self._upper.slopes(z)
            if self._lower:
                other = self._lower.slopes(-z)
                mean, variance = mean + other[0], variance - other[1]
            lift, rate = arb(path.gain) * t * mean, arb(path.gain) * t * variance
            tau = height * lift / (height + lift)
            slope = rate * (height / (height + lift)) ** 2
        turn = acb(0, 1) * tau
        one = self._upper.at(z + turn).log(analytic=analytic)
        two = self._upper.at(z - turn).log(analytic=analytic)
        size, angle = theta * (one + two), one - two
        if self._lower:
            one = self._lower.at(turn - z).log(analytic=analytic)
            two = self._lower.at(-turn - z).log(analytic=analytic)
            size, angle = size + (1 - theta) * (one + two), angle + one - two
        angle = angle * acb(0, -0.5)
        return (tau**2 - z * z + size) / 2 - t * angle, angle, slope

    def modulus(self, log_goal: float) -> Modulus:
        """Return bounds on |M| beyond the nodes.

        From the ends of the path the contour returns to the real axis vertically: with ``s`` the
        slope of the loss there, the integral over y of exp(-2 t y s/pi) is at most pi/(2 t s).
        """
        line, log_size = self.line, self.log_size
        log_ratio, path = self.sizes.best(float(line.reach))
        goal = log_ratio + log_goal
        size = log_size.exp()
        largest = self._integral(line.tilt, line.reach, path, size, goal)
        near, far = arb(0), arb(0)
        with precision(INTEGRAL_BITS):
            high = arb(min(1.0, 1.5 / self.pair.largest))
            for end in self.ends:
                steep = self._steepness(end)
                tau = arb(path.height)
                if path.gain is not None:
                    lift = arb(path.gain) * line.reach * steep
                    tau = tau * lift / (tau + lift)
                fall = arb.pi() / (2 * steep)
                near += self._end_modulus(end, tau) * tau.min(fall / line.reach)
                far += self._end_modulus(end, high) * fall

            # for `far`, on a path of constant height: exp(-t angle) <= 1/(e t angle)
            def over_angle(z: acb, analytic: bool) -> acb:
                constant = _Path(None, float(high))
                exponent, angle, _ = self._modulus(z, line.tilt, arb(0), constant, analytic)
                return (exponent - log_size).exp() / angle

            inside = self._integrated(over_angle, arb(0.01)) * size / arb(1).exp()
        return Modulus((largest + near).upper(), (inside + far).upper())

    def _end_modulus(self, end: arb, height: arb) -> arb:
        """Bound the modulus at z = end, without exp(-t angle), for heights up to a given one."""
        size = self._sizes(end, self.line.tilt, arb(0), height)
        return self._density(end) * (height**2 / 2).exp() * size


def _below(mixture: Mixture, z: arb) -> arb:
    """Return the mass below z of sum_j w_j N(c_j, 1)."""
    masses = (exact(w) * upper_normal(exact(c) - z) for c, w in mixture.whole)
    return sum(masses, arb(0))
