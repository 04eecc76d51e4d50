"""A page to play with: sliders for a run, and answers while they move, on this machine alone."""

from pyengine.workbench.explore.server import explore

__all__ = ["explore"]
