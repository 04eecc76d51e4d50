"""The law of the loss of one epoch of random allocation, tabulated.

Without the record x ~ Q = N(0, σ²Iₜ), with it x ~ P, the mean of the t normal laws N(eᵢ, σ²Iₜ), so
L = log dP/dQ = log(S/t) with a sum S of t independent lognormal variables.  The C core computes its
density by doubling (docs/estimates).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine._support.status import finished
from pyengine.errors import AccuracyError
from pyengine.laws.base import EnclosedLaw, Enclosing, TabulatedLaw
from pyengine.laws.epoch_bounds import epoch_bounds
from pyengine.laws.normals import LossNodes
from pyengine.laws.state_bounds import state_bounds
from pyengine.numerics import functions as fn

__all__ = ["AllocatedLaw", "PairedLaw"]

FloatArray = npt.NDArray[np.float64]

LEAST_NOISE, MOST_STEPS = 0.1, 2**24  # domain on which the error estimates were measured
LEAST_ENCLOSED = 0.15  # with less noise, masses of the enclosing laws underflow
# Nodes of the enclosing laws, and the smallest tolerance that they serve; each row takes four times
# as long as the one before.
NODES = ((2**13, 1e-3), (2**14, 2e-4), (2**15, 0.0))
STATES = 2**12, 2**14  # the same for a record in two steps: for tolerances from 0.1 on, and below


@dataclass(frozen=True)
class AllocatedLaw(EnclosedLaw):
    """The pair (Q, P) of one epoch; see `pyengine.GaussianMechanism.randomly_allocated`.

    Parameters
    ----------
    noise : float
        Noise multiplier σ >= 0.1.
    steps : int
        Number t of steps, 2 <= t <= 2²⁴.
    low : float
        The noise multiplier minus its double ``noise``.
    """

    noise: float
    steps: int
    low: float = 0.0

    @property
    def is_feasible(self) -> bool:
        """Whether noise and steps lie in the domain of the table."""
        return self.noise >= LEAST_NOISE and 2 <= self.steps <= MOST_STEPS

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Two laws with proven errors.

        Raises
        ------
        AccuracyError
            Outside of the domain.
        """
        if self.noise < LEAST_ENCLOSED or self.steps > MOST_STEPS:
            raise AccuracyError(
                f"random allocation is enclosed for noise_multiplier >= {LEAST_ENCLOSED} and up to "
                f"{MOST_STEPS} steps an epoch, got {self.noise:g} and {self.steps}; "
                "method='reference' may answer"
            )
        nodes = next(n for n, width in NODES if tolerance is None or width <= tolerance)
        return _enclosed(self, nodes)

    def tabulated(self) -> tuple[TabulatedLaw, bool] | None:
        """Itself, if it is in the domain of the table."""
        return (self, False) if self.is_feasible else None

    def table(self, epochs: int = 1) -> Any:
        """Return the density and both tail masses of a summed loss, as an object of the C core.

        Parameters
        ----------
        epochs : int
            Number of epochs, >= 1, whose losses are added up.

        Raises
        ------
        AccuracyError
            Outside of the domain, and where the density cannot be resolved.
        """
        if not self.is_feasible:
            raise AccuracyError(
                f"random allocation is tabulated for noise_multiplier >= {LEAST_NOISE} and 2 to "
                f"{MOST_STEPS} steps an epoch, got {self.noise:g} and {self.steps}; "
                "method='reference' may answer"
            )
        return _table(self, epochs)

    def support(self) -> tuple[float, float]:
        """Losses beyond which both laws have less mass than e^-760."""
        out = ffi.new("double[4]")
        lib.pe_epoch_ends(self.table(), out)
        return out[0], out[1]

    def limits(self) -> tuple[float, float]:
        """All real numbers are losses."""
        return -math.inf, math.inf

    def log_density(self, loss: npt.ArrayLike) -> FloatArray:
        """Return the log of the density of L under Q; -inf outside of the support.

        Parameters
        ----------
        loss : array_like
            Losses.  The density under P is e^L times that under Q.

        Returns
        -------
        ndarray
            Of the shape of ``loss``; an estimate, see docs/estimates for its accuracy.
        """
        x = np.ascontiguousarray(loss, dtype=np.float64)
        found = np.empty(x.shape)
        lib.pe_epoch_log_density(
            self.table(),
            x.size,
            ffi.from_buffer("double[]", x),
            ffi.from_buffer("double[]", found, require_writable=True),
        )
        return found

    def nodes(self, number: int) -> LossNodes | None:
        """Return a discrete measure with the moment generating function of L under Q.

        Parameters
        ----------
        number : int
            Number of epochs >= 1 that are composed.  The transform of few epochs falls late, so
            their nodes have to serve larger arguments.

        Returns
        -------
        LossNodes or None
            Losses are increasing and equally spaced.  None outside of the domain, and if more than
            `MOST_NODES` would be needed.

        Notes
        -----
        The sum over a lattice of spacing h is the sum of the generating function at λ + 2πik/h over
        all k (Poisson's summation formula).  The spacing is the widest one tried at which the nodes
        between those kept give the same sums, for tilts that move the law to points of many depths
        on either side, and up to a multiple of the argument at which the function has fallen to
        e^-`FALL` of its value on the real line.
        """
        return _nodes(self, number < FEW) if self.is_feasible else None


