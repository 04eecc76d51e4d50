"""Work spread over an executor: batches out, results in as they come, crashes survived."""

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
# One record, with its "seconds", for each unit; or for the first few, and the others come again.
Solve = Callable[[Sequence[T]], list[Record]]
Alike = Callable[[T, T], bool]

BATCH_SECONDS = 0.1  # of work handed out, and written to the disk, at a time
BATCH_UNITS = 64
POLL_SECONDS = 5.0  # between questions whether the workers are still there
BREAKS = 3  # crashes in a row, with nothing finished between them


class WorkersError(RuntimeError):
    """Workers that die again and again, or that are gone; what is done is kept."""


class Pool:
    """Workers that `execute` hands work to: an executor of the caller, who also closes it.

    What it runs must be importable where it runs.
    """

    # exceptions by which work says that its worker died
    crashes: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor, self._workers = executor, workers

    def width(self) -> int:
        """Number of units that can run at the same time."""
        return self._workers

    def renew(self) -> bool:
        """Replace an executor that broke; False if there is no other one."""
        return False

    def close(self, *, abandon: bool) -> None:
        """Let the workers go, with their work undone if told so."""


def here(units: deque[T], solve: Solve[T], seconds: float) -> Iterator[list[Record]]:
    """Do work in this process until a time is over, and yield the records of about 0.1 s.

    What is taken from the units is done.
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
    """Do work in a pool and yield the records of whole batches, in the order of their ends.

    The pool is closed at the end; after an error, with its work abandoned.  ``solve`` is pickled by
    name.  ``alike`` says whether a unit shares so much with the one before it that one worker shall
    do both.  WorkersError if workers died several times in a row with nothing finished between, or
    are gone.
    """
    todo = deque(units)
    # what a crash took along comes last and alone: a unit that kills its worker takes no others
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
            if broken and not pending:  # those that finished before the crash are through
                breaks += 1
                _renew(pool, broken, breaks, suspects)
        abandon = False
    finally:
        pool.close(abandon=abandon)


class _Pace:
    """Size of batches: small enough to lose little, large enough for messages to cost little."""

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
    """Take what one worker shall do next: so many units, and those that are like the last one.

    Of the last units each worker gets its share, alike or not.
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
