"""Figures and curves that the page shows for the settings of one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pyengine._support.certainty import certainty
from pyengine._support.decimals import written
from pyengine.accounting.serialization import plain
from pyengine.api import answers
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words
from pyengine.mechanisms.threat_models import Relaxed
from pyengine.workbench.explore.settings import Settings
from pyengine.workbench.plots.series import asked
from pyengine.workbench.statement import UP, Figure, privacy_statement

__all__ = ["reply"]

LEVELS = np.linspace(0.0, 1.0, 41)
PRIORS = np.geomspace(1e-6, 1.0, 41)
POINTS = 41  # of the curve δ(ε)
ENDS = (1e-10, 1e-5)  # the curve δ(ε) ends at the largest known ε of these δ
TOLERANCE = 1e-3  # largest relative width of proven bounds, of which the upper one is shown


def reply(settings: Settings) -> dict[str, Any]:
    """Figures and curves, as an object for JSON.

    ``mechanism``: the run in words.  ``label``: how batches must have been drawn, and what is
    protected.  ``figures``: upper bounds, rounded up, each with its certainty.  ``curves``: points
    of the trade-off function, of γ(κ) and of δ(ε).  ``seconds``: the time taken.
    """
    began = time.perf_counter()
    run = settings.mechanism()
    numbers, adjacency = settings.numbers, settings.words["adjacency"]
    stated = privacy_statement(
        run,
        numbers["delta"],
        adjacency=adjacency,
        false_positive_rates=[numbers["false_positive_rate"]],
        kappas=[numbers["kappa"]],
        priors=[numbers["prior"]],
        slack=numbers["delta"] if settings.proven else None,  # seconds, for some runs
        proven=settings.proven,
    )
    figures = list(stated.figures)
    ends = [end for end in _curve("epsilon", run, ENDS, adjacency)["y"] if 0.0 < end < np.inf]
    is_relaxed = settings.words["threat_model"] == "relaxed"
    if is_relaxed:
        tested = {"x": LEVELS, "y": _relaxed(run, LEVELS, settings)[0].value}
        figures.append(_weaker_figure(run, settings))
    curves = {
        "trade_off": tested if is_relaxed else _curve("trade_off", run, LEVELS, adjacency),
        "gamma": _curve("gamma_bound", run, PRIORS, adjacency),
        "delta": _curve("delta", run, np.linspace(0.0, max(ends, default=1.0), POINTS), adjacency),
    }
    content: dict[str, Any] = plain(
        {
            "mechanism": in_words(run),
            "label": [
                text if text in stated.notes else f"{title}: {text}"
                for title, texts in stated.head()[1:]
                for text in texts
            ],
            "figures": [{**each.as_object(), "printed": each.printed} for each in figures],
            "curves": curves,
            "seconds": round(time.perf_counter() - began, 4),
        }
    )
    return content


def _curve(question: str, run: Mechanism, at: Any, adjacency: str) -> dict[str, Any]:
    """Points of a curve for display: estimates, without points for which no engine answers."""
    try:
        found = asked(question, "", run, at, adjacency=adjacency, tolerance=TOLERANCE)
    except AccuracyError:
        return {"x": [], "y": []}
    return {"x": found.argument, "y": found.bounds.value}


def _relaxed(run: Mechanism, at: Any, settings: Settings) -> Any:
    """β against an adversary who does not know the record, and whether it is proven."""
    adjacency = settings.words["adjacency"]
    if adjacency == "substitute":
        raise NotDefinedError(
            "the relaxed threat model is of a record that is there or not: adjacency must not be "
            "substitute"
        )
    words: Any = {"adjacency": adjacency, "proven": settings.proven}
    words["threat_model"] = Relaxed(int(settings.numbers["dimension"]))
    bounds, _, certain = answers("trade_off", run, at, **words)
    return bounds, certain


def _weaker_figure(run: Mechanism, settings: Settings) -> Figure:
    rate = settings.numbers["false_positive_rate"]
    bounds, certain = _relaxed(run, [rate], settings)
    what = f"relaxed threat model: true positive rate at false positive rate {written(rate)}"
    missed = float(bounds.lower[0])
    return Figure(what, min((1.0 - missed) * UP, 1.0), certainty(certain[0]))
