"""Where the work is done: in this process, in processes of it, on a cluster, by any executor."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any

from pyengine._version import __version__
from pyengine.workbench.tables.execute import Pool, Solve, WorkersError, execute, here
from pyengine.workbench.tables.pools import Borrowed, Dask, Processes, processors
from pyengine.workbench.tables.units import Unit, alike

__all__ = ["spread"]

ALONE_SECONDS = 1.0  # what is done by then is not worth the start of processes


def spread(
    todo: deque[Unit],
    solver: Solve[Unit],
    *,
    workers: int | None,
    dask: str | None = None,
    executor: Executor | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Records of all units, from where they are to be computed.

    Parameters
    ----------
    todo : deque of Unit
        What to compute; emptied.
    solver : callable
        Computes units.
    workers, dask, executor
        As for `pyengine.tables.run.run`.

    Yields
    ------
    list of dict
        Records of what got done, in any order.

    Raises
    ------
    WorkersError
        If the workers are gone, die again and again, or have another version of the package.
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
    start: Callable[[], Pool]
    if executor is not None:
        borrowed = executor
        start = lambda: Borrowed(borrowed, workers or processors())  # noqa: E731
    elif dask is not None:
        address = dask
        start = lambda: Dask(address)  # noqa: E731
    elif workers == 0:
        yield from here(todo, solver, math.inf)
        return
    else:
        if workers is None:
            yield from here(todo, solver, ALONE_SECONDS)
        number = min(workers or processors(), len(todo))
        start = lambda: Processes(number)  # noqa: E731
    if todo:
        yield from execute(todo, solver, start(), alike)
