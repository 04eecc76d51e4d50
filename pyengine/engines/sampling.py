"""Random samples of the composed loss: seeded, the same for any number of threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.inverse_cdf import LossTable

__all__ = ["sample_losses"]

FloatArray = npt.NDArray[np.float64]

CHUNK = 2**15  # samples of one task


def sample_losses(
    tables: Sequence[LossTable], samples: int, seed: int, threads: int | None = None
) -> FloatArray:
    """Sums of the losses of all steps; memory is that of the result, whatever their number."""
    kernel_tables = ffi.new("pe_loss_table[]", max(1, len(tables)))
    kept = [np.ascontiguousarray(table.coefficients) for table in tables]
    for target, table, coefficients in zip(kernel_tables, tables, kept, strict=False):
        target.steps = table.steps
        target.low, target.per_width, target.last = table.low, table.per_width, table.last
        target.coefficients = ffi.from_buffer("double[]", coefficients)
    out = np.empty(samples)

    def run(first: int) -> None:
        part = out[first : first + CHUNK]
        buffer = ffi.from_buffer("double[]", part, require_writable=True)
        lib.pe_sample_losses(seed, first, part.size, len(tables), kernel_tables, buffer)

    starts = range(0, samples, CHUNK)
    workers = min(threads or _processors(), max(1, len(starts)))
    if workers == 1:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(run, start) for start in starts]:
                done.result()
    return out


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
