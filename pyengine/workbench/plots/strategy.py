"""Plot of the worst strategy of an adaptive run, as a map of choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyengine._support.decimals import written
from pyengine._support.extras import needed
from pyengine.accounting.runs import Strategy
from pyengine.workbench.plots.style import COLOURS, figure, frame, legend, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["strategy_figure"]

FINEST = 600  # most rows of the map


def strategy_figure(strategy: Strategy, *, title: str = "") -> Figure:
    """Plot the choices of the worst strategy against steps left and log-likelihood ratio.

    Parameters
    ----------
    strategy : Strategy
        A strategy of a run without budget, limits and order, whose state is only the number of
        steps left.
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        A map with a colour for each choice; white where stopping is as good.

    Raises
    ------
    ValueError
        For a run with limits, or more than seven choices.
    """
    run = strategy.run
    if len(strategy.tables) != run.steps + 1 or run.steps == 0:
        raise ValueError("strategy must be of a run with steps, and without budget and limits")
    if len(run.menu) > len(COLOURS):
        raise ValueError(f"strategy must have at most {len(COLOURS)} choices, got {len(run.menu)}")
    with needed("a picture", "plots"):
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

    table = np.stack(strategy.tables[1:], axis=1)
    known = np.flatnonzero((table >= 0).any(axis=1))
    rows = np.unique(np.linspace(known[0], known[-1], FINEST).round().astype(int))
    low, high = strategy.log_ratios[rows[[0, -1]]]
    made = figure(6.4, 4.8)
    axes = made.subplots()
    axes.imshow(
        table[rows],
        cmap=ListedColormap(["white", *COLOURS[: len(run.menu)]]),
        vmin=-1.5,
        vmax=len(run.menu) - 0.5,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0.5, run.steps + 0.5, low, high),
    )
    frame(axes, xlabel="steps left", ylabel="log-likelihood ratio of what was released")
    axes.invert_xaxis()
    legend(made, [(Patch(color=COLOURS[i]), text) for i, text in enumerate(run.names)])
    axes.set_title(f"Worst choices for δ({written(strategy.epsilon)})", loc="left", fontsize=10)
    titled(made, title, strategy.adjacency)
    return made
