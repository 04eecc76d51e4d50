"""Figures of the same run with other neighbours, other batches, or several records of a user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyengine._support.certainty import certainty
from pyengine.api import answers
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words, label_of
from pyengine.mechanisms.core import phases_of
from pyengine.workbench.report.variants import resampled, with_group
from pyengine.workbench.statement import ADJACENCIES, Figure

__all__ = ["Alternative", "alternatives", "neighbours"]

TOLERANCE = 1e-3  # relative width of the bounds, of which the upper one is shown
Asked = Sequence[tuple[str, str, float]]  # title, question and argument of each figure


@dataclass(frozen=True)
class Alternative:
    """Figures of a run with one change.

    Parameters
    ----------
    kind : {"adjacency", "sampling", "group_size"}
        What was changed.
    what : str
        The change in words.
    adjacency : str
        The neighbours.
    mechanism : tuple of str
        Description of each kind of step; empty if no mechanism is known.
    figures : tuple of Figure
        Upper bounds; empty if there is no answer.
    note : str
        Why there is no answer.
    """

    kind: str
    what: str
    adjacency: str
    mechanism: tuple[str, ...]
    figures: tuple[Figure, ...]
    note: str = ""


def alternatives(
    mechanism: Mechanism,
    adjacency: str,
    asked: Asked,
    group_sizes: Sequence[int],
    *,
    proven: bool,
) -> Iterator[Alternative]:
    """Figures of a run with other neighbours, with other batches, and for users of several records.

    ``asked`` has title, question and argument of each figure.
    """
    for word in ADJACENCIES:
        if word != adjacency:
            yield _changed("adjacency", neighbours(mechanism, word), mechanism, word, asked, proven)
    for what, run in resampled(mechanism).items():
        yield _changed("sampling", what, run, adjacency, asked, proven)
    if any(step.words.whose != "record" for step, _ in phases_of(mechanism)):
        return  # the run already protects whole clients or users
    for size in group_sizes:
        what = f"a user of {size:,} records"
        group = with_group(mechanism, size)
        if group is None:
            note = "no pair of laws is known for this mechanism"
            yield Alternative("group_size", what, adjacency, (), (), note)
        else:
            yield _changed("group_size", what, group, adjacency, asked, proven)


def neighbours(mechanism: Mechanism, adjacency: str) -> str:
    """Return an adjacency with what it protects in a run, in words."""
    found = dict.fromkeys(each.protects for each in label_of(mechanism, adjacency))
    return f"{adjacency}: {'; '.join(found) or 'all records'}"


def _changed(
    kind: str, what: str, run: Mechanism, adjacency: str, asked: Asked, proven: bool
) -> Alternative:
    words = tuple(in_words(run))
    how: Any = {"adjacency": adjacency, "tolerance": TOLERANCE, "proven": proven}
    figures = []
    try:
        for title, question, argument in asked:
            bounds, _, certain = answers(question, run, [argument], **how)
            figures.append(Figure(title, float(bounds.upper[0]), certainty(certain[0])))
    except (NotDefinedError, ValueError):
        note = f"not defined for adjacency {adjacency}"
    except AccuracyError:
        note = "no engine answers within its limits"
    else:
        return Alternative(kind, what, adjacency, words, tuple(figures))
    return Alternative(kind, what, adjacency, words, (), note)
