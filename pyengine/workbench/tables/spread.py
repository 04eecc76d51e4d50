"""Choice of the workers: this process, child processes, a cluster, or any executor."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from pyengine._version import __version__
from pyengine.workbench.tables.execute import Pool, Solve, WorkersError, execute, here
from pyengine.workbench.tables.pools import Dask, Processes, processors
from pyengine.workbench.tables.units import Unit, alike

__all__ = ["spread"]

ALONE_SECONDS = 1.0  # seconds of work in this process before child processes are started


def spread(
    todo: deque[Unit],
    solver: Solve[Unit],
    *,
    workers: int | None,
    dask: str | None = None,
    executor: Executor | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Compute all units on the chosen workers and yield their records in any order; see `run`.

    WorkersError if the workers are gone, crash repeatedly, or have another version of the package.
    """
    for records in _records(todo, solver, workers, dask, executor):
        for found in records:
            if found["pyengine"] != __version__:
                raise WorkersError(
                    f"the worker {found['where']} has pyengine {found['pyengine']}, "
                    f"not {__version__}"
                )
        yield records


def _records(
    todo: deque[Unit],
    solver: Solve[Unit],
    workers: int | None,
    dask: str | None,
    executor: Executor | None,
) -> Iterator[list[dict[str, Any]]]:
    if executor is None and dask is None and not workers:
        yield from here(todo, solver, math.inf if workers == 0 else ALONE_SECONDS)
    if not todo:
        return
    pool: Pool
    if executor is not None:
        pool = Pool(executor, workers or processors())
    elif dask is not None:
        pool = Dask(dask)
    else:
        pool = Processes(min(workers or processors(), len(todo)))
    yield from execute(todo, solver, pool, alike)
