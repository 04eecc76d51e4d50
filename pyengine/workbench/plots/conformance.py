"""Plot of the errors of accountants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyengine.accounting.conformance.report import YARDSTICK, times
from pyengine.accounting.conformance.run import Result
from pyengine.workbench.plots.style import COLOURS, figure, frame, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["errors_figure"]

SMALLEST = 1e-6  # smaller relative errors are drawn as 0
LARGEST = 1e6  # larger ones at the edge
SAFE, UNSAFE = COLOURS[0], COLOURS[1]
SYMBOLS = {"gamma": "γ", "delta": "δ", "epsilon": "ε"}


def errors_figure(results: list[Result]) -> Figure:
    """Relative errors (left) and time ratios (right) of accountants; unsafe answers are marked.

    There is one row for each accountant, method and question.
    """
    own = times(results)
    rows = list(dict.fromkeys(_row(r) for r in results if r.accountant != YARDSTICK))
    made = figure(10.5, 1.9 + 0.34 * len(rows))
    left, right = made.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    for result in results:
        if result.accountant == YARDSTICK or result.value is None:
            continue
        y = len(rows) - 1 - rows.index(_row(result))
        mark = {"marker": "X" if result.unsafe else "o", "color": UNSAFE if result.unsafe else SAFE}
        more = {"markersize": 7, "markeredgecolor": "white", "markeredgewidth": 0.6}
        left.plot([_clipped(result.error)], [y], **mark, **more, linestyle="none", zorder=3)
        yardstick = own.get((result.case.setting.name, result.case.question, result.case.at))
        if yardstick and result.seconds:
            right.plot([result.seconds / yardstick], [y], **mark, **more, linestyle="none")
    _axes(left, right, rows)
    versions = dict.fromkeys(f"{r.accountant} {r.version}" for r in results)
    titled(made, ", ".join(versions), "add for γ, add_remove for δ and ε")
    return made


def _row(result: Result) -> str:
    return f"{result.accountant} {result.method}: {SYMBOLS[result.case.question]}"


def _clipped(error: float | None) -> float:
    if error is None:
        return math.nan
    return max(-1.0, min(error, LARGEST)) if abs(error) > SMALLEST else 0.0


def _axes(left: Axes, right: Axes, rows: list[str]) -> None:
    left.axvspan(-2.0, -SMALLEST / 2, color=UNSAFE, alpha=0.08, linewidth=0)
    left.axvline(0.0, color="0.4", linewidth=1.0)
    left.set_xscale("symlog", linthresh=SMALLEST, linscale=0.5)
    ticks = [-1.0, -1e-3, 0.0, 1e-3, 1.0, 1e3, LARGEST]
    left.set_xticks(ticks, ["−100 %", "−0.1 %", "exact", "0.1 %", "100 %", "×10³", "×10⁶ or more"])
    left.set_xticks([], minor=True)
    frame(left, xlim=(-2.0, 2 * LARGEST), ylim=(-0.7, len(rows) - 0.3))
    left.set_yticks(range(len(rows)), rows[::-1])
    left.tick_params(axis="x", labelsize=8)
    left.set_title("Error of the bound (crosses: below the truth)", loc="left", fontsize=10)
    frame(right, xscale="log")
    right.axvline(1.0, color="0.4", linewidth=1.0)
    right.tick_params(axis="y", left=False)
    right.set_title("Time, relative to pyengine", loc="left", fontsize=10)
