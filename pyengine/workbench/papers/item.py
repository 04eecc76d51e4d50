"""A figure or table of a paper: its rows, its picture, and checks of printed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyengine.workbench.plots.style import line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Check", "Item", "Paper", "Table", "check", "curves"]

Cell = str | float | int

AGREES, WITHIN, DIFFERS = "agrees", "within its error", "differs"


@dataclass(frozen=True)
class Table:
    """Rows of an item, one CSV file; a cell that does not apply is None."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell | None, ...]]

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of numbers, with NaN for None."""
        at = self.columns.index(name)
        return np.array(
            [math.nan if row[at] is None else row[at] for row in self.rows], dtype=float
        )

    def where(self, **values: Cell) -> Table:
        """Return the rows in which columns have given values."""
        at = {self.columns.index(name): value for name, value in values.items()}
        kept = [row for row in self.rows if all(row[i] == value for i, value in at.items())]
        return Table(self.columns, kept)

    def distinct(self, name: str) -> list[Cell]:
        """Return the different values of a column, in order of appearance."""
        at = self.columns.index(name)
        cells = (row[at] for row in self.rows)
        return list(dict.fromkeys(cell for cell in cells if cell is not None))


def curves(
    axes: Axes, table: Table, x: str, y: str, by: str, label: Callable[..., str] = str
) -> None:
    """Draw ``y`` against ``x``, a line for each value of the column ``by``."""
    for index, key in enumerate(table.distinct(by)):
        rows = table.where(**{by: key})
        axes.plot(rows.column(x), rows.column(y), **line(index), label=label(key))


@dataclass(frozen=True)
class Check:
    """A printed number compared with ours.

    The verdict is ``agrees`` if ours rounds to the printed digits, ``within its error`` if not but
    the printed number is an estimate and ours lies within its error, otherwise ``differs``.  The
    reason says what that error is, or why the numbers differ; it is empty if they agree.
    """

    what: str
    printed: str
    value: float
    verdict: str
    reason: str = ""


def check(what: str, printed: str, value: float, *, error: float = 0.0, reason: str = "") -> Check:
    """Compare a printed number with ours.

    ``error`` is the error of the printed number, such as four standard deviations of a simulation.
    """
    number = Decimal(printed.replace(",", ""))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    half = Decimal(5).scaleb(exponent - 1)
    distance = abs(Decimal(float(value)) - number) if math.isfinite(value) else Decimal("inf")
    if distance <= half:
        return Check(what, printed, float(value), AGREES)
    if distance <= half + Decimal(error):
        return Check(what, printed, float(value), WITHIN, reason)
    return Check(what, printed, float(value), DIFFERS, reason)


def _no_checks(_: Table) -> Iterable[Check]:
    return ()


@dataclass(frozen=True)
class Item:
    """A figure or a table.

    ``rows`` computes the table, ``draw`` draws it into an empty figure of ``size`` inches, and
    ``checks`` compares it with printed numbers.  ``chosen`` says which parameters the paper does
    not print and how they were chosen.  ``adjacency`` is printed below the title of a picture whose
    lines do not name the neighbours.
    """

    name: str
    title: str
    rows: Callable[[], Table]
    draw: Callable[[Table, Figure], None] | None = None
    checks: Callable[[Table], Iterable[Check]] = _no_checks
    chosen: str = ""
    size: tuple[float, float] = (7.0, 4.6)
    adjacency: str = ""

    @property
    def label(self) -> str:
        """Its name for people: "Figure 1a"."""
        return self.name.replace("_", " ").capitalize()

    @property
    def heading(self) -> str:
        """Its label and its title."""
        return f"{self.label}: {self.title}"


@dataclass(frozen=True)
class Paper:
    """A paper: its name on the command line, its items in order, and what is left out."""

    name: str
    reference: str
    items: Sequence[Item]
    left_out: str = field(default="")

    def item(self, name: str) -> Item:
        """Return the item of a name."""
        return next(item for item in self.items if item.name == name)
