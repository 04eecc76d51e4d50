"""What a figure or a table is here: rows, a picture, and printed numbers with verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Check", "Item", "Paper", "Table", "check"]

Cell = str | float | int

AGREES, WITHIN, DIFFERS = "agrees", "within its error", "differs"


@dataclass(frozen=True)
class Table:
    """Rows of an item, one CSV file.

    Parameters
    ----------
    columns : tuple of str
        Names.
    rows : list of tuple
        Cells: text, int, or float; None for what does not apply.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell | None, ...]]

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of numbers; NaN where there is none."""
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


@dataclass(frozen=True)
class Check:
    """A printed number beside ours.

    Parameters
    ----------
    what : str
        Which number.
    printed : str
        As it is printed.
    value : float
        Ours.
    verdict : {"agrees", "within its error", "differs"}
        ``agrees``: ours rounds to the printed digits.  ``within its error``: it does not, but the
        printed number is an estimate and ours lies within its stated error.
    reason : str
        Why it differs, or what the error is; empty where it agrees.
    """

    what: str
    printed: str
    value: float
    verdict: str
    reason: str = ""


def check(what: str, printed: str, value: float, *, error: float = 0.0, reason: str = "") -> Check:
    """Compare a printed number with ours.

    Parameters
    ----------
    what, printed, value
        As in `Check`.
    error : float
        Error of the printed number, for example four standard deviations of a simulation.
    reason : str
        What the error is, or why the number differs; kept unless it agrees.
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

    Parameters
    ----------
    name : str
        Stem of its files, such as ``figure_1a`` or ``table_2``.
    title : str
        What it shows, in one line.
    rows : callable
        Without arguments; computes the `Table`.
    draw : callable, optional
        Draws the table into an empty `matplotlib.figure.Figure`.
    checks : callable
        From the table to the printed numbers; none by default.
    chosen : str
        Parameters that the paper does not print, and what they are chosen from.
    size : (float, float)
        Of the picture, in inches.
    adjacency : str
        What to say below the title of a picture whose lines do not say who are neighbours.
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
        """Its name, and what it shows."""
        return f"{self.label}: {self.title}"


@dataclass(frozen=True)
class Paper:
    """A paper and its items.

    Parameters
    ----------
    name : str
        As on the command line, such as ``hayes2023``.
    reference : str
        Authors, title, year and arXiv number.
    items : sequence of Item
        In the order of the paper.
    left_out : str
        What is not regenerated and why.
    """

    name: str
    reference: str
    items: Sequence[Item]
    left_out: str = field(default="")

    def item(self, name: str) -> Item:
        """Return the item of a name."""
        return next(item for item in self.items if item.name == name)
