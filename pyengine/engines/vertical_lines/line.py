"""Masses and profiles of a sum S of losses, by the trapezoidal rule on one vertical line.

With K(s) = log E_A e^(s S) and a threshold c, the line through λ gives

    I(c) = integral of e^(K(s) - s c)/k(s) ds/(2 π i),  k(s) = s, s - 1 or s (s - 1):

which is A's mass beyond c, e^-c times B's, and the profile, up to the residues of poles crossed.
The sum errs by aliasing, truncation after the last node, the mass on atoms of all steps at once,
and rounding; each is bounded (docs/theory/line, Theorem 3 and Lemmas 4 to 7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.tilted import TiltedStep
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide

__all__ = [
    "KERNELS",
    "POLES",
    "CoreSide",
    "KernelErrors",
    "LossLine",
    "Side",
    "Steps",
    "TiltedSum",
    "chain_error",
    "composed",
]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
Steps = Sequence[tuple[TiltedStep, int]]

TINY = 1e-300  # replaces 0 before a logarithm is taken
SLACK = 1.0 + 1e-9  # covers the rounding of a bound
LANES = 8  # partial sums of the C kernel, whose arrays are padded to a multiple
# relative error of an angle t (S - c): the distance, its product with t and the kernel's argument
# reduction round
ANGLE_ERROR = 8.0 * UNIT
KERNELS: int = lib.PE_KERNELS  # k = s, s - 1 and s (s - 1): A's mass, B's, the profile
ALL = slice(0, KERNELS)
# (pole, residue) of 1/k for each kernel
POLES = (((0.0, 1.0),), ((1.0, 1.0),), ((0.0, -1.0), (1.0, 1.0)))


class Side(NamedTuple):
    """A second tilt, for the alias bound on one side of a line, and an upper bound of K there."""

    tilt: float
    log_mean: float


class CoreSide(NamedTuple):
    """The alias bound e^(log_mean - tilt c + fall)/divisor of one side, before scaling."""

    tilt: float
    log_mean: float
    fall: float = 0.0
    divisor: float = 1.0


class KernelErrors(NamedTuple):
    """Error bounds for each kernel, arrays of shape (KERNELS,).

    ``same`` holds for all thresholds, ``per_distance`` is multiplied by `ANGLE_ERROR` and the
    distance of c from the centre, ``left`` by the bounds of the sides.
    """

    same: FloatArray
    per_distance: FloatArray
    left: FloatArray


class CrossedPole(NamedTuple):
    """Aliases that a pole between a line and its side contributes: sign e^(constant + apart c).

    ``known`` is a bound of the relative error; the core adds the roundings that depend on c.
    """

    sign: float
    apart: float
    constant: float
    known: float


NO_POLE = CrossedPole(0.0, 0.0, -math.inf, 0.0)


def chain_error(size: int) -> float:
    """Rounding error of a line's sum over ``size`` nodes, relative to the sum of moduli.

    Lemma 5 (c): real and imaginary part of a product are together at most √2 times its modulus;
    each of `LANES` compensated sums adds runs of 8 nodes.
    """
    return (40.0 + size * size * UNIT) * UNIT


def composed(
    steps: Steps, frequency: FloatArray, spacing: float | None = None
) -> tuple[npt.NDArray[np.complex128], FloatArray, FloatArray]:
    """Return the transform of the centred sum S, and bounds for it.

    Returns
    -------
    transform, error : ndarray of shape (n,)
        At the frequencies, relative to e^(K(λ)), and bounds of the absolute errors.
    last : ndarray of shape (kinds,)
        Upper bounds of the modulus of each kind's transform at the last frequency.
    """
    size = frequency.size
    log, most, angle, off = np.zeros((4, size))
    last = np.empty(len(steps))
    for i, (step, number) in enumerate(steps):
        found = step.transform(frequency, spacing)
        known = np.isfinite(found.log)
        log += number * found.log
        angle += number * found.angle
        off += number * np.where(known, found.log_error, 0.0)
        # log of an upper bound of the modulus
        most += number * (np.where(known, found.log, 0.0) + found.log_error)
        last[i] = found.modulus[-1] + found.error[-1] + 4.0 * UNIT * (1.0 + found.modulus[-1])
    modulus = fn.exp(log)
    off += (2.0 * ELEMENTARY + 4.0 * len(steps)) * UNIT * (1.0 + np.abs(angle))
    off += 4.0 * len(steps) * UNIT * np.where(np.isfinite(log), np.abs(log), 0.0)
    close = np.isfinite(log) & (off < 0.5)
    error = np.where(
        close,
        modulus * fn.expm1(np.minimum(off, 1.0)),
        modulus + fn.exp(np.minimum(most, 50.0)),
    )
    return modulus * fn.turn(angle), error * (1.0 + 1e-9), last


class TiltedSum:
    """A sum of steps at a tilt λ; integrals on its line are relative to e^(K(λ) - λ c).

    Parameters
    ----------
    steps : sequence of (TiltedStep, int)
        The kinds, all at the tilt, and the number of steps of each.
    tilt : float
        λ, where the line crosses the real axis, neither 0 nor 1.
    """

    removed: tuple[float, float]
    core: tuple[Any, object]  # the C struct, and the buffers that it points to

    def __init__(self, steps: Steps, tilt: float) -> None:
        self.tilt = tilt
        self._log_mean = sum((n * step.log_mean for step, n in steps), Wide(0.0))
        self._centre = sum((n * Wide(step.centre) for step, n in steps), Wide(0.0))
        self._log_error = sum(float(n) * step.log_error for step, n in steps)
        self._log_error += EXTENDED * sum(4.0 * n * abs(float(step.log_mean)) for step, n in steps)
        self._off_centre = EXTENDED * sum(4.0 * n * abs(step.centre) for step, n in steps)

    def _set_core(
        self,
        t: FloatArray,
        weight: ComplexArray,
        errors: KernelErrors,
        sides: Sequence[CoreSide],
        poles: Sequence[Sequence[CrossedPole]],
        turn: Any = ffi.NULL,
        kept: object = None,
    ) -> None:
        """Make the C struct, for all thresholds; ``turn`` points into buffers of ``kept``."""
        # padded to whole lanes with weights 0
        more = -t.size % LANES
        frequency = np.concatenate([t, np.full(more, t[-1])])
        real, imag = (np.pad(x, ((0, 0), (0, more))) for x in (weight.real, weight.imag))
        core = {
            "tilt": self.tilt,
            "log_error": self._log_error,
            "off_centre": self._off_centre,
            "log_mean": _pair(self._log_mean),
            "centre": _pair(self._centre),
            "angle_unit": ANGLE_ERROR,
            "threshold_unit": 4.0 * EXTENDED,
            "exponent_unit": 4.0 * EXTENDED,
            "log_unit": UNIT,
            "pole_unit": 16.0 * UNIT,
            "error": errors.same.tolist(),
            "per_distance": errors.per_distance.tolist(),
            "far": (2.0 * t.size * UNIT * fn.modulus(weight).sum(axis=1)).tolist(),
            "left": errors.left.tolist(),
            "removed": self.removed,
            "poles": [[*of, *[NO_POLE] * (2 - len(of))] for of in poles],
            "sides": sides,
            "size": frequency.size,
            "frequency": array(frequency),
            "real": array(real.reshape(-1)),
            "imag": array(imag.reshape(-1)),
            "turn": turn,
        }
        self.core = ffi.new("pe_loss_line *", core), (core, frequency, real, imag, kept)

    def add_panels(self, panels: int) -> None:
        """Extend the rays of a deformed line to at least so many panels."""
        raise NotImplementedError

    def log_scale(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K(λ) - λ c as doubles, and bounds of the absolute errors."""
        log, error = np.empty((2, c.size))
        room = array(log, writable=True), array(error, writable=True)
        lib.pe_loss_line_scale(self.core[0], c.size, array(c), *room)
        return log, error

    def at(self, c: FloatArray, kernels: slice = ALL) -> tuple[FloatArray, FloatArray]:
        """I(c)/e^(K(λ) - λ c), of shape (kernels, thresholds), and bounds of absolute errors."""
        value, error = np.empty((2, len(POLES[kernels]), c.size))
        room = array(value.reshape(-1), writable=True), array(error.reshape(-1), writable=True)
        asked = c.size, array(c), kernels.start or 0, len(value), lib.PE_RELATIVE, *room
        while panels := lib.pe_loss_line_at(self.core[0], self._room(), *asked):
            self.add_panels(panels)
        return value, error

    def _room(self) -> Any:
        """A work array of the core for the distances of atoms from c; none on straight lines."""
        return ffi.NULL


