"""Errors that end a command early, and exit codes."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

from pyengine._support import checks
from pyengine._support.extras import missing

__all__ = [
    *("FOUND", "INTERNAL", "INTERRUPTED", "UNUSABLE", "CommandError", "read_count"),
    *("require", "user_errors"),
]

FOUND = 1  # a value was refused, or something unsafe was found
UNUSABLE = 2  # wrong input, or output that cannot be written
INTERNAL = 3  # a defect of this package
INTERRUPTED = 130  # the code of shells for SIGINT


class CommandError(Exception):
    """A command cannot be carried out; the message is shown without a traceback."""


@contextlib.contextmanager
def user_errors(place: object = "", *others: type[Exception]) -> Iterator[None]:
    """Turn wrong values, failing files and other errors of the user's into a `CommandError`.

    ``place`` is where an error of the system happened that names no file.
    """
    caught: tuple[type[Exception], ...] = (ValueError, *others)
    try:
        yield
    except caught as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        reason = error.strerror
        text = f"{error.filename or place}: {reason}" if reason else str(error)
        raise CommandError(text) from None


def require(what: str, extra: str, *packages: str) -> None:
    """End the command before any work if an optional package is missing."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise CommandError(missing(what, package, extra))


def read_count(option: str, text: str, most: int) -> int:
    """Whole number from 1 to ``most``."""
    with user_errors():
        found = checks.count(option, text, least=1)
    if found > most:
        raise CommandError(f"{option} must be at most {most}, got {checks.said(text)}")
    return found
