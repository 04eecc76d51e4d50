"""The C core's search for the sign change of a decreasing function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyengine._core import ffi, lib
from pyengine._support.status import finished, keep_raised

__all__ = ["root_of"]

Bracket = tuple[float, float]

OK: int = lib.PE_OK
ENDS = ffi.typeof("double[2]")


def root_of(
    function: Callable[[float], float],
    expected: Bracket,
    ends: Bracket,
    room: float = 0.0,
    jumps: Sequence[float] = (),
    noise: float = 0.0,
) -> Bracket:
    """Return a narrow bracket of the x at which a decreasing function changes sign.

    Parameters
    ----------
    function : callable
        The function.
    expected, ends : pair of float
        Brackets that probably and certainly hold x.
    room : float
        Width of the bracket at which to stop, beside some roundings of x.
    jumps : sequence of float
        Where the function may jump, rising.
    noise : float
        An x at which the function is at most this in modulus becomes both ends.
    """
    handle, out = ffi.new_handle(function), ffi.new(ENDS)
    status = lib.pe_falling_root(
        lib.python_function, handle, expected, ends, room, len(jumps), jumps, noise, out
    )
    finished(status, "a search")
    return out[0], out[1]


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_function(function: Any, x: float, out: Any) -> int:
    """Evaluate the function of a handle at ``x``."""
    out[0] = ffi.from_handle(function)(x)
    return OK
