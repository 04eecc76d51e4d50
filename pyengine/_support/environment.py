"""Run the package in the default floating-point environment, whatever the host program has set.

Error bounds are proven for rounding to nearest with subnormal numbers.  A host may have another
rounding mode, flush subnormal numbers (as libraries linked with ``-ffast-math`` make threads do),
trap exceptions or reduce the precision of the x87 unit.  So all public functions and methods are
guarded: a call sets the default environment if the thread has another one, and restores the host's
when it returns or raises.  Threads started within a call inherit the default.

This is done in one place: after a module of the package has been executed, the objects in its
``__all__`` are guarded.  The execution is guarded as well, because Python misreads literals in
other environments, and would store the wrong values in its ``.pyc``.  The kernels in C guard
themselves (``csrc/environment.h``), in case a callback changes the environment.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from pyengine._objects import Guarded
from pyengine._support.lazy import spec_of_moved

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["Guarded", "guarded"]

# Packages with internal functions only, which are left unguarded to save time.
_INSIDE = {"engines", "errors", "laws", "numerics"}
# Functions and methods that do not compute.
_PLAIN = {
    *("__class_getitem__", "__delattr__", "__getattr__", "__getattribute__", "__getstate__"),
    *("__hash__", "__init_subclass__", "__new__", "__reduce__", "__setattr__", "__setstate__"),
    *("as_mechanism", "checked_mechanism", "steps_of", "threat_model_of"),
    *(
        "inner",
        "noise",
        "places",
        "selected",
        "share",
        "stage",
    ),  # the parts of mechanisms, for the engines
}
_GENERATOR = 0x20  # the flag of the code of generator functions
_guards: dict[Any, Any] = {}  # of functions, which several modules may list
_classes: set[type] = set()  # whose methods are guarded


def guarded(function: Any) -> Any:
    """Return a function or generator function that runs in the default environment."""
    found = _guards.get(function)
    if found is None:
        is_generator = function.__code__.co_flags & _GENERATOR
        found = _guards[function] = Guarded(_stepwise(function) if is_generator else function)
        # attributes that the class Guarded has, too; all others are looked up in the function
        found.__doc__, found.__module__ = function.__doc__, function.__module__
        found.__wrapped__ = function
    return found


def _stepwise(function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    @wraps(function)
    def begun(*args: Any, **kwargs: Any) -> Iterator[Any]:
        return iter(Guarded(function(*args, **kwargs).__next__), object())

    return begun


def _guard_module(module: ModuleType) -> None:
    held = vars(module)
    for name in held.get("__all__", ()):
        value = held.get(name)
        kind = type(value)
        if kind is FunctionType:
            if name not in _PLAIN and value.__module__.startswith("pyengine."):
                held[name] = guarded(value)
        elif isinstance(value, type) and value.__module__.startswith("pyengine."):
            for base in value.__mro__:
                if base not in _classes and (base is value or _is_public(base.__module__)):
                    _classes.add(base)
                    _guard_class(base)


def _guard_class(cls: type) -> None:
    for name, value in list(vars(cls).items()):
        if name in _PLAIN or (name[0] == "_" and name[-2:] != "__"):
            continue
        kind = type(value)
        if kind is FunctionType:
            if value.__module__.startswith("pyengine."):  # not what NamedTuple has written
                setattr(cls, name, guarded(value))
        elif kind is property:
            setattr(cls, name, value.getter(guarded(value.fget)))
        elif isinstance(value, functools.cached_property):
            value.func = guarded(value.func)
        elif kind is classmethod or kind is staticmethod:
            setattr(cls, name, kind(guarded(value.__func__)))


def _is_public(name: str) -> bool:
    rooms = name.split(".")
    if rooms[0] != "pyengine" or len(rooms) == 1:
        return False
    return rooms[1] not in _INSIDE and not any(room[0] == "_" for room in rooms)


class _Finder:
    """Finds modules of the package by all other finders, and guards them."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one module; None for those of other packages."""
        if not name.startswith("pyengine."):
            return None
        moved = spec_of_moved(name)
        if moved is not None:
            return moved
        found = (
            finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls
        )
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = cast(Any, _Loader(spec.loader))
        return spec


class _Loader:
    """Loads a module by another loader, and guards it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "loader"), name)

    @guarded
    def exec_module(self, module: ModuleType) -> None:
        """Execute the module in the default environment."""
        self.loader.exec_module(module)
        if _is_public(module.__name__):
            _guard_module(module)


sys.meta_path.insert(0, _Finder)
