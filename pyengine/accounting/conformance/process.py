"""A worker process with a time limit for each answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pyengine._version as own

__all__ = ["NoAnswerError", "Worker"]

PACKAGE = Path(own.__file__).parents[1]
START = 120.0  # seconds allowed for importing an accountant


class NoAnswerError(Exception):
    """The process gave no answer in time, or died."""


class Worker:
    """An accountant, found by its name, in a process of its own.

    ``about`` holds ``version`` and ``methods``, or ``error`` if it cannot be used.
    """

    def __init__(self, name: str) -> None:
        path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyengine.conformance.worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.about: dict[str, Any] = self._answer(START)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")  # the process ended

    def _answer(self, limit: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=limit)
        except Empty:
            self.close()
            raise NoAnswerError(f"no answer in {limit:g} s") from None
        if not line:
            self.close()
            raise NoAnswerError(f"its process ended with code {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Return the answer to a request, with ``method``, ``setting``, ``question`` and ``at``.

        Raises `NoAnswerError` after ``limit`` seconds; then the process has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise NoAnswerError("its process ended") from None
        return self._answer(limit)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue  # unsent requests do not matter any more
