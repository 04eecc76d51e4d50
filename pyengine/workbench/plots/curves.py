"""Plots of trade-off functions, γ(κ) and δ(ε) of mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyengine.api import answers
from pyengine.mechanisms import Mechanism, as_mechanism
from pyengine.workbench.plots.panels import (
    curve_panel,
    gain_panel,
    gamma_panel,
    power_panel,
    profile_panel,
)
from pyengine.workbench.plots.series import Series, asked, named
from pyengine.workbench.plots.style import figure, legend, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DIRECTIONS", "PROFILES", "delta_figure", "gamma_figure", "reach", "trade_off_figure"]

POINTS = 241  # points of a curve
DIRECTIONS = {
    "add": "add: H0 without the record",
    "remove": "remove: H0 with it",
    "add_remove": "add_remove: lower convex hull",
}
PROFILES = {
    "add": "add: H(without‖with)",
    "remove": "remove: H(with‖without)",
}

FloatArray = npt.NDArray[np.float64]
Mechanisms = Mechanism | Mapping[str, Mechanism]


def trade_off_figure(
    mechanism: Mechanisms,
    *,
    adjacency: str | None = None,
    lowest: float = 1e-6,
    title: str = "",
) -> Figure:
    """Plot trade-off functions: of one mechanism for both orders and their hull, or of several.

    Parameters
    ----------
    mechanism : Mechanism or mapping of str to Mechanism
        The mechanism, or several with their names in the legend.
    adjacency : {"add_remove", "add", "remove", "substitute"}, optional
        As in `pyengine.trade_off`.  If not given, one mechanism is drawn for ``add``, ``remove``
        and ``add_remove``, and several are drawn for ``add_remove``.
    lowest : float
        Smallest α of the logarithmic panel, in (0, 1).
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        β against α on linear axes, and the power 1 - β on logarithmic axes; bounds are shaded.
    """
    one = adjacency is None and not isinstance(mechanism, Mapping)
    made = figure(9.6, 5.0)
    left, right = made.subplots(1, 2)
    evenly, fine = np.linspace(0.0, 1.0, POINTS), np.geomspace(lowest, 1.0, POINTS)
    entries = curve_panel(left, _series("trade_off", mechanism, evenly, adjacency, DIRECTIONS))
    power_panel(right, _series("gamma_bound", mechanism, fine, adjacency, DIRECTIONS))
    left.set_title("Trade-off function", loc="left", fontsize=10)
    right.set_title("The same, small levels", loc="left", fontsize=10)
    legend(made, entries)
    titled(made, title, "" if one else adjacency or "add_remove")
    return made


def gamma_figure(
    mechanisms: Mechanisms,
    *,
    lowest: float = 1e-7,
    adjacency: str = "add",
    title: str = "",
) -> Figure:
    """Plot the reconstruction robustness γ(κ) of mechanisms, with its bounds.

    Parameters
    ----------
    mechanisms : Mechanism or mapping of str to Mechanism
        The mechanism, or several with their names in the legend.
    lowest : float
        Smallest κ, in (0, 1).
    adjacency : {"add", "remove", "add_remove", "substitute"}
        As in `pyengine.gamma_bound`.
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        γ and γ/κ against κ; bounds are shaded.
    """
    made = figure(9.6, 5.0)
    left, right = made.subplots(1, 2)
    kappa = np.geomspace(lowest, 1.0, POINTS)
    lines = _series("gamma_bound", mechanisms, kappa, adjacency, {})
    entries = gamma_panel(left, lines)
    gain_panel(right, lines)
    left.set_title("Success of any reconstruction attack, γ at most", loc="left", fontsize=10)
    right.set_title("Gain over the prior", loc="left", fontsize=10)
    legend(made, entries)
    titled(made, title, adjacency)
    return made


def delta_figure(
    mechanism: Mechanisms,
    *,
    adjacency: str | None = None,
    smallest: float = 1e-12,
    title: str = "",
) -> Figure:
    """Plot privacy profiles with bounds: of one mechanism for both orders, or of several.

    Parameters
    ----------
    mechanism : Mechanism or mapping of str to Mechanism
        The mechanism, or several with their names in the legend.
    adjacency : {"add_remove", "add", "remove", "substitute"}, optional
        As in `pyengine.delta`.  If not given, one mechanism is drawn for ``add`` and ``remove``,
        whose maximum is the profile of ``add_remove``, and several are drawn for ``add_remove``.
    smallest : float
        The smallest δ that is drawn, in (0, 1).
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        δ against ε on a logarithmic axis.
    """
    one = adjacency is None and not isinstance(mechanism, Mapping)
    made = figure(6.4, 4.8)
    axes = made.subplots()
    words = tuple(PROFILES) if one else (adjacency or "add_remove",)
    epsilon = np.linspace(0.0, reach(named(mechanism), words, smallest), POINTS)
    lines = _series("delta", mechanism, epsilon, adjacency, PROFILES)
    entries = profile_panel(axes, lines, smallest)
    axes.set_title("Privacy profile", loc="left", fontsize=10)
    legend(made, entries)
    titled(made, title, "" if one else words[0])
    return made


def reach(
    mechanisms: Mapping[str, Mechanism], adjacencies: tuple[str, ...], smallest: float
) -> float:
    """Return the largest finite ε at which a profile reaches ``smallest``; 1 if there is none."""
    ends = [
        float(answers("epsilon", mechanism, [smallest], adjacency=word, proven=False)[0].value[0])
        for mechanism in mechanisms.values()
        for word in adjacencies
    ]
    return max((end for end in ends if math.isfinite(end)), default=1.0) or 1.0


def _series(
    question: str,
    mechanism: Mechanisms,
    argument: FloatArray,
    adjacency: str | None,
    orders: Mapping[str, str],
) -> list[Series]:
    """One series for each mechanism, or for each order of a single one."""
    alone = as_mechanism(mechanism)
    if adjacency is None and alone is not None:
        return [
            asked(question, label, alone, argument, adjacency=word)
            for word, label in orders.items()
        ]
    word = adjacency or "add_remove"
    return [
        asked(question, label, each, argument, adjacency=word)
        for label, each in named(mechanism).items()
    ]
