"""An interactive page with sliders for a run and immediate answers, served on this machine only."""

from pyengine.workbench.explore.server import explore

__all__ = ["explore"]
