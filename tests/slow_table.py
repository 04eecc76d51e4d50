"""Solvers that are slow, or that kill their process, for tests of interrupted tables.

Workers import them by name; a file named by an environment variable distinguishes runs and keeps
the computed units.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyengine.cli.main import main
from pyengine.tables import run as table_run
from pyengine.workbench.tables.pools import Processes
from pyengine.workbench.tables.units import Unit, solve

LOG = "PYENGINE_TEST_LOG"
SOLVER = "PYENGINE_TEST_SOLVER"
SECONDS = 0.03


def note(unit: Unit) -> None:
    with Path(os.environ[LOG]).open("a", encoding="utf-8") as file:
        file.write(f"{unit.index}\n")


def wait_while_held() -> None:
    """Record the number of units, then wait as long as a file says so."""
    log = Path(os.environ[LOG])
    hold = Path(f"{log}.hold")
    while hold.exists() and len(log.read_bytes().split()) >= int(hold.read_text() or "0"):
        time.sleep(0.01)


def slow(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """Solve units, each in at least a known time, and record each one."""
    records = []
    for unit in batch:
        wait_while_held()
        (record,) = solve([unit])
        time.sleep(SECONDS)
        note(unit)
        records.append({**record, "seconds": SECONDS})
    return records


def dies_once(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """Kill the process at unit 7, the first time only."""
    marker = Path(os.environ[LOG] + ".died")
    if any(unit.index == 7 for unit in batch) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return slow(batch)


def always_dies(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """Kill the process at unit 7, every time."""
    if any(unit.index == 7 for unit in batch):
        os.kill(os.getpid(), signal.SIGKILL)
    return slow(batch)


def deaf(batch: Sequence[Unit]) -> list[dict[str, Any]]:
    """From unit 7 on, stay in a call that does not release the interpreter."""
    if any(unit.index >= 7 for unit in batch):
        Path(f"{os.environ[LOG]}.{os.getpid()}").touch()
        ctypes.PyDLL(None).sleep(60)
    return slow(batch)


class SlowToRead:
    """An object that the executor takes a second to read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (1.0,)


def sends_much(marker: str) -> bytes:
    """A result larger than a pipe's buffer, so that sending waits for the reader."""
    Path(marker).touch()
    return bytes(1_000_000)


def abandon_a_worker_that_sends(marker: str) -> None:
    """Close a pool while the executor reads one result and its worker has sent half of the next."""
    pool = Processes(1)
    pool.executor.submit(SlowToRead)
    pool.executor.submit(sends_much, marker)
    while not Path(marker).exists():
        time.sleep(0.01)
    time.sleep(0.3)
    pool.close(abandon=True)


def command(arguments: list[str]) -> int:
    """``pyengine table`` with a slow solver."""
    keywords = table_run.run.__kwdefaults__
    assert keywords is not None
    keywords["solver"] = globals()[os.environ.get(SOLVER, "slow")]
    return main(["table", *arguments])


if __name__ == "__main__":
    import slow_table  # by its name, so that workers can unpickle what is sent to them

    sys.exit(slow_table.command(sys.argv[1:]))
