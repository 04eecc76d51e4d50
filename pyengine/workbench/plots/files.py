"""Writing plots to files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine.workbench.plots.style import image
from pyengine.workbench.tables.files import replace_all

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "save"]

SUFFIXES = (".png", ".svg", ".pdf")


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, in the format given by the file's suffix.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or path-like
        A name that ends in ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    ValueError
        For another suffix.
    OSError
        If the file cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path must be a string or a path, got {path!r}")
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {str(target)!r}")
    # written atomically: if the disk is full, an older file stays intact
    replace_all(target.parent, {target.name: image(figure, suffix[1:])})
