"""One question at a time: the working precision of FLINT is one for all threads of a process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyengine._support.forks import BallArithmetic
from pyengine.reference.balls import precision

__all__ = ["exclusive"]

P = ParamSpec("P")
R = TypeVar("R")

START_BITS = 128  # whatever precision a caller has set


def exclusive(question: Callable[P, R]) -> Callable[P, R]:
    """Let a function wait until no other thread asks, and begin at the same precision always.

    Threads would change each other's precision in the middle of a sum.  They lose nothing by
    waiting, as ball arithmetic keeps the interpreter to itself.
    """

    @functools.wraps(question)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        with BallArithmetic.lock, precision(START_BITS):
            return question(*args, **kwargs)

    return asked
