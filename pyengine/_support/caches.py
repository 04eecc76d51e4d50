"""What the package keeps between questions: one budget of bytes, one lock, one way to forget it.

Finding a value takes no lock; adding and forgetting do.  A forked child starts with nothing, as
what it inherits may hold locks of threads that it does not have.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import weakref
from _thread import allocate_lock  # threading takes as long to import as all of this file
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from pyengine._fenv import Guarded
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

BUDGET = 256 * 2**20  # bytes of all that is kept, beside the latest value of each kind
ROOM = BUDGET // 8  # what is freed at a time beyond what is needed: looking for the oldest costs
WEIGHINGS = 2  # values that grow which each addition weighs again, beside what was added before
# What belongs to the program and not to a value that refers to it.
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, Guarded, weakref.ref)


if TYPE_CHECKING:
    from functools import cached_property  # which mypy knows
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as the one it stands for
        """That of functools, without the lock that it has before Python 3.12.

        One lock serves all objects of a class there: threads wait for each other, and a child
        forked meanwhile waits for ever.  Threads that ask at the same time get the same value.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


class Once(Generic[V]):
    """A value that is made when it is asked for first, and belongs to who asks."""

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

    What is kept outside of a cache holds ``current`` beside it and is void when that has changed.
    """

    current = object()


class _Use:
    """Size of a value, and when it was used last."""

    __slots__ = ("last", "size")
    last: int
    size: int


class Cache(Generic[V]):
    """Values of one kind by their keys; those used last are kept.

    ``bytes_of`` weighs them; where one ``grows`` they are weighed again now and then.
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
        self._turn = 0  # whose turn it is to be weighed again, in the order of additions
        self.bytes = 0  # of all values, as they were weighed last
        # the value of a key or None, in one operation that needs no lock and is not noted as a use
        self.peek = self._values.get
        _caches.append(self)

    def __len__(self) -> int:
        return len(self._values)

    def get_or_make(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key; all who ask at the same time get the same one.

        What is made while the cache is cleared is not kept.
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
        """Keep a value that was made in an epoch, and return the one that is kept by its key.

        Others are dropped where there is no room for it.
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
        """Weigh again what was added last, which has answered since, and others in turn."""
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
        """Keys from the one that was not used for the longest time on, each with that time."""
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
    """Bytes of the values of all caches, as they were weighed last."""

    bytes = 0


_clock = itertools.count()
_lock = allocate_lock()
_caches: list[Cache[Any]] = []


def kept(
    entries: int, bytes_of: Callable[[Any], int] | None = None, *, grows: bool = False
) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Keep the results of a function of hashable arguments; parameters as of `Cache`."""

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        cache: Cache[V] = Cache(entries, bytes_of, grows=grows)

        @functools.wraps(function)
        def found(*args: P.args, **kwargs: P.kwargs) -> V:
            key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
            return cache.get_or_make(key, lambda: function(*args, **kwargs))

        return found

    return decorate


def kept_bytes() -> int:
    """Size of all that is kept now, weighed afresh."""
    with _lock:
        for cache in _caches:
            if cache._grows:
                cache._weigh_again(cache._uses)
        return _All.bytes


def size_of(value: object) -> int:
    """Bytes of an object and all that it refers to, without functions, classes and modules."""
    seen: set[int] = set()
    open_: list[Any] = [value]
    total = 0
    while open_:
        found = open_.pop()
        if id(found) in seen or isinstance(found, _SHARED):
            continue
        seen.add(id(found))
        # an array knows its elements, which it may only borrow from another object
        total += sys.getsizeof(found, 64)
        base = getattr(found, "base", None)
        if base is not None and hasattr(found, "nbytes"):
            open_.append(base)
        open_.extend(gc.get_referents(found))
    return total


def _make_room() -> None:
    """Drop what was not used for the longest time, but of each kind what was used last."""
    oldest = [(last, key, cache) for cache in _caches for last, key in cache._by_use()[:-1]]
    for _, key, cache in sorted(oldest, key=itemgetter(0)):
        if _All.bytes <= BUDGET - ROOM:
            break
        cache._drop(key)


def clear_cache() -> None:
    """Forget all that the package keeps, as a new process would.

    Safe while other threads ask: they go on with what they hold.
    """
    with _lock:
        Epoch.current = object()
        for cache in _caches:
            cache._clear()
        _All.bytes = 0  # also where a child was forked while a value was being counted


@in_child
def _start_afresh() -> None:
    """A child forked while another thread held the lock would wait for it for ever."""
    global _lock
    _lock = allocate_lock()
    clear_cache()
