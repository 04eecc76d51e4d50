"""Plots; matplotlib is imported when the first one is drawn.

Functions return a `matplotlib.figure.Figure` without a window; `save` writes it to a file.
"""

from pyengine.workbench.plots.curves import delta_figure, gamma_figure, trade_off_figure
from pyengine.workbench.plots.files import SUFFIXES, save
from pyengine.workbench.plots.growth import epsilon_figure
from pyengine.workbench.plots.noise import noise_figure
from pyengine.workbench.plots.series import Series
from pyengine.workbench.plots.strategy import strategy_figure
from pyengine.workbench.plots.table import Curve, gamma_png

__all__ = [
    "SUFFIXES",
    "Curve",
    "Series",
    "delta_figure",
    "epsilon_figure",
    "gamma_figure",
    "gamma_png",
    "noise_figure",
    "save",
    "strategy_figure",
    "trade_off_figure",
]
