"""What a status of the C core means: the one place that turns it into an error."""

from __future__ import annotations

from pyengine._core import lib

__all__ = ["finished"]


def finished(status: int | None, what: str) -> bool:
    """Whether a kernel did its work, or could not fail; else it was too much for its limits."""
    if status == lib.PE_NO_MEMORY:
        raise MemoryError(f"not enough memory for {what}")
    return status is None or status == lib.PE_OK
