"""The published figures and tables of the papers: their numbers, pictures and verdicts."""

from __future__ import annotations

import csv
import datetime
import io
import re
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from thorough import ALL, sampled

from pyengine.errors import ApproximationWarning
from pyengine.workbench.papers import NAMES, paper
from pyengine.workbench.papers.item import Item, Table
from pyengine.workbench.papers.pages import index_page
from pyengine.workbench.papers.run import _csv, _png

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[1] / "docs" / "papers"
ITEMS = [(name, item) for name in NAMES for item in paper(name).items]
# Those that take more than a second are computed in a thorough run; else one of them, another one
# each day.
SLOW = {
    "hayes2023": "figure_11 figure_14 figure_15",
    "kaissis2023_bounding": "figure_1a figure_1b figure_1c figure_1d",
    "kaissis2023_relaxed": "figure_7",
    "lebeda2024": "figure_1 figure_2 figure_3 figure_4",
    "leemann2023": "figure_2a figure_4 figure_5a",
}
LEFT_OUT = [(name, item) for name, items in SLOW.items() for item in items.split()]
LEFT_OUT.pop(datetime.date.today().toordinal() % len(LEFT_OUT))


def cell(text: str) -> str | float | int | None:
    if not text:
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def published(name: str, item: Item) -> Table:
    return table_of((DOCS / name / f"{item.name}.csv").read_text(encoding="utf-8"))


def table_of(text: str) -> Table:
    columns, *rows = csv.reader(text.splitlines())
    return Table(tuple(columns), [tuple(map(cell, row)) for row in rows])


def alike(made: bytes, kept: Path) -> bool:
    """Whether a picture is the kept one.

    Other versions of Matplotlib move letters: there the sizes are compared.
    """
    import matplotlib as mpl
    from matplotlib.image import imread

    one, other = imread(io.BytesIO(made), format="png"), imread(kept)
    if one.shape != other.shape:
        return False
    return not mpl.__version__.startswith("3.11.") or bool((abs(one - other) < 0.3).all())


def label(case: object) -> str:
    return case if isinstance(case, str) else case.name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "item"),
    [(name, item) for name, item in ITEMS if ALL or (name, item.name) not in LEFT_OUT],
    ids=label,
)
def test_numbers_are_those_of_today(name: str, item: Item) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        made = table_of(_csv(item.rows()))
    kept = published(name, item)
    # values that are calibrated or searched for have as many digits
    close = partial(pytest.approx, rel=1e-9, abs=1e-300, nan_ok=True)
    assert made.columns == kept.columns
    assert len(made.rows) == len(kept.rows)
    for one, other in zip(made.rows, kept.rows, strict=True):
        for new, old in zip(one, other, strict=True):
            if isinstance(old, float):
                assert new == close(old), (one, other)
            else:
                assert new == old, (one, other)


@pytest.mark.parametrize(("name", "item"), ITEMS, ids=label)
def test_verdicts_follow_from_the_numbers(name: str, item: Item) -> None:
    with (DOCS / name / "printed.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["item"] == item.name]
    checks = list(item.checks(published(name, item)))
    assert [check.what for check in checks] == [row["number"] for row in rows]
    for check, row in zip(checks, rows, strict=True):
        assert check.printed == row["printed"]
        assert check.verdict == row["verdict"]
        assert check.value == pytest.approx(float(row["computed"]), rel=1e-9)


@sampled(3)
@pytest.mark.parametrize(
    ("name", "item"), [(name, item) for name, item in ITEMS if item.draw], ids=label
)
def test_pictures_show_the_numbers(name: str, item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every panel has something drawn, and says what."""
    from pyengine.workbench.plots import style

    figures, figure = [], style.figure

    def kept(*size: float) -> Any:
        figures.append(figure(*size))
        return figures[-1]

    monkeypatch.setattr(style, "figure", kept)
    made = _png(item, published(name, item))
    (drawn,) = figures
    assert drawn.axes
    for axes in drawn.axes:
        assert axes.has_data(), f"{name} {item.name}: an empty panel"
        assert axes.get_xlabel() or axes.get_ylabel() or axes.get_title(), (name, item.name)
    assert alike(made, DOCS / name / f"{item.name}.png")


def test_page_says_what_came_of_the_numbers() -> None:
    checks = {(name, item.name): list(item.checks(published(name, item))) for name, item in ITEMS}
    made = index_page([paper(name) for name in NAMES], checks)
    assert made == (DOCS / "index.md").read_text(encoding="utf-8")
