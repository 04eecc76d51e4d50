"""The transform of the loss of one epoch of random allocation, in ball arithmetic.

A record takes part in exactly one of t steps, drawn uniformly (Chua et al., 2024; Feldman and
Shenfeld, 2025).  Without the record x ~ N(0, I_t), with it the law is the mean of N(mu e_i, I_t),
hence e^L = S/t with S = sum Y_i and Y = exp(mu x - mu^2/2).  With l(z) = E exp(-z Y),

    M(lambda) = E (S/t)^lambda = t^(-lambda) / Gamma(1 - lambda) * I(lambda),
    I(lambda) = int_R exp(-lambda w) t l(z)^(t-1) (-z l'(z)) dw,  z = exp(w),  Re lambda < 1,

Mellin's integral after one integration by parts.  I and l are computed by the trapezoidal rule.
With spacing h in x and mu h in w the nodes of both lie on one lattice, so that the values of l at
all nodes are the coefficients of one product of polynomials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, arb, fmpz, fmpz_poly

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, precision, upper_normal
from pyengine.reference.cumulants import Array
from pyengine.reference.inversion.line import LineNodes, Modulus

__all__ = ["AllocatedEpoch"]

SHORT = 0.1  # pi/2 less the half width of a strip, so that its cosine is not near 0
MOST_LATTICE = 400_000  # nodes
MOST_BITS = 5e8  # nodes times bits; more take gigabytes and half an hour
LN2 = math.log(2)
STEP = 1e-3  # of the tilt, in difference quotients in doubles


@dataclass(frozen=True)
class _LossLattice:
    """Balls of l(z) (``transform``) and -z l'(z) (``slope``) at log z = (first + k) step.

    ``period`` * step = 2 pi / (spacing in t), so exp(-i t log z) has this period for all nodes t.
    """

    step: arb
    first: int
    period: int
    transform: list[arb]
    slope: list[arb]


class AllocatedEpoch:
    """One epoch of ``steps`` steps, mu = 1/noise; see `pyengine.reference.inversion.line.Part`.

    It is its own `pyengine.reference.cumulants.StepCumulants`.
    """

    highest, ratio = -1e-3, Fraction(1)

    def __init__(self, noise: float | Fraction, steps: int) -> None:
        self.noise, self.steps = noise, steps

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the loss."""
        return -arb("inf"), arb("inf")

    def measure(self, *_: float) -> AllocatedEpoch:
        """Return the law of the loss in doubles; there is no normal law to truncate."""
        return self

    def sizes(self, measure: object, tilt: float) -> _EpochSizes:  # noqa: ARG002
        """Return sizes on a line, in doubles."""
        return _EpochSizes(self, tilt)

    def nodes(self, *_: object) -> None:
        """Return None: `values` chooses the nodes."""

    @cached_property
    def _coarse(self) -> tuple[Array, Array, Array]:
        """Nodes w, log(t l^(t-1) (-z l')) there, and the log of the smaller of l and -z l'."""
        mu, t = 1.0 / float(self.noise), self.steps
        x = np.arange(-14.0, 14.0, min(0.1, 0.25 / mu))
        phi = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        step = min(0.05, 0.1 * mu, 0.5 / math.sqrt(t))
        rows = []
        w, peak = -60.0 - math.log(t), -math.inf
        while True:
            z = np.exp(w + step * np.arange(400))[:, None]
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                v = z * np.exp(mu * x - mu * mu / 2)[None, :]
                small, large = -np.expm1(-v) @ phi, np.exp(-v) @ phi
                log_l = np.where(small < 0.5, np.log1p(-small), np.log(large))
                slope = np.where(v < 700, v * np.exp(-v), 0.0) @ phi
                value = math.log(t) + (t - 1) * log_l + np.log(slope)
                least = np.minimum(log_l, np.log(slope))
            value = np.where(np.isnan(value), -np.inf, value)
            rows.append((w + step * np.arange(400), value, least))
            w += 400 * step
            peak = max(peak, float(value.max()))
            if value[-1] < peak - 1500 - 200 * abs(w) or len(rows) > 400:
                break
        places, values, least = (np.concatenate([row[k] for row in rows]) for k in range(3))
        return places, values, least

    def _amplification(self, tilt: float) -> float:
        """Return the log of the relative error of I(tilt) over the error of l or -z l'."""
        w, value, least = self._coarse
        known = np.isfinite(value) & np.isfinite(least)
        exponent = (value - tilt * w)[known]
        return float((exponent - least[known]).max() - exponent.max())

    def log_moment(self, tilt: float) -> float:
        """Return log M(tilt) in double precision; inf if the grid of w ends too early for it."""
        w, value, _ = self._coarse
        exponent = (value - tilt * w)[np.isfinite(value)]
        top = float(exponent.max())
        if exponent[-1] > top - 40:
            return math.inf
        total = top + math.log(float(np.exp(exponent - top).sum()) * float(w[1] - w[0]))
        return total - tilt * math.log(self.steps) - math.lgamma(1.0 - tilt)

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return the first two derivatives of log M, by difference quotients."""
        low, mid, high = (self.log_moment(tilt + k * STEP) for k in (-1, 0, 1))
        return (high - low) / (2 * STEP), max((high - 2 * mid + low) / STEP**2, 1e-12)

    def values(self, reach: LineNodes) -> list[acb]:
        """Return balls that enclose M at the nodes of a line."""
        t = self.steps
        # the sum over w must be more accurate than M: its terms grow by exp(t pi/2) on the strip's
        # sides, and 1/Gamma(1 - lambda) grows by exp(t pi/2)
        half = math.pi / 2 - SHORT
        tilt = float(reach.tilt)
        cost = float(reach.reach) * math.pi + (1 - tilt) * -math.log(math.sin(SHORT))
        depth = reach.depth + cost + 20
        bits = int((depth + self._amplification(tilt) + math.log(t)) / LN2) + 100
        with precision(bits):
            lattice = self._lattice(reach, depth, half)
            step = lattice.step
            places = [(lattice.first + k) * step for k in range(len(lattice.slope))]
            weights = [
                step * t * value ** (t - 1) * slope * (-reach.tilt * place).exp()
                for place, value, slope in zip(
                    places, lattice.transform, lattice.slope, strict=True
                )
            ]
            sums = _fourier(weights, lattice.first, lattice.period, reach.count)
            left, right = self._beyond(reach.tilt, places[0], places[-1] + step, step)
            # Trefethen and Weideman, Theorem 5.1, on |Im w| <= half: with |l(z)| <= l(Re z),
            # |l'(z)| <= |l'(Re z)| the integral of the modulus is at most
            # exp(t half) cos(half)^(tilt - 1) I(tilt), and I(tilt) follows from its own sum.
            decay = (2 * arb.pi() * arb(half) / step).exp() - 1
            growth = 2 * arb(half).cos() ** (reach.tilt - 1) / decay
            whole = (sums[0].real + left + right).upper()
            if not growth < 1:
                raise AccuracyError("the sum over z is too coarse; ask for fewer digits")
            whole = (whole / (1 - growth)).upper()
            found = []
            for k, value in enumerate(sums):
                height = k * reach.spacing
                error = (left + right + growth * (height * half).exp() * whole).upper()
                place = acb(1 - reach.tilt, -height)
                scale = (-acb(reach.tilt, height) * arb(t).log()).exp()
                ball = acb(arb(value.real, error), arb(value.imag, error if k else 0))
                found.append(ball * scale * place.rgamma())
        return found

    def _beyond(self, tilt: arb, first: arb, last: arb, step: arb) -> tuple[arb, arb]:
        """Bound the sums of the terms with w < ``first`` and w >= ``last``.

        Left: t l^(t-1) (-z l') <= t z.  Right: e^(-x) <= (m/(e x))^m gives
        l(z) <= (m/(e z))^m exp(mu^2 m (m+1)/2) =: g(m), and -z l' <= ((m+1)/e)^(m+1) z^(-m) E Y^-m.
        """
        t, mu = self.steps, 1 / exact(self.noise)
        rate = 1 - tilt
        left = t * (rate * (first - step)).exp() * step / (1 - (-rate * step).exp())
        w = float(last)
        m = max(1.0, (w - 0.0) / float(mu) ** 2 - 0.5, (2 - 2 * float(tilt)) / t)
        order = arb(m)
        moment = mu**2 * order * (order + 1) / 2
        one = order * (order.log() - 1 - last) + moment
        slope = (order + 1) * ((order + 1).log() - 1) - order * last + moment
        fall = order * t + tilt  # the terms fall at least like exp(-fall w)
        if not fall > 0:
            raise AccuracyError("terms of a sum do not fall beyond its end")
        head = ((t - 1) * one + slope - tilt * last).exp() * t
        right = head * step / (1 - (-fall * step).exp())
        return left.upper(), right.upper()

    def _lattice(self, reach: LineNodes, depth: float, half: float) -> _LossLattice:
        """Return l and -z l' on a lattice whose errors leave exp(-depth) of I."""
        mu, t = 1 / exact(self.noise), self.steps
        slope = float(mu)
        tilt = float(reach.tilt)
        strip = half / slope  # half width of the strip of x
        inner = depth + self._amplification(tilt) + math.log(t) + strip**2 / 2 + 10
        step_w = 2 * math.pi * half / (depth + 10)
        step_x = 2 * math.pi * strip / inner
        turn = 2 * arb.pi() / reach.spacing
        period = _smooth(float(turn) / min(step_w, slope * step_x))
        step = turn / period
        width = step / mu
        reach_x = math.sqrt(2 * inner)
        low, high = self._range(tilt, depth, float(step))
        side = int(reach_x / float(width)) + 1
        if high - low + 2 * side > MOST_LATTICE:
            raise AccuracyError(
                f"the transform of one epoch would take {high - low + 2 * side:,} nodes, at most "
                f"{MOST_LATTICE:,} are feasible; fewer digits, or a larger probability, take less"
            )
        bits = int(inner / LN2) + 40
        if (high - low + 2 * side) * bits > MOST_BITS:
            raise AccuracyError(
                f"the transform of one epoch would take {high - low + 2 * side:,} nodes of {bits} "
                "bits, which take gigabytes; fewer digits, or a larger probability, take less"
            )
        scale = width / (2 * arb.pi()).sqrt()
        gauss = [scale * (-((j * width) ** 2) / 2).exp() for j in range(side + 1)]
        values, slopes = [], []
        limit = arb(3 * inner + 200)
        none = arb(0, (limit * (-limit).exp()).upper())
        for i in range(low - side, high + side + 1):
            v = (i * step - mu**2 / 2).exp()
            if v > limit:  # where v exp(-v) decreases, so `none` encloses both
                values.append(none)
                slopes.append(none)
                continue
            value = (-v).exp()
            values.append(value)
            slopes.append(v * value)
        # the kernel is symmetric, so that correlation and convolution are the same
        kernel = [gauss[abs(j)] for j in range(-side, side + 1)]
        count = high - low + 1
        one, two = (_correlation(kernel, row, bits, count) for row in (values, slopes))
        tail = 2 * upper_normal(side * width)
        ahead = 2 * (arb(strip) ** 2 / 2).exp() / ((2 * arb.pi() * arb(strip) / width).exp() - 1)
        first = arb(0, (ahead + tail).upper())
        second = arb(0, ((ahead / arb(half).cos() + tail) / arb(1).exp()).upper())
        return _LossLattice(step, low, period, [x + first for x in one], [x + second for x in two])

    def _range(self, tilt: float, depth: float, step: float) -> tuple[int, int]:
        """Return the first and last index of w, beyond which the terms are negligible by bounds."""
        t, mu = self.steps, 1.0 / float(self.noise)
        whole = self.log_moment(tilt) + tilt * math.log(t) + math.lgamma(1 - tilt)
        goal = whole - depth - 5
        low = (goal - math.log(t) - 5) / (1 - tilt)
        high = 1.0
        while True:
            m = max(1.0, high / mu**2 - 0.5, (2 - 2 * tilt) / t)
            moment = mu * mu * m * (m + 1) / 2
            one = m * (math.log(m) - 1 - high) + moment
            slope = (m + 1) * (math.log(m + 1) - 1) - m * high + moment
            if (t - 1) * one + slope - tilt * high + math.log(t) < goal:
                break
            high += max(0.1, 0.02 * high)
        return math.floor(low / step) - 1, math.ceil(high / step) + 1


class _EpochSizes:
    """Bounds of |M| on the line Re lambda = tilt.

    Take z on the ray arg z = -(pi/2 - d + a), 0 < d <= a < pi/2.  Shifting the path of x by a/mu
    gives |l(z)| <= exp(a^2/(2 mu^2)) l(|z| sin d) for each of the n factors.  Together with
    |Gamma(x + i s)| >= Gamma(x) cosh(pi s)^(-1/2), x >= 1/2, this bounds
    |M(tilt + i s)| <= M(tilt) exp(-s (a - d) + n a^2/(2 mu^2)) sin(d)^(tilt - 1).
    """

    def __init__(self, epoch: AllocatedEpoch, tilt: float) -> None:
        self.epoch, self.tilt = epoch, tilt

    def angles(self, t: float) -> tuple[float, float]:
        """Return a and d, nearly the best ones at t."""
        angle = min(1.5, t / (float(self.epoch.noise) ** 2 * self.epoch.steps))
        return angle, min(0.9 * angle, (1.0 - self.tilt) / t)

    def best(self, t: float) -> tuple[float, None]:
        """Return the log of the bound on |M(tilt + i t)| / M(tilt)."""
        a, d = self.angles(t)
        square = (a * float(self.epoch.noise)) ** 2
        rest = self.epoch.steps * square / 2 - (1 - self.tilt) * math.log(math.sin(d))
        return min(0.0, -t * (a - d) + rest), None

    def placed(self, nodes: None, line: LineNodes) -> _PlacedEpoch:  # noqa: ARG002
        """Return the transform at the nodes of a line."""
        return _PlacedEpoch(self, line)


class _PlacedEpoch:
    """See `pyengine.reference.inversion.line.PlacedPart`."""

    def __init__(self, sizes: _EpochSizes, line: LineNodes) -> None:
        self.sizes, self.line = sizes, line

    @property
    def lost(self) -> tuple[arb, arb]:
        return arb(0), arb(0)

    @cached_property
    def _values(self) -> list[acb]:
        return self.sizes.epoch.values(self.line)

    def values(self) -> list[acb]:
        return self._values

    def log_above(self, theta: arb) -> arb:
        line = LineNodes(theta, self.line.spacing, 1, 20.0)
        return self.sizes.epoch.values(line)[0].real.log()

    def modulus(self, log_goal: float) -> Modulus:  # noqa: ARG002 - it is in closed form
        """Return bounds for all s >= t: s exp(-s rate) <= t exp(-t rate) if t rate >= 1."""
        tilt, t, epoch = self.line.tilt, self.line.reach, self.sizes.epoch
        angle, gap = self.sizes.angles(float(t))
        a, d = arb(angle), arb(gap)
        log = -t * (a - d) + epoch.steps * (a * exact(epoch.noise)) ** 2 / 2
        moment = self._values[0].real.upper()
        largest = (moment * (log - (1 - tilt) * d.sin().log()).exp()).upper()
        rate = t * (a - d)
        longest = t if rate >= 1 else t * (rate - 1).exp() / rate
        return Modulus(largest, (largest * longest).upper())


def _correlation(kernel: list[arb], values: list[arb], bits: int, count: int) -> list[arb]:
    """Return sum_j kernel[j] values[k + j] for k < count, in fixed point with so many bits.

    Neither list may have an entry above 1 in modulus.
    """
    rows, errors = [], []
    for row in (kernel, values):
        scaled = [(x * arb(2) ** bits) for x in row]
        whole = [_whole(x.mid().floor()) for x in scaled]
        rows.append(fmpz_poly(whole))
        errors.append(
            max((abs(x - n).upper() for x, n in zip(scaled, whole, strict=True)), key=float)
        )
    product = rows[0] * rows[1]
    scale = arb(2) ** (-2 * bits)
    ones = arb(2) ** bits
    error = (len(kernel) * (errors[0] * (ones + errors[1]) + errors[1] * ones) * scale).upper()
    first = len(kernel) - 1
    return [arb(product[first + k]) * scale + arb(0, error) for k in range(count)]


def _whole(number: arb) -> fmpz:
    found = number.unique_fmpz()
    assert found is not None
    return found


def _smooth(least: float) -> int:
    """Return the smallest b 2^m >= least with 8 <= b < 16."""
    size = 8
    while 2 * size < least:
        size *= 2
    unit = size // 8
    return unit * math.ceil(least / unit) if least > size else size


def _fourier(weights: list[arb], first: int, period: int, count: int) -> list[acb]:
    """Return sum_j weights[j] exp(-2 pi i k (first + j)/period) for k < count."""
    folded = [acb(0)] * period
    for j, weight in enumerate(weights):
        place = (first + j) % period
        folded[place] = folded[place] + weight
    sums = acb.dft(folded)
    return [sums[k % period] for k in range(count)]
