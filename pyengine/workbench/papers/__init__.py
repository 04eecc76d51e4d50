"""Figures and tables of papers, regenerated.

Each paper has a module with ``PAPER``, a `Paper` of figures and tables (``item``), which is
imported on first use; ``run`` writes the files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyengine.workbench.papers.item import Paper

__all__ = ["NAMES", "paper"]

# names of the papers on the command line, and of their modules
NAMES = (
    *("kaissis2023_bounding", "lebeda2024", "leemann2023", "hayes2023"),
    "kaissis2023_relaxed",
)


def paper(name: str) -> Paper:
    """Return a paper by its name, one of `NAMES`."""
    found: Paper = import_module(f"{__name__}.{name}").PAPER
    return found
