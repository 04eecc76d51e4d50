"""Child processes that answer questions, each with limits of time and memory, and their results."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from campaign.worker import run

__all__ = ["MEMORY", "SECONDS", "TRUTH_SECONDS", "records"]

MEMORY = 2.0  # gibibytes that a question may use beside what the imports have mapped
SECONDS = 60.0  # of processor time, for the answer
# For the truth: 497 of 500 questions have theirs within a second or two, or never.
TRUTH_SECONDS = 6.0
PATIENCE = 5.0  # times as much by the clock, as the machine does other work, too
LIFE = 400  # questions of one child, so that its caches do not grow without limit
TICK = 0.5
# Imported once: ending a question then costs a fork, not seconds of imports.
PRELOADED = (
    "campaign.worker",
    "campaign.find",
    "campaign.judge",
    "pyengine.reference",
    "scipy.stats",
)
Target = Callable[[Connection, str, float], None]


def _processor(pid: int) -> float:
    """Processor time of a process and its threads, in seconds."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Child:
    """One child with the question that it works on."""

    def __init__(self, target: Target, seed: str, memory: float) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(theirs, seed, memory), daemon=True)
        self.process.start()
        theirs.close()
        self.asked = 0
        self.index = -1
        self.known: dict[str, Any] = {}
        self.phase = ""
        self.used = self.since = 0.0

    def give(self, index: int) -> None:
        self.asked += 1
        self.index, self.known = index, {"index": index}
        self.enter("posing")
        self.connection.send(index)

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.used = _processor(self.process.pid or 0)
        self.since = time.monotonic()

    def late(self, answer: float, truth: float) -> bool:
        # before the question is posed: a child's imports, and the truth that chooses an argument
        seconds = {"posed": answer, "answered": truth}.get(self.phase, SECONDS)
        used = _processor(self.process.pid or 0) - self.used
        return used > seconds or time.monotonic() - self.since > PATIENCE * seconds + 30.0

    def end(self) -> int | None:
        self.connection.close()
        self.process.join(5.0)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def _fate(child: _Child, verdict: str, why: str) -> dict[str, Any]:
    """Record of a question whose child did not finish."""
    if child.phase != "posed":  # the truth's fault, before the question or after the answer
        return {**child.known, "verdict": "no truth", "why": f"{why} ({child.phase})"}
    return {**child.known, "verdict": verdict, "why": why}


def records(
    seed: str,
    indices: Iterable[int],
    *,
    workers: int = 1,
    seconds: float = SECONDS,
    truth_seconds: float = TRUTH_SECONDS,
    memory: float = MEMORY,
    target: Target = run,
) -> Iterator[dict[str, Any]]:
    """Ask questions of a seed and yield the result of each, in the order in which they end.

    In child processes, which run `campaign.worker.run` or another target; limits are processor time
    of an answer and of its truth, and gibibytes beyond the imports. Each record is the question
    with its ``verdict``: right, wrong, outside, refused, slow, crashed, memory, or "no truth".
    """
    pending = iter(indices)
    children: list[_Child] = []
    free: list[_Child] = []
    more = True
    try:
        while True:
            while more and (free or len(children) < workers):
                index = next(pending, None)
                if index is None:
                    more = False
                    break
                if free:
                    child = free.pop()
                else:
                    child = _Child(target, seed, memory)
                    children.append(child)
                child.give(index)
            busy = [child for child in children if child not in free]
            if not busy:
                return
            ready = wait([child.connection for child in busy], TICK)
            for child in busy:
                record = None
                if child.connection in ready:
                    record = _heard(child)
                elif child.late(seconds, truth_seconds):
                    child.process.kill()
                    child.process.join()
                    limit = truth_seconds if child.phase == "answered" else seconds
                    record = _fate(child, "slow", f"more than {limit:g} s")
                if record is None:
                    continue
                yield record
                if child.asked >= LIFE or not child.process.is_alive():
                    children.remove(child)
                    child.end()
                else:
                    free.append(child)
    finally:
        for child in children:
            child.process.kill()
            child.end()


def _heard(child: _Child) -> dict[str, Any] | None:
    """Process a message of a child; return the record of the question once it has ended."""
    try:
        phase, known = child.connection.recv()
    except (EOFError, ConnectionResetError):
        child.process.join(10.0)
        code = child.process.exitcode
        name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        return _fate(child, "crashed", f"the process died: {name}")
    child.known = known
    if phase == "done":
        return dict(known)
    child.enter(phase)
    return None
