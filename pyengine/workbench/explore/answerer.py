"""Computation of answers in a child process, which is killed if it takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Answerer", "BusyError", "SupersededError"]

GRACE = 0.5  # seconds in all that a superseded question may take
MOST = 16  # most waiting questions
LONGEST = 1 << 22  # most bytes of a reply
COMMAND = (sys.executable, "-m", "pyengine.explore.computing")


class SupersededError(Exception):
    """A newer question superseded this one."""


class BusyError(Exception):
    """Too many questions are waiting."""


@dataclass(eq=False)
class _Question:
    question: str
    answer: asyncio.Future[dict[str, Any]]
    superseded: asyncio.Event = field(default_factory=asyncio.Event)

    def supersede(self) -> None:
        self.superseded.set()
        if not self.answer.done():
            self.answer.set_exception(SupersededError())


class Answerer:
    """Answers questions one by one in a child process.

    A question supersedes an older one of the same slot: it is dropped if it is waiting, and has
    half a second since its start if it is being computed.  An answer may take ``seconds``.  The
    command must answer each line of its input with a line of JSON.
    """

    def __init__(self, seconds: float, command: Sequence[str] = COMMAND) -> None:
        self._seconds, self._command = seconds, command
        self._waiting: dict[str, _Question] = {}
        self._running: tuple[str, _Question] | None = None
        self._arrived = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Answer questions within the context, at the end of which the process ends."""
        task = asyncio.create_task(self._work())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self._end()
            for job in self._waiting.values():
                job.supersede()

    async def ask(self, slot: str, question: str) -> dict[str, Any]:
        """Return the reply to a question of one line.

        SupersededError if a newer question of the slot came, BusyError if too many are waiting.
        """
        if self._running is not None and self._running[0] == slot:
            self._running[1].supersede()
        older = self._waiting.pop(slot, None)
        if older is not None:
            older.supersede()
        if len(self._waiting) >= MOST:
            raise BusyError
        job = _Question(question, asyncio.get_running_loop().create_future())
        self._waiting[slot] = job
        self._arrived.set()
        return await job.answer

    async def _work(self) -> None:
        with contextlib.suppress(OSError):  # reported when a question comes
            await self._start()  # ahead of questions: it takes longer than most answers
        while True:
            await self._arrived.wait()
            while self._waiting:
                slot = next(iter(self._waiting))
                job = self._waiting.pop(slot)
                self._running = slot, job
                try:
                    found = await self._reply(job)
                except OSError as error:  # the process could not be started, or is gone
                    await self._end()
                    found = _error(f"the computation could not be started: {error}")
                self._running = None
                if not job.answer.done():
                    job.answer.set_result(found)
            self._arrived.clear()

    async def _reply(self, job: _Question) -> dict[str, Any]:
        """Compute one answer; kill the process if it takes too long."""
        process = self._process or await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        clock = asyncio.get_running_loop().time
        began = clock()
        process.stdin.write(f"{job.question}\n".encode())
        read = asyncio.ensure_future(process.stdout.readline())
        superseded = asyncio.ensure_future(job.superseded.wait())
        try:
            await asyncio.wait(
                {read, superseded}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not read.done() and superseded.done():
                await asyncio.wait({read}, timeout=max(0.0, began + GRACE - clock()))
            if read.done() and read.result().endswith(b"\n"):
                found: dict[str, Any] = json.loads(read.result())
                return found
            gone = read.done()
        finally:
            superseded.cancel()
            read.cancel()
        await self._end()
        if gone:
            return _error("the computation ended before its answer: it may have run out of memory")
        return _error(f"no answer within {self._seconds:g} s, the limit of this page")

    async def _start(self) -> asyncio.subprocess.Process:
        """Start the process in a session of its own, so that it gets no interrupts."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONSAFEPATH": "1"},  # import nothing from the working directory
            limit=LONGEST,
            start_new_session=True,
        )
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _error(message: str) -> dict[str, Any]:
    return {"error": message, "setting": ""}
