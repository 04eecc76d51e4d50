"""Common style of all plots: colours, line styles, frames, legends, titles."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyengine._support.extras import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = [
    *("COLOURS", "DPI", "MARKERS", "STYLES", "figure", "frame", "image", "legend", "line"),
    "titled",
]

# Okabe and Ito's colours, told apart in any kind of colour vision, without the faint yellow; line
# styles and markers tell them apart in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
STYLES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (1.2, 1.4)),
    (0, (6, 2, 1.2, 2)),
    (0, (10, 3)),
    (0, (3, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "h", "X")
DPI = 150  # pixels per inch
OUTSIDE = "outside lower center"
CHARACTERS = 16.0  # characters of a legend per inch of the plot's width


def figure(width: float, height: float) -> Figure:
    """Empty figure with width and height in inches."""
    # without pyplot, which would choose a backend and keep the figure for the whole process
    with needed("a picture", "plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(made)
    return made


def image(made: Figure, kind: str = "png", **words: Any) -> bytes:
    """Contents of an image file with a figure."""
    buffer = io.BytesIO()
    made.savefig(buffer, format=kind, **words)
    return buffer.getvalue()


def frame(axes: Axes, **words: Any) -> None:
    """Set labels, scales and limits, with a faint grid and without the upper and right spines."""
    axes.set(**words)
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)


def line(index: int) -> dict[str, Any]:
    """Colour and style of the ``index``-th line."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": STYLES[index % len(STYLES)],
        "linewidth": 1.6,
    }


def legend(made: Figure, entries: Sequence[tuple[Any, str]], **words: Any) -> Legend:
    """Draw a legend of lines with their labels, to the letter and in their order.

    It stands below the axes, unless ``loc`` among matplotlib's ``words`` says otherwise.
    """
    longest = max(len(text) for _, label in entries for text in label.split("\n"))
    columns = int(CHARACTERS * made.get_figwidth() / (longest + 6))
    given: dict[str, Any] = {"frameon": False, "fontsize": 9, "loc": OUTSIDE}
    if "loc" not in words:
        given["ncols"] = max(1, min(len(entries), columns))
    artists = [artist for artist, _ in entries]
    drawn = made.legend(artists, ["label"] * len(entries), **given | words)
    # set afterwards: a legend leaves out what starts with "_" and takes "$" for a formula
    for text, (_, label) in zip(drawn.get_texts(), entries, strict=True):
        text.set(text=label, parse_math=False)
    return drawn


def titled(made: Figure, title: str, adjacency: str = "") -> None:
    """Set the title above a figure, to the letter, with the adjacency that holds for all of it."""
    below = f"adjacency {adjacency}" if adjacency else ""
    text = "\n".join(part for part in (title, below) if part)
    if text:
        made.suptitle(text, fontsize=11, parse_math=False)
