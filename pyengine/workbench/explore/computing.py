"""The process that computes: reads questions line by line, writes one line of JSON for each.

It ends with the server: when its input is closed, it is gone at once, whatever it computes.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import warnings
from typing import Any

from pyengine.errors import AccuracyError
from pyengine.workbench.explore.replies import reply
from pyengine.workbench.explore.settings import SettingError, Settings

__all__ = ["answer", "main"]

MEMORY = 4 << 30  # bytes of addresses


def answer(question: str) -> dict[str, Any]:
    """Reply to settings in JSON as `reply` does, or say what is wrong with them.

    ``error`` is a sentence then, and ``setting`` the name of what it is about, if there is one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reply(Settings.read(json.loads(question)))
    except SettingError as error:
        return {"error": str(error), "setting": error.name}
    except RecursionError:  # of the reader of JSON
        return {"error": "settings must be an object of names and values", "setting": ""}
    except AccuracyError as error:
        return {"error": f"refused: {error}", "setting": ""}
    except ValueError as error:
        return {"error": str(error), "setting": ""}
    except MemoryError:
        return {"error": "out of memory: ask for less noise or fewer steps", "setting": ""}


def main() -> None:
    """Answer until the input ends."""
    _limit_memory()
    questions: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()
    while True:
        text = json.dumps(answer(questions.get()), ensure_ascii=True, allow_nan=False)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _read(questions: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        questions.put(line)
    os._exit(0)  # nobody waits for what this process is doing


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


if __name__ == "__main__":
    main()
