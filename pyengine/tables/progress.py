"""A progress bar on standard error."""

from __future__ import annotations

import os
import shutil
import threading
import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

WIDTH, LEAST = 28, 8  # characters of the bar, and of the shortest that is worth the name
SETTLE_SECONDS = 0.5  # before that, a rate is mostly noise
REPORT_SECONDS = 30.0  # at most between lines in a file or a log of a build
REPAINT_SECONDS = 1.0  # a clock that stands still looks like a program that hangs


class Progress:
    """Bar with a count, the rate and the time left.

    A terminal is painted again each second even where nothing is done; on a narrow one the bar is
    shorter, then left out, and the line ends where the terminal does.  On anything else it writes
    a line every half minute, be anything done or not, and the last one.

    Parameters
    ----------
    total : int
        Number of units of work.
    unit : str
        Their name, in the plural.
    stream : text file
        Where to draw.
    done : int
        Number of units that an earlier run did.
    """

    def __init__(self, total: int, unit: str, stream: TextIO, done: int = 0) -> None:
        self.total = total
        self.unit = unit
        self.done = done
        self._stage = ""
        self._before = done
        self._stream = stream
        self._terminal = stream.isatty()
        self._start = self._drawn = time.monotonic()
        self._lock = threading.Lock()  # the clock and the work draw from two threads
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        if self._terminal:
            self._draw()
        self._clock.start()
        return self

    def _tick(self) -> None:
        while not self._over.wait(REPAINT_SECONDS):
            if self._terminal or time.monotonic() - self._drawn > REPORT_SECONDS:
                self._draw()

    def stage(self, what: str) -> None:
        """Say what is done besides units of work, from the next line on."""
        self._stage = what

    def advance(self, units: int) -> None:
        """Count work that is done."""
        self.done += units
        now = time.monotonic()
        # a terminal is slower than most values
        if now - self._drawn > (0.05 if self._terminal else REPORT_SECONDS):
            self._draw()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._clock.join()
        self._stage = ""
        if self._terminal:
            self._draw()
            self._stream.write("\n")
        elif error is None:
            self._draw()
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
                line += f", {_clock(left / rate)} left"
        return f"{line}: {self._stage}" if self._stage else line

    def _draw(self) -> None:
        with self._lock:
            self._drawn = time.monotonic()
            if self._terminal:
                self._paint()
            else:
                self._stream.write(self._line() + "\n")
                self._stream.flush()

    def _paint(self) -> None:
        line = self._line()
        room = self._columns() - 1  # a letter in the last column would start another line
        width = min(WIDTH, room - len("[] ") - len(line))
        if width >= LEAST:
            filled = width * self.done // max(self.total, 1)
            line = f"[{'#' * filled}{'.' * (width - filled)}] {line}"
        # what is left of a longer line is cleared
        self._stream.write(f"\r{line[:room]}\x1b[K")
        self._stream.flush()

    def _columns(self) -> int:
        """Width of the terminal, which may change while work is done."""
        try:
            found = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # no descriptor
            found = 0
        return found or shutil.get_terminal_size().columns


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
