"""Plot of ε over the course of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np

from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.api import compose
from pyengine.mechanisms import Mechanism, as_mechanism, steps_of
from pyengine.workbench.plots.panels import growth_panel
from pyengine.workbench.plots.series import Series, asked, joined
from pyengine.workbench.plots.style import figure, legend, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["epsilon_figure"]

POINTS = 33  # points of a curve; each needs the composition of a shorter run
Run = Mechanism | Sequence[Mechanism]


def epsilon_figure(
    runs: Run | Mapping[str, Run],
    delta: float,
    *,
    adjacency: str = "add_remove",
    title: str = "",
) -> Figure:
    """Plot ε at δ against the epochs of one run or of several.

    Parameters
    ----------
    runs : Mechanism, sequence of Mechanism, or mapping of str to either
        A run of equal steps, or a sequence of its phases, each of equal steps; several runs with
        their names in the legend.
    delta : float
        δ in (0, 1).
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.epsilon`.
    title : str
        Title above the plot.

    Returns
    -------
    matplotlib.figure.Figure
        ε with its bounds at 33 or fewer equidistant numbers of steps and at the end of each phase.
        In an epoch, each record is used once in expectation.

    Raises
    ------
    ValueError
        For a phase of different steps, since a composition does not keep their order.
    """
    level = checks.real("delta", delta)
    if not 0.0 < level < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}")
    named = dict(runs) if isinstance(runs, Mapping) else {"this run": runs}
    made = figure(6.4, 4.8)
    axes = made.subplots()
    entries = growth_panel(axes, [_course(each, level, adjacency, x) for x, each in named.items()])
    axes.set_title(f"ε at δ = {written(level)}", loc="left", fontsize=10)
    if len(named) > 1:
        legend(made, entries)
    titled(made, title, adjacency)
    return made


def _course(run: Run, delta: float, adjacency: str, label: str) -> Series:
    """Series of ε after several numbers of steps, against the epochs up to then."""
    phases = []
    alone, several = as_mechanism(run), cast(Sequence[Mechanism], run)
    for phase in several if alone is None else [alone]:
        steps = steps_of(phase)
        if len(steps) > 1:
            raise ValueError(
                f"runs must hold phases of equal steps in their order, got one of {len(steps)} "
                "kinds of steps"
            )
        phases += steps
    total = sum(number for _, number in phases)
    found, epochs = [], []
    evenly = np.linspace(0, total, POINTS + 1).round().astype(np.int64).tolist()
    ends = accumulate(number for _, number in phases)  # where curves have their corners
    for count in sorted({*evenly, *ends} - {0}):
        left, uses, parts = count, 0.0, []
        for step, number in phases:
            taken = min(left, number)
            parts.append(step.composed(taken))
            uses, left = uses + taken * float(step.share), left - taken
        found.append(asked("epsilon", label, compose(*parts), [delta], adjacency=adjacency))
        epochs.append(uses)
    if not found:
        raise ValueError(f"runs must take a step at least, got none in {label!r}")
    return replace(joined(found), argument=np.array(epochs))
