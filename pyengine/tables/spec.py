"""Specifications of tables: TOML in, checked values out."""

from __future__ import annotations

import hashlib
import importlib.resources
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyengine import _checks
from pyengine.api import QUESTIONS
from pyengine.engines.select import ADJACENCIES
from pyengine.mechanisms import Mechanism, dp_sgd

__all__ = [
    "Grid",
    "Specification",
    "SpecificationError",
    "Workflow",
    "load",
    "parse",
]

T = TypeVar("T")

BUILT_IN = "built-in workflows"
WORKFLOW_KEYS = ("name", "noise_multiplier", "sampling_probability", "steps")


class SpecificationError(ValueError):
    """A specification that cannot be computed; the message says where and why."""


@dataclass(frozen=True)
class Workflow:
    """A DP-SGD run and the name that tables give it."""

    name: str
    noise_multiplier: float
    sampling_probability: float
    steps: int

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the run."""
        return dp_sgd(self.noise_multiplier, self.sampling_probability, self.steps)


@dataclass(frozen=True)
class Grid:
    """One question, the values of its argument and the adjacencies."""

    question: str
    values: tuple[float, ...]
    adjacencies: tuple[str, ...]

    @property
    def argument(self) -> str:
        """Name of the question's argument."""
        return QUESTIONS[self.question].argument


@dataclass(frozen=True)
class Specification:
    """What to compute, and the text that said so.

    Parameters
    ----------
    source : str
        Where the text came from, for messages and reports.
    text : str
        The TOML text.
    workflows, grids : tuple
        In the order of the text.
    """

    source: str
    text: str
    workflows: tuple[Workflow, ...]
    grids: tuple[Grid, ...]

    @property
    def sha256(self) -> str:
        """Hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load(path: str | None) -> Specification:
    """Read a specification.

    Parameters
    ----------
    path : str or None
        A TOML file; None for the workflows that come with the package.

    Returns
    -------
    Specification
        Checked: every value is in its domain.

    Raises
    ------
    SpecificationError
        For text that is no valid specification.
    OSError
        For a file that cannot be read.
    """
    if path is None:
        resource = importlib.resources.files("pyengine.tables").joinpath("workflows.toml")
        return parse(resource.read_text(encoding="utf-8"), BUILT_IN)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecificationError(f"{path}: not a UTF-8 text ({error})") from None
    return parse(text, path)


def parse(text: str, source: str) -> Specification:
    """Check the text of a specification; see `load`."""
    try:
        content = _loads(text)
        _only(content, ("workflow", *QUESTIONS), "the specification")
        workflows = _workflows(content)
        grids = tuple(_grid(name, value) for name, value in content.items() if name in QUESTIONS)
        if not grids:
            raise ValueError(f"no question: add one of [{'], ['.join(QUESTIONS)}]")
    except ValueError as error:  # a TOML syntax error is one, too
        raise SpecificationError(f"{source}: {error}") from None
    return Specification(source, text, workflows, grids)


def _loads(text: str) -> dict[str, Any]:
    # imported here: `import pyengine.cli` is for quick answers, too
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(text)


def _workflows(content: Mapping[str, Any]) -> tuple[Workflow, ...]:
    tables = content.get("workflow")
    if not isinstance(tables, list) or not tables:
        raise ValueError("no workflow: add one with [[workflow]]")
    workflows = tuple(_workflow(index, table) for index, table in enumerate(tables, start=1))
    seen: set[str] = set()
    for workflow in workflows:
        if workflow.name in seen:
            raise ValueError(f"two workflows are named {workflow.name!r}")
        seen.add(workflow.name)
    return workflows


def _workflow(index: int, table: Any) -> Workflow:
    where = f"workflow {index}"
    _only(table, WORKFLOW_KEYS, where)
    for key in WORKFLOW_KEYS:
        if key not in table:
            raise ValueError(f"{where}: {key} is missing")
    name = table["name"]
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"{where}: name must be a printable string, got {name!r}")
    where = f"workflow {name!r}"
    return Workflow(
        name,
        float(_checked(where, _checks.positive, "noise_multiplier", table["noise_multiplier"])),
        float(
            _checked(
                where, _checks.probability, "sampling_probability", table["sampling_probability"]
            )
        ),
        _checked(where, _checks.count, "steps", table["steps"]),
    )


def _grid(question: str, table: Any) -> Grid:
    where = f"[{question}]"
    argument = QUESTIONS[question].argument
    _only(table, (argument, "adjacency"), where)
    values = table.get(argument)
    if not isinstance(values, list) or not values:
        raise ValueError(f"{where}: {argument} must be a list of numbers, got {values!r}")
    adjacencies = table.get("adjacency")
    if not isinstance(adjacencies, list) or not adjacencies:
        words = ", ".join(repr(word) for word in ADJACENCIES)
        raise ValueError(f"{where}: adjacency must be a list of {words}; got {adjacencies!r}")
    grid = Grid(
        question,
        tuple(_checked(where, _argument, question, value) for value in values),
        tuple(_checked(where, _adjacency, "adjacency", word) for word in adjacencies),
    )
    for name, items in ((argument, grid.values), ("adjacency", grid.adjacencies)):
        if len(set(items)) < len(items):
            raise ValueError(f"{where}: {name} holds a value twice")
    return grid


def _argument(question: str, value: Any) -> float:
    name, upper = QUESTIONS[question].argument, QUESTIONS[question].upper
    number = _checks.as_double(_checks.number(name, value))
    if not 0.0 <= number <= upper or number == math.inf:
        interval = "[0, 1]" if upper == 1.0 else "[0, inf)"
        raise ValueError(f"{name} must lie in {interval}, got {value!r}")
    return number


def _adjacency(name: str, value: Any) -> str:
    return _checks.choice(name, value, ADJACENCIES)


def _checked(where: str, check: Callable[[str, Any], T], name: str, value: Any) -> T:
    try:
        return check(name, value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _only(table: Any, allowed: Collection[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            raise ValueError(f"{where}: unknown key {key!r}; allowed: {', '.join(allowed)}")
