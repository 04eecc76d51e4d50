"""Which papers there are; a paper's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from pyengine.workbench.papers.item import Paper

__all__ = ["NAMES", "paper"]

# name on the command line and module in this package, which holds PAPER
NAMES = (
    "kaissis2023_bounding",
    "lebeda2024",
    "leemann2023",
    "hayes2023",
    "kaissis2023_relaxed",
)


def paper(name: str) -> Paper:
    """Return a paper by its name, one of `NAMES`."""
    found = import_module(f"pyengine.workbench.papers.{name}").PAPER
    assert isinstance(found, Paper)
    return found
