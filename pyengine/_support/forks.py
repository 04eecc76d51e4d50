"""What lets a forked child answer whatever other threads were doing.

A child has only the thread that forked it.  What another thread held stays held for ever: a lock,
which the child makes anew, or a module that is half imported and a function that is half compiled,
which nothing mends: a fork waits until they are done.
"""

from __future__ import annotations

import _imp
import os
import sys
import time
from _thread import RLock, get_ident
from collections.abc import Callable
from types import FrameType

__all__ = ["BallArithmetic", "Booking", "Undivided", "in_child"]

LONGEST = 60.0  # seconds that a fork waits for imports
MOMENT = 1e-3  # between two looks
_IMPORT = "<frozen importlib._bootstrap>", "_find_and_load"  # where modules' locks are held


def in_child(start_afresh: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each forked child, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start_afresh)
    return start_afresh


class BallArithmetic:
    """FLINT, the working precision of which is one for all threads of a process.

    Who changes it holds ``lock``: threads would change each other's in the middle of a sum.
    """

    lock = RLock()


class Booking:
    """What accountants have booked: who reads it and writes more of it holds ``lock``."""

    lock = RLock()


class Undivided:
    """What a child could not go on with: a fork waits for who holds ``lock``."""

    lock = RLock()


@in_child
def _start_afresh() -> None:
    BallArithmetic.lock = RLock()
    Booking.lock = RLock()
    Undivided.lock = RLock()


def _is_own(name: object) -> bool:
    return isinstance(name, str) and name.split(".")[0] == "pyengine"


def _imports(frame: FrameType | None) -> bool:
    """Whether a thread imports a module of this package, or one that the package asked for."""
    asked = None  # the module that is being imported, where the next caller is not yet known
    while frame is not None:
        code = frame.f_code
        if (code.co_filename, code.co_name) == _IMPORT:
            asked = frame.f_locals.get("name")
            if _is_own(asked):
                return True
        elif asked is not None and not code.co_filename.startswith("<frozen importlib"):
            if _is_own(frame.f_globals.get("__name__")):
                return True
            asked = None
        frame = frame.f_back
    return False


class _Imports:
    """The lock without which no thread begins to import a module; held while forking."""

    held = False


def _wait() -> None:
    own, end = get_ident(), time.monotonic() + LONGEST
    Undivided.lock.acquire()
    while True:
        _imp.acquire_lock()
        frames = sys._current_frames()
        if not any(_imports(frames[thread]) for thread in frames if thread != own):
            _Imports.held = True
            return
        _imp.release_lock()
        if time.monotonic() > end:
            return
        time.sleep(MOMENT)


def _let_imports_go_on() -> None:
    if _Imports.held:
        _Imports.held = False
        _imp.release_lock()


def _go_on() -> None:
    _let_imports_go_on()
    Undivided.lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_let_imports_go_on)
