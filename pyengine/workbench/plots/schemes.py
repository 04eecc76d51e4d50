"""Plot of ε for several ways to draw batches, against the steps per epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyengine._support.decimals import written
from pyengine.workbench.plots.style import MARKERS, figure, frame, legend, line, titled
from pyengine.workbench.plots.ticks import ticked
from pyengine.workbench.schemes import SCHEMES, Compared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["schemes_figure"]

WIDTH, MOST = 4.2, 4  # inches of a panel, and how many there are at most


def schemes_figure(rows: Sequence[Compared], delta: float) -> Figure:
    """One panel for each number of epochs, for the first noise and the worse of both orders.

    Lines connect the guarantees; for schemes with only an upper bound, the area down to the lower
    bound is shaded.
    """
    noise = rows[0].setting.noise
    shown = [row for row in rows if row.setting.noise == noise]
    epochs = list(dict.fromkeys(row.setting.epochs for row in shown))[:MOST]
    made = figure(WIDTH * len(epochs) + 0.8, 4.4)
    panels = made.subplots(1, len(epochs), squeeze=False)[0]
    for axes, number in zip(panels, epochs, strict=True):
        entries = _panel(axes, [row for row in shown if row.setting.epochs == number])
        frame(axes, xscale="log", yscale="log", xlabel="steps of an epoch, t")
        ticked(axes)
        axes.set_title(f"{number:,} epoch{'s' if number > 1 else ''}", loc="left", fontsize=10)
    panels[0].set_ylabel(f"ε at δ = {written(delta)}")
    legend(made, entries)
    titled(made, f"Ways to draw batches at noise {written(noise)}", "add_remove")
    return made


def _panel(axes: Axes, rows: Sequence[Compared]) -> list[tuple[Any, str]]:
    entries = []
    for index, scheme in enumerate(SCHEMES):
        worst: dict[int, float] = {}
        least: dict[int, float] = {}
        for row in rows:
            if row.scheme is scheme and row.epsilon > 0.0:
                steps = row.setting.steps_per_epoch
                worst[steps] = max(row.epsilon, worst.get(steps, 0.0))
                least[steps] = row.at_least
        style = {**line(index), "linestyle": "-"}
        if scheme.leak is not None:
            ends = list(least.values()), list(worst.values())
            axes.fill_between(list(worst), *ends, color=style["color"], alpha=0.12, linewidth=0)
        (drawn,) = axes.plot(
            list(worst), list(worst.values()), **style, marker=MARKERS[index], markersize=4
        )
        unknown = " (shaded: down to what certainly leaks)" if scheme.leak is not None else ""
        entries.append((drawn, f"{scheme.name}{unknown}"))
    return entries
