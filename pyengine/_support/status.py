"""What a status of the C core means: the one place that turns it into an error.

Functions of Python that the core calls keep what they raise for whoever has called the core.
"""

from __future__ import annotations

from threading import get_ident
from types import TracebackType

from pyengine._core import lib

__all__ = ["finished", "keep_raised"]

_raised: dict[int, BaseException] = {}  # by threads


def keep_raised(kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
    """Keep an exception until the core has returned; as `ffi.def_extern` calls it."""
    del kind, trace
    _raised[get_ident()] = error


def finished(status: int | None, what: str) -> bool:
    """Whether a kernel did its work, or could not fail; else it was too much for its limits."""
    if status == lib.PE_RAISED:
        raise _raised.pop(get_ident())
    if status == lib.PE_NO_MEMORY:
        raise MemoryError(f"not enough memory for {what}")
    return status is None or status == lib.PE_OK
