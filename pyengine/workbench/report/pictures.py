"""The curves of a privacy report as SVG plots inside the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine._support.certainty import ESTIMATE, PROVEN
from pyengine._support.decimals import written
from pyengine.workbench.plots.panels import Entries, curve_panel, gamma_panel, profile_panel
from pyengine.workbench.plots.series import Series
from pyengine.workbench.plots.style import COLOURS, MARKERS, figure, frame, legend, line
from pyengine.workbench.plots.svg import inline_svg
from pyengine.workbench.plots.ticks import ticked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyengine.workbench.report.content import PrivacyReport

__all__ = ["Picture", "pictures"]

SIZE = (4.7, 4.1)  # inches; almost fits the screen of a phone
SMALLEST = 1e-12  # smallest δ drawn
ORDERS = {
    "add": "add: H0 without it",
    "remove": "remove: H0 with it",
    "add_remove": "add_remove: the worse of both",
}
# measured points have other colours than the curves of the same plot
ATTACKS = [(colour, mark) for mark in MARKERS for colour in (COLOURS[3], COLOURS[6], COLOURS[5])]


@dataclass(frozen=True)
class Picture:
    """A plot as an SVG element, with its caption."""

    name: str
    title: str
    caption: str
    svg: str


def pictures(report: PrivacyReport) -> list[Picture]:
    """Plots of the trade-off function, reconstruction, privacy profile and, if any, the noise."""
    adjacency = report.statement.adjacency
    found = [
        _drawn(
            "trade-off",
            "Trade-off function",
            "Any test of level α whether the record took part misses it with probability β(α) or "
            "more. The straight line is guessing.",
            report.curves["trade_off"],
            adjacency,
            lambda axes, lines: [*curve_panel(axes, lines), *_attacks(axes, report, power=False)],
        ),
        _drawn(
            "gamma",
            "Reconstruction and membership at small rates",
            "γ(κ) = 1 − β(κ) bounds the success of any reconstruction that succeeds with "
            "probability κ without the release, and the true positive rate of any test of "
            "membership at false positive rate κ.",
            report.curves["gamma"],
            adjacency,
            lambda axes, lines: [*gamma_panel(axes, lines), *_attacks(axes, report, power=True)],
        ),
        _drawn(
            "delta",
            "Privacy profile",
            "The run is (ε, δ)-differentially private for every point on or above the upper bound "
            "of the curve.",
            report.curves["delta"],
            adjacency,
            lambda axes, lines: profile_panel(axes, lines, SMALLEST),
        ),
    ]
    if report.curves["noise"]:
        found.append(_noise(report))
    return found


def _drawn(
    name: str,
    title: str,
    caption: str,
    curves: tuple[Series, ...],
    adjacency: str,
    draw: Callable[[Axes, list[Series]], Entries],
) -> Picture:
    made = figure(*SIZE)
    axes = made.subplots()
    entries = draw(
        axes, [replace(each, label=ORDERS.get(each.label, each.label)) for each in curves]
    )
    legend(made, entries)
    caption = f"{caption} {_sure(curves)}"
    return _picture(name, title, f"{caption} Adjacency {adjacency}.", made)


def _picture(name: str, title: str, caption: str, made: Any) -> Picture:
    return Picture(name, title, caption, inline_svg(made, f"picture-{name}", title, caption))


def _sure(curves: tuple[Series, ...]) -> str:
    words = {word for each in curves for word in each.certainty}
    refused = sum(len(each.refused) for each in curves)
    if words == {PROVEN}:
        said = "Shaded bounds, mostly thinner than the line, are proven."
    elif words == {ESTIMATE}:
        said = "Shaded bounds, mostly thinner than the line, are estimates."
    else:
        said = "Some of the shaded bounds are proven, others are estimates."
    return f"{said} {refused} points without an answer are left out." if refused else said


def _attacks(axes: Axes, report: PrivacyReport, *, power: bool) -> Entries:
    """Markers of measured tests; those with a rate of 0 are left out on logarithmic axes."""
    entries: Entries = []
    for index, (attack, _) in enumerate(report.attacks):
        x, y = attack.false_positive_rate, attack.true_positive_rate
        if power and min(x, y) <= 0.0:
            continue
        colour, mark = ATTACKS[index % len(ATTACKS)]
        style: dict[str, Any] = {
            "color": colour,
            "marker": mark,
            "linestyle": "none",
            "markersize": 7,
        }
        (drawn,) = axes.plot([x], [y if power else 1.0 - y], **style, zorder=4, clip_on=False)
        entries.append((drawn, f"measured: {attack.name}"))
    return entries


def _noise(report: PrivacyReport) -> Picture:
    (curve,) = report.curves["noise"]
    made = figure(*SIZE)
    axes = made.subplots()
    style = line(0)
    lower, value, upper = curve.bounds
    axes.fill_betweenx(report.noises, lower, upper, color=style["color"], alpha=0.2, linewidth=0)
    (drawn,) = axes.plot(value, report.noises, **style)
    stated = report.statement.figures[0].bound
    ends = (float(np.min(value)), float(np.max(value)))
    shared = report.noise is not None
    (here,) = axes.plot(
        [stated], [report.noise or 1.0], marker="o", color=COLOURS[1], linestyle="none", zorder=3
    )
    frame(
        axes,
        xlabel=f"ε at δ = {written(report.delta)}",
        ylabel="noise multiplier" if shared else "noise, as a multiple of that of this run",
        xscale="log",
        yscale="log",
        xlim=ends,
    )
    ticked(axes)
    legend(made, [(drawn, "the same run with other noise"), (here, "this run")])
    caption = (
        "The noise that it takes for an ε, all else as it is. "
        f"{_sure((curve,))} Adjacency {curve.adjacency}."
    )
    return _picture("noise", "Noise against ε", caption, made)
