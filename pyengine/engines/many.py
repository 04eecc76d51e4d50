"""Many mechanisms in one call: equal Gaussian steps in the C core, on all processors.

Each answer has the same bits as alone.  Questions that the core does not answer, and other
mechanisms, are left to the caller, who asks them one by one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.pool import shared_pool
from pyengine._support.status import finished
from pyengine.engines.answers import FloatArray
from pyengine.engines.equal_steps import METHODS, run_settings
from pyengine.engines.functionals import array
from pyengine.engines.plan import ASKS
from pyengine.engines.spectral import COST_LIMIT
from pyengine.mechanisms import as_mechanism
from pyengine.mechanisms.dp_sgd import equal_gaussian_steps
from pyengine.mechanisms.many import Mechanisms

__all__ = ["AskedTogether", "answered_together", "listed"]

ORDERS = {"add": lib.PE_ADD, "remove": lib.PE_REMOVE, "add_remove": lib.PE_ADD_REMOVE}
CHUNK = 32  # questions of a chunk, about: 1 to 10 ms
LONGEST = 1024  # questions of a chunk at most: each chunk makes a mechanism's lines anew
FEW = 4  # questions up to which no threads are used
POLL_SECONDS = 0.2  # seconds between two checks for signals

Flags = npt.NDArray[np.bool_]


def listed(thing: Any) -> Mechanisms | npt.NDArray[np.object_] | None:
    """An array of mechanisms if a caller gave several; None for anything else."""
    if isinstance(thing, Mechanisms):
        return thing
    if isinstance(thing, list | tuple):
        if not thing or not all(_is_one(each) for each in thing):
            return None
        found = np.empty(len(thing), dtype=object)
        found[:] = thing
        return found
    if isinstance(thing, np.ndarray) and thing.dtype == object and thing.ndim and thing.size:
        return thing if all(_is_one(each) for each in thing.flat) else None
    return None


class AskedTogether(NamedTuple):
    """Questions of one name, with mechanisms and arguments broadcast.

    ``which`` is the index of each question's mechanism in the flattened array.
    """

    name: str
    mechanisms: Mechanisms | npt.NDArray[np.object_]
    which: npt.NDArray[np.intp]
    x: FloatArray


def answered_together(
    asked: AskedTogether, adjacency: str, method: str
) -> tuple[FloatArray, Flags]:
    """Values, lower and upper bounds from the C core, of shape (n, 3), and where it answers."""
    n = asked.x.size
    out, answered = np.empty((n, 3)), np.zeros(n, dtype=np.bool_)
    if adjacency not in ORDERS or method not in METHODS or not n:
        return out, answered
    noise, rate, steps = _numbers(asked.mechanisms)
    serves = (rate > 0.0) & (rate < 1.0) & (steps >= 2.0) & (noise > 0.0)
    places = np.flatnonzero(serves[asked.which])
    which = asked.which[places]
    if (which[1:] < which[:-1]).any():  # group by mechanism
        order = np.argsort(which, kind="stable")
        places, which = places[order], which[order]
    if places.size:
        parts = (np.ascontiguousarray(numbers[which]) for numbers in (noise, rate, steps))
        work = _Chunks(asked.name, ORDERS[adjacency], which, (*parts, asked.x[places]))
        work.done()
        out[places], answered[places] = work.out, work.answered
    return out, answered


def _is_one(thing: object) -> bool:
    return as_mechanism(thing) is not None


def _numbers(mechanisms: Mechanisms | npt.NDArray[np.object_]) -> Sequence[FloatArray]:
    """Noise, rates and numbers of equal steps; 0 for other mechanisms."""
    if isinstance(mechanisms, Mechanisms):
        parts = mechanisms.noise_multiplier, mechanisms.sampling_probability, mechanisms.steps
        return [part.ravel().astype(np.float64) for part in parts]
    found = [equal_gaussian_steps(each) or (0.0, 0.0, 0) for each in mechanisms.flat]
    return list(np.array(found, dtype=np.float64).reshape(-1, 3).T)


class _Chunks:
    """Chunks of questions, from which threads take the next one in turn."""

    def __init__(
        self,
        name: str,
        orders: int,
        which: npt.NDArray[np.intp],
        numbers: tuple[FloatArray, ...],
    ) -> None:
        n = which.size
        self.out, self.answered = np.empty((n, 3)), np.zeros(n, dtype=np.bool_)
        self._question, self._orders, self._numbers = ASKS[name], orders, numbers
        self._settings, self._edges = run_settings(), _edges(which)
        self._next = itertools.count().__next__
        self._stop = np.zeros(1, dtype=np.uint8)

    def done(self) -> None:
        """Answer all questions; Ctrl-C interrupts once each thread has finished its answer."""
        chunks = len(self._edges) - 1
        workers = min(os.cpu_count() or 1, chunks)
        if self.answered.size <= FEW:
            self._run()
            return
        from concurrent.futures import FIRST_EXCEPTION, wait

        pool = shared_pool()
        futures = [pool.submit(self._run) for _ in range(workers)]
        try:
            # wait in intervals: not on every system does a signal interrupt a wait
            open_ = set(futures)
            while open_:
                done, open_ = wait(open_, POLL_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            self._stop[0] = 1
            for future in futures:
                future.cancel()
            raise

    def _run(self) -> None:
        stop = ffi.from_buffer("unsigned char[]", self._stop)
        flags = self.answered.view(np.uint8)
        while not self._stop[0]:
            chunk = self._next()
            if chunk >= len(self._edges) - 1:
                return
            part = slice(self._edges[chunk], self._edges[chunk + 1])
            noise, rate, steps, x = (array(numbers[part]) for numbers in self._numbers)
            status = lib.pe_plan_many(
                self._settings,
                self._orders,
                COST_LIMIT,
                part.stop - part.start,
                noise,
                rate,
                steps,
                self._question,
                x,
                stop,
                array(self.out[part].reshape(-1), writable=True),
                ffi.from_buffer("unsigned char[]", flags[part], require_writable=True),
            )
            finished(status, "the spectral engine")


def _edges(which: npt.NDArray[np.intp]) -> list[int]:
    """Ends of chunks: where the mechanism changes, but after at most `LONGEST` questions."""
    n = which.size
    starts = np.flatnonzero(np.concatenate(([True], which[1:] != which[:-1], [True])))
    near = starts[np.searchsorted(starts, np.arange(0, n + CHUNK, CHUNK).clip(max=n))]
    edges = np.unique(np.concatenate((near, np.arange(0, n, LONGEST)[1:])))
    return [int(edge) for edge in edges]
