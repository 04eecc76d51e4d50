"""What a notebook shows of mechanisms, bounds, calibrations and statements."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

import pyengine as pe
from pyengine._support.markup import html_table
from pyengine.statement import privacy_statement


class Table(HTMLParser):
    """Texts of cells, and of paragraphs; fails where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.notes: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in ("table", "tr", "th", "td", "p", "br"), tag
        assert all(name == "style" for name, _ in attrs)
        if tag == "br":
            self.cells[-1] += "\n"
        else:
            self.open.append(tag)
        if tag in ("th", "td"):
            self.cells.append("")
        if tag == "p":
            self.notes.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.notes if self.open[-1] == "p" else self.cells)[-1] += data


def shown(thing: Any) -> Table:
    return Table(thing._repr_html_())


def test_markup_is_escaped() -> None:
    made = Table(html_table(["a<b", "c"], [["<script>", 'x & "y"\nz']], ["<p>"]))
    assert made.cells == ["a<b", "c", "<script>", 'x & "y"\nz']
    assert made.notes == ["<p>"]


@pytest.mark.parametrize(
    "run",
    [
        pe.GaussianMechanism(1.0),
        pe.dp_sgd(1.0, batch_size=10, dataset_size=100, epochs=2, sampling="shuffle"),
        pe.dp_sgd(1.0, 0.01, 10) + pe.LaplaceMechanism(2.0),
        pe.from_probabilities([0.5, 0.5], [0.25, 0.75]),
    ],
    ids=repr,
)
def test_mechanisms(run: pe.Mechanism) -> None:
    cells = shown(run).cells
    assert cells[::2] == ["Mechanism", "Batches", "Protects"]
    assert cells[1].split("\n") == repr(run).split("; ")


def test_of_many_kinds_few_lines_are_shown() -> None:
    run = pe.compose(*(pe.dp_sgd(1.0 + k / 100, 0.01, 5) for k in range(50)))
    lines = shown(run).cells[1].split("\n")
    assert lines[-1] == "and 235 more of 47 other kinds"
    assert len(lines) == 4
    assert shown(pe.compose()).cells == ["Mechanism", "no steps"]


def test_bounds_are_rounded_outwards() -> None:
    run = pe.dp_sgd(1.0, 0.01, 1000)
    found = pe.epsilon(run, [1e-6, 1e-5], bounds=True)
    cells = shown(found).cells
    assert cells[:3] == ["lower", "value", "upper"]
    for row, lower, upper in zip((3, 6), found.lower, found.upper, strict=True):
        assert float(cells[row]) <= lower <= upper <= float(cells[row + 2])
        assert float(cells[row + 2]) - float(cells[row]) < 1e-10
    assert len(shown(pe.epsilon(run, 1e-5, bounds=True)).cells) == 6
    many = shown(pe.Bounds([0.0] * 1234, [0.5] * 1234, [float("inf")] * 1234))
    assert many.notes == ["and 1,214 more"]
    assert many.cells[-1] == "inf"


def test_calibrations() -> None:
    found = pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 100), pe.targets.EpsilonDelta(1.0, 1e-5))
    cells = shown(found).cells
    assert cells[::2] == ["Value", "Achieves", "Mechanism"]
    assert float(cells[1]) == found.value
    assert cells[5] == repr(found.mechanism)


def test_statements() -> None:
    made = privacy_statement(pe.dp_sgd(1.0, 0.01, 1000), delta=1e-5, kappas=[])
    found = shown(made)
    text = re.sub(r"\s+", " ", str(made))
    for cell in (*found.cells, *found.notes):
        assert re.sub(r"\s+", " ", cell) in text
    assert found.cells[9:12] == ["ε at δ = 1e-5", "1.829", "proven, rounded up"]
