"""Instructions that the children of a driver execute, counted by cachegrind."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

__all__ = ["CountError", "Counts", "measure", "version"]

# Nothing of the caller's environment: its size moves the stack.  One hash seed, no compilation to
# bytecode, no second thread, and all symbols bound before the work starts.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "LD_BIND_NOW": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
LEAST = 1000  # instructions: with fewer, the work was not done
NOTHING = "nothing"  # the driver's own share, to be subtracted from what follows it


class CountError(Exception):
    """A measurement that gives no count."""


class Counts(NamedTuple):
    """Instructions of each piece of work, and why others have none."""

    instructions: dict[str, int]
    failed: dict[str, str]


def _valgrind() -> str:
    found = shutil.which("valgrind")
    if found is None:
        raise CountError("valgrind is not installed (Debian: apt-get install valgrind)")
    return found


def version() -> str:
    """Return the version of valgrind, whose processor decides which clones run."""
    run = subprocess.run([_valgrind(), "--version"], capture_output=True, text=True, check=True)
    return run.stdout.strip().removeprefix("valgrind-")


def _total(directory: Path, pid: str) -> int:
    """Return the instructions in the file that cachegrind wrote for a process."""
    path = directory / pid
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found = re.search(r"^events: Ir\n(?:.*\n)*?summary: (\d+)$", text, re.M)
    if found is None:
        raise CountError(f"cachegrind wrote no count for process {pid}")
    return int(found[1])


def _read(lines: Sequence[str], directory: Path) -> Counts:
    counts = Counts({}, {})
    own = 0
    for line in lines:
        name, *rest = line.split()
        if rest[0] == "failed":
            counts.failed[name] = " ".join(rest)
            continue
        without, with_work = (_total(directory, pid) for pid in rest)
        if name == NOTHING:
            own = with_work - without
            continue
        if name in counts.instructions or name in counts.failed:
            raise CountError(f"{name}: measured twice")
        taken = with_work - without - own
        if taken < LEAST:
            counts.failed[name] = f"{taken} instructions: the work was not done"
        else:
            counts.instructions[name] = taken
    return counts


def measure(command: Sequence[str], extra: Mapping[str, str] | None = None) -> Counts:
    """Run a driver twice, once to see that it works and once under cachegrind.

    It prints ``name pid pid`` for each piece of work, the processes without and with it, or
    ``name failed why``.  The counts are without its own instructions; `CountError` where it ends
    early or measures nothing.
    """
    environment = {**ENVIRONMENT, **(extra or {})}
    # Natively first, so that bytecode and file system caches are filled.
    writes = {k: v for k, v in environment.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, env=writes, stdout=subprocess.DEVNULL, check=False)
    with TemporaryDirectory(prefix="icount-") as name:
        directory = Path(name)
        tool = ["-q", "--tool=cachegrind", "--cache-sim=no", "--error-exitcode=99"]
        files = f"--cachegrind-out-file={directory}/%p"
        run = subprocess.run(
            [_valgrind(), *tool, files, *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # cachegrind prints a warning about the machine's caches, which it does not simulate
        said = [line for line in run.stderr.splitlines() if "LL cache" not in line]
        said = [line for line in said if "L3 cache" not in line]
        if run.returncode != 0:
            raise CountError(f"{command[0]} ended with {run.returncode}: " + "\n".join(said))
        counts = _read(run.stdout.splitlines(), directory)
    if not counts.instructions and not counts.failed:
        raise CountError(f"{command[0]} measured nothing")
    return counts
