"""Products of matrices in pieces that BLAS takes in one thread.

Its threads wait for each other for longer than the products here take, the more so where other work
has the cores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["multiplied"]

FloatArray = npt.NDArray[np.float64]

MOST = 2**18  # multiplications, up to which OpenBLAS takes one thread


def multiplied(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the product of two matrices."""
    rows, inner = first.shape
    columns = second.shape[1]
    if rows * inner * columns <= MOST:
        return np.asarray(first @ second)
    out = np.empty((rows, columns))
    if rows >= columns:
        step = max(1, MOST // (inner * columns))
        for i in range(0, rows, step):
            np.matmul(first[i : i + step], second, out=out[i : i + step])
    else:
        step = max(1, MOST // (inner * rows))
        for i in range(0, columns, step):
            out[:, i : i + step] = first @ second[:, i : i + step]
    return out
