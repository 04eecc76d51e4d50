"""Distribution of work over an executor, in batches, surviving crashes of workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from typing import Any, TypeVar

__all__ = ["Alike", "Pool", "Solve", "WorkersError", "execute", "here"]

T = TypeVar("T")
Record = dict[str, Any]
# Returns a record with its "seconds" for each unit, or for the first few; the rest is retried.
Solve = Callable[[Sequence[T]], list[Record]]
Alike = Callable[[T, T], bool]

BATCH_SECONDS = 0.1  # seconds of work handed out, and written to the disk, at a time
BATCH_UNITS = 64  # most units in a batch
POLL_SECONDS = 5.0  # seconds between checks whether the workers still exist
BREAKS = 3  # most crashes in a row with nothing finished in between


class WorkersError(RuntimeError):
    """The workers crash repeatedly or are gone; finished work is kept."""


class Pool:
    """Workers for `execute`: an executor that the caller made and will close.

    The functions it runs must be importable by the workers.
    """

    # exceptions that mean that the worker died
    crashes: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor, self._workers = executor, workers

    def width(self) -> int:
        """Number of units that can run in parallel."""
        return self._workers

    def renew(self) -> bool:
        """Replace a broken executor; False if that is not possible."""
        return False

    def close(self, *, abandon: bool) -> None:
        """Release the workers; if ``abandon``, without waiting for their work."""


def here(units: deque[T], solve: Solve[T], seconds: float) -> Iterator[list[Record]]:
    """Work in this process for some seconds, and yield the records about every 0.1 s.

    Finished units are removed from ``units``.
    """
    start = last = time.monotonic()
    done: list[Record] = []
    while units and time.monotonic() - start < seconds:
        done += solve([units.popleft()])
        if time.monotonic() - last >= BATCH_SECONDS:
            yield done
            done, last = [], time.monotonic()
    if done:
        yield done


def execute(
    units: Iterable[T], solve: Solve[T], pool: Pool, alike: Alike[T]
) -> Iterator[list[Record]]:
    """Work in a pool, and yield the records of each batch when it is finished.

    The pool is closed at the end; after an error, its work is abandoned.  ``solve`` is pickled by
    name.  ``alike`` says whether a unit shares so much work with the one before it that one worker
    should do both.  WorkersError if workers died several times in a row with nothing finished in
    between, or are gone.
    """
    todo = deque(units)
    # units in a crash are retried last and one by one, so that a fatal one takes no others with it
    suspects: deque[T] = deque()
    pending: dict[Future[list[Record]], list[T]] = {}
    pace = _Pace()
    breaks = 0
    abandon = True
    try:
        while todo or suspects or pending:
            width = pool.width()
            broken: BaseException | None = None
            while (todo or suspects) and len(pending) < 2 * width and not broken:
                source = todo or suspects
                batch = _batch(todo, pace.size, width, alike) if todo else [suspects.popleft()]
                try:
                    pending[pool.executor.submit(solve, batch)] = batch
                except pool.crashes as error:
                    broken = error
                    source.extendleft(reversed(batch))
            done, _ = wait(pending, POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                batch = pending.pop(future)
                try:
                    records = future.result()
                except pool.crashes as error:
                    broken = error
                    suspects.extend(batch)
                except CancelledError:
                    raise WorkersError("the executor dropped work that was not done") from None
                else:
                    breaks = 0
                    pace.learn(records)
                    todo.extendleft(reversed(batch[len(records) :]))
                    yield records
            if broken and not pending:  # results from before the crash have been collected
                breaks += 1
                _renew(pool, broken, breaks, suspects)
        abandon = False
    finally:
        pool.close(abandon=abandon)


class _Pace:
    """Size of batches: small, so that a crash loses little, but large relative to messages."""

    def __init__(self) -> None:
        self.size = 1
        self._units = 0
        self._seconds = 0.0

    def learn(self, records: Sequence[Record]) -> None:
        self._units += len(records)
        self._seconds += sum(record["seconds"] for record in records)
        wanted = BATCH_SECONDS * self._units / max(self._seconds, 1e-9)
        self.size = int(min(max(wanted, 1.0), BATCH_UNITS))


def _batch(todo: deque[T], size: int, width: int, alike: Alike[T]) -> list[T]:
    """Take the next batch of one worker: up to ``size`` units, and those alike to the last one.

    Towards the end batches become smaller, so that all workers get a share.
    """
    fair = -(-len(todo) // width)
    batch = [todo.popleft() for _ in range(max(1, min(size, len(todo) // (2 * width))))]
    while todo and len(batch) < fair and alike(batch[-1], todo[0]):
        batch.append(todo.popleft())
    return batch


def _renew(pool: Pool, error: BaseException, breaks: int, suspects: Iterable[Any]) -> None:
    under_way = "; ".join(str(unit) for unit in list(suspects)[:3]) or "their start"
    if breaks > BREAKS:
        raise WorkersError(
            f"workers died {breaks} times in a row with nothing finished between, the last time "
            f"at: {under_way} ({error})"
        )
    if not pool.renew():
        raise WorkersError(f"the executor broke at: {under_way} ({error})")
