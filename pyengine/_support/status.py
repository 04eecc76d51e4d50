"""Translation of status codes of the C core into exceptions.

If a Python function called by the core raises, the exception is stored here and raised again when
the core has returned.
"""

from __future__ import annotations

from threading import get_ident
from types import TracebackType

from pyengine._core import lib

__all__ = ["finished", "keep_raised"]

_raised: dict[int, BaseException] = {}  # by thread


def keep_raised(kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
    """Store an exception until the core has returned; the signature is that of `ffi.def_extern`."""
    del kind, trace
    _raised[get_ident()] = error


def finished(status: int | None, what: str) -> bool:
    """True if a kernel succeeded or has no status (None); False if its limits were exceeded."""
    if status == lib.PE_RAISED:
        raise _raised.pop(get_ident())
    if status == lib.PE_NO_MEMORY:
        raise MemoryError(f"not enough memory for {what}")
    return status is None or status == lib.PE_OK
