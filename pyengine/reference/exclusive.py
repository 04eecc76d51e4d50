"""A lock around questions: FLINT has one working precision for all threads of a process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyengine._support.forks import BallArithmetic
from pyengine.reference.balls import precision

__all__ = ["exclusive"]

P = ParamSpec("P")
R = TypeVar("R")

START_BITS = 128  # working precision at the start of a question, whatever the caller has set


def exclusive(question: Callable[P, R]) -> Callable[P, R]:
    """Make a function run in one thread at a time, from the same working precision always.

    Otherwise threads would change each other's precision in the middle of a sum.  Waiting costs
    nothing, as ball arithmetic holds the interpreter's lock.
    """

    @functools.wraps(question)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        with BallArithmetic.lock, precision(START_BITS):
            return question(*args, **kwargs)

    return asked
