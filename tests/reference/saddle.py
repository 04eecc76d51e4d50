"""Double-precision cumulants, saddle points and tail estimates: they plan, they decide nothing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .model import Phase

Array = NDArray[np.float64]
_SPAN, _SPACING = 45.0, 0.025
_FAR = np.concatenate([np.arange(-_SPAN, _SPAN, 0.1), np.geomspace(_SPAN, 1e9, 400)])
_QUIET, _MARGIN = 75.0, 1.3
_ROOT_2 = math.sqrt(2)
TAPER = 0.12
_LOG_2PI = math.log(2 * math.pi)


class Cumulants:
    """Cumulant generating function K of the sum of Y = L - log(1 - p), in double precision.

    For p = 1 the loss L itself takes the place of Y.  The law of z is cut at 45 standard
    deviations, so that every tilt has a finite mean; where a second mode beyond would matter,
    `runs_off` says so.  A cut that is given multiplies the density by the smooth step erfc((z -
    cut) / TAPER) / 2.
    """

    def __init__(self, phases: tuple[Phase, ...], cut: float | None = None) -> None:
        self.phases = phases
        self.cut = cut
        end = _SPAN if cut is None else cut + 3
        self.z = np.arange(-_SPAN, end + _SPACING / 2, _SPACING)
        self.log_weight = self.log_density(self.z) + math.log(_SPACING)
        self.weight = np.exp(self.log_weight)
        self.losses = [offset_loss(phase, self.z) for phase in phases]
        self.shift = sum(log_floor(phase) for phase in phases)

    def log_density(self, z: Array) -> Array:
        """Return the log of the density of z, with its taper."""
        plain = -(z**2) / 2 - _LOG_2PI / 2
        if self.cut is None:
            return plain
        return plain + np.array([log_upper_normal(x) for x in (z - self.cut) * _ROOT_2 / TAPER])

    def log_moment(self, index: int, tilt: float) -> float:
        """Return log E exp(tilt Y) of one step of a phase."""
        exponent = tilt * self.losses[index]
        small = np.abs(exponent) < 1
        grown = np.exp(np.minimum(self.log_weight + exponent, 700.0)) - self.weight
        near = self.weight * np.expm1(np.where(small, exponent, 0.0))
        total = float(np.sum(np.where(small, near, grown)))
        if -0.5 < total < 1:
            return math.log1p(total)
        peak = float(np.max(self.log_weight + exponent))
        return peak + math.log(float(np.sum(np.exp(self.log_weight + exponent - peak))))

    def value(self, tilt: float) -> float:
        """Return K(tilt)."""
        return sum(phase.steps * self.log_moment(i, tilt) for i, phase in enumerate(self.phases))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return K'(tilt) and K''(tilt)."""
        mean = variance = 0.0
        for phase, loss in zip(self.phases, self.losses, strict=True):
            exponent = self.log_weight + tilt * loss
            weight = np.exp(exponent - exponent.max())
            weight /= weight.sum()
            first = float(weight @ loss)
            mean += phase.steps * first
            variance += phase.steps * float(weight @ (loss - first) ** 2)
        return mean, variance

    def runs_off(self, tilt: float) -> bool:
        """Whether the tilted weight is not small at the last node."""
        for loss in self.losses:
            exponent = self.log_weight[::8] + tilt * loss[::8]
            if exponent[-1] > exponent.max() - 90:
                return True
        return False

    def is_quiet(self, tilt: float) -> bool:
        """Whether no tilted weight rises again, even beyond the nodes, once it has fallen."""
        for phase in self.phases:
            if phase.full_batch:
                continue
            exponent = tilt * offset_loss(phase, _FAR) - _FAR**2 / 2
            first = int(np.argmax(np.diff(exponent) < 0))
            fallen = np.nonzero(exponent[first:] < exponent[first] - _QUIET)[0]
            if _FAR[first] > 40 or fallen.size == 0:
                return False
            before, after = exponent[first : first + fallen[0]], exponent[first + fallen[0] :]
            if before.max() > exponent[first] or after.max() > exponent[first] - _QUIET:
                return False
        return True

    def quiet_tilt(self, tilt: float, threshold: float) -> float:
        """Return the largest tilt up to the given one without a far second mode nearby.

        A second mode that makes up the tail asked for is kept: leaving it would cost more than
        60 in the exponent.
        """
        if tilt <= 0 or self.is_quiet(_MARGIN * tilt):
            return tilt
        low, high = 0.0, tilt
        for _ in range(40):
            middle = math.sqrt(low * high) if low > 0 else high / 16
            if self.is_quiet(_MARGIN * middle):
                low = middle
            else:
                high = middle
            if high < 1e-9 * tilt or (low > 0 and high / low < 1.001):
                break
        beyond = any(
            float(np.max(tilt * offset_loss(phase, _FAR[-400:]) - _FAR[-400:] ** 2 / 2)) > -_QUIET
            for phase in self.phases
            if not phase.full_batch
        )
        price = self.value(low) - low * threshold - self.value(tilt) + tilt * threshold
        return low if beyond or not price > 60 else tilt

    def log_modulus(self, index: int, tilt: float, times: Array, spacing: float) -> Array:
        """Return log |M(tilt + i t) / M(tilt)| of one step of a phase, on z nodes made for it."""
        low, high = self.window(index, tilt, 45.0)
        z = np.arange(low, high + spacing, spacing)
        loss = offset_loss(self.phases[index], z)
        exponent = self.log_density(z) + tilt * loss
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        away = loss - float(weight @ loss)
        result = np.empty_like(times)
        for k, t in enumerate(times):
            missing = float(weight @ (2 * np.sin(t * away / 2) ** 2))
            imaginary = float(weight @ np.sin(t * away))
            # |M|^2 - 1, without subtracting from 1 when the modulus is near 1.
            gap = missing * (missing - 2) + imaginary**2
            if gap > -0.5:
                result[k] = 0.5 * math.log1p(gap)
            else:
                result[k] = math.log(max(math.hypot(1 - missing, imaginary), 1e-16))
        return result

    def window(self, index: int, tilt: float, depth: float) -> tuple[float, float]:
        """Return the range of z where the tilted weight is above exp(-depth) of its peak."""
        exponent = self.log_weight + tilt * self.losses[index]
        inside = self.z[exponent > exponent.max() - depth]
        return float(inside[0]) - _SPACING, float(inside[-1]) + _SPACING

    def saddle(self, threshold: float) -> float:
        """Return the tilt where K' equals the offset threshold."""
        return self._bisect(lambda tilt: self.mean_variance(tilt)[0] - threshold)

    def threshold(self, measure: str, log_tail: float) -> float:
        """Return an offset threshold where a tail of p or q is near exp(log_tail)."""
        sign = 1.0 if measure.endswith("above") else -1.0
        tilt = self._bisect(lambda x: sign * (log_tail - self.log_tail(measure, x)))
        return self.mean_variance(tilt)[0]

    def log_tail(self, measure: str, tilt: float) -> float:
        """Return the saddle-point estimate of a log tail at the threshold K'(tilt)."""
        threshold, variance = self.mean_variance(tilt)
        base = 0.0 if measure.startswith("p") else 1.0
        away = tilt - base
        start = 0.0 if base == 0.0 else self.value(1.0)
        exponent = away * threshold - (self.value(tilt) - start)
        r = math.copysign(math.sqrt(2 * max(exponent, 0.0)), away)
        q = away * math.sqrt(variance)
        if abs(r) > 1e-3 and q / r > 0:
            change = math.log(q / r) / r
            r += change if abs(change) < 1 else 0.0
        return log_upper_normal(r if measure.endswith("above") else -r)

    def chernoff(self, threshold: float) -> float:
        """Return the smallest value of K(tilt) - tilt * threshold."""
        tilt = self.saddle(threshold)
        return self.value(tilt) - tilt * threshold

    def _bisect(self, increasing: object) -> float:
        unit = 1 / math.sqrt(self.mean_variance(0.0)[1])
        low, high = -60.0, 60.0
        for _ in range(64):
            middle = (low + high) / 2
            if increasing(unit * math.sinh(middle)) > 0:  # type: ignore[operator]
                high = middle
            else:
                low = middle
        return unit * math.sinh((low + high) / 2)


