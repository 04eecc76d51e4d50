"""Paths of the C header and of the shared library."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["get_include", "get_library"]

NAMES = ("libpyengine.so", "libpyengine.dylib")


def get_include() -> str:
    """Directory of ``libpyengine.h``, for the compiler's ``-I``.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> import os
    >>> import pyengine as pe
    >>> os.listdir(pe.get_include())
    ['libpyengine.h']
    """
    return str(Path(__file__).parents[1] / "include")


def get_library() -> str:
    """Path of the shared library ``libpyengine``, to link or to load.

    Returns
    -------
    str
        An absolute path; its directory is for the linker's ``-L`` and ``-rpath``.

    Raises
    ------
    OSError
        On Windows, for which it is not built.

    Notes
    -----
    Functions, accuracy, threads and versions are documented in the header.

    Examples
    --------
    >>> import ctypes
    >>> import pyengine as pe
    >>> ctypes.CDLL(pe.get_library()).pyengine_api_version()
    1000
    """
    for name in NAMES:
        path = Path(__file__).parents[1] / "lib" / name
        if path.exists():
            return os.fspath(path)
    raise OSError(f"libpyengine is not in {path.parent}: it is built on Linux and macOS alone")
