"""The whole way from a specification to files and a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from pyengine.plots import Curve, gamma_png
from pyengine.tables.files import csv_text, json_text, replace_all
from pyengine.tables.metadata import metadata, provenance
from pyengine.tables.progress import Progress
from pyengine.tables.rows import Row, compute, curve
from pyengine.tables.spec import Grid, Specification
from pyengine.tables.summary import summary

__all__ = ["draws", "run"]

POINTS = 121  # of a drawn curve
CURVES = 9  # that a picture can hold and an eye tell apart


def run(specification: Specification, directory: Path) -> int:
    """Compute a table, write its files, print its summary.

    Parameters
    ----------
    specification : Specification
        What to compute.
    directory : Path
        An existing directory.

    Returns
    -------
    int
        0, or 1 if a value was refused.

    Raises
    ------
    OSError
        If a file cannot be written; all of them are then as they were.
    """
    start, clock = datetime.now(timezone.utc), time.perf_counter()
    rows: list[Row] = []
    total = len(specification.workflows) * sum(
        len(grid.values) * len(grid.adjacencies) for grid in specification.grids
    )
    with Progress(total, "values", sys.stderr) as progress:
        for group in compute(specification):
            rows += group
            progress.advance(len(group))
    seconds = time.perf_counter() - clock
    contents = {
        "table.csv": csv_text(rows, provenance()).encode(),
        "table.json": json_text(rows, metadata(specification, start, seconds)).encode(),
    }
    if draws(specification):
        contents["gamma.png"] = _picture(specification, rows)
    replace_all(directory, contents)
    print(summary(specification, rows))
    refused = sum(row.value is None for row in rows)
    if refused:
        print(f"Refused: {refused} of {total}; the column 'message' says why.")
    print(f"\nAll {total} rows: {', '.join(str(directory / name) for name in contents)}")
    return 1 if refused else 0


def draws(specification: Specification) -> bool:
    """Whether there is a curve γ(κ) to draw."""
    return any(max(grid.values) > 0.0 for grid in _gamma(specification))


def _gamma(specification: Specification) -> Iterator[Grid]:
    return (grid for grid in specification.grids if grid.question == "gamma_bound")


def _picture(specification: Specification, rows: Sequence[Row]) -> bytes:
    grid = next(_gamma(specification))
    adjacency = grid.adjacencies[0]
    drawn = specification.workflows[:CURVES]
    points: dict[str, list[Row]] = {workflow.name: [] for workflow in drawn}
    for row in rows:
        if row.workflow in points and (row.question, row.adjacency) == (grid.question, adjacency):
            points[row.workflow].append(row)
    curves = []
    for workflow in drawn:
        line = curve(workflow, grid, adjacency, POINTS)
        label = (
            f"{workflow.name}\np = {workflow.sampling_probability:.4g}, "
            f"noise {workflow.noise_multiplier:g}, {workflow.steps:,} steps"
        )
        curves.append(Curve(label, _pairs(line), _pairs(points[workflow.name])))
    title = f"Reconstruction robustness of DP-SGD (adjacency {adjacency})"
    if len(drawn) < len(specification.workflows):
        title += f", the first {len(drawn)} of {len(specification.workflows)} runs"
    return gamma_png(curves, title)


def _pairs(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return [(row.at, row.value) for row in rows if row.value and row.at > 0.0]
