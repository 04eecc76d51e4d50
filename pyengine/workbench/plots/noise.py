"""Noise that meets a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine._support.decimals import written
from pyengine.calibration import calibrate
from pyengine.calibration.targets import EpsilonDelta
from pyengine.mechanisms import Mechanism
from pyengine.workbench.plots.style import figure, frame, legend, line, titled
from pyengine.workbench.plots.ticks import ticked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["noise_figure"]

POINTS, WIDTH = 21, 1e-4  # of a curve; each point is a calibration, finer than a line is wide


def noise_figure(
    families: Mapping[str, Callable[[Any], Mechanism]],
    delta: float,
    *,
    epsilons: tuple[float, float] = (0.1, 10.0),
    adjacency: str = "add_remove",
    title: str = "",
) -> Figure:
    """Plot the smallest noise multipliers for (ε, δ)-differential privacy against ε.

    Parameters
    ----------
    families : mapping of str to callable
        For each name in the legend, a callable that makes a mechanism from a noise multiplier.
    delta : float
        δ in (0, 1).
    epsilons : (float, float)
        Ends of the ε axis, positive and increasing.
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.delta`.
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        Noise multipliers by `pyengine.calibrate`, to a relative 1e-4, on logarithmic axes.
    """
    made = figure(6.4, 4.8)
    axes = made.subplots()
    epsilon = np.geomspace(*epsilons, POINTS)
    target = EpsilonDelta(epsilon, delta, adjacency=adjacency)
    entries = []
    for index, (label, make) in enumerate(families.items()):
        noise = calibrate(make, target, rtol=WIDTH).value
        (drawn,) = axes.plot(epsilon, noise, **line(index), label=label)
        entries.append((drawn, label))
    frame(axes, xlabel="ε", ylabel="noise multiplier", xscale="log", yscale="log", xlim=epsilons)
    ticked(axes)
    axes.set_title(f"Smallest noise for (ε, {written(delta)})", loc="left", fontsize=10)
    legend(made, entries)
    titled(made, title, adjacency)
    return made
