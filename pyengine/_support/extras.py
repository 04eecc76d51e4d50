"""Optional packages: where one is missing, the message names the extra that brings it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyengine._version import DISTRIBUTION

__all__ = ["MissingPackageError", "missing", "needed"]


class MissingPackageError(ModuleNotFoundError):
    """An optional package is not installed; the message says what to install."""


def missing(what: str, module: str, extra: str) -> str:
    """Return what to tell where a module that an extra brings is not there."""
    return f"{what} needs {module}: pip install '{DISTRIBUTION}[{extra}]'"


@contextlib.contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Name the extra that brings the optional imports of a block where a package is missing.

    Modules of this package are not meant to be missing: their errors stay as they are.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "pyengine") or isinstance(error, MissingPackageError):
            raise
        raise MissingPackageError(missing(what, module, extra), name=module) from error
