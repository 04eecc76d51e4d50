"""Count comparisons of tests that may skip what an engine refuses.

A test that skips refusals cannot fail if everything is refused. ``@comparing(0.8)`` goes above all
other decorators of such a test, which calls ``compared()`` for each comparison made and
``left_out()`` for each one skipped. The test fails below that share, or without any comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

__all__ = ["compared", "comparing", "left_out"]

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass
class _Tally:
    """Numbers of comparisons that a test made and left out."""

    made: int = 0
    skipped: int = 0


_running: ContextVar[_Tally | None] = ContextVar("_running", default=None)


def _tally() -> _Tally:
    found = _running.get()
    assert found is not None, "the test must stand below @comparing"
    return found


def compared(number: int = 1) -> None:
    """Count comparisons that were made."""
    _tally().made += number


def left_out(number: int = 1) -> None:
    """Count comparisons that were skipped because there was no answer."""
    _tally().skipped += number


def comparing(share: float, least: int = 1) -> Callable[[Test], Test]:
    """Make a test fail that makes less than this share, or this number, of its comparisons."""

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(*arguments: Any, **keywords: Any) -> Any:
            tally = _Tally()
            token = _running.set(tally)
            try:
                result = test(*arguments, **keywords)
            finally:
                _running.reset(token)
            asked = tally.made + tally.skipped
            assert tally.made >= max(least, share * asked), (
                f"{tally.made} of {asked} comparisons were made, "
                f"fewer than {least} or {share:.0%} of them"
            )
            return result

        return run  # type: ignore[return-value]

    return decorate