@dataclass(frozen=True)
class PairedLaw(EnclosedLaw):
    """The pair (Q, P) of one epoch with each record in two of its steps, enclosed by two others.

    Parameters
    ----------
    noise : float
        Noise multiplier.
    steps : int
        Number t of steps, >= 3.
    """

    noise: float
    steps: int

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Two laws with proven errors.

        Raises
        ------
        AccuracyError
            Outside of the domain.
        """
        if self.noise < LEAST_ENCLOSED or self.steps > MOST_STEPS:
            raise AccuracyError(
                "an epoch with each record in two steps is enclosed for noise_multiplier >= "
                f"{LEAST_ENCLOSED} and up to {MOST_STEPS} steps, got {self.noise:g} and "
                f"{self.steps}; method='blocks' bounds it from above"
            )
        few, many = STATES
        if tolerance is None:  # a second or two
            return _paired(self, 2 * few if self.steps <= 64 else few)
        return _paired(self, few if tolerance >= 0.1 else many)

    def support(self) -> tuple[float, float]:
        """All real numbers."""
        return -math.inf, math.inf


# -log of the relative density at the losses to which tilts move the law
DEPTHS = (0.0, 5.0, 15.0, 40.0, 100.0, 200.0, 350.0, 500.0, 650.0)
NEGLIGIBLE = 60.0  # -log of a weight, relative to the largest, that is left out
ALIASES = 1e-14  # largest alias, relative to the value on the real line
FEW = 4  # fewer epochs count as few
# -log of a transform that has fallen, and the factor by which nodes serve beyond that argument; for
# few epochs (True) and many
FALL = {True: 30.0, False: 24.0}
ROOM = {True: 24.0, False: 1.6}
MOST_NODES = 2**20


@kept(32)
def _nodes(law: AllocatedLaw, is_few: bool) -> LossNodes | None:
    first, last = law.support()
    tilts = _tilts(law)
    count, t_max = 128, 0.0
    while count <= MOST_NODES:
        loss: FloatArray = np.linspace(first, last, count + 1)
        log_weight = law.log_density(loss) + fn.log((last - first) / count)
        if not _agree(_tilted(loss, log_weight, tilts[:1]), 0.0):
            count *= 2  # too coarse for the law itself
            continue
        laws = _tilted(loss, log_weight, tilts)
        highest = 0.5 * math.pi * count / (last - first)  # π over the spacing of the nodes kept
        if t_max == 0.0 and _agree(laws, 0.0):
            t_max = _reach(laws, highest, is_few)
        if 0.0 < t_max <= highest and _agree(laws, t_max):
            return LossNodes(loss[::2], log_weight[::2] + fn.log(2.0), t_max)
        count *= 2
    return None


def _tilts(law: AllocatedLaw) -> FloatArray:
    """Tilts s for which e^{sL} f peaks where f has fallen by e^-DEPTHS, on either side."""
    first, last = law.support()
    loss = np.linspace(first, last, 4097)[1:-1]
    # finer at the bulk, which may be a small part of the support
    loss = np.unique(np.concatenate([loss, *(loss * 0.5**k for k in range(2, 12, 2))]))
    density = law.log_density(loss)
    slope = np.diff(density) / np.diff(loss)
    peak = int(np.argmax(density))
    tilts = []
    for depth in DEPTHS:
        falls = density < density[peak] - depth
        left = np.flatnonzero(falls[: peak + 1])
        right = np.flatnonzero(falls[peak:])
        if left.size:
            tilts.append(-slope[left[-1]])
        if right.size:
            tilts.append(-slope[min(peak + right[0], slope.size - 1)])
    # without tilts whose laws reach the end of the table
    inside = [s for s in tilts if _is_inside(density + s * loss)]
    return np.array([0.0, 1.0, *inside])


def _is_inside(tilted: FloatArray) -> bool:
    return float(max(tilted[0], tilted[-1])) < float(tilted.max()) - 40.0


class _TiltedNodes(NamedTuple):
    """Nodes of a tilted law whose weights matter; the first has an even index."""

    loss: FloatArray
    weight: FloatArray  # of sum 1
    noise: float  # relative error of the weights from rounding of their logs


def _tilted(loss: FloatArray, log_weight: FloatArray, tilts: FloatArray) -> list[_TiltedNodes]:
    found = []
    for tilt in tilts:
        exponent = log_weight + tilt * loss
        top = int(np.argmax(exponent))
        live = np.flatnonzero(exponent > exponent[top] - NEGLIGIBLE)
        part = slice(live[0] // 2 * 2, live[-1] + 1)
        weight = fn.exp(exponent[part] - exponent[top])
        noise = 4e-16 * (abs(log_weight[top]) + abs(tilt * loss[top]))
        found.append(_TiltedNodes(loss[part], weight / weight.sum(), noise))
    return found


def _agree(laws: list[_TiltedNodes], t: float) -> bool:
    """Whether even and odd nodes have the same transform at argument t, for all tilted laws."""
    for law in laws:
        signed = law.weight.copy()
        signed[1::2] *= -1.0
        if abs(_transform(signed, law.loss, t)) > ALIASES + law.noise:
            return False
    return True


def _reach(laws: list[_TiltedNodes], most: float, is_few: bool) -> float:
    """`ROOM` times an argument at which all tilted transforms have fallen; 0 if none is found."""
    t, fall = most / 64.0, fn.exp(-FALL[is_few])
    slow = 0  # index of the law that had not fallen last, which is tried first
    while t < most:
        order = (*laws[slow:], *laws[:slow])
        standing = next(
            (i for i, law in enumerate(order) if not _has_fallen(law, t, fall)), len(order)
        )
        if standing == len(order):
            return ROOM[is_few] * t
        slow = (slow + standing) % len(laws)
        t *= 1.25
    return 0.0


def _has_fallen(law: _TiltedNodes, t: float, fall: float) -> bool:
    return abs(_transform(law.weight, law.loss, t)) < fall + law.noise


def _transform(weight: FloatArray, loss: FloatArray, t: float) -> complex:
    if t == 0.0:
        return complex(weight.sum())
    angle = t * loss
    return complex((weight * fn.cos(angle)).sum(), (weight * fn.sin(angle)).sum())


@kept(32)
def _enclosed(law: AllocatedLaw, nodes: int) -> Enclosing:
    return epoch_bounds(law.noise, law.steps, nodes)


@kept(32)
def _paired(law: PairedLaw, nodes: int) -> Enclosing:
    # with many steps, the single steps of a group say little beyond their sum
    shares = max(8, round(20.0 / math.sqrt(max(1.0, law.steps / 40.0))))
    return state_bounds(law.noise, law.steps, nodes // shares, shares)


@kept(64, lib.pe_epoch_bytes)
def _table(law: AllocatedLaw, epochs: int) -> Any:
    out = ffi.new("pe_epoch **")
    status = lib.pe_epoch_new(law.noise, float(law.steps), float(epochs), out)
    table = ffi.gc(out[0], lib.pe_epoch_free)
    if not finished(status, "the law of an epoch"):
        raise AccuracyError(
            "the density of the loss of one epoch of random allocation could not be resolved for "
            f"noise_multiplier={law.noise:g} and {law.steps} steps; method='reference' may answer"
        )
    return table
