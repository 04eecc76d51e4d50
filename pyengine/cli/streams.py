"""Safe standard output and error streams, which may be full, closed, or have no reader."""

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
    """A stream that stores its first error and drops all later output.

    So a command continues, its files and exit code do not depend on the reader of its output, and
    an error of the stream is not taken for an error of a file.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Descriptor of the stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True, since output that cannot be written is dropped."""
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
        """Flush the stream, unless it has failed before."""
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self.error = error
        # Otherwise the buffered rest would fail again, with a traceback, when the interpreter ends.
        with contextlib.suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())


@contextlib.contextmanager
def guarded() -> Iterator[Guarded | None]:
    """Replace ``sys.stdout`` and ``sys.stderr`` by guarded streams within the context.

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
