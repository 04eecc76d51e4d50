"""Panels of plots on given axes: trade-off functions, power, γ(κ), δ(ε) and growth of ε."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine.workbench.plots.series import Series
from pyengine.workbench.plots.style import frame, line
from pyengine.workbench.plots.ticks import ticked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    *("Entries", "curve_panel", "gain_panel", "gamma_panel", "growth_panel", "power_panel"),
    "profile_panel",
]

# wide and pale below the other curves, which it covers almost everywhere
HULL: dict[str, Any] = {"linestyle": "-", "linewidth": 6.0, "alpha": 0.35, "zorder": 1}
HULL["solid_capstyle"] = "butt"
CHANCE: dict[str, Any] = {"color": "0.5", "linewidth": 1.0}

FloatArray = npt.NDArray[np.float64]
Entries = list[tuple[Any, str]]  # of a legend


def curve_panel(axes: Axes, lines: Sequence[Series]) -> Entries:
    """β against α on linear axes."""
    entries = _lines(axes, lines)
    (chance,) = axes.plot([0.0, 1.0], [1.0, 0.0], **CHANCE)
    ends = {"xlim": (0, 1), "ylim": (0, 1)}
    frame(axes, xlabel="level α", ylabel="type-II error β", **ends, aspect="equal")
    return [*entries, (chance, "no information")]


def power_panel(axes: Axes, lines: Sequence[Series]) -> Entries:
    """1 - β against α on logarithmic axes; the series are γ, which is accurate near 0."""
    return _beside_chance(axes, lines, "no information", "level α", "power 1 − β")


def gamma_panel(axes: Axes, lines: Sequence[Series]) -> Entries:
    """γ against κ on logarithmic axes."""
    return _beside_chance(axes, lines, "γ = κ: no help", "prior success κ", "γ")


def gain_panel(axes: Axes, lines: Sequence[Series]) -> Entries:
    """γ/κ against κ on logarithmic axes."""
    words = ("γ = κ: no help", "prior success κ", "γ / κ")
    return _beside_chance(axes, lines, *words, relative=True)


def profile_panel(axes: Axes, lines: Sequence[Series], smallest: float) -> Entries:
    """δ against ε, with a logarithmic δ axis that starts at ``smallest``."""
    entries = _lines(axes, lines, floor=smallest / 10)
    last = float(max(each.argument.max() for each in lines))
    _logarithmic(
        axes, xscale="linear", xlabel="ε", ylabel="δ", ylim=(smallest, 1.0), xlim=(0.0, last)
    )
    return entries


def growth_panel(axes: Axes, lines: Sequence[Series]) -> Entries:
    """ε against epochs, the arguments of the series."""
    entries = _lines(axes, lines)
    last = float(max(each.argument.max() for each in lines))
    frame(axes, xlabel="epochs", ylabel="ε", xlim=(0.0, last))
    axes.set_ylim(bottom=0.0)
    return entries


def _beside_chance(
    axes: Axes,
    lines: Sequence[Series],
    chance: str,
    xlabel: str,
    ylabel: str,
    *,
    relative: bool = False,
) -> Entries:
    """Lines on logarithmic axes, and the line of an attacker who gains nothing from the release."""
    entries = _lines(axes, lines, relative=relative)
    lowest = float(min(each.argument.min() for each in lines))
    (drawn,) = axes.plot([lowest, 1.0], [1.0 if relative else lowest, 1.0], **CHANCE)
    _logarithmic(axes, xlabel=xlabel, ylabel=ylabel, xlim=(lowest, 1.0))
    return [*entries, (drawn, chance)]


def _lines(
    axes: Axes, lines: Sequence[Series], *, relative: bool = False, floor: float = 0.0
) -> Entries:
    """Lines with the bands of their bounds; values below ``floor``, also 0, are drawn there."""
    entries: Entries = []
    both = len({each.adjacency for each in lines}) > 1
    for index, each in enumerate(lines):
        unit: Any = each.argument if relative else 1.0
        lower, value, upper = (np.maximum(part, floor) / unit for part in each.bounds)
        style = line(index)
        axes.fill_between(each.argument, lower, upper, color=style["color"], alpha=0.2, linewidth=0)
        if both and each.adjacency == "add_remove":
            style |= HULL
        (drawn,) = axes.plot(each.argument, value, **style, label=each.label)
        entries.append((drawn, each.label))
    return entries


def _logarithmic(axes: Axes, **words: Any) -> None:
    frame(axes, **{"xscale": "log", "yscale": "log", **words})
    ticked(axes)
