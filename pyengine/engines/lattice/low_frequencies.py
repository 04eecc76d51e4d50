"""The lowest frequencies of a composition, to more digits than a transform gives.

The rounding of a transform is of the order of its length's logarithm, whatever the frequency, and
the power multiplies it by the number of steps.  After many steps only the lowest frequencies are
left, where each step's transform is near 1: its distance from 1 is summed directly.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.lattice.grid import Plan
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["lowest"]

FloatArray = npt.NDArray[np.float64]

MOST_WORK = 2e4  # bounds blocks times frequencies by 32 of it


def lowest(
    arrays: list[FloatArray],
    steps: list[int],
    plan: Plan,
    count: int,
) -> tuple[npt.NDArray[np.complex128], FloatArray]:
    """Values of the composition's transform at the lowest frequencies, and bounds on their errors.

    Parameters
    ----------
    arrays : list of ndarray
        One step's masses of each kind, of sum 1 but for rounding.
    steps : list of int
        Numbers of steps.
    plan : Plan
        The lattice.
    count : int
        Number of frequencies, from 0 on; below a 512th of the points.
    """
    points = plan.points
    longest = max(array.size for array in arrays)
    count = min(count, int(math.sqrt(MOST_WORK * points / longest)))
    block = int(np.clip(2 * (points // (64 * count)), 16, 256))
    frequency = np.arange(count)
    turn = 2.0 * np.pi * frequency / points
    half = 0.5 * turn * block
    log_value = np.zeros(count, dtype=np.complex128)
    error = np.zeros(count)
    for array, number, grid in zip(arrays, steps, plan.grids, strict=True):
        moments = np.empty(lib.PE_BLOCK_MOMENTS * (array.size // block + 1))
        z = np.empty(count, dtype=np.complex128)
        reach = lib.pe_low_frequencies(
            array.size,
            ffi.from_buffer("double[]", array),
            grid.centre,
            points,
            block,
            count,
            ffi.from_buffer("double[]", moments, require_writable=True),
            ffi.from_buffer("double[]", z, require_writable=True),
        )
        z += lib.pe_sum_less_one(array.size, ffi.from_buffer("double[]", array))
        with np.errstate(divide="ignore"):
            real = 0.5 * fn.log1p(2.0 * z.real + (z.real**2 + z.imag**2))
        own = real + 1j * fn.arctan2(z.imag, 1.0 + z.real)
        off = UNIT * (block / 16.0 + 80.0) * (np.minimum(turn * reach, 2.0) + half)
        off += 1e-6 * half**10 + 8.0 * UNIT * np.abs(z)
        size = np.abs(1.0 + z) * (1.0 - 16.0 * UNIT)
        with np.errstate(divide="ignore"):
            relative = np.where(off < 0.5 * size, 2.0 * off / size, np.inf)
        log_value = log_value + number * own
        error += number * (relative + 8.0 * UNIT * np.abs(own))
    with np.errstate(over="ignore", invalid="ignore"):
        value = fn.exp(log_value.real) * fn.turn(log_value.imag)
        bound = np.abs(value) * fn.expm1(error + 8.0 * UNIT) * (1.0 + 1e-9) + 1e-260
    return value, np.where(np.isnan(bound), np.inf, bound)
