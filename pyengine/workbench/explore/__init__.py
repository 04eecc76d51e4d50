"""An interactive page, served to this machine only: sliders for a run, and immediate answers."""

from pyengine.workbench.explore.server import explore

__all__ = ["explore"]
