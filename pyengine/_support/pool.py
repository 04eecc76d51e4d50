"""A thread pool shared by all kernels that release the interpreter lock."""

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
    """The pool with one thread for each core, made at the first call."""
    global _pool
    with _lock:
        if _pool is None:
            # imported here, since it is slow: it imports logging
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="pyengine")
        return _pool


@in_child
def _start_afresh() -> None:
    """New pool and lock: a child inherits the pool without its threads, and maybe a held lock."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
