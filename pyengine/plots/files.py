"""Pictures as files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "save"]

SUFFIXES = (".png", ".svg", ".pdf")


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the ending of the name says in which format.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to write.
    path : Path
        A name that ends in ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    ValueError
        For another ending.
    OSError
        If the file cannot be written.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {str(path)!r}")
    buffer = io.BytesIO()  # a picture that fails half-way leaves no file
    figure.savefig(buffer, format=path.suffix[1:])
    path.write_bytes(buffer.getvalue())
