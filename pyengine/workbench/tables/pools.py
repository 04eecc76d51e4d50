"""Pools of workers for `execute`: processes on this machine, or a dask cluster."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from pyengine._support.extras import needed
from pyengine.workbench.tables.execute import Pool, WorkersError

__all__ = ["Dask", "Processes", "processors"]

CONNECT_SECONDS = 15.0
ASK_SECONDS = 2.0
PATIENCE_SECONDS = 60.0


def processors() -> int:
    """Number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


class Processes(Pool):
    """Processes on this machine, restarted after a crash.

    They are spawned, not forked: a child forked while another thread holds a lock may deadlock.
    """

    executor: ProcessPoolExecutor

    def __init__(self, workers: int) -> None:
        super().__init__(self._start(workers), workers)

    def _start(self, workers: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)[::-1]
        self._lifeline, self._watched = ours, theirs
        return ProcessPoolExecutor(
            workers, context, initializer=_prepare_worker, initargs=(theirs,)
        )

    def renew(self) -> bool:
        """Start new processes."""
        self.close(abandon=True)
        self.executor = self._start(self._workers)
        return True

    def close(self, *, abandon: bool) -> None:
        """End the processes; if ``abandon``, without waiting for their work."""
        if abandon:
            self._end_now()
        self.executor.shutdown(wait=True, cancel_futures=abandon)
        self._lifeline.close()
        self._watched.close()

    def _end_now(self) -> None:
        """End all processes at once.

        The executor may wait for the rest of a result that a process was sending; it stops when the
        write end of its pipe is closed everywhere.
        """
        self._lifeline.close()
        for process in list((self.executor._processes or {}).values()):
            process.join()
        self.executor._result_queue._writer.close()  # type: ignore[attr-defined]


def _prepare_worker(lifeline: Connection) -> None:
    """Ignore interrupts, which the parent handles, and end whenever the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _signal_end(lifeline.fileno())
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _signal_end(pipe: int) -> None:
    """Let the system end this process when the pipe closes, even during a long call in C."""
    # opened anew, since the owner of the signal belongs to the open file that all workers share
    with contextlib.suppress(ImportError, OSError):  # Windows; no /proc
        import fcntl

        own = os.open(f"/proc/self/fd/{pipe}", os.O_RDONLY | os.O_NONBLOCK)
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)  # nobody waits for what this process is doing


class Dask(Pool):
    """A dask.distributed cluster, which repeats the work of a lost worker on another one.

    WorkersError if no scheduler with a worker answers at the address.
    """

    def __init__(self, address: str) -> None:
        with needed("a dask cluster", "dask"):
            import distributed

        try:
            client: Any = distributed.Client
            self._client = client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, distributed.TimeoutError) as error:
            raise WorkersError(f"no dask scheduler answers at {address}: {error}") from None
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except distributed.TimeoutError:  # before Python 3.11 not the built-in one
            self._client.close()
            raise WorkersError(f"the dask scheduler at {address} has no workers") from None
        self._gone = (OSError, ValueError, distributed.TimeoutError)
        self.crashes = (BrokenExecutor, distributed.KilledWorker)
        super().__init__(self._client.get_executor(pure=False), 1)
        self._asked = -math.inf
        self._served = time.monotonic()

    def width(self) -> int:
        """Number of threads of all workers, updated every few seconds."""
        now = time.monotonic()
        if now - self._asked > ASK_SECONDS:
            self._asked = now
            try:
                self._workers = sum(self._client.nthreads().values())
            except self._gone as error:
                raise WorkersError(f"the dask scheduler is gone: {error}") from None
        if self._workers > 0:
            self._served = now
        elif now - self._served > PATIENCE_SECONDS:
            raise WorkersError(f"the dask cluster has had no workers for {PATIENCE_SECONDS:g} s")
        return max(1, self._workers)

    def close(self, *, abandon: bool) -> None:
        """Disconnect from the cluster."""
        self.executor.shutdown(wait=not abandon)
        self._client.close()
