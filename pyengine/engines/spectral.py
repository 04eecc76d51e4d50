"""Spectral engine: inversion of the moment generating function of the composed loss.

The contours are vertical lines near the saddle point; period, node spacings and windows follow from
bounds (docs/estimates).  All work is done in C; this file wraps the handle.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine._support.status import finished
from pyengine.engines.functionals import ROW, FloatArray, array, call_kernel
from pyengine.engines.pairs import GaussianPair
from pyengine.numerics.exact_numbers import in_two_doubles

if TYPE_CHECKING:
    from pyengine.laws.normals import Alternatives, ExactAlternatives, LossNodes

__all__ = ["SOON", "THOROUGH", "KeptLines", "Spectral"]

# which lines are used: all, or only those that take little work
THOROUGH: int = lib.PE_THOROUGH
SOON: int = lib.PE_SOON

HANDLE = ffi.typeof("pe_pair **")
KEPT_BYTES = 4096  # memory of an engine without contours
COST_LIMIT = 3e7  # node evaluations of one contour: about 0.1 s


class Spectral:
    """Spectral engine on one pair; its contours are kept for later questions.

    Besides plain and sampled Gaussian steps there may be steps whose sides are mixtures of normals,
    and steps given by nodes; proofs need the exact numbers of the mixtures.  `handle` is the pair
    of the C core; calls on it must hold `lock`.
    """

    name = "spectral"

    def __init__(
        self,
        pair: GaussianPair,
        others: tuple[tuple[Alternatives, int], ...] = (),
        exact: tuple[ExactAlternatives | None, ...] = (),
        nodes: tuple[tuple[LossNodes, int], ...] = (),
    ) -> None:
        noise, probability, steps, is_reversed = pair
        out = ffi.new(HANDLE)
        status = lib.pe_pair_new(
            len(steps), noise, probability, steps, is_reversed, COST_LIMIT, out
        )
        self.handle = self._pair = ffi.gc(out[0], lib.pe_pair_free)
        finished(status, "the spectral engine")
        for (other, number), proof in zip(others, exact or (None,) * len(others), strict=True):
            self._add_mixtures(other, number, proof)
        for table, number in nodes:
            self._add_nodes(table, number)
        self.lock = allocate_lock()
        self._bytes = 0

    def _add_nodes(self, nodes: LossNodes, number: int) -> None:
        """Add steps of a law given by nodes."""
        loss, log_weight = (np.ascontiguousarray(x) for x in (nodes.loss, nodes.log_weight))
        status = lib.pe_pair_add_table(
            self._pair, float(number), loss.size, array(loss), array(log_weight), nodes.t_max
        )
        finished(status, "the spectral engine")

    def _add_mixtures(
        self, pairs: Alternatives, number: int, exact: ExactAlternatives | None
    ) -> None:
        """Add steps whose sides are mixtures of normals."""
        terms, numbers = (ffi.NULL, ffi.NULL) if exact is None else _exact_numbers(exact)
        sides = [side for pair in pairs for side in (pair.a, pair.b)]
        status = lib.pe_pair_add_mixtures(
            self._pair,
            float(number),
            len(pairs),
            [pair.log_share for pair in pairs],
            [len(side.shifts) for side in sides],
            [shift for side in sides for shift in side.shifts],
            [weight for side in sides for weight in side.weights],
            terms,
            numbers,
        )
        finished(status, "the spectral engine")

    def bytes(self) -> int:
        """Memory of the kept contours, in bytes; the previous value while the engine is busy."""
        if self.lock.acquire(False):
            try:
                self._bytes = int(lib.pe_pair_bytes(self._pair))
            finally:
                self.lock.release()
        return self._bytes

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        with self.lock:
            return call_kernel(lib.pe_pair_at, c, self._pair, functional)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds at which the log of a functional has given values."""
        with self.lock:
            return call_kernel(lib.pe_pair_solve, log_target, self._pair, functional)

    def certify(self, functional: int, c: FloatArray, *, lines: int = THOROUGH) -> FloatArray:
        """Rows at thresholds of the loss with proven errors; NaN where the proof does not apply.

        Where the nearest line does not prove enough, further ``lines`` take 0.1 ms to 0.1 s each.
        """
        with self.lock:
            return call_kernel(lib.pe_pair_certify, c, self._pair, functional, lines)

    def certify_divided(self, functional: int, c: FloatArray, at_hand: FloatArray) -> FloatArray:
        """The rows ``at_hand``, improved by divided laws (about 0.1 s) where these are closer."""
        rows = np.array(at_hand, order="C")
        places, found = np.ascontiguousarray(c), array(rows.reshape(-1), writable=True)
        with self.lock:
            divided = lib.pe_pair_certify_divided
            status = divided(self._pair, functional, c.size, array(places), found)
        finished(status, "an answer of the C core")
        return rows

    def chernoff(self, c: FloatArray) -> FloatArray:
        """Rows of Chernoff's bounds at thresholds of the loss, in very little time."""
        with self.lock:
            return call_kernel(lib.pe_pair_chernoff, c, self._pair)

    def certified_solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """As `solve`, with proven errors, and thresholds found from proven rows."""
        with self.lock:
            return call_kernel(lib.pe_pair_certified_solve, log_target, self._pair, functional)

    def certified_threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds of `certified_solve`; NaN where there is none."""
        return np.asarray(self.certified_solve(functional, log_target)[:, 0])

    def certify_beyond(
        self, functional: int, log_target: FloatArray, slack: float, *, lines: int = THOROUGH
    ) -> FloatArray:
        """Rows with proven errors just beyond the thresholds of given values of a log functional.

        There the functional, its bounds widened by ``slack``, is below the given value, or above it
        for `A_BELOW`; NaN where the nearest line does not prove enough.
        """
        given = self._pair, functional, slack, lines
        with self.lock:
            return call_kernel(lib.pe_pair_certify_beyond, log_target, *given)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`."""
        row = ffi.new(ROW)
        kernel = lib.pe_pair_solve if by_value else lib.pe_pair_at
        with self.lock:
            status = kernel(self._pair, functional, 1, (x,), row)
        finished(status, "a contour of the spectral engine")
        return row


def _exact_numbers(pairs: ExactAlternatives) -> tuple[list[int], list[float]]:
    """Numbers of shifts, and the exact numbers as sums of two doubles, for proofs in the C core."""
    numbers: list[float] = []
    for pair in pairs:
        numbers += in_two_doubles(pair.share)
        for shift in sorted(pair.terms):
            for number in (shift, *pair.terms[shift]):
                numbers += in_two_doubles(number)
    return [len(pair.terms) for pair in pairs], numbers


class KeptLines:
    """A spectral engine, and a memo of results shared by several questions, as cached."""

    def __init__(self, spectral: Spectral) -> None:
        self.spectral = spectral
        self.memo: dict[Any, Any] = {}

    def bytes(self) -> int:
        """Memory of both, in bytes."""
        total = KEPT_BYTES + self.spectral.bytes()
        if self.memo:  # most have none
            kept = (found.bytes() for found in self.memo.values() if hasattr(found, "bytes"))
            total += int(sum(kept))
        return total
