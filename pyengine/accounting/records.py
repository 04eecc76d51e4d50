"""Individual accounting: the privacy loss of each record of a data set from its gradient norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.accounting.norm_laws import BITS, DEGREE, OCTAVES, ROWS, basis
from pyengine.accounting.norm_sums import Asked, Sums, solved
from pyengine.api import Bounds

__all__ = ["IndividualLosses", "individual"]

FloatArray = npt.NDArray[np.float64]

ADJACENCIES = ("add", "remove", "add_remove")
TOLERANCE = 5e-3
LEAST = 1e-30  # smallest δ and κ
MOST_KINDS = 256  # most pairs of noise and rate


@dataclass(frozen=True, eq=False)
class IndividualLosses:
    """Proven bounds of the privacy of each single record; made by `individual`.

    Parameters
    ----------
    adjacency : {"add", "remove", "add_remove"}
        The neighbours.
    sums : tuple of Sums
        Summary of all norms, one for each pair of noise and rate: sums of polynomials.
    steps : int
        Number of steps.
    """

    adjacency: str
    sums: tuple[Sums, ...] = field(repr=False)
    steps: int

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.sums[0].below.size)

    @property
    def label(self) -> str:
        """The run and its neighbours in words."""
        rows = ((written(each.noise), written(each.rate)) for each in self.sums)
        kinds = ", ".join(f"noise multiplier {noise} at rate {rate}" for noise, rate in rows)
        return (
            f"DP-SGD, {self.steps:,} steps, {kinds}, Poisson samples, {self.adjacency} neighbours; "
            f"each of {self.records:,} records for itself, from its own gradient norms, which are "
            "taken as fixed beforehand; these values depend on the data and are not private"
        )

    def __str__(self) -> str:
        return self.label

    def epsilon(self, delta: float, *, tolerance: float = TOLERANCE) -> Bounds:
        """ε of each record at one δ.

        Any quantile of the true values lies between the same quantiles of the lower and of the
        upper bounds.

        Parameters
        ----------
        delta : float
            δ in [1e-30, 1).
        tolerance : float
            Aimed width of the bounds, at least 1e-4, relative to ε or to a hundredth of the largest
            ε.  If a few steps with large norms dominate, the bounds are wider.

        Returns
        -------
        Bounds
            Arrays ``lower``, ``value`` and ``upper`` of shape (records,): proven bounds of the true
            ε, and an estimate between them.

        Raises
        ------
        ValueError
            For an argument outside its domain.
        """
        return self._solved(Asked("epsilon", _inside("delta", delta)), tolerance)

    def gamma_bound(self, kappa: float, *, tolerance: float = TOLERANCE) -> Bounds:
        """γ of each record, the reconstruction bound at one baseline success probability κ.

        Parameters
        ----------
        kappa : float
            κ in [1e-30, 1).
        tolerance : float
            Aimed width of the bounds, relative to γ - κ or to a hundredth of the largest one.

        Returns
        -------
        Bounds
            Arrays of shape (records,), as of `epsilon`.

        Raises
        ------
        ValueError
            For an argument outside its domain.
        """
        return self._solved(Asked("gamma", _inside("kappa", kappa)), tolerance)

    def above(
        self, epsilon: float, delta: float, *, tolerance: float = TOLERANCE
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which records have an ε above a threshold at one δ, and which do not.

        Parameters
        ----------
        epsilon : float
            The threshold, in [0, ∞).
        delta, tolerance : float
            As of `epsilon`.

        Returns
        -------
        tuple of two ndarrays of bool
            Shape (records,).  The first is True for records whose ε is proven to be larger, the
            second for those whose ε is proven not to be; both are False for undecided records.
        """
        target = float(checks.non_negative("epsilon", epsilon))
        found = self.epsilon(delta, tolerance=tolerance)
        return np.asarray(found.lower > target), np.asarray(found.upper <= target)

    def _solved(self, question: Asked, tolerance: float) -> Bounds:
        orders = ("add", "remove") if self.adjacency == "add_remove" else (self.adjacency,)
        if question.name == "gamma" and len(orders) == 1:  # the conjugate of T(A, B) is H(B‖A)
            orders = ("remove",) if orders == ("add",) else ("add",)
        width = float(checks.positive("tolerance", tolerance))
        return Bounds(*solved(self.sums, question, orders, max(width, 1e-4)))


