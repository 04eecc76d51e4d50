"""The process that computes: it reads questions line by line, and writes a line of JSON for each.

It exits at once when its input is closed, which happens when the server ends.
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

MEMORY = 4 << 30  # bytes of address space


def answer(question: str) -> dict[str, Any]:
    """Return the `reply` to settings in JSON, or what is wrong with them.

    In the second case ``error`` is a sentence and ``setting`` the name of the setting at fault, or
    empty.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reply(Settings.read(json.loads(question)))
    except SettingError as error:
        return {"error": str(error), "setting": error.name}
    except RecursionError:  # raised by the JSON parser
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
    os._exit(0)  # nobody waits for the answer being computed


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


if __name__ == "__main__":
    main()