def log_floor(phase: Phase) -> float:
    """Return steps * log(1 - p) in double precision (0 if p = 1)."""
    return 0.0 if phase.full_batch else phase.steps * math.log1p(-phase.probability)


def log_odds(phase: Phase) -> float:
    """Return log(p / (1 - p)) in double precision."""
    return math.log(phase.probability) - math.log1p(-phase.probability)


def offset_loss(phase: Phase, z: Array) -> Array:
    """Return Y(z) = log(1 + odds * exp(mu z - mu^2 / 2)); for p = 1 the loss itself."""
    mu = 1 / float(phase.noise)
    exponent = mu * z - mu**2 / 2
    if phase.full_batch:
        return exponent
    return np.logaddexp(0.0, exponent + log_odds(phase))


def log_upper_normal(x: float) -> float:
    """Return the log of the upper normal tail, roughly."""
    if x < 25:
        return math.log(max(0.5 * math.erfc(x / math.sqrt(2)), 1e-300))
    return -x * x / 2 - _LOG_2PI / 2 - math.log(x) - 1 / x**2


def away_from_poles(tilt: float, distance: float) -> float:
    """Return the tilt moved so that it is at least a distance away from the poles 0 and 1."""
    if abs(tilt) >= distance and abs(tilt - 1) >= distance:
        return tilt
    if distance < 0.45:
        pole = 0.0 if tilt < 0.5 else 1.0
        return pole + math.copysign(distance, tilt - pole)
    return 1 + distance if tilt > 0.5 else -distance
