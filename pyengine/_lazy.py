"""Names of a package whose modules are imported when a program first asks for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

__all__ = ["finder"]


def finder(
    package: str, names: Mapping[str, Collection[str]], modules: Collection[str] = ()
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    names : mapping
        From modules of the package to the names that they define for it.
    modules : collection of str
        Modules that are found under their own names.

    Returns
    -------
    callable
        Gives what a name stands for, and keeps it in the package.
    """
    places = {name: module for module, own in names.items() for name in own}

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
