"""What a law keeps between questions, so that an answer cannot tell what was asked before."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Recent"]

V = TypeVar("V")


class Recent(Generic[V]):
    """The values used last, by what they depend on.

    A value must depend on its key and on the owner alone: whether it is still kept or made again
    then changes how long an answer takes, and no bit of it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, V] = {}

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, made if it is not kept."""
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value
        while len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value
