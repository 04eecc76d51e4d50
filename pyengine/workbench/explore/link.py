"""The fragment of the page's address that holds the runs of a file."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import quote

from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.workbench.runs.files import RunFile
from pyengine.workbench.runs.grammar import phase
from pyengine.workbench.runs.grids import choices

__all__ = ["MOST", "link"]

MOST = 4  # most runs on the page
FIGURES = {"delta": "delta", "fpr": "false_positive_rate", "kappa": "kappa", "prior": "prior"}
# keys of a phase that the page can show: batches given by sizes, by a rate, or allocated
SIZED = {"noise_multiplier", "batch_size", "dataset_size", "sampling", "steps", "epochs"}
RATED = {"noise_multiplier", "sampling_probability", "steps", "epochs"}
ALLOCATED = {"noise_multiplier", "steps_per_epoch", "steps", "epochs"}
WORDS = ("gaussian", "dp_sgd", "dp_sgd_allocated", "GaussianMechanism")


def link(file: RunFile) -> str:
    """Return the fragment ``#run=…`` for the first `MOST` runs of a file.

    Each must have Gaussian steps of one kind; numbers are rounded to doubles.  ValueError for runs
    that the page has no sliders for.
    """
    grids = (choices(list(each.tables)) for each in file.described)
    found = itertools.islice(itertools.chain.from_iterable(grids), MOST)
    parts = [f"run={_as_text(_settings(tables))}" for _, tables in found]
    if not parts:
        raise ValueError("no run that the page has sliders for")
    for key, value in file.section("statement").items():
        if key in FIGURES:
            first = value[0] if isinstance(value, list) else value
            parts.append(f"{FIGURES[key]}={_number(key, first)}")
    return f"#{'&'.join(parts)}"


def _as_text(settings: dict[str, str]) -> str:
    return ",".join(f"{key}={quote(value)}" for key, value in settings.items())


def _number(name: str, value: Any) -> str:
    return written(checks.as_double(checks.exact(name, value)))


def _settings(tables: list[dict[str, Any]]) -> dict[str, str]:
    """The values of the sliders and menus for one run."""
    (table,) = tables if len(tables) == 1 else ({"mechanism": ""},)
    word = table.get("mechanism", "gaussian")
    keys = set(table) - {"mechanism"}
    if word not in WORDS or not (keys <= SIZED or keys <= RATED or keys <= ALLOCATED):
        raise ValueError(
            "the page has sliders for Gaussian steps of one kind in each run: noise; p, or "
            "batch_size, dataset_size and sampling, or steps_per_epoch; steps or epochs"
        )
    steps = sum(number for _, number in phase(table).mechanism.parts)  # type: ignore[attr-defined]
    found = {"noise_multiplier": _number("noise", table["noise_multiplier"])}
    if "steps_per_epoch" in keys:
        sizes = {"batch_size": "1", "dataset_size": _number("steps", table["steps_per_epoch"])}
        return {**found, "size": "batch", "sampling": "allocation", **sizes, "epochs": str(steps)}
    if "batch_size" in keys:
        batch, records = checks.batch(table["batch_size"], table["dataset_size"])
        epochs = table.get("epochs", f"{steps * batch}/{records}")
        if table["sampling"] == "shuffle" and "epochs" not in keys:
            epochs = str(steps)  # an epoch of a shuffled run is one release
        sizes = {"batch_size": str(batch), "dataset_size": str(records)}
        how = {"size": "batch", "sampling": table["sampling"]}
        return {**found, **how, **sizes, "epochs": _number("epochs", epochs)}
    how = {"size": "rate", "sampling": "none", "steps": str(steps)}
    if "sampling_probability" in keys:
        how |= {"sampling": "poisson"}
        how |= {"sampling_probability": _number("p", table["sampling_probability"])}
    return {**found, **how}
