"""Threads that all kernels share which let go of the interpreter lock."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from pyengine._support.forks import in_child

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["shared_pool"]

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def shared_pool() -> ThreadPoolExecutor:
    """One thread for each core, made when they are first asked for."""
    global _pool
    with _lock:
        if _pool is None:
            # which brings the modules of logging with it: no import of the package waits for them
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="pyengine")
        return _pool


@in_child
def _start_afresh() -> None:
    """A child inherits the pool without its threads, and the lock in whatever state it was."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
