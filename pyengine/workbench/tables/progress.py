"""Progress on standard error: a bar (by rich) on terminals, a line every half minute elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType
from typing import Any, TextIO

__all__ = ["Progress"]

SETTLE_SECONDS = 0.5  # seconds before a rate is shown
REPORT_SECONDS = 30.0  # seconds between lines in a file or a build log
LOOK_SECONDS = 1.0  # seconds between checks of the clock


class Progress:
    """Shows the number of finished units, the rate and the time left.

    On a terminal with rich installed it is a bar, otherwise a line every half minute, even without
    progress, and one at the end.  ``done`` is the number of units finished by an earlier run.
    """

    def __init__(self, total: int, unit: str, stream: TextIO, done: int = 0) -> None:
        self.total = total
        self.unit = unit
        self.done = done
        self._stage = ""
        self._before = done
        self._stream = stream
        self._start = self._said = time.monotonic()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._bar = _bar(stream) if stream.isatty() else None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self._bar is None:
            self._clock.start()
        else:
            self._bar.start()
            self._task = self._bar.add_task(
                "", total=self.total, completed=self.done, unit=self.unit
            )
        return self

    def stage(self, what: str) -> None:
        """Set the activity that is shown besides the number of units."""
        self._stage = what
        if self._bar is not None:
            self._bar.update(self._task, description=what)

    def advance(self, units: int) -> None:
        """Add finished units."""
        self.done += units
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)
        elif time.monotonic() - self._said > REPORT_SECONDS:
            self._say()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stage("")
        if self._bar is not None:
            self._bar.stop()
            return
        self._over.set()
        self._clock.join()
        if error is None:
            self._say()

    def _tick(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if time.monotonic() - self._said > REPORT_SECONDS:
                self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        self._stream.write(self._line() + "\n")
        self._stream.flush()

    def _line(self) -> str:
        seconds = time.monotonic() - self._start
        line = f"{self.done}/{self.total} {self.unit} in {seconds:.1f} s"
        if self._before:
            line += f" ({self._before} from an earlier run)"
        new, left = self.done - self._before, self.total - self.done
        if new and seconds > SETTLE_SECONDS:
            rate = new / seconds
            line += f", {rate:.3g}/s"
            if left:
                line += f", {round(left / rate):,} s left"
        return f"{line}: {self._stage}" if self._stage else line


def _bar(stream: TextIO) -> Any:
    """A progress bar by rich; None if rich is not installed."""
    with contextlib.suppress(ImportError):
        from rich import progress
        from rich.console import Console

        left = progress.TimeRemainingColumn(elapsed_when_finished=True)
        columns = (progress.BarColumn(), progress.MofNCompleteColumn(), left)
        words = map(progress.TextColumn, ("{task.fields[unit]}", "{task.description}"))
        return progress.Progress(*columns, *words, console=Console(file=stream))
    return None
