"""The process of an accountant: ``python -m pyengine.conformance.worker NAME``.

First it prints a line of JSON about the accountant; then it answers each line of JSON on its input
by a line of JSON.  Output of the accountant itself goes to standard error.

Times are processor times, which other programs on the machine hardly affect.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import statistics
import sys
import time
import warnings
from typing import Any, TextIO

from pyengine._version import DISTRIBUTION, __version__
from pyengine.accounting.conformance.adapters import Adapter, find, supports
from pyengine.accounting.conformance.grid import Setting

__all__ = ["main"]

QUICK = 0.2  # seconds; shorter computations are timed five times


def main(name: str) -> int:
    """Serve until the input ends."""
    warnings.simplefilter("ignore")  # deprecations in the accountant, not about its answers
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        adapter = find(name)
        version = _version(adapter.distribution)
    except (ImportError, ValueError) as error:
        # PackageNotFoundError is an ImportError, too
        _reply(replies, {"error": f"{type(error).__name__}: {error}"})
        return 1
    methods = {method: list(questions) for method, questions in adapter.methods.items()}
    _reply(replies, {"version": version, "methods": methods})
    for line in sys.stdin:
        _reply(replies, _ask(adapter, json.loads(line)))
    return 0


def _version(distribution: str) -> str:
    # a checkout that is not installed has no metadata
    return __version__ if distribution == DISTRIBUTION else importlib.metadata.version(distribution)


def _reply(stream: TextIO, content: dict[str, Any]) -> None:
    stream.write(json.dumps(content) + "\n")
    stream.flush()


def _ask(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    method, setting = request["method"], Setting(**request["setting"])
    question = (method, setting, request["question"])
    times: list[float] = []
    try:
        if not supports(adapter, method, setting):
            return {"supported": False}
        while not times or (times[0] < QUICK and len(times) < 5):
            start = time.process_time()
            value = adapter.answer(*question, request["at"])
            times.append(time.process_time() - start)
    except Exception as error:  # an accountant may raise anything, which then is its result
        return {"error": f"{type(error).__name__}: {error}"}
    return {"value": value, "seconds": statistics.median(times)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
