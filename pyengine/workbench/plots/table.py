"""A picture of γ(κ) for the runs of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyengine.workbench.plots.style import MARKERS, figure, frame, image, legend, line, titled
from pyengine.workbench.plots.ticks import ticked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["Curve", "gamma_png"]

SIZE = (11.0, 4.6)  # inches


@dataclass(frozen=True)
class Curve:
    """A labelled γ(κ): a smooth line and the points of a table, as positive pairs (κ, γ)."""

    label: str
    line: Sequence[tuple[float, float]]
    points: Sequence[tuple[float, float]]


def gamma_png(curves: Sequence[Curve], title: str) -> bytes:
    """Picture of γ(κ) and of γ/κ, as a PNG file of 1650 x 690 pixels."""
    made = figure(*SIZE)
    left, right = made.subplots(1, 2)
    ends = [kappa for curve in curves for kappa, _ in (*curve.line, *curve.points)]
    ends = [min(ends), max(ends)]
    for axes, relative in ((left, False), (right, True)):
        frame(axes, xscale="log", yscale="log", xlabel="prior success κ")
        handles = [_draw(axes, i, curve, relative=relative) for i, curve in enumerate(curves)]
        bottom = [1.0, 1.0] if relative else ends
        (equal,) = axes.plot(ends, bottom, color="0.4", linewidth=1.0)
    left.set_title("Success of any reconstruction attack, γ at most", loc="left", fontsize=10)
    left.set_ylabel("γ")
    right.set_title("Gain over the prior", loc="left", fontsize=10)
    right.set_ylabel("γ / κ")
    for axes in (left, right):
        ticked(axes)
    titled(made, title)
    # legend in the order of the lines, from the top
    order = sorted(range(len(curves)), key=lambda index: _height(curves[index]), reverse=True)
    labels = [*(curves[index].label for index in order), "γ = κ\nthe release is no help"]
    entries = list(zip([*(handles[index] for index in order), equal], labels, strict=True))
    where = {"loc": "outside right center", "fontsize": 8.5, "handlelength": 3.2}
    legend(made, entries, **where, labelspacing=1.0)
    return image(made)


def _height(curve: Curve) -> float:
    """γ at the smallest κ of a curve, for sorting."""
    return min(curve.line or curve.points, default=(0.0, 0.0))[1]


def _draw(axes: Axes, index: int, curve: Curve, *, relative: bool) -> Line2D:
    """Draw a curve and return its entry for the legend."""

    def scaled(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
        return [k for k, _ in pairs], [g / k if relative else g for k, g in pairs]

    style = line(index)
    mark: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)], "markersize": 5.5}
    mark |= {"markeredgecolor": "white", "markeredgewidth": 0.4}
    axes.plot(*scaled(curve.line), **style)
    axes.plot(*scaled(curve.points), **mark, color=style["color"], linestyle="none", zorder=3)
    (handle,) = axes.plot([], [], **style, **mark)  # line with marker
    return handle
