"""Figures and tables of the papers, regenerated.

One module for each paper holds ``PAPER``, a `Paper` of figures and tables (``item``), and is
imported when it is asked for; ``run`` makes the files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyengine.workbench.papers.item import Paper

__all__ = ["NAMES", "paper"]

# names on the command line and of modules
NAMES = (
    *("kaissis2023_bounding", "lebeda2024", "leemann2023", "hayes2023"),
    "kaissis2023_relaxed",
)


def paper(name: str) -> Paper:
    """Return a paper by its name, one of `NAMES`."""
    found: Paper = import_module(f"{__name__}.{name}").PAPER
    return found
