"""A progress bar on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

WIDTH = 28


class Progress:
    """Bar with a count and the elapsed time; to anything but a terminal only its last line goes.

    Parameters
    ----------
    total : int
        Number of units of work.
    unit : str
        Their name, in the plural.
    stream : text file
        Where to draw.
    """

    def __init__(self, total: int, unit: str, stream: TextIO) -> None:
        self.total = total
        self.unit = unit
        self.done = 0
        self._stream = stream
        self._terminal = stream.isatty()
        self._start = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Progress:
        self._draw()
        return self

    def advance(self, units: int) -> None:
        """Count work that is done."""
        self.done += units
        now = time.monotonic()
        if now - self._drawn > 0.05:  # a terminal is slower than most values
            self._draw()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._terminal:
            self._draw()
            self._stream.write("\n")
        elif error is None:
            self._stream.write(self._line() + "\n")
        self._stream.flush()

    def _line(self) -> str:
        seconds = time.monotonic() - self._start
        return f"{self.done}/{self.total} {self.unit} in {seconds:.1f} s"

    def _draw(self) -> None:
        if not self._terminal:
            return
        self._drawn = time.monotonic()
        filled = WIDTH * self.done // max(self.total, 1)
        bar = "#" * filled + "." * (WIDTH - filled)
        self._stream.write(f"\r[{bar}] {self._line()}")
        self._stream.flush()
