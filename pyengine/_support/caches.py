"""Caches between questions, with a common budget of bytes, a common lock and one way to clear them.

Looking up a value takes no lock; adding and clearing do.  A forked child starts with empty caches,
since inherited values may hold locks of threads that do not exist in the child.
"""

from __future__ import annotations

import functools
import itertools
from _thread import allocate_lock  # threading takes as long to import as all of this file
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from pyengine._objects import size_of
from pyengine._support.forks import in_child

__all__ = [
    "BUDGET",
    "Cache",
    "Epoch",
    "Once",
    "cached_property",
    "clear_cache",
    "kept",
    "kept_bytes",
    "size_of",
]

P = ParamSpec("P")
V = TypeVar("V")

BUDGET = 256 * 2**20  # bytes of all cached values, except the latest one of each cache
ROOM = BUDGET // 8  # bytes freed beyond what is needed, since finding the oldest values is slow
WEIGHINGS = 2  # growing values measured again at each addition, besides the one added last

if TYPE_CHECKING:
    from functools import cached_property  # known to mypy
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as the one it stands for
        """As in functools, but without the lock that Python before 3.12 uses.

        That lock is shared by all objects of a class: threads wait for each other, and a child
        forked meanwhile deadlocks.  Threads that ask at the same time still get the same value.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


class Once(Generic[V]):
    """A value that is computed at the first call, and lives as long as this object."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make

    @cached_property
    def _value(self) -> V:
        return self._make()

    def __call__(self) -> V:
        """Return the value."""
        return self._value


class Epoch:
    """The time between two calls of `clear_cache`.

    Values stored outside a cache store ``current`` with them, and are invalid once it has changed.
    """

    current = object()


class _Use:
    """Size of a value, and when it was used last."""

    __slots__ = ("last", "size")
    last: int
    size: int


class Cache(Generic[V]):
    """A cache of at most ``entries`` values by key, which drops those not used for longest.

    ``bytes_of`` measures their size; if they may grow (``grows``), sizes are updated now and then.
    """

    def __init__(
        self,
        entries: int,
        bytes_of: Callable[[V], int] | None = None,
        *,
        grows: bool = False,
    ) -> None:
        self._most, self._grows = entries, grows
        self._bytes_of: Callable[[V], int] = size_of if bytes_of is None else bytes_of
        self._values: dict[Hashable, V] = {}
        self._uses: dict[Hashable, _Use] = {}
        self._turn = 0  # index of the next value to be measured again, in the order of additions
        self.bytes = 0  # total size when last measured
        # the value of a key or None: atomic without a lock, and does not count as a use
        self.peek = self._values.get
        _caches.append(self)

    def __len__(self) -> int:
        return len(self._values)

    def get_or_make(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key; threads that ask at the same time get the same object.

        A value computed while the caches are cleared is not stored.
        """
        use = self._uses.get(key)
        if use is not None:
            use.last = next(_clock)
            try:
                return self._values[key]
            except KeyError:  # dropped meanwhile
                pass
        epoch = Epoch.current
        return self.keep(key, make(), epoch)

    def keep(self, key: Hashable, value: V, epoch: object) -> V:
        """Store a value that was computed in an epoch; return the one stored for its key.

        Other values are dropped if there is no room for it.
        """
        with _lock:
            if epoch is not Epoch.current:
                return value
            values, before = self._values, len(self._values)
            kept = values.setdefault(key, value)
            if len(values) == before:
                return kept
            if self._grows and before:
                self._weigh_some()
            self._uses[key] = use = _Use()
            use.last, use.size = next(_clock), self._bytes_of(value)
            self._weighed(use.size)
            if before >= self._most:
                for _, oldest in self._by_use()[: before + 1 - self._most + self._most // 8]:
                    self._drop(oldest)
            if _All.bytes > BUDGET:
                _make_room()
            return value

    def _weighed(self, change: int) -> None:
        self.bytes += change
        _All.bytes += change

    def _weigh_some(self) -> None:
        """Measure again the value added last, which may have grown since, and others in turn."""
        self._turn = (self._turn + WEIGHINGS) % len(self._uses)
        self._weigh_again(
            (next(reversed(self._uses)), *islice(self._uses, self._turn, self._turn + WEIGHINGS))
        )

    def _weigh_again(self, keys: Iterable[Hashable]) -> None:
        for key in keys:
            use = self._uses[key]
            before, use.size = use.size, self._bytes_of(self._values[key])
            self._weighed(use.size - before)

    def _by_use(self) -> list[tuple[int, Hashable]]:
        """Keys with the time of their last use, oldest first."""
        return sorted(((use.last, key) for key, use in self._uses.items()), key=itemgetter(0))

    def _drop(self, key: Hashable) -> None:
        del self._values[key]
        size = self._uses.pop(key).size
        self._weighed(-size)

    def _clear(self) -> None:
        if self._values or self.bytes:
            self._values.clear()
            self._uses.clear()
            self._weighed(-self.bytes)


class _All:
    """Total size of the values of all caches, when last measured."""

    bytes = 0


_clock = itertools.count()
_lock = allocate_lock()
_caches: list[Cache[Any]] = []


def kept(
    entries: int, bytes_of: Callable[[Any], int] | None = None, *, grows: bool = False
) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Cache the results of a function of hashable arguments; parameters as of `Cache`."""

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        cache: Cache[V] = Cache(entries, bytes_of, grows=grows)

        @functools.wraps(function)
        def found(*args: P.args, **kwargs: P.kwargs) -> V:
            key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
            return cache.get_or_make(key, lambda: function(*args, **kwargs))

        return found

    return decorate


def kept_bytes() -> int:
    """Size in bytes of all cached values, measured anew."""
    with _lock:
        for cache in _caches:
            if cache._grows:
                cache._weigh_again(cache._uses)
        return _All.bytes


def _make_room() -> None:
    """Drop the values not used for longest from all caches, except the latest one of each."""
    oldest = [(last, key, cache) for cache in _caches for last, key in cache._by_use()[:-1]]
    for _, key, cache in sorted(oldest, key=itemgetter(0)):
        if _All.bytes <= BUDGET - ROOM:
            break
        cache._drop(key)


def clear_cache() -> None:
    """Clear all caches of the package, as in a new process.

    Safe while other threads compute: they continue with the values that they hold.
    """
    with _lock:
        Epoch.current = object()
        for cache in _caches:
            cache._clear()
        _All.bytes = 0  # a child may be forked in the middle of an update


@in_child
def _start_afresh() -> None:
    """New lock and empty caches: another thread may have held the lock at the fork."""
    global _lock
    _lock = allocate_lock()
    clear_cache()
