"""Standard output and standard error that may be full, closed, or left by their reader."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from pyengine.cli.output import spelled

__all__ = ["Guarded", "guarded"]


class Guarded(io.TextIOBase):
    """A stream that keeps its first failure and drops what comes after it.

    A command then carries on, so that its files and its exit code do not hang on who reads its
    words, and no failure of the stream is taken for one of a file.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Descriptor of the stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True: what cannot be written is dropped."""
        return True

    def write(self, text: str) -> int:
        """Write, unless the stream has failed before."""
        if self.error is None:
            try:
                self._stream.write(spelled(text, self._stream.encoding))
            except OSError as error:
                self._failed(error)
        return len(text)

    def flush(self) -> None:
        """Hand over what was written, unless the stream has failed before."""
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.error = error
        # What the stream still holds would fail again, with a trace, when the interpreter ends.
        with contextlib.suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())


@contextlib.contextmanager
def guarded() -> Iterator[Guarded | None]:
    """Put guarded streams in the places of ``sys.stdout`` and ``sys.stderr`` for a while.

    Yields standard output, or None if it is closed.
    """
    output, errors = sys.stdout, sys.stderr
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="replace")  # a terminal without Greek letters
    with contextlib.ExitStack() as stack:
        if errors is None:
            errors = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        stack.enter_context(contextlib.redirect_stderr(Guarded(errors)))
        if output is None:
            yield None
            return
        found = Guarded(output)
        stack.enter_context(contextlib.redirect_stdout(found))
        yield found
