"""Optional packages: if one is missing, the message names the extra that installs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyengine._version import DISTRIBUTION

__all__ = ["MissingPackageError", "missing", "needed"]


class MissingPackageError(ModuleNotFoundError):
    """An optional package is not installed; the message says what to install."""


def missing(what: str, module: str, extra: str) -> str:
    """Return the message for a missing module that an extra would install."""
    return f"{what} needs {module}: pip install '{DISTRIBUTION}[{extra}]'"


@contextlib.contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Turn a failed import in the block into an error that names the extra to install.

    Errors about modules of this package itself are passed on unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "pyengine") or isinstance(error, MissingPackageError):
            raise
        raise MissingPackageError(missing(what, module, extra), name=module) from error
