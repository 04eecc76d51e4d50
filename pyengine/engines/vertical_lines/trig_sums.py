"""Sums of cosines and sines over the nodes of a line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.functionals import array
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ANGLE_ERROR", "TrigSums", "chain_error"]

FloatArray = npt.NDArray[np.float64]

LANES, SUMS = 8, ffi.typeof("double[3]")
FARTHEST = 1e8  # angles that the kernel takes in lanes
# of a distance from a threshold: what rounding it, its product with a frequency and the kernel's
# reduction of the angle move a term by, in parts of the angle
ANGLE_ERROR = 8.0 * UNIT


def chain_error(size: int) -> float:
    """Bound on the errors of `TrigSums` of so many nodes, in parts of their moduli.

    Both parts of a product are at most √2 times its modulus together; each of `LANES` sums adds up
    to 8 nodes, and what additions of those sums round off but for its own rounding;
    `TrigSums.far_errors` are beside that.
    """
    return (40.0 + size * size * UNIT) * UNIT


class TrigSums:
    """Sums over j of the real part of weight[k, j] e^(-i z t_j), for each kind k.

    Parameters
    ----------
    frequency : ndarray of shape (n,)
        The t_j, from 0 on, rising.
    weight : ndarray of shape (kinds, n)
        The weights.
    """

    def __init__(self, frequency: FloatArray, weight: npt.NDArray[np.complex128]) -> None:
        kinds, size = weight.shape
        self._size = -(-size // LANES) * LANES
        # whole lanes: what is added weighs nothing
        at = np.concatenate([frequency, np.full(self._size - size, frequency[-1])])
        parts = np.zeros((2, kinds, self._size))
        parts[0, :, :size], parts[1, :, :size] = weight.real, weight.imag
        self._frequency, self._parts, self._last = at, parts, float(at[-1])
        # as the C core takes them: frequencies, and from each kind on real and imaginary parts
        self._core = array(at), [[array(x[k:].reshape(-1)) for x in parts] for k in range(kinds)]
        self._far = 2.0 * size * UNIT * fn.modulus(weight).sum(axis=1)

    def far_errors(self, z: FloatArray, kinds: slice) -> FloatArray:
        """Bounds on further errors where angles are too large for lanes, of shape (kinds, n)."""
        is_far = np.abs(z) * self._last >= 0.999 * FARTHEST
        return np.asarray(np.where(is_far, self._far[kinds, None], 0.0))

    def at(self, z: FloatArray, kinds: slice) -> FloatArray:
        """The sums of some kinds, of shape (z.size, kinds)."""
        frequency, parts = self._core
        first, last = kinds.start or 0, kinds.stop or len(parts)
        real, imag = parts[first]
        out = np.empty((z.size, last - first))
        at, to = array(np.ascontiguousarray(z)), array(out.reshape(-1), writable=True)
        lib.pe_trig_sums(z.size, at, self._size, frequency, last - first, real, imag, to)
        return out

    def at_one(self, z: float, kinds: slice) -> list[float]:
        """The same at one number."""
        frequency, parts = self._core
        count, (real, imag) = kinds.stop - kinds.start, parts[kinds.start]
        out = ffi.new(SUMS)
        lib.pe_trig_sums(1, (z,), self._size, frequency, count, real, imag, out)
        found: list[float] = ffi.unpack(out, count)
        return found
