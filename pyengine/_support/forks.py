"""Make the package usable in a forked child, whatever other threads were doing at the fork.

A child has only the thread that forked it.  Locks held by other threads stay locked for ever, so
the child makes new ones.  A half-imported module or a half-compiled function cannot be repaired, so
the fork waits until they are done.
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

LONGEST = 60.0  # seconds that a fork waits for imports, at most
MOMENT = 1e-3  # seconds between two checks
_IMPORT = "<frozen importlib._bootstrap>", "_find_and_load"  # file and function of an import


def in_child(start_afresh: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each forked child, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start_afresh)
    return start_afresh


class BallArithmetic:
    """The lock of FLINT, whose working precision is global to the process.

    Hold ``lock`` while it is changed, since other threads may be in the middle of a sum.
    """

    lock = RLock()


class Booking:
    """The lock of accountants' histories: hold ``lock`` to read one and add to it."""

    lock = RLock()


class Undivided:
    """The lock of operations that a fork must not interrupt: it waits for ``lock``."""

    lock = RLock()


@in_child
def _start_afresh() -> None:
    BallArithmetic.lock = RLock()
    Booking.lock = RLock()
    Undivided.lock = RLock()


def _is_own(name: object) -> bool:
    return isinstance(name, str) and name.split(".")[0] == "pyengine"


def _imports(frame: FrameType | None) -> bool:
    """Whether a thread is importing a module of this package, or one that the package imports."""
    asked = None  # name of the module being imported, until the importing frame is found
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
    """Whether we hold the global import lock, which keeps imports from starting during a fork."""

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