def _pair(x: Wide) -> tuple[float, float]:
    return float(x.high), float(x.low)


# Map: many Laplace steps on vertical lines | test_laplace_lines | theory/line
class LossLine(TiltedSum):
    """One vertical line for a sum of steps, with equally spaced nodes.

    Parameters
    ----------
    steps, tilt : list of (TiltedStep, int), float
        As of `TiltedSum`.
    spacing : float
        h, the distance of nodes; of few binary digits, so that its multiples are exact.
    count : int
        Number of nodes above the real axis.
    sides : pair of Side
        Tilts below and above λ, for the bounds of aliases.

    Attributes
    ----------
    removed : pair of float
        Bounds of the masses that A and B lack of 1.
    """

    def __init__(
        self, steps: Steps, tilt: float, spacing: float, count: int, sides: tuple[Side, Side]
    ) -> None:
        super().__init__(steps, tilt)
        self._sides, self._period = sides, 2.0 * math.pi / spacing
        self._ends_at = [_mass_at_ends(steps, pole) for pole in (0.0, 1.0)]
        # logs of A's and B's masses of finite losses: the residues at 0 and 1
        self._log_masses = [
            sum(n * step.shape.log_masses[law] for step, n in steps) for law in (0, 1)
        ]
        of_a, of_b = (sum(n * step.removed[law] for step, n in steps) * SLACK for law in (0, 1))
        self.removed = float(of_a), float(of_b)
        frequency = spacing * np.arange(count + 1.0)
        self._weights(steps, spacing, frequency, *composed(steps, frequency, spacing))

    def _weights(
        self,
        steps: Steps,
        spacing: float,
        t: FloatArray,
        value: npt.NDArray[np.complex128],
        error: FloatArray,
        last: FloatArray,
    ) -> None:
        """Weights of the nodes for each kernel, and the errors that hold for all thresholds.

        ``value``, ``error`` and ``last`` are those of `composed` at the nodes ``t``.
        """
        tilt = self.tilt
        s = tilt + 1j * t
        share = np.where(t > 0.0, 2.0, 1.0) * spacing / (2.0 * math.pi)
        kernels = np.array([share / s, share / (s - 1.0), share / (s * (s - 1.0))])
        weight = value * kernels
        moduli, sums = fn.modulus(weight), fn.modulus(kernels)
        rounding = (moduli * chain_error(t.size) + sums * error).sum(axis=1)
        # tilted mass on atoms of all steps at once: not in the sum's law but in its nodes (Lemma 7)
        at_ends = fn.exp(sum(n * fn.log(max(step.at_ends, TINY)) for step, n in steps))
        apart = abs(tilt), abs(tilt - 1.0)
        both = max(*apart, float(t[-1]))
        heaviest = np.array(
            [1.0, 1.0, 1.0 / (1.0 + min(apart)) if tilt < 0.0 or tilt > 1.0 else 1.0]
        )
        ends = at_ends * (heaviest + sums.sum(axis=1))
        # truncation after the last node (Lemma 7)
        log, tails, whole = 0.0, 0.0, math.inf
        for (step, number), modulus in zip(steps, last, strict=True):
            beyond = max(min(step.largest_from(t[-1:], float(modulus)), 1.0), TINY)
            log += number * fn.log(beyond)
            tail = step.tail(float(t[-1])) / beyond
            tails += number * tail
            # a kind without atoms bounds the integral of the product alone
            if step.at_ends == 0.0:
                whole = min(whole, tail)
        rest = fn.exp(log) * min(tails, whole) / math.pi
        beyond_all = rest * np.array([1.0, 1.0, 1.0 / both])
        same = (rounding + ends + beyond_all) * (1.0 + 1e-9)
        self._is_known = not bool(np.isnan(same).any())
        # first alias of each side, e^fall, and the geometric series of all, over 1 - e^fall
        falls = [-abs(side.tilt - tilt) * self._period for side in self._sides]
        sides = [
            CoreSide(*side, fall, -fn.expm1(fall))
            for side, fall in zip(self._sides, falls, strict=True)
        ]
        aliases = np.full(KERNELS, 1.0 + 1e-6)
        errors = KernelErrors(same, (moduli * t).sum(axis=1), aliases)
        self._set_core(t, weight, errors, sides, self._poles())

    @property
    def is_known(self) -> bool:
        """Whether all errors that hold for all thresholds are finite."""
        return math.isfinite(self._log_error) and self._is_known

    def _poles(self) -> list[list[CrossedPole]]:
        """Aliases of the poles between both sides, for each kernel (Lemma 4)."""
        below, above = self._sides
        found: list[list[CrossedPole]] = []
        for poles in POLES:
            found.append([])
            for pole, residue in poles:
                if below.tilt < pole < above.tilt:
                    apart = self.tilt - pole
                    fall = abs(apart) * self._period
                    log_mass = self._log_masses[int(pole)]
                    constant = -float(self._log_mean) - fall - fn.log(-fn.expm1(-fall))
                    constant += log_mass
                    known = self._ends_at[int(pole)] * fn.exp(-log_mass) + self._log_error
                    known += 4.0 * ELEMENTARY * UNIT * (1.0 - log_mass)
                    known += 8.0 * UNIT * (1.0 + abs(float(self._log_mean)) + fall)
                    sign = math.copysign(residue, apart * residue)
                    found[-1].append(CrossedPole(sign, apart, constant, known))
        return found


def _mass_at_ends(steps: Steps, pole: float) -> float:
    """Bound of A's (pole 0) or B's (1) mass that is removed or on atoms of all steps at once."""
    log, lacking = 0.0, 0.0
    for step, number in steps:
        log += number * fn.log(min(max(step.mass_at_ends(pole), TINY) * (1.0 + 1e-12), 1.0))
        lacking += number * step.removed[int(pole)]
    return (fn.exp(log) + lacking) * (1.0 + 1e-9)