def individual(
    norms: npt.ArrayLike | Iterable[npt.ArrayLike],
    *,
    noise_multiplier: float | npt.ArrayLike,
    rate: float | npt.ArrayLike,
    clip_norm: float = 1.0,
    steps: int | npt.ArrayLike = 1,
    adjacency: str = "add_remove",
    progress: Callable[[int], object] | None = None,
) -> IndividualLosses:
    """The privacy loss of each record of a data set in DP-SGD, from its own gradient norms.

    Parameters
    ----------
    norms : array_like of shape (records, columns), or iterable of such arrays
        Gradient norms >= 0; a column is one step, or ``steps`` with the same norms.  The arrays of
        an iterable are for the same records and follow each other in time; only one at a time is in
        memory.
    noise_multiplier : float or array_like of shape (columns,)
        Standard deviation of the noise, divided by ``clip_norm``; > 0.
    rate : float or array_like of shape (columns,)
        Probability that a record is in a batch, in (0, 1].
    clip_norm : float
        Clipping norm: larger gradient norms count as ``clip_norm``.
    steps : int or array_like of shape (columns,)
        Number of steps with the norms of a column, such as the steps of an epoch.
    adjacency : {"add", "remove", "add_remove"}
        The neighbours.
    progress : callable, optional
        Called after each block with the number of columns done so far.

    Returns
    -------
    IndividualLosses
        Its ``epsilon(delta)`` and ``gamma_bound(kappa)`` give proven bounds for each record.

    Raises
    ------
    ValueError
        For an argument outside its domain, or more than 256 pairs of noise and rate.

    Notes
    -----
    The guarantee of a record holds if the sequence of its norms is fixed beforehand.  In a real run
    the norms depend on earlier releases; `Filter` is proven for that case.  The values depend on
    the data: they must not be published without noise (docs, theory/individual).  Memory: 3.5 KB
    for each record and pair of noise and rate.

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> norms = np.array([[1.0] * 100, [0.25] * 100])
    >>> found = pe.individual(norms, noise_multiplier=1.0, rate=0.1, steps=10)
    >>> print(np.round(found.epsilon(1e-5).upper, 1))
    [25.2  3.5]
    """
    clip = float(checks.positive("clip_norm", clip_norm))
    order = checks.choice("adjacency", adjacency, ADJACENCIES)
    noises, rates, times = _columns(noise_multiplier, rate, steps)
    sums: dict[tuple[float, float], Sums] = {}
    done, records, total = 0, -1, 0
    for block in _blocks(norms):
        if records >= 0 and block.shape[0] != records:
            raise ValueError(
                f"norms must have the same records in all blocks, got {records} and "
                f"{block.shape[0]}"
            )
        records, width = block.shape
        part = [
            _part(name, values, done, width)
            for name, values in (("noise_multiplier", noises), ("rate", rates), ("steps", times))
        ]
        total += int(part[2].sum())
        for noise, p in sorted(set(zip(part[0].tolist(), part[1].tolist(), strict=True))):
            if (noise, p) not in sums:
                if len(sums) == MOST_KINDS:
                    raise ValueError(
                        f"noise_multiplier and rate must have at most {MOST_KINDS} pairs of values"
                    )
                sums[noise, p] = Sums.empty(noise, p, records)
            chosen = (part[0] == noise) & (part[1] == p)
            _add(sums[noise, p], block if chosen.all() else block[:, chosen], clip, part[2][chosen])
        done += width
        if progress is not None:
            progress(done)
    if records < 1 or not sums:
        raise ValueError("norms must have at least one record and one column, got none")
    for name, values in (("noise_multiplier", noises), ("rate", rates), ("steps", times)):
        if values.ndim and values.size != done:
            raise ValueError(
                f"{name} must have one entry for each of {done} columns of norms, got {values.size}"
            )
    return IndividualLosses(order, tuple(sums.values()), total)


def _inside(name: str, value: float) -> float:
    number = checks.real(name, value)
    if not LEAST <= number < 1.0:
        raise ValueError(f"{name} must be in [{LEAST:g}, 1), got {checks.shown(value)}")
    return number


def _columns(noise: Any, rate: Any, steps: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    found = []
    for name, values, low, high in (
        ("noise_multiplier", noise, 0.0, math.inf),
        ("rate", rate, 0.0, 1.0),
        ("steps", steps, 0.0, 2.0**53),
    ):
        array = np.asarray(checks.real_array(name, values, low, high))
        if array.ndim > 1:
            raise ValueError(
                f"{name} must be a number or one for each column, got {array.ndim} dimensions"
            )
        if name != "steps" and not ((array > 0.0) & np.isfinite(array)).all():
            raise ValueError(f"{name} must be finite and > 0, got {checks.shown(values)}")
        if name == "steps" and not (array == np.floor(array)).all():
            raise ValueError(f"steps must be integers, got {checks.shown(values)}")
        found.append(array)
    return found[0], found[1], found[2]


def _part(name: str, values: FloatArray, start: int, width: int) -> FloatArray:
    if not values.ndim:
        return np.full(width, float(values))
    if values.size < start + width:
        raise ValueError(f"{name} must have one entry for each column of norms, got {values.size}")
    return values[start : start + width]


def _blocks(norms: Any) -> Iterator[FloatArray]:
    """Blocks of norms of shape (records, columns), checked."""
    if isinstance(norms, np.ndarray) or hasattr(norms, "__array__"):
        norms = [norms]
    elif isinstance(norms, (list, tuple)):
        try:
            whole = np.asarray(norms, dtype=np.float64)
        except ValueError:  # blocks of several widths
            whole = np.empty(0)
        if whole.ndim == 2 or (whole.ndim == 1 and whole.size):
            norms = [whole]
    if not isinstance(norms, Iterable):
        raise ValueError(f"norms must be an array or blocks of one, got {checks.shown(norms)}")
    for given in norms:
        try:
            block = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"norms must be numbers, got {checks.shown(given)}") from None
        if block.ndim != 2:
            raise ValueError(
                f"norms must be of shape (records, columns), got {block.ndim} dimensions"
            )
        if not (block >= 0.0).all() or np.isinf(block).any():
            raise ValueError("norms must be finite and >= 0")
        yield block


def _add(sums: Sums, block: FloatArray, clip: float, times: FloatArray) -> None:
    """Add the norms of a block, of shape (records, columns), to the sums; in the C core."""
    grid = ffi.new("pe_norm_grid *", (OCTAVES, BITS, ROWS, DEGREE))
    given = [np.ascontiguousarray(array, dtype=np.float64) for array in (block, times, basis())]
    norms, counts, rows = (ffi.from_buffer("double[]", array) for array in given)
    moments, count, below = (
        ffi.from_buffer("double[]", array, require_writable=True)
        for array in (sums.moments, sums.count, sums.below)
    )
    records, columns = block.shape
    lib.pe_norm_moments(grid, records, columns, norms, clip, counts, rows, moments, count, below)
