"""Series: the values of one question with their bounds, for a line of a plot or a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.certainty import certainty
from pyengine.accounting.serialization import plain, to_json
from pyengine.api import Bounds, answers
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism

__all__ = ["Series", "asked", "joined", "named"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """Values of one question on one mechanism.

    Parameters
    ----------
    label : str
        Name in the legend.
    question : {"trade_off", "gamma_bound", "delta", "epsilon"}
        The question.
    adjacency : str
        The neighbours.
    argument : ndarray
        One-dimensional array of arguments.
    bounds : Bounds
        Values and bounds, arrays of the same shape.
    certainty : tuple of str
        "proven" or "estimate", for each value.
    engine : tuple of str
        Name of the engine, for each value.
    refused : tuple of float
        Further arguments, for which no engine has an answer.
    """

    label: str
    question: str
    adjacency: str
    argument: FloatArray
    bounds: Bounds
    certainty: tuple[str, ...]
    engine: tuple[str, ...]
    refused: tuple[float, ...] = ()

    def as_object(self) -> dict[str, Any]:
        """Content for JSON, of which `pyengine.from_json` reads ``answer``."""
        found: dict[str, Any] = plain({k: v for k, v in vars(self).items() if k != "bounds"})
        return {**found, "answer": json.loads(to_json(self.bounds))}


def asked(
    question: str,
    label: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str,
    proven: bool = False,
    tolerance: float | None = None,
) -> Series:
    """Answer one question at several arguments, with proven bounds if wanted and available.

    AccuracyError if no engine has an answer for any of the arguments.
    """
    at = np.asarray(argument, dtype=np.float64)
    words: dict[str, Any] = {"adjacency": adjacency, "proven": proven, "tolerance": tolerance}
    try:
        bounds, engines, certain = answers(question, mechanism, at, **words)
    except AccuracyError:
        if at.size < 2:
            raise
        return _known(question, label, mechanism, at, words)
    return Series(
        label, question, adjacency, at, bounds, tuple(map(certainty, certain)), tuple(engines)
    )


def _known(
    question: str, label: str, mechanism: Mechanism, at: FloatArray, words: dict[str, Any]
) -> Series:
    """Answer the arguments one by one, and collect the refused ones."""
    found: list[Series] = []
    refused: list[float] = []
    for x in at.tolist():
        try:
            found.append(asked(question, label, mechanism, [x], **words))
        except AccuracyError as error:
            refused.append(x)
            last = error
    if not found:
        raise last
    return replace(joined(found), refused=tuple(refused))


def joined(parts: Sequence[Series]) -> Series:
    """Concatenate series of one question; label, question and adjacency are those of the first."""
    return replace(
        parts[0],
        argument=np.concatenate([each.argument for each in parts]),
        bounds=Bounds(
            *(np.concatenate(part) for part in zip(*(p.bounds for p in parts), strict=True))
        ),
        certainty=tuple(word for each in parts for word in each.certainty),
        engine=tuple(word for each in parts for word in each.engine),
    )


def named(mechanisms: Mechanism | Mapping[str, Mechanism]) -> dict[str, Mechanism]:
    """Mechanisms by name; a single mechanism gets the name "this run"."""
    if isinstance(mechanisms, Mapping):
        if not mechanisms:
            raise ValueError("mechanisms must not be empty")
        return dict(mechanisms)
    return {"this run": mechanisms}
