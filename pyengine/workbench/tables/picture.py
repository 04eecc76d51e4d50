"""The plot of a table: γ(κ) of its first workflows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyengine.workbench.plots import Curve, gamma_png
from pyengine.workbench.runs.grammar import NamedRun
from pyengine.workbench.runs.numbers import fraction
from pyengine.workbench.tables.cells import auto
from pyengine.workbench.tables.rows import Row
from pyengine.workbench.tables.spec import Grid, Specification
from pyengine.workbench.tables.summary import as_given

__all__ = ["draws", "line", "picture"]

POINTS = 121  # points of a curve
CURVES = 9  # most curves in a plot


def draws(specification: Specification) -> bool:
    """Whether there is a curve γ(κ) to draw.

    With the reference engine none is drawn, since its points would take longer than the table.
    """
    grid = _gamma(specification)
    return specification.engine == "auto" and grid is not None and bool(_positive(grid))


def _gamma(specification: Specification) -> Grid | None:
    return next((grid for grid in specification.grids if grid.question == "gamma_bound"), None)


def _positive(grid: Grid) -> list[float]:
    return [at for at in map(_double, grid.values) if at > 0.0]


def _double(text: str) -> float:
    return float(fraction(text))


def picture(specification: Specification, rows: Sequence[Row]) -> bytes:
    """Content of a PNG file; the specification must be one that `draws`."""
    grid = _gamma(specification)
    assert grid is not None  # that is what draws() says
    asked = (grid.question, grid.adjacencies[0], grid.threat_models[0])
    drawn = specification.workflows[:CURVES]
    points: dict[str, list[tuple[float, float]]] = {workflow.name: [] for workflow in drawn}
    for row in rows:
        name = row.workflow.name
        here = (row.question, row.adjacency, row.threat_model) == asked
        if here and name in points and row.cell.value is not None:
            points[name].append((_double(row.at), float(row.cell.value)))
    curves = []
    for workflow in drawn:
        smooth = line(workflow, grid, asked[1], POINTS)
        marked = points[workflow.name]
        curves.append(Curve(_label(workflow), _visible(smooth), _visible(marked)))
    title = f"Reconstruction robustness (adjacency {asked[1]})"
    if len(drawn) < len(specification.workflows):
        title += f", the first {len(drawn)} of {len(specification.workflows)} runs"
    return gamma_png(curves, title)


def line(workflow: NamedRun, grid: Grid, adjacency: str, points: int) -> list[tuple[float, float]]:
    """Pairs (κ, γ) with κ evenly spaced in the logarithm over the positive values of a grid.

    Points without an answer are left out; the list is empty if the grid has no positive value.
    """
    positive = _positive(grid)
    if not positive:
        return []
    inner = np.geomspace(min(positive), max(positive), points).clip(min(positive), max(positive))
    at = [repr(kappa) for kappa in inner.tolist()]
    cells = auto(workflow.mechanism, grid.question, adjacency, at, grid.threat_models[0])
    return [
        (float(kappa), float(cell.value))
        for kappa, cell in zip(at, cells, strict=True)
        if cell.value is not None
    ]


def _label(workflow: NamedRun) -> str:
    probability, noise = workflow.get("sampling_probability"), workflow.get("noise_multiplier")
    words = []
    if probability is not None:
        words.append(f"p = {as_given('sampling_probability', probability)}")
    if noise is not None:
        words.append(f"noise {as_given('noise_multiplier', noise)}")
    steps = sum(fraction(str(step["steps"])) for step in workflow.described)
    words.append(f"{int(steps):,} step{'s' if steps != 1 else ''}")
    return f"{workflow.name}\n{', '.join(words)}"


def _visible(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(kappa, gamma) for kappa, gamma in pairs if kappa > 0.0 and gamma > 0.0]
