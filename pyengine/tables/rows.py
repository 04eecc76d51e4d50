"""Rows of a table: one value with its bounds, engine and parameters each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pyengine.api import answers
from pyengine.errors import AccuracyError
from pyengine.tables.spec import Grid, Specification, Workflow

__all__ = ["Row", "compute", "curve"]


@dataclass(frozen=True)
class Row:
    """One cell of a table.

    Parameters
    ----------
    workflow, noise_multiplier, sampling_probability, steps
        The run.
    question, adjacency, argument, at
        What was asked: ``question`` at ``argument = at``.
    value, lower, upper : float or None
        The answer, lower <= truth <= upper; None where no engine could stand behind one.
    engine : str
        What computed the value; ``exact`` for values that need no engine.
    message : str
        Why there is no value, else empty.
    """

    workflow: str
    noise_multiplier: float
    sampling_probability: float
    steps: int
    question: str
    adjacency: str
    argument: str
    at: float
    value: float | None
    lower: float | None
    upper: float | None
    engine: str
    message: str


def compute(specification: Specification) -> Iterator[list[Row]]:
    """Rows in the order of the specification, those of one curve at a time.

    Parameters
    ----------
    specification : Specification
        What to compute.

    Yields
    ------
    list of Row
        The grid of one workflow, question and adjacency: its points share the engine's transform.
    """
    for workflow in specification.workflows:
        for grid in specification.grids:
            for adjacency in grid.adjacencies:
                yield _rows(workflow, grid, adjacency)


def curve(workflow: Workflow, grid: Grid, adjacency: str, points: int) -> list[Row]:
    """Rows of a finer grid over the positive values of a grid, for a picture.

    Parameters
    ----------
    workflow, grid, adjacency
        As in `compute`.
    points : int
        Number of values, evenly spaced in the logarithm.

    Returns
    -------
    list of Row
        Those with a value; none if the grid has no positive value.
    """
    positive = [at for at in grid.values if at > 0.0]
    if not positive:
        return []
    inner = np.geomspace(min(positive), max(positive), points).clip(min(positive), max(positive))
    fine = Grid(grid.question, tuple(inner.tolist()), grid.adjacencies)
    return [row for row in _rows(workflow, fine, adjacency) if row.value is not None]


def _rows(workflow: Workflow, grid: Grid, adjacency: str) -> list[Row]:
    mechanism = workflow.mechanism
    run = (
        workflow.name,
        workflow.noise_multiplier,
        workflow.sampling_probability,
        workflow.steps,
        grid.question,
        adjacency,
        grid.argument,
    )

    def ask(values: tuple[float, ...]) -> list[Row]:
        bounds, engines = answers(grid.question, mechanism, values, adjacency=adjacency)
        columns = (bounds.value.tolist(), bounds.lower.tolist(), bounds.upper.tolist(), engines)
        return [Row(*run, *cells, "") for cells in zip(values, *columns, strict=True)]

    try:
        return ask(grid.values)
    except AccuracyError:
        # one point beyond the engines must not cost its neighbours
        return [row for at in grid.values for row in _one(ask, run, at)]


def _one(
    ask: Callable[[tuple[float, ...]], list[Row]],
    run: tuple[str, float, float, int, str, str, str],
    at: float,
) -> list[Row]:
    try:
        return ask((at,))
    except AccuracyError as error:
        return [Row(*run, at, None, None, None, "", str(error))]
